"""Number of labels needed, and their allocation to strata.

A plan for `n` labels is for an equal-probability sample of production. Half-widths are in units of
the score, at most 1/2.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.judge_calibration.post_stratification import Estimand
from calibration.judge_calibration.strata import UNUSED, merge_small, verdict_strata
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
from calibration.statistics.intervals import (
    logit_interval,
    wilson_interval,
    wilson_share,
)

# Largest variance of scores in [0, 1].
WORST_VARIANCE = 0.25

# With fewer labels a spread is too uncertain to plan on.
FEWEST_LABELS = 10

# Fewest traces of a stratum: one has no variance, none no estimate.
FLOOR = 2

# Smallest part of its proportional share that a stratum gets: a few labels may agree by chance, and
# no weight is then more than four times the mean weight.
DEFENCE = 0.25

# Weight, in labels, of the variance in the wider group of a stratum.
PSEUDO_LABELS = 5.0

METHOD = "share of audited traces, Wilson"

# Largest number of labelled traces that a plan considers.
MOST_TRACES = 10**8

# Fewest traces of an audit, whatever the error rate.
FEWEST = 30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreSpread:
    """Variation of scores, measured on `n` labelled traces or assumed (`n` is 0).

    `mean`, `variance` : over all traces.
    `means`, `variances` : given each verdict.
    `design_effect`, `design_effect_within` : factor by which repeated tasks inflate the variance of
    the mean, without and with verdicts.
    """

    mean: float
    variance: float
    means: FloatArray
    variances: FloatArray
    design_effect: float
    design_effect_within: float
    n: int

    @property
    def assumed(self) -> bool:
        """Whether this is the worst case rather than a measurement."""
        return self.n == 0


def worst_spread(n_verdicts: int) -> ScoreSpread:
    """Return the widest spread of scores in [0, 1], with an uninformative judge.

    Examples
    --------
    >>> worst_spread(2).variance, worst_spread(2).variances.tolist()
    (0.25, [0.25, 0.25])
    """
    return ScoreSpread(
        mean=0.5,
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
    predicted: FloatArray | None = None,
    verdict_values: FloatArray | None = None,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
) -> ScoreSpread:
    """Estimate the mean and variance of scores, over all traces and given each verdict.

    The labelled traces must be a probability sample; parameters and errors are those of
    `post_stratified`. A verdict with fewer than five labels takes the values of its merged stratum.
    The variance in a stratum of n_k labels is (n_k v_k + V_w) / n_k, v_k its own and V_w the pooled
    one, so that a few equal labels do not promise certainty. With weights the spread is that of
    production; without a judge all verdicts are 0. With `predicted`, what the verdict and the cost
    of a trace promise, the variance within verdicts is that of score - predicted. Below ten labels,
    or when all scores are equal, the worst case is returned.

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
    values = -np.arange(counts.size, dtype=np.float64) if verdict_values is None else verdict_values
    strata = verdict_strata(codes, counts, values, otherwise=float(array.mean()))
    group = np.array(strata.groups)
    stratum = group[codes]
    labels = np.bincount(stratum, minlength=strata.n_strata)
    filled = np.maximum(labels, 1)
    total = np.bincount(stratum, weights=weight, minlength=labels.size)
    total = np.where(total > 0, total, 1.0)
    mean = np.bincount(stratum, weights=weight * array, minlength=labels.size) / total
    rest = array if predicted is None else array - predicted
    off = np.bincount(stratum, weights=weight * rest, minlength=labels.size) / total
    apart = rest - off[stratum]
    own = np.bincount(stratum, weights=weight * apart**2, minlength=labels.size) / total
    pooled = float(labels @ own) / max(1, n - labels.size)
    variance = own + pooled / filled
    used = group != UNUSED
    centre = float(weight @ array / weight.sum())
    overall = float(weight @ (array - centre) ** 2 / weight.sum())
    means, variances = np.full(counts.size, centre), np.full(counts.size, overall)
    means[used], variances[used] = mean[group[used]], variance[group[used]]
    share = np.bincount(group[used], weights=counts[used], minlength=labels.size) / counts.sum()
    index = cluster_indices(clusters, n)
    return ScoreSpread(
        mean=centre,
        variance=overall * n / (n - 1),
        means=means,
        variances=variances,
        design_effect=_design_effect(weight * (array - centre), index),
        design_effect_within=_design_effect((share / total)[stratum] * weight * apart, index),
        n=n,
    )


