"""The lines of README.md that read tables or traces run as printed, on the files of README.md."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from calibration.cli import main
from tests.cli_runs import Run

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
# They open the app, or call a platform.
ELSEWHERE = ("serve", "pull", "push", "demo")


def section(heading: str) -> str:
    return README.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def lines(heading: str) -> list[str]:
    """Return the command lines of a section in their order, without comments."""
    blocks = re.findall(r"^```(?:bash|console)\n(.*?)^```", section(heading), re.M | re.DOTALL)
    found = re.findall(r"^(?:\$ )?(asr .*)$", "\n".join(blocks), re.MULTILINE)
    return [line for line in found if line.split()[1] not in ELSEWHERE]


@pytest.fixture
def folder(tmp_path: Path, asr: Run) -> Path:
    """Return an empty folder in which the files of the README were made."""
    for name, content in re.findall(r"`([\w.-]+\.csv)`:\n\n```csv\n(.*?)```", README, re.DOTALL):
        Path(name).write_text(content, encoding="utf-8")
    (script,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    Path("example.py").write_text(script, encoding="utf-8")
    subprocess.run([sys.executable, "example.py"], check=True, timeout=60)
    assert "runs.csv" in os.listdir()
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("heading", ["Your own table", "Your own traces"])
def test_the_lines_of_the_readme_run_as_printed(heading: str, asr: Run) -> None:
    found = lines(heading)
    assert len(found) > 12
    skipped = 0
    for line in found:
        words, _, output = shlex.join(shlex.split(line, comments=True)).partition(" '>' ")
        arguments = shlex.split(words)[1:]
        if arguments[0] == "look" and "look" not in main.list_commands(None):  # type: ignore[arg-type]
            skipped += 1
            continue
        done = asr(*arguments, *(["--yes"] if arguments[0] == "import" else []))
        assert done.stdout.strip(), line
        if output:
            Path(output).write_text(done.stdout, encoding="utf-8")
        for page in (arguments[k + 1] for k, word in enumerate(arguments) if word == "--html"):
            assert Path(page).stat().st_size > 10_000
    assert skipped <= 1


@pytest.mark.usefixtures("folder")
def test_the_answer_that_the_readme_shows_is_the_one_printed(asr: Run) -> None:
    (shown,) = re.findall(r"\$ asr report runs\.csv\n(.*?)```", README, re.DOTALL)
    assert asr("report", "runs.csv").stdout.startswith(shown)


def test_the_names_of_options_that_are_gone_are_in_no_line() -> None:
    gone = ("--any-workflow", "--success", "--format", "--item", "max_set_aside")
    assert [name for name in gone if name in README] == []
