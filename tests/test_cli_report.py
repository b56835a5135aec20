"""asr report, compare and verify on files: no store, exit codes, what is written where."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from calibration.cli import production_options
from tests.analyses.production_files import MIXED10, runs, write
from tests.analyses.worlds import ids, make_world
from tests.cli_runs import Run, data

pytestmark = pytest.mark.usefixtures("few_draws")


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
