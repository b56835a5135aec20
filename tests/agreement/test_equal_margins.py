"""Tests of equal margins of many raters: known statistics, hand values, size, power, coverage."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from calibration.agreement.annotators import EqualMargins, equal_margins, leave_one_out
from calibration.statistics.contingency import mcnemar
from tests.agreement.golden import codes_of, entries
from tests.agreement.tables import MODERATE, Codes, rated


def panel(
    rng: np.random.Generator, n_items: int, n_raters: int, knows: float = 0.75, **options: Any
) -> Codes:
    return rated(rng, n_items, [knows] * n_raters, MODERATE, **options)


def called(found: EqualMargins) -> bool:
    return found.test.p_value is not None and found.test.p_value < 0.05


@pytest.mark.parametrize("entry", [e for e in entries("bhapkar_chi2") if "vision" in str(e.id)])
def test_two_raters_give_the_outside_value_of_bhapkar(entry: Any) -> None:
    codes, q = codes_of(entry)
    found = equal_margins(codes, n_classes=q)
    assert found.test.statistic == pytest.approx(entry["expected"], abs=entry["tolerance"])
    assert (found.test.df, found.test.n) == (entry["df"], 7477)
    # Thousands of items: Hotelling's F and chi-square are one.
    assert found.test.p_value == pytest.approx(entry["p"], rel=0.02)


def test_differences_of_two_raters_by_hand() -> None:
    """Of 20 items 6 go one way and 2 the other: 4/20, and 4/22 -+ 1.96 sqrt(10/22 - ...)."""
    codes = [[0, 0]] * 8 + [[0, 1]] * 6 + [[1, 0]] * 2 + [[1, 1]] * 4
    first = equal_margins(codes, n_classes=2).differences[0]
    assert (first.rater, first.class_code) == (0, 0)
    assert (first.share, first.share_of_others) == (0.7, 0.5)
    assert first.difference.value == pytest.approx(0.2)
    se = ((10 / 22 - (4 / 22) ** 2) / 22) ** 0.5
    reach = 1.959964 * se
    assert first.difference.interval == pytest.approx((4 / 22 - reach, 4 / 22 + reach))
    assert first.difference.n == 20


def test_a_rater_is_compared_on_the_same_items_only() -> None:
    """The first two had hard items, the last two easy ones; within items nobody differs."""
    codes = [[1, 1, -1, -1]] * 30 + [[-1, -1, 0, 0]] * 30 + [[0, -1, -1, 0], [-1, 1, 1, -1]] * 3
    found = equal_margins(codes, n_classes=2)
    assert found.test.status == "undefined: the raters never differ"
    assert [d.difference.value for d in found.differences] == [0.0] * 8
    assert found.differences[0].share == pytest.approx(3 / 33)
    assert found.differences[2].share == pytest.approx(0.0)


def test_the_order_of_raters_items_and_classes_does_not_matter() -> None:
    rng = np.random.default_rng(8)
    for n_items in (40, 200):  # the first with fewer directions than the rank
        codes = panel(rng, n_items, 4, missing=0.2)
        both = equal_margins(codes, n_classes=5)
        for k in range(5):  # the differences of all raters cancel
            of_class = [d.difference for d in both.differences if d.class_code == k]
            assert sum((e.value or 0.0) * e.n for e in of_class) == pytest.approx(0.0, abs=1e-9)
        found = both.test
        turned = codes[rng.permutation(n_items)][:, [2, 0, 3, 1]]
        order = rng.permutation(5)
        turned = np.where(turned >= 0, order[turned], -1)
        other = equal_margins(turned, n_classes=5).test
        assert other.statistic == pytest.approx(found.statistic)
        assert (other.df, other.status) == (found.df, found.status)
    assert found.df == 12


def test_items_rated_once_and_absent_raters_change_nothing() -> None:
    codes = panel(np.random.default_rng(9), 80, 3)
    more = np.vstack([codes, [[4, -1, -1]] * 20])
    more = np.column_stack([more, np.full(100, -1)])
    found, other = equal_margins(codes, n_classes=5), equal_margins(more, n_classes=6)
    assert found.test.statistic == pytest.approx(other.test.statistic)
    assert found.differences == tuple(d for d in other.differences if d.rater < 3)
    absent = other.differences[-1]
    assert (absent.share, absent.p_value, absent.p_holm) == (None, None, None)
    assert absent.difference.status.startswith("not_estimable: this rater shared no item")


NOBODY_TWICE = (np.zeros((0, 3), dtype=int), [[0], [1], [1]], [[0, -1], [-1, 1]])


@pytest.mark.parametrize(
    ("codes", "status"),
    [
        *((codes, "undefined: no item has two ratings") for codes in NOBODY_TWICE),
        ([[1, 1, 1]] * 20, "undefined: the raters never differ"),
        ([[0, 1, 1]] * 4 + [[0, 0, 0]] * 20, "undefined: raters differ on 4 items, 10 are needed"),
        ([[0, 1, 1]] * 20, "undefined: the raters differ on every item in the same way"),
    ],
)
def test_what_shows_nothing_says_so(codes: Any, status: str) -> None:
    found = equal_margins(codes, n_classes=3).test
    assert (found.statistic, found.p_value) == (None, None)
    assert found.status.startswith(status)


def test_raters_who_differ_in_one_way_only_where_they_differ_are_found() -> None:
    """All 12 items that differ do so alike: the p-value of McNemar's exact test."""
    found = equal_margins([[0, 1]] * 12 + [[0, 0]] * 20, n_classes=2).test
    assert found.statistic == pytest.approx(12 / (1 - 12 / 32))
    assert found.p_value == pytest.approx(2 * 0.5**12)
    assert mcnemar([[20, 12], [0, 0]]).p_value == pytest.approx(2 * 0.5**12)


