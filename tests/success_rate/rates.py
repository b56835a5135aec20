"""The Agent Success Rate of runs that are given one by one."""

from typing import Any

import numpy as np

from calibration.success_rate.rate import AgentSuccessRate, rate_of_counts
from calibration.success_rate.runs import RunCounts
from tests.classes import count_runs

RESAMPLING = ("n_resamples", "confidence_level", "interval")


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def agent_success_rate(
    outcomes: Any, *, rng: np.random.Generator, **options: Any
) -> AgentSuccessRate:
    own = {name: options.pop(name) for name in RESAMPLING if name in options}
    return rate_of_counts(count_runs(outcomes, **options), rng=rng, **own)


def rate(outcomes: Any, seed: int = 1, **options: Any) -> AgentSuccessRate:
    return agent_success_rate(outcomes, rng=rng(seed), **options)


def runs(*numbers: int, **options: Any) -> RunCounts:
    """So many runs of each class."""
    return count_runs(np.repeat(np.arange(len(numbers)), numbers), **options)
