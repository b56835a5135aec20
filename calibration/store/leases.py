"""Leases: who was given which trace, and until when it is theirs alone.

A lease that has ended stays: it proves that the trace was shown, and a label that comes late is
still taken in. So nothing here ever removes one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pandas as pd

from calibration.errors import InputError, LabelRefusedError
from calibration.store.database import Cursor, Database, record_audit, utc_now
from calibration.store.progress import Progress

LEASE = timedelta(minutes=15)
LONG_AGO = datetime(1970, 1, 1)  # noqa: DTZ001  the store keeps UTC without zone
# A lease binds nobody any more once its reviewer has labelled or skipped the trace.
_UNDECIDED = (
    "NOT EXISTS (SELECT 1 FROM label_current c WHERE c.batch_id = l.batch_id "
    "AND c.trace_id = l.trace_id AND c.reviewer_id = l.reviewer_id AND c.taxonomy_version = ?)"
)


@dataclass(slots=True)
class Leases:
    """What is held of a batch, as the queue of one reviewer sees it.

    `held` and `apart` say until when this reviewer holds traces of the batch, and of its
    companion; `others` what every other one holds of the batch. `shown` are the traces of the
    batch that this reviewer was ever given.
    """

    held: dict[str, datetime] = field(default_factory=dict)
    apart: dict[str, datetime] = field(default_factory=dict)
    others: list[tuple[str, str]] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)

    @classmethod
    def read(
        cls,
        cursor: Cursor,
        progress: Progress,
        *,
        batch_id: str,
        companion_id: str,
        reviewer_id: str,
        now: datetime,
    ) -> "Leases":
        """Read what is held now, and what this reviewer was given since it was last asked."""
        since, given = progress.given.get((batch_id, reviewer_id), (LONG_AGO, set[str]()))
        if since > now:
            since, given = LONG_AGO, set()
        leases = cls(shown=given)
        # Whatever is done to a lease, it then ends at that moment or later.
        found = cursor.execute(
            "SELECT batch_id, reviewer_id, trace_id, expires_at FROM lease "
            "WHERE batch_id IN ($1, $2) "
            "AND (expires_at > $3 OR (expires_at >= $4 AND reviewer_id = $5))",
            [batch_id, companion_id, now, since, reviewer_id],
        ).fetchall()
        for of, who, trace_id, expires_at in found:
            if who != reviewer_id:
                leases.others += [(who, trace_id)] if of == batch_id else []
                continue
            if of == batch_id:
                given.add(trace_id)
            if expires_at > now:
                (leases.held if of == batch_id else leases.apart)[trace_id] = expires_at
        progress.given[batch_id, reviewer_id] = now, given
        return leases


def due_leases(trace_ids: Sequence[str], held: Mapping[str, datetime], now: datetime) -> list[str]:
    """Return the traces that are not held, or not for long any more."""
    return [t for t in trace_ids if t not in held or held[t] - now < LEASE * 0.9]


def claim(cursor: Cursor, batch_id: str, trace_ids: Sequence[str], reviewer_id: str) -> None:
    """Give traces to a reviewer, or renew what they hold."""
    if not trace_ids:
        return
    ends = utc_now() + LEASE
    # ON CONFLICT would join the whole table: four times as long as to look first.
    found = cursor.execute(
        "SELECT trace_id FROM lease WHERE batch_id = ? AND reviewer_id = ? "
        "AND list_contains(?::VARCHAR[], trace_id)",
        [batch_id, reviewer_id, list(trace_ids)],
    ).fetchall()
    known = [row[0] for row in found]
    fresh = [t for t in dict.fromkeys(trace_ids) if t not in known]
    if known:
        cursor.execute(
            "UPDATE lease SET expires_at = ? WHERE batch_id = ? AND reviewer_id = ? "
            "AND list_contains(?::VARCHAR[], trace_id)",
            [ends, batch_id, reviewer_id, known],
        )
    if fresh:
        cursor.execute(
            f"INSERT INTO lease VALUES {', '.join(['(?, ?, ?, ?)'] * len(fresh))}",
            [value for t in fresh for value in (batch_id, t, reviewer_id, ends)],
        )


def end_lease(cursor: Cursor, batch_id: str, trace_id: str, reviewer_id: str) -> None:
    """Hold a trace no longer: its reviewer has decided it."""
    cursor.execute(
        "UPDATE lease SET expires_at = ? WHERE batch_id = ? AND trace_id = ? AND reviewer_id = ?",
        [utc_now(), batch_id, trace_id, reviewer_id],
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


def lease_frame(db: Database, batch_id: str, taxonomy_version: str) -> pd.DataFrame:
    """Return reviewer_id, trace_id and expires_at of each live lease, those that end first first.

    A trace that its reviewer has decided is not held any more.
    """
    with db.read() as cursor:
        return cursor.execute(
            "SELECT reviewer_id, trace_id, expires_at FROM lease l "
            f"WHERE batch_id = ? AND expires_at > ? AND {_UNDECIDED} "
            "ORDER BY expires_at, reviewer_id, trace_id",
            [batch_id, utc_now(), taxonomy_version],
        ).df()


def release_leases(
    db: Database, *, batch_id: str, reviewer_id: str, by: str, taxonomy_version: str
) -> list[str]:
    """End what a reviewer holds in a batch, so that the queue offers it to others at once.

    Drafts stay, and so does the right to send a label of a trace that was shown. Returns the
    traces that were handed over; with none, nothing is written.

    Raises
    ------
    InputError
        If `by` is no lead of the store.
    """
    now = utc_now()
    with db.write() as cursor:
        lead = cursor.execute(
            "SELECT 1 FROM reviewer WHERE reviewer_id = ? AND role = 'lead'", [by]
        ).fetchone()
        if lead is None:
            raise InputError(f"only a lead may hand traces over, and {by!r} is none")
        found = cursor.execute(
            "SELECT trace_id FROM lease l WHERE batch_id = ? AND reviewer_id = ? "
            f"AND expires_at > ? AND {_UNDECIDED} ORDER BY trace_id",
            [batch_id, reviewer_id, now, taxonomy_version],
        ).fetchall()
        released = [row[0] for row in found]
        if released:
            cursor.execute(
                "UPDATE lease SET expires_at = ? WHERE batch_id = ? AND reviewer_id = ? "
                "AND list_contains(?::VARCHAR[], trace_id)",
                [now, batch_id, reviewer_id, released],
            )
            record_audit(
                cursor,
                "leases released",
                batch_id=batch_id,
                reviewer_id=reviewer_id,
                by=by,
                trace_ids=released,
            )
    return released
