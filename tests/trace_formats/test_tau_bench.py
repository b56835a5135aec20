import json
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import TraceFormatError
from calibration.records import trace_identity
from calibration.trace_formats import ImportSettings, Parsed, detect, read_traces
from tests.trace_formats.conftest import verdict_of


@pytest.fixture
def runs(fixtures: Path, split: Any) -> list[Parsed]:
    taken, aside = split(fixtures / "lamp-1-retail.json")
    assert aside == []
    return list(taken)


@pytest.fixture
def raw(fixtures: Path) -> Any:
    return json.loads((fixtures / "lamp-1-retail.json").read_text())


def test_every_field_of_a_run(fixtures: Path, runs: list[Parsed]) -> None:
    trace = runs[0].trace
    assert trace.trace_id == trace_identity("tau-bench", "lamp-1-retail/0", 0)
    assert (trace.source, trace.source_id, trace.trial) == ("tau-bench", "lamp-1-retail/0", 0)
    assert (trace.workflow, trace.task_id, trace.task_key) == ("retail", "0", "tau-bench/retail/0")
    assert trace.prompt == "You are Ada. You want to return the lamp."
    assert [(a.name, a.text[:8]) for a in trace.inputs] == [("Agent policy", "# Retail")]
    assert trace.response == "Your lamp is returned: 12.50 back."
    assert (trace.model, trace.started_at) == ("lamp-1", None)
    assert runs[1].trace.response is None
    assert runs[3].trace.task_key == "tau-bench/retail/long label / 7"
    assert trace.success_criteria == (
        'Expected actions:\n1. return_item {"item": "lamp"}\nExpected in the answer: 12.50'
    )
    # The cost of the user is never that of the run.
    assert [run.trace.cost_usd for run in runs] == [None] * 4
    assert trace.metadata["user_cost"] == 0.004
    assert "user_cost" not in runs[1].trace.metadata
    text = (fixtures / "lamp-1-retail.json").read_text().splitlines()
    assert [run.line for run in runs] == [i for i, t in enumerate(text, 1) if t == "  {"]


def test_one_step_a_message_and_a_call_without_the_policy(runs: list[Parsed]) -> None:
    steps = runs[0].trace.steps
    shown = [(s.step_id, s.role, s.content, s.tool, s.result, s.error) for s in steps]
    assert shown == [
        ("s1", "user", "I want to return the lamp.", None, None, False),
        ("s2", "assistant", "Let me look.", "find_order", None, False),
        ("s3", "assistant", None, "return_item", None, False),
        ("s4", "tool", None, "find_order", "order 9: lamp, 12.50", False),
        ("s5", "tool", None, "return_item", "Error: item not found", True),
        ("s6", "assistant", "Your lamp is returned: 12.50 back.", None, None, False),
        ("s7", "user", "###STOP###", None, None, False),
    ]
    assert steps[1].arguments == '{"user": "ada_b_1"}'


def test_grades_are_proposals(runs: list[Parsed]) -> None:
    verdicts = [verdict_of(run) for run in runs]
    assert [v and (v.outcome, v.proposed) for v in verdicts] == [
        ("complete", True),
        ("partial_minus", True),
        ("partial_minus", True),
        ("no_verdict", False),
    ]
    assert {v.judge_id for v in verdicts if v} == {"source:tau-bench"}
    assert verdicts[0] is not None
    assert verdicts[0].reason == "reward 1; r_actions 1.0"
    assert verdicts[3] is not None
    assert verdicts[3].reason == "reward 0.5 is neither 0 nor 1: no class follows from it"


def test_a_run_that_failed_in_the_harness(runs: list[Parsed]) -> None:
    trace = runs[2].trace
    assert (trace.status, trace.steps, trace.response) == ("error", (), None)
    assert trace.prompt == "You are Ada. You want to return the lamp."  # from another trial
    assert trace.workflow == "retail"
    assert trace.metadata["error"] == "rate limit"


def test_model_and_domain_come_from_the_file_name(write: Any, split: Any, raw: Any) -> None:
    dated = "tool-calling-big-model-2-0.0_range_0--1_user-small-llm_0612"
    names = {"sonnet-35-new-retail": "sonnet-35-new", dated: "big-model-2", "plain": "plain"}
    for stem, model in names.items():
        assert split(write(f"{stem}.json", raw[:1]))[0][0].trace.model == model
    raw[0]["traj"] = raw[0]["traj"][1:]  # without the policy
    for stem, workflow in (("x-airline", "airline"), ("x", "tau-bench")):
        assert split(write(f"{stem}.json", raw[:1]))[0][0].trace.workflow == workflow
    taken, _ = split(write("x-retail.json", raw[:1]), ImportSettings(workflow="shop"))
    assert (taken[0].trace.workflow, taken[0].trace.task_key) == ("shop", "tau-bench/retail/0")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("task_id", None, "field 'task_id': is missing"),
        ("trial", 0.5, "field 'trial': must be a whole number, got 0.5"),
        ("traj", [3], "field 'traj': message 1 must be an object"),
        ("traj", [{"content": "x"}], "field 'traj': message 1 has no role"),
        ("traj", [{"role": "assistant", "tool_calls": [{}]}], "field 'tool_calls': a call has no"),
    ],
)
def test_a_malformed_run_is_set_aside_with_its_line(
    write: Any, split: Any, raw: Any, key: str, value: Any, why: str
) -> None:
    raw[1][key] = value
    path = write("runs.json", json.dumps(raw, indent=1))
    taken, aside = split(path)
    assert len(taken) == 3
    assert aside[0].reason.startswith(why)
    assert path.read_text().splitlines()[aside[0].line - 1] == " {"


def test_what_a_reward_proposes(write: Any, split: Any, raw: Any) -> None:
    none: list[Any] = [float("nan"), float("inf"), "1.2", [], 1.1, -1]
    proposed: list[tuple[Any, str | None]] = [
        *((reward, "no_verdict") for reward in none),
        (1 - 5e-7, "complete"),  # the tolerance of the benchmark
        (True, "complete"), ("1", "complete"), (None, None),
    ]  # fmt: skip
    for reward, outcome in proposed:
        raw[0]["reward"] = reward
        verdict = verdict_of(split(write("runs.json", raw[:1]))[0][0])
        assert (verdict and verdict.outcome) == outcome, reward


def test_a_truncated_file_names_the_line(fixtures: Path, write: Any) -> None:
    text = (fixtures / "lamp-1-retail.json").read_text()
    path = write("cut.json", text[: text.index('"task_id": "long')])
    assert detect(path).name == "tau-bench"
    with pytest.raises(TraceFormatError, match=r"cut\.json, line 60: .*not written to the end"):
        list(read_traces(path))
