"""Counts with fewer rows: what no figure asks for is added up."""

from dataclasses import replace

import numpy as np

from calibration.metrics.arrays import FloatArray, IntArray
from calibration.metrics.counts import Labels, RunCounts

# Keys up to this number are counted in an array, larger ones are sorted.
DENSE = 8_000_000


def condensed(counts: RunCounts, *, grid: int | None, by: str | None = None) -> RunCounts:
    """Add up the cells that a rate cannot tell apart; tasks are given up.

    Cells stay apart that differ in class, weight, stratum, in whether the cost is known, in the
    step of their penalty, and in their group of `by`. Where no credit is left the size of a penalty
    is of no account, only that there is one.

    Parameters
    ----------
    counts : RunCounts
        Independent runs.
    grid : int, optional
        Steps of a penalty; None keeps every distinct penalty.
    by : str, optional
        ``"week"``, ``"workflow"`` or ``"model"``.

    Returns
    -------
    RunCounts
        The same runs and sums in fewer rows, in an order that does not depend on that of `counts`.
    """
    mean = counts.penalty / counts.runs
    pays = counts.score > 0
    for sums in counts.other_scores.values():
        pays |= sums > 0
    labels = None if by is None else counts.labels(by)
    step = _steps(mean, grid)
    key, space = np.zeros(mean.size, dtype=np.int64), 1
    parts = [
        counts.stratum,
        counts.mix,
        counts.known.astype(np.int64),
        np.where(pays, step + 2, np.minimum(step, 1)),
        *([] if labels is None else [labels.codes + 1]),
    ]
    if (counts.weight != counts.weight[0]).any():
        parts.append(np.unique(counts.weight, return_inverse=True)[1].astype(np.int64))
    for part in parts:
        size = int(part.max()) + 1
        key, space = key * size + part, space * size
    first, index = _numbered(key, space)

    def summed(sums: FloatArray) -> FloatArray:
        return np.bincount(index, weights=sums * counts.like).astype(np.float64)

    return replace(
        counts.where(first),
        runs=np.bincount(index, weights=counts.runs * counts.like).astype(np.int64),
        like=np.ones(first.size, dtype=np.int64),
        penalty=summed(counts.penalty),
        gross=summed(counts.gross),
        score=summed(counts.score),
        abandoned_score=summed(counts.abandoned_score),
        other_scores={name: summed(sums) for name, sums in counts.other_scores.items()},
        task=None,
        by={} if by is None or labels is None else {by: _of(labels, first)},
        cost=None if counts.cost is None else summed(counts.cost),
        cost_squared=None if counts.cost_squared is None else summed(counts.cost_squared),
        rounded=counts.rounded or grid is not None,
    )


def _of(labels: Labels, rows: IntArray) -> Labels:
    return Labels(names=labels.names, codes=labels.codes[rows])


def _numbered(key: IntArray, space: int) -> tuple[IntArray, IntArray]:
    """Return a row of each distinct key, in the order of keys, and the place of each row's key."""
    if space > DENSE:
        _, first, index = np.unique(key, return_index=True, return_inverse=True)
        return first.astype(np.int64), index.astype(np.int64)
    a_row = np.full(space, -1, dtype=np.int64)
    a_row[key] = np.arange(key.size)
    occupied = np.flatnonzero(a_row >= 0)
    place = np.zeros(space, dtype=np.int64)
    place[occupied] = np.arange(occupied.size)
    return a_row[occupied], place[key]


def _steps(mean: FloatArray, grid: int | None) -> IntArray:
    if grid is not None:
        # Zero keeps a step of its own: it decides the share over the ceiling.
        steps = np.ceil(np.round(mean * grid, 9)).astype(np.int64)
        return np.where(mean > 0, np.maximum(steps, 1), 0)
    index = np.unique(np.round(mean, 12), return_inverse=True)[1]
    return np.where(mean > 0, index + 1, 0).astype(np.int64)
