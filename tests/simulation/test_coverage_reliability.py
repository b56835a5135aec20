"""Coverage of the scores of repeated runs over tasks: 20 to 100 tasks, 3 to 10 runs each."""

from collections.abc import Callable

import numpy as np
import pytest

from calibration.reliability.consistency import outcome_scores
from calibration.reliability.predictability import predictability
from calibration.reliability.robustness import ARMS, BASELINE, robustness
from calibration.reliability.safety import SEVERITIES, Violations, safety
from calibration.statistics.estimate import FloatArray
from calibration.statistics.resampling import (
    FEW_TASKS,
    TaskResamples,
    bounded_mean,
    resample_tasks,
)
from tests.simulation.judged import Band, Judge, Tally, give_all

pytestmark = pytest.mark.slow
SEED, REPETITIONS = 20330, 2000
BAND: Band = (0.93, 0.98)
# With 20 tasks of two or three kinds every interval over tasks is a little short.
OF_20: Band = (0.915, 0.98)
SURE: Band = (0.94, 1.0)
CONTROL: Band = (0.0, 0.94)
SIZES = [(20, 3), (20, 10), (50, 5), (100, 3), (100, 10)]

# Chances of tasks: spread out, and of three kinds.
MIXES: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "Beta(2, 1)": lambda rng, n: rng.beta(2, 1, n),
    "half .95, quarter .3, quarter 1": lambda rng, n: rng.choice(
        [0.95, 0.3, 1.0], n, p=[0.5, 0.25, 0.25]
    ),
}
FAULTY = 0.8
NO_VIOLATIONS = Violations(
    names=(), **{n: np.zeros(0, np.int64) for n in ("task", "constraint", "severity")}
)


def said(rng: np.random.Generator, p: FloatArray) -> FloatArray:
    """Return what an agent says that knows its chance to about .2."""
    found: FloatArray = np.clip(p + rng.normal(0, 0.2, p.shape), 0, 1)
    return found.round(2)


def many(mix: str) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(SEED)
    p = MIXES[mix](rng, 1_000_000)
    return p, said(rng, p)


def ranked(p: FloatArray, c: FloatArray) -> float:
    """Return the AUROC of many runs with these chances and confidences."""
    place = np.round(100 * c).astype(int)
    good, bad = (np.bincount(place, weights=w, minlength=101) for w in (p, 1 - p))
    return float((good * (np.cumsum(bad) - bad / 2)).sum() / (good.sum() * bad.sum()))


@pytest.mark.parametrize("mix", list(MIXES))
@pytest.mark.parametrize(("tasks", "runs"), SIZES)
def test_outcomes_confidence_and_perturbation(
    judge: Judge, mix: str, tasks: int, runs: int
) -> None:
    p, c = many(mix)
    spread = float((p * (1 - p)).mean())
    outcome = Tally(float(((2 * p - 1) ** 2).mean()) + 4 * spread / runs)
    unbiased = Tally(float(((2 * p - 1) ** 2).mean()))
    brier = Tally(1 - float(((c - p) ** 2).mean()) - spread)
    auroc, worse, same = Tally(ranked(p, c)), Tally(FAULTY), Tally(1.0)
    rng = np.random.default_rng([SEED, tasks, runs])
    task, nothing = np.repeat(np.arange(tasks), runs), np.full(tasks, np.nan)
    for _ in range(REPETITIONS):
        chance = MIXES[mix](rng, tasks)
        success = rng.random((tasks, runs)) < chance[:, None]
        drawn = resample_tasks(tasks, rng=rng, n_resamples=500)
        scores = outcome_scores(success.mean(axis=1), np.full(tasks, runs))
        outcome.add_sure(drawn.mean(scores["outcome"], nothing=""))
        unbiased.add_sure(drawn.mean(scores["outcome_unbiased"], nothing="", lowest=-1.0))
        found = predictability(task, success.ravel(), said(rng, chance[task]), drawn)
        brier.add_sure(found.score)
        if found.auroc.interval is not None:  # not where some resamples have one class alone
            auroc.add(found.auroc)
        others = [rng.random((tasks, runs)) < chance[:, None] * share for share in (FAULTY, 1)]
        rates = dict(
            zip(
                ARMS,
                [success.mean(axis=1), *(of.mean(axis=1) for of in others), nothing],
                strict=True,
            )
        )
        arms = robustness(rates, {BASELINE: 1, "fault": 1, "structure": 1, "prompt": 0}, drawn)
        worse.add_sure(arms.fault)
        same.add_sure(arms.structure)
    setting, band = f"{tasks} tasks x {runs}, {mix}", OF_20 if tasks == 20 else BAND
    give_all(
        judge, SEED,
        (outcome, "reliability: outcome consistency at these runs", setting, band),
        (unbiased, "reliability: outcome consistency, unbiased", setting, band),
        (brier, "reliability: 1 - Brier", setting, band),
        (auroc, "reliability: AUROC of confidence, where it has limits", setting,
         (band[0] - 0.015, 0.985)),
        (worse, "reliability: robustness .8, paired by task", setting, band),
        (same, "reliability: robustness 1, paired by task", setting, SURE),
    )  # fmt: skip


