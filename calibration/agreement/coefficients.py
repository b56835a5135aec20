"""Percent agreement, Krippendorff's nominal alpha and what a batch says with them."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from calibration.agreement.chance_corrected import (
    KRIPPENDORFF_ALPHA,
    PERCENT_AGREEMENT,
    estimate,
)
from calibration.agreement.counts import CountPatterns, count_patterns, validated_codes
from calibration.agreement.specific import specific_agreement
from calibration.estimates import Estimate


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


def percent_agreement(patterns: CountPatterns, *, confidence_level: float = 0.95) -> Estimate:
    """Estimate the mean over items of the share of rating pairs that agree.

    Items are treated as a random sample and independent; raters are fixed. Items with fewer than
    two ratings do not enter. It is not corrected for chance.

    Parameters
    ----------
    patterns : CountPatterns
        From `count_patterns`.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        Fraction in [0, 1] with a jackknife Fisher-z interval, t with n - 1 df, n = items with two
        or more ratings. If all items show the same pair agreement the interval is the exact bound
        and the status says so.

    Raises
    ------
    ValueError
        If `confidence_level` is outside (0, 1).

    References
    ----------
    Gwet (2008), Brit. J. Math. Stat. Psychol. 61. https://doi.org/10.1348/000711006X126600

    Examples
    --------
    Two of three items agree:

    >>> percent_agreement(count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)).value
    0.66667
    """
    return estimate(PERCENT_AGREEMENT, patterns, confidence_level=confidence_level)


def krippendorff_alpha(patterns: CountPatterns, *, confidence_level: float = 0.95) -> Estimate:
    """Estimate Krippendorff's alpha for nominal classes.

    Agreement beyond what pairing ratings at random would give: 1 is perfect, 0 is chance. Items
    are a random sample and independent, raters fixed; ratings missing at random. Items with fewer
    than two ratings do not enter.

    Parameters
    ----------
    patterns : CountPatterns
        From `count_patterns`.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        Alpha with a jackknife Fisher-z interval, t with n - 1 df, n = items with two or more
        ratings. Status ``"no disagreement seen"``: value 1, and the lower limit is the exact bound
        on the share of disagreeing items put through alpha at the observed prevalence.
        ``not_estimable`` with one class only or no item rated twice; one item has no interval.

    Raises
    ------
    ValueError
        If `confidence_level` is outside (0, 1).

    Notes
    -----
    The plain jackknife and the percentile bootstrap cover too little with few items and high
    agreement; on the Fisher z scale the jackknife is the best of those compared, and deterministic.

    References
    ----------
    Krippendorff (2004), Human Communication Research 30.
    https://doi.org/10.1111/j.1468-2958.2004.tb00738.x
    Hughes (2022), "On the asymptotic properties of ... Krippendorff's alpha".
    https://doi.org/10.48550/arXiv.2210.13265

    Examples
    --------
    Three items, ratings 3 of class 0 and 3 of class 1, one item split: observed disagreement
    2/6, expected (36 - 18) / 30 = 0.6, alpha = 1 - (1/3) / 0.6:

    >>> krippendorff_alpha(count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)).value
    0.44444
    """
    return estimate(KRIPPENDORFF_ALPHA, patterns, confidence_level=confidence_level)


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
        percent_agreement=percent_agreement(patterns, confidence_level=confidence_level),
        alpha=krippendorff_alpha(patterns, confidence_level=confidence_level),
        specific=specific_agreement(patterns, confidence_level=confidence_level),
        n_items=patterns.pairable().n_items,
        n_items_total=patterns.n_items,
        n_ratings=patterns.n_ratings,
        n_raters=int((array >= 0).any(axis=0).sum()) if array.size else 0,
        class_shares=tuple((class_totals / max(1, patterns.n_ratings)).tolist()),
    )
