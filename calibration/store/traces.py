"""Traces in the store: an index row each, and the text in immutable Parquet parts."""

import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from itertools import count, product
from pathlib import Path
from typing import Any

import pyarrow as pa

from calibration.errors import InputError
from calibration.records import SOURCE_JUDGE, Trace
from calibration.store.database import Cursor, Database, record_audit, utc_now
from calibration.store.parts import parts_directory, write_part
from calibration.store.tools import ToolUse, forget_tools, insert_tools, tool_uses


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """What became of the traces of one import, by trace id.

    `changed` traces are stored with other content and were left as they are; `labelled` are
    those of them that carry labels.
    """

    imported: tuple[str, ...] = ()
    already_there: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    labelled: frozenset[str] = frozenset()
    possible_duplicates: dict[str, str] = field(default_factory=dict)

    def why_kept(self, trace_id: str) -> str:
        """Say what can be done about a changed trace."""
        if trace_id in self.labelled:
            return "it carries labels, so the stored one stays"
        return "`asr import --take-changed` takes the newer one"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """What the index keeps of a trace, and the Parquet part that holds its text."""

    trace_id: str
    source: str
    source_id: str
    trial: int
    content_hash: str
    workflow: str
    task_id: str
    task_key: str
    model: str | None
    agent_version: str | None
    status: str | None
    started_at: datetime | None
    latency_s: float | None
    cost_usd: float | None
    units: float
    total_tokens: int | None
    n_steps: int
    simulated: bool
    part: str
    tools: tuple[ToolUse, ...]


def ingest(db: Database, traces: Sequence[Trace], *, take_changed: bool = False) -> IngestResult:
    """Store the traces that are new; report the others.

    The same identity with the same content is already there. With other content it is
    `changed`: nothing is overwritten, unless `take_changed` asks for the newer one and nobody
    has labelled the older. Equal content under another identity is stored and marked as a
    possible duplicate.
    """
    # One import at a time: what is known must not change before the new traces are stored.
    with db.importing:
        return _ingest(
            db,
            [_index_row(trace) for trace in traces],
            take_changed=take_changed,
            write=lambda places: write_part(db.path, [traces[k] for k in places]),
        )


def ingest_written(
    db: Database, index: Sequence[IndexRow], *, take_changed: bool = False
) -> IngestResult:
    """Store traces whose text another process has written to parts already.

    Raises
    ------
    InputError
        If a part that a row names is not there.
    """
    for part in {row.part for row in index}:
        if part != Path(part).name or not (parts_directory(db.path) / part).is_file():
            raise InputError(f"part {part!r} of the traces is not there; import the files again")
    with db.importing:
        return _ingest(db, index, take_changed=take_changed, write=None)


def write_index(store: Path, traces: Sequence[Trace]) -> list[IndexRow]:
    """Write the text of traces to parts beside a store, without opening the store.

    A trace that occurs twice goes to two parts: a part holds an id once.
    """
    rounds: list[list[int]] = []
    times: Counter[str] = Counter()
    for place, trace in enumerate(traces):
        if times[trace.trace_id] == len(rounds):
            rounds.append([])
        rounds[times[trace.trace_id]].append(place)
        times[trace.trace_id] += 1
    parts: dict[int, str] = {}
    for places in rounds:
        part = write_part(store, [traces[k] for k in places])
        parts |= dict.fromkeys(places, part)
    return [replace(_index_row(trace), part=parts[k]) for k, trace in enumerate(traces)]


def _index_row(trace: Trace) -> IndexRow:
    return IndexRow(
        trace_id=trace.trace_id,
        source=trace.source,
        source_id=trace.source_id,
        trial=trace.trial,
        content_hash=trace.content_hash(),
        workflow=trace.workflow,
        task_id=trace.task_id,
        task_key=trace.task_key,
        model=trace.model,
        agent_version=trace.agent_version,
        status=trace.status,
        started_at=_utc(trace),
        latency_s=trace.latency_s,
        cost_usd=trace.cost_usd,
        units=trace.units,
        total_tokens=trace.total_tokens,
        n_steps=len(trace.steps),
        simulated=trace.simulated,
        part="",
        tools=tool_uses(trace),
    )


def _ingest(
    db: Database,
    index: Sequence[IndexRow],
    *,
    take_changed: bool,
    write: Callable[[list[int]], str] | None,
) -> IngestResult:
    """Decide what is new and store it; `write` writes the text of the rows at these places."""
    with db.read() as cursor:
        known, by_hash = _known(cursor, index)
        labelled = _labelled(cursor)
    fresh: dict[str, int] = {}
    replaced: dict[str, int] = {}
    already: list[str] = []
    changed: list[str] = []
    for place, row in enumerate(index):
        first = fresh.get(row.trace_id)
        stored = known.get(row.trace_id) or (None if first is None else index[first].content_hash)
        if stored is None:
            fresh[row.trace_id] = place
        elif stored == row.content_hash:
            already.append(row.trace_id)
        elif take_changed and row.trace_id in known and row.trace_id not in labelled:
            replaced[row.trace_id] = place
        else:
            changed.append(row.trace_id)
    duplicates: dict[str, str] = {}
    for trace_id, place in fresh.items():
        digest = index[place].content_hash
        if digest in by_hash:
            duplicates[trace_id] = by_hash[digest]
        by_hash.setdefault(digest, trace_id)
    places = [*replaced.values(), *fresh.values()]
    if places:
        part = None if write is None else write(places)
        with db.write() as cursor:
            # A label may have come in while the part was written.
            for trace_id in _labelled(cursor) & set(replaced):
                changed.append(trace_id)
                labelled.add(trace_id)
                del replaced[trace_id]
            taken = [index[k] for k in (*replaced.values(), *fresh.values())]
            if part is not None:
                taken = [replace(row, part=part) for row in taken]
            _insert_index(cursor, taken, duplicates, _make_room(cursor, list(replaced)))
            record_audit(cursor, "import", imported=len(fresh), replaced=list(replaced))
    return IngestResult(
        imported=tuple(fresh),
        already_there=tuple(already),
        changed=tuple(changed),
        replaced=tuple(replaced),
        labelled=frozenset(labelled & set(changed)),
        possible_duplicates=duplicates,
    )


