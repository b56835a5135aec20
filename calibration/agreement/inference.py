"""Intervals and differences of coefficients: bootstrap, jackknife, linearisation, influence.

Arguments, assumptions and errors are those of `calibration.agreement.coefficients`. `cluster` is an
array-like, shape (n_items,), with the task of each item where items of one task are alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.coefficients import (
    BRENNAN_PREDIGER,
    FLEISS_KAPPA,
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    KRIPPENDORFF_ORDINAL,
    ONE_CLASS_LEFT,
    PERCENT_AGREEMENT,
    SCOTT_PI,
    Coefficient,
    UnitSums,
    all_alike,
    cohen_kappa,
    conger_sums,
    distances_of,
    light_kappa,
    sums_of,
)
from calibration.agreement.ratings import (
    MISSING,
    class_counts,
    patterns_from_counts,
    patterns_of_items,
    too_little,
    validated_codes,
)
from calibration.statistics.estimate import (
    OK,
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    not_estimable,
)
from calibration.statistics.intervals import (
    METHOD,
    NO_SPREAD,
    bca_shares,
    bias_and_skew,
    jackknife_se,
    resampled_sums,
    t_interval,
)

PERCENTILE, BCA = "percentile bootstrap", "BCa bootstrap"

# Largest share of resamples without a value that may be left out.
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
    """An item and the coefficient without it minus the one with it: positive where it lowers it."""

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
    """Return the items that lower a coefficient, in decreasing order of their cost.

    At most `limit` items, ties in the order of the ratings; none if the coefficient is undefined.

    Without the third item the two others agree in everything:

    >>> costly_items(PERCENT_AGREEMENT, [[0, 0], [1, 1], [0, 1]], n_classes=2)
    (Costly(item=2, cost=0.33333),)
    """
    patterns, of_item = patterns_of_items(codes, n_classes=n_classes)
    sums = sums_of(coefficient, patterns, weights=weights)
    if not sums.n:
        return ()
    cost = np.nan_to_num(sums.left_out() - sums.value())[of_item]
    order = np.argsort(-cost, kind="stable")[:limit]
    return tuple(Costly(item=int(k), cost=float(cost[k])) for k in order if cost[k] > NO_SPREAD)


def clusters_of(pattern: ArrayLike, cluster: ArrayLike, *, n_patterns: int) -> IntArray:
    """Count the items of each pattern in each cluster, shape (n_clusters, n_patterns), sorted.

    `pattern` is the pattern of each item, from `patterns_of_items`.

    >>> clusters_of([0, 1, 1], ["a", "a", "b"], n_patterns=2).tolist()
    [[1, 1], [0, 1]]
    """
    names, of_item = np.unique(np.asarray(cluster), return_inverse=True)
    cells = of_item * n_patterns + np.asarray(pattern, dtype=np.int64)
    counted = np.bincount(cells, minlength=names.size * n_patterns)
    return counted.reshape(names.size, n_patterns).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResampledCoefficient:
    """A coefficient on resamples, beside its value on the ratings.

    `seen` has the jackknife interval on the Fisher z scale, over the same units; `draws` are NaN
    where a resample holds one class only.
    """

    seen: Estimate
    sums: UnitSums
    draws: FloatArray

    def percentile(self) -> Estimate:
        """Return the interval between quantiles of the draws."""
        tail = (1 - self.seen.confidence_level) / 2
        return self._between(tail, 1 - tail, PERCENTILE)

    def bca(self) -> Estimate:
        """Return the bias-corrected and accelerated interval; source at `bias_and_skew`."""
        if self.seen.value is None or self.seen.se is None:
            return self.seen
        items, left_out = self.sums.multiplicity, self.sums.left_out()
        centred = items @ left_out / items.sum() - left_out
        tail = (1 - self.seen.confidence_level) / 2
        low, high = bca_shares(
            np.array([tail, 1 - tail]),
            *bias_and_skew(self._known(), self.seen.value, centred, items),
        )
        return self._between(float(low), float(high), BCA)

    def at_least(self, threshold: float) -> float | None:
        """Return the share of draws that reach a threshold, or None without any disagreement.

        Every draw then agrees, which is no evidence about unseen items.
        """
        if self.seen.se is None:
            return None
        return float(np.mean(self._known() >= threshold))

    def _known(self) -> FloatArray:
        return self.draws[~np.isnan(self.draws)]

    def _between(self, low: float, high: float, name: str) -> Estimate:
        if self.seen.value is None or self.seen.se is None:
            return self.seen
        undefined = float(np.isnan(self.draws).mean())
        method = f"{name} of {self.sums.unit}, {self.draws.size:,} resamples"
        if undefined > MAX_UNDEFINED:
            status = TOO_MANY_UNDEFINED.format(share=undefined).replace("%", " %")
            return replace(self.seen, interval=None, method=method, status=status)
        ends = np.quantile(self._known(), [low, high])
        return replace(
            self.seen,
            interval=(float(ends[0]), float(ends[1])),
            method=method,
            se=float(np.std(self._known(), ddof=1)),
        )


def resample(
    sums: Sequence[UnitSums],
    *,
    rng: np.random.Generator,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
) -> tuple[ResampledCoefficient, ...]:
    """Draw items, or clusters of items, with replacement and compute every coefficient.

    All coefficients, in the order of `sums`, see the same resamples, so their draws can be compared
    pairwise. A resample is a multinomial draw of patterns and a coefficient is a function of sums
    over them, so the time depends on the patterns and not on the items.

    Parameters
    ----------
    sums : sequence of UnitSums
        Of the same units, from `sums_of` or `conger_sums`.
    n_resamples : int, default 2000
        At least 100, else ValueError.

    Examples
    --------
    >>> from calibration.agreement.ratings import count_patterns
    >>> seen = count_patterns([[0, 0]] * 60 + [[0, 1]] * 40, n_classes=2)
    >>> found, = resample([sums_of(PERCENT_AGREEMENT, seen)], rng=np.random.default_rng(1))
    >>> round(float(np.mean(found.draws)), 2), round(found.percentile().se, 2)
    (0.6, 0.05)
    """
    check_confidence_level(confidence_level)
    if n_resamples < 100:
        raise ValueError(f"n_resamples must be at least 100, got {n_resamples!r}")
    seen = [part.jackknife(confidence_level=confidence_level) for part in sums]
    totals = resampled_sums(
        np.hstack([part.features for part in sums]), sums[0].multiplicity,
        n_resamples=n_resamples, rng=rng,
    )  # fmt: skip
    edges = np.cumsum([0, *(part.features.shape[1] for part in sums)])
    return tuple(
        ResampledCoefficient(
            seen=own, sums=part, draws=part.coefficient.value(totals[:, start:end], part.distances)
        )
        for part, own, start, end in zip(sums, seen, edges, edges[1:], strict=False)
    )


def difference(
    first: UnitSums,
    second: UnitSums,
    *,
    confidence_level: float = 0.95,
    unchanged: str = "no interval: no item adds more to one than to the other; rate more items",
) -> Estimate:
    """Estimate the difference of two coefficients on the same items.

    For instance weighted alpha minus unweighted: the part of disagreement that is near misses. The
    interval is a jackknife t interval, cut to [-2, 2], over the items that enter one of the two;
    the shared variation of items in both cancels. n = items with two or more ratings in one.

    Parameters
    ----------
    first, second : UnitSums
        The difference is `first` minus `second`; of the same units, kind by kind.
    unchanged : str
        Status where no item moves the difference.

    References
    ----------
    Gwet (2016), "Testing the difference of correlated agreement coefficients", Educ. Psychol.
    Meas. 76. https://doi.org/10.1177/0013164415596420

    Examples
    --------
    >>> from calibration.agreement.ratings import count_patterns
    >>> seen = count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)
    >>> difference(sums_of(KRIPPENDORFF_ALPHA, seen), sums_of(FLEISS_KAPPA, seen)).value
    0.11111
    """
    check_confidence_level(confidence_level)
    for part in (first, second):
        refused = too_little(part.ratings, confidence_level)
        if refused is not None:
            return refused
    items = first.multiplicity
    n = int(items[(first.ratings >= 2) | (second.ratings >= 2)].sum())
    value = first.value() - second.value()
    if not np.isfinite(value):
        why = "one of the two is undefined without variation; add items of other classes"
        return not_estimable(why, method=DIFFERENCE, n=n, confidence_level=confidence_level)
    enters = first.enters | second.enters
    spread = jackknife_se((first.left_out() - second.left_out())[enters], items[enters])
    interval, se, status = None, None, OK
    if n < 2 or not np.isfinite(spread):
        status = ONE_CLASS_LEFT
    elif spread < NO_SPREAD:
        status = unchanged
    else:
        se = spread
        interval = t_interval(
            value, se, df=n - 1, confidence_level=confidence_level, lowest=-2.0, highest=2.0
        )
    return Estimate(
        value=value, interval=interval, n=n, method=DIFFERENCE, confidence_level=confidence_level,
        status=status, se=se,
    )  # fmt: skip


def change(
    coefficient: Coefficient,
    before: ArrayLike,
    after: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate the change of a coefficient between two rounds of ratings of the same items.

    The change is `after` minus `before`, with the interval of `difference`: the difficulty of an
    item in both rounds cancels.

    Parameters
    ----------
    before, after : array-like of int, shapes (n_items, n_raters) and (n_items, other raters)
        Codes of the two rounds, the same item in the same row; other lengths raise ValueError.

    Examples
    --------
    >>> before, after = [[0, 0], [0, 1], [1, 1]], [[0, 0], [1, 1], [1, 1]]
    >>> change(PERCENT_AGREEMENT, before, after, n_classes=2).value
    0.33333
    """
    rounds = [class_counts(codes, n_classes=n_classes) for codes in (before, after)]
    if len(rounds[0]) != len(rounds[1]):
        raise ValueError(
            f"both rounds need the same items, got {len(rounds[0])} and {len(rounds[1])} rows"
        )
    both = patterns_from_counts(np.hstack(rounds))
    first, second = (
        sums_of(coefficient, replace(both, counts=counts), weights=weights)
        for counts in (both.counts[:, :n_classes], both.counts[:, n_classes:])
    )
    return difference(second, first, confidence_level=confidence_level)


