"""Coefficients in which it counts who gave a rating: Conger's and Cohen's kappa."""

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.chance_corrected import Coefficient, all_alike, from_features
from calibration.agreement.counts import MISSING, count_patterns, validated_codes
from calibration.agreement.intervals import METHOD, FloatArray, check_confidence_level
from calibration.agreement.refusals import too_little
from calibration.agreement.weights import checked_weights
from calibration.estimates import Estimate, not_estimable


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
    array = validated_codes(codes, n_classes=n_classes)
    array = array[:, (array != MISSING).any(axis=0)]
    refused = too_little(count_patterns(array, n_classes=n_classes), confidence_level)
    if refused is not None:
        return refused
    rows, items = np.unique(array, axis=0, return_counts=True)
    rated = (rows != MISSING).any(axis=1)
    rows, items = rows[rated], items[rated]
    given = np.eye(n_classes)[rows] * (rows != MISSING)[..., None]
    counts = given.sum(axis=1)
    if weights is None:
        distances = 1 - np.eye(n_classes)
    else:
        distances = 1 - checked_weights(weights, n_classes=n_classes)
    ratings = counts.sum(axis=1)
    pairable = ratings >= 2
    differing = ((counts @ distances) * counts).sum(axis=1)
    mean = differing / np.where(pairable, ratings * (ratings - 1), 1)
    return from_features(
        _CONGER,
        np.column_stack([pairable, mean, given.reshape(len(rows), -1)]),
        items,
        distances,
        n=int(items[pairable].sum()),
        alike=all_alike(counts, distances),
        confidence_level=confidence_level,
    )


def _conger(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    q = distances.shape[0]
    given = totals[..., 2:].reshape(*totals.shape[:-1], -1, q)
    used = given / np.maximum(given.sum(axis=-1, keepdims=True), 1)
    r = used.shape[-2]
    # The sum over pairs of raters, for each pair of classes, without a rater with themselves.
    together, alone = used.sum(axis=-2), np.einsum("...gk,kl,...gl->...", used, distances, used)
    expected = (((together @ distances) * together).sum(axis=-1) - alone) / (r * (r - 1))
    return totals[..., 1] / totals[..., 0], expected


_CONGER = Coefficient(
    "conger_kappa",
    -1.0,
    lambda counts, _distances: counts,  # made from the raters' own ratings instead
    _conger,
    pairable_only=False,
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
        With a jackknife Fisher-z interval. ``not_estimable`` for other than two raters.

    Raises
    ------
    ValueError
        As `conger_kappa`.

    References
    ----------
    Cohen (1960), Educ. Psychol. Meas. 20. https://doi.org/10.1177/001316446002000104

    Examples
    --------
    >>> cohen_kappa([[0, 0], [1, 0], [1, 1], [0, -1]], n_classes=2).value
    0.4
    """
    array = validated_codes(codes, n_classes=n_classes)
    if array.shape[1] != 2:
        why = f"Cohen's kappa is for two raters, not {array.shape[1]}: see the pairs, or Conger's"
        return not_estimable(why, method=METHOD, confidence_level=confidence_level)
    return conger_kappa(
        array[(array != MISSING).all(axis=1)],
        n_classes=n_classes, weights=weights, confidence_level=confidence_level,
    )  # fmt: skip
