"""Totals of tasks, for resampling the trials of a task together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ibis
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.runs.cells import (
    CLASSES,
    GRID,
    LABELLED,
    NAMES,
    Coding,
    decoded,
    place,
    ranked,
    sums_of,
)
from calibration.runs.columns import ones
from calibration.runs.engines import Engine
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
    rows, narrow : ibis Table
        The rows that count, and their numbers.
    n, no_task : int
        Rows, and those without a task, each a task of its own.
    n_strata : int
        Strata that occur.
    """

    rows: Any
    narrow: Any
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
    tasked = narrow.filter(narrow.task.notnull()) if no_task else narrow
    # Traces without a task differ: duplicates are gone.
    distinct = counting.engine.distinct(tasked, "task", n - no_task)[0] + no_task
    if n == distinct and not (named and distinct <= most_tasks):
        return Tasks(table=None, n=n)
    if distinct <= most_tasks:
        return Tasks(table=_by_task(counting, named=named), n=distinct)
    return _by_group(counting, distinct, most_tasks)


def _by_task(counting: Counting, *, named: bool) -> pd.DataFrame:
    narrow, no_task = counting.narrow, counting.no_task
    units = {"task": narrow.task}
    if no_task:
        units["alone"] = ibis.ifelse(narrow.task.isnull(), narrow.id, ibis.null(narrow.id.type()))
    found = _totals(counting, units, narrow["head"], narrow["tail"])
    texts = [("alone", "trace_id", "r"), ("task", "task", "t")]
    names = [_texts(counting, column, prefix) for key, column, prefix in texts if key in units]
    number = np.full(len(found), -1, dtype=np.int64)
    start = 0
    for key, own in zip([key for key, _, _ in texts if key in units], names, strict=True):
        there = found[key].notna().to_numpy()
        at = pd.Index(own["identity"]).get_indexer(pd.Index(found[key][there]))
        number[there] = at + start
        start += len(own)
    return _frame(found, counting, number, pd.concat(names)["text"].to_numpy() if named else None)


def _texts(counting: Counting, column: str, prefix: str) -> pd.DataFrame:
    """Return the tasks, or the traces without one, in the order of their names."""
    rows, identity = counting.rows, counting.engine.identity
    rows = rows.filter(rows.task.isnull() if column == "trace_id" else rows.task.notnull())
    own = rows.select(text=rows[column], identity=identity(rows[column])).distinct()
    found = counting.engine.run(own)
    found = found.assign(text=found["text"].astype(object)).sort_values("text")
    return found.assign(text=prefix + found["text"])


def _by_group(counting: Counting, distinct: int, most_tasks: int) -> Tasks:
    """Replace tasks by random groups of them, each within one design stratum.

    A group mixes tasks of all workflows, models and weeks as chance has it. In groups of one kind
    each the difference between kinds would count as chance, once for every task in a group. Groups
    are counted by one key at a time: by all of them together they would be nearly as many as runs.
    """
    narrow, engine = counting.narrow, counting.engine
    most = min(most_tasks, MOST_GROUPS)
    in_stratum = max(1, most // max(1, counting.n_strata))
    unit = engine.grouped(narrow.task.fill_null(narrow.id), in_stratum)
    head, tail = narrow["head"], narrow["tail"]
    below_model = NAMES * CLASSES * 2
    parts = {
        "": (ibis.literal(0, "int64"), tail % below_model),
        "week": (head - head % NAMES, tail % below_model),
        "workflow": (head % NAMES, tail % below_model),
        "model": (ibis.literal(0, "int64"), tail),
    }
    tables = {}
    for by, (own_head, own_tail) in parts.items():
        texts = tuple(name for name in counting.coding.texts if name in (by, "stratum"))
        if by and not (by == "week" or counting.coding.names[by] or by in texts):
            continue
        found = _totals(counting, {"unit": unit}, own_head, own_tail, texts)
        tables[by] = _frame(found, counting, found["unit"].to_numpy(np.int64), None, by)
    return Tasks(table=tables.pop(""), n=distinct, grouped=True, by=tables)


def _totals(
    counting: Counting, units: Mapping[str, Any], head: Any, tail: Any, texts: Any = None
) -> pd.DataFrame:
    narrow, coding = counting.narrow, counting.coding
    keys = place(narrow, head, tail, ones(narrow.penalty > 0).cast("int64"), coding)
    if texts is not None:
        keys = {k: v for k, v in keys.items() if k not in coding.texts or k in texts}
    # Scores are not additive in the penalty: they are summed in the engine.
    scores = {name: _score(narrow, coding, table).sum() for name, table in counting.credits.items()}
    grouped = narrow.group_by(**units, **keys).aggregate(**sums_of(narrow, coding), **scores)
    return counting.engine.run(grouped)


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


def _score(narrow: Any, coding: Coding, table: CreditTable) -> Any:
    def credit(row: tuple[float, ...]) -> Any:
        some = [(narrow.outcome == k, ibis.literal(float(c))) for k, c in enumerate(row) if c]
        return ibis.cases(*some, else_=0.0) if some else ibis.literal(0.0)

    names = coding.names["workflow"]
    own = [
        (
            narrow.workflow == name
            if names is None
            else narrow["head"] % NAMES == names.index(name) + 1,
            credit(row),
        )
        for name, row in table.by_workflow.items()
        if names is None or name in names
    ]
    worth = ibis.cases(*own, else_=credit(table.credit)) if own else credit(table.credit)
    return ibis.greatest(worth - narrow.penalty, 0.0)
