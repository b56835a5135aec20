"""The command in a directory of its own, and the files that its tests give it."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from calibration.cli import main

FIXTURES = Path(__file__).parent / "fixtures" / "importers"

ASR = [sys.executable, "-c", "from calibration.cli import main; main()"]

Run = Callable[..., Result]


@pytest.fixture
def asr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in a directory of its own; an exception is a failed test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASR_STORE", raising=False)

    def run(*arguments: object, code: int = 0, env: dict[str, str] | None = None) -> Result:
        result = CliRunner().invoke(main, [str(a) for a in arguments], env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        if code and "Usage:" not in result.stderr:
            assert result.stderr.count("\n") == 1, result.stderr
            assert result.stderr.startswith("error: ")
        return result

    return run


def data(result: Result) -> Any:
    """Return what was printed, which must be JSON and nothing else."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(result.stdout, parse_constant=refuse)


def record(trace_id: str, **changes: Any) -> dict[str, Any]:
    row = {"trace_id": trace_id, "workflow": "flights", "prompt": f"Book {trace_id}"}
    return row | {"response": "Booked.", "cost_usd": 0.25} | changes


def write(path: Path, *rows: Any) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_runs(path: Path, n: int, **changes: Any) -> Path:
    return write(path, *[record(f"r{k:03d}", **changes) for k in range(n)])


def write_csv(path: Path, head: str, *rows: str) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Bring 60 runs into a store, draw 40, and have a judge say complete of two in three."""
    folder = tmp_path_factory.mktemp("template")
    runs = write_runs(folder / "f.jsonl", 60)
    said = [f"r{k:03d},{'complete' if k % 3 else 'abandoned'}" for k in range(60)]
    verdicts = write_csv(folder / "v.csv", "trace_id,outcome", *said)
    drawn: list[str] = []
    for command in (
        ["import", str(runs), "--ceiling", "0.2", "--json"],
        ["verdicts", str(verdicts), "--judge", "j1", "--json"],
        ["sample", "--n", "40", "--seed", "1", "--json"],
    ):
        done = CliRunner().invoke(main, [*command, "--store", str(folder / "asr.duckdb")])
        assert done.exit_code == 0, done.output
        drawn = data(done).get("trace_ids", [])
    return folder, drawn


@pytest.fixture
def filled(tmp_path: Path, template: tuple[Path, list[str]]) -> list[str]:
    """Start from a copy of the template; return the traces drawn."""
    folder, drawn = template
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return drawn
