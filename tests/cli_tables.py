"""`asr calibrate` in a directory of its own, and the tables and files that its tests give it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from calibration.cli import main

HERE = Path(__file__).parent

TABLES = json.loads((HERE / "golden" / "judge_tables.json").read_text(encoding="utf-8"))

CASE_A, CASE_B = TABLES["case_a"], TABLES["case_b"]

FIXTURES = HERE / "fixtures"

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `asr calibrate` in a directory of its own; an exception is a failed test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASR_STORE", raising=False)

    def called(*words: object, code: int = 0) -> Result:
        done = CliRunner().invoke(main, ["calibrate", *map(str, words)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, done.output
        if code:
            assert done.stderr.splitlines()[-1].lower().startswith("error: "), done.stderr
        return done

    return called


def data(done: Result) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(done.stdout, parse_constant=refuse)


def content(case: str = "b", **changes: Any) -> dict[str, Any]:
    """Return a five-class table as the file of tables has it; None takes a field away."""
    of_a = case == "a"
    fields = {
        "design": "reference" if of_a else "production",
        "classes": TABLES["classes"],
        "credit": TABLES["credit"],
        "confusion": CASE_A["reference_confusion_true_x_judge"]
        if of_a
        else CASE_B["production_labelled_true_x_judge"],
        "production_judge_counts": CASE_A["production_judge_counts"]
        if of_a
        else CASE_B["production_judge_counts_all_incl_labelled"],
    } | changes
    return {name: value for name, value in fields.items() if value is not None}


def counted(fields: object, name: str = "tables.json") -> Path:
    path = Path(name)
    path.write_text(fields if isinstance(fields, str) else json.dumps(fields), encoding="utf-8")
    return path


def three(estimate: dict[str, Any]) -> list[float]:
    return [estimate["value"], *estimate["interval"]]


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


def written(name: str, *lines: str) -> Path:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Path(name)


def labelled_files() -> list[object]:
    """Write 50 labelled and 60 other traces of two workflows, each run at 0.30 USD."""
    said = [f"t{k},{'ab'[k % 2]},{['x', 'y'][k % 3 == 0]},0.3" for k in range(110)]
    labels = [f"t{k},{'ab'[(k + (k % 7 == 0)) % 2]}" for k in range(50)]
    human = written("h.csv", "trace_id,outcome", *labels)
    verdicts = written("v.csv", "trace_id,outcome,workflow,cost_usd", *said)
    return ["--human", human, "--verdicts", verdicts, "--credit", "a=1,b=.4"]
