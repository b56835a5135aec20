"""Interval pieces shared by the judge-against-human estimators."""

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A variance this small is rounding error of sums, not variation between traces.
NO_VARIANCE = 1e-20


def check_confidence_level(confidence_level: float) -> None:
    """Raise ValueError unless the level lies strictly between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}")


def two_sided_z(confidence_level: float) -> float:
    """Return the standard normal quantile of a two-sided interval."""
    return float(special.ndtri((1 + confidence_level) / 2))


def two_sided_t(confidence_level: float, df: float) -> float:
    """Return the t quantile of a two-sided interval with `df` degrees of freedom."""
    return float(special.stdtrit(df, (1 + confidence_level) / 2))


def clipped(lower: float, upper: float) -> tuple[float, float]:
    """Cut an interval for a rate to [0, 1]."""
    return min(1.0, max(0.0, float(lower))), max(0.0, min(1.0, float(upper)))


def unseen_share_bound(n: float, *, confidence_level: float) -> float:
    """Return the upper Clopper-Pearson limit for a share of which 0 of `n` was seen.

    Examples
    --------
    >>> unseen_share_bound(20, confidence_level=0.95)
    0.16843
    """
    return float(1 - ((1 - confidence_level) / 2) ** (1 / n))


def unanimous_interval(value: float, n: float, *, confidence_level: float) -> tuple[float, float]:
    """Return what a mean in [0, 1] may be when all `n` units show the same value.

    Examples
    --------
    >>> unanimous_interval(0.0, 20, confidence_level=0.95)
    (0.0, 0.16843)
    """
    share = unseen_share_bound(n, confidence_level=confidence_level)
    return clipped(value * (1 - share), value * (1 - share) + share)


def validated_weights(weights: FloatArray | None, n: int) -> FloatArray:
    """Return weights of shape (n,), ones when None.

    Raises
    ------
    ValueError
        If the shape is wrong or a weight is not positive and finite.
    """
    if weights is None:
        return np.ones(n)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"weights must have shape ({n},), got {array.shape!r}")
    if not (np.isfinite(array) & (array > 0)).all():
        raise ValueError(f"weights must be positive and finite, got {array.min()!r}")
    return array


def validated_codes(codes: IntArray, *, n_codes: int | None, name: str) -> IntArray:
    """Return non-negative integer codes of shape (n,), below `n_codes` when given.

    Raises
    ------
    ValueError
        If the codes are not one-dimensional integers in that range.
    """
    array = np.asarray(codes)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape!r}")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be integers, got dtype {array.dtype!s}")
    if array.size and (array.min() < 0 or (n_codes is not None and array.max() >= n_codes)):
        raise ValueError(
            f"{name} must be in [0, {n_codes if n_codes is not None else 'inf'}), "
            f"got {array.min()} to {array.max()}"
        )
    return array.astype(np.int64)


def cluster_indices(clusters: NDArray[np.generic] | None, n: int) -> IntArray | None:
    """Return cluster numbers 0..G-1, or None when every unit is its own cluster.

    Raises
    ------
    ValueError
        If `clusters` does not have shape (n,).
    """
    if clusters is None:
        return None
    array = np.asarray(clusters)
    if array.shape != (n,):
        raise ValueError(f"clusters must have shape ({n},), got {array.shape!r}")
    names, index = np.unique(array, return_inverse=True)
    return None if names.size == n else index.astype(np.int64)
