"""What traces say of operation: tools, loops, escalation, feedback; read from index and parts."""

from pathlib import Path

import duckdb
import pandas as pd

from calibration.errors import StoreError
from calibration.store.database import Cursor, Database
from calibration.store.parts import parts_directory
from calibration.store.tools import looping

_SAID = """
SELECT trace_id, hidden::JSON ->> '$.metadata.escalated' AS escalated,
  hidden::JSON ->> '$.metadata.feedback' AS feedback
FROM read_parquet(?)
"""
NOTHING = pd.DataFrame(columns=["trace_id", "part", "escalated", "feedback"], dtype="object")
_TOOLS = """
SELECT t.trace_id, coalesce(sum(u.calls), 0)::DOUBLE AS tool_calls,
  coalesce(sum(u.errors), 0)::DOUBLE AS tool_errors
FROM trace t LEFT JOIN trace_tool u ON u.trace_id = t.trace_id AND NOT u.by_user
WHERE t.n_steps > 0 GROUP BY t.trace_id
"""


def operation(db: Database) -> pd.DataFrame:
    """Return what every trace says of operation, one row each, in the order of import.

    Columns: trace_id, tool_calls, tool_errors (those of the agent, not of a simulated user), loop
    (1 where the same call was made three times in a row, else 0; all three missing for a trace
    without steps), escalated and feedback (as the file said them in fields of that name; missing:
    not said).

    Raises
    ------
    StoreError
        If the text of the traces cannot be read.
    """
    looped = looping(db)
    with db.read() as cursor:
        index = cursor.execute("SELECT trace_id, part FROM trace ORDER BY seq").df()
        tools = cursor.execute(_TOOLS).df()
        said = [_said(cursor, parts_directory(db.path) / p, p) for p in sorted(set(index["part"]))]
    # A part may still hold a trace that has since been replaced: the index says which part counts.
    found = index.merge(pd.concat([NOTHING, *said]), on=["trace_id", "part"], how="left")
    found = found.merge(tools, on="trace_id", how="left")
    loop = found["trace_id"].isin(looped).astype("float64")
    found["loop"] = loop.where(found["tool_calls"].notna())
    return found[["trace_id", "tool_calls", "tool_errors", "loop", "escalated", "feedback"]]


def _said(cursor: Cursor, path: Path, part: str) -> pd.DataFrame:
    try:
        return cursor.execute(_SAID, [str(path)]).df().assign(part=part)
    except duckdb.Error as error:
        raise StoreError(
            f"{path}: the text of the traces cannot be read; bring back the file from a backup"
        ) from error
