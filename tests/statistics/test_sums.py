"""A ratio from sums alone: by hand, against the same units one by one, and what has no interval."""

import numpy as np
import pytest
from scipy import stats

from calibration.statistics.means import ratio_of_totals, square_sums
from calibration.success_rate.resampling import ratio_estimates


def test_the_mean_of_single_runs_has_the_variance_of_a_mean() -> None:
    costs = np.array([1.0, 2.0, 4.0, 3.0, 5.0, 9.0])
    sums = square_sums(costs, np.ones(6))
    found = ratio_of_totals(sums)
    assert sums.variance == pytest.approx(costs.var(ddof=1) / 6)
    assert found.interval is not None
    reach = stats.t.ppf(0.975, 5) * np.sqrt(sums.variance) / 4
    assert found.interval == pytest.approx((4 * np.exp(-reach), 4 * np.exp(reach)))
    assert (found.value, found.n, found.status) == (4.0, 6, "ok")


def test_the_error_is_that_of_the_units_one_by_one() -> None:
    rng = np.random.default_rng(4)
    bottoms = rng.integers(1, 5, 60).astype(float)
    tops = bottoms * rng.uniform(0, 1, 60)
    (one_by_one,) = ratio_estimates(tops[:, None], bottoms[:, None], rng=rng)
    found = ratio_of_totals(square_sums(tops, bottoms))
    assert found.value == pytest.approx(one_by_one.value)
    assert found.se == pytest.approx(one_by_one.se, rel=0.02)


def test_equal_costs_bound_no_other_cost() -> None:
    found = ratio_of_totals(square_sums(np.full(1000, 0.1), np.ones(1000)))
    assert found.value == pytest.approx(0.1)
    assert (found.interval, found.status) == (None, "no variation seen")
    free = ratio_of_totals(square_sums(np.zeros(10), np.ones(10)))
    assert (free.value, free.interval) == (0.0, None)


def test_few_units_and_none() -> None:
    few = ratio_of_totals(square_sums(np.array([1.0, 2.0]), np.ones(2)))
    assert few.value == 1.5
    assert few.status.startswith("not_estimable: no interval from 2 runs or tasks")
    assert not ratio_of_totals(square_sums(np.zeros(3), np.zeros(3))).ok
    with pytest.raises(ValueError, match="confidence_level must be in"):
        ratio_of_totals(square_sums(np.ones(3), np.ones(3)), confidence_level=1)