def linearised_se(sums: UnitSums) -> float:
    """Return the standard error from the influence of each item, the infinitesimal jackknife.

    The derivative of the coefficient in each sum is taken along the imaginary axis, which is exact
    to rounding (the coefficients are rational functions of the sums).

    References
    ----------
    Squire and Trapp (1998), SIAM Review 40. https://doi.org/10.1137/S003614459631241X

    Examples
    --------
    The mean of 1, 1, 0 over three items: influences 1/3, 1/3, -2/3, so sqrt((6/9) / (3 * 2)):

    >>> from calibration.agreement.ratings import count_patterns
    >>> seen = count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)
    >>> linearised_se(sums_of(PERCENT_AGREEMENT, seen))
    0.33333
    """
    return _se(_influence(sums), sums.multiplicity[sums.enters])


def _influence(sums: UnitSums) -> FloatArray:
    """Return the influence of an entering unit of each kind on the coefficient, times n; mean 0."""
    features, items = sums.features[sums.enters], sums.multiplicity[sums.enters]
    totals = items @ features
    steps = totals + 1e-30j * np.eye(totals.size)
    observed, expected = sums.coefficient.disagreement(steps, sums.distances)
    gradient = np.imag(1 - observed / expected) / 1e-30
    n = int(items.sum())
    influence = n * (features @ gradient)
    return np.asarray(influence - items @ influence / n)


