"""Graders written as code: each kind, files that are refused, hostile runs, and the command."""

import csv
import json
import time
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.reliability.grading import grade_files, grade_store
from calibration.errors import InputError
from calibration.records import Step, Trace
from calibration.reliability.graders import (
    MOST_TEXT,
    Grade,
    grade_trace,
    parse_graders,
    read_graders,
)
from calibration.store import Store
from tests.cli_runs import asr, data
from tests.store.builders import make_trace

__all__ = ["asr"]


def made(number: int, *calls: str, **changes: Any) -> Trace:
    """Return a run that calls these tools, in order, with the arguments {"n": place}."""
    steps = tuple(
        Step(
            step_id=f"s{k}", role="user" if name.startswith("user:") else "assistant",
            tool=name.removeprefix("user:"), arguments=f'{{"n": {k}, "deep": {{"b": 1, "a": 2}}}}',
            result=f"result {k}",
        )
        for k, name in enumerate(calls, 1)
    )  # fmt: skip
    return make_trace(number, steps=steps, **changes)


def graded(table: str, trace: Trace, *, name: str = "g") -> Grade:
    return grade_trace(trace, parse_graders(table))[name]


def passed(table: str, trace: Trace) -> bool | None:
    return graded(f"[graders.g]\n{table}", trace).passed


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('kind = "text"\ncontains = "30 EUR"', True),
        ('kind = "text"\ncontains = "30 eur"', False),
        ('kind = "text"\ncontains = "30 eur"\nignore_case = true', True),
        ('kind = "text"\nequals = "Refund of 30 EUR."', True),
        ('kind = "text"\nequals = "Refund"', False),
        ("kind = \"text\"\nregex = '^Refund of \\d+ EUR'", True),
        ("kind = \"text\"\nregex = 'refund'", False),
        ("kind = \"text\"\nregex = 'refund'\nignore_case = true", True),
        ('kind = "text"\nin = "results"\ncontains = "result 2"', True),
        ('kind = "text"\nin = "arguments"\ncontains = \'"n": 9\'', False),
        ('kind = "tool_called"\ntool = "find"', True),
        ('kind = "tool_called"\ntool = "fin"', False),
        ('kind = "tool_called"\ntool = "find"\nat_least = 3', False),
        ('kind = "tool_called"\ntool = "find"\nat_most = 1', False),
        ('kind = "tool_called"\ntool = "find"\narguments = {n = 1.0}', True),
        ('kind = "tool_called"\ntool = "find"\narguments = {n = 1, deep = {a = 2, b = 1}}', True),
        ('kind = "tool_called"\ntool = "find"\narguments = {n = true}', False),
        ('kind = "tool_not_called"\ntool = "cancel_order"', True),
        ('kind = "tool_not_called"\ntool = ["pay", "cancel_order_all"]', False),
        ('kind = "state"\npath = "after.order.status"\nequals = "cancelled"', True),
        ('kind = "state"\npath = "after.order"\nequals = {n = 1, status = "cancelled"}', True),
        ('kind = "state"\npath = ["after", "order", "n"]\nequals = 2', False),
        ('kind = "state"\npath = "after.order"\nsame_as = "goal"', True),
        ('kind = "state"\npath = "after.nothing"\nequals = 2', None),
        ('kind = "before"\nfirst = "find"\nlater = "cancel_*"', True),
        ('kind = "before"\nfirst = "confirm"\nlater = "find"', False),
        ('kind = "before"\nfirst = "find"\nlater = "pay"', None),
    ],
)
def test_each_kind(table: str, expected: bool | None) -> None:
    trace = made(
        1, "find", "find", "cancel_order_all", "user:cancel_order",
        response="Refund of 30 EUR.",
        metadata={
            "after": '{"order": {"status": "cancelled", "n": 1.0}}',
            "goal": {"n": 1, "status": "cancelled"},
        },
    )  # fmt: skip
    assert passed(table, trace) is expected


