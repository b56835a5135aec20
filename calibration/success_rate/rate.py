"""The Agent Success Rate from counts of runs, as a whole and by group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.statistics.estimate import Estimate, FloatArray
from calibration.success_rate.resampling import (
    GRID,
    MOST_UNITS,
    SHARES,
    Interval,
    Resampled,
    resample,
    units_of,
)
from calibration.success_rate.runs import COMPLETE, RunCounts, condensed, count_runs
from calibration.success_rate.scoring import DEFAULT_CREDIT, cost_penalties, outcome_shares, scores

__all__ = [
    "DEFAULT_CREDIT",
    "AgentSuccessRate",
    "agent_success_rate",
    "cost_penalties",
    "outcome_shares",
    "rate_of_counts",
    "scores",
]


# Units that all groups of a breakdown draw from, and each at least.
ALL_UNITS, LEAST_UNITS = 2_400, 120


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
    at_other_credit : mapping of str to Estimate
        ASR under the further credit tables that the runs were counted with.
    asr_literal : float
        The formula as printed, which subtracts the penalty of failed runs too; in [-1, 1]. A
        diagnostic.
    mean_effective_penalty : float
        What penalties took off: asr_gross - asr. So asr = sum of credit x class share - this.
    cost_coverage : float
        Share of the runs whose cost is known.
    asr_range : tuple of float
        ASR with every missing cost at twice the ceiling, and with every one within it.
    credit : tuple of float, length n_classes, or None
        Credit of each class; None where workflows have their own.
    n, n_missing_cost, n_clusters : int
        Runs; runs without a cost; tasks (n without `clusters`).
    rounding : float
        No resampled score is off by more than this; values are exact.
    """

    asr: Estimate
    asr_gross: Estimate
    asr_without_abandoned: Estimate
    pass_rate: Estimate
    class_shares: tuple[Estimate, ...]
    share_over_ceiling: Estimate
    at_other_credit: Mapping[str, Estimate]
    asr_literal: float
    mean_effective_penalty: float
    cost_coverage: float
    asr_range: tuple[float, float]
    credit: tuple[float, ...] | None
    n: int
    n_missing_cost: int
    n_clusters: int
    rounding: float

    @property
    def identity(self) -> str:
        """What the rate is made of, in one line: no claim that it exceeds the pass rate.

        Examples
        --------
        >>> agent_success_rate([0, 1], rng=np.random.default_rng(1)).identity
        'ASR 0.700 = 1 x complete 0.500 + 0.4 x partial_plus 0.500 - mean effective penalty 0.000'
        """
        lost = f"- mean effective penalty {self.mean_effective_penalty:.3f}"
        if self.credit is None:
            return f"ASR {self.asr.value:.3f} = gross {self.asr_gross.value:.3f} {lost}"
        earned = " + ".join(
            f"{credit:g} x {name.removeprefix('share:')} {share.value:.3f}"
            for credit, name, share in zip(self.credit, SHARES, self.class_shares, strict=True)
            if credit > 0
        )
        return f"ASR {self.asr.value:.3f} = {earned or '0'} {lost}"


