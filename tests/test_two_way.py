"""Kappa and shares of a two-way table: outside values, published figures, and what is no table."""

from typing import Any

import numpy as np
import pytest

from calibration.statistics.contingency import table_kappa, wilson_interval
from tests.agreement.golden import codes_of, entries, weights_of


@pytest.mark.parametrize("entry", entries("cohen_kappa"))
def test_kappa_and_its_standard_error_equal_the_outside_values(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    table = np.bincount(codes[:, 0] * q + codes[:, 1], minlength=q * q).reshape(q, q)
    found = table_kappa(table, weights_of(entry, q))
    assert found.value == pytest.approx(entry["expected"], abs=entry["tolerance"])
    if entry["se"] is not None:
        assert found.se == pytest.approx(entry["se"], abs=entry.get("se_tolerance") or 5e-8)


def test_the_printout_of_sas() -> None:
    """PROC FREQ AGREE: kappa .4842 (.1380), weighted .4701 (.1457)."""
    table = [[0, 4, 1], [0, 8, 0], [0, 1, 5]]
    plain, weighted = (
        table_kappa(table),
        table_kappa(table, [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]),
    )
    assert (plain.value, plain.se) == pytest.approx((0.4842, 0.1380), abs=5e-5)
    assert (weighted.value, weighted.se) == pytest.approx((0.4701, 0.1457), abs=5e-5)


def test_both_in_one_class_have_no_kappa() -> None:
    found = table_kappa([[7, 0], [0, 0]])
    assert (found.observed, found.expected, found.value, found.se) == (1.0, 1.0, None, None)


@pytest.mark.parametrize(
    ("table", "match"),
    [([[1, 2]], "square"), ([[0, 0], [0, 0]], "at least one"), ([[1, -1], [2, 2]], "from 0 up")],
)
def test_what_is_no_table_is_refused(table: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        table_kappa(table)
    with pytest.raises(ValueError, match="weights must have shape"):
        table_kappa([[1, 0], [0, 1]], np.eye(3))


def test_wilson_at_its_ends() -> None:
    """Newcombe (1998), table I: 81 of 263 and 15 of 148, without correction."""
    assert wilson_interval(81, 263, confidence_level=0.95) == pytest.approx(
        (0.2553, 0.3662), abs=5e-5
    )
    assert wilson_interval(15, 148, confidence_level=0.95) == pytest.approx(
        (0.0624, 0.1605), abs=5e-5
    )
    assert wilson_interval(7, 7, confidence_level=0.95)[1] == 1.0
