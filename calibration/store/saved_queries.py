"""Filters kept under a name, for everybody who uses the store."""

import json
from collections.abc import Mapping

from calibration.errors import InputError, StoreError
from calibration.store.database import Database, utc_now
from calibration.store.trace_filter import TraceFilter

MAX_NAME = 80


def saved_queries(db: Database) -> dict[str, TraceFilter]:
    """Return the filters by name, in order of name; those of another version are left out."""
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT name, filters FROM saved_query "
            "QUALIFY row_number() OVER (PARTITION BY name ORDER BY seq DESC) = 1 ORDER BY name"
        ).fetchall()
    queries = {}
    for name, text in found:
        if text is not None:
            try:
                queries[name] = TraceFilter.from_dict(json.loads(text))
            except (StoreError, InputError):
                continue
    return queries


def save_query(db: Database, name: str, chosen: TraceFilter) -> str:
    """Keep filters under a name, also one that is taken; return the name as stored.

    Raises
    ------
    InputError
        If the name has no letter or digit, or more than 80 characters.
    """
    name = " ".join(name.split())
    if not any(map(str.isalnum, name)) or len(name) > MAX_NAME:
        raise InputError(
            f"the name of a query must have 1 to {MAX_NAME} letters or digits, got {name!r:.100}"
        )
    _append(db, name, chosen.to_dict())
    return name


def forget_query(db: Database, name: str) -> None:
    """Take a name back; what was saved under it stays on record."""
    _append(db, name, None)


def _append(db: Database, name: str, filters: Mapping[str, object] | None) -> None:
    with db.write() as cursor:
        cursor.execute(
            "INSERT INTO saved_query (name, filters, created_at) VALUES (?, ?, ?)",
            [name, None if filters is None else json.dumps(filters), utc_now()],
        )
