"""Cells: counts of runs that are equal in everything that enters a rate.

Names become places in lists, and the cost of a run is told by which multiples of its ceiling it
exceeds: one scan gives the cells at every ceiling. Percentiles come from counts of narrow bins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.records import EDGE, HARNESS, VERSION
from calibration.runs.columns import MOST_NAMES, NAMED
from calibration.runs.engines import DuckDB, Engine, Query, Relation, query, week_labels
from calibration.runs.results import LENGTHS, NO_WORKFLOW, Spread
from calibration.taxonomy import CreditTable, Taxonomy

# What success is shown by, for the lengths of a run.
SHOWN_BY = {
    "n_steps": "n_steps", "total_tokens": "total_tokens", "context_tokens": "context_share",
}  # fmt: skip

# Up to this number of runs, every distinct penalty is a cell.
MOST_EXACT = 20_000

LABELLED = ("week", "workflow", "model", VERSION, "stratum")
SCORE, GROSS = "score", "gross"
SUMS = ("n", "n_costed", "units", "cost", "cost_squared", "penalty", "penalty_squared")

# Bins are 1/128 of a factor e wide, with their smallest and largest value: a bin of one or two
# distinct values is exact.
BINS = 128.0

LEVELS = (0.5, 0.9, 0.95, 0.99)
PERCENTILES = ("p50", "p90", "p95", "p99")
COST_COLUMNS = ("n_held", "share_over_ceiling", "cost_per_unit", "cost_per_success")

# Above `MOST_TASKS` tasks, this number of random groups of tasks is resampled.
MOST_TASKS, MOST_GROUPS = 20_000, 5_000

BY = ("week", "workflow", "model", VERSION)
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Codes of a text column: positions among the sorted names, -1 for missing."""

    codes: Codes
    names: tuple[str, ...]

    def column(self) -> "pd.Categorical[Any]":
        """Return the column as categories."""
        return pd.Categorical.from_codes(self.codes, pd.Index(self.names, dtype=str))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """How texts are coded as numbers.

    `names` holds the sorted names of each of `NAMED`, None where the text remains a column of its
    own; `used` the columns of the source; `factors` of the ceilings give further penalties.
    """

    taxonomy: Taxonomy
    names: Mapping[str, tuple[str, ...] | None]
    used: Mapping[str, str]
    factors: tuple[float, ...] = ()

    def key(self, name: str) -> str:
        """Return the column that holds one of `NAMED`: the text itself, or its place."""
        return name if self.names[name] is None else f"{name}_place"

    def keys(self, *of: str) -> dict[str, Any]:
        """Return the columns to group by that occur, of all or of these names."""
        own = [name for name in of or (*NAMED, "weight") if name != "weight"]
        found = [self.key(name) for name in own if self.names[name] is None or self.names[name]]
        found += ["weight"] * ("weight" in self.used and (not of or "weight" in of))
        return {"keys": [{"key": key} for key in found]}

    def flags(self) -> dict[str, Any]:
        """Return the columns of the coded rows."""
        lengths = {"lengths": not {*LENGTHS}.isdisjoint(self.used)}
        return dict.fromkeys(self.used, True) | lengths

    def code(self, priced: Relation) -> Query:
        """Return priced rows in numbers."""
        return query(
            "coded",
            priced=priced,
            factors=factored(self.factors),
            edge=EDGE,
            texts=[{"text": name} for name, names in self.names.items() if names is None],
            named=[
                {
                    "name": name,
                    "place": self.key(name),
                    "names": [{"own_name": text} for text in names],
                }
                for name, names in self.names.items()
                if names is not None
            ],
            **self.flags(),
        )

    def labels(self, found: pd.DataFrame, name: str) -> Labelled:
        """Return the names of grouped rows; missing where they were not grouped by them."""
        key, names = self.key(name), self.names[name]
        if key not in found:
            return Labelled(codes=np.full(len(found), -1, dtype=np.int64), names=())
        if names is None:
            places, values = pd.factorize(found[key], sort=True)
            return Labelled(codes=places.astype(np.int64), names=tuple(map(str, values)))
        return occurring(Labelled(codes=found[key].to_numpy(np.int64) - 1, names=names))


