"""Flags: "look at this trace", from a reviewer to the lead. A flag is no label."""

from collections.abc import Sequence

from calibration.errors import LabelRefusedError
from calibration.store.companions import batch_of, both
from calibration.store.database import Cursor, Database, utc_now
from calibration.store.label_checks import bounded
from calibration.store.leases import check_offered

MAX_REASON = 300


def record_flag(
    db: Database,
    *,
    client_token: str,
    trace_id: str,
    reviewer_id: str,
    batch_id: str,
    taxonomy_version: str,
    flagged: bool,
    reason: str | None = None,
) -> None:
    """Raise or lower a reviewer's flag on a trace once, however often it is sent.

    It may come before the label, after it, or without one.

    Raises
    ------
    LabelRefusedError
        If the trace was never given to this reviewer, or the token stands for something else.
    """
    kind = "flag" if flagged else "unflag"
    with db.write() as cursor:
        batch_id = batch_of(cursor, trace_id, reviewer_id, batch_id, taxonomy_version)
        if _is_stored(cursor, client_token, (kind, trace_id, reviewer_id, batch_id)):
            return
        check_offered(cursor, trace_id, reviewer_id, batch_id)
        cursor.execute(
            "INSERT INTO flag_event (seq, client_token, kind, trace_id, reviewer_id, batch_id, "
            "reason, simulated, created_at) SELECT nextval('event_seq'), ?, ?, trace_id, "
            "reviewer_id, ?, ?, r.simulated OR t.simulated, ? "
            "FROM reviewer r, trace t WHERE reviewer_id = ? AND trace_id = ?",
            [
                client_token, kind, batch_id, bounded(reason, MAX_REASON) if flagged else None,
                utc_now(), reviewer_id, trace_id,
            ],
        )  # fmt: skip


def _is_stored(cursor: Cursor, token: str, meant: tuple[str, str, str, str]) -> bool:
    found = cursor.execute(
        "SELECT kind, trace_id, reviewer_id, batch_id FROM flag_event WHERE client_token = $1 "
        "UNION ALL SELECT kind, trace_id, reviewer_id, batch_id FROM label_event "
        "WHERE client_token = $1",
        [token],
    ).fetchall()
    if found and found[0] != meant:
        raise LabelRefusedError(f"the token {token!r:.80} already stands for something else")
    return bool(found)


def own_flags(
    db: Database, reviewer_id: str, batch_id: str, trace_ids: Sequence[str]
) -> dict[str, str]:
    """Return which of these traces a reviewer has flagged, with the reason or an empty text."""
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT trace_id, batch_id, kind, coalesce(reason, '') FROM flag_event "
            "WHERE reviewer_id = ? AND batch_id IN (?, ?) "
            "AND list_contains(?::VARCHAR[], trace_id) ORDER BY seq",
            [reviewer_id, *both(batch_id), list(trace_ids)],
        ).fetchall()
    # Every label asks, and few are flagged: the view of those that stand costs twice as much.
    standing: dict[tuple[str, str], str] = {}
    for trace_id, of, kind, reason in found:
        standing.pop((trace_id, of), None)
        if kind == "flag":
            standing[trace_id, of] = reason
    return {trace_id: reason for (trace_id, _), reason in standing.items()}
