"""Count production traces: from a table to the counts behind every number of the report.

A source (`open_files`, `open_frame`, `open_postgres`, `open_spark`) is a table in an engine
(`sources`, `engines`), also of the result files of a benchmark (`benchmark_results`);
`recognition` says which columns have which role and what the outcomes are taken as, `columns` reads
them by type, `counts` runs the statements, `cells` hold equal runs together, and `results` are
what comes out.
`production_counts` runs the statements of `sql/` on it, translated for PostgreSQL and Spark; the
size of the counts does not grow with the number of traces.

`ProductionCounts.cells`, sorted, one row per combination of keys:

============ ======== ====================================================================
week         category ISO week ``YYYY-Www`` in UTC; missing where the trace has no time
workflow     category
model        category missing if not recorded
agent_version category (``harness@version`` where there is a harness); no column if not recorded
stratum      category missing if not recorded
weight       float64  1 without a column of weights
outcome      int8     class code: position of the class in the taxonomy
cost_known   bool     cost and ceiling are both known
penalty_step int16    0: no penalty; 1 and more: credits of the class up to the penalty, plus 1
n            int64    traces
n_costed     int64    traces with a known cost, with or without a ceiling
units        float64  sum of units
cost         float64  sum of costs
cost_squared float64  sum of squared costs
penalty      float64  sum of penalties
penalty_squared float64  sum of squared penalties
score        float64  sum of scores, max(0, credit - penalty)
score_NAME   float64  the same under each further table of credits
============ ======== ====================================================================

The score of a run is linear in its penalty between two credits of its class, so that these sums
give the mean and the variance of scores exactly. Up to 20,000 runs the traces of a cell share one
penalty (penalty / n), and two cells may have the same `penalty_step`.

`ProductionCounts.tasks` is None without repeated tasks. Otherwise it has the columns of `cells`
after `task` (int64) and `tasks` (int64, always 1), and `penalty_step` is 1 for any penalty. Rows of
one `task` are resampled together. Above 20,000 tasks, a `task` is one of 5,000 random groups of
tasks, by the hash of their id and within one design stratum: groups are as independent as tasks and
mix all kinds, so resampling them estimates the same variance. Groups have no week, workflow and
model; `tasks_by` holds them by each of these. `n_tasks` counts the tasks themselves.
"""
