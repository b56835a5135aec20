"""Means and shares of labelled traces, each with the interval that its data allow."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from calibration.correction.intervals import (
    NO_VARIANCE,
    check_confidence_level,
    cluster_indices,
    two_sided_t,
    unseen_share_bound,
    validated_weights,
)
from calibration.correction.single_source import MINIMUM_CLUSTERS, NO_VARIATION
from calibration.estimates import OK, Estimate, not_estimable
from calibration.two_way import wilson_interval

MEAN, BY_TASK, EXACT = "mean, t", "mean, cluster-linearised t", "mean, exact bound"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanAgainstZero:
    """A mean and the chance of one as far from zero if the true mean were zero.

    Parameters
    ----------
    estimate : Estimate
    p_value : float or None
        Two-sided t test; None where the mean has no standard error.
    """

    estimate: Estimate
    p_value: float | None


def wilson_share(
    successes: float, n: float, *, nothing: str, confidence_level: float = 0.95
) -> Estimate:
    """Estimate a share with its Wilson interval; counts may be fractional (effective).

    Parameters
    ----------
    successes, n : float
        Traces that count, and all of them.
    nothing : str
        What to say, and what would help, when there are none.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Examples
    --------
    >>> wilson_share(8, 10, nothing="no traces: label some").value
    0.8
    """
    if n <= 0:
        return not_estimable(nothing, method="wilson", confidence_level=confidence_level)
    return Estimate(
        value=float(successes / n),
        interval=wilson_interval(successes, n, confidence_level=confidence_level),
        n=round(n),
        method="wilson",
        confidence_level=confidence_level,
    )


def mean_against_zero(
    values: ArrayLike,
    *,
    nothing: str,
    lowest: float = -1.0,
    highest: float = 1.0,
    weights: ArrayLike | None = None,
    clusters: NDArray[np.generic] | None = None,
    confidence_level: float = 0.95,
) -> MeanAgainstZero:
    """Estimate the mean of a bounded value over traces, and test it against zero.

    Traces are independent, or independent between clusters when those are given.

    Parameters
    ----------
    values : array-like of float, shape (n,)
        For instance the verdict's credit less the human one.
    nothing : str
        What to say, and what would help, when there are no traces.
    lowest, highest : float, default -1 and 1
        What a value can be; the interval is cut there.
    weights : array-like of float, shape (n,), optional
        Inverse inclusion probabilities (Hajek mean).
    clusters : array, shape (n,), optional
        Task of each trace, when tasks repeat.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    MeanAgainstZero
        A t interval on n - 1 (or clusters - 1) df. When all values are equal the interval is the
        exact bound on the share of traces that could differ, and there is no test.

    Raises
    ------
    ValueError
        If a value lies outside the range, shapes differ, or a weight is not positive.

    Examples
    --------
    Mean 0.5, standard deviation 0.57735, so t = 0.5 / 0.28868 = 1.732 on 3 df:

    >>> found = mean_against_zero([0.0, 0.0, 1.0, 1.0], nothing="no traces: label some")
    >>> found.estimate.value, found.estimate.se, found.p_value
    (0.5, 0.28868, 0.18169)
    """
    check_confidence_level(confidence_level)
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"values must be one-dimensional, got shape {array.shape!r}")
    n = array.size
    if n == 0:
        refused = not_estimable(nothing, method=MEAN, confidence_level=confidence_level)
        return MeanAgainstZero(estimate=refused, p_value=None)
    slack = 1e-9
    if not (array.min() >= lowest - slack and array.max() <= highest + slack):
        raise ValueError(
            f"values must be in [{lowest}, {highest}], got {array.min()!r} to {array.max()!r}"
        )
    weight = validated_weights(None if weights is None else np.asarray(weights), n)
    index = cluster_indices(clusters, n)
    value = float(weight @ array / weight.sum())
    influence = weight * (array - value) / weight.sum()
    method = MEAN
    if index is not None:
        influence, method = np.bincount(index, weights=influence), BY_TASK
    units = influence.size
    variance = units / (units - 1) * float(influence @ influence) if units > 1 else 0.0
    status, se, interval, p_value = OK, None, None, None
    if n == 1:
        status = "no interval: one trace, at least two are needed"
    elif index is not None and units < MINIMUM_CLUSTERS:
        status = f"no interval: {units} tasks, at least {MINIMUM_CLUSTERS} are needed"
    elif variance < NO_VARIANCE:
        method, status = EXACT, NO_VARIATION
        share = unseen_share_bound(units, confidence_level=confidence_level)
        kept = value * (1 - share)
        interval = max(lowest, kept + lowest * share), min(highest, kept + highest * share)
    else:
        se = float(np.sqrt(variance))
        reach = two_sided_t(confidence_level, units - 1) * se
        interval = max(lowest, value - reach), min(highest, value + reach)
        p_value = float(2 * stats.t.sf(abs(value) / se, units - 1))
    return MeanAgainstZero(
        estimate=Estimate(
            value=value, interval=interval, n=n, method=method,
            confidence_level=confidence_level, status=status, se=se,
        ),
        p_value=p_value,
    )  # fmt: skip
