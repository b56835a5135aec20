"""Statistical primitives that every stage uses: numpy and scipy only.

`estimate` is what estimators take and return; `intervals` of proportions and statistics, `means`
weighted and clustered, `random_effects` of several groups, `contingency` tables of two raters,
`resampling` is the bootstrap over tasks.
"""
