"""Reliability of a table of runs: what is read and set aside, what is missing, and invariants."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.analyses.reliability import runs as module
from calibration.analyses.reliability.runs import (
    ReliabilityReport,
    RepeatedRuns,
    measure_reliability,
    read_runs,
)
from calibration.errors import CalibrationError, InputError, LeftOutError
from calibration.reporting import to_json
from calibration.reporting.document import markdown, text_lines
from calibration.reporting.render_html import html
from calibration.reporting.sections.reliability import document
from calibration.tables.reading import ReadingOptions
from calibration.tables.trials import read_task_groups

HERE = Path(__file__).parents[1]
SEED = json.loads((HERE / "golden" / "seed_golden.json").read_text("utf-8"))
ARMS = ("none", "none", "none", "fault", "structure", "prompt")
RUNS = st.lists(
    st.tuples(
        st.integers(0, 8),
        st.booleans(),
        st.sampled_from([None, 0.2, 0.5, 1.0]),
        st.sampled_from([None, [], ["a"], ["a", "b"], ["b", "a", "a"]]),
        st.sampled_from([None, 0.0, 1.0, 2.5]),
        st.sampled_from(ARMS),
        st.sampled_from([None, [], [{"constraint": "pii", "severity": "low"}]]),
    ),
    min_size=1,
    max_size=60,
)
COLUMNS = ["task_id", "success", "confidence", "actions", "cost_usd", "perturbation", "violations"]


def frame(rows: list[Any]) -> pd.DataFrame:
    made = pd.DataFrame(rows, columns=COLUMNS, dtype=object)
    return made.assign(run=np.arange(len(rows)))


def measured(rows: pd.DataFrame, n_resamples: int = 200, **more: Any) -> ReliabilityReport:
    return measure_reliability(read_runs(rows), n_resamples=n_resamples, **more)


def many(tasks: int = 30, runs: int = 4, seed: int = 1) -> pd.DataFrame:
    """Return runs with everything, of tasks that differ."""
    rng, rows = np.random.default_rng(seed), []
    for task in range(tasks):
        chance = rng.beta(2, 1)
        for arm in ARMS[2:]:
            for _ in range(runs):
                actions = ["look", *rng.choice(["ask", "book"], rng.integers(1, 4)).tolist()]
                broken = [{"constraint": "no PII", "severity": "high", "step": 2}]
                rows.append(
                    (f"task {task}", bool(rng.random() < chance), round(chance, 1), actions,
                     round(float(rng.exponential()), 3), arm, broken if rng.random() < 0.03 else [])
                )  # fmt: skip
    return frame(rows)


@pytest.fixture(scope="module")
def whole() -> ReliabilityReport:
    details = pd.DataFrame({"task_id": [f"task {k}" for k in range(30)]}).assign(
        difficulty=["easy", "hard"] * 15, tier="core"
    )
    return measured(many(), groups=read_task_groups(details))


def leaves(found: Any) -> list[dict[str, Any]]:
    if isinstance(found, dict):
        if {"value", "n_tasks", "status"} <= found.keys():
            return [found]
        return [leaf for of in found.values() for leaf in leaves(of)]
    return [leaf for of in found for leaf in leaves(of)] if isinstance(found, list) else []


def test_the_score_weighs_its_parts_as_recomputed() -> None:
    (entry,) = [e for e in SEED if e["item"] == "R_Con and R weighting"]
    given = entry["inputs"]
    parts = [given["C_out"], (given["C_d"] + given["C_s"]) / 2, given["C_res"]]
    assert np.mean(parts) == pytest.approx(entry["recomputed"]["R_Con"])
    found = [np.mean(parts), given["P_brier"], np.mean(given["R_rob"])]
    assert np.mean(found) == pytest.approx(entry["recomputed"]["R"])


def test_the_overall_score_is_the_mean_of_three_and_safety_is_beside_it(
    whole: ReliabilityReport,
) -> None:
    of = whole.consistency
    values = {name: getattr(of, name).value for name in of.__slots__ if name != "missing"}
    trajectory = (values["trajectory_distribution"] + values["trajectory_sequence"]) / 2
    three = [values["outcome"], trajectory, values["resource"]]
    assert values["score"] == pytest.approx(sum(three) / 3)
    scores = [whole.consistency.score, whole.predictability.score, whole.robustness.score]
    assert whole.overall.value == pytest.approx(sum(part.value or 0 for part in scores) / 3)
    assert whole.overall.status == whole.safety.score.status == "ok"
    robust = whole.robustness
    ratios = [robust.fault.value, robust.structure.value, robust.prompt.value]
    assert robust.score.value == pytest.approx(sum(of or 0 for of in ratios) / 3)
    assert whole.runs_per_task is not None
    assert (whole.runs_per_task.min, whole.runs_per_task.max) == (4, 4)
    safe = whole.safety
    assert safe.compliance.value is not None
    assert safe.severity.value is not None
    harm = (1 - safe.compliance.value) * (1 - safe.severity.value)
    assert safe.score.value == pytest.approx(1 - harm)


def test_json_has_a_key_for_each_part_and_every_leaf_is_explained(whole: ReliabilityReport) -> None:
    found = to_json.data(whole)
    assert {"overall", "consistency", "predictability", "robustness", "safety"} <= found.keys()
    assert {"score", "fault", "structure", "prompt"} <= found["robustness"].keys()
    assert {"score", "compliance", "severity", "by_constraint"} <= found["safety"].keys()
    every = leaves(found)
    assert len(every) > 40
    for leaf in every:
        assert leaf.keys() == {"value", "interval", "n_tasks", "method", "status"}
        assert leaf["status"]
        assert leaf["value"] is not None or leaf["status"].startswith("not_estimable: ")
    assert [b["n"] for b in found["predictability"]["calibration_bins"]] != []
    assert found["predictability"]["risk_coverage_curve"][-1]["coverage"] == 1
    assert [arm["perturbation"] for arm in found["robustness"]["arms"]] == list(ARMS[2:])
    assert found["by"].keys() == {"difficulty", "tier"}
    assert len(found["tasks"]) == 30
    scores = [task["score"] for task in found["tasks"]]
    assert scores == sorted(scores)


def test_a_group_of_all_tasks_has_the_figures_of_all(whole: ReliabilityReport) -> None:
    core = whole.by["tier"]["core"]
    assert core.consistency == whole.consistency.score
    assert core.predictability == whole.predictability.score
    assert core.robustness == whole.robustness.score
    assert core.overall == whole.overall


def test_documents_of_all_and_of_nothing(whole: ReliabilityReport) -> None:
    bare = measured(pd.DataFrame({"task_id": ["a"], "run": [1], "success": [1]}))
    for report in (whole, bare):
        drawn = document(report)
        text = "\n".join(text_lines(drawn))
        assert "Consistency" in text
        assert "nan" not in text.lower().split()
        assert markdown(drawn)
        assert html(drawn)
    assert bare.overall.value is None
    assert "no consistency" in bare.overall.status
    assert "no robustness (no run with a perturbation" in bare.overall.status


def test_what_is_missing_is_named_and_the_rest_still_computed() -> None:
    rows = many()
    outcome_only = measured(rows[rows["perturbation"] == "none"][["task_id", "run", "success"]])
    assert outcome_only.consistency.missing == (
        "trajectory_distribution", "trajectory_sequence", "resource",
    )  # fmt: skip
    assert outcome_only.consistency.score.value == outcome_only.consistency.outcome.value
    assert outcome_only.consistency.score.status.startswith("provisional: without trajectory")
    assert outcome_only.overall.value is None
    no_prompt = measured(rows[rows["perturbation"] != "prompt"])
    assert no_prompt.robustness.missing == ("prompt",)
    assert no_prompt.overall.status == "provisional: parts are missing in robustness"
    never = measured(rows.assign(success=False))
    assert never.robustness.fault.value is None
    assert "nothing can be lost" in never.robustness.fault.status
    assert never.consistency.outcome.value == 1
    assert never.consistency.outcome.status == "no variation seen"
    assert never.predictability.auroc.value is None


def test_perturbed_runs_do_not_enter_consistency() -> None:
    rows = many()
    base = rows[rows["perturbation"] == "none"]
    assert measured(rows).consistency.outcome.value == measured(base).consistency.outcome.value


def test_few_tasks_have_no_interval_and_some_have_t() -> None:
    few, some = measured(many(4)), measured(many(12))
    assert few.consistency.outcome.interval is None
    assert "at least 5" in few.consistency.outcome.status
    assert some.consistency.outcome.method == "jackknife over tasks, t"
    assert some.overall.interval is not None
    one = measured(many(30, runs=1))
    assert one.consistency.outcome.value is None
    assert "two runs" in one.consistency.outcome.status


def test_tasks_of_one_arm_only_are_not_compared() -> None:
    rows = many()
    alone = rows[(rows["perturbation"] == "none") | (rows["task_id"] < "task 2")]
    found = measured(alone).robustness
    (fault,) = [arm for arm in found.arms if arm.perturbation == "fault"]
    assert fault.paired
    assert fault.n_shared == fault.success_rate.n == found.fault.n < 30
    apart = rows[(rows["perturbation"] == "none") ^ (rows["task_id"] < "task 2")]
    assert not [a for a in measured(apart).robustness.arms if a.paired and a.n_shared]


def left_out(found: RepeatedRuns) -> dict[str, int]:
    assert found.reading is not None
    return {rows.code: rows.rows for rows in found.reading.left_out}


def test_a_row_that_is_not_valid_is_left_out_with_the_reason() -> None:
    bad: list[dict[str, Any]] = [
        {"success": "maybe"}, {"success": None}, {"confidence": 85}, {"confidence": True},
        {"actions": "look"}, {"actions": '{"a": 1}'}, {"actions": [1, 2]},
        {"actions": "[" * 100_000}, {"actions": ["x" * 201]}, {"perturbation": "weather"},
        {"violations": [{"constraint": "pii"}]}, {"violations": "[1]"},
        {"violations": [{"constraint": "pii", "severity": "fatal"}]},
        {"violations": [{"constraint": "pii", "severity": "low"}], "analysed": "no"},
        {"analysed": "perhaps"}, {"run": None}, {"run": "1"}, {"task_id": "t" * 5_000},
    ]  # fmt: skip
    good = {"task_id": "a", "run": "1", "success": "yes", "confidence": 0.5, "actions": '["x"]'}
    rows = [good, *({**good, "run": f"{k}", **row} for k, row in enumerate(bad, 10))]
    found = read_runs(pd.DataFrame(rows, dtype=object))
    assert found.success.size == 1
    assert left_out(found) == {
        "missing_outcome": 1, "unknown_outcome": 1, "missing_trial": 1, "identical_duplicate": 1,
        "bad_value": len(bad) - 4,
    }  # fmt: skip
    with pytest.raises(LeftOutError, match=r"17 of 18 rows .* \(first: line 4 "):
        measure_reliability(found)


def test_a_run_whose_cost_cannot_be_read_counts() -> None:
    bad: list[dict[str, Any]] = [
        {"cost_usd": -1}, {"cost_usd": float("inf")}, {"cost_usd": 1e300}, {"cost_usd": "cheap"},
        {"confidence": "nan"}, {"cost_usd": "$0.25"},
    ]  # fmt: skip
    rows = [{"task_id": "a", "run": k, "success": 1, **row} for k, row in enumerate(bad)]
    found = read_runs(pd.DataFrame(rows, dtype=object))
    assert found.success.size == 6
    assert np.nansum(found.amounts["cost"]) == 0.25
    assert found.reading is not None
    assert [note.partition(" cannot")[0] for note in found.reading.notes] == ["cost_usd: 4 values"]


def test_agents_are_not_pooled_and_milliseconds_are_seconds() -> None:
    rows = pd.DataFrame(
        {"task": ["a", "a"] * 2, "attempt": [1, 2] * 2, "agent": list("xxyy"),
         "passed": ["yes", "no"] * 2, "latency_ms": [500, 1500] * 2}
    )  # fmt: skip
    with pytest.raises(InputError, match=r"agent has 2 values \(x, y\).*--where agent=x"):
        read_runs(rows)
    found = read_runs(rows, ReadingOptions(where=(("agent", "y"),)))
    assert found.amounts["time"].tolist() == [0.5, 1.5]
    assert (found.run, found.success.tolist()) == (("1", "2"), [True, False])


def test_whole_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column holds the outcome"):
        read_runs(pd.DataFrame({"task_id": ["a"], "run": [1]}))
    with pytest.raises(InputError, match="no value is a class or says pass or fail"):
        read_runs(pd.DataFrame({"task_id": ["a"], "run": [1], "success": ["?"]}))
    named = [[{"constraint": f"c{k}", "severity": "low"}] for k in range(51)]
    with pytest.raises(InputError, match="more than 50 constraints"):
        read_runs(frame([("a", True, None, None, None, "none", v) for v in named]))
    for columns, wrong in (
        ({"task_id": ["a", "a"], "tier": ["core", "core"]}, "is there already"),
        ({"task_id": ["a"], "tier": ["inner"]}, "not one of core, edge"),
        ({"task_id": ["a"], "category": ["x" * 201]}, "has 201 characters"),
    ):
        with pytest.raises(InputError, match=wrong):
            read_task_groups(pd.DataFrame(columns))


def test_a_run_with_both_results_does_not_count_whatever_the_order() -> None:
    rows = pd.DataFrame(
        {"task_id": ["a", "a", "a", "b"], "run": [1, 2, 1, 1], "success": ["1.0", 0, 0, True]}
    )
    for table in (rows, rows[::-1]):
        found = read_runs(table)
        assert (found.tasks, found.run, found.success.tolist()) == (
            ("a", "b"), ("2", "1"), [False, True],
        )  # fmt: skip
        assert left_out(found) == {"conflicting_duplicate": 2}
    same = read_runs(pd.DataFrame({"task_id": ["a", "a"], "trial": [1, 1], "success": [1, 1]}))
    assert left_out(same) == {"identical_duplicate": 1}
    with pytest.raises(CalibrationError, match="no trial is left"):
        read_runs(pd.DataFrame({"task_id": ["a", "a"], "trial": [1, 1], "success": [0, 1]}))


def test_long_lists_and_many_pairs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a", True, None, ["x"] * 2001, 1.0, "none", None)]
    rows += [("a", True, None, ["x", "y"], 1.0, "none", None) for _ in range(60)]
    found = measured(frame(rows))
    assert any("1 runs are not compared" in note for note in found.notes)
    assert any("at most 300 pairs" in note for note in found.notes)
    assert found.consistency.trajectory_sequence.value == 1
    monkeypatch.setattr("calibration.reliability.consistency.ALL_CELLS", 0)
    refused = measured(frame(rows)).consistency
    assert refused.trajectory_distribution.value == 1
    assert refused.trajectory_sequence.value is None
    assert "too long" in refused.trajectory_sequence.status


def test_the_same_table_in_three_formats(tmp_path: Path) -> None:
    rows = many(6)
    listed = rows.assign(
        actions=rows["actions"].map(json.dumps), violations=rows["violations"].map(json.dumps)
    )
    listed.to_csv(tmp_path / "runs.csv", index=False)
    (tmp_path / "runs.jsonl").write_text(rows.to_json(orient="records", lines=True), "utf-8")
    rows.to_parquet(tmp_path / "runs.parquet")
    expected = measured(rows)
    for name in ("runs.csv", "runs.jsonl", "runs.parquet"):
        found = measure_reliability(read_runs(tmp_path / name), n_resamples=200)
        assert found.overall == expected.overall
        assert found.fingerprint == expected.fingerprint


def test_too_many_values_of_a_column_are_not_shown() -> None:
    rows = many(60, runs=1)
    names = sorted(set(rows["task_id"]))
    details = read_task_groups(
        pd.DataFrame({"task_id": [*names, "other"], "category": [*names, "x"]})
    )
    found = measured(rows, groups=details)
    assert found.by == {}
    assert any("no figures by category: 60 values" in note for note in found.notes)
    assert "With a category but no trial: 1 task." in found.notes


@settings(max_examples=25)
@given(RUNS, st.randoms(use_true_random=False))
def test_scores_are_in_0_to_1_and_the_order_of_rows_does_not_matter(
    rows: list[Any], chance: Any
) -> None:
    table = frame(rows)
    order = list(range(len(rows)))
    chance.shuffle(order)
    found, again = (to_json.data(measured(of, 50)) for of in (table, table.iloc[order]))
    assert found == again
    json.dumps(found, allow_nan=False)
    below_zero = found["predictability"]["brier_skill"], found["consistency"]["outcome_unbiased"]
    for leaf in leaves(found):
        ends = [*(leaf["interval"] or ()), leaf["value"]]
        if any(leaf is of for of in below_zero):
            continue
        assert all(end is None or 0 <= end <= 1 for end in ends)
        assert "-0.0" not in map(str, ends)
        if leaf["interval"]:
            assert leaf["interval"][0] <= leaf["value"] <= leaf["interval"][1]


def test_limits_are_those_that_the_reader_has() -> None:
    assert module.MOST_ACTIONS == 2_000
