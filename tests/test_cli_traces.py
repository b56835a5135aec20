"""Listing traces by the command line, as the Data page does."""

from pathlib import Path
from typing import Any

import pytest

from calibration.store import Store, TraceFilter
from tests.cli_runs import Run, data, record, write


def calls(*ended: str) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool": tool, "result": "x", "error": how == "error"}
        for tool, _, how in (call.partition(":") for call in ended)
    ]


@pytest.fixture
def filled(asr: Run, tmp_path: Path) -> Path:
    rows = [
        record("r1", task_id="7", steps=calls("pay:ok", "pay:error"), status="failed",
               started_at="2026-01-01T10:00:00Z", model="m-1"),
        record("r2", task_id="7", trial=1, steps=calls("pay:ok"), status="completed",
               started_at="2026-01-02T10:00:00Z"),
        record("r3", task_id="7", trial=2, steps=calls("find:error"), status="failed",
               started_at="2026-01-03T00:00:00Z"),
        record("r4", workflow="hotels", prompt="=cmd"),
    ]  # fmt: skip
    asr("import", write(tmp_path / "runs.jsonl", *rows), "--yes")
    return tmp_path / "asr.duckdb"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["r1", "r2", "r3", "r4"]),
        (["--workflow", "hotels"], ["r4"]),
        (["--tool", "pay"], ["r1", "r2"]),
        (["--tool", "pay", "--tool-error"], ["r1"]),
        (["--tool", "pay", "--tool-ok"], ["r2"]),
        (["--tool-error", "--status", "failed"], ["r1", "r3"]),
        (["--from", "2026-01-02"], ["r2", "r3"]),
        (["--to", "2026-01-02"], ["r1", "r2"]),
        (["--to", "2026-01-02T10:00"], ["r1"]),
        (["--text", "BOOK R2"], ["r2"]),
        (["--model", "m-1"], ["r1"]),
        (["--class", "unlabelled", "--descending"], ["r4", "r3", "r2", "r1"]),
        (["--query", "Failed payments"], ["r1"]),
    ],
)
def test_the_list_holds_what_the_filters_find(
    asr: Run, filled: Path, words: list[str], expected: list[str]
) -> None:
    with Store.open(filled) as store:
        store.save_query("Failed payments", TraceFilter(tool="pay", tool_ended="error"))
    shown = data(asr("traces", *words, "--json"))
    assert [row["trace_id"] for row in shown["traces"]] == expected
    assert shown["n"] == len(expected)


def test_failed_trials_of_one_task_that_called_a_tool(asr: Run, filled: Path) -> None:
    key = data(asr("traces", "--status", "failed", "--json"))["traces"][0]["task_key"]
    shown = data(asr("traces", "--task", key, "--tool", "pay", "--tool-error", "--json"))
    assert [row["trace_id"] for row in shown["traces"]] == ["r1"]
    (row,) = shown["traces"]
    assert (row["tool_calls"], row["tool_errors"]) == (2, 1)
    assert row["started_at"] == "2026-01-01T10:00:00Z"
    assert shown["filters"] == {"task_key": key, "tool": "pay", "tool_ended": "error"}
