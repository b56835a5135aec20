"""What is resampled: cells of runs, whole tasks, or random groups of tasks when there are many."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.metrics.condensing import condensed
from calibration.metrics.counts import ABANDONED, FloatArray, IntArray, RunCounts
from calibration.records import OUTCOMES

RUNS, TASKS = "runs", "tasks"
# Above this many distinct cells, penalties are grouped to 1 / GRID for the resamples only.
MOST_UNITS, GRID, COARSEST = 20_000, 1024, 32
# The standard error from this many random groups is within 2 % of the one from all units.
FEWEST_GROUPS = 2_000
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


def features(counts: RunCounts) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names of the features and their weighted sums in each row of the counts."""
    runs = counts.runs.astype(np.float64)
    classes = counts.shares[counts.mix] * runs[:, None]
    columns = [
        runs,
        counts.score,
        classes @ counts.credit,
        runs - classes[:, ABANDONED],
        counts.score - counts.abandoned_score,
        np.where(counts.known, runs, 0.0),
        np.where(counts.penalty > 0, runs, 0.0),
        np.where(counts.known, counts.score, 0.0),
        *classes.T,
        *counts.other_scores.values(),
    ]
    names = (*FEATURES, *(f"score:{name}" for name in counts.other_scores))
    return names, np.column_stack(columns) * counts.weight[:, None]


def units_of(counts: RunCounts, *, rng: np.random.Generator, most: int = MOST_UNITS) -> Units:
    """Return what to resample: cells of equal runs, or tasks where some task was run repeatedly.

    Above `most` distinct cells penalties are grouped to 1/1024, and further if that is not enough.
    Above `most` tasks the units are random groups of tasks: the variance between groups is, per
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
        units = task_units(counts)[0]
    else:
        units = _cell_units(counts, most)
    return grouped_at_random(units, rng, max(most, FEWEST_GROUPS))


def task_units(counts: RunCounts) -> tuple[Units, NDArray[np.generic]]:
    """Return one unit a task (or a group of equal ones), and the tasks in that order."""
    ids, first, index = np.unique(counts.task, return_index=True, return_inverse=True)
    names, sums = features(counts)
    units = _made(
        counts, names, summed(sums, index), counts.like[first], counts.stratum[first], TASKS
    )
    return units, ids


def _cell_units(counts: RunCounts, most: int) -> Units:
    grid = GRID if counts.rounded else None
    cells = condensed(counts, grid=grid)
    while cells.runs.size > most and grid != COARSEST:
        grid = GRID if grid is None else grid // 2
        cells = condensed(cells, grid=grid)
    names, sums = features(cells)
    mixed = bool(((cells.penalty > 0) & (cells.score > 0)).any())
    return _made(
        cells,
        names,
        sums / cells.runs[:, None],
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


def summed(rows: FloatArray, index: IntArray) -> FloatArray:
    """Return the sums of the rows with one index."""
    return np.stack([np.bincount(index, weights=column) for column in rows.T], axis=1)


def pool_lone(stratum: IntArray, multiplicity: IntArray) -> IntArray:
    """Pool the strata of one unit, which alone would add no variance; one such joins another."""
    stratum = np.unique(stratum, return_inverse=True)[1].astype(np.int64)
    sizes = np.bincount(stratum, weights=multiplicity)
    lone = sizes < 2
    if not lone.any() or sizes.size == 1:
        return stratum
    target = sizes.size if lone.sum() > 1 else int(sizes.argmax())
    return np.where(lone[stratum], target, stratum).astype(np.int64)


def grouped_at_random(units: Units, rng: np.random.Generator, most: int) -> Units:
    """Return at most about `most` units, by adding up random groups of equal size."""
    if units.multiplicity.size <= most:
        return units
    sums, strata, start = [], [], 0
    for stratum in np.unique(units.stratum).tolist():
        rows = np.flatnonzero(units.stratum == stratum)
        owner = np.repeat(rows.astype(np.int32), units.multiplicity[rows])
        groups = min(owner.size, max(2, round(most * owner.size / units.n)))
        rng.shuffle(owner)
        group = np.arange(owner.size) % groups
        sums.append(
            np.stack([np.bincount(group, weights=column[owner]) for column in units.sums.T], axis=1)
        )
        strata.append(np.full(groups, start, dtype=np.int64))
        start += 1
    stratum = np.concatenate(strata)
    return Units(
        names=units.names,
        sums=np.vstack(sums),
        multiplicity=np.ones(stratum.size, dtype=np.int64),
        stratum=stratum,
        entering=units.entering,
        n=units.n,
        effective_share=units.effective_share,
        noun=units.noun,
        rounding=units.rounding,
        grouped=True,
    )
