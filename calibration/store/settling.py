"""The adjudicator's own batch, and the labels of a trace once they have decided it blind."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibration.errors import InputError
from calibration.records import Evidence
from calibration.store.adjudication import (
    COUNTED,
    REOPENED,
    Blind,
    batch_token,
    blind_decision,
    check_item,
    counted_labels,
    standing_consensus,
)
from calibration.store.batches import Batch, add_batch, batches
from calibration.store.database import Cursor, Database, record_audit, rows, utc_now
from calibration.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledLabel:
    """One of the labels to settle."""

    event_id: str
    reviewer_id: str
    outcome: str
    answers: dict[str, str]
    rationale: str | None
    evidence: tuple[Evidence, ...]
    confidence: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """A trace that its adjudicator has decided blind, and what the reviewers said of it.

    `question` is where the labels part first, None where they agree; `flags` are the reasons of
    its flags, empty where none was given. `supersedes` is the consensus that stands (`standing`,
    its class) and was reopened, because labels changed since.
    """

    trace_id: str
    blind: Blind
    question: str | None
    labels: tuple[SettledLabel, ...]
    flags: tuple[str, ...]
    supersedes: str | None
    standing: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastStep:
    """What one undo would take back: an adjudication, or a skip (`outcome` None)."""

    trace_id: str
    outcome: str | None


def adjudication_batch(db: Database, adjudicator: str, batch_id: str) -> Batch | None:
    """Return the batch in which this person decides the traces of a production batch."""
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT batch_id FROM batch WHERE token = ?", [batch_token(batch_id, adjudicator)]
        ).fetchone()
    if found is None:
        return None
    return next(b for b in batches(db) if b.batch_id == found[0])


def serve_adjudication(
    db: Database, version: str, *, adjudicator: str, batch_id: str, trace_ids: Sequence[str]
) -> Batch | None:
    """Put these traces before an adjudicator, in this order; return the batch that holds them.

    What they have decided stays in it, everything else in it is replaced. Without traces and
    without an earlier call there is no batch.

    Raises
    ------
    InputError
        If a trace is not in the production batch, or the adjudicator is no lead.
    """
    wanted = list(dict.fromkeys(trace_ids))
    with db.read() as cursor:
        check_item(cursor, batch_id, wanted)
        _check_lead(cursor, adjudicator)
    batch = adjudication_batch(db, adjudicator, batch_id)
    if batch is None:
        if not wanted:
            return None
        return add_batch(
            db, purpose="adjudication", trace_ids=wanted, inclusion_probability=None,
            labels_wanted=1, design={"kind": "adjudication", "of": batch_id},
            token=batch_token(batch_id, adjudicator), reviewer_id=adjudicator,
        )  # fmt: skip
    with db.write() as cursor:
        items = _column(
            cursor, "SELECT trace_id FROM batch_item WHERE batch_id = ? ORDER BY position",
            [batch.batch_id],
        )  # fmt: skip
        decided = set(
            _column(
                cursor,
                "SELECT trace_id FROM label_current WHERE batch_id = ? AND taxonomy_version = ?",
                [batch.batch_id, version],
            )
        )
        waiting = [t for t in wanted if t not in decided]
        if [t for t in items if t not in decided] != waiting:
            _replace(cursor, batch.batch_id, [t for t in items if t in decided] + waiting)
            db.progress.forget_plan(batch.batch_id)
    return adjudication_batch(db, adjudicator, batch_id)


def _replace(cursor: Cursor, batch_id: str, trace_ids: list[str]) -> None:
    cursor.execute(
        "DELETE FROM batch_item WHERE batch_id = ? AND NOT list_contains(?::VARCHAR[], trace_id)",
        [batch_id, trace_ids],
    )
    if trace_ids:
        cursor.execute(
            "INSERT INTO batch_item SELECT ?, unnest(?::VARCHAR[]), unnest(range(?)), NULL, 1, "
            "NULL ON CONFLICT (batch_id, trace_id) DO UPDATE SET position = excluded.position",
            [batch_id, trace_ids, len(trace_ids)],
        )
    record_audit(cursor, "adjudication batch", batch_id=batch_id, n=len(trace_ids))


def _check_lead(cursor: Cursor, adjudicator: str) -> None:
    lead = cursor.execute(
        "SELECT 1 FROM reviewer WHERE reviewer_id = ? AND role IN ('lead', 'admin')", [adjudicator]
    ).fetchone()
    if lead is None:
        raise InputError(f"{adjudicator!r:.80} is no lead of this store")


def _column(cursor: Cursor, sql: str, values: list[Any]) -> list[Any]:
    return [row[0] for row in cursor.execute(sql, values).fetchall()]


def settlement(
    db: Database, taxonomy: Taxonomy, *, adjudicator: str, batch_id: str
) -> Settlement | None:
    """Return the trace that this adjudicator has decided blind and not settled yet.

    Of several the one that was touched last. It is written down that they are shown its labels.
    """
    version = taxonomy.version
    with db.write() as cursor:
        trace_id = _unsettled(cursor, version, adjudicator, batch_id)
        blind = trace_id and blind_decision(cursor, version, adjudicator, batch_id, trace_id)
        if not trace_id or not blind:
            return None
        cursor.execute(
            "INSERT INTO exposure VALUES (?, ?, 'labels', nextval('event_seq'), ?) "
            "ON CONFLICT (reviewer_id, trace_id, what) DO NOTHING",
            [adjudicator, trace_id, utc_now()],
        )
        labels = counted_labels(cursor, version, batch_id, trace_id)
        standing = standing_consensus(cursor, version, trace_id)
        flags = _column(
            cursor,
            "SELECT coalesce(reason, '') FROM flag_current WHERE batch_id = ? AND trace_id = ? "
            "ORDER BY seq",
            [batch_id, trace_id],
        )
    return Settlement(
        trace_id=trace_id,
        blind=blind,
        question=taxonomy.first_parting(label["outcome"] for label in labels),
        labels=tuple(_label(label) for label in labels),
        flags=tuple(flags),
        supersedes=None if standing is None else str(standing["event_id"]),
        standing=None if standing is None else standing["outcome"],
    )


def _unsettled(cursor: Cursor, version: str, adjudicator: str, batch_id: str) -> str | None:
    found = cursor.execute(
        f"WITH counted AS {COUNTED} SELECT l.trace_id FROM label_current l "
        "JOIN batch b ON b.batch_id = l.batch_id AND b.token = $token "
        "LEFT JOIN consensus c ON c.trace_id = l.trace_id AND c.taxonomy_version = $version "
        "WHERE l.reviewer_id = $adjudicator AND l.kind = 'label' "
        f"AND l.taxonomy_version = $version AND (c.event_id IS NULL OR {REOPENED}) "
        "ORDER BY greatest(l.seq, coalesce((SELECT max(a.seq) FROM adjudication_event a "
        "WHERE a.trace_id = l.trace_id), 0)) DESC LIMIT 1",
        {
            "batch": batch_id, "version": version, "adjudicator": adjudicator,
            "token": batch_token(batch_id, adjudicator),
        },
    ).fetchone()  # fmt: skip
    return None if found is None else str(found[0])


def _label(row: dict[str, Any]) -> SettledLabel:
    return SettledLabel(
        event_id=str(row["event_id"]),
        reviewer_id=row["reviewer_id"],
        outcome=row["outcome"],
        answers=json.loads(row["answers"] or "{}"),
        rationale=row["rationale"],
        evidence=tuple(Evidence(**part) for part in json.loads(row["evidence"] or "[]")),
        confidence=row["confidence"],
    )


def last_adjudication(
    db: Database, taxonomy: Taxonomy, *, adjudicator: str, batch_id: str
) -> LastStep | None:
    """Return what one undo would take back: the last adjudication that stands, or a later skip."""
    with db.read() as cursor:
        found = rows(
            cursor,
            "SELECT trace_id, outcome FROM (SELECT seq, trace_id, outcome FROM consensus "
            "WHERE adjudicator = $1 AND batch_id = $2 AND taxonomy_version = $3 UNION ALL "
            "SELECT seq, trace_id, NULL FROM label_current JOIN batch b USING (batch_id) "
            "WHERE b.token = $4 AND label_current.reviewer_id = $1 AND taxonomy_version = $3 "
            "AND kind = 'skip') ORDER BY seq DESC LIMIT 1",
            [adjudicator, batch_id, taxonomy.version, batch_token(batch_id, adjudicator)],
        )
    return LastStep(**found[0]) if found else None
