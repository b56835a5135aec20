"""Single runs of a source: review queues, exports and tags."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pandas as pd

from calibration.errors import InputError
from calibration.runs.columns import APART, at_utc, check, checked_zone, chosen, given, mapped
from calibration.runs.engines import Query, Relation, kind_of, query, week_names
from calibration.runs.results import SIGNAL_COLUMNS as SIGNALS
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
    """Return the runs of some classes, each class in order of time, with the columns of `LISTED`.

    Runs without a time come last. A run that is there twice is there twice.

    Parameters
    ----------
    source : Source
        A source of its own: a reader keeps what it has read once.
    reading : Reading
    outcomes : collection of str
    first : int, optional
        So many of each class; all when None.
    until : mapping of str to datetime, optional
        No run of a class that is asked for began later than this, in UTC.
    """
    engine = source.engine
    rows: Relation = _rows(source, reading)
    limits = {name: at_utc(moment) for name, moment in (until or {}).items() if name in outcomes}
    if limits and len(limits) == len(outcomes):
        # Few rows, which one pass finds.
        latest = max(moment for moment in limits.values() if moment is not None)
        rows = engine.keep(query("listed", rows=rows, latest=latest), "listed")
    else:
        rows = query("listed", rows=rows)
    frames = []
    # A query a class: the engine then keeps only the first ones, and need not sort them all.
    for outcome in outcomes:
        asked: dict[str, Any] = {} if first is None else {"first": first}
        if outcome in limits:
            asked["before"] = limits[outcome]
        frames.append(engine.run(query("first_runs", rows=rows, outcome=outcome, **asked)))
    found = pd.concat(frames, ignore_index=True)
    return found.assign(week=week_names(found["week"]).astype(object))


def count_named(source: Source, reading: Reading, names: Collection[tuple[str, str]]) -> int:
    """Return how many rows of the source have one of these (workflow, trace_id)."""
    if not names:
        return 0
    used = mapped(reading.columns, columns_of(source), source.name, further=reading.further)
    own = {ours: used[ours] for ours in ("workflow", "trace_id")}
    rows = given(source, own, zone="UTC")
    pairs = sorted(APART.join(pair) for pair in names)
    return int(source.engine.run(query("named", given=rows, apart=APART, pairs=pairs))["n"][0])


def columns_of(source: Source) -> tuple[str, ...]:
    """Return the names of the columns that the source has itself."""
    return tuple(c for c in source.columns if c not in (source.file, source.row))


def _rows(source: Source, reading: Reading) -> Relation:
    used = mapped(reading.columns, columns_of(source), source.name, further=reading.further)
    workflows = [w.name for w in reading.taxonomy.workflows]
    rows = check(
        source, used, taxonomy=reading.taxonomy,
        workflows=workflows if reading.known_workflows_only else None,
        zone=checked_zone(reading.timezone),
    )  # fmt: skip
    return chosen(rows, model=None, since=reading.since, until=reading.until)


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

    Tags are a list, a JSON list as text, or a text in which ``;`` or ``,`` parts them; the `most`
    frequent ones are kept. With `conflicts` there are runs with one trace_id and other values,
    which are left out.
    """
    used = mapped(columns, columns_of(source), source.name)
    if "tags" not in used:
        return None
    kind = source.columns[used["tags"]]
    if kind_of(kind) not in ("text", "texts"):
        raise InputError(f"{source.name}: column 'tags' holds {kind}, not texts or lists of texts")
    twice = {"conflicts": _conflicts(source.table, used)} if conflicts else {}
    rows = query(
        "tagged", rows=source.table, apart=APART, trace_id=used["trace_id"], tags=used["tags"],
        listed=kind_of(kind) == "texts", **twice,
    )  # fmt: skip
    counted = source.engine.run(query("tags", rows=rows))
    found = counted[TAG].tolist()[:most]
    return Tagged(
        source=replace(
            source,
            table=query("of_tags", rows=rows, tags=[{"tag": tag} for tag in found]),
            columns={**source.columns, RUN: "VARCHAR", TAG: "VARCHAR"},
            rejects=False,
            null_is_unreadable=False,
        ),
        columns={
            **columns,
            **dict.fromkeys(("tags", *SIGNALS)),
            "trace_id": RUN,
            "model": TAG,
        },
        left_out=len(counted) - len(found),
    )


def _conflicts(table: Relation, used: Mapping[str, str]) -> Query:
    """Return the ids of the runs that say two things under one trace_id."""
    others = [theirs for ours, theirs in used.items() if ours not in ("trace_id", "tags")]
    return query(
        "conflicts", rows=table, trace_id=used["trace_id"],
        others=[{"other": name} for name in others],
    )  # fmt: skip
