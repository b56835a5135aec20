"""Label events: appended, never changed; undo and correction are further events."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from calibration.errors import LabelRefusedError, TaxonomyError
from calibration.records import Evidence, LabelDraft, TraceForReview
from calibration.store.database import Cursor, Database, rows, utc_now
from calibration.store.traces import for_review
from calibration.taxonomy import Taxonomy

MAX_TEXT = 4_000


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
        answers or the evidence are incomplete, or if the token belongs to something else.
    """
    with db.read() as cursor:
        stored = _receipt(cursor, draft)
    if stored is not None:
        return stored
    try:
        outcome = taxonomy.outcome(draft.answers)
    except TaxonomyError as error:
        raise LabelRefusedError(f"the answers do not reach a class: {error}") from error
    _check_evidence(db, taxonomy, draft)
    with db.write() as cursor:
        # Again under the lock: the same label may be on its way in another thread.
        stored = _receipt(cursor, draft)
        if stored is not None:
            return stored
        _check_offered(cursor, draft.trace_id, draft.reviewer_id, draft.batch_id)
        if _current(cursor, draft.trace_id, draft.reviewer_id, draft.batch_id, taxonomy):
            raise LabelRefusedError(
                f"trace {draft.trace_id} already carries your label or skip; "
                "undo it before labelling again"
            )
        event_id = _append(
            cursor,
            taxonomy,
            kind="label",
            client_token=draft.client_token,
            trace_id=draft.trace_id,
            reviewer_id=draft.reviewer_id,
            batch_id=draft.batch_id,
            answers=json.dumps(draft.answers),
            outcome=outcome,
            rationale=_bounded(draft.rationale),
            evidence=json.dumps([asdict(e) for e in draft.evidence]),
            seconds_active=_duration(draft.seconds_active),
        )
        _drop_draft(cursor, draft.trace_id, draft.reviewer_id, draft.batch_id)
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
    """Pass over a trace, with the reason; it counts as non-response, not as a label."""
    if not reason.strip():
        raise LabelRefusedError("a skip needs a reason")
    with db.write() as cursor:
        if _known(cursor, client_token, "skip", reviewer_id, batch_id, trace_id):
            return
        _check_offered(cursor, trace_id, reviewer_id, batch_id)
        if _current(cursor, trace_id, reviewer_id, batch_id, taxonomy) is not None:
            raise LabelRefusedError(f"trace {trace_id} already carries your label or skip")
        _append(
            cursor,
            taxonomy,
            kind="skip",
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            reason=_bounded(reason),
        )
        _drop_draft(cursor, trace_id, reviewer_id, batch_id)


def record_undo(
    db: Database, taxonomy: Taxonomy, *, client_token: str, reviewer_id: str, batch_id: str
) -> str | None:
    """Take back the reviewer's latest label or skip of the batch; return its trace.

    Returns None when there is nothing to take back. The event stays: an undo is one more.
    """
    with db.write() as cursor:
        done = _known(cursor, client_token, "undo", reviewer_id, batch_id)
        if done is not None:
            return str(done["trace_id"])
        latest = _latest(cursor, taxonomy, reviewer_id, batch_id)
        if latest is None:
            return None
        _append(
            cursor,
            taxonomy,
            kind="undo",
            client_token=client_token,
            trace_id=latest["trace_id"],
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            supersedes=latest["event_id"],
        )
        return str(latest["trace_id"])


def last_label(
    db: Database, taxonomy: Taxonomy, reviewer_id: str, batch_id: str
) -> tuple[str, str | None] | None:
    """Return trace and class (None: a skip) of what one undo would take back."""
    with db.read() as cursor:
        latest = _latest(cursor, taxonomy, reviewer_id, batch_id)
    return None if latest is None else (latest["trace_id"], latest["outcome"])


def save_draft(
    db: Database, *, reviewer_id: str, trace_id: str, batch_id: str, answers: dict[str, str]
) -> None:
    """Keep the answers given so far, so that a reload goes on at the same question."""
    with db.write() as cursor:
        _check_offered(cursor, trace_id, reviewer_id, batch_id)
        cursor.execute(
            "INSERT INTO draft VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (batch_id, trace_id, reviewer_id) "
            "DO UPDATE SET answers = excluded.answers, updated_at = excluded.updated_at",
            [batch_id, trace_id, reviewer_id, json.dumps(answers), utc_now()],
        )


def acknowledged(db: Database, reviewer_id: str, batch_id: str, tokens: Sequence[str]) -> set[str]:
    """Return which of these client tokens of a reviewer the store holds."""
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT client_token FROM label_event WHERE reviewer_id = ? AND batch_id = ? "
            "AND list_contains(?::VARCHAR[], client_token)",
            [reviewer_id, batch_id, list(tokens)],
        ).fetchall()
    return {row[0] for row in found}


def _receipt(cursor: Cursor, draft: LabelDraft) -> LabelReceipt | None:
    event = _known(
        cursor, draft.client_token, "label", draft.reviewer_id, draft.batch_id, draft.trace_id
    )
    if event is None:
        return None
    return LabelReceipt(event_id=str(event["event_id"]), outcome=event["outcome"], duplicate=True)


