"""What each item adds to a coefficient, and the items that cost it most."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.chance_corrected import (
    Coefficient,
    distances_of,
)
from calibration.agreement.counts import CountPatterns, patterns_of_items
from calibration.agreement.intervals import (
    NO_SPREAD,
    FloatArray,
)
from calibration.agreement.refusals import too_little


@dataclass(frozen=True, slots=True, kw_only=True)
class Costly:
    """An item and what it costs a coefficient.

    Parameters
    ----------
    item : int
        Row of the ratings.
    cost : float
        The coefficient without the item minus the coefficient with it: above 0 where the item
        lowers it.
    """

    item: int
    cost: float


def costly_items(
    coefficient: Coefficient,
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    limit: int = 20,
) -> tuple[Costly, ...]:
    """Rank the items by what they cost a coefficient, the dearest first.

    Parameters
    ----------
    coefficient : Coefficient
        For instance `KRIPPENDORFF_ALPHA`.
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes, weights
        As in `estimate`.
    limit : int, default 20
        Items to name at most.

    Returns
    -------
    tuple of Costly
        Items that lower the coefficient, equal ones in the order of the ratings; empty where
        the coefficient is not defined.

    Examples
    --------
    Without the third item the two others agree in everything:

    >>> from calibration.agreement.chance_corrected import PERCENT_AGREEMENT
    >>> costly_items(PERCENT_AGREEMENT, [[0, 0], [1, 1], [0, 1]], n_classes=2)
    (Costly(item=2, cost=0.33333),)
    """
    patterns, of_item = patterns_of_items(codes, n_classes=n_classes)
    if too_little(patterns, 0.95) is not None:
        return ()
    features, distances = unit_features(coefficient, patterns, weights)
    totals = patterns.multiplicity @ features
    whole = coefficient.value(totals, distances)
    cost = np.nan_to_num(coefficient.value(totals - features, distances) - whole)[of_item]
    order = np.argsort(-cost, kind="stable")[:limit]
    return tuple(Costly(item=int(k), cost=float(cost[k])) for k in order if cost[k] > NO_SPREAD)


def unit_features(
    coefficient: Coefficient, patterns: CountPatterns, weights: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Return each pattern's part in the sums, zeros where it does not enter, and distances."""
    distances = distances_of(weights, patterns.counts.shape[1])
    counts = patterns.counts.astype(np.float64)
    enters = counts.sum(axis=1) >= (2 if coefficient.pairable_only else 1)
    some = coefficient.features(counts[enters], distances)
    features = np.zeros((len(counts), some.shape[1]))
    features[enters] = some
    return features, distances
