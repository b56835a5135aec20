"""Class probabilities given verdict and segment: for looking and sampling, never for a rate."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.judge_calibration.post_stratification import UNUSED, Strata
from calibration.judge_calibration.samples import validated_human
from calibration.statistics.estimate import (
    FloatArray,
    IntArray,
    validated_codes,
    validated_weights,
)

CELL_LABELS = 10

PRIOR = 0.2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassProbabilities:
    """What labelled traces say about traces of the same verdict and segment.

    Parameters
    ----------
    given : float array, shape (n_verdicts, n_segments, n_classes)
        Probability of each class; rows sum to one. NaN for a verdict that never occurs.
    labels : int array, shape (n_verdicts, n_segments)
        Labelled traces behind each row.
    by_segment : bool array, shape (n_verdicts, n_segments)
        Whether the row is that of the segment and not of the whole verdict.
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

    The labelled traces are a probability sample of production. A cell of verdict x segment with
    `cell_labels` labels or more speaks for itself, others take the whole verdict, as merged by
    `post_stratified` where it has few labels.

    Parameters
    ----------
    human : float array, shape (n, n_classes)
        Class shares of each labelled trace, rows summing to one.
    verdicts, segments : int array, shape (n,)
        Verdict and segment codes of the labelled traces.
    n_segments : int
        Number of segments.
    strata : Strata
        The grouping of verdicts that `post_stratified` used.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities; within a cell they are scaled to its effective number.
    prior : float, default 0.2
        Dirichlet parameter of each class: no probability is 0 for want of labels.
    cell_labels : int, default 10
        Fewest labels of a cell of its own.

    Returns
    -------
    ClassProbabilities

    Raises
    ------
    ValueError
        If shapes differ, a row does not sum to one, or `prior` is not positive.

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
