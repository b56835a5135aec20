"""Shrunk means: the formula by hand, and what must hold whatever the means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calibration.statistics.random_effects import shrunk_means


def test_groups_that_differ_by_chance_alone_take_the_common_mean() -> None:
    found = shrunk_means(np.array([0.1, 0.2, 0.3]), np.full(3, 0.04), df=20)
    assert found.between == 0.0
    assert found.common == pytest.approx(0.2)
    assert found.values == pytest.approx([0.2] * 3)
    # No own part: V = 1 / sum w, for the squares sum to 0.5, less than J - 1.
    assert found.reaches == pytest.approx([stats.t.ppf(0.975, 2) * (0.04 / 3) ** 0.5] * 3)


def test_the_interval_of_five_groups_by_hand() -> None:
    means, variances = np.array([-0.4, -0.1, 0.0, 0.1, 0.4]), np.full(5, 0.035)
    # Squares .34 / (.035 + tau^2) = 4 at tau^2 = .05.
    found = shrunk_means(means, variances, df=95)
    assert found.between == pytest.approx(0.05)
    kept = 0.05 / 0.085
    assert found.kept == pytest.approx([kept] * 5)
    own = kept * 0.035 + 2 * (1 - kept) ** 2 * means**2 / 2
    squared = stats.t.ppf(0.975, 95) ** 2 * own
    squared += stats.t.ppf(0.975, 4) ** 2 * (1 - kept) ** 2 * 0.085 / 5
    assert found.reaches == pytest.approx(np.sqrt(squared))


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(1e-4, 1)), min_size=2, max_size=9),
    st.floats(-0.5, 0.5),
)
def test_shrinking_keeps_the_order_of_equal_groups_and_follows_a_shift(
    groups: list[tuple[float, float]], shift: float
) -> None:
    means, variances = (np.array(column) for column in zip(*groups, strict=True))
    found = shrunk_means(means, variances, df=30)
    moved = shrunk_means(means + shift, variances, df=30)
    assert moved.values == pytest.approx(found.values + shift, abs=1e-6)
    assert (np.abs(found.values - found.common) <= np.abs(means - found.common) + 1e-9).all()
    assert ((found.kept >= 0) & (found.kept < 1)).all()


@pytest.mark.parametrize("variances", [[0.1], [0.1, 0.0], [0.1, 0.1, 0.1]])
def test_bad_variances_are_refused(variances: list[float]) -> None:
    with pytest.raises(ValueError, match="two groups or more"):
        shrunk_means(np.array([0.1, 0.2]), np.array(variances), df=9)
