"""Means of several groups that borrow strength from each other: random effects."""

from dataclasses import dataclass

import numpy as np

from calibration.statistics.estimate import BoolArray, FloatArray
from calibration.statistics.intervals import two_sided_t

# Steps of the bisection for the variance between groups: below rounding error.
STEPS = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shrunk:
    """Means shrunk toward their common mean.

    `values`, `reaches`, shape (n_groups,) : shrunk means and half-widths of their intervals.
    `kept` : share B of each group's own distance from the common mean that is kept.
    `common`, `between` : mean of all groups, and variance of the true means.
    `far` : groups too far from the others to borrow from them.
    `own_reaches` : half-widths of the means as they are, each with the larger of its own variance
        and the given one.
    """

    values: FloatArray
    reaches: FloatArray
    kept: FloatArray
    common: float
    between: float
    far: BoolArray
    own_reaches: FloatArray


def shrunk_means(
    means: FloatArray,
    variances: FloatArray,
    *,
    df: float,
    own_variances: FloatArray | None = None,
    far: float = np.inf,
    confidence_level: float = 0.95,
) -> Shrunk:
    """Shrink the means of groups toward their common mean (empirical Bayes).

    True means are normal around the common mean, groups are independent. The variance tau^2 between
    groups is that of Paule and Mandel: the one under which the weighted squares sum to groups - 1.
    With w = 1 / (variance + tau^2) and B = tau^2 / (tau^2 + variance), the value is
    common + B (mean - common).

    Parameters
    ----------
    means : float array, shape (n_groups,)
        At least two groups.
    variances : float array, shape (n_groups,)
        Squared standard errors of the means, above zero.
    df : float
        Degrees of freedom of the variances.
    own_variances : float array, shape (n_groups,), optional
        Squared standard errors from each group alone.
    far : float, optional
        A group further than so many standard errors from the median of the means is far from the
        others. Borrowing would draw a group in which the judge is blind to the good ones.
    confidence_level : float, default 0.95

    Returns
    -------
    Shrunk
        ``reaches`` squared: t^2(df) [B variance + 2 (1 - B)^2 (mean - common)^2 / (J - 3)] +
        t^2(J - 1) (1 - B)^2 V, with J groups, the second term above three groups only, and V the
        variance of Knapp and Hartung of the common mean, not below 1 / sum w.

    Raises
    ------
    ValueError
        With fewer than two groups, other shapes, or a variance that is not positive.

    References
    ----------
    Morris (1983), J. Am. Stat. Assoc. 78: intervals of empirical Bayes estimates.
    https://doi.org/10.1080/01621459.1983.10477920
    Paule and Mandel (1982), J. Res. Natl. Bur. Stand. 87. https://doi.org/10.6028/jres.087.022
    Knapp and Hartung (2003), Stat. Med. 22. https://doi.org/10.1002/sim.1482

    Examples
    --------
    Squared distances 2 x 0.2^2 at tau^2 = 0.08 - 0.04 make up J - 1 = 1; half of each is kept:

    >>> found = shrunk_means(np.array([0.2, 0.6]), np.array([0.04, 0.04]), df=30)
    >>> found.values.round(4).tolist(), round(found.between, 4), found.kept.round(4).tolist()
    ([0.3, 0.5], 0.04, [0.5, 0.5])
    """
    n = means.size
    if n < 2 or variances.shape != (n,) or not (variances > 0).all():
        raise ValueError(
            f"means and variances above zero of two groups or more are needed, got {means!r} and "
            f"{variances!r}"
        )
    between = _between(means, variances)
    weights = 1.0 / (variances + between)
    common = float(weights @ means / weights.sum())
    away = means - common
    kept = between * weights
    of_common = max(1.0, float(weights @ away**2) / (n - 1)) / float(weights.sum())
    own = kept * variances
    if n > 3:
        own = own + 2 * (1 - kept) ** 2 * away**2 / (n - 3)
    squared = (
        two_sided_t(confidence_level, df) ** 2 * own
        + two_sided_t(confidence_level, n - 1) ** 2 * (1 - kept) ** 2 * of_common
    )
    return Shrunk(
        values=common + kept * away,
        reaches=np.sqrt(squared),
        kept=kept,
        common=common,
        between=between,
        far=np.abs(means - np.median(means)) > far * np.sqrt(variances),
        own_reaches=two_sided_t(confidence_level, df)
        * np.sqrt(variances if own_variances is None else np.maximum(variances, own_variances)),
    )


def _between(means: FloatArray, variances: FloatArray) -> float:
    """Return tau^2 of Paule and Mandel, by bisection; 0 where the means differ by chance alone."""

    def excess(between: float) -> float:
        weights = 1.0 / (variances + between)
        away = means - weights @ means / weights.sum()
        return float(weights @ away**2) - (means.size - 1)

    low, high = 0.0, float(np.ptp(means)) ** 2
    if excess(low) <= 0:
        return 0.0
    # The squares sum to at most half of ptp^2 x groups / tau^2: no more than groups - 1 up there.
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2
