"""Bootstrap of items and clusters: outside values, agreement with the jackknife, edge cases."""

from typing import Any

import numpy as np
import pytest

from calibration.agreement.coefficients import (
    BRENNAN_PREDIGER,
    FLEISS_KAPPA,
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    PERCENT_AGREEMENT,
    estimate,
    sums_of,
)
from calibration.agreement.inference import clusters_of, linearised_se, resample
from calibration.agreement.ratings import count_patterns, patterns_of_items
from tests.agreement.golden import codes_of, entries

ALL = (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC, FLEISS_KAPPA, BRENNAN_PREDIGER)


def ratings(n: int, *, seed: int, raters: int = 4, missing: float = 0.2) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    shares = (0.4, 0.3, 0.2, 0.1)
    truth = rng.choice(4, size=(n, 1), p=shares)
    guess = rng.choice(4, size=(n, raters), p=shares)
    codes = np.where(rng.random((n, raters)) < 0.8, truth, guess)
    codes[rng.random(codes.shape) < missing] = -1
    return np.asarray(codes)


@pytest.mark.parametrize("entry", entries("krippendorff_alpha_item_bootstrap_se"))
def test_the_bootstrap_error_equals_the_outside_value(entry: dict[str, Any]) -> None:
    codes, q = codes_of(entry)
    (found,) = resample(
        [sums_of(KRIPPENDORFF_ALPHA, count_patterns(codes, n_classes=q))],
        rng=np.random.default_rng(7),
        n_resamples=100_000,
    )
    interval = found.percentile()
    assert interval.se == pytest.approx(entry["expected"], abs=entry["tolerance"])
    assert interval.interval is not None
    outside = entry["ci"]
    assert interval.interval == pytest.approx(
        (outside["low"], outside["high"]), abs=outside["tolerance"]
    )


def test_draws_spread_as_the_linearised_error_says() -> None:
    patterns = count_patterns(ratings(300, seed=1), n_classes=4)
    sums = [sums_of(coefficient, patterns) for coefficient in ALL]
    for found in resample(sums, rng=np.random.default_rng(2), n_resamples=20_000):
        spread = float(np.std(found.draws, ddof=1))
        assert spread == pytest.approx(linearised_se(found.sums), rel=0.05)
        assert float(np.mean(found.draws)) == pytest.approx(found.seen.value, abs=spread / 4)


