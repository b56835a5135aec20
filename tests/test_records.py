from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from calibration.records import (
    Attachment,
    ExpectedCall,
    Step,
    SubGoal,
    Trace,
    TraceForReview,
    Violation,
    trace_identity,
)
from tests.store.builders import make_trace

CONTENT: dict[str, Any] = {
    "workflow": "support_triage",
    "task_id": "other",
    "task_key": "other/1",
    "prompt": "Another task",
    "steps": (Step(step_id="s1", role="assistant", content="other"),),
    "response": "other",
    "inputs": (Attachment(name="a.txt", text="text"),),
    "sub_goals": (SubGoal(id="g1", text="goal"),),
    "status": "failed",
    "model": "model-y",
    "agent_version": "2",
    "started_at": datetime(2026, 1, 1, tzinfo=UTC),
    "latency_s": 9.0,
    "cost_usd": 0.0,
    "units": 2.0,
    "total_tokens": 0,
    "success_criteria": "criteria",
    "metadata": {"key": "value"},
    "simulated": True,
    "perturbation": "fault",
    "confidence": 0.0,
    "context_tokens": 0,
    "expected_calls": (ExpectedCall(name="lookup"),),
    "violations": (Violation(constraint="no PII exposure", severity="low"),),
}
IDENTITY: dict[str, Any] = {
    "trace_id": "t-other", "source": "other", "source_id": "other", "trial": 7,
}  # fmt: skip


def test_every_field_of_a_trace_is_content_or_identity() -> None:
    assert {f.name for f in fields(Trace)} == set(CONTENT) | set(IDENTITY)


@pytest.mark.parametrize("name", CONTENT | IDENTITY)
def test_the_content_hash_changes_with_the_content_and_with_nothing_else(name: str) -> None:
    trace = make_trace(1)
    changed = replace(trace, **{name: (CONTENT | IDENTITY)[name]})
    assert (changed.content_hash() != trace.content_hash()) == (name in CONTENT)


def test_the_content_hash_does_not_depend_on_the_order_of_metadata() -> None:
    first = make_trace(1, metadata={"a": 1, "b": {"c": 2, "d": 3}})
    second = make_trace(1, metadata={"b": {"d": 3, "c": 2}, "a": 1})
    assert first.content_hash() == second.content_hash()


def test_the_content_hash_does_not_depend_on_which_call_a_result_names() -> None:
    call = Step(step_id="s1", role="assistant", tool="get", arguments="{}")
    result = Step(step_id="s2", role="tool", tool="get", result="no")
    hashes = {
        make_trace(1, steps=(call, replace(result, call=named))).content_hash()
        for named in (None, "s1")
    }
    assert len(hashes) == 1
    assert hashes != {make_trace(1, steps=(call, replace(result, result="1"))).content_hash()}


def test_identities_differ_by_source_id_and_trial_and_hide_them() -> None:
    keys = [("a", "b", 0), ("a", "b", 1), ("a", "c", 0), ("ab", "", 0), ("", "ab", 0)]
    ids = [trace_identity(*key) for key in keys]
    assert len(set(ids)) == len(keys)
    assert all("b" not in i.removeprefix("t-") or len(i) == 14 for i in ids)


def test_what_a_reviewer_may_see_is_exactly_the_allow_list() -> None:
    assert [f.name for f in fields(TraceForReview)] == [
        "trace_id", "workflow", "prompt", "inputs", "sub_goals", "steps", "response", "status",
        "agent", "latency_s", "simulated_user",
    ]  # fmt: skip
