"""Intervals and differences of coefficients: bootstrap, jackknife, linearisation, influence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.coefficients import (
    BRENNAN_PREDIGER,
    CONGER_KAPPA,
    FLEISS_KAPPA,
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    KRIPPENDORFF_ORDINAL,
    PERCENT_AGREEMENT,
    SCOTT_PI,
    Coefficient,
    all_alike,
    cohen_kappa,
    conger_features,
    conger_kappa,
    distances_of,
    distinct_rows,
    estimate,
    from_features,
    light_kappa,
    table_of,
)
from calibration.agreement.ratings import (
    MISSING,
    CountPatterns,
    class_counts,
    count_patterns,
    patterns_of_items,
    too_little,
    validated_codes,
)
from calibration.statistics.estimate import (
    OK,
    Estimate,
    FloatArray,
    check_confidence_level,
    not_estimable,
)
from calibration.statistics.intervals import METHOD, NO_SPREAD, jackknife_se, t_interval
from calibration.statistics.resampling import bca_shares, bias_and_skew, resampled_sums

PERCENTILE, BCA = "percentile bootstrap", "BCa bootstrap"

# Resamples without a value may be left out as long as they are this rare.
MAX_UNDEFINED = 0.05

TOO_MANY_UNDEFINED = (
    "no interval: one class alone is left in {share:.0%} of the resamples; rate more items"
)


DIFFERENCE = "difference on the same items, delete-one jackknife, t"


GWET = "Gwet's t interval"


ORDINAL = "krippendorff_ordinal"

INTERVALS = ("jackknife", "percentile", "bca", "gwet")

ONLY_ALPHA = "Krippendorff's ordinal distances are defined for alpha; take --weights ordinal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Costly:
    """An item and what it costs a coefficient.

    Parameters
    ----------
    item : int
        Row of the ratings.
    cost : float
        The coefficient without the item minus the coefficient with it: above 0 where the item
        lowers it.
    """

    item: int
    cost: float


def costly_items(
    coefficient: Coefficient,
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    limit: int = 20,
) -> tuple[Costly, ...]:
    """Rank the items by what they cost a coefficient, the dearest first.

    Parameters
    ----------
    coefficient : Coefficient
        For instance `KRIPPENDORFF_ALPHA`.
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes, weights
        As in `estimate`.
    limit : int, default 20
        Items to name at most.

    Returns
    -------
    tuple of Costly
        Items that lower the coefficient, equal ones in the order of the ratings; empty where
        the coefficient is not defined.

    Examples
    --------
    Without the third item the two others agree in everything:

    >>> from calibration.agreement.coefficients import PERCENT_AGREEMENT
    >>> costly_items(PERCENT_AGREEMENT, [[0, 0], [1, 1], [0, 1]], n_classes=2)
    (Costly(item=2, cost=0.33333),)
    """
    patterns, of_item = patterns_of_items(codes, n_classes=n_classes)
    if too_little(patterns, 0.95) is not None:
        return ()
    features, distances = unit_features(coefficient, patterns, weights)
    totals = patterns.multiplicity @ features
    whole = coefficient.value(totals, distances)
    cost = np.nan_to_num(coefficient.value(totals - features, distances) - whole)[of_item]
    order = np.argsort(-cost, kind="stable")[:limit]
    return tuple(Costly(item=int(k), cost=float(cost[k])) for k in order if cost[k] > NO_SPREAD)


def unit_features(
    coefficient: Coefficient, patterns: CountPatterns, weights: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Return each pattern's part in the sums, zeros where it does not enter, and distances."""
    distances = distances_of(weights, patterns.counts.shape[1])
    counts = patterns.counts.astype(np.float64)
    enters = counts.sum(axis=1) >= (2 if coefficient.pairable_only else 1)
    some = coefficient.features(counts[enters], distances)
    features = np.zeros((len(counts), some.shape[1]))
    features[enters] = some
    return features, distances


def clusters_of(pattern: ArrayLike, cluster: ArrayLike, *, n_patterns: int) -> NDArray[np.int64]:
    """Count the items of each pattern in each cluster.

    Parameters
    ----------
    pattern : array-like of int, shape (n_items,)
        Pattern of each item, from `patterns_of_items`.
    cluster : array-like, shape (n_items,)
        What an item belongs to, for instance its task.
    n_patterns : int
        Number of patterns.

    Returns
    -------
    int array, shape (n_clusters, n_patterns)
        Clusters in sorted order.

    Examples
    --------
    >>> clusters_of([0, 1, 1], ["a", "a", "b"], n_patterns=2).tolist()
    [[1, 1], [0, 1]]
    """
    names, of_item = np.unique(np.asarray(cluster), return_inverse=True)
    cells = of_item * n_patterns + np.asarray(pattern, dtype=np.int64)
    counted = np.bincount(cells, minlength=names.size * n_patterns)
    return counted.reshape(names.size, n_patterns).astype(np.int64)


