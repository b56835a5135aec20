"""The Agent Success Rate and its uncertainty, from counts of runs."""
