"""Runs of LangSmith: one trace of many runs, the cost of the first run, and message shapes."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibration.analyses.trace_files import read_files
from calibration.records import NO_VERDICT
from calibration.tables.scales import UNIT
from calibration.taxonomy import default_taxonomy
from calibration.trace_formats import ImportSettings, detect
from tests.trace_formats.conftest import Split, runs_of, verdict_of

Write = Callable[[str, Any], Path]


def run(own: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": own, "trace_id": "r", "parent_run_id": None if own == "r" else "r", "name": own,
        "run_type": "chain", "start_time": "2026-03-01T09:00:00", "status": "success",
        "end_time": "2026-03-01T09:00:02",
    } | changes  # fmt: skip


def test_the_runs_of_a_trace_become_one_run(fixtures: Path, split: Split) -> None:
    path = fixtures / "langsmith" / "runs.jsonl"
    assert detect(path).title == "a LangSmith export"
    (item,), aside = split(path)
    assert not aside
    found = item.trace
    assert (found.source_id, found.workflow, found.task_id) == ("r1", "refund-graph", "ex-51")
    # The runs below the first one cost 0.003 again.
    assert (found.cost_usd, found.latency_s, found.total_tokens) == (0.003, 5.0, 280)
    assert (found.status, found.model, found.metadata["thread"]) == ("completed", "m-1", "s1")
    assert [(s.role, s.tool, s.content, s.result) for s in found.steps] == [
        ("user", None, "Refund order 51, please.", None),
        ("assistant", "refund", None, None),
        ("tool", "refund", None, "ok"),
        ("assistant", None, "Order 51 is refunded.", None),
    ]
    assert verdict_of(item) is not None
    assert verdict_of(item).outcome == NO_VERDICT


def test_feedback_in_another_file_finds_its_trace_by_the_run(fixtures: Path) -> None:
    read = read_files([fixtures / "langsmith"], ImportSettings())
    (item,) = runs_of(read)
    assert verdict_of(item, correctness=UNIT) is not None
    assert verdict_of(item, correctness=UNIT).outcome == default_taxonomy().success
    assert verdict_of(item, correctness=UNIT).reason is not None
    assert "quality" not in verdict_of(item, correctness=UNIT).reason
    assert item.file.endswith("runs.jsonl")
    scores = item.trace.metadata["scores"]
    assert isinstance(scores, list)
    assert [(s["name"], s["human"]) for s in scores] == [
        ("correctness", False),
        ("quality", True),
        ("helpful", False),
    ]


def test_batches_are_merged_by_id_in_any_order(write: Write, split: Split) -> None:
    first = run(
        "r", run_type="llm", start_time=1772355600000, end_time=None, outputs={},
        inputs={"messages": [{"role": "user", "content": "Hi?"}]},
    )  # fmt: skip
    answer = {"choices": [{"message": {"role": "assistant", "content": "Hi."}}]}
    # A client in JavaScript leaves the id of a patch to the dotted order.
    last = {
        "end_time": 1772355601500, "outputs": answer, "trace_id": "r", "total_cost": "0.01",
        "dotted_order": "20260301T090000000000Zr",
    }  # fmt: skip
    (item,), aside = split(write("batch.json", {"patch": [last], "post": [first]}))
    assert not aside
    found = item.trace
    assert (found.latency_s, found.response, found.cost_usd) == (1.5, "Hi.", 0.01)
    lines = "\n".join(json.dumps({"post": [first], "patch": [last]}) for _ in range(2))
    assert split(write("batches.jsonl", lines))[0][0].trace.content_hash() == found.content_hash()


def test_runs_that_do_not_name_their_trace_follow_their_parents(write: Write, split: Split) -> None:
    rows = [
        run("leaf", parent_run_id="mid", trace_id=None, run_type="llm", outputs={"output": "Yes."}),
        run("mid", parent_run_id="top", trace_id=None),
        run("top", parent_run_id=None, trace_id=None, inputs={"question": "Open?"}),
        run("other", parent_run_id=None, trace_id=None, inputs={"input": "Hello."}),
    ]
    taken, _ = split(write("runs.json", {"runs": rows, "cursors": {}}))
    assert [(item.trace.source_id, item.trace.metadata["spans"]) for item in taken] == [
        ("top", 3),
        ("other", 1),
    ]
    assert taken[0].trace.prompt == "Open?"
    assert taken[0].trace.response == "Yes."


@pytest.mark.parametrize(
    ("total", "known"), [(None, None), ("0", None), (0, None), ("0.5", 0.5), (0.25, 0.25)]
)
def test_only_the_first_run_has_a_cost(
    total: object, known: float | None, write: Write, split: Split
) -> None:
    rows = [run("r", total_cost=total, outputs={"output": "x"}), run("c", total_cost=3)]
    assert split(write("runs.json", rows))[0][0].trace.cost_usd == known
    part = [run("c", total_cost=3, outputs={"output": "x"})]
    assert split(write("part.json", part))[0][0].trace.cost_usd is None


def test_langsmith_fetch_files(write: Write, split: Split) -> None:
    saved = {
        "trace_id": "r",
        "messages": [{"type": "human", "content": "Hi?"}, {"type": "ai", "content": "Hi."}],
        "metadata": {
            "status": "success", "start_time": "2026-03-01T09:00:00", "duration_ms": 1500,
            "costs": {"total_cost": 0.2}, "token_usage": {"total_tokens": 9},
            "custom_metadata": {"task_id": "greet"},
            "feedback_stats": {"passed": {"n": 1, "avg": 0}},
        },
        "feedback": [{"id": "f", "run_id": "r", "key": "tone", "score": 1}],
    }  # fmt: skip
    (item,), _ = split(write("r.json", saved))
    found = item.trace
    assert (found.prompt, found.response, found.task_id) == ("Hi?", "Hi.", "greet")
    assert (found.latency_s, found.cost_usd, found.total_tokens) == (1.5, 0.2, 9)
    assert found.status == "completed"
    assert found.started_at is not None
    assert verdict_of(item) is not None
    assert verdict_of(item).outcome == default_taxonomy().failed_check


def test_anthropic_and_nested_children(write: Write, split: Split) -> None:
    use = {"type": "tool_use", "id": "k", "name": "find", "input": {"q": "desk"}}
    said = {"role": "assistant", "content": [{"type": "thinking", "thinking": "..."}, use]}
    # LangChain repeats the call beside the content.
    given = {**said, "tool_calls": [{"id": "k", "name": "find", "args": {"q": "desk"}}]}
    told = {"type": "tool_result", "tool_use_id": "k", "content": [{"type": "text", "text": "12"}]}
    first = run("a", run_type="llm", inputs={"system": "Sell.", "messages": [
        {"role": "user", "content": "Desks?"}]}, outputs={"message": given})  # fmt: skip
    tool = run("b", run_type="tool", name="find", inputs={"input": "{'q': 'desk'}"},
               outputs={"output": "12"}, error="late",
               start_time="2026-03-01T09:00:02")  # fmt: skip
    second = run(
        "c", run_type="llm", start_time="2026-03-01T09:00:04", end_time="2026-03-01T09:00:05",
        inputs={"messages": [
            {"role": "user", "content": "Desks?"}, said,
            {"role": "user", "content": [told, {"type": "text", "text": "Go on."}]}]},
        outputs={"content": [{"type": "text", "text": "12 desks."}], "role": "assistant"},
    )  # fmt: skip
    root = run("r", child_runs=[first, tool, second], error="x", run_type="chain")
    (item,), _ = split(write("tree.json", [root]))
    assert [(s.role, s.tool, s.content, s.result, s.error) for s in item.trace.steps] == [
        ("system", None, "Sell.", None, False),
        ("user", None, "Desks?", None, False),
        ("assistant", "find", None, None, False),
        ("tool", "find", None, "12", True),
        ("user", None, "Go on.", None, False),
        ("assistant", None, "12 desks.", None, False),
    ]
    assert item.trace.status == "error"
    assert item.trace.response == "12 desks."


def test_rows_that_are_no_run_are_set_aside(write: Write, split: Split) -> None:
    rows = [
        run("r", outputs={"output": "x"}),
        {"run_type": "llm", "id": None},
        {"key": "a", "run_id": None, "score": 1},
        {"key": "a", "run_id": "gone", "score": 1},
        run("s", trace_id="s", start_time="9999-12-31T23:59:59"),
        5,
    ]
    taken, aside = split(write("runs.jsonl", "\n".join(map(json.dumps, rows))))
    assert len(taken) == 1
    reasons = " ".join(row.reason for row in aside)
    assert len(aside) == 5
    for told in ("'id': is missing", "not on a run", "'gone'", "1990 to 2100", "got 5"):
        assert told in reasons


def test_a_bulk_export_in_parquet(tmp_path: Path, fixtures: Path, split: Split) -> None:
    lines = (fixtures / "langsmith" / "runs.jsonl").read_text().splitlines()
    columns: dict[str, list[Any]] = {}
    for row in map(json.loads, lines):
        for key in (
            "id",
            "trace_id",
            "parent_run_id",
            "run_type",
            "name",
            "start_time",
            "end_time",
        ):
            columns.setdefault(key, []).append(row[key])
        for key in ("inputs", "outputs", "extra"):
            columns.setdefault(key, []).append(json.dumps(row.get(key)))
        cost = row["total_cost"]
        columns.setdefault("total_cost", []).append(None if cost is None else Decimal(cost))
    path = tmp_path / "export.parquet"
    pq.write_table(pa.table(columns), path)
    assert detect(path).title == "a LangSmith export"
    (item,), aside = split(path)
    assert not aside
    assert (item.trace.cost_usd, len(item.trace.steps)) == (0.003, 4)
    assert item.trace.model == "m-1"