def test_a_forbidden_tool_has_an_exact_name() -> None:
    rule = 'kind = "tool_not_called"\ntool = "cancel_order"'
    assert passed(rule, made(1, "cancel_order_all")) is True
    found = graded(f"[graders.g]\n{rule}", made(1, "find", "cancel_order"))
    assert found == Grade(passed=False, reason="called cancel_order: step s2")


def test_rules_of_order_name_the_steps_that_break_them() -> None:
    rules = 'before = [["lookup", "cancel"], ["confirm_with_user", "write:*"]]'
    trace = made(1, "write:a", "cancel", "lookup", "write:b", "confirm_with_user", "write:c")
    found = grade_trace(trace, parse_graders(rules))
    assert found["lookup before cancel"].reason == "cancel without lookup before it: step s2"
    assert found["confirm_with_user before write:*"].reason.endswith("before it: steps s1, s4")
    kept = grade_trace(made(1, "lookup", "cancel"), parse_graders(rules))
    assert kept["lookup before cancel"].passed is True
    assert kept["confirm_with_user before write:*"].applies is False


COMPOSITE = """
[graders.g]
kind = "{kind}"
of = ["a", "b", "c"]
{more}
[graders.a]
kind = "tool_called"
tool = "a"
[graders.b]
kind = "tool_called"
tool = "b"
[graders.c]
kind = "text"
contains = "yes"
"""


@pytest.mark.parametrize(
    ("kind", "more", "calls", "response", "expected"),
    [
        ("all", "", "ab", "yes", True),
        ("all", "", "a", "yes", False),
        ("all", "", "a", None, False),
        ("all", "", "ab", None, None),
        ("any", "", "a", None, True),
        ("any", "", "", None, None),
        ("any", "", "", "no", False),
        ("weighted", "weights = [1, 2, 1]\nthreshold = 0.75", "ab", "no", True),
        ("weighted", "weights = [1, 2, 1]\nthreshold = 0.76", "ab", "no", False),
        ("weighted", "", "ab", "yes", True),
        ("weighted", "", "ab", None, None),
    ],
)
def test_composites(
    kind: str, more: str, calls: str, response: str | None, expected: bool | None
) -> None:
    table = COMPOSITE.format(kind=kind, more=more)
    assert graded(table, made(1, *calls, response=response)).passed is expected


