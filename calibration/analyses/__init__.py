"""Analyses, one module per question; only here do the stages meet.

`evidence` loads labels and verdicts from a store or from files. From it come `agreement`, `judge`,
`success_rate` and `gates`; `reliability` is of repeated runs; `sampling` plans and draws batches,
`reviewers` examines and adjudicates, `layers` says which layer caught which failure, `status` what
to do next, `look` what a file is for. `trace_files` brings traces in, `imports` verdicts and
labels, `exports` writes them; `platform_scores` makes scores of a platform of labels and verdicts,
`platform_transfer` pulls traces and pushes scores by the requests of `platform_api`; `demo`
simulates a store, `reference_traces` recognises the reference set, `fingerprint` digests what a
result was made of.
"""
