"""Ratios of sums over rows that are no runs with an outcome: tasks, costs, shares below a value."""

import numpy as np
from numpy.typing import NDArray

from calibration.estimates import Estimate
from calibration.metrics.arrays import FloatArray
from calibration.metrics.resampling import resample
from calibration.metrics.units import RUNS, TASKS, Units, summed


def ratio_estimates(
    numerators: FloatArray,
    denominators: FloatArray,
    *,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    like: NDArray[np.int64] | None = None,
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
    like : int array, shape (n,), optional
        How many independent rows each stands for; not with `clusters`.
    n_resamples : int, default 1000
        Resamples.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    tuple of Estimate, length n_ratios
        As `Resampled.ratio`.

    Raises
    ------
    ValueError
        If shapes differ, there is no row, a weight is not positive, or as `resample`.

    Examples
    --------
    >>> found = ratio_estimates(
    ...     np.array([[1.0], [0.0], [2.0]]), np.array([[1.0], [1.0], [2.0]]),
    ...     rng=np.random.default_rng(1),
    ... )
    >>> found[0].value
    0.75
    """
    if numerators.ndim != 2 or not len(numerators) or numerators.shape != denominators.shape:
        raise ValueError(
            f"numerators and denominators must have one shape (n, n_ratios), n at least 1, "
            f"got {numerators.shape!r} and {denominators.shape!r}"
        )
    n, n_ratios = numerators.shape
    weight = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if weight.shape != (n,) or not (weight > 0).all():
        raise ValueError(f"weights must be {n} positive numbers, got {weights!r}")
    rows = np.hstack([numerators, denominators]) * weight[:, None]
    if clusters is None:
        sums, place = np.unique(rows, axis=0, return_inverse=True)
        multiplicity = np.bincount(place.ravel(), weights=like).astype(np.int64)
    else:
        index = np.unique(np.asarray(clusters), return_inverse=True)[1].ravel().astype(np.int64)
        sums = summed(list(rows.T), index)
        multiplicity = np.ones(len(sums), dtype=np.int64)
    found = resample(
        Units(
            names=tuple(f"{kind}:{j}" for kind in ("top", "bottom") for j in range(n_ratios)),
            sums=sums,
            multiplicity=multiplicity.astype(np.int64),
            stratum=np.zeros(len(sums), dtype=np.int64),
            entering=(sums > 0).T.astype(np.int64) @ multiplicity,
            n=int(multiplicity.sum()),
            effective_share=_effective_share(weight, like),
            noun=RUNS if clusters is None else TASKS,
        ),
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
    )
    return tuple(found.ratio(f"top:{j}", f"bottom:{j}") for j in range(n_ratios))


def _effective_share(weight: FloatArray, like: NDArray[np.int64] | None) -> float:
    """Return Kish's effective number of rows, per row."""
    times = np.ones(weight.size) if like is None else like
    return float((weight @ times) ** 2 / (weight**2 @ times) / times.sum())
