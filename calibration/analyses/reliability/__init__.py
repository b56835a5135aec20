"""Reliability over repeated runs.

`trials` of tasks, their `trial_changes` against a baseline, and the `trial_plan`: how many to run.
"""
