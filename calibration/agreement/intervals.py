"""Intervals for agreement: delete-one jackknife on the Fisher z scale, and the exact bound."""

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]

METHOD = "delete-one jackknife, Fisher z"
LOGIT = "delete-one jackknife, logit"
EXACT = "exact bound"
NO_DISAGREEMENT = "no disagreement seen"
NO_VARIATION = "no variation between items seen"

# A spread this small is rounding error of sums, not variation between items.
NO_SPREAD = 1e-10


def check_confidence_level(confidence_level: float) -> None:
    """Raise ValueError unless the level lies strictly between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}")


def jackknife_se(left_out: FloatArray, multiplicity: NDArray[np.int64]) -> float:
    """Return the delete-one standard error from the values with one item of each pattern left out.

    Parameters
    ----------
    left_out : float array, shape (n_patterns,)
        The coefficient without one item of the pattern.
    multiplicity : int array, shape (n_patterns,)
        Items that show the pattern.

    Returns
    -------
    float
        Square root of (n - 1)/n times the sum over items of the squared deviations.

    Examples
    --------
    The mean of 0, 0, 3 without each item is 1.5, 1.5, 0, and s / sqrt(n) = sqrt(3) / sqrt(3):

    >>> jackknife_se(np.array([1.5, 0.0]), np.array([2, 1]))
    1.0
    """
    n = multiplicity.sum()
    centred = left_out - multiplicity @ left_out / n
    return float(np.sqrt((n - 1) / n * (multiplicity @ centred**2)))


def fisher_z_interval(
    value: float, se: float, *, df: int, confidence_level: float, lowest: float = -1.0
) -> tuple[float, float]:
    """Return tanh(atanh(value) -+ t SE / (1 - value^2)), cut at `lowest` for a share.

    References
    ----------
    Moss (2024), "Measures of agreement with multiple raters: Frechet variances and inference",
    Psychometrika 89. https://doi.org/10.1007/s11336-023-09945-2

    Examples
    --------
    >>> fisher_z_interval(0.5, 0.1, df=10**9, confidence_level=0.95)
    (0.280, 0.670)
    """
    # What scipy.stats.t.ppf calls, without its checks: those took most of the time of an estimate.
    quantile = float(special.stdtrit(df, (1 + confidence_level) / 2))
    centre = np.arctanh(value)
    reach = quantile * se / (1 - value**2)
    return max(lowest, float(np.tanh(centre - reach))), float(np.tanh(centre + reach))


def logit_interval(
    share: float, se: float, *, df: int, confidence_level: float
) -> tuple[float, float]:
    """Return the ends of logit(share) -+ t SE / (share (1 - share)), back as shares.

    Examples
    --------
    The logit of 1/2 is 0 and .1 there is .4: 1 / (1 + exp(+-1.96 x .4)):

    >>> logit_interval(0.5, 0.1, df=10**9, confidence_level=0.95)
    (0.31346, 0.68654)
    """
    quantile = float(special.stdtrit(df, (1 + confidence_level) / 2))
    centre, reach = special.logit(share), quantile * se / (share * (1 - share))
    return float(special.expit(centre - reach)), float(special.expit(centre + reach))


def unseen_share_bound(n: int, *, confidence_level: float) -> float:
    """Return the exact upper limit for a share of which 0 of `n` was seen.

    It is the upper end of the two-sided Clopper-Pearson interval.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26. https://doi.org/10.1093/biomet/26.4.404

    Examples
    --------
    >>> unseen_share_bound(20, confidence_level=0.95)
    0.16843
    """
    return float(1 - ((1 - confidence_level) / 2) ** (1 / n))


def unanimous_interval(value: float, n: int, *, confidence_level: float) -> tuple[float, float]:
    """Return what a mean in [0, 1] may be when all `n` items show the same value.

    At most `unseen_share_bound` of the items can differ, each lying anywhere in [0, 1].

    Examples
    --------
    >>> unanimous_interval(1.0, 20, confidence_level=0.95)
    (0.83157, 1.0)
    """
    share = unseen_share_bound(n, confidence_level=confidence_level)
    return value * (1 - share), min(1.0, value * (1 - share) + share)
