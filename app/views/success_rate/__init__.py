"""The Agent Success Rate."""
