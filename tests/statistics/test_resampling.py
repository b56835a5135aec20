"""The bootstrap: both ways to draw units, and BCa limits against scipy's."""

import numpy as np
import pytest
from scipy import stats

from calibration.statistics.intervals import bca_shares, bias_and_skew, resampled_sums

VALUES = np.array([0.0, 0.1, 0.2, 0.2, 0.4, 0.7, 1.0, 1.0, 3.0, 9.0])


@pytest.mark.parametrize("one_by_one", [False, True])
def test_sums_of_resamples_have_the_moments_of_the_units(one_by_one: bool) -> None:
    cells, times = np.unique(VALUES, return_counts=True)
    drawn = resampled_sums(
        np.column_stack([np.ones(cells.size), cells]), times, n_resamples=20_000,
        rng=np.random.default_rng(1), one_by_one=one_by_one,
    )  # fmt: skip
    assert (drawn[:, 0] == 10).all()
    assert drawn[:, 1].mean() == pytest.approx(VALUES.sum(), rel=0.02)
    assert drawn[:, 1].var() == pytest.approx(10 * VALUES.var(), rel=0.03)
    none = np.zeros((0, 2)), np.zeros(0, dtype=np.int64)
    assert resampled_sums(*none, n_resamples=5, rng=np.random.default_rng(1)).shape == (0, 2)


def test_bca_equals_that_of_scipy() -> None:
    rng = np.random.default_rng(2)
    witness = stats.bootstrap(
        (VALUES,), np.mean, n_resamples=4_000, method="BCa", random_state=rng, vectorized=True
    )
    draws = np.asarray(witness.bootstrap_distribution)
    shift, skew = bias_and_skew(
        draws, float(VALUES.mean()), VALUES - VALUES.mean(), np.ones(10, dtype=np.int64)
    )
    low, high = np.quantile(draws, bca_shares(np.array([0.025, 0.975]), shift, skew))
    limits = witness.confidence_interval
    assert (low, high) == pytest.approx((limits.low, limits.high), rel=0.02)
