import json
from pathlib import Path
from typing import Any

import pytest

from calibration.records import Step
from calibration.trace_formats import detect
from tests.trace_formats.conftest import verdict_of


@pytest.fixture
def raw(fixtures: Path) -> Any:
    return json.loads((fixtures / "kiosk__snacks-7.traj").read_text())


def test_every_field_of_a_trajectory(fixtures: Path, split: Any) -> None:
    path = fixtures / "kiosk__snacks-7.traj"
    assert detect(path).title == "a SWE-agent trajectory"
    (run,), aside = split(path)
    trace = run.trace
    assert not aside
    assert (trace.task_id, trace.task_key) == (
        "kiosk__snacks-7",
        "swe-agent/swe_main/kiosk__snacks-7",
    )
    assert (trace.workflow, trace.model, trace.agent_version) == (
        "swe_main", "maker/model-x", "1.1.0"
    )  # fmt: skip
    assert (trace.cost_usd, trace.total_tokens, trace.latency_s) == (1.25, 1000, 1.0)
    assert trace.prompt == "ISSUE: the kiosk sells snacks."
    assert trace.response == "diff --git a/kiosk.py b/kiosk.py\n"
    assert (trace.status, verdict_of(run)) == ("submitted", None)
    assert [(s.role, s.tool) for s in trace.steps] == [
        ("system", None), ("user", None), ("assistant", "find_file"), ("assistant", "shell"),
        ("assistant", "submit"),
    ]  # fmt: skip
    assert trace.steps[2] == Step(
        step_id="s3", role="assistant", content="I look for it.", tool="find_file",
        arguments="find_file kiosk.py\n", result="/repo/kiosk.py", seconds=0.5,
    )  # fmt: skip
    assert trace.metadata["demonstrations"] == 1


def test_a_run_without_a_submission_is_proposed_as_one_without_output(
    raw: Any, split: Any, write: Any
) -> None:
    for status, outcome in {"exit_cost": "abandoned", "submitted (exit_cost)": None}.items():
        info = {"exit_status": status, "model_stats": {"instance_cost": 0, "tokens_sent": 1,
                                                       "tokens_received": 1}}  # fmt: skip
        (run,), _ = split(write("a.traj", raw | {"info": info}))
        assert (verdict_of(run) and verdict_of(run).outcome) == outcome
        assert run.trace.cost_usd is None  # the price was not known
        assert run.trace.response == "I look for it."


def test_a_file_with_messages_alone(raw: Any, split: Any, write: Any) -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]
    history = [
        {"role": "user", "content": "Fix it.", "message_type": "observation"},
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        {"role": "tool", "content": "found", "tool_call_ids": ["c1"]},
    ]
    (run,), _ = split(write("b.traj", {"history": history, "info": {}}))
    assert [(s.role, s.tool, s.call) for s in run.trace.steps] == [
        ("user", None, None), ("assistant", "find", None), ("tool", "find", "s2")
    ]  # fmt: skip
    assert (run.trace.task_id, run.trace.workflow) == ("b", "swe-agent")
    wrong: list[Any] = [{"history": [], "trajectory": []}, {"trajectory": [3]}, {"history": "x"}]
    for changes in wrong:
        taken, aside = split(write("c.traj", raw | changes))
        assert (len(taken), len(aside)) == (0, 1)
    (run,), _ = split(write("d.traj", raw | {"replay_config": "{"}))
    assert run.trace.model is None
