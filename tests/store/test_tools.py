"""Calls of tools, counted by hand: an answer belongs to its call; users may have tools too."""

from pathlib import Path

from calibration.records import Step
from calibration.store import Store, TraceFilter
from calibration.store.traces import ToolUse, tool_uses
from tests.store.builders import make_trace

STEPS = (
    Step(step_id="s1", role="assistant", tool="find", arguments="{1}"),
    Step(step_id="s2", role="assistant", tool="find", arguments="{2}"),
    Step(step_id="s3", role="assistant", tool="pay", arguments="{}", error=True),
    Step(step_id="s4", role="tool", tool="find", result="none"),
    Step(step_id="s5", role="tool", tool="find", result="no such order", error=True),
    Step(step_id="s6", role="tool", tool="pay", result="refused", error=True),
    Step(step_id="s7", role="user", tool="reboot", arguments="{}"),
    Step(step_id="s8", role="user", tool="reboot", result="failed", error=True),
    Step(step_id="s9", role="tool", tool="log", result="a line"),
    Step(step_id="s10", role="assistant", tool="find", arguments="{3}", result="one"),
)


def test_an_answer_is_counted_with_its_call() -> None:
    assert tool_uses(make_trace(1, steps=STEPS)) == (
        ToolUse(tool="find", calls=3, errors=1),
        ToolUse(tool="log", calls=1, errors=0),
        ToolUse(tool="pay", calls=1, errors=1),
        ToolUse(tool="reboot", calls=1, errors=1, by_user=True),
    )


def test_calls_of_a_simulated_user_are_not_the_agents(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        store.ingest([make_trace(1, steps=STEPS)])
        row = store.operation_frame().iloc[0]
        assert (row["tool_calls"], row["tool_errors"]) == (5, 2)
        # The list shows the agent's calls, as the signals of a report do.
        listed = store.trace_list(TraceFilter(), for_leads=True).iloc[0]
        assert (listed["tool_calls"], listed["tool_errors"]) == (5, 2)
        assert "reboot" not in store.trace_facets().tools
        assert store.count_traces(TraceFilter(tool="reboot")) == 0
