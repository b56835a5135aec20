"""Label events: appended, never changed; undo and correction are further events."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from calibration.errors import LabelRefusedError, TaxonomyError
from calibration.records import LabelDraft
from calibration.store import drafts
from calibration.store.admission import check_may_skip
from calibration.store.companions import batch_of, both
from calibration.store.database import Cursor, Database, rows, utc_now
from calibration.store.label_checks import bounded, check_label, clean_tags, duration
from calibration.store.leases import check_offered, end_lease
from calibration.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelReceipt:
    """Proof that a label is stored; `duplicate` when it already was."""

    event_id: str
    outcome: str
    duplicate: bool


def record_label(db: Database, taxonomy: Taxonomy, draft: LabelDraft) -> LabelReceipt:
    """Store a label once, however often it is sent.

    Raises
    ------
    LabelRefusedError
        If the trace was never given to this reviewer, already carries their label, if the
        answers or the evidence are incomplete, if confidence, tags or sub-goals are none, or
        if the token belongs to something else.
    """
    try:
        outcome = taxonomy.outcome(draft.answers)
        check_label(db, taxonomy, draft)
        tags = clean_tags(draft.tags)
    except (LabelRefusedError, TaxonomyError) as error:
        # What was stored stays stored, whatever has become of the tree since.
        with db.read() as cursor:
            stored = _receipt(cursor, _led(cursor, taxonomy, draft))
        if stored is not None:
            return stored
        if isinstance(error, LabelRefusedError):
            raise
        raise LabelRefusedError(f"the answers do not reach a class: {error}") from error
    with db.write() as cursor:
        draft = _led(cursor, taxonomy, draft)
        stored = _receipt(cursor, draft)
        if stored is not None:
            return stored
        check_offered(cursor, draft.trace_id, draft.reviewer_id, draft.batch_id)
        if _decided(db, cursor, taxonomy, draft.trace_id, draft.reviewer_id, draft.batch_id):
            raise LabelRefusedError(
                f"trace {draft.trace_id} already carries your label or skip; "
                "undo it before labelling again"
            )
        event_id = append(
            cursor,
            taxonomy,
            kind="label",
            client_token=draft.client_token,
            trace_id=draft.trace_id,
            reviewer_id=draft.reviewer_id,
            batch_id=draft.batch_id,
            answers=json.dumps(draft.answers),
            outcome=outcome,
            rationale=bounded(draft.rationale),
            evidence=json.dumps([asdict(e) for e in draft.evidence]),
            confidence=draft.confidence,
            tags=json.dumps(tags),
            sub_goals=json.dumps(draft.sub_goals),
            seconds_active=duration(draft.seconds_active),
        )
        drafts.drop(cursor, draft.trace_id, draft.reviewer_id, draft.batch_id)
        end_lease(cursor, draft.batch_id, draft.trace_id, draft.reviewer_id)
    return LabelReceipt(event_id=event_id, outcome=outcome, duplicate=False)


def record_skip(
    db: Database,
    taxonomy: Taxonomy,
    *,
    client_token: str,
    trace_id: str,
    reviewer_id: str,
    batch_id: str,
    reason: str,
) -> None:
    """Pass over a trace, with the reason; it counts as non-response, not as a label.

    The draft stays, for the skip may be undone.
    """
    if not reason.strip():
        raise LabelRefusedError("a skip needs a reason")
    with db.write() as cursor:
        batch_id = batch_of(cursor, trace_id, reviewer_id, batch_id, taxonomy.version)
        if known(cursor, client_token, "skip", reviewer_id, [batch_id], trace_id):
            return
        check_may_skip(cursor, batch_id)
        check_offered(cursor, trace_id, reviewer_id, batch_id)
        if _decided(db, cursor, taxonomy, trace_id, reviewer_id, batch_id):
            raise LabelRefusedError(f"trace {trace_id} already carries your label or skip")
        append(
            cursor,
            taxonomy,
            kind="skip",
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            reason=bounded(reason),
        )
        end_lease(cursor, batch_id, trace_id, reviewer_id)


def acknowledged(db: Database, reviewer_id: str, batch_id: str, tokens: Sequence[str]) -> set[str]:
    """Return which of these client tokens of a reviewer the store holds."""
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT client_token FROM label_event WHERE reviewer_id = $1 AND batch_id IN ($2, $3) "
            "AND list_contains($4::VARCHAR[], client_token) "
            "UNION ALL SELECT client_token FROM flag_event WHERE reviewer_id = $1 "
            "AND batch_id IN ($2, $3) AND list_contains($4::VARCHAR[], client_token)",
            [reviewer_id, *both(batch_id), list(tokens)],
        ).fetchall()
    return {row[0] for row in found}


def _led(cursor: Cursor, taxonomy: Taxonomy, draft: LabelDraft) -> LabelDraft:
    """Return a label under the batch that it is stored under."""
    named = draft.trace_id, draft.reviewer_id, draft.batch_id
    return replace(draft, batch_id=batch_of(cursor, *named, taxonomy.version))


def _receipt(cursor: Cursor, draft: LabelDraft) -> LabelReceipt | None:
    event = known(
        cursor, draft.client_token, "label", draft.reviewer_id, [draft.batch_id], draft.trace_id
    )
    if event is None:
        return None
    return LabelReceipt(event_id=str(event["event_id"]), outcome=event["outcome"], duplicate=True)


def known(
    cursor: Cursor,
    client_token: str,
    kind: str,
    reviewer_id: str,
    batch_ids: Sequence[str],
    trace_id: str | None = None,
) -> dict[str, Any] | None:
    """Return the event that a token already stands for.

    A token that stands for anything else is refused: its sender must not take the receipt of
    another label for their own, nor see its class.
    """
    found = rows(
        cursor,
        "SELECT event_id, kind, reviewer_id, batch_id, trace_id, outcome FROM label_event "
        "WHERE client_token = ?",
        [client_token],
    )
    if not found:
        return None
    event = found[0]
    meant = (kind, reviewer_id, trace_id or event["trace_id"])
    stands_for = (event["kind"], event["reviewer_id"], event["trace_id"])
    if stands_for != meant or event["batch_id"] not in batch_ids:
        raise LabelRefusedError(f"the token {client_token!r} already stands for something else")
    return event


def _decided(
    db: Database,
    cursor: Cursor,
    taxonomy: Taxonomy,
    trace_id: str,
    reviewer_id: str,
    batch_id: str,
) -> bool:
    progress = db.progress.of(cursor, batch_id, taxonomy.version)
    return trace_id in progress.own[reviewer_id].decided


def append(cursor: Cursor, taxonomy: Taxonomy, **values: Any) -> str:
    """Append one event; its place in time is a sequence number, for clocks go backwards."""
    values |= {"taxonomy_version": taxonomy.version, "created_at": utc_now()}
    names = ", ".join(values)
    marks = ", ".join("?" * len(values))
    stored = cursor.execute(
        f"INSERT INTO label_event (seq, simulated, {names}) "
        f"SELECT nextval('event_seq'), r.simulated OR t.simulated, {marks} "
        "FROM reviewer r, trace t WHERE r.reviewer_id = ? AND t.trace_id = ? RETURNING event_id",
        [*values.values(), values["reviewer_id"], values["trace_id"]],
    ).fetchone()
    if stored is None:
        raise LabelRefusedError(
            f"no reviewer {values['reviewer_id']!r} or no trace {values['trace_id']!r} in the store"
        )
    return str(stored[0])