def _se(influence: FloatArray, items: IntArray) -> float:
    n = int(items.sum())
    return float(np.sqrt(items @ influence**2 / (n * (n - 1))))


def gwet_interval(sums: UnitSums, *, confidence_level: float = 0.95) -> Estimate:
    """Estimate a coefficient with Gwet's interval: value -+ t SE, cut at -1 and 1.

    The standard error (Gwet 2008, see `estimate`) is that of irrCAC and AgreeStat, for comparison
    with them. It treats the number of items rated twice as fixed, which overstates it where many
    items are rated once. The sums are of items, not clusters; df is n - 1, n = items with a rating.
    Where the default interval is exact or missing, it is kept.

    Examples
    --------
    Every item is rated twice, so this is the linearised error:

    >>> from calibration.agreement.ratings import count_patterns
    >>> seen = count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)
    >>> gwet_interval(sums_of(PERCENT_AGREEMENT, seen)).se
    0.33333
    """
    seen = sums.jackknife(confidence_level=confidence_level)
    if seen.value is None or seen.se is None:
        return seen
    sums = replace(sums, coefficient=_AS_GWET.get(sums.coefficient.name, sums.coefficient))
    items, twice = sums.multiplicity[sums.enters], sums.ratings[sums.enters] >= 2
    n = int(items.sum())
    # kappa = (p_a - p_e) / (1 - p_e), as if the number of items rated twice were fixed.
    fixed = seen.value * (twice / (items[twice].sum() / n) - 1)
    se = _se(_influence(sums) + fixed, items)
    interval = t_interval(
        seen.value, se, df=n - 1, confidence_level=confidence_level,
        lowest=sums.coefficient.lowest, highest=1.0,
    )  # fmt: skip
    return replace(seen, interval=interval, se=se, method=GWET)


