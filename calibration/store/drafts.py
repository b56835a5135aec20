"""What a reviewer has decided so far: kept on every answer, gone with the label."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from calibration.records import SUB_GOAL_STATES, Draft, Evidence
from calibration.store.companions import batch_of
from calibration.store.database import Cursor, Database, utc_now
from calibration.store.label_checks import (
    MAX_QUOTES,
    bounded,
    check_confidence,
    clean_tags,
    duration,
)
from calibration.store.leases import check_offered

MAX_SUB_GOALS, MAX_ID = 200, 200


def save_draft(
    db: Database,
    *,
    reviewer_id: str,
    trace_id: str,
    batch_id: str,
    taxonomy_version: str,
    draft: Draft,
) -> None:
    """Keep what was decided so far, so that a reload goes on at the same question."""
    check_confidence(draft.confidence)
    body = {
        "answers": draft.answers,
        "rationale": bounded(draft.rationale),
        "evidence": [
            {"step_id": item.step_id[:MAX_ID], "quote": bounded(item.quote) or ""}
            for item in draft.evidence[:MAX_QUOTES]
        ],
        "confidence": draft.confidence,
        "tags": list(clean_tags(draft.tags)),
        "sub_goals": {
            goal[:MAX_ID]: state
            for goal, state in list(draft.sub_goals.items())[:MAX_SUB_GOALS]
            if state in SUB_GOAL_STATES
        },
        "seconds_active": duration(draft.seconds_active),
    }
    with db.write() as cursor:
        batch_id = batch_of(cursor, trace_id, reviewer_id, batch_id, taxonomy_version)
        check_offered(cursor, trace_id, reviewer_id, batch_id)
        _write(cursor, trace_id, reviewer_id, batch_id, body)


def keep(cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str, draft: Draft) -> None:
    """Write a draft in the transaction of something else."""
    _write(cursor, trace_id, reviewer_id, batch_id, asdict(draft))


def drop(cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str) -> None:
    """Remove the draft of a trace that is decided."""
    cursor.execute(
        "DELETE FROM draft WHERE batch_id = ? AND trace_id = ? AND reviewer_id = ?",
        [batch_id, trace_id, reviewer_id],
    )


def drafts(cursor: Cursor, reviewer_id: str, under: Mapping[str, str]) -> dict[str, Draft]:
    """Return the drafts of one reviewer by trace; `under` says of which batch for each."""
    found = cursor.execute(
        "SELECT batch_id, trace_id, body FROM draft WHERE reviewer_id = ? "
        "AND list_contains(?::VARCHAR[], trace_id)",
        [reviewer_id, list(under)],
    ).fetchall()
    return {t: draft_of(json.loads(body)) for batch, t, body in found if under[t] == batch}


def draft_of(body: dict[str, Any]) -> Draft:
    """Return the draft that a stored body describes."""
    return Draft(
        **body
        | {
            "evidence": tuple(Evidence(**item) for item in body["evidence"]),
            "tags": tuple(body["tags"]),
        }
    )


def _write(
    cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str, body: dict[str, Any]
) -> None:
    cursor.execute(
        "INSERT INTO draft VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (batch_id, trace_id, reviewer_id) "
        "DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at",
        [batch_id, trace_id, reviewer_id, json.dumps(body), utc_now()],
    )
