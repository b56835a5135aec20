"""Text output of commands: the answer, the next command, and with --full all of it; progress."""

import io
import sys

import pytest

from calibration.analyses.trace_files import FilesProgress
from calibration.cli.terminal import progress
from tests.cli_runs import Run, write_csv


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("few_draws")
def test_a_report_is_the_answer_and_full_is_all_of_it(asr: Run, filled: list[str]) -> None:
    rows = [f"{name},Ann,{'complete' if k % 2 else 'abandoned'}" for k, name in enumerate(filled)]
    labels = write_csv("l.csv", "trace_id,reviewer,outcome", *rows)
    said = asr("labels", "import", labels, "--store", "asr.duckdb").stdout
    assert said.splitlines()[-1].endswith(
        "Next: asr agreement --batch production-001 --store asr.duckdb"
    )
    short = asr("report", "--store", "asr.duckdb").stdout
    full = asr("report", "--full").stdout
    assert short.splitlines()[0] == full.splitlines()[0]
    assert "All figures: the same command with --full" in short
    assert short.splitlines()[-1] == "Next: asr status --store asr.duckdb"
    assert full.splitlines()[-1] == "Next: asr status"
    assert len(short.splitlines()) < 20 < len(full.splitlines())
    assert "How it was made" in full
    assert "How it was made" not in short


def test_progress_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with progress() as told:
        assert told is None
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    with progress() as told:
        assert told is not None
        told(FilesProgress(done=1, of=3, bytes=30_000_000, of_bytes=120_000_000, runs=1500))
    words = "Reading: 1,500 runs, file 2 of 3, 30 of 120 MB (25%), about 0 s left"
    assert words in shown.getvalue()
