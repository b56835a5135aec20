"""What runs say of operation: errors, tools, loops, escalation, feedback, verdicts.

One pass over the rows that count, and only where a source has such a column. It brings back sums
by week and unit: a unit is a task, or a run where no task is known, or a random group of them
where they are many.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
import pandas as pd

from calibration.records import NO_VERDICT, OUTCOMES
from calibration.runs.columns import number, ones, text
from calibration.runs.engines import Engine, week_names

COLUMNS = (
    "tool_calls", "tool_errors", "loop", "max_repeats", "escalated", "feedback", "verdict",
)  # fmt: skip

PREFIX = "signal_"

VERDICTS = (*OUTCOMES, NO_VERDICT)

# The same tool with the same arguments so often in a row is a loop.
LOOP = 3

MOST_UNITS, GROUPS = 5_000, 2_000

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


def signal_columns(table: Any, used: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return what is read of the columns of signals, null where nothing or no value is said.

    Names begin with ``signal_``; those of true or false with ``signal_bad_``.
    """

    def given(ours: str) -> Any:
        return table[used[ours]]

    found: dict[str, tuple[Any, Any]] = {}
    if "tool_calls" in used and "tool_errors" in used:
        calls, errors = (_whole(given(c), c, where) for c in ("tool_calls", "tool_errors"))
        more = (errors[0] > calls[0]).fill_null(False)
        bad = calls[1] | errors[1] | more
        both = calls[0].notnull() & errors[0].notnull() & ~bad
        found["tool_calls"] = ibis.ifelse(both, calls[0], ibis.null("float64")), bad
        found["tool_errors"] = ibis.ifelse(both, errors[0], ibis.null("float64")), None
    loops = []
    if "loop" in used:
        loops.append(_happened(given("loop"), "loop", where))
    if "max_repeats" in used:
        repeats, bad = _whole(given("max_repeats"), "max_repeats", where)
        loops.append((repeats >= LOOP, bad))
    if loops:
        value, bad = loops[0]
        if len(loops) > 1:
            value, bad = value.fill_null(loops[1][0]), bad | loops[1][1]
        found["loop"] = value, bad
    if "escalated" in used:
        found["escalated"] = _happened(given("escalated"), "escalated", where)
    if "feedback" in used:
        found["feedback"] = _score(given("feedback"), where)
    if "verdict" in used:
        said = text(given("verdict"), "verdict", where)
        known = ibis.or_(*(said == name for name in VERDICTS)).fill_null(False)
        found["verdict"] = ibis.ifelse(known, said, ibis.null("string")), said.notnull() & ~known
    columns = {PREFIX + name: value for name, (value, _) in found.items()}
    for name, (_, wrong) in found.items():
        if wrong is not None:
            columns[f"{PREFIX}bad_{'tools' if name == 'tool_calls' else name}"] = wrong
    return columns


def _whole(column: Any, ours: str, where: str) -> tuple[Any, Any]:
    """Return whole numbers from 0 up, and where there is something else."""
    read = number(column, ours, where)
    fits = ((read.value >= 0) & (read.value == read.value.floor())).fill_null(False)
    bad = read.unreadable | read.not_finite | (read.value.notnull() & ~fits)
    return ibis.ifelse(fits & ~bad, read.value, ibis.null("float64")), bad


def _happened(column: Any, ours: str, where: str) -> tuple[Any, Any]:
    """Return true or false, from a truth value, a word or a count."""
    if column.type().is_boolean():
        return column, ibis.literal(False)
    if not column.type().is_string():
        count, bad = _whole(column, ours, where)
        return count > 0, bad
    word = column.strip().lower().nullif("")
    yes, no = (ibis.or_(*(word == name for name in names)) for names in (YES, NO))
    named = (yes | no).fill_null(False)
    count, bad = _whole(ibis.ifelse(named, ibis.null("string"), column), ours, where)
    return ibis.ifelse(named, yes, count > 0), bad


def _score(column: Any, where: str) -> tuple[Any, Any]:
    """Return scores from -1 to 1, from a number or a thumb."""
    kind = column.type()
    if kind.is_boolean():
        no = ibis.literal(False)
        return ibis.cases((column, 1.0), (~column, -1.0), else_=ibis.null("float64")), no
    worth = ibis.null("float64")
    named: Any = ibis.literal(False)
    if kind.is_string():
        word = column.strip().lower()
        words = ((UP, 1.0), (DOWN, -1.0), (NEUTRAL, 0.0))
        worth = ibis.cases(*((word == n, w) for names, w in words for n in names), else_=worth)
        named = worth.notnull()
        column = ibis.ifelse(named, ibis.null("string"), column)
    read = number(column, "feedback", where)
    fits = read.value.between(-1.0, 1.0).fill_null(False)
    bad = read.unreadable | read.not_finite | (read.value.notnull() & ~fits)
    value = ibis.ifelse(fits, read.value, ibis.null("float64"))
    return ibis.ifelse(named, worth, value), bad