def coding(
    rows: Relation,
    engine: Engine,
    used: Mapping[str, str],
    taxonomy: Taxonomy,
    workflows: tuple[str, ...] | None,
    factors: tuple[float, ...] = (),
    listed: Mapping[str, tuple[str, ...]] | None = None,
) -> Coding:
    """Return the coding of rows; only `workflows` count, any when None.

    `listed` : names that are known. A server is not asked for the others first: that would be a
    scan of its own.
    """
    names: dict[str, tuple[str, ...] | None] = {}
    for name in NAMED:
        if name == "workflow" and workflows is not None and len(workflows) <= MOST_NAMES:
            names[name] = tuple(sorted(workflows))
        elif name not in used and not (name == VERSION and HARNESS in used):
            names[name] = (NO_WORKFLOW,) if name == "workflow" else ()
        elif isinstance(engine, DuckDB):
            if listed and name in listed and not (name == VERSION and HARNESS in used):
                found = sorted({*listed[name], *[NO_WORKFLOW] * (name == "workflow")})
            else:
                own = engine.run(query("names", rows=rows, column=name, most=MOST_NAMES + 1))
                found = sorted(map(str, own["name"]))
            names[name] = tuple(found) if len(found) <= MOST_NAMES else None
        else:
            names[name] = None
    return Coding(taxonomy=taxonomy, names=names, used=used, factors=factors)


def occurring(labelled: Labelled) -> Labelled:
    """Return the coding without names that occur in no row."""
    seen = np.bincount(labelled.codes + 1, minlength=len(labelled.names) + 1)[1:] > 0
    place = np.concatenate([[-1], np.where(seen, np.cumsum(seen) - 1, -1)])
    return Labelled(
        codes=place[labelled.codes + 1].astype(np.int64),
        names=tuple(name for name, there in zip(labelled.names, seen, strict=True) if there),
    )


def week_of(found: pd.DataFrame) -> Labelled:
    """Return the weeks of grouped rows; missing where they were not grouped by them."""
    if "week" not in found:
        return Labelled(codes=np.full(len(found), -1, dtype=np.int64), names=())
    places, numbers = pd.factorize(found["week"], sort=True)
    names = week_labels(np.asarray(numbers, dtype=np.int64))
    return Labelled(codes=places.astype(np.int64), names=tuple(names))


def ranked(*parts: Labelled | Codes) -> Codes:
    """Return one number per row that sorts like the parts, the first part before the others."""
    key, space = np.zeros(1, dtype=np.int64), 1
    for part in parts:
        codes = part.codes + 1 if isinstance(part, Labelled) else part
        size = int(codes.max(initial=0)) + 1
        if space * size >= 1 << 62:
            values, key = np.unique(key, return_inverse=True)
            space = values.size
        key, space = key * size + codes, space * size
    return key


def price(
    rows: Relation, ceilings: Mapping[str, float | None], factors: Sequence[float] = ()
) -> Query:
    """Add week, ceiling, whether cost and ceiling are known, and the penalty at each ceiling."""
    limits = [{"limited": name, "limit": float(limit)} for name, limit in ceilings.items() if limit]
    return query("priced", rows=rows, ceilings=limits, factors=factored(factors))


def factored(factors: Sequence[float]) -> list[dict[str, Any]]:
    """Return the factors of the ceilings, each with the column of its penalties."""
    return [{"factor": float(f), "at": f"penalty_{k}"} for k, f in enumerate(factors)]


