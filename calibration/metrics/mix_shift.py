"""Whether a mix of classes has moved: each week against all weeks before it."""

from dataclasses import dataclass

import numpy as np

from calibration.estimates import OK
from calibration.metrics.arrays import FloatArray, IntArray
from calibration.metrics.class_changes import benjamini_hochberg
from calibration.metrics.laws import f_chance_above
from calibration.metrics.shares import MINIMUM_UNITS, NO_VARIANCE

MOVED, LEVEL = 0.02, 0.05
EXACTLY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class MixShift:
    """One week's mix against the pooled weeks before it.

    Parameters
    ----------
    distance : float or None
        Half the sum of the absolute differences of all shares: what part of the runs would have
        to be of another class. None for the first week.
    by_chance : float or None
        The distance to be expected if nothing had moved.
    p_value, adjusted_p_value : float or None
        Cluster-robust test of equal mixes, and after Benjamini-Hochberg over the weeks.
    flagged : bool
        Whether the distance is above 2 percentage points and the adjusted p-value .05 or less.
    status : str
        ``"ok"`` or why there is no test.
    """

    distance: float | None
    by_chance: float | None
    p_value: float | None
    adjusted_p_value: float | None
    flagged: bool
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    distance: float | None
    by_chance: float | None
    p_value: float | None
    status: str


def mix_shifts(
    counts: FloatArray, unit: IntArray, week: IntArray, *, noun: str = "runs"
) -> tuple[MixShift, ...]:
    """Compare the mix of every week with that of the weeks before it, taken together.

    Units (tasks, or runs) are independent; a unit may have runs in several weeks.

    Parameters
    ----------
    counts : float array, shape (n_rows, n_classes)
        Weighted runs of each class, of one unit in one week.
    unit : int array, shape (n_rows,)
        The unit of each row.
    week : int array, shape (n_rows,)
        The week of each row, 0 for the first; weeks count up in time.
    noun : str, default "runs"
        What the units are.

    Returns
    -------
    tuple of MixShift
        One for each week from 0 to the last.

    Raises
    ------
    ValueError
        If shapes differ or there is no row.

    Notes
    -----
    The Pearson statistic of the two mixes with its second-order correction for the units (Rao and
    Scott), compared with F (Thomas and Rao): it needs no inverse, so classes that hardly occur do
    no harm. The variance is the one that holds if the mixes are equal.

    References
    ----------
    Rao and Scott (1984), Ann. Statist. 12. https://doi.org/10.1214/aos/1176346391
    Thomas and Rao (1987), J. Amer. Statist. Assoc. 82. https://doi.org/10.2307/2289475

    Examples
    --------
    Ten runs of each of two classes, then fifteen and five: a quarter has moved.

    >>> before, after = [0] * 10 + [1] * 10, [0] * 15 + [1] * 5
    >>> found = mix_shifts(np.eye(2)[before + after], np.arange(40), np.repeat([0, 1], 20))
    >>> found[1].distance, found[1].p_value
    (0.25, 0.11493)
    """
    if counts.ndim != 2 or not len(counts) or not len(counts) == unit.size == week.size:
        raise ValueError(
            f"counts, unit and week must have one row each, at least one, got {counts.shape!r}, "
            f"{unit.shape!r} and {week.shape!r}"
        )
    tests = [_tested(counts, unit, week, number, noun) for number in range(int(week.max()) + 1)]
    adjusted = benjamini_hochberg([test.p_value for test in tests])
    return tuple(
        MixShift(
            distance=test.distance,
            by_chance=test.by_chance,
            p_value=test.p_value,
            adjusted_p_value=p,
            flagged=(
                test.distance is not None
                and test.distance > MOVED + EXACTLY
                and p is not None
                and p <= LEVEL
            ),
            status=test.status,
        )
        for test, p in zip(tests, adjusted, strict=True)
    )


def _tested(counts: FloatArray, unit: IntArray, week: IntArray, number: int, noun: str) -> _Test:
    sides = [
        _by_unit(counts[rows], unit[rows], int(unit.max()) + 1)
        for rows in (week < number, week == number)
    ]
    entering = [int((side.sum(axis=1) > 0).sum()) for side in sides]
    if not entering[1]:
        return _Test(distance=None, by_chance=None, p_value=None, status="no verdicts in this week")
    if not entering[0]:
        return _Test(
            distance=None, by_chance=None, p_value=None, status="no week with verdicts before it"
        )
    totals = [float(side.sum()) for side in sides]
    shares = [side.sum(axis=0) / total for side, total in zip(sides, totals, strict=True)]
    distance = float(np.abs(shares[1] - shares[0]).sum() / 2)
    if min(entering) < MINIMUM_UNITS:
        why = (
            f"not_estimable: no test from {min(entering)} {noun} on a side, "
            f"at least {MINIMUM_UNITS} are needed"
        )
        return _Test(distance=distance, by_chance=None, p_value=None, status=why)
    pooled = (sides[0] + sides[1]).sum(axis=0) / sum(totals)
    # What each unit adds to the difference of the mixes if these are equal.
    influence = sum(
        sign * (side - side.sum(axis=1, keepdims=True) * pooled) / total
        for side, sign, total in zip(sides, (-1.0, 1.0), totals, strict=True)
    )
    used = influence[np.abs(influence).sum(axis=1) > 0] if np.any(influence) else influence[:0]
    units = int(((sides[0] + sides[1]).sum(axis=1) > 0).sum())
    return _judged(distance, shares[1] - shares[0], pooled, used, units)


def _judged(
    distance: float, moved: FloatArray, pooled: FloatArray, influence: FloatArray, units: int
) -> _Test:
    occurring = pooled > 0
    covariance = units / (units - 1) * influence.T @ influence
    scale = 1 / np.sqrt(pooled[occurring])
    scaled = covariance[np.ix_(occurring, occurring)] * np.outer(scale, scale)
    mean, squares = float(np.trace(scaled)), float((scaled**2).sum())
    by_chance = float(np.sqrt(2 / np.pi * np.diag(covariance)).sum() / 2)
    if mean < NO_VARIANCE:
        return _Test(distance=distance, by_chance=0.0, p_value=1.0, status=OK)
    statistic = float((moved[occurring] ** 2 / pooled[occurring]).sum()) / mean
    freedom = mean**2 / squares
    p = f_chance_above(statistic, freedom, freedom * (units - 1))
    return _Test(distance=distance, by_chance=by_chance, p_value=p, status=OK)


def _by_unit(counts: FloatArray, unit: IntArray, n: int) -> FloatArray:
    return np.stack([np.bincount(unit, weights=c, minlength=n) for c in counts.T], axis=1)
