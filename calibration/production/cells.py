"""Cells: counts of the traces that are equal in everything that enters a rate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.production.coded import CLASSES, HEAD_BELOW, NAMES, Codes, Coding, Labelled, ranked
from calibration.production.columns import ones
from calibration.production.engines import Engine
from calibration.production.results import CreditTable
from calibration.records import OUTCOMES

GRID = 1024
MOST_EXACT = 20_000
# So many penalised traces are looked at before all of them are: enough to see that there are too
# many different penalties.
PROBED = 200_000
# Steps of a penalty, and the credits inside of steps, in the number that a cell is grouped by.
STEPS = 2 * GRID
LABELLED = ("week", "workflow", "model", "stratum")
SUMS = ("n", "n_costed", "units", "cost", "cost_squared", "penalty")


def price(rows: Any, ceilings: Mapping[str, float | None], engine: Engine) -> Any:
    """Add week, ceiling, whether cost and ceiling are known, and the penalty."""
    limits = [(rows.workflow == name, limit) for name, limit in ceilings.items() if limit]
    per_unit = ibis.cases(*limits) if limits else ibis.null("float64")
    # Step by step: a column that is used twice is computed once.
    held = rows.mutate(week=engine.week(rows.at), ceiling=per_unit.cast("float64") * rows.units)
    known = held.mutate(cost_known=held.cost.notnull() & held.ceiling.notnull())
    excess = (known.cost - known.ceiling) / known.ceiling
    over = known.cost_known & (known.cost > known.ceiling)
    return known.mutate(penalty=ibis.ifelse(over, ibis.least(excess, 1.0), 0.0))


def keep_exact(narrow: Any, engine: Engine, coding: Coding, most_exact: int) -> bool:
    """Return whether there are few enough distinct (workflow, outcome, penalty)."""
    texts = [name for name in coding.texts if name == "workflow"]
    kinds = narrow.mutate(workflow_code=narrow["head"] % NAMES)
    keys = ["workflow_code", "outcome", *texts]
    penalised = kinds.filter(kinds.penalty > 0).select(*keys, "penalty")
    if _n(penalised.limit(PROBED).distinct(), engine) >= most_exact:
        return False
    without = kinds.filter(kinds.penalty == 0).select(*keys).distinct()
    return _n(penalised.distinct(), engine) + _n(without, engine) < most_exact


def _n(table: Any, engine: Engine) -> int:
    return int(engine.run(table.aggregate(n=table.count()))["n"][0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The keys of cells as numbers, and their sums."""

    week: Labelled
    workflow: Labelled
    model: Labelled
    stratum: Labelled
    weight: NDArray[np.float64]
    outcome: Codes
    known: Codes
    step: Codes
    sums: Mapping[str, NDArray[Any]]

    def rank(self, *before: Labelled | Codes) -> Codes:
        """Return a number a cell that sorts as its keys do, after other ones."""
        weight = np.unique(self.weight, return_inverse=True)[1].astype(np.int64)
        named = (self.week, self.workflow, self.model, self.stratum)
        return ranked(*before, *named, weight, self.outcome, self.known, self.step)

    def take(self, rows: NDArray[np.intp], sums: Mapping[str, NDArray[Any]]) -> "Cells":
        """Return some cells, with other sums."""
        named = {
            name: Labelled(codes=labelled.codes[rows], names=labelled.names)
            for name in LABELLED
            for labelled in (getattr(self, name),)
        }
        return Cells(
            **named,
            weight=self.weight[rows],
            outcome=self.outcome[rows],
            known=self.known[rows],
            step=self.step[rows],
            sums=sums,
        )

    def frame(self, by: Sequence[str] = LABELLED) -> pd.DataFrame:
        """Return one row a cell; columns as `calibration.production` describes them."""
        columns: dict[str, Any] = {name: getattr(self, name).column() for name in by}
        columns |= {
            "weight": self.weight,
            "outcome": self.outcome.astype(np.int8),
            "cost_known": self.known.astype(np.bool_),
            "penalty_step": self.step.astype(np.int16),
        }
        return pd.DataFrame(columns | dict(self.sums), copy=False)


