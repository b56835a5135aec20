"""Analyses of repeated runs, and of an agent's behaviour beside its answers.

`runs` measures reliability on a table of runs, which `from_store` makes from a store; `tools` is of
a file of conversations, `grading` of runs and graders written as code.
"""
