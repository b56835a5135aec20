"""Coverage of pass@k and pass^k over tasks: Gaffke's limits, the hierarchy, and controls."""

from collections.abc import Callable, Iterable, Sequence
from math import prod

import numpy as np
import pytest

from calibration.statistics.estimate import Estimate
from calibration.success_rate.pass_at_k import (
    Trials,
    pass_of_one_task,
    pass_of_tasks,
    pass_over_tasks,
    shares_at,
)
from calibration.success_rate.resampling import ratio_estimates
from tests.simulation.judged import Band, Judge, Tally, give_all

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

# Limits that no distribution breaks cover most of them too often.
BAND = (0.93, 1.0)

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
        judge, "pass^3, Gaffke",
        lambda counted, rng: pass_over_tasks(counted, K, rng=rng).pass_hat_k,
        mix=mix, tasks=tasks, trials=trials, repetitions=2000, band=BAND,
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


# Equal chances of all tasks, and chances that differ as much as a Beta of size 1 lets them.
CHANCES = (0.1, 0.5, 0.9)
CELLS = [
    (kind, p, tasks, trials)
    for kind in ("equal", "Beta(p, 1 - p)")
    for p in CHANCES
    for tasks in (10, 50)
    for trials in (3, 5, 10)
]
MANY = 2000
LEAST, ON_AVERAGE, LEAST_OVER_TASKS, WRONG = 0.87, 0.93, 0.88, 0.50
Cell = tuple[str, float, int, int]


def passes_of_cell(cell: Cell) -> np.ndarray:
    """Return the passes of each task, shape (repetitions, tasks), sorted within repetitions."""
    kind, p, tasks, trials = cell
    rng = np.random.default_rng([SEED, CELLS.index(cell)])
    chance = np.full((MANY, tasks), p)
    if kind != "equal":
        chance = rng.beta(p, 1 - p, (MANY, tasks))
    return np.sort(rng.binomial(trials, chance), axis=1)


def truths(cell: Cell, k: int = K) -> tuple[float, float]:
    """Return pass@k and pass^k of the population of tasks."""
    kind, p, _, _ = cell
    if kind == "equal":
        return 1 - (1 - p) ** k, p**k
    at_all, none = (prod((q + i) / (1 + i) for i in range(k)) for q in (p, 1 - p))
    return 1 - none, at_all


def tallies(
    cell: Cell, estimate: Callable[[Trials], Iterable[Estimate]], ks: Sequence[int] = (K,)
) -> list[Tally]:
    """Judge pass@k and pass^k of every repetition; equal counts are estimated once."""
    found = [Tally(truth) for k in ks for truth in truths(cell, k)]
    _, _, tasks, trials = cell
    rows, times = np.unique(passes_of_cell(cell), axis=0, return_counts=True)
    for c, n in zip(rows, times.tolist(), strict=True):
        figures = estimate(Trials(tasks=np.arange(tasks), n=np.full(tasks, trials), c=c))
        for tally, one in zip(found, figures, strict=True):
            for _ in range(n):
                tally.add_sure(one)
    return found


def name_of(cell: Cell) -> str:
    kind, p, tasks, trials = cell
    return f"{kind}, p {p:g}, {tasks} tasks x {trials}"


def give_cell(
    judge: Judge, name: str, cell: Cell, found: list[Tally], band: Band, ks: Sequence[int] = (K,)
) -> None:
    names = [f"pass{sign}{k}, {name}" for k in ks for sign in "@^"]
    give_all(
        judge, SEED,
        *((tally, one, name_of(cell), band) for tally, one in zip(found, names, strict=True)),
    )  # fmt: skip


def test_the_hierarchy_covers_in_every_cell_and_on_average(judge: Judge) -> None:
    def posterior(counted: Trials) -> tuple[Estimate, Estimate]:
        found = pass_of_tasks(counted, K, each_task=False)
        return found.pass_at_k, found.pass_hat_k

    failed, shares = [], []
    for cell in CELLS:
        found = tallies(cell, posterior)
        shares += [tally.covered / tally.repetitions for tally in found]
        try:
            give_cell(judge, "hierarchy", cell, found, (LEAST, 1.0))
        except AssertionError as error:
            failed.append(str(error))
    assert not failed, "\n".join(failed)
    assert np.mean(shares) >= ON_AVERAGE, f"{np.mean(shares):.3f} on average"


