"""Companions: what is said of the inserts of a batch is stored under a batch of its own.

No page lists it and no number is drawn from it. The desk knows the production batch only: its
calls are led to the companion here.
"""

import json
from datetime import datetime

from calibration.errors import LabelRefusedError
from calibration.store.database import Cursor
from calibration.store.progress import Progress

SUFFIX = "-inserted"
# The batches that people know of.
NO_COMPANION = "json_extract(design, '$.inserts_of') IS NULL"


def companion(batch_id: str) -> str:
    """Return the batch under which what is said of the inserts of a batch is stored."""
    return f"{batch_id}{SUFFIX}"


def add_companion(cursor: Cursor, batch_id: str, now: datetime) -> None:
    """Store the companion of a batch, if it is not there yet."""
    cursor.execute(
        "INSERT INTO batch (batch_id, purpose, labels_wanted, design, created_at) "
        "VALUES (?, 'repeat', 1, ?, ?) ON CONFLICT DO NOTHING",
        [companion(batch_id), json.dumps({"inserts_of": batch_id}), now],
    )


def both(batch_id: str) -> tuple[str, str]:
    """Return a batch and its companion; of a companion, which nobody may name, two of nothing."""
    named = "" if batch_id.endswith(SUFFIX) else batch_id
    return named, named and companion(named)


def batch_of(
    cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str, taxonomy_version: str
) -> str:
    """Return the batch under which what a reviewer says of a trace is stored.

    Raises
    ------
    LabelRefusedError
        If a companion is named: its name must not tell what was put in.
    """
    if batch_id.endswith(SUFFIX):
        raise LabelRefusedError(
            f"trace {trace_id!r} was not given to {reviewer_id!r} in batch {batch_id!r}"
        )
    found = cursor.execute(
        "SELECT 1 FROM inserted WHERE batch_id = ? AND reviewer_id = ? AND trace_id = ? "
        "AND taxonomy_version = ?",
        [batch_id, reviewer_id, trace_id, taxonomy_version],
    ).fetchone()
    return batch_id if found is None else companion(batch_id)


def inserts_of(
    cursor: Cursor, progress: Progress, reviewer_id: str, batch_id: str, taxonomy_version: str
) -> tuple[dict[str, int], list[str]]:
    """Return the slots of a reviewer's inserts by trace, and those that are not decided yet.

    `progress` must have been read before.
    """
    apart = progress.at(companion(batch_id), taxonomy_version).own[reviewer_id]
    found = cursor.execute(
        "SELECT trace_id, slot FROM inserted WHERE batch_id = ? AND reviewer_id = ? "
        "AND taxonomy_version = ? ORDER BY slot",
        [batch_id, reviewer_id, taxonomy_version],
    ).fetchall()
    slots = dict(found)
    return slots, [trace_id for trace_id in slots if trace_id not in apart.decided]


def give_back(
    cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str, taxonomy_version: str
) -> None:
    """Put a trace in no more whose first label, of the same batch, was taken back meanwhile."""
    cursor.execute(
        "DELETE FROM inserted WHERE batch_id = ? AND reviewer_id = ? AND trace_id = ? "
        "AND taxonomy_version = ?",
        [batch_id, reviewer_id, trace_id, taxonomy_version],
    )
