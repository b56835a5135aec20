"""Weighted and unweighted coefficients: outside values, special cases and invariances."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from calibration.agreement.by_rater import cohen_kappa, conger_kappa
from calibration.agreement.chance_corrected import (
    BELOW_THE_SCALE,
    BRENNAN_PREDIGER,
    FLEISS_KAPPA,
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    KRIPPENDORFF_ORDINAL,
    NO_EXPECTATION,
    PERCENT_AGREEMENT,
    SCOTT_PI,
    Coefficient,
    estimate,
    linearised_se,
)
from calibration.agreement.counts import count_patterns
from calibration.agreement.intervals import FloatArray
from calibration.agreement.weights import WEIGHTS, weight_matrix
from calibration.estimates import Estimate
from tests.agreement.golden import codes_of, entries, weights_of

COEFFICIENTS = {
    "percent_agreement": PERCENT_AGREEMENT,
    "krippendorff_alpha": KRIPPENDORFF_ALPHA,
    "gwet_ac": GWET_AC,
    "fleiss_kappa": FLEISS_KAPPA,
    "brennan_prediger": BRENNAN_PREDIGER,
    "scott_pi": SCOTT_PI,
    "randolph_kappa": BRENNAN_PREDIGER,
}
AT_NODE = {f"{name}_at_node": c for name, c in COEFFICIENTS.items()}


def alpha_of_many(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Leave the correction of expected disagreement for few ratings out, as others' errors do."""
    shares = totals[..., 2:] / totals[..., 1:2]
    return totals[..., 0] / totals[..., 1], ((shares @ distances) * shares).sum(axis=-1)


ALPHA_OF_MANY = replace(KRIPPENDORFF_ALPHA, disagreement=alpha_of_many)


def coefficient_of(entry: dict[str, Any]) -> Coefficient:
    if entry["weights"] == "krippendorff_ordinal":
        return KRIPPENDORFF_ORDINAL
    return (COEFFICIENTS | AT_NODE)[entry["coefficient"]]


@pytest.mark.parametrize("entry", entries(*COEFFICIENTS, *AT_NODE))
def test_a_coefficient_equals_the_outside_value(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    patterns = count_patterns(codes, n_classes=q)
    weights, coefficient = weights_of(entry, q), coefficient_of(entry)
    found = estimate(coefficient, patterns, weights=weights)
    if entry["expected"] is None:
        assert found.value is None
        assert found.status == f"not_estimable: {NO_EXPECTATION}"
        return
    assert found.value == pytest.approx(entry["expected"], abs=entry["tolerance"])
    singles = bool((patterns.counts.sum(axis=1) == 1).any())
    outside = entry.get("se_infinitesimal_jackknife") or (None if singles else entry["se"])
    if outside is None or found.se is None or coefficient in (KRIPPENDORFF_ORDINAL,):
        return
    # Two sources divide by n where others divide by n - 1; a table of two raters is of those.
    slack = 1.01 / (2 * found.n - 2) if entry["data_kind"] == "table_rater1_x_rater2" else 1e-5
    linear = linearised_se(
        ALPHA_OF_MANY if coefficient is KRIPPENDORFF_ALPHA else coefficient,
        patterns,
        weights=weights,
    )
    assert linear == pytest.approx(outside, rel=slack, abs=1e-7)
    assert found.se == pytest.approx(outside, rel=max(0.05, 4 / found.n))


@pytest.mark.parametrize("entry", entries("conger_kappa", "cohen_kappa"))
def test_kappa_by_rater_equals_the_outside_value(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    of = conger_kappa if entry["coefficient"] == "conger_kappa" else cohen_kappa
    found = of(codes, n_classes=q, weights=weights_of(entry, q))
    assert found.value == pytest.approx(entry["expected"], abs=entry["tolerance"])
    # On the two paradox tables one class is all but unused: there the delete-one jackknife and the
    # large-sample error of Fleiss, Cohen and Everitt differ by 6 and 16 per cent.
    if entry["se"] and "paradox" not in entry["name"]:
        assert found.se == pytest.approx(entry["se"], rel=4 / found.n)


CODES = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.integers(-1, 3), min_size=raters, max_size=raters), min_size=3, max_size=25
    )
).map(lambda rows: np.array(rows, dtype=np.int64))  # fmt: skip
ALL = (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC, FLEISS_KAPPA, BRENNAN_PREDIGER)