def count_cells(
    narrow: Any,
    engine: Engine,
    credits: Mapping[str, CreditTable],
    coding: Coding,
    *,
    exact: bool,
) -> Cells:
    """Count cells, sorted by their keys."""
    # A credit inside a step divides its traces into those that keep some of it and others.
    inside = [] if exact else _inside_steps(credits)
    penalty = narrow.penalty
    step = (penalty * GRID).ceil().cast("int64")
    step = sum((ones(penalty >= c).cast("int64") for c in inside), step)
    keys = place(narrow, narrow["head"], narrow["tail"], step, coding)
    if exact:
        keys["exact_penalty"] = penalty
    found = engine.run(narrow.group_by(**keys).aggregate(**sums_of(narrow, coding)))
    cells = decoded(found, coding, _steps(inside))
    sums = dict(cells.sums)
    for name, table in credits.items():
        sums[name] = _scores(cells, table)
    key = cells.rank()
    if exact or not key.size:
        order = np.lexsort((sums["penalty"], key))
        return cells.take(order, {name: column[order] for name, column in sums.items()})
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    return cells.take(
        order[starts],
        {name: np.add.reduceat(column[order], starts) for name, column in sums.items()},
    )


def place(narrow: Any, head: Any, tail: Any, step: Any, coding: Coding) -> dict[str, Any]:
    """Return what cells are grouped by; `decoded` reads it."""
    number = (head * HEAD_BELOW + tail.cast("int64")) * STEPS + step
    keys = {"place": number} | {name: narrow[name] for name in coding.texts}
    if "weight" in coding.used:
        keys["weight"] = narrow["weight"]
    return keys


def sums_of(narrow: Any, coding: Coding) -> dict[str, Any]:
    """Return what is summed over the traces of a cell, whatever the credits are."""
    cost, penalty = narrow.cost, narrow.penalty
    sums = {"n": narrow.count(), "n_costed": cost.count(), "cost": cost.sum()}
    sums |= {"cost_squared": (cost * cost).sum(), "penalty": penalty.sum()}
    if "units" in coding.used:
        sums["units"] = ibis.ifelse(cost.notnull(), narrow.units, 0.0).sum()
    return sums


def decoded(found: pd.DataFrame, coding: Coding, steps: Codes) -> Cells:
    """Return groups as cells, in the order of the groups."""
    number = found["place"].to_numpy(np.int64)
    head, tail = number // (HEAD_BELOW * STEPS), number // STEPS % HEAD_BELOW
    kinds = tail // (2 * CLASSES)
    week, workflow = coding.of_head(found, head)
    sums: dict[str, NDArray[Any]] = {
        name: found[name].fillna(0).to_numpy(np.int64 if name.startswith("n") else np.float64)
        for name in SUMS
        if name in found
    }
    sums.setdefault("units", sums["n_costed"].astype(np.float64))
    return Cells(
        week=week,
        workflow=workflow,
        model=coding.labels(found, kinds // NAMES, "model"),
        stratum=coding.labels(found, kinds % NAMES, "stratum"),
        weight=found["weight"].to_numpy(np.float64) if "weight" in found else np.ones(len(found)),
        outcome=tail // 2 % CLASSES,
        known=tail % 2,
        step=steps[number % STEPS],
        sums=sums,
    )


def _steps(inside: list[float]) -> Codes:
    """Return the step of each number that steps and the credits inside of them were added to."""
    found = np.zeros(STEPS, dtype=np.int64)
    for step in range(GRID + 1):
        least = sum(c <= (step - 1) / GRID for c in inside)
        most = sum(c <= step / GRID for c in inside)
        found[step + least : step + most + 1] = step
    return found


def _inside_steps(credits: Mapping[str, CreditTable]) -> list[float]:
    tables = (t for c in credits.values() for t in (c.credit, *c.by_workflow.values()))
    inside = {c for table in tables for c in table if not float(c * GRID).is_integer()}
    return sorted(inside)


def _scores(cells: Cells, table: CreditTable) -> NDArray[np.float64]:
    """Return the sums of max(0, credit - penalty): in a cell all keep credit, or none does."""
    names = cells.workflow.names
    worth = np.array([table.of(name) for name in names], dtype=np.float64)
    credit = worth.reshape(len(names), len(OUTCOMES))[cells.workflow.codes, cells.outcome]
    kept: NDArray[np.float64] = np.maximum(0.0, cells.sums["n"] * credit - cells.sums["penalty"])
    return kept
