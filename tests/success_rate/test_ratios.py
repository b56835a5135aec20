"""Ratios of sums over rows: values by hand, and what must not change an interval."""

from typing import Any

import numpy as np
import pytest

from calibration.statistics.estimate import Estimate
from calibration.success_rate.resampling import ratio_estimates


def of(tops: list[float], bottoms: list[float], **more: Any) -> Estimate:
    (found,) = ratio_estimates(
        np.array(tops)[:, None],
        np.array(bottoms)[:, None],
        rng=np.random.default_rng(1),
        **more,
    )
    return found


def test_a_weighted_ratio_by_hand() -> None:
    # (2 x 1 + 1 x 0 + 1 x 3) / (2 x 1 + 1 x 2 + 1 x 4)
    found = of([1, 0, 3], [1, 2, 4], weights=np.array([2.0, 1.0, 1.0]))
    assert found.value == pytest.approx(5 / 8)
    assert found.interval is None
    assert found.status.startswith("not_estimable: no interval from 3 runs")


def test_rows_of_a_cluster_that_repeat_each_other_add_nothing() -> None:
    tops = [float(k % 3 == 0) for k in range(60)]
    once = of(tops, [1.0] * 60, clusters=np.arange(60))
    twice = of(tops * 2, [1.0] * 120, clusters=np.tile(np.arange(60), 2))
    assert twice.se == pytest.approx(once.se)
    assert twice.n == once.n == 60


def test_where_nothing_enters_there_is_no_ratio() -> None:
    found = of([0.0] * 8, [0.0] * 8)
    assert found.value is None
    assert found.status.startswith("not_estimable: no run enters this rate")


@pytest.mark.parametrize("weights", [[1.0, 0.0], [1.0], [1.0, float("nan")]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        of([1.0, 0.0], [1.0, 1.0], weights=np.array(weights))
