import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.trace_files import NOT_READ, FilesRead
from calibration.records import SetAside, Verdict
from calibration.tables.scales import Scale
from calibration.trace_formats import ImportSettings, Parsed, SpanShelf, read_traces
from calibration.trace_formats.base import ScoreNames, ScoreRules

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importers"
Split = Callable[..., tuple[list[Parsed], list[SetAside]]]


HEAD = """# Importers on changed files

Written by `make fuzz`, newest first: good files of each format with one to three changes (a value
put in, left out, repeated or taken from elsewhere), one in ten cut, half of them compressed or as
an archive. None may crash, and a case reaches the row writer if a run of it would be stored. A run
is repeated by `make fuzz SEED=...`.

| date | seed | asr-calibration | format | cases | reached the row writer |
|---|---|---|---|---|---|
"""


@dataclass
class Reached:
    """How many cases of each format there were, and how many reached the row writer."""

    cases: Counter[str] = field(default_factory=Counter)
    stored: Counter[str] = field(default_factory=Counter)

    def note(self, name: str, stored: bool) -> None:
        """Count one case."""
        self.cases[name] += 1
        self.stored[name] += stored


@pytest.fixture(scope="session")
def reached(pytestconfig: pytest.Config) -> Iterator[Reached]:
    """Return what the tests count in; `ASR_FUZZ_IMPORTERS` says where the rows go."""
    counted = Reached()
    yield counted
    shares = {name: counted.stored[name] / n for name, n in counted.cases.items()}
    target = os.environ.get("ASR_FUZZ_IMPORTERS")
    if target and counted.cases:
        seed = pytestconfig.getoption("--hypothesis-seed")
        path = Path(target)
        earlier = path.read_text(encoding="utf-8").rpartition("|---|\n")[2] if path.exists() else ""
        rows = [
            f"| {datetime.now(UTC):%Y-%m-%d} | {seed} | {version('asr-calibration')} | {name} | "
            f"{counted.cases[name]:,} | {share:.0%} |\n"
            for name, share in shares.items()
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + "".join(rows) + earlier, encoding="utf-8")
        assert all(share >= 0.2 for share in shares.values()), shares


def runs_of(read: FilesRead) -> list[Parsed]:
    """Return the runs in the files that were read, as an import without settings finds them."""
    with SpanShelf() as shelf:
        whole = [file.path for file in read.files if file.format != NOT_READ]
        found = [item for path in whole for item in read_traces(path, shelf=shelf)]
        found += shelf.runs(ImportSettings())
    return [item for item in found if isinstance(item, Parsed)]


def rules_of(runs: Iterable[Parsed], **scales: Scale) -> ScoreRules:
    """Return what the scores of these runs mean, as an import of them and no others finds it."""
    names = ScoreNames()
    for run in runs:
        names.add(run.grades)
    rules = ScoreRules(names, ImportSettings(scales=scales))
    rules.graders_apart = any(rules.differ(run.grades) for run in runs)
    return rules


def verdicts_of(run: Parsed, **scales: Scale) -> list[Verdict]:
    """Return the verdicts on a run that is imported alone."""
    return rules_of([run], **scales).verdicts(run.trace.trace_id, run.grades)


def verdict_of(run: Parsed, **scales: Scale) -> Any:
    """Return the verdict of the source of a run that is imported alone."""
    return next(iter(verdicts_of(run, **scales)), None)


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
