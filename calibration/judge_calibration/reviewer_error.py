"""What the errors of reviewers do to the rate: the two-phase estimate.

In the first phase every labelled trace has the label of a reviewer. In the second a random part of
them, the overlap, has labels of two reviewers, adjudicated where they differ; two that agree count
as adjudicated.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.judge_calibration.post_stratification import Joined, join, predictions, rate_limits
from calibration.judge_calibration.samples import LabelledSample, ProductionSums
from calibration.judge_calibration.strata import merge_small
from calibration.statistics.estimate import Estimate, FloatArray, IntArray, not_estimable

METHOD = "two phases, first labels corrected by adjudicated ones, logit t"

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
    """

    estimate: Estimate
    first: float | None
    correction: float | None
    overlap: int


def two_phase(
    labelled: LabelledSample,
    adjudicated: FloatArray,
    overlap: NDArray[np.bool_],
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
        Its `human` holds first-phase shares, see `first_phase`.
    adjudicated : float array, shape (n, n_classes)
        Adjudicated class of each trace of the overlap; other rows are not read.
    overlap : bool array, shape (n,)
    production, net
        As in `post_stratified`, with the estimand of the process.

    Returns
    -------
    TwoPhase
        ``not_estimable`` below 30 traces in the overlap.

    Notes
    -----
    The influences of both phases are added trace by trace (task by task); a stratum with fewer than
    5 traces of the overlap joins the one of nearest credit. df: the smaller of overlap - 1 and
    labelled tasks - 1.

    References
    ----------
    Neyman (1938), J. Am. Stat. Assoc. 33: double sampling.
    https://doi.org/10.1080/01621459.1938.10503378

    Examples
    --------
    Forty traces of one verdict, all called good by one reviewer; of the 30 in the overlap 6 are
    adjudicated as bad: 1 - 6/30.

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> good = LabelledSample(human=np.eye(2)[[0] * 40], verdicts=np.zeros(40, dtype=int))
    >>> found = two_phase(
    ...     good, np.eye(2)[[0] * 24 + [1] * 16], np.arange(40) < 30,
    ...     production_sums_from_counts([1000, 0], credit=[1.0, 0.0]),
    ... )
    >>> round(found.estimate.value, 3), found.estimate.df
    (0.8, 29.0)
    """
    n, n_overlap = overlap.size, int(overlap.sum())
    if n_overlap < OVERLAP_MIN:
        why = (
            f"{n_overlap} traces have two labels, fewer than {OVERLAP_MIN}: have a second reviewer "
            "label a random part of the batch"
        )
        refused = not_estimable(why, method=METHOD, n=n, confidence_level=confidence_level)
        return TwoPhase(estimate=refused, first=None, correction=None, overlap=n_overlap)
    joined = join(labelled, production)
    first = labelled.scores(production.credit, net=net)
    final = replace(labelled, human=np.where(overlap[:, None], adjudicated, labelled.human))
    second = final.scores(production.credit, net=net)
    found = joined.mean(first, *predictions(joined, labelled, net=net))
    stratum, merged, share = _of_overlap(joined, overlap)
    weight = np.where(overlap, joined.weight, 0.0)
    total = np.bincount(merged, weights=weight, minlength=share.size)
    squares = np.bincount(merged, weights=weight**2, minlength=share.size)
    apart = np.bincount(merged, weights=weight * (second - first), minlength=share.size) / total
    effective = total**2 / squares
    unshrunk = np.sqrt(effective / np.maximum(1.0, effective - 1))
    by_label = (share / total * unshrunk)[merged] * weight * (second - first - apart[merged])
    correction = float(share @ apart)
    in_production = found.in_production + apart[stratum][joined.stratum_of] - correction
    first_value, value = found.value, found.value + correction
    return TwoPhase(
        estimate=rate_limits(
            min(1.0, max(0.0, value)),
            joined.variance(found.in_labels + by_label, in_production)[0],
            df=min(n_overlap, joined.units) - 1.0,
            joined=joined,
            method=METHOD,
            confidence_level=confidence_level,
        ),
        first=first_value,
        correction=correction,
        overlap=n_overlap,
    )


def _of_overlap(
    joined: Joined, overlap: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return merged stratum by stratum and by label, and their shares of production."""
    strata = merge_small(
        np.bincount(joined.stratum[overlap], minlength=joined.share.size),
        joined.share * joined.production.n,
        joined.worth,
        minimum_labels=STRATUM_MIN,
    )
    into = np.array(strata.groups)
    share = np.bincount(into, weights=joined.share, minlength=strata.n_strata).astype(np.float64)
    return into, into[joined.stratum], share
