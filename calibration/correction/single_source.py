"""The two estimates that use one source only: human labels alone, and the judge as it is."""

import numpy as np
from numpy.typing import NDArray

from calibration.correction.intervals import (
    NO_VARIANCE,
    FloatArray,
    check_confidence_level,
    clipped,
    cluster_indices,
    two_sided_t,
    unanimous_interval,
    validated_weights,
)
from calibration.correction.production import ProductionSums
from calibration.estimates import Estimate, not_estimable

NO_VARIATION = "no variation seen"
MINIMUM_CLUSTERS = 5


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


def human_only(
    scores: FloatArray,
    *,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate ASR from the labelled traces alone, without the judge.

    The labels must be a probability sample of production. Traces are independent, or independent
    between clusters when those are given.

    Parameters
    ----------
    scores : float array, shape (n,)
        Score of each labelled trace in [0, 1], with its own cost.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities (Hajek mean).
    clusters : array, shape (n,), optional
        Task of each trace, when tasks repeat.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        Mean with a t interval on n - 1 (or clusters - 1) df, cut to [0, 1]. If all scores are
        equal the interval is the exact bound and the status says so.

    Raises
    ------
    ValueError
        If a score is outside [0, 1], shapes differ, or a weight is not positive.

    Examples
    --------
    Mean 0.5; the standard error is s / sqrt(4) = 0.2887, t with 3 df 3.182:

    >>> human_only(np.array([0.0, 0.0, 1.0, 1.0])).se
    0.28868
    """
    check_confidence_level(confidence_level)
    array = validated_scores(scores)
    n = array.size
    method = "human labels only, t"
    if n < 2:
        why = f"{n} labelled traces: at least two are needed"
        return not_estimable(why, method=method, n=n, confidence_level=confidence_level)
    weight = validated_weights(weights, n)
    index = cluster_indices(clusters, n)
    value = float(weight @ array / weight.sum())
    influence = weight * (array - value) / weight.sum()
    if index is not None:
        influence = np.bincount(index, weights=influence)
        method = "human labels only, cluster-linearised t"
    units = influence.size
    variance = units / (units - 1) * float(influence @ influence) if units > 1 else 0.0
    interval: tuple[float, float] | None
    if index is not None and units < MINIMUM_CLUSTERS:
        status, interval, se = f"no interval: {units} tasks, at least 5 are needed", None, None
    elif variance < NO_VARIANCE:
        status, method, se = NO_VARIATION, "human labels only, exact bound", None
        interval = unanimous_interval(value, units, confidence_level=confidence_level)
    else:
        status, se = "ok", float(np.sqrt(variance))
        reach = two_sided_t(confidence_level, units - 1) * se
        interval = clipped(value - reach, value + reach)
    return Estimate(
        value=value,
        interval=interval,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )


def judge_raw(production: ProductionSums, *, confidence_level: float = 0.95) -> Estimate:
    """Return the mean score if every verdict were right: a diagnostic, never with an interval.

    Traces whose verdict is no class do not enter; n counts the others. There is no interval
    because its error is bias, which no sampling interval covers.

    Examples
    --------
    >>> from calibration.correction.production import production_sums_from_counts
    >>> judge_raw(production_sums_from_counts([70, 30], credit=[1.0, 0.0])).value
    0.7
    """
    if production.raw_n == 0:
        why = "no production trace has a verdict: run the judge"
        return not_estimable(why, method="judge as it is", confidence_level=confidence_level)
    return Estimate(
        value=production.raw_sum / production.raw_n,
        interval=None,
        n=production.raw_n,
        method="judge as it is",
        confidence_level=confidence_level,
    )


def judge_shares(production: ProductionSums) -> tuple[Estimate, ...]:
    """Return the shares of the class verdicts as they are: a diagnostic, never with an interval.

    Examples
    --------
    >>> from calibration.correction.production import production_sums_from_counts
    >>> found = judge_shares(production_sums_from_counts([70, 30, 9], credit=[1.0, 0.0]))
    >>> found[0].value, found[1].value
    (0.7, 0.3)
    """
    method = "judge as it is"
    counts = production.counts[: production.credit.size]
    if counts.sum() <= 0:
        why = "no production trace has a verdict: run the judge"
        return (not_estimable(why, method=method),) * counts.size
    n = round(float(counts.sum()))
    return tuple(
        Estimate(value=float(count / counts.sum()), interval=None, n=n, method=method)
        for count in counts
    )
