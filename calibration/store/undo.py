"""Taking labels and skips back: an undo is one more event, nothing is ever removed."""

import json
from dataclasses import replace

from calibration.errors import LabelRefusedError
from calibration.records import Draft
from calibration.store import drafts
from calibration.store.admission import check_not_ended
from calibration.store.companions import both, companion, give_back
from calibration.store.database import Cursor, Database, rows
from calibration.store.drafts import draft_of
from calibration.store.label_checks import bounded
from calibration.store.labels import append, known
from calibration.store.leases import claim
from calibration.store.progress import DeskWork
from calibration.taxonomy import Taxonomy


def record_undo(
    db: Database, taxonomy: Taxonomy, *, client_token: str, reviewer_id: str, batch_id: str
) -> str | None:
    """Take back the reviewer's latest label or skip of the batch; return its trace.

    Returns None when there is nothing to take back. The event stays: an undo is one more. The
    questions are asked again; what else the label held is the draft then.
    """
    with db.write() as cursor:
        done = known(cursor, client_token, "undo", reviewer_id, both(batch_id))
        if done is not None:
            return str(done["trace_id"])
        check_not_ended(cursor, reviewer_id, batch_id, taxonomy.version)
        latest = DeskWork(
            *(
                db.progress.of(cursor, of, taxonomy.version).own[reviewer_id]
                for of in both(batch_id)
            )
        ).latest()
        if latest is None:
            return None
        trace_id, decision, put_in = latest
        under = companion(batch_id) if put_in else batch_id
        append(
            cursor,
            taxonomy,
            kind="undo",
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=under,
            supersedes=decision.event_id,
        )
        if decision.kind == "label":
            held = replace(_held(cursor, decision.event_id), answers={})
            drafts.keep(cursor, trace_id, reviewer_id, under, held)
        claim(cursor, under, [trace_id], reviewer_id)
        if not put_in:
            give_back(cursor, trace_id, reviewer_id, batch_id, taxonomy.version)
        return trace_id


def reopen(
    db: Database,
    taxonomy: Taxonomy,
    *,
    client_token: str,
    reviewer_id: str,
    batch_id: str,
    trace_id: str,
    reason: str,
) -> None:
    """Take back one's label of a trace, with the reason; what it held is the draft then.

    The trace comes first in the queue, under a new lease.

    Raises
    ------
    LabelRefusedError
        If there is no reason, or no label of this reviewer on the trace.
    """
    if not reason.strip():
        raise LabelRefusedError("reopening a label needs a reason")
    with db.write() as cursor:
        if known(cursor, client_token, "undo", reviewer_id, both(batch_id), trace_id):
            return
        check_not_ended(cursor, reviewer_id, batch_id, taxonomy.version)
        found = cursor.execute(
            "SELECT event_id, batch_id FROM label_current WHERE reviewer_id = ? "
            "AND batch_id IN (?, ?) AND trace_id = ? AND taxonomy_version = ? AND kind = 'label' "
            "ORDER BY seq DESC LIMIT 1",
            [reviewer_id, *both(batch_id), trace_id, taxonomy.version],
        ).fetchone()
        if found is None:
            raise LabelRefusedError(f"trace {trace_id!r:.80} carries no label of yours")
        event_id, under = found
        append(
            cursor,
            taxonomy,
            kind="undo",
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=under,
            reason=bounded(reason),
            supersedes=event_id,
        )
        drafts.keep(cursor, trace_id, reviewer_id, under, _held(cursor, event_id))
        claim(cursor, under, [trace_id], reviewer_id)
        if under == batch_id:
            give_back(cursor, trace_id, reviewer_id, batch_id, taxonomy.version)


def _held(cursor: Cursor, event_id: str) -> Draft:
    """Return what a label holds beside its class, as a draft."""
    (label,) = rows(
        cursor,
        "SELECT answers, rationale, evidence, confidence, tags, sub_goals FROM label_event "
        "WHERE event_id = ?",
        [event_id],
    )
    empty = {"answers": "{}", "evidence": "[]", "tags": "[]", "sub_goals": "{}"}
    return draft_of(label | {name: json.loads(label[name] or none) for name, none in empty.items()})


def last_label(
    db: Database, taxonomy: Taxonomy, reviewer_id: str, batch_id: str
) -> tuple[str, str | None] | None:
    """Return trace and class (None: a skip) of what one undo would take back."""
    with db.read() as cursor:
        return cursor.execute(
            "SELECT trace_id, outcome FROM label_current WHERE reviewer_id = ? "
            "AND batch_id IN (?, ?) AND taxonomy_version = ? ORDER BY seq DESC LIMIT 1",
            [reviewer_id, *both(batch_id), taxonomy.version],
        ).fetchone()
