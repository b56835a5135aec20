"""Gwet's AC1: agreement beyond a chance that hardly depends on how common the classes are."""

from calibration.agreement.chance_corrected import GWET_AC, estimate
from calibration.agreement.counts import CountPatterns
from calibration.estimates import Estimate


def gwet_ac1(patterns: CountPatterns, *, confidence_level: float = 0.95) -> Estimate:
    """Estimate Gwet's AC1 for nominal classes.

    Pair agreement beyond p_e = sum of pi_k (1 - pi_k) / (q - 1), with pi_k the mean share of
    class k in the ratings of an item and q the *declared* number of classes. Items are a random
    sample and independent, raters fixed, ratings missing at random. It stands beside alpha, not
    in its place: with the same raters it rises as one class becomes common.

    Parameters
    ----------
    patterns : CountPatterns
        From `count_patterns`.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        AC1 with a jackknife Fisher-z interval, t with n - 1 df, n = items with two or more
        ratings; items rated once count for the shares pi_k and in the jackknife. Status
        ``"no disagreement seen"``: value 1, and the lower limit is the exact bound on the share
        of disagreeing items at the observed pi_k. ``not_estimable`` when no item is rated twice.

    Raises
    ------
    ValueError
        If `confidence_level` is outside (0, 1).

    References
    ----------
    Gwet (2008), Brit. J. Math. Stat. Psychol. 61. https://doi.org/10.1348/000711006X126600

    Examples
    --------
    Two of three items agree, each class has half of the ratings: p_e = 1/4 + 1/4, and
    (2/3 - 1/2) / (1 - 1/2):

    >>> from calibration.agreement.counts import count_patterns
    >>> gwet_ac1(count_patterns([[0, 0], [1, 1], [0, 1]], n_classes=2)).value
    0.33333
    """
    return estimate(GWET_AC, patterns, confidence_level=confidence_level)
