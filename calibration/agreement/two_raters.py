"""Cohen's kappa of two raters, with the error of Fleiss, Cohen and Everitt."""

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.chance_corrected import BELOW_THE_SCALE, NO_EXPECTATION
from calibration.agreement.counts import MISSING, count_patterns, validated_codes
from calibration.agreement.intervals import (
    EXACT,
    NO_DISAGREEMENT,
    NO_SPREAD,
    NO_VARIATION,
    check_confidence_level,
    fisher_z_interval,
    unseen_share_bound,
)
from calibration.agreement.refusals import too_little
from calibration.agreement.weights import checked_weights
from calibration.estimates import OK, Estimate, not_estimable
from calibration.two_way import WHOLE, table_kappa

FCE = "Fleiss-Cohen-Everitt, Fisher z"


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
        return not_estimable(why, method=FCE, confidence_level=confidence_level)
    refused = too_little(count_patterns(array, n_classes=n_classes), confidence_level)
    if refused is not None:
        return refused
    both = array[(array != MISSING).all(axis=1)]
    table = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(table, (both[:, 0], both[:, 1]), 1)
    return cohen_kappa_of_table(table, weights=weights, confidence_level=confidence_level)


def cohen_kappa_of_table(
    table: ArrayLike, *, weights: ArrayLike | None = None, confidence_level: float = 0.95
) -> Estimate:
    """Estimate Cohen's kappa from the two-way table of two raters.

    Parameters
    ----------
    table : array-like of int, shape (n_classes, n_classes)
        Items by the class of the first (rows) and of the second (columns).
    weights, confidence_level
        As in `conger_kappa`.

    Returns
    -------
    Estimate
        As `cohen_kappa`.

    Examples
    --------
    >>> found = cohen_kappa_of_table([[10, 2], [3, 31]])
    >>> found.value, found.se
    (0.7255, 0.1147)
    """
    check_confidence_level(confidence_level)
    counts = np.asarray(table, dtype=np.int64)
    if weights is not None:
        weights = checked_weights(weights, n_classes=len(counts))
    n, method = int(counts.sum()), FCE
    if n == 0:
        why = "no item has two ratings: give some items to two or more reviewers"
        return not_estimable(why, method=method, confidence_level=confidence_level)
    found = table_kappa(counts, weights)
    if found.value is None or found.se is None:
        return not_estimable(NO_EXPECTATION, method=method, n=n, confidence_level=confidence_level)
    value, differing, by_chance = found.value, 1 - found.observed, 1 - found.expected
    se, interval, status = None, None, OK
    one_class = max(counts.sum(axis=0).max(), counts.sum(axis=1).max()) == n
    if n == 1:
        status = "no interval: one item with two or more ratings, at least two are needed"
    elif found.observed < WHOLE and one_class:
        status = "no interval: one of the two used a single class; add items of others"
    elif value <= -1 + NO_SPREAD:
        status = BELOW_THE_SCALE
    elif found.observed >= WHOLE or found.se < NO_SPREAD:
        share = unseen_share_bound(n, confidence_level=confidence_level)
        kept = differing * (1 - share)
        interval = max(-1.0, 1 - (kept + share) / by_chance), min(1.0, 1 - kept / by_chance)
        method = EXACT
        status = NO_DISAGREEMENT if found.observed >= WHOLE else NO_VARIATION
    else:
        se = found.se
        interval = fisher_z_interval(value, se, df=n - 1, confidence_level=confidence_level)
    return Estimate(
        value=value, interval=interval, n=n, method=method, confidence_level=confidence_level,
        status=status, se=se,
    )  # fmt: skip
