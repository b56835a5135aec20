"""Batches and the queue: which trace a reviewer is given next."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from calibration.errors import InputError
from calibration.records import TraceForReview
from calibration.store.database import Cursor, Database, record_audit, rows, utc_now
from calibration.store.traces import for_review

LEASE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Traces that are labelled together, and how they were drawn."""

    batch_id: str
    purpose: str
    labels_wanted: int
    n_items: int
    design: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What one reviewer is given now: the current trace first, then the ones after it.

    `state` is ``open``, ``waiting`` (others hold what is left; it may come back) or
    ``finished`` (nothing is left for this reviewer).
    """

    items: tuple[TraceForReview, ...]
    drafts: dict[str, dict[str, str]]
    done: int
    skipped: int
    total: int
    state: str


def batches(db: Database) -> list[Batch]:
    """Return all batches, newest first."""
    with db.read() as cursor:
        found = rows(
            cursor,
            "SELECT batch_id, purpose, labels_wanted, design, created_at, "
            "(SELECT count(*) FROM batch_item i WHERE i.batch_id = b.batch_id) AS n_items "
            "FROM batch b ORDER BY created_at DESC, batch_id DESC",
        )
    return [Batch(**(row | {"design": json.loads(row["design"])})) for row in found]


def add_batch(
    db: Database,
    *,
    purpose: str,
    trace_ids: Sequence[str],
    inclusion_probability: float | None,
    labels_wanted: int,
    design: dict[str, Any],
) -> Batch:
    """Store a batch in the order given; traces are served in that order."""
    if labels_wanted < 1:
        raise InputError(f"labels wanted must be at least 1, got {labels_wanted}")
    with db.write() as cursor:
        (taken,) = cursor.execute("SELECT count(*) FROM batch").fetchone() or (0,)
        batch_id = f"{purpose}-{taken + 1:03d}"
        cursor.execute(
            "INSERT INTO batch VALUES (?, ?, ?, ?, ?)",
            [batch_id, purpose, labels_wanted, json.dumps(design), utc_now()],
        )
        cursor.execute(
            "INSERT INTO batch_item SELECT ?, unnest(?::VARCHAR[]), unnest(range(?)), ?",
            [batch_id, list(trace_ids), len(trace_ids), inclusion_probability],
        )
        record_audit(cursor, "batch", batch_id=batch_id, n=len(trace_ids), design=design)
    return next(b for b in batches(db) if b.batch_id == batch_id)


# Everything of the batch this reviewer has not decided, with what decides its place in the
# queue. `room` is what is still wanted after current labels and live leases of the others.
_OPEN_ITEMS = """
WITH current AS (
  SELECT * FROM label_current WHERE batch_id = $batch AND taxonomy_version = $taxonomy
), others AS (
  SELECT trace_id, count(*) AS n FROM (
    SELECT trace_id, reviewer_id FROM current WHERE reviewer_id <> $reviewer AND kind = 'label'
    UNION
    SELECT trace_id, reviewer_id FROM lease
    WHERE batch_id = $batch AND reviewer_id <> $reviewer AND expires_at > $now
      AND (trace_id, reviewer_id) NOT IN (SELECT trace_id, reviewer_id FROM current)
  ) GROUP BY trace_id
), undone AS (
  SELECT trace_id, max(seq) AS seq FROM label_event
  WHERE batch_id = $batch AND reviewer_id = $reviewer AND kind = 'undo' GROUP BY trace_id
)
SELECT i.trace_id, l.expires_at, b.labels_wanted - coalesce(o.n, 0) AS room
FROM batch_item i JOIN batch b USING (batch_id)
LEFT JOIN others o USING (trace_id)
LEFT JOIN undone u USING (trace_id)
LEFT JOIN lease l ON l.batch_id = i.batch_id AND l.trace_id = i.trace_id
  AND l.reviewer_id = $reviewer
WHERE i.batch_id = $batch
  AND i.trace_id NOT IN (SELECT trace_id FROM current WHERE reviewer_id = $reviewer)
ORDER BY u.seq DESC NULLS LAST, (l.expires_at > $now) DESC NULLS LAST, i.position
"""


def queue(
    db: Database, reviewer_id: str, batch_id: str, taxonomy_version: str, limit: int
) -> Queue:
    """Claim the next traces for a reviewer and return them.

    A trace that was undone comes first, then what the reviewer already holds, then the order
    of the batch. What other reviewers hold counts as taken until their lease expires.
    """
    now = utc_now()
    values = {
        "batch": batch_id, "reviewer": reviewer_id, "taxonomy": taxonomy_version, "now": now,
    }  # fmt: skip
    with db.write() as cursor:
        open_items = cursor.execute(_OPEN_ITEMS, values).fetchall()
        mine = [(trace_id, expires) for trace_id, expires, room in open_items if room > 0][:limit]
        for trace_id, expires in mine:
            if expires is None or expires - now < LEASE * 0.9:
                _claim(cursor, batch_id, trace_id, reviewer_id, now)
        counts = _counts(cursor, reviewer_id, batch_id, taxonomy_version)
        drafts = cursor.execute(
            "SELECT trace_id, answers FROM draft WHERE batch_id = ? AND reviewer_id = ?",
            [batch_id, reviewer_id],
        ).fetchall()
        full = _full(cursor, reviewer_id, batch_id, taxonomy_version)
    ids = [trace_id for trace_id, _ in mine]
    left = [trace_id for trace_id, _, _ in open_items if trace_id not in full]
    return Queue(
        items=tuple(for_review(db, ids)),
        drafts={trace_id: json.loads(text) for trace_id, text in drafts if trace_id in ids},
        done=counts["label"],
        skipped=counts["skip"],
        total=counts["label"] + counts["skip"] + len(left),
        state="open" if ids else "waiting" if left else "finished",
    )


def _claim(cursor: Cursor, batch_id: str, trace_id: str, reviewer_id: str, now: datetime) -> None:
    cursor.execute(
        "INSERT INTO lease VALUES (?, ?, ?, ?) ON CONFLICT (batch_id, trace_id, reviewer_id) "
        "DO UPDATE SET expires_at = excluded.expires_at",
        [batch_id, trace_id, reviewer_id, now + LEASE],
    )


def _counts(cursor: Cursor, reviewer_id: str, batch_id: str, version: str) -> dict[str, int]:
    counted = cursor.execute(
        "SELECT kind, count(*) FROM label_current WHERE batch_id = ? AND reviewer_id = ? "
        "AND taxonomy_version = ? GROUP BY kind",
        [batch_id, reviewer_id, version],
    ).fetchall()
    return {"label": 0, "skip": 0} | dict(counted)


def _full(cursor: Cursor, reviewer_id: str, batch_id: str, version: str) -> set[str]:
    """Return the traces that have all their labels from other reviewers."""
    found = cursor.execute(
        "SELECT trace_id FROM label_current JOIN batch USING (batch_id) "
        "WHERE batch_id = ? AND reviewer_id <> ? AND taxonomy_version = ? AND kind = 'label' "
        "GROUP BY trace_id, labels_wanted HAVING count(*) >= labels_wanted",
        [batch_id, reviewer_id, version],
    ).fetchall()
    return {row[0] for row in found}