def _alpha_of_many(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Leave out the correction of expected disagreement for few ratings, as irrCAC's error does."""
    shares = totals[..., 2:] / totals[..., 1:2]
    return totals[..., 0] / totals[..., 1], ((shares @ distances) * shares).sum(axis=-1)


# The coefficients that irrCAC linearises in another form.
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
    """Estimate every coefficient on one set of ratings, by name.

    Scott's pi and Cohen's kappa only with two raters, Light's kappa only with more.

    Parameters
    ----------
    ordinal : bool, default False
        Use Krippendorff's ordinal distances, which follow the use of the classes: alpha only.
    interval : str, default "jackknife"
        One of `INTERVALS`, else ValueError. Cohen's kappa has the error of Fleiss, Cohen and
        Everitt in place of the jackknife's and of Gwet's; Light's keeps the jackknife.
    cluster : array-like, shape (n_items,), optional
        For the coefficients that count classes; those by rater are given over items.
    n_resamples, rng
        For ``percentile`` and ``bca``, which need `rng`, else ValueError.

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
    counted = [KRIPPENDORFF_ORDINAL] if ordinal else [*FROM_COUNTS, *([SCOTT_PI] if two else [])]
    by_rater = ["conger_kappa", "cohen_kappa" if two else "light_kappa"]
    patterns, of_item = patterns_of_items(array, n_classes=n_classes)
    clusters = None
    if cluster is not None:
        clusters = clusters_of(of_item, cluster, n_patterns=len(patterns.counts))

    def estimated(sums: Sequence[UnitSums]) -> list[Estimate]:
        if rng is not None and drawn:
            found = resample(
                sums, rng=rng, n_resamples=n_resamples, confidence_level=confidence_level
            )
            return [of.percentile() if interval == "percentile" else of.bca() for of in found]
        if interval == "gwet":
            return [gwet_interval(of, confidence_level=confidence_level) for of in sums]
        return [of.jackknife(confidence_level=confidence_level) for of in sums]

    sums = [sums_of(c, patterns, weights=weights, clusters=clusters) for c in counted]
    found = dict(zip([c.name for c in counted], estimated(sums), strict=True))
    names, scott = [c.name for c in FROM_COUNTS], ["scott_pi"] if two else []
    if ordinal:
        refused = not_estimable(ONLY_ALPHA, method=METHOD, confidence_level=confidence_level)
        return dict.fromkeys([*names, *scott, *by_rater], refused) | found
    (found["conger_kappa"],) = estimated([conger_sums(array, n_classes=n_classes, weights=weights)])
    if two and drawn:
        shared = array[(array != MISSING).all(axis=1)]
        sums = [conger_sums(shared, n_classes=n_classes, weights=weights)]
        (found["cohen_kappa"],) = estimated(sums)
    else:
        kappa = cohen_kappa if two else light_kappa
        found[by_rater[1]] = kappa(
            array, n_classes=n_classes, weights=weights, confidence_level=confidence_level
        )
    return {name: found[name] for name in [*names, by_rater[0], *scott, by_rater[1]]}


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

    Every sum over items becomes a sum of weights: an item drawn with probability .1 counts as ten.
    The jackknife Fisher-z interval leaves out one item (or cluster) and keeps the weights of the
    others. t has the effective number of items, (sum w)^2 / sum w^2, less one df. Strata of the
    draw are not used, which makes the interval slightly conservative. Weights are scaled to sum to
    the effective number of items. Alpha expects disagreement between n (n - 1) ordered pairs of
    ratings, without pairs of a rating with itself; with that scale W (W - 1) = W^2 - sum w^2, the
    weight of all pairs less that of each rating with itself.

    Parameters
    ----------
    item_weights : array-like of float, shape (n_items,)
        Inverse inclusion probabilities; ValueError unless positive and finite.

    References
    ----------
    Shao and Tu (1995), The Jackknife and Bootstrap, chapter 6: survey weights.

    Examples
    --------
    The item that was drawn half as often counts twice: (1 + 2 x 0) / 3.

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
    ratings = counts.sum(axis=1)
    refused = too_little(ratings, confidence_level)
    if refused is not None:
        return refused
    enters = ratings >= (2 if coefficient.pairable_only else 1)
    weight = weight[enters] * weight[enters].sum() / (weight[enters] @ weight[enters])
    distances = distances_of(weights, n_classes)
    counts, twice = counts[enters].astype(np.float64), ratings[enters] >= 2
    names = np.arange(len(weight)) if cluster is None else np.asarray(cluster)[enters]
    units, of_unit = np.unique(names, return_inverse=True)
    features = weight[:, None] * coefficient.features(counts, distances)
    summed = np.zeros((units.size, features.shape[1] + 1))
    np.add.at(summed, of_unit, np.column_stack([features, weight * twice]))
    shown = summed[:, -1]
    found = UnitSums(
        coefficient=coefficient,
        features=summed[:, :-1],
        multiplicity=np.ones(units.size, dtype=np.int64),
        ratings=np.full(units.size, 2),
        distances=distances,
        alike=all_alike(counts, distances),
    ).jackknife(
        confidence_level=confidence_level,
        df=max(0, int(shown.sum() ** 2 / (shown @ shown)) - 1),
    )
    n = int(np.unique(of_unit[twice]).size)
    return replace(found, n=n, method=f"{found.method}, weighted")
