"""Leases: who was given which trace, and until when nobody else is."""

from datetime import datetime, timedelta

from calibration.errors import LabelRefusedError
from calibration.store.database import Cursor

LEASE = timedelta(minutes=15)


def claim(cursor: Cursor, batch_id: str, trace_id: str, reviewer_id: str, now: datetime) -> None:
    """Give a trace to a reviewer, or renew what they hold."""
    cursor.execute(
        "INSERT INTO lease VALUES (?, ?, ?, ?) ON CONFLICT (batch_id, trace_id, reviewer_id) "
        "DO UPDATE SET expires_at = excluded.expires_at",
        [batch_id, trace_id, reviewer_id, now + LEASE],
    )


def check_offered(cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str) -> None:
    """Require a lease, live or expired: it proves that the trace was shown."""
    offered = cursor.execute(
        "SELECT 1 FROM lease WHERE batch_id = ? AND trace_id = ? AND reviewer_id = ?",
        [batch_id, trace_id, reviewer_id],
    ).fetchone()
    if offered is None:
        raise LabelRefusedError(
            f"trace {trace_id!r} was not given to {reviewer_id!r} in batch {batch_id!r}"
        )
