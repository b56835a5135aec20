"""pass@k and pass^k of repeated trials: exact, over tasks, and Bayesian.

A task has `n` trials and `c` passes; `k`, at least 1, is the number of trials taken together. The
estimators raise ValueError if `k` is below 1, a `c` is outside [0, n], or the confidence level is
outside (0, 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from calibration.statistics.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    not_estimable,
    validated_weights,
)
from calibration.statistics.resampling import GAFFKE, few_tasks, gaffke_limits

SIZES = (0.2, 300.0)
GRID_MEAN, GRID_SIZE = 128, 64
COARSE_MEAN, COARSE_SIZE = 48, 24

# Cells whose posterior density is below exp(-NEGLIGIBLE) of the highest are negligible.
NEGLIGIBLE = 18.0

MOST_ZOOMS = 8

# Up to this number of trials, sums of logarithms are quicker than log gamma.
MOST_FACTORS = 100

# Points of the mixture for the interval of one task.
MIXTURE = 2000

# Multiples of it are evenly spread between whole numbers.
GOLDEN = (5**0.5 - 1) / 2

SHRUNK = "shrunk towards the other tasks"

# Below this many tasks limits that assume nothing of them are wide; the hierarchy's are narrower.
ADVISE_BAYESIAN = 30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trials:
    """Trials and passes of each task, sorted by task: sufficient for pass@k and pass^k."""

    tasks: NDArray[np.generic]
    n: IntArray
    c: IntArray


def count_trials(tasks: ArrayLike, passed: ArrayLike) -> Trials:
    """Count the trials and passes of each task, of one model and agent version at a time."""
    names, success = np.asarray(tasks), np.asarray(passed, dtype=np.bool_)
    if names.ndim != 1 or names.shape != success.shape:
        raise ValueError(
            f"tasks and passed must have one shape (n,), got {names.shape!r} and {success.shape!r}"
        )
    unique, index = np.unique(names, return_inverse=True)
    n = np.bincount(index, minlength=unique.size).astype(np.int64)
    c = np.bincount(index[success], minlength=unique.size).astype(np.int64)
    return Trials(tasks=unique, n=n, c=c)


def kinds_of(trials: Trials) -> tuple[Trials, IntArray]:
    """Return one task of each kind of equal counts, and how many tasks are of that kind.

    Examples
    --------
    >>> three = Trials(tasks=np.arange(3), n=np.array([4, 4, 4]), c=np.array([1, 3, 1]))
    >>> kinds, like = kinds_of(three)
    >>> kinds.c.tolist(), like.tolist()
    ([1, 3], [2, 1])
    """
    kinds, like, _ = _kinds(trials.n, trials.c)
    return kinds, like


def _kinds(n: IntArray, c: IntArray) -> tuple[Trials, IntArray, IntArray]:
    """Return the kinds of tasks, how many are of each, and the kind of each task."""
    order = 1 + int(c.max(initial=0))
    keys, kind, like = np.unique(n * order + c, return_inverse=True, return_counts=True)
    kinds = Trials(tasks=np.arange(keys.size), n=keys // order, c=keys % order)
    return kinds, like.astype(np.int64), kind.astype(np.int64)


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Estimate the chance that at least one of k trials of a task passes; None where n < k.

    1 - C(n - c, k) / C(n, k), unbiased for 1 - (1 - p)^k when the n trials are independent with the
    same p.

    References
    ----------
    Chen et al. (2021), "Evaluating large language models trained on code".
    https://doi.org/10.48550/arXiv.2107.03374

    Examples
    --------
    1 - C(2, 2) / C(10, 2) = 44/45; of ten trials with two failures, three cannot all fail:

    >>> pass_at_k(10, 8, 2), pass_at_k(10, 8, 3), pass_at_k(10, 8, 11)
    (0.97778, 1.0, None)
    """
    counts = checked_counts([n], [c], k)
    return None if n < k else float(shares_at(*counts, k)[0])


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Estimate the chance that all of k trials of a task pass; None where n < k.

    C(c, k) / C(n, k), unbiased for p^k under the assumptions of `pass_at_k`.

    References
    ----------
    Yao et al. (2024), "tau-bench: a benchmark for tool-agent-user interaction in real-world
    domains". https://doi.org/10.48550/arXiv.2406.12045

    Examples
    --------
    C(8, 3) / C(10, 3) = 56 / 120:

    >>> pass_hat_k(10, 8, 3), pass_hat_k(2, 2, 3)
    (0.46667, None)
    """
    counts = checked_counts([n], [c], k)
    return None if n < k else float(shares_hat(*counts, k)[0])


def checked_counts(n: ArrayLike, c: ArrayLike, k: int) -> tuple[IntArray, IntArray]:
    """Return trials and passes as integers; ValueError if impossible, or if `k` is below 1."""
    trials, successes = np.asarray(n), np.asarray(c)
    for name, array in (("n", trials), ("c", successes)):
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"{name} must be whole numbers, got dtype {array.dtype!s}")
    if trials.ndim != 1 or trials.shape != successes.shape:
        raise ValueError(
            f"n and c must have one shape (n_tasks,), got {trials.shape!r} and {successes.shape!r}"
        )
    if isinstance(k, bool) or k != int(k) or k < 1:
        raise ValueError(f"k must be a whole number from 1 up, got {k!r}")
    if trials.size and (successes.min() < 0 or (successes > trials).any() or trials.min() < 1):
        raise ValueError("n must be at least 1 and c in [0, n] for every task")
    return trials.astype(np.int64), successes.astype(np.int64)


def shares_hat(n: IntArray, c: IntArray, k: int) -> FloatArray:
    """Return C(c, k) / C(n, k) of each task, as a product: no factorial overflows."""
    found = np.ones(n.shape)
    for i in range(k):
        found *= np.maximum(0, c - i) / (n - i)
        if not found.any():
            break
    return found


def shares_at(n: IntArray, c: IntArray, k: int) -> FloatArray:
    """Return 1 - C(n - c, k) / C(n, k) of each task; logarithms keep rare passes accurate."""
    sure = n - c < k
    exponent = np.zeros(n.shape)
    for i in range(k):
        exponent += np.log1p(-np.where(sure, 0, c) / (n - i))
    return np.where(sure, 1.0, 0.0 - np.expm1(exponent))


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTask:
    """Posterior pass@k and pass^k of one task."""

    k: int
    pass_at_k: Estimate
    pass_hat_k: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkTask:
    """Posterior pass@k and pass^k of one task, shrunk towards the population of tasks."""

    task: object
    n: int
    c: int
    pass_at_k: Estimate
    pass_hat_k: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PassPosterior:
    """Posterior pass@k and pass^k of the population of tasks: 1 - E[(1 - p)^k] and E[p^k].

    `mean`, `size` and `correlation` are the posterior means of m, s and 1 / (1 + s), where p of a
    task is Beta(m s, (1 - m) s); the correlation is that of two trials of one task. `tasks` have
    the status ``shrunk``.
    """

    k: int
    pass_at_k: Estimate
    pass_hat_k: Estimate
    mean: float
    size: float
    correlation: float
    tasks: tuple[ShrunkTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Grid:
    """Parameters a and b of the Beta in each grid cell, and the posterior weight of the cell."""

    a: FloatArray
    b: FloatArray
    weight: FloatArray


def pass_of_one_task(n: int, c: int, k: int, *, confidence_level: float = 0.95) -> OneTask:
    """Estimate pass@k and pass^k of one task, or of one pooled set of trials.

    The trials are independent with the same p, whose prior is uniform; k may exceed n. The
    posterior means are B(a + k, b) / B(a, b) and 1 - B(a, b + k) / B(a, b) with a = c + 1 and b = n
    - c + 1; credible intervals are from the Beta quantiles, as both are monotone in p. Not for
    several tasks: the mean of such posteriors hides the differences between tasks, and in some
    settings its interval of pass^3 covers the truth in none of 1,000 repetitions. For several tasks
    use `pass_of_tasks`.

    References
    ----------
    Bayes (1763), Phil. Trans. 53. https://doi.org/10.1098/rstl.1763.0053

    Examples
    --------
    7 of 10: pass^3 = (8 x 9 x 10) / (12 x 13 x 14).

    >>> found = pass_of_one_task(10, 7, 3)
    >>> found.pass_hat_k.value, found.pass_at_k.value
    (0.32967, 0.94505)
    """
    checked_counts([n], [c], k)
    check_confidence_level(confidence_level)
    a, b = np.array([c + 1.0]), np.array([n - c + 1.0])
    tail = (1 - confidence_level) / 2
    low, high = special.betaincinv(a[0], b[0], [tail, 1 - tail]).tolist()
    method = "Beta(1, 1) prior, exact"
    at, hat = (
        Estimate(
            value=value, interval=limits, n=n, method=method, confidence_level=confidence_level
        )
        for value, limits in (
            (1 - float(_moment(b, a, k)[0]), (1 - (1 - low) ** k, 1 - (1 - high) ** k)),
            (float(_moment(a, b, k)[0]), (low**k, high**k)),
        )
    )
    return OneTask(k=k, pass_at_k=at, pass_hat_k=hat)


def pass_of_tasks(
    trials: Trials, k: int, *, each_task: bool = True, confidence_level: float = 0.95
) -> PassPosterior:
    """Estimate pass@k and pass^k of the population of tasks from few tasks or few trials.

    E[p^k] and 1 - E[(1 - p)^k], with credible intervals; tasks with fewer than k trials enter too.
    With `each_task` also for every task, shrunk towards the population.
    Tasks are independent; p of a task is Beta(m s, (1 - m) s), with m uniform on (0, 1) and log s
    uniform on [log 0.2, log 300]. The trials of a task are independent given p. The posterior of
    (m, log s) is summed on a grid that closes in on its mass: no convergence, no seed.

    References
    ----------
    Gelman et al. (2013), "Bayesian data analysis", section 5.3.
    https://doi.org/10.1201/b16018

    Examples
    --------
    Eight tasks of four trials, every task with two passes:

    >>> eight = Trials(tasks=np.arange(8), n=np.full(8, 4), c=np.full(8, 2))
    >>> round(pass_of_tasks(eight, 1).pass_hat_k.value, 6)
    0.5
    """
    return passes_of_tasks(trials, [k], each_task=each_task, confidence_level=confidence_level)[0]


def passes_of_tasks(
    trials: Trials, ks: Sequence[int], *, each_task: bool = True, confidence_level: float = 0.95
) -> tuple[PassPosterior, ...]:
    """Estimate as `pass_of_tasks` does, for several k from one posterior.

    Examples
    --------
    >>> eight = Trials(tasks=np.arange(8), n=np.full(8, 4), c=np.full(8, 2))
    >>> [round(found.pass_hat_k.value, 2) for found in passes_of_tasks(eight, [1, 2])]
    [0.5, 0.26]
    """
    for k in ks:
        n, c = checked_counts(trials.n, trials.c, k)
    check_confidence_level(confidence_level)
    method = "hierarchy of Beta tasks, grid"
    if not trials.n.size:
        why = not_estimable("no task: add runs", method=method, confidence_level=confidence_level)
        return tuple(
            PassPosterior(
                k=k, pass_at_k=why, pass_hat_k=why, mean=0.5, size=1.0, correlation=0.5, tasks=()
            )
            for k in ks
        )
    kinds, times, kind = _kinds(n, c)
    grid = _posterior(kinds, times)
    names = np.asarray(trials.tasks).tolist() if each_task else []
    # Only of the kinds that are named: there may be thousands.
    of_kind = {
        j: _of_task(grid, int(kinds.n[j]), int(kinds.c[j]), ks, confidence_level)
        for j in np.unique(kind[: len(names)]).tolist()
    }
    size = grid.a + grid.b
    found = []
    for place, k in enumerate(ks):
        at, hat = (
            _summary(values, grid.weight, n.size, method, confidence_level)
            for values in (1 - _moment(grid.b, grid.a, k), _moment(grid.a, grid.b, k))
        )
        shrunk = tuple(
            ShrunkTask(
                task=name,
                n=int(m),
                c=int(x),
                pass_at_k=of_kind[j][place][0],
                pass_hat_k=of_kind[j][place][1],
            )
            for name, m, x, j in zip(names, n, c, kind.tolist(), strict=False)
        )
        found.append(
            PassPosterior(
                k=k,
                pass_at_k=at,
                pass_hat_k=hat,
                mean=float(grid.weight @ (grid.a / size)),
                size=float(grid.weight @ size),
                correlation=float(grid.weight @ (1 / (1 + size))),
                tasks=shrunk,
            )
        )
    return tuple(found)


def _moment(a: FloatArray, b: FloatArray, k: int) -> FloatArray:
    """Return E[p^k] of Beta(a, b), B(a + k, b) / B(a, b), as a product without cancellation."""
    found = np.ones(a.shape)
    for i in range(k):
        found *= (a + i) / (a + b + i)
    return found


def _posterior(kinds: Trials, times: IntArray) -> _Grid:
    """Sum the posterior over m and log s on a grid that closes in on its mass."""
    mean, size = (0.0, 1.0), (float(np.log(SIZES[0])), float(np.log(SIZES[1])))
    for _ in range(MOST_ZOOMS):
        grid = _density(kinds, times, _middles(*mean, COARSE_MEAN), _middles(*size, COARSE_SIZE))
        seen = (grid.weight > np.exp(-NEGLIGIBLE)).reshape(COARSE_MEAN, COARSE_SIZE)
        closer_mean = _around(_middles(*mean, COARSE_MEAN), seen.any(axis=1), mean)
        closer_size = _around(_middles(*size, COARSE_SIZE), seen.any(axis=0), size)
        if _length(closer_mean) > 0.6 * _length(mean) and _length(closer_size) > 0.6 * _length(
            size
        ):
            break
        mean, size = closer_mean, closer_size
    grid = _density(kinds, times, _middles(*mean, GRID_MEAN), _middles(*size, GRID_SIZE))
    return replace(grid, weight=grid.weight / grid.weight.sum())


def _density(kinds: Trials, times: IntArray, arc: FloatArray, log_s: FloatArray) -> _Grid:
    """Return the posterior density of each cell, 1 in the highest.

    m is sin^2 of `arc` x pi / 2: cells narrow towards 0 and 1, where the mass lies if all trials of
    all tasks agree. Columns are shifted against each other, so that no two cells share their m, of
    which the quantiles would be steps.
    """
    shift = (np.arange(log_s.size) * GOLDEN + 0.5) % 1 - 0.5
    angle = np.pi / 2 * (arc[:, None] + (arc[1] - arc[0]) * shift)
    s = np.exp(log_s)
    a, b = np.sin(angle) ** 2 * s, np.cos(angle) ** 2 * s
    n, c = kinds.n, kinds.c
    density = _log_rising(a, c, times) + _log_rising(b, n - c, times) - _log_rising(s, n, times)
    density += np.log(np.sin(2 * angle))
    weight = np.exp(density - density.max())
    return _Grid(a=a.ravel(), b=b.ravel(), weight=weight.ravel())


def _log_rising(x: FloatArray, values: IntArray, times: IntArray) -> FloatArray:
    """Return the sum over values of log(x (x + 1) ... (x + value - 1)), each `times` times."""
    found = np.zeros(x.shape)
    if values.max() <= MOST_FACTORS:
        for i in range(values.max()):
            found += times[values > i].sum() * np.log(x + i)
        return found
    for value in np.unique(values).tolist():
        found += times[values == value].sum() * (special.gammaln(x + value) - special.gammaln(x))
    return found


def _middles(low: float, high: float, cells: int) -> FloatArray:
    middles: FloatArray = low + (high - low) * (np.arange(cells) + 0.5) / cells
    return middles


def _around(
    points: FloatArray, seen: FloatArray, bounds: tuple[float, float]
) -> tuple[float, float]:
    """Return the range of the points with mass, one cell wider either side, within the bounds."""
    step, at = points[1] - points[0], np.flatnonzero(seen)
    return (
        max(bounds[0], float(points[at[0]] - 1.5 * step)),
        min(bounds[1], float(points[at[-1]] + 1.5 * step)),
    )


def _length(bounds: tuple[float, float]) -> float:
    return bounds[1] - bounds[0]


def _summary(
    values: FloatArray, weight: FloatArray, n: int, method: str, confidence_level: float
) -> Estimate:
    """Return posterior mean and quantiles of a quantity with one value per grid cell."""
    order = np.argsort(values)
    cumulated = np.cumsum(weight[order]) - weight[order] / 2
    tail = (1 - confidence_level) / 2
    low, high = np.interp([tail, 1 - tail], cumulated, values[order]).tolist()
    return Estimate(
        value=float(weight @ values),
        interval=(low, high),
        n=n,
        method=method,
        confidence_level=confidence_level,
    )


def _of_task(
    grid: _Grid, n: int, c: int, ks: Sequence[int], confidence_level: float
) -> list[tuple[Estimate, Estimate]]:
    """Return pass@k and pass^k of a task with these counts, for each k.

    Its p is a mixture of Beta(a + c, b + n - c) over the grid. The interval is read from evenly
    spread points of the mixture: golden section in p, even steps in the cells.
    """
    a, b = grid.a + c, grid.b + n - c
    order = np.argsort(grid.a / (grid.a + grid.b), kind="stable")
    even = (np.arange(MIXTURE) + 0.5) / MIXTURE
    cells = order[np.searchsorted(np.cumsum(grid.weight[order]), even).clip(max=order.size - 1)]
    within = (np.arange(MIXTURE) * GOLDEN + 0.5) % 1
    p = special.betaincinv(a[cells], b[cells], within)
    tail = (1 - confidence_level) / 2
    low, high = np.quantile(p, [tail, 1 - tail]).tolist()

    def shrunk(value: float, limits: tuple[float, float]) -> Estimate:
        return Estimate(
            value=value,
            interval=limits,
            n=n,
            method=f"hierarchy of Beta tasks, {SHRUNK}",
            confidence_level=confidence_level,
            status=f"provisional: {SHRUNK}",
        )

    return [
        (
            shrunk(
                float(grid.weight @ (1 - _moment(b, a, k))),
                (1 - (1 - low) ** k, 1 - (1 - high) ** k),
            ),
            shrunk(float(grid.weight @ _moment(a, b, k)), (low**k, high**k)),
        )
        for k in ks
    ]


Band = Literal["reliable", "inconsistent", "needs improvement", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassAtK:
    """pass@k and pass^k, means over tasks, for one k.

    `n_too_few` tasks are left out because they have fewer than k trials; `advice` is what to do
    about too few tasks.
    """

    k: int
    pass_at_k: Estimate
    pass_hat_k: Estimate
    n_tasks: int
    n_too_few: int
    advice: str

    @property
    def band(self) -> str | None:
        """The `band` of both values, with k; None where there is none."""
        at, hat = self.pass_at_k.value, self.pass_hat_k.value
        return None if at is None or hat is None else f"{band(at, hat)} (k = {self.k})"


def pass_over_tasks(
    trials: Trials,
    k: int,
    *,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
    like: IntArray | None = None,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> PassAtK:
    """Estimate pass@k and pass^k of the population that the tasks were drawn from.

    Tasks are independent, and the trials of a task exchangeable. Every task has the same weight,
    however many trials it has; tasks with fewer than k trials are left out and counted. Gaffke's
    limits over tasks (`gaffke_limits`), which hold whatever the distribution of tasks, also where
    nearly all are alike; with fewer than 5 tasks the value alone (``not_estimable``). Below 30
    tasks the advice is `pass_of_tasks`.

    Parameters
    ----------
    weights : float array, shape (n_tasks,), optional
        Inverse inclusion probabilities of the tasks; ValueError unless positive.
    like : int array, shape (n_tasks,), optional
        Number of identical tasks that a row represents; 1 when None.

    Examples
    --------
    Five tasks of two trials; two passed twice, one once: pass^2 = 2/5, pass@2 = 3/5.

    >>> five = Trials(tasks=np.arange(5), n=np.full(5, 2), c=np.array([2, 2, 1, 0, 0]))
    >>> found = pass_over_tasks(five, 2, rng=np.random.default_rng(1))
    >>> found.pass_hat_k.value, found.pass_at_k.value
    (0.4, 0.6)
    """
    n, c = checked_counts(trials.n, trials.c, k)
    enough = n >= k
    like = np.ones(n.size, dtype=np.int64) if like is None else like
    entering, too_few = int(like[enough].sum()), int(like[~enough].sum())
    if not entering:
        nothing = not_estimable(
            no_trials(k), method="mean over tasks", confidence_level=confidence_level
        )
        return PassAtK(
            k=k, pass_at_k=nothing, pass_hat_k=nothing, n_tasks=0, n_too_few=too_few, advice=""
        )
    of_task = np.column_stack(
        [shares_at(n[enough], c[enough], k), shares_hat(n[enough], c[enough], k)]
    )
    at, hat = over_tasks(
        of_task,
        weights=None if weights is None else np.asarray(weights, dtype=np.float64)[enough],
        like=like[enough],
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
    )
    return PassAtK(
        k=k,
        pass_at_k=at,
        pass_hat_k=hat,
        n_tasks=entering,
        n_too_few=too_few,
        advice=advice(entering),
    )


def over_tasks(
    of_task: FloatArray,
    *,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
    like: IntArray | None = None,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate the means over tasks of figures in [0, 1], with the intervals of `pass_over_tasks`.

    Parameters
    ----------
    of_task : float array, shape (n_tasks, n_figures)
        Figures of each task.

    Examples
    --------
    >>> over_tasks(np.array([[0.0], [0.5], [1.0]]), rng=np.random.default_rng(1))[0].value
    0.5
    """
    times = np.ones(len(of_task), dtype=np.int64) if like is None else like
    whole = times * validated_weights(weights, len(of_task))
    n_tasks = int(times.sum())
    # The same draws for all figures: pass@1 is pass^1.
    seed = int(rng.integers(2**32))
    return tuple(
        Estimate(
            value=float(whole @ figure / whole.sum()),
            interval=gaffke_limits(
                figure,
                rng=np.random.default_rng(seed),
                weights=weights,
                like=times,
                n_draws=n_resamples,
                confidence_level=confidence_level,
            ),
            n=n_tasks,
            method=GAFFKE,
            confidence_level=confidence_level,
            status=few_tasks(n_tasks),
        )
        for figure in of_task.T
    )


