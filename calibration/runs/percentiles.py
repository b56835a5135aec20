"""Percentiles of costs and latencies from counts of narrow bins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.runs.cells import Cells, Coding, Labelled
from calibration.runs.engines import Engine
from calibration.runs.queries import Relation, query
from calibration.runs.results import Spread

# Bins are 1/128 of a factor e wide. Each brings its least and largest value: a bin of one or two
# values, or of equal ones, is exact.
BINS = 128.0

# A bin in the number it is grouped by: zero is a bin of its own, and so are missing values.
ZERO, MISSING = -1_000_000, -(1 << 20)

WIDTH = 1 << 21

LEVELS = (0.5, 0.9, 0.95, 0.99)

PERCENTILES = ("p50", "p90", "p95", "p99")

COLUMNS = ("n", "n_known", "mean", *PERCENTILES)

COST_COLUMNS = ("n_held", "share_over_ceiling", "cost_per_unit", "cost_per_success")

Column = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binned:
    """Counts of values by week, workflow and bin; MISSING is the bin of rows without a value."""

    week: Labelled
    workflow: Labelled
    bin: Column
    n: Column
    low: Column
    high: Column
    total: Column

    def frame(self) -> pd.DataFrame:
        """Return the bins of known values with their least and largest value."""
        columns = {
            "week": self.week.column(),
            "workflow": self.workflow.column(),
            "bin": self.bin,
            "n": self.n,
            "low": self.low,
            "high": self.high,
        }
        known: pd.DataFrame = pd.DataFrame(columns).loc[self.bin != MISSING]
        return known


def binned(narrow: Relation, column: str | None, engine: Engine, coding: Coding) -> Binned:
    """Count the values of a column, None for no values, by week, workflow and bin."""
    found = engine.run(
        query(
            "bins", narrow=narrow, width=WIDTH, missing=MISSING, zero=ZERO, bins=BINS,
            **({"column": column} if column else {}), **coding.flags("workflow"),
        )
    )  # fmt: skip
    number = found["place"].to_numpy(np.int64)
    week, workflow = coding.of_head(found, number // WIDTH)
    columns = {
        name: found[name].to_numpy(np.float64, na_value=np.nan) for name in ("low", "high", "total")
    }
    return Binned(
        week=week, workflow=workflow, bin=number % WIDTH + MISSING, n=found["n"].to_numpy(np.int64),
        **columns,
    )  # fmt: skip


def spread(values: Binned, by: str, cells: Cells | None = None) -> Spread:
    """Return mean and percentiles for each value of `by`, and for all in a first row.

    With `cells` the values are costs, and the columns of costs are there too.
    """
    labelled: Labelled = getattr(values, by)
    parts = [np.zeros_like(labelled.codes), labelled.codes + 1]
    groups = [_Group.of(values, part) for part in parts]
    columns = [_costs(cells, None), _costs(cells, by)] if cells else [{}, {}]
    rows: list[dict[str, float]] = []
    error = 0.0
    for group, costs, numbers in zip(
        groups, columns, ([0], range(1, len(labelled.names) + 1)), strict=True
    ):
        for number in numbers:
            row, missed = group.row(number)
            if cells is not None:
                row |= _of_costs(row, {name: float(c[number]) for name, c in costs.items()})
            rows.append(row)
            error = max(error, missed)
    table = pd.DataFrame(rows, columns=[*COLUMNS, *(COST_COLUMNS if cells else ())])
    table.index = pd.Index([None, *labelled.names], name=by, dtype=object)
    return Spread(table=table, error=error, sums=values.frame())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Bins of groups, sorted by group and bin, and where each group starts."""

    group: Column
    n: Column
    low: Column
    high: Column
    size: Column
    total: Column

    @classmethod
    def of(cls, values: Binned, group: Column) -> "_Group":
        size = np.bincount(group, weights=values.n).astype(np.int64)
        known = values.bin != MISSING
        key = group[known] * WIDTH + (values.bin[known] - MISSING)
        order = np.argsort(key, kind="stable")
        key = key[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        n, low, high, total = (
            column[known][order] for column in (values.n, values.low, values.high, values.total)
        )
        if starts.size:
            n, low = np.add.reduceat(n, starts), np.minimum.reduceat(low, starts)
            high = np.maximum.reduceat(high, starts)
        return cls(
            group=key[starts] // WIDTH,
            n=n,
            low=low,
            high=high,
            size=size,
            total=np.bincount(group[known][order], weights=total, minlength=size.size),
        )

    def row(self, number: int) -> tuple[dict[str, float], float]:
        start, stop = np.searchsorted(self.group, [number, number + 1])
        inside = slice(int(start), int(stop))
        n_known = int(self.n[inside].sum())
        values, error = _percentiles(self.n[inside], self.low[inside], self.high[inside])
        row: dict[str, float] = {
            "n": int(self.size[number]) if number < self.size.size else 0,
            "n_known": n_known,
            "mean": _ratio(float(self.total[number]), n_known) if n_known else float("nan"),
        }
        return row | dict(zip(PERCENTILES, values, strict=True)), error


def _costs(cells: Cells | None, by: str | None) -> Mapping[str, Column]:
    if cells is None:
        return {}
    codes = np.zeros(cells.step.size, dtype=np.int64)
    if by is not None:
        codes = getattr(cells, by).codes + 1
    n, costed = cells.sums["n"], cells.sums["n_costed"]
    sums = {
        "held": n * cells.known,
        "over": n * (cells.step > 0),
        "complete": costed * (cells.outcome == 0),
        "units": cells.sums["units"],
        "cost": cells.sums["cost"],
    }
    return {name: np.bincount(codes, weights=column, minlength=1) for name, column in sums.items()}


def _of_costs(row: Mapping[str, float], sums: Mapping[str, float]) -> dict[str, float]:
    held = int(sums["held"])
    return {
        "n_held": held,
        "share_over_ceiling": _ratio(sums["over"], held),
        "cost_per_unit": _ratio(sums["cost"], sums["units"]),
        "cost_per_success": _ratio(sums["cost"], sums["complete"]),
    }


def _percentiles(n: Column, low: Column, high: Column) -> tuple[list[float], float]:
    """Return percentiles (linear between order statistics) and a bound of their relative error."""
    if not n.size:
        return [np.nan] * len(LEVELS), 0.0
    last = n.cumsum()
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
