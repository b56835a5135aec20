"""The traces as a narrow table of numbers, which is made once and grouped from again and again.

Texts become their place among the names that occur, and what a group has in common is packed into
two numbers: grouping by one number takes a fraction of the time of grouping by seven columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.production.engines import Engine, week_labels
from calibration.records import OUTCOMES

Codes = NDArray[np.int64]

NAMED = ("workflow", "model", "stratum")
# Of more names than this, or where they are not known beforehand, the texts themselves are keys.
MOST_NAMES = 127
NAMES, CLASSES, WEEK_0 = MOST_NAMES + 1, 8, 1 << 24
HEAD_BELOW = NAMES * NAMES * CLASSES * 2
ALWAYS = (
    "head",
    "tail",
    "outcome",
    "penalty",
    "cost",
    "id",
    "reason",
    "naive",
    "no_units",
    "bad_latency",
)
OPTIONAL = {
    "units": "units", "weight": "weight", "latency_s": "latency", "started_at": "at",
    "task_id": "task",
}  # fmt: skip


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

    def code(self, priced: Any, engine: Engine) -> Any:
        """Return the narrow table of priced rows."""
        week = ibis.ifelse(priced.week.isnull(), 0, priced.week.cast("int64") + WEEK_0)
        workflow, model, stratum = (self._place(priced[name], name) for name in NAMED)
        outcome = ibis.cases(
            *((priced.outcome == name, k) for k, name in enumerate(OUTCOMES)), else_=CLASSES - 1
        )
        known = ibis.ifelse(priced.cost_known, 1, 0)
        mixed = priced.mutate(
            outcome=outcome.cast("int8"),
            head=week * NAMES + workflow,
            tail=(((model * NAMES + stratum) * CLASSES + outcome) * 2 + known).cast("int32"),
            id=engine.identity(priced.trace_id),
        )
        optional = [ours for column, ours in OPTIONAL.items() if column in self.used]
        kept = mixed.select(*ALWAYS, *optional, *self.texts)
        if "task" not in optional:
            return kept
        task = engine.identity(kept.task)
        return kept.mutate(task=ibis.ifelse(kept.task.isnull(), ibis.null(task.type()), task))

    def _place(self, value: Any, name: str) -> Any:
        names = self.names[name]
        if not names:
            return ibis.literal(0)
        return ibis.cases(*((value == text, k) for k, text in enumerate(names, 1)), else_=0)

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
    rows: Any, engine: Engine, used: Mapping[str, str], workflows: tuple[str, ...] | None
) -> Coding:
    """Return how rows are put in numbers; `workflows` are those that count, None for any."""
    names: dict[str, tuple[str, ...] | None] = {}
    for name in NAMED:
        if name == "workflow" and workflows is not None and len(workflows) <= MOST_NAMES:
            names[name] = tuple(sorted(workflows))
        elif name in used:
            own = rows.filter(rows[name].notnull()).select(name).distinct().limit(NAMES)
            found = sorted(map(str, engine.run(own)[name]))
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