def at_ceiling(coded: Relation, coding: Coding, factor: float) -> Query:
    """Return the coded rows with the penalties at a multiple of each ceiling."""
    at = f"penalty_{coding.factors.index(factor)}"
    return query("at_ceiling", coded=coded, at=at, **coding.flags(), **coding.keys())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Keys of cells as numbers, and their sums; `success` is the code of that class."""

    success: int
    week: Labelled
    workflow: Labelled
    model: Labelled
    agent_version: Labelled
    stratum: Labelled
    weight: NDArray[np.float64]
    outcome: Codes
    known: Codes
    step: Codes
    sums: dict[str, NDArray[Any]]

    def rank(self, *before: Labelled | Codes) -> Codes:
        """Return a number per cell that sorts like its keys, after the given ones."""
        weight = np.unique(self.weight, return_inverse=True)[1].astype(np.int64)
        named = (self.week, self.workflow, self.model, self.agent_version, self.stratum)
        return ranked(*before, *named, weight, self.outcome, self.known, self.step)

    def take(self, rows: NDArray[np.intp], sums: Mapping[str, NDArray[Any]]) -> "Cells":
        """Return a selection of cells, with other sums."""
        named = {
            name: Labelled(codes=labelled.codes[rows], names=labelled.names)
            for name in LABELLED
            for labelled in (getattr(self, name),)
        }
        return Cells(
            **named,
            success=self.success,
            weight=self.weight[rows],
            outcome=self.outcome[rows],
            known=self.known[rows],
            step=self.step[rows],
            sums=dict(sums),
        )

    def merged(self, *within: Codes) -> "Cells":
        """Return the cells sorted, those added up that are equal in keys and in `within`."""
        key = ranked(self.rank(), *within)
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(first.size))
        sums = {name: np.add.reduceat(column[order], starts) if first.size else column
                for name, column in self.sums.items()}  # fmt: skip
        return self.take(first, sums)

    def frame(self, by: Sequence[str] = LABELLED) -> pd.DataFrame:
        """Return one row per cell, with the columns described in `calibration.runs`."""
        shown = [name for name in by if name != VERSION or self.agent_version.names]
        columns: dict[str, Any] = {name: getattr(self, name).column() for name in shown}
        columns |= {
            "weight": self.weight,
            "outcome": self.outcome.astype(np.int8),
            "cost_known": self.known.astype(np.bool_),
            "penalty_step": self.step.astype(np.int16),
        }
        return pd.DataFrame(columns | dict(self.sums), copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """A multiple of the ceiling at which cells are cut, for one class or all (None)."""

    at: float
    of: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Runs by the `cuts` that their cost exceeds, as found: every set of cells is made of them."""

    found: pd.DataFrame
    cuts: tuple[_Cut, ...]
    coding: Coding
    credits: Mapping[str, CreditTable]
    exact: bool

    @property
    def good(self) -> "Counted":
        """The runs that count."""
        good = self.found[self.found["reason"] == 0].reset_index(drop=True)
        return replace(self, found=good)

    def cells(self, factor: float = 1.0, *, by_workflow: bool = False) -> Cells:
        """Return the cells at a multiple of each ceiling, sorted by their keys.

        The score of a run is linear in its penalty between two credits of its class, so that sums
        over the runs between them give the sum of scores. With `by_workflow`, cells are across
        weeks, models and versions.
        """
        found, coding = self.found, self.coding
        if by_workflow:
            found = found.drop(columns=["week", *(coding.key(n) for n in ("model", VERSION))],
                               errors="ignore")  # fmt: skip
        credits = self.credits if factor == 1.0 else {SCORE: self.credits[SCORE]}
        step, penalty, squared = self._penalties(factor, credits)
        n = found["n"].to_numpy(np.int64)
        sums = _sums_of(found) | {"penalty": penalty, "penalty_squared": squared}
        cells = decoded(found, coding, known=self.found["step"].to_numpy(np.int64) > 0, step=step,
                        sums=sums)  # fmt: skip
        own = penalty / n if self.exact else np.zeros(n.size)
        merged = cells.merged(np.unique(own, return_inverse=True)[1].astype(np.int64))
        for name, table in credits.items():
            merged.sums[name] = _scores(merged, table)
        return merged

    def _penalties(
        self, factor: float, credits: Mapping[str, CreditTable]
    ) -> tuple[Codes, NDArray[np.float64], NDArray[np.float64]]:
        """Return step, sum and sum of squares of the penalties at a multiple of the ceilings."""
        classes = len(self.coding.taxonomy.names)
        outcome = self.found["outcome"].to_numpy(np.int64)
        place = self.found["step"].to_numpy(np.int64)
        # The cost of a run of class k and step j is above low[k, j] and up to high[j] ceilings.
        high = np.array([0.0, *(cut.at for cut in self.cuts), np.inf])[place]
        low = np.zeros((classes, len(self.cuts) + 2))
        for j, cut in enumerate(self.cuts, 1):
            low[:, j + 1] = low[:, j]
            low[slice(None) if cut.of is None else cut.of, j + 1] = cut.at
        above = low[outcome, place]
        over = (place > 0) & (high > factor)
        most = over & (above >= 2 * factor)
        n, ratio, squared = (
            self.found[name].fillna(0).to_numpy(np.float64)
            for name in ("n", "ratio", "ratio_squared")
        )
        between = over & ~most
        penalty = np.where(between, np.maximum(ratio / factor - n, 0.0), most * n)
        squares = np.maximum(squared / factor**2 - 2 * ratio / factor + n, 0.0)
        step = over.astype(np.int64)
        for k, worth in _between(credits):
            step += over & (outcome == k) & (above >= factor * (1 + worth))
        return step, penalty, np.where(between, squares, most * n)


