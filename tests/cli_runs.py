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

FIXTURES = Path(__file__).parent / "fixtures"
ASR = [sys.executable, "-c", "from calibration.cli import main; main()"]
Run = Callable[..., Result]
HOLDER = """
import sys
from calibration.store import Store
with Store.open(sys.argv[1]) as store:
    keeper = store.keeper()
    keeper.round()
    keeper.start()
    print("ready", flush=True)
    sys.stdin.read()
    keeper.stop()
"""


def run(*arguments: object, code: int | None = 0, env: dict[str, str] | None = None) -> Result:
    """Run a command; an exception is a failed test, and an error is one sentence.

    Without a `code`, 0 and 1 are right: an answer, also one without a figure.
    """
    result = CliRunner().invoke(main, [str(a) for a in arguments], env=env)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in ((0, 1) if code is None else (code,)), result.output
    if code and result.stderr:
        *before, last = result.stderr.splitlines()
        assert last.lower().startswith("error: ")
        assert not before or "Usage:" in before[0], result.stderr
    return result


@pytest.fixture
def asr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASR_STORE", raising=False)
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


def write_csv(path: Path | str, head: str, *rows: str) -> Path:
    return write(Path(path), head, *rows)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Bring 60 runs into a store, draw 40, and have a judge say complete of two in three."""
    folder = tmp_path_factory.mktemp("template")
    runs = write_runs(folder / "f.jsonl", 60)
    said = [f"r{k:03d},{'complete' if k % 3 else 'abandoned'}" for k in range(60)]
    verdicts = write_csv(folder / "v.csv", "trace_id,outcome", *said)
    store = ["--store", folder / "asr.duckdb"]
    run("import", runs, "--ceiling", "0.2", *store)
    run("verdicts", "import", verdicts, "--judge", "j1", *store)
    drawn: list[str] = data(run("sample", "--n", 40, "--seed", 1, "--json", *store))["trace_ids"]
    return folder, drawn


@pytest.fixture
def filled(tmp_path: Path, template: tuple[Path, list[str]]) -> list[str]:
    """Start from a copy of the template; return the traces drawn."""
    folder, drawn = template
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return drawn


# Tables and files for `asr calibrate`

TABLES = json.loads(
    (Path(__file__).parent / "golden" / "judge_tables.json").read_text(encoding="utf-8")
)
CASE_A, CASE_B = TABLES["case_a"], TABLES["case_b"]


@pytest.fixture
def calibrate(asr: Run) -> Run:
    def called(*words: object, code: int = 0) -> Result:
        return asr("calibrate", *words, code=code)

    return called


def content(case: str = "b", **changes: Any) -> dict[str, Any]:
    """Return a five-class table as the file of tables has it; None takes a field away."""
    of_a = case == "a"
    confusion = CASE_A["reference_confusion_true_x_judge"]
    counts = CASE_A["production_judge_counts"]
    if not of_a:
        confusion = CASE_B["production_labelled_true_x_judge"]
        counts = CASE_B["production_judge_counts_all_incl_labelled"]
    fields = {
        "design": "reference" if of_a else "production", "classes": TABLES["classes"],
        "credit": TABLES["credit"], "confusion": confusion, "production_judge_counts": counts,
    } | changes  # fmt: skip
    return {name: value for name, value in fields.items() if value is not None}


def counted(fields: object, name: str = "tables.json") -> Path:
    path = Path(name)
    path.write_text(fields if isinstance(fields, str) else json.dumps(fields), encoding="utf-8")
    return path


def check(item: object) -> int:
    """Count the estimates; each is null with a status, or a value inside its interval."""
    if isinstance(item, list):
        return sum(map(check, item))
    if not isinstance(item, dict):
        return 0
    if {"value", "status"} <= item.keys():
        assert {"value", "interval", "se", "method", "status"} <= item.keys()
        if item["value"] is None:
            assert item["interval"] is None
            assert item["se"] is None
            assert item["status"].startswith("not_estimable: ")
        elif item["interval"] is not None:
            low, high = item["interval"]
            assert low - 1e-12 <= item["value"] <= high + 1e-12
        return 1
    return sum(map(check, item.values()))


def write_labelled(verdicts_file: str = "v.csv") -> list[object]:
    """Write 50 labelled and 60 other traces of two workflows, each run at 0.30 USD."""
    said = [f"t{k},{'ab'[k % 2]},{['x', 'y'][k % 3 == 0]},0.3" for k in range(110)]
    labels = [f"t{k},{'ab'[(k + (k % 7 == 0)) % 2]}" for k in range(50)]
    human = write_csv("h.csv", "trace_id,outcome", *labels)
    verdicts = write_csv(verdicts_file, "trace_id,outcome,workflow,cost_usd", *said)
    return ["--human", human, "--verdicts", verdicts, "--credit", "a=1,b=.4"]
