"""Batches: traces that are labelled together."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from calibration.errors import InputError
from calibration.store.companions import NO_COMPANION
from calibration.store.database import Cursor, Database, record_audit, rows, utc_now

PURPOSES = ("practice", "exam", "production", "repeat", "adjudication")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Traces that are labelled together, and how they were drawn.

    `labels_wanted` is the most that any trace wants; with an overlap some want fewer. `reviewer_id`
    is the only person it is served to, `certificate` (any or private) what it demands; None: nobody
    in particular, nothing.
    """

    batch_id: str
    purpose: str
    labels_wanted: int
    n_items: int
    design: dict[str, Any]
    created_at: datetime
    reviewer_id: str | None = None
    certificate: str | None = None


def batches(db: Database) -> list[Batch]:
    """Return all batches but the companions of inserts, newest first."""
    with db.read() as cursor:
        found = rows(
            cursor,
            "SELECT batch_id, purpose, labels_wanted, design, created_at, reviewer_id, "
            "certificate, "
            "(SELECT count(*) FROM batch_item i WHERE i.batch_id = b.batch_id) AS n_items "
            f"FROM batch b WHERE {NO_COMPANION} ORDER BY rowid DESC",
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
    token: str | None = None,
    item_labels: Sequence[int] | None = None,
    item_probabilities: Sequence[float] | None = None,
    item_strata: Sequence[int] | None = None,
    reviewer_id: str | None = None,
    certificate: str | None = None,
) -> Batch:
    """Store a batch in the order given; traces are served in that order.

    `item_labels` and `item_probabilities` say for each trace what otherwise holds for all, and
    `item_strata` which stratum of the design it was drawn from. `reviewer_id` is the only person
    it is served to, `certificate` (any or private) what it demands of everybody. A batch that was
    stored under the same `token` is returned as it is.

    Raises
    ------
    InputError
        If the batch is empty, names a trace twice or one that is not in the store, or if its
        purpose, labels wanted or inclusion probability is none.
    """
    n = len(trace_ids)
    wanted = [labels_wanted] * n if item_labels is None else list(item_labels)
    drawn = [inclusion_probability] * n if item_probabilities is None else list(item_probabilities)
    strata = [None] * n if item_strata is None else list(item_strata)
    _check_batch(purpose, n, labels_wanted, wanted, drawn, certificate)
    if len(strata) != n:
        raise InputError(f"strata must be given for each of {n} traces, got {len(strata)}")
    with db.write() as cursor:
        stored = cursor.execute("SELECT batch_id FROM batch WHERE token = ?", [token]).fetchone()
        if stored:
            batch_id = stored[0]
        else:
            batch_id = insert_batch(
                cursor, purpose=purpose, trace_ids=trace_ids, labels_wanted=labels_wanted,
                design=design, token=token, reviewer_id=reviewer_id, certificate=certificate,
                wanted=wanted, drawn=drawn, strata=strata,
            )  # fmt: skip
    return next(b for b in batches(db) if b.batch_id == batch_id)


def insert_batch(
    cursor: Cursor,
    *,
    purpose: str,
    trace_ids: Sequence[str],
    labels_wanted: int,
    design: dict[str, Any],
    token: str | None,
    reviewer_id: str | None,
    certificate: str | None,
    wanted: Sequence[int],
    drawn: Sequence[float | None],
    strata: Sequence[int | None],
) -> str:
    """Store a batch in the transaction of something else and return its id."""
    _check_traces(cursor, trace_ids)
    (taken,) = cursor.execute(f"SELECT count(*) FROM batch WHERE {NO_COMPANION}").fetchone() or (0,)
    batch_id = f"{purpose}-{taken + 1:03d}"
    cursor.execute(
        "INSERT INTO batch (batch_id, purpose, labels_wanted, design, reviewer_id, "
        "certificate, token, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            batch_id, purpose, labels_wanted, json.dumps(design), reviewer_id, certificate,
            token, utc_now(),
        ],
    )  # fmt: skip
    cursor.execute(
        "INSERT INTO batch_item SELECT ?, unnest(?::VARCHAR[]), unnest(range(?)), "
        "unnest(?::DOUBLE[]), unnest(?::INTEGER[]), unnest(?::INTEGER[])",
        [batch_id, list(trace_ids), len(trace_ids), list(drawn), list(wanted), list(strata)],
    )
    record_audit(cursor, "batch", batch_id=batch_id, n=len(trace_ids), design=design)
    return batch_id


def _check_batch(
    purpose: str,
    n: int,
    most: int,
    wanted: Sequence[int],
    drawn: Sequence[float | None],
    certificate: str | None,
) -> None:
    if purpose not in PURPOSES:
        raise InputError(f"purpose must be one of {', '.join(PURPOSES)}, got {purpose!r}")
    if most < 1:
        raise InputError(f"labels wanted must be at least 1, got {most}")
    if n == 0:
        raise InputError("a batch needs at least one trace")
    if len(wanted) != n or len(drawn) != n:
        raise InputError(
            f"labels wanted and inclusion probabilities must be given for each of {n} traces, "
            f"got {len(wanted)} and {len(drawn)}"
        )
    if certificate not in (None, "any", "private"):
        raise InputError(f"certificate must be any or private, got {certificate!r:.40}")
    for count in wanted:
        if not 1 <= count <= most:
            raise InputError(f"labels wanted of a trace must be in [1, {most}], got {count}")
    for probability in drawn:
        if probability is not None and not 0 < probability <= 1:
            raise InputError(f"inclusion probability must be in (0, 1], got {probability}")


def _check_traces(cursor: Cursor, trace_ids: Sequence[str]) -> None:
    known = {row[0] for row in cursor.execute("SELECT trace_id FROM trace").fetchall()}
    seen: set[str] = set()
    for trace_id in trace_ids:
        if trace_id not in known:
            raise InputError(f"trace {trace_id!r} is not in the store")
        if trace_id in seen:
            raise InputError(f"trace {trace_id!r} is named twice; a batch holds a trace once")
        seen.add(trace_id)
