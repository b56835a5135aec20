"""What estimators take and return: checked arrays, and a value with interval and status."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
OK = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyTime:
    """Limits that hold at every look while labels come in.

    `factor` x standard error is their distance from the value, on the logit scale.
    """

    factor: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One estimated number.

    Parameters
    ----------
    value : float or None
        Point estimate, rates as fractions; None when the data do not support one.
    interval : tuple of float or None
        Lower and upper limit at `confidence_level`; None when there is none.
    n : int
        Number of units (items, traces or clusters, as `method` says) behind the value.
    method : str
        Estimator and interval in words, for instance ``"jackknife, Fisher z"``.
    confidence_level : float, default 0.95
        Target coverage of the interval, in (0, 1).
    status : str, default "ok"
        ``"ok"``, ``"provisional: ..."``, or ``"not_estimable: <why, and what would help>"``.
    se : float or None
        Standard error on the scale of `value`, where the method has one.
    df : float or None
        Degrees of freedom of a t interval.
    any_time : AnyTime or None
        Limits that hold at every look, where the method has them.

    Examples
    --------
    >>> print(Estimate(value=0.62, interval=(0.59, 0.65), n=1000, method="bootstrap"))
    0.620 [0.590, 0.650] (95% bootstrap, n=1,000)
    >>> print(not_estimable("no labels: label some traces", method="bootstrap"))
    not estimable: no labels: label some traces
    """

    value: float | None
    interval: tuple[float, float] | None
    n: int
    method: str
    confidence_level: float = 0.95
    status: str = OK
    se: float | None = None
    df: float | None = None
    any_time: AnyTime | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval, or None without an interval."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 2

    def __str__(self) -> str:
        if self.value is None:
            return self.status.replace("_", " ", 1)
        limits = (
            "" if self.interval is None else f" [{self.interval[0]:.3f}, {self.interval[1]:.3f}]"
        )
        level = "" if self.interval is None else f"{100 * self.confidence_level:g}% "
        note = "" if self.status == OK else f" ({self.status})"
        return f"{self.value:.3f}{limits} ({level}{self.method}, n={self.n:,}){note}"


def not_estimable(why: str, *, method: str, n: int = 0, confidence_level: float = 0.95) -> Estimate:
    """Return an Estimate without a value, with the reason and the remedy as its status."""
    return Estimate(
        value=None,
        interval=None,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=f"not_estimable: {why}",
    )


def provisional(estimate: Estimate, why: str) -> Estimate:
    """Return an estimate marked as provisional, unless its own status says more."""
    open_ = estimate.status.startswith("provisional")
    if not estimate.ok or not (open_ or estimate.status == OK):
        return estimate
    return replace(estimate, status=f"provisional: {why}")


def check_confidence_level(confidence_level: float) -> None:
    """Raise ValueError unless the level lies strictly between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}")


def validated_weights(weights: FloatArray | None, n: int) -> FloatArray:
    """Return weights of shape (n,), ones when None; ValueError unless positive and finite."""
    if weights is None:
        return np.ones(n)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"weights must have shape ({n},), got {array.shape!r}")
    if not (np.isfinite(array) & (array > 0)).all():
        raise ValueError(f"weights must be positive and finite, got {array.min()!r}")
    return array


def validated_codes(codes: IntArray, *, n_codes: int | None, name: str) -> IntArray:
    """Return integer codes of shape (n,) from 0 to `n_codes` - 1; ValueError for any other."""
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

    ValueError if `clusters` does not have shape (n,).
    """
    if clusters is None:
        return None
    array = np.asarray(clusters)
    if array.shape != (n,):
        raise ValueError(f"clusters must have shape ({n},), got {array.shape!r}")
    names, index = np.unique(array, return_inverse=True)
    return None if names.size == n else index.astype(np.int64)


def validated_scores(scores: FloatArray) -> FloatArray:
    """Return scores of shape (n,); ValueError if one lies outside [0, 1]."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"scores must be one-dimensional, got shape {array.shape!r}")
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        raise ValueError(f"scores must be in [0, 1], got {array.min()!r} to {array.max()!r}")
    return array
