"""Tasks: what their runs say of them, on files and a store, and failed runs as new tasks."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from calibration.analyses.reliability.tasks import (
    DISAGREE,
    EVERYBODY,
    IDLE,
    NOBODY,
    TaskAudit,
    audit_store,
    audit_trials,
    failed_tasks,
)
from calibration.analyses.reliability.tools import routes_of_store
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.records import ExpectedCall, Step
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections.trials import task_audit
from calibration.tables.trials import read_task_groups, read_tasks
from reference_dataset.loader import load_reference
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, make_trace
from tests.cli_runs import Run, asr, data

__all__ = ["asr"]
PAGE = Path(__file__).parents[2] / "docs" / "methods" / "trials.md"
CALL = Step(step_id="s1", role="assistant", tool="book", arguments="{}", result="ok")


def found_of(audit: TaskAudit) -> dict[str, tuple[str, ...]]:
    return {finding.name: finding.first for finding in audit.findings}


def test_the_example_of_the_documents(asr: Run) -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## Audit of tasks")[2]
    example, command = re.search(r"```csv\n(.*?)```\n\n {4}asr (.*?)\n", text, re.S).groups()  # type: ignore[union-attr]
    Path("runs.csv").write_text(example, encoding="utf-8")
    printed = asr(*command.split()).stdout
    assert "Tasks: 3 of 5 tasks to look at, 10 runs" in printed
    assert "2 of 5 tasks have passes and failures" in printed
    made = data(asr("tasks", "audit", "runs.csv", "--json"))
    assert {name: of["first"] for name, of in made["findings"].items()} == {
        NOBODY: ["rebook"], EVERYBODY: ["cancel", "track"], DISAGREE: ["cancel"], IDLE: ["track"],
    }  # fmt: skip
    assert made["findings"][NOBODY]["share"]["interval"] == pytest.approx(
        [0.0362, 0.6245], abs=1e-4
    )
    assert made["agreement"]["value"] == 0.75
    tasks = {of["task_id"]: of for of in made["tasks"]}
    # 0 of 2 runs: at most 1 - .025 ^ (1 / 2).
    assert tasks["rebook"]["pass_rate"]["interval"] == pytest.approx([0, 1 - 0.025**0.5])
    assert {name: of["share_of_variance"] for name, of in tasks.items()} == {
        "refund": 0.5, "upgrade": 0.5, "cancel": 0.0, "track": 0.0, "rebook": 0.0,
    }  # fmt: skip
    assert (tasks["cancel"]["n_false_pass"], tasks["track"]["n_idle"]) == (1, 1)


def test_what_is_not_known_is_no_finding() -> None:
    rows = pd.DataFrame(
        {"task_id": ["a", "b", "b"], "success": [1, 1, 0], "model": ["x", "x", "x"]}
    )
    audit = audit_trials(rows, tasks=pd.DataFrame({"task_id": ["a", "c"], "reference": ["r", "s"]}))
    by_task = {of.task_id: of for of in audit.tasks}
    assert (by_task["a"].share_of_variance, by_task["b"].share_of_variance) == (None, 1.0)
    assert (by_task["a"].n_idle, audit.n_one_run, audit.n_unchecked) == (None, 1, 1)
    shares = {of.name: of.share for of in audit.findings}
    assert shares[NOBODY].n == 1  # one run does not tell that nobody solves a task
    one = audit_trials(rows[:1]).findings[0].share
    assert one.status.endswith("no task has two runs: run each task twice or more")
    assert not shares[IDLE].ok
    assert not shares[DISAGREE].ok
    assert audit.agreement is None
    with pytest.raises(InputError, match="model has 2 values"):
        audit_trials(rows.assign(model=["x", "x", "y"]))
    lines = "\n".join(text_lines(task_audit(audit)))
    assert "not estimable: no run is reviewed" in lines
    json.dumps(to_json.data(audit), allow_nan=False)


def test_bad_cells_are_set_aside_and_an_answer_alone_is_no_idling() -> None:
    rows = pd.DataFrame(
        {
            "task_id": list("abcdef"), "success": [1] * 6,
            "reviewed": ["", "maybe", "", "", "", ""],
            "tool_calls": [0, 1, -1, 0, None, 1e300], "response": ["yes", "", "x", "", "", "x"],
        }
    )  # fmt: skip
    audit = audit_trials(rows)
    assert audit.reading is not None
    assert [(of.code, of.rows) for of in audit.reading.left_out] == [("bad_value", 3)]
    assert audit.reading.left_out_line.endswith("first line 2: 'reviewed maybe')")
    assert {of.task_id: of.n_idle for of in audit.tasks} == {"a": 0, "d": 1, "e": 1}
    with pytest.raises(CalibrationError, match="no trial is left"):
        audit_trials(rows[1:2])


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """Make a store of eight runs of five tasks, one of a perturbed arm, and a reference trace."""
    changes: dict[str, dict[str, Any]] = {
        name: {"task_key": f"test/{key}", "task_id": key, "trial": k}
        for k, (name, key) in enumerate(zip(ids(8), "aabbcdde", strict=True))
    }
    changes["r000"] |= {"steps": (CALL,), "metadata": {"difficulty": "hard", "tier": 3}}
    changes["r002"] |= {
        "expected_calls": (ExpectedCall(name="book"),),
        "success_criteria": "booked",
    }
    changes["r004"] |= {"response": None}
    changes["r007"] |= {"perturbation": "fault"}
    made = new_world(n=8, n_drawn=4, traces=changes)
    known = next(iter(load_reference().traces.values()))
    made.store.ingest([make_trace(known.trace_id, prompt=known.prompt)])
    names = (*ids(8), known.trace_id)
    batch = made.store.add_batch(purpose="production", trace_ids=names, design={})
    return replace(made, batch_id=batch.batch_id, drawn=names)


def test_a_store_is_audited_by_its_grades_beside_its_labels(world: World) -> None:
    store = world.store
    with pytest.raises(CalibrationError, match="no run is left"):
        audit_store(store)
    world.label("ann", {"r000": "complete", "r002": "abandoned", "r004": "complete"})
    alone = audit_store(store)
    assert (alone.success_source, alone.n_runs) == ("labels", 3)
    assert "pass by their labels" in alone.notes[0]
    world.judge(
        {"r000": "complete", "r001": "complete", "r002": "complete", "r003": "abandoned",
         "r004": "complete", "r007": "complete"},
        "source:test",
    )  # fmt: skip
    audit = audit_store(
        store, tasks=pd.DataFrame({"task_id": ["c"], "expected_state": ['{"a": 1}']})
    )
    assert found_of(audit) == {
        NOBODY: (), EVERYBODY: ("test/a",), DISAGREE: ("test/b",), IDLE: ("test/c",),
    }  # fmt: skip
    assert (audit.n_runs, audit.n_unchecked) == (5, 2)
    # A run of the task calls a tool; the other one has no steps: nobody knows what it called.
    assert {of.task_id: of.n_idle for of in audit.tasks} == {"test/a": 0, "test/b": 0, "test/c": 1}
    assert (audit.agreement and audit.agreement.value) == pytest.approx(2 / 3)
    with pytest.raises(InputError, match="judge 'nobody' has no verdict"):
        audit_store(store, judge_id="nobody")


def test_simulated_and_real_runs_are_never_audited_together(new_world: NewWorld) -> None:
    world = new_world(n=4, n_drawn=2, traces={"r001": {"simulated": True}})
    world.judge({"r000": "complete"}, "source:test")
    world.judge({"r001": "complete"}, "source:test", simulated=True)
    with pytest.raises(MixedDataError):
        audit_store(world.store)


def test_the_agents_of_a_store_are_rated_by_task(new_world: NewWorld, asr: Run) -> None:
    def run(*agents: str | None, **metadata: str) -> dict[str, Any]:
        steps = tuple(
            Step(step_id=f"s{k}", role="assistant", content="x", agent=agent)
            for k, agent in enumerate(agents)
        )
        return {"steps": steps, "metadata": metadata}

    world = new_world(n=6, n_drawn=6, traces={
        "r000": run("desk", "billing", "billing", expected_route="billing", routed_to="billing"),
        "r001": run("desk", "billing", expected_route="billing", routed_to="flights"),
        "r002": run(None, expected_route="flights", routed_to="flights"),
        "r003": run(None, expected_route="flights"),
        "r004": run("desk") | {"task_key": "test/r003"},
    })  # fmt: skip
    with pytest.raises(CalibrationError, match="no run names an agent"):
        routes_of_store(new_world(n=2, n_drawn=1).store)
    world.label("ann", {"r000": "complete", "r001": "abandoned", "r004": "complete"})
    found = routes_of_store(world.store)
    assert (found.n_runs, found.n_labelled) == (6, 3)
    assert found.correct.value == pytest.approx(2 / 3)
    routes = found.routes
    assert (routes.accuracy.value, routes.n_without_expected) == (0.5, 2)
    assert "over tasks" in routes.accuracy.method
    assert [(of.expected_route, of.routed_to, of.n) for of in routes.confusion] == [
        ("billing", "billing", 1), ("billing", "flights", 1), ("flights", None, 1),
        ("flights", "flights", 1),
    ]  # fmt: skip
    # The agent of most steps, of several the later one; else the one it was routed to.
    assert {of.name: (of.n, of.share.value) for of in routes.by_agent} == {
        "billing": (2, 0.5), "desk": (1, 1.0), "flights": (1, None),
    }  # fmt: skip
    path = world.store.path
    world.store.close()
    assert "Several agents: 6 runs, 3 labelled" in asr("tools", "--store", path).stdout
    json.dumps(data(asr("tools", "--store", path, "--json")))


def test_failed_runs_become_tasks(world: World, asr: Run) -> None:
    store = world.store
    failed = dict.fromkeys(("r000", "r001", "r002", "r005", *world.drawn[7:]), "partial_minus")
    world.label("ann", failed)
    store.adjudicate(
        trace_id="r002", answers=store.taxonomy().answers_for("partial_minus"), adjudicator="lead",
        rationale=" The wrong day. ",
    )  # fmt: skip
    world.settle("r005", "complete")
    made = failed_tasks(store, "partial_minus", tasks=pd.DataFrame(
        {"task_id": ["a", "b"], "category": ["trips", ""], "reference": ["Friday", ""]}
    ))  # fmt: skip
    assert [(line["task_id"], line["runs"]) for line in made.tasks] == [
        ("a", ["r000", "r001"]), ("b", ["r002"]),
    ]  # fmt: skip
    assert sorted(made.left_out.values()) == [1, 1]  # the second run of a task; the reference set
    first, second = made.tasks
    assert (first["difficulty"], first["tier"], first["category"]) == ("hard", None, "trips")
    assert (first["reference"], second["reference"]) == ("Friday", "The wrong day.")
    assert second["expected_calls"] == [{"name": "book", "arguments": None, "step": None}]
    assert (second["success_criteria"], second["prompt"]) == ("booked", "Book r002")
    for wrong in ("great", "hallucinated"):
        with pytest.raises((InputError, CalibrationError), match=wrong):
            failed_tasks(store, wrong)
    path = store.path
    store.close()
    command = ("tasks", "export", "--from-class", "partial_minus", "--store", path, "--out")
    assert asr(*command, "tasks.jsonl").stdout.startswith("wrote 2 tasks to tasks.jsonl")
    assert read_task_groups(Path("tasks.jsonl"))["difficulty"] == {"a": "hard"}
    assert read_tasks(Path("tasks.jsonl")).reference == {"b": "The wrong day."}
    assert "exists already" in asr(*command, "tasks.jsonl", code=2).stderr


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"before": '[["a"]]'}, "pairs of tools"),
        ({"before": '[["a", 1]]'}, "pairs of tools"),
        ({"before": '{"a": "b"}'}, "pairs of tools"),
        ({"before": json.dumps([["a", "b"]] * 101)}, "at most 100"),
        ({"expected_state": "{"}, "not JSON"),
        ({"expected_state": "[" * 100_000}, "characters"),
        ({"reference": "x" * 20_001}, "at most 20,000"),
        ({"tier": "middle"}, "one of core, edge"),
        ({"other": "x"}, "needs one of the columns"),
    ],
)
def test_a_table_of_tasks_that_is_not_one_is_refused(row: dict[str, str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_tasks(pd.DataFrame([{"task_id": "a"} | row]))
