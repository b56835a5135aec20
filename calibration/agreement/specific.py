"""Specific agreement: how often a second rating repeats each class."""

from dataclasses import replace

import numpy as np

from calibration.agreement.chance_corrected import FLEISS_KAPPA, Coefficient, estimate
from calibration.agreement.counts import CountPatterns, IntArray
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
    unanimous_interval,
)
from calibration.estimates import Estimate, not_estimable


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

    >>> from calibration.agreement.counts import count_patterns
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

    >>> from calibration.agreement.counts import count_patterns
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
            status=NO_DISAGREEMENT if value == 1 else NO_VARIATION,
        )
    interval = fisher_z_interval(value, se, df=n - 1, confidence_level=confidence_level, lowest=0.0)
    return Estimate(
        value=value, interval=interval, n=n, method=METHOD, confidence_level=confidence_level, se=se
    )
