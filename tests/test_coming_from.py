"""The commands of docs/coming-from.md, section by section, on small files."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result

from calibration.taxonomy import default_taxonomy
from tests.platform_server import PlatformServer, runs
from tests.trace_formats.archives import eval_archive

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "tests" / "fixtures" / "importers"
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")


def _inspect() -> None:
    Path("logs").mkdir()
    log = json.loads((FIXTURES / "inspect.json").read_text())
    Path("logs/kiosk.eval").write_bytes(eval_archive(log))


def _spreadsheet() -> None:
    _runs(3)
    given = {"q0": "complete", "q1": "complete", "q2": "partial_plus"}
    labels = "".join(f"{k},{who},{of}\n" for k, of in given.items() for who in ("Ann", "Bo"))
    Path("labels.csv").write_text("trace_id,reviewer,outcome\n" + labels)
    # The judge passes one in five of what Cleo fails, and Dan has no answer to one in ten.
    sheet = "".join(
        f"q{k};{'no' if k % 3 else 'yes'};{'' if k % 10 == 9 else 'no' if k % 3 else 'yes'};"
        f"{int(k % 3 == 0 or k % 5 == 0)}\n"
        for k in range(60)
    )
    Path("sheet.csv").write_text("\ufeffTask ID;Cleo;Dan;gpt 4\n" + sheet)


def _runs(n: int) -> None:
    rows = "".join(f"q{k},faq,When are you open?,At 9.,0.02\n" for k in range(n))
    Path("runs.csv").write_text("trace_id,workflow,prompt,response,cost_usd\n" + rows)


def _annotated(name: str) -> Callable[[], None]:
    def write() -> None:
        _runs(6)
        shutil.copy(FIXTURES.parent / "annotations" / name, name)

    return write


def _platforms(*names: str) -> Callable[[], None]:
    def write() -> None:
        for name in names:
            shutil.copytree(FIXTURES / name, name)

    return write


# What lies in the working directory, by section.
FILES = {
    "Inspect": _inspect,
    "Langfuse": _platforms("langfuse"),
    "LangSmith": _platforms("langsmith"),
    "Phoenix / OpenTelemetry": _platforms("phoenix", "otel"),
    "Label Studio": _annotated("label_studio.json"),
    "Argilla": _annotated("argilla.jsonl"),
    "a spreadsheet": _spreadsheet,
}


def commands_of(section: str) -> list[list[str]]:
    text = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    found = re.findall(r"^\$ asr (.+)$", text, flags=re.MULTILINE)
    assert len(found) > 2
    return [shlex.split(command) for command in found]


@pytest.mark.parametrize("section", FILES)
def test_the_commands_of_a_section_run(section: str, asr: Callable[..., Result]) -> None:
    FILES[section]()
    said = [asr(*command).stdout for command in commands_of(f"Coming from {section}")]
    if section == "Inspect":
        assert "4 imported" in said[0]
        assert "scores of people left out: 1;" in said[0]
        assert "labels made of the scores of people: 1," in said[2]
    if section == "Langfuse":
        assert "3 imported" in said[0]
        # A second import of the same files stores nothing anew.
        assert "0 imported, 3 already there" in asr("import", "langfuse", "--yes").stdout
    if section in ("Label Studio", "Argilla"):
        assert "9 stored in production-001" in said[2]
        assert "(2 not blind, first line" in said[2]
        assert "1 of a skipped trace" in said[2]
        asr("export", "labels", "labels-stored.csv", "--batch", "production-001")
        rows = Path("labels-stored.csv").read_text("utf-8").splitlines()
        assert sum(row.startswith("q") and ",Ann," in row for row in rows) == 5
    if section == "a spreadsheet":
        assert "6 stored in production-001" in said[2]
        assert "6 stored in production-001" in said[3]


def test_traces_are_pulled_and_labels_pushed(asr: Callable[..., Result]) -> None:
    found = runs(3, begun=datetime.now(UTC) - timedelta(days=2))
    rows = "".join(
        f"{run.hex},{who},{default_taxonomy().success}\n" for run in found for who in "AB"
    )
    Path("labels.csv").write_text("trace_id,reviewer,outcome\n" + rows)
    with PlatformServer(found) as server:
        commands = commands_of("Pulling traces and pushing labels")
        said = [asr(*command, env=server.env).stdout for command in commands]
    assert "3 imported" in said[0]
    assert "3 scores would be sent to Langfuse" in said[3]
    assert "3 sent to Langfuse" in said[4]
    assert len(server.received.scores) == 3
