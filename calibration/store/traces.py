"""Traces in the store: an index row each, and the text in immutable Parquet parts."""

import json
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, product
from typing import Any

import pyarrow as pa

from calibration.records import SOURCE_JUDGE, Attachment, Step, SubGoal, Trace, TraceForReview
from calibration.store.database import Cursor, Database, record_audit, rows, utc_now
from calibration.store.parts import parts_directory, read_part, write_part


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


def ingest(db: Database, traces: Sequence[Trace], *, take_changed: bool = False) -> IngestResult:
    """Store the traces that are new; report the others.

    The same identity with the same content is already there. With other content it is
    `changed`: nothing is overwritten, unless `take_changed` asks for the newer one and nobody
    has labelled the older. Equal content under another identity is stored and marked as a
    possible duplicate.
    """
    # One import at a time: what is known must not change before the new traces are stored.
    with db.importing:
        return _ingest(db, traces, take_changed=take_changed)


def _ingest(db: Database, traces: Sequence[Trace], *, take_changed: bool) -> IngestResult:
    with db.read() as cursor:
        known, by_hash = _known(cursor, traces)
        labelled = _labelled(cursor)
    fresh: dict[str, tuple[Trace, str]] = {}
    replaced: dict[str, tuple[Trace, str]] = {}
    already: list[str] = []
    changed: list[str] = []
    for trace in traces:
        digest = trace.content_hash()
        stored = known.get(trace.trace_id) or fresh.get(trace.trace_id, (None, None))[1]
        if stored is None:
            fresh[trace.trace_id] = (trace, digest)
        elif stored == digest:
            already.append(trace.trace_id)
        elif take_changed and trace.trace_id in known and trace.trace_id not in labelled:
            replaced[trace.trace_id] = (trace, digest)
        else:
            changed.append(trace.trace_id)
    duplicates: dict[str, str] = {}
    for trace_id, (_, digest) in fresh.items():
        if digest in by_hash:
            duplicates[trace_id] = by_hash[digest]
        by_hash.setdefault(digest, trace_id)
    written = [*replaced.values(), *fresh.values()]
    if written:
        part = write_part(db.path, [trace for trace, _ in written])
        with db.write() as cursor:
            # A label may have come in while the part was written.
            for trace_id in _labelled(cursor) & set(replaced):
                changed.append(trace_id)
                labelled.add(trace_id)
                del replaced[trace_id]
            written = [*replaced.values(), *fresh.values()]
            places = _make_room(cursor, list(replaced))
            _insert_index(cursor, written, duplicates, part, places)
            record_audit(cursor, "import", imported=len(fresh), replaced=list(replaced), part=part)
    return IngestResult(
        imported=tuple(fresh),
        already_there=tuple(already),
        changed=tuple(changed),
        replaced=tuple(replaced),
        labelled=frozenset(labelled & set(changed)),
        possible_duplicates=duplicates,
    )


def _known(cursor: Cursor, traces: Sequence[Trace]) -> tuple[dict[str, str], dict[str, str]]:
    """Return stored hash by id for the given traces, and stored id by hash for all."""
    stored = cursor.execute("SELECT trace_id, content_hash FROM trace ORDER BY seq").fetchall()
    wanted = {trace.trace_id for trace in traces}
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
    cursor.execute(
        "DELETE FROM verdict WHERE list_contains(?::VARCHAR[], trace_id) "
        "AND starts_with(judge_id, ?)",
        [trace_ids, SOURCE_JUDGE],
    )
    return dict(places)


