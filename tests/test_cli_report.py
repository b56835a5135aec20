"""asr report, compare and verify on files: no store, exit codes, what is written where."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from calibration.cli import main, production_options
from tests.analyses.production_files import MIXED10, alike, runs, write
from tests.analyses.worlds import ids, make_world

pytestmark = pytest.mark.usefixtures("few_draws")


Run = Callable[..., Result]


@pytest.fixture
def asr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASR_STORE", raising=False)

    def run(*arguments: object, code: int = 0) -> Result:
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return run


def data(result: Result) -> Any:
    return json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))


def test_a_file_is_reported_without_a_store(asr: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "f.csv", runs(MIXED10))
    found = data(asr("report", file, "--json"))
    assert found["asr"]["value"] == pytest.approx(0.49)
    assert found["calibrated"] is False
    assert found["class_shares"].keys() == {
        "complete", "partial_plus", "partial_minus", "hallucinated", "abandoned",
    }  # fmt: skip
    assert found["by_workflow"]["research"]["asr"]["value"] == pytest.approx(0.49)
    assert "0.490 [0.152, 0.828]" in asr("report", file).stdout
    assert asr("report", file, "--markdown").stdout.startswith("# Agent Success Rate report")
    assert list(tmp_path.iterdir()) == [tmp_path / "f.csv"]


def test_the_page_is_written_and_never_over_an_input(asr: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "f.csv", runs(MIXED10))
    result = asr("report", file, "--html", "r.html")
    assert result.stdout == ""
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    both = asr("report", file, "--html", "r.html", "--json")
    assert data(both)["n"] == 10
    before = Path(file).read_bytes()
    assert "is one of the files" in asr("report", file, "--html", file, code=2).stderr
    assert Path(file).read_bytes() == before


def test_columns_ceilings_and_work_lists(asr: Run, tmp_path: Path) -> None:
    rows = [
        {"id": r["trace_id"], "kind": "invoices", "class": r["outcome"], "price": r["cost_usd"]}
        for r in runs(MIXED10)
    ]
    file = write(tmp_path / "f.csv", rows)
    named = ["--column", "trace_id=id", "--column", "workflow=kind", "--column", "outcome=class"]
    named += ["--column", "cost_usd=price", "--ceiling", "invoices=2", "--work", "todo"]
    found = data(asr("report", file, *named, "--json"))
    assert found["asr"]["value"] == pytest.approx(0.49)
    listed = (tmp_path / "todo" / "abandoned.csv").read_text("utf-8").splitlines()
    assert listed[1].startswith("t009,invoices")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--from", "soon"], 2),
        (["--column", "x"], 2),
        (["--column", "nothing=x"], 2),
        (["--ceiling", "research=0"], 2),
        (["--ceiling", "research=nan"], 2),
        (["--target", "great=0.5"], 2),
        (["--seed", "-1"], 2),
        (["--resamples", "1"], 2),
        (["--taxonomy", "none.toml"], 2),
        (["--from", "2027-01-01", "--compare-to", "none"], 1),
        (["--compare-to", "missing.csv"], 2),
    ],
)
def test_what_cannot_be_done_ends_in_a_code(
    asr: Run, tmp_path: Path, options: list[str], code: int
) -> None:
    rows = alike("a", {"complete": 9}, started_at="2026-10-01T00:00:00Z")
    file = write(tmp_path / "f.csv", rows)
    assert asr("report", file, *options, code=code).stderr


def test_files_that_cannot_be_read(asr: Run, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("")
    write(tmp_path / "n.csv", [{"trace_id": "a"}])
    for file in ("none.csv", "e.csv", "n.csv", "a.txt"):
        assert asr("report", file, code=2).stderr.startswith("error: ")
    only_bad = write(tmp_path / "b.csv", runs([("done", 1.0)]))
    assert "no run is left" in asr("report", only_bad, code=1).stderr


def test_options_for_files_without_a_file_are_refused(asr: Run) -> None:
    assert "is for files" in asr("report", "--stratify", "workflow", code=2).stderr


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Make a store of 24 labelled traces a week over two weeks, of two workflows."""
    path = tmp_path / "s.duckdb"
    days = [datetime(2026, 9, 29, tzinfo=UTC), datetime(2026, 10, 6, tzinfo=UTC)]
    traces = {
        name: {"started_at": days[k // 24], "workflow": "hotels" if k % 4 else "flights"}
        for k, name in enumerate(ids(48))
    }
    world = make_world(path, n=48, n_drawn=48, traces=traces)
    world.label("Ann", {n: "complete" if k % 2 else "abandoned" for k, n in enumerate(ids(48))})
    world.judge(dict.fromkeys(ids(48), "complete"))
    world.store.close()
    return path


@pytest.mark.long
def test_a_store_is_narrowed_and_its_report_verified(
    asr: Run, tmp_path: Path, labelled: Path
) -> None:
    narrow = ["--from", "2026-W41", "--to", "2026-W41", "--workflow", "hotels", "--seed", "3"]
    result = asr("report", "--store", labelled, *narrow, "--json", "--work", "todo")
    found = data(result)
    # Of 24 traces k = 24..47 those with k % 4: 18, of which 12 are odd.
    assert found["n"] == 18
    assert found["judged"]["human_only"]["value"] == pytest.approx(12 / 18)
    assert found["change"]["earlier"] == "the window before"
    assert found["change"]["before"]["value"] == pytest.approx(12 / 18)
    assert found["by_workflow"].keys() == {"hotels"}
    todo = (tmp_path / "todo" / "abandoned.csv").read_text("utf-8").splitlines()
    assert len(todo) == 1 + 6
    saved = tmp_path / "report.json"
    saved.write_text(result.stdout, encoding="utf-8")
    assert asr("verify", saved, "--store", labelled).stdout.startswith("the same")
    wider = saved.read_text("utf-8").replace('"hotels"', '"flights"')
    saved.write_text(wider, encoding="utf-8")
    assert asr("verify", saved, "--store", labelled, code=1).stdout.startswith("NOT the same")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--force"], "--force is for files"),
        (["--ceiling", "hotels=1"], "--ceiling is for files"),
        (["--taxonomy", "fork.toml"], "--taxonomy is for files"),
        (["--compare-to", "other.csv"], "a store compares with its own past"),
        (["--workflow", "trains"], "no trace has the workflow 'trains'"),
    ],
)
def test_what_a_store_cannot_be_asked_is_refused(
    asr: Run, labelled: Path, options: list[str], why: str
) -> None:
    assert why in asr("report", "--store", labelled, *options, code=2).stderr


