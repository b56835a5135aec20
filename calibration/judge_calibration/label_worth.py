"""How many labels a judge is worth: the effective sample size that its verdicts add."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.judge_calibration.post_stratification import UNUSED, Strata
from calibration.statistics.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    cluster_indices,
    not_estimable,
    validated_codes,
    validated_scores,
    validated_weights,
)
from calibration.statistics.intervals import NO_VARIANCE, NO_VARIATION, two_sided_t

METHOD = "1 / (1 - R squared), jackknife on the log scale"

FEWEST = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What the verdicts add to the labels.

    Parameters
    ----------
    multiplier : Estimate
        A label with the judge is worth as many without; not a rate, so it may exceed 1.
    r_squared : float or None
        Share of the variance of the score that the verdicts explain, as `PostStratified` has it
        less what as many random groups would explain.
    """

    multiplier: Estimate
    r_squared: float | None


def effective_gain(
    scores: FloatArray,
    verdicts: IntArray,
    *,
    strata: Strata,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    confidence_level: float = 0.95,
) -> Gain:
    """Estimate by how much verdicts multiply the worth of labels.

    The labelled traces are a probability sample of production. The multiplier is the variance of
    the score over its variance within verdicts, each with its degrees of freedom: 1 / (1 - R^2)
    with R^2 adjusted for the number of verdicts, which a judge that tells nothing does not raise.

    Parameters
    ----------
    scores, verdicts, weights, clusters
        As in `post_stratified`.
    strata : Strata
        The grouping that `post_stratified` used.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Gain
        ``not_estimable`` below 30 labelled traces, without any variation, when the verdicts leave
        none, or when all are in one stratum.

    Raises
    ------
    ValueError
        As `post_stratified`.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., section 5A.9: post-stratification.
    Dorner et al. (2025), "Limits to scalable evaluation at the frontier", ICLR.

    Examples
    --------
    Variance 40 x .25 / 39 over all, 2 x 20 x .09 / 38 within:

    >>> scores = np.array([1.0] * 18 + [0] * 2 + [1] * 2 + [0] * 18)
    >>> effective_gain(
    ...     scores, np.repeat([0, 1], 20), strata=Strata(groups=(0, 1), merged=())
    ... ).multiplier.value
    2.70655
    """
    check_confidence_level(confidence_level)
    array = validated_scores(scores)
    n = array.size
    if n < FEWEST:
        why = f"{n} labelled traces are too few to say what the judge adds: label {FEWEST}"
        return _none(why, n, confidence_level)
    codes = validated_codes(verdicts, n_codes=len(strata.groups), name="verdicts")
    group = np.array(strata.groups)[codes]
    if (group == UNUSED).any():
        raise ValueError("strata must hold every verdict of a labelled trace")
    if np.ptp(group) == 0:
        return _none("the labelled traces are of one group of verdicts", n, confidence_level)
    weight = validated_weights(weights, n)
    index = cluster_indices(clusters, n)
    whole_tasks = index is not None
    rows = np.column_stack([group, weight, array])
    times = np.ones(n)
    if index is None:
        # Equal traces are left out at once: a table of millions is a few kinds of trace.
        rows, counts = np.unique(rows, axis=0, return_counts=True)
        index, times = np.arange(len(rows)), counts.astype(np.float64)
    stratum, weight, array = rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2]
    sums = np.zeros((int(index.max()) + 1, strata.n_strata, 3))
    np.add.at(sums, (index, stratum), np.column_stack([weight, weight * array, weight * array**2]))
    times = times[: len(sums)]
    total = np.tensordot(times, sums, axes=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(_log_ratio(total[None], n)[0])
        left_out = _log_ratio(total[None] - sums, n)
    if not np.isfinite(value):
        seen = np.ptp(array) > 0
        why = (
            "verdicts leave no variation among these labels: label more"
            if seen
            else f"{NO_VARIATION}: label more"
        )
        return _none(why, n, confidence_level)
    n_units, known = int(times.sum()), np.isfinite(left_out)
    spread, times = left_out[known], times[known]
    squares = times @ (spread - times @ spread / times.sum()) ** 2
    se = float(np.sqrt((n_units - 1) / n_units * squares))
    reach = two_sided_t(confidence_level, n_units - 1) * se
    return Gain(
        multiplier=Estimate(
            value=float(np.exp(value)),
            interval=(float(np.exp(value - reach)), float(np.exp(value + reach))),
            n=n,
            method=METHOD + (", whole tasks" if whole_tasks else ""),
            confidence_level=confidence_level,
            se=float(np.exp(value)) * se,
        ),
        r_squared=1 - float(np.exp(-value)),
    )


def _log_ratio(sums: FloatArray, n: int) -> FloatArray:
    """Return log of the variance over all to that within strata, from sums (..., strata, 3).

    The sums of each stratum are of weights, weights x scores and weights x squared scores.
    """
    weight, first, second = sums[..., 0], sums[..., 1], sums[..., 2]
    means = np.divide(first, weight, out=np.zeros_like(first), where=weight > 1e-12)
    within = (second - first * means).sum(axis=-1)
    whole = first.sum(axis=-1)
    over_all = second.sum(axis=-1) - whole**2 / weight.sum(axis=-1)
    used = sums.shape[-2]
    ratio = np.log(over_all / (n - 1)) - np.log(within / max(1, n - used))
    alive = (within / weight.sum(axis=-1) > NO_VARIANCE**0.5) & (over_all > 0)
    result: FloatArray = np.where(alive, ratio, np.nan)
    return result


def _none(why: str, n: int, confidence_level: float) -> Gain:
    refused = not_estimable(why, method=METHOD, n=n, confidence_level=confidence_level)
    return Gain(multiplier=refused, r_squared=None)
