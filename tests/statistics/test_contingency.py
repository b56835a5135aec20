"""Kappa and shares of a two-way table: outside values, published figures, and what is no table."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from calibration.statistics.contingency import kappa_of_table
from calibration.statistics.intervals import wilson_interval
from tests.agreement.golden import codes_of, entries, weights_of


@pytest.mark.parametrize("entry", entries("cohen_kappa"))
def test_kappa_and_its_standard_error_equal_the_outside_values(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    table = np.bincount(codes[:, 0] * q + codes[:, 1], minlength=q * q).reshape(q, q)
    found = kappa_of_table(table, weights=weights_of(entry, q))
    assert found.value == pytest.approx(entry["expected"], abs=entry["tolerance"])
    if entry["se"] is not None and found.se is not None:
        assert found.se == pytest.approx(entry["se"], abs=entry.get("se_tolerance") or 5e-8)


def test_the_printout_of_sas() -> None:
    """PROC FREQ AGREE: kappa .4842 (.1380), weighted .4701 (.1457)."""
    table = [[0, 4, 1], [0, 8, 0], [0, 1, 5]]
    plain = kappa_of_table(table)
    weighted = kappa_of_table(table, weights=[[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]])
    assert (plain.value, plain.se) == pytest.approx((0.4842, 0.1380), abs=5e-5)
    assert (weighted.value, weighted.se) == pytest.approx((0.4701, 0.1457), abs=5e-5)


def test_the_interval_is_that_of_fisher_with_t() -> None:
    """tanh(atanh(k) -+ t_39 se / (1 - k^2)) of 40 traces; k -+ 1.96 se would be [.448, .942]."""
    found = kappa_of_table([[9, 2], [3, 26]])
    assert found.value is not None
    assert found.se is not None
    reach = stats.t.ppf(0.975, 39) * found.se / (1 - found.value**2)
    limits = np.tanh(np.arctanh(found.value) + np.array([-reach, reach]))
    assert found.interval == pytest.approx(tuple(limits))
    assert found.interval == pytest.approx((0.349, 0.874), abs=5e-4)


def test_effective_counts_have_their_own_degrees_of_freedom() -> None:
    """A table of 40 traces worth 20 is as wide as one of 20, and names 40."""
    half, whole = (kappa_of_table(np.array([[9, 2], [3, 26]]) / k, n=40) for k in (2, 1))
    assert half.n == whole.n == 40
    assert half.se == pytest.approx((whole.se or 0) * 2**0.5)


@pytest.mark.parametrize(
    ("table", "value", "status"),
    [
        ([[10, 0], [0, 10]], 1.0, "no disagreement seen"),
        ([[82, 0], [18, 0]], 0.0, "no interval: one of the two used a single class"),
        ([[0, 5], [5, 0]], -1.0, "no interval: a value of -1"),
        ([[7, 0], [0, 0]], None, "not_estimable: undefined without variation"),
        ([[0, 0], [0, 0]], None, "not_estimable: no item has two ratings"),
    ],
)
def test_tables_without_variation_say_what_they_cannot_show(
    table: Any, value: float | None, status: str
) -> None:
    found = kappa_of_table(table)
    assert found.value == (None if value is None else pytest.approx(value))
    assert found.status.startswith(status)
    # Without disagreement the exact bound is put through kappa.
    bound = pytest.approx((1 - 0.16843 / 0.5, 1.0), abs=1e-4)
    assert found.interval == (bound if status == "no disagreement seen" else None)


def test_what_is_no_table_is_refused() -> None:
    for table, match in (([[1, 2]], "square"), ([[1, -1], [2, 2]], "from 0 up")):
        with pytest.raises(ValueError, match=match):
            kappa_of_table(table)
    with pytest.raises(ValueError, match="weights must have shape"):
        kappa_of_table([[1, 0], [0, 1]], weights=np.eye(3))


def test_wilson_at_its_ends() -> None:
    """Newcombe (1998), table I: 81 of 263 and 15 of 148, without correction."""
    for hits, n, limits in ((81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605))):
        found = wilson_interval(hits, n, confidence_level=0.95)
        assert found == pytest.approx(limits, abs=5e-5)
    assert wilson_interval(7, 7, confidence_level=0.95)[1] == 1.0
