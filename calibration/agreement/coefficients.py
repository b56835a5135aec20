"""Chance-corrected coefficients: alpha, AC1, AC2, kappas, specific agreement."""

from collections.abc import Callable, Iterator
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

    * `PERCENT_AGREEMENT`: the mean over items of the share of rating pairs that agree; not
      corrected for chance.
    * `KRIPPENDORFF_ALPHA`: agreement beyond what pairing ratings at random would give; 1 is
      perfect, 0 is chance. Items rated once do not enter.
    * `GWET_AC`: pair agreement beyond sum of pi_k (1 - pi_k) / (q - 1), with pi_k the mean share
      of class k in the ratings of an item, those rated once too, and q the *declared* number of
      classes. It stands beside alpha, not in its place: with the same raters it rises as one
      class becomes common.
    * `FLEISS_KAPPA`, `SCOTT_PI`, `BRENNAN_PREDIGER`: beyond chance by the shared use of the
      classes, the same for two raters, and by classes that are all as likely.

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

    Notes
    -----
    The plain jackknife and the percentile bootstrap cover too little with few items and high
    agreement; on the Fisher z scale the jackknife is the best of those compared, and deterministic.

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

    >>> from calibration.agreement.ratings import count_patterns
    >>> seen = count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)
    >>> estimate(PERCENT_AGREEMENT, seen).value, estimate(KRIPPENDORFF_ALPHA, seen).value
    (0.66667, 0.44444)
    >>> estimate(FLEISS_KAPPA, seen).value, estimate(GWET_AC, seen).value
    (0.33333, 0.33333)
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
        share = zero_event_upper_bound(n, confidence_level=confidence_level)
        kept = observed * (1 - share)
        low, high = 1 - (kept + share) / expected, 1 - kept / expected
        # With items rated once a value may lie below the range; its interval still holds it.
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


