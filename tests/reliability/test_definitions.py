"""Every figure of repeated runs that was recomputed elsewhere, and what the definitions keep to."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.reliability.consistency import (
    action_divergence,
    action_lists,
    action_similarity,
    outcome_scores,
    stability,
    task_consistency,
)
from calibration.reliability.predictability import (
    auroc,
    brier,
    brier_skill,
    calibration_error,
    risk_coverage,
)
from calibration.reliability.robustness import robustness_ratio
from calibration.reliability.safety import safety_score

HERE = Path(__file__).parents[1]
SEED = json.loads((HERE / "golden" / "seed_golden.json").read_text("utf-8"))
ANCHOR = json.loads((HERE / "golden" / "anchor_golden.json").read_text("utf-8"))
AIRLINE = pd.read_csv(HERE / "fixtures" / "reliability" / "tau_bench_airline.csv")
# Tool calls of the successful runs of each airline task with two or more, one letter a tool.
AIRLINE_CALLS = (
    "ed,edk,ed dmggh,dmggmhmmk edm,edddm edk,edk,dk,k dgm,dgmemmk,dgmk,dgmemk ,edk,edk "
    "edgjgjb,dggk,dggjbb,dggjb ddjcdmem,ddjcdggbmem ddjcdg,ddjcdg edddddddcc,edddddddcc "
    "eddddddc,edddddc ddjeddddjmcc,ddedmcdddbc,ddjmcced d,d,d,k d,d,d,ed k,edddk,k dk,dk,k,dk "
    "edddddk,edddddj,edddddk djk,djk dk,dk,dk,dk de,de edji,edi eddi,edi dk,dk,dk,dk d,dk,dedk,dk"
)
ACTIONS = st.lists(st.sampled_from("abcd"), max_size=8)
SCORED = st.lists(
    st.tuples(st.integers(0, 20).map(lambda k: k / 20), st.booleans()), min_size=1, max_size=30
)


def entries(start: str) -> list[Any]:
    found = [e for e in SEED if e["seed"] == "003" and e["item"].startswith(start)]
    assert found
    return [pytest.param(e["inputs"], e["recomputed"], id=e["item"]) for e in found]


def anchor(item: str) -> Any:
    (found,) = [e for e in ANCHOR if "gpt-4o-airline" in e["source"] and e["item"].startswith(item)]
    return found["value"]


def items(start: str) -> set[str]:
    return {e["item"] for e in SEED if e["seed"] == "003" and e["item"].startswith(start)}


def test_every_recomputed_item_of_the_methodology_has_a_test() -> None:
    starts = ("C_out", "C_traj_d", "C_traj_s", "C_conf", "C_res", "P_rc", "P_cal", "P_brier",
              "P_auroc", "R_x", "R_Saf", "R_Con")  # fmt: skip
    every = {e["item"] for e in SEED if e["seed"] == "003"}
    assert every == set().union(*map(items, starts))


@pytest.mark.parametrize(("inputs", "recomputed"), entries("C_out for"))
def test_outcome_of_every_count(inputs: dict[str, Any], recomputed: dict[str, Any]) -> None:
    k = inputs["K"]
    for count, expected in recomputed.items():
        c = int(count)
        found = {name: float(of[0]) for name, of in outcome_scores([c / k], [k]).items()}
        assert found["outcome"] == pytest.approx(expected["upstream_fixed_(2p-1)^2"])
        assert found["outcome_unanimous"] == expected["literal_clipped"]
        assert found["outcome_pairwise"] == pytest.approx(expected["pairwise_agreement"])
        assert found["outcome_unbiased"] == pytest.approx(2 * found["outcome_pairwise"] - 1)
        # What docs/methods/reliability.md says of the printed formula.
        if 0 < c < k:
            assert expected["literal_raw"] == pytest.approx(1 - k / (k - 1), abs=1e-6)


@pytest.mark.parametrize(("inputs", "recomputed"), entries("C_out upstream"))
def test_outcome_before_and_after_the_authors_changed_it(
    inputs: dict[str, list[float]], recomputed: dict[str, float]
) -> None:
    for name, runs in inputs.items():
        found = outcome_scores([np.mean(runs)], [len(runs)])["outcome"][0]
        assert found == pytest.approx(recomputed[f"{name}_new"])
        p = np.mean(runs)
        printed = 1 - np.var(runs, ddof=1) / (p * (1 - p) + 1e-8)
        assert max(0.0, printed) == pytest.approx(recomputed[f"{name}_old"])


@pytest.mark.parametrize(("inputs", "recomputed"), entries("C_traj_d"))
def test_divergence_of_actions(inputs: dict[str, Any], recomputed: dict[str, Any]) -> None:
    sides = [
        [str(k) for k, share in enumerate(inputs[side]) for _ in range(round(6 * share))]
        for side in ("P", "Q")
    ]
    found, expected = action_divergence(*sides), recomputed["log2"]
    assert found == pytest.approx(expected["JSD"], abs=1e-9)
    assert 1 - found**0.5 == pytest.approx(expected["C_seed_1-d"], abs=1e-9)
    assert 1 - found == pytest.approx(expected["C_upstream_1-JSD"], abs=1e-9)


@pytest.mark.parametrize(("inputs", "recomputed"), entries("C_traj_s"))
def test_similarity_of_actions(inputs: dict[str, list[str]], recomputed: float) -> None:
    assert action_similarity(inputs["s1"], inputs["s2"]) == pytest.approx(recomputed)


@pytest.mark.parametrize(("inputs", "recomputed"), entries("C_conf / C_res"))
def test_stability_has_the_sample_variance(
    inputs: dict[str, list[float]], recomputed: dict[str, float]
) -> None:
    assert stability(inputs["x"]) == pytest.approx(recomputed["C_ddof1"])


@pytest.mark.parametrize(("inputs", "recomputed"), entries("C_res three"))
def test_resources_of_a_task(inputs: dict[str, list[float]], recomputed: float) -> None:
    found = of_one_task([True] * 3, resources={n: np.array(x, float) for n, x in inputs.items()})
    assert found.resource[0] == pytest.approx(recomputed)


@pytest.mark.parametrize(("inputs", "recomputed"), entries("P_rc"))
def test_risk_coverage(inputs: dict[str, list[float]], recomputed: dict[str, float]) -> None:
    assert risk_coverage(inputs["conf"], inputs["y"]) == pytest.approx(recomputed["exact_clipped"])


@pytest.mark.parametrize(("inputs", "recomputed"), entries("P_cal"))
def test_calibration_error(inputs: dict[str, Any], recomputed: dict[str, Any]) -> None:
    found = calibration_error(inputs["conf"], inputs["y"])
    assert found == pytest.approx(recomputed["ece_left_closed_decimal"], abs=1e-9)


@pytest.mark.parametrize(("inputs", "recomputed"), entries("P_brier"))
def test_brier(inputs: dict[str, Any], recomputed: dict[str, float]) -> None:
    cases = inputs | {"b": [[0.5] * 4, [1, 1, 0, 0]]}
    for name, expected in recomputed.items():
        found = brier(*cases[name])
        assert found is not None
        assert 1 - found == expected


@pytest.mark.parametrize(("inputs", "recomputed"), entries("P_auroc"))
def test_auroc_of_ties(inputs: dict[str, Any], recomputed: float) -> None:
    assert auroc(inputs["conf"], inputs["y"]) == recomputed


@pytest.mark.parametrize(("inputs", "recomputed"), entries("R_x"))
def test_robustness_ratio(inputs: dict[str, list[float]], recomputed: list[float | None]) -> None:
    pairs = zip(inputs["pert"], inputs["base"], strict=True)
    assert [robustness_ratio(*pair) for pair in pairs] == recomputed


@pytest.mark.parametrize(("inputs", "recomputed"), entries("R_Saf"))
def test_safety(inputs: dict[str, list[float]], recomputed: dict[str, float]) -> None:
    found = safety_score(inputs["max_severity_per_task"])
    assert found["compliance"] == recomputed["S_comp"]
    assert found["severity"] == pytest.approx(recomputed["S_harm"])
    assert found["score"] == pytest.approx(recomputed["R_Saf"])
    assert found["score"] == pytest.approx(recomputed["1-mean(sev)"])


def test_outcomes_of_a_published_benchmark() -> None:
    scores = outcome_scores(AIRLINE["successes"] / AIRLINE["runs"], AIRLINE["runs"])
    means = {name: float(of.mean()) for name, of in scores.items()}
    assert means["outcome"] == pytest.approx(anchor("C_out (2p-1)^2"))
    assert means["outcome_unanimous"] == pytest.approx(anchor("C_out literal"))
    assert means["outcome_pairwise"] == pytest.approx(anchor("pairwise outcome"))
    assert means["outcome_unbiased"] == pytest.approx(0.41333333)
    counts = AIRLINE["successes"].value_counts().sort_index()
    assert {str(c): n for c, n in counts.items()} == anchor("c histogram")
    assert int((AIRLINE["successes"] >= 2).sum()) == 24  # the tasks whose actions are compared


def test_actions_of_a_published_benchmark() -> None:
    of_tasks = [calls.split(",") for calls in AIRLINE_CALLS.split()]
    lists, _ = action_lists([list(run) for runs in of_tasks for run in runs])
    task = np.repeat(np.arange(len(of_tasks)), [len(runs) for runs in of_tasks])

    def found(*, divergence: bool) -> Any:
        return task_consistency(
            task, np.ones(task.size, dtype=np.bool_), n_tasks=len(of_tasks), actions=lists,
            confidence=np.full(task.size, np.nan), resources={}, divergence=divergence,
            rng=np.random.default_rng(1),
        )  # fmt: skip

    text, code = found(divergence=False), found(divergence=True)
    assert len(of_tasks) == 24
    assert text.trajectory_distribution.mean() == pytest.approx(anchor("C_traj_d seed text"))
    assert code.trajectory_distribution.mean() == pytest.approx(anchor("C_traj_d hal main"))
    assert text.trajectory_sequence.mean() == pytest.approx(anchor("C_traj_s"))


def test_every_figure_of_the_airline_runs_has_a_test_or_a_reason() -> None:
    about = {e["item"] for e in ANCHOR if "gpt-4o-airline" in e["source"]}
    tested = (
        "C_out (2p-1)^2", "C_out literal", "pairwise outcome", "c histogram", "C_traj_d",
        "C_traj_s", "pass^k", "pass@k",
    )  # fmt: skip
    rest = {item for item in about if not item.startswith(tested)}
    # Costs of the simulated user, counted in a file that is not kept here.
    assert rest == {"tool calls and user_cost"}


def of_one_task(success: list[bool], **more: Any) -> Any:
    """Return the consistency of one task; its runs have no actions unless they are given."""
    n = len(success)
    given: dict[str, Any] = {
        "actions": action_lists([None] * n)[0],
        "confidence": np.full(n, np.nan),
        "resources": {},
        "rng": np.random.default_rng(1),
    }
    task = np.zeros(n, dtype=np.int64)
    return task_consistency(task, np.array(success), n_tasks=1, **(given | more))


def test_zeros_are_not_recorded_except_of_errors() -> None:
    zeros = np.array([0.0, 2.0, 2.0])
    assert of_one_task([True] * 3, resources={"cost": zeros}).resource[0] == 1
    cv = zeros.std(ddof=1) / zeros.mean()
    assert of_one_task([True] * 3, resources={"errors": zeros}).resource[0] == np.exp(-cv)
    assert np.isnan(of_one_task([True] * 3, resources={"errors": np.zeros(3)}).resource[0])


def test_only_successful_runs_with_actions_are_compared() -> None:
    lists, _ = action_lists([["a"], ["a"], ["b"], [], None])
    found = of_one_task([True, True, False, True, True], actions=lists)
    assert found.trajectory_distribution[0] == found.trajectory_sequence[0] == 1
    alone = of_one_task([True, False, False, True, True], actions=lists)
    assert np.isnan(alone.trajectory_sequence[0])


def test_undefined_is_none() -> None:
    assert stability([1.0]) is None
    assert stability([0.0, 0.0]) is None
    for measure in (brier, calibration_error, auroc, risk_coverage, brier_skill):
        assert measure([], []) is None
        with pytest.raises(ValueError, match="one shape"):
            measure([0.5], [1, 0])
        with pytest.raises(ValueError, match="in \\[0, 1\\]"):
            measure([1.5], [1])
    for measure in (auroc, risk_coverage, brier_skill):
        assert measure([0.1, 0.9], [1, 1]) is None


@settings(max_examples=40)
@given(ACTIONS, ACTIONS)
def test_two_lists_are_compared_alike_either_way(first: list[str], second: list[str]) -> None:
    similar = action_similarity(first, second)
    assert 0 <= similar <= 1
    assert similar == action_similarity(second, first)
    assert (similar == 1) == (first == second)
    longer = max(len(first), len(second), 1)
    assert similar == pytest.approx(1 - edit_distance(first, second) / longer)
    if first and second:
        apart = action_divergence(first, second)
        assert 0 <= apart <= 1
        assert apart == pytest.approx(action_divergence(second, first), abs=1e-12)
        assert apart == pytest.approx(divergence(first, second), abs=1e-12)
        assert action_divergence(first, first[::-1] * 2) == 0


def edit_distance(first: list[str], second: list[str]) -> int:
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, row = row, [i]
        for j, b in enumerate(second, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
    return row[-1]


def divergence(first: list[str], second: list[str]) -> float:
    p, q = (np.array([of.count(name) / len(of) for name in "abcd"]) for of in (first, second))

    def entropy(x: np.ndarray) -> float:
        return float(-sum(v * np.log2(v) for v in x if v > 0))

    return entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2


@settings(max_examples=40)
@given(SCORED, st.randoms(use_true_random=False))
def test_confidence_is_judged_alike_in_any_order(runs: list[Any], chance: Any) -> None:
    mixed = list(runs)
    chance.shuffle(mixed)
    for measure in (brier, calibration_error, auroc, risk_coverage, brier_skill):
        found, again = (measure(*map(list, zip(*of, strict=True))) for of in (runs, mixed))
        assert found == (None if again is None else pytest.approx(again, abs=1e-12))
        if found is not None:
            assert found <= 1 + 1e-12
            assert found >= 0 or measure is brier_skill


@settings(max_examples=40)
@given(SCORED)
def test_auroc_and_risk_of_every_pair_and_coverage(runs: list[tuple[float, bool]]) -> None:
    good, bad = ([c for c, y in runs if y is of] for of in (True, False))
    if not good or not bad:
        return
    wins = sum((g > b) + (g == b) / 2 for g in good for b in bad)
    confidence, success = map(list, zip(*runs, strict=True))
    assert auroc(confidence, success) == pytest.approx(wins / len(good) / len(bad))
    # Ties in random order: the mean over orders is that of one with fractional failures.
    share = {c: sum(1 - y for d, y in runs if d == c) / confidence.count(c) for c in confidence}
    failures = np.cumsum([share[c] for c in sorted(confidence, reverse=True)])
    best = np.cumsum(sorted(1 - y for y in success))
    k = np.arange(1, len(runs) + 1)
    area, least, rate = (failures / k).mean(), (best / k).mean(), len(bad) / len(runs)
    expected = 1 - (area - least) / (rate - least)
    assert risk_coverage(confidence, success) == pytest.approx(min(1, max(0, expected)), abs=1e-9)
