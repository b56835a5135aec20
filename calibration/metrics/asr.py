"""The Agent Success Rate: credit per outcome, minus the penalty for cost above the ceiling."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.estimates import Estimate
from calibration.metrics.resampling import FloatArray, IntArray, ratio_estimates
from calibration.metrics.score import DEFAULT_CREDIT, cost_penalties, outcome_shares, scores

__all__ = [
    "DEFAULT_CREDIT",
    "AgentSuccessRate",
    "agent_success_rate",
    "cost_penalties",
    "outcome_shares",
    "scores",
]

COMPLETE, ABANDONED = 0, 4
# Above this many distinct cells penalties are grouped to 1 / GRID for the resamples only.
MOST_CELLS, GRID = 20_000, 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSuccessRate:
    """Agent Success Rate of a set of runs, and the figures printed beside it.

    Parameters
    ----------
    asr, asr_gross : Estimate
        Mean score with cost penalties, and without.
    asr_without_abandoned : Estimate
        Mean score of the runs that were not abandoned.
    pass_rate : Estimate
        Share of complete runs.
    class_shares : tuple of Estimate, length n_classes
        Share of each outcome.
    share_over_ceiling : Estimate
        Share of the runs with a known cost that cost more than their ceiling.
    asr_literal : float
        The formula as printed, which subtracts the penalty of failed runs too; in [-1, 1]. A
        diagnostic.
    mean_effective_penalty : float
        What penalties took off: asr_gross - asr. So asr = sum of credit x class share - this.
    cost_coverage : float
        Share of the runs whose cost is known.
    asr_range : tuple of float
        ASR with every missing cost at twice the ceiling, and with every one within it.
    n, n_missing_cost, n_clusters : int
        Runs; runs without a cost; tasks (n without `clusters`).
    """

    asr: Estimate
    asr_gross: Estimate
    asr_without_abandoned: Estimate
    pass_rate: Estimate
    class_shares: tuple[Estimate, ...]
    share_over_ceiling: Estimate
    asr_literal: float
    mean_effective_penalty: float
    cost_coverage: float
    asr_range: tuple[float, float]
    n: int
    n_missing_cost: int
    n_clusters: int


def agent_success_rate(
    outcomes: ArrayLike,
    *,
    rng: np.random.Generator,
    costs: ArrayLike | None = None,
    ceilings: ArrayLike | None = None,
    units: ArrayLike | None = None,
    credit: ArrayLike = DEFAULT_CREDIT,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    strata: NDArray[np.generic] | None = None,
    complete: int = COMPLETE,
    abandoned: int | None = ABANDONED,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> AgentSuccessRate:
    """Estimate the Agent Success Rate of the population that the runs were drawn from.

    Runs are independent, or tasks are when `clusters` names them. The outcomes are taken as given:
    the interval holds sampling error, not the errors of whoever labelled.

    Parameters
    ----------
    outcomes : array-like, shape (n,) of int or (n, n_classes) of float
        Class codes, or class shares when reviewers differ. Runs without an outcome are left out.
    rng : numpy.random.Generator
        Source of the resamples.
    costs : array-like of float, shape (n,), optional
        Cost of each run, NaN where not known: scored without penalty and counted.
    ceilings : array-like of float, shape (n,) or (), optional
        Ceiling per unit; required with `costs`.
    units : array-like of float, shape (n,), optional
        Units the run handled; 1 when None.
    credit : array-like of float, shape (n_classes,)
        Credit of each class in [0, 1].
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities (Hajek mean).
    clusters : array, shape (n,), optional
        Task of each run; repeated trials of a task are resampled together.
    strata : array, shape (n,), optional
        Design strata, resampled within.
    complete, abandoned : int
        Positions of these classes; `abandoned` may be None.
    n_resamples : int, default 1000
        Bootstrap resamples.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    AgentSuccessRate
        Intervals as in `ratio_estimates`: percentile bootstrap from 20 tasks up, t on task totals
        from 5, none below; the exact bound where all runs score the same.

    Raises
    ------
    ValueError
        If `outcomes` is empty, shapes differ, a value is out of its range, or `costs` come without
        `ceilings`.

    Notes
    -----
    Equal runs are grouped into cells, and a resample is a multinomial draw over cells: the cost
    does not grow with the number of runs. Above 20,000 cells the resamples (never the value) group
    penalties to 1/1024 and use the cell means, which moves no score by more than 1/1024.

    References
    ----------
    Efron (1979), Ann. Statist. 7. https://doi.org/10.1214/aos/1176344552

    Examples
    --------
    Five complete runs, one of them 50 % over its ceiling: (4 + 0.5) / 5.

    >>> result = agent_success_rate(
    ...     [0] * 5, costs=[1, 1, 1, 1, 3], ceilings=2.0, rng=np.random.default_rng(1)
    ... )
    >>> result.asr.value, result.asr_gross.value, result.mean_effective_penalty
    (0.9, 1.0, 0.1)
    """
    worth = np.asarray(credit, dtype=np.float64)
    if worth.ndim != 1 or worth.size < 2 or not (worth.min() >= 0 and worth.max() <= 1):
        raise ValueError(f"credit must be in [0, 1] for two classes or more, got {credit!r}")
    shares = outcome_shares(outcomes, n_classes=worth.size)
    n = shares.shape[0]
    known, penalty = _penalties(costs, ceilings, units, n)
    score = scores(shares, penalty, credit=worth)
    gross = shares @ worth
    present = np.ones(n) if abandoned is None else 1 - shares[:, abandoned]
    # Abandoned runs carry credit too under a forked credit; only what the others score enters.
    of_present = (
        score
        if abandoned is None
        else score - shares[:, abandoned] * np.maximum(0.0, worth[abandoned] - penalty)
    )
    ones = np.ones(n)
    estimates = ratio_estimates(
        np.column_stack([score, gross, of_present, shares[:, complete], penalty > 0, shares]),
        np.column_stack([ones, ones, present, ones, known, *[ones] * worth.size]),
        weights=weights,
        clusters=clusters,
        strata=strata,
        cells=None if clusters is not None else _cells(shares, penalty, known, weights),
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
    )
    weight = ones if weights is None else np.asarray(weights, dtype=np.float64)
    weight = weight / weight.sum()
    highest = float(weight @ score)
    at_double = np.where(known, score, shares @ np.maximum(0.0, worth - 1.0))
    return AgentSuccessRate(
        asr=estimates[0],
        asr_gross=estimates[1],
        asr_without_abandoned=estimates[2],
        pass_rate=estimates[3],
        share_over_ceiling=estimates[4],
        class_shares=estimates[5:],
        asr_literal=float(weight @ (gross - penalty)),
        mean_effective_penalty=float(weight @ (gross - score)),
        cost_coverage=float(known.mean()),
        asr_range=(float(weight @ at_double), highest),
        n=n,
        n_missing_cost=int(n - known.sum()),
        n_clusters=n if clusters is None else int(np.unique(np.asarray(clusters)).size),
    )


def _penalties(
    costs: ArrayLike | None, ceilings: ArrayLike | None, units: ArrayLike | None, n: int
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return which costs are known, and the penalties."""
    if costs is None:
        return np.zeros(n, dtype=np.bool_), np.zeros(n)
    if ceilings is None:
        raise ValueError("ceilings must be given with costs, got None")
    cost = np.asarray(costs, dtype=np.float64)
    if cost.shape != (n,):
        raise ValueError(f"costs must have shape ({n},), got {cost.shape!r}")
    return ~np.isnan(cost), cost_penalties(cost, ceilings, units)


def _cells(
    shares: FloatArray,
    penalty: FloatArray,
    known: NDArray[np.bool_],
    weights: FloatArray | None,
) -> IntArray:
    """Return numbers for the groups of runs that are equal in everything that enters a rate."""
    one_hot = bool((shares.max(axis=1) == 1).all())
    outcome = (
        shares.argmax(axis=1) if one_hot else np.unique(shares, axis=0, return_inverse=True)[1]
    )
    rest = outcome.ravel().astype(np.int64) * 2 + known
    if weights is not None:
        _, number = np.unique(np.asarray(weights), return_inverse=True)
        rest = np.unique(rest * (int(number.max()) + 1) + number, return_inverse=True)[1]
    values, number = np.unique(penalty, return_inverse=True)
    cells = np.unique(rest * values.size + number, return_inverse=True)[1].astype(np.int64)
    if cells.max() < MOST_CELLS:
        return cells
    # Penalties of zero keep their own group: they decide the share over the ceiling.
    steps = np.ceil(penalty * GRID).astype(np.int64)
    grouped: IntArray = rest * (GRID + 1) + steps
    return grouped
