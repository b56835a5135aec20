"""The columns of a source: which stands for what, and their values as numbers, texts and times.

What a column holds decides how it is read; the functions are in `sql/functions.sql`.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from calibration.errors import InputError
from calibration.runs.engines import Kind, kind_of
from calibration.runs.queries import Query, quoted

if TYPE_CHECKING:
    from calibration.runs.sources import Source

REQUIRED = ("trace_id", "workflow", "outcome", "cost_usd")

OPTIONAL = (
    "units", "started_at", "task_id", "trial", "weight", "stratum", "latency_s", "model", "status",
    "tags", "tool_calls", "tool_errors", "loop", "max_repeats", "escalated", "feedback", "verdict",
)  # fmt: skip

KNOWN = (*REQUIRED, *OPTIONAL)

OF_GATES = ("tier", "category", "loops", "data_corruption", "tags")

# Between two texts that are one name: a workflow and its task, a run and its tag.
APART = "\x1f"


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


def given(
    source: "Source", used: Mapping[str, str], *, zone: str, further: Collection[str] = ()
) -> Query:
    """Return the rows of a source by our own names, each column read by what it holds.

    A column of numbers comes with ``_unreadable`` and ``_endless``, that of times as ``at`` with
    ``naive`` and ``time_unreadable``, those that are shown where they are bad as ``said_`` too.
    What the source does not have is null. Of the columns of gates the `further` ones are read.

    Raises
    ------
    InputError
        If a column holds something else than is needed.
    """
    reads = _Reads(source, used, zone)
    columns = {name: reads.text(name) for name in _TEXTS}
    if not {"tool_calls", "tool_errors"} <= used.keys():
        reads = _Reads(source, {k: v for k, v in used.items() if not k.startswith("tool_")}, zone)
    columns |= reads.number("cost_usd", "cost", "cost") | reads.number(
        "units", "units_read", "units"
    )
    # A decimal where there is none: fingerprints of gates were made from sums of it.
    columns |= reads.number("weight", "weight", "weight", absent="1.0")
    columns |= reads.number("latency_s", "latency", "latency")
    columns |= reads.moment()
    for ours in ("tool_calls", "tool_errors", "max_repeats"):
        columns |= reads.number(ours, f"{ours}_read", ours)
    columns |= reads.happened("loop") | reads.happened("escalated") | reads.feedback()
    columns |= {name: reads.any_text(name if name in further else "") for name in OF_GATES}
    columns |= {f"said_{ours}": reads.column(ours) or _NO_TEXT for ours in _SHOWN}
    nothing = [f"{quoted(name)} IS NULL" for name in sorted(set(used.values()))]
    columns |= {
        "nothing": " AND ".join(nothing) if source.null_is_unreadable else "FALSE",
        "row": f"CAST({quoted(source.row)} AS BIGINT)" if source.row else "CAST(NULL AS BIGINT)",
        "file": quoted(source.file) if source.file else _NO_TEXT,
    }
    listed = ",\n  ".join(f"{value} AS {quoted(name)}" for name, value in columns.items())
    bound = {"zone": zone} if "$zone" in listed else {}
    return Query("given", f'SELECT\n  {listed}\nFROM "source"', bound, {"source": source.table})


_TEXTS = (
    "trace_id", "workflow", "outcome", "stratum", "model", "task_id", "trial", "status", "verdict",
)  # fmt: skip

_SHOWN = ("workflow", "outcome", "cost_usd", "units", "weight", "started_at")

_NO_TEXT, _NO_NUMBER = "CAST(NULL AS VARCHAR)", "CAST(NULL AS DOUBLE)"


class _Reads:
    """How each column of a source is read: pieces of SQL by the name that they are given."""

    def __init__(self, source: "Source", used: Mapping[str, str], zone: str) -> None:
        self.source, self.used, self.zone = source, used, zone

    def column(self, ours: str) -> str | None:
        return quoted(self.used[ours]) if ours in self.used else None

    def kind(self, ours: str) -> Kind:
        return kind_of(self.source.columns[self.used[ours]]) if ours in self.used else "nothing"

    def refused(self, ours: str, needed: str) -> InputError:
        held = self.source.columns[self.used[ours]]
        return InputError(f"{self.source.name}: column {ours!r} holds {held:.80}{needed}")

    def text(self, ours: str) -> str:
        """Read a column as text; an empty one is missing."""
        if self.kind(ours) in ("texts", "nested"):
            raise self.refused(ours, ", not texts")
        return self.any_text(ours)

    def any_text(self, ours: str) -> str:
        """Read a column as text whatever it holds; a list is written out."""
        column = self.column(ours)
        return _NO_TEXT if column is None else f"said_of(CAST({column} AS VARCHAR))"

    def number(
        self, ours: str, name: str, marks: str, *, absent: str = _NO_NUMBER
    ) -> dict[str, str]:
        """Read a column as a number; texts that hold none are null and unreadable."""
        column, kind = self.column(ours), self.kind(ours)
        if column is None or kind == "nothing":
            return _number(name, marks, absent if column is None else _NO_NUMBER)
        if kind == "text":
            return _number_of_text(name, marks, self.text(ours))
        if kind != "number":
            raise self.refused(ours, ", not numbers")
        value = f"CAST({column} AS DOUBLE)"
        return _number(name, marks, value, endless=f"endless_number({value})")

    def moment(self) -> dict[str, str]:
        """Read the time as a moment; one without a zone is of the zone that was named."""
        ours = "started_at"
        column, kind = self.column(ours), self.kind(ours)
        naive = unreadable = "FALSE"
        if column is None or kind == "nothing":
            at = "CAST(NULL AS TIMESTAMPTZ)"
        elif kind == "moment":
            at = column
        elif kind == "naive":
            at, naive = f"CAST({column} AS TIMESTAMP)", f"{column} IS NOT NULL"
            if self.zone != "UTC":
                at = f"localised({at}, $zone)"
        elif kind == "text":
            said = self.text(ours)
            local = self.zone != "UTC"
            at = f"moment_in_zone({said}, $zone)" if local else f"moment_of_text({said})"
            naive = f"{at} IS NOT NULL AND NOT has_zone(time_of_text({said}))"
            unreadable = f"{said} IS NOT NULL AND {at} IS NULL"
        else:
            raise self.refused(ours, "; times are needed, such as 2026-11-02T09:30:00Z")
        return {"at": at, "naive": naive, "time_unreadable": unreadable}

    def happened(self, ours: str) -> dict[str, str]:
        """Read true or false from a truth value or a word; else a number that may be a count."""
        column, kind = self.column(ours), self.kind(ours)
        if column is not None and kind == "truth":
            return {f"{ours}_truth": column} | _number(f"{ours}_read", ours, _NO_NUMBER)
        if column is not None and kind == "text":
            said = self.text(ours)
            rest = f"CASE WHEN truth_of_word({said}) IS NULL THEN {said} END"
            truth = {f"{ours}_truth": f"truth_of_word({said})"}
            return truth | _number_of_text(f"{ours}_read", ours, rest)
        truth = {f"{ours}_truth": "CAST(NULL AS BOOLEAN)"}
        return truth | self.number(ours, f"{ours}_read", ours)

    def feedback(self) -> dict[str, str]:
        """Read what a thumb is worth, else a number that may be a score."""
        ours = "feedback"
        column, kind = self.column(ours), self.kind(ours)
        if column is not None and kind == "truth":
            worth = f"CAST(CASE WHEN {column} THEN 1 WHEN NOT {column} THEN -1 END AS DOUBLE)"
            return {"feedback_worth": worth} | _number(ours, ours, _NO_NUMBER)
        if column is not None and kind == "text":
            said = self.text(ours)
            rest = f"CASE WHEN worth_of_word({said}) IS NULL THEN {said} END"
            return {"feedback_worth": f"worth_of_word({said})"} | _number_of_text(ours, ours, rest)
        return {"feedback_worth": _NO_NUMBER} | self.number(ours, ours, ours)


def _number(name: str, marks: str, value: str, *, endless: str = "FALSE") -> dict[str, str]:
    return {name: value, f"{marks}_unreadable": "FALSE", f"{marks}_endless": endless}


def _number_of_text(name: str, marks: str, said: str) -> dict[str, str]:
    return {
        name: f"number_of_text({said})",
        f"{marks}_unreadable": f"no_number({said})",
        f"{marks}_endless": f"endless_text({said})",
    }


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
