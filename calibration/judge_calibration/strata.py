"""Strata of verdicts: what they explain of a score, and how likely a class is in each.

`human`, `verdicts`, `weights` and `clusters` are those of `LabelledSample`; `strata` is the
grouping of the verdicts that `post_stratified` used.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.judge_calibration.samples import validated_human
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

UNUSED = -1
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

    @property
    def survivors(self) -> tuple[int, ...]:
        """The verdict of each stratum that no other absorbed."""
        absorbed = dict(self.merged)
        kept = [k for k, g in enumerate(self.groups) if g != UNUSED and k not in absorbed]
        return tuple(sorted(kept, key=lambda k: self.groups[k]))


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


def verdict_strata(
    verdicts: IntArray,
    production_counts: FloatArray,
    values: FloatArray,
    *,
    otherwise: float,
    minimum_labels: int = 5,
) -> Strata:
    """Merge the verdicts of labelled traces, as `merge_small`; a NaN value is `otherwise`."""
    labels = np.bincount(verdicts, minlength=production_counts.size)
    known = np.where(np.isnan(values), otherwise, values)
    return merge_small(labels, production_counts, known, minimum_labels=minimum_labels)


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
