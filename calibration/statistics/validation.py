"""Validate arrays and options that every estimator takes."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

IntArray = NDArray[np.int64]

BoolArray = NDArray[np.bool_]


def check_confidence_level(confidence_level: float) -> None:
    """Raise ValueError unless the level lies strictly between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}")


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


def validated_scores(scores: FloatArray) -> FloatArray:
    """Return scores of shape (n,) in [0, 1].

    Raises
    ------
    ValueError
        If they are not one-dimensional or one lies outside [0, 1].
    """
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"scores must be one-dimensional, got shape {array.shape!r}")
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        raise ValueError(f"scores must be in [0, 1], got {array.min()!r} to {array.max()!r}")
    return array
