"""Runs with known rates: independent, repeated by task, and two sides with or without a change."""

import numpy as np
from numpy.typing import NDArray

from tests.classes import CREDIT

MIX = np.array([0.55, 0.18, 0.09, 0.12, 0.06])
COSTS = np.array([1.0, 2.4, 3.0, 5.0])
PENALTIES = np.array([0.0, 0.2, 0.5, 1.0])
CEILING = 2.0
COST_GIVEN_CLASS = np.array([
    [0.85, 0.08, 0.05, 0.02],
    [0.65, 0.20, 0.10, 0.05],
    [0.50, 0.20, 0.20, 0.10],
    [0.40, 0.20, 0.25, 0.15],
    [0.10, 0.20, 0.30, 0.40],
])  # fmt: skip
KEPT = np.maximum(0.0, np.array(CREDIT)[:, None] - PENALTIES)
CUMULATIVE = COST_GIVEN_CLASS.cumsum(axis=1)

# Share of a task's runs that all have the task's own class, so that runs correlate with .33.
TOGETHER = float(np.sqrt(0.33))


def rate_of(mix: NDArray[np.float64]) -> float:
    """Return the true rate of runs with this mix of classes."""
    return float((mix[:, None] * COST_GIVEN_CLASS * KEPT).sum())


TRUTH = rate_of(MIX)


def shifted(by: float) -> NDArray[np.float64]:
    """Return the mix whose rate is higher by so much, complete runs in place of failed ones."""
    failed = np.array([0, 0, *MIX[2:]]) / MIX[2:].sum()
    more = MIX + by / (rate_of(np.eye(5)[0]) - rate_of(failed)) * (np.eye(5)[0] - failed)
    if more.min() < 0:
        raise ValueError(f"by must leave some failed runs, got {by!r}")
    found: NDArray[np.float64] = more
    return found


def costs_of(rng: np.random.Generator, outcomes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a cost for each run that depends on its outcome."""
    step = (rng.random(outcomes.size)[:, None] > CUMULATIVE[outcomes]).sum(axis=1)
    costs: NDArray[np.float64] = COSTS[step.clip(0, 3)]
    return costs


def independent(
    rng: np.random.Generator, n: int, mix: NDArray[np.float64] = MIX
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return outcomes and costs of independent runs."""
    outcomes = rng.choice(5, n, p=mix)
    return outcomes, costs_of(rng, outcomes)


def repeated(
    rng: np.random.Generator, own: NDArray[np.float64], trials: int, mix: NDArray[np.float64] = MIX
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return outcomes, costs and tasks of runs whose tasks have the quantiles `own`.

    Given twice, the quantiles make both sides run the same tasks.
    """
    n = own.size * trials
    edges = mix.cumsum()
    of_task = np.repeat(np.searchsorted(edges[:-1], own, side="right"), trials)
    outcomes = np.where(rng.random(n) < TOGETHER, of_task, rng.choice(5, n, p=mix))
    outcomes = outcomes.astype(np.int64)
    return outcomes, costs_of(rng, outcomes), np.repeat(np.arange(own.size), trials)
