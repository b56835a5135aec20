"""Percent agreement, alpha and specific agreement: hand-made, outside and invariant values."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from calibration.agreement.coefficients import (
    agreement,
    gwet_ac1,
    krippendorff_alpha,
    percent_agreement,
    specific_agreement,
)
from calibration.agreement.ratings import CountPatterns, count_patterns, patterns_from_counts

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "agreement.json").read_text(encoding="utf-8")
)

CODES = NDArray[np.int64]


def codes_of(entry: dict[str, Any]) -> tuple[CODES, int]:
    """Return (n_items, n_raters) codes of a golden entry of ratings (raters x items)."""
    flat = [value for row in entry["data"] for value in row if value is not None]
    names = entry["categories"] or sorted(set(flat))
    position = {name: k for k, name in enumerate(names)}
    table = [[-1 if v is None else position[v] for v in row] for row in entry["data"]]
    return np.array(table, dtype=np.int64).T, max(2, len(names))


def patterns_of(entry: dict[str, Any]) -> CountPatterns:
    if entry["data_kind"] == "ratings_raters_x_items":
        codes, n_classes = codes_of(entry)
        return count_patterns(codes, n_classes=n_classes)
    data = np.array(entry["data"], dtype=np.int64)
    if entry["data_kind"] == "counts_items_x_categories":
        return patterns_from_counts(data)
    first, second = np.nonzero(data)
    eye = np.eye(data.shape[0], dtype=np.int64)
    return patterns_from_counts(np.repeat(eye[first] + eye[second], data[first, second], axis=0))


def golden(*coefficients: str) -> list[Any]:
    return [
        pytest.param(e, id=e["name"])
        for e in GOLDEN
        if e["coefficient"] in coefficients
        and e["expected"] is not None
        and e["weights"] in ("identity", "krippendorff_nominal")
    ]


@pytest.mark.parametrize("entry", golden("krippendorff_alpha", "krippendorff_alpha_at_node"))
def test_alpha_equals_outside_value(entry: dict[str, Any]) -> None:
    estimate = krippendorff_alpha(patterns_of(entry))
    assert estimate.value == pytest.approx(entry["expected"], abs=entry["tolerance"])


@pytest.mark.parametrize("entry", golden("percent_agreement"))
def test_percent_agreement_equals_outside_value(entry: dict[str, Any]) -> None:
    patterns = patterns_of(entry)
    estimate = percent_agreement(patterns)
    assert estimate.value == pytest.approx(entry["expected"], abs=entry["tolerance"])
    # The published standard error takes items rated once into n; without them the two coincide.
    if (
        entry.get("se_method") == "gwet_linearised"
        and patterns.pairable().n_items == patterns.n_items
    ):
        assert estimate.se == pytest.approx(entry["se"], abs=1e-6)


@pytest.mark.parametrize("entry", golden("gwet_ac", "gwet_ac_at_node"))
def test_ac1_equals_outside_value(entry: dict[str, Any]) -> None:
    patterns = patterns_of(entry)
    estimate = gwet_ac1(patterns)
    assert estimate.value == pytest.approx(entry["expected"], abs=entry["tolerance"])
    # Gwet's standard error takes n' as fixed; without items rated once it is the linearised one.
    outside = entry.get("se_infinitesimal_jackknife") or (
        entry["se"] if patterns.pairable().n_items == patterns.n_items else None
    )
    if outside is not None:
        assert estimate.se == pytest.approx(outside, rel=2.5 / estimate.n)


def test_ac1_jackknife_equals_leaving_out_each_item_with_items_rated_once() -> None:
    codes = np.random.default_rng(11).integers(-1, 3, size=(25, 3))
    codes = codes[(codes >= 0).any(axis=1)]
    assert ((codes >= 0).sum(axis=1) == 1).any()
    n = codes.shape[0]
    values = np.array(
        [
            gwet_ac1(count_patterns(np.delete(codes, i, axis=0), n_classes=3)).value
            for i in range(n)
        ],
        dtype=np.float64,
    )
    by_hand = np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum())
    assert gwet_ac1(count_patterns(codes, n_classes=3)).se == pytest.approx(by_hand)


def test_ac1_depends_on_the_declared_classes() -> None:
    """Two of three agree: p_e is .5 with two classes, .5 / 4 with five."""
    codes = [[0, 0], [1, 1], [0, 1]]
    assert gwet_ac1(count_patterns(codes, n_classes=2)).value == pytest.approx(1 / 3)
    assert gwet_ac1(count_patterns(codes, n_classes=5)).value == pytest.approx(
        (2 / 3 - 1 / 8) / (1 - 1 / 8)
    )


def test_ac1_of_one_class_is_one_with_an_exact_lower_limit() -> None:
    """With one class used p_e is 0, so the limit is the share 1 - .025^(1/20) of 20 items."""
    estimate = gwet_ac1(count_patterns([[0, 0]] * 20, n_classes=5))
    assert (estimate.value, estimate.status) == (1.0, "no disagreement seen")
    assert estimate.interval == pytest.approx((0.83157, 1.0), abs=1e-5)


@pytest.mark.parametrize("codes", [[[-1, -1]], [[0, -1], [-1, 1]]])
def test_ac1_without_a_second_rating_is_not_estimable(codes: list[list[int]]) -> None:
    assert gwet_ac1(count_patterns(codes, n_classes=5)).value is None


@pytest.mark.parametrize("entry", golden("krippendorff_alpha_jackknife_se"))
def test_jackknife_se_equals_loop_over_items(entry: dict[str, Any]) -> None:
    assert krippendorff_alpha(patterns_of(entry)).se == pytest.approx(entry["expected"], abs=1e-7)


@pytest.mark.parametrize("entry", golden("krippendorff_alpha"))
def test_jackknife_se_is_near_the_linearised_one(entry: dict[str, Any]) -> None:
    """The delete-one jackknife and the linearisation agree to O(1/n)."""
    estimate = krippendorff_alpha(patterns_of(entry))
    if entry["se"] is not None and estimate.se is not None:
        assert estimate.se == pytest.approx(entry["se"], rel=2.5 / estimate.n)


@pytest.mark.parametrize("entry", golden("specific_agreement_per_category"))
def test_specific_agreement_equals_outside_value(entry: dict[str, Any]) -> None:
    values = [e.value for e in specific_agreement(patterns_of(entry))]
    assert values == pytest.approx(entry["expected"], abs=1e-8)


def test_jackknife_over_patterns_equals_leaving_out_each_item() -> None:
    codes = np.random.default_rng(7).integers(-1, 3, size=(25, 4))
    codes = codes[(codes >= 0).sum(axis=1) >= 2]
    n = codes.shape[0]
    left_out = [
        krippendorff_alpha(count_patterns(np.delete(codes, i, axis=0), n_classes=3)).value
        for i in range(n)
    ]
    values = np.array(left_out, dtype=np.float64)
    by_hand = np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum())
    assert krippendorff_alpha(count_patterns(codes, n_classes=3)).se == pytest.approx(by_hand)


def test_no_disagreement_has_an_exact_lower_limit() -> None:
    """20 agreeing items, half of each class.

    At most 1 - .025^(1/20) = .16843 of items disagree; expected disagreement is
    (40^2 - 2 x 20^2) / (40 x 39) = .51282, so alpha is at least 1 - .16843 / .51282 = .67156.
    """
    estimate = krippendorff_alpha(count_patterns([[0, 0]] * 10 + [[1, 1]] * 10, n_classes=5))
    assert (estimate.value, estimate.status) == (1.0, "no disagreement seen")
    assert estimate.interval == pytest.approx((0.67156, 1.0), abs=1e-5)
    share = percent_agreement(count_patterns([[0, 0]] * 10 + [[1, 1]] * 10, n_classes=5))
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
    estimate = krippendorff_alpha(count_patterns(codes, n_classes=3))
    assert estimate.status.startswith(status)
    assert estimate.interval is None
    assert estimate.value is None or np.isfinite(estimate.value)


def test_one_class_leaves_percent_agreement_defined() -> None:
    result = agreement([[0, 0], [0, 0]], n_classes=3)
    assert result.alpha.value is None
    assert result.percent_agreement.value == 1.0
    assert result.specific[1].status.startswith("not_estimable")


def test_items_that_all_disagree_do_not_get_a_zero_length_interval() -> None:
    estimate = krippendorff_alpha(count_patterns([[0, 1]] * 12, n_classes=2))
    assert estimate.status == "no variation between items seen"
    assert estimate.half_width is not None
    assert estimate.half_width > 0.1


def test_empty_table_is_not_estimable() -> None:
    result = agreement(np.empty((0, 3), dtype=np.int64), n_classes=2)
    assert not result.alpha.ok
    assert not result.percent_agreement.ok


@pytest.mark.parametrize(
    ("codes", "n_classes", "match"),
    [
        ([[0, 3]], 3, "codes must be in"),
        ([[0, -2]], 3, "codes must be in"),
        ([0, 1], 3, "shape"),
        ([[0.5, 1.0]], 3, "integers"),
        ([[0, 1]], 1, "n_classes must be at least 2"),
    ],
)
def test_bad_codes_are_refused(codes: Any, n_classes: int, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        agreement(codes, n_classes=n_classes)


def test_bad_confidence_level_is_refused() -> None:
    with pytest.raises(ValueError, match=r"confidence_level must be in \(0, 1\), got 1.5"):
        agreement([[0, 1]], n_classes=2, confidence_level=1.5)


ratings = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.integers(-1, 3), min_size=raters, max_size=raters), min_size=1, max_size=30
    )
)


@settings(max_examples=60, deadline=None)
@given(codes=ratings)
def test_items_rated_once_or_never_change_nothing(codes: list[list[int]]) -> None:
    array = np.array(codes)
    extra = np.full((2, array.shape[1]), -1)
    extra[0, 0] = 2
    first = agreement(array, n_classes=4)
    second = agreement(np.vstack([array, extra]), n_classes=4)
    assert first.n_items == second.n_items
    assert first.specific == second.specific
    assert first.alpha.interval == second.alpha.interval
    assert first.percent_agreement.interval == second.percent_agreement.interval


@settings(max_examples=60, deadline=None)
@given(codes=ratings)
def test_intervals_hold_the_value_and_stay_in_range(codes: list[list[int]]) -> None:
    result = agreement(codes, n_classes=4)
    for estimate, lowest in [(result.alpha, -1.0), (result.percent_agreement, 0.0)] + [
        (e, 0.0) for e in result.specific
    ]:
        if estimate.value is not None and estimate.interval is not None:
            lower, upper = estimate.interval
            assert lowest <= lower <= estimate.value + 1e-12
            assert estimate.value - 1e-12 <= upper <= 1.0
            assert upper > lower