def conger_kappa(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate Conger's kappa: Cohen's for any fixed panel of raters.

    What two ratings of an item would agree by chance follows from each rater's own use of the
    classes. Items are a random sample and independent, ratings missing at random.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes : int
        Declared number of classes, used or not.
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        With a jackknife Fisher-z interval, t with n - 1 df, n = items with two or more ratings.

    Raises
    ------
    ValueError
        As `count_patterns`, if the weights are none, or `confidence_level` is outside (0, 1).

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
    refused = too_little(count_patterns(codes, n_classes=n_classes), confidence_level)
    if refused is not None:
        return refused
    rows = distinct_rows(codes, n_classes=n_classes)
    return kappa_of_rows(rows, weights=weights, confidence_level=confidence_level)


def kappa_of_rows(
    rows: "RatedRows", *, weights: ArrayLike | None, confidence_level: float
) -> Estimate:
    """Estimate Conger's kappa from distinct rows of ratings of which some hold two or more."""
    distances = distances_of(weights, rows.given.shape[2])
    counts = rows.given.sum(axis=1)
    return from_features(
        CONGER_KAPPA,
        conger_features(rows, distances),
        rows.items,
        distances,
        n=int(rows.items[counts.sum(axis=1) >= 2].sum()),
        alike=all_alike(counts, distances),
        confidence_level=confidence_level,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatedRows:
    """Distinct rows of ratings: `given` is 1 where a rater gave a class, `items` show the row."""

    given: FloatArray
    items: IntArray


def distinct_rows(codes: ArrayLike, *, n_classes: int) -> RatedRows:
    """Return the distinct rows of ratings; raters and items without any are dropped.

    Examples
    --------
    >>> rows = distinct_rows([[0, 1], [1, -1], [0, 1], [-1, -1]], n_classes=2)
    >>> rows.given.tolist(), rows.items.tolist()
    ([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]], [2, 1])
    """
    array = validated_codes(codes, n_classes=n_classes)
    given = array != MISSING
    array = array[given.any(axis=1)][:, given.any(axis=0)]
    rows, items = np.unique(array, axis=0, return_counts=True)
    one_hot = np.eye(n_classes)[rows] * (rows != MISSING)[..., None]
    return RatedRows(given=one_hot, items=items.astype(np.int64))


def conger_features(rows: RatedRows, distances: FloatArray) -> FloatArray:
    """Return each row's part in the sums of Conger's kappa."""
    counts = rows.given.sum(axis=1)
    ratings = counts.sum(axis=1)
    pairable = ratings >= 2
    differing = ((counts @ distances) * counts).sum(axis=1)
    mean = differing / np.where(pairable, ratings * (ratings - 1), 1)
    n, raters, q = rows.given.shape
    return np.column_stack([pairable, mean, rows.given.reshape(n, raters * q)])


def _conger(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    q = distances.shape[0]
    given = totals[..., 2:].reshape(*totals.shape[:-1], -1, q)
    used = given / np.maximum(given.sum(axis=-1, keepdims=True), 1)
    r = used.shape[-2]
    # The sum over pairs of raters, for each pair of classes, without a rater with themselves.
    together, alone = used.sum(axis=-2), np.einsum("...gk,kl,...gl->...", used, distances, used)
    expected = (((together @ distances) * together).sum(axis=-1) - alone) / (r * (r - 1))
    return totals[..., 1] / totals[..., 0], expected


CONGER_KAPPA = Coefficient(
    "conger_kappa",
    -1.0,
    lambda counts, _distances: counts,  # made by `conger_features`
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

    A pair is compared on the items that both rated; pairs for which kappa is not defined are
    left out of the mean. Items are a random sample and independent, ratings missing at random.

    Parameters
    ----------
    codes, n_classes, weights, confidence_level
        As in `conger_kappa`.

    Returns
    -------
    Estimate
        With a jackknife Fisher-z interval, n = items with two or more ratings.

    Raises
    ------
    ValueError
        As `conger_kappa`.

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
    refused = too_little(patterns, confidence_level)
    if refused is not None:
        return refused
    distances = distances_of(weights, n_classes)
    pairs = [_LightPair.of(array, j, k, distances) for j, k in _pairs(array.shape[1])]
    defined = [pair for pair in pairs if pair.expected > 0]
    if not defined:
        return not_estimable(NO_EXPECTATION, method=METHOD, confidence_level=confidence_level)
    rated = array[(array != MISSING).sum(axis=1) >= 2]
    # What is left without an item depends on one cell of each pair's table alone.
    without = np.mean([pair.without(rated) for pair in defined], axis=0)
    value = float(np.mean([pair.kappa for pair in defined]))
    expected = float(np.mean([pair.expected for pair in defined]))
    counts = patterns.pairable().counts.astype(np.float64)
    return from_left_out(
        value, without, np.ones(len(rated), dtype=np.int64),
        observed=(1 - value) * expected, expected=expected, lowest=-1.0, n=len(rated),
        alike=all_alike(counts, distances), confidence_level=confidence_level,
    )  # fmt: skip


def _pairs(n_raters: int) -> Iterator[tuple[int, int]]:
    return combinations(range(n_raters), 2)


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
        """Return kappa without each item; an item that one of the two left out changes nothing."""
        q = round((self.without_one.size - 1) ** 0.5)
        one, other = codes[:, self.first], codes[:, self.second]
        shared = (one != MISSING) & (other != MISSING)
        return np.asarray(self.without_one[np.where(shared, one * q + other, q * q)])


def specific_agreement(
    patterns: CountPatterns, *, confidence_level: float = 0.95
) -> tuple[Estimate, ...]:
    """Estimate for each class how often a second rating repeats it.

    If one rating of an item is class k, this is the chance that another rating of the item is k
    too. Items are independent; raters are fixed.

    Parameters
    ----------
    patterns : CountPatterns
        From `count_patterns`.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    tuple of Estimate, length n_classes
        Fractions with jackknife Fisher-z intervals; n is the number of items with two or more
        ratings on which the class was used. A class that was never used is ``not_estimable``;
        a class for which all items show the same has the exact bound.

    Raises
    ------
    ValueError
        If `confidence_level` is outside (0, 1).

    References
    ----------
    Cicchetti and Feinstein (1990), J. Clin. Epidemiol. 43.
    https://doi.org/10.1016/0895-4356(90)90159-M

    Examples
    --------
    Class 0: one agreeing item and one split one, 2 x 1 / (2 x 1 + 1):

    >>> from calibration.agreement.ratings import count_patterns
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

    Examples
    --------
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

    Specific agreement beyond chance: a common class is repeated often by chance alone.

    Parameters
    ----------
    patterns : CountPatterns
        From `count_patterns`.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    tuple of Estimate, length n_classes
        As `estimate`; a class that was never used is ``not_estimable``.

    Raises
    ------
    ValueError
        If `confidence_level` is outside (0, 1).

    References
    ----------
    Fleiss (1971), Psychological Bulletin 76. https://doi.org/10.1037/h0031619

    Examples
    --------
    One of three items splits between class 0 and the rest, each has half of the ratings: 1/2 by
    chance, so (2/3 - 1/2) / (1 - 1/2):

    >>> from calibration.agreement.ratings import count_patterns
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
    """Agreement between reviewers on one set of items.

    Parameters
    ----------
    percent_agreement, alpha : Estimate
        Mean pair agreement of an item, and Krippendorff's nominal alpha.
    specific : tuple of Estimate, length n_classes
        Specific agreement of each class.
    n_items : int
        Items with two or more ratings, the n of the two coefficients.
    n_items_total, n_ratings, n_raters : int
        All items given, all ratings, and raters with at least one rating.
    class_shares : tuple of float
        Share of all ratings that each class received; zeros when nothing was rated.
    """

    percent_agreement: Estimate
    alpha: Estimate
    specific: tuple[Estimate, ...]
    n_items: int
    n_items_total: int
    n_ratings: int
    n_raters: int
    class_shares: tuple[float, ...]


def agreement(codes: ArrayLike, *, n_classes: int, confidence_level: float = 0.95) -> Agreement:
    """Estimate the agreement between reviewers, whole and per class.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes : int
        Declared number of classes, used or not.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Agreement
        Percent agreement, alpha and specific agreement with the numbers behind them.

    Raises
    ------
    ValueError
        As `count_patterns`, or if `confidence_level` is outside (0, 1).

    Examples
    --------
    >>> result = agreement([[0, 0], [1, 1], [0, 1], [0, -1]], n_classes=2)
    >>> result.n_items, result.n_ratings, result.alpha.value
    (3, 7, 0.44444)
    """
    array = validated_codes(codes, n_classes=n_classes)
    patterns = count_patterns(array, n_classes=n_classes)
    class_totals = patterns.multiplicity @ patterns.counts
    return Agreement(
        percent_agreement=estimate(PERCENT_AGREEMENT, patterns, confidence_level=confidence_level),
        alpha=estimate(KRIPPENDORFF_ALPHA, patterns, confidence_level=confidence_level),
        specific=specific_agreement(patterns, confidence_level=confidence_level),
        n_items=patterns.pairable().n_items,
        n_items_total=patterns.n_items,
        n_ratings=patterns.n_ratings,
        n_raters=int((array >= 0).any(axis=0).sum()) if array.size else 0,
        class_shares=tuple((class_totals / max(1, patterns.n_ratings)).tolist()),
    )


def cohen_kappa(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate Cohen's kappa of two raters on the items that both rated.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, 2)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes, weights, confidence_level
        As in `conger_kappa`.

    Returns
    -------
    Estimate
        With the standard error of Fleiss, Cohen and Everitt and a Fisher-z interval, t with
        n - 1 df, n = items that both rated. ``not_estimable`` for other than two raters.

    Raises
    ------
    ValueError
        As `conger_kappa`.

    References
    ----------
    Cohen (1960), Educ. Psychol. Meas. 20. https://doi.org/10.1177/001316446002000104
    Fleiss, Cohen and Everitt (1969), Psychol. Bull. 72. https://doi.org/10.1037/h0028106

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
    refused = too_little(count_patterns(array, n_classes=n_classes), confidence_level)
    if refused is not None:
        return refused
    both = array[(array != MISSING).all(axis=1)]
    table = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(table, (both[:, 0], both[:, 1]), 1)
    matrix = None if weights is None else checked_weights(weights, n_classes=n_classes)
    return kappa_of_table(table, weights=matrix, confidence_level=confidence_level)
