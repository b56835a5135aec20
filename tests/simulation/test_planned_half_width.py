"""The half-width that was planned against the one that samples then give."""

import numpy as np
import pytest

from calibration.judge_calibration.label_planning import (
    ScoreSpread,
    measured_spread,
    planned_human_only,
    planned_post_stratified,
    worst_spread,
)
from calibration.judge_calibration.post_stratification import post_stratified
from calibration.judge_calibration.reviewer_error import TwoPhase, planned_two_phase, two_phase
from calibration.judge_calibration.samples import LabelledSample, production_sums_from_counts
from calibration.statistics.means import human_only
from tests.simulation.judged import CREDIT, Array, Floats, say

pytestmark = pytest.mark.slow
SEED, REPETITIONS, N_PRODUCTION = 20281, 400, 20_000
MIX = np.array([0.52, 0.14, 0.14, 0.11, 0.09])
JUDGES = {
    "good": np.eye(5) * 0.8 + 0.04,
    "lenient": np.array([
        [0.93, 0.04, 0.02, 0.01, 0.00], [0.24, 0.66, 0.08, 0.02, 0.00],
        [0.22, 0.10, 0.64, 0.04, 0.00], [0.20, 0.06, 0.10, 0.64, 0.00],
        [0.01, 0.02, 0.02, 0.00, 0.95],
    ]),
    "blind": np.full((5, 5), 0.2),
}  # fmt: skip


def production(rng: np.random.Generator, judge: str) -> tuple[Floats, Array, Array]:
    """Return scores and verdicts of all traces, and how many have each verdict."""
    truth = rng.choice(5, N_PRODUCTION, p=MIX)
    verdicts = say(rng, truth, JUDGES[judge])
    # Some runs lose part of their credit to their cost.
    penalty = rng.choice([0.0, 0.25], N_PRODUCTION, p=[0.8, 0.2])
    scores = np.maximum(0.0, CREDIT[truth] - penalty)
    return scores, verdicts, np.bincount(verdicts, minlength=5)


def true_spread(scores: Floats, verdicts: Array) -> ScoreSpread:
    groups = [scores[verdicts == k] for k in range(5)]
    return ScoreSpread(
        mean=float(scores.mean()), variance=float(scores.var()),
        means=np.array([g.mean() for g in groups]), variances=np.array([g.var() for g in groups]),
        design_effect=1.0, design_effect_within=1.0, n=scores.size,
    )  # fmt: skip


def realised_by(scores: Floats, verdicts: Array, counts: Array) -> tuple[float, float]:
    """Return the half-widths that labels give, of people alone and post-stratified."""
    human = np.outer(scores, np.eye(5)[0] - np.eye(5)[4]) + np.eye(5)[4]
    sample = LabelledSample(human=human, verdicts=verdicts)
    fitted = post_stratified(sample, production_sums_from_counts(counts, credit=CREDIT)).estimate
    return human_only(scores).half_width or 0, fitted.half_width or 0


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("n", [60, 200, 600])
def test_what_is_planned_is_what_samples_give(judge: str, n: int) -> None:
    rng = np.random.default_rng([SEED, n, len(judge)])
    scores, verdicts, counts = production(rng, judge)
    realised = np.zeros((REPETITIONS, 2))
    for row in range(REPETITIONS):
        at = rng.choice(N_PRODUCTION, n, replace=False)
        realised[row] = realised_by(scores[at], verdicts[at], counts)
    spread = true_spread(scores, verdicts)
    alone = planned_human_only(n, spread)
    corrected = planned_post_stratified(n, spread, counts, verdict_values=CREDIT)
    means = realised.mean(axis=0)
    assert alone == pytest.approx(means[0], rel=0.02)
    # Which verdicts are merged differs from sample to sample when labels are few.
    assert corrected == pytest.approx(means[1], rel=0.03 if n > 100 else 0.06)
    assert planned_human_only(n, worst_spread(1)) > realised[:, 0].max()