def test_bca_equals_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    codes = ratings(60, seed=3, missing=0.0)

    def alpha(rows: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
        picked = rows.astype(np.int64)
        if picked.ndim == 1:
            picked = picked[None]
        values = [
            estimate(KRIPPENDORFF_ALPHA, count_patterns(codes[r], n_classes=4)).value
            for r in picked
        ]
        return np.array(values if rows.ndim > 1 else values[0])

    outside = stats.bootstrap(
        (np.arange(60),), alpha, n_resamples=1500, method="BCa",
        rng=np.random.default_rng(4), vectorized=True,
    ).confidence_interval  # fmt: skip
    (found,) = resample(
        [sums_of(KRIPPENDORFF_ALPHA, count_patterns(codes, n_classes=4))],
        rng=np.random.default_rng(5),
        n_resamples=20_000,
    )
    interval = found.bca().interval
    assert interval == pytest.approx((outside.low, outside.high), abs=0.015)
    assert interval != pytest.approx(found.percentile().interval, abs=0.002)


def test_coefficients_share_their_resamples() -> None:
    patterns = count_patterns(ratings(80, seed=6, missing=0.0), n_classes=4)
    both = [sums_of(coefficient, patterns) for coefficient in (KRIPPENDORFF_ALPHA, FLEISS_KAPPA)]
    together = resample(both, rng=np.random.default_rng(1))
    gap = np.std(together[0].draws - together[1].draws)
    assert gap < 0.1 * np.std(together[0].draws)


def test_a_cluster_a_item_is_the_bootstrap_of_items() -> None:
    patterns, of_item = patterns_of_items(ratings(120, seed=8, missing=0.0), n_classes=4)
    clusters = clusters_of(of_item, np.arange(120), n_patterns=len(patterns.counts))
    (by_cluster,) = resample(
        [sums_of(KRIPPENDORFF_ALPHA, patterns, clusters=clusters)],
        rng=np.random.default_rng(1), n_resamples=20_000,
    )  # fmt: skip
    (by_item,) = resample(
        [sums_of(KRIPPENDORFF_ALPHA, patterns)], rng=np.random.default_rng(1), n_resamples=20_000
    )
    assert by_cluster.seen.value == pytest.approx(by_item.seen.value)
    assert by_cluster.seen.se == pytest.approx(by_item.seen.se)
    assert np.std(by_cluster.draws) == pytest.approx(np.std(by_item.draws), rel=0.03)


def test_copies_of_an_item_in_one_cluster_add_no_evidence() -> None:
    codes = ratings(60, seed=9, missing=0.0)
    patterns, of_item = patterns_of_items(np.repeat(codes, 3, axis=0), n_classes=4)
    cluster = np.repeat(np.arange(60), 3)
    clusters = clusters_of(of_item, cluster, n_patterns=len(patterns.counts))
    copies = sums_of(PERCENT_AGREEMENT, patterns, clusters=clusters)
    (copied,) = resample([copies], rng=np.random.default_rng(1))
    alone = estimate(PERCENT_AGREEMENT, count_patterns(codes, n_classes=4))
    assert copied.seen.interval == pytest.approx(alone.interval)
    assert copied.percentile().method.startswith("percentile bootstrap of clusters")


def test_the_share_above_a_threshold_counts_draws() -> None:
    patterns = count_patterns(ratings(100, seed=10), n_classes=4)
    (found,) = resample([sums_of(KRIPPENDORFF_ALPHA, patterns)], rng=np.random.default_rng(1))
    assert found.at_least(-1.0) == 1.0
    assert found.at_least(1.01) == 0.0
    middle = float(np.median(found.draws))
    assert found.at_least(middle) == pytest.approx(0.5, abs=0.01)


def test_without_any_disagreement_draws_say_nothing() -> None:
    patterns = count_patterns([[0, 0], [1, 1]] * 20, n_classes=2)
    (found,) = resample([sums_of(KRIPPENDORFF_ALPHA, patterns)], rng=np.random.default_rng(1))
    for interval in (found.percentile(), found.bca()):
        assert interval == found.seen
        assert interval.status == "no disagreement seen"
        assert interval.interval is not None
        assert interval.interval[0] < 0.95
    assert found.at_least(0.8) is None


@pytest.mark.parametrize(
    "codes", [[[0, -1], [1, -1]], [[0, 0], [0, 0]], np.zeros((0, 2), dtype=int), [[-1, -1]]]
)
def test_too_little_stays_a_status(codes: Any) -> None:
    (found,) = resample(
        [sums_of(KRIPPENDORFF_ALPHA, count_patterns(codes, n_classes=2))],
        rng=np.random.default_rng(1),
    )
    assert found.percentile().value is None
    assert found.bca().status.startswith("not_estimable")
    assert found.at_least(0.5) is None


def test_many_resamples_of_one_class_give_no_interval() -> None:
    codes = [[0, 0]] * 30 + [[0, 1], [1, 1]]
    (found,) = resample(
        [sums_of(KRIPPENDORFF_ALPHA, count_patterns(codes, n_classes=2))],
        rng=np.random.default_rng(1),
    )
    assert np.isnan(found.draws).any()
    for interval in (found.percentile(), found.bca()):
        assert interval.interval is None
        assert "one class alone is left in" in interval.status


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"n_resamples": 10}, "n_resamples"), ({"confidence_level": 1.0}, "confidence_level")],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    patterns = count_patterns([[0, 0], [0, 1]], n_classes=2)
    with pytest.raises(ValueError, match=words):
        resample([sums_of(KRIPPENDORFF_ALPHA, patterns)], rng=np.random.default_rng(1), **settings)


def test_clusters_of_other_patterns_are_refused() -> None:
    with pytest.raises(ValueError, match="clusters must have"):
        estimate(
            KRIPPENDORFF_ALPHA, count_patterns([[0, 0], [0, 1]], n_classes=2), clusters=[[1, 2, 3]]
        )
