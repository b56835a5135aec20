"""What is resampled: cells of runs, whole tasks, or random groups of tasks when there are many."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.metrics.arrays import FloatArray, IntArray
from calibration.metrics.condensing import condensed
from calibration.metrics.counts import ABANDONED, RunCounts
from calibration.records import OUTCOMES

RUNS, TASKS = "runs", "tasks"
# Above this many distinct cells, penalties are grouped to 1 / GRID for the resamples only.
MOST_UNITS, GRID, COARSEST = 20_000, 1024, 32
# Above so many tasks they are put into random groups; the standard error from 5,000 groups is
# known to 1 %, that from the fewest ever made, for a part of a breakdown, to 1.6 %.
MOST_TASKS, FEWEST_GROUPS = 5_000, 2_000
SHARES = tuple(f"share:{name}" for name in OUTCOMES)
FEATURES = (
    *("runs", "score", "gross", "present", "of_present", "known", "over", "score_known"),
    *SHARES,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """Independent units with the weighted sums of their features.

    Parameters
    ----------
    names : tuple of str, length n_features
        Features; "score" over "runs" is the ASR.
    sums : float array, shape (n_units, n_features)
        Weighted sums of one unit.
    multiplicity, stratum : int array, shape (n_units,)
        Units like it, and the stratum that it is resampled in.
    entering : int array, shape (n_features,)
        Runs or tasks with anything of a feature.
    n : int
        Runs or tasks, also where `grouped`.
    effective_share : float
        Kish's effective number of runs, per run.
    noun : str
        ``"runs"`` or ``"tasks"``.
    rounding : float
        A resampled score is off by at most this; the estimate never is.
    grouped : bool
        Whether a unit is a random group of runs or tasks.
    """

    names: tuple[str, ...]
    sums: FloatArray
    multiplicity: IntArray
    stratum: IntArray
    entering: IntArray
    n: int
    effective_share: float
    noun: str
    rounding: float = 0.0
    grouped: bool = False

    def column(self, name: str) -> int:
        """Return the position of a feature."""
        return self.names.index(name)


def features(counts: RunCounts) -> tuple[tuple[str, ...], list[FloatArray]]:
    """Return the names of the features and their weighted sums in each row of the counts."""
    runs = counts.runs.astype(np.float64)
    classes = counts.shares[counts.mix] * runs[:, None]
    columns = [
        runs,
        counts.score,
        counts.gross,
        runs - classes[:, ABANDONED],
        counts.score - counts.abandoned_score,
        np.where(counts.known, runs, 0.0),
        np.where(counts.penalty > 0, runs, 0.0),
        np.where(counts.known, counts.score, 0.0),
        *classes.T,
        *counts.other_scores.values(),
    ]
    names = (*FEATURES, *(f"score:{name}" for name in counts.other_scores))
    return names, [column * counts.weight for column in columns]


def units_of(counts: RunCounts, *, rng: np.random.Generator, most: int = MOST_UNITS) -> Units:
    """Return what to resample: cells of equal runs, or tasks where some task was run repeatedly.

    Above `most` distinct cells penalties are grouped to 1/1024, and further if that is not enough.
    Above 5,000 tasks the units are random groups of tasks: the variance between groups is, per
    task, the variance between tasks.

    Parameters
    ----------
    counts : RunCounts
        At least one run.
    rng : numpy.random.Generator
        Source of random groups; not used otherwise.
    most : int, default 20000
        Units to draw from.
    """
    if counts.repeats:
        return grouped_at_random(task_units(counts)[0], rng, most_tasks(most))
    return grouped_at_random(_cell_units(counts, most), rng, max(most, FEWEST_GROUPS))


def most_tasks(most: int) -> int:
    """Return how many tasks are drawn one by one where `most` units are allowed."""
    return max(min(most, MOST_TASKS), FEWEST_GROUPS)


def task_units(counts: RunCounts) -> tuple[Units, NDArray[np.generic]]:
    """Return one unit a task (or a group of equal ones), and the tasks in that order."""
    if counts.task is None:
        raise ValueError("counts must name the task of each run, got none")
    ids, first, index = np.unique(counts.task, return_index=True, return_inverse=True)
    names, columns = features(counts)
    of_tasks = summed(columns, index.astype(np.int64))
    units = _made(counts, names, of_tasks, counts.like[first], counts.stratum[first], TASKS)
    return replace(units, n=counts.n_tasks, grouped=counts.grouped_tasks is not None), ids


def _cell_units(counts: RunCounts, most: int) -> Units:
    grid = GRID if counts.rounded else None
    cells = condensed(counts, grid=grid)
    while cells.runs.size > most and grid != COARSEST:
        grid = GRID if grid is None else grid // 2
        cells = condensed(cells, grid=grid)
    names, columns = features(cells)
    mixed = bool(((cells.penalty > 0) & (cells.score > 0)).any())
    return _made(
        cells,
        names,
        np.column_stack(columns) / cells.runs[:, None],
        cells.runs,
        cells.stratum,
        RUNS,
        0.0 if grid is None or not mixed else 1 / grid,
    )


def _made(
    counts: RunCounts,
    names: tuple[str, ...],
    sums: FloatArray,
    multiplicity: IntArray,
    stratum: IntArray,
    noun: str,
    rounding: float = 0.0,
) -> Units:
    runs = counts.runs * counts.like
    return Units(
        names=names,
        sums=sums,
        multiplicity=multiplicity,
        stratum=pool_lone(stratum, multiplicity),
        entering=(sums > 0).T.astype(np.int64) @ multiplicity,
        n=int(multiplicity.sum()),
        effective_share=float((counts.weight @ runs) ** 2 / (counts.weight**2 @ runs) / counts.n),
        noun=noun,
        rounding=rounding,
    )


def summed(columns: Sequence[FloatArray], index: IntArray) -> FloatArray:
    """Return the sums of the rows with one index, a column each."""
    return np.stack([np.bincount(index, weights=column) for column in columns], axis=1)


def pool_lone(stratum: IntArray, multiplicity: IntArray) -> IntArray:
    """Pool the strata of one unit, which alone would add no variance; one such joins another."""
    stratum = np.unique(stratum, return_inverse=True)[1].astype(np.int64)
    sizes = np.bincount(stratum, weights=multiplicity)
    lone = sizes < 2
    if not lone.any() or sizes.size == 1:
        return stratum
    target = sizes.size if lone.sum() > 1 else int(sizes.argmax())
    return np.where(lone[stratum], target, stratum).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouping:
    """Random groups of equal size, within strata."""

    owner: NDArray[np.int32]
    group: IntArray
    stratum: IntArray

    def added(self, column: FloatArray) -> FloatArray:
        """Return the sum of a feature in each group."""
        return np.bincount(
            self.group, weights=column[self.owner], minlength=self.stratum.size
        ).astype(np.float64)


def random_groups(
    multiplicity: IntArray, stratum: IntArray, *, rng: np.random.Generator, most: int
) -> Grouping:
    """Put units, each as often as it stands for one, into about `most` groups at random."""
    owners, groups, strata, start = [], [], [], 0
    total = int(multiplicity.sum())
    for number in np.unique(stratum).tolist():
        rows = np.flatnonzero(stratum == number)
        owner = np.repeat(rows.astype(np.int32), multiplicity[rows])
        count = min(owner.size, max(2, round(most * owner.size / total)))
        rng.shuffle(owner)
        owners.append(owner)
        groups.append(start + np.arange(owner.size) % count)
        strata.append(np.full(count, number, dtype=np.int64))
        start += count
    return Grouping(
        owner=np.concatenate(owners),
        group=np.concatenate(groups),
        stratum=np.concatenate(strata),
    )


def grouped_at_random(units: Units, rng: np.random.Generator, most: int) -> Units:
    """Return at most about `most` units, by adding up random groups of equal size."""
    if units.multiplicity.size <= most:
        return units
    grouping = random_groups(units.multiplicity, units.stratum, rng=rng, most=most)
    return replace(
        units,
        sums=np.stack([grouping.added(column) for column in units.sums.T], axis=1),
        multiplicity=np.ones(grouping.stratum.size, dtype=np.int64),
        stratum=pool_lone(grouping.stratum, np.ones(grouping.stratum.size, dtype=np.int64)),
        grouped=True,
    )
