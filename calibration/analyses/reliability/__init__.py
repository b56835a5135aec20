"""Analyses of repeated runs.

`from_store` makes the table of runs from a store.
"""
