"""Items that come in clusters, for instance several runs of one task: the cluster is the unit."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.agreement.chance_corrected import (
    Coefficient,
    all_alike,
    distances_of,
    from_features,
)
from calibration.agreement.counts import CountPatterns
from calibration.agreement.influence import unit_features
from calibration.agreement.intervals import check_confidence_level
from calibration.agreement.refusals import too_little
from calibration.estimates import Estimate


def clusters_of(pattern: ArrayLike, cluster: ArrayLike, *, n_patterns: int) -> NDArray[np.int64]:
    """Count the items of each pattern in each cluster.

    Parameters
    ----------
    pattern : array-like of int, shape (n_items,)
        Pattern of each item, from `patterns_of_items`.
    cluster : array-like, shape (n_items,)
        What an item belongs to, for instance its task.
    n_patterns : int
        Number of patterns.

    Returns
    -------
    int array, shape (n_clusters, n_patterns)
        Clusters in sorted order.

    Examples
    --------
    >>> clusters_of([0, 1, 1], ["a", "a", "b"], n_patterns=2).tolist()
    [[1, 1], [0, 1]]
    """
    names, of_item = np.unique(np.asarray(cluster), return_inverse=True)
    cells = of_item * n_patterns + np.asarray(pattern, dtype=np.int64)
    counted = np.bincount(cells, minlength=names.size * n_patterns)
    return counted.reshape(names.size, n_patterns).astype(np.int64)


def estimate_by_cluster(
    coefficient: Coefficient,
    patterns: CountPatterns,
    clusters: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a coefficient with the jackknife that leaves out a cluster at a time.

    The value is that of `estimate`; clusters are a random sample and independent, items of one
    may be alike.

    Parameters
    ----------
    coefficient, patterns, weights, confidence_level
        As in `estimate`; the patterns from `patterns_of_items`.
    clusters : array-like of int, shape (n_clusters, n_patterns)
        From `clusters_of`.

    Returns
    -------
    Estimate
        With a Fisher-z interval, t of n - 1 degrees of freedom, n = clusters with an item rated
        twice.

    Raises
    ------
    ValueError
        If the clusters are not those of the patterns, or as `estimate`.

    Examples
    --------
    The value does not depend on the clusters:

    >>> from calibration.agreement.chance_corrected import PERCENT_AGREEMENT
    >>> from calibration.agreement.counts import patterns_of_items
    >>> patterns, of_item = patterns_of_items([[0, 0], [0, 1], [1, 1]] * 2, n_classes=2)
    >>> cluster = clusters_of(of_item, [1, 1, 2, 2, 3, 3], n_patterns=3)
    >>> found = estimate_by_cluster(PERCENT_AGREEMENT, patterns, cluster)
    >>> found.value, found.n
    (0.66667, 3)
    """
    check_confidence_level(confidence_level)
    units = np.asarray(clusters, dtype=np.float64)
    if units.ndim != 2 or units.shape[1] != len(patterns.counts):
        raise ValueError(
            f"clusters must have {len(patterns.counts)} columns, got shape {units.shape!r}"
        )
    refused = too_little(patterns, confidence_level)
    if refused is not None:
        return refused
    pairable = patterns.counts.sum(axis=1) >= 2
    units = units[(units * pairable).sum(axis=1) > 0] if coefficient.pairable_only else units
    distances = distances_of(weights, patterns.counts.shape[1])
    found = from_features(
        coefficient, units @ unit_features(coefficient, patterns, weights)[0],
        np.ones(len(units), dtype=np.int64), distances,
        n=int(((units * pairable).sum(axis=1) > 0).sum()),
        alike=all_alike(patterns.counts.astype(np.float64), distances),
        confidence_level=confidence_level,
    )  # fmt: skip
    return replace(found, method=f"{found.method}, by cluster")
