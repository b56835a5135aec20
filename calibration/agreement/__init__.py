"""Agreement between reviewers, from ratings to a study.

`ratings` counts the classes of each item; `coefficients` are measured on the counts, `inference`
gives their intervals and differences. `disagreement` says where raters differ, `annotators` who
differs, `dawid_skene` what the true classes probably are. `study` is all of it from one count,
`sample_size` plans one.
"""
