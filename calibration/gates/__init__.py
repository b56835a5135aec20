"""Gates: thresholds from a file, measurements, and the gates that hold."""
