"""The rate by workflow, model or week, each with an interval, at a cost that stays small."""

import numpy as np

from calibration.metrics.asr import AgentSuccessRate, rate_of_counts
from calibration.metrics.condensing import condensed
from calibration.metrics.counts import RunCounts
from calibration.metrics.resampling import Interval
from calibration.metrics.units import GRID

# Units that all groups of a breakdown draw from, and each at least.
ALL_UNITS, LEAST_UNITS = 2_400, 120


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
    >>> from calibration.metrics.counting import count_runs
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
