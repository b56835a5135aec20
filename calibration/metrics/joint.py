"""Two sets of runs as one set of units, so that what depends on both is resampled together."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.metrics.arrays import FloatArray, IntArray
from calibration.metrics.counts import RunCounts
from calibration.metrics.units import (
    MOST_UNITS,
    TASKS,
    Units,
    grouped_at_random,
    most_tasks,
    pool_lone,
    task_units,
    units_of,
)

BEFORE, AFTER = "before:", "after:"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointUnits:
    """Units with the features of both sides, and how many tasks both have.

    Units of one side only have zeros in the columns of the other. Tasks of both, of the first only
    and of the second only are strata, each drawn with its own number.
    """

    units: Units
    n_pairs: int


def side_by_side(
    before: RunCounts,
    after: RunCounts,
    *,
    paired: bool,
    rng: np.random.Generator,
    most: int = MOST_UNITS,
) -> JointUnits:
    """Put two sets of runs into one set of units.

    Parameters
    ----------
    before, after : RunCounts
        The two sides.
    paired : bool
        Whether tasks with one name are one task; else the sides are independent.
    rng : numpy.random.Generator
        Source of random groups where tasks are many.
    most : int, default 20000
        Units to draw from, on each side.

    Raises
    ------
    ValueError
        If `paired` without tasks, or if tasks of one name stand for different numbers of tasks.
    """
    if not paired:
        one, other = (units_of(side, rng=rng, most=most) for side in (before, after))
        rows = np.arange(one.multiplicity.size), np.arange(other.multiplicity.size)
        return JointUnits(units=_joined(one, other, rows[0], rows[1] + rows[0].size), n_pairs=0)
    (one, ids), (other, other_ids) = task_units(before), task_units(after)
    place = _union_places(ids, other_ids)
    both = np.intersect1d(place[0], place[1], return_indices=True)
    if (one.multiplicity[both[1]] != other.multiplicity[both[2]]).any():
        raise ValueError("tasks of one name must stand for equally many tasks on both sides")
    joined = _joined(one, other, *place)
    return JointUnits(
        units=grouped_at_random(joined, rng, most_tasks(most)),
        n_pairs=int(one.multiplicity[both[1]].sum()),
    )


def _union_places(
    ids: NDArray[np.generic], other_ids: NDArray[np.generic]
) -> tuple[IntArray, IntArray]:
    _, place = np.unique(np.concatenate([ids, other_ids]), return_inverse=True)
    place = place.astype(np.int64)
    return place[: ids.size], place[ids.size :]


def _joined(one: Units, other: Units, place: IntArray, other_place: IntArray) -> Units:
    size = int(max(place.max(), other_place.max())) + 1

    def wide(units: Units, rows: IntArray) -> tuple[FloatArray, IntArray, IntArray]:
        sums = np.zeros((size, units.sums.shape[1]))
        sums[rows] = units.sums
        multiplicity, stratum = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        multiplicity[rows], stratum[rows] = units.multiplicity, units.stratum + 1
        return sums, multiplicity, stratum

    sums, multiplicity, stratum = wide(one, place)
    other_sums, other_multiplicity, other_stratum = wide(other, other_place)
    multiplicity = np.maximum(multiplicity, other_multiplicity)
    return replace(
        one,
        names=(*(BEFORE + name for name in one.names), *(AFTER + name for name in other.names)),
        sums=np.hstack([sums, other_sums]),
        multiplicity=multiplicity,
        stratum=pool_lone(stratum * (int(other_stratum.max()) + 1) + other_stratum, multiplicity),
        entering=np.concatenate([one.entering, other.entering]),
        n=int(multiplicity.sum()),
        effective_share=min(one.effective_share, other.effective_share),
        noun=TASKS if TASKS in (one.noun, other.noun) else one.noun,
        rounding=max(one.rounding, other.rounding),
        grouped=one.grouped or other.grouped,
    )
