"""docs/gates.md: its example is read, and it names every gate, key and option."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from calibration.cli import main
from calibration.gates.gate_file import DEFAULTS, METRICS, TOP, parse_gates
from tests.gates.runs import rows

PAGE = (Path(__file__).parents[2] / "docs" / "gates.md").read_text(encoding="utf-8")


def test_the_example_is_a_gate_file() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    by_name = {gate.name: gate for gate in parse_gates(example).gates}
    assert by_name["pass_at_1[core]"].numbers["threshold"] == 0.85
    assert by_name["human_review"].allow_skipped
    assert "judge" not in by_name


def test_every_gate_key_and_option_is_described() -> None:
    for name in DEFAULTS:
        assert f"`{name}`" in PAGE
    for key in TOP:
        assert key in PAGE
    for keys in METRICS.values():
        for key in keys:
            assert f"`{key}`" in PAGE
    shown = CliRunner().invoke(main, ["gate", "--help"]).stdout
    for option in ("--baseline", "--labels", "--model", "--junit", "--summary", "--write-baseline"):
        assert option in shown
        assert option in PAGE


def commands() -> list[list[str]]:
    """Return every `asr gate` of the page on runs.jsonl, as words, in the order they are run."""
    plain = re.sub(r"\n +(?=--)", " ", PAGE)
    found = [line.strip().removeprefix("- ") for line in plain.splitlines()]
    words = [
        shlex.split(line) for line in found if line.startswith(("asr gate runs", "- asr gate"))
    ]
    written = [line for line in words if "--write-baseline" in line]
    return written + [line for line in words if "--baseline" in line]


@pytest.mark.long
def test_the_jobs_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run has no baseline, so its regression is skipped; those after it pass."""
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    Path("gates.toml").write_text(example, encoding="utf-8")
    found = rows(n_tasks=60, trials=8, failing=6)
    Path("runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found), "utf-8")
    write, *jobs = commands()
    first = CliRunner().invoke(main, write[1:])
    assert first.exit_code == 1
    assert first.stdout.startswith("GATES FAILED: regression")
    assert len(jobs) == 2
    for job in jobs:
        filled = [word.replace("$GITHUB_STEP_SUMMARY", "summary.md") for word in job]
        done = CliRunner().invoke(main, filled[1:])
        assert done.exit_code == 0, done.output
    assert Path("gates.xml").read_text("utf-8").startswith("<?xml")
    assert "GATES PASSED" in Path("summary.md").read_text("utf-8")