def _design_effect(influence: FloatArray, cluster: IntArray | None) -> float:
    """Return the variance with tasks kept together over that without, from 1 up."""
    alone = float(influence @ influence)
    if cluster is None or alone <= 0:
        return 1.0
    kept = np.bincount(cluster, weights=influence)
    corrected = [size / max(1, size - 1) for size in (kept.size, influence.size)]
    return max(1.0, corrected[0] * float(kept @ kept) / (corrected[1] * alone))


def planned_human_only(
    n: int, spread: ScoreSpread, *, population: int | None = None, confidence_level: float = 0.95
) -> float:
    """Return the expected half-width of the human-only rate from `n` labelled traces.

    Half the interval of `human_only` at the mean, with standard error sqrt(design effect x variance
    / n); of runs like these, or with a `population` of its runs themselves: the variance then has
    the factor 1 - n / population. ValueError if `n` is below 2 or the level is not in (0, 1).

    Examples
    --------
    The worst case with 100 labels: t with 99 df x .5 / 10 is .0992; on the logit scale that is
    4 x .0992 from 0, and 1 / (1 + exp(-.3969)) - 1/2:

    >>> planned_human_only(100, worst_spread(1))
    0.09793
    """
    _check_n(n, confidence_level)
    left = 1.0 if population is None else max(0.0, 1 - n / population)
    se = float(np.sqrt(left * spread.design_effect * spread.variance / n))
    low, high = logit_interval(spread.mean, se, df=n - 1, confidence_level=confidence_level)
    return (high - low) / 2


