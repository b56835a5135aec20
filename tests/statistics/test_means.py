"""Means with their tests, and shares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from calibration.statistics.intervals import wilson_share
from calibration.statistics.means import human_only, mean_against_zero

NOTHING = "no traces: label some"


def test_it_is_the_one_sample_t_test() -> None:
    values = [-0.6, 0.0, 0.0, 0.4, 1.0, 0.0, -1.0, 0.6]
    found = mean_against_zero(values, nothing=NOTHING)
    witness = stats.ttest_1samp(values, 0.0)
    assert found.p_value == pytest.approx(witness.pvalue)
    limits = witness.confidence_interval()
    assert found.estimate.interval == pytest.approx((limits.low, limits.high))


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
    assert (whole.method, alone.method) == (
        "human labels only, cluster-linearised logit t", "human labels only, logit t",
    )  # fmt: skip
