"""Fields that reliability is computed from: read, bounded, refused by name, and never rehashed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibration.records import ExpectedCall, SetAside, Trace, Violation
from calibration.trace_formats import preview, read_traces
from calibration.trace_formats.base import Parsed

Write = Callable[[str, str], Path]

ROW: dict[str, Any] = {"trace_id": "r-1", "workflow": "w", "prompt": "p", "response": "done"}
RECORDED: dict[str, Any] = {
    "perturbation": "fault",
    "confidence": 0.8,
    "context_tokens": 1200,
    "expected_calls": [{"name": "lookup", "arguments": {"id": 7}, "step": "s1"}, {"name": "close"}],
    "violations": [{"constraint": "no PII exposure", "severity": "high", "step": "s1"}],
}
CALLS = (ExpectedCall(name="lookup", arguments={"id": 7}, step="s1"), ExpectedCall(name="close"))
VIOLATIONS = (Violation(constraint="no PII exposure", severity="high", step="s1"),)


def read_one(write: Write, row: dict[str, Any], name: str = "a.jsonl") -> Trace:
    (item,) = read_traces(write(name, json.dumps(row)))
    assert isinstance(item, Parsed), item
    return item.trace


@pytest.mark.parametrize(
    "row",
    [ROW, {"task_id": "t", "trial_id": 1, "messages": [{"role": "user", "content": "p"}]}],
    ids=["record", "transcript"],
)
def test_the_fields_are_read(write: Write, row: dict[str, Any]) -> None:
    trace = read_one(write, row | RECORDED)
    assert (trace.perturbation, trace.confidence, trace.context_tokens) == ("fault", 0.8, 1200)
    assert (trace.expected_calls, trace.violations) == (CALLS, VIOLATIONS)
    assert trace.metadata == {}


def test_a_step_names_its_specialist(write: Write) -> None:
    steps = [{"role": "assistant", "content": "a", "agent": "planner"}, {"role": "user"}]
    trace = read_one(write, ROW | {"steps": steps})
    assert [step.agent for step in trace.steps] == ["planner", None]
    assert trace.for_review().steps == trace.steps
    said = [{"role": "assistant", "content": c, "agent": a} for c, a in (("a", "coder"), ("b", 7))]
    chat = {"task_id": "t", "trial_id": 1, "messages": said}
    assert [step.agent for step in read_one(write, chat).steps] == ["coder", "7"]
    odd = chat | {"messages": [{"role": "assistant", "content": "a", "agent": {"x": 1}}]}
    assert read_one(write, odd).steps[0].agent is None


def test_a_step_does_not_name_the_agent_that_is_hidden(write: Write) -> None:
    steps = [{"role": "assistant", "content": "a", "agent": n} for n in ("big-model", "planner")]
    hidden = read_one(write, ROW | {"steps": steps, "model": "big-model"})
    assert [step.agent for step in hidden.steps] == [None, "planner"]
    plain = read_one(
        write, ROW | {"steps": [{k: s[k] for k in ("role", "content")} for s in steps]}
    )
    assert replace(hidden, model=None).content_hash() == plain.content_hash()


def test_missing_is_not_zero_and_not_none(write: Write) -> None:
    trace = read_one(write, ROW)
    assert (trace.perturbation, trace.confidence, trace.context_tokens) == (None, None, None)
    assert read_one(write, ROW | {"perturbation": "none", "confidence": 0}).confidence == 0.0


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("perturbation", "chaos", "field 'perturbation': must be one of none, fault"),
        ("perturbation", 1, "field 'perturbation'"),
        ("confidence", 1.01, "field 'confidence': must be at most 1"),
        ("confidence", -0.1, "field 'confidence': must be a number >= 0"),
        ("confidence", True, "field 'confidence': must be a number"),
        ("confidence", "high", "field 'confidence': must be a number"),
        ("context_tokens", 1.5, "field 'context_tokens': must be a whole number"),
        ("expected_calls", {"name": "a"}, "field 'expected_calls': must be a list"),
        ("expected_calls", [{}], "field 'expected_calls[1].name': is missing"),
        ("expected_calls", [{"name": "a"}] * 501, "has 501 entries; at most 500"),
        (
            "expected_calls",
            [{"name": "a", "arguments": [f"{'x' * 3_000}"] * 30}],
            "field 'expected_calls': has more than 64,000 characters",
        ),
        ("violations", ["x"], "field 'violations[1]': must be an object"),
        ("violations", [{"severity": "low"}], "field 'violations[1].constraint': is missing"),
        (
            "violations",
            [{"constraint": "c", "severity": "minor"}],
            "field 'violations[1].severity': must be one of low, medium, high",
        ),
        (
            "violations",
            [{"constraint": "c" * 201, "severity": "low"}],
            "field 'violations[1].constraint': must have at most 200",
        ),
        ("violations", [VIOLATIONS] * 51, "has 51 entries; at most 50"),
    ],
)
def test_a_bad_value_is_set_aside_with_its_field(
    write: Write, field: str, value: object, named: str
) -> None:
    row = json.dumps(ROW | {field: value}, default=vars_of)
    (item,) = read_traces(write("a.jsonl", row))
    assert isinstance(item, SetAside)
    assert named in item.reason
    assert item.line == 1


def vars_of(_: object) -> dict[str, str]:
    return {"constraint": "c", "severity": "low"}


def test_cells_of_a_table_are_read(write: Write) -> None:
    calls = json.dumps(RECORDED["expected_calls"]).replace('"', '""')
    text = (
        "trace_id,workflow,prompt,perturbation,confidence,context_tokens,expected_calls\n"
        f'a,w,p,prompt,0.25,40,"{calls}"\nb,w,p,,,,\nc,w,p,,nan,,\nd,w,p,,,,lookup\n'
    )
    first, second, third, fourth = read_traces(write("a.csv", text))
    assert isinstance(first, Parsed)
    assert isinstance(second, Parsed)
    assert (first.trace.perturbation, first.trace.confidence) == ("prompt", 0.25)
    assert first.trace.expected_calls == CALLS
    assert second.trace.confidence is None
    for item, field in ((third, "confidence"), (fourth, "expected_calls")):
        assert isinstance(item, SetAside)
        assert field in item.reason


def test_a_hash_of_before_is_the_hash_of_now(write: Write) -> None:
    """The fields were metadata once: a file that is imported again has no new content."""
    trace = read_one(write, ROW | RECORDED)
    before = replace(
        trace, perturbation=None, confidence=None, context_tokens=None, expected_calls=None,
        violations=None, metadata=RECORDED,
    )  # fmt: skip
    assert trace.content_hash() == before.content_hash()
    assert trace.content_hash() != read_one(write, ROW).content_hash()
    plain = read_one(write, ROW)
    # As printed by the release before.
    digest = "957bbf1ae078b5499b1e812d620a8a43ce210b659da086690dd0d1a4ae390cb0"
    assert plain.content_hash() == digest
    digest = "b20209041744fdbe2cb1637989e885d9191a77dbe2bc81a5d18508ef24fe6961"
    assert trace.content_hash() == digest
    steps = [{"role": "assistant", "content": "a", "agent": "planner"}]
    digest = "05ca0933668743fdd4912bd6ba4cae95e564275baa22fc3d232b1d1e9c8e891c"
    assert read_one(write, ROW | {"steps": steps}).content_hash() == digest


def test_an_empty_list_says_that_there_are_none(write: Write) -> None:
    trace = read_one(write, ROW | {"expected_calls": [], "violations": []})
    assert (trace.expected_calls, trace.violations) == ((), ())
    assert trace.content_hash() != read_one(write, ROW).content_hash()


def test_the_preview_lists_the_fields_where_a_file_has_them(write: Write) -> None:
    def named(row: dict[str, Any]) -> set[str]:
        found = preview(read_traces(write("a.jsonl", json.dumps(row))))
        return {field.field for field in found.fields}

    assert named(ROW | RECORDED) - named(ROW) == set(RECORDED)


def test_benchmarks_name_the_calls_that_they_expect(fixtures: Path) -> None:
    for name in ("lamp-1-retail.json", "tau2.json"):
        traces = [i.trace for i in read_traces(fixtures / name) if isinstance(i, Parsed)]
        assert any(trace.expected_calls for trace in traces), name
        for trace in traces:
            bare = replace(trace, expected_calls=None)
            assert bare.content_hash() == trace.content_hash()
