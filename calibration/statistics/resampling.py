"""The bootstrap: sums over units drawn with replacement, percentile and BCa limits."""

import numpy as np
from scipy import special

from calibration.statistics.estimate import OK, Estimate, FloatArray, IntArray
from calibration.statistics.intervals import clipped, normal_quantile

# Counts that are drawn at once, so that a million units do not fill the memory.
CELLS = 4_000_000


def resampled_sums(
    sums: FloatArray,
    multiplicity: IntArray,
    *,
    n_resamples: int,
    rng: np.random.Generator,
    one_by_one: bool = False,
) -> FloatArray:
    """Draw units with replacement and add them up.

    Parameters
    ----------
    sums : float array, shape (n_cells, n_features)
        What a unit of each cell adds.
    multiplicity : int array, shape (n_cells,)
        Equal units in the cell: a resample is a multinomial draw over cells, whatever their number.
    n_resamples : int
    rng : numpy.random.Generator
        Source of the draws; the same state gives the same sums.
    one_by_one : bool, default False
        Draw every unit by itself, which is faster where few are equal.

    Returns
    -------
    float array, shape (n_resamples, n_features)
        Without a row when there is no unit.

    Examples
    --------
    Any two of two equal units sum to two:

    >>> rng = np.random.default_rng(1)
    >>> resampled_sums(np.ones((1, 1)), np.array([2]), n_resamples=3, rng=rng).tolist()
    [[2.0], [2.0], [2.0]]
    """
    size, n_cells = int(multiplicity.sum()), len(sums)
    if size == 0:
        return np.zeros((0, sums.shape[1]))
    found = np.zeros((n_resamples, sums.shape[1]))
    owner = np.repeat(np.arange(n_cells), multiplicity) if one_by_one else None
    block = max(1, CELLS // (size if one_by_one else n_cells))
    for start in range(0, n_resamples, block):
        n = min(block, n_resamples - start)
        if owner is None:
            counts = rng.multinomial(size, multiplicity / size, size=n)
        else:
            place = owner[rng.integers(0, size, size=(n, size))] + np.arange(n)[:, None] * n_cells
            counts = np.bincount(place.ravel(), minlength=n * n_cells).reshape(n, n_cells)
        found[start : start + n] = counts.astype(np.float64) @ sums
    return found


def bias_and_skew(
    draws: FloatArray, value: float, influence: FloatArray, multiplicity: IntArray
) -> tuple[float, float]:
    """Return the bias correction and the acceleration of a BCa interval.

    Parameters
    ----------
    draws : float array, shape (n_resamples,)
    value : float
        On the units as they are.
    influence : float array, shape (n_cells,)
        What a unit of each cell moves the value by, centred.
    multiplicity : int array, shape (n_cells,)

    References
    ----------
    Efron (1987), J. Am. Stat. Assoc. 82. https://doi.org/10.1080/01621459.1987.10478410

    Examples
    --------
    As many draws above as below, and as much influence:

    >>> bias_and_skew(np.array([1.0, 3.0]), 2.0, np.array([-1.0, 1.0]), np.array([1, 1]))
    (0.0, 0.0)
    """
    # Draws equal to the value up to rounding of sums count as ties.
    ties = np.isclose(draws, value, rtol=0, atol=1e-12)
    below = np.mean((draws < value) & ~ties) + np.mean(ties) / 2
    shift = normal_quantile(float(np.clip(below, 1 / draws.size, 1 - 1 / draws.size)))
    second, third = float(multiplicity @ influence**2), float(multiplicity @ influence**3)
    return shift, third / (6 * second**1.5)


def bca_shares(shares: FloatArray, shift: float, skew: float) -> FloatArray:
    """Return the shares of the draws at which BCa puts the limits that are asked for.

    Examples
    --------
    >>> bca_shares(np.array([0.025, 0.975]), 0.0, 0.0)
    array([0.025, 0.975])
    """
    z = shift + special.ndtri(shares)
    return np.asarray(special.ndtr(shift + z / (1 - skew * z)), dtype=np.float64)


def percentile_estimate(
    value: float, draws: FloatArray, n: int, method: str, confidence_level: float, status: str
) -> Estimate:
    """Return a value with the percentile interval of its resamples, cut to [0, 1].

    Without an interval when `status` says why there should be none.
    """
    tails = [(1 - confidence_level) / 2, (1 + confidence_level) / 2]
    kept = draws.clip(0.0, 1.0)
    lower, upper = np.quantile(kept, tails)
    return Estimate(
        value=min(1.0, max(0.0, value)),
        interval=clipped(lower, upper) if status == OK else None,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=float(kept.std(ddof=1)) if status == OK else None,
    )
