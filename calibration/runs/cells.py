"""Cells: counts of runs that are equal in everything that enters a rate.

Texts become their place among the names that occur, and what a group has in common is packed into
two numbers: grouping by one number takes a fraction of the time of grouping by seven columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.records import OUTCOMES
from calibration.runs.engines import Engine, week_labels
from calibration.runs.queries import Query, Relation, query
from calibration.runs.results import CreditTable

NAMED = ("workflow", "model", "stratum")

# Of more names than this, or where they are not known beforehand, the texts themselves are keys.
MOST_NAMES = 127

GRID = 1024

MOST_EXACT = 20_000

# So many penalised traces are looked at before all of them are: enough to see that there are too
# many different penalties.
PROBED = 200_000

LABELLED = ("week", "workflow", "model", "stratum")

SUMS = ("n", "n_costed", "units", "cost", "cost_squared", "penalty")


Codes = NDArray[np.int64]

NAMES, CLASSES, WEEK_0 = MOST_NAMES + 1, 8, 1 << 24

HEAD_BELOW = NAMES * NAMES * CLASSES * 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A text of each row: its place among the sorted names, -1 for none."""

    codes: Codes
    names: tuple[str, ...]

    def column(self) -> "pd.Categorical[Any]":
        """Return it as categories."""
        return pd.Categorical.from_codes(self.codes, pd.Index(self.names, dtype=str))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """What the numbers stand for.

    Parameters
    ----------
    names : Mapping of str to tuple of str or None
        The names of each of `NAMED` that may occur, sorted; None: the text is a column of its own.
    used : Mapping of str to str
        The columns that the source has.
    """

    names: Mapping[str, tuple[str, ...] | None]
    used: Mapping[str, str]

    @property
    def texts(self) -> tuple[str, ...]:
        """Which of `NAMED` are columns of their own."""
        return tuple(name for name in NAMED if self.names[name] is None)

    def flags(self, *texts: str) -> dict[str, Any]:
        """Return which columns the narrow table has, and which of `texts` (all when none)."""
        own = (name for name in self.texts if not texts or name in texts)
        return dict.fromkeys(self.used, True) | {f"{name}_text": True for name in own}

    def code(self, priced: Relation) -> Query:
        """Return the narrow table of priced rows."""
        return query(
            "narrow",
            priced=priced,
            week_0=WEEK_0,
            names=NAMES,
            most_classes=CLASSES,
            workflows=self._places("workflow", "workflow", "workflow_place"),
            models=self._places("model", "model_name", "model_place"),
            strata=self._places("stratum", "stratum", "stratum_place"),
            places=[
                {"class_name": name, "class_place": place} for place, name in enumerate(OUTCOMES)
            ],
            **self.flags(),
        )

    def _places(self, column: str, name: str, place: str) -> list[dict[str, Any]]:
        return [{name: text, place: k} for k, text in enumerate(self.names[column] or (), 1)]

    def labels(self, found: pd.DataFrame, codes: Codes, name: str) -> Labelled:
        """Return the texts of rows that were grouped, from the numbers or from their own column."""
        names = self.names[name]
        if names is None:
            places, values = pd.factorize(found[name], sort=True)
            return Labelled(codes=places.astype(np.int64), names=tuple(map(str, values)))
        return occurring(Labelled(codes=codes - 1, names=names))

    def of_head(self, found: pd.DataFrame, head: Codes) -> tuple[Labelled, Labelled]:
        """Return week and workflow."""
        return week_of(head), self.labels(found, head % NAMES, "workflow")


def coding(
    rows: Relation, engine: Engine, used: Mapping[str, str], workflows: tuple[str, ...] | None
) -> Coding:
    """Return how rows are put in numbers; `workflows` are those that count, None for any."""
    names: dict[str, tuple[str, ...] | None] = {}
    for name in NAMED:
        if name == "workflow" and workflows is not None and len(workflows) <= MOST_NAMES:
            names[name] = tuple(sorted(workflows))
        elif name in used:
            own = engine.run(query("names", rows=rows, column=name, most=NAMES))
            found = sorted(map(str, own["name"]))
            names[name] = tuple(found) if len(found) <= MOST_NAMES else None
        else:
            names[name] = ()
    return Coding(names=names, used=used)


def occurring(labelled: Labelled) -> Labelled:
    """Return the same without the names that no row has."""
    seen = np.bincount(labelled.codes + 1, minlength=len(labelled.names) + 1)[1:] > 0
    place = np.concatenate([[-1], np.where(seen, np.cumsum(seen) - 1, -1)])
    return Labelled(
        codes=place[labelled.codes + 1].astype(np.int64),
        names=tuple(name for name, there in zip(labelled.names, seen, strict=True) if there),
    )


def week_of(head: Codes) -> Labelled:
    """Return the week of a head."""
    weeks = head // NAMES
    numbers, places = np.unique(weeks, return_inverse=True)
    without = int(numbers.size > 0 and numbers[0] == 0)
    return Labelled(
        codes=places.astype(np.int64) - without,
        names=tuple(week_labels(numbers[without:] - WEEK_0)),
    )


def ranked(*parts: Labelled | Codes) -> Codes:
    """Return one number a row that sorts as the parts do, the first before the others."""
    key, space = np.zeros(1, dtype=np.int64), 1
    for part in parts:
        codes = part.codes + 1 if isinstance(part, Labelled) else part
        size = int(codes.max(initial=0)) + 1
        if space * size >= 1 << 62:
            values, key = np.unique(key, return_inverse=True)
            space = values.size
        key, space = key * size + codes, space * size
    return key


# Steps of a penalty, and the credits inside of steps, in the number that a cell is grouped by.
STEPS = 2 * GRID


def price(rows: Relation, ceilings: Mapping[str, float | None]) -> Query:
    """Add week, ceiling, whether cost and ceiling are known, and the penalty."""
    limits = [{"limited": name, "limit": float(limit)} for name, limit in ceilings.items() if limit]
    return query("priced", rows=rows, ceilings=limits)


def keep_exact(narrow: Relation, engine: Engine, coding: Coding, most_exact: int) -> bool:
    """Return whether there are few enough distinct (workflow, outcome, penalty)."""

    def combinations(**which: Any) -> int:
        asked = query("penalties", narrow=narrow, names=NAMES, **which, **coding.flags("workflow"))
        return int(engine.run(asked)["n"][0])

    if combinations(penalised=True, probed=PROBED) >= most_exact:
        return False
    return combinations(penalised=True) + combinations() < most_exact


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
        """Return one row a cell; columns as `calibration.runs` describes them."""
        columns: dict[str, Any] = {name: getattr(self, name).column() for name in by}
        columns |= {
            "weight": self.weight,
            "outcome": self.outcome.astype(np.int8),
            "cost_known": self.known.astype(np.bool_),
            "penalty_step": self.step.astype(np.int16),
        }
        return pd.DataFrame(columns | dict(self.sums), copy=False)


def count_cells(
    narrow: Relation,
    engine: Engine,
    credits: Mapping[str, CreditTable],
    coding: Coding,
    *,
    exact: bool,
) -> Cells:
    """Count cells, sorted by their keys."""
    inside = [] if exact else _inside_steps(credits)
    found = engine.run(
        query(
            "cells",
            narrow=narrow,
            exact=exact,
            grid=GRID,
            steps=STEPS,
            head_below=HEAD_BELOW,
            inside=[{"inside": credit} for credit in inside],
            **coding.flags(),
        )
    )
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
