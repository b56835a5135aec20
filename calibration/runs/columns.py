"""The columns of a source: which stands for what, and their values as numbers, texts and times.

The expressions use only what DuckDB, Spark and PostgreSQL read alike. Texts are matched before they
are cast: PostgreSQL has no cast that gives nothing where a text is no number.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import ibis
from ibis.expr import datatypes as dt

from calibration.errors import InputError
from calibration.runs.engines import Engine

REQUIRED = ("trace_id", "workflow", "outcome", "cost_usd")

OPTIONAL = (
    "units", "started_at", "task_id", "trial", "weight", "stratum", "latency_s", "model", "status",
    "tags", "tool_calls", "tool_errors", "loop", "max_repeats", "escalated", "feedback", "verdict",
)  # fmt: skip

KNOWN = (*REQUIRED, *OPTIONAL)

OF_GATES = ("tier", "category", "loops", "data_corruption", "tags")

LARGEST = 1e300

# Between two texts that are one name: a workflow and its task, a run and its tag.
APART = "\x1f"


_NUMBER = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?\s*$"

_NON_FINITE = (
    r"^\s*[+-]?([nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[0-9.]+[eE]\+?[0-9]{3,})\s*$"
)

_CLOCK = r"([01][0-9]|2[0-4]):[0-5][0-9](:[0-6][0-9](\.[0-9]{1,9})?)?"

_OFFSET = r"\s?([zZ]|[+-][01][0-9](:?[0-5][0-9])?)"

_TIME = (
    r"^\s*[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    rf"([T ]{_CLOCK}({_OFFSET})?)?\s*$"
)

_ZONED = rf"[T ]{_CLOCK}{_OFFSET}\s*$"


def mapped(
    given: Mapping[str, str | None] | None,
    present: tuple[str, ...],
    where: str,
    *,
    further: tuple[str, ...] = (),
) -> dict[str, str]:
    """Return the column of the source for each of ours that is there, and of `further` ones.

    Raises
    ------
    InputError
        If a name is none of ours, or a column that is needed or named is not there.
    """
    given = given or {}
    shown = ", ".join(name[:80] for name in present[:40])
    known = (*KNOWN, *further)
    for ours in given:
        if ours not in known:
            raise InputError(f"column {ours!r:.80} is none of {', '.join(known)}")
    found: dict[str, str] = {}
    for ours in known:
        theirs = given.get(ours, ours)
        if theirs is None:
            if ours in REQUIRED and ours != "cost_usd":
                raise InputError(f"column {ours!r} cannot be left out")
            continue
        if theirs in present:
            found[ours] = theirs
        elif ours in given:
            raise InputError(
                f"{where}: column {theirs!r:.80} (for {ours}) is not there; there are {shown}"
            )
        elif ours in REQUIRED:
            without = " or cost_usd= where no cost is known" if ours == "cost_usd" else ""
            raise InputError(
                f"{where}: column {ours!r} is missing; there are {shown}; name the one that "
                f"stands for it: --column {ours}=NAME{without}"
            )
    return found


@dataclass(frozen=True, slots=True)
class Number:
    """A number of each row, and where it could not be read or is none that counts."""

    value: Any
    unreadable: Any
    not_finite: Any


def number(column: Any, ours: str, where: str) -> Number:
    """Return a column as float64; texts that hold no number are null and unreadable."""
    kind = column.type()
    if kind.is_null():
        return Number(column.cast("float64"), ibis.literal(False), ibis.literal(False))
    if kind.is_string():
        said = column.nullif("")
        endless = said.re_search(_NON_FINITE).fill_null(False)
        fits = said.re_search(_NUMBER).fill_null(False) & (said.length() <= 300)
        value = ibis.ifelse(fits, said, ibis.null("string")).try_cast("float64")
        return Number(value, said.notnull() & ~fits & ~endless, endless)
    if not kind.is_numeric():
        raise InputError(f"{where}: column {ours!r} holds {kind}, not numbers")
    value = column.cast("float64")
    # NaN is larger than every number in all three engines.
    finite = value.between(-LARGEST, LARGEST)
    return Number(value, ibis.literal(False), (value.notnull() & ~finite).fill_null(False))


def text(column: Any, ours: str, where: str) -> Any:
    """Return a column as text; an empty one is missing."""
    kind = column.type()
    if kind.is_nested() or kind.is_binary():
        raise InputError(f"{where}: column {ours!r} holds {kind}, not texts")
    return (column if kind.is_string() else column.cast("string")).nullif("")


def any_text(column: Any) -> Any:
    """Return a column as text whatever it holds; a list is written out."""
    return (column if column.type().is_string() else column.cast("string")).nullif("")


@dataclass(frozen=True, slots=True)
class Moment:
    """A time of each row in UTC, where it had no zone, and where it could not be read."""

    at: Any
    naive: Any
    unreadable: Any


def moment(column: Any, ours: str, where: str, zone: str, engine: Engine) -> Moment:
    """Return a column as times; those without a zone are read as of `zone`."""
    kind = column.type()
    no = ibis.literal(False)
    if kind.is_null():
        return Moment(column.cast(dt.Timestamp(timezone="UTC")), no, no)
    if kind.is_timestamp() and kind.timezone is not None:
        return Moment(column, no, no)
    if kind.is_timestamp() or kind.is_date():
        naive = column.cast("timestamp") if kind.is_date() else column
        at = naive if zone == "UTC" else engine.localise(naive, zone)
        return Moment(at, column.notnull(), no)
    if not kind.is_string():
        raise InputError(
            f"{where}: column {ours!r} holds {kind}; times are needed, such as 2026-11-02T09:30:00Z"
        )
    said = column.nullif("")
    shaped = ibis.ifelse(said.re_search(_TIME), said, ibis.null("string"))
    zoned = shaped.re_search(_ZONED)
    at = shaped.try_cast(dt.Timestamp(timezone="UTC"))
    if zone != "UTC":
        at = ibis.ifelse(zoned, at, engine.localise(shaped.try_cast("timestamp"), zone))
    return Moment(at, at.notnull() & ~zoned, said.notnull() & at.isnull())


def ones(condition: Any) -> Any:
    """Return 1 where a condition holds, else 0: PostgreSQL casts no truth value to a number."""
    return ibis.ifelse(condition, ibis.literal(1, "int16"), ibis.literal(0, "int16"))


def checked_zone(zone: str) -> str:
    """Return the name of a time zone.

    Raises
    ------
    InputError
        If there is no such zone.
    """
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(f"--timezone: {zone!r:.80} is no zone such as Europe/Berlin") from error
    return zone
