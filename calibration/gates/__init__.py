"""Gates: thresholds in a `gate_file`, and `evaluate` to hold measurements to them."""
