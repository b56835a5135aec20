"""ASR and class shares from a probability sample of production, post-stratified by verdict."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.correction.intervals import (
    NO_VARIANCE,
    FloatArray,
    IntArray,
    check_confidence_level,
    clipped,
    cluster_indices,
    two_sided_t,
    two_sided_z,
    unanimous_interval,
    validated_codes,
    validated_weights,
)
from calibration.correction.single_source import (
    MINIMUM_CLUSTERS,
    NO_VARIATION,
    validated_scores,
)
from calibration.correction.strata import UNUSED, Strata, merge_small
from calibration.estimates import OK, Estimate, not_estimable

METHOD = "post-stratified by verdict, t"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostStratified:
    """Post-stratified estimate and what it was made of.

    Parameters
    ----------
    estimate : Estimate
        The corrected mean score.
    stratum_means : tuple of float or None, length n_verdicts
        Mean score given each verdict (of its stratum, after merging); None for unused verdicts.
    strata : Strata
        Which verdicts were merged.
    r_squared : float or None
        Share of the variance of the labelled scores that lies between strata; human labels are
        worth about 1 / (1 - r_squared) times their number. None without variation.
    variance_labels : float or None
        The part of the squared standard error that comes from the labels; None without one.
    df : float or None
        Degrees of freedom of the interval; None without a standard error.
    """

    estimate: Estimate
    stratum_means: tuple[float | None, ...]
    strata: Strata
    r_squared: float | None
    variance_labels: float | None = None
    df: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Moments:
    """Per stratum: share of production, effective labels, mean, variance of the mean's terms."""

    share: FloatArray
    labels: FloatArray
    mean: FloatArray
    variance: FloatArray
    floor: float
    pooled: float
    value: float


def post_stratified(
    scores: FloatArray,
    verdicts: IntArray,
    production_counts: ArrayLike,
    *,
    verdict_values: FloatArray | None = None,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    minimum_labels: int = 5,
    confidence_level: float = 0.95,
) -> PostStratified:
    """Estimate the mean score of production from labelled traces, stratified by verdict.

    theta = sum over verdicts of (N_k / N) x mean score of the labelled traces with that verdict.
    The labelled traces must be a probability sample of production; nothing is assumed about the
    judge, only the precision depends on it. Each trace brings its own score, so cost may depend on
    the outcome in any way. Traces are independent, or independent between clusters when given.

    Parameters
    ----------
    scores : float array, shape (n,)
        Scores of the labelled traces in [0, 1], with their own cost.
    verdicts : int array, shape (n,)
        Verdict codes of the labelled traces.
    production_counts : array-like of int, shape (n_verdicts,)
        All judged production traces by verdict, the labelled ones included.
    verdict_values : float array, shape (n_verdicts,), optional
        Score that each verdict would mean, used only to find the nearest verdict to merge with;
        NaN (a verdict that is no class) stands for the mean labelled score. The default is the
        position, reversed: neighbours in the list are nearest.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities (Hajek mean within the stratum).
    clusters : array, shape (n,), optional
        Task of each labelled trace, when tasks repeat.
    minimum_labels : int, default 5
        A verdict with fewer labels is merged with the nearest.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    PostStratified
        Estimate with a t interval cut to [0, 1], stratum means, merged verdicts, R squared.

    Raises
    ------
    ValueError
        If a score is outside [0, 1], a verdict code has no production count, a verdict has more
        labels than production traces, or shapes differ.

    Notes
    -----
    Variance of a stratum mean: (n_k v_k + V_w) / n_k^2 with v_k the population variance in the
    stratum and V_w the pooled within-stratum variance, a floor that keeps a stratum whose few
    labels agree from counting as certain. Added to it is the variance of the verdict shares. The
    degrees of freedom are Satterthwaite's. For a discrete judge this is the efficient estimator.
    With clusters the standard error is that of the linearised cluster totals plus the same floor,
    t with clusters - 1 df.

    References
    ----------
    Satterthwaite (1946), Biometrics Bulletin 2. https://doi.org/10.2307/3002019
    Chen et al. (2026), "Efficient inference for noisy LLM judge".
    https://doi.org/10.48550/arXiv.2601.05420

    Examples
    --------
    Verdict 0 is right 9 times of 10 and verdict 1 hides one success in 10; 800 and 200 in
    production: 0.8 x 0.9 + 0.2 x 0.1.

    >>> scores = np.array([1.0] * 9 + [0] + [1] + [0] * 9)
    >>> post_stratified(scores, np.repeat([0, 1], 10), [800, 200]).estimate.value
    0.74
    """
    check_confidence_level(confidence_level)
    array = validated_scores(scores)
    counts = np.asarray(production_counts, dtype=np.float64)
    codes = validated_codes(verdicts, n_codes=counts.size, name="verdicts")
    if codes.shape != array.shape:
        raise ValueError(f"verdicts must have shape {array.shape!r}, got {codes.shape!r}")
    labels = np.bincount(codes, minlength=counts.size)
    if (labels > counts).any():
        raise ValueError(
            f"production_counts must include the labelled traces, got {counts.tolist()!r} "
            f"with {labels.tolist()!r} labels"
        )
    n = array.size
    if n < 2:
        why = f"{n} labelled traces: label a random sample of production"
        refused = not_estimable(why, method=METHOD, n=n, confidence_level=confidence_level)
        empty = Strata(groups=(UNUSED,) * counts.size, merged=())
        return PostStratified(
            estimate=refused, stratum_means=(None,) * counts.size, strata=empty, r_squared=None
        )
    weight = validated_weights(weights, n)
    if verdict_values is None:
        verdict_values = -np.arange(counts.size, dtype=np.float64)
    values = np.where(np.isnan(verdict_values), array.mean(), verdict_values)
    strata = merge_small(labels, counts, values, minimum_labels=minimum_labels)
    group = np.array(strata.groups)
    stratum = group[codes]
    moments = _moments(array, stratum, weight, counts, group, strata.n_strata)
    index = cluster_indices(clusters, n)
    total = float(weight @ (array - weight @ array / weight.sum()) ** 2)
    within = float(weight @ (array - moments.mean[stratum]) ** 2)
    estimate, variance, df = _interval(
        array, stratum, weight, index, moments, confidence_level, counts.sum()
    )
    return PostStratified(
        estimate=estimate,
        stratum_means=tuple(None if g == UNUSED else float(moments.mean[g]) for g in group),
        strata=strata,
        r_squared=None if total <= 0 else 1 - within / total,
        variance_labels=None if estimate.se is None else variance,
        df=None if estimate.se is None else df,
    )