def _cuts_of(credits: Mapping[str, CreditTable], factors: Sequence[float]) -> tuple[_Cut, ...]:
    """Return where penalties begin and end at each ceiling, and where they reach a credit."""
    every: set[float] = set()
    own: set[tuple[float, int]] = set()
    for factor in (1.0, *factors):
        tables = credits if factor == 1.0 else {SCORE: credits[SCORE]}
        every |= {factor, 2 * factor}
        own |= {(factor * (1 + worth), k) for k, worth in _between(tables)}
    found = [_Cut(at=at, of=None) for at in every]
    found += [_Cut(at=at, of=k) for at, k in own if at not in every]
    return tuple(sorted(found, key=lambda cut: (cut.at, -1 if cut.of is None else cut.of)))


def count_cells(
    coded: Relation,
    engine: Engine,
    credits: Mapping[str, CreditTable],
    coding: Coding,
    *,
    exact: bool,
) -> Counted:
    """Count the rows in one scan, those that do not count too; `exact`: by every distinct ratio."""
    cuts = _cuts_of(credits, coding.factors)
    found = engine.run(
        query(
            "cells",
            coded=coded,
            exact=exact,
            cuts=[
                {"cut": cut.at, "cut_class": cut.of, "cut_place": j, "of_class": cut.of is not None}
                for j, cut in enumerate(cuts, 1)
            ],
            last=len(cuts) + 1,
            **coding.flags(),
            **coding.keys(),
        )
    )
    return Counted(found=found, cuts=cuts, coding=coding, credits=credits, exact=exact)


def _sums_of(found: pd.DataFrame) -> dict[str, NDArray[Any]]:
    """Return the sums of grouped rows."""
    sums: dict[str, NDArray[Any]] = {
        name: found[name].fillna(0).to_numpy(np.int64 if name.startswith("n") else np.float64)
        for name in SUMS
        if name in found
    }
    sums.setdefault("units", sums["n_costed"].astype(np.float64))
    return sums


def decoded(
    found: pd.DataFrame,
    coding: Coding,
    *,
    known: NDArray[np.bool_],
    step: Codes,
    sums: Mapping[str, NDArray[Any]],
) -> Cells:
    """Return grouped rows as cells, in their order."""
    return Cells(
        success=coding.taxonomy.place(coding.taxonomy.success),
        week=week_of(found),
        workflow=coding.labels(found, "workflow"),
        model=coding.labels(found, "model"),
        agent_version=coding.labels(found, VERSION),
        stratum=coding.labels(found, "stratum"),
        weight=found["weight"].to_numpy(np.float64) if "weight" in found else np.ones(len(found)),
        outcome=found["outcome"].to_numpy(np.int64),
        known=known.astype(np.int64),
        step=step,
        sums=dict(sums),
    )


def _between(credits: Mapping[str, CreditTable]) -> list[tuple[int, float]]:
    """Return the credits of each class within (0, 1): its runs are cut there by their penalty."""
    tables = [t for c in credits.values() for t in (c.credit, *c.by_workflow.values())]
    return [
        (place, worth)
        for place, of_class in enumerate(zip(*tables, strict=True))
        for worth in sorted({float(credit) for credit in of_class if 0 < credit < 1})
    ]


def _scores(cells: Cells, table: CreditTable) -> NDArray[np.float64]:
    """Return sums of max(0, credit - penalty): within a cell, all runs keep credit or none does."""
    names = cells.workflow.names
    # The last row is for cells without a workflow.
    worth = np.array([table.of(name) for name in (*names, None)], dtype=np.float64)
    credit = worth[cells.workflow.codes, cells.outcome]
    kept: NDArray[np.float64] = np.maximum(0.0, cells.sums["n"] * credit - cells.sums["penalty"])
    return kept


# Bin codes: zero and missing values have bins of their own.
ZERO, MISSING = -1_000_000, -(1 << 20)