def test_a_grader_is_for_its_workflow_or_task() -> None:
    table = '[graders.g]\nkind = "tool_called"\ntool = "a"\n'
    for key, value in (("workflow", "research"), ("task", "test/1"), ("task", "1")):
        assert "g" in grade_trace(made(1), parse_graders(f'{table}{key} = "{value}"'))
        assert "g" not in grade_trace(made(1), parse_graders(f'{table}{key} = ["other"]'))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no grader"),
        ("[grader.a]", "unknown key 'grader'"),
        ("graders = 1", "must be tables"),
        ("[graders.a]\nkind = 'llm'", "'kind' must be one of"),
        ("[graders.a]\nkind = 'text'\nregexp = 'x'", "unknown key 'regexp'"),
        ("[graders.a]\nkind = 'text'", "needs one of equals, contains, regex"),
        ("[graders.a]\nkind = 'text'\nregex = '(?=x)'", "is not one of RE2"),
        ("[graders.a]\nkind = 'text'\nregex = '(a)\\1'", "is not one of RE2"),
        (f"[graders.a]\nkind = 'text'\nregex = '{'x' * 501}'", "more than 500 characters"),
        ("[graders.a]\nkind = 'text'\nin = 'prompt'\ncontains = 'x'", "'in' must be one of"),
        ("[graders.a]\nkind = 'tool_called'", "'tool' must be text"),
        ("[graders.a]\nkind = 'tool_called'\ntool = 'x'\nat_least = true", "whole number"),
        ("[graders.a]\nkind = 'tool_called'\ntool = 'x'\narguments = {d = 2026-01-01}", "JSON"),
        ("[graders.a]\nkind = 'tool_not_called'", "'tool' is missing"),
        ("[graders.a]\nkind = 'state'\npath = 'x'", "needs one of equals, same_as"),
        ("[graders.a]\nkind = 'state'\npath = 'x'\nequals = nan", "JSON"),
        ("[graders.a]\nkind = 'state'\npath = '..'\nequals = 1", "must be keys"),
        ("[graders.a]\nkind = 'all'\nof = ['b']", "there is no grader 'b'"),
        ("[graders.a]\nkind = 'all'\nof = ['a']", "made of each other: a"),
        ("[graders.a]\nkind = 'all'", "'of' must name graders"),
        ("[graders.a]\nkind = 'weighted'\nof = ['b']\nweights = [inf]\n[graders.b]\n"
         "kind = 'tool_called'\ntool = 'x'", "must be a number"),
        ("before = [['a']]", "pairs of tools"),
        ("before = 'a'", "must be a list"),
        ("before = [['a', 'a']]", "names one tool twice"),
        ("before = [['a', 'b*c']]", "beginning of its name"),
        ("before = [['a', 'b'], ['a', 'b']]", "two graders are called"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "graders.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"graders\.toml: ") as error:
        read_graders(path)
    assert why in str(error.value)


def test_a_task_file_has_states_and_rules_of_order(asr: Any, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "methods" / "tools.md").read_text("utf-8")
    Path("tasks.jsonl").write_text(page.partition("```jsonl\n")[2].partition("```")[0], "utf-8")
    runs = [
        {"trace_id": f"r{k}", "workflow": "w", "prompt": "p", "task_id": task, **more,
         "steps": [{"role": "assistant", "tool": name, "arguments": "{}"} for name in calls]}
        for k, (task, calls, more) in enumerate([
            ("task-1", ["lookup", "cancel"], {"state": {"order": "cancelled"}}),
            ("task-1", ["cancel", "lookup"], {"state": {"order": "open"}}),
            ("task-1", ["lookup"], {"expected_state": {"order": "open"}}),
            ("other", ["cancel"], {"state": {"order": "cancelled"}}),
        ])
    ]  # fmt: skip
    Path("runs.jsonl").write_text("\n".join(map(json.dumps, runs)), encoding="utf-8")
    Path("state.toml").write_text(
        '[graders.state]\nkind = "state"\npath = "state.order"\n'
        'same_as = "expected_state.order"\n', encoding="utf-8",
    )  # fmt: skip
    made = data(
        asr("grade", "runs.jsonl", "--tasks", "tasks.jsonl", "--graders", "state.toml", "--json")
    )
    order, state = (made["graders"][n] for n in ("lookup before cancel (task file)", "state"))
    assert [order[n] for n in ("n_passed", "n_failed", "n_not_applicable")] == [1, 1, 2]
    assert order["first_failed"][0]["reason"] == "cancel without lookup before it: step s1"
    assert [state[n] for n in ("n_passed", "n_failed", "n_not_graded")] == [1, 1, 2]
    assert asr("grade", "runs.jsonl", "--tasks", "tasks.jsonl").stdout.startswith("4 runs: some")
    assert "there is no grader" in asr("grade", "runs.jsonl", code=2).stderr
    Path("bad.jsonl").write_text('{"task_id": "a", "before": [["x", "x"]]}', encoding="utf-8")
    assert "task 'a', before: names one tool twice" in asr(
        "grade", "runs.jsonl", "--tasks", "bad.jsonl", code=2
    ).stderr.replace("\n", " ")


def test_no_pattern_makes_a_grader_slow() -> None:
    trace = made(1, response="a" * (MOST_TEXT - 1) + "!")
    began = time.perf_counter()
    for pattern in ("(a+)+$", "(a|a)*b$", "(a*)*b"):
        assert passed(f"kind = 'text'\nregex = '{pattern}'", trace) is False
    assert time.perf_counter() - began < 5
    longer = made(1, response="a" * (MOST_TEXT + 1))
    found = graded("[graders.g]\nkind = 'text'\nregex = 'a'", longer)
    assert (found.passed, "more than" in found.reason) == (None, True)


def test_arguments_that_are_no_json_are_no_match() -> None:
    rule = "[graders.g]\nkind = 'tool_called'\ntool = 'a'\narguments = {x = 1}"
    for text in ("[" * 100_000, "{", "[1]", '{"x": NaN}', '{"x": 2}'):
        step = Step(step_id="1", role="assistant", tool="a", arguments=text)
        assert graded(rule, make_trace(1, steps=(step,))).passed is False


GRADERS = """
before = [["find", "pay"]]
[graders.answers]
kind = "text"
regex = "(?s).+"
[graders."no pay"]
kind = "tool_not_called"
tool = "pay"
[graders.state]
kind = "state"
path = "paid"
equals = true
[graders."for task 2"]
kind = "tool_called"
tool = "find"
task = "2"
"""


def test_a_store_is_graded_and_compared_with_its_consensus(built_demo: Path) -> None:
    with Store.open_to_read(built_demo)[0] as store:
        found = grade_store(store, parse_graders(GRADERS))
        labelled = len(store.consensus_frame())
        assert found.n_traces == len(store.production_traces())
    by_name = {of.name: of for of in found.graders}
    beside = by_name["answers"].against_labels
    assert beside is not None
    counts = beside.pass_success + beside.pass_other + beside.fail_success + beside.fail_other
    assert counts == beside.agreement.n >= min(labelled, 1)
    assert by_name["find before pay"].n_not_applicable == found.n_traces
    assert by_name["find before pay"].share.value is None


def test_a_store_gives_the_same_grades_as_the_file(tmp_path: Path) -> None:
    traces = [
        made(1, "find", "pay", metadata={"paid": True}), made(2, "pay"),
        made(3, response=None), made(2, "find", trace_id="t-other", source_id="x", trial=1),
    ]  # fmt: skip
    path = tmp_path / "asr.duckdb"
    with Store.open(path, create=True) as store:
        store.ingest(traces)
        assert store.whole_traces([t.trace_id for t in traces]) == traces
        found = grade_store(store, parse_graders(GRADERS))
    graders = parse_graders(GRADERS)
    own = {(t.trace_id, g): grade for t in traces for g, grade in grade_trace(t, graders).items()}
    assert {(of.trace_id, of.grader): of.passed for of in found.grades} == {
        key: grade.passed for key, grade in own.items() if grade.applies
    }
    by_name = {of.name: of for of in found.graders}
    assert (by_name["no pay"].n_passed, by_name["no pay"].n_failed) == (2, 2)
    assert by_name["for task 2"].n_not_applicable == 2
    assert by_name["state"].not_graded[0].n == 3


def test_the_command_proposes_and_writes_no_label(asr: Any, tmp_path: Path) -> None:
    record = {"trace_id": "=1+1", "workflow": "w", "prompt": "p", "response": "done", "steps": [
        {"step_id": "1", "role": "assistant", "tool": "pay", "arguments": {}},
    ]}  # fmt: skip
    bad = {"trace_id": "b", "workflow": "w", "prompt": 7}
    Path("runs.jsonl").write_text(f"{json.dumps(record)}\n{json.dumps(bad)}\n", "utf-8")
    Path("graders.toml").write_text(GRADERS, "utf-8")
    done = asr("grade", "runs.jsonl", "--graders", "graders.toml", "--csv", "out.csv", "--json")
    found = data(done)
    assert found["n_traces"] == 1
    assert found["graders"]["no pay"]["first_failed"][0]["reason"] == "called pay: step 1"
    assert found["set_aside"][0]["n"] == 1
    with Path("out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["proposed"] for row in rows} == {"pass", "fail", "not graded"}
    assert "outcome" not in rows[0]
    assert rows[0]["trace_id"] == "'=1+1"
    text = asr("grade", "runs.jsonl", "--graders", "graders.toml").stdout
    assert "Graders propose; they give no label." in text
    asr("grade", "runs.jsonl", "--graders", "graders.toml", "--csv", "runs.jsonl", code=2)
    asr("grade", "missing.jsonl", "--graders", "graders.toml", code=2)


def test_files_of_no_run_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"trace_id": "b", "workflow": "w", "prompt": 7}\n', "utf-8")
    with pytest.raises(InputError, match="no run to grade"):
        grade_files([path], parse_graders(GRADERS))
