"""Every coefficient that follows from class counts: 1 - observed / expected disagreement."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.counts import CountPatterns
from calibration.agreement.intervals import (
    EXACT,
    METHOD,
    NO_DISAGREEMENT,
    NO_SPREAD,
    NO_VARIATION,
    FloatArray,
    check_confidence_level,
    fisher_z_interval,
    jackknife_se,
    unseen_share_bound,
)
from calibration.agreement.refusals import one_item, too_little
from calibration.agreement.weights import checked_weights
from calibration.estimates import OK, Estimate, not_estimable

NO_EXPECTATION = "undefined without variation: every rating names one class; add items of others"
ONE_CLASS_LEFT = "no interval: without one item a single class is left; rate more items"

BELOW_THE_SCALE = (
    "no interval: a value of -1 or less has no place on the Fisher scale; rate more items"
)


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient as a smooth function of sums over items.

    Parameters
    ----------
    name : str
        As in the JSON of `asr agreement`.
    lowest : float
        Lower end of its range.
    features : callable
        Maps class counts, shape (n_patterns, n_classes), and distances, shape (n_classes,
        n_classes) with 0 on the diagonal and 1 at most, to an item's part in each sum, shape
        (n_patterns, n_sums).
    disagreement : callable
        Maps sums, shape (..., n_sums), and the distances to observed and expected disagreement,
        each of shape (...).
    pairable_only : bool
        Whether items rated once are left out of everything.
    """

    name: str
    lowest: float
    features: Callable[[FloatArray, FloatArray], FloatArray]
    disagreement: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
    pairable_only: bool

    def value(self, totals: FloatArray, distances: FloatArray) -> FloatArray:
        """Return the coefficient from sums over items; NaN where nothing is rated or expected."""
        with np.errstate(divide="ignore", invalid="ignore"):
            observed, expected = self.disagreement(totals, distances)
        defined = expected > 0
        return np.where(defined, 1 - observed / np.where(defined, expected, 1.0), np.nan)


def _differing(counts: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ratings of each item and the distance of all its ordered pairs, summed."""
    return counts.sum(axis=1), ((counts @ distances) * counts).sum(axis=1)


def _pair_features(counts: FloatArray, distances: FloatArray) -> FloatArray:
    """Return [rated twice, mean distance of its pairs, rated, share of each class] of each item."""
    ratings, differing = _differing(counts, distances)
    pairable = ratings >= 2
    mean = differing / np.where(pairable, ratings * (ratings - 1), 1)
    rated = np.maximum(ratings, 1)[:, None]
    return np.column_stack([pairable, mean, ratings > 0, counts / rated])


def _nothing_by_chance(totals: FloatArray, _distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    observed = totals[..., 1] / totals[..., 0]
    return observed, np.ones_like(observed)


def _mean_distance(first: FloatArray, second: FloatArray, distances: FloatArray) -> FloatArray:
    return np.asarray(((first @ distances) * second).sum(axis=-1))


def _fleiss(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    shares = totals[..., 3:] / totals[..., 2:3]
    return totals[..., 1] / totals[..., 0], _mean_distance(shares, shares, distances)


def _gwet(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    shares = totals[..., 3:] / totals[..., 2:3]
    q = distances.shape[0]
    close = float((1 - distances).sum()) / (q * (q - 1))
    return totals[..., 1] / totals[..., 0], 1 - close * (shares * (1 - shares)).sum(axis=-1)


def _brennan_prediger(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    observed = totals[..., 1] / totals[..., 0]
    return observed, np.full_like(observed, distances.mean())


def _alpha_features(counts: FloatArray, distances: FloatArray) -> FloatArray:
    """Return [distance of its pairs by its ratings, ratings, ratings of each class] of an item."""
    ratings, differing = _differing(counts, distances)
    return np.column_stack([differing / (ratings - 1), ratings, counts])


def _alpha(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    ratings, of_class = totals[..., 1], totals[..., 2:]
    expected = _mean_distance(of_class, of_class, distances) / (ratings * (ratings - 1))
    return totals[..., 0] / ratings, expected


def _coincidences(counts: FloatArray, _distances: FloatArray) -> FloatArray:
    """Return an item's part in every cell of the coincidence matrix."""
    n, q = counts.shape
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, np.arange(q), np.arange(q)] -= counts
    return np.asarray((pairs / (counts.sum(axis=1) - 1)[:, None, None]).reshape(n, q * q))


