"""Text output of commands: the answer, the next command, and with --full all of it; progress."""

import io
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from calibration.analyses.trace_files import FilesProgress
from calibration.cli.terminal import progress
from calibration.runs.engines import DuckDB, Query, step_now
from calibration.runs.sources import open_frame
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


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="has no pseudo-terminals")
def test_a_command_shows_that_it_works_until_it_answers(tmp_path: Path) -> None:
    """A terminal sees how long a slow command works, and nothing of it is left in the answer."""
    import pty

    rows = [f"t{k},{who},{'yes' if k % 3 else 'no'}" for k in range(400) for who in "abc"]
    write_csv(tmp_path / "r.csv", "item,rater,label", *rows)
    # The bootstrap is made to wait, so that a quick machine shows it too.
    code = """
import time
from calibration.cli import agreement
from calibration.cli.main import main
make = agreement.agreement_on
def slowly(*given, **options):
    time.sleep(2.5)
    return make(*given, **options)
agreement.agreement_on = slowly
main(["agreement", "r.csv"])
"""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the end of a terminal that its process has left
            while chunk := os.read(ours, 1_000):
                shown += chunk
        assert process.stdout is not None
        answer = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    assert b"Computing agreement and its intervals: 1 s" in shown
    assert shown.endswith(b"\r\x1b[K")
    assert "classes: no, yes" in answer
    assert "Computing" not in answer


def test_a_long_count_tells_its_step_and_its_share() -> None:
    """DuckDB is asked from another thread, as the line of a terminal is drawn."""
    frame = pd.DataFrame({"trace_id": [str(n) for n in range(1_000)]})
    with open_frame(frame) as source:
        engine = source.engine
        assert isinstance(engine, DuckDB)
        assert step_now() is None
        # Minutes of work, cut off when it was seen.
        pairs = (
            'SELECT sum(hash(a."range" + b."range")) AS "x" FROM range(10000000) a, range(9999) b'
        )
        until, seen = time.monotonic() + 60, None
        with ThreadPoolExecutor() as pool:
            counting = pool.submit(engine.run, Query("pairs", pairs))
            while seen is None and time.monotonic() < until and not counting.done():
                seen = step_now()
            engine.connection.interrupt()
            with pytest.raises(duckdb.InterruptException):
                counting.result()
    assert seen is not None
    assert re.fullmatch(r"1,000 rows, step 1: \d+%(, about \d+ s left in it)?", seen)
    assert step_now() is None
