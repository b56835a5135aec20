"""Raters against a key: outside values of kappa, hand values, and keys that show nothing."""

from typing import Any

import numpy as np
import pytest

from calibration.agreement.annotators import AgainstKey, against_key
from calibration.agreement.coefficients import GWET_AC, estimate
from calibration.agreement.ratings import count_patterns
from calibration.statistics.intervals import wilson_interval
from tests.agreement.golden import codes_of, entries, weights_of


def single(codes: Any, key: Any, n_classes: int = 2, **kwargs: Any) -> AgainstKey:
    (found,) = against_key(np.reshape(codes, (-1, 1)), key, n_classes=n_classes, **kwargs)
    return found


OF_TWO = [
    entry for entry in entries("gwet_ac") if entry.values[0]["data_kind"] == "table_rater1_x_rater2"
]


@pytest.mark.parametrize("entry", OF_TWO)
def test_the_coefficients_equal_the_outside_values(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    found = single(codes[:, 1], codes[:, 0], q, weights=weights_of(entry, q))
    assert found.gwet_ac.value == pytest.approx(entry["expected"], abs=entry["tolerance"])


def test_each_figure_by_hand() -> None:
    """Key in rows: 8 + 2 + 0, 1 + 5 + 0, 1 + 0 + 3; 16 of 20 right."""
    table = np.array([[8, 2, 0], [1, 5, 0], [1, 0, 3]])
    pairs = np.repeat(np.column_stack(np.nonzero(table)), table[np.nonzero(table)], axis=0)
    found = single(pairs[:, 1], pairs[:, 0], 3)
    assert found.table == ((8, 2, 0), (1, 5, 0), (1, 0, 3))
    assert (found.n, found.accuracy.value) == (20, 0.8)
    assert found.accuracy.interval == wilson_interval(16, 20, confidence_level=0.95)
    assert [c.recall.value for c in found.per_class] == [8 / 10, 5 / 6, 3 / 4]
    assert [c.precision.value for c in found.per_class] == [8 / 10, 5 / 7, 3 / 3]
    assert found.per_class[2].precision.interval == wilson_interval(3, 3, confidence_level=0.95)
    # Chance agreement (10 x 10 + 6 x 7 + 4 x 3) / 400.
    assert found.cohen_kappa.value == pytest.approx((0.8 - 0.385) / 0.615)
    assert found.gwet_ac == estimate(GWET_AC, count_patterns(pairs, n_classes=3))


def test_only_items_with_a_key_and_a_rating_count() -> None:
    codes = [[0, 0], [1, -1], [-1, 1], [1, 1], [0, 1]]
    first, second = against_key(codes, [0, 1, 1, -1, 1], n_classes=2)
    assert (first.rater, first.n, first.table) == (0, 3, ((1, 0), (1, 1)))
    assert (second.rater, second.n, second.table) == (1, 3, ((1, 0), (0, 2)))


def test_weights_forgive_near_misses_in_kappa_not_in_accuracy() -> None:
    key, given = np.repeat([0, 1, 2], 10), np.repeat([0, 1, 2], 10)
    given[:4] = 1
    given[-1] = 0
    weights = [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]
    plain, weighted = single(given, key, 3), single(given, key, 3, weights=weights)
    assert plain.accuracy == weighted.accuracy
    assert (weighted.gwet_ac.value or 0) > (plain.gwet_ac.value or 0)


def test_without_an_error_the_limits_are_below_one() -> None:
    found = single([0] * 10 + [1] * 10, [0] * 10 + [1] * 10)
    assert (found.cohen_kappa.value, found.cohen_kappa.status) == (1.0, "no disagreement seen")
    assert found.cohen_kappa.interval == pytest.approx((1 - 0.16843 / 0.5, 1.0), abs=1e-4)
    assert found.gwet_ac.status == "no disagreement seen"
    assert found.accuracy.interval is not None
    assert 0.8 < found.accuracy.interval[0] < 0.9


@pytest.mark.parametrize(
    ("codes", "key", "value", "status"),
    [
        ([0, 0, 0], [0, 0, 0], None, "not_estimable: undefined without variation"),
        ([0, 0, 0], [0, 1, 1], 0.0, "no interval: one of the two used a single class"),
        ([0, 1], [1, 0], -1.0, "no interval: a value of -1"),
        ([0], [1], 0.0, "no interval: one item"),
        ([-1, -1], [0, 1], None, "not_estimable: this rater rated no item of the key"),
        ([], [], None, "not_estimable: this rater rated no item of the key"),
        ([0, 1], [-1, -1], None, "not_estimable: this rater rated no item of the key"),
    ],
)
def test_what_kappa_cannot_say(codes: Any, key: Any, value: float | None, status: str) -> None:
    codes, key = np.array(codes, dtype=int), np.array(key, dtype=int)
    found = single(codes, key).cohen_kappa
    assert found.value == (None if value is None else pytest.approx(value))
    assert found.interval is None
    assert found.status.startswith(status)


def test_errors_in_a_circle_have_the_exact_bound() -> None:
    found = single([1, 2, 0] * 5, [0, 1, 2] * 5, 3).cohen_kappa
    assert found.value == pytest.approx(-0.5)
    assert found.status == "no variation between items seen"
    assert found.interval is not None
    assert found.interval[0] == pytest.approx(-0.5)
    assert found.interval[1] > -0.5


def test_a_class_without_items_says_so() -> None:
    third = single([0, 1, 0], [0, 1, 1], 3).per_class[2]
    assert third.recall.status.startswith("not_estimable: no item of this class in the key")
    assert third.precision.status.startswith("not_estimable: the rater gave this class to no item")


@pytest.mark.parametrize(
    ("key", "match"), [([0], "key must have shape"), ([0, 2], "codes must"), ([0.5, 1], "integers")]
)
def test_what_is_no_key_is_refused(key: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        against_key([[0], [1]], key, n_classes=2)


@pytest.mark.long
@pytest.mark.parametrize(("knows", "n_items"), [(0.6, 50), (0.85, 100)])
def test_the_interval_of_kappa_covers(knows: float, n_items: int) -> None:
    """A rater who knows with probability k and else draws from the key's mix has kappa k."""
    rng = np.random.default_rng([41, n_items])
    repetitions, covered = 800, 0
    for _ in range(repetitions):
        key = rng.choice(4, size=n_items, p=(0.6, 0.2, 0.1, 0.1))
        guess = rng.choice(4, size=n_items, p=(0.6, 0.2, 0.1, 0.1))
        found = single(np.where(rng.random(n_items) < knows, key, guess), key, 4).cohen_kappa
        covered += found.interval is not None and found.interval[0] <= knows <= found.interval[1]
    assert 0.92 < covered / repetitions < 0.98
