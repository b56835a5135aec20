"""Judging: a model walks the reviewers' tree over one trace and leaves a verdict per sample.

`versions` say what a judge is, `prompt` what it reads, `answers` how its answers are read, and
`steps` what it asks next and what its samples add up to; `requests` are the records that pass
between a judge and what sends them. Verdicts are a pure function of the replies.

`baseline` is a judge without a language model; `selection` splits labels, corrects the score of the
best version for the choice, compares versions on the same traces, and certifies on locked labels.

`journal` keeps what was sent and answered, `budget` what it cost and may cost; `transport` speaks
to the endpoint, `pace` says when, `runner` drives them, and `probe` asks what an endpoint can do.

`probes` ask a judge about changed traces whose right effect is known, as an order to it in a trace.
`suggestions` ask its model for rules that would mend what it judged otherwise than the reference.
"""
