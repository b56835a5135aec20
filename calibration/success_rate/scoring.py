"""The score of a run: credit for its outcome less the penalty for cost above the ceiling."""

import numpy as np
from numpy.typing import ArrayLike

from calibration.statistics.estimate import FloatArray

DEFAULT_CREDIT = (1.0, 0.4, 0.0, 0.0, 0.0)


def cost_penalties(
    costs: ArrayLike, ceilings: ArrayLike, units: ArrayLike | None = None
) -> FloatArray:
    """Return the penalty of each run: the share by which it exceeds its ceiling, at most 1.

    Parameters
    ----------
    costs : array-like of float, shape (n,)
        Cost of each run; NaN where it is not known, which gives no penalty.
    ceilings : array-like of float, shape (n,) or ()
        Ceiling per unit, in the same currency, above zero.
    units : array-like of float, shape (n,), optional
        Units (tickets, documents) that the run handled; 1 when None.

    Returns
    -------
    float array, shape (n,)
        min(1, max(0, (cost - ceiling) / ceiling)) with ceiling = ceiling per unit x units.

    Raises
    ------
    ValueError
        If a cost is negative, or a ceiling or a number of units is not positive.

    Examples
    --------
    >>> cost_penalties([1.0, 3.0, 10.0, np.nan], 2.0).tolist()
    [0.0, 0.5, 1.0, 0.0]
    """
    cost = np.asarray(costs, dtype=np.float64)
    if cost.ndim != 1 or np.isinf(cost).any() or (cost < 0).any():
        raise ValueError(f"costs must be finite, not negative, of shape (n,), got {costs!r}")
    ceiling = np.broadcast_to(np.asarray(ceilings, dtype=np.float64), cost.shape)
    count = np.broadcast_to(np.asarray(1.0 if units is None else units, np.float64), cost.shape)
    for name, array in (("ceilings", ceiling), ("units", count)):
        if not (np.isfinite(array) & (array > 0)).all():
            raise ValueError(f"{name} must be positive and finite, got {array.min()!r}")
    allowed = ceiling * count
    excess = np.where(np.isnan(cost), 0.0, (cost - allowed) / allowed)
    penalties: FloatArray = np.clip(excess, 0.0, 1.0)
    return penalties


def outcome_shares(outcomes: ArrayLike, *, n_classes: int) -> FloatArray:
    """Return one row of class shares a run, from class codes or from such rows.

    Raises
    ------
    ValueError
        If `outcomes` is empty, a code is outside [0, n_classes), or a row does not sum to one.

    Examples
    --------
    >>> outcome_shares([1, 0], n_classes=2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    array = np.asarray(outcomes)
    if array.size == 0:
        raise ValueError("outcomes must not be empty, got no runs")
    if array.ndim == 1 and np.issubdtype(array.dtype, np.integer):
        if array.min() < 0 or array.max() >= n_classes:
            raise ValueError(
                f"outcomes must be in [0, {n_classes}), got {array.min()} to {array.max()}"
            )
        rows: FloatArray = np.eye(n_classes)[array]
        return rows
    if array.ndim != 2 or array.shape[1] != n_classes:
        raise ValueError(
            f"outcomes must be integer codes of shape (n,) or shares of shape (n, {n_classes}), "
            f"got dtype {array.dtype!s} and shape {array.shape!r}"
        )
    shares = array.astype(np.float64)
    if not (shares.min() >= 0 and np.abs(shares.sum(axis=1) - 1).max() <= 1e-6):
        raise ValueError("outcomes rows must be shares that sum to 1")
    return shares


def scores(outcomes: ArrayLike, penalties: ArrayLike, *, credit: ArrayLike) -> FloatArray:
    """Return the score of each run: its credit less its penalty, never below zero.

    The floor is per run. Without it a failed run over its ceiling would count less than nothing,
    and a rate between 0 and 1 could not be promised.

    Parameters
    ----------
    outcomes : array-like, shape (n,) of int or (n, n_classes) of float
        Class codes, or class shares when reviewers differ.
    penalties : array-like of float, shape (n,)
        From `cost_penalties`.
    credit : array-like of float, shape (n_classes,)
        Credit of each class.

    Raises
    ------
    ValueError
        As `outcome_shares`, or if `penalties` has another length.

    Examples
    --------
    >>> scores([0, 0, 1, 3], [0.0, 0.5, 0.5, 1.0], credit=DEFAULT_CREDIT).tolist()
    [1.0, 0.5, 0.0, 0.0]
    """
    worth = np.asarray(credit, dtype=np.float64)
    shares = outcome_shares(outcomes, n_classes=worth.size)
    penalty = np.asarray(penalties, dtype=np.float64)
    if penalty.shape != (shares.shape[0],):
        raise ValueError(f"penalties must have shape ({shares.shape[0]},), got {penalty.shape!r}")
    kept: FloatArray = (shares * np.maximum(0.0, worth - penalty[:, None])).sum(axis=1)
    return kept
