"""Settle disagreements."""
