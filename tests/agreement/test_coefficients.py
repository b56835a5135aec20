"""Percent agreement, alpha and specific agreement: hand-made, outside and invariant values."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from calibration.agreement.coefficients import (
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    PERCENT_AGREEMENT,
    agreement,
    specific_agreement,
)
from calibration.agreement.ratings import count_patterns
from tests.agreement.golden import codes_of, entries
from tests.agreement.tables import Table, of_codes, tables


def test_ac1_depends_on_the_declared_classes() -> None:
    """Two of three agree: p_e is .5 with two classes, .5 / 4 with five."""
    two, five = (of_codes(GWET_AC, [[0, 0], [1, 1], [0, 1]], q).value for q in (2, 5))
    assert two == pytest.approx(1 / 3)
    assert five == pytest.approx((2 / 3 - 1 / 8) / (1 - 1 / 8))


def test_ac1_of_one_class_is_one_with_an_exact_lower_limit() -> None:
    """With one class used p_e is 0, so the limit is the share 1 - .025^(1/20) of 20 items."""
    found = of_codes(GWET_AC, [[0, 0]] * 20, 5)
    assert (found.value, found.status) == (1.0, "no disagreement seen")
    assert found.interval == pytest.approx((0.83157, 1.0), abs=1e-5)


@pytest.mark.parametrize("entry", entries("krippendorff_alpha_jackknife_se"))
def test_jackknife_se_equals_loop_over_items(entry: dict[str, Any]) -> None:
    assert of_codes(KRIPPENDORFF_ALPHA, *codes_of(entry)).se == pytest.approx(
        entry["expected"], abs=1e-7
    )


@pytest.mark.parametrize("entry", entries("specific_agreement_per_category"))
def test_specific_agreement_equals_outside_value(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    values = [e.value for e in specific_agreement(count_patterns(codes, n_classes=q))]
    assert values == pytest.approx(entry["expected"], abs=1e-8)


def test_no_disagreement_has_an_exact_lower_limit() -> None:
    """20 agreeing items, half of each class.

    At most 1 - .025^(1/20) = .16843 of items disagree; expected disagreement is
    (40^2 - 2 x 20^2) / (40 x 39) = .51282, so alpha is at least 1 - .16843 / .51282 = .67156.
    """
    found, share = (
        of_codes(coefficient, [[0, 0]] * 10 + [[1, 1]] * 10, 5)
        for coefficient in (KRIPPENDORFF_ALPHA, PERCENT_AGREEMENT)
    )
    assert (found.value, found.status) == (1.0, "no disagreement seen")
    assert found.interval == pytest.approx((0.67156, 1.0), abs=1e-5)
    assert share.status == "no disagreement seen"
    assert share.interval == pytest.approx((0.83157, 1.0), abs=1e-5)


@pytest.mark.parametrize(
    ("codes", "status"),
    [
        ([[0, 0], [0, 0], [0, 0]], "not_estimable: undefined without variation"),
        ([[-1, -1], [-1, -1]], "not_estimable: no ratings"),
        ([[0], [1], [0]], "not_estimable: no item has two ratings"),
        ([[0, -1], [-1, 1]], "not_estimable: no item has two ratings"),
        ([[0, 1], [0, -1]], "no interval: one item"),
        ([[0, 0]] * 9 + [[0, 1]], "no interval: without one item"),
    ],
)
def test_degenerate_ratings_have_a_status_and_no_interval(
    codes: list[list[int]], status: str
) -> None:
    found = of_codes(KRIPPENDORFF_ALPHA, codes, 3)
    assert found.status.startswith(status)
    assert found.interval is None
    assert found.value is None or np.isfinite(found.value)


def test_one_class_leaves_percent_agreement_defined_and_all_differing_a_width() -> None:
    result = agreement([[0, 0], [0, 0]], n_classes=3)
    assert result.alpha.value is None
    assert result.percent_agreement.value == 1.0
    patterns = count_patterns([[0, 0], [0, 0]], n_classes=3)
    assert specific_agreement(patterns)[1].status.startswith("not_estimable")
    found = of_codes(KRIPPENDORFF_ALPHA, [[0, 1]] * 12, 2)
    assert found.status == "no variation between items seen"
    assert (found.half_width or 0) > 0.1


@pytest.mark.parametrize(
    ("codes", "n_classes", "match"),
    [
        ([[0, 3]], 3, "codes must be in"), ([[0, -2]], 3, "codes must be in"), ([0, 1], 3, "shape"),
        ([[0.5, 1.0]], 3, "integers"), ([[0, 1]], 1, "n_classes must be at least 2"),
    ],
)  # fmt: skip
def test_bad_codes_are_refused(codes: Any, n_classes: int, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        agreement(codes, n_classes=n_classes)


@settings(max_examples=60, deadline=None)
@given(table=tables(raters=(2, 5), classes=(4, 4), items=30))
def test_items_rated_once_or_never_change_no_specific_agreement(table: Table) -> None:
    extra = np.full((2, table.codes.shape[1]), -1)
    extra[0, 0] = 2
    rows = (table.codes, np.vstack([table.codes, extra]))
    one, other = (specific_agreement(count_patterns(of, n_classes=4)) for of in rows)
    assert one == other
    for found in one:
        if found.value is not None and found.interval is not None:
            lower, upper = found.interval
            assert 0 <= lower <= found.value + 1e-12
            assert found.value - 1e-12 <= upper <= 1.0
            assert upper > lower
