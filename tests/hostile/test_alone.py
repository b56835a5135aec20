"""Files that could hang a command or fill the memory: every one ends, within its memory."""

import json
import subprocess
import sys

import pytest

from tests.hostile.every import CASES

MOST_MB, MOST_S = 1_000, 20


@pytest.mark.long
def test_no_file_hangs_a_command_or_fills_the_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.alone"], capture_output=True, text=True, timeout=600
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (told[-1], done.stderr[-2_000:])
    found = {case["case"]: case for case in told if "code" in case}
    assert list(found) == [n for n, case in enumerate(CASES) if case.alone]
    assert len(found) >= 78
    for n, case in found.items():
        assert case["exception"] == "None" or case["exception"].startswith("SystemExit"), case
        assert case["code"] in CASES[n].codes, case
        assert case["peak_mb"] - case["before_mb"] < MOST_MB, case
        assert case["seconds"] < MOST_S, case
        if case["code"] and CASES[n].command != "gate":
            assert case["said"].lower().splitlines()[-1].startswith("error: "), case
