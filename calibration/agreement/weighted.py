"""Agreement in a population from items that were drawn with unequal probabilities."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.chance_corrected import (
    Coefficient,
    all_alike,
    distances_of,
    from_features,
)
from calibration.agreement.counts import class_counts, count_patterns
from calibration.agreement.intervals import FloatArray, check_confidence_level
from calibration.agreement.refusals import too_little
from calibration.estimates import Estimate


def estimate_weighted(
    coefficient: Coefficient,
    codes: ArrayLike,
    item_weights: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a coefficient of the population that the items were drawn from.

    Every sum over items becomes a sum of weights: an item drawn with probability .1 stands for
    ten. Items (or clusters of them) are independent, raters fixed, ratings missing at random.

    Parameters
    ----------
    coefficient, weights, confidence_level
        As in `estimate`.
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    item_weights : array-like of float, shape (n_items,)
        Inverse inclusion probabilities.
    n_classes : int
        Declared number of classes, used or not.
    cluster : array-like, shape (n_items,), optional
        What an item belongs to, for instance its task.

    Returns
    -------
    Estimate
        With a jackknife Fisher-z interval: an item (or cluster) at a time is left out and the
        weights of the others stay. t has as many degrees of freedom as the effective number of
        items, (sum w)^2 / sum w^2, less one. Strata of the draw are not used, which makes the
        interval a little too wide rather than too narrow.

    Raises
    ------
    ValueError
        If a weight is not positive and finite, shapes differ, or as `estimate`.

    Notes
    -----
    Weights are scaled to sum to the effective number of items. Alpha expects disagreement between
    n (n - 1) ordered pairs of ratings, itself left out; with that scale W (W - 1) = W^2 - sum w^2,
    the weight of all pairs less that of each rating with itself.

    References
    ----------
    Shao and Tu (1995), The Jackknife and Bootstrap, chapter 6: survey weights.

    Examples
    --------
    The item that was drawn half as often stands for two: (1 + 2 x 0) / 3.

    >>> from calibration.agreement.chance_corrected import PERCENT_AGREEMENT
    >>> given = estimate_weighted(PERCENT_AGREEMENT, [[0, 0], [0, 1]], [1, 2], n_classes=2)
    >>> given.value
    0.33333
    """
    check_confidence_level(confidence_level)
    counts = class_counts(codes, n_classes=n_classes)
    weight = np.asarray(item_weights, dtype=np.float64)
    if weight.shape != (len(counts),):
        raise ValueError(f"item_weights must have shape ({len(counts)},), got {weight.shape!r}")
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError(f"item_weights must be positive and finite, got {weight.tolist()!r}")
    refused = too_little(count_patterns(codes, n_classes=n_classes), confidence_level)
    if refused is not None:
        return refused
    ratings = counts.sum(axis=1)
    enters = ratings >= (2 if coefficient.pairable_only else 1)
    weight = weight[enters] * weight[enters].sum() / (weight[enters] @ weight[enters])
    distances = distances_of(weights, n_classes)
    pairable = ratings[enters] >= 2
    features = weight[:, None] * coefficient.features(counts[enters].astype(np.float64), distances)
    names = np.arange(len(weight)) if cluster is None else np.asarray(cluster)[enters]
    summed, of_unit = _by_unit(np.column_stack([features, weight * pairable]), names)
    twice = of_unit[pairable]
    shown = summed[:, -1]
    effective = float(shown.sum() ** 2 / (shown @ shown))
    found = from_features(
        coefficient, summed[:, :-1], np.ones(len(summed), dtype=np.int64), distances,
        n=max(1, int(effective)),
        alike=all_alike(counts[enters].astype(np.float64), distances),
        confidence_level=confidence_level,
    )  # fmt: skip
    return replace(found, n=int(np.unique(twice).size), method=f"{found.method}, weighted")


def _by_unit(rows: FloatArray, names: np.ndarray) -> tuple[FloatArray, np.ndarray]:
    """Return the rows summed by unit, and the unit of each."""
    units, of_unit = np.unique(names, return_inverse=True)
    summed = np.zeros((units.size, rows.shape[1]))
    np.add.at(summed, of_unit, rows)
    return summed, of_unit
