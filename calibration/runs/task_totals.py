"""Totals of tasks, for resampling the trials of a task together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.runs.cells import (
    CLASSES,
    GRID,
    HEAD_BELOW,
    LABELLED,
    NAMES,
    STEPS,
    Coding,
    decoded,
    ranked,
)
from calibration.runs.engines import Engine
from calibration.runs.queries import Relation, query
from calibration.runs.results import CreditTable

# Above so many tasks random groups of them are counted; as many groups are ever resampled.
MOST_TASKS, MOST_GROUPS = 20_000, 5_000

BY = ("week", "workflow", "model")

OVER = np.arange(2 * GRID, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Totals by task, or by group of tasks and one more key; None where no task repeats."""

    table: pd.DataFrame | None
    n: int
    grouped: bool = False
    by: Mapping[str, pd.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """What tasks are counted with.

    Parameters
    ----------
    rows, narrow : Relation
        The rows that count, and their numbers.
    n, no_task : int
        Rows, and those without a task, each a task of its own.
    n_strata : int
        Strata that occur.
    """

    rows: Relation
    narrow: Relation
    engine: Engine
    coding: Coding
    credits: Mapping[str, CreditTable]
    n: int
    no_task: int
    n_strata: int


def count_tasks(counting: Counting, *, most_tasks: int, named: bool = False) -> Tasks:
    """Return the totals; a trace without a task is a task of its own.

    With `named` a task is a text that is the same in another source (``t`` and its id), and the
    totals are there though no task repeats; beyond `most_tasks` there are no names.
    """
    n, no_task, narrow = counting.n, counting.no_task, counting.narrow
    tasked = query("tasked", rows=narrow) if no_task else narrow
    # Traces without a task differ: duplicates are gone.
    distinct = counting.engine.distinct(tasked, "task", n - no_task)[0] + no_task
    if n == distinct and not (named and distinct <= most_tasks):
        return Tasks(table=None, n=n)
    if distinct <= most_tasks:
        return Tasks(table=_by_task(counting, named=named), n=distinct)
    return _by_group(counting, distinct, most_tasks)


def _by_task(counting: Counting, *, named: bool) -> pd.DataFrame:
    keys = {"alone": "trace_id", "task": "task"} if counting.no_task else {"task": "task"}
    found = _totals(counting, alone="alone" in keys)
    names = [_texts(counting, key, column) for key, column in keys.items()]
    number = np.full(len(found), -1, dtype=np.int64)
    start = 0
    for key, own in zip(keys, names, strict=True):
        there = found[key].notna().to_numpy()
        at = pd.Index(own["identity"]).get_indexer(pd.Index(found[key][there]))
        number[there] = at + start
        start += len(own)
    return _frame(found, counting, number, pd.concat(names)["text"].to_numpy() if named else None)


def _texts(counting: Counting, key: str, column: str) -> pd.DataFrame:
    """Return the tasks, or the traces without one, in the order of their names."""
    own = query("task_names", rows=counting.rows, column=column, alone=key == "alone")
    found = counting.engine.run(own)
    found = found.assign(text=found["text"].astype(object)).sort_values("text")
    return found.assign(text=("r" if key == "alone" else "t") + found["text"])


def _by_group(counting: Counting, distinct: int, most_tasks: int) -> Tasks:
    """Replace tasks by random groups of them, each within one design stratum.

    A group mixes tasks of all workflows, models and weeks as chance has it. In groups of one kind
    each the difference between kinds would count as chance, once for every task in a group. Groups
    are counted by one key at a time: by all of them together they would be nearly as many as runs.
    """
    most = min(most_tasks, MOST_GROUPS)
    groups = max(1, most // max(1, counting.n_strata))
    tables = {}
    for by in ("", *BY):
        texts = tuple(name for name in counting.coding.texts if name in (by, "stratum"))
        if by and not (by == "week" or counting.coding.names[by] or by in texts):
            continue
        found = _totals(
            counting,
            by or "nothing",
            "stratum",
            groups=groups,
            by_week=by == "week",
            by_workflow=by == "workflow",
            without_head=by in ("", "model"),
            without_model=by != "model",
        )
        tables[by] = _frame(found, counting, found["unit"].to_numpy(np.int64), None, by)
    return Tasks(table=tables.pop(""), n=distinct, grouped=True, by=tables)


def _totals(counting: Counting, *texts: str, **which: Any) -> pd.DataFrame:
    coding = counting.coding
    asked = query(
        "tasks",
        narrow=counting.narrow,
        names=NAMES,
        steps=STEPS,
        head_below=HEAD_BELOW,
        below_model=NAMES * CLASSES * 2,
        credits=[_credits(name, coding, table) for name, table in counting.credits.items()],
        **which,
        **coding.flags(*texts),
    )
    return counting.engine.run(asked)


def _frame(
    found: pd.DataFrame,
    counting: Counting,
    number: NDArray[np.int64],
    names: NDArray[Any] | None,
    by: str | None = None,
) -> pd.DataFrame:
    """Return totals sorted by task and keys; groups of tasks lie within a stratum."""
    missing = {name: None for name in counting.coding.texts if name not in found}
    cells = decoded(found.assign(**missing), counting.coding, OVER)
    task = number if by is None else ranked(number, cells.stratum)
    task = np.unique(task, return_inverse=True)[1].astype(np.int64)
    order = np.argsort(cells.rank(task), kind="stable")
    sums = {name: column[order] for name, column in cells.sums.items()}
    sums |= {name: found[name].to_numpy(np.float64)[order] for name in counting.credits}
    kept = LABELLED if by is None else tuple(name for name in LABELLED if name in (by, "stratum"))
    table = cells.take(order, sums).frame(kept)
    table.insert(0, "task", task[order] if names is None else names[number[order]])
    table.insert(1, "tasks", 1)
    return table


def _credits(score: str, coding: Coding, table: CreditTable) -> dict[str, Any]:
    """Return what a class is worth, and in which workflows it is worth something else."""
    names = coding.names["workflow"]
    own = [
        ({"own_name": name} if names is None else {"own_workflow": names.index(name) + 1})
        | {"own_class": k, "own_credit": float(credit)}
        for name, row in table.by_workflow.items()
        if names is None or name in names
        for k, credit in enumerate(row)
    ]
    return {
        "score": score,
        "own": [] if names is None else own,
        "own_named": own if names is None else [],
        "any": [
            {"any_class": k, "any_credit": float(credit)} for k, credit in enumerate(table.credit)
        ],
    }
