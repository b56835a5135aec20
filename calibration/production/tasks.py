"""Totals of tasks, for resampling the trials of a task together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ibis
import pandas as pd

from calibration.production.cells import (
    KEYS,
    finished,
    in_order,
    keys_of,
    outcome_code,
)
from calibration.production.columns import ones
from calibration.production.engines import Engine
from calibration.production.results import CreditTable

MOST_TASKS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Totals by task or by group of tasks; None where no task repeats."""

    table: pd.DataFrame | None
    n: int
    grouped: bool = False


def count_tasks(
    priced: Any,
    engine: Engine,
    credits: Mapping[str, CreditTable],
    *,
    n: int,
    no_task: int,
    most_tasks: int,
    named: bool = False,
) -> Tasks:
    """Return the totals; a trace without a task is a task of its own.

    With `named` a task is a text that is the same in another source (``t`` and its id), and the
    totals are there though no task repeats; beyond `most_tasks` there are no names.
    """
    task = priced.task
    if no_task or named:
        task = ibis.ifelse(task.isnull(), "r" + priced.trace_id, "t" + task)
    rows = priced.mutate(unit=task)
    distinct = engine.distinct(rows, "unit", n)
    if n == distinct and not (named and distinct <= most_tasks):
        return Tasks(table=None, n=n)
    if distinct <= most_tasks:
        return Tasks(table=_totals(rows, engine, credits, named=named), n=distinct)
    return Tasks(table=_totals(_grouped(rows, engine, most_tasks), engine, credits), n=distinct,
                 grouped=True)  # fmt: skip


def _grouped(rows: Any, engine: Engine, most_tasks: int) -> Any:
    """Replace tasks by random groups of them, each within one design stratum.

    A group mixes tasks of all workflows, models and weeks as chance has it. In groups of one kind
    each the difference between kinds would count as chance, once for every task in a group.
    """
    n_strata = int(engine.run(rows.aggregate(n=rows.stratum.fill_null("").nunique()))["n"][0])
    in_stratum = max(1, most_tasks // max(1, n_strata))
    return rows.mutate(unit=engine.hash(rows.unit) % in_stratum, unit_stratum=rows.stratum)


def _totals(
    rows: Any, engine: Engine, credits: Mapping[str, CreditTable], *, named: bool = False
) -> pd.DataFrame:
    units = [name for name in ("unit", "unit_stratum") if name in rows.columns]
    priced = rows.mutate(outcome=outcome_code(rows.outcome))
    # Scores are not additive in the penalty: they are summed in the engine.
    found = engine.run(
        priced.group_by(
            **{name: priced[name] for name in units},
            **keys_of(priced),
            penalty_step=ones(priced.penalty > 0),
        ).aggregate(
            n=priced.count(),
            penalty=priced.penalty.sum(),
            **{name: _score(priced, table).sum() for name, table in credits.items()},
        )
    )
    table = finished(found, {})
    for name in credits:
        table[name] = found[name].astype("float64")
    numbers = found.groupby(units, sort=True, dropna=False).ngroup()
    table.insert(0, "task", found["unit"].astype(object) if named else numbers.astype("int64"))
    table.insert(1, "tasks", 1)
    return in_order(table, ["task", *KEYS])


def _score(rows: Any, table: CreditTable) -> Any:
    def credit(row: tuple[float, ...]) -> Any:
        some = ((k, ibis.literal(float(c))) for k, c in enumerate(row) if c)
        return (
            ibis.cases(*((rows.outcome == k, c) for k, c in some), else_=0.0) if any(row) else 0.0
        )

    own = [(rows.workflow == name, credit(row)) for name, row in table.by_workflow.items()]
    worth = ibis.cases(*own, else_=credit(table.credit)) if own else credit(table.credit)
    return ibis.greatest(worth - rows.penalty, 0.0)
