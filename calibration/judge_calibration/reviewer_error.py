"""What the errors of reviewers do to the rate: the two-phase estimate.

In the first phase every labelled trace has the label of a reviewer. In the second a random part of
them, the overlap, has labels of two reviewers, adjudicated where they differ; two that agree count
as adjudicated.
"""

from dataclasses import dataclass, replace

import numpy as np

from calibration.judge_calibration.post_stratification import (
    Joined,
    Residual,
    join,
    limited_rate,
    limited_share,
    predictions,
    with_any_time,
)
from calibration.judge_calibration.samples import LabelledSample, ProductionSums
from calibration.judge_calibration.strata import merge_small
from calibration.statistics.estimate import (
    OK,
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    not_estimable,
)
from calibration.statistics.intervals import two_sided_t
from calibration.statistics.means import human_only
from calibration.statistics.random_effects import shrunk_means

METHOD = "two phases, first labels corrected by adjudicated ones, logit t"
SHARES_METHOD = "two phases, exact limits at the effective number of labels"

EFFECTS_METHOD = "difference from the final label on shared traces, pooled variance, t"
TOO_FEW = "no traces that two reviewers labelled: have a second reviewer label a random part"

# With fewer reviewers nothing can be learned about one from the others.
SHRUNK_FROM = 4
# A reviewer so many standard errors from the median keeps their own mean; below so many shared
# traces the limits are the outer ones of both.
FAR, FEW_SHARED = 0.5, 30

# Fewest traces of the overlap for a rate that carries the errors of reviewers.
OVERLAP_MIN = 30

# Fewest traces of the overlap in a stratum.
STRATUM_MIN = 5

MISSING = -1


def first_phase(codes: IntArray, n_classes: int) -> FloatArray:
    """Return the first-phase class shares of each trace.

    A trace with one label has that; a trace of the overlap the mean over its reviewers, each
    weighted by his share of the traces with one label, so that the first phase of both is labelled
    by the same mixture of reviewers.

    Parameters
    ----------
    codes : int array, shape (n_traces, n_reviewers)
        Classes, -1 where a reviewer has no label.
    n_classes : int

    Examples
    --------
    The first reviewer labelled three of the four single traces, and differs on the last:

    >>> codes = np.array([[0, -1], [1, -1], [0, -1], [-1, 1], [0, 1]])
    >>> first_phase(codes, 2)[-1].tolist()
    [0.75, 0.25]
    """
    given = codes != MISSING
    single = given.sum(axis=1) == 1
    often = given[single].sum(axis=0).astype(np.float64)
    weights = given * often
    # Reviewers of the overlap alone count alike.
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, given)
    one_hot = np.vstack([np.eye(n_classes), np.zeros(n_classes)])
    votes = (weights[:, :, None] * one_hot[codes]).sum(axis=1)
    total = votes.sum(axis=1, keepdims=True)
    found: FloatArray = np.divide(votes, total, out=np.zeros_like(votes), where=total > 0)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoPhase:
    """A rate that carries the errors of reviewers.

    `first` : the rate by first-phase labels alone; `correction` is added to it.
    `overlap` : number of traces with two labels.
    `variance_production`, `variance_reviewers` : parts of the squared standard error, by the
    sampling of runs and by the errors of reviewers; the labels make up the rest.
    `variance_correction` : of the correction of one trace; over an overlap of m of n traces the
    part of the reviewers is (1/m - 1/n) of it.
    """

    estimate: Estimate
    first: float | None = None
    correction: float | None = None
    overlap: int
    variance_production: float | None = None
    variance_reviewers: float | None = None
    variance_correction: float | None = None


