"""How narrow an interval a number of labels can be expected to give, before they are made."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.correction.intervals import (
    FloatArray,
    check_confidence_level,
    cluster_indices,
    two_sided_t,
    validated_codes,
    validated_weights,
)
from calibration.correction.post_stratified import post_stratified
from calibration.correction.single_source import human_only, validated_scores
from calibration.correction.strata import UNUSED, merge_small

# No score in [0, 1] can vary more than this about its mean.
WORST_VARIANCE = 0.25
# With fewer labels a spread is too uncertain to plan on.
FEWEST_LABELS = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """What is known, or assumed, about how scores vary.

    Parameters
    ----------
    variance : float
        Variance of the score over all traces.
    means, variances : float array, shape (n_verdicts,)
        Mean and variance of the score given each verdict.
    design_effect, design_effect_within : float
        By how much repeated tasks inflate the variance of the mean, without and with verdicts.
    n : int
        Labelled traces this was measured on; 0 when it is assumed.
    """

    variance: float
    means: FloatArray
    variances: FloatArray
    design_effect: float
    design_effect_within: float
    n: int

    @property
    def assumed(self) -> bool:
        """Whether this is the worst case and not measured."""
        return self.n == 0


def worst_spread(n_verdicts: int) -> Spread:
    """Return the widest spread scores in [0, 1] can have, with a judge that tells nothing.

    Examples
    --------
    >>> worst_spread(2).variance, worst_spread(2).variances.tolist()
    (0.25, [0.25, 0.25])
    """
    return Spread(
        variance=WORST_VARIANCE,
        means=np.full(n_verdicts, 0.5),
        variances=np.full(n_verdicts, WORST_VARIANCE),
        design_effect=1.0,
        design_effect_within=1.0,
        n=0,
    )


def measured_spread(
    scores: FloatArray,
    verdicts: NDArray[np.int64],
    production_counts: ArrayLike,
    *,
    verdict_values: FloatArray | None = None,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
) -> Spread:
    """Measure how scores vary, over all traces and given each verdict.

    The labelled traces must be a probability sample. A verdict with fewer than five labels
    takes mean and variance from the stratum it is merged into, as in `post_stratified`. Within a
    stratum of n_k labels the variance is (n_k v_k + V_w) / n_k, v_k its own and V_w the pooled
    one, so that a stratum whose few labels agree does not promise certainty. Below ten labels, or
    when all scores are equal, the worst case is returned.

    Parameters
    ----------
    scores : float array, shape (n,)
        Scores of the labelled traces in [0, 1].
    verdicts : int array, shape (n,)
        Verdict codes of the labelled traces; all 0 without a judge.
    production_counts : array-like of int, shape (n_verdicts,)
        Production traces by verdict, the labelled ones included.
    verdict_values : float array, shape (n_verdicts,), optional
        As in `post_stratified`.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities; the spread is that of production, not of the sample.
    clusters : array, shape (n,), optional
        Task of each labelled trace, when tasks repeat.

    Returns
    -------
    Spread
        Measured, or the worst case (`assumed`).

    Raises
    ------
    ValueError
        As `post_stratified`.

    Examples
    --------
    >>> scores = np.array([1.0] * 9 + [0] + [1] + [0] * 9)
    >>> found = measured_spread(scores, np.repeat([0, 1], 10), [800, 200])
    >>> found.variance, found.means.tolist(), found.variances.round(3).tolist()
    (0.263, [0.9, 0.1], [0.1, 0.1])
    """
    array = validated_scores(scores)
    counts = np.asarray(production_counts, dtype=np.float64)
    codes = validated_codes(verdicts, n_codes=counts.size, name="verdicts")
    n = array.size
    if n < FEWEST_LABELS or float(array.var()) <= 0:
        return worst_spread(counts.size)
    weight = validated_weights(weights, n)
    stratified = post_stratified(
        array, codes, counts, verdict_values=verdict_values, weights=weights
    )
    group = np.array(stratified.strata.groups)
    stratum = group[codes]
    labels = np.bincount(stratum, minlength=stratified.strata.n_strata)
    filled = np.maximum(labels, 1)
    total = np.bincount(stratum, weights=weight, minlength=labels.size)
    total = np.where(total > 0, total, 1.0)
    mean = np.bincount(stratum, weights=weight * array, minlength=labels.size) / total
    apart = weight * (array - mean[stratum]) ** 2
    own = np.bincount(stratum, weights=apart, minlength=labels.size) / total
    pooled = float(labels @ own) / max(1, n - labels.size)
    variance = own + pooled / filled
    used = group != UNUSED
    centre = float(weight @ array / weight.sum())
    overall = float(weight @ (array - centre) ** 2 / weight.sum())
    means, variances = np.full(counts.size, centre), np.full(counts.size, overall)
    means[used], variances[used] = mean[group[used]], variance[group[used]]
    inflated = _design_effects(array, codes, counts, verdict_values, weights, clusters)
    return Spread(
        variance=overall * n / (n - 1),
        means=means,
        variances=variances,
        design_effect=inflated[0],
        design_effect_within=inflated[1],
        n=n,
    )


def _design_effects(
    scores: FloatArray,
    codes: NDArray[np.int64],
    counts: FloatArray,
    values: FloatArray | None,
    weights: FloatArray | None,
    clusters: NDArray[np.generic] | None,
) -> tuple[float, float]:
    """Return the ratios of the variances with tasks kept together to those without, from 1 up."""
    if cluster_indices(clusters, scores.size) is None:
        return 1.0, 1.0
    pairs = [
        (
            human_only(scores, weights=weights, clusters=clusters),
            human_only(scores, weights=weights),
        ),
        (
            post_stratified(
                scores, codes, counts, verdict_values=values, weights=weights, clusters=clusters
            ).estimate,
            post_stratified(scores, codes, counts, verdict_values=values, weights=weights).estimate,
        ),
    ]
    ratios = [
        max(1.0, (kept.se / alone.se) ** 2) if kept.se and alone.se else 1.0
        for kept, alone in pairs
    ]
    return ratios[0], ratios[1]


def planned_human_only(n: int, spread: Spread, *, confidence_level: float = 0.95) -> float:
    """Return the expected half-width of the human-only rate from `n` labelled traces.

    Parameters
    ----------
    n : int
        Labelled traces, at least 2; an equal-probability sample of a large production.
    spread : Spread
        Measured or assumed.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    float
        t x sqrt(design effect x variance / n), at most 1/2: the interval is cut to [0, 1].

    Raises
    ------
    ValueError
        If `n` is below 2 or the level is not in (0, 1).

    Examples
    --------
    The worst case with 100 labels: t with 99 df x 0.5 / 10.

    >>> planned_human_only(100, worst_spread(1))
    0.09921
    """
    _check_n(n, confidence_level)
    se = float(np.sqrt(spread.design_effect * spread.variance / n))
    return min(0.5, two_sided_t(confidence_level, n - 1) * se)


def planned_post_stratified(
    n: int,
    spread: Spread,
    production_counts: ArrayLike,
    *,
    verdict_values: FloatArray | None = None,
    minimum_labels: int = 5,
    confidence_level: float = 0.95,
) -> float:
    """Return the expected half-width of the corrected rate from `n` labelled traces.

    The variance of `post_stratified` with the labels that each verdict is expected to get, the
    small ones merged in the same way. The labels of a verdict vary from sample to sample, which
    costs (1 - W_k) / n_k of its part on average; that is added.

    Parameters
    ----------
    n : int
        Labelled traces, at least 2; an equal-probability sample of production.
    spread : Spread
        Measured or assumed, for as many verdicts.
    production_counts : array-like of int, shape (n_verdicts,)
        Judged production traces by verdict, the ones to label included.
    verdict_values, minimum_labels
        As in `post_stratified`.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    float
        Half the expected length, at most 1/2.

    Raises
    ------
    ValueError
        If `n` is below 2, nothing is in production, or shapes differ.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., section 5A.9: post-stratification.

    Examples
    --------
    A judge that is always right leaves only the variance of the verdict shares; one that tells
    nothing leaves about what the labels alone give:

    >>> from dataclasses import replace
    >>> blind = worst_spread(2)
    >>> right = replace(blind, means=np.array([1.0, 0.0]), variances=np.zeros(2))
    >>> planned_post_stratified(100, right, [5000, 5000])
    0.01
    >>> planned_post_stratified(100, blind, [5000, 5000])
    0.09972
    """
    _check_n(n, confidence_level)
    counts = np.asarray(production_counts, dtype=np.float64)
    if counts.shape != spread.means.shape or counts.sum() <= 0:
        raise ValueError(
            f"production_counts must hold traces for {spread.means.size} verdicts, "
            f"got {counts.tolist()!r}"
        )
    weights = counts / counts.sum()
    values = -np.arange(counts.size, dtype=np.float64) if verdict_values is None else verdict_values
    values = np.where(np.isnan(values), spread.means @ weights, values)
    expected = np.rint(n * weights).astype(np.int64)
    group = np.array(merge_small(expected, counts, values, minimum_labels=minimum_labels).groups)
    used = group != UNUSED
    n_strata = int(group.max()) + 1
    share: FloatArray = np.bincount(group[used], weights=weights[used], minlength=n_strata).astype(
        np.float64
    )
    mean = _per_stratum(group, used, weights, spread.means, share)
    apart = (spread.means - mean[group]) ** 2
    variance = _per_stratum(group, used, weights, spread.variances + apart, share)
    labels = np.maximum(1.0, n * share)
    pooled = float(share @ variance)
    uneven = 1 + (1 - share) / labels
    parts = share**2 * (variance * np.maximum(0.0, labels - 1) + pooled) / labels**2 * uneven
    between = float(share @ (mean - share @ mean) ** 2) / float(counts.sum())
    total = float(parts.sum())
    df = total**2 / float((parts**2 / np.maximum(1.0, labels - 1)).sum()) if total > 0 else n - 1.0
    se = float(np.sqrt(spread.design_effect_within * total + between))
    return min(0.5, two_sided_t(confidence_level, df) * se)


def _per_stratum(
    group: NDArray[np.int64],
    used: NDArray[np.bool_],
    weights: FloatArray,
    values: FloatArray,
    share: FloatArray,
) -> FloatArray:
    """Return the mean of a figure of the verdicts in each stratum, weighted by production."""
    summed = np.bincount(group[used], weights=(weights * values)[used], minlength=share.size)
    result: FloatArray = summed / share
    return result


def _check_n(n: int, confidence_level: float) -> None:
    check_confidence_level(confidence_level)
    if n < 2:
        raise ValueError(f"n must be at least 2, got {n!r}")
