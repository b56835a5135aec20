"""asr report, compare and verify on files: no store, exit codes, what is written where."""

import json
from pathlib import Path

import pytest

from calibration.cli import production_options
from tests.analyses.production_files import MIXED10, runs, write
from tests.cli_runs import Run

pytestmark = pytest.mark.usefixtures("few_draws")


def test_a_report_on_other_runs_is_not_the_same(asr: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "f.csv", runs(MIXED10))
    (tmp_path / "r.json").write_text(asr("report", file, "--json").stdout, encoding="utf-8")
    write(tmp_path / "f.csv", runs(MIXED10[1:]))
    assert "has changed" in asr("verify", "r.json", code=1).stdout
    asr("verify", "f.csv", code=2)


def test_a_report_that_was_counted_in_another_way_says_so(asr: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "f.csv", runs(MIXED10))
    saved = json.loads(asr("report", file, "--json").stdout)
    del saved["details"]["counting"]
    # The same digest: counted in the same way after all.
    (tmp_path / "r.json").write_text(json.dumps(saved), encoding="utf-8")
    assert asr("verify", "r.json").stdout.startswith("the same")
    saved["details"]["inputs"] = saved["fingerprint"] = "0" * 64
    (tmp_path / "r.json").write_text(json.dumps(saved), encoding="utf-8")
    printed = " ".join(asr("verify", "r.json", code=1).stdout.split())
    assert "counting: way 1 of counting and drawing runs then, 4 now" in printed
    assert "verify it with the release that made it" in printed
    assert "are not the same" not in printed


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
