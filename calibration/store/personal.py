"""Batches of one person: what an examination and a practice round have in common, and rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from calibration.errors import InputError
from calibration.records import REFERENCE_SOURCE, Trace
from calibration.store.batches import insert_batch
from calibration.store.database import Cursor, Database, rows
from calibration.store.traces import ingest


@dataclass(frozen=True, slots=True, kw_only=True)
class PracticeRound:
    """A practice batch of one person; finished when every trace is labelled."""

    batch_id: str
    n: int
    labelled: int
    finished_at: datetime | None


def take_in(db: Database, traces: Sequence[Trace]) -> None:
    """Add traces of the reference dataset that the store may lack.

    Raises
    ------
    InputError
        If a trace is none of it.
    """
    for trace in traces:
        # A reviewer's call: what it may add to the store is the dataset, nothing else.
        if trace.source != REFERENCE_SOURCE:
            raise InputError(f"trace {trace.trace_id!r:.80} is none of the reference dataset")
    if traces:
        ingest(db, traces)


def personal_batch(
    cursor: Cursor,
    purpose: str,
    reviewer_id: str,
    trace_ids: Sequence[str],
    design: Mapping[str, Any],
) -> str:
    """Store a batch that is served to one person only, and return its id."""
    n = len(trace_ids)
    if n == 0:
        raise InputError("a batch needs at least one trace")
    return insert_batch(
        cursor, purpose=purpose, trace_ids=trace_ids, labels_wanted=1, design=dict(design),
        token=None, reviewer_id=reviewer_id, certificate=None, wanted=[1] * n, drawn=[None] * n,
        strata=[None] * n,
    )  # fmt: skip


def start_practice(
    db: Database,
    version: str,
    *,
    reviewer_id: str,
    trace_ids: Sequence[str],
    traces: Sequence[Trace],
    design: Mapping[str, Any],
) -> PracticeRound:
    """Give a person a practice round; one that is not finished is returned instead."""
    take_in(db, traces)
    with db.write() as cursor:
        db.progress.check_reviewer(cursor, reviewer_id)
        for found in _rounds(cursor, version, reviewer_id):
            if found.finished_at is None:
                return found
        batch_id = personal_batch(cursor, "practice", reviewer_id, trace_ids, design)
        return next(r for r in _rounds(cursor, version, reviewer_id) if r.batch_id == batch_id)


def practice_rounds(db: Database, version: str, reviewer_id: str) -> list[PracticeRound]:
    """Return the practice rounds of a person, oldest first."""
    with db.read() as cursor:
        return _rounds(cursor, version, reviewer_id)


def _rounds(cursor: Cursor, version: str, reviewer_id: str) -> list[PracticeRound]:
    found = rows(
        cursor,
        "SELECT b.batch_id, "
        "(SELECT count(*) FROM batch_item i WHERE i.batch_id = b.batch_id) AS n, "
        "count(c.trace_id) AS labelled, max(c.created_at) AS finished_at FROM batch b "
        "LEFT JOIN label_current c ON c.batch_id = b.batch_id AND c.reviewer_id = $who "
        "AND c.taxonomy_version = $version AND c.kind = 'label' "
        "WHERE b.purpose = 'practice' AND b.reviewer_id = $who "
        "GROUP BY b.batch_id, b.rowid ORDER BY b.rowid",
        {"who": reviewer_id, "version": version},
    )
    return [
        PracticeRound(
            **row | {"finished_at": row["finished_at"] if row["labelled"] == row["n"] else None}
        )
        for row in found
    ]
