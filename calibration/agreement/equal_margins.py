"""Whether many raters use the classes alike, and who does not: comparisons within items.

Raters see different items, so their shares of a class differ even when they rate alike. Every
comparison is therefore made within the item: what a rater gave, less the mean of what the others
gave on the same item.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from calibration.agreement.counts import MISSING, validated_codes
from calibration.agreement.intervals import FloatArray, check_confidence_level
from calibration.agreement.margins import TestResult, holm
from calibration.estimates import OK, Estimate, not_estimable

WALD = "item-clustered Wald test, Hotelling's F over the items on which raters differ"
PAIRED = "difference within items, Bonett-Price"
NEVER_DIFFER = "undefined: the raters never differ"
ALWAYS_ALIKE = "undefined: the raters differ on every item in the same way; it needs no test"
# With fewer items that differ for a degree of freedom too many false alarms are raised.
ITEMS_PER_DF = 5
LEAST_DIFFERING = 10
# Directions in which the scores of items vary less than this, beside the most, are rounding.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginDifference:
    """How often one rater gives a class, beside the others on the same items.

    Parameters
    ----------
    rater, class_code : int
        Column of the ratings and position of the class.
    share, share_of_others : float or None
        Share of the class in the rater's ratings, and the mean over the same items of its share
        in the others' ratings; None when the rater shared no item.
    difference : Estimate
        `share` less `share_of_others`, n = items that the rater shared with another.
    p_value, p_holm : float or None
        Two-sided, alone and adjusted for all raters and classes compared; None where nothing
        was compared.
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
    """Test that all raters use the classes alike, and estimate who differs by how much.

    The hypothesis: on the items that a rater shared with others, each class is expected as often
    from this rater as from the others. Items are a random sample and independent; raters are
    fixed; who rates an item may depend on the item, but not on what would be said of it beyond
    that. Raters may be of different reliability.

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
    EqualMargins
        The test's df is the rank of the covariance: (raters - 1) x (classes - 1), less what never
        varies, and at most one for 5 items on which raters differ: with fewer the test is
        ``provisional`` and looks at the ways of differing in which they vary most. No statistic
        with one rater, without an item rated twice, or when raters differ on fewer than 10 items.
        Intervals are not adjusted for their number, p_holm is.

    Raises
    ------
    ValueError
        As `count_patterns`, or if `confidence_level` is outside (0, 1).

    Notes
    -----
    An item adds the score s = rating less mean of the others' ratings, for each rater and class.
    Summed, W = n m' V^- m, with m the mean and V the covariance of the n scores, is a Wald
    statistic with an item-clustered sandwich covariance; for two raters it is Bhapkar's. With
    u = W / (1 + W / n), Stuart-Maxwell's form, items without a difference drop out, and
    F = (u / df) (k - df) / (k - u) is Hotelling's on the k items that are left. Referring W to
    chi-square instead calls 11 to 17 of 100 equal panels different with five raters, five classes
    and 100 items. Where the test looks at fewer directions than the rank, they are the leading
    ones of the sum of s s', which does not depend on the direction in which raters differ.
    Cochran's Q is another statistic: it takes raters to be exchangeable, not only equal in their
    margins.

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
    The table [[10, 6], [2, 10]], for which Bhapkar's statistic is 2.15385; the first rater gives
    class 0 in 16 of 28 items, the second in 12:

    >>> codes = [[0, 0]] * 10 + [[0, 1]] * 6 + [[1, 0]] * 2 + [[1, 1]] * 10
    >>> found = equal_margins(codes + [[0, 1]] * 2 + [[1, 0]] * 2, n_classes=2)
    >>> found.n_differing, found.test.df
    (12, 1)
    >>> found.test.statistic  # (8 - 4)^2 / 12 = 4/3, and 4/3 / (1 - 4/3 / 32)
    1.3913
    >>> found.differences[0].difference.value  # 18/32 - 14/32
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
    """Test that the scores are zero in the mean, from those of the items that differ."""
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
    # Hotelling's F in the form that stays finite when all that differ differ alike; no smaller
    # than what k items can show by their signs.
    p_value = float(stats.beta.sf(min(1.0, score_form / k), df / 2, (k - df) / 2))
    p_value = max(p_value, 2.0 ** (1 - k))
    statistic = score_form / (1 - score_form / n)
    return TestResult(statistic=statistic, p_value=p_value, df=df, n=n, method=WALD, status=status)


def _directions(variances: FloatArray, k: int) -> int:
    """Return how many leading directions `k` items carry, without parting equal variances."""
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
    # One item more at 1 and one at -1.
    n = shared[:, None] + 2
    centre = (own - theirs) / n
    se = np.sqrt((((given - others) ** 2).sum(axis=0) + 2 - n * centre**2) / n**2)
    p_values = 2 * special.ndtr(-np.abs(centre) / se)
    reach = special.ndtri((1 + confidence_level) / 2) * se
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
