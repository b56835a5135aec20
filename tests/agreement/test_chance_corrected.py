"""Weighted and unweighted coefficients: outside values, special cases and invariances."""

from dataclasses import replace
from typing import Any

import pytest

from calibration.agreement.coefficients import (
    BRENNAN_PREDIGER,
    FLEISS_KAPPA,
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    KRIPPENDORFF_ORDINAL,
    NO_EXPECTATION,
    PERCENT_AGREEMENT,
    SCOTT_PI,
    Coefficient,
    conger_kappa,
    conger_sums,
    estimate,
    sums_of,
)
from calibration.agreement.inference import GWET, gwet_interval, linearised_se
from calibration.agreement.ratings import count_patterns
from calibration.statistics.estimate import FloatArray
from calibration.statistics.intervals import BELOW_THE_SCALE
from tests.agreement.golden import codes_of, entries, weights_of
from tests.agreement.tables import of_codes

COEFFICIENTS = {
    c.name: c
    for c in (
        PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC, FLEISS_KAPPA, BRENNAN_PREDIGER, SCOTT_PI,
    )
} | {"randolph_kappa": BRENNAN_PREDIGER}  # fmt: skip
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
    if outside is None or found.se is None or coefficient is KRIPPENDORFF_ORDINAL:
        return
    # Two sources divide by n where others divide by n - 1; a table of two raters is of those.
    slack = 1.01 / (2 * found.n - 2) if entry["data_kind"] == "table_rater1_x_rater2" else 1e-5
    of_many = ALPHA_OF_MANY if coefficient is KRIPPENDORFF_ALPHA else coefficient
    linear = linearised_se(sums_of(of_many, patterns, weights=weights))
    assert linear == pytest.approx(outside, rel=slack, abs=1e-7)
    assert found.se == pytest.approx(outside, rel=max(0.05, 4 / found.n))


@pytest.mark.parametrize("entry", entries("conger_kappa"))
def test_congers_kappa_equals_the_outside_value(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    found = conger_kappa(codes, n_classes=q, weights=weights_of(entry, q))
    assert found.value == pytest.approx(entry["expected"], abs=entry["tolerance"])
    if entry["se"]:
        assert found.se == pytest.approx(entry["se"], rel=max(0.05, 4 / found.n))


@pytest.mark.parametrize("entry", entries(*set(COEFFICIENTS) - {"randolph_kappa"}, "conger_kappa"))
def test_gwets_error_equals_the_outside_value(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    weights, name = weights_of(entry, q), entry["coefficient"]
    if not entry["se"] or entry["weights"] == "krippendorff_ordinal":
        return
    if name == "conger_kappa":
        sums = conger_sums(codes, n_classes=q, weights=weights)
    else:
        patterns = count_patterns(codes, n_classes=q)
        sums = sums_of(coefficient_of(entry), patterns, weights=weights)
    found = gwet_interval(sums)
    if found.method != GWET:
        assert found.se is None
        return
    # Tables of two raters are published with n where ratings are with n - 1.
    n = found.n
    table = entry["data_kind"] == "table_rater1_x_rater2" or not entry.get("se_tolerance")
    scales = (1.0, ((n - 1) / n) ** 0.5) if table else (1.0,)
    tolerance = entry.get("se_tolerance") or 1e-5
    assert any(abs((found.se or 0) * k - entry["se"]) <= tolerance for k in scales)


def test_a_value_below_the_scale_has_no_interval() -> None:
    """Fleiss: shares (2/3, 1/2, 1), mean 13/18; 5/6 observed, 2 x 13/18 x 5/18 expected."""
    found = of_codes(FLEISS_KAPPA, [[0, 0, 1], [0, 1, -1], [0, -1, -1]], 2)
    assert found.value == pytest.approx(1 - (5 / 6) / (130 / 324))
    assert (found.interval, found.status) == (None, BELOW_THE_SCALE)
