"""What runs say of operation: errors, tools, loops, escalation, feedback, verdicts.

One pass over the rows that count, and only where a source has such a column. It brings back sums
by week and unit: a unit is a task, or a run where no task is known, or a random group of them
where they are many.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from calibration.records import NO_VERDICT, OUTCOMES
from calibration.runs.engines import Engine, week_names
from calibration.runs.queries import Relation, query

COLUMNS = (
    "tool_calls", "tool_errors", "loop", "max_repeats", "escalated", "feedback", "verdict",
)  # fmt: skip

VERDICTS = (*OUTCOMES, NO_VERDICT)

# The same tool with the same arguments so often in a row is a loop.
LOOP = 3

MOST_UNITS, GROUPS = 5_000, 2_000

# As in `sql/functions.sql`: the signals of a store are read by these.
YES, NO = ("true", "t", "yes", "y"), ("false", "f", "no", "n")

UP = ("up", "true", "thumbs_up", "thumbs-up", "thumbsup", "positive", "like", "\U0001f44d")

DOWN = (
    "down", "false", "thumbs_down", "thumbs-down", "thumbsdown", "negative", "dislike",
    "\U0001f44e",
)  # fmt: skip

NEUTRAL = ("neutral",)

FAILED = "error|fail|exception|crash"

TIMED_OUT = "time.?out|timed.?out|deadline"

BAD: dict[str, str] = {
    "tools": "tool_calls or tool_errors are no whole number from 0 up, or more errors than calls",
    "loop": "loop or max_repeats is neither true or false nor a whole number from 0 up",
    "escalated": "escalated is neither true or false nor a whole number from 0 up",
    "feedback": "feedback is neither a number from -1 to 1 nor up, down or neutral",
    "verdict": f"verdict is none of {', '.join(VERDICTS)}",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SignalSums:
    """Sums by week and unit.

    Parameters
    ----------
    table : pandas.DataFrame
        week (category, missing without a time), unit, stratum (int64), n, and for each recorded
        KEY ``n_KEY`` (runs, or calls, that say so), ``of_KEY`` (the same, weighted) and ``KEY``
        (weighted hits, or scores).
    recorded : tuple of str
        The keys whose columns are there.
    bad : Mapping of str to int
        Values that are no value, by a reason of `BAD`; each counts as missing.
    n_units : int
        Tasks, or runs where no task is known.
    by_task : bool
        Units are tasks.
    """

    table: pd.DataFrame
    recorded: tuple[str, ...]
    bad: Mapping[str, int]
    n_units: int
    by_task: bool

    @property
    def each(self) -> float:
        """How many tasks or runs a unit of the table stands for."""
        return self.n_units / max(1, self.table["unit"].nunique())


def count_signals(
    rows: Relation, engine: Engine, used: Mapping[str, str], *, n: int, n_tasks: int | None
) -> SignalSums | None:
    """Sum what the rows that count say of operation; None where no column says anything.

    Parameters
    ----------
    rows : Relation
        The checked rows that count.
    engine : Engine
    used : Mapping of str to str
        The columns that were read.
    n, n_tasks : int
        Runs, and tasks where they are known.
    """
    keys = _keys(used)
    if not keys or not n:
        return None
    units = n if n_tasks is None else n_tasks
    groups = {"groups": GROUPS} if units > MOST_UNITS else {}
    found = engine.run(
        query(
            "signals",
            rows=rows,
            keys=[{"key": key} for key in keys],
            wrong=[{"bad": name} for name in BAD],
            verdicts=[{"verdict": name} for name in VERDICTS],
            failed=FAILED,
            late=TIMED_OUT,
            stratum="stratum" in used,
            tasks=n_tasks is not None,
            **groups,
        )
    )
    bad = {name: int(found[f"bad_{name}"].sum()) for name in BAD}
    return SignalSums(
        table=_table(found, keys),
        recorded=keys,
        bad={BAD[name]: count for name, count in bad.items() if count},
        n_units=units,
        by_task=n_tasks is not None,
    )


def _keys(used: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the columns of a source tell of."""
    told = (
        ("status" in used, ("errors", "timeouts")),
        ("tool_calls" in used and "tool_errors" in used, ("tool_errors",)),
        ("loop" in used or "max_repeats" in used, ("loops",)),
        ("escalated" in used, ("escalated",)),
        ("feedback" in used, ("feedback_given", "feedback", "feedback_negative")),
        ("verdict" in used, tuple(f"verdict_{name}" for name in VERDICTS)),
    )
    return tuple(key for there, keys in told if there for key in keys)


def _table(found: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return the sums with units and strata as numbers, in an order of their own."""
    strata = ["stratum"] if "stratum" in found else []
    # A group of units lies within one stratum.
    unit = found.groupby([*strata, "unit"], sort=True, dropna=False).ngroup()
    columns: dict[str, Any] = {
        "week": week_names(found["week"]),
        "unit": unit.to_numpy(np.int64),
        "stratum": pd.factorize(found["stratum"], sort=True)[0] if strata else 0,
        "n": found["n"].to_numpy(np.int64),
    }
    for name in (name for key in keys for name in (f"n_{key}", f"of_{key}", key)):
        columns[name] = found[name].to_numpy(np.float64)
    table = pd.DataFrame(columns)
    return table.sort_values(["week", "unit"], ignore_index=True)
