"""Bring traces in and look for them."""
