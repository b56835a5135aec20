"""Judges: a baseline without a language model, and honest numbers for choosing among versions."""
