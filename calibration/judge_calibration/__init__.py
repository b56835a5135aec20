"""Calibration of a judge: the rate corrected for the errors of its verdicts."""