def count_signals(
    rows: Any, engine: Engine, used: Mapping[str, str], *, n: int, n_tasks: int | None
) -> SignalSums | None:
    """Sum what the rows that count say of operation; None where no column says anything.

    Parameters
    ----------
    rows : ibis Table
        The rows that count, with the columns of `signal_columns`.
    engine : Engine
    used : Mapping of str to str
        The columns that were read.
    n, n_tasks : int
        Runs, and tasks where they are known.
    """
    parts = _parts(rows, used)
    if not parts or not n:
        return None
    units = n if n_tasks is None else n_tasks
    unit = rows.trace_id
    if n_tasks is not None:
        unit = ibis.ifelse(rows.task.isnull(), "r" + rows.trace_id, "t" + rows.task)
    if units > MOST_UNITS:
        unit = engine.grouped(engine.identity(unit), GROUPS)
    keys = {"week": engine.week(rows.at), "unit": unit}
    if "stratum" in used:
        keys["stratum"] = rows.stratum
    sums = {"n": rows.count()}
    weighted = "weight" in used
    for key, (known, of, hits) in parts.items():
        sums[f"n_{key}"] = ibis.ifelse(known, of, 0.0).sum()
        sums[key] = ibis.ifelse(known, hits * rows.weight if weighted else hits, 0.0).sum()
        if weighted:
            sums[f"of_{key}"] = ibis.ifelse(known, of * rows.weight, 0.0).sum()
    wrong = [name for name in BAD if f"{PREFIX}bad_{name}" in rows.columns]
    for name in wrong:
        sums[f"bad_{name}"] = ones(rows[f"{PREFIX}bad_{name}"].fill_null(False)).sum()
    found = engine.run(rows.group_by(**keys).aggregate(**sums))
    bad = {name: int(found[f"bad_{name}"].sum()) for name in wrong}
    return SignalSums(
        table=_table(found, parts),
        recorded=tuple(parts),
        bad={BAD[name]: count for name, count in bad.items() if count},
        n_units=units,
        by_task=n_tasks is not None,
    )


def _parts(rows: Any, used: Mapping[str, str]) -> dict[str, tuple[Any, Any, Any]]:
    """Return, by key, which runs say something, what it is a share of, and the hits."""
    parts: dict[str, tuple[Any, Any, Any]] = {}

    def share(key: str, known: Any, hit: Any) -> None:
        parts[key] = known, ibis.literal(1.0), ibis.ifelse(hit, 1.0, 0.0)

    def column(name: str) -> Any:
        return rows[PREFIX + name] if PREFIX + name in rows.columns else None

    if "status" in used:
        said = rows.status.lower()
        late = said.re_search(TIMED_OUT)
        share("errors", said.notnull(), said.re_search(FAILED) & ~late)
        share("timeouts", said.notnull(), late)
    calls = column("tool_calls")
    if calls is not None:
        parts["tool_errors"] = calls.notnull(), calls, column("tool_errors")
    for key, name in (("loops", "loop"), ("escalated", "escalated")):
        value = column(name)
        if value is not None:
            share(key, value.notnull(), value)
    score = column("feedback")
    if score is not None:
        share("feedback_given", rows.trace_id.notnull(), score.notnull())
        parts["feedback"] = score.notnull(), ibis.literal(1.0), score
        share("feedback_negative", score.notnull(), score < 0)
    verdict = column("verdict")
    if verdict is not None:
        for name in VERDICTS:
            share(f"verdict_{name}", verdict.notnull(), verdict == name)
    return parts


def _table(found: pd.DataFrame, parts: Mapping[str, Any]) -> pd.DataFrame:
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
    for key in parts:
        columns[f"n_{key}"] = found[f"n_{key}"].to_numpy(np.float64)
        of = f"of_{key}" if f"of_{key}" in found else f"n_{key}"
        columns[f"of_{key}"] = found[of].to_numpy(np.float64)
        columns[key] = found[key].to_numpy(np.float64)
    table = pd.DataFrame(columns)
    return table.sort_values(["week", "unit"], ignore_index=True)
