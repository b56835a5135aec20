"""Which tools the traces called and how the calls ended: an index for finding traces."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from calibration.records import Trace
from calibration.store.database import Cursor, Database
from calibration.store.parts import parts_directory, read_looping

# So many equal calls in a row are a loop.
LOOP = 3
# A name comes from a file of a stranger; longer ones are cut here and whole in the transcript.
MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """How often one trace called a tool, and how many of the calls ended in an error.

    `by_user`: the simulated user called it, not the agent.
    """

    tool: str
    calls: int
    errors: int
    by_user: bool = False


def tool_uses(trace: Trace) -> tuple[ToolUse, ...]:
    """Count the calls of each tool in a trace, in order of name, the agent's before the user's.

    A step with a result alone answers the oldest call of its tool that has no result yet; where
    there is none, as in traces that log results only, it is a call itself.

    Examples
    --------
    >>> from calibration.records import Step
    >>> steps = (
    ...     Step(step_id="s1", role="assistant", tool="find", arguments="{}"),
    ...     Step(step_id="s2", role="tool", tool="find", result="no such order", error=True),
    ...     Step(step_id="s3", role="tool", tool="find", result="found"),
    ... )
    >>> tool_uses(Trace(trace_id="t", source="x", source_id="t", workflow="w", task_id="1",
    ...     task_key="x/1", trial=0, prompt="Find it", steps=steps))
    (ToolUse(tool='find', calls=2, errors=1, by_user=False),)
    """
    failed: defaultdict[tuple[str, bool], list[bool]] = defaultdict(list)
    unanswered: defaultdict[tuple[str, bool], deque[int]] = defaultdict(deque)
    for step in trace.steps:
        if step.tool is None:
            continue
        use = step.tool[:MAX_NAME], step.role == "user"
        if step.arguments is None and step.result is not None and unanswered[use]:
            failed[use][unanswered[use].popleft()] |= step.error
            continue
        if step.result is None:
            unanswered[use].append(len(failed[use]))
        failed[use].append(step.error)
    return tuple(
        ToolUse(tool=tool, calls=len(calls), errors=sum(calls), by_user=by_user)
        for (tool, by_user), calls in sorted(failed.items())
    )


def insert_tools(cursor: Cursor, used: Mapping[str, Sequence[ToolUse]]) -> None:
    """Add what new traces called, by trace id."""
    flat = [(trace_id, use) for trace_id, uses in used.items() for use in uses]
    table = pa.table(
        {
            "trace_id": pa.array([trace_id for trace_id, _ in flat], pa.string()),
            "tool": pa.array([use.tool for _, use in flat], pa.string()),
            "calls": pa.array([use.calls for _, use in flat], pa.int32()),
            "errors": pa.array([use.errors for _, use in flat], pa.int32()),
            "by_user": pa.array([use.by_user for _, use in flat], pa.bool_()),
        }
    )
    cursor.register("incoming_tools", table)
    cursor.execute("INSERT INTO trace_tool BY NAME SELECT * FROM incoming_tools")
    cursor.unregister("incoming_tools")


def forget_tools(cursor: Cursor, trace_ids: list[str]) -> None:
    """Remove what traces called that are replaced."""
    cursor.execute(
        "DELETE FROM trace_tool WHERE list_contains(?::VARCHAR[], trace_id)", [trace_ids]
    )


def looping(db: Database) -> frozenset[str]:
    """Return the traces that called one tool with the same arguments three times in a row or more.

    Other calls between them end a row, words do not.
    """
    with db.read() as cursor:
        # The index of tools leaves few transcripts to be read.
        found = cursor.execute(
            "SELECT DISTINCT trace_id, part FROM trace_tool JOIN trace USING (trace_id) "
            "WHERE calls >= ? ORDER BY ALL",
            [LOOP],
        ).fetchall()
        by_part: dict[str, list[str]] = {}
        for trace_id, part in found:
            by_part.setdefault(part, []).append(trace_id)
        ids: set[str] = set()
        for part, inside in by_part.items():
            ids |= read_looping(cursor, parts_directory(db.path) / part, inside)
    return frozenset(ids)