@pytest.mark.parametrize("judge", ["good", "lenient"])
def test_a_pilot_of_eighty_plans_four_hundred(judge: str) -> None:
    rng = np.random.default_rng([SEED, len(judge)])
    scores, verdicts, counts = production(rng, judge)
    planned, realised = np.zeros((REPETITIONS, 2)), np.zeros((REPETITIONS, 2))
    for row in range(REPETITIONS):
        at = rng.choice(N_PRODUCTION, 400, replace=False)
        pilot = at[:80]
        spread = measured_spread(scores[pilot], verdicts[pilot], counts, verdict_values=CREDIT)
        planned[row] = (
            planned_human_only(400, spread),
            planned_post_stratified(400, spread, counts, verdict_values=CREDIT),
        )
        realised[row] = realised_by(scores[at], verdicts[at], counts)
    ratio = planned / realised
    assert ratio.mean(axis=0) == pytest.approx([1.0, 1.0], abs=0.06)
    assert (np.abs(ratio - 1) < 0.3).mean() > 0.95


def with_overlap(
    final: Floats, both: Floats, alone: Floats, verdicts: Array, twice: int, n: int, counts: Array
) -> TwoPhase:
    """Return the rate by `n` labels, the first `twice` of them given by both reviewers."""
    shared = np.arange(n) < twice
    sample = LabelledSample(
        human=final[:n],
        verdicts=verdicts[:n],
        first_human=np.where(shared[:, None], both[:n], alone[:n]),
        overlap=shared,
    )
    return two_phase(sample, production_sums_from_counts(counts, credit=CREDIT))


@pytest.mark.parametrize("overlap", [100, 200, 400])
def test_an_overlap_of_a_lenient_second_reviewer_is_planned_from_a_pilot(overlap: int) -> None:
    n, pilot, rows = 400, 120, np.arange(400)
    rng = np.random.default_rng([SEED, 2, overlap])
    scores, verdicts, counts = production(rng, "good")
    planned, realised = np.zeros(REPETITIONS), np.zeros(REPETITIONS)
    for row in range(REPETITIONS):
        at = rng.choice(N_PRODUCTION, n, replace=False)
        final = np.outer(scores[at], np.eye(5)[0] - np.eye(5)[4]) + np.eye(5)[4]
        # The second reviewer labels half of the single traces and calls 30 % of the poor ones good.
        seconds = (scores[at] < 0.8) & (rng.random(n) < 0.3)
        lenient = np.where(seconds[:, None], np.eye(5)[0], final)
        alone = np.where((rows % 2 == 0)[:, None], final, lenient)
        labels = final, (final + lenient) / 2, alone, verdicts[at]
        before = with_overlap(*labels, 40, pilot, counts)
        # A store scores the traces of the pilot by what it knows: their only label, or the settled.
        known = np.where((rows < 40)[:, None], final, alone)[:pilot] @ np.append(1.0, np.zeros(4))
        spread = measured_spread(known, verdicts[at][:pilot], counts, verdict_values=CREDIT)
        corrected = planned_post_stratified(n, spread, counts, verdict_values=CREDIT)
        planned[row] = planned_two_phase(n, overlap, corrected, before.variance_correction or 0)
        realised[row] = with_overlap(*labels, overlap, n, counts).estimate.half_width or 0
    ratio = planned / realised
    # With every trace labelled twice no single label errs, as some of the pilot did.
    assert ratio.mean() == pytest.approx(1.1 if overlap == n else 1.0, abs=0.04)
    assert (np.abs(ratio - 1) < 0.3).mean() > 0.95


def test_tasks_that_repeat_widen_what_is_planned() -> None:
    rng = np.random.default_rng([SEED, 1])
    tasks, trials, repetitions = 400, 4, 100
    ratios = []
    for _ in range(repetitions):
        own = np.repeat(rng.random(tasks) < 0.6, trials)
        scores = np.where(rng.random(tasks * trials) < 0.7, own, rng.random(own.size) < 0.6) * 1.0
        clusters = np.repeat(np.arange(tasks), trials)
        pilot = slice(0, 40 * trials)
        codes = np.zeros(40 * trials, dtype=np.int64)
        spread = measured_spread(scores[pilot], codes, [scores.size], clusters=clusters[pilot])
        half = human_only(scores, clusters=clusters).half_width
        assert half is not None
        ratios.append(planned_human_only(scores.size, spread) / half)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.08)
