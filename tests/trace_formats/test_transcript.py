import json
from pathlib import Path
from typing import Any

import pytest

from calibration.records import trace_identity
from calibration.trace_formats import Parsed


@pytest.fixture
def runs(fixtures: Path, split: Any) -> list[Parsed]:
    taken, aside = split(fixtures / "transcripts.jsonl")
    assert aside == []
    return list(taken)


@pytest.fixture
def read(write: Any, split: Any) -> Any:
    def one(**fields: Any) -> Parsed:
        row = {"task_id": "t", "trial_id": 0, "messages": []} | fields
        taken, aside = split(write("t.jsonl", row))
        assert aside == []
        run: Parsed = taken[0]
        return run

    return one


def test_every_field_of_a_transcript(runs: list[Parsed]) -> None:
    trace = runs[0].trace
    assert trace.trace_id == trace_identity("transcript", "transcripts/refund-7", 2)
    assert (trace.workflow, trace.task_key) == ("refunds", "transcript/refunds/refund-7")
    assert trace.prompt == "Refund order 51.\n[image_url]"
    assert (trace.response, trace.status) == ("Order 51 is refunded.", "completed")
    assert (trace.cost_usd, trace.latency_s, trace.model) == (0.004, 3.1, "maker/model-x")
    assert trace.metadata["team"] == "blue"
    trace = runs[1].trace  # with a named trial and without a workflow
    assert (trace.trial, trace.source_id) == (3, "transcripts/8/run-3")
    assert (trace.workflow, trace.prompt, trace.response) == ("unspecified", "Hi", None)


def test_tool_calls_add_latency_to_the_calls_of_the_messages(runs: list[Parsed]) -> None:
    shown = [(s.role, s.tool, s.result, s.error, s.seconds) for s in runs[0].trace.steps]
    assert shown == [
        ("system", None, None, False, None),
        ("user", None, None, False, None),
        ("assistant", "refund", None, False, 0.8),
        ("tool", "refund", "ok", False, None),
        ("assistant", "notify", "mail bounced", True, 0.1),
        ("assistant", None, None, False, None),
    ]
    assert [s.step_id for s in runs[0].trace.steps] == ["s1", "s2", "s3", "s4", "s5", "s6"]


@pytest.mark.parametrize(
    ("outcome", "gradings"),
    [
        ("complete", [{"reward": 1}, {"passed": True}, True]),
        ("partial_minus", [{"score": 0.0}, {"passed": False}, 0]),
        ("abandoned", [{"outcome": "abandoned"}]),
        ("no_verdict", [{"outcome": "meh"}, {"score": 0.4}, "complete"]),
    ],
)
def test_grading_becomes_a_proposed_verdict(read: Any, outcome: str, gradings: list[Any]) -> None:
    for grading in gradings:
        verdict = read(grading=grading).verdict
        assert (verdict.judge_id, verdict.outcome) == ("source:transcript", outcome)
        assert verdict.proposed is (outcome != "no_verdict")
    assert read(grading={}).verdict is read(grading=None).verdict is None


def test_calls_without_ids_are_matched_by_name_in_order(read: Any) -> None:
    call = {"function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "tool_calls": [call, call]},
        {"role": "assistant", "content": "Done."},
    ]
    calls = [
        {"name": "f", "result": {"a": 1}, "latency_s": 1},
        {"name": "f", "result": [], "latency_s": 2, "error": True},
        {"name": "f", "latency_s": 3},
    ]
    steps = read(messages=messages, tool_calls=calls).trace.steps
    assert [(s.result, s.seconds, s.error) for s in steps[:3]] == [
        ('{"a": 1}', 1.0, False),
        ("[]", 2.0, True),
        (None, 3.0, False),
    ]
    assert steps[3].content == "Done."


def test_an_error_of_a_call_marks_its_result_message(read: Any) -> None:
    messages = [
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "boom"},
    ]
    steps = read(messages=messages, tool_calls=[{"id": "1", "name": "f", "error": "boom"}])
    assert [s.error for s in steps.trace.steps] == [False, True]


def test_result_may_be_the_response_and_fields_may_stand_outside(read: Any) -> None:
    trace = read(trace_id="mine", result="Yes.", cost_usd=0.5, latency=2).trace
    assert (trace.trace_id, trace.response) == ("mine", "Yes.")
    assert (trace.cost_usd, trace.latency_s) == (0.5, 2.0)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"task_id": None}, "field 'task_id': is missing"),
        ({"tool_calls": [1]}, "field 'tool_calls[1]': must be an object"),
        ({"tool_calls": [{}]}, "field 'tool_calls[1].name': is missing"),
        ({"tool_calls": [{"name": "f", "latency_s": "1"}]}, "field 'tool_calls[1].latency_s'"),
        ({"result": {"cost_usd": -1}}, "field 'result.cost_usd': must be a number >= 0"),
    ],
)
def test_a_bad_transcript_is_set_aside(
    write: Any, split: Any, fields: dict[str, Any], why: str
) -> None:
    good = {"task_id": "t", "messages": []}
    path = write("t.jsonl", f"{json.dumps(good)}\n{json.dumps(good | fields)}\n")
    _, aside = split(path)
    assert aside[0].reason.startswith(why)
