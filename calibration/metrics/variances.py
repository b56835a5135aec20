"""Variances of sums over units, from what each unit adds to a ratio."""

import numpy as np

from calibration.metrics.arrays import FloatArray
from calibration.metrics.units import Units


def stratum_means(influence: FloatArray, units: Units) -> FloatArray:
    """Return, for each unit, the mean influence in its stratum."""
    sizes = np.bincount(units.stratum, weights=units.multiplicity)
    sums = np.bincount(units.stratum, weights=units.multiplicity * influence)
    means: FloatArray = (sums / np.maximum(sizes, 1))[units.stratum]
    return means


def stratum_variances(
    influence: FloatArray, units: Units, *, centred: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Return each stratum's part in the variance of the summed influences, and its units."""
    sizes = np.bincount(units.stratum, weights=units.multiplicity).astype(np.float64)
    off = influence - stratum_means(influence, units) if centred else influence
    squares = np.bincount(units.stratum, weights=units.multiplicity * off**2)
    return sizes / np.maximum(1, sizes - 1) * squares, sizes


def linearised_variance(influence: FloatArray, units: Units) -> float:
    """Return the variance of the summed influences, centred within strata."""
    return float(stratum_variances(influence, units)[0].sum())


def satterthwaite(parts: FloatArray, sizes: FloatArray) -> float:
    """Return the degrees of freedom of a variance that is a sum over strata.

    Examples
    --------
    Two equal parts of ten units each:

    >>> satterthwaite(np.array([0.5, 0.5]), np.array([10.0, 10.0]))
    18.0
    """
    spread = float(np.sum(parts**2 / np.maximum(1, sizes - 1)))
    return float(parts.sum()) ** 2 / spread if spread > 0 else float(max(1, sizes.sum() - 1))
