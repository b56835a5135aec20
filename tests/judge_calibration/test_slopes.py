"""The slope of the judge's gap within the human class."""

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.judge_calibration.bias import slope_within_class

Array = NDArray[np.float64]

# Twenty traces of three classes, and the values of statsmodels 0.15.0 for them:
#   m = sm.OLS(gap, np.column_stack([np.eye(3)[cls], size])).fit(cov_type="HC3", use_t=True)
#   m.params[-1], m.bse[-1], m.pvalues[-1], m.conf_int()[-1]
CLASS = np.array([0] * 8 + [1] * 7 + [2] * 5)
HUMAN = np.eye(3)[CLASS]
SIZE = np.array([1, 2, 3, 4, 2, 5, 3, 1, 2, 4, 6, 3, 5, 2, 4, 1, 3, 5, 2, 6], dtype=np.float64)
GAP = np.array(
    [0, 0, -0.6, 0, 0, -1, 0, 0, 0.6, 0, -0.4, 0, 0, 0.6, 0, 1, 0, 0, 0.4, 0], dtype=np.float64
)


def test_slope_equals_statsmodels() -> None:
    found = slope_within_class(GAP, HUMAN, SIZE)
    assert found.estimate.value == pytest.approx(-0.19170211058502534, rel=1e-12)
    assert found.estimate.se == pytest.approx(0.045177053825397565, rel=1e-12)
    assert found.p_value == pytest.approx(0.0006197351163975175, rel=1e-9)
    assert found.estimate.interval == pytest.approx((-0.2874731863926895, -0.09593103477736119))


def left_out_slopes(gap: Array, human: Array, size: Array, units: NDArray[np.int64]) -> Array:
    """Fit again without each unit."""
    design = np.column_stack([human, size])
    slopes = []
    for unit in np.unique(units):
        keep = units != unit
        slopes.append(np.linalg.lstsq(design[keep], gap[keep], rcond=None)[0][-1])
    return np.array(slopes)


def test_hc3_and_cr3_are_the_sum_of_squared_changes_when_traces_or_tasks_are_left_out() -> None:
    for tasks in (None, np.arange(20) % 11):
        found = slope_within_class(GAP, HUMAN, SIZE, clusters=tasks).estimate
        slopes = left_out_slopes(GAP, HUMAN, SIZE, np.arange(20) if tasks is None else tasks)
        assert found.value is not None
        assert found.se == pytest.approx(np.sqrt(((slopes - found.value) ** 2).sum()))
        assert ("CR3" in found.method) == (tasks is not None)


def test_one_trace_of_a_class_says_nothing() -> None:
    plain = slope_within_class(GAP, HUMAN, SIZE).estimate
    human = np.eye(4)[np.append(CLASS, 3)]
    more = slope_within_class(np.append(GAP, 1.0), human, np.append(SIZE, 9.0)).estimate
    assert (more.value, more.se) == pytest.approx((plain.value, plain.se))


def test_what_cannot_be_estimated_says_why() -> None:
    few = slope_within_class(GAP[:9], np.eye(3)[CLASS[:9]], SIZE[:9]).estimate
    assert few.status.startswith("not_estimable: 6 labelled traces more than constants")
    flat = slope_within_class(GAP, HUMAN, CLASS.astype(np.float64)).estimate
    assert flat.status.startswith("not_estimable: it does not vary within a human class")
    tasks = slope_within_class(GAP, HUMAN, SIZE, clusters=np.arange(20) % 4).estimate
    assert tasks.status.startswith("not_estimable: 4 tasks")
    right = slope_within_class(np.zeros(20), HUMAN, SIZE)
    assert (right.estimate.value, right.estimate.interval) == (0.0, None)
    assert right.p_value is None
    assert not slope_within_class([], np.zeros((0, 3)), []).estimate.ok
    with pytest.raises(ValueError, match="must have shape"):
        slope_within_class(GAP, HUMAN, SIZE[:3])


def test_a_weight_is_as_many_traces_to_the_slope() -> None:
    human, times = HUMAN, np.arange(20) % 3 + 1
    weighted = slope_within_class(GAP, human, SIZE, weights=times.astype(np.float64)).estimate
    row = np.repeat(np.arange(20), times)
    repeated = slope_within_class(GAP[row], human[row], SIZE[row], clusters=row).estimate
    # A trace there three times is one task of three: left out as a whole it is the same jackknife.
    assert (weighted.value, weighted.se) == pytest.approx((repeated.value, repeated.se))
    # Equal weights change nothing.
    one = slope_within_class(GAP, HUMAN, SIZE).estimate
    other = slope_within_class(GAP, HUMAN, SIZE, weights=np.full(20, 7.0)).estimate
    assert (other.value, other.se) == pytest.approx((one.value, one.se))
