"""A quantile of runs with the interval of its rank: latency and cost percentiles."""

import numpy as np
from numpy.typing import NDArray
from scipy import special

from calibration.estimates import OK, Estimate, not_estimable
from calibration.metrics.arrays import FloatArray
from calibration.metrics.ratios import ratio_estimates


def quantile_estimate(
    values: FloatArray,
    q: float,
    *,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a quantile of a quantity that runs have, for instance the latency p95.

    Runs are independent, or tasks are when `clusters` names them. Nothing is assumed of the shape.

    Parameters
    ----------
    values : float array, shape (n,)
        Finite; leave out runs for which it is not known.
    q : float
        Share of runs at or below the quantile, in (0, 1).
    rng : numpy.random.Generator
        Passed to `ratio_estimates`, whose standard error gives the effective number of runs.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities.
    clusters : array, shape (n,), optional
        Task of each run.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        The smallest value with share q at or below it. The limits are the values at the exact
        limits of that share (Woodruff), over the effective number of runs. Too few runs to have a
        limit on one side: the value with status ``provisional`` and no interval.

    Raises
    ------
    ValueError
        If `q` or `confidence_level` is outside (0, 1), or a value is not finite.

    References
    ----------
    Woodruff (1952), J. Amer. Statist. Assoc. 47. https://doi.org/10.2307/2280781
    Korn and Graubard (1998), Survey Methodology 24, for the effective number of runs.

    Examples
    --------
    >>> found = quantile_estimate(np.arange(1.0, 101.0), 0.5, rng=np.random.default_rng(1))
    >>> found.value, found.interval
    (50.0, (40.0, 61.0))
    """
    if not 0 < q < 1:
        raise ValueError(f"q must be in (0, 1), got {q!r}")
    if not np.isfinite(values).all():
        raise ValueError("values must be finite; leave out runs for which they are not known")
    method = "quantile, limits of its rank"
    n = values.size
    if not n:
        why = "no value is known: record it"
        return not_estimable(why, method=method, confidence_level=confidence_level)
    weight = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weight[order]) / weight.sum()

    def at(share: float) -> float:
        # Sums of weights miss their share by rounding.
        place = int(np.searchsorted(cumulated, share - 1e-12))
        return float(values[order][min(place, n - 1)])

    value = at(q)
    effective = _effective(values <= value, q, weights, clusters, rng)
    low, high = _share_limits(q, effective, confidence_level)
    interval: tuple[float, float] | None = None
    tail = (1 - confidence_level) / 2
    status = f"provisional: no interval, {n:,} runs are too few for the {100 * q:g}th percentile"
    if q**effective <= tail and (1 - q) ** effective <= tail:
        status, interval = OK, (at(low), at(high))
    return Estimate(
        value=value,
        interval=interval,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
    )


def _effective(
    below: NDArray[np.bool_],
    q: float,
    weights: FloatArray | None,
    clusters: NDArray[np.generic] | None,
    rng: np.random.Generator,
) -> float:
    """Return the number of independent runs that would know the share below as closely."""
    if weights is None and clusters is None:
        return float(below.size)
    share = below[:, None].astype(np.float64)
    (estimate,) = ratio_estimates(
        share, np.ones_like(share), weights=weights, clusters=clusters, rng=rng, n_resamples=1
    )
    if not estimate.se:
        units = below.size if clusters is None else np.unique(np.asarray(clusters)).size
        return float(units)
    return min(float(below.size), q * (1 - q) / estimate.se**2)


def _share_limits(q: float, n: float, confidence_level: float) -> tuple[float, float]:
    """Return the exact limits of a share of q in n runs."""
    tail = (1 - confidence_level) / 2
    low = float(special.betaincinv(n * q, n * (1 - q) + 1, tail))
    return low, float(special.betaincinv(n * q + 1, n * (1 - q), 1 - tail))
