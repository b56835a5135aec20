"""Rate, shares and class probabilities from a probability sample, post-stratified by verdict.

All estimators here assume that the labelled traces are a probability sample of production, and
nothing about the judge. `human`, `verdicts`, `weights` and `clusters` are those of
`LabelledSample`; `production_counts`, shape (n_verdicts,), holds all judged production traces by
verdict, the labelled ones included; `strata` is the grouping of the verdicts that `post_stratified`
used.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from calibration.judge_calibration.samples import (
    LabelledSample,
    validated_human,
    with_enough_labels,
)
from calibration.statistics.estimate import (
    OK,
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
from calibration.statistics.intervals import (
    MINIMUM_UNITS,
    NO_VARIANCE,
    NO_VARIATION,
    clipped,
    percentile_estimate,
    resampled_sums,
    two_sided_t,
    two_sided_z,
    unanimous_interval,
)

UNUSED = -1
METHOD = "post-stratified by verdict, t"
SHARES_METHOD = "post-stratified by verdict, Dirichlet posterior"
BOOTSTRAP_METHOD = "post-stratified by verdict, two-source bootstrap"
GAIN_METHOD = "1 / (1 - R squared), jackknife on the log scale"
LABELS_FOR_GAIN = 30

# Fewest labels of a cell of verdict x segment that is taken by itself.
CELL_LABELS = 10

# Dirichlet parameter of each class.
PRIOR = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Strata:
    """Grouping of the verdicts.

    `groups` : stratum of each verdict, -1 for one that occurs neither in production nor in the
    labels.
    `merged` : verdicts with too few labels, each with the verdict whose stratum it joined.
    """

    groups: tuple[int, ...]
    merged: tuple[tuple[int, int], ...]

    @property
    def n_strata(self) -> int:
        """Number of strata."""
        return max(self.groups, default=UNUSED) + 1


def merge_small(
    labels: IntArray,
    production: FloatArray,
    values: FloatArray,
    *,
    minimum_labels: int,
) -> Strata:
    """Merge each verdict with fewer than `minimum_labels` labels with the nearest one.

    Nearest is by `values`, the score that each verdict would mean, not by the labelled scores: the
    grouping depends on the labels only through their number. Ties go to the verdict with most
    labels, then to the earlier one. Merging starts at the verdict with fewest labels and ends with
    a single stratum when all labels together are too few.

    Examples
    --------
    The middle verdict has two labels and is nearer to the last:

    >>> labels, production = np.array([20, 2, 9]), np.array([80.0, 8.0, 12.0])
    >>> merge_small(labels, production, np.array([1.0, 0.4, 0.0]), minimum_labels=5)
    Strata(groups=(0, 1, 1), merged=((1, 2),))
    """
    members = {k: [k] for k in range(labels.size) if labels[k] > 0 or production[k] > 0}
    joined: dict[int, int] = {}
    while len(members) > 1:
        size = {k: int(labels[group].sum()) for k, group in members.items()}
        small = min(members, key=lambda k: (size[k], k))
        if size[small] >= minimum_labels:
            break
        others = [k for k in members if k != small]
        target = min(others, key=lambda k: (abs(values[k] - values[small]), -size[k], k))
        joined.update(dict.fromkeys(members[small], target))
        members[target] += members.pop(small)
    groups = [UNUSED] * labels.size
    for number, (_, group) in enumerate(sorted(members.items())):
        for k in group:
            groups[k] = number
    return Strata(groups=tuple(groups), merged=tuple(sorted(joined.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class PostStratified:
    """Post-stratified estimate with its diagnostics.

    `stratum_means` : mean score in the stratum of each verdict; None for unused verdicts.
    `r_squared` : share of the variance of the labelled scores between strata; labels are worth
    about 1 / (1 - r_squared) times their number. None without variation.
    `variance_labels` : the part of the squared standard error due to the labels.
    """

    estimate: Estimate
    stratum_means: tuple[float | None, ...]
    strata: Strata
    r_squared: float | None
    variance_labels: float | None = None
    df: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Moments:
    """Per stratum: share of production, effective labels, mean, and variance of the mean."""

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
    Only the precision depends on the judge. Each trace has its own score, so cost may depend on the
    outcome in any way. Traces are independent, or independent between clusters.

    Parameters
    ----------
    scores : float array, shape (n,)
        Scores of the labelled traces in [0, 1], with their own cost.
    verdict_values : float array, shape (n_verdicts,), optional
        Score that each verdict would mean, only to find the nearest verdict to merge with; NaN (a
        verdict that is no class) is replaced by the mean labelled score. Default: the position,
        reversed, so that neighbours are nearest.
    minimum_labels : int, default 5
        A verdict with fewer labels is merged with the nearest.

    Returns
    -------
    PostStratified
        With a t interval cut to [0, 1].

    Raises
    ------
    ValueError
        If a score is outside [0, 1], a verdict code has no production count, a verdict has more
        labels than production traces, or shapes differ.

    Notes
    -----
    Variance of a stratum mean: (n_k v_k + V_w) / n_k^2 with v_k the population variance in the
    stratum and V_w the pooled within-stratum variance, a floor: a few equal labels are no
    certainty. The variance of the verdict shares is added; df are Satterthwaite's. The mean in a
    stratum is a Hajek mean with weights. For a discrete judge this is the efficient estimator. With
    clusters the standard error is that of the linearised cluster totals plus the same floor, t with
    clusters - 1 df.

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
    """Return the estimate, the variance due to the labels, and its df."""
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
    if cluster is not None and units < MINIMUM_UNITS:
        status = f"no interval: {units} tasks, at least {MINIMUM_UNITS} are needed"
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


def post_stratified_shares(
    human: ArrayLike,
    verdicts: IntArray,
    production_counts: ArrayLike,
    *,
    strata: Strata,
    weights: FloatArray | None = None,
    prior: float = PRIOR,
    minimum_labels: int = 10,
    confidence_level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate the share of each class in production; the values sum to one.

    Within a stratum the class shares have a Dirichlet posterior; the verdict shares of production
    add their own variance.

    Parameters
    ----------
    prior : float, default 0.2
        Dirichlet parameter of each class in each stratum, for the interval; the value is the plain
        post-stratified share.
    minimum_labels : int, default 10
        A class with fewer labels gets no interval.

    Raises
    ------
    ValueError
        If shapes differ, a row does not sum to one, or `prior` is not positive.

    Notes
    -----
    The posterior of a share is a weighted sum of beta variables. Its mean and variance are exact;
    the interval is that of the beta distribution with these two moments.

    References
    ----------
    Gelman et al. (2013), Bayesian Data Analysis, section 3.4.
    https://doi.org/10.1201/b16018

    Examples
    --------
    >>> shares = post_stratified_shares(
    ...     np.eye(2)[[0] * 9 + [1] + [0] + [1] * 9], np.repeat([0, 1], 10), [800, 200],
    ...     strata=Strata(groups=(0, 1), merged=()),
    ... )
    >>> shares[0].value, shares[1].value
    (0.74, 0.26)
    """
    check_confidence_level(confidence_level)
    if not prior > 0:
        raise ValueError(f"prior must be positive, got {prior!r}")
    shares = validated_human(human)
    n, n_classes = int(shares.shape[0]), int(shares.shape[1])
    counts = np.asarray(production_counts, dtype=np.float64)
    codes = validated_codes(verdicts, n_codes=counts.size, name="verdicts")
    if strata.n_strata == 0 or n == 0 or counts.sum() == 0:
        why = "no labelled traces or no verdicts: label a random sample of production"
        refused = not_estimable(why, method=SHARES_METHOD, confidence_level=confidence_level)
        return tuple(refused for _ in range(n_classes))
    weight = validated_weights(weights, n)
    group = np.array(strata.groups)
    used = group != UNUSED
    share = np.bincount(group[used], weights=counts[used], minlength=strata.n_strata)
    share = share / counts.sum()
    table = np.zeros((strata.n_strata, n_classes))
    np.add.at(table, group[codes], shares * weight[:, None])
    totals = table.sum(axis=1)
    squares = np.bincount(group[codes], weights=weight**2, minlength=strata.n_strata)
    given = table / totals[:, None]
    effective = given * (totals**2 / squares)[:, None] + prior
    mass = effective.sum(axis=1, keepdims=True)
    mean_given = effective / mass
    mean = share @ mean_given
    variance = share**2 @ (mean_given * (1 - mean_given) / (mass + 1))
    variance = variance + share @ (mean_given - mean) ** 2 / counts.sum()
    size = mean * (1 - mean) / variance - 1
    tails = np.array([(1 - confidence_level) / 2, (1 + confidence_level) / 2])
    limits = special.betaincinv(mean * size, (1 - mean) * size, tails[:, None])
    values, labels = share @ given, shares.sum(axis=0)
    return tuple(
        _share(values[k], limits[:, k], labels[k], n, minimum_labels, confidence_level)
        for k in range(n_classes)
    )