def test_files_have_no_workflow_option(asr: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "f.csv", runs(MIXED10))
    assert "is for the store" in asr("report", file, "--workflow", "research", code=2).stderr


def test_a_report_is_verified(asr: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "f.csv", runs(MIXED10))
    printed = asr("report", file, "--json").stdout
    (tmp_path / "r.json").write_text(printed, encoding="utf-8")
    assert asr("verify", "r.json").stdout.startswith("the same: r.json")
    assert data(asr("verify", json.loads(printed)["fingerprint"], "--json"))["same"] is True
    write(tmp_path / "f.csv", runs(MIXED10[1:]))
    changed = asr("verify", "r.json", code=1)
    assert "has changed" in changed.stdout
    asr("verify", "f.csv", code=2)


def test_the_memory_of_files_is_no_part_of_a_report(
    asr: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "f.csv", runs(MIXED10))
    printed = asr("report", file, "--memory", "128 mb", "--json").stdout
    assert printed == asr("report", file, "--json").stdout
    (tmp_path / "r.json").write_text(printed, "utf-8")
    assert asr("verify", "r.json", "--memory", "1GB").stdout.startswith("the same")
    # It was handed on: that little is never enough.
    monkeypatch.setattr(production_options, "LEAST_MB", 0)
    for command in (["report", file], ["verify", "r.json"], ["compare", file, file]):
        refused = asr(*command, "--memory", "1MB", code=2).stderr
        assert "1MB of memory is not enough to read it; give more with --memory" in refused
    monkeypatch.setenv("ASR_MEMORY", "1MB")
    assert "is not enough" in asr("report", file, code=2).stderr


@pytest.mark.parametrize("size", ["lots", "4", "-1GB", "0GB", "63MB", "4GBs", "50%", ""])
def test_what_is_no_size_of_memory_is_refused(asr: Run, tmp_path: Path, size: str) -> None:
    file = write(tmp_path / "f.csv", runs(MIXED10))
    refused = asr("report", file, "--memory", size, code=2).stderr
    assert "--memory: must be a size of 64MB or more such as 512MB or 4GB" in refused


def test_memory_is_for_files(
    asr: Run, labelled: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    more = ["report", "--store", labelled, "--json"]
    assert "--memory is for files" in asr(*more, "--memory", "4GB", code=2).stderr
    monkeypatch.setenv("ASR_MEMORY", "4GB")
    (tmp_path / "s.json").write_text(asr(*more).stdout, "utf-8")
    of_store = ["verify", "s.json", "--store", labelled]
    asr(*of_store)
    assert "--memory is for files" in asr(*of_store, "--memory", "4GB", code=2).stderr
