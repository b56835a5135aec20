"""The Agent Success Rate of runs that are given one by one."""

from typing import Any

import numpy as np

from calibration.success_rate.rate import AgentSuccessRate, rate_of_counts
from tests.classes import count_runs

RESAMPLING = ("n_resamples", "confidence_level", "interval")


def agent_success_rate(
    outcomes: Any, *, rng: np.random.Generator, **options: Any
) -> AgentSuccessRate:
    own = {name: options.pop(name) for name in RESAMPLING if name in options}
    return rate_of_counts(count_runs(outcomes, **options), rng=rng, **own)
