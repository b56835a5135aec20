"""Post-stratification with percentile intervals: labels and production both resampled."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.correction.intervals import (
    FloatArray,
    IntArray,
    check_confidence_level,
    clipped,
    cluster_indices,
    validated_codes,
    validated_weights,
)
from calibration.correction.single_source import MINIMUM_CLUSTERS
from calibration.correction.strata import UNUSED, Strata
from calibration.estimates import OK, Estimate, not_estimable

METHOD = "post-stratified by verdict, two-source bootstrap"


def bootstrap_post_stratified(
    columns: ArrayLike,
    verdicts: IntArray,
    production_counts: ArrayLike,
    *,
    strata: Strata,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    n_resamples: int = 2_000,
    confidence_level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Bootstrap the post-stratified means of several columns at once.

    Assumes what `post_stratified` assumes. In each resample the labelled traces (whole tasks when
    they repeat) and the verdicts of production are drawn anew.

    Parameters
    ----------
    columns : array-like of float, shape (n, n_columns)
        What to average, for instance scores and class shares of the labelled traces, in [0, 1].
    verdicts : int array, shape (n,)
        Verdict codes of the labelled traces.
    production_counts : array-like of int, shape (n_verdicts,)
        All judged production traces by verdict.
    strata : Strata
        The grouping that `post_stratified` used; it is kept in every resample.
    rng : numpy.random.Generator
        Source of the resamples; the same state gives the same result.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities.
    clusters : array, shape (n,), optional
        Task of each labelled trace, when tasks repeat.
    n_resamples : int, default 2,000
        Number of resamples.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    tuple of Estimate, length n_columns
        Post-stratified means with percentile intervals and bootstrap standard errors. A column
        without any variation within the strata has no interval: no resample can show what the
        labels have not.

    Raises
    ------
    ValueError
        If shapes differ or a weight is not positive.

    Notes
    -----
    Labels alike in stratum, columns and weight are one cell, so a resample is a multinomial draw
    over the cells and a matrix product; so is the resample of production. A stratum that a resample
    leaves empty takes the mean of that resample.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    https://doi.org/10.1201/9780429246593

    Examples
    --------
    >>> scores = np.array([[1.0]] * 9 + [[0.0]] + [[1.0]] + [[0.0]] * 9)
    >>> (found,) = bootstrap_post_stratified(
    ...     scores, np.repeat([0, 1], 10), [800, 200], strata=Strata(groups=(0, 1), merged=()),
    ...     rng=np.random.default_rng(0),
    ... )
    >>> found.value
    0.74
    """
    check_confidence_level(confidence_level)
    values = np.asarray(columns, dtype=np.float64)
    counts = np.asarray(production_counts, dtype=np.float64)
    codes = validated_codes(verdicts, n_codes=counts.size, name="verdicts")
    n = codes.size
    if values.ndim != 2 or values.shape[0] != n:
        raise ValueError(f"columns must have shape ({n}, n_columns), got {values.shape!r}")
    weight = validated_weights(weights, n)
    if n < 2 or strata.n_strata == 0 or counts.sum() <= 0:
        why = f"{n} labelled traces: label a random sample of production"
        refused = not_estimable(why, method=METHOD, n=n, confidence_level=confidence_level)
        return tuple(refused for _ in range(values.shape[1]))
    group = np.array(strata.groups)
    share = np.bincount(
        group[group != UNUSED], weights=counts[group != UNUSED], minlength=strata.n_strata
    )
    units, times = _units(values, group[codes], weight, cluster_indices(clusters, n), strata)
    parts = units.reshape(len(units), strata.n_strata, -1)
    means = (share / share.sum()) @ _stratum_means(parts, times[None, :])[0]
    drawn = _stratum_means(
        parts, rng.multinomial(round(times.sum()), times / times.sum(), size=n_resamples)
    )
    shares = rng.multinomial(round(counts.sum()), share / share.sum(), size=n_resamples)
    resampled = np.einsum("dg,dgc->dc", shares / counts.sum(), drawn)
    within = values - _stratum_means(parts, times[None, :])[0][group[codes]]
    varies = (np.abs(within) > 1e-12).any(axis=0).tolist()
    status = OK
    if clusters is not None and times.sum() < MINIMUM_CLUSTERS:
        status = f"no interval: {times.sum():g} tasks, at least {MINIMUM_CLUSTERS} are needed"
    return tuple(
        percentile(
            float(means[c]),
            resampled[:, c],
            n,
            METHOD,
            confidence_level,
            status if varies[c] else "no interval: no variation seen within the verdicts",
        )
        for c in range(values.shape[1])
    )


def _units(
    values: FloatArray,
    stratum: IntArray,
    weight: FloatArray,
    cluster: IntArray | None,
    strata: Strata,
) -> tuple[FloatArray, FloatArray]:
    """Return what is drawn, as weight and weighted columns by stratum, and how often it occurs."""
    extended = np.column_stack([weight, weight[:, None] * values])
    if cluster is None:
        keys, index, times = np.unique(
            np.column_stack([stratum, extended]), axis=0, return_index=True, return_counts=True
        )
        rows, at, place = extended[index], stratum[index], np.arange(len(keys))
    else:
        rows, at, place = extended, stratum, cluster
        times = np.ones(int(cluster.max()) + 1, dtype=np.int64)
    units = np.zeros((len(times), strata.n_strata, rows.shape[1]))
    np.add.at(units, (place, at), rows)
    return units.reshape(len(times), -1), times.astype(np.float64)


def _stratum_means(parts: FloatArray, times: FloatArray | IntArray) -> FloatArray:
    """Return the mean of each column in each stratum, shape (n_draws, n_strata, n_columns)."""
    sums = np.tensordot(np.asarray(times, dtype=np.float64), parts, axes=1)
    total, weighted = sums[..., :1], sums[..., 1:]
    overall = weighted.sum(axis=1, keepdims=True) / total.sum(axis=1, keepdims=True)
    result: FloatArray = np.where(
        total > 0, np.divide(weighted, total, where=total > 0, out=np.zeros_like(weighted)), overall
    )
    return result


def percentile(
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
