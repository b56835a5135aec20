"""The commands of the page on other platforms do what it says, on small files of each."""

import re
import shutil
from pathlib import Path

from tests.cli_runs import Run, data

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")


def test_every_command_of_the_page_runs(asr: Run, fixtures: Path, tmp_path: Path) -> None:
    for platform in ("langfuse", "langsmith", "phoenix", "otel"):
        shutil.copytree(fixtures / platform, tmp_path / platform)
    commands = re.findall(r"^\$ (asr .*)$", PAGE, re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        asr(*command.split()[1:])
    assert len(data(asr("traces", "--json"))["traces"]) == 6
    # A second import of the same files stores nothing anew.
    again = data(asr("import", "langfuse", "langsmith", "phoenix", "--json"))
    assert (again["imported"], again["already_there"] + again["changed"]) == (0, 5)
