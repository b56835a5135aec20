import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibration.records import trace_identity
from calibration.store import Store
from calibration.store.traces import tool_uses
from calibration.trace_formats import Parsed
from tests.trace_formats.conftest import verdict_of, verdicts_of


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
    assert trace.prompt == "Refund order 51.\n[picture 1: not shown here]"
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
        verdict = verdict_of(read(grading=grading))
        assert (verdict.judge_id, verdict.outcome) == ("source:transcript", outcome)
        assert verdict.proposed is (outcome != "no_verdict")
    assert verdict_of(read(grading={})) is verdict_of(read(grading=None)) is None


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


def test_results_name_the_calls_that_they_answer(read: Any) -> None:
    def call(call_id: str | None) -> dict[str, Any]:
        return {"id": call_id, "function": {"name": "f", "arguments": "{}"}}

    def result(**fields: Any) -> dict[str, Any]:
        return {"role": "tool", "content": "ok"} | fields

    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Two at once.", "tool_calls": [call("a"), call("b")]},
        result(tool_call_id="b"),
        result(tool_call_id="a"),
        {"role": "assistant", "tool_calls": [call(None)]},
        result(),
        result(name="g"),
        result(tool_call_id="c"),
        {"role": "assistant", "content": "Done."},
    ]
    named = [step.call for step in read(messages=messages).trace.steps]
    assert named == [None, None, None, "s3", "s2", None, "s6", None, None, None]
    # A call that no message has comes in before the last words.
    late = read(messages=messages[:6] + messages[-1:], tool_calls=[{"id": "z", "name": "h"}])
    named = [step.call for step in late.trace.steps]
    assert named == [None, None, None, "s3", "s2", None, "s6", None, None]


def test_fields_of_the_result_may_be_those_of_the_record(read: Any) -> None:
    trace = read(trace_id="mine", response="Yes.", cost_usd=0.5, latency=2).trace
    assert (trace.trace_id, trace.response) == ("mine", "Yes.")
    assert (trace.cost_usd, trace.latency_s) == (0.5, 2.0)


SPOKEN = [
    {"role": "user", "content": "Cancel order 51."},
    {"role": "assistant", "content": "I look.", "tool_call": "get_order(order_id=51)"},
    {"role": "tool", "name": "get_order", "result": {"status": "paid"}},
    {"role": "assistant", "tool_call": {"name": "cancel_order", "args": {"order_id": 51}}},
    {"role": "tool", "result": "cancelled"},
    {"role": "assistant", "content": "Order 51 is cancelled."},
]
GRADED: dict[str, Any] = {
    "task_id": "cancel-51", "trial_id": 3, "timestamp": "2026-03-02T09:15:00Z",
    "tool_calls": [
        {"name": "get_order", "args": {"order_id": 51}, "latency_ms": 120,
         "timestamp": "2026-03-02T09:15:02Z"},
        {"name": "cancel_order", "args": {"order_id": 51}, "latency_ms": 80},
    ],
    "total_latency_ms": 4321,
    "grading": {
        "code_grader": {"passed": True, "check": "order 51 is cancelled"},
        "model_grader": {"score": 0.87654321, "reasoning": "polite"},
    },
    "result": "PASS",
}  # fmt: skip
CALLED = {"name": "get_order", "args": {"order_id": 51}, "result": {"status": "paid"}}


@pytest.mark.parametrize(
    "spoken",
    [
        {"messages": SPOKEN},
        {"transcript": SPOKEN},
        {"transcript": {"messages": SPOKEN}},
        {"transcript": [SPOKEN[0], CALLED, *SPOKEN[3:]]},
    ],
)
def test_a_graded_transcript_shows_no_grade(
    write: Any, split: Any, tmp_path: Path, spoken: dict[str, Any]
) -> None:
    taken, aside = split(write("t.jsonl", GRADED | spoken))
    assert aside == []
    trace, verdict = taken[0].trace, verdict_of(taken[0])
    assert trace.response == "Order 51 is cancelled."
    assert (trace.latency_s, trace.trial) == (4.321, 3)
    assert trace.started_at == datetime(2026, 3, 2, 9, 15, tzinfo=UTC)
    assert (verdict.outcome, verdict.judge_id) == ("complete", "source:transcript")
    assert "code_grader True; model_grader 0.87654321" in verdict.reason
    called = [s for s in trace.steps if s.role == "assistant" and s.tool]
    assert [(s.tool, s.seconds) for s in called] == [("get_order", 0.12), ("cancel_order", 0.08)]
    assert all("51" in (s.arguments or "") for s in called)
    assert {use.tool: use.calls for use in tool_uses(trace)} == {"get_order": 1, "cancel_order": 1}
    results = [s.result for s in trace.steps if s.result]
    assert results == ['{"status": "paid"}', "cancelled"]
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        store.ingest([trace], grades=[verdict])
        shown = repr(store.for_review([trace.trace_id]))
        assert not re.search("PASS|0.8765|grader|polite|passed", shown)
        # What is hidden from reviewers is kept.
        assert "0.87654321" in json.dumps(trace.metadata["grading"])
        assert trace.metadata["result"] == "PASS"


@pytest.mark.parametrize(
    ("outcome", "fields"),
    [
        ("complete", {"result": "PASS"}),
        ("partial_minus", {"result": "failed"}),
        ("partial_minus", {"result": {"status": "FAIL"}}),
        ("partial_minus", {"result": "PASS", "grading": {"passed": False}}),
        ("complete", {"grading": {"code": {"passed": True}, "model": {"score": 1.0}}}),
        ("complete", {"grading": [{"name": "code", "passed": True}, {"score": "PASS"}]}),
        ("no_verdict", {"result": 0.4}),
        (None, {"result": "Order 51 is cancelled."}),
    ],
)
def test_a_grade_is_hidden_wherever_it_stands(
    read: Any, outcome: str | None, fields: dict[str, Any]
) -> None:
    run = read(**fields)
    assert (verdict_of(run).outcome if verdict_of(run) else None) == outcome
    assert (run.trace.response, run.trace.status) == (None, None)


def test_graders_that_differ_are_two_judges(read: Any) -> None:
    run = read(grading={"code": {"passed": True}, "model": {"score": 0.4}})
    assert [(v.judge_id, v.outcome) for v in verdicts_of(run)] == [
        ("source:transcript/code", "complete"),
        ("source:transcript/model", "no_verdict"),
    ]
    # In an import in which graders never differ they are one.
    run = read(grading={"code": {"passed": True}, "model": {"score": "PASS"}})
    assert [(v.judge_id, v.outcome) for v in verdicts_of(run)] == [
        ("source:transcript", "complete")
    ]


def test_results_without_ids_answer_the_calls_in_order(read: Any) -> None:
    call = {"id": "", "function": {"name": "f", "arguments": "{}"}}
    other = {"id": "", "function": {"name": "g", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "tool_calls": [call, other]},
        {"role": "tool", "tool_call_id": "", "content": "1"},
        {"role": "tool", "tool_call_id": "", "content": "2"},
    ]
    trace = read(messages=messages).trace
    assert [(s.tool, s.result) for s in trace.steps[2:]] == [("f", "1"), ("g", "2")]
    assert {use.tool: use.calls for use in tool_uses(trace)} == {"f": 1, "g": 1}


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
