"""Chance-corrected coefficients: alpha, AC1, AC2, kappas, specific agreement.

The modules of this package share arguments and assumptions. Items (or clusters of them) are a
random sample and independent, raters are fixed, ratings are missing at random.

* `codes` : array-like of int, shape (n_items, n_raters), the position of the class in the declared
  list, -1 where the rater gave no rating; `n_classes` declared classes, used or not.
* `patterns` : CountPatterns, from `count_patterns`, or with clusters from `patterns_of_items`.
* `weights` : array-like of float, shape (n_classes, n_classes), agreement weights with 1 on the
  diagonal; default: classes agree or do not.
* `confidence_level` : target coverage, strictly between 0 and 1.

Functions raise ValueError as `count_patterns` and `checked_weights`, or if `confidence_level` is
outside (0, 1). The n of an Estimate counts items with two or more ratings.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.ratings import (
    MISSING,
    CountPatterns,
    checked_weights,
    count_patterns,
    one_item,
    too_little,
    validated_codes,
)
from calibration.statistics.contingency import KAPPA, kappa_of_table
from calibration.statistics.estimate import (
    OK,
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    not_estimable,
)
from calibration.statistics.intervals import (
    BELOW_THE_SCALE,
    EXACT,
    METHOD,
    NO_DISAGREEMENT,
    NO_ITEM_VARIATION,
    NO_SPREAD,
    fisher_z_interval,
    jackknife_se,
    unanimous_interval,
    zero_event_upper_bound,
)

NO_EXPECTATION = "undefined without variation: every rating names one class; add items of others"
ONE_CLASS_LEFT = "no interval: without one item a single class is left; rate more items"


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient as a smooth function of sums over items; `lowest` ends its range.

    `features` maps class counts, shape (n_patterns, n_classes), and distances, shape (n_classes,
    n_classes) with 0 on the diagonal and 1 at most, to the part of an item in each sum, shape
    (n_patterns, n_sums). `disagreement` maps sums, shape (..., n_sums), and the distances to
    observed and expected disagreement, each of shape (...). `pairable_only` leaves out items rated
    once.
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
    """Return the number of ratings of each item and the summed distance of its ordered pairs."""
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
    """Return [distance of its pairs by its ratings, ratings, those of each class] of each item."""
    ratings, differing = _differing(counts, distances)
    return np.column_stack([differing / (ratings - 1), ratings, counts])


def _alpha(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    ratings, of_class = totals[..., 1], totals[..., 2:]
    expected = _mean_distance(of_class, of_class, distances) / (ratings * (ratings - 1))
    return totals[..., 0] / ratings, expected


def _coincidences(counts: FloatArray, _distances: FloatArray) -> FloatArray:
    """Return the part of each item in every cell of the coincidence matrix."""
    n, q = counts.shape
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, np.arange(q), np.arange(q)] -= counts
    return np.asarray((pairs / (counts.sum(axis=1) - 1)[:, None, None]).reshape(n, q * q))


def _ordinal_alpha(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the disagreement at Krippendorff's ordinal distance, from the use of the classes."""
    q = distances.shape[0]
    table = totals.reshape(*totals.shape[:-1], q, q)
    of_class = table.sum(axis=-1)
    upto = np.cumsum(of_class, axis=-1) - of_class / 2
    apart = (upto[..., :, None] - upto[..., None, :]) ** 2
    ratings = of_class.sum(axis=-1)
    expected = (of_class[..., :, None] * of_class[..., None, :] * apart).sum(axis=(-2, -1))
    # On the scale of other distances: at most 1.
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

# Scott's pi for two raters; items that only one of them rated do not enter.
SCOTT_PI = Coefficient("scott_pi", -1.0, _pair_features, _fleiss, pairable_only=True)

BRENNAN_PREDIGER = Coefficient(
    "brennan_prediger", -1.0, _pair_features, _brennan_prediger, pairable_only=False
)


