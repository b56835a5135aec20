"""How long somebody who signs in has to wait after wrong passphrases.

Every attempt is stored as failed before the passphrase is looked at, and marked once it has
succeeded: attempts made at the same time count like attempts made one after the other, and
a restart forgets none.
"""

import hashlib
from datetime import datetime, timedelta

from calibration.store.database import Cursor

# Of one name from one address: the wait doubles with every further failure.
FREE, WAIT, LONGEST = 5, timedelta(minutes=15), timedelta(hours=4)
# Of one address with any names, and of one name from addresses it never signed in from.
FREE_OF_ADDRESS, HOUR = 50, timedelta(hours=1)
FREE_OF_NAME, DAY = 100, timedelta(days=1)
KEPT = timedelta(days=30)


def name_key(reviewer_id: str, *, known: bool) -> str:
    """Return what a name counts as; of one that is nobody's the digest, for it may be a secret."""
    return reviewer_id if known else "-" + hashlib.sha256(reviewer_id.encode()).hexdigest()


def seconds_to_wait(cursor: Cursor, name: str, address: str, now: datetime) -> float:
    """Return for how long no attempt of this name from this address is taken; 0: try."""
    ends = [
        _of_pair(cursor, name, address, now),
        _of_many(cursor, "address = ?", [address], FREE_OF_ADDRESS, now - HOUR),
    ]
    known_here = cursor.execute(
        "SELECT 1 FROM sign_in WHERE reviewer_id = ? AND address = ? AND succeeded LIMIT 1",
        [name, address],
    ).fetchone()
    if known_here is None:  # or strangers could lock a person out of their own desk
        ends.append(_of_many(cursor, "reviewer_id = ?", [name], FREE_OF_NAME, now - DAY))
    return max(0.0, *((end - now).total_seconds() for end in ends if end is not None), 0.0)


def _of_pair(cursor: Cursor, name: str, address: str, now: datetime) -> datetime | None:
    n, last = _failures(
        cursor,
        "reviewer_id = ? AND address = ? AND seq > coalesce((SELECT max(seq) FROM sign_in "
        "WHERE reviewer_id = ? AND address = ? AND succeeded), 0)",
        [name, address, name, address],
        now - DAY,
    )
    if last is None or n < FREE:
        return None
    return last + min(LONGEST, WAIT * (1 << min(n - FREE, 10)))


def _of_many(
    cursor: Cursor, where: str, values: list[str], free: int, since: datetime
) -> datetime | None:
    n, last = _failures(cursor, where, values, since)
    if last is None or n < free:
        return None
    return last + WAIT


def _failures(
    cursor: Cursor, where: str, values: list[str], since: datetime
) -> tuple[int, datetime | None]:
    row = cursor.execute(
        f"SELECT count(*), max(created_at) FROM sign_in "
        f"WHERE NOT succeeded AND created_at > ? AND {where}",
        [since, *values],
    ).fetchone()
    return (0, None) if row is None else (int(row[0]), row[1])


def note_attempt(cursor: Cursor, name: str, address: str, now: datetime) -> int:
    """Store an attempt as failed, forget old failures, and return its number."""
    cursor.execute("DELETE FROM sign_in WHERE NOT succeeded AND created_at < ?", [now - KEPT])
    row = cursor.execute(
        "INSERT INTO sign_in (reviewer_id, address, succeeded, created_at) "
        "VALUES (?, ?, false, ?) RETURNING seq",
        [name, address, now],
    ).fetchone()
    return 0 if row is None else int(row[0])
