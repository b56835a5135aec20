"""From a table of production traces to the counts that every number of the report needs.

A source (`open_files`, `open_frame`, `open_postgres`, `open_spark`) is a table in an engine;
`production_counts` asks it the statements of `sql/`, which DuckDB runs as they are and PostgreSQL
and Spark translated, and brings back counts whose size does not grow with the number of traces.

`ProductionCounts.cells`, sorted, one row for each combination of the keys that occurs:

============ ======== ====================================================================
week         category ISO week ``YYYY-Www`` in UTC; missing where the trace has no time
workflow     category
model        category missing where not said
stratum      category missing where not said
weight       float64  1 without a column of weights
outcome      int8     place of the class in the taxonomy
cost_known   bool     cost and ceiling are both known
penalty_step int16    ceil(penalty x 1024); 0: no penalty
n            int64    traces
n_costed     int64    those with a known cost, also where there is no ceiling
units        float64  sum of their units
cost         float64  sum of their costs
cost_squared float64  sum of the squares of their costs
penalty      float64  sum of their exact penalties
score        float64  sum of their exact scores, max(0, credit - penalty)
score_NAME   float64  the same under each further table of credits
============ ======== ====================================================================

With `exact`, traces of a cell share one penalty (penalty / n); two cells may then have the same
`penalty_step`. Otherwise penalties of a cell differ by less than 1/1024 (`rounding`); sums are
exact in both.

`ProductionCounts.tasks` is None without repeated tasks. Else it has the columns of `cells`, with
`task` (int64) and `tasks` (int64, how many equal units the row stands for: always 1) before them,
and `penalty_step` 1 for any penalty. Rows with the same `task` are resampled together; cells of
one task sum to the task. Above 20,000 tasks, a `task` is one of 5,000 random groups of tasks, by
the hash of their id and within one design stratum: groups are independent as tasks are and mix
tasks of all kinds, so resampling them estimates the same variance. `tasks` then has no week,
workflow and model: `ProductionCounts.tasks_by` holds the same groups by each of these, one at a
time. `n_tasks` counts the tasks themselves.

Files and frames are first put in numbers (`coded`): one narrow table in memory, or beside it where
it does not fit, that everything is grouped from.
"""

from calibration.runs.counts import production_counts
from calibration.runs.results import (
    CreditTable,
    Example,
    Notes,
    ProductionCounts,
    SetAsideRows,
    Spread,
)
from calibration.runs.sources import Source, open_files, open_frame, open_postgres, open_spark

__all__ = [
    "CreditTable",
    "Example",
    "Notes",
    "ProductionCounts",
    "SetAsideRows",
    "Source",
    "Spread",
    "open_files",
    "open_frame",
    "open_postgres",
    "open_spark",
    "production_counts",
]
