"""Counts from runs that are given one by one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.metrics.arrays import BoolArray, FloatArray, IntArray
from calibration.metrics.counts import ABANDONED, RunCounts, checked, checked_credit, labels_of
from calibration.metrics.score import DEFAULT_CREDIT, cost_penalties, outcome_shares

Names = Sequence[str | None] | NDArray[np.generic]


def count_runs(
    outcomes: ArrayLike,
    *,
    costs: ArrayLike | None = None,
    ceilings: ArrayLike | None = None,
    units: ArrayLike | None = None,
    credit: ArrayLike = DEFAULT_CREDIT,
    other_credit: Mapping[str, Sequence[float]] | None = None,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    by: Mapping[str, Names] | None = None,
) -> RunCounts:
    """Count runs that are given one by one; parameters as in `agent_success_rate`.

    Parameters
    ----------
    outcomes : array-like, shape (n,) of int or (n, n_classes) of float
        Class codes, or class shares when reviewers differ.
    costs, ceilings, units, weights, clusters, strata : array-like, shape (n,), optional
        Cost (NaN: not known), ceiling per unit, units, inverse inclusion probability, task and
        design stratum of each run.
    credit : array-like of float, shape (n_classes,)
        Credit of each class.
    other_credit : mapping of str to sequence of float, optional
        Further credit tables to score the runs with.
    by : mapping of str to sequence, optional
        ``week``, ``workflow``, ``model`` of each run, None where there is none.

    Raises
    ------
    ValueError
        If `outcomes` is empty, shapes differ, a value is out of its range, or `costs` come without
        `ceilings`.

    Examples
    --------
    >>> count_runs([0, 0, 4], costs=[1.0, 3.0, 1.0], ceilings=2.0).score.tolist()
    [1.0, 0.5, 0.0]
    """
    worth = checked_credit(credit)
    rows = outcome_shares(outcomes, n_classes=worth.size)
    n = rows.shape[0]
    known, penalty = _penalties(costs, ceilings, units, n)
    shares, mix = _mixes(rows)
    weight = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    arrays: dict[str, Any] = {
        "weights": weight,
        "clusters": clusters,
        "strata": strata,
        **(by or {}),
    }
    for name, array in arrays.items():
        if array is not None and np.shape(array) != (n,):
            raise ValueError(f"{name} must have shape ({n},), got {np.shape(array)!r}")
    cost = None if costs is None else np.nan_to_num(np.asarray(costs, dtype=np.float64))
    of_abandoned = np.maximum(0.0, worth[ABANDONED] - penalty)
    return checked(
        RunCounts(
            shares=shares,
            mix=mix,
            stratum=np.zeros(n, dtype=np.int64) if strata is None else labels_of(strata).codes + 1,
            runs=_ones(n),
            like=_ones(n),
            known=known,
            weight=weight,
            penalty=penalty,
            gross=rows @ worth,
            score=_kept(rows, penalty, worth),
            abandoned_score=rows[:, ABANDONED] * of_abandoned,
            credit=worth,
            other_scores={
                name: _kept(rows, penalty, checked_credit(table))
                for name, table in (other_credit or {}).items()
            },
            task=None if clusters is None else np.asarray(clusters),
            by={name: labels_of(labels) for name, labels in (by or {}).items()},
            cost=cost,
            cost_squared=None if cost is None else cost**2,
        )
    )


def _kept(rows: FloatArray, penalty: FloatArray, worth: FloatArray) -> FloatArray:
    kept: FloatArray = (rows * np.maximum(0.0, worth - penalty[:, None])).sum(axis=1)
    return kept


def _mixes(rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct class mixes and which one each run has."""
    if (rows.max(axis=1) == 1).all():
        return np.eye(rows.shape[1]), rows.argmax(axis=1).astype(np.int64)
    shares, mix = np.unique(rows, axis=0, return_inverse=True)
    return shares, mix.ravel().astype(np.int64)


def _penalties(
    costs: ArrayLike | None, ceilings: ArrayLike | None, units: ArrayLike | None, n: int
) -> tuple[BoolArray, FloatArray]:
    """Return which costs are known, and the penalties."""
    if costs is None:
        return np.zeros(n, dtype=np.bool_), np.zeros(n)
    if ceilings is None:
        raise ValueError("ceilings must be given with costs, got None")
    cost = np.asarray(costs, dtype=np.float64)
    if cost.shape != (n,):
        raise ValueError(f"costs must have shape ({n},), got {cost.shape!r}")
    return ~np.isnan(cost), cost_penalties(cost, ceilings, units)


def _ones(n: int) -> IntArray:
    return np.ones(n, dtype=np.int64)