def estimate_by_cluster(
    coefficient: Coefficient,
    patterns: CountPatterns,
    clusters: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a coefficient with the jackknife that leaves out a cluster at a time.

    The value is that of `estimate`; clusters are a random sample and independent, items of one
    may be alike.

    Parameters
    ----------
    coefficient, patterns, weights, confidence_level
        As in `estimate`; the patterns from `patterns_of_items`.
    clusters : array-like of int, shape (n_clusters, n_patterns)
        From `clusters_of`.

    Returns
    -------
    Estimate
        With a Fisher-z interval, t of n - 1 degrees of freedom, n = clusters with an item rated
        twice.

    Raises
    ------
    ValueError
        If the clusters are not those of the patterns, or as `estimate`.

    Examples
    --------
    The value does not depend on the clusters:

    >>> from calibration.agreement.coefficients import PERCENT_AGREEMENT
    >>> from calibration.agreement.ratings import patterns_of_items
    >>> patterns, of_item = patterns_of_items([[0, 0], [0, 1], [1, 1]] * 2, n_classes=2)
    >>> cluster = clusters_of(of_item, [1, 1, 2, 2, 3, 3], n_patterns=3)
    >>> found = estimate_by_cluster(PERCENT_AGREEMENT, patterns, cluster)
    >>> found.value, found.n
    (0.66667, 3)
    """
    check_confidence_level(confidence_level)
    units = np.asarray(clusters, dtype=np.float64)
    if units.ndim != 2 or units.shape[1] != len(patterns.counts):
        raise ValueError(
            f"clusters must have {len(patterns.counts)} columns, got shape {units.shape!r}"
        )
    refused = too_little(patterns, confidence_level)
    if refused is not None:
        return refused
    pairable = patterns.counts.sum(axis=1) >= 2
    units = units[(units * pairable).sum(axis=1) > 0] if coefficient.pairable_only else units
    distances = distances_of(weights, patterns.counts.shape[1])
    found = from_features(
        coefficient, units @ unit_features(coefficient, patterns, weights)[0],
        np.ones(len(units), dtype=np.int64), distances,
        n=int(((units * pairable).sum(axis=1) > 0).sum()),
        alike=all_alike(patterns.counts.astype(np.float64), distances),
        confidence_level=confidence_level,
    )  # fmt: skip
    return replace(found, method=f"{found.method}, by cluster")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResampledCoefficient:
    """A coefficient on resamples, beside its value on the ratings as they are.

    Parameters
    ----------
    seen : Estimate
        With the default interval, the jackknife's on the Fisher z scale, over the same units.
    draws : float array, shape (n_resamples,)
        NaN where a resample holds one class only.
    left_out : float array, shape (n_units,)
        The coefficient without one of the units drawn: items of one pattern, or a cluster.
    multiplicity : int array, shape (n_units,)
        Units like it.
    unit : str
        ``"items"`` or ``"clusters"``.
    """

    seen: Estimate
    draws: FloatArray
    left_out: FloatArray
    multiplicity: NDArray[np.int64]
    unit: str

    def percentile(self) -> Estimate:
        """Return the interval between quantiles of the draws."""
        tail = (1 - self.seen.confidence_level) / 2
        return self._between(tail, 1 - tail, PERCENTILE)

    def bca(self) -> Estimate:
        """Return the bias-corrected and accelerated interval.

        References
        ----------
        Efron (1987), J. Am. Stat. Assoc. 82. https://doi.org/10.1080/01621459.1987.10478410
        """
        if self.seen.value is None or self.seen.se is None:
            return self.seen
        known = self.draws[~np.isnan(self.draws)]
        centred = self.multiplicity @ self.left_out / self.multiplicity.sum() - self.left_out
        tail = (1 - self.seen.confidence_level) / 2
        low, high = bca_shares(
            np.array([tail, 1 - tail]),
            *bias_and_skew(known, self.seen.value, centred, self.multiplicity),
        )
        return self._between(float(low), float(high), BCA)

    def at_least(self, threshold: float) -> float | None:
        """Return the share of draws that reach a threshold; None where draws say nothing.

        Without any disagreement every draw agrees, which is no evidence about those unseen.
        """
        if self.seen.se is None:
            return None
        known = self.draws[~np.isnan(self.draws)]
        return float(np.mean(known >= threshold))

    def _between(self, low: float, high: float, name: str) -> Estimate:
        if self.seen.value is None or self.seen.se is None:
            return self.seen
        undefined = float(np.isnan(self.draws).mean())
        known = self.draws[~np.isnan(self.draws)]
        method = f"{name} of {self.unit}, {self.draws.size:,} resamples"
        if undefined > MAX_UNDEFINED:
            status = TOO_MANY_UNDEFINED.format(share=undefined).replace("%", " %")
            return replace(self.seen, interval=None, method=method, status=status)
        ends = np.quantile(known, [low, high])
        return replace(
            self.seen,
            interval=(float(ends[0]), float(ends[1])),
            method=method,
            se=float(np.std(known, ddof=1)),
        )


def resample(
    coefficients: Sequence[Coefficient],
    patterns: CountPatterns,
    *,
    rng: np.random.Generator,
    n_resamples: int = 2000,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> tuple[ResampledCoefficient, ...]:
    """Draw items, or clusters of items, with replacement and compute every coefficient.

    All coefficients see the same resamples, so what holds between two of them can be read off.
    Items (or clusters) are a random sample and independent; raters are fixed.

    Parameters
    ----------
    coefficients : sequence of Coefficient
        For instance ``[KRIPPENDORFF_ALPHA, GWET_AC]``.
    patterns : CountPatterns
        From `count_patterns`; with `clusters` from `patterns_of_items`.
    rng : numpy.random.Generator
        Source of the draws.
    n_resamples : int, default 2000
        Number of resamples.
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.
    clusters : array-like of int, shape (n_clusters, n_patterns), optional
        How many items of each pattern a cluster holds, from `clusters_of`.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    tuple of ResampledCoefficient
        In the order of `coefficients`.

    Raises
    ------
    ValueError
        If `n_resamples` is below 100, the clusters are not those of the patterns, or as
        `estimate`.

    Notes
    -----
    A resample is a multinomial draw of patterns and a coefficient is a function of sums over
    them, so the cost follows the patterns and not the items.

    Examples
    --------
    >>> from calibration.agreement.coefficients import PERCENT_AGREEMENT
    >>> from calibration.agreement.ratings import count_patterns
    >>> seen = count_patterns([[0, 0]] * 60 + [[0, 1]] * 40, n_classes=2)
    >>> found, = resample([PERCENT_AGREEMENT], seen, rng=np.random.default_rng(1))
    >>> round(float(np.mean(found.draws)), 2), round(found.percentile().se, 2)
    (0.6, 0.05)
    """
    check_confidence_level(confidence_level)
    if n_resamples < 100:
        raise ValueError(f"n_resamples must be at least 100, got {n_resamples!r}")
    units = None if clusters is None else np.asarray(clusters, dtype=np.float64)
    if units is not None and (units.ndim != 2 or units.shape[1] != len(patterns.counts)):
        raise ValueError(
            f"clusters must have {len(patterns.counts)} columns, got shape {units.shape!r}"
        )
    distances = distances_of(weights, patterns.counts.shape[1])
    each = [unit_features(c, patterns, weights)[0] for c in coefficients]
    if units is not None:
        each = [units @ features for features in each]
        seen = [
            estimate_by_cluster(
                c, patterns, units, weights=weights, confidence_level=confidence_level
            )
            for c in coefficients
        ]
        multiplicity = np.ones(len(units), dtype=np.int64)
    else:
        seen = [
            estimate(c, patterns, weights=weights, confidence_level=confidence_level)
            for c in coefficients
        ]
        multiplicity = patterns.multiplicity
    return _resampled(
        list(zip(coefficients, each, seen, strict=True)),
        multiplicity,
        distances,
        unit="items" if units is None else "clusters",
        n_resamples=n_resamples,
        rng=rng,
    )


def resample_conger(
    codes: ArrayLike,
    *,
    n_classes: int,
    rng: np.random.Generator,
    n_resamples: int = 2000,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> ResampledCoefficient:
    """Draw items with replacement and compute Conger's kappa; with two raters it is Cohen's.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes, rng, n_resamples, weights, confidence_level
        As in `resample`.

    Raises
    ------
    ValueError
        As `resample` and `conger_kappa`.

    Examples
    --------
    >>> found = resample_conger(
    ...     [[0, 0], [1, 0], [1, 1]] * 20, n_classes=2, rng=np.random.default_rng(1)
    ... )
    >>> found.seen.value
    0.4
    """
    if n_resamples < 100:
        raise ValueError(f"n_resamples must be at least 100, got {n_resamples!r}")
    seen = conger_kappa(
        codes, n_classes=n_classes, weights=weights, confidence_level=confidence_level
    )
    if seen.se is None:
        nothing = np.full(n_resamples, np.nan)
        alone = np.ones(1, dtype=np.int64)
        return ResampledCoefficient(
            seen=seen, draws=nothing, left_out=nothing[:1], multiplicity=alone, unit="items"
        )
    rows = distinct_rows(codes, n_classes=n_classes)
    distances = distances_of(weights, n_classes)
    parts = [(CONGER_KAPPA, conger_features(rows, distances), seen)]
    (found,) = _resampled(
        parts, rows.items, distances, unit="items", n_resamples=n_resamples, rng=rng
    )
    return found


def _resampled(
    parts: Sequence[tuple[Coefficient, FloatArray, Estimate]],
    multiplicity: NDArray[np.int64],
    distances: FloatArray,
    *,
    unit: str,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[ResampledCoefficient, ...]:
    """Draw units once for all coefficients; a part is a coefficient, its features, its value."""
    edges = np.cumsum([0, *(features.shape[1] for _, features, _ in parts)])
    features = np.hstack([np.zeros((len(multiplicity), 0)), *(f for _, f, _ in parts)])
    totals = resampled_sums(features, multiplicity, n_resamples=n_resamples, rng=rng)
    return tuple(
        ResampledCoefficient(
            seen=seen,
            draws=coefficient.value(totals[:, start:end], distances),
            left_out=coefficient.value(multiplicity @ of_unit - of_unit, distances),
            multiplicity=multiplicity,
            unit=unit,
        )
        for (coefficient, of_unit, seen), start, end in zip(parts, edges, edges[1:], strict=False)
    )


def difference(
    first: Coefficient,
    second: Coefficient,
    patterns: CountPatterns,
    *,
    first_weights: ArrayLike | None = None,
    second_weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate how far one coefficient lies above another on the same ratings.

    For instance weighted alpha minus unweighted: the part of disagreement that is near misses.

    Parameters
    ----------
    first, second : Coefficient
        The difference is `first` minus `second`.
    patterns : CountPatterns
        From `count_patterns`.
    first_weights, second_weights : array-like, optional
        Agreement weights of each.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        With a jackknife t interval over items; they enter both, so what they share cancels.

    References
    ----------
    Gwet (2016), Educ. Psychol. Meas. 76. https://doi.org/10.1177/0013164415596420

    Examples
    --------
    >>> from calibration.agreement.coefficients import FLEISS_KAPPA, KRIPPENDORFF_ALPHA
    >>> from calibration.agreement.ratings import count_patterns
    >>> seen = count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)
    >>> difference(KRIPPENDORFF_ALPHA, FLEISS_KAPPA, seen).value
    0.11111
    """
    check_confidence_level(confidence_level)
    refused = too_little(patterns, confidence_level)
    if refused is not None:
        return refused
    parts = (
        (first, *unit_features(first, patterns, first_weights)),
        (second, *unit_features(second, patterns, second_weights)),
    )
    n = patterns.pairable().n_items
    return difference_of_parts(parts, patterns.multiplicity, n, confidence_level)


def change(
    coefficient: Coefficient,
    before: ArrayLike,
    after: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate how far a coefficient moved between two rounds of ratings of the same items.

    Parameters
    ----------
    coefficient : Coefficient
        For instance `KRIPPENDORFF_ALPHA`.
    before, after : array-like of int, shapes (n_items, n_raters) and (n_items, other raters)
        Ratings of the two rounds, the same item in the same row.
    n_classes, weights, confidence_level
        As in `estimate`.

    Returns
    -------
    Estimate
        `after` minus `before` with a jackknife t interval over items, so that an item which is
        hard in both rounds cancels.

    Raises
    ------
    ValueError
        If the two have different numbers of items, or as `estimate`.

    Examples
    --------
    >>> from calibration.agreement.coefficients import PERCENT_AGREEMENT
    >>> change(
    ...     PERCENT_AGREEMENT, [[0, 0], [0, 1], [1, 1]], [[0, 0], [1, 1], [1, 1]], n_classes=2
    ... ).value
    0.33333
    """
    check_confidence_level(confidence_level)
    rounds = [class_counts(codes, n_classes=n_classes) for codes in (before, after)]
    if len(rounds[0]) != len(rounds[1]):
        raise ValueError(
            f"both rounds need the same items, got {len(rounds[0])} and {len(rounds[1])} rows"
        )
    rows, items = np.unique(np.hstack(rounds), axis=0, return_counts=True)
    parts = []
    for counts in (rows[:, n_classes:], rows[:, :n_classes]):
        patterns = CountPatterns(
            counts=counts,
            multiplicity=items.astype(np.int64),
            n_items=len(rounds[0]),
            n_ratings=int(items @ counts.sum(axis=1)),
        )
        refused = too_little(patterns, confidence_level)
        if refused is not None:
            return refused
        parts.append((coefficient, *unit_features(coefficient, patterns, weights)))
    twice = (rows[:, :n_classes].sum(axis=1) >= 2) | (rows[:, n_classes:].sum(axis=1) >= 2)
    n = int(items[twice].sum())
    return difference_of_parts((parts[0], parts[1]), items.astype(np.int64), n, confidence_level)


CoefficientPart = tuple[Coefficient, FloatArray, FloatArray]


def difference_of_parts(
    parts: tuple[CoefficientPart, CoefficientPart],
    items: NDArray[np.int64],
    n: int,
    confidence_level: float,
) -> Estimate:
    """Estimate the first coefficient less the second from what each pattern adds to their sums."""
    whole, without = [], []
    for coefficient, features, distances in parts:
        totals = items @ features
        whole.append(float(coefficient.value(totals, distances)))
        without.append(coefficient.value(totals - features, distances))
    if not np.isfinite(whole).all():
        why = "one of the two is undefined without variation; add items of other classes"
        return not_estimable(why, method=DIFFERENCE, n=n, confidence_level=confidence_level)
    return jackknife_difference(
        whole[0] - whole[1],
        without[0] - without[1],
        items,
        n=n,
        confidence_level=confidence_level,
        one_class="no interval: without one item a single class is left; rate more items",
        unchanged="no interval: no item adds more to one than to the other; rate more items",
    )


def jackknife_difference(
    value: float,
    left_out: FloatArray,
    items: NDArray[np.int64],
    *,
    n: int,
    confidence_level: float,
    one_class: str,
    unchanged: str,
) -> Estimate:
    """Return a difference of two coefficients with its t interval, cut to [-2, 2].

    Parameters
    ----------
    value : float
    left_out : float array, shape (n_patterns,)
        The difference without one item of each pattern.
    items : int array, shape (n_patterns,)
        Items that show the pattern.
    n : int
        Items in all; the interval has n - 1 degrees of freedom.
    confidence_level : float
    one_class, unchanged : str
        Status where the difference is undefined without some item, and where no item moves it.
    """
    interval, se, status = None, None, OK
    spread = jackknife_se(left_out, items)
    if n < 2 or not np.isfinite(spread):
        status = one_class
    elif spread < NO_SPREAD:
        status = unchanged
    else:
        se = spread
        interval = t_interval(
            value, se, df=n - 1, confidence_level=confidence_level, lowest=-2.0, highest=2.0
        )
    return Estimate(
        value=value,
        interval=interval,
        n=n,
        method=DIFFERENCE,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )


def linearised_se(
    coefficient: Coefficient, patterns: CountPatterns, *, weights: ArrayLike | None = None
) -> float:
    """Return the standard error from the influence of each item, the infinitesimal jackknife.

    Notes
    -----
    The derivative of the coefficient in each sum is taken along the imaginary axis, which is
    exact to rounding (the coefficients are rational functions of the sums).

    References
    ----------
    Squire and Trapp (1998), SIAM Review 40. https://doi.org/10.1137/S003614459631241X

    Examples
    --------
    The mean of 1, 1, 0 over three items: influences 1/3, 1/3, -2/3, so sqrt((6/9) / (3 * 2)):

    >>> from calibration.agreement.coefficients import PERCENT_AGREEMENT
    >>> from calibration.agreement.ratings import count_patterns
    >>> linearised_se(PERCENT_AGREEMENT, count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2))
    0.33333
    """
    counts, items, distances = table_of(coefficient, patterns, weights)
    influence = _influence(coefficient, coefficient.features(counts, distances), items, distances)
    return _se(influence, items)


def _influence(
    coefficient: Coefficient,
    features: FloatArray,
    items: NDArray[np.int64],
    distances: FloatArray,
) -> FloatArray:
    """Return what an item of each pattern moves the coefficient by, times n; the mean is 0."""
    totals = items @ features
    steps = totals + 1e-30j * np.eye(totals.size)
    observed, expected = coefficient.disagreement(steps, distances)
    gradient = np.imag(1 - observed / expected) / 1e-30
    n = int(items.sum())
    influence = n * (features @ gradient)
    return np.asarray(influence - items @ influence / n)


def _se(influence: FloatArray, items: NDArray[np.int64]) -> float:
    n = int(items.sum())
    return float(np.sqrt(items @ influence**2 / (n * (n - 1))))


def gwet_interval(
    coefficient: Coefficient,
    patterns: CountPatterns,
    *,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a coefficient with Gwet's interval: value -+ t SE, cut at -1 and 1.

    The error is that of irrCAC and AgreeStat, for comparison with them. It treats the number of
    items rated twice as fixed, which overstates it where many items are rated once.

    Parameters
    ----------
    coefficient, patterns, weights, confidence_level
        As in `estimate`.

    Returns
    -------
    Estimate
        With t of n - 1 degrees of freedom, n = items with a rating; where the default interval
        is exact or missing, that one.

    References
    ----------
    Gwet (2008), Brit. J. Math. Stat. Psychol. 61. https://doi.org/10.1348/000711006X126600

    Examples
    --------
    Every item is rated twice, so this is the linearised error:

    >>> from calibration.agreement.coefficients import PERCENT_AGREEMENT
    >>> from calibration.agreement.ratings import count_patterns
    >>> seen = count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)
    >>> gwet_interval(PERCENT_AGREEMENT, seen).se
    0.33333
    """
    seen = estimate(coefficient, patterns, weights=weights, confidence_level=confidence_level)
    if seen.value is None or seen.se is None:
        return seen
    as_gwet = _AS_GWET.get(coefficient.name, coefficient)
    counts, items, distances = table_of(as_gwet, patterns, weights)
    return _with_gwets(
        seen, as_gwet, as_gwet.features(counts, distances), items, distances,
        twice=counts.sum(axis=1) >= 2, confidence_level=confidence_level,
    )  # fmt: skip


def gwet_conger(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate Conger's kappa with Gwet's interval.

    Parameters
    ----------
    codes, n_classes, weights, confidence_level
        As in `conger_kappa`.

    Returns
    -------
    Estimate
        As `gwet_interval`.

    Examples
    --------
    >>> gwet_conger([[0, 0], [1, 0], [1, 1], [0, 0]], n_classes=2).value
    0.5
    """
    seen = conger_kappa(
        codes, n_classes=n_classes, weights=weights, confidence_level=confidence_level
    )
    if seen.value is None or seen.se is None:
        return seen
    rows, distances = distinct_rows(codes, n_classes=n_classes), distances_of(weights, n_classes)
    return _with_gwets(
        seen, CONGER_KAPPA, conger_features(rows, distances), rows.items, distances,
        twice=rows.given.sum(axis=(1, 2)) >= 2, confidence_level=confidence_level,
    )  # fmt: skip


def _with_gwets(
    seen: Estimate,
    coefficient: Coefficient,
    features: FloatArray,
    items: NDArray[np.int64],
    distances: FloatArray,
    *,
    twice: NDArray[np.bool_],
    confidence_level: float,
) -> Estimate:
    value, n = seen.value or 0.0, int(items.sum())
    # kappa = (p_a - p_e) / (1 - p_e) moves with the items rated twice as if they were given.
    fixed = value * (twice / (items[twice].sum() / n) - 1)
    se = _se(_influence(coefficient, features, items, distances) + fixed, items)
    interval = t_interval(
        value, se, df=n - 1, confidence_level=confidence_level,
        lowest=coefficient.lowest, highest=1.0,
    )  # fmt: skip
    return replace(seen, interval=interval, se=se, method=GWET)


def _alpha_of_many(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Leave out what corrects the expected disagreement for few ratings, as irrCAC's error does."""
    shares = totals[..., 2:] / totals[..., 1:2]
    return totals[..., 0] / totals[..., 1], ((shares @ distances) * shares).sum(axis=-1)


# What irrCAC linearises where it is not the coefficient itself.
_AS_GWET = {
    KRIPPENDORFF_ALPHA.name: replace(KRIPPENDORFF_ALPHA, disagreement=_alpha_of_many),
    PERCENT_AGREEMENT.name: replace(PERCENT_AGREEMENT, pairable_only=False),
}

FROM_COUNTS = (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC, FLEISS_KAPPA, BRENNAN_PREDIGER)


def agreement_panel(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    ordinal: bool = False,
    interval: str = "jackknife",
    cluster: ArrayLike | None = None,
    n_resamples: int = 2000,
    rng: np.random.Generator | None = None,
    confidence_level: float = 0.95,
) -> dict[str, Estimate]:
    """Estimate every coefficient on one set of ratings.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes : int
        Declared number of classes, used or not.
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.
    ordinal : bool, default False
        Take Krippendorff's ordinal distances, which follow the use of the classes: alpha only.
    interval : str, default "jackknife"
        One of `INTERVALS`. Cohen's kappa has the error of Fleiss, Cohen and Everitt in place of
        the jackknife's and of Gwet's, Light's keeps the jackknife. Each says its method.
    cluster : array-like, shape (n_items,), optional
        What an item belongs to, for instance its task, where items of one cluster are alike. It
        is for the coefficients that count classes; those by rater are given over items.
    n_resamples : int, default 2000
        Resamples of ``percentile`` and ``bca``.
    rng : numpy.random.Generator, optional
        Source of the resamples; needed for ``percentile`` and ``bca``.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    dict of Estimate
        By name; Scott's pi and Cohen's kappa only where there are two raters, Light's where
        there are more.

    Raises
    ------
    ValueError
        As `count_patterns` and `estimate`, for an interval that is none, or without `rng`.

    Examples
    --------
    >>> panel = agreement_panel([[0, 0], [1, 1], [0, 1]], n_classes=2)
    >>> panel["percent_agreement"].value, panel["scott_pi"].value
    (0.66667, 0.33333)
    """
    if interval not in INTERVALS:
        raise ValueError(f"interval must be one of {', '.join(INTERVALS)}, got {interval!r}")
    drawn = interval in ("percentile", "bca")
    if rng is None and drawn:
        raise ValueError(f"interval {interval!r} needs rng")
    if cluster is not None and interval == "gwet":
        raise ValueError("Gwet's interval is over items; take another with cluster")
    array = validated_codes(codes, n_classes=n_classes)
    two = array.shape[1] == 2
    of_counts = [*FROM_COUNTS, SCOTT_PI] if two else list(FROM_COUNTS)
    by_rater = ["conger_kappa", "cohen_kappa" if two else "light_kappa"]
    if ordinal:
        of_counts = [KRIPPENDORFF_ORDINAL]
    patterns, of_item = patterns_of_items(array, n_classes=n_classes)
    clusters = None
    if cluster is not None:
        clusters = clusters_of(of_item, cluster, n_patterns=len(patterns.counts))
    found = _from_counts(
        of_counts, patterns, weights, clusters,
        interval=interval, n_resamples=n_resamples, rng=rng, confidence_level=confidence_level,
    )  # fmt: skip
    if ordinal:
        refused = not_estimable(ONLY_ALPHA, method=METHOD, confidence_level=confidence_level)
        names = [c.name for c in FROM_COUNTS] + (["scott_pi"] if two else []) + by_rater
        return dict.fromkeys(names, refused) | found
    for name in by_rater:
        found[name] = _by_rater(
            name, array, n_classes, weights,
            interval=interval, n_resamples=n_resamples, rng=rng, confidence_level=confidence_level,
        )  # fmt: skip
    order = [c.name for c in FROM_COUNTS] + ["conger_kappa", "scott_pi"] + by_rater[1:]
    return {name: found[name] for name in order if name in found}


def _from_counts(
    coefficients: list[Coefficient],
    patterns: CountPatterns,
    weights: ArrayLike | None,
    clusters: NDArray[np.int64] | None,
    *,
    interval: str,
    n_resamples: int,
    rng: np.random.Generator | None,
    confidence_level: float,
) -> dict[str, Estimate]:
    if interval == "gwet":
        return {
            c.name: gwet_interval(c, patterns, weights=weights, confidence_level=confidence_level)
            for c in coefficients
        }
    if interval == "jackknife" and clusters is not None:
        return {
            c.name: estimate_by_cluster(
                c, patterns, clusters, weights=weights, confidence_level=confidence_level
            )
            for c in coefficients
        }
    if interval == "jackknife" or rng is None:
        return {
            c.name: estimate(c, patterns, weights=weights, confidence_level=confidence_level)
            for c in coefficients
        }
    resampled = resample(
        coefficients, patterns, weights=weights, clusters=clusters,
        rng=rng, n_resamples=n_resamples, confidence_level=confidence_level,
    )  # fmt: skip
    return {
        c.name: _chosen(found, interval) for c, found in zip(coefficients, resampled, strict=True)
    }


def _by_rater(
    name: str,
    array: NDArray[np.int64],
    n_classes: int,
    weights: ArrayLike | None,
    *,
    interval: str,
    n_resamples: int,
    rng: np.random.Generator | None,
    confidence_level: float,
) -> Estimate:
    if interval == "gwet" and name == "conger_kappa":
        return gwet_conger(
            array, n_classes=n_classes, weights=weights, confidence_level=confidence_level
        )
    if interval in ("jackknife", "gwet") or rng is None or name == "light_kappa":
        of = {"conger_kappa": conger_kappa, "cohen_kappa": cohen_kappa, "light_kappa": light_kappa}
        return of[name](
            array, n_classes=n_classes, weights=weights, confidence_level=confidence_level
        )
    rows = array if name == "conger_kappa" else array[(array != MISSING).all(axis=1)]
    found = resample_conger(
        rows, n_classes=n_classes, weights=weights, rng=rng, n_resamples=n_resamples,
        confidence_level=confidence_level,
    )  # fmt: skip
    return _chosen(found, interval)


def _chosen(found: ResampledCoefficient, interval: str) -> Estimate:
    if interval == "percentile":
        return found.percentile()
    return found.bca()


def estimate_weighted(
    coefficient: Coefficient,
    codes: ArrayLike,
    item_weights: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a coefficient of the population that the items were drawn from.

    Every sum over items becomes a sum of weights: an item drawn with probability .1 stands for
    ten. Items (or clusters of them) are independent, raters fixed, ratings missing at random.

    Parameters
    ----------
    coefficient, weights, confidence_level
        As in `estimate`.
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    item_weights : array-like of float, shape (n_items,)
        Inverse inclusion probabilities.
    n_classes : int
        Declared number of classes, used or not.
    cluster : array-like, shape (n_items,), optional
        What an item belongs to, for instance its task.

    Returns
    -------
    Estimate
        With a jackknife Fisher-z interval: an item (or cluster) at a time is left out and the
        weights of the others stay. t has as many degrees of freedom as the effective number of
        items, (sum w)^2 / sum w^2, less one. Strata of the draw are not used, which makes the
        interval a little too wide rather than too narrow.

    Raises
    ------
    ValueError
        If a weight is not positive and finite, shapes differ, or as `estimate`.

    Notes
    -----
    Weights are scaled to sum to the effective number of items. Alpha expects disagreement between
    n (n - 1) ordered pairs of ratings, itself left out; with that scale W (W - 1) = W^2 - sum w^2,
    the weight of all pairs less that of each rating with itself.

    References
    ----------
    Shao and Tu (1995), The Jackknife and Bootstrap, chapter 6: survey weights.

    Examples
    --------
    The item that was drawn half as often stands for two: (1 + 2 x 0) / 3.

    >>> from calibration.agreement.coefficients import PERCENT_AGREEMENT
    >>> given = estimate_weighted(PERCENT_AGREEMENT, [[0, 0], [0, 1]], [1, 2], n_classes=2)
    >>> given.value
    0.33333
    """
    check_confidence_level(confidence_level)
    counts = class_counts(codes, n_classes=n_classes)
    weight = np.asarray(item_weights, dtype=np.float64)
    if weight.shape != (len(counts),):
        raise ValueError(f"item_weights must have shape ({len(counts)},), got {weight.shape!r}")
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError(f"item_weights must be positive and finite, got {weight.tolist()!r}")
    refused = too_little(count_patterns(codes, n_classes=n_classes), confidence_level)
    if refused is not None:
        return refused
    ratings = counts.sum(axis=1)
    enters = ratings >= (2 if coefficient.pairable_only else 1)
    weight = weight[enters] * weight[enters].sum() / (weight[enters] @ weight[enters])
    distances = distances_of(weights, n_classes)
    pairable = ratings[enters] >= 2
    features = weight[:, None] * coefficient.features(counts[enters].astype(np.float64), distances)
    names = np.arange(len(weight)) if cluster is None else np.asarray(cluster)[enters]
    summed, of_unit = _by_unit(np.column_stack([features, weight * pairable]), names)
    twice = of_unit[pairable]
    shown = summed[:, -1]
    effective = float(shown.sum() ** 2 / (shown @ shown))
    found = from_features(
        coefficient, summed[:, :-1], np.ones(len(summed), dtype=np.int64), distances,
        n=max(1, int(effective)),
        alike=all_alike(counts[enters].astype(np.float64), distances),
        confidence_level=confidence_level,
    )  # fmt: skip
    return replace(found, n=int(np.unique(twice).size), method=f"{found.method}, weighted")


def _by_unit(rows: FloatArray, names: np.ndarray) -> tuple[FloatArray, np.ndarray]:
    """Return the rows summed by unit, and the unit of each."""
    units, of_unit = np.unique(names, return_inverse=True)
    summed = np.zeros((units.size, rows.shape[1]))
    np.add.at(summed, of_unit, rows)
    return summed, of_unit
