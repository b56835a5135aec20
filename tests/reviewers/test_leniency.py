"""Leniency in ASR points, by hand and against scipy."""

import numpy as np
import pytest
from scipy import stats

from calibration.reviewers.quality import leniency, leniency_on_mix

DUE = [1.0] * 6 + [0.4] * 4
GIVEN = [1.0] * 5 + [0.4] + [1.0, 0.4, 0.4, 0.0]
KINDS = ["complete"] * 6 + ["partial_plus"] * 4


def test_the_interval_is_that_of_a_mean() -> None:
    found = leniency(GIVEN, DUE)
    points = 100 * (np.array(GIVEN) - np.array(DUE))
    outside = stats.ttest_1samp(points, 0).confidence_interval(0.95)
    assert found.value == pytest.approx(points.mean())
    assert found.interval == pytest.approx(tuple(outside))


def test_two_classes_of_equal_weight_are_welch() -> None:
    found = leniency_on_mix(GIVEN, DUE, KINDS, {"complete": 0.5, "partial_plus": 0.5})
    points = 100 * (np.array(GIVEN) - np.array(DUE))
    welch = stats.ttest_ind(points[:6], -points[6:], equal_var=False)
    low, high = welch.confidence_interval(0.95)
    # The mean of two means is half of their sum, which is the difference to the mirrored one.
    assert found.interval == pytest.approx((low / 2, high / 2))


def test_without_a_difference_there_is_no_interval() -> None:
    for found in (leniency(DUE, DUE), leniency_on_mix(DUE, DUE, KINDS, {"complete": 1.0})):
        assert (found.value, found.interval) == (0.0, None)
        assert found.status.startswith("provisional")


def test_what_cannot_be_estimated_says_why() -> None:
    assert "two traces" in leniency([1.0], [1.0]).status
    found = leniency_on_mix(GIVEN, DUE, KINDS, {"complete": 0.9, "abandoned": 0.1})
    assert "class abandoned of the mix has 0 traces" in found.status


def test_arguments_that_are_none() -> None:
    with pytest.raises(ValueError, match="one length"):
        leniency([1.0], [])
    for kinds, share, message in ((KINDS[:0], 1.0, "one length"), (KINDS, 0.5, "sum to 1")):
        with pytest.raises(ValueError, match=message):
            leniency_on_mix(GIVEN, DUE, kinds, {"complete": share})
