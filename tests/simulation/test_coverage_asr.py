"""Coverage of the ASR interval: bootstrap over runs, over tasks, and t with few tasks."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.metrics.asr import DEFAULT_CREDIT, agent_success_rate

pytestmark = pytest.mark.slow

MIX = np.array([0.55, 0.18, 0.09, 0.12, 0.06])
COSTS = np.array([1.0, 2.4, 3.0, 5.0])
PENALTIES = np.array([0.0, 0.2, 0.5, 1.0])
COST_GIVEN_CLASS = np.array(
    [
        [0.85, 0.08, 0.05, 0.02],
        [0.65, 0.20, 0.10, 0.05],
        [0.50, 0.20, 0.20, 0.10],
        [0.40, 0.20, 0.25, 0.15],
        [0.10, 0.20, 0.30, 0.40],
    ]
)
KEPT = np.maximum(0.0, np.array(DEFAULT_CREDIT)[:, None] - PENALTIES)
TRUTH = float((MIX[:, None] * COST_GIVEN_CLASS * KEPT).sum())
BAND = (0.93, 0.97)
CUMULATIVE = COST_GIVEN_CLASS.cumsum(axis=1)


def costs_of(rng: np.random.Generator, outcomes: NDArray[np.int64]) -> NDArray[np.float64]:
    step = (rng.random(outcomes.size)[:, None] > CUMULATIVE[outcomes]).sum(axis=1)
    costs: NDArray[np.float64] = COSTS[step.clip(0, 3)]
    return costs


@pytest.mark.parametrize("n", [15, 50, 200, 1000])
def test_asr_interval_covers(judge: Callable[..., None], n: int) -> None:
    seed, repetitions = 20266, 1000
    rng = np.random.default_rng([seed, n])
    covered, half_widths = 0, 0.0
    of_share, share_widths = 0, 0.0
    for _ in range(repetitions):
        outcomes = rng.choice(5, n, p=MIX)
        result = agent_success_rate(
            outcomes, costs=costs_of(rng, outcomes), ceilings=2.0, rng=rng, n_resamples=1000
        )
        assert result.asr.interval is not None
        covered += result.asr.interval[0] <= TRUTH <= result.asr.interval[1]
        half_widths += result.asr.half_width or 0
        share = result.class_shares[4]
        assert share.interval is not None
        of_share += share.interval[0] <= MIX[4] <= share.interval[1]
        share_widths += share.half_width or 0
    if n >= 200:
        judge(
            "class share .06, independent runs",
            f"{n} runs",
            covered=of_share,
            repetitions=repetitions,
            seed=seed,
            half_width=share_widths / repetitions,
            band=BAND,
        )
    judge(
        "ASR, independent runs",
        f"{n} runs, cost depends on outcome",
        covered=covered,
        repetitions=repetitions,
        seed=seed,
        half_width=half_widths / repetitions,
        band=BAND,
    )


@pytest.mark.parametrize(("tasks", "trials"), [(10, 4), (40, 5), (100, 4)])
def test_asr_interval_covers_when_tasks_repeat(
    judge: Callable[..., None], tasks: int, trials: int
) -> None:
    seed, repetitions, n = 20267, 1000, tasks * trials
    rng = np.random.default_rng([seed, tasks])
    clusters = np.repeat(np.arange(tasks), trials)
    covered, half_widths = 0, 0.0
    for _ in range(repetitions):
        own = np.repeat(rng.choice(5, tasks, p=MIX), trials)
        outcomes = np.where(rng.random(n) < np.sqrt(0.33), own, rng.choice(5, n, p=MIX))
        estimate = agent_success_rate(
            outcomes, costs=costs_of(rng, outcomes), ceilings=2.0, clusters=clusters, rng=rng
        ).asr
        assert estimate.interval is not None
        covered += estimate.interval[0] <= TRUTH <= estimate.interval[1]
        half_widths += estimate.half_width or 0
    judge(
        "ASR, tasks repeat",
        f"{tasks} tasks x {trials}, correlation .33, cost depends on outcome",
        covered=covered,
        repetitions=repetitions,
        seed=seed,
        half_width=half_widths / repetitions,
        band=BAND,
    )
