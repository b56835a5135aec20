"""Who has seen what others said of a trace: written down before it is shown."""

from collections.abc import Sequence

import pandas as pd

from calibration.store.database import Database, utc_now


def record_exposure(db: Database, reviewer_id: str, trace_ids: Sequence[str], what: str) -> None:
    """Write down that a reviewer is shown something about traces; the first time counts.

    `what` is what the page shows: ``labels``, ``verdicts``, ``canonical``. A label that the
    reviewer gives to the trace later is not blind any more.
    """
    asked = list(dict.fromkeys(trace_ids))
    with db.read() as cursor:
        known = cursor.execute(
            "SELECT trace_id FROM exposure WHERE reviewer_id = ? AND what = ? "
            "AND list_contains(?::VARCHAR[], trace_id)",
            [reviewer_id, what, asked],
        ).fetchall()
    new = sorted(set(asked) - {row[0] for row in known})
    if new:
        with db.write() as cursor:
            cursor.execute(
                "INSERT INTO exposure SELECT ?, unnest(?::VARCHAR[]), ?, nextval('event_seq'), ? "
                "ON CONFLICT (reviewer_id, trace_id, what) DO NOTHING",
                [reviewer_id, new, what, utc_now()],
            )


def exposures(db: Database) -> pd.DataFrame:
    """Return reviewer_id, trace_id, what and created_at of every exposure, oldest first."""
    with db.read() as cursor:
        return cursor.execute(
            "SELECT reviewer_id, trace_id, what, created_at FROM exposure ORDER BY seq"
        ).df()
