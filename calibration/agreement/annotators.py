"""Each rater: pairs, agreement with the others and with a key, use of the classes.

Arguments, assumptions and errors are those of `calibration.agreement.coefficients`. Raters see
different items, so their shares of a class differ even when they rate alike. Every comparison is
therefore within the item, and with each other rating by itself: the majority of the others would
change with the rater left out, and is closer to a rater who has like-minded colleagues.
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from calibration.agreement.coefficients import (
    GWET_AC,
    KRIPPENDORFF_ALPHA,
    PERCENT_AGREEMENT,
    Coefficient,
    UnitSums,
    estimate,
    sums_of,
)
from calibration.agreement.inference import DIFFERENCE, difference
from calibration.agreement.ratings import (
    MISSING,
    CountPatterns,
    checked_weights,
    class_counts,
    count_patterns,
    patterns_from_counts,
    validated_codes,
)
from calibration.statistics.contingency import (
    PAIRED,
    ClassAgainstKey,
    TestResult,
    bhapkar,
    holm,
    kappa_of_table,
    paired_centre,
    quality_against_key,
)
from calibration.statistics.estimate import (
    OK,
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    not_estimable,
)
from calibration.statistics.intervals import METHOD, NO_SPREAD, t_chance, two_sided_z

WALD = "item-clustered Wald test, Hotelling's F over the items on which raters differ"
NEVER_DIFFER = "undefined: the raters never differ"
ALWAYS_ALIKE = "undefined: the raters differ on every item in the same way; it needs no test"

# With fewer differing items per degree of freedom the test rejects too often.
ITEMS_PER_DF = 5

LEAST_DIFFERING = 10

# Smaller variance of item scores, relative to the largest, is rounding.
RANK_TOLERANCE = 1e-9

SHARED_NOTHING = "this rater shared no item with another: give some of the same items to both"
UNCHANGED = "no interval: no item changes alpha by this rater; rate more items"
NO_KEY_OF_CLASS = "no item of this class in the key that the rater rated: add some"
NOT_GIVEN = "the rater gave this class to no item of the key: add items"
NO_KEY = "this rater rated no item of the key: give some of them to this rater"
NOTHING_SHARED = "no item has two ratings of the panel and one from outside: give some to two"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginDifference:
    """How often one rater gives a class, beside the others on the same items.

    `share`, `share_of_others` : share of the class in the rater's ratings, and the mean over the
        same items of its share in the others' ratings; None when the rater shared no item
    `difference` : the first less the second, n = items that the rater shared with another
    `p_value`, `p_holm` : two-sided, alone and adjusted for all raters and classes compared
    """

    rater: int
    class_code: int
    share: float | None
    share_of_others: float | None
    difference: Estimate
    p_value: float | None
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualMargins:
    """Whether raters use the classes alike, and who does not.

    Parameters
    ----------
    test : TestResult
        Of all raters and classes at once; n = items with two or more ratings.
    differences : tuple of MarginDifference
        In the order of raters, then classes; classes that nobody used are left out.
    n_differing : int
        Items with two or more ratings that do not all agree: all that the test rests on.
    """

    test: TestResult
    differences: tuple[MarginDifference, ...]
    n_differing: int


def equal_margins(
    codes: ArrayLike, *, n_classes: int, confidence_level: float = 0.95
) -> EqualMargins:
    """Test that all raters use the classes alike, and estimate the difference of each rater.

    The hypothesis: on the items that a rater shared with others, each class is expected as often
    from this rater as from the others. Who rates an item may depend on the item, but not on the
    ratings beyond that. Raters may differ in reliability.

    The df of the test is the rank of the covariance: (raters - 1) x (classes - 1), less what never
    varies, and at most one for 5 items on which raters differ: with fewer the test is
    ``provisional`` and covers the directions of largest variance. No statistic with one rater,
    without an item rated twice, or when raters differ on fewer than 10 items. Intervals are not
    adjusted for their number, p_holm is.

    An item adds the score s = rating less mean of the others' ratings, for each rater and class.
    Summed, W = n m' V^- m, with m the mean and V the covariance of the n scores, is a Wald
    statistic with an item-clustered sandwich covariance; for two raters it is Bhapkar's. With
    u = W / (1 + W / n), Stuart-Maxwell's form, items without a difference drop out, and
    F = (u / df) (k - df) / (k - u) is Hotelling's on the k remaining items. Chi-square instead
    rejects for 11 to 17 of 100 equal panels with five raters, five classes and 100 items. A
    reduced df takes the leading directions of the sum of s s', which does not depend on the
    direction in which raters differ. Cochran's Q is another statistic: it takes raters to be
    exchangeable, not only equal in their margins.

    The interval of a difference adds one item on which only the rater gives the class, and one
    on which only the others do.

    References
    ----------
    Bhapkar (1966), J. Amer. Statist. Assoc. 61. https://doi.org/10.1080/01621459.1966.10502021
    Hotelling (1931), Ann. Math. Statist. 2. https://doi.org/10.1214/aoms/1177732979
    Bonett and Price (2012), "Adjusted Wald confidence interval for a difference of binomial
    proportions based on paired data", J. Educ. Behav. Stat. 37.
    https://doi.org/10.3102/1076998611411915

    Examples
    --------
    The table [[10, 8], [4, 10]] has 12 differing items: u = (8 - 4)^2 / 12 = 4/3, and
    W = 4/3 / (1 - 4/3 / 32). The first rater gives class 0 in 18 of 32 items, the second in 14:

    >>> codes = [[0, 0]] * 10 + [[0, 1]] * 8 + [[1, 0]] * 4 + [[1, 1]] * 10
    >>> found = equal_margins(codes, n_classes=2)
    >>> found.n_differing, found.test.df, found.test.statistic
    (12, 1, 1.3913)
    >>> found.differences[0].difference.value
    0.125
    """
    check_confidence_level(confidence_level)
    array = validated_codes(codes, n_classes=n_classes)
    array = array[(array != MISSING).sum(axis=1) >= 2]
    given = (array[:, :, None] == np.arange(n_classes)).astype(np.float64)
    rated = (array != MISSING).astype(np.float64)
    others = (given.sum(axis=1)[:, None, :] - given) * rated[:, :, None]
    others /= np.maximum(rated.sum(axis=1) - 1, 1)[:, None, None]
    scores = given - others
    differing = np.abs(scores).sum(axis=(1, 2)) > RANK_TOLERANCE
    return EqualMargins(
        test=_test(scores[differing], n=len(array)),
        differences=_differences(given, others, rated, confidence_level),
        n_differing=int(differing.sum()),
    )


def _test(scores: FloatArray, *, n: int) -> TestResult:
    """Test that the mean of the scores is zero, on the items that differ."""
    if n == 0:
        return _undefined(
            0, "undefined: no item has two ratings: give some items to two or more reviewers"
        )
    if len(scores) == 0:
        return _undefined(n, NEVER_DIFFER)
    k, flat = len(scores), scores.reshape(len(scores), -1)
    variances, directions = (part[..., ::-1] for part in np.linalg.eigh(flat.T @ flat))
    rank = int((variances > RANK_TOLERANCE * variances[0]).sum())
    if k < LEAST_DIFFERING:
        why = f"raters differ on {k} items, {LEAST_DIFFERING} are needed: rate more items"
        return _undefined(n, f"undefined: {why}")
    df = _directions(variances[:rank], k)
    along = flat.sum(axis=0) @ directions[:, :df]
    score_form = float((along**2 / variances[:df]).sum())
    if score_form > n * (1 - RANK_TOLERANCE):
        return _undefined(n, ALWAYS_ALIKE, df=df)
    status = OK
    if df < rank:
        status = (
            f"provisional: raters differ on {k} items, which carry {df} of {rank} degrees of "
            f"freedom: rate more items"
        )
    # Hotelling's F in the form that stays finite when all differing items differ alike; at least
    # the smallest p-value of a sign test on k items.
    p_value = float(special.betaincc(df / 2, (k - df) / 2, min(1.0, score_form / k)))
    p_value = max(p_value, 2.0 ** (1 - k))
    statistic = score_form / (1 - score_form / n)
    return TestResult(statistic=statistic, p_value=p_value, df=df, n=n, method=WALD, status=status)


def _directions(variances: FloatArray, k: int) -> int:
    """Return how many leading directions `k` items support; equal variances stay together."""
    df = rank = len(variances)
    if k < ITEMS_PER_DF * rank:
        df = k // ITEMS_PER_DF
        while df > 1 and variances[df - 1] - variances[df] < RANK_TOLERANCE * variances[0]:
            df -= 1
    return df


def _undefined(n: int, status: str, *, df: int = 0) -> TestResult:
    return TestResult(statistic=None, p_value=None, df=df, n=n, method=WALD, status=status)


def _differences(
    given: FloatArray, others: FloatArray, rated: FloatArray, confidence_level: float
) -> tuple[MarginDifference, ...]:
    shared = rated.sum(axis=0)
    own, theirs = given.sum(axis=0), others.sum(axis=0)
    squares = ((given - others) ** 2).sum(axis=0)
    centre, se = paired_centre(own - theirs, squares, shared[:, None])
    p_values = 2 * special.ndtr(-np.abs(centre) / se)
    reach = two_sided_z(confidence_level) * se
    used = np.flatnonzero(own.sum(axis=0) > 0).tolist()
    adjusted = holm(
        {(g, k): float(p_values[g, k]) for g in np.flatnonzero(shared).tolist() for k in used}
    )

    def compared(g: int, k: int) -> MarginDifference:
        if not shared[g]:
            return _nothing_shared(g, k, confidence_level)
        return MarginDifference(
            rater=g,
            class_code=k,
            share=float(own[g, k] / shared[g]),
            share_of_others=float(theirs[g, k] / shared[g]),
            difference=Estimate(
                value=float((own[g, k] - theirs[g, k]) / shared[g]),
                interval=(
                    max(-1.0, float(centre[g, k] - reach[g, k])),
                    min(1.0, float(centre[g, k] + reach[g, k])),
                ),
                n=int(shared[g]),
                method=PAIRED,
                confidence_level=confidence_level,
                se=float(se[g, k]),
            ),
            p_value=float(p_values[g, k]),
            p_holm=adjusted[g, k],
        )

    return tuple(compared(g, k) for g in range(len(shared)) for k in used)


def _nothing_shared(rater: int, class_code: int, confidence_level: float) -> MarginDifference:
    why = "this rater shared no item with another: give some of the same items to both"
    return MarginDifference(
        rater=rater,
        class_code=class_code,
        share=None,
        share_of_others=None,
        difference=not_estimable(why, method=PAIRED, confidence_level=confidence_level),
        p_value=None,
        p_holm=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideOthers:
    """One rater beside the others.

    `agreement_with_others` : mean over the shared items of the share of the others who gave the
        same class (of the agreement weight, where weights are given)
    `alpha_without`, `change` : Krippendorff's alpha of the other raters; that less alpha of all,
        above 0 where agreement is better without the rater
    `p_holm` : two-sided p-value of no change, adjusted for all raters; None without a standard
        error
    """

    rater: int
    agreement_with_others: Estimate
    alpha_without: Estimate
    change: Estimate
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOneOut:
    """Alpha of all raters, and each rater beside the others."""

    alpha: Estimate
    raters: tuple[BesideOthers, ...]


def leave_one_out(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> LeaveOneOut:
    """Estimate the agreement of each rater with the others, and alpha without each rater.

    A rater who differs from the others may be wrong or right: only a key tells. Agreement and alpha
    have jackknife Fisher-z intervals; the change has the interval of `difference`.
    ``not_estimable`` for a rater without shared items, and when no two others share an item.

    Examples
    --------
    The third differs from both others on one of four items; they never differ. With 5 and 7 of
    12 ratings of the two classes alpha of all is 1 - (2/12) / (70/132), without the third it is 1:

    >>> found = leave_one_out([[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1]], n_classes=2)
    >>> third = found.raters[2]
    >>> third.agreement_with_others.value, third.alpha_without.value, third.change.value
    (0.75, 1.0, 0.314286)
    """
    check_confidence_level(confidence_level)
    array = validated_codes(codes, n_classes=n_classes)
    similar = np.eye(n_classes)
    if weights is not None:
        similar = checked_weights(weights, n_classes=n_classes)
    counts = (array[:, :, None] == np.arange(n_classes)).sum(axis=1)
    alpha = estimate(
        KRIPPENDORFF_ALPHA, patterns_from_counts(counts),
        weights=similar, confidence_level=confidence_level,
    )  # fmt: skip
    raters = [
        _beside_others(rater, array[:, rater], counts, similar, alpha)
        for rater in range(array.shape[1])
    ]
    adjusted = holm({of.rater: p for of in raters if (p := _p_value(of.change)) is not None})
    return LeaveOneOut(
        alpha=alpha,
        raters=tuple(replace(of, p_holm=adjusted.get(of.rater)) for of in raters),
    )


def _p_value(change: Estimate) -> float | None:
    if change.value is None or change.se is None:
        return None
    return 2 * t_chance(-abs(change.value) / change.se, change.n - 1)


def _beside_others(
    rater: int, given: IntArray, counts: IntArray, similar: FloatArray, alpha: Estimate
) -> BesideOthers:
    # Items with the same counts and the same class of this rater are one pattern.
    alike = patterns_from_counts(np.column_stack([counts, given + 1]))
    own, of_all = alike.counts[:, -1] - 1, alike.counts[:, :-1]
    others = of_all - (own[:, None] == np.arange(len(similar)))
    shared = (own != MISSING) & (others.sum(axis=1) > 0)
    level = alpha.confidence_level
    rest, whole = (
        sums_of(KRIPPENDORFF_ALPHA, replace(alike, counts=counts), weights=similar)
        for counts in (others, of_all)
    )
    without = rest.jackknife(confidence_level=level)
    if shared.any():
        change = _change(rest, whole, without, alpha)
    else:
        change = not_estimable(SHARED_NOTHING, method=DIFFERENCE, n=alpha.n, confidence_level=level)
    return BesideOthers(
        rater=rater,
        agreement_with_others=_with_others(
            own[shared], others[shared], alike.multiplicity[shared], similar, level
        ),
        alpha_without=without,
        change=change,
        p_holm=None,
    )


_WITH_OTHERS = Coefficient(
    "agreement_with_others",
    0.0,
    lambda counts, _distances: counts,  # made from the rater's own ratings instead
    lambda totals, _distances: (totals[..., 1] / totals[..., 0], np.ones_like(totals[..., 0])),
    pairable_only=True,
)


def _with_others(
    own: IntArray,
    others: IntArray,
    items: IntArray,
    similar: FloatArray,
    confidence_level: float,
) -> Estimate:
    if not len(own):
        return not_estimable(SHARED_NOTHING, method=METHOD, confidence_level=confidence_level)
    differing = 1 - (similar[own] * others).sum(axis=1) / others.sum(axis=1)
    return UnitSums(
        coefficient=_WITH_OTHERS,
        features=np.column_stack([np.ones_like(differing), differing]),
        multiplicity=items,
        ratings=np.full(len(items), 2),
        distances=1 - similar,
        alike=bool(np.ptp(differing) < NO_SPREAD),
    ).jackknife(confidence_level=confidence_level)


def _change(rest: UnitSums, whole: UnitSums, without: Estimate, alpha: Estimate) -> Estimate:
    n, level = alpha.n, alpha.confidence_level
    if alpha.value is None or without.value is None:
        why = (alpha if alpha.value is None else without).status
        why = "without this rater: " * (alpha.value is not None) + why
        why = why.replace("not_estimable: ", "")
        return not_estimable(why, method=DIFFERENCE, n=n, confidence_level=level)
    if without.n == 1:
        return Estimate(
            value=without.value - alpha.value, interval=None, n=n, method=DIFFERENCE,
            confidence_level=level,
            status="no interval: without this rater one item with two or more ratings is left",
        )  # fmt: skip
    return difference(rest, whole, confidence_level=level, unchanged=UNCHANGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstKey:
    """One rater against the key.

    `n` : items with a rating and a key; `table` has the key's classes as rows, the rater's as
        columns
    `gwet_ac` : AC1 (AC2 with weights), the figure of the pass rule
    """

    rater: int
    n: int
    table: tuple[tuple[int, ...], ...]
    accuracy: Estimate
    cohen_kappa: Estimate
    gwet_ac: Estimate
    per_class: tuple[ClassAgainstKey, ...]


def against_key(
    codes: ArrayLike,
    key: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> tuple[AgainstKey, ...]:
    """Compare each rater with a key: canonical or adjudicated classes.

    The key is taken as true: its errors count as the rater's. A key made from these ratings
    flatters the raters who made it. Shares have the interval of `wilson_interval`, kappa that of
    `kappa_of_table`, AC1 that of `estimate`. ``not_estimable`` where there is nothing to compare.
    ValueError also if the key has another length or holds other than codes. With 30 to 100 items
    the normal interval kappa -+ 1.96 SE covers .88 to .94, on the Fisher scale .93 to .97.

    Parameters
    ----------
    key : array-like of int, shape (n_items,)
        The true class of each item, -1 where it is unknown.

    Examples
    --------
    Of three items of class 0 the rater finds two, and gives class 0 to three items:

    >>> codes = [[0], [0], [1], [1], [0], [1]]
    >>> found, = against_key(codes, [0, 0, 0, 1, 1, -1], n_classes=2)
    >>> found.table, found.n, found.accuracy.value
    (((2, 1), (1, 1)), 5, 0.6)
    """
    check_confidence_level(confidence_level)
    array = validated_codes(codes, n_classes=n_classes)
    truth = np.asarray(key)
    if truth.shape != array.shape[:1]:
        raise ValueError(f"key must have shape ({array.shape[0]},), got {truth.shape!r}")
    truth = validated_codes(truth[:, None], n_classes=n_classes)[:, 0]
    matrix = None if weights is None else checked_weights(weights, n_classes=n_classes)
    return tuple(
        _against(rater, truth, array[:, rater], n_classes, matrix, confidence_level)
        for rater in range(array.shape[1])
    )


def _against(
    rater: int,
    truth: IntArray,
    given: IntArray,
    n_classes: int,
    weights: ArrayLike | None,
    confidence_level: float,
) -> AgainstKey:
    both = np.column_stack([truth, given])[(truth != MISSING) & (given != MISSING)]
    cells = both[:, 0] * n_classes + both[:, 1]
    table = np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes)
    patterns = count_patterns(both, n_classes=n_classes)
    quality = quality_against_key(
        table, weights=weights, nothing=NO_KEY, no_key=NO_KEY_OF_CLASS, not_given=NOT_GIVEN,
        confidence_level=confidence_level,
    )  # fmt: skip
    ac = not_estimable(NO_KEY, method=METHOD, confidence_level=confidence_level)
    if len(both):
        ac = estimate(GWET_AC, patterns, weights=weights, confidence_level=confidence_level)
    return AgainstKey(
        rater=rater,
        n=len(both),
        table=tuple(tuple(row) for row in table.tolist()),
        accuracy=quality.accuracy,
        cohen_kappa=quality.kappa,
        gwet_ac=ac,
        per_class=quality.per_class,
    )


COEFFICIENTS = (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC)


@dataclass(frozen=True, slots=True, kw_only=True)
class BesidePanel:
    """One coefficient of a panel and of an outsider with the panel, on the same items.

    `panel` is the ceiling; `difference` is `outsider` less `panel`, negative where the outsider
    agrees less with the members than they do with each other.
    """

    panel: Estimate
    outsider: Estimate
    difference: Estimate

    @property
    def within(self) -> bool | None:
        """Whether the outsider may agree as well as the members do; None without an interval."""
        limits = self.difference.interval
        return None if limits is None else limits[1] >= 0


def outsider_beside_panel(
    codes: ArrayLike,
    outsider: ArrayLike,
    *,
    n_classes: int,
    confidence_level: float = 0.95,
) -> dict[str, BesidePanel]:
    """Compare the agreement of an outsider with the panel to that among the panel.

    Only items with two or more ratings of the panel and one of the outsider enter, on both sides.
    The result has ``percent_agreement``, ``krippendorff_alpha`` and ``gwet_ac``; the difference has
    the interval of `difference`, in which the difficulty of an item cancels.

    The outsider's coefficient is that of the pairs (outsider, member). The part of an item in the
    sums is the mean over its pairs for percent agreement and AC1, and half their sum for alpha:
    an item has the same weight on both sides, and with one class mix for all raters an outsider
    who rates as a member does has the panel's value. Agreement with a panel shows no more than
    being right as often as a member; where members err together a correct outsider falls below.

    Parameters
    ----------
    outsider : array-like of int, shape (n_items,)
        Classes that the outsider gave, -1 for none; `codes` are those of the panel.

    Examples
    --------
    Two members agree on three of four items, the outsider with the first on all four:

    >>> codes = [[0, 0], [1, 1], [0, 1], [1, 1]]
    >>> found = outsider_beside_panel(codes, [0, 1, 0, 1], n_classes=2)["percent_agreement"]
    >>> found.panel.value, found.outsider.value, found.difference.value
    (0.75, 0.875, 0.125)
    """
    check_confidence_level(confidence_level)
    counts = class_counts(codes, n_classes=n_classes)
    given = np.asarray(outsider)
    if given.shape != counts.shape[:1]:
        raise ValueError(f"outsider must have shape ({len(counts)},), got {given.shape!r}")
    other = class_counts(given[:, None], n_classes=n_classes)
    keep = (counts.sum(axis=1) >= 2) & (other.sum(axis=1) == 1)
    alike = patterns_from_counts(np.hstack([counts[keep], other[keep]]))
    panel = CountPatterns(
        counts=alike.counts[:, :n_classes],
        multiplicity=alike.multiplicity,
        n_items=alike.n_items,
        n_ratings=int(counts[keep].sum()),
    )
    own = alike.counts[:, n_classes:].argmax(axis=1)
    return {
        coefficient.name: _beside(coefficient, panel, own, confidence_level)
        for coefficient in COEFFICIENTS
    }


def _beside(
    coefficient: Coefficient,
    panel: CountPatterns,
    own: NDArray[np.int64],
    confidence_level: float,
) -> BesidePanel:
    if panel.n_items == 0:
        nothing = [
            not_estimable(NOTHING_SHARED, method=method, confidence_level=confidence_level)
            for method in (METHOD, METHOD, DIFFERENCE)
        ]
        return BesidePanel(panel=nothing[0], outsider=nothing[1], difference=nothing[2])
    counts = panel.counts.astype(np.float64)
    of_panel = sums_of(coefficient, panel)
    apart = 1 - counts[np.arange(len(own)), own] / counts.sum(axis=1)
    of_outsider = replace(
        of_panel,
        features=_pair_features(coefficient, counts, own, of_panel.distances),
        alike=bool(np.ptp(apart) < NO_SPREAD),
    )
    return BesidePanel(
        panel=of_panel.jackknife(confidence_level=confidence_level),
        outsider=of_outsider.jackknife(confidence_level=confidence_level),
        difference=difference(of_outsider, of_panel, confidence_level=confidence_level),
    )


def _pair_features(
    coefficient: Coefficient,
    counts: FloatArray,
    own: NDArray[np.int64],
    distances: FloatArray,
) -> FloatArray:
    """Return the part of each pattern in the sums over the pairs of the outsider and a member."""
    n_classes = counts.shape[1]
    one = np.eye(n_classes)
    pairs = (one[:, None] + one[None, :]).reshape(-1, n_classes)
    parts = coefficient.features(pairs, distances).reshape(n_classes, n_classes, -1)
    summed = np.einsum("pc,pcf->pf", counts, parts[own])
    scale = 0.5 if coefficient is KRIPPENDORFF_ALPHA else 1 / counts.sum(axis=1, keepdims=True)
    return np.asarray(summed * scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAgreement:
    """Agreement of two reviewers on the items that both rated.

    `table` : items by the class of `first` (rows) and of `second` (columns)
    `kappa` : Cohen's
    `margins` : Bhapkar's test of equal class shares, unweighted
    `bias_index` : half the sum of the absolute differences of their class shares, the share of
        items that one of them would have to move; with two classes Byrt's |b - c| / n. None without
        items.
    `kappa_max` : the highest kappa that their class shares allow; None where both use the same one
        class. Neither has an interval: both describe the ratings at hand.
    """

    first: int
    second: int
    n_shared: int
    table: tuple[tuple[int, ...], ...]
    percent_agreement: Estimate
    alpha: Estimate
    kappa: Estimate
    margins: TestResult
    bias_index: float | None
    kappa_max: float | None


def pairwise_agreement(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> tuple[PairAgreement, ...]:
    """Estimate the agreement of every two reviewers on the items they share.

    The pairs are in the order (0, 1), (0, 2), ...; those that share nothing are ``not_estimable``.
    One product of the one-hot ratings gives the tables of all pairs at once.

    References
    ----------
    Byrt, Bishop and Carlin (1993), J. Clin. Epidemiol. 46.
    https://doi.org/10.1016/0895-4356(93)90018-V

    Examples
    --------
    The paradox table [[80, 10], [5, 5]] has bias (10 - 5) / 100; the margins .90 and .85 allow
    agreement .95 where .78 is chance, so kappa to (.95 - .78) / .22:

    >>> codes = [[0, 0]] * 80 + [[0, 1]] * 10 + [[1, 0]] * 5 + [[1, 1]] * 5
    >>> pair, = pairwise_agreement(codes, n_classes=2)
    >>> pair.table, pair.bias_index, pair.kappa_max
    (((80, 10), (5, 5)), 0.05, 0.772727)
    """
    check_confidence_level(confidence_level)
    array = validated_codes(codes, n_classes=n_classes)
    matrix = None if weights is None else checked_weights(weights, n_classes=n_classes)
    n_items, n_raters = array.shape
    one_hot = (array[:, :, None] == np.arange(n_classes)).reshape(n_items, n_raters * n_classes)
    # Products of 0 and 1 are exact in floating point, and far faster than on integers.
    wide = one_hot.astype(np.float64)
    gram = np.rint(wide.T @ wide).astype(np.int64)
    tables = gram.reshape(n_raters, n_classes, n_raters, n_classes)
    return tuple(
        _pair(first, second, tables[first, :, second, :], matrix, confidence_level)
        for first, second in combinations(range(n_raters), 2)
    )


def _pair(
    first: int, second: int, table: IntArray, weights: ArrayLike | None, confidence_level: float
) -> PairAgreement:
    patterns = _table_patterns(table)
    n, bias_index, kappa_max = patterns.n_items, None, None
    if n:
        one, other = table.sum(axis=1) / n, table.sum(axis=0) / n
        most, chance = float(np.minimum(one, other).sum()), float(one @ other)
        bias_index = float(np.abs(one - other).sum() / 2)
        kappa_max = None if chance >= 1 - 1e-12 else (most - chance) / (1 - chance)
    percent, alpha = (
        estimate(c, patterns, weights=weights, confidence_level=confidence_level)
        for c in (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA)
    )
    return PairAgreement(
        first=first,
        second=second,
        n_shared=n,
        table=tuple(tuple(row) for row in table.tolist()),
        percent_agreement=percent,
        alpha=alpha,
        kappa=kappa_of_table(table, weights=weights, confidence_level=confidence_level),
        margins=bhapkar(table),
        bias_index=bias_index,
        kappa_max=kappa_max,
    )


def _table_patterns(table: IntArray) -> CountPatterns:
    """Return the count patterns of a two-way table: class a with class b is the row e_a + e_b."""
    identity = np.eye(table.shape[0], dtype=np.int64)
    rows, columns = np.nonzero(table)
    multiplicity = table[rows, columns]
    return CountPatterns(
        counts=identity[rows] + identity[columns],
        multiplicity=multiplicity,
        n_items=int(multiplicity.sum()),
        n_ratings=2 * int(multiplicity.sum()),
    )