WIDTH = 1 << 21
COLUMNS = ("n", "n_known", "mean", *PERCENTILES)
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

    @property
    def known(self) -> int:
        """The number of rows with a value."""
        return int(self.n[self.bin != MISSING].sum())

    def frame(self) -> pd.DataFrame:
        """Return the bins of known values with their smallest and largest value."""
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


def binned(
    coded: Relation, column: str | None, engine: Engine, coding: Coding, *, by_workflow: bool = True
) -> Binned:
    """Count the values of a column (None: no values) by week, workflow and bin."""
    found = engine.run(
        query(
            "bins", coded=coded, missing=MISSING, zero=ZERO, bins=BINS,
            **({"column": column} if column else {}),
            **(coding.keys("workflow") if by_workflow else {"keys": []}),
        )
    )  # fmt: skip
    columns = {
        name: found[name].to_numpy(np.float64, na_value=np.nan) for name in ("low", "high", "total")
    }
    return Binned(
        week=week_of(found), workflow=coding.labels(found, "workflow"),
        bin=found["bin"].to_numpy(np.int64), n=found["n"].to_numpy(np.int64), **columns,
    )  # fmt: skip


def spread(values: Binned, cells: Cells | None = None) -> Spread:
    """Return mean and percentiles by workflow, all in the first row; with `cells`, of costs."""
    labelled = values.workflow
    parts = [np.zeros_like(labelled.codes), labelled.codes + 1]
    groups = [_Group.of(values, part) for part in parts]
    columns = [_costs(cells, each) for each in (False, True)] if cells else [{}, {}]
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
    table.index = pd.Index([None, *labelled.names], name="workflow", dtype=object)
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


def _costs(cells: Cells, by_workflow: bool) -> Mapping[str, Column]:
    codes = cells.workflow.codes + 1 if by_workflow else np.zeros(cells.step.size, dtype=np.int64)
    n, costed = cells.sums["n"], cells.sums["n_costed"]
    sums = {
        "held": n * cells.known,
        "over": n * (cells.step > 0),
        "successes": costed * (cells.outcome == cells.success),
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
        "cost_per_success": _ratio(sums["cost"], sums["successes"]),
    }