def _share(
    value: float,
    limits: FloatArray,
    labels: float,
    n: int,
    minimum_labels: int,
    confidence_level: float,
) -> Estimate:
    enough = labels >= minimum_labels
    # The prior moves the posterior off a share of exactly 0 or 1; the value stays inside.
    interval = min(float(limits[0]), float(value)), max(float(limits[1]), float(value))
    return Estimate(
        value=float(value),
        interval=interval if enough else None,
        n=n,
        method=SHARES_METHOD,
        confidence_level=confidence_level,
        status=OK if enough else f"no interval: fewer than {minimum_labels} labels of this class",
    )


def clustered_shares(
    human: ArrayLike,
    verdicts: IntArray,
    production_counts: ArrayLike,
    *,
    clusters: NDArray[np.generic],
    weights: FloatArray | None = None,
    verdict_values: FloatArray | None = None,
    minimum_labels: int = 10,
    confidence_level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate the share of each class when tasks repeat among the labelled traces.

    Each class is a score of 0 or 1 in `post_stratified`, with its standard error from task totals;
    the Dirichlet posterior would take repeated trials for independent. Errors are those of
    `post_stratified`.
    """
    estimates = (
        post_stratified(
            column,
            verdicts,
            production_counts,
            verdict_values=verdict_values,
            weights=weights,
            clusters=clusters,
            confidence_level=confidence_level,
        ).estimate
        for column in validated_human(human).T
    )
    return with_enough_labels(estimates, np.asarray(human, dtype=np.float64), minimum_labels)


def class_shares(
    labelled: LabelledSample,
    production_counts: ArrayLike,
    *,
    strata: Strata,
    verdict_values: FloatArray,
    confidence_level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate class shares: `clustered_shares` if tasks repeat, else `post_stratified_shares`."""
    if cluster_indices(labelled.clusters, labelled.verdicts.size) is None:
        return post_stratified_shares(
            labelled.human,
            labelled.verdicts,
            production_counts,
            strata=strata,
            weights=labelled.weights,
            confidence_level=confidence_level,
        )
    return clustered_shares(
        labelled.human,
        labelled.verdicts,
        production_counts,
        clusters=np.asarray(labelled.clusters),
        weights=labelled.weights,
        verdict_values=verdict_values,
        confidence_level=confidence_level,
    )


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

    Each resample draws the labelled traces (whole tasks when they repeat) and the verdicts of
    production anew, and keeps `strata`.

    `columns`, shape (n, n_columns), are values of the labelled traces in [0, 1], for instance
    scores and class shares. Intervals are percentiles; a column without variation within the strata
    has none, since no resample varies either. ValueError if shapes differ or a weight is not
    positive.

    Notes
    -----
    Traces with the same stratum, columns and weight are one cell, so a resample is a multinomial
    draw over the cells and a matrix product, as for production. A stratum that a resample leaves
    empty takes the mean of that resample.

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
        refused = not_estimable(
            why, method=BOOTSTRAP_METHOD, n=n, confidence_level=confidence_level
        )
        return tuple(refused for _ in range(values.shape[1]))
    group = np.array(strata.groups)
    share = np.bincount(
        group[group != UNUSED], weights=counts[group != UNUSED], minlength=strata.n_strata
    )
    units, times = _units(values, group[codes], weight, cluster_indices(clusters, n), strata)
    parts = units.reshape(len(units), strata.n_strata, -1)
    seen = _stratum_means(np.tensordot(times, parts, axes=1)[None])[0]
    means = (share / share.sum()) @ seen
    sums = resampled_sums(units, times.astype(np.int64), n_resamples=n_resamples, rng=rng)
    drawn = _stratum_means(sums.reshape(n_resamples, *parts.shape[1:]))
    shares = rng.multinomial(round(counts.sum()), share / share.sum(), size=n_resamples)
    resampled = np.einsum("dg,dgc->dc", shares / counts.sum(), drawn)
    within = values - seen[group[codes]]
    varies = (np.abs(within) > 1e-12).any(axis=0).tolist()
    status = OK
    if clusters is not None and times.sum() < MINIMUM_UNITS:
        status = f"no interval: {times.sum():g} tasks, at least {MINIMUM_UNITS} are needed"
    return tuple(
        percentile_estimate(
            float(means[c]),
            resampled[:, c],
            n,
            BOOTSTRAP_METHOD,
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
    """Return weights and weighted columns of the sampling units by stratum, and their counts."""
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


def _stratum_means(sums: FloatArray) -> FloatArray:
    """Return the mean of each column in each stratum, shape (n_draws, n_strata, n_columns)."""
    total, weighted = sums[..., :1], sums[..., 1:]
    overall = weighted.sum(axis=1, keepdims=True) / total.sum(axis=1, keepdims=True)
    result: FloatArray = np.where(
        total > 0, np.divide(weighted, total, where=total > 0, out=np.zeros_like(weighted)), overall
    )
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Gain in precision from the verdicts.

    `multiplier` : number of labels without the judge that are worth one with it; may exceed 1.
    `r_squared` : share of the variance of the score that the verdicts explain, less what as many
    random groups would explain.
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
    """Estimate the factor by which the verdicts multiply the worth of labels.

    The variance of the score over its variance within verdicts, each with its degrees of freedom.
    This is 1 / (1 - R^2) with R^2 adjusted for the number of verdicts, so that an uninformative
    judge does not raise it. `scores` and the errors are those of `post_stratified`.

    ``not_estimable`` below 30 labelled traces, without variation at all or within verdicts, or with
    one stratum.

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
    if n < LABELS_FOR_GAIN:
        why = f"{n} labelled traces are too few to say what the judge adds: label {LABELS_FOR_GAIN}"
        return _no_gain(why, n, confidence_level)
    codes = validated_codes(verdicts, n_codes=len(strata.groups), name="verdicts")
    group = np.array(strata.groups)[codes]
    if (group == UNUSED).any():
        raise ValueError("strata must hold every verdict of a labelled trace")
    if np.ptp(group) == 0:
        return _no_gain("the labelled traces are of one group of verdicts", n, confidence_level)
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
        return _no_gain(why, n, confidence_level)
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
            method=GAIN_METHOD + (", whole tasks" if whole_tasks else ""),
            confidence_level=confidence_level,
            se=float(np.exp(value)) * se,
        ),
        r_squared=1 - float(np.exp(-value)),
    )


def _log_ratio(sums: FloatArray, n: int) -> FloatArray:
    """Return log of the variance over all to that within strata, from sums (..., strata, 3).

    The three sums are of weights, weights x scores and weights x squared scores.
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


def _no_gain(why: str, n: int, confidence_level: float) -> Gain:
    refused = not_estimable(why, method=GAIN_METHOD, n=n, confidence_level=confidence_level)
    return Gain(multiplier=refused, r_squared=None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassProbabilities:
    """Class probabilities of a trace by verdict and segment, estimated from labelled traces.

    `given` : shape (n_verdicts, n_segments, n_classes), NaN for a verdict that never occurs.
    `labels` : labelled traces behind each row.
    `by_segment` : whether the row is that of the segment rather than of the whole verdict.
    """

    given: FloatArray
    labels: IntArray
    by_segment: NDArray[np.bool_]


def class_probabilities(
    human: FloatArray,
    verdicts: IntArray,
    segments: IntArray,
    *,
    n_segments: int,
    strata: Strata,
    weights: FloatArray | None = None,
    prior: float = PRIOR,
    cell_labels: int = CELL_LABELS,
) -> ClassProbabilities:
    """Estimate the probability of each class for a trace with a verdict, in a segment.

    A cell of verdict x segment with fewer than `cell_labels` labels takes the values of the whole
    verdict, merged as in `post_stratified`.

    `segments` are codes of the labelled traces. Weights within a cell are scaled to its effective
    number of labels. `prior` is the Dirichlet parameter of each class: few labels give no
    probability of 0.

    ValueError if shapes differ, a row does not sum to one, or `prior` is not positive.

    Examples
    --------
    Nine of ten are of class 0: (9 + .2) / (10 + .4).

    >>> found = class_probabilities(
    ...     np.eye(2)[[0] * 9 + [1]], np.zeros(10, dtype=int), np.zeros(10, dtype=int),
    ...     n_segments=1, strata=Strata(groups=(0,), merged=()),
    ... )
    >>> found.given[0, 0].round(4).tolist()
    [0.8846, 0.1154]
    """
    if not prior > 0:
        raise ValueError(f"prior must be positive, got {prior!r}")
    shares = validated_human(human)
    n, n_classes = shares.shape
    codes = validated_codes(verdicts, n_codes=len(strata.groups), name="verdicts")
    places = validated_codes(segments, n_codes=n_segments, name="segments")
    if codes.shape != (n,) or places.shape != (n,):
        raise ValueError(f"verdicts and segments must have shape ({n},), got {codes.shape!r}")
    weight = validated_weights(weights, n)
    group = np.array(strata.groups)
    of_group, in_group = _smoothed(shares, group[codes], weight, strata.n_strata, prior)
    cells = codes * n_segments + places
    of_cell, in_cell = _smoothed(shares, cells, weight, group.size * n_segments, prior)
    labels = in_cell.reshape(group.size, n_segments)
    alone = labels >= cell_labels
    given = of_cell.reshape(group.size, n_segments, n_classes)
    given = np.where(alone[..., None], given, of_group[group][:, None, :])
    given[group == UNUSED] = np.nan
    return ClassProbabilities(
        given=given,
        labels=np.where(alone, labels, in_group[group][:, None]),
        by_segment=alone,
    )


def _smoothed(
    shares: FloatArray, cell: IntArray, weight: FloatArray, n_cells: int, prior: float
) -> tuple[FloatArray, IntArray]:
    """Return the Dirichlet posterior mean of each cell and its number of labels."""
    table = np.zeros((n_cells, shares.shape[1]))
    np.add.at(table, cell, shares * weight[:, None])
    total = np.bincount(cell, weights=weight, minlength=n_cells)
    squares = np.bincount(cell, weights=weight**2, minlength=n_cells)
    scale = np.divide(total, squares, out=np.zeros(n_cells), where=squares > 0)
    mass = table * scale[:, None] + prior
    labels = np.bincount(cell, minlength=n_cells).astype(np.int64)
    return mass / mass.sum(axis=1, keepdims=True), labels
