"""Labels and verdicts as calibration data, from a store or from files."""
