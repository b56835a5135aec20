"""The least that the machine needs, each in a process of its own.

`python -m benchmarks.asr.floors libraries|read|tasks|group FILE` prints one JSON object.
"""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

# What `asr report` loads of others' code.
LIBRARIES = ("numpy", "pandas", "scipy.special", "duckdb")

THREADS = 2

# Every column of the file that the report uses is looked at once.
READ = """
SELECT count(*), bit_xor(hash(trace_id)), sum(strlen(workflow)), sum(strlen(outcome)),
  sum(strlen(model)), sum(cost_usd), count(cost_usd), sum(latency_s), max(epoch_us(started_at))
FROM {rows}
"""

# With tasks their ids are texts to be told apart, as those of the runs.
TASKS = READ.replace("bit_xor(hash(trace_id))", "bit_xor(hash(trace_id)), bit_xor(hash(task_id))")

TYPES = {
    "trace_id": "VARCHAR", "workflow": "VARCHAR", "outcome": "VARCHAR", "model": "VARCHAR",
    "cost_usd": "DOUBLE", "latency_s": "DOUBLE", "started_at": "TIMESTAMPTZ",
}  # fmt: skip

# Weeks as numbers, from Monday on: quicker than to cut a date.
GROUP = """
SELECT (epoch_us(started_at) + 259_200_000_000) // 604_800_000_000 AS week,
  workflow, model, outcome, count(*) AS n, sum(cost_usd) AS cost
FROM {rows} GROUP BY ALL
"""


def libraries(_: Path) -> dict[str, int]:
    """Load the libraries and do nothing."""
    return {"loaded": len([importlib.import_module(name) for name in LIBRARIES])}


def read(path: Path) -> dict[str, int]:
    """Look at every value that the report uses, once."""
    ((n, *_),) = _asked(READ, path)
    return {"rows": n}


def tasks(path: Path) -> dict[str, int]:
    """Look at every value that the report uses, the ids of tasks too."""
    ((n, *_),) = _asked(TASKS, path)
    return {"rows": n}


def group(path: Path) -> dict[str, int]:
    """Count by week, workflow, model and class: no check, penalty, grid, quantile or interval."""
    found = _asked(GROUP, path)
    return {"rows": sum(row[4] for row in found), "groups": len(found)}


def _asked(sql: str, path: Path) -> list[tuple[int, ...]]:
    # Loading the other libraries is no part of these two.
    import duckdb

    rows = "read_parquet(?)"
    if path.suffix == ".csv":
        rows = f"read_csv(?, header=true, types={TYPES})"
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.execute(sql.format(rows=rows), [str(path)]).fetchall()


FLOORS: dict[str, tuple[str, Callable[[Path], dict[str, int]]]] = {
    "libraries": ("Python that only loads numpy, pandas, scipy.special, duckdb", libraries),
    "read": (f"DuckDB, {THREADS} threads: every used column read once", read),
    "tasks": (f"DuckDB, {THREADS} threads: every used column and task_id read once", tasks),
    "group": (f"DuckDB, {THREADS} threads: one group-by week, workflow, model, class", group),
}


def main() -> None:
    """Run one of them."""
    name, path = sys.argv[1:]
    sys.stdout.write(json.dumps(FLOORS[name][1](Path(path))) + "\n")


if __name__ == "__main__":
    main()
