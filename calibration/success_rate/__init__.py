"""The Agent Success Rate and its uncertainty, from counts of runs.

`runs` are the counts, `rate` the rate and its parts, `resampling` their uncertainty. `trend` goes
week by week, `comparison` sets two sets of runs side by side, `ranking` several, `pass_at_k` looks
at repeated trials, `trials` at retries, steps and plans of them, and at success by length.
"""