def estimate(
    coefficient: Coefficient,
    patterns: CountPatterns,
    *,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate one coefficient.

    * `PERCENT_AGREEMENT`: the mean over items of the share of rating pairs that agree; not
      corrected for chance.
    * `KRIPPENDORFF_ALPHA`: agreement beyond that of ratings paired at random; 1 is perfect, 0 is
      chance. Items rated once do not enter.
    * `GWET_AC`: pair agreement beyond sum of pi_k (1 - pi_k) / (q - 1), with pi_k the mean share
      of class k in the ratings of an item, including items rated once, and q the *declared*
      number of classes. It complements alpha and does not replace it: with the same raters it
      rises as one class becomes common.
    * `FLEISS_KAPPA`, `SCOTT_PI`, `BRENNAN_PREDIGER`: chance agreement from the pooled use of the
      classes; from the same for two raters; and from equally likely classes.

    The interval is a jackknife Fisher-z interval, t with n - 1 df, n = items (or clusters) with two
    or more ratings. When all items add the same it is the exact bound on the share of items that do
    not, at the expected disagreement of these ratings, and the status says so. ``not_estimable``
    when no item is rated twice or only one class was used. ValueError also if the clusters are not
    those of the patterns. The plain jackknife and the percentile bootstrap cover too little with
    few items and high agreement; on the Fisher z scale the jackknife is the best of those compared,
    and deterministic.

    Parameters
    ----------
    clusters : array-like of int, shape (n_clusters, n_patterns), optional
        Items of each pattern in each cluster, from `clusters_of`: the jackknife then leaves out
        one cluster at a time.

    References
    ----------
    Krippendorff (2004), Human Communication Research 30.
    https://doi.org/10.1111/j.1468-2958.2004.tb00738.x
    Gwet (2008), Brit. J. Math. Stat. Psychol. 61. https://doi.org/10.1348/000711006X126600
    Hughes (2022), "On the asymptotic properties of ... Krippendorff's alpha".
    https://doi.org/10.48550/arXiv.2210.13265

    Examples
    --------
    Two of three items agree, each class has half of the ratings: Fleiss expects 1/2, and so does
    AC1 with 1/4 + 1/4. Alpha: observed disagreement 2/6, expected (36 - 18) / 30 = .6.

    >>> seen = count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)
    >>> estimate(PERCENT_AGREEMENT, seen).value, estimate(KRIPPENDORFF_ALPHA, seen).value
    (0.66667, 0.44444)
    >>> estimate(FLEISS_KAPPA, seen).value, estimate(GWET_AC, seen).value
    (0.33333, 0.33333)
    """
    check_confidence_level(confidence_level)
    sums = sums_of(coefficient, patterns, weights=weights, clusters=clusters)
    return sums.jackknife(confidence_level=confidence_level)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitSums:
    """A coefficient and the part of each kind of unit in its sums: enough for inference.

    `features`, shape (n_kinds, n_sums), are zero for a unit that does not enter; `multiplicity`
    counts the units of each kind, `ratings` the ratings of the item, or of the item with the most
    in a cluster. `distances` are 1 less the agreement weights; `alike` tells whether all items with
    two or more ratings show the same disagreement; `unit` is ``"items"`` or ``"clusters"``.
    """

    coefficient: Coefficient
    features: FloatArray
    multiplicity: IntArray
    ratings: IntArray
    distances: FloatArray
    alike: bool
    unit: str = "items"

    @property
    def n(self) -> int:
        """Units with two or more ratings."""
        return int(self.multiplicity[self.ratings >= 2].sum())

    @property
    def enters(self) -> BoolArray:
        """Whether a unit of each kind enters the coefficient."""
        return np.asarray(self.ratings >= (2 if self.coefficient.pairable_only else 1))

    def value(self) -> float:
        """Return the coefficient; NaN where nothing is rated or expected."""
        return float(self.coefficient.value(self.multiplicity @ self.features, self.distances))

    def left_out(self) -> FloatArray:
        """Return the coefficient without one unit of each kind."""
        totals = self.multiplicity @ self.features
        return self.coefficient.value(totals - self.features, self.distances)

    def jackknife(self, *, confidence_level: float, df: int | None = None) -> Estimate:
        """Estimate the coefficient with the interval of `estimate`; t with `df`, default n - 1."""
        refused = too_little(self.ratings, confidence_level)
        if refused is not None:
            return refused
        n = self.n if df is None else df + 1
        items, features = self.multiplicity[self.enters], self.features[self.enters]
        totals = items @ features
        parts = self.coefficient.disagreement(totals, self.distances)
        observed, expected = (float(part) for part in parts)
        if expected > 0:
            found = from_left_out(
                1 - observed / expected,
                self.coefficient.value(totals - features, self.distances),
                items, observed=observed, expected=expected, lowest=self.coefficient.lowest, n=n,
                alike=self.alike, confidence_level=confidence_level,
            )  # fmt: skip
        else:
            found = not_estimable(
                NO_EXPECTATION, method=METHOD, n=n, confidence_level=confidence_level
            )
        if self.unit == "items":
            return found
        return replace(found, method=f"{found.method}, by cluster")


def sums_of(
    coefficient: Coefficient,
    patterns: CountPatterns,
    *,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> UnitSums:
    """Return the part of each pattern, or cluster, in the sums; arguments as `estimate`."""
    distances = distances_of(weights, patterns.counts.shape[1])
    counts, ratings = patterns.counts.astype(np.float64), patterns.counts.sum(axis=1)
    enters = ratings >= (2 if coefficient.pairable_only else 1)
    entering = coefficient.features(counts[enters], distances)
    features = np.zeros((len(counts), entering.shape[1]))
    features[enters] = entering
    items = UnitSums(
        coefficient=coefficient, features=features, multiplicity=patterns.multiplicity,
        ratings=ratings, distances=distances, alike=all_alike(counts, distances),
    )  # fmt: skip
    if clusters is None:
        return items
    units = np.asarray(clusters, dtype=np.float64)
    if units.ndim != 2 or units.shape[1] != len(counts):
        raise ValueError(f"clusters must have {len(counts)} columns, got shape {units.shape!r}")
    return replace(
        items, features=units @ features, multiplicity=np.ones(len(units), dtype=np.int64),
        ratings=((units > 0) * ratings).max(axis=1, initial=0), unit="clusters",
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
        share = zero_event_upper_bound(n, confidence_level=confidence_level)
        kept = observed * (1 - share)
        low, high = 1 - (kept + share) / expected, 1 - kept / expected
        # Items rated once can put a value below the range; the interval still contains it.
        interval, method = (max(min(lowest, value), low), high), EXACT
        status = NO_DISAGREEMENT if observed == 0 else NO_ITEM_VARIATION
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
    return not mean.size or bool(np.ptp(mean) < NO_SPREAD)


def conger_kappa(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate Conger's kappa: Cohen's for any fixed panel of raters.

    Chance agreement follows from the use of the classes by each rater. The interval is that of
    `estimate`.

    References
    ----------
    Conger (1980), Psychological Bulletin 88. https://doi.org/10.1037/0033-2909.88.2.322

    Examples
    --------
    The first says class 0 in one of three, the second in two of three; they agree on two items.
    By chance 1/3 x 2/3 + 2/3 x 1/3 = 4/9, so (2/3 - 4/9) / (1 - 4/9):

    >>> conger_kappa([[0, 0], [1, 0], [1, 1]], n_classes=2).value
    0.4
    """
    check_confidence_level(confidence_level)
    sums = conger_sums(codes, n_classes=n_classes, weights=weights)
    return sums.jackknife(confidence_level=confidence_level)


