"""Single runs of a source: the few that somebody should look at, and all of them for export."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import ibis
import pandas as pd

from calibration.production.checks import check
from calibration.production.columns import checked_zone, mapped, text
from calibration.production.engines import week_names
from calibration.production.sources import Source
from calibration.taxonomy import Taxonomy

LISTED = ("outcome", "trace_id", "workflow", "model", "task", "week", "at", "cost", "latency")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the rows of a source are read; as the arguments of `production_counts`."""

    taxonomy: Taxonomy
    columns: Mapping[str, str | None] | None = None
    known_workflows_only: bool = True
    timezone: str = "UTC"
    since: datetime | None = None
    until: datetime | None = None
    further: tuple[str, ...] = ()


def list_runs(
    source: Source,
    reading: Reading,
    *,
    outcomes: Collection[str],
    first: int | None = None,
    until: Mapping[str, datetime] | None = None,
) -> pd.DataFrame:
    """Return the runs of some classes, each class in order of time.

    Parameters
    ----------
    source : Source
        A source of its own: a reader keeps what it has read once.
    reading : Reading
        How its rows are read.
    outcomes : collection of str
        Classes.
    first : int, optional
        So many of each class; all when None.
    until : mapping of str to datetime, optional
        No run of a class that is asked for began later than this, in UTC.

    Returns
    -------
    pandas.DataFrame
        The columns of `LISTED`; runs without a time come last. A run that is there twice is there
        twice.
    """
    rows = _rows(source, reading)
    rows = rows.filter(rows.reason == 0)
    rows = rows.mutate(week=source.engine.week(rows.at)).select(*LISTED)
    limits = {name: moment for name, moment in (until or {}).items() if name in outcomes}
    if limits and len(limits) == len(outcomes):
        # Few rows, which one pass finds.
        early = rows.filter(rows["at"] <= _moment(max(limits.values()), rows["at"]))
        rows = source.engine.keep(early, "listed")
    else:
        rows = source.engine.view(rows, "listed")
    frames = []
    # A query a class: the engine then keeps only the first ones, and need not sort them all.
    for outcome in outcomes:
        own = rows.filter(rows.outcome == outcome)
        if outcome in limits:
            own = own.filter(own["at"] <= _moment(limits[outcome], own["at"]))
        own = own.order_by(own["at"].isnull(), own["at"], own["trace_id"])
        frames.append(source.engine.run(own if first is None else own.limit(first)))
    found = pd.concat(frames, ignore_index=True)
    return found.assign(week=week_names(found["week"]).astype(object))


def count_named(source: Source, reading: Reading, names: Collection[tuple[str, str]]) -> int:
    """Return how many rows of the source have one of these (workflow, trace_id)."""
    used = mapped(reading.columns, columns_of(source), source.name, further=reading.further)
    workflow, trace_id = (
        text(source.table[used[ours]], ours, source.name) for ours in ("workflow", "trace_id")
    )
    by_workflow: dict[str, list[str]] = {}
    for name, trace in sorted(names):
        by_workflow.setdefault(name, []).append(trace)
    hits = [(workflow == name) & trace_id.isin(tuple(ids)) for name, ids in by_workflow.items()]
    if not hits:
        return 0
    found = source.engine.run(source.table.filter(ibis.or_(*hits)).aggregate(n=ibis._.count()))
    return int(found["n"][0])


def columns_of(source: Source) -> tuple[str, ...]:
    """Return the names of the columns that the source has itself."""
    return tuple(c for c in source.table.columns if c not in (source.file, source.row))


def _rows(source: Source, reading: Reading) -> Any:
    used = mapped(reading.columns, columns_of(source), source.name, further=reading.further)
    ceilings = {w.name: w.ceiling_usd for w in reading.taxonomy.workflows}
    workflows = ceilings if reading.known_workflows_only else None
    rows = check(source, used, workflows=workflows, zone=checked_zone(reading.timezone))
    return within(rows, reading.since, reading.until)


def within(rows: Any, since: datetime | None, until: datetime | None) -> Any:
    """Return the checked rows from `since` to before `until`, both in UTC.

    Rows without a time are in no window, but those that could not be read stay to be counted.
    """
    inside = None
    for limit, later in ((since, True), (until, False)):
        if limit is not None:
            moment = _moment(limit, rows.at)
            this = rows.at >= moment if later else rows.at < moment
            inside = this if inside is None else inside & this
    if inside is None:
        return rows
    return rows.filter(inside.fill_null(False) | (rows.at.isnull() & (rows.reason != 0)))


def _moment(limit: datetime, at: Any) -> Any:
    return ibis.literal(limit.replace(tzinfo=None)).cast(at.type())
