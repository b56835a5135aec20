"""Repeated trials of tasks from files: what is read, grouped, compared and planned."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from calibration.analyses.reliability.trial_plan import plan_trials
from calibration.analyses.reliability.trials import TrialOptions, TrialsAnalysis, analyse_trials
from calibration.analyses.success_rate.from_runs import passes as passes_of_files
from calibration.analyses.success_rate.from_runs import read_production
from calibration.analyses.success_rate.report import ReportOptions
from calibration.cli import main
from calibration.errors import CalibrationError, InputError, LeftOutError
from calibration.reporting import to_json
from calibration.reporting.document import brief_lines, markdown, text_lines
from calibration.reporting.sections.trials import trials as document
from calibration.success_rate.pass_at_k import pass_of_tasks
from calibration.tables.reading import MissingOutcome, Reading, ReadingOptions
from calibration.taxonomy import default_taxonomy
from tests.success_rate.test_golden_trials import AIRLINE
from tests.success_rate.test_pass_at_k import trials

FIGURE = {"value", "interval", "n_tasks", "n_tasks_too_few_trials", "method", "status"}


def frame(c: list[int], n: int = 4, **more: Any) -> pd.DataFrame:
    rows = [
        (f"task-{t}", trial, trial < passes) for t, passes in enumerate(c) for trial in range(n)
    ]
    return pd.DataFrame(rows, columns=["task_id", "trial", "success"]).assign(**more)


def found(of: pd.DataFrame, **options: Any) -> TrialsAnalysis:
    names = ("tasks", "baseline", "reading")
    more = {name: options.pop(name) for name in names if name in options}
    return analyse_trials(of, TrialOptions(**options), **more)


def values(of: Any) -> dict[int, float | None]:
    return {k: one.estimate.value for k, one in of.items()}


def test_the_airline_tasks_of_tau_bench() -> None:
    made = found(frame(AIRLINE), ks=(1, 2, 3, 4))
    assert values(made.pass_hat_k) == pytest.approx({1: 0.42, 2: 0.2733333, 3: 0.22, 4: 0.2})
    assert values(made.pass_at_k) == pytest.approx({1: 0.42, 2: 0.5666667, 3: 0.66, 4: 0.72})
    assert made.success_source == "column success of the frame"
    data = to_json.data(made)
    for name in ("pass_at_k", "pass_hat_k", "g_pass_at_k"):
        assert set(data[name]) == {"1", "2", "3", "4"}
        assert set(data[name]["3"]) == FIGURE
    assert (made.task_set.n_tasks, made.task_set.same_tasks) == (50, True)
    assert data["band"]["2"] == "needs improvement (k = 2)"
    json.dumps(data, allow_nan=False)


def left_out(made: TrialsAnalysis) -> dict[str, int]:
    assert isinstance(made.reading, Reading)
    return {rows.code: rows.rows for rows in made.reading.left_out}


def test_rows_that_do_not_count_are_left_out_by_reason(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(
        "task_id,trial,success,cost_usd\n"
        "a,1,1,.1\na,2,TRUE,.1\na,3,no,\n"  # lines 2 to 4 count
        "a,4,nan,\na,5,maybe,\na,6,,\na,7,pending,\n,1,1,\na,,1,\n"
        "a,1,yes,\n"  # again, the same
        "b,1,1,\nb,1,0,\nb,1,1,\n"  # contrary
        "a,8,0,-4\n",  # counts, at an unknown cost
        encoding="utf-8",
    )
    with pytest.raises(LeftOutError, match=r"left out 7 of 11 runs \(9 rows\)") as refused:
        analyse_trials(file, TrialOptions())
    # One task of 4 known trials, 4 unknown; b, once; and the trial without a task is a task.
    missing = refused.value.missing_outcome
    assert isinstance(missing, MissingOutcome)
    assert missing.low == pytest.approx((2 / 9 + 0 + 0) / 3)
    assert missing.high == pytest.approx((7 / 9 + 1 + 1) / 3)
    made = analyse_trials(file, TrialOptions(ks=(1, 2)), reading=ReadingOptions(max_left_out=1))
    assert [(task.task_id, task.n, task.c) for task in made.tasks] == [("a", 4, 2)]
    assert left_out(made) == {
        "missing_outcome": 2,
        "not_run": 1,
        "unknown_outcome": 1,
        "missing_task": 1,
        "missing_trial": 1,
        "identical_duplicate": 1,
        "conflicting_duplicate": 3,
    }
    assert isinstance(made.reading, Reading)
    assert (made.reading.rows, made.reading.used) == (14, 4)
    assert made.reading.bounds == (missing.low, missing.high)
    assert any("cost_usd: 1 value cannot be read" in note for note in made.reading.notes)
    assert made.bayesian.method == "one task: Beta(1, 1) prior, exact"
    assert made.bayesian.pass_hat_k[2].estimate.value == pytest.approx(3 * 4 / (6 * 7))
    assert "From k" not in " ".join(made.notes)


def test_failure_modes_are_the_tags_of_failed_trials(tmp_path: Path) -> None:
    rows = frame([2] * 6)
    rows["tags"] = [
        ("wrong tool" if trial == 2 else "Policy; wrong tool" if task == 0 else "")
        if trial > 1 else "passed, ignored"
        for task in range(6) for trial in range(4)
    ]  # fmt: skip
    modes = found(rows).failure_modes
    assert modes is not None
    assert (modes.n_failed, modes.n_untagged) == (12, 5)
    assert [(of.tag, of.n, of.n_tasks, of.share.value) for of in modes.modes] == [
        ("wrong tool", 7, 6, 7 / 12), ("Policy", 1, 1, 1 / 12),
    ]  # fmt: skip
    assert all(of.share.interval for of in modes.modes)
    why = ReadingOptions(columns={"tags": "why"})
    made = found(rows.rename(columns={"tags": "why"}), reading=why)
    assert made.failure_modes == modes
    lines = "\n".join(text_lines(document(made)))
    assert "Of 12 failed trials, 5 without a tag" in lines
    assert found(frame([2] * 6)).failure_modes is None
    with pytest.raises(InputError, match=r"column 'why' .* is not there"):
        found(rows, reading=why)
    lists = [row | {"tags": ["wrong tool"]} for row in rows.to_dict("records")]
    file = tmp_path / "t.jsonl"
    file.write_text("\n".join(map(json.dumps, lists)), "utf-8")
    read = analyse_trials(file, TrialOptions()).failure_modes
    assert read is not None
    assert (read.modes[0].n, read.n_untagged) == (12, 0)


def test_json_and_parquet_are_read_like_csv(tmp_path: Path) -> None:
    rows = frame([4, 2, 0] * 4)
    jsonl, parquet = tmp_path / "t.jsonl", tmp_path / "t.parquet"
    jsonl.write_text("\n".join(json.dumps(row) for row in rows.to_dict("records")), "utf-8")
    rows.to_parquet(parquet)
    first, second = (analyse_trials(file, TrialOptions()) for file in (jsonl, parquet))
    assert values(first.pass_at_k) == values(second.pass_at_k)
    assert first.fingerprint == second.fingerprint
    assert first.sources[0].sha256 != second.sources[0].sha256


def test_hostile_cells_are_no_trials(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    rows = [
        {"task_id": {"a": 1}, "trial": 1, "success": True},
        {"task_id": "a", "trial": [1], "success": True},
        {"task_id": "x" * 5000, "trial": 1, "success": True},
        {"task_id": "a", "trial": 1, "success": {"yes": 1}},
        {"task_id": "a", "trial": 10**30, "success": 1.0},
    ]
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    made = analyse_trials(file, TrialOptions(), reading=ReadingOptions(max_left_out=1))
    assert made.n_trials == 1
    assert left_out(made) == {"unknown_outcome": 1, "bad_value": 3}
    file.write_text('{"task_id": "a", "trial": 2, "success": 1%s}' % ("0" * 30), "utf-8")
    with pytest.raises(InputError, match="--scale 1-5"):
        analyse_trials(file, TrialOptions())


def test_a_column_of_rewards_is_read() -> None:
    rows = frame([4, 2]).rename(columns={"success": "reward"}).astype({"reward": float})
    made = found(rows)
    assert made.success_source == "column reward of the frame"
    assert made.pass_at_k[1].estimate.value == 0.75


def test_models_and_versions_are_never_pooled() -> None:
    both = pd.concat([frame([4] * 6, model="m", agent_version="1"), frame([1] * 6, model="o")])
    with pytest.raises(InputError, match=r"model has 2 values \(m, o\).* --where model=m"):
        found(both)
    made = found(both, model="m")
    assert (made.n_trials, made.other_trials, made.agent_version) == (24, 24, "1")
    assert made.pass_hat_k[1].estimate.value == 1.0
    versions = frame([2] * 6).assign(agent_version=["1", "2"] * 12)
    with pytest.raises(InputError, match="agent_version has 2 values"):
        found(versions)
    assert found(versions, agent_version="2").n_trials == 12
    assert found(versions, reading=ReadingOptions(where=(("agent_version", "2"),))).n_trials == 12
    assert found(versions, reading=ReadingOptions(columns={"arm": None})).n_trials == 24
    # A prompt of each task tells no agents apart.
    prompts = frame([2] * 6).assign(prompt=lambda of: "solve " + of.task_id)
    assert found(prompts).n_trials == 24
    with pytest.raises(InputError, match="prompt has 2 values"):
        found(frame([2] * 6).assign(prompt=["short", "long"] * 12))
    with pytest.raises(InputError, match="no trial of model 'x'"):
        found(both, model="x")
    with pytest.raises(InputError, match="has no column 'model'"):
        found(frame([1]), model="x")


def test_figures_by_difficulty_category_and_tier() -> None:
    tasks = pd.DataFrame(
        {
            "task_id": [f"task-{t}" for t in range(13)],
            "difficulty": ["easy"] * 6 + ["hard"] * 7,
            "tier": ["core", "edge"] * 6 + [""],
        }
    )
    made = found(frame([4] * 6 + [1] * 6), tasks=tasks, ks=(1, 3, 5))
    assert list(made.by_difficulty) == ["easy", "hard"]
    assert made.by_difficulty["hard"].pass_at_k[3].estimate.value == pytest.approx(0.75)
    assert made.by_tier["core"].pass_at_k[1].estimate.value == pytest.approx(0.625)
    assert made.by_category == {}
    assert made.pass_at_k[5].estimate.value is None
    assert made.pass_at_k[5].estimate.status.startswith("not_estimable: no task has 5 trials")
    assert "With a difficulty but no trial: 1 task." in made.notes
    for wrong, match in (
        ({"task_id": ["a"], "tier": ["inner"]}, "is not one of core, edge"),
        ({"task_id": ["a", "a"], "tier": ["core"] * 2}, "is there already"),
        ({"task_id": ["a"], "colour": ["red"]}, "needs one of the columns"),
        ({"task_id": [""], "tier": ["core"]}, "'task_id' is missing"),
        ({"task_id": [], "tier": []}, "holds no tasks"),
    ):
        with pytest.raises(InputError, match=match):
            found(frame([1]), tasks=pd.DataFrame(wrong))


def test_the_curve_is_of_the_tasks_with_most_trials() -> None:
    uneven = pd.concat(
        [frame([4] * 5), frame([0] * 5, n=2).assign(task_id=lambda f: "x" + f.task_id)]
    )
    made = found(uneven, ks=(1, 2, 4, 8))
    assert values(made.pass_hat_k) == {1: 0.5, 2: 0.5, 4: 1.0, 8: None}
    assert made.pass_hat_k[4].n_tasks_too_few_trials == 5
    assert (made.task_set.largest_k, made.task_set.same_tasks) == (4, False)
    assert made.task_set.pass_hat_k == {1: 1.0, 2: 1.0, 4: 1.0}
    assert any(note.startswith("From k = 4 on") for note in made.notes)


def test_retries_steps_and_cost_by_hand() -> None:
    made = found(frame([2] * 8, cost_usd=0.10), retries=2, steps=2)
    again = made.retries
    assert again.independent_success.estimate.value == pytest.approx(0.875)
    assert again.independent_tries.estimate.value == pytest.approx(1.75)
    assert again.success.estimate.value == pytest.approx(1.0)  # two failures only
    assert again.expected_tries.estimate.value == pytest.approx(1 + 1 / 2 + 1 / 6)
    assert again.expected_usd == pytest.approx(0.1 * (1 + 1 / 2 + 1 / 6))
    assert made.step_compounding is not None
    assert made.step_compounding.step_rate == pytest.approx(0.5**0.5)
    never = found(frame([2] * 8), retries=0).retries
    assert never.expected_tries.estimate.value == 1.0
    assert found(frame([2] * 8), retries=9).retries.success.estimate.value is None


def test_each_task_is_shrunk_and_listed() -> None:
    made = found(frame([4, 4, 0] * 5), ks=(1, 4, 5))
    good = made.tasks[0]
    assert (good.n, good.c, good.pass_hat_k) == (4, 4, {1: 1.0, 4: 1.0, 5: None})
    shrunk = good.shrunk_pass_hat_k[1]
    assert shrunk.value is not None
    assert 0.6 < shrunk.value < 1.0
    assert shrunk.status == "provisional: shrunk towards the other tasks"
    whole = pass_of_tasks(trials([4] * 15, [4, 4, 0] * 5), 1)
    assert made.bayesian.mean == pytest.approx(whole.mean)


def test_a_regression_is_found_by_category_and_paired() -> None:
    tasks = pd.DataFrame({"task_id": [f"task-{t}" for t in range(24)], "category": ["a", "b"] * 12})
    before, now = [4, 3] * 12, [1, 3] * 12
    made = found(frame(now), baseline=frame(before), tasks=tasks).baseline
    assert made is not None
    assert (made.paired, made.n_shared) == (True, 24)
    assert made.pass_at_1.difference.estimate.value == pytest.approx(-0.375)
    assert made.pass_at_1.evidence == "evidence of regression"
    # Every task of a category changed alike: exact bounds.
    assert made.by_category["a"].evidence == "evidence of regression"
    assert made.by_category["b"].evidence == "no evidence of regression"
    assert made.by_category["b"].p_holm == 1.0
    back = found(frame(before), baseline=frame(now)).baseline
    assert back is not None
    assert back.pass_at_1.evidence == "evidence of improvement"


def test_three_points_more_are_no_improvement() -> None:
    """500 runs at .82 against 500 at .79, of other tasks: z = 1.20, p = .23, [-1.9, 7.9] pp."""
    now, before = frame([1] * 410 + [0] * 90, n=1), frame([1] * 395 + [0] * 105, n=1)
    before["task_id"] = "old-" + before["task_id"]
    made = found(now, ks=(1,), baseline=before).baseline
    assert made is not None
    change = made.pass_at_1
    assert not made.paired
    assert change.difference.estimate.value == pytest.approx(0.03)
    assert change.difference.estimate.interval == pytest.approx((-0.0191, 0.0791), abs=0.006)
    assert change.difference.p_value == pytest.approx(0.231, abs=0.04)
    assert change.evidence == "no evidence of regression"
    few = found(frame([1, 2]), baseline=frame([2, 2])).baseline
    assert few is not None
    assert few.pass_at_1.evidence.startswith("not tested: no interval from 2 tasks")


def test_no_document_calls_a_change_an_improvement_or_prints_a_negative_zero() -> None:
    made = found(frame([0] * 6), baseline=frame([0] * 6))
    lines = [*text_lines(document(made)), *brief_lines(document(made)), markdown(document(made))]
    assert "improve" not in " ".join(lines).replace("needs improvement", "")
    assert "-0.0" not in " ".join(lines)
    assert "-0.0" not in json.dumps(to_json.data(made))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"ks": ()}, "-k must be 1 to"), ({"ks": (0,)}, "-k must be whole"),
        ({"ks": (1001,)}, "-k must be whole"), ({"g_threshold": float("nan")}, "--g-threshold"),
        ({"retries": -1}, "--retries"), ({"steps": 0}, "--steps"),
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        found(frame([1]), **options)


def test_files_without_trials_are_refused() -> None:
    with pytest.raises(InputError, match=r"no value is a class or says pass or fail \(maybe\)"):
        found(frame([1]).assign(success="maybe"))
    with pytest.raises(CalibrationError, match=r"no trial is left \(Left out: 4 of 4 rows"):
        found(frame([1]).assign(success="pending"))
    with pytest.raises(InputError, match="no column holds the outcome"):
        found(frame([1]).drop(columns="success"))
    with pytest.raises(InputError, match="no column says which task a trial is of"):
        found(frame([1]).drop(columns="task_id"))
    with pytest.raises(InputError, match="holds no trials"):
        found(frame([]))


def test_plans_take_the_spread_of_earlier_trials() -> None:
    plan = plan_trials(frame([4, 0] * 20), half_width=0.05)
    (case,) = plan.cases
    assert case.mean == pytest.approx(0.5, abs=0.01)
    assert case.correlation > 0.6
    assert case.combinations[0].n_tasks == 385
    assert (case.combinations[-1].n_tasks or 0) > 250
    alike = plan_trials(frame([2] * 40), half_width=0.05).cases[0]
    assert (alike.combinations[-1].n_tasks or 0) < 60
    each, same = plan_trials(half_width=0.1, p=0.9, k=3, n_trials=[3]).cases
    assert (each.combinations[0].n_tasks, same.combinations[0].n_tasks) == (35, 76)
    assert "worst" not in each.name + same.name
    worst, best = plan_trials(half_width=0.05, n_tasks=100).cases
    assert worst.name.startswith("worst case")
    assert (worst.fewest_trials, best.fewest_trials) == (None, 4)
    known = plan_trials(half_width=0.05, p=0.8, n_trials=[1]).cases[1].combinations[0]
    assert known.n_tasks == 246
    calls: list[Callable[[], object]] = [
        lambda: plan_trials(half_width=float("nan")),
        lambda: plan_trials(half_width=1e-300),
        lambda: plan_trials(half_width=0.1, p=1.0),
        lambda: plan_trials(half_width=0.1, n_tasks=0),
        lambda: plan_trials(half_width=0.1, k=0),
        lambda: plan_trials(half_width=0.1, n_trials=[0]),
        lambda: plan_trials(half_width=0.1, n_trials=[]),
    ]
    for call in calls:
        with pytest.raises(InputError, match="must be"):
            call()
    with pytest.raises(CalibrationError, match="one task does not say"):
        plan_trials(frame([2]), half_width=0.1)


def test_a_report_on_a_file_has_the_passes_of_each_model(tmp_path: Path) -> None:
    rows = pd.concat(
        [frame([4] * 6 + [2] * 6, model="m"), frame([0] * 3, n=1, model="o")]
    ).reset_index(drop=True)
    rows["outcome"] = np.where(rows["success"], "complete", "abandoned")
    file = tmp_path / "runs.csv"
    rows = rows.assign(trace_id=rows.index, workflow="research", cost_usd=0.1)
    rows.to_csv(file, index=False)
    options = ReportOptions()
    read = read_production([str(file)], taxonomy=default_taxonomy(), options=options)
    (made,), note = passes_of_files(read, options, "outcomes")
    assert (made.agent, made.n_tasks, made.most_trials, note) == ("m", 12, 4, "")
    assert [point.k for point in made.points] == [1, 2, 3, 4]
    same = found(rows, model="m", ks=(1, 2, 3, 4))
    for point in made.points:
        assert point.pass_hat_k.value == same.pass_hat_k[point.k].estimate.value
        assert point.pass_at_k.value == same.pass_at_k[point.k].estimate.value
    # Versions are never pooled.
    halves = rows.assign(agent_version=np.where(rows["trial"] < 2, "v1", "v2"))
    halves.to_csv(file, index=False)
    read = read_production([str(file)], taxonomy=default_taxonomy(), options=options)
    assert [(of.agent, of.most_trials) for of in passes_of_files(read, options, "outcomes")[0]] == [
        ("m v1", 2),
        ("m v2", 2),
    ]


def test_the_command_names_what_is_wrong_and_exits_with_its_code(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    frame([4, 2, 0] * 4).to_csv(file, index=False)
    cases = [
        ([str(file)], 0, "12 tasks, 48 trials"),
        ([str(file), "-k", "1,x"], 2, "-k must be whole numbers"),
        ([str(file), "-k", "9"], 1, "no task has trials enough"),
        ([str(tmp_path / "none.csv")], 2, "none.csv"),
        (
            [str(file), "--column", "outcome=reward"],
            2,
            "column 'reward' (for outcome) is not there",
        ),
    ]
    for arguments, code, words in cases:
        result = CliRunner().invoke(main, ["trials", *arguments])
        assert (result.exit_code, words in result.output) == (code, True), result.output
