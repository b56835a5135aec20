"""Reliability over repeated runs: `trials` of tasks, and the `trial_plan` of how many to run."""
