"""What a command loads before it answers: the reason why it starts quickly, and no time."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from calibration.cli.main import MODULES, SENTENCES, main
from calibration.cli.terminal import WHOLE
from tests.cli_runs import write_csv

# What takes 20 ms or more to load.
HEAVY = {
    "numpy", "pandas", "pyarrow", "duckdb", "scipy.special", "scipy.stats", "scipy.sparse",
    "sklearn", "streamlit", "sqlglot", "cattrs", "jsonschema", "argon2", "openai",
    "calibration.store.store", "calibration.trace_formats.detection",
    "calibration.reporting.to_json", "calibration.judging.runner", "calibration.taxonomy",
    "calibration.analyses.demo", "calibration.analyses.judge.report", "calibration.agreement.study",
}  # fmt: skip
NUMBERS = {"numpy", "pandas", "pyarrow", "scipy.special", "calibration.taxonomy"}
CODE = """
import sys
from calibration.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""
RATINGS = [f"t{n},{who},{'no' if n % 3 else 'yes'}" for n in range(9) for who in "ab"]
LABELS = [f"t{n},{'complete' if n % 2 else 'abandoned'}" for n in range(60)]


def loaded(folder: Path, *words: str) -> set[str]:
    """Return the heavy modules that a command has loaded when it is done."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout
    return HEAVY & set(done.stderr.splitlines()[-1].split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_csv(tmp_path / "ratings.csv", "item,rater,label", *RATINGS)
    runs = [f"{label},research,0.1" for label in LABELS]
    write_csv(tmp_path / "runs.csv", "trace_id,outcome,workflow,cost_usd", *runs)
    write_csv(tmp_path / "labels.csv", "trace_id,outcome", *LABELS[:40])
    return tmp_path


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("--help", set()),
        ("report runs.csv", NUMBERS | {"duckdb"}),
        ("report runs.csv --json", NUMBERS | {"duckdb", "calibration.reporting.to_json"}),
        ("agreement ratings.csv", NUMBERS | {"calibration.agreement.study"}),
        (
            "calibrate --human labels.csv --verdicts runs.csv",
            NUMBERS
            | {"scipy.sparse", "calibration.analyses.judge.report"}
            | {"calibration.agreement.study"},
        ),
    ],
)
def test_a_command_loads_only_what_it_uses(folder: Path, command: str, allowed: set[str]) -> None:
    assert loaded(folder, *command.split()) <= allowed


def test_the_list_of_commands_has_their_own_first_sentences() -> None:
    context = click.Context(main)
    commands = {name: main.get_command(context, name) for name in MODULES}
    own = {name: of.get_short_help_str(WHOLE) for name, of in commands.items() if of is not None}
    assert own == SENTENCES
