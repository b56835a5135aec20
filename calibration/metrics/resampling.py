"""Intervals for ratios of sums: percentile bootstrap, clusters, strata, and what to do when few."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from calibration.estimates import OK, Estimate, not_estimable

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MINIMUM_UNITS = 5
BOOTSTRAP_UNITS = 20
NO_VARIATION = "no variation seen"
# A variance this small is rounding error of sums, not variation between runs.
NO_VARIANCE = 1e-20
# Resamples are drawn in blocks of about this many counts, to bound memory.
BLOCK = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Units:
    """What is resampled: rows, cells of equal rows, or clusters."""

    numerators: FloatArray
    denominators: FloatArray
    multiplicity: IntArray
    stratum: IntArray
    effective_share: float
    noun: str

    @property
    def n(self) -> int:
        return int(self.multiplicity.sum())


def ratio_estimates(
    numerators: FloatArray,
    denominators: FloatArray,
    *,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    strata: NDArray[np.generic] | None = None,
    cells: IntArray | None = None,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate ratios of weighted sums that lie in [0, 1], each with an interval.

    Ratio j is sum_i w_i numerators[i, j] / sum_i w_i denominators[i, j]. Rows are independent, or
    clusters are when given. One set of resamples serves all ratios.

    Parameters
    ----------
    numerators, denominators : float array, shape (n, n_ratios)
        Denominators are not negative; zero where the row does not enter that ratio.
    rng : numpy.random.Generator
        Source of the resamples.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities.
    clusters : array, shape (n,), optional
        Rows of a cluster are resampled together.
    strata : array, shape (n,), optional
        Resampling keeps the number of units of each stratum; strata of one unit are pooled.
    cells : int array, shape (n,), optional
        Numbers of groups of rows that are equal, or near enough to be resampled by their mean;
        not used with clusters.
    n_resamples : int, default 1000
        Resamples.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    tuple of Estimate, length n_ratios
        With 20 or more units (rows or clusters) that enter the ratio, the percentile bootstrap.
        With 5 to 19 the linearised ratio estimator, t with units - 1 df: the percentile interval
        is too short there. With fewer than 5 the value stays, being an exact mean over the rows
        given, but there is no interval and the status is ``not_estimable``. Where all units (of a
        stratum) show the same ratio every resample would too, so the interval is the exact bound
        on the share of units that may differ.

    Raises
    ------
    ValueError
        If shapes differ, a weight is not positive, a cluster lies in two strata, `n_resamples` is
        below 1, or `confidence_level` is outside (0, 1).

    References
    ----------
    Efron (1979), Ann. Statist. 7. https://doi.org/10.1214/aos/1176344552
    Cameron, Gelbach and Miller (2008), "Bootstrap-based improvements for inference with clustered
    errors", Rev. Econ. Stat. 90. https://doi.org/10.1162/rest.90.3.414

    Examples
    --------
    >>> ones = np.ones((30, 1))
    >>> estimate, = ratio_estimates(ones, ones, rng=np.random.default_rng(1))
    >>> estimate.interval, estimate.status
    ((0.88430, 1.0), 'no variation seen')
    """
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}")
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples!r}")
    if numerators.ndim != 2 or numerators.shape != denominators.shape:
        raise ValueError(
            f"numerators and denominators must have one shape (n, n_ratios), "
            f"got {numerators.shape!r} and {denominators.shape!r}"
        )
    units = _units(numerators, denominators, weights, clusters, strata, cells)
    active = (units.denominators > 0).T @ units.multiplicity
    tops, bottoms = (
        units.multiplicity @ units.numerators,
        units.multiplicity @ units.denominators,
    )
    draws = None
    if (active >= BOOTSTRAP_UNITS).any():
        draws = _bootstrap(units, n_resamples, rng)
    estimates = []
    for j in range(tops.size):
        if active[j] == 0:
            why = "no run enters this rate: add runs"
            estimates.append(not_estimable(why, method="ratio", confidence_level=confidence_level))
            continue
        value = float(tops[j] / bottoms[j])
        residuals = units.numerators[:, j] - value * units.denominators[:, j]
        entering = int(active[j])
        estimates.append(
            _estimate(
                value,
                residuals / bottoms[j],
                units,
                entering,
                None if draws is None else draws[:, j],
                _label(units, entering, n_resamples),
                confidence_level,
            )
        )
    return tuple(estimates)


