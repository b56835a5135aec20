"""The success-rate report, its comparison and verification."""
