"""How far two coefficients, or two rounds of ratings, lie apart on the same items."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from calibration.agreement.chance_corrected import Coefficient
from calibration.agreement.counts import CountPatterns, class_counts
from calibration.agreement.influence import unit_features
from calibration.agreement.intervals import (
    NO_SPREAD,
    FloatArray,
    check_confidence_level,
    jackknife_se,
)
from calibration.agreement.refusals import too_little
from calibration.estimates import OK, Estimate, not_estimable

DIFFERENCE = "difference on the same items, delete-one jackknife, t"


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
    >>> from calibration.agreement.chance_corrected import FLEISS_KAPPA, KRIPPENDORFF_ALPHA
    >>> from calibration.agreement.counts import count_patterns
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
    >>> from calibration.agreement.chance_corrected import PERCENT_AGREEMENT
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


Part = tuple[Coefficient, FloatArray, FloatArray]


def difference_of_parts(
    parts: tuple[Part, Part], items: NDArray[np.int64], n: int, confidence_level: float
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
        reach = float(stats.t.ppf((1 + confidence_level) / 2, n - 1)) * se
        interval = max(-2.0, value - reach), min(2.0, value + reach)
    return Estimate(
        value=value,
        interval=interval,
        n=n,
        method=DIFFERENCE,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )
