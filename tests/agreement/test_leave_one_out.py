"""Each rater beside the others: hand values, what stays the same, coverage, and no others."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.agreement.annotators import leave_one_out
from calibration.agreement.coefficients import KRIPPENDORFF_ALPHA, PERCENT_AGREEMENT, estimate
from calibration.agreement.ratings import count_patterns, weight_matrix

CODES = NDArray[np.int64]
SHARES = np.array([0.5, 0.3, 0.2])


def simulated(
    rng: np.random.Generator, n_items: int, knows: tuple[float, ...], missing: float = 0.0
) -> CODES:
    truth = rng.choice(3, size=(n_items, 1), p=SHARES)
    guess = rng.choice(3, size=(n_items, len(knows)), p=SHARES)
    codes = np.where(rng.random(guess.shape) < np.array(knows), truth, guess)
    codes[rng.random(codes.shape) < missing] = -1
    return codes


def population_alpha(knows: tuple[float, ...]) -> float:
    """Two who know with k and l and else draw from the same mix have alpha k l; the mean of it."""
    k = np.array(knows)
    return float((k.sum() ** 2 - (k**2).sum()) / (len(k) * (len(k) - 1)))


def test_agreement_with_others_by_hand() -> None:
    """Shared items: 1 of 2 others alike, 0 of 1, 2 of 2; the fourth is rated by nobody else."""
    codes = [[0, 0, 1], [0, 1, -1], [1, 1, 1], [1, -1, -1], [-1, 0, 0]]
    first, second, _ = leave_one_out(codes, n_classes=2).raters
    assert first.agreement_with_others.value == pytest.approx((0.5 + 0 + 1) / 3)
    assert first.agreement_with_others.n == 3
    assert first.agreement_with_others.se == pytest.approx(0.5 / 3**0.5)
    assert second.agreement_with_others.value == pytest.approx((0.5 + 0 + 1 + 1) / 4)


def test_alpha_without_is_alpha_of_the_rest_and_the_change_its_difference() -> None:
    codes = simulated(np.random.default_rng(3), 60, (0.9, 0.8, 0.8, 0.2), 0.2)
    found = leave_one_out(codes, n_classes=3)
    assert found.alpha == estimate(KRIPPENDORFF_ALPHA, count_patterns(codes, n_classes=3))
    for rater in found.raters:
        rest = count_patterns(np.delete(codes, rater.rater, axis=1), n_classes=3)
        expected = estimate(KRIPPENDORFF_ALPHA, rest)
        assert rater.alpha_without.value == pytest.approx(expected.value)
        assert rater.alpha_without.interval == pytest.approx(expected.interval)
        assert rater.alpha_without.n == expected.n
        assert rater.change.value == pytest.approx(
            (rater.alpha_without.value or 0) - (found.alpha.value or 0)
        )
    assert max(found.raters, key=lambda r: r.change.value or 0).rater == 3
    assert min(found.raters, key=lambda r: r.agreement_with_others.value or 0).rater == 3


def test_the_standard_error_of_the_change_is_the_jackknife_done_by_hand() -> None:
    codes = simulated(np.random.default_rng(4), 25, (0.9, 0.7, 0.5), 0.2)
    codes = codes[(codes >= 0).sum(axis=1) >= 2]
    n = len(codes)

    def change(part: CODES) -> float:
        values = [
            estimate(KRIPPENDORFF_ALPHA, count_patterns(c, n_classes=3)).value or 0.0
            for c in (part[:, :2], part)
        ]
        return values[0] - values[1]

    each = np.array([change(np.delete(codes, i, axis=0)) for i in range(n)])
    expected = ((n - 1) / n * ((each - each.mean()) ** 2).sum()) ** 0.5
    assert leave_one_out(codes, n_classes=3).raters[2].change.se == pytest.approx(expected)


def test_with_complete_ratings_the_mean_over_raters_is_percent_agreement() -> None:
    codes = simulated(np.random.default_rng(5), 40, (0.9, 0.8, 0.6))
    found = leave_one_out(codes, n_classes=3)
    mean = np.mean([r.agreement_with_others.value or 0 for r in found.raters])
    all_of_them = estimate(PERCENT_AGREEMENT, count_patterns(codes, n_classes=3))
    assert mean == pytest.approx(all_of_them.value)


def test_weights_count_in_all_three() -> None:
    codes = simulated(np.random.default_rng(6), 50, (0.9, 0.8, 0.4), 0.1)
    plain = leave_one_out(codes, n_classes=3)
    same = leave_one_out(codes, n_classes=3, weights=np.eye(3))
    linear = leave_one_out(codes, n_classes=3, weights=weight_matrix("linear", 3))
    assert plain == same
    patterns = count_patterns(codes, n_classes=3)
    assert linear.alpha == estimate(
        KRIPPENDORFF_ALPHA, patterns, weights=weight_matrix("linear", 3)
    )
    for a, b in zip(plain.raters, linear.raters, strict=True):
        assert (b.agreement_with_others.value or 0) > (a.agreement_with_others.value or 0)


def test_items_rated_once_and_the_order_change_nothing() -> None:
    rng = np.random.default_rng(7)
    codes = simulated(rng, 40, (0.9, 0.8, 0.6), 0.2)
    more = np.vstack([codes, [[2, -1, -1], [-1, -1, -1]]])[rng.permutation(42)]
    found, other = leave_one_out(codes, n_classes=3), leave_one_out(more, n_classes=3)
    for a, b in zip(found.raters, other.raters, strict=True):
        assert b.change.value == pytest.approx(a.change.value)
        assert b.change.interval == pytest.approx(a.change.interval)
        assert b.agreement_with_others.value == pytest.approx(a.agreement_with_others.value)


@pytest.mark.long
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_intervals_cover(missing: float) -> None:
    """120 items: alpha with and without the fourth, and its agreement, from the closed form."""
    rng = np.random.default_rng([51, round(10 * missing)])
    knows, repetitions = (0.9, 0.9, 0.8, 0.4), 500
    change = population_alpha(knows[:3]) - population_alpha(knows)
    beyond = 0.4 * (0.9 + 0.9 + 0.8) / 3
    agreeing = beyond + (1 - beyond) * float((SHARES**2).sum())
    covered = np.zeros(2)
    for _ in range(repetitions):
        last = leave_one_out(simulated(rng, 120, knows, missing), n_classes=3).raters[3]
        for place, (part, truth) in enumerate(
            ((last.change, change), (last.agreement_with_others, agreeing))
        ):
            low, high = part.interval or (9.0, 9.0)
            covered[place] += low <= truth <= high
    assert (covered / repetitions > 0.92).all(), covered
    assert (covered / repetitions < 0.98).all(), covered


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


def test_a_rater_who_shared_nothing_has_no_agreement() -> None:
    first = leave_one_out([[-1, 0, 0], [1, -1, -1], [-1, 1, 1]], n_classes=2).raters[0]
    assert first.agreement_with_others.status.startswith("not_estimable: this rater shared no item")
    assert first.alpha_without.value == 1.0


def test_what_is_no_table_of_codes_is_refused() -> None:
    with pytest.raises(ValueError, match="codes must"):
        leave_one_out([[0, 7]], n_classes=2)
    with pytest.raises(ValueError, match="confidence_level"):
        leave_one_out([[0, 1]], n_classes=2, confidence_level=0)


def test_the_change_has_a_p_value_for_all_raters_at_once() -> None:
    rng = np.random.default_rng(11)
    truth = rng.choice(3, size=(120, 1))
    codes = np.where(rng.random((120, 4)) < (0.95, 0.95, 0.95, 0.5), truth, rng.choice(3, (120, 4)))
    raters = leave_one_out(codes, n_classes=3).raters
    assert (raters[3].change.value or 0) > 0
    assert (raters[3].p_holm or 1) < 0.001
    p_values = [of.p_holm for of in raters]
    assert min(p for p in p_values if p is not None) == raters[3].p_holm
    nothing = leave_one_out([[0, 0], [1, 1]], n_classes=2).raters
    assert [of.p_holm for of in nothing] == [None, None]
