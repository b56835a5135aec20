"""Which classes moved between two sets of runs: by how much, and beyond chance."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.metrics.arrays import FloatArray
from calibration.metrics.differences import Difference, difference_of
from calibration.metrics.joint import AFTER, BEFORE
from calibration.metrics.laws import t_chance
from calibration.metrics.resampling import (
    MINIMUM_UNITS,
    NO_VARIANCE,
    Resampled,
)
from calibration.metrics.units import SHARES, Units
from calibration.metrics.variances import (
    satterthwaite,
    stratum_variances,
)
from calibration.records import OUTCOMES

MOVED, LEVEL = 0.02, 0.05
# Two points exactly, up to rounding of shares, is not more than two.
EXACTLY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassChange:
    """One class share on both sides.

    Parameters
    ----------
    outcome : str
        The class.
    before, after : float
        Its share on each side.
    change : Difference
        After minus before.
    p_value : float or None
        Cluster-robust two-proportion test.
    adjusted_p_value : float or None
        The same after Benjamini-Hochberg over the classes.
    flagged : bool
        Whether the share moved by more than 2 percentage points and the adjusted p-value is .05 or
        less.
    """

    outcome: str
    before: float
    after: float
    change: Difference
    p_value: float | None
    adjusted_p_value: float | None
    flagged: bool


def class_changes(
    found: Resampled, *, moved: float = MOVED, level: float = LEVEL
) -> tuple[ClassChange, ...]:
    """Compare the share of every class and flag those that moved.

    A flag needs both size and evidence: with 1,000 runs a side the bare rule of 2 points fires in
    58 % of the weeks in which nothing changed.

    Parameters
    ----------
    found : Resampled
        Resamples of units from `side_by_side`.
    moved : float, default 0.02
        The change, as a fraction, that a flag needs.
    level : float, default 0.05
        False discovery rate.

    Returns
    -------
    tuple of ClassChange
        In the order of the classes.

    References
    ----------
    Benjamini and Hochberg (1995), J. R. Stat. Soc. B 57.
    https://doi.org/10.1111/j.2517-6161.1995.tb02031.x
    Rao and Scott (1992), Biometrics 48. https://doi.org/10.2307/2532311
    """
    p_values = [_two_proportion_test(found, name) for name in SHARES]
    adjusted = benjamini_hochberg(p_values)
    changes = []
    for outcome, name, p, adjusted_p in zip(OUTCOMES, SHARES, p_values, adjusted, strict=True):
        before, after = (
            found.totals(side + name) / found.totals(side + "runs") for side in (BEFORE, AFTER)
        )
        changes.append(
            ClassChange(
                outcome=outcome,
                before=before,
                after=after,
                change=difference_of(found, name),
                p_value=p,
                adjusted_p_value=adjusted_p,
                flagged=(
                    abs(after - before) > moved + EXACTLY
                    and adjusted_p is not None
                    and adjusted_p <= level
                ),
            )
        )
    return tuple(changes)


def _two_proportion_test(found: Resampled, name: str) -> float | None:
    """Return the p-value of equal shares, with the variance that holds if they are equal."""
    units = found.units
    runs = [found.totals(side + "runs") for side in (BEFORE, AFTER)]
    entering = [int(units.entering[units.column(side + "runs")]) for side in (BEFORE, AFTER)]
    if min(entering) < MINIMUM_UNITS:
        return None
    counts = [found.totals(side + name) for side in (BEFORE, AFTER)]
    pooled = sum(counts) / sum(runs)
    influence = np.zeros(units.multiplicity.size)
    for side, sign, size in zip((BEFORE, AFTER), (-1, 1), runs, strict=True):
        of_class, all_runs = (
            units.sums[:, units.column(side + feature)] for feature in (name, "runs")
        )
        influence += sign * (of_class - pooled * all_runs) / size
    variance, freedom = _null_variance(influence, units)
    if variance < NO_VARIANCE:
        return 1.0
    gap = counts[1] / runs[1] - counts[0] / runs[0]
    return 2 * t_chance(-abs(gap) / float(np.sqrt(variance)), freedom)


def _null_variance(influence: FloatArray, units: Units) -> tuple[float, float]:
    """Return the variance of the difference and its degrees of freedom.

    Influences have mean zero on each side when the shares are equal, which keeps the test from
    firing on a class that one side lacks; between design strata their means differ anyhow.
    """
    sides = [units.sums[:, units.column(side + "runs")] > 0 for side in (BEFORE, AFTER)]
    kinds = np.unique(2 * sides[0] + sides[1]).size
    if np.unique(units.stratum).size > kinds:
        parts, sizes = stratum_variances(influence, units)
    else:
        parts, sizes = stratum_variances(influence, units, centred=False)
    return float(parts.sum()), satterthwaite(parts, sizes)


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for the false discovery rate; None stays None and does not count.

    Examples
    --------
    >>> benjamini_hochberg([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    known = [p for p in p_values if p is not None]
    if not known:
        return [None] * len(p_values)
    adjusted = iter(_step_up(known))
    return [None if p is None else float(next(adjusted)) for p in p_values]


def _step_up(p_values: Sequence[float]) -> list[float]:
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)[::-1]
    raised = p[order] * p.size / np.arange(p.size, 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(raised))
    return [float(p) for p in adjusted]
