"""A file is recognised by two features of its own; a table of results is sent to `asr report`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.trace_files import preview_lines, read_files
from calibration.errors import TraceFormatError
from calibration.trace_formats import ImportSettings, detect
from tests.cli_runs import Run
from tests.trace_formats.archives import parquet

SAID = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Hi."}]
LINES = "\n".join


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("history of a shell", {"history": ["ls", "cd"]}),
        ("history and a name", {"history": SAID, "info": {}, "user": "ann"}),
        ("runs of a race", {"runs": [{"runner": "Ann", "seconds": 12.5}]}),
        ("pages of any service", {"data": [{"id": 1, "title": "x"}], "meta": {"page": 1}}),
        ("data of any service", {"data": [{"id": 1, "title": "x"}]}),
        ("messages without roles", [{"messages": [{"sender": "Ann", "text": "Hi."}]}]),
        ("one message without a role", [{"messages": [*SAID, {"type": "log", "text": "x"}]}]),
        ("mails", {"messages": [{"from": "ann", "subject": "Hi", "body": "..."}]}),
        ("a log", LINES(map(json.dumps, [{"messages": SAID}, {"type": "span", "name": "x"}]))),
    ],
)
def test_one_feature_is_not_enough(name: str, content: Any, write: Any) -> None:
    with pytest.raises(TraceFormatError, match="format not recognised"):
        detect(write("a.json", content))


@pytest.mark.parametrize(
    ("title", "content"),
    [
        ("a SWE-agent trajectory", {"history": SAID, "info": {"exit_status": "submitted"}}),
        ("a LangSmith export", {"runs": [{"id": "r", "run_type": "llm"}]}),
        ("a Langfuse export", {"data": [{"id": "t", "observations": []}], "meta": {}}),
        ("chats in OpenAI form", {"messages": SAID}),
        ("chats in OpenAI form", LINES(map(json.dumps, [{"version": 1}, {"messages": SAID}]))),
    ],
)
def test_two_features_are(title: str, content: Any, write: Any) -> None:
    assert detect(write("a.json", content)).title == title


RESULTS = [{"case_id": f"c{k}", "Passed": k % 2 == 0, "cost": 0.1} for k in range(4)]


@pytest.mark.parametrize("form", ["csv", "semicolons", "jsonl", "json", "parquet", "records"])
def test_a_table_of_results_is_sent_to_the_report(
    form: str, write: Any, tmp_path: Path, asr: Run
) -> None:
    rows = [",".join(map(str, row.values())) for row in RESULTS]
    table = LINES(["case_id,Passed,cost", *rows])
    forms: dict[str, Callable[[], Path]] = {
        "csv": lambda: write("my runs.csv", table),
        "semicolons": lambda: write("my runs.csv", table.replace(",", ";")),
        "jsonl": lambda: write("my runs.jsonl", LINES(map(json.dumps, RESULTS))),
        "json": lambda: write("my runs.json", RESULTS),
        "parquet": lambda: parquet(tmp_path / "my runs.parquet", RESULTS),
        "records": lambda: write(
            "my runs.csv", "trace_id,workflow,outcome\na,w,complete\nb,w,complete\n"
        ),
    }
    path = forms[form]()
    done = asr("import", path, "--yes", "--store", tmp_path / "s.duckdb", code=2)
    assert "is a table of results" in done.stderr
    assert f"`asr report '{path}'`" in done.stderr
    assert not (tmp_path / "s.duckdb").exists()


def test_rows_with_what_was_said_are_no_results(write: Any) -> None:
    header = "trace_id,workflow,prompt,response,score\n"
    assert detect(write("a.csv", header + "a,w,Hi?,Hi.,1\n")).title == "our own records"


def test_unread_costs_ids_and_texts_are_named(write: Any) -> None:
    rows = [
        {"messages": SAID, "totalPrice": 0.2, "session_id": "s", "final_answer": "x", "shelf": 3},
        {"id": "b", "messages": SAID, "totalPrice": 0.1, "cost_usd": 0.1},
    ]
    read = read_files([write("a.jsonl", LINES(map(json.dumps, rows)))], ImportSettings())
    assert [(f.field, f.found, f.of) for f in read.preview.unread] == [
        ("totalPrice", 1, 2), ("session_id", 1, 2), ("final_answer", 1, 2)
    ]  # fmt: skip
    (line,) = [one for one in preview_lines(read) if one.startswith("Not read")]
    assert line == ("Not read      totalPrice (1 of 2), session_id (1 of 2), final_answer (1 of 2)")
