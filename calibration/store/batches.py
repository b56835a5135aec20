"""Batches and the queue: which trace a reviewer is given next."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from calibration.errors import InputError
from calibration.records import Draft, TraceForReview
from calibration.store.admission import check_admitted
from calibration.store.database import Cursor, Database, record_audit, rows, utc_now
from calibration.store.drafts import drafts as drafts_of
from calibration.store.inserted import NO_COMPANION, PutIn, companion, inserts_of
from calibration.store.leases import Leases, claim, due_leases
from calibration.store.progress import BatchProgress, DeskWork, Plan
from calibration.store.review import for_review

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What one reviewer is given now: the current trace first, then the ones after it.

    `state` is ``open``, ``waiting`` (others hold what is left; it may come back) or
    ``finished`` (nothing is left for this reviewer). `last` is trace and class (None: a skip) of
    what one undo would take back, `tags` are the reviewer's own, the most used first, and
    `pace_s` is the median active time of their last labels.
    """

    items: tuple[TraceForReview, ...]
    drafts: dict[str, Draft]
    done: int
    skipped: int
    total: int
    state: str
    purpose: str
    last: tuple[str, str | None] | None
    tags: list[str]
    pace_s: float | None


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


def queue(
    db: Database, reviewer_id: str, batch_id: str, taxonomy_version: str, limit: int
) -> Queue:
    """Claim the next traces for a reviewer and return them.

    A trace that was undone comes first, then what the reviewer already holds, then the order
    of the batch. What other reviewers hold counts as taken until their lease expires.

    Raises
    ------
    InputError
        If the batch or the reviewer is not in the store.
    NotAllowedError, UncertifiedReviewerError
        If the batch is served to somebody else, or asks for a certificate; see `check_admitted`.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    now = utc_now()
    with db.write() as cursor:
        plan = _admitted_plan(db, cursor, reviewer_id, batch_id, taxonomy_version, to_label=True)
        progress = db.progress.of(cursor, batch_id, taxonomy_version)
        own = progress.own[reviewer_id]
        leases = Leases.read(
            cursor,
            db.progress,
            batch_id=batch_id,
            companion_id=companion(batch_id),
            reviewer_id=reviewer_id,
            now=now,
        )
        put_in = PutIn.read(
            cursor,
            db.progress,
            leases,
            batch_id=batch_id,
            reviewer_id=reviewer_id,
            taxonomy_version=taxonomy_version,
            now=now,
        )
        work = DeskWork(own, put_in.apart)
        left = _left(progress.left(plan.wanted, reviewer_id), put_in.slots)
        taken = _taken(progress, plan, leases.others)
        counts = work.kinds
        decided = counts.total()
        in_order = put_in.in_order(left, taken, own.undone, decided)
        offered = list(islice(in_order, limit))
        due = due_leases([t for t in offered if t not in put_in.slots], leases.held, now)
        claim(cursor, batch_id, due, reviewer_id)
        put_in.claim(offered)
        last, tags, pace_s = work.latest(), work.own_tags(), work.pace()
        total = decided + len(left) + put_in.to_come(left, taken, offered)
    with db.read() as cursor:
        under = {t: companion(batch_id) if t in put_in.slots else batch_id for t in offered}
        drafts = drafts_of(cursor, reviewer_id, under)
    return Queue(
        items=tuple(for_review(db, offered)),
        drafts=drafts,
        done=counts["label"],
        skipped=counts["skip"],
        total=total,
        state="open" if offered else "waiting" if left else "finished",
        purpose=plan.purpose,
        last=None if last is None else (last[0], last[1].outcome),
        tags=tags,
        pace_s=pace_s,
    )


def _admitted_plan(
    db: Database,
    cursor: Cursor,
    reviewer_id: str,
    batch_id: str,
    taxonomy_version: str,
    *,
    to_label: bool,
) -> Plan:
    """Return the plan of a batch that a reviewer is let into."""
    db.progress.check_reviewer(cursor, reviewer_id)
    plan = db.progress.plan(cursor, batch_id)
    check_admitted(
        db,
        cursor,
        plan,
        reviewer_id=reviewer_id,
        batch_id=batch_id,
        taxonomy_version=taxonomy_version,
        to_label=to_label,
    )
    return plan


def _left(left: Mapping[str, None], put_in: Mapping[str, int]) -> Mapping[str, None]:
    """Return what is left of a batch without what is put in."""
    if left.keys().isdisjoint(put_in):
        return left
    return {t: None for t in left if t not in put_in}


def _taken(progress: BatchProgress, plan: Plan, others: Sequence[tuple[str, str]]) -> set[str]:
    """Return the traces that get all the labels they want from those who hold them."""
    holders = Counter(t for who, t in others if t not in progress.own[who].decided)
    labels, wanted = progress.labels, plan.wanted
    return {t for t, n in holders.items() if labels.get(t, 0) + n >= wanted.get(t, 0)}


def has_open_items(db: Database, reviewer_id: str, batch_id: str, taxonomy_version: str) -> bool:
    """Return whether this reviewer still has traces of the batch to label.

    Somebody without the certificate that a batch asks for still has them: what others say of
    the batch stays hidden.

    Raises
    ------
    NotAllowedError
        If the batch is served to somebody else.
    """
    with db.write() as cursor:
        plan = _admitted_plan(db, cursor, reviewer_id, batch_id, taxonomy_version, to_label=False)
        progress = db.progress.of(cursor, batch_id, taxonomy_version)
        slots, pending = inserts_of(cursor, db.progress, reviewer_id, batch_id, taxonomy_version)
        left = _left(progress.left(plan.wanted, reviewer_id), slots)
    return bool(left or pending)
