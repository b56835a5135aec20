"""What a store is set to; the newest row of a name counts."""

import json
from typing import Any

from calibration.store.database import Cursor, record_audit, utc_now


def setting(cursor: Cursor, name: str) -> Any:
    """Return the value of a setting, None if it was never set."""
    row = cursor.execute(
        "SELECT value FROM setting WHERE name = ? ORDER BY seq DESC LIMIT 1", [name]
    ).fetchone()
    return None if row is None else json.loads(row[0])


def put_setting(cursor: Cursor, name: str, value: Any, *, by: str | None) -> None:
    """Set a value and write down who did, None for whoever holds the file."""
    before = setting(cursor, name)
    if before == value:
        return
    cursor.execute(
        "INSERT INTO setting (name, value, created_at) VALUES (?, ?, ?)",
        [name, json.dumps(value), utc_now()],
    )
    record_audit(cursor, "setting", name=name, before=before, after=value, by=by)
