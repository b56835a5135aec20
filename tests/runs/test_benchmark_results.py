"""Result files of benchmarks, as docs/trace-format.md shows them, read as runs."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from calibration.analyses.reliability.trials import TrialOptions, analyse_trials
from calibration.analyses.success_rate.comparison import compare_files
from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.report import ReportOptions, SuccessRateReport
from calibration.errors import CalibrationError, InputError
from calibration.runs.benchmark_results import NoResultsError, benchmark_results
from calibration.runs.sources import Files
from calibration.tables.reading import ReadingOptions
from calibration.tables.scales import PASS_OR_FAIL, two_class_rubric
from calibration.taxonomy import default_taxonomy
from calibration.trace_formats import detect

DOCUMENT = Path(__file__).parents[2] / "docs" / "trace-format.md"
EXAMPLES = dict(
    re.findall(
        r"^`([^`/]+\.json)`[^\n]*\n\n```json\n(.*?)```",
        DOCUMENT.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
)
SWE, BFCL, MLE, TERMINAL, HARBOR = EXAMPLES
TAXONOMY = two_class_rubric(default_taxonomy())
PASSED, FAILED = TAXONOMY.success, TAXONOMY.failed_check


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, body in EXAMPLES.items():
        (tmp_path / name).write_text(body, encoding="utf-8")
    return tmp_path


def report(*paths: Path, **columns: str) -> SuccessRateReport:
    reading = ReadingOptions(columns=columns, max_left_out=1.0)
    options = ReportOptions(n_resamples=100, reading=reading, compare_to=None)
    return report_on_files([str(path) for path in paths], options=options)


def classes(found: SuccessRateReport) -> dict[str, int]:
    return {
        c.outcome: round((c.share.value or 0) * found.n) for c in found.classes if c.share.value
    }


@pytest.mark.parametrize(
    ("name", "workflow", "counts"),
    [
        (SWE, "swe-bench", {PASSED: 2, FAILED: 2}),
        (BFCL, "bfcl", {PASSED: 3, FAILED: 2}),
        (MLE, "mle-bench", {PASSED: 1, FAILED: 2}),
        (TERMINAL, "terminal-bench", {PASSED: 2, FAILED: 2}),
        (HARBOR, "terminal-bench", {PASSED: 1}),
    ],
)
def test_each_example_of_the_document_is_a_report(
    folder: Path, name: str, workflow: str, counts: dict[str, int]
) -> None:
    found = report(folder / name)
    assert classes(found) == counts
    assert [group.name for group in found.by_workflow] == [workflow]
    assert not found.calibrated
    assert found.reading is not None
    assert PASS_OR_FAIL in found.reading.notes
    # An instance that was never run is left out with a reason, and named.
    codes = [rows.code for rows in found.reading.left_out]
    assert codes == ["missing_outcome"] * (name == SWE)


def test_cost_times_model_and_task_are_kept(folder: Path) -> None:
    (harbor,), terminal = (benchmark_results(folder / name) for name in (HARBOR, TERMINAL))
    assert (harbor["cost_usd"], harbor["latency_s"], harbor["model"]) == (
        "0.21",
        "120.0",
        "maker/model-x",
    )
    assert harbor["agent_version"] == "agent-a 1.4"
    assert [run["status"] for run in terminal] == [None, None, "agent_timeout", None]
    assert [run["latency_s"] for run in terminal] == ["90.0", None, None, None]
    (swe, *_) = benchmark_results(folder / SWE)
    assert (swe["trace_id"], swe["model"], swe["trial"]) == (
        "model-x/run-1/astropy__astropy-1",
        "model-x",
        "run-1",
    )
    assert report(folder / MLE, outcome="above_median").pass_rate.value == pytest.approx(2 / 3)


def test_runs_of_several_files_are_trials_of_one_model(folder: Path) -> None:
    again = json.loads(EXAMPLES[SWE])
    again["resolved_ids"], again["unresolved_ids"] = again["unresolved_ids"], again["resolved_ids"]
    (folder / "model-x.run-2.json").write_text(json.dumps(again), encoding="utf-8")
    (passes,) = report(folder / SWE, folder / "model-x.run-2.json").passes
    assert (passes.agent, passes.n_tasks, passes.most_trials) == ("model-x", 4, 2)
    trials = analyse_trials(folder / TERMINAL, TrialOptions(ks=(1,), n_resamples=100))
    assert (trials.n_tasks, trials.n_trials) == (2, 4)
    with pytest.raises(InputError, match="only the entries that failed"):
        analyse_trials(folder / BFCL, TrialOptions(ks=(1,), n_resamples=100))


def test_entries_without_a_name_are_never_paired(folder: Path) -> None:
    worse = EXAMPLES[BFCL].replace('0.6, "correct_count": 3', '0.4, "correct_count": 2')
    worse += json.dumps({"id": "simple_python_11", "valid": False}) + "\n"
    (folder / "later").mkdir()
    (folder / "later" / BFCL).write_text(worse, encoding="utf-8")
    sides = Files((str(folder / BFCL),)), Files((str(folder / "later" / BFCL),))
    found = compare_files(*sides, options=ReportOptions(n_resamples=100))
    assert not found.found.paired
    assert classes(report(folder / BFCL, folder / "later" / BFCL)) == {PASSED: 5, FAILED: 5}


def test_a_column_of_true_and_false_is_an_outcome(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "trace_id": [f"r{k}" for k in range(7)],
            "workflow": "research",
            "resolved": ["true", "False", "YES", "no", " error ", "1", "maybe"],
            "cost_usd": 0.1,
        }
    )
    frame.to_csv(tmp_path / "swe.csv", index=False)
    frame[:2].assign(resolved=[True, False]).to_parquet(tmp_path / "swe.parquet")
    found = report(tmp_path / "swe.csv", outcome="resolved")
    assert classes(found) == {PASSED: 3, FAILED: 3}
    assert found.reading is not None
    assert [str(rows) for rows in found.reading.left_out] == [
        "1 outcome unknown, first line 8: 'maybe'"
    ]
    assert "1 run ended without a result and counted as failure." in found.reading.notes
    assert classes(report(tmp_path / "swe.parquet", outcome="resolved")) == {PASSED: 1, FAILED: 1}


def test_an_instance_report_names_model_and_run_by_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "run-1" / "model-x" / "django__django-2" / "report.json"
    path.parent.mkdir(parents=True)
    body: dict[str, Any] = {"patch_is_None": False, "patch_exists": True, "resolved": True}
    path.write_text(json.dumps({"django__django-2": body}), encoding="utf-8")
    (run,) = benchmark_results(path)
    assert (run["trace_id"], run["outcome"]) == ("model-x/run-1/django__django-2", "true")
    path.write_text(json.dumps({"a": body | {"patch_exists": False, "resolved": False}}))
    (run,) = benchmark_results(path)
    assert (run["trace_id"], run["outcome"], run["model"]) == ("a", "error", None)


@pytest.mark.parametrize(
    ("rewards", "error", "outcome"),
    [
        ({"reward": 0}, None, "false"),
        ({"reward": 0.0}, {"exception_type": "AgentTimeoutError"}, "error"),
        ({"reward": 1}, {"exception_type": "AgentTimeoutError"}, "true"),
        ({"tests": 1.0}, None, "true"),
        ({"reward": 0.5}, None, "reward 0.5"),
        ({"a": 1, "b": 0}, None, "error"),
        (None, None, "error"),
    ],
)
def test_the_reward_of_a_trial(
    tmp_path: Path, rewards: object, error: object, outcome: str
) -> None:
    trial = json.loads(EXAMPLES[HARBOR])
    trial |= {"verifier_result": {"rewards": rewards}, "exception_info": error}
    (tmp_path / "result.json").write_text(json.dumps(trial), encoding="utf-8")
    (run,) = benchmark_results(tmp_path / "result.json")
    assert run["outcome"] == outcome


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"n_total_trials": 2, "stats": {}}', "name the results of its trials"),
        ('{"accuracy": 1, "correct_count": 3, "total_count": 9}\n', "is it whole"),
        ('{"accuracy": 1, "correct_count": 9999999, "total_count": 9999999}', "at most"),
        ('{"accuracy": 1, "correct_count": 1, "total_count": 2}\n{"id": ', "line 2"),
        ('{"resolved_ids": [], "unresolved_ids": []}', "holds no runs"),
        ('{"trace_id": "a"}', "of no known benchmark"),
        ('{"resolved_ids": [', "is not JSON"),
        ("[1]", "holds no runs"),
    ],
)
def test_an_unusable_file_is_refused_with_the_reason(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "r.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        report(tmp_path / "r.json")


def test_results_are_no_traces_and_other_json_is_no_result(folder: Path) -> None:
    with pytest.raises(InputError, match="`asr report` reads"):
        detect(folder / TERMINAL)
    with pytest.raises(NoResultsError):
        benchmark_results(DOCUMENT)
    with pytest.raises(InputError, match="unpack it first"):
        report(folder / "x.json.gz") if (folder / "x.json.gz").write_bytes(b"x") else None
    # A table of trials may be JSON Lines of any ending.
    (folder / "own.json").write_text(
        "".join(json.dumps({"task_id": f"t{k}", "success": k % 2}) + "\n" for k in range(6))
    )
    assert analyse_trials(folder / "own.json", TrialOptions(ks=(1,), n_resamples=100)).n_trials == 6


def test_contradictory_results_are_set_aside(tmp_path: Path) -> None:
    body = {"resolved_ids": ["a", "b", 7, None, "c", "c"], "unresolved_ids": ["a", {"x": 1}]}
    (tmp_path / "m.r.json").write_text(json.dumps(body), encoding="utf-8")
    found = report(tmp_path / "m.r.json")
    assert classes(found) == {PASSED: 3}
    assert Counter(rows.n for rows in found.set_aside) == {2: 2, 1: 1}
    (tmp_path / "none.r.json").write_text('{"resolved_ids": [null], "unresolved_ids": []}')
    with pytest.raises(CalibrationError, match="no run is left"):
        report(tmp_path / "none.r.json")
