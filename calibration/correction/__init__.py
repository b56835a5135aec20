"""The judge against the humans: confusion, class shares and ASR corrected for judge error."""
