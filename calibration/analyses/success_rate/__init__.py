"""The success-rate report.

`from_store` and `from_runs` load it, `assembly` puts it together from either, `report` is its type
with options and verification; `evaluation` asks whether it rests on an evaluation, `comparison`
sets two sets of runs side by side.
"""