def _insert_index(
    cursor: Cursor,
    items: list[tuple[Trace, str]],
    duplicates: dict[str, str],
    part: str,
    places: dict[str, int],
) -> None:
    tags = _agent_tags(cursor, [trace for trace, _ in items])
    now = utc_now()
    ((base,),) = cursor.execute("SELECT coalesce(max(seq), 0) FROM trace").fetchall()
    columns: dict[str, list[Any]] = {
        "trace_id": [t.trace_id for t, _ in items],
        "seq": [places.get(t.trace_id, base + k) for k, (t, _) in enumerate(items, 1)],
        "source": [t.source for t, _ in items],
        "source_id": [t.source_id for t, _ in items],
        "trial": [t.trial for t, _ in items],
        "content_hash": [digest for _, digest in items],
        "possible_duplicate_of": [duplicates.get(t.trace_id) for t, _ in items],
        "workflow": [t.workflow for t, _ in items],
        "task_id": [t.task_id for t, _ in items],
        "task_key": [t.task_key for t, _ in items],
        "model": [t.model for t, _ in items],
        "agent_version": [t.agent_version for t, _ in items],
        "agent_tag": [tags[_agent(t)] for t, _ in items],
        "status": [t.status for t, _ in items],
        "started_at": [_utc(t) for t, _ in items],
        "latency_s": [t.latency_s for t, _ in items],
        "cost_usd": [t.cost_usd for t, _ in items],
        "units": [t.units for t, _ in items],
        "total_tokens": [t.total_tokens for t, _ in items],
        "n_steps": [len(t.steps) for t, _ in items],
        "simulated": [t.simulated for t, _ in items],
        "part": [part] * len(items),
        "created_at": [now] * len(items),
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


def _utc(trace: Trace) -> datetime | None:
    """Return the start in UTC; a time without a zone is UTC already, on every machine."""
    at = trace.started_at
    if at is None or at.tzinfo is None:
        return at
    return at.astimezone(UTC).replace(tzinfo=None)


def _agent(trace: Trace) -> tuple[str, str]:
    return trace.model or "", trace.agent_version or ""


def _agent_tags(cursor: Cursor, traces: Iterable[Trace]) -> dict[tuple[str, str], str]:
    """Give every model and version a neutral tag, the same for as long as the store lives."""
    tags = {
        (model, version): tag
        for model, version, tag in cursor.execute("SELECT * FROM agent").fetchall()
    }
    for agent in dict.fromkeys(map(_agent, traces)):
        if agent not in tags:
            tags[agent] = _next_tag(set(tags.values()))
            cursor.execute("INSERT INTO agent VALUES (?, ?, ?)", [*agent, tags[agent]])
    return tags


def _next_tag(taken: set[str]) -> str:
    letters = (p for length in count(1) for p in product(string.ascii_lowercase, repeat=length))
    return next(tag for p in letters if (tag := "agent-" + "".join(p)) not in taken)


def for_review(db: Database, trace_ids: Sequence[str]) -> list[TraceForReview]:
    """Return what a labelling reviewer may see of these traces, in the order asked for."""
    if not trace_ids:
        return []
    with db.read() as cursor:
        heads = rows(
            cursor,
            "SELECT trace_id, workflow, status, agent_tag, latency_s, part FROM trace "
            "WHERE list_contains(?, trace_id)",
            [list(trace_ids)],
        )
        found: dict[str, TraceForReview] = {}
        for part in {head["part"] for head in heads}:
            ids = [head["trace_id"] for head in heads if head["part"] == part]
            bodies = _bodies(db, cursor, part, ids)
            for head in heads:
                if head["part"] == part:
                    found[head["trace_id"]] = _review(head, bodies[head["trace_id"]])
    return [found[trace_id] for trace_id in trace_ids if trace_id in found]


def _bodies(db: Database, cursor: Cursor, part: str, ids: list[str]) -> dict[str, dict[str, Any]]:
    """Return the text of traces of a part, from memory if it was just shown.

    The queue asks for the same few traces after every answer. A part never changes: its name
    is made from its content.
    """
    found = {i: body for i in ids if (body := db.shown.get((part, i))) is not None}
    missing = [i for i in ids if i not in found]
    if missing:
        for trace_id, text in read_part(cursor, parts_directory(db.path) / part, missing).items():
            found[trace_id] = json.loads(text)
            db.shown.put((part, trace_id), found[trace_id])
    return found


def _review(head: dict[str, Any], body: dict[str, Any]) -> TraceForReview:
    return TraceForReview(
        trace_id=head["trace_id"],
        workflow=head["workflow"],
        status=head["status"],
        agent=head["agent_tag"],
        latency_s=head["latency_s"],
        prompt=body["prompt"],
        inputs=tuple(Attachment(**item) for item in body["inputs"]),
        sub_goals=tuple(SubGoal(**item) for item in body["sub_goals"]),
        steps=tuple(Step(**item) for item in body["steps"]),
        response=body["response"],
    )
