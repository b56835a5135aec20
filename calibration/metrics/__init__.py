"""The Agent Success Rate and its resampling interval."""
