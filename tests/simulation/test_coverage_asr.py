"""Coverage of the ASR interval: over runs, tasks, strata, on a grid of penalties, in groups."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from calibration.success_rate.rate import cost_per_success, rate_of_counts
from calibration.success_rate.resampling import Interval, grouped_at_random, resample, task_units
from tests.classes import count_runs, counts_of_frame
from tests.simulation.judged import Judge, Tally
from tests.simulation.runs import (
    CEILING,
    COST_GIVEN_CLASS,
    COSTS,
    MIX,
    TRUTH,
    costs_of,
    independent,
    rate_of,
    repeated,
    shifted,
)
from tests.success_rate.rates import agent_success_rate

pytestmark = pytest.mark.slow
BAND = (0.93, 0.97)
REPETITIONS = 2000


def draws(seed: int, *setting: int) -> Iterator[np.random.Generator]:
    rng = np.random.default_rng([seed, *setting])
    return (rng for _ in range(REPETITIONS))


@pytest.mark.parametrize("interval", ["percentile", "bca"])
@pytest.mark.parametrize("n", [15, 50, 200, 1000])
def test_asr_interval_covers(judge: Judge, n: int, interval: Interval) -> None:
    seed, of_rate, of_share = 20266, Tally(TRUTH), Tally(MIX[4])
    for rng in draws(seed, n):
        outcomes, costs = independent(rng, n)
        result = agent_success_rate(
            outcomes, costs=costs, ceilings=CEILING, rng=rng, interval=interval
        )
        of_rate.add_sure(result.asr)
        of_share.add_sure(result.class_shares[4])
    setting = f"{n} runs, cost depends on outcome, {interval}"
    of_rate.give(judge, "ASR, independent runs", setting, seed=seed, band=BAND)
    if n >= 200:
        of_share.give(
            judge,
            "class share .06, independent runs",
            f"{n} runs, {interval}",
            seed=seed,
            band=BAND,
        )


@pytest.mark.parametrize("interval", ["percentile", "bca"])
@pytest.mark.parametrize(("tasks", "trials"), [(10, 4), (20, 4), (50, 4), (40, 5), (100, 4)])
def test_asr_interval_covers_when_tasks_repeat(
    judge: Judge, tasks: int, trials: int, interval: Interval
) -> None:
    seed, whole = 20267, Tally(TRUTH)
    for rng in draws(seed, tasks):
        outcomes, costs, clusters = repeated(rng, rng.random(tasks), trials)
        result = agent_success_rate(
            outcomes, costs=costs, ceilings=CEILING, clusters=clusters, rng=rng, interval=interval
        )
        whole.add_sure(result.asr)
    setting = f"{tasks} tasks x {trials}, correlation .33, cost depends on outcome, {interval}"
    whole.give(judge, "ASR, tasks repeat", setting, seed=seed, band=BAND)


@pytest.mark.parametrize("tasks", [20, 50])
def test_the_interval_that_ignores_tasks_fails(judge: Judge, tasks: int) -> None:
    """The control: were this covered, the simulation could not tell right from wrong."""
    seed, plain = 20268, Tally(TRUTH)
    for rng in draws(seed, tasks):
        outcomes, costs, _ = repeated(rng, rng.random(tasks), 4)
        plain.add_sure(agent_success_rate(outcomes, costs=costs, ceilings=CEILING, rng=rng).asr)
    setting = f"{tasks} tasks x 4 taken as independent runs: must fail"
    plain.give(judge, "ASR, tasks repeat, control", setting, seed=seed, band=(0.0, 0.88))


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_stratified_interval_covers(judge: Judge, interval: Interval) -> None:
    """Half the traffic has a better mix and gives a fifth of the sample: weights 2 and .5."""
    better, seed = shifted(0.1), 20269
    tally = Tally((rate_of(MIX) + rate_of(better)) / 2)
    strata, weights = np.repeat([0, 1], [40, 160]), np.repeat([4.0, 1.0], [40, 160])
    for rng in draws(seed):
        outcomes = np.concatenate([rng.choice(5, 40, p=better), rng.choice(5, 160, p=MIX)])
        result = agent_success_rate(
            outcomes, costs=costs_of(rng, outcomes), ceilings=CEILING, strata=strata,
            weights=weights, rng=rng, interval=interval,
        )  # fmt: skip
        tally.add_sure(result.asr)
    tally.give(
        judge,
        "ASR, strata",
        f"40 runs of weight 4, 160 of weight 1, {interval}",
        seed=seed,
        band=BAND,
    )


def test_interval_from_kinds_of_runs_covers(judge: Judge) -> None:
    """Three in ten runs have a penalty that is uniform: E max(0, c - U) = c squared / 2."""
    credit, seed = np.array([1.0, 0.4, 0, 0, 0]), 20270
    tally = Tally(float(MIX @ (0.7 * credit + 0.3 * credit**2 / 2)))
    for rng in draws(seed):
        outcomes = rng.choice(5, 300, p=MIX)
        costs = 1 + rng.random(300) * (rng.random(300) < 0.3)
        counts = count_runs(outcomes, costs=costs, ceilings=1.0)
        result = rate_of_counts(counts, rng=rng, most_units=40)
        tally.add_sure(result.asr)
    setting = "300 runs, at most 40 cells"
    tally.give(judge, "ASR, kinds of runs", setting, seed=seed, band=BAND)


def test_interval_from_random_groups_of_tasks_covers(judge: Judge) -> None:
    tally, seed = Tally(TRUTH), 20271
    for rng in draws(seed):
        outcomes, costs, clusters = repeated(rng, rng.random(300), 3)
        counts = count_runs(outcomes, costs=costs, ceilings=CEILING, clusters=clusters)
        units = grouped_at_random(task_units(counts)[0], rng, 100)
        assert units.multiplicity.size == 100
        tally.add_sure(resample(units, rng=rng).ratio("score"))
    tally.give(
        judge, "ASR, random groups of tasks", "300 tasks x 3 in 100 groups", seed=seed, band=BAND
    )


COST_PER_SUCCESS = float((MIX[:, None] * COST_GIVEN_CLASS * COSTS).sum() / MIX[0])


@pytest.mark.parametrize("tasks", [None, 60])
def test_cost_per_success_covers(judge: Judge, tasks: int | None) -> None:
    seed, tally = 20272, Tally(COST_PER_SUCCESS)
    for rng in draws(seed, tasks or 0):
        outcomes, costs, clusters = repeated(rng, rng.random(tasks or 200), 4 if tasks else 1)
        counts = count_runs(outcomes, costs=costs, ceilings=CEILING, clusters=clusters)
        tally.add_sure(cost_per_success(counts))
    setting = f"{tasks} tasks x 4" if tasks else "200 runs"
    tally.give(judge, "cost per success", setting, seed=seed, band=BAND)


@pytest.mark.parametrize("tasks", [None, 60])
def test_cost_per_success_covers_from_sums(judge: Judge, tasks: int | None) -> None:
    """As a report on files has them: sums over cells, or over the cells of each task."""
    seed, tally = 20273, Tally(COST_PER_SUCCESS)
    for rng in draws(seed, tasks or 0):
        outcomes, costs, clusters = repeated(rng, rng.random(tasks or 200), 4 if tasks else 1)
        sums = pd.DataFrame({
            "task": clusters, "outcome": outcomes, "penalty_step": (costs > CEILING).astype(int),
            "n": 1, "cost": costs, "cost_squared": costs**2,
        })  # fmt: skip
        keys = ["task", "outcome", "penalty_step"] if tasks else ["outcome", "penalty_step"]
        cells = sums.groupby(keys, as_index=False)[["n", "cost", "cost_squared"]].sum()
        cells = cells.assign(
            stratum=0, weight=1.0, cost_known=True, penalty=0.0, score=0.0, **{"tasks": 1} if tasks
            else {},
        )  # fmt: skip
        tally.add_sure(cost_per_success(counts_of_frame(cells), costed=cells["n"].to_numpy()))
    setting = f"{tasks} tasks x 4, cells of tasks" if tasks else "200 runs, cells"
    tally.give(judge, "cost per success", setting, seed=seed, band=BAND)
