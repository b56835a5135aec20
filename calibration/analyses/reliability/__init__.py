"""Analyses of repeated runs, and of an agent's behaviour beside its answers.

`trials` of tasks, their `trial_changes` against a baseline, and the `trial_plan`: how many to run.
`runs` measures reliability on a table of runs, which `from_store` makes from a store; `tools` is of
a file of conversations, `grading` of runs and graders written as code; `tasks` audits the tasks
themselves, and makes tasks of runs that failed.
"""