def two_phase(
    labelled: LabelledSample,
    production: ProductionSums,
    *,
    net: bool = True,
    confidence_level: float = 0.95,
) -> TwoPhase:
    """Estimate the mean score of production from first labels and an adjudicated overlap.

    theta = the estimate of `post_stratified` from first-phase scores + sum over strata of M_k x the
    mean of (adjudicated - first-phase score) over the overlap. The overlap is a random part of the
    labelled traces, and adjudication is right.

    Parameters
    ----------
    labelled : LabelledSample
        With `first_human` and `overlap`; `human` holds the adjudicated class of the overlap.
    production, net
        As in `post_stratified`, with the estimand of the process.

    Returns
    -------
    TwoPhase
        ``not_estimable`` below 30 traces in the overlap.

    Raises
    ------
    ValueError
        If `labelled` has no first phase, and as `join`.

    Notes
    -----
    The influences of both phases are added trace by trace (task by task); a stratum with fewer than
    5 traces of the overlap joins the one of nearest credit. df: the smaller of overlap - 1 and
    labelled tasks - 1. With n labels, m of them in the overlap, residuals r of the adjudicated
    score and corrections c, the variance is Var(r)/n + (1/m - 1/n) Var(c) beside that of
    production: the second term is the part of the reviewers, none with full overlap.

    References
    ----------
    Neyman (1938), J. Am. Stat. Assoc. 33: double sampling.
    https://doi.org/10.1080/01621459.1938.10503378

    Examples
    --------
    Forty traces of one verdict, all called good by one reviewer; of the 30 in the overlap 6 are
    adjudicated as bad: 1 - 6/30.

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> labelled = LabelledSample(
    ...     human=np.eye(2)[[0] * 24 + [1] * 6 + [0] * 10], verdicts=np.zeros(40, dtype=int),
    ...     first_human=np.eye(2)[[0] * 40], overlap=np.arange(40) < 30,
    ... )
    >>> found = two_phase(labelled, production_sums_from_counts([1000, 0], credit=[1.0, 0.0]))
    >>> round(found.estimate.value, 3), found.estimate.df
    (0.8, 29.0)
    """
    overlap, first, final = _phases(labelled)
    n, n_overlap = overlap.size, int(overlap.sum())
    if n_overlap < OVERLAP_MIN:
        refused = not_estimable(
            few(n_overlap), method=METHOD, n=n, confidence_level=confidence_level
        )
        return TwoPhase(estimate=refused, overlap=n_overlap)
    joined = join(labelled, production)
    phases = _Phases.of(joined, overlap)
    scores, seconds = (one.scores(production.tables, net=net) for one in (first, final))
    alone = joined.mean(scores, *predictions(joined, first, net=net))
    found, of_overlap = phases.corrected(alone, seconds - scores)
    reviewers = of_overlap * (1 - n_overlap / n)
    estimate = limited_rate(found, joined, confidence_level, shares=phases.scale, method=METHOD)
    return TwoPhase(
        estimate=with_any_time(estimate),
        first=alone.value,
        correction=found.value - alone.value,
        overlap=n_overlap,
        variance_production=found.between,
        variance_reviewers=min(reviewers, max(0.0, found.variance - found.between)),
        variance_correction=of_overlap * n_overlap,
    )


def planned_two_phase(
    n: int,
    overlap: int,
    half_width: float,
    variance_correction: float,
    *,
    confidence_level: float = 0.95,
) -> float:
    """Return the expected half-width of `two_phase` with an overlap among `n` labelled traces.

    Parameters
    ----------
    n, overlap : int
        Labelled traces, and those with two labels: 2 or more, all adjudicated where they differ.
    half_width : float
        Expected without the errors of reviewers.
    variance_correction : float
        As in `TwoPhase`, of earlier labels by the same reviewers.

    Examples
    --------
    Full overlap changes nothing; a quarter adds .04 (1/100 - 1/400) to the variance:

    >>> round(planned_two_phase(400, 400, 0.04, 0.04), 4)
    0.04
    >>> round(planned_two_phase(400, 100, 0.04, 0.04), 4)
    0.053
    """
    known, fewer = (two_sided_t(confidence_level, m - 1) for m in (n, overlap))
    variance = (half_width / known) ** 2 + variance_correction * (1 / overlap - 1 / n)
    return float(fewer * np.sqrt(variance))


def two_phase_shares(
    labelled: LabelledSample, production: ProductionSums, *, confidence_level: float = 0.95
) -> tuple[Estimate, ...]:
    """Estimate the share of each class with the errors of reviewers, as `class_shares`.

    Parameters, assumptions and errors are those of `two_phase`. The values sum to one; credit x
    shares is the rate without cost. Limits are those of `class_shares`; for a class that no
    adjudicated trace has, at the effective number of traces in the overlap.

    Examples
    --------
    As in `two_phase`:

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> labelled = LabelledSample(
    ...     human=np.eye(2)[[0] * 24 + [1] * 6 + [0] * 10], verdicts=np.zeros(40, dtype=int),
    ...     first_human=np.eye(2)[[0] * 40], overlap=np.arange(40) < 30,
    ... )
    >>> production = production_sums_from_counts([1000, 0], credit=[1.0, 0.0])
    >>> [round(share.value, 3) for share in two_phase_shares(labelled, production)]
    [0.8, 0.2]
    """
    overlap, first, final = _phases(labelled)
    n_classes, n_overlap = production.credit.size, int(overlap.sum())
    if n_overlap < OVERLAP_MIN:
        refused = not_estimable(
            few(n_overlap), method=METHOD, n=overlap.size, confidence_level=confidence_level
        )
        return (refused,) * n_classes
    joined = join(labelled, replace(production, runs=production.runs.by_verdict()))
    phases = _Phases.of(joined, overlap)
    return tuple(
        limited_share(
            phases.corrected(joined.mean(before), after - before)[0],
            joined,
            confidence_level,
            effective=phases.effective,
            method=SHARES_METHOD,
        )
        for before, after in zip(first.human.T, final.human.T, strict=True)
    )