def _moments(
    scores: FloatArray,
    stratum: IntArray,
    weight: FloatArray,
    counts: FloatArray,
    group: IntArray,
    n_strata: int,
) -> _Moments:
    used = group != UNUSED
    share = np.bincount(group[used], weights=counts[used], minlength=n_strata) / counts.sum()
    total = np.bincount(stratum, weights=weight, minlength=n_strata)
    mean = np.bincount(stratum, weights=weight * scores, minlength=n_strata) / total
    deviation = scores - mean[stratum]
    own = np.bincount(stratum, weights=(weight * deviation) ** 2, minlength=n_strata) / total**2
    labels = total**2 / np.bincount(stratum, weights=weight**2, minlength=n_strata)
    # With equal weights own = v_k / n_k, so the pooled variance is sum n_k v_k / (n - K).
    pooled = float((labels**2 * own).sum() / max(1.0, labels.sum() - n_strata))
    return _Moments(
        share=share,
        labels=labels,
        mean=mean,
        variance=own + pooled / labels**2,
        floor=float((share**2 * pooled / labels**2).sum()),
        pooled=pooled,
        value=float(share @ mean),
    )


def _interval(
    scores: FloatArray,
    stratum: IntArray,
    weight: FloatArray,
    cluster: IntArray | None,
    moments: _Moments,
    confidence_level: float,
    n_production: float,
) -> tuple[Estimate, float, float]:
    """Return the estimate, the variance that comes from the labels, and its df."""
    value, method, status = moments.value, METHOD, OK
    between = float(moments.share @ (moments.mean - value) ** 2) / n_production
    parts = moments.share**2 * moments.variance
    variance = float(parts.sum())
    usable = parts > 0
    units = scores.size
    df = 1.0
    if usable.any():
        spare = np.maximum(1.0, moments.labels[usable] - 1)
        df = variance**2 / float((parts[usable] ** 2 / spare).sum())
    if cluster is not None:
        method = "post-stratified by verdict, cluster-linearised t"
        totals = np.bincount(stratum, weights=weight)
        scale = moments.share[stratum] * weight / totals[stratum]
        influence = np.bincount(cluster, weights=scale * (scores - moments.mean[stratum]))
        units = influence.size
        df = units - 1.0
        variance = units / max(1.0, df) * float(influence @ influence) + moments.floor
    interval: tuple[float, float] | None
    se: float | None = float(np.sqrt(variance + between))
    if cluster is not None and units < MINIMUM_CLUSTERS:
        status = f"no interval: {units} tasks, at least {MINIMUM_CLUSTERS} are needed"
        interval, se = None, None
    elif moments.pooled < NO_VARIANCE:
        status = NO_VARIATION
        method, se = "post-stratified by verdict, exact bound", None
        reach = two_sided_z(confidence_level) * np.sqrt(between)
        lower, upper = unanimous_interval(value, units, confidence_level=confidence_level)
        interval = clipped(lower - reach, upper + reach)
    else:
        reach = two_sided_t(confidence_level, df) * np.sqrt(variance + between)
        interval = clipped(value - reach, value + reach)
    estimate = Estimate(
        value=value,
        interval=interval,
        n=scores.size,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )
    return estimate, variance, df