def test_few_items_that_differ_make_the_test_provisional() -> None:
    codes = panel(np.random.default_rng(4), 30, 5, knows=0.9)
    found = equal_margins(codes, n_classes=5)
    assert found.test.df <= found.n_differing // 5
    assert found.test.status.startswith(f"provisional: raters differ on {found.n_differing} items")


@pytest.mark.parametrize(
    ("knows", "n_items", "missing"),
    [([0.75] * 5, 100, 0.3), ([0.75] * 3, 300, 0.0), ([0.0, 0.8, 0.8, 0.8], 150, 0.0)],
    ids=["some missing", "all there", "of unequal reliability"],
)
def test_raters_of_equal_margins_are_called_different_as_often_as_said(
    knows: list[float], n_items: int, missing: float
) -> None:
    rng = np.random.default_rng([61, len(knows), n_items, round(10 * missing)])
    repetitions = 500
    alarms = sum(
        called(equal_margins(rated(rng, n_items, knows, MODERATE, missing=missing), n_classes=5))
        for _ in range(repetitions)
    )
    assert binomtest(alarms, repetitions, 0.05).pvalue > 0.001, alarms


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_rater_with_a_habit_is_found_and_named(missing: float) -> None:
    """The first names class 4 whenever it does not know: 25 % x .87 = 22 pp more than others."""
    rng = np.random.default_rng(63)
    found = named = 0
    for _ in range(50):
        codes = panel(rng, 150, 5, missing=missing, first=(0, 0, 0, 0, 1))
        result = equal_margins(codes, n_classes=5)
        found += called(result)
        worst = min(result.differences, key=lambda d: d.p_holm or 1.0)
        named += (worst.rater, worst.class_code) == (0, 4) and (worst.p_holm or 1.0) < 0.05
    assert found >= 47
    assert named >= 47


def test_what_is_no_table_of_codes_is_refused() -> None:
    for of in (equal_margins, leave_one_out):
        with pytest.raises(ValueError, match="codes must"):
            of([[0, 7]], n_classes=2)
        with pytest.raises(ValueError, match="confidence_level"):
            of([[0, 1]], n_classes=2, confidence_level=1.0)
