"""Labels and verdicts as calibration data.

`data` is what every analysis takes; `from_store` and `from_files` load it.
"""
