"""Analyses, one module per question; only here do the stages meet."""
