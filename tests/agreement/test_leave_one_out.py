"""Each rater beside the others: hand values, what stays the same. Coverage: tests/simulation."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from calibration.agreement.annotators import leave_one_out
from calibration.agreement.coefficients import KRIPPENDORFF_ALPHA
from calibration.agreement.ratings import weight_matrix
from tests.agreement.tables import jackknife_se, of_codes, rated

SHARES = (0.5, 0.3, 0.2)


def test_agreement_with_others_by_hand() -> None:
    """Shared items: 1 of 2 others alike, 0 of 1, 2 of 2; the fourth is rated by nobody else."""
    codes = [[0, 0, 1], [0, 1, -1], [1, 1, 1], [1, -1, -1], [-1, 0, 0]]
    first, second, _ = leave_one_out(codes, n_classes=2).raters
    assert first.agreement_with_others.value == pytest.approx((0.5 + 0 + 1) / 3)
    assert first.agreement_with_others.n == 3
    assert first.agreement_with_others.se == pytest.approx(0.5 / 3**0.5)
    assert second.agreement_with_others.value == pytest.approx((0.5 + 0 + 1 + 1) / 4)


def test_alpha_without_is_alpha_of_the_rest_and_the_change_its_difference() -> None:
    codes = rated(np.random.default_rng(3), 60, (0.9, 0.8, 0.8, 0.2), SHARES, missing=0.2)
    found = leave_one_out(codes, n_classes=3)
    assert found.alpha == of_codes(KRIPPENDORFF_ALPHA, codes, 3)
    for rater in found.raters:
        expected = of_codes(KRIPPENDORFF_ALPHA, np.delete(codes, rater.rater, axis=1), 3)
        assert rater.alpha_without.value == pytest.approx(expected.value)
        assert rater.alpha_without.interval == pytest.approx(expected.interval)
        assert rater.alpha_without.n == expected.n
        assert rater.change.value == pytest.approx(
            (rater.alpha_without.value or 0) - (found.alpha.value or 0)
        )
    assert max(found.raters, key=lambda r: r.change.value or 0).rater == 3
    assert min(found.raters, key=lambda r: r.agreement_with_others.value or 0).rater == 3


def test_the_standard_error_of_the_change_is_the_jackknife_done_by_hand() -> None:
    codes = rated(np.random.default_rng(4), 25, (0.9, 0.7, 0.5), SHARES, missing=0.2)
    codes = codes[(codes >= 0).sum(axis=1) >= 2]
    parts = [np.delete(codes, i, axis=0) for i in range(len(codes))]
    two, three = (
        np.array([of_codes(KRIPPENDORFF_ALPHA, part[:, :k], 3).value for part in parts])
        for k in (2, 3)
    )
    change = leave_one_out(codes, n_classes=3).raters[2].change
    assert change.se == pytest.approx(jackknife_se(two - three))


def test_weights_count_in_all_three() -> None:
    codes = rated(np.random.default_rng(6), 50, (0.9, 0.8, 0.4), SHARES, missing=0.1)
    plain = leave_one_out(codes, n_classes=3)
    same = leave_one_out(codes, n_classes=3, weights=np.eye(3))
    linear = leave_one_out(codes, n_classes=3, weights=weight_matrix("linear", 3))
    assert plain == same
    expected = of_codes(KRIPPENDORFF_ALPHA, codes, 3, weights=weight_matrix("linear", 3))
    assert linear.alpha == expected
    for a, b in zip(plain.raters, linear.raters, strict=True):
        assert (b.agreement_with_others.value or 0) > (a.agreement_with_others.value or 0)


@pytest.mark.parametrize(
    ("codes", "status"),
    [
        ([[0, 0], [1, 1], [0, 1]], "not_estimable: without this rater: no item has two ratings"),
        (np.zeros((0, 3), dtype=int), "not_estimable: this rater shared no item"),
        ([[0], [1]], "not_estimable: this rater shared no item"),
        ([[-1, 0, 0], [-1, 1, 1], [-1, 0, 1]], "not_estimable: this rater shared no item"),
        ([[0, 0, 0], [0, 0, 0]], "not_estimable: undefined without variation"),
        ([[1, 0, 0], [1, 0, 0]], "not_estimable: without this rater: undefined without variation"),
        ([[0, 0, 1], [1, 1, -1]], "no interval: without this rater one item"),
        ([[0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1]], "no interval: no item changes alpha"),
        ([[0, 0, 0], [1, 1, 1]], "no interval: without one item a single class is left"),
    ],
)
def test_who_has_no_change_says_why(codes: Any, status: str) -> None:
    change = leave_one_out(codes, n_classes=2).raters[0].change
    assert change.interval is None
    assert change.status.startswith(status), change.status
    nobody = leave_one_out([[-1, 0, 0], [-1, 1, 1]], n_classes=2).raters[0]
    assert nobody.agreement_with_others.status.startswith("not_estimable: this rater shared no")
    assert nobody.alpha_without.value == 1.0


def test_the_change_has_a_p_value_for_all_raters_at_once() -> None:
    rng = np.random.default_rng(11)
    codes = rated(rng, 120, (0.95, 0.95, 0.95, 0.5), (1 / 3, 1 / 3, 1 / 3))
    raters = leave_one_out(codes, n_classes=3).raters
    value, se = raters[3].change.value or 0, raters[3].change.se or 1
    assert value > 0
    # The smallest of four, so four times the p-value of the two-sided t test.
    assert raters[3].p_holm == pytest.approx(4 * 2 * stats.t.sf(value / se, 119))
    assert (raters[3].p_holm or 1) < 0.001
    p_values = [of.p_holm for of in raters]
    assert min(p for p in p_values if p is not None) == raters[3].p_holm
    nothing = leave_one_out([[0, 0], [1, 1]], n_classes=2).raters
    assert [of.p_holm for of in nothing] == [None, None]
