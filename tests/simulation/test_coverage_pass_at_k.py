"""Coverage of pass@k and pass^k over tasks: the bootstrap and t, the hierarchy, and a control."""

from collections.abc import Callable

import numpy as np
import pytest

from calibration.statistics.estimate import Estimate
from calibration.success_rate.pass_at_k import (
    Trials,
    pass_of_one_task,
    pass_of_tasks,
    pass_over_tasks,
)
from tests.simulation.judged import Band, Judge, Tally

pytestmark = pytest.mark.slow
K, SEED = 3, 20268
Estimator = Callable[[Trials, np.random.Generator], Estimate]

# Chances of tasks: spread out, mostly good, and two kinds that no Beta describes.
MIXES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "Beta(2, 1)": lambda rng, n: rng.beta(2, 1, n),
    "Beta(8, 2)": lambda rng, n: rng.beta(8, 2, n),
    "half .9, half .3": lambda rng, n: rng.choice([0.9, 0.3], n),
}
HAT = {"Beta(2, 1)": 2 / 5, "Beta(8, 2)": 8 * 9 * 10 / (10 * 11 * 12), "half .9, half .3": 0.378}
BAND = (0.93, 0.975)

# Of two kinds of task the Beta is the wrong family, and the hierarchy is a little short or long.
WRONG_FAMILY = (0.90, 0.99)


def drawn(mix: str, tasks: int, trials: int, rng: np.random.Generator) -> Trials:
    n = np.full(tasks, trials)
    return Trials(tasks=np.arange(tasks), n=n, c=rng.binomial(n, MIXES[mix](rng, tasks)))


def coverage(
    judge: Judge, name: str, estimate: Estimator, *, mix: str, tasks: int, trials: int,
    repetitions: int, band: Band,
) -> None:  # fmt: skip
    rng = np.random.default_rng([SEED, tasks, trials])
    tally = Tally(HAT[mix])
    for _ in range(repetitions):
        tally.add_sure(estimate(drawn(mix, tasks, trials, rng), rng))
    tally.give(judge, name, f"{mix}, {tasks} tasks x {trials}", seed=SEED, band=band)


@pytest.mark.parametrize("mix", list(MIXES))
@pytest.mark.parametrize(("tasks", "trials"), [(10, 4), (50, 4), (200, 8)])
def test_the_interval_over_tasks_covers(judge: Judge, mix: str, tasks: int, trials: int) -> None:
    coverage(
        judge, "pass^3, bootstrap or t over tasks",
        lambda counted, rng: pass_over_tasks(counted, K, rng=rng).pass_hat_k,
        mix=mix, tasks=tasks, trials=trials, repetitions=2000,
        band=BAND if tasks >= 50 else (0.91, 0.98),
    )  # fmt: skip


@pytest.mark.parametrize("mix", list(MIXES))
@pytest.mark.parametrize(("tasks", "trials"), [(10, 4), (25, 4)])
def test_the_hierarchy_covers(judge: Judge, mix: str, tasks: int, trials: int) -> None:
    coverage(
        judge, "pass^3, hierarchy",
        lambda counted, rng: pass_of_tasks(counted, K, each_task=False).pass_hat_k,
        mix=mix, tasks=tasks, trials=trials, repetitions=1000,
        band=WRONG_FAMILY if mix.startswith("half") else (0.93, 0.985),
    )  # fmt: skip


def test_the_posterior_of_one_task_covers_when_its_prior_holds(judge: Judge) -> None:
    repetitions = 4000
    rng = np.random.default_rng(SEED)
    tally, name = Tally(np.nan), "pass^3, posterior of one task"
    for p in rng.random(repetitions).tolist():
        tally.truth = p**K
        tally.add_sure(pass_of_one_task(10, int(rng.binomial(10, p)), K).pass_hat_k)
    tally.give(judge, name, "10 trials, p uniform", seed=SEED, band=(0.94, 0.96))


def test_the_mean_of_flat_posteriors_does_not_cover(judge: Judge) -> None:
    """The control: what is not offered fails the same test."""

    def naive(counted: Trials, rng: np.random.Generator) -> Estimate:
        a, b = counted.c + 1.0, counted.n - counted.c + 1.0
        means = (rng.beta(a, b, (2000, a.size)) ** K).mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975]).tolist()
        return Estimate(value=float(means.mean()), interval=(low, high), n=a.size, method="naive")

    with pytest.raises(AssertionError, match=r"coverage 0\.\d+ below 0\.93"):
        coverage(
            judge, "control: pass^3, mean of flat posteriors", naive, mix="Beta(8, 2)", tasks=50,
            trials=3, repetitions=500, band=BAND,
        )  # fmt: skip
