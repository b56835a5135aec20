"""Cells: counts of the traces that are equal in everything that enters a rate."""

from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.production.columns import ones
from calibration.production.engines import Engine, week_names
from calibration.production.results import CreditTable
from calibration.records import OUTCOMES

GRID = 1024
MOST_EXACT = 20_000
# So many penalised traces are looked at before all of them are: enough to see that there are too
# many different penalties.
PROBED = 200_000
NAMES = ("week", "workflow", "model", "stratum")
KEYS = (*NAMES, "weight", "outcome", "cost_known", "penalty_step")


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


def keep_exact(priced: Any, engine: Engine, most_exact: int) -> bool:
    """Return whether there are few enough distinct (workflow, outcome, penalty)."""
    penalised = priced.filter(priced.penalty > 0).select("workflow", "outcome", "penalty")
    if _n(penalised.limit(PROBED).distinct(), engine) >= most_exact:
        return False
    without = priced.filter(priced.penalty == 0).select("workflow", "outcome").distinct()
    return _n(penalised.distinct(), engine) + _n(without, engine) < most_exact


def _n(table: Any, engine: Engine) -> int:
    return int(engine.run(table.aggregate(n=table.count()))["n"][0])


def count_cells(
    priced: Any, engine: Engine, credits: Mapping[str, CreditTable], *, exact: bool
) -> pd.DataFrame:
    """Return one row a cell, sorted; columns as `calibration.production` describes them."""
    priced = priced.mutate(outcome=outcome_code(priced.outcome))
    penalty, keys = priced.penalty, keys_of(priced)
    if exact:
        keys["exact_penalty"] = penalty
    else:
        # A credit inside a step divides its traces into those that keep some of it and others.
        inside = _inside_steps(credits)
        keys["band"] = sum((ones(penalty >= c) for c in inside), ibis.literal(0, "int16"))
    keys["penalty_step"] = (penalty * GRID).ceil().cast("int16")
    found = engine.run(priced.group_by(**keys).aggregate(n=priced.count(), penalty=penalty.sum()))
    cells = finished(found, credits)
    if not exact and found["band"].any():
        sums = [name for name in cells.columns if name not in KEYS]
        cells = cells.groupby(list(KEYS), dropna=False, observed=True, sort=False)[sums].sum()
        cells = cells.reset_index()
    return in_order(cells, [*KEYS, "penalty"])


def keys_of(priced: Any) -> dict[str, Any]:
    """Return the columns that cells and tasks are counted by."""
    return {
        "week": priced.week,
        "workflow": priced.workflow,
        "model": priced.model,
        "stratum": priced.stratum,
        "weight": priced.weight,
        "outcome": priced.outcome,
        "cost_known": priced.cost_known,
    }


def outcome_code(outcome: Any) -> Any:
    """Return the place of a class in OUTCOMES."""
    return ibis.cases(
        *((outcome == name, ibis.literal(k, "int8")) for k, name in enumerate(OUTCOMES))
    )


def _inside_steps(credits: Mapping[str, CreditTable]) -> list[float]:
    tables = (t for c in credits.values() for t in (c.credit, *c.by_workflow.values()))
    return sorted({c for table in tables for c in table if not float(c * GRID).is_integer()})


def finished(found: pd.DataFrame, credits: Mapping[str, CreditTable]) -> pd.DataFrame:
    """Give the columns their types and add the scores."""
    cells = pd.DataFrame({"week": week_names(found["week"])})
    for name in NAMES[1:]:
        codes, values = pd.factorize(found[name], sort=True)
        cells[name] = pd.Categorical.from_codes(codes, pd.Index(values, dtype=str))
    cells["weight"] = found["weight"].to_numpy(np.float64)
    cells["outcome"] = found["outcome"].to_numpy(np.int8)
    cells["cost_known"] = found["cost_known"].to_numpy(np.bool_)
    cells["penalty_step"] = found["penalty_step"].to_numpy(np.int16)
    cells["n"] = found["n"].to_numpy(np.int64)
    cells["penalty"] = found["penalty"].to_numpy(np.float64)
    for name, table in credits.items():
        cells[name] = _scores(cells, table)
    return cells


def _scores(cells: pd.DataFrame, table: CreditTable) -> NDArray[np.float64]:
    """Return the sums of max(0, credit - penalty): in a cell all keep credit, or none does."""
    names = cells["workflow"].cat.categories
    worth = np.array([table.of(str(name)) for name in names], dtype=np.float64)
    worth = worth.reshape(len(names), len(OUTCOMES))
    credit = worth[cells["workflow"].cat.codes, cells["outcome"]]
    kept: NDArray[np.float64] = np.maximum(
        0.0, cells["n"].to_numpy() * credit - cells["penalty"].to_numpy()
    )
    return kept


def in_order(cells: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return the rows sorted: engines return groups in any order, and resamples need one."""
    columns = [
        cells[name].cat.codes if isinstance(cells[name].dtype, pd.CategoricalDtype) else cells[name]
        for name in reversed(by)
    ]
    return cells.take(np.lexsort([np.asarray(column) for column in columns])).reset_index(drop=True)