def extrapolated(
    trials: Trials,
    k: int,
    *,
    rng: np.random.Generator,
    like: IntArray | None = None,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> PassAtK:
    """Extrapolate to k trials under independence: the means of 1 - (1 - c/n)^k and (c/n)^k.

    For k above the number of trials there is no unbiased estimate. This one takes c/n for p: with
    few trials pass^k is biased upwards and pass@k downwards. Every estimate is ``provisional``.
    `like` as in `pass_over_tasks`.

    Examples
    --------
    >>> one = Trials(tasks=np.arange(1), n=np.array([10]), c=np.array([7]))
    >>> found = extrapolated(one, 3, rng=np.random.default_rng(1))
    >>> found.pass_at_k.value, found.pass_hat_k.value
    (0.973, 0.343)
    """
    n, c = checked_counts(trials.n, trials.c, k)
    if not n.size:
        nothing = not_estimable("no task: add runs", method="independent trials")
        return PassAtK(
            k=k, pass_at_k=nothing, pass_hat_k=nothing, n_tasks=0, n_too_few=0, advice=""
        )
    share = c / n
    n_tasks = n.size if like is None else int(like.sum())
    found = over_tasks(
        np.column_stack([1 - (1 - share) ** k, share**k]),
        like=like,
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
    )
    at, hat = (_as_if_independent(estimate, k) for estimate in found)
    return PassAtK(
        k=k, pass_at_k=at, pass_hat_k=hat, n_tasks=n_tasks, n_too_few=0, advice=advice(n_tasks)
    )


def no_trials(k: int) -> str:
    """Return why there is no figure of k trials, and what would help."""
    return f"no task has {k} trials: run each task {k} times or more"


def advice(n_tasks: int) -> str:
    """Return the remedy for too few tasks, empty when there are enough."""
    if n_tasks >= ADVISE_BAYESIAN:
        return ""
    return (
        f"{n_tasks} tasks are few: below {ADVISE_BAYESIAN} use the Bayesian mode, which learns "
        "from all tasks how much tasks differ"
    )


def band(at: float, hat: float) -> Band:
    """Return the joint reading of pass@k and pass^k of one k."""
    if at > 0.95 and hat > 0.70:
        return "reliable"
    if at > 0.95 and hat < 0.50:
        return "inconsistent"
    return "needs improvement" if at < 0.70 else "mixed"


def _as_if_independent(estimate: Estimate, k: int) -> Estimate:
    how = f"extrapolated to k = {k} as if trials were independent"
    status = f"provisional: {how}"
    if estimate.status.startswith("not_estimable"):
        status = estimate.status
    return replace(estimate, status=status, method=f"independent trials, {estimate.method}")
