"""Files of runs in which every gate can be worked out by hand, and what the command printed."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from click.testing import Result

from tests.cli_runs import data

Run = Callable[..., Result]
HOSTILE = "a|b <img src=x> `x` [y](http://evil) @all www.evil.example\x1b[2J\n# h"


def rows(
    n_tasks: int = 40, trials: int = 5, failing: int = 4, **changes: Any
) -> list[dict[str, Any]]:
    """Return runs of tasks: all trials of the last tasks fail, so pass@1 = pass^k."""
    found = []
    for task in range(n_tasks):
        for trial in range(trials):
            row = {
                "trace_id": f"t{task}-{trial}", "workflow": "support_triage",
                "outcome": "partial_minus" if task >= n_tasks - failing else "complete",
                "cost_usd": 0.05, "units": 1, "task_id": f"task {task}", "trial": trial,
                "latency_s": 5 + task / 10, "model": "m", "tier": "edge" if task < 6 else "core",
                "category": ("refund", "other")[task % 2], "loops": 0, "data_corruption": "no",
            }  # fmt: skip
            found.append(row | changes)
    return found


def csv_of(found: Sequence[dict[str, Any]], name: str = "runs.csv") -> str:
    with Path(name).open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    return name


def labels_of(found: Sequence[dict[str, Any]], every: int = 4, **changes: str) -> str:
    chosen = [
        {"trace_id": r["trace_id"], "outcome": r["outcome"]} | changes for r in found[::every]
    ]
    return csv_of(chosen, "labels.csv")


def gates_of(run: Run, *words: object, **asked: Any) -> dict[str, dict[str, Any]]:
    return by_name(run(*words, "--json", **asked))


def by_name(done: Result) -> dict[str, dict[str, Any]]:
    return {gate["name"]: gate for gate in data(done)["gates"]}
