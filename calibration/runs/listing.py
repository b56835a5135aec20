"""Single runs of a source: review queues, exports and tags."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import ibis
import pandas as pd

from calibration.errors import InputError
from calibration.runs.columns import APART, checked_zone, mapped, text
from calibration.runs.engines import week_names
from calibration.runs.rows import _moment, check, one_of, within
from calibration.runs.signals import COLUMNS as SIGNALS
from calibration.runs.sources import Source
from calibration.taxonomy import Taxonomy

LISTED = ("outcome", "trace_id", "workflow", "model", "task", "week", "at", "cost", "latency")


MOST_TAGS = 50

# Longer ones are cut: a tag is a word, not a text.
MAX_TAG = 80

TAG, RUN = "asr_tag", "asr_run"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """A source with a row for each run and tag, and how its columns are called.

    Parameters
    ----------
    source : Source
        Of the most frequent tags.
    columns : Mapping of str to str or None
        As the `columns` of `production_counts`; the tag stands for the model.
    left_out : int
        Further tags, which are in none of its rows.
    """

    source: Source
    columns: Mapping[str, str | None]
    left_out: int


def laid_out(
    source: Source, columns: Mapping[str, str | None], *, conflicts: bool, most: int = MOST_TAGS
) -> Tagged | None:
    """Return the runs of a source once for each of their tags; None without a column of tags.

    Tags are a list, a JSON list as text, or a text in which ``;`` or ``,`` parts them.

    Parameters
    ----------
    source : Source
    columns : Mapping of str to str or None
        As for `production_counts`.
    conflicts : bool
        Whether there are runs with one trace_id and other values: they are left out.
    most : int, default 50
        The tags of the most rows.

    Raises
    ------
    InputError
        If the column holds neither texts nor lists of texts.
    """
    used = mapped(columns, columns_of(source), source.name)
    if "tags" not in used:
        return None
    table = source.table
    if conflicts:
        table = _without_conflicts(table, used)
    tags = _as_list(table[used["tags"]], source.name)
    rows = table.mutate(asr_tags=tags)
    rows = rows.mutate(**{TAG: rows.asr_tags.unique().unnest()}).drop("asr_tags")
    rows = rows.filter(rows[TAG].notnull() & (rows[TAG] != ""))
    counted = rows.group_by(TAG).aggregate(n=rows.count())
    found = source.engine.run(counted.order_by(ibis.desc("n"), TAG).limit(most))
    n_tags = int(source.engine.run(counted.aggregate(n=counted.count()))["n"][0])
    rows = rows.filter(one_of(rows[TAG], found[TAG].tolist()))
    # A run is there once for each tag: the same again under one tag is still a duplicate.
    run = rows[used["trace_id"]].cast("string") + APART + rows[TAG]
    return Tagged(
        source=replace(
            source, table=rows.mutate(**{RUN: run}), rejects=False, null_is_unreadable=False
        ),
        columns={
            **columns,
            **dict.fromkeys(("tags", *SIGNALS)),
            "trace_id": RUN,
            "model": TAG,
        },
        left_out=n_tags - len(found),
    )


def _as_list(column: Any, where: str) -> Any:
    """Return tags as a list of texts."""
    kind = column.type()
    if kind.is_array() and kind.value_type.is_string():
        return column
    if not kind.is_string():
        raise InputError(f"{where}: column 'tags' holds {kind}, not texts or lists of texts")
    said = column.strip()
    # A JSON list of texts is parted at its quotes, so that a tag of it may hold a comma.
    quoted = said.re_search(r'^\[\s*"')
    listed = said.re_replace(r'^\[\s*"|"\s*\]$', "").re_replace(r'"\s*,\s*"', ";")
    plain = said.re_replace(r"^\[|\]$", "").re_replace(",", ";")
    return ibis.ifelse(quoted, listed, plain).re_replace(r"\s*;\s*", ";").strip().split(";")


def _without_conflicts(table: Any, used: Mapping[str, str]) -> Any:
    """Leave out the runs that say two things under one trace_id."""
    others = [theirs for ours, theirs in used.items() if ours not in ("trace_id", "tags")]
    seen = table.group_by(asr_id=table[used["trace_id"]]).aggregate(
        **{
            f"asr_{k}": table[name].cast("string").fill_null("").nunique()
            for k, name in enumerate(others)
        }
    )
    twice = seen.filter(ibis.or_(*(seen[f"asr_{k}"] > 1 for k in range(len(others)))))
    return table.anti_join(twice.select("asr_id"), table[used["trace_id"]] == twice.asr_id)
