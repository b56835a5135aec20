"""The command in a folder of its own, and a baseline for it."""

from pathlib import Path

import pytest
from click.testing import Result

from tests.cli_runs import run as command
from tests.gates.runs import Run, csv_of, rows


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `asr gate` in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    Path("gates.toml").write_text("", encoding="utf-8")

    def called(*words: object, code: int = 0, gates: str | None = None) -> Result:
        if gates is not None:
            Path("gates.toml").write_text(gates, encoding="utf-8")
        return command("gate", *words, "--gates", "gates.toml", code=code)

    return called


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a baseline of 40 tasks of which four fail."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "gates.toml").write_text("", encoding="utf-8")
    words = [csv_of(rows(), str(folder / "runs.csv")), "--gates", folder / "gates.toml"]
    command("gate", *words, "--write-baseline", folder / "b.json", code=1)
    return (folder / "b.json").read_text(encoding="utf-8")


@pytest.fixture
def baseline(run: Run, saved: str) -> str:
    Path("base.json").write_text(saved, encoding="utf-8")
    return "base.json"
