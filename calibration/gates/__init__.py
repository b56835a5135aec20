"""Gates: thresholds from a file, what was measured, and which of them hold."""