def _ordinal_alpha(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Krippendorff's ordinal distance follows the use of the classes between two."""
    q = distances.shape[0]
    table = totals.reshape(*totals.shape[:-1], q, q)
    of_class = table.sum(axis=-1)
    upto = np.cumsum(of_class, axis=-1) - of_class / 2
    apart = (upto[..., :, None] - upto[..., None, :]) ** 2
    ratings = of_class.sum(axis=-1)
    expected = (of_class[..., :, None] * of_class[..., None, :] * apart).sum(axis=(-2, -1))
    # On the same scale as other distances: none above 1.
    most = np.maximum(apart.max(axis=(-2, -1)), np.finfo(float).tiny)
    observed = (table * apart).sum(axis=(-2, -1)) / ratings
    return observed / most, expected / (ratings * (ratings - 1)) / most


PERCENT_AGREEMENT = Coefficient(
    "percent_agreement", 0.0, _pair_features, _nothing_by_chance, pairable_only=True
)
KRIPPENDORFF_ALPHA = Coefficient(
    "krippendorff_alpha", -1.0, _alpha_features, _alpha, pairable_only=True
)
KRIPPENDORFF_ORDINAL = Coefficient(
    "krippendorff_alpha", -1.0, _coincidences, _ordinal_alpha, pairable_only=True
)
GWET_AC = Coefficient("gwet_ac", -1.0, _pair_features, _gwet, pairable_only=False)
FLEISS_KAPPA = Coefficient("fleiss_kappa", -1.0, _pair_features, _fleiss, pairable_only=False)
# Scott's pi is this on two raters; items that one of them left out say nothing.
SCOTT_PI = Coefficient("scott_pi", -1.0, _pair_features, _fleiss, pairable_only=True)
BRENNAN_PREDIGER = Coefficient(
    "brennan_prediger", -1.0, _pair_features, _brennan_prediger, pairable_only=False
)


def estimate(
    coefficient: Coefficient,
    patterns: CountPatterns,
    *,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate one coefficient.

    Items are a random sample and independent, raters fixed, ratings missing at random.

    Parameters
    ----------
    coefficient : Coefficient
        For instance `KRIPPENDORFF_ALPHA`.
    patterns : CountPatterns
        From `count_patterns`.
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        With a jackknife Fisher-z interval, t with n - 1 df, n = items with two or more ratings.
        When no item differs from the others in what it adds, the interval is the exact bound on
        the share of items that do, at the expected disagreement seen, and the status says so.
        ``not_estimable`` when no item is rated twice or nothing but one class was used.

    Raises
    ------
    ValueError
        If the weights are none, or `confidence_level` is outside (0, 1).

    Examples
    --------
    Two of three items agree, each class has half of the ratings: Fleiss expects 1/2.

    >>> from calibration.agreement.counts import count_patterns
    >>> estimate(FLEISS_KAPPA, count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)).value
    0.33333
    """
    check_confidence_level(confidence_level)
    refused = too_little(patterns, confidence_level)
    if refused is not None:
        return refused
    counts, items, distances = table_of(coefficient, patterns, weights)
    return from_features(
        coefficient, coefficient.features(counts, distances), items, distances,
        n=patterns.pairable().n_items, alike=all_alike(counts, distances),
        confidence_level=confidence_level,
    )  # fmt: skip


def from_features(
    coefficient: Coefficient,
    features: FloatArray,
    items: NDArray[np.int64],
    distances: FloatArray,
    *,
    n: int,
    alike: bool,
    confidence_level: float,
) -> Estimate:
    """Estimate a coefficient from each pattern's part in its sums.

    Parameters
    ----------
    features : float array, shape (n_patterns, n_sums)
    items : int array, shape (n_patterns,)
        Items that show the pattern.
    n : int
        Items with two or more ratings.
    alike : bool
        Whether every one of them shows the same disagreement: the interval is the exact bound.
    """
    totals = items @ features
    observed, expected = (float(part) for part in coefficient.disagreement(totals, distances))
    if not expected > 0:
        return not_estimable(NO_EXPECTATION, method=METHOD, n=n, confidence_level=confidence_level)
    return from_left_out(
        1 - observed / expected, coefficient.value(totals - features, distances), items,
        observed=observed, expected=expected, lowest=coefficient.lowest, n=n, alike=alike,
        confidence_level=confidence_level,
    )  # fmt: skip


def from_left_out(
    value: float,
    left_out: FloatArray,
    items: NDArray[np.int64],
    *,
    observed: float,
    expected: float,
    lowest: float,
    n: int,
    alike: bool,
    confidence_level: float,
) -> Estimate:
    """Estimate a coefficient from its values without one item of each pattern."""
    if n == 1:
        return one_item(value, confidence_level)
    status, method, interval, se = OK, METHOD, None, None
    spread = 0.0 if alike else jackknife_se(left_out, items)
    if spread < NO_SPREAD:
        share = unseen_share_bound(n, confidence_level=confidence_level)
        kept = observed * (1 - share)
        low, high = 1 - (kept + share) / expected, 1 - kept / expected
        # With items rated once a value may lie below the range; its interval still holds it.
        interval, method = (max(min(lowest, value), low), high), EXACT
        status = NO_DISAGREEMENT if observed == 0 else NO_VARIATION
    elif np.isnan(spread):
        status = ONE_CLASS_LEFT
    elif value <= -1:
        se, status = spread, BELOW_THE_SCALE
    else:
        se = spread
        interval = fisher_z_interval(
            value, se, df=n - 1, confidence_level=confidence_level, lowest=lowest
        )
    return Estimate(
        value=value,
        interval=interval,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )


def table_of(
    coefficient: Coefficient, patterns: CountPatterns, weights: ArrayLike | None
) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
    """Return the counts that enter a coefficient, the items that show them, and distances."""
    distances = distances_of(weights, patterns.counts.shape[1])
    keep = patterns.counts.sum(axis=1) >= (2 if coefficient.pairable_only else 1)
    return patterns.counts[keep].astype(np.float64), patterns.multiplicity[keep], distances


def distances_of(weights: ArrayLike | None, n_classes: int) -> FloatArray:
    """Return 1 minus the agreement weights; classes agree or do not where there are none."""
    if weights is None:
        return np.asarray(1 - np.eye(n_classes))
    return np.asarray(1 - checked_weights(weights, n_classes=n_classes))


def all_alike(counts: FloatArray, distances: FloatArray) -> bool:
    """Return whether the mean distance of its pairs is the same for every item."""
    ratings, differing = _differing(counts, distances)
    pairable = ratings >= 2
    mean = differing[pairable] / (ratings[pairable] * (ratings[pairable] - 1))
    return bool(np.ptp(mean) < NO_SPREAD)
