"""Totals of tasks, for resampling the trials of a task together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ibis
import pandas as pd

from calibration.production.cells import KEYS, NAMES, _finished, _keys, in_order
from calibration.production.engines import Engine
from calibration.production.results import CreditTable

MOST_TASKS = 20_000
HOME = (*NAMES, "weight")


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
) -> Tasks:
    """Return the totals; a trace without a task is a task of its own."""
    task = priced.task
    if no_task:
        task = ibis.ifelse(task.isnull(), "r" + priced.trace_id, "t" + task)
    rows = priced.mutate(unit=task)
    distinct = engine.distinct(rows, "unit", n)
    if n == distinct:
        return Tasks(table=None, n=n)
    if distinct <= most_tasks:
        return Tasks(table=_totals(rows, engine, credits), n=distinct)
    return Tasks(table=_totals(_grouped(rows, engine, most_tasks), engine, credits), n=distinct,
                 grouped=True)  # fmt: skip


def _grouped(rows: Any, engine: Engine, most_tasks: int) -> Any:
    """Replace tasks by groups of them that begin in the same week, workflow and so on.

    Where a task begins is taken for all its rows, so that no task is divided. Groups hold about
    equally many tasks of a home, and a home with few tasks keeps them apart.
    """
    key = engine.hash(rows.unit)
    rows = rows.mutate(unit=key)
    homes = rows.group_by(unit=rows.unit).aggregate(**{f"home_{k}": rows[k].min() for k in HOME})
    homes = engine.keep(homes, "homes")
    names = [f"home_{k}" for k in HOME]
    n_homes = int(engine.run(homes.select(*names).distinct().count().as_table()).iloc[0, 0])
    in_home = max(1, most_tasks // max(1, n_homes))
    homes = homes.mutate(bucket=homes.unit % in_home)
    label = ibis.dense_rank().over(order_by=[homes[name] for name in (*names, "bucket")])
    return rows.inner_join(homes.select("unit", group=label), "unit").mutate(unit=ibis._.group)


def _totals(rows: Any, engine: Engine, credits: Mapping[str, CreditTable]) -> pd.DataFrame:
    # Scores are not additive in the penalty: they are summed in the engine.
    step = (rows.penalty > 0).cast("int16")
    found = engine.run(
        rows.group_by(unit=rows.unit, **_keys(rows), penalty_step=step).aggregate(
            n=rows.count(),
            penalty=rows.penalty.sum(),
            **{name: _score(rows, table).sum() for name, table in credits.items()},
        )
    )
    table = _finished(found, {})
    for name in credits:
        table[name] = found[name].astype("float64")
    table.insert(0, "task", pd.factorize(found["unit"], sort=True)[0])
    table.insert(1, "tasks", 1)
    return in_order(table, ["task", *KEYS])


def _score(rows: Any, table: CreditTable) -> Any:
    def credit(row: tuple[float, ...]) -> Any:
        code = _keys(rows)["outcome"]
        return ibis.cases(*((code == k, ibis.literal(c, "float64")) for k, c in enumerate(row)))

    own = [(rows.workflow == name, credit(row)) for name, row in table.by_workflow.items()]
    worth = ibis.cases(*own, else_=credit(table.credit)) if own else credit(table.credit)
    return ibis.greatest(worth - rows.penalty, 0.0)
