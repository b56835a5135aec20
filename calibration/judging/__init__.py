"""Judging: a model walks the reviewers' tree over one trace and leaves a verdict per sample.

`requests` are the records that pass between a judge and the runner. `journal` keeps what was sent
and answered, `budget` what it cost and may cost; `transport` speaks to the endpoint, `pace` says
when, and `runner` drives them. `probe` asks an endpoint what it can do. The runner never looks into
an answer: a judge decides what to ask next, so that verdicts are a pure function of the journal.
"""
