"""Reliability of an agent over repeated runs, and its behaviour beside its answers.

`consistency` of outcomes, actions and resources, `predictability` from the agent's confidence,
`robustness` to perturbations, and `safety`; its `tools`, and `graders` written as code.
"""
