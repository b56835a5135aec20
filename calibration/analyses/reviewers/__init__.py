"""Examinations, practice, drift and adjudication."""
