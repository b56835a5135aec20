"""How many labels each stratum gets: in proportion to its size, or to what it adds to the error."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.correction.intervals import FloatArray, IntArray, validated_weights

# Fewest traces of a stratum: with one there is no variance to see, with none no estimate.
FLOOR = 2
# No stratum gets less than this part of its proportional share: what looks certain on a few
# labels may not be, and no weight is then more than four times the mean one.
DEFENCE = 0.25
# Labels' worth of trust in the spread of the wider group that a stratum belongs to.
PSEUDO_LABELS = 5.0


def fewest(counts: ArrayLike, n: int) -> IntArray:
    """Return the fewest traces that each stratum gets when `n` are drawn.

    Examples
    --------
    A quarter of its share, at least two, and no more than there are:

    >>> fewest([800, 199, 1], 100).tolist()
    [20, 4, 1]
    """
    sizes = np.asarray(counts, dtype=np.float64)
    part = np.floor(DEFENCE * n * sizes / sizes.sum())
    least: IntArray = np.minimum(sizes, np.maximum(FLOOR, part)).astype(np.int64)
    return least


def allocate(counts: ArrayLike, n: int, *, sds: ArrayLike | None = None) -> IntArray:
    """Return how many of `n` traces are drawn from each stratum.

    Without `sds` in proportion to the size of the stratum; with them (Neyman) in proportion to
    size x standard deviation, which makes the error of a stratified mean as small as `n` labels
    can. Every stratum gets its `fewest`, and none more than it has.

    Parameters
    ----------
    counts : array-like of int, shape (n_strata,)
        Traces in each stratum, at least one.
    n : int
        Traces to draw.
    sds : array-like of float, shape (n_strata,), optional
        Standard deviation of the score in each stratum.

    Returns
    -------
    int array, shape (n_strata,)
        Summing to `n`; fractions go to the largest remainders.

    Raises
    ------
    ValueError
        If a stratum is empty, `n` is above all traces or below the sum of the fewest, or a
        standard deviation is negative.

    References
    ----------
    Neyman (1934), J. R. Stat. Soc. 97. https://doi.org/10.2307/2342192
    Cochran (1977), Sampling Techniques, 3rd ed., sections 5.5 to 5.8.

    Examples
    --------
    >>> allocate([800, 200], 100).tolist()
    [80, 20]

    The small stratum varies four times as much: 800 x .1 = 80 and 200 x .4 = 80.

    >>> allocate([800, 200], 100, sds=[0.1, 0.4]).tolist()
    [50, 50]
    """
    sizes = np.asarray(counts, dtype=np.int64)
    if sizes.ndim != 1 or sizes.size == 0 or sizes.min() < 1:
        raise ValueError(f"counts must be at least 1 in each stratum, got {sizes.tolist()!r}")
    spread = np.asarray([1.0] * sizes.size if sds is None else sds, dtype=np.float64)
    if spread.shape != sizes.shape or not (np.isfinite(spread) & (spread >= 0)).all():
        raise ValueError(f"sds must be {sizes.size} numbers from 0, got {spread.tolist()!r}")
    low = fewest(sizes, n)
    if not low.sum() <= n <= sizes.sum():
        raise ValueError(
            f"n must be in [{low.sum()}, {sizes.sum()}] for {sizes.size} strata, got {n!r}"
        )
    pull = np.asarray(sizes * (spread if spread.any() else 1.0), dtype=np.float64)
    exact = _bounded_shares(pull, low.astype(np.float64), sizes.astype(np.float64), float(n))
    drawn = np.floor(exact + 1e-9).astype(np.int64)
    room = np.where(drawn < sizes, exact - drawn, -1.0)
    # Ties go to the first: the draw must not depend on rounding.
    for stratum in np.argsort(-np.round(room, 9), kind="stable")[: n - int(drawn.sum())].tolist():
        drawn[stratum] += 1
    return drawn


def _bounded_shares(
    pull: FloatArray, low: FloatArray, high: FloatArray, total: float
) -> FloatArray:
    """Return clip(c x pull, low, high) with the c at which it sums to `total`.

    This is the exact minimum of sum (N_h sd_h)^2 / n_h between the bounds.
    """
    bottom, top = 0.0, 1.0
    while np.clip(top * pull, low, high)[pull > 0].sum() + low[pull == 0].sum() < total:
        top *= 2
        if top > 1e18:
            break
    for _ in range(200):
        middle = (bottom + top) / 2
        if np.clip(middle * pull, low, high).sum() < total:
            bottom = middle
        else:
            top = middle
    shares: FloatArray = np.clip(top * pull, low, high)
    missing = total - shares.sum()
    if missing > 1e-6:  # all that vary are taken whole: the rest goes to those that do not
        shares = shares + missing * (high - shares) / (high - shares).sum()
    return shares


def stratum_sds(
    scores: FloatArray,
    stratum: NDArray[np.int64],
    parent: NDArray[np.int64],
    *,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return the standard deviation of the score in each stratum, steadied by its neighbours'.

    The variance of a stratum counts as its labels; five labels' worth of the variance within its
    parent (its verdict) are added, and to that in turn five of the pooled variance within
    parents. A stratum without labels has its parent's.

    Parameters
    ----------
    scores : float array, shape (n,)
        Scores of earlier labelled traces.
    stratum : int array, shape (n,)
        Stratum of each.
    parent : int array, shape (n_strata,)
        Group of strata that each belongs to.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities of the earlier draw.

    Returns
    -------
    float array, shape (n_strata,)

    Examples
    --------
    Pooled within the two parents the variance is .125. The first has (20 x .25 + 5 x .125) / 25 =
    .225, and as its own only stratum (20 x .25 + 5 x .225) / 25 = .245; the second .025 and .005:

    >>> scores = np.array([1.0, 0.0] * 10 + [1.0] * 20)
    >>> sds = stratum_sds(scores, np.repeat([0, 1], 20), np.array([0, 1]))
    >>> (sds**2).round(6).tolist()
    [0.245, 0.005]
    """
    weight = validated_weights(weights, scores.size)
    n_parents = int(parent.max()) + 1
    labels = np.bincount(parent[stratum], minlength=n_parents).astype(np.float64)
    of_parent = _variances(scores, parent[stratum], weight, n_parents)
    pooled = float(labels @ of_parent) / max(1.0, labels.sum())
    of_parent = (labels * of_parent + PSEUDO_LABELS * pooled) / (labels + PSEUDO_LABELS)
    own = np.bincount(stratum, minlength=parent.size).astype(np.float64)
    variance = _variances(scores, stratum, weight, parent.size)
    steadied = (own * variance + PSEUDO_LABELS * of_parent[parent]) / (own + PSEUDO_LABELS)
    sds: FloatArray = np.sqrt(steadied)
    return sds


def _variances(
    scores: FloatArray, group: NDArray[np.int64], weight: FloatArray, n_groups: int
) -> FloatArray:
    total = np.bincount(group, weights=weight, minlength=n_groups)
    filled = np.where(total > 0, total, 1.0)
    mean = np.bincount(group, weights=weight * scores, minlength=n_groups) / filled
    squares = np.bincount(group, weights=weight * (scores - mean[group]) ** 2, minlength=n_groups)
    result: FloatArray = squares / filled
    return result
