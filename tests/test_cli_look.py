"""What a file is for: `asr look` says how it would be read, and gives the command that reads it."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from click.testing import Result

from calibration.analyses import look as looks
from calibration.analyses.look import look_at
from calibration.errors import InputError
from calibration.runs.engines import macros
from calibration.tables import words
from calibration.tables.reading import ReadingOptions
from calibration.tables.scales import PASS_OR_FAIL
from tests.cli_runs import Run, asr, data

__all__ = ["asr"]

WORDS = ["TRUE"] * 13 + ["FALSE"] * 6 + ["NA"]
N = len(WORDS)


def table(name: str, *, delimiter: str = ",", **columns: Sequence[Any]) -> Path:
    """Write a table as CSV, JSON Lines or Parquet, by the ending of its name."""
    return written(Path(name), pd.DataFrame(columns), delimiter)


def written(path: Path, frame: pd.DataFrame, delimiter: str = ",") -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep=delimiter)
    return path


def of_runs(name: str = "runs.csv", **changes: Sequence[Any]) -> Path:
    columns: dict[str, Sequence[Any]] = {
        "id": [f"run {k}" for k in range(N)],
        "passed": WORDS,
        "cost": [f"{0.01 * (k + 1):.2f}" for k in range(N)],
        "comment": ["fine"] * N,
    }
    return written(Path(name), pd.DataFrame(columns | changes))


def lines(result: Result) -> list[str]:
    return [re.sub(r"\s+", " ", line.strip()) for line in result.stdout.splitlines()]


def test_runs_are_shown_by_role_with_the_command_to_paste(asr: Run) -> None:
    of_runs()
    assert lines(asr("look", "runs.csv")) == [
        "runs.csv: 20 rows, comma-separated, UTF-8",
        "trace_id id 20 different values",
        "outcome passed TRUE = pass 13, FALSE = fail 6, NA = missing 1",
        "cost_usd cost $0.0100 to $0.20, 20 known",
        "task_id (none) each run is a task of its own",
        "not read comment",
        PASS_OR_FAIL,
        "1 outcome written NA was taken as missing.",
        "Left out: 1 of 20 rows (1 without an outcome, first line 21)",
        "asr report runs.csv --column trace_id=id --column outcome=passed --column cost_usd=cost",
    ]


@pytest.mark.parametrize("name", ["runs.csv", "runs.jsonl", "runs.parquet"])
def test_the_command_to_paste_reads_the_same(asr: Run, name: str) -> None:
    of_runs(name)
    found = data(asr("look", name, "--json"))
    assert found["for"] == "runs"
    words = shlex.split(found["command"])[1:]
    assert words[0] == "report"
    reading = data(asr(*words, "--json"))["reading"]
    for key in ("rows", "used", "columns", "not_read", "words", "left_out", "rubric"):
        assert found["reading"][key] == reading[key], key


def test_options_are_in_the_command_to_paste(asr: Run) -> None:
    of_runs("my runs.csv", passed=["done"] * 12 + ["gone, sadly"] * 8, arm=["a", "b"] * 10)
    options = ["--map", "done=pass", "--map", '"gone, sadly=fail"', "--where", "arm=a"]
    found = data(asr("look", "my runs.csv", "--column", "task_id=", *options, "--json"))
    assert found["reading"]["used"] == 10
    report = data(asr(*shlex.split(found["command"])[1:], "--json"))
    assert report["n"] == 10 if "n" in report else report["reading"]["used"] == 10


def trials_file() -> Path:
    passed = [k % 3 != 0 for k in range(12)]
    return table("t.csv", case=[k // 3 for k in range(12)], run_idx=[0, 1, 2] * 4, passed=passed)


def ratings_file() -> Path:
    return table(
        "t.csv",
        delimiter=";",
        item_id=[k // 2 for k in range(12)],
        annotator=["Ann", "Bo"] * 6,
        label=["good", "good", "bad", "good", "bad", "bad"] * 2,
    )


def wide_file() -> Path:
    return table(
        "t.csv", item=range(6), rater_1=["a", "b"] * 3, rater_2=["a", "a"] * 3, note=["x"] * 6
    )


def labels_file() -> Path:
    return table(
        "t.csv",
        trace_id=[f"t{k}" for k in range(6)],
        reviewer=["Ann", "Bo"] * 3,
        outcome=["Complete", "abandoned", "complete"] * 2,
    )


def verdicts_file() -> Path:
    return table(
        "t.csv",
        trace_id=[f"t{k}" for k in range(6)],
        judge=["j1"] * 6,
        verdict=["complete", "abandoned"] * 3,
        reason=["because"] * 6,
    )


def traces_file() -> Path:
    path = Path("t.jsonl")
    rows = [
        {"trace_id": f"t{k}", "workflow": "faq", "prompt": "Why?", "response": "So."}
        for k in range(4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("used_for", "write", "command"),
    [
        ("trials", trials_file, "trials t.csv --column task_id=case"),
        ("ratings", ratings_file, "agreement t.csv --column item=item_id --column rater=annotator"),
        ("ratings", wide_file, "agreement t.csv"),
        ("labels", labels_file, "labels import t.csv"),
        ("verdicts", verdicts_file, "verdicts import t.csv --judge NAME --column outcome=verdict"),
        ("traces", traces_file, "import t.jsonl"),
    ],
)
def test_a_file_is_recognised(
    asr: Run, used_for: str, write: Callable[[], Path], command: str
) -> None:
    path = write()
    before = path.read_bytes()
    found = data(asr("look", path, "--json"))
    assert (found["for"], found["command"][: len(command) + 4]) == (used_for, f"asr {command}")
    assert found["reading"]["rows"] > 0
    assert f"asr {command}" in asr("look", path).stdout
    assert path.read_bytes() == before
    assert sorted(Path().iterdir()) == [path]


@pytest.mark.parametrize("write", [trials_file, ratings_file, wide_file])
def test_commands_on_files_read_what_was_shown(asr: Run, write: Callable[[], Path]) -> None:
    found = data(asr("look", write(), "--json"))
    words = shlex.split(found["command"])[1:]
    reading = data(asr(*words, "--json"))["reading"]
    for key in ("rows", "used", "layout", "columns", "item", "raters", "not_read", "left_out"):
        assert found["reading"][key] == reading[key], key


def test_what_is_not_clear_is_asked_and_what_was_tried_is_said(asr: Run) -> None:
    of_runs(passed=range(N))
    refused = asr("look", "runs.csv", code=2)
    assert refused.stdout == ""
    assert (
        "passed goes from 0 to 19: --scale 1-5, or another scale with --pass-at" in refused.stderr
    )
    assert "(tried as runs, ratings and traces)" in refused.stderr
    found = lines(asr("look", "runs.csv", "--scale", "0-19", "--pass-at", "7"))
    assert found[-1].endswith("--column cost_usd=cost --scale 0-19 --pass-at 7")


def test_a_table_of_neither_runs_nor_raters_asks_both_questions(asr: Run) -> None:
    table("t.csv", task_id=range(6), Delta=["y", "n"] * 3, Echo=["y", "y"] * 3)
    said = asr("look", "t.csv", code=2).stderr
    assert "no column holds the outcome" in said
    assert "if it holds ratings: it is not clear which columns hold ratings: Delta, Echo" in said
    assert data(asr("look", "t.csv", "--raters", "Delta,Echo", "--json"))["for"] == "ratings"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.csv", None, "none.csv"),
        ("empty.csv", b"", "empty"),
        ("blank.csv", b" \n\n", "empty"),
        ("pack.zip", b"PK\x03\x04rest", "pack.zip"),
        ("page.pdf", b"%PDF-1.7", "is no table"),
    ],
)
def test_what_is_no_file_of_ours_has_a_message(
    asr: Run, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    assert said in asr("look", name, code=2).stderr


def test_text_that_would_end_the_line_is_spelled_out(asr: Run) -> None:
    of_runs(passed=["yes\x1b[2J"] * 10 + ["no"] * 10)
    shown = asr("look", "runs.csv").stdout
    assert "\x1b" not in shown
    assert "unknown 10" in shown


def test_a_large_table_is_read_by_its_outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = of_runs(id=[f"run {k // 2}" for k in range(N)], task=["a", "b"] * 10)
    whole = look_at(path, ReadingOptions(columns={"trace_id": "id"}))
    monkeypatch.setattr(looks, "FEW_ROWS", 5)
    found = look_at(path, ReadingOptions(columns={"trace_id": "id"}))
    assert whole.roles == found.roles
    assert found.reading.used == N - 1
    assert [(one.code, one.rows) for one in found.reading.left_out] == [("missing_outcome", 1)]
    assert "10 rows repeat the trace_id of another one." in found.reading.notes


def test_many_rows_are_read_as_few_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    times = [f"2026-03-{k % 28 + 1:02d}T10:00:00Z" for k in range(N)]
    path = of_runs(started_at=times, latency_ms=[1500] * N, workflow=["a", "NA"] * 10)
    few = look_at(path).roles
    monkeypatch.setattr("calibration.runs.sources.LARGE", 1)
    assert look_at(path).roles == few
    by_role = {one.role: one for one in few}
    assert (by_role["latency_s"].low, by_role["workflow"].known) == (1.5, 10)


def test_the_library_asks_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no column holds the outcome"):
        look_at(path)


def test_texts_that_are_plain_are_as_clean_as_others() -> None:
    texts = [
        "a",
        " a",
        "a ",
        "a b",
        "a\t",
        "\na",
        "\u00a0a",
        "a\u200b",
        "\u00e9",
        "",
        " ",
        "-",
        "a\x7f",
    ]
    with duckdb.connect() as connection:
        connection.execute(macros("functions", "functions_duckdb"))
        rows = connection.execute(
            "SELECT given, clean_of(given), clean_of_any(given) FROM unnest($1) AS listed(given)",
            [texts],
        ).fetchall()
    assert [(one, two) for _, one, two in rows] == [(words.clean(t), words.clean(t)) for t in texts]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_large_table_is_looked_at_without_what_a_count_needs(kind: str, tmp_path: Path) -> None:
    ids = [f"r{k}" for k in range(40)]
    frame = pd.DataFrame({"id": ids, "passed": ["yes", "no"] * 20, "cost": 0.1})
    frame["started_at"] = pd.Timestamp("2026-10-05T10:00:00", tz="UTC")
    path = tmp_path / f"a.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    code = (
        "import sys; from pathlib import Path; from calibration.analyses import look; "
        f"look.FEW_ROWS = 10; print(look.look_at(Path({str(path)!r})).reading.used); "
        "print([name for name in ('pandas', 'scipy', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "40\n[]\n"
