"""Analyses of repeated runs.

`runs` measures reliability on a table of runs.
"""
