"""Gwet's AC1: agreement beyond a chance that hardly depends on how common the classes are."""

import numpy as np

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
from calibration.estimates import OK, Estimate


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
    check_confidence_level(confidence_level)
    refused = too_little(patterns, confidence_level)
    if refused is not None:
        return refused
    rated = patterns.counts.sum(axis=1) >= 1
    counts, weight = patterns.counts[rated], patterns.multiplicity[rated]
    ratings = counts.sum(axis=1)
    pairable = ratings >= 2
    pairs = np.where(pairable, ratings * (ratings - 1), 1)
    agreeing = np.where(pairable, (counts * (counts - 1)).sum(axis=1) / pairs, 0.0)
    # An item's part in each of the sums of which AC1 is a function.
    features = np.column_stack([agreeing, pairable, counts / ratings[:, None]])
    totals = weight @ features
    n = int(totals[1])
    point, expected = _ac1(totals)
    value = float(point)
    if n == 1:
        return one_item(value, confidence_level)
    left_out, _ = _ac1(totals - features)
    interval, status, method = None, OK, METHOD
    se: float | None = None
    spread = jackknife_se(left_out, weight)
    if np.ptp(agreeing[pairable]) < NO_SPREAD or spread < NO_SPREAD:
        share = unseen_share_bound(n, confidence_level=confidence_level)
        kept = float(1 - totals[0] / n) * (1 - share)
        beyond = float(1 - expected)
        interval = max(-1.0, 1 - (kept + share) / beyond), 1 - kept / beyond
        method = EXACT
        status = NO_DISAGREEMENT if value == 1 else NO_VARIATION
    else:
        se = spread
        interval = fisher_z_interval(value, se, df=n - 1, confidence_level=confidence_level)
    return Estimate(
        value=value,
        interval=interval,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )


def _ac1(totals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return AC1 and its chance agreement from sums over items, the parts in the last axis."""
    agreeing, n_pairable = totals[..., 0], totals[..., 1]
    class_shares = totals[..., 2:]
    n_classes = class_shares.shape[-1]
    pi = class_shares / class_shares.sum(axis=-1, keepdims=True)
    expected = (pi * (1 - pi)).sum(axis=-1) / (n_classes - 1)
    return (agreeing / n_pairable - expected) / (1 - expected), expected
