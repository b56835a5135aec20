"""Reliability of an agent over repeated runs.

`consistency` of outcomes, actions and resources, `predictability` from the agent's confidence,
`robustness` to perturbations, and `safety`.
"""