def planned_post_stratified(
    n: int,
    spread: ScoreSpread,
    production_counts: ArrayLike,
    *,
    verdict_values: FloatArray | None = None,
    estimand: Estimand = "process",
    minimum_labels: int = 5,
    confidence_level: float = 0.95,
) -> float:
    """Return the expected half-width of the corrected rate from `n` labelled traces.

    The variance of `post_stratified` with the expected labels of each verdict, small ones merged in
    the same way. The labels of a verdict vary from sample to sample, which adds (1 - W_k) / n_k of
    its part on average.

    Parameters
    ----------
    production_counts : array-like of int, shape (n_verdicts,)
        Judged production traces by verdict, the ones to label included.
    verdict_values, estimand, minimum_labels
        As in `post_stratified`.

    Raises
    ------
    ValueError
        If `n` is below 2, production is empty, or shapes differ.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., section 5A.9: post-stratification.

    Examples
    --------
    A judge that is always right leaves only the variance of the verdict shares; an uninformative
    one leaves about the half-width of the labels alone:

    >>> from dataclasses import replace
    >>> blind = worst_spread(2)
    >>> right = replace(blind, means=np.array([1.0, 0.0]), variances=np.zeros(2))
    >>> planned_post_stratified(100, right, [5000, 5000])
    0.01
    >>> planned_post_stratified(100, blind, [5000, 5000])
    0.09842
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
    inflated = spread.design_effect_within
    if estimand == "these_runs":
        parts = parts * max(0.0, 1 - n / float(counts.sum()))
        between, inflated = 0.0, 1.0
    total = float(parts.sum())
    df = total**2 / float((parts**2 / np.maximum(1.0, labels - 1)).sum()) if total > 0 else n - 1.0
    se = float(np.sqrt(inflated * total + between))
    low, high = logit_interval(
        float(share @ mean), se, df=max(1.0, df), confidence_level=confidence_level
    )
    return (high - low) / 2


def _per_stratum(
    group: NDArray[np.int64],
    used: NDArray[np.bool_],
    weights: FloatArray,
    values: FloatArray,
    share: FloatArray,
) -> FloatArray:
    """Return the mean of a value per verdict in each stratum, weighted by production."""
    summed = np.bincount(group[used], weights=(weights * values)[used], minlength=share.size)
    result: FloatArray = summed / share
    return result


def _check_n(n: int, confidence_level: float) -> None:
    check_confidence_level(confidence_level)
    if n < 2:
        raise ValueError(f"n must be at least 2, got {n!r}")


def fewest(counts: ArrayLike, n: int) -> IntArray:
    """Return the least number of traces drawn from each stratum in a draw of `n`.

    Examples
    --------
    A quarter of its proportional share, at least two, at most all of it:

    >>> fewest([800, 199, 1], 100).tolist()
    [20, 4, 1]
    """
    sizes = np.asarray(counts, dtype=np.float64)
    part = np.floor(DEFENCE * n * sizes / sizes.sum())
    least: IntArray = np.minimum(sizes, np.maximum(FLOOR, part)).astype(np.int64)
    return least


def allocate(counts: ArrayLike, n: int, *, sds: ArrayLike | None = None) -> IntArray:
    """Return the number of traces to draw from each stratum, in all `n`.

    Proportional to the size of the stratum or, with standard deviations of the score in `sds`
    (Neyman), to size x sd, which makes the error of the stratified mean smallest. The number is at
    least `fewest` and at most the size; fractions go to the largest remainders.

    Raises
    ------
    ValueError
        If a stratum is empty, `n` is above all traces or below the sum of `fewest`, or a standard
        deviation is negative.

    References
    ----------
    Neyman (1934), J. R. Stat. Soc. 97. https://doi.org/10.2307/2342192
    Cochran (1977), Sampling Techniques, 3rd ed., sections 5.5 to 5.8.

    Examples
    --------
    The small stratum varies four times as much: 800 x .1 = 80 and 200 x .4 = 80.

    >>> allocate([800, 200], 100).tolist(), allocate([800, 200], 100, sds=[0.1, 0.4]).tolist()
    ([80, 20], [50, 50])
    """
    sizes = np.asarray(counts, dtype=np.int64)
    if sizes.ndim != 1 or sizes.size == 0 or sizes.min() < 1:
        raise ValueError(f"counts must be at least 1 in each stratum, got {sizes.tolist()!r}")
    spread = np.asarray([1.0] * sizes.size if sds is None else sds, dtype=np.float64)
    if spread.shape != sizes.shape or not (np.isfinite(spread) & (spread >= 0)).all():
        raise ValueError(f"sds must be {sizes.size} numbers from 0, got {spread.tolist()!r}")
    low = fewest(sizes, n)
    if not low.sum() <= n <= sizes.sum():
        raise ValueError(
            f"n must be in [{low.sum()}, {sizes.sum()}] for {sizes.size} strata, got {n!r}"
        )
    pull = np.asarray(sizes * (spread if spread.any() else 1.0), dtype=np.float64)
    exact = _bounded_shares(pull, low.astype(np.float64), sizes.astype(np.float64), float(n))
    drawn = np.floor(exact + 1e-9).astype(np.int64)
    room = np.where(drawn < sizes, exact - drawn, -1.0)
    # Ties go to the first: the draw must not depend on rounding.
    for stratum in np.argsort(-np.round(room, 9), kind="stable")[: n - int(drawn.sum())].tolist():
        drawn[stratum] += 1
    return drawn


def _bounded_shares(
    pull: FloatArray, low: FloatArray, high: FloatArray, total: float
) -> FloatArray:
    """Return clip(c x pull, low, high), c such that the sum is `total`.

    This is the exact minimum of sum (N_h sd_h)^2 / n_h between the bounds.
    """
    bottom, top = 0.0, 1.0
    while np.clip(top * pull, low, high)[pull > 0].sum() + low[pull == 0].sum() < total:
        top *= 2
        if top > 1e18:
            break
    for _ in range(200):
        middle = (bottom + top) / 2
        if np.clip(middle * pull, low, high).sum() < total:
            bottom = middle
        else:
            top = middle
    shares: FloatArray = np.clip(top * pull, low, high)
    missing = total - shares.sum()
    if missing > 1e-6:  # all that vary are taken whole: the rest goes to those that do not
        shares = shares + missing * (high - shares) / (high - shares).sum()
    return shares


def stratum_sds(
    scores: FloatArray,
    stratum: NDArray[np.int64],
    parent: NDArray[np.int64],
    *,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return the standard deviation of the score in each stratum, shrunk towards wider groups.

    The variance of a stratum, weighted by its labels, is averaged with that of its parent (its
    verdict), weighted as five labels; the parent's in the same way with the pooled variance within
    parents. A stratum without labels has its parent's.

    `scores` (n,), with their `stratum` and inverse inclusion probabilities (`weights`), are those
    of earlier labelled traces; `parent` is that of each stratum.

    Examples
    --------
    Pooled within the two parents the variance is .125. The first has (20 x .25 + 5 x .125) / 25 =
    .225, and as its own only stratum (20 x .25 + 5 x .225) / 25 = .245; the second .025 and .005:

    >>> scores = np.array([1.0, 0.0] * 10 + [1.0] * 20)
    >>> sds = stratum_sds(scores, np.repeat([0, 1], 20), np.array([0, 1]))
    >>> (sds**2).round(6).tolist()
    [0.245, 0.005]
    """
    weight = validated_weights(weights, scores.size)
    n_parents = int(parent.max()) + 1
    labels = np.bincount(parent[stratum], minlength=n_parents).astype(np.float64)
    of_parent = _variances(scores, parent[stratum], weight, n_parents)
    pooled = float(labels @ of_parent) / max(1.0, labels.sum())
    of_parent = (labels * of_parent + PSEUDO_LABELS * pooled) / (labels + PSEUDO_LABELS)
    own = np.bincount(stratum, minlength=parent.size).astype(np.float64)
    variance = _variances(scores, stratum, weight, parent.size)
    steadied = (own * variance + PSEUDO_LABELS * of_parent[parent]) / (own + PSEUDO_LABELS)
    sds: FloatArray = np.sqrt(steadied)
    return sds


