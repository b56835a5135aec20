"""Behaviour of an agent beside its answers: its `tools`, and `graders` written as code."""