@pytest.mark.parametrize("cell", CELLS, ids=name_of)
def test_gaffke_over_tasks_covers_in_every_cell(judge: Judge, cell: Cell) -> None:
    rng = np.random.default_rng([SEED, 50])
    ks = [k for k in (1, K, 5) if k <= cell[3]]

    def over_tasks(counted: Trials) -> Iterable[Estimate]:
        for k in ks:
            found = pass_over_tasks(counted, k, rng=rng)
            yield from (found.pass_at_k, found.pass_hat_k)

    found = tallies(cell, over_tasks, ks)
    give_cell(judge, "Gaffke", cell, found, (LEAST_OVER_TASKS, 1.0), ks)


@pytest.mark.parametrize("cell", [("equal", 0.9, 50, 10), ("Beta(p, 1 - p)", 0.9, 50, 10)])
def test_the_bootstrap_over_tasks_does_not_cover(judge: Judge, cell: Cell) -> None:
    """A control: of tasks that pass nine times in ten, hardly one fails three trials in a row."""
    rng, tally = np.random.default_rng([SEED, 52]), Tally(truths(cell)[0])
    for c in passes_of_cell(cell):
        at = shares_at(np.full(c.size, cell[3]), c, K)[:, None]
        tally.add(ratio_estimates(at, np.ones_like(at), rng=rng)[0])
    name = "control: pass@3, percentile bootstrap over tasks: must fail"
    tally.give(judge, name, name_of(cell), seed=SEED, band=(0.0, LEAST_OVER_TASKS))


@pytest.mark.parametrize("tasks", [20, 50])
@pytest.mark.parametrize("easy", [0.2, 0.8])
def test_tasks_drawn_with_unequal_probabilities_are_covered(
    judge: Judge, tasks: int, easy: float
) -> None:
    """Half of all tasks are easy, and another share of the sample is."""
    rng = np.random.default_rng([SEED, 53, tasks])
    beta = {True: (9, 1), False: (1, 1)}
    at, hat = (Tally(0.0) for _ in range(2))
    for a, b in beta.values():
        whole = a + b
        at.truth += 0.5 * (1 - prod((b + i) / (whole + i) for i in range(K)))
        hat.truth += 0.5 * prod((a + i) / (whole + i) for i in range(K))
    n = np.full(tasks, 5)
    for _ in range(MANY):
        kind = rng.random(tasks) < easy
        p = np.where(kind, rng.beta(*beta[True], tasks), rng.beta(*beta[False], tasks))
        counted = Trials(tasks=np.arange(tasks), n=n, c=rng.binomial(n, p))
        weights = np.where(kind, 0.5 / easy, 0.5 / (1 - easy))
        found = pass_over_tasks(counted, K, rng=rng, weights=weights)
        at.add_sure(found.pass_at_k)
        hat.add_sure(found.pass_hat_k)
    setting = f"{tasks} tasks x 5, {easy:.0%} easy ones for half of all, weighted"
    band = (LEAST_OVER_TASKS, 1.0)
    rows = ((at, "pass@3, Gaffke", setting, band), (hat, "pass^3, Gaffke", setting, band))
    give_all(judge, SEED, *rows)


def test_the_mean_of_flat_posteriors_covers_less_than_half_somewhere(judge: Judge) -> None:
    """The wrong way: what is not offered."""
    rng, failed = np.random.default_rng([SEED, 51]), []
    for cell in CELLS:
        _, _, tasks, trials = cell
        counts = passes_of_cell(cell)
        a, b = counts + 1.0, trials - counts + 1.0
        tally = Tally(truths(cell)[1])
        for one, other in zip(a, b, strict=True):
            means = (rng.beta(one, other, (300, tasks)) ** K).mean(axis=1)
            low, high = np.quantile(means, [0.025, 0.975]).tolist()
            tally.count(low <= tally.truth <= high, (high - low) / 2)
        try:
            tally.give(
                judge, "control: pass^3, mean of flat posteriors", name_of(cell), seed=SEED,
                band=(WRONG, 1.0),
            )  # fmt: skip
        except AssertionError:
            failed.append(cell)
    assert failed, "no cell below one half"
