"""What a labelling reviewer may see of a trace, read from the index and the parts."""

import json
from collections.abc import Sequence
from typing import Any

from calibration.records import Attachment, Step, SubGoal, TraceForReview
from calibration.store.database import Database, rows
from calibration.store.parts import parts_directory, read_part


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
        bodies = _bodies(db, part, ids)
        for head in heads:
            if head["part"] == part:
                found[head["trace_id"]] = _review(head, bodies[head["trace_id"]])
    return [found[trace_id] for trace_id in trace_ids if trace_id in found]


def _bodies(db: Database, part: str, ids: list[str]) -> dict[str, dict[str, Any]]:
    """Return the text of traces of a part, from memory if it was just shown.

    The queue asks for the same few traces after every answer. A part never changes: its name
    is made from its content.
    """
    found = {i: body for i in ids if (body := db.shown.get((part, i))) is not None}
    missing = [i for i in ids if i not in found]
    if missing:
        for trace_id, text in read_part(parts_directory(db.path) / part, missing).items():
            found[trace_id] = json.loads(text)
            db.shown.put((part, trace_id), found[trace_id], len(text))
    return found


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