def _percentiles(n: Column, low: Column, high: Column) -> tuple[list[float], float]:
    """Return percentiles (linear between order statistics) and a bound on their relative error."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Totals by task, or by group of tasks and one further key; None where no task repeats."""

    table: pd.DataFrame | None
    n: int
    grouped: bool = False
    by: Mapping[str, pd.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Input of the counting of tasks.

    `coded` holds the `rows` in numbers; each of the `no_task` rows is a task of its own; `n_strata`
    counts the strata that occur.
    """

    rows: Relation
    coded: Relation
    engine: Engine
    coding: Coding
    credits: Mapping[str, CreditTable]
    n: int
    no_task: int
    n_strata: int

    @property
    def own_credit(self) -> bool:
        """Whether some workflow has its own credit: a group of tasks does not tell its gross."""
        return bool(self.credits[SCORE].by_workflow)

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the sums that depend on credit."""
        return (*self.credits, *([GROSS] if self.own_credit else []))


def count_tasks(
    counting: Counting,
    *,
    most_tasks: int,
    named: bool = False,
    by: Sequence[str] = BY,
    distinct: int | None = None,
) -> Tasks:
    """Return totals by task; a trace without a task is a task of its own.

    With `named`, tasks have names shared between sources (``t`` and the id), and totals exist even
    where no task repeats. Above `most_tasks` there are no names, and totals by each of `by`. The
    `distinct` tasks are counted unless their number is given.
    """
    n, no_task, coded = counting.n, counting.no_task, counting.coded
    if distinct is None:
        tasked = query("tasked", rows=coded) if no_task else coded
        # Traces without a task are distinct: duplicates are dropped.
        distinct = counting.engine.distinct(tasked, "task", n - no_task)[0] + no_task
    if n == distinct and not (named and distinct <= most_tasks):
        return Tasks(table=None, n=n)
    if distinct <= most_tasks:
        return Tasks(table=_by_task(counting, named=named), n=distinct)
    return _by_group(counting, distinct, most_tasks, by)


def _by_task(counting: Counting, *, named: bool) -> pd.DataFrame:
    keys = {"alone": "trace_id", "task": "task"} if counting.no_task else {"task": "task"}
    found = _totals(counting, alone="alone" in keys, by_week=True)
    names = [_texts(counting, key, column) for key, column in keys.items()]
    number = np.full(len(found), -1, dtype=np.int64)
    start = 0
    for key, own in zip(keys, names, strict=True):
        there = found[key].notna().to_numpy()
        at = pd.Index(own["identity"]).get_indexer(pd.Index(found[key][there]))
        number[there] = at + start
        start += len(own)
    return _task_frame(
        found, counting, number, pd.concat(names)["text"].to_numpy() if named else None
    )


def _texts(counting: Counting, key: str, column: str) -> pd.DataFrame:
    """Return the tasks, or the traces without one, sorted by name."""
    own = query("task_names", rows=counting.rows, column=column, alone=key == "alone")
    found = counting.engine.run(own)
    found = found.assign(text=found["text"].astype(object)).sort_values("text")
    return found.assign(text=("r" if key == "alone" else "t") + found["text"])


def _by_group(counting: Counting, distinct: int, most_tasks: int, every: Sequence[str]) -> Tasks:
    """Replace tasks by random groups of them, each within one design stratum.

    A group mixes tasks of all workflows, models and weeks at random; in groups of one kind,
    differences between kinds would count as chance. Groups are counted by one key at a time: by all
    keys together they would be nearly as many as runs.
    """
    most = min(most_tasks, MOST_GROUPS)
    groups = max(1, most // max(1, counting.n_strata))
    tables = {}
    for by in every:
        names = None if by == "week" else counting.coding.names[by]
        if by != "week" and names == ():
            continue
        own = ("stratum", "weight") if by == "week" else (by, "stratum", "weight")
        found = _totals(counting, *own, groups=groups, by_week=by == "week")
        tables[by] = _task_frame(found, counting, found["unit"].to_numpy(np.int64), None, by)
    by, smallest = min(tables.items(), key=lambda item: len(item[1]))
    columns = smallest.columns.drop(by)
    keys = [name for name in columns if name not in {*SUMS, *counting.scores}]
    totals = smallest.groupby(keys, observed=True, dropna=False, as_index=False).sum(
        numeric_only=True
    )
    return Tasks(table=totals[columns], n=distinct, grouped=True, by=tables)


def _totals(counting: Counting, *keys: str, **which: Any) -> pd.DataFrame:
    coding = counting.coding
    asked = query(
        "tasks",
        coded=counting.coded,
        credits=[_credits(name, coding, table) for name, table in counting.credits.items()],
        whole=[_credits(GROSS, coding, counting.credits[SCORE])] if counting.own_credit else [],
        **which,
        **coding.flags(),
        **coding.keys(*keys),
    )
    return counting.engine.run(asked)


def _task_frame(
    found: pd.DataFrame,
    counting: Counting,
    number: NDArray[np.int64],
    names: NDArray[Any] | None,
    by: str | None = None,
) -> pd.DataFrame:
    """Return totals sorted by task and keys; each group of tasks lies within a stratum."""
    cells = decoded(
        found, counting.coding, known=found["cost_known"].to_numpy(np.bool_),
        step=found["step"].to_numpy(np.int64), sums=_sums_of(found),
    )  # fmt: skip
    task = number if by is None else ranked(number, cells.stratum)
    task = np.unique(task, return_inverse=True)[1].astype(np.int64)
    order = np.argsort(cells.rank(task), kind="stable")
    sums = {name: column[order] for name, column in cells.sums.items()}
    sums |= {name: found[name].to_numpy(np.float64)[order] for name in counting.scores}
    kept = LABELLED if by is None else tuple(name for name in LABELLED if name in (by, "stratum"))
    table = cells.take(order, sums).frame(kept)
    table.insert(0, "task", task[order] if names is None else names[number[order]])
    table.insert(1, "tasks", 1)
    return table


def _credits(score: str, coding: Coding, table: CreditTable) -> dict[str, Any]:
    """Return the credit of a class, and the workflows in which it differs."""
    names, key = coding.names["workflow"], coding.key("workflow")
    return {
        "score": score,
        "own_key": key,
        "own": [
            {
                "own_workflow": name if names is None else names.index(name) + 1,
                "own_class": k,
                "own_credit": float(credit),
            }
            for name, row in table.by_workflow.items()
            if names is None or name in names
            for k, credit in enumerate(row)
        ],
        "any": [
            {"any_class": k, "any_credit": float(credit)} for k, credit in enumerate(table.credit)
        ],
    }
