"""The judge against the human labels."""
