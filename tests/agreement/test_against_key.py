"""Raters against a key: hand values, and keys that show nothing. Coverage: tests/simulation."""

from typing import Any

import numpy as np
import pytest

from calibration.agreement.annotators import AgainstKey, against_key
from calibration.agreement.coefficients import GWET_AC
from calibration.statistics.intervals import wilson_interval
from tests.agreement.tables import codes_from, of_codes


def single(codes: Any, key: Any, n_classes: int = 2, **kwargs: Any) -> AgainstKey:
    (found,) = against_key(np.reshape(codes, (-1, 1)), key, n_classes=n_classes, **kwargs)
    return found


def test_each_figure_by_hand() -> None:
    """Key in rows: 8 + 2 + 0, 1 + 5 + 0, 1 + 0 + 3; 16 of 20 right."""
    pairs = codes_from([[8, 2, 0], [1, 5, 0], [1, 0, 3]])
    found = single(pairs[:, 1], pairs[:, 0], 3)
    assert found.table == ((8, 2, 0), (1, 5, 0), (1, 0, 3))
    assert (found.n, found.accuracy.value) == (20, 0.8)
    assert found.accuracy.interval == wilson_interval(16, 20, confidence_level=0.95)
    assert [c.recall.value for c in found.per_class] == [8 / 10, 5 / 6, 3 / 4]
    assert [c.precision.value for c in found.per_class] == [8 / 10, 5 / 7, 3 / 3]
    assert found.per_class[2].precision.interval == wilson_interval(3, 3, confidence_level=0.95)
    # Chance agreement (10 x 10 + 6 x 7 + 4 x 3) / 400.
    assert found.cohen_kappa.value == pytest.approx((0.8 - 0.385) / 0.615)
    assert found.gwet_ac == of_codes(GWET_AC, pairs, 3)


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


@pytest.mark.parametrize(
    ("codes", "key", "value", "status"),
    [
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


def test_a_class_without_items_says_so_and_what_is_no_key_is_refused() -> None:
    third = single([0, 1, 0], [0, 1, 1], 3).per_class[2]
    assert third.recall.status.startswith("not_estimable: no item of this class in the key")
    assert third.precision.status.startswith("not_estimable: the rater gave this class to no item")
    for key, match in (
        ([0], "key must have shape"),
        ([0, 2], "codes must"),
        ([0.5, 1], "integers"),
    ):
        with pytest.raises(ValueError, match=match):
            against_key([[0], [1]], key, n_classes=2)