def _units(
    numerators: FloatArray,
    denominators: FloatArray,
    weights: FloatArray | None,
    clusters: NDArray[np.generic] | None,
    strata: NDArray[np.generic] | None,
    cells: IntArray | None,
) -> _Units:
    n = numerators.shape[0]
    weight = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    for name, array in (("weights", weight), ("clusters", clusters), ("strata", strata)):
        if array is not None and np.shape(array) != (n,):
            raise ValueError(f"{name} must have shape ({n},), got {np.shape(array)!r}")
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError(f"weights must be positive and finite, got {weight.min()!r}")
    stratum = np.zeros(n, dtype=np.int64)
    if strata is not None:
        stratum = np.unique(np.asarray(strata), return_inverse=True)[1].astype(np.int64)
    tops, bottoms = numerators * weight[:, None], denominators * weight[:, None]
    multiplicity, noun = np.ones(n, dtype=np.int64), "runs"
    names, index = np.arange(n), np.arange(n)
    if clusters is not None:
        names, index = np.unique(np.asarray(clusters), return_inverse=True)
    if names.size < n:
        noun = "tasks"
        tops, bottoms = _summed(tops, index), _summed(bottoms, index)
        multiplicity = np.ones(names.size, dtype=np.int64)
        owner = np.zeros(names.size, dtype=np.int64)
        owner[index] = stratum
        if (owner[index] != stratum).any():
            raise ValueError("clusters must each lie in one stratum, got one in two strata")
        stratum = owner
    elif cells is not None:
        stratum_count = int(stratum.max(initial=0)) + 1
        _, first, index, multiplicity = np.unique(
            np.asarray(cells) * stratum_count + stratum,
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        tops = _summed(tops, index) / multiplicity[:, None]
        bottoms = _summed(bottoms, index) / multiplicity[:, None]
        stratum = stratum[first]
    return _Units(
        numerators=tops,
        denominators=bottoms,
        multiplicity=multiplicity.astype(np.int64),
        stratum=_pool_lone(stratum, multiplicity),
        effective_share=float(weight.sum() ** 2 / (weight @ weight) / n),
        noun=noun,
    )


def _summed(rows: FloatArray, index: IntArray) -> FloatArray:
    return np.stack([np.bincount(index, weights=column) for column in rows.T], axis=1)


def _pool_lone(stratum: IntArray, multiplicity: IntArray) -> IntArray:
    """Pool the strata of one unit: resampled alone they would add no variance."""
    sizes = np.bincount(stratum, weights=multiplicity)
    return np.where(sizes[stratum] < 2, sizes.size, stratum).astype(np.int64)


def _bootstrap(units: _Units, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return resampled ratios, shape (n_resamples, n_ratios); NaN where nothing enters."""
    both = np.hstack([units.numerators, units.denominators])
    sums = np.zeros((n_resamples, both.shape[1]))
    for stratum in np.unique(units.stratum).tolist():
        rows = np.flatnonzero(units.stratum == stratum)
        size = int(units.multiplicity[rows].sum())
        shares = units.multiplicity[rows] / size
        block = max(1, BLOCK // rows.size)
        for start in range(0, n_resamples, block):
            stop = min(n_resamples, start + block)
            counts = rng.multinomial(size, shares, size=stop - start)
            sums[start:stop] += counts.astype(np.float64) @ both[rows]
    half = both.shape[1] // 2
    bottoms = sums[:, half:]
    return np.divide(
        sums[:, :half], bottoms, out=np.full((n_resamples, half), np.nan), where=bottoms > 0
    )


def _label(units: _Units, entering: int, n_resamples: int) -> str:
    if entering >= BOOTSTRAP_UNITS:
        whole = "" if units.noun == "runs" else ", whole tasks"
        return f"bootstrap, {n_resamples:,} resamples{whole}"
    return f"ratio of totals over {entering} {units.noun}, t"


def _estimate(
    value: float,
    influence: FloatArray,
    units: _Units,
    entering: int,
    draws: FloatArray | None,
    method: str,
    confidence_level: float,
) -> Estimate:
    status, se = OK, None
    interval: tuple[float, float] | None = None
    variance = _linearised_variance(influence, units)
    if entering < MINIMUM_UNITS:
        status = (
            f"not_estimable: no interval from {entering} {units.noun}, "
            f"at least {MINIMUM_UNITS} are needed"
        )
    elif variance < NO_VARIANCE:
        status, method = NO_VARIATION, f"exact bound over {entering} {units.noun}"
        interval = _unanimous(value, entering * units.effective_share, confidence_level)
    elif entering < BOOTSTRAP_UNITS or draws is None:
        se = float(np.sqrt(variance))
        reach = float(stats.t.ppf((1 + confidence_level) / 2, entering - 1)) * se
        interval = max(0.0, value - reach), min(1.0, value + reach)
    elif np.isnan(draws).any():
        status = "no interval: some resamples hold no run of this kind; add runs"
    else:
        tail = (1 - confidence_level) / 2
        lower, upper = np.quantile(draws, [tail, 1 - tail])
        interval, se = (float(lower), float(upper)), float(np.sqrt(variance))
    return Estimate(
        value=value,
        interval=interval,
        n=units.n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )


def _linearised_variance(influence: FloatArray, units: _Units) -> float:
    """Return the variance of the summed influences, centred within strata."""
    total = 0.0
    for stratum in np.unique(units.stratum).tolist():
        rows = units.stratum == stratum
        count, size = units.multiplicity[rows], int(units.multiplicity[rows].sum())
        centred = influence[rows] - count @ influence[rows] / size
        total += size / max(1, size - 1) * float(count @ centred**2)
    return total


def _unanimous(value: float, n: float, confidence_level: float) -> tuple[float, float]:
    """Return the exact bound: at most this share of units can differ, lying anywhere in [0, 1]."""
    share = 1 - ((1 - confidence_level) / 2) ** (1 / n)
    return max(0.0, value * (1 - share)), min(1.0, value * (1 - share) + share)
