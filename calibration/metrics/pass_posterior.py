"""pass@k and pass^k by Bayes: of one task exactly, of few tasks with a hierarchy on a grid."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from calibration.estimates import Estimate, not_estimable
from calibration.metrics.arrays import FloatArray
from calibration.metrics.trials import Trials, checked_counts

SIZES = (0.2, 300.0)
GRID_MEAN, GRID_SIZE = 160, 80
# Cells whose posterior density is below exp(-NEGLIGIBLE) of the highest carry nothing visible.
NEGLIGIBLE = 18.0
MOST_ZOOMS = 8
# Points of the mixture that a task's own interval is read from.
MIXTURE = 2000
SHRUNK = "shrunk towards the other tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTask:
    """pass@k and pass^k of one task, by its posterior."""

    k: int
    pass_at_k: Estimate
    pass_hat_k: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkTask:
    """One task, its figures drawn towards those of the others."""

    task: object
    n: int
    c: int
    pass_at_k: Estimate
    pass_hat_k: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PassPosterior:
    """pass@k and pass^k of the population of tasks, by the hierarchy.

    Parameters
    ----------
    k : int
        Trials looked at together.
    pass_at_k, pass_hat_k : Estimate
        1 - E[(1 - p)^k] and E[p^k] over the population of tasks: posterior mean and quantiles.
    mean, size : float
        Posterior means of m and s, where p of a task is Beta(m s, (1 - m) s).
    tasks : tuple of ShrunkTask
        Every task, marked ``shrunk``; empty when they were not asked for.
    """

    k: int
    pass_at_k: Estimate
    pass_hat_k: Estimate
    mean: float
    size: float
    tasks: tuple[ShrunkTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Grid:
    """Shapes a and b of the Beta at every cell, and the posterior weight of the cell."""

    a: FloatArray
    b: FloatArray
    weight: FloatArray


def pass_of_one_task(n: int, c: int, k: int, *, confidence_level: float = 0.95) -> OneTask:
    """Estimate pass@k and pass^k of one task, or of one pooled set of trials.

    The trials are independent with the same p, whose prior is uniform. k may exceed n. Not for
    several tasks: the mean of such posteriors hides how tasks differ, and its interval of pass^3
    covers the truth in none of 1,000 repetitions of some settings; use `pass_of_tasks`.

    Parameters
    ----------
    n, c : int
        Trials, and those that passed.
    k : int
        Trials looked at together, at least 1.
    confidence_level : float, default 0.95
        Posterior content of the interval, strictly between 0 and 1.

    Returns
    -------
    OneTask
        Posterior means B(a + k, b) / B(a, b) and 1 - B(a, b + k) / B(a, b) with a = c + 1 and
        b = n - c + 1; intervals from the Beta quantiles, as both are monotone in p.

    Raises
    ------
    ValueError
        If `c` is outside [0, n], `k` is below 1 or `confidence_level` is outside (0, 1).

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
    _check_level(confidence_level)
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

    Tasks are independent; the chance p of a task is Beta(m s, (1 - m) s), with m uniform on
    (0, 1) and log s uniform on [log 0.2, log 300]. The trials of a task are independent given p.
    Tasks with fewer than k trials enter too.

    Parameters
    ----------
    trials : Trials
        From `count_trials`.
    k : int
        Trials looked at together, at least 1.
    each_task : bool, default True
        Whether to give the figures of every task too.
    confidence_level : float, default 0.95
        Posterior content of the intervals, strictly between 0 and 1.

    Returns
    -------
    PassPosterior
        E[p^k] and 1 - E[(1 - p)^k] over the population of tasks, not only those sampled.

    Raises
    ------
    ValueError
        If counts are impossible, `k` is below 1 or `confidence_level` is outside (0, 1).

    Notes
    -----
    The posterior of (m, log s) is summed on a grid that closes in on where it has mass, so there
    is nothing to converge and no seed.

    References
    ----------
    Gelman et al. (2013), "Bayesian data analysis", section 5.3.
    https://doi.org/10.1201/b16018

    Examples
    --------
    Eight tasks of four trials, every task with two passed:

    >>> eight = Trials(tasks=np.arange(8), n=np.full(8, 4), c=np.full(8, 2))
    >>> found = pass_of_tasks(eight, 1)
    >>> round(found.pass_hat_k.value, 6)
    0.5
    """
    n, c = checked_counts(trials.n, trials.c, k)
    _check_level(confidence_level)
    method = "hierarchy of Beta tasks, grid"
    if not n.size:
        why = not_estimable("no task: add runs", method=method, confidence_level=confidence_level)
        return PassPosterior(k=k, pass_at_k=why, pass_hat_k=why, mean=0.5, size=1.0, tasks=())
    kinds, kind, times = np.unique(
        np.column_stack([n, c]), axis=0, return_inverse=True, return_counts=True
    )
    grid = _posterior(kinds.astype(np.float64), times.astype(np.float64))
    at, hat = (
        _summary(values, grid.weight, n.size, method, confidence_level)
        for values in (1 - _moment(grid.b, grid.a, k), _moment(grid.a, grid.b, k))
    )
    of_kind = []
    if each_task:
        of_kind = [_of_task(grid, int(m), int(s), k, confidence_level) for m, s in kinds]
    return PassPosterior(
        k=k,
        pass_at_k=at,
        pass_hat_k=hat,
        mean=float(grid.weight @ (grid.a / (grid.a + grid.b))),
        size=float(grid.weight @ (grid.a + grid.b)),
        tasks=tuple(
            ShrunkTask(
                task=name, n=int(m), c=int(s), pass_at_k=of_kind[j][0], pass_hat_k=of_kind[j][1]
            )
            for name, m, s, j in zip(
                np.asarray(trials.tasks).tolist(), n, c, kind.ravel().tolist(), strict=True
            )
            if each_task
        ),
    )


def _moment(a: FloatArray, b: FloatArray, k: int) -> FloatArray:
    """E[p^k] of Beta(a, b): B(a + k, b) / B(a, b), as a product that does not cancel."""
    found = np.ones(a.shape)
    for i in range(k):
        found *= (a + i) / (a + b + i)
    return found


def _posterior(kinds: FloatArray, times: FloatArray) -> _Grid:
    """Sum the posterior over m and log s, and close in on the part that has mass."""
    mean, size = (0.0, 1.0), (float(np.log(SIZES[0])), float(np.log(SIZES[1])))
    for _ in range(MOST_ZOOMS):
        m, log_s = _middles(*mean, GRID_MEAN), _middles(*size, GRID_SIZE)
        a = (m[:, None] * np.exp(log_s)).ravel()
        b = ((1 - m)[:, None] * np.exp(log_s)).ravel()
        density = -special.betaln(a, b) * times.sum()
        for (n, c), count in zip(kinds.tolist(), times.tolist(), strict=True):
            density += count * special.betaln(a + c, b + n - c)
        density -= density.max()
        seen = (density > -NEGLIGIBLE).reshape(m.size, log_s.size)
        closer_mean = _around(m, seen.any(axis=1), mean)
        closer_size = _around(log_s, seen.any(axis=0), size)
        if _length(closer_mean) > 0.6 * _length(mean) and _length(closer_size) > 0.6 * _length(
            size
        ):
            break
        mean, size = closer_mean, closer_size
    weight = np.exp(density)
    return _Grid(a=a, b=b, weight=weight / weight.sum())


def _middles(low: float, high: float, cells: int) -> FloatArray:
    middles: FloatArray = low + (high - low) * (np.arange(cells) + 0.5) / cells
    return middles


def _around(
    points: FloatArray, seen: FloatArray, bounds: tuple[float, float]
) -> tuple[float, float]:
    """Return the seen points with one cell more on either side, within the bounds."""
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
    """Return posterior mean and quantiles of a figure that has one value a cell."""
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
    grid: _Grid, n: int, c: int, k: int, confidence_level: float
) -> tuple[Estimate, Estimate]:
    """Return pass@k and pass^k of a task with these counts.

    Its p is a mixture of Beta(a + c, b + n - c) over the grid; the interval is read from evenly
    spread points of the mixture (golden section in p, even steps in the cells).
    """
    a, b = grid.a + c, grid.b + n - c
    order = np.argsort(grid.a / (grid.a + grid.b), kind="stable")
    even = (np.arange(MIXTURE) + 0.5) / MIXTURE
    cells = order[np.searchsorted(np.cumsum(grid.weight[order]), even).clip(max=order.size - 1)]
    within = (np.arange(MIXTURE) * (np.sqrt(5) - 1) / 2 + 0.5) % 1
    p = special.betaincinv(a[cells], b[cells], within)
    tail = (1 - confidence_level) / 2
    low, high = np.quantile(p, [tail, 1 - tail]).tolist()
    at, hat = (
        Estimate(
            value=value,
            interval=limits,
            n=n,
            method=f"hierarchy of Beta tasks, {SHRUNK}",
            confidence_level=confidence_level,
            status=f"provisional: {SHRUNK}",
        )
        for value, limits in (
            (
                float(grid.weight @ (1 - _moment(b, a, k))),
                (1 - (1 - low) ** k, 1 - (1 - high) ** k),
            ),
            (float(grid.weight @ _moment(a, b, k)), (low**k, high**k)),
        )
    )
    return at, hat


def _check_level(confidence_level: float) -> None:
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}")
