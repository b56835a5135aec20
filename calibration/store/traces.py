"""Traces in the store: an index row each, and the text in immutable Parquet parts."""

import json
import os
import string
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from calibration.records import Attachment, Step, SubGoal, Trace, TraceForReview
from calibration.store.database import Cursor, Database, record_audit, rows, utc_now

# Small row groups of sorted ids: reading one trace touches one of them, whatever the part holds.
ROW_GROUP = 64
REVIEW_FIELDS = ("prompt", "inputs", "sub_goals", "steps", "response")


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """What became of the traces of one import, by trace id."""

    imported: tuple[str, ...] = ()
    already_there: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    possible_duplicates: dict[str, str] = field(default_factory=dict)


def ingest(db: Database, traces: Sequence[Trace]) -> IngestResult:
    """Store the traces that are new; report the others.

    The same identity with the same content is already there. With other content it is
    `changed` and nothing is overwritten. Equal content under another identity is stored and
    marked as a possible duplicate.
    """
    with db.read() as cursor:
        known, by_hash = _known(cursor, traces)
    fresh: dict[str, tuple[Trace, str]] = {}
    already: list[str] = []
    changed: list[str] = []
    for trace in traces:
        digest = trace.content_hash()
        stored = known.get(trace.trace_id) or fresh.get(trace.trace_id, (None, None))[1]
        if stored is None:
            fresh[trace.trace_id] = (trace, digest)
        else:
            (already if stored == digest else changed).append(trace.trace_id)
    duplicates: dict[str, str] = {}
    for trace_id, (_, digest) in fresh.items():
        if digest in by_hash:
            duplicates[trace_id] = by_hash[digest]
        by_hash.setdefault(digest, trace_id)
    if fresh:
        part = _write_part(db.path, [trace for trace, _ in fresh.values()])
        with db.write() as cursor:
            _insert_index(cursor, list(fresh.values()), duplicates, part)
            record_audit(cursor, "import", imported=len(fresh), part=part)
    return IngestResult(
        imported=tuple(fresh),
        already_there=tuple(already),
        changed=tuple(changed),
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


def parts_directory(store: Path) -> Path:
    """Return where the text of the traces of a store lies."""
    return store.with_suffix(".traces")


def _write_part(store: Path, traces: list[Trace]) -> str:
    """Write one Parquet part under a name made from its content, atomically."""
    ordered = sorted(traces, key=lambda trace: trace.trace_id)
    review, hidden = [], []
    for trace in ordered:
        everything = asdict(trace)
        review.append(_json({name: everything[name] for name in REVIEW_FIELDS}))
        hidden.append(_json({name: everything[name] for name in ("success_criteria", "metadata")}))
    ids = [trace.trace_id for trace in ordered]
    name = sha256("\n".join([*ids, *review, *hidden]).encode()).hexdigest()[:16] + ".parquet"
    directory = parts_directory(store)
    directory.mkdir(exist_ok=True)
    temporary = directory / f".{name}.{os.getpid()}"
    table = pa.table({"trace_id": ids, "review": review, "hidden": hidden})
    pq.write_table(table, temporary, row_group_size=ROW_GROUP, compression="zstd")
    with temporary.open("rb") as handle:
        os.fsync(handle.fileno())
    temporary.replace(directory / name)
    return name


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _insert_index(
    cursor: Cursor, items: list[tuple[Trace, str]], duplicates: dict[str, str], part: str
) -> None:
    tags = _agent_tags(cursor, [trace for trace, _ in items])
    now = utc_now()
    ((base,),) = cursor.execute("SELECT coalesce(max(seq), 0) FROM trace").fetchall()
    columns: dict[str, list[Any]] = {
        "trace_id": [t.trace_id for t, _ in items],
        "seq": list(range(base + 1, base + 1 + len(items))),
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
    at = trace.started_at
    return None if at is None else at.astimezone(UTC).replace(tzinfo=None)


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
            marks = ", ".join("?" * len(ids))
            bodies = dict(
                cursor.execute(
                    f"SELECT trace_id, review FROM read_parquet(?) WHERE trace_id IN ({marks})",
                    [str(parts_directory(db.path) / part), *ids],
                ).fetchall()
            )
            for head in heads:
                if head["trace_id"] in bodies:
                    found[head["trace_id"]] = _review(head, json.loads(bodies[head["trace_id"]]))
    return [found[trace_id] for trace_id in trace_ids if trace_id in found]


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
