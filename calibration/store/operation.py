"""What traces say of operation: tools, loops, escalation, feedback; read from index and parts."""

import duckdb
import pandas as pd

from calibration.errors import StoreError
from calibration.store.database import Database
from calibration.store.parts import parts_directory

# Calls of one trace in order; a row of equal ones keeps the same difference of its two numbers.
_REPEATS = """
WITH step AS (
  SELECT trace_id, unnest(steps) AS step, generate_subscripts(steps, 1) AS place
  FROM (SELECT trace_id, CAST(review::JSON -> '$.steps' AS JSON[]) AS steps FROM read_parquet(?))
), call AS (
  SELECT trace_id, place, step ->> '$.tool' AS tool,
    coalesce(step ->> '$.arguments', '') AS arguments
  FROM step WHERE step ->> '$.tool' IS NOT NULL
), numbered AS (
  SELECT trace_id, tool, arguments,
    row_number() OVER (PARTITION BY trace_id ORDER BY place)
    - row_number() OVER (PARTITION BY trace_id, tool, arguments ORDER BY place) AS island
  FROM call
), island AS (
  SELECT trace_id, count(*) AS length FROM numbered GROUP BY trace_id, tool, arguments, island
)
SELECT trace_id, max(length) AS repeats FROM island GROUP BY trace_id
"""
_SAID = """
SELECT trace_id, hidden::JSON ->> '$.metadata.escalated' AS escalated,
  hidden::JSON ->> '$.metadata.feedback' AS feedback
FROM read_parquet(?)
"""
_TOOLS = """
SELECT t.trace_id, coalesce(sum(u.calls), 0)::DOUBLE AS tool_calls,
  coalesce(sum(u.errors), 0)::DOUBLE AS tool_errors
FROM trace t LEFT JOIN trace_tool u USING (trace_id) WHERE t.n_steps > 0 GROUP BY t.trace_id
"""


def operation(db: Database) -> pd.DataFrame:
    """Return what every trace says of operation, one row each, in the order of import.

    Columns: trace_id, tool_calls, tool_errors, repeats (the longest row of calls of one tool with
    the same arguments; all three missing for a trace without steps), escalated and feedback (as
    the file said them in fields of that name; missing: not said).

    Raises
    ------
    StoreError
        If the text of the traces cannot be read.
    """
    with db.read() as cursor:
        index = cursor.execute("SELECT trace_id, part FROM trace ORDER BY seq").df()
        tools = cursor.execute(_TOOLS).df()
        repeats, said = [], []
        for part in sorted(index["part"].unique()):
            path = str(parts_directory(db.path) / part)
            try:
                repeats.append(cursor.execute(_REPEATS, [path]).df())
                said.append(cursor.execute(_SAID, [path]).df())
            except duckdb.Error as error:
                raise StoreError(
                    f"{path}: the text of the traces cannot be read; bring back the file from a "
                    "backup"
                ) from error
    found = index
    # A part may still hold a trace that has since been replaced: the index says which part counts.
    for frames in (repeats, said):
        if frames:
            of_parts = [
                frame.assign(part=part)
                for part, frame in zip(sorted(index["part"].unique()), frames, strict=True)
            ]
            found = found.merge(pd.concat(of_parts), on=["trace_id", "part"], how="left")
    for column in ("repeats", "escalated", "feedback"):
        if column not in found:
            found[column] = None
    found = found.merge(tools, on="trace_id", how="left")
    found["repeats"] = found["repeats"].astype("float64")
    # Steps were recorded and none of them is a call: no row of calls.
    found.loc[found["tool_calls"].eq(0), "repeats"] = 0.0
    columns = ["trace_id", "tool_calls", "tool_errors", "repeats", "escalated", "feedback"]
    return found[columns]