def same(first: Estimate, second: Estimate) -> None:
    assert (first.value is None) == (second.value is None)
    if first.value is not None:
        assert first.value == pytest.approx(second.value, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(codes=CODES, data=st.data())
def test_order_of_raters_and_items_and_names_of_classes_do_not_matter(
    codes: NDArray[np.int64], data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shuffled = rng.permutation(rng.permutation(codes, axis=0), axis=1)
    renamed = np.append(rng.permutation(4), -1)[codes]
    plain = count_patterns(codes, n_classes=4)
    for coefficient in ALL:
        found = estimate(coefficient, plain)
        same(found, estimate(coefficient, count_patterns(shuffled, n_classes=4)))
        same(found, estimate(coefficient, count_patterns(renamed, n_classes=4)))
        same(found, estimate(coefficient, plain, weights=np.eye(4)))
    same(conger_kappa(codes, n_classes=4), conger_kappa(shuffled, n_classes=4))


@settings(max_examples=60, deadline=None)
@given(codes=CODES, weights=st.sampled_from(WEIGHTS))
def test_alpha_sees_neither_single_ratings_nor_the_scale_of_weights(
    codes: NDArray[np.int64], weights: str
) -> None:
    matrix = weight_matrix(weights, 4)
    more = np.vstack([codes, np.full((2, codes.shape[1]), -1)])
    more[-1, 0] = 2
    found = estimate(KRIPPENDORFF_ALPHA, count_patterns(codes, n_classes=4), weights=matrix)
    same(found, estimate(KRIPPENDORFF_ALPHA, count_patterns(more, n_classes=4), weights=matrix))
    gentler = 0.4 + 0.6 * matrix
    same(found, estimate(KRIPPENDORFF_ALPHA, count_patterns(codes, n_classes=4), weights=gentler))


def test_a_value_below_the_scale_has_no_interval() -> None:
    """Fleiss: shares (2/3, 1/2, 1), mean 13/18; 5/6 observed, 2 x 13/18 x 5/18 expected."""
    found = estimate(
        FLEISS_KAPPA, count_patterns([[0, 0, 1], [0, 1, -1], [0, -1, -1]], n_classes=2)
    )
    assert found.value == pytest.approx(1 - (5 / 6) / (130 / 324))
    assert (found.interval, found.status) == (None, BELOW_THE_SCALE)


def test_gwet_is_brennan_prediger_when_all_classes_are_as_common() -> None:
    codes = [[0, 0], [1, 1], [2, 2], [0, 1], [1, 2], [2, 0]]
    patterns = count_patterns(codes, n_classes=3)
    for name in WEIGHTS:
        matrix = weight_matrix(name, 3)
        same(
            estimate(GWET_AC, patterns, weights=matrix),
            estimate(BRENNAN_PREDIGER, patterns, weights=matrix),
        )


def test_the_interval_is_wide_enough_for_the_bootstrap() -> None:
    """Standard errors of the jackknife and of 400 resamples of the items agree."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 4, 300)
    rated = np.where(rng.random((300, 4)) < 0.7, truth[:, None], rng.integers(0, 4, (300, 4)))
    codes = np.where(rng.random((300, 4)) < 0.2, -1, rated)
    patterns = count_patterns(codes, n_classes=4)
    for coefficient in (*ALL, KRIPPENDORFF_ORDINAL):
        se = estimate(coefficient, patterns).se
        resampled = [
            estimate(coefficient, count_patterns(codes[rng.integers(0, 300, 300)], n_classes=4))
            for _ in range(400)
        ]
        spread = np.std([e.value or 0.0 for e in resampled], ddof=1)
        assert se == pytest.approx(spread, rel=0.12), coefficient.name
