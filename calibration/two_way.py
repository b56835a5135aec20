"""Shares and kappa of a two-way table: what the stages of agreement and of correction both need.

The stages do not import each other, so what both rest on stands below them, once.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

# Sums of shares this close to 1 are 1.
WHOLE = 1 - 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKappa:
    """Cohen's kappa of a two-way table, and what it is made of.

    Parameters
    ----------
    observed, expected : float
        Mean agreement weight of the two on an item, and by chance given the margins.
    value : float or None
        (observed - expected) / (1 - expected); None when both name one class only, the same.
    se : float or None
        Fleiss-Cohen-Everitt; None without a value.
    """

    observed: float
    expected: float
    value: float | None
    se: float | None


def wilson_interval(successes: float, n: float, *, confidence_level: float) -> tuple[float, float]:
    """Return the Wilson score interval for a share; counts may be fractional (effective).

    References
    ----------
    Wilson (1927), J. Amer. Statist. Assoc. 22. https://doi.org/10.2307/2276774

    Examples
    --------
    None of 20: the upper limit is z^2 / (20 + z^2) = 3.8415 / 23.8415.

    >>> wilson_interval(0, 20, confidence_level=0.95)
    (0.0, 0.16113)
    """
    z = float(stats.norm.ppf((1 + confidence_level) / 2))
    share = successes / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(max(0.0, share * (1 - share)) / n + z**2 / (4 * n**2))
    # At 0 and 1 the limit equals the share exactly, which rounding would miss.
    lower = 0.0 if share <= 0 else float(centre - reach)
    upper = 1.0 if share >= 1 else float(centre + reach)
    return min(1.0, max(0.0, lower)), max(0.0, min(1.0, upper))


def table_kappa(table: ArrayLike, weights: ArrayLike | None = None) -> TableKappa:
    """Return Cohen's kappa, weighted or not, with its large-sample standard error.

    Items are a random sample and independent, and both margins are estimated from them. The
    standard error is not the one under the hypothesis of no agreement, which is for no interval.

    Parameters
    ----------
    table : array-like of float, shape (n_classes, n_classes)
        Items by the class of the one (rows) and of the other (columns); counts may be fractional
        (effective), their sum is positive.
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.

    Returns
    -------
    TableKappa

    Raises
    ------
    ValueError
        If the table is not square, holds a negative or no count at all, or the weights have
        another shape.

    References
    ----------
    Fleiss, Cohen and Everitt (1969), "Large sample standard errors of kappa and weighted kappa",
    Psychol. Bull. 72. https://doi.org/10.1037/h0028106

    Examples
    --------
    Agreement 41/46; chance agreement (12 x 13 + 34 x 33) / 46^2:

    >>> found = table_kappa([[10, 2], [3, 31]])
    >>> found.value, found.se
    (0.7255, 0.1147)
    """
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(f"table must be square, got shape {counts.shape!r}")
    total = float(counts.sum())
    if not (counts >= 0).all() or total <= 0:
        raise ValueError("table must hold counts from 0 up, and at least one item")
    matrix = np.eye(counts.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    if matrix.shape != counts.shape:
        raise ValueError(f"weights must have shape {counts.shape!r}, got {matrix.shape!r}")
    shares: NDArray[np.float64] = counts / total
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    observed, expected = float((matrix * shares).sum()), float(rows @ matrix @ columns)
    if expected >= WHOLE:
        return TableKappa(observed=observed, expected=expected, value=None, se=None)
    kappa = (observed - expected) / (1 - expected)
    by_chance = (matrix @ columns)[:, None] + (matrix.T @ rows)[None, :]
    spread = matrix - (1 - kappa) * by_chance
    variance = float((shares * spread**2).sum()) - (kappa - expected * (1 - kappa)) ** 2
    se = float(np.sqrt(max(0.0, variance) / total) / (1 - expected))
    return TableKappa(observed=observed, expected=expected, value=kappa, se=se)
