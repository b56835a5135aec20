import numpy as np
import pytest

from calibration.agreement.coefficients import (
    FLEISS_KAPPA,
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    PERCENT_AGREEMENT,
    Coefficient,
    estimate,
)
from calibration.agreement.inference import clusters_of, estimate_weighted
from calibration.agreement.ratings import patterns_of_items
from tests.agreement.tables import of_codes, rated

ALL = [PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC, FLEISS_KAPPA]
CODES = rated(np.random.default_rng(5), 60, [0.7] * 3, [1 / 3] * 3, missing=0.2)


@pytest.mark.parametrize("coefficient", ALL)
def test_equal_weights_change_nothing(coefficient: Coefficient) -> None:
    plain = of_codes(coefficient, CODES, 3)
    weighted = estimate_weighted(coefficient, CODES, np.full(60, 7.5), n_classes=3)
    assert weighted.value == pytest.approx(plain.value)
    assert weighted.interval == pytest.approx(plain.interval, abs=2e-4)
    assert (weighted.n, weighted.method) == (plain.n, plain.method + ", weighted")


@pytest.mark.parametrize("coefficient", ALL)
def test_an_item_of_weight_three_stands_for_three(coefficient: Coefficient) -> None:
    """In a large sample: alpha's correction for few ratings counts real items."""
    codes = np.tile(CODES, (40, 1))
    often = np.arange(len(codes)) % 60 < 20
    weighted = estimate_weighted(coefficient, codes, np.where(often, 3.0, 1.0), n_classes=3)
    repeated = np.concatenate([codes, codes[often], codes[often]])
    plain = of_codes(coefficient, repeated, 3)
    assert weighted.value == pytest.approx(plain.value, abs=2e-4)
    # Repeating items is no new information: the interval is that of the items there are.
    assert (weighted.half_width or 0) > (plain.half_width or 1)


def test_clusters_are_left_out_whole() -> None:
    tasks = np.repeat(np.arange(20), 3)
    patterns, of_item = patterns_of_items(CODES, n_classes=3)
    clusters = clusters_of(of_item, tasks, n_patterns=len(patterns.counts))
    expected = estimate(KRIPPENDORFF_ALPHA, patterns, clusters=clusters)
    found = estimate_weighted(KRIPPENDORFF_ALPHA, CODES, np.ones(60), n_classes=3, cluster=tasks)
    assert found.value == pytest.approx(expected.value)
    assert found.n == expected.n
    assert found.se == pytest.approx(expected.se, rel=1e-6)


def test_what_is_no_weight_is_refused() -> None:
    for wrong in (np.zeros(60), np.ones(59), np.full(60, np.inf)):
        with pytest.raises(ValueError, match="item_weights must"):
            estimate_weighted(GWET_AC, CODES, wrong, n_classes=3)
    # Without a second rating there is nothing to weigh.
    assert not estimate_weighted(GWET_AC, [[0, -1], [1, -1]], [1, 2], n_classes=2).ok
