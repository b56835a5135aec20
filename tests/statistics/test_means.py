"""Means with their tests, ratios of totals, quantiles, and shares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from calibration.statistics.intervals import wilson_share
from calibration.statistics.means import (
    human_only,
    mean_against_zero,
    quantile_estimate,
    ratio_of_totals,
    square_sums,
)

NOTHING = "no traces: label some"


def test_it_is_the_one_sample_t_test() -> None:
    values = [-0.6, 0.0, 0.0, 0.4, 1.0, 0.0, -1.0, 0.6]
    found = mean_against_zero(values, nothing=NOTHING)
    witness = stats.ttest_1samp(values, 0.0)
    assert found.p_value == pytest.approx(witness.pvalue)
    assert found.estimate.interval == pytest.approx(tuple(witness.confidence_interval()))


def test_repeated_tasks_are_the_unit() -> None:
    """Six tasks of two runs alike: the mean and the error of six, on 5 df."""
    of_task = np.array([0.0, 0.6, -0.4, 1.0, 0.0, 0.2])
    tasks = np.repeat(np.arange(6), 2)
    found = mean_against_zero(np.repeat(of_task, 2), nothing=NOTHING, clusters=tasks)
    single = mean_against_zero(of_task, nothing=NOTHING)
    assert found.estimate.se == pytest.approx(single.estimate.se)
    assert found.p_value == pytest.approx(single.p_value)
    assert (found.estimate.n, single.estimate.n) == (12, 6)
    few = mean_against_zero(np.repeat(of_task[:4], 2), nothing=NOTHING, clusters=tasks[:8])
    assert few.estimate.status == "no interval: 4 tasks, at least 5 are needed"
    assert few.p_value is None


def test_equal_values_give_the_exact_bound_and_no_test() -> None:
    # 0 of 20 traces differ: at most .16843 of them could, each by one at most.
    found = mean_against_zero(np.zeros(20), nothing=NOTHING)
    assert found.estimate.interval == pytest.approx((-0.16843, 0.16843), abs=1e-5)
    assert (found.estimate.status, found.p_value) == ("no variation seen", None)
    shares = mean_against_zero(np.zeros(20), nothing=NOTHING, lowest=0.0).estimate
    assert shares.interval == pytest.approx((0.0, 0.16843), abs=1e-5)


def test_nothing_and_one_trace_say_so() -> None:
    assert mean_against_zero([], nothing=NOTHING).estimate.status == f"not_estimable: {NOTHING}"
    one = mean_against_zero([0.4], nothing=NOTHING).estimate
    assert (one.value, one.interval) == (0.4, None)
    assert one.status == "no interval: one trace, at least two are needed"
    assert wilson_share(0, 0, nothing=NOTHING).status == f"not_estimable: {NOTHING}"
    with pytest.raises(ValueError, match="values must be in"):
        mean_against_zero([0.0, 1.2], nothing=NOTHING)


@settings(max_examples=50, deadline=None)
@given(
    values=st.lists(st.sampled_from([-1.0, -0.6, 0.0, 0.4, 1.0]), min_size=2, max_size=30),
    weight=st.floats(0.1, 9.0),
)
def test_intervals_hold_the_mean_and_stay_in_the_range(values: list[float], weight: float) -> None:
    found = mean_against_zero(values, nothing=NOTHING).estimate
    assert found.interval is not None
    assert found.value is not None
    assert -1 <= found.interval[0] <= found.value + 1e-9
    assert found.value - 1e-9 <= found.interval[1] <= 1
    weighted = mean_against_zero(values, nothing=NOTHING, weights=np.full(len(values), weight))
    assert weighted.estimate.value == pytest.approx(found.value)


@pytest.mark.parametrize(("rate", "n"), [(0.6, 30), (0.6, 200), (0.95, 100), (0.98, 400)])
def test_the_interval_of_human_only_covers_and_stays_inside(rate: float, n: int) -> None:
    """At rates near one value -+ t SE covers .88 to .93 and reaches beyond one."""
    rng = np.random.default_rng([43, n])
    repetitions, covered = 1_000, 0
    for _ in range(repetitions):
        found = human_only((rng.random(n) < rate).astype(np.float64))
        assert found.interval is not None
        assert 0 <= found.interval[0] <= found.interval[1] <= 1
        covered += found.interval[0] <= rate <= found.interval[1]
    assert covered / repetitions > 0.93


def test_the_interval_of_human_only_keeps_tasks_together() -> None:
    """100 tasks of four runs that are alike: as few as 100 runs."""
    of_task = np.random.default_rng(44).choice([0.0, 0.4, 1.0], 100)
    tasks = np.repeat(np.arange(100), 4)
    whole, alone = human_only(np.repeat(of_task, 4), clusters=tasks), human_only(of_task)
    assert whole.interval == pytest.approx(alone.interval)
    assert whole.method == "human labels only, cluster-linearised logit t"


def test_the_mean_of_single_runs_has_the_variance_of_a_mean() -> None:
    costs = np.array([1.0, 2.0, 4.0, 3.0, 5.0, 9.0])
    sums = square_sums(costs, np.ones(6))
    found = ratio_of_totals(sums)
    assert sums.variance == pytest.approx(costs.var(ddof=1) / 6)
    assert found.interval is not None
    reach = stats.t.ppf(0.975, 5) * np.sqrt(sums.variance) / 4
    assert found.interval == pytest.approx((4 * np.exp(-reach), 4 * np.exp(reach)))
    assert (found.value, found.n, found.status) == (4.0, 6, "ok")


def test_equal_costs_bound_no_other_cost() -> None:
    found = ratio_of_totals(square_sums(np.full(1000, 0.1), np.ones(1000)))
    assert found.value == pytest.approx(0.1)
    assert found.interval is None
    assert found.status == "no variation seen"
    assert ratio_of_totals(square_sums(np.zeros(10), np.ones(10))).interval is None


def test_few_units_and_none() -> None:
    few = ratio_of_totals(square_sums(np.array([1.0, 2.0]), np.ones(2)))
    assert few.value == 1.5
    assert few.status.startswith("not_estimable: no interval from 2 runs or tasks")
    assert not ratio_of_totals(square_sums(np.zeros(3), np.zeros(3))).ok
    with pytest.raises(ValueError, match="confidence_level must be in"):
        ratio_of_totals(square_sums(np.ones(3), np.ones(3)), confidence_level=1)


def test_the_limits_are_those_of_the_rank() -> None:
    """Clopper-Pearson of 95 in 100 is [.887, .984]: the 89th and the 99th of 100."""
    found = quantile_estimate(np.arange(1.0, 101.0), 0.95)
    assert (found.value, found.interval) == (95.0, (89.0, 99.0))
    assert (found.n, found.status) == (100, "ok")


def test_few_runs_have_a_value_and_no_upper_limit() -> None:
    """No run of 71 exceeds the p95 with probability .026 > .025, of 72 with .0249."""
    few = quantile_estimate(np.arange(1.0, 72.0), 0.95)
    assert (few.value, few.interval) == (68.0, None)
    assert few.status.startswith("provisional: no interval, 71 runs")
    assert quantile_estimate(np.arange(1.0, 73.0), 0.95).interval is not None


def test_weights_count_for_runs_and_values_counted_once_give_what_the_rows_give() -> None:
    values = np.array([1.0, 2.0, 3.0] * 40)
    weights = np.where(values == 3, 0.1, 1.0)
    below = square_sums(np.where(values <= 2, weights, 0.0), weights)
    assert quantile_estimate(values, 0.95, weights=weights, below=below).value == 2.0
    rows = np.repeat(np.arange(1.0, 31.0), 10)
    counted = quantile_estimate(np.arange(1.0, 31.0), 0.9, weights=np.full(30, 10.0), n=300)
    assert counted == quantile_estimate(rows, 0.9)


def test_repeated_tasks_widen_the_interval() -> None:
    of_task = np.random.default_rng(8).lognormal(2, 1, 100)
    values, tasks = np.repeat(of_task, 5), np.repeat(np.arange(100), 5)
    alone = quantile_estimate(values, 0.9)
    assert alone.value is not None
    inside = np.bincount(tasks, weights=values <= alone.value).astype(np.float64)
    clustered = quantile_estimate(values, 0.9, below=square_sums(inside, np.full(100, 5.0)))
    assert clustered.value == alone.value
    assert (clustered.half_width or 0) > 1.5 * (alone.half_width or 0)


def test_nothing_known_and_bad_arguments() -> None:
    assert quantile_estimate(np.array([]), 0.5).status.startswith("not_estimable")
    with pytest.raises(ValueError, match="q must be"):
        quantile_estimate(np.ones(3), 1.0)
    with pytest.raises(ValueError, match="values must be finite"):
        quantile_estimate(np.array([1.0, np.nan]), 0.5)
