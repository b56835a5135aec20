"""How fast a calibration of a million verdicts is beside peers: `make bench-calibration`."""
