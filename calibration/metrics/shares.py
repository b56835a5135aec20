"""Shares and means of what runs say of operation: rare, weighted, several runs a task."""

import numpy as np
from numpy.typing import NDArray

from calibration.estimates import OK, Estimate, not_estimable
from calibration.metrics.arrays import FloatArray, IntArray
from calibration.metrics.laws import beta_quantile, t_quantile

MINIMUM_UNITS = 5
NO_VARIANCE = 1e-20


def clustered_share(
    hits: FloatArray,
    of: FloatArray,
    *,
    n: int,
    stratum: IntArray | None = None,
    each: float = 1.0,
    noun: str = "runs",
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a share from sums over independent units, with limits that hold for rare events.

    The share is sum(hits) / sum(of): of runs, or of tool calls. Units (tasks, or runs) are
    independent within strata; what lies within a unit may be as alike as it likes.

    Parameters
    ----------
    hits, of : float array, shape (n_units,)
        Weighted sums of one unit, 0 <= hits <= of. Units with nothing in `of` do not enter.
    n : int
        Runs or calls behind all of them, unweighted.
    stratum : int array, shape (n_units,), optional
        Design stratum of each unit.
    each : float, default 1.0
        How many tasks or runs a unit stands for, where units are random groups of them.
    noun : str, default "runs"
        What the units are.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        No interval below 5 units. Where no unit or every unit is a hit, the exact bound over the
        units.

    Raises
    ------
    ValueError
        If shapes differ or `confidence_level` is outside (0, 1).

    Notes
    -----
    The exact binomial limits at the effective number of trials, share (1 - share) / variance: the
    bootstrap has no width at zero hits and is too short at a few, which is what error rates are.

    References
    ----------
    Korn and Graubard (1998), Survey Methodology 24, 193-201.
    Franco, Little, Louis and Slud (2019), J. Surv. Stat. Methodol. 7.
    https://doi.org/10.1093/jssam/smy019

    Examples
    --------
    None of 20 runs failed: at most 1 - .025 ** (1 / 20) fail.

    >>> found = clustered_share(np.zeros(20), np.ones(20), n=20)
    >>> found.value, found.interval
    (0.0, (0.0, 0.16843))
    """
    if hits.shape != of.shape or hits.ndim != 1:
        raise ValueError(f"hits and of must have one shape, got {hits.shape!r} and {of.shape!r}")
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}")
    method = f"exact limits at the effective number, over {noun} (Korn and Graubard)"
    inside = of > 0
    entering = int(inside.sum())
    if not entering:
        return not_estimable(
            "nothing of this kind was recorded", method=method, confidence_level=confidence_level
        )
    strata = _strata(stratum, inside)
    hits, of = hits[inside], of[inside]
    share = min(1.0, float(hits.sum() / of.sum()))
    status, limits = OK, None
    if entering < MINIMUM_UNITS:
        status = (
            f"not_estimable: no interval from {entering} {noun}, "
            f"at least {MINIMUM_UNITS} are needed"
        )
    else:
        variance, freedom = _variance((hits - share * of) / of.sum(), strata)
        if variance < NO_VARIANCE or not 0 < share < 1:
            effective = each * float(of.sum() ** 2 / (of @ of))
        else:
            effective = min(float(n), share * (1 - share) / variance)
            effective *= _shrunk(n, freedom, confidence_level)
        limits = exact_limits(share, effective, confidence_level)
    return Estimate(
        value=share,
        interval=limits,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
    )


def clustered_mean(
    sums: FloatArray,
    of: FloatArray,
    *,
    n: int,
    stratum: IntArray | None = None,
    each: float = 1.0,
    noun: str = "runs",
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate the mean of a score in [-1, 1] from sums over independent units.

    As `clustered_share`, with the linearised standard error and t. Where all units score the same
    the interval is the exact bound on the share of units that may differ.

    Examples
    --------
    Ten thumbs, seven of them up: (7 - 3) / 10.

    >>> scores = np.array([1.0] * 7 + [-1.0] * 3)
    >>> found = clustered_mean(scores, np.ones(10), n=10)
    >>> found.value, found.interval
    (0.4, (-0.29110, 1.0))
    """
    half = clustered_share(
        (sums + of) / 2,
        of,
        n=n,
        stratum=stratum,
        each=each,
        noun=noun,
        confidence_level=confidence_level,
    )
    method = f"mean score, t over {noun}"
    if half.value is None or half.interval is None:
        value = None if half.value is None else 2 * half.value - 1
        return Estimate(
            value=value, interval=None, n=half.n, method=method, status=half.status,
            confidence_level=confidence_level,
        )  # fmt: skip
    inside = of > 0
    mean = float(sums.sum() / of.sum())
    variance, freedom = _variance((sums - mean * of)[inside] / of.sum(), _strata(stratum, inside))
    low, high = (2 * end - 1 for end in half.interval)
    if variance >= NO_VARIANCE:
        reach = t_quantile((1 + confidence_level) / 2, freedom) * float(np.sqrt(variance))
        low, high = max(-1.0, mean - reach), min(1.0, mean + reach)
    return Estimate(
        value=mean,
        interval=(low, high),
        n=n,
        method=method,
        confidence_level=confidence_level,
    )


def exact_limits(share: float, n: float, confidence_level: float) -> tuple[float, float]:
    """Return the exact limits of a share of `n` trials, which need not be a whole number.

    Examples
    --------
    >>> exact_limits(0.5, 10, 0.95)
    (0.18709, 0.81291)
    """
    tail = (1 - confidence_level) / 2
    low = 0.0 if share <= 0 else beta_quantile(tail, n * share, n * (1 - share) + 1)
    high = 1.0 if share >= 1 else beta_quantile(1 - tail, n * share + 1, n * (1 - share))
    return low, high


def _strata(stratum: IntArray | None, inside: NDArray[np.bool_]) -> IntArray:
    if stratum is None:
        return np.zeros(int(inside.sum()), dtype=np.int64)
    found = np.unique(stratum[inside], return_inverse=True)[1].ravel()
    return found.astype(np.int64)


def _variance(influence: FloatArray, stratum: IntArray) -> tuple[float, float]:
    """Return the variance of summed influences within strata, and its degrees of freedom.

    A stratum of one unit is put to the first stratum: alone it would add no variance.
    """
    sizes = np.bincount(stratum)
    stratum = np.where(sizes[stratum] < 2, int(sizes.argmax()), stratum)
    sizes = np.bincount(stratum).astype(np.float64)
    means = np.bincount(stratum, weights=influence) / np.maximum(1, sizes)
    squares = np.bincount(stratum, weights=(influence - means[stratum]) ** 2)
    freedom = float(max(1, stratum.size - int(np.count_nonzero(sizes))))
    return float((sizes / np.maximum(1, sizes - 1) * squares).sum()), freedom


def _shrunk(n: int, freedom: float, confidence_level: float) -> float:
    """Return what the effective number loses, because the variance is itself estimated."""
    tail = (1 + confidence_level) / 2
    known, estimated = (t_quantile(tail, df) for df in (float(max(1, n - 1)), freedom))
    return (known / estimated) ** 2
