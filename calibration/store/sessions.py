"""Sessions of people who have signed in: only the digest of a token is stored."""

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta

from calibration.records import Reviewer
from calibration.store.database import Cursor, Database, rows, utc_now

IDLE, LONGEST = timedelta(hours=12), timedelta(days=7)
# The end of a session moves with its use; writing it down more often would serve nobody.
MOVED_EVERY = timedelta(minutes=10)


def start_session(cursor: Cursor, reviewer_id: str, now: datetime) -> str:
    """Store a new session and return its token, which is kept nowhere."""
    token = secrets.token_urlsafe(32)
    cursor.execute("DELETE FROM session WHERE expires_at < ?", [now])
    cursor.execute(
        "INSERT INTO session VALUES (?, ?, ?, ?)", [_digest(token), reviewer_id, now, now + IDLE]
    )
    return token


def end_session(db: Database, token: str) -> None:
    """End a session; one that is over already stays over."""
    with db.write() as cursor:
        cursor.execute("DELETE FROM session WHERE token_hash = ?", [_digest(token)])


def end_sessions_of(cursor: Cursor, reviewer_id: str) -> None:
    """End every session of a person."""
    cursor.execute("DELETE FROM session WHERE reviewer_id = ?", [reviewer_id])


def person_of_session(db: Database, token: str) -> Reviewer | None:
    """Return whose session a token is; None when it is nobody's or has ended."""
    now = utc_now()
    with db.read() as cursor:
        found = rows(
            cursor,
            "SELECT r.reviewer_id, r.name, r.role, r.simulated, s.created_at, s.expires_at "
            "FROM session s JOIN reviewer r ON r.reviewer_id = s.reviewer_id "
            "WHERE s.token_hash = ? AND s.expires_at > ?",
            [_digest(token), now],
        )
    if not found:
        return None
    started, ends = found[0].pop("created_at"), found[0].pop("expires_at")
    later = min(now + IDLE, started + LONGEST)
    if later - ends > MOVED_EVERY:
        with db.write() as cursor:
            cursor.execute(
                "UPDATE session SET expires_at = ? WHERE token_hash = ?", [later, _digest(token)]
            )
    return Reviewer(**found[0])


def lasting(db: Database, token: str, person: Reviewer) -> Callable[[], bool]:
    """Return a question that is cheap to ask: whether that is still a session of this person."""
    known, until = -1, utc_now()

    def lasts() -> bool:
        nonlocal known, until
        changes, now = db.changes, utc_now()
        # Sessions end by a change of this process, or by time.
        if changes != known or now >= until:
            if person_of_session(db, token) != person:
                return False
            known, until = changes, now + timedelta(seconds=30)
        return True

    return lasts


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
