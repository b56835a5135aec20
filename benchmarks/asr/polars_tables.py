"""The tables of the report in polars, values without intervals: run by its text, with no package.

Arguments are the file and a JSON object with the credit of each class and the ceilings.
"""

import json
import sys
import time
from importlib import import_module

pl = import_module("polars")
path, rubric = sys.argv[1], json.loads(sys.argv[2])
began = time.perf_counter()
frame = pl.read_csv(path, try_parse_dates=True) if path.endswith(".csv") else pl.read_parquet(path)
ceiling = pl.col("workflow").replace_strict(rubric["ceilings"], return_dtype=pl.Float64)
credit = pl.col("outcome").replace_strict(rubric["credit"], return_dtype=pl.Float64)
penalty = ((pl.col("cost_usd") - ceiling) / ceiling).clip(0, 1).fill_null(0)
frame = frame.with_columns(
    (credit - penalty).clip(lower_bound=0).alias("score"),
    pl.col("started_at").dt.truncate("1w").alias("week"),
)
rate, levels = [pl.len(), pl.col("score").mean()], (0.5, 0.9, 0.99)
amounts = [
    pl.col(name).quantile(q, "linear").alias(f"{name}_{q}")
    for name in ("cost_usd", "latency_s")
    for q in levels
]
tables = [frame.group_by(by).agg(*rate, *amounts) for by in ("week", "workflow")]
tables += [frame.group_by("model").agg(*rate), frame.group_by("outcome").agg(pl.len())]
distinct = frame["trace_id"].n_unique()
sys.stdout.write(json.dumps({
    "rows": frame.height, "distinct": distinct, "value": frame["score"].mean(),
    "tables": len(tables), "seconds": time.perf_counter() - began,
}) + "\n")  # fmt: skip