def _variances(
    scores: FloatArray, group: NDArray[np.int64], weight: FloatArray, n_groups: int
) -> FloatArray:
    total = np.bincount(group, weights=weight, minlength=n_groups)
    filled = np.where(total > 0, total, 1.0)
    mean = np.bincount(group, weights=weight * scores, minlength=n_groups) / filled
    squares = np.bincount(group, weights=weight * (scores - mean[group]) ** 2, minlength=n_groups)
    result: FloatArray = squares / filled
    return result


def audit_size(half_width: float, *, error: float = 0.5, confidence_level: float = 0.95) -> int:
    """Return how many traces to audit to estimate an error rate to a half-width, at least 30.

    `error` is the highest error rate considered possible; a half is the worst case.
    ValueError if `half_width` is not in (0, 1/2) or `error` not in [0, 1].

    Examples
    --------
    >>> audit_size(0.05), audit_size(0.05, error=0.1), audit_size(0.2, error=0.1)
    (381, 141, 30)
    """
    check_confidence_level(confidence_level)
    if not 0 < half_width < 0.5:
        raise ValueError(f"half_width must be in (0, 1/2), got {half_width!r}")
    if not 0 <= error <= 1:
        raise ValueError(f"error must be in [0, 1], got {error!r}")
    worst = min(error, 1 - error)

    def reach(n: int) -> float:
        low, high = wilson_interval(worst * n, n, confidence_level=confidence_level)
        return (high - low) / 2

    return smallest(lambda n: reach(n) <= half_width, FEWEST, MOST_TRACES) or MOST_TRACES


def error_rate(wrong: float, n: int, *, confidence_level: float = 0.95) -> Estimate:
    """Estimate the share of accepted verdicts that are wrong, from a random sample of them.

    `wrong` may be fractional: a trace whose reviewers differ is wrong in part.

    Examples
    --------
    >>> print(error_rate(3, 100))
    0.030 [0.010, 0.085] (95% share of audited traces, Wilson, n=100)
    """
    if n < 2:
        why = f"{n} audited traces are labelled: label the batch"
        return not_estimable(why, method=METHOD, n=n, confidence_level=confidence_level)
    found = wilson_share(wrong, n, nothing="", confidence_level=confidence_level)
    return replace(found, method=METHOD)


def traces_needed(
    half_width: float,
    spread: ScoreSpread,
    production_counts: ArrayLike | None = None,
    *,
    verdict_values: FloatArray | None = None,
    population: int | None = None,
    confidence_level: float = 0.95,
) -> int | None:
    """Return the fewest labelled traces with an expected half-width of at most `half_width`.

    About z^2 sd^2 (1 - R^2) / h^2, by search over `planned_human_only`, or over
    `planned_post_stratified` with `production_counts`; with a `population` for the rate of its runs
    themselves. None when no number of labels suffices, since the verdicts on production vary too.
    ValueError if `half_width` is not in (0, 1/2), and from those functions.

    Examples
    --------
    The worst case to +-.05: 1.96^2 x .25 / .05^2 = 384.1, a little more for t and less for logit.

    >>> traces_needed(0.05, worst_spread(1))
    385
    """
    if not 0 < half_width < 0.5:
        raise ValueError(f"half_width must be in (0, 1/2), got {half_width!r}")

    def enough(n: int) -> bool:
        if production_counts is None:
            planned = planned_human_only(
                n, spread, population=population, confidence_level=confidence_level
            )
        else:
            planned = planned_post_stratified(
                n,
                spread,
                production_counts,
                verdict_values=verdict_values,
                estimand="process" if population is None else "these_runs",
                confidence_level=confidence_level,
            )
        return planned <= half_width

    return smallest(enough, 2, MOST_TRACES if population is None else population)


def smallest(enough: Callable[[int], bool], least: int, most: int) -> int | None:
    """Return the smallest number that is enough, None beyond `most`; `enough` is monotone.

    Examples
    --------
    >>> smallest(lambda n: n * n >= 50, 2, 100), smallest(lambda n: n > 200, 2, 100)
    (8, None)
    """
    found = least + bisect_left(range(least, most + 1), True, key=enough)
    return found if found <= most else None
