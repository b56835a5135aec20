import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.trace_files import FilesRead
from calibration.records import SetAside
from calibration.trace_formats import ImportSettings, Parsed, read_traces

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importers"
Split = Callable[..., tuple[list[Parsed], list[SetAside]]]


def runs_of(read: FilesRead) -> list[Parsed]:
    """Return the runs in the files that were read."""
    return [run for file in read.files for run in file.runs]


@pytest.fixture
def fixtures() -> Path:
    return FIXTURES


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Write bytes as they are, text as UTF-8, and anything else as JSON."""

    def write_file(name: str, content: Any) -> Path:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content)
            path.write_bytes(text.encode())
        return path

    return write_file


@pytest.fixture
def split() -> Split:
    """Read a file and part what was taken in from what was set aside."""

    def read(
        path: Path, settings: ImportSettings | None = None
    ) -> tuple[list[Parsed], list[SetAside]]:
        items = list(read_traces(path, settings))
        taken = [item for item in items if isinstance(item, Parsed)]
        return taken, [item for item in items if isinstance(item, SetAside)]

    return read


@pytest.fixture
def reason(write: Callable[[str, Any], Path], split: Split) -> Callable[..., str]:
    """Read one JSONL row that must be set aside, and return why."""

    def set_aside_reason(**changes: Any) -> str:
        row = {"trace_id": "a", "workflow": "w", "prompt": "p"} | changes
        path = write("rows.jsonl", json.dumps({"version": 1}) + "\n" + json.dumps(row) + "\n")
        # A good row first, so that the file is recognised whatever the bad one lacks.
        good = json.dumps({"trace_id": "good", "workflow": "w", "prompt": "p"})
        path.write_text(path.read_text() + good + "\n")
        taken, aside = split(path)
        assert [item.trace.trace_id for item in taken] == ["good"]
        assert [(item.file, item.line) for item in aside] == [(str(path), 2)]
        return aside[0].reason

    return set_aside_reason
