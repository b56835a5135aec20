"""Which rows count: checks with reasons, and duplicates."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from calibration.records import OUTCOMES
from calibration.runs.columns import APART, given
from calibration.runs.engines import Engine
from calibration.runs.queries import Query, Relation, query
from calibration.runs.signals import LOOP, VERDICTS
from calibration.runs.sources import Source

MAX_USD = 1e6

MAX_UNITS = MAX_WEIGHT = 1e9

SHOWN = 80

WHY: dict[str, str] = {
    "unreadable_row": "the line cannot be read, or holds none of the columns",
    "missing_trace_id": "trace_id is missing",
    "missing_workflow": "workflow is missing",
    "unknown_workflow": "the workflow is none of the taxonomy",
    "missing_outcome": "outcome is missing",
    "unknown_class": f"outcome is none of {', '.join(OUTCOMES)}",
    "unreadable_cost": "cost_usd is no number",
    "not_finite_cost": "cost_usd is not finite",
    "negative_cost": "cost_usd is negative",
    "bad_units": "units is no number above 0 and up to 1e9",
    "absurd_cost": "cost_usd is above 1,000,000 USD a unit",
    "bad_weight": "weight is missing, or no number above 0 and up to 1e9",
    "unreadable_time": "started_at is no time",
    "identical_duplicate": "the same trace_id with the same values; one of the rows is kept",
    "conflicting_duplicate": "the same trace_id with other values; none of the rows is kept",
}

REASONS = tuple(WHY)

CODE = {reason: k for k, reason in enumerate(REASONS, 1)}


def check(
    source: Source,
    columns: Mapping[str, str],
    *,
    workflows: Collection[str] | None,
    zone: str,
    further: Collection[str] = (),
) -> Query:
    """Return the rows in our own columns, with `reason` (0: the row counts) and the bad `value`.

    Parameters
    ----------
    source : Source
    columns : Mapping of str to str
        The column of the source for each of ours.
    workflows : collection of str or None
        Those that count; None for any.
    zone : str
        Zone of times without one.
    further : collection of str
        The columns of gates that are read.
    """
    return query(
        "checked",
        given=given(source, columns, zone=zone, further=further),
        apart=APART,
        shown=SHOWN,
        known=[{"known": name} for name in workflows or ()],
        any_workflow=workflows is None,
        classes=[{"class": name} for name in OUTCOMES],
        verdicts=[{"verdict": name} for name in VERDICTS],
        loop_from=LOOP,
        max_usd=MAX_USD,
        max_units=MAX_UNITS,
        max_weight=MAX_WEIGHT,
        **CODE,
    )


def chosen(
    rows: Relation, *, model: str | None, since: datetime | None, until: datetime | None
) -> Relation:
    """Return the checked rows of a model, and from `since` to before `until`, both in UTC.

    Rows without a time are in no window, but those that could not be read stay to be counted.
    """
    limits = {"model": model, "since": at_utc(since), "until": at_utc(until)}
    known = {name: value for name, value in limits.items() if value is not None}
    if not known:
        return rows
    return query("chosen", rows=rows, window=since is not None or until is not None, **known)


def at_utc(moment: datetime | None) -> datetime | None:
    """Return a time in UTC without its zone, as engines compare it with either kind of times."""
    return None if moment is None else moment.replace(tzinfo=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplicated:
    """The rows that stay, and those that went."""

    rows: Query
    identical: Relation
    conflicting: Relation


def deduplicate(rows: Relation, engine: Engine) -> Deduplicated:
    """Sort out rows with the same trace_id, where there are some.

    Rows that were set aside for another reason do not count as duplicates. Two rows are identical
    when every column that is read has the same value.
    """
    repeated = engine.keep(query("repeated", rows=rows), "repeated")
    versions = query("versions", rows=rows, repeated=repeated)
    same = engine.keep(query("identical", versions=versions), "identical")
    return Deduplicated(
        rows=query("kept", rows=rows, repeated=repeated, versions=versions, identical=same),
        identical=query("duplicates", rows=rows, repeated=repeated, same=same, identical=True),
        conflicting=query("duplicates", rows=rows, repeated=repeated, same=same),
    )