def few(overlap: int) -> str:
    """Return why so few traces with two labels give no rate."""
    return (
        f"{overlap} traces have two labels, fewer than {OVERLAP_MIN}: have a second reviewer label "
        "a random part of the batch"
    )


def _phases(labelled: LabelledSample) -> tuple[BoolArray, LabelledSample, LabelledSample]:
    """Return the overlap, and the sample by first labels and by adjudicated ones."""
    first, overlap = labelled.first_human, labelled.overlap
    if first is None or overlap is None:
        raise ValueError("first_human and overlap of the labelled traces are needed")
    final = np.where(overlap[:, None], labelled.human, first)
    return overlap, replace(labelled, human=first), replace(labelled, human=final)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Phases:
    """The overlap on its own strata: `into` of each stratum, `of_label`, `share`, `weight`."""

    joined: Joined
    into: IntArray
    of_label: IntArray
    share: FloatArray
    weight: FloatArray
    n: int

    @classmethod
    def of(cls, joined: Joined, overlap: BoolArray) -> "_Phases":
        """Merge the strata with fewer than 5 traces of the overlap."""
        strata = merge_small(
            np.bincount(joined.stratum[overlap], minlength=joined.share.size),
            joined.share * joined.production.n,
            joined.worth,
            minimum_labels=STRATUM_MIN,
        )
        into = np.array(strata.groups)
        return cls(
            joined=joined,
            into=into,
            of_label=into[joined.stratum],
            share=_sums(into, joined.share, strata.n_strata),
            weight=np.where(overlap, joined.weight, 0.0),
            n=int(overlap.sum()),
        )

    def _sum(self, values: FloatArray) -> FloatArray:
        return _sums(self.of_label, values, self.share.size)

    @property
    def scale(self) -> FloatArray:
        """Weight of each label in the mean over the overlap; 0 outside of it."""
        return np.asarray((self.share / self._sum(self.weight))[self.of_label] * self.weight)

    @property
    def effective(self) -> float:
        """Effective number of traces of the overlap."""
        return 1.0 / float(self.scale @ self.scale)

    def corrected(self, first: Residual, apart: FloatArray) -> tuple[Residual, float]:
        """Add the mean of `apart` over the overlap; also return the variance of that mean."""
        joined, weight = self.joined, self.weight
        total = self._sum(weight)
        mean = self._sum(weight * apart) / total
        effective = total**2 / self._sum(weight**2)
        unshrunk = np.sqrt(effective / np.maximum(1.0, effective - 1))
        by_label = (self.share / total * unshrunk)[self.of_label] * weight
        by_label = by_label * (apart - mean[self.of_label])
        correction = float(self.share @ mean)
        in_production = first.in_production + mean[self.into][joined.stratum_of] - correction
        variance, between = joined.variance(first.in_labels + by_label, in_production)
        alone, _ = joined.variance(by_label, np.zeros(in_production.size))
        found = replace(
            first,
            value=first.value + correction,
            pooled=first.pooled + alone,
            variance=variance,
            between=between,
            df=min(self.n, joined.units) - 1.0,
        )
        return found, alone


def _sums(of: IntArray, values: FloatArray, n: int) -> FloatArray:
    return np.bincount(of, weights=values, minlength=n).astype(np.float64)