def _known(cursor: Cursor, index: Sequence[IndexRow]) -> tuple[dict[str, str], dict[str, str]]:
    """Return stored hash by id for the given rows, and stored id by hash for all."""
    stored = cursor.execute("SELECT trace_id, content_hash FROM trace ORDER BY seq").fetchall()
    wanted = {row.trace_id for row in index}
    by_hash: dict[str, str] = {}
    for trace_id, digest in stored:
        by_hash.setdefault(digest, trace_id)
    return {trace_id: digest for trace_id, digest in stored if trace_id in wanted}, by_hash


def _labelled(cursor: Cursor) -> set[str]:
    found = cursor.execute("SELECT DISTINCT trace_id FROM label_event").fetchall()
    return {row[0] for row in found}


def _make_room(cursor: Cursor, trace_ids: list[str]) -> dict[str, int]:
    """Remove the index rows of traces that are replaced; return their place in the order.

    The grade that came with the old content goes too: the newer file brings its own.
    """
    if not trace_ids:
        return {}
    places = cursor.execute(
        "SELECT trace_id, seq FROM trace WHERE list_contains(?::VARCHAR[], trace_id)", [trace_ids]
    ).fetchall()
    cursor.execute("DELETE FROM trace WHERE list_contains(?::VARCHAR[], trace_id)", [trace_ids])
    forget_tools(cursor, trace_ids)
    cursor.execute(
        "DELETE FROM verdict WHERE list_contains(?::VARCHAR[], trace_id) "
        "AND starts_with(judge_id, ?)",
        [trace_ids, SOURCE_JUDGE],
    )
    return dict(places)


def _insert_index(
    cursor: Cursor,
    index: list[IndexRow],
    duplicates: dict[str, str],
    places: dict[str, int],
) -> None:
    tags = _agent_tags(cursor, index)
    now = utc_now()
    ((base,),) = cursor.execute("SELECT coalesce(max(seq), 0) FROM trace").fetchall()
    columns: dict[str, list[Any]] = {
        name.name: [getattr(row, name.name) for row in index]
        for name in fields(IndexRow)
        if name.name != "tools"
    }
    columns |= {
        "seq": [places.get(row.trace_id, base + k) for k, row in enumerate(index, 1)],
        "possible_duplicate_of": [duplicates.get(row.trace_id) for row in index],
        "agent_tag": [tags[_agent(row)] for row in index],
        "created_at": [now] * len(index),
    }
    types = {
        "possible_duplicate_of": pa.string(), "model": pa.string(), "status": pa.string(),
        "agent_version": pa.string(), "started_at": pa.timestamp("us"), "latency_s": pa.float64(),
        "cost_usd": pa.float64(), "total_tokens": pa.int64(),
    }  # fmt: skip
    table = pa.table({name: pa.array(v, type=types.get(name)) for name, v in columns.items()})
    cursor.register("incoming", table)
    cursor.execute("INSERT INTO trace BY NAME SELECT * FROM incoming")
    cursor.unregister("incoming")
    insert_tools(cursor, {row.trace_id: row.tools for row in index})


def _utc(trace: Trace) -> datetime | None:
    """Return the start in UTC; a time without a zone is UTC already, on every machine."""
    at = trace.started_at
    if at is None or at.tzinfo is None:
        return at
    return at.astimezone(UTC).replace(tzinfo=None)


def _agent(row: IndexRow) -> tuple[str, str]:
    return row.model or "", row.agent_version or ""


def _agent_tags(cursor: Cursor, index: Iterable[IndexRow]) -> dict[tuple[str, str], str]:
    """Give every model and version a neutral tag, the same for as long as the store lives."""
    tags = {
        (model, version): tag
        for model, version, tag in cursor.execute("SELECT * FROM agent").fetchall()
    }
    for agent in dict.fromkeys(map(_agent, index)):
        if agent not in tags:
            tags[agent] = _next_tag(set(tags.values()))
            cursor.execute("INSERT INTO agent VALUES (?, ?, ?)", [*agent, tags[agent]])
    return tags


def _next_tag(taken: set[str]) -> str:
    letters = (p for length in count(1) for p in product(string.ascii_lowercase, repeat=length))
    return next(tag for p in letters if (tag := "agent-" + "".join(p)) not in taken)
