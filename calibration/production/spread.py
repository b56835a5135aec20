"""Percentiles of costs and latencies from counts of narrow bins."""

from typing import Any

import ibis
import numpy as np
import pandas as pd

from calibration.production.columns import ones
from calibration.production.engines import Engine, week_names
from calibration.production.results import Spread
from calibration.records import OUTCOMES

# Bins are 1/128 of a factor e wide. Each brings its least and largest value: a bin of one or two
# values, or of equal ones, is exact.
BINS = 128.0
LEVELS = (0.5, 0.9, 0.95, 0.99)
PERCENTILES = ("p50", "p90", "p95", "p99")
COLUMNS = ("n", "n_known", "mean", *PERCENTILES)
COST_COLUMNS = ("n_held", "share_over_ceiling", "cost_per_unit", "cost_per_success")
Sums = pd.DataFrame


def cost_sums(priced: Any, engine: Engine) -> Sums:
    """Count costs by week, workflow and bin; traces without a cost have no bin."""
    known = priced.cost.notnull()
    return _binned(
        priced,
        priced.cost,
        engine,
        held=ones(priced.cost_known).sum(),
        over=ones(priced.penalty > 0).sum(),
        units=ibis.ifelse(known, priced.units, 0.0).sum(),
        complete=ones(known & (priced.outcome == OUTCOMES[0])).sum(),
    )


def latency_sums(priced: Any, engine: Engine) -> Sums:
    """Count latencies by week, workflow and bin; traces without one have no bin."""
    return _binned(priced, priced.latency, engine)


def _binned(priced: Any, value: Any, engine: Engine, **sums: Any) -> Sums:
    positive = ibis.ifelse(value > 0, value, ibis.null("float64"))
    place = ibis.ifelse(value == 0, -1_000_000, (positive.ln() * BINS).floor().cast("int32"))
    found = engine.run(
        priced.group_by(week=priced.week, workflow=priced.workflow, bin=place).aggregate(
            n=priced.count(), low=value.min(), high=value.max(), total=value.sum(), **sums
        )
    )
    found["week"] = week_names(found["week"])
    return found


def spread(sums: Sums, by: str, *, costs: bool) -> Spread:
    """Return mean and percentiles for each value of `by`, and for all in a first row."""
    rows: list[dict[str, float]] = []
    names: list[str | None] = [None]
    error = 0.0
    groups = [sums, *(part for _, part in sums.groupby(by, observed=True, sort=True))]
    names += [str(name) for name, _ in sums.groupby(by, observed=True, sort=True)]
    for part in groups:
        row, missed = _row(part, costs=costs)
        rows.append(row)
        error = max(error, missed)
    table = pd.DataFrame(rows, columns=[*COLUMNS, *(COST_COLUMNS if costs else ())])
    table.index = pd.Index(names, name=by, dtype=object)
    return Spread(table=table, error=error, sums=sums)


def _row(part: Sums, *, costs: bool) -> tuple[dict[str, float], float]:
    known = part[part["bin"].notna()]
    n_known = int(known["n"].sum())
    total = float(known["total"].sum())
    values, error = _percentiles(known)
    row = {
        "n": int(part["n"].sum()),
        "n_known": n_known,
        "mean": _ratio(total, n_known),
        **dict(zip(PERCENTILES, values, strict=True)),
    }
    if costs:
        held = int(part["held"].sum())
        row |= {
            "n_held": held,
            "share_over_ceiling": _ratio(float(part["over"].sum()), held),
            "cost_per_unit": _ratio(total, float(known["units"].sum())),
            "cost_per_success": _ratio(total, float(known["complete"].sum())),
        }
    return row, error


def _percentiles(known: Sums) -> tuple[list[float], float]:
    """Return percentiles (linear between order statistics) and a bound of their relative error."""
    if known.empty:
        return [np.nan] * len(LEVELS), 0.0
    bins = known.groupby("bin").agg(n=("n", "sum"), low=("low", "min"), high=("high", "max"))
    bins = bins.sort_values("low")
    last = bins["n"].cumsum().to_numpy()
    low, high, n = (bins[name].to_numpy() for name in ("low", "high", "n"))
    values, error = [], 0.0
    for level in LEVELS:
        rank = level * (last[-1] - 1)
        below = int(np.floor(rank))
        ends = []
        for place in (below, min(below + 1, int(last[-1]) - 1)):
            k = int(np.searchsorted(last, place, side="right"))
            inside = place - (last[k] - n[k])
            ends.append(low[k] + (high[k] - low[k]) * (inside / (n[k] - 1) if n[k] > 1 else 0.0))
            if n[k] > 2 and high[k] > low[k]:
                error = max(error, float((high[k] - low[k]) / low[k]))
        values.append(float(ends[0] + (ends[1] - ends[0]) * (rank - below)))
    return values, error


def _ratio(above: float, below: float) -> float:
    return above / below if below else float("nan")