def reviewer_effects(
    codes: IntArray, settled: IntArray, scores: FloatArray, *, confidence_level: float = 0.95
) -> tuple[Estimate, ...]:
    """Estimate how much higher each reviewer scores than the settled class of the same traces.

    The mean difference of each reviewer over the shared traces; of four reviewers or more it is
    shrunk toward that of all, for few traces show little of one reviewer. Errors on different
    traces are independent and vary alike for all reviewers. One who is further than half a standard
    error from the median keeps their own mean, with the larger of the two variances; below 30
    shared traces the limits are the outer ones of both.

    Parameters
    ----------
    codes : int array, shape (n_traces, n_reviewers)
        Classes of traces with two labels or more, -1 where a reviewer has none.
    settled : int array, shape (n_traces,)
        Class that the reviewers agree on or that was adjudicated.
    scores : float array, shape (n_traces, n_classes)
        Score of each trace if it is of a class, for instance its credit.

    Returns
    -------
    tuple of Estimate
        In the order of the columns, on the scale of `scores`, n being shared traces.
        ``not_estimable`` for a reviewer without shared traces, and for fewer than two reviewers;
        no interval where no reviewer differs.

    References
    ----------
    As `shrunk_means`.

    Examples
    --------
    The first reviewer calls 6 of 20 failures successes:

    >>> codes = np.array([[0, 1]] * 6 + [[1, 1]] * 14)
    >>> found = reviewer_effects(codes, np.ones(20, dtype=int), np.tile([1.0, 0.0], (20, 1)))
    >>> [round(one.value, 3) for one in found]
    [0.3, 0.0]
    """
    given = codes != MISSING
    n: IntArray = given.sum(axis=0)
    row = np.arange(settled.size)
    apart = scores[row[:, None], codes] - scores[row, settled][:, None]
    apart = np.where(given, apart, 0.0)
    known = n > 0
    means = apart.sum(axis=0) / np.maximum(1, n)
    squares = float((np.where(given, apart - means, 0.0) ** 2).sum())
    total, level = int(n.sum()), confidence_level
    df = total - int(known.sum())
    if known.sum() < 2 or df < 1:
        refused = not_estimable(TOO_FEW, method=EFFECTS_METHOD, confidence_level=level)
        return (refused,) * n.size
    values, variances = means.copy(), squares / df / np.maximum(1, n)
    reaches = two_sided_t(level, df) * np.sqrt(variances)
    lows, highs = values - reaches, values + reaches
    if squares > 0 and known.sum() >= SHRUNK_FROM:
        spread = np.where(given, apart - means, 0.0)
        alone = (spread**2).sum(axis=0) / np.maximum(1, n - 1) / np.maximum(1, n)
        found = shrunk_means(
            means[known], variances[known], df=df, own_variances=alone[known], far=FAR,
            confidence_level=level,
        )  # fmt: skip
        values[known] = np.where(found.far, means[known], found.values)
        ends = [
            np.stack([found.values + side * found.reaches, means[known] + side * found.own_reaches])
            for side in (-1, 1)
        ]
        few = n[known] < FEW_SHARED
        for limits, both, outer in ((lows, ends[0], np.min), (highs, ends[1], np.max)):
            one = np.where(found.far, both[1], both[0])
            limits[known] = np.where(few, outer(both, axis=0), one)
    nobody = f"no interval: no reviewer differs on the {total:,} shared labels"
    return tuple(
        Estimate(
            value=float(value),
            interval=(float(low), float(high)) if squares > 0 else None,
            n=int(count),
            method=EFFECTS_METHOD,
            confidence_level=level,
            status=OK if squares > 0 else nobody,
        )
        if count
        else not_estimable(TOO_FEW, method=EFFECTS_METHOD, confidence_level=level)
        for value, low, high, count in zip(values, lows, highs, n.tolist(), strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCeiling:
    """How well a single reviewer, and a judge without error, agree with the labels.

    `reviewer` : chance that a single reviewer gives the settled class of a shared trace.
    `judge` : share of the labels that a judge who is always right would agree with.
    """

    reviewer: Estimate
    judge: Estimate


def noise_ceiling(labelled: LabelledSample, *, confidence_level: float = 0.95) -> NoiseCeiling:
    """Estimate the best agreement with the labels that a judge could show.

    Labels of a single reviewer are as often wrong as those of the overlap, which is a random part;
    settled classes of the overlap are right. With a share q of the traces outside the overlap and a
    reviewer who is right in a of them, the ceiling is 1 - q (1 - a).

    Parameters
    ----------
    labelled : LabelledSample
        With `first_human` and `overlap`; disagreements are settled.

    Examples
    --------
    Reviewers gave the settled class on 45 of 50 shared traces; another 50 have one label:

    >>> labelled = LabelledSample(
    ...     human=np.eye(2)[[0] * 100], verdicts=np.zeros(100, dtype=int),
    ...     first_human=np.eye(2)[[0] * 45 + [1] * 5 + [0] * 50], overlap=np.arange(100) < 50,
    ... )
    >>> found = noise_ceiling(labelled)
    >>> round(found.reviewer.value, 3), round(found.judge.value, 3)
    (0.9, 0.95)
    """
    overlap, first, final = _phases(labelled)
    right = (first.human * final.human).sum(axis=1)
    weights, tasks = labelled.weights, labelled.clusters
    reviewer = human_only(
        right[overlap],
        weights=None if weights is None else weights[overlap],
        clusters=None if tasks is None else np.asarray(tasks)[overlap],
        confidence_level=confidence_level,
    )
    weight = np.ones(overlap.size) if weights is None else weights
    alone = float(weight[~overlap].sum() / weight.sum())
    if reviewer.value is None:
        return NoiseCeiling(reviewer=reviewer, judge=reviewer)

    def raised(value: float) -> float:
        return 1 - alone * (1 - value)

    limits = reviewer.interval
    return NoiseCeiling(
        reviewer=reviewer,
        judge=replace(
            reviewer,
            value=raised(reviewer.value),
            interval=None if limits is None else (raised(limits[0]), raised(limits[1])),
            se=None if reviewer.se is None else alone * reviewer.se,
            method=f"single reviewers on the overlap, {reviewer.method}",
        ),
    )
