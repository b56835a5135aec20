import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calibration.judge_calibration.label_planning import (
    FEWEST_LABELS,
    measured_spread,
    planned_human_only,
    planned_post_stratified,
    traces_needed,
    worst_spread,
)
from calibration.statistics.means import human_only
from tests.judge_calibration.test_estimators import stratified

# Verdict 0 is right 36 times of 40 and verdict 1 hides 6 successes in 20.
SCORES = np.array([1.0] * 36 + [0.0] * 4 + [1.0] * 6 + [0.0] * 14)
VERDICTS = np.repeat([0, 1], [40, 20])
COUNTS = [2000, 1000]


def test_planning_as_many_labels_as_there_are_gives_the_interval_there_is() -> None:
    spread = measured_spread(SCORES, VERDICTS, COUNTS)
    # The variance planned with is that of n - 1.
    assert planned_human_only(60, spread) == pytest.approx(human_only(SCORES).half_width)
    # Labels and production have the same verdict shares, so only the allowance for shares that
    # vary from sample to sample is added.
    found = stratified(SCORES, VERDICTS, COUNTS).estimate.half_width
    assert planned_post_stratified(60, spread, COUNTS) == pytest.approx(found, rel=0.025)


def test_four_times_the_labels_halve_the_interval() -> None:
    spread = measured_spread(SCORES, VERDICTS, [20_000_000, 10_000_000])
    many = planned_post_stratified(40_000, spread, [20_000_000, 10_000_000])
    few = planned_post_stratified(10_000, spread, [20_000_000, 10_000_000])
    assert many == pytest.approx(few / 2, rel=0.001)
    alone = [planned_human_only(n, spread) for n in (40_000, 10_000)]
    assert alone[0] == pytest.approx(alone[1] / 2, rel=0.001)


@pytest.mark.parametrize(
    "scores",
    [np.ones(50), np.zeros(50), np.array([1.0, 0.0] * (FEWEST_LABELS // 2))[:-1], np.array([])],
)
def test_too_little_to_measure_is_the_worst_case(scores: np.ndarray) -> None:
    spread = measured_spread(scores, np.zeros(scores.size, dtype=np.int64), [1000])
    assert spread.assumed
    assert spread.variance == 0.25


def test_a_verdict_without_labels_takes_the_spread_of_its_neighbour() -> None:
    spread = measured_spread(
        SCORES, VERDICTS, [2000, 1000, 50], verdict_values=np.array([1.0, 0.0, np.nan])
    )
    assert np.isfinite(spread.variances).all()
    assert spread.variances[2] > 0


def test_tasks_that_repeat_never_narrow_the_plan() -> None:
    clusters = np.arange(60) // 2
    kept = measured_spread(SCORES, VERDICTS, COUNTS, clusters=clusters)
    assert kept.design_effect > 1.2
    assert kept.design_effect_within >= 1
    alone = measured_spread(SCORES, VERDICTS, COUNTS)
    assert planned_human_only(200, kept) > planned_human_only(200, alone)


@given(
    n=st.integers(2, 5000),
    counts=st.lists(st.integers(0, 10_000), min_size=1, max_size=6).filter(lambda c: sum(c) > 0),
)
def test_no_plan_is_wider_than_everything(n: int, counts: list[int]) -> None:
    spread = worst_spread(len(counts))
    planned = planned_post_stratified(n, spread, counts)
    assert 0 < planned <= 0.5
    assert planned_human_only(n, spread) <= 0.5


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(ValueError, match="n must be at least 2, got 1"):
        planned_human_only(1, worst_spread(1))
    with pytest.raises(ValueError, match=r"confidence_level must be in \(0, 1\), got 1.0"):
        planned_human_only(9, worst_spread(1), confidence_level=1.0)
    for counts in ([10, 10, 10], [0, 0]):
        with pytest.raises(ValueError, match="production_counts must hold traces for 2 verdicts"):
            planned_post_stratified(9, worst_spread(2), counts)


def test_the_rate_of_the_runs_themselves_needs_fewer_labels() -> None:
    """Half of 200 runs: half the variance, and no part for the verdicts on production."""
    spread = worst_spread(1)
    reach = stats.t.ppf(0.975, 99) * 0.05 * 0.5**0.5 / 0.25
    assert planned_human_only(100, spread, population=200) == pytest.approx(
        1 / (1 + math.exp(-reach)) - 0.5
    )
    assert planned_human_only(200, spread, population=200) == 0
    right = replace(worst_spread(2), means=np.array([1.0, 0.0]), variances=np.zeros(2))
    counts = [5000, 5000]
    assert planned_post_stratified(100, right, counts) > 0
    assert planned_post_stratified(100, right, counts, estimand="these_runs") == 0
    both = (traces_needed(0.05, spread), traces_needed(0.05, spread, population=600))
    # 384 / (1 + 384/600), Cochran (1977), section 4.4.
    assert both == (385, 235)
