"""Examinations beyond those that the rules allow: a lead says to whom, and why."""

from datetime import datetime

from calibration.errors import InputError
from calibration.store.database import Database, utc_now

MAX_REASON = 2_000


def allow_attempt(
    db: Database, version: str, *, client_token: str, reviewer_id: str, by: str, reason: str
) -> None:
    """Let somebody try once more than the rules allow; a lead says why. Once a token.

    Raises
    ------
    InputError
        If there is no reason or no such reviewer.
    """
    if not reason.strip():
        raise InputError("allowing another attempt needs a reason")
    with db.write() as cursor:
        db.progress.check_reviewer(cursor, reviewer_id)
        cursor.execute(
            "INSERT INTO attempt_allowed SELECT nextval('event_seq'), ?, ?, ?, ?, ?, ? "
            "ON CONFLICT (client_token) DO NOTHING",
            [client_token, reviewer_id, version, by, reason.strip()[:MAX_REASON], utc_now()],
        )


def attempts_allowed(db: Database, version: str, reviewer_id: str) -> list[datetime]:
    """Return when a lead allowed this person another attempt on this taxonomy version."""
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT created_at FROM attempt_allowed WHERE reviewer_id = ? "
            "AND taxonomy_version = ? ORDER BY seq",
            [reviewer_id, version],
        ).fetchall()
    return [row[0] for row in found]