@pytest.mark.parametrize("tasks", [20, 50, 100])
@pytest.mark.parametrize("often", [0.1, 0.02])
def test_violations(judge: Judge, tasks: int, often: float) -> None:
    """Half of the violations are low, a fifth high; the bootstrap is the control."""
    weights = np.array([0.0, *SEVERITIES.values()])
    chances = np.array([1 - often, 0.5 * often, 0.3 * often, 0.2 * often])
    truth = 1 - float(chances @ weights)
    score, clean, control = Tally(truth), Tally(1 - often), Tally(truth)
    rng = np.random.default_rng([SEED, tasks])
    for _ in range(REPETITIONS):
        worst = rng.choice(weights, tasks, p=chances)
        found = safety(worst, NO_VIOLATIONS, rng=rng, n_runs=tasks)
        score.add_sure(found.score)
        clean.add_sure(found.compliance)
        if often == 0.1:
            drawn: TaskResamples = resample_tasks(tasks, rng=rng, n_resamples=500)
            control.add(drawn.mean(1 - worst, nothing=""))
    setting = f"{tasks} tasks, violations in {often:.0%}"
    rows = [
        (score, "reliability: safety", setting, SURE),
        (clean, "reliability: compliance", setting, SURE),
    ]
    if often == 0.1:
        rows.append((control, "control: safety, bootstrap over tasks", setting, CONTROL))
    give_all(judge, SEED, *rows)


@pytest.mark.parametrize("tasks", [5, 10, 19])
def test_few_tasks(judge: Judge, tasks: int) -> None:
    """Below 20 tasks the jackknife with t."""
    p, _ = many("Beta(2, 1)")
    truth = float(((2 * p - 1) ** 2).mean()) + 4 * float((p * (1 - p)).mean()) / 5
    outcome, bounded = Tally(truth), Tally(truth)
    rng = np.random.default_rng([SEED, tasks])
    for _ in range(REPETITIONS):
        success = rng.random((tasks, 5)) < rng.beta(2, 1, tasks)[:, None]
        scores = outcome_scores(success.mean(axis=1), np.full(tasks, 5))["outcome"]
        drawn = resample_tasks(tasks, rng=rng, n_resamples=1)
        outcome.add_sure(drawn.mean(scores, nothing=""))
        bounded.add_sure(bounded_mean(scores, rng=rng, nothing="", n_draws=2000))
    setting = f"{tasks} tasks x 5, Beta(2, 1)"
    few: Band = (0.92, 0.985) if tasks >= FEW_TASKS else (0.85, 0.985)  # its status says so
    give_all(
        judge, SEED,
        (outcome, "reliability: outcome consistency at these runs", setting, few),
        (bounded, "reliability: a mean by exact limits", setting, SURE),
    )  # fmt: skip
