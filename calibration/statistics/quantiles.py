"""A quantile of runs with the interval of its rank: latency and cost percentiles."""

import numpy as np
import pandas as pd

from calibration.statistics.estimate import OK, Estimate, not_estimable
from calibration.statistics.intervals import MINIMUM_UNITS, exact_limits
from calibration.statistics.means import SquareSums
from calibration.statistics.validation import FloatArray


def quantile_estimate(
    values: FloatArray,
    q: float,
    *,
    weights: FloatArray | None = None,
    n: int | None = None,
    below: SquareSums | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a quantile of a quantity that runs have, for instance the latency p95.

    Runs are independent, or tasks are when `below` sums over them. Nothing is assumed of the shape.

    Parameters
    ----------
    values : float array, shape (n_values,)
        Finite, each once or more often; leave out runs for which it is not known.
    q : float
        Share of runs at or below the quantile, in (0, 1).
    weights : float array, shape (n_values,), optional
        What each value weighs: its runs, or the sum of their inverse inclusion probabilities.
    n : int, optional
        Runs, where a value stands for several.
    below : SquareSums, optional
        Over the tasks: weight of the runs at or below the quantile, over weight of all. Needed
        where tasks repeat or runs have weights.
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
    >>> found = quantile_estimate(np.arange(1.0, 101.0), 0.5)
    >>> found.value, found.interval
    (50.0, (40.0, 61.0))
    """
    if not 0 < q < 1:
        raise ValueError(f"q must be in (0, 1), got {q!r}")
    if not np.isfinite(values).all():
        raise ValueError("values must be finite; leave out runs for which they are not known")
    method = "quantile, limits of its rank"
    n = values.size if n is None else n
    if not n:
        why = "no value is known: record it"
        return not_estimable(why, method=method, confidence_level=confidence_level)
    weight = np.ones(values.size) if weights is None else np.asarray(weights, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weight[order]) / weight.sum()

    def at(share: float) -> float:
        # Sums of weights miss their share by rounding.
        place = int(np.searchsorted(cumulated, share - 1e-12))
        return float(values[order][min(place, values.size - 1)])

    effective = _effective(q, n, below)
    low, high = exact_limits(q, effective, confidence_level)
    interval: tuple[float, float] | None = None
    tail = (1 - confidence_level) / 2
    status = f"provisional: no interval, {n:,} runs are too few for the {100 * q:g}th percentile"
    if q**effective <= tail and (1 - q) ** effective <= tail:
        status, interval = OK, (at(low), at(high))
    return Estimate(
        value=at(q),
        interval=interval,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
    )


def _effective(q: float, n: int, below: SquareSums | None) -> float:
    """Return the number of independent runs that would know the share below as closely."""
    if below is None:
        return float(n)
    if below.n < MINIMUM_UNITS or below.variance == 0:
        return float(below.n)
    return min(float(n), q * (1 - q) / below.variance)


def limits_of_bins(
    bins: pd.DataFrame, q: float, effective: float, *, confidence_level: float = 0.95
) -> tuple[float, float] | None:
    """Return the limits of a quantile from counts of narrow bins, or None with too few runs.

    As `quantile_estimate`, within a bin linear between its ends.

    Parameters
    ----------
    bins : pandas.DataFrame
        ``n``, ``low`` and ``high`` of each bin, in any order; no two overlap.
    q : float
        Share of runs at or below the quantile, in (0, 1).
    effective : float
        Independent runs that would know as much.

    Examples
    --------
    A hundred runs, one in each bin, at 1 to 100:

    >>> at = np.arange(1.0, 101.0)
    >>> limits_of_bins(pd.DataFrame({"n": 1, "low": at, "high": at}), 0.5, 100)
    (40.0, 61.0)
    """
    tail = (1 - confidence_level) / 2
    if effective <= 0 or q**effective > tail or (1 - q) ** effective > tail:
        return None
    low, high = exact_limits(q, effective, confidence_level)
    return _at_share(bins, low), _at_share(bins, high)


def quantile_of_bins(bins: pd.DataFrame, q: float) -> float:
    """Return the smallest value with share `q` at or below it, from counts of narrow bins.

    `bins` are those of `limits_of_bins`; a bin of one or two values, or of equal ones, is exact.

    Examples
    --------
    >>> at = np.arange(1.0, 101.0)
    >>> quantile_of_bins(pd.DataFrame({"n": 1, "low": at, "high": at}), 0.5)
    50.0
    """
    return _at_share(bins, q)


def _at_share(bins: pd.DataFrame, share: float) -> float:
    # Sorted here: a frame takes as long for each of hundreds of quantiles as all the rest.
    n, least, most = (bins[name].to_numpy(dtype=np.float64) for name in ("n", "low", "high"))
    order = np.argsort(least, kind="stable")
    n, least, most = n[order], least[order], most[order]
    last = n.cumsum()
    place = min(max(0.0, np.ceil(share * last[-1] - 1e-9) - 1), last[-1] - 1)
    k = int(np.searchsorted(last, place, side="right"))
    inside = place - (last[k] - n[k])
    return float(least[k] + (most[k] - least[k]) * (inside / (n[k] - 1) if n[k] > 1 else 0.0))