def _known(
    cursor: Cursor,
    client_token: str,
    kind: str,
    reviewer_id: str,
    batch_id: str,
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
    meant = (kind, reviewer_id, batch_id, trace_id or event["trace_id"])
    if (event["kind"], event["reviewer_id"], event["batch_id"], event["trace_id"]) != meant:
        raise LabelRefusedError(f"the token {client_token!r} already stands for something else")
    return event


def _check_offered(cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str) -> None:
    """Require a lease, live or expired: it proves that the trace was shown."""
    offered = cursor.execute(
        "SELECT 1 FROM lease WHERE batch_id = ? AND trace_id = ? AND reviewer_id = ?",
        [batch_id, trace_id, reviewer_id],
    ).fetchone()
    if offered is None:
        raise LabelRefusedError(
            f"trace {trace_id!r} was not given to {reviewer_id!r} in batch {batch_id!r}"
        )


def _check_evidence(db: Database, taxonomy: Taxonomy, draft: LabelDraft) -> None:
    needed = [
        node.id
        for node in taxonomy.path(draft.answers)
        if node.evidence_on == draft.answers[node.id]
    ]
    if needed and not draft.evidence:
        raise LabelRefusedError(
            f"the answer to {needed[0]!r} needs a step and a quoted span as evidence"
        )
    if not draft.evidence:
        return
    shown = for_review(db, [draft.trace_id])
    for item in draft.evidence:
        if not item.quote.strip() or not _stands(item, _texts(shown, item)):
            raise LabelRefusedError(
                f"the quoted span does not stand in step {item.step_id!r}; quote it literally"
            )


def _stands(item: Evidence, texts: list[str]) -> bool:
    """Compare literally, but for the line ends that a browser selection rewrites."""
    quote = item.quote.replace("\r\n", "\n")
    return any(quote in text.replace("\r\n", "\n") for text in texts)


def _texts(shown: list[TraceForReview], item: Evidence) -> list[str]:
    if not shown:
        return []
    if item.step_id == "response":
        return [shown[0].response or ""]
    return [
        text
        for step in shown[0].steps
        if step.step_id == item.step_id
        for text in (step.content, step.arguments, step.result)
        if text
    ]


def _current(
    cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str, taxonomy: Taxonomy
) -> tuple[Any, ...] | None:
    return cursor.execute(
        "SELECT event_id FROM label_current WHERE trace_id = ? AND reviewer_id = ? "
        "AND batch_id = ? AND taxonomy_version = ?",
        [trace_id, reviewer_id, batch_id, taxonomy.version],
    ).fetchone()


def _latest(
    cursor: Cursor, taxonomy: Taxonomy, reviewer_id: str, batch_id: str
) -> dict[str, Any] | None:
    found = rows(
        cursor,
        "SELECT event_id, trace_id, outcome FROM label_current WHERE reviewer_id = ? "
        "AND batch_id = ? AND taxonomy_version = ? ORDER BY seq DESC LIMIT 1",
        [reviewer_id, batch_id, taxonomy.version],
    )
    return found[0] if found else None


def _append(cursor: Cursor, taxonomy: Taxonomy, **values: Any) -> str:
    """Append one event; its place in time is a sequence number, for clocks go backwards."""
    ((by_simulated, on_simulated),) = cursor.execute(
        "SELECT (SELECT simulated FROM reviewer WHERE reviewer_id = ?), "
        "(SELECT simulated FROM trace WHERE trace_id = ?)",
        [values["reviewer_id"], values["trace_id"]],
    ).fetchall()
    if by_simulated is None or on_simulated is None:
        raise LabelRefusedError(
            f"no reviewer {values['reviewer_id']!r} or no trace {values['trace_id']!r} in the store"
        )
    values |= {
        "taxonomy_version": taxonomy.version,
        "simulated": by_simulated or on_simulated,
        "created_at": utc_now(),
    }
    names = ", ".join(values)
    marks = ", ".join("?" * len(values))
    ((event_id,),) = cursor.execute(
        f"INSERT INTO label_event (seq, {names}) VALUES (nextval('event_seq'), {marks}) "
        "RETURNING event_id",
        list(values.values()),
    ).fetchall()
    return str(event_id)


def _drop_draft(cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str) -> None:
    cursor.execute(
        "DELETE FROM draft WHERE batch_id = ? AND trace_id = ? AND reviewer_id = ?",
        [batch_id, trace_id, reviewer_id],
    )


def _bounded(text: str | None) -> str | None:
    """Cut a text to what is kept of it, without what UTF-8 cannot hold."""
    if text is None:
        return None
    return text.strip()[:MAX_TEXT].encode(errors="replace").decode().strip() or None


def _duration(seconds: float | None) -> float | None:
    """Drop a time that no clock measured: a label is not refused for it."""
    return seconds if seconds is not None and 0 <= seconds < float("inf") else None