def agent_success_rate(
    outcomes: ArrayLike,
    *,
    rng: np.random.Generator,
    costs: ArrayLike | None = None,
    ceilings: ArrayLike | None = None,
    units: ArrayLike | None = None,
    credit: ArrayLike = DEFAULT_CREDIT,
    other_credit: Mapping[str, Sequence[float]] | None = None,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    strata: NDArray[np.generic] | None = None,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    interval: Interval = "percentile",
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
    other_credit : mapping of str to sequence of float, optional
        Further credit tables, for a line of sensitivity.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities (Hajek mean).
    clusters : array, shape (n,), optional
        Task of each run; repeated trials of a task are resampled together.
    strata : array, shape (n,), optional
        Design strata, resampled within.
    n_resamples : int, default 1000
        Bootstrap resamples.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.
    interval : str, default "percentile"
        Or ``"bca"``.

    Returns
    -------
    AgentSuccessRate
        Intervals as in `Resampled.ratio`: bootstrap from 20 tasks up, t on task totals from 5,
        none below; the exact bound where all runs score the same.

    Raises
    ------
    ValueError
        If `outcomes` is empty, shapes differ, a value is out of its range, or `costs` come without
        `ceilings`.

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
    return rate_of_counts(
        count_runs(
            outcomes,
            costs=costs,
            ceilings=ceilings,
            units=units,
            credit=credit,
            other_credit=other_credit,
            weights=weights,
            clusters=clusters,
            strata=strata,
        ),
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        interval=interval,
    )


def rate_of_counts(
    counts: RunCounts,
    *,
    rng: np.random.Generator,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    interval: Interval = "percentile",
    most_units: int = MOST_UNITS,
) -> AgentSuccessRate:
    """Estimate the Agent Success Rate from counts; see `agent_success_rate`.

    Values come from exact sums. Above `most_units` distinct cells the resamples, and only they,
    group penalties to 1/1024 and use the cell means, so that they are centred on the value.

    Examples
    --------
    >>> rate_of_counts(count_runs([0, 0, 4]), rng=np.random.default_rng(1)).asr.value
    0.66667
    """
    found = resample(
        units_of(counts, rng=rng, most=most_units),
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        interval=interval,
    )
    asr, gross = found.ratio("score"), found.ratio("gross")
    runs = counts.runs * counts.like
    lost = float((counts.weight * counts.like) @ counts.penalty) / found.totals("runs")
    n_known = int(runs[counts.known].sum())
    highest, of_gross = _value(found, "score"), _value(found, "gross")
    return AgentSuccessRate(
        asr=asr,
        asr_gross=gross,
        asr_without_abandoned=found.ratio("of_present", "present"),
        pass_rate=found.ratio(SHARES[COMPLETE]),
        class_shares=tuple(found.ratio(name) for name in SHARES),
        share_over_ceiling=found.ratio("over", "known"),
        at_other_credit={name: found.ratio(f"score:{name}") for name in counts.other_scores},
        asr_literal=of_gross - lost,
        mean_effective_penalty=of_gross - highest,
        cost_coverage=n_known / counts.n,
        # No credit exceeds the penalty of 1 that a run at twice its ceiling has.
        asr_range=(_value(found, "score_known"), highest),
        credit=None if counts.own_credit else tuple(counts.credit.tolist()),
        n=counts.n,
        n_missing_cost=counts.n - n_known,
        n_clusters=counts.n_tasks,
        rounding=found.units.rounding,
    )


def _value(found: Resampled, name: str) -> float:
    return found.totals(name) / found.totals("runs")


def units_a_group(n_groups: int) -> int:
    """Return how many units each group of a breakdown draws from."""
    return max(LEAST_UNITS, ALL_UNITS // max(1, n_groups))


def rates_by(
    counts: RunCounts,
    by: str,
    *,
    rng: np.random.Generator,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    interval: Interval = "percentile",
) -> dict[str, AgentSuccessRate]:
    """Estimate the Agent Success Rate of every workflow, model or week.

    Groups are resampled apart, with their own runs or tasks as the sample. Their penalties are
    grouped more coarsely than those of the whole (to 1/64 for 20 groups or more), for the resamples
    only: `AgentSuccessRate.rounding` says how far.

    Parameters
    ----------
    counts : RunCounts
        Counted by `by`; runs without one are left out.
    by : str
        ``"workflow"``, ``"model"`` or ``"week"``.
    rng : numpy.random.Generator
        Source of the resamples.
    n_resamples, confidence_level, interval
        As in `agent_success_rate`.

    Returns
    -------
    dict of str to AgentSuccessRate
        By name, sorted.

    Raises
    ------
    ValueError
        If the runs were not counted by it.

    Examples
    --------
    >>> from calibration.success_rate.runs import count_runs
    >>> counts = count_runs([0, 0, 4], by={"model": ["a", "a", "b"]})
    >>> found = rates_by(counts, "model", rng=np.random.default_rng(1))
    >>> [(name, rate.asr.value) for name, rate in found.items()]
    [('a', 1.0), ('b', 0.0)]
    """
    if not counts.repeats:
        counts = condensed(counts, grid=GRID if counts.rounded else None, by=by)
    labels = counts.labels(by)
    seen = labels.seen
    return {
        name: rate_of_counts(
            counts.where(labels.of(name)),
            rng=rng,
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            interval=interval,
            most_units=units_a_group(len(seen)),
        )
        for name in seen
    }
