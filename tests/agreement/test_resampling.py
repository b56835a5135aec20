"""Bootstrap of items and clusters: outside values, agreement with the jackknife, edge cases."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from calibration.agreement.coefficients import (
    BRENNAN_PREDIGER,
    FLEISS_KAPPA,
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    KRIPPENDORFF_ORDINAL,
    PERCENT_AGREEMENT,
    SCOTT_PI,
    sums_of,
)
from calibration.agreement.inference import (
    ResampledCoefficient,
    clusters_of,
    linearised_se,
    resample,
)
from calibration.agreement.ratings import count_patterns, patterns_of_items
from tests.agreement.golden import codes_of, entries
from tests.agreement.tables import Codes, of_codes, rated

ALL = (
    PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, KRIPPENDORFF_ORDINAL, GWET_AC, FLEISS_KAPPA,
    BRENNAN_PREDIGER, SCOTT_PI,
)  # fmt: skip


def ratings(n: int, *, seed: int, raters: int = 4, missing: float = 0.2) -> Codes:
    rng = np.random.default_rng(seed)
    return rated(rng, n, [0.8] * raters, (0.4, 0.3, 0.2, 0.1), missing=missing)


def alpha_of(codes: ArrayLike, n_classes: int = 2, **options: Any) -> ResampledCoefficient:
    sums = sums_of(KRIPPENDORFF_ALPHA, count_patterns(codes, n_classes=n_classes))
    (found,) = resample([sums], **({"rng": np.random.default_rng(1)} | options))
    return found


@pytest.mark.parametrize("entry", entries("krippendorff_alpha_item_bootstrap_se"))
def test_the_bootstrap_error_equals_the_outside_value(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    found = alpha_of(codes, q, rng=np.random.default_rng(7), n_resamples=100_000).percentile()
    assert found.se == pytest.approx(entry["expected"], abs=entry["tolerance"])
    low, high, tolerance = (entry["ci"][key] for key in ("low", "high", "tolerance"))
    assert found.interval == pytest.approx((low, high), abs=tolerance)


def test_draws_spread_as_both_standard_errors_say() -> None:
    patterns = count_patterns(ratings(300, seed=1), n_classes=4)
    sums = [sums_of(coefficient, patterns) for coefficient in ALL]
    for found in resample(sums, rng=np.random.default_rng(2), n_resamples=20_000):
        spread = float(np.std(found.draws, ddof=1))
        assert spread == pytest.approx(linearised_se(found.sums), rel=0.05)
        assert spread == pytest.approx(found.seen.se, rel=0.05)
        assert float(np.mean(found.draws)) == pytest.approx(found.seen.value, abs=spread / 4)


def test_bca_equals_scipys() -> None:
    codes = ratings(60, seed=3, missing=0.0)

    def alpha(rows: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
        picked = np.atleast_2d(rows.astype(np.int64))
        values = [of_codes(KRIPPENDORFF_ALPHA, codes[r], 4).value for r in picked]
        return np.array(values if rows.ndim > 1 else values[0])

    outside = stats.bootstrap(
        (np.arange(60),), alpha, n_resamples=1500, method="BCa",
        rng=np.random.default_rng(4), vectorized=True,
    ).confidence_interval  # fmt: skip
    found = alpha_of(codes, 4, rng=np.random.default_rng(5), n_resamples=20_000)
    interval = found.bca().interval
    assert interval == pytest.approx((outside.low, outside.high), abs=0.015)
    assert interval != pytest.approx(found.percentile().interval, abs=0.002)


def test_coefficients_share_their_resamples() -> None:
    patterns = count_patterns(ratings(80, seed=6, missing=0.0), n_classes=4)
    both = [sums_of(coefficient, patterns) for coefficient in (KRIPPENDORFF_ALPHA, FLEISS_KAPPA)]
    together = resample(both, rng=np.random.default_rng(1))
    gap = np.std(together[0].draws - together[1].draws)
    assert gap < 0.1 * np.std(together[0].draws)


def test_copies_of_an_item_in_one_cluster_add_no_evidence() -> None:
    codes = ratings(60, seed=9, missing=0.0)
    patterns, of_item = patterns_of_items(np.repeat(codes, 3, axis=0), n_classes=4)
    cluster = np.repeat(np.arange(60), 3)
    clusters = clusters_of(of_item, cluster, n_patterns=len(patterns.counts))
    copies = sums_of(PERCENT_AGREEMENT, patterns, clusters=clusters)
    (copied,) = resample([copies], rng=np.random.default_rng(1))
    alone = of_codes(PERCENT_AGREEMENT, codes, 4)
    assert copied.seen.interval == pytest.approx(alone.interval)
    assert copied.percentile().method.startswith("percentile bootstrap of clusters")


def test_the_share_above_a_threshold_counts_draws() -> None:
    found = alpha_of(ratings(100, seed=10), 4)
    assert found.at_least(-1.0) == 1.0
    assert found.at_least(1.01) == 0.0
    middle = float(np.median(found.draws))
    assert found.at_least(middle) == pytest.approx(0.5, abs=0.01)


def test_without_any_disagreement_draws_say_nothing() -> None:
    found = alpha_of([[0, 0], [1, 1]] * 20)
    for interval in (found.percentile(), found.bca()):
        assert interval == found.seen
        assert interval.status == "no disagreement seen"
        assert interval.interval is not None
        assert interval.interval[0] < 0.95
    assert found.at_least(0.8) is None


def test_many_resamples_of_one_class_give_no_interval() -> None:
    found = alpha_of([[0, 0]] * 30 + [[0, 1], [1, 1]])
    assert np.isnan(found.draws).any()
    for interval in (found.percentile(), found.bca()):
        assert interval.interval is None
        assert "one class alone is left in" in interval.status


def test_wrong_settings_and_clusters_of_other_patterns_are_refused() -> None:
    codes = [[0, 0], [0, 1]]
    with pytest.raises(ValueError, match="n_resamples"):
        alpha_of(codes, n_resamples=10)
    with pytest.raises(ValueError, match="confidence_level"):
        alpha_of(codes, confidence_level=1.0)
    with pytest.raises(ValueError, match="clusters must have"):
        of_codes(KRIPPENDORFF_ALPHA, codes, 2, clusters=[[1, 2, 3]])