def conger_sums(codes: ArrayLike, *, n_classes: int, weights: ArrayLike | None = None) -> UnitSums:
    """Return the part of each distinct row of ratings in the sums of Conger's kappa.

    Raters without any rating are dropped: they would count as using no class.
    """
    array = validated_codes(codes, n_classes=n_classes)
    given = array != MISSING
    array = array[given.any(axis=1)][:, given.any(axis=0)]
    if not array.size:
        array = np.full((0, 1), MISSING)
    rows, items = np.unique(array, axis=0, return_counts=True)
    one_hot = np.eye(n_classes)[rows] * (rows != MISSING)[..., None]
    counts, distances = one_hot.sum(axis=1), distances_of(weights, n_classes)
    ratings, differing = _differing(counts, distances)
    pairable = ratings >= 2
    mean = differing / np.where(pairable, ratings * (ratings - 1), 1)
    return UnitSums(
        coefficient=CONGER_KAPPA,
        features=np.column_stack(
            [pairable, mean, one_hot.reshape(len(rows), array.shape[1] * n_classes)]
        ),
        multiplicity=items.astype(np.int64),
        ratings=ratings.astype(np.int64),
        distances=distances,
        alike=all_alike(counts, distances),
    )


def _conger(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    q = distances.shape[0]
    given = totals[..., 2:].reshape(*totals.shape[:-1], (totals.shape[-1] - 2) // q, q)
    used = given / np.maximum(given.sum(axis=-1, keepdims=True), 1)
    r = used.shape[-2]
    # The sum over pairs of different raters, for each pair of classes.
    together, alone = used.sum(axis=-2), np.einsum("...gk,kl,...gl->...", used, distances, used)
    expected = (((together @ distances) * together).sum(axis=-1) - alone) / (r * (r - 1))
    return totals[..., 1] / totals[..., 0], expected


CONGER_KAPPA = Coefficient(
    "conger_kappa",
    -1.0,
    lambda counts, _distances: counts,  # made by `conger_sums`
    _conger,
    pairable_only=False,
)


def light_kappa(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate Light's kappa: the mean of Cohen's over all pairs of raters.

    A pair is compared on the items that both rated; pairs with undefined kappa are left out of the
    mean. The interval is a jackknife Fisher-z interval over items.

    References
    ----------
    Light (1971), Psychological Bulletin 76. https://doi.org/10.1037/h0031643

    Examples
    --------
    With two raters it is Cohen's:

    >>> light_kappa([[0, 0], [1, 0], [1, 1]], n_classes=2).value
    0.4
    """
    check_confidence_level(confidence_level)
    array = validated_codes(codes, n_classes=n_classes)
    patterns = count_patterns(array, n_classes=n_classes)
    refused = too_little(patterns.counts.sum(axis=1), confidence_level)
    if refused is not None:
        return refused
    distances = distances_of(weights, n_classes)
    pairs = [
        _LightPair.of(array, j, k, distances) for j, k in combinations(range(array.shape[1]), 2)
    ]
    defined = [pair for pair in pairs if pair.expected > 0]
    if not defined:
        return not_estimable(NO_EXPECTATION, method=METHOD, confidence_level=confidence_level)
    rated = array[(array != MISSING).sum(axis=1) >= 2]
    # The value without an item depends on one cell of each pair's table.
    without = np.zeros(len(rated))
    for pair in defined:  # one array at a time: thousands of pairs would fill the memory
        without += pair.without(rated) / len(defined)
    value = float(np.mean([pair.kappa for pair in defined]))
    expected = float(np.mean([pair.expected for pair in defined]))
    counts = patterns.pairable().counts.astype(np.float64)
    return from_left_out(
        value, without, np.ones(len(rated), dtype=np.int64),
        observed=(1 - value) * expected, expected=expected, lowest=-1.0, n=len(rated),
        alike=all_alike(counts, distances), confidence_level=confidence_level,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LightPair:
    """Cohen's kappa of two raters, whole and without one item of each cell of their table."""

    first: int
    second: int
    kappa: float
    expected: float
    without_one: FloatArray

    @classmethod
    def of(cls, codes: IntArray, first: int, second: int, distances: FloatArray) -> "_LightPair":
        q = len(distances)
        both = codes[(codes[:, first] != MISSING) & (codes[:, second] != MISSING)]
        cells = both[:, first] * q + both[:, second]
        table = np.bincount(cells, minlength=q * q).astype(np.float64)
        one_less = np.vstack([table, table - np.eye(q * q)]).reshape(-1, q, q)
        total = one_less.sum(axis=(1, 2))
        rows, columns = one_less.sum(axis=2), one_less.sum(axis=1)
        observed = (one_less * distances).sum(axis=(1, 2)) / np.maximum(total, 1)
        chance = ((rows @ distances) * columns).sum(axis=1) / np.maximum(total, 1) ** 2
        kappa = np.where(chance > 0, 1 - observed / np.where(chance > 0, chance, 1), np.nan)
        return cls(
            first=first, second=second, kappa=float(kappa[0]), expected=float(chance[0]),
            without_one=np.append(kappa[1:], kappa[0]),
        )  # fmt: skip

    def without(self, codes: IntArray) -> FloatArray:
        """Return kappa without each item; unchanged where one of the two did not rate the item."""
        q = round((self.without_one.size - 1) ** 0.5)
        one, other = codes[:, self.first], codes[:, self.second]
        shared = (one != MISSING) & (other != MISSING)
        return np.asarray(self.without_one[np.where(shared, one * q + other, q * q)])


def specific_agreement(
    patterns: CountPatterns, *, confidence_level: float = 0.95
) -> tuple[Estimate, ...]:
    """Estimate specific agreement: how often a second rating repeats each class.

    If one rating of an item is class k, this is the chance that another rating of the item is k.
    The intervals are jackknife Fisher-z intervals; n counts the items with two or more ratings on
    which the class was used. A class that was never used is ``not_estimable``; a class for which
    all items show the same has the exact bound.

    References
    ----------
    Cicchetti and Feinstein (1990), J. Clin. Epidemiol. 43.
    https://doi.org/10.1016/0895-4356(90)90159-M

    Examples
    --------
    Class 0: one agreeing item and one split one, 2 x 1 / (2 x 1 + 1):

    >>> specific_agreement(count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2))[0].value
    0.66667
    """
    check_confidence_level(confidence_level)
    pairable = patterns.pairable()
    ratings = pairable.counts.sum(axis=1)
    return tuple(
        _specific(pairable.counts[:, k], ratings, pairable.multiplicity, confidence_level)
        for k in range(patterns.counts.shape[1])
    )


def specific_coefficient(class_code: int) -> Coefficient:
    """Return specific agreement of a class as a function of sums over items, for resamples.

    >>> specific_coefficient(0).value(np.array([2.0, 3.0]), 1 - np.eye(2))
    array(0.66667)
    """

    def features(counts: FloatArray, _distances: FloatArray) -> FloatArray:
        of_class = counts[:, class_code]
        possible = of_class * (counts.sum(axis=1) - 1)
        return np.column_stack([of_class * (of_class - 1), possible])

    def disagreement(totals: FloatArray, _distances: FloatArray) -> tuple[FloatArray, FloatArray]:
        agreeing, possible = totals[..., 0], totals[..., 1]
        used = possible > 0
        return (possible - agreeing) / np.where(used, possible, 1.0), used.astype(np.float64)

    return Coefficient(
        f"specific_agreement_{class_code}", 0.0, features, disagreement, pairable_only=True
    )


def class_kappas(
    patterns: CountPatterns, *, confidence_level: float = 0.95
) -> tuple[Estimate, ...]:
    """Estimate for each class Fleiss' kappa of the class against all others.

    This is specific agreement beyond chance: chance alone often repeats a common class. Intervals
    as `estimate`; a class that was never used is ``not_estimable``.

    References
    ----------
    Fleiss (1971), Psychological Bulletin 76. https://doi.org/10.1037/h0031619

    Examples
    --------
    One of three items splits between class 0 and the rest, each has half of the ratings: 1/2 by
    chance, so (2/3 - 1/2) / (1 - 1/2):

    >>> class_kappas(count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2))[0].value
    0.33333
    """
    ratings = patterns.counts.sum(axis=1)
    return tuple(
        estimate(
            FLEISS_KAPPA,
            replace(patterns, counts=np.column_stack([of_class, ratings - of_class])),
            confidence_level=confidence_level,
        )
        for of_class in patterns.counts.T
    )


def _specific(
    of_class: IntArray,
    ratings: IntArray,
    multiplicity: IntArray,
    confidence_level: float,
) -> Estimate:
    used = of_class > 0
    weight = multiplicity[used]
    n = int(weight.sum())
    if n == 0:
        why = "no item rated twice carries this class: label more items"
        return not_estimable(why, method=METHOD, confidence_level=confidence_level)
    agreeing = of_class[used] * (of_class[used] - 1)
    possible = of_class[used] * (ratings[used] - 1)
    totals = weight @ agreeing, weight @ possible
    value = float(totals[0] / totals[1])
    se = 0.0
    if n > 1:
        se = jackknife_se((totals[0] - agreeing) / (totals[1] - possible), weight)
    if se < NO_SPREAD or np.ptp(agreeing / possible) < NO_SPREAD:
        return Estimate(
            value=value,
            interval=unanimous_interval(value, n, confidence_level=confidence_level),
            n=n,
            method=EXACT,
            confidence_level=confidence_level,
            status=NO_DISAGREEMENT if value == 1 else NO_ITEM_VARIATION,
        )
    interval = fisher_z_interval(value, se, df=n - 1, confidence_level=confidence_level, lowest=0.0)
    return Estimate(
        value=value, interval=interval, n=n, method=METHOD, confidence_level=confidence_level, se=se
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement between raters on one set of items, unweighted.

    Parameters
    ----------
    percent_agreement, alpha, ac1 : Estimate
        Mean pair agreement of an item, Krippendorff's nominal alpha, and Gwet's AC1.
    n_items : int
        Items with two or more ratings.
    n_ratings : int
        Their ratings.
    """

    percent_agreement: Estimate
    alpha: Estimate
    ac1: Estimate
    n_items: int
    n_ratings: int


def agreement(codes: ArrayLike, *, n_classes: int, confidence_level: float = 0.95) -> Agreement:
    """Estimate percent agreement, alpha and AC1, unweighted.

    >>> result = agreement([[0, 0], [1, 1], [0, 1], [0, -1]], n_classes=2)
    >>> result.n_items, result.n_ratings, result.alpha.value
    (3, 6, 0.44444)
    """
    patterns = count_patterns(codes, n_classes=n_classes)
    pairable = patterns.pairable()
    percent, alpha, ac1 = (
        estimate(c, patterns, confidence_level=confidence_level)
        for c in (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC)
    )
    return Agreement(
        percent_agreement=percent, alpha=alpha, ac1=ac1, n_items=pairable.n_items,
        n_ratings=pairable.n_ratings,
    )  # fmt: skip


def cohen_kappa(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate Cohen's kappa of two raters on the items that both rated.

    The interval is that of `kappa_of_table`; ``not_estimable`` for other than two raters.

    References
    ----------
    Cohen (1960), Educ. Psychol. Meas. 20. https://doi.org/10.1177/001316446002000104

    Examples
    --------
    >>> cohen_kappa([[0, 0], [1, 0], [1, 1], [0, -1]], n_classes=2).value
    0.4
    """
    check_confidence_level(confidence_level)
    array = validated_codes(codes, n_classes=n_classes)
    if array.shape[1] != 2:
        why = f"Cohen's kappa is for two raters, not {array.shape[1]}: see the pairs, or Conger's"
        return not_estimable(why, method=KAPPA, confidence_level=confidence_level)
    refused = too_little((array != MISSING).sum(axis=1), confidence_level)
    if refused is not None:
        return refused
    both = array[(array != MISSING).all(axis=1)]
    table = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(table, (both[:, 0], both[:, 1]), 1)
    matrix = None if weights is None else checked_weights(weights, n_classes=n_classes)
    return kappa_of_table(table, weights=matrix, confidence_level=confidence_level)
