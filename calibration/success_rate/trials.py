"""Repeated trials beyond pass@k: G-Pass@k, retries, steps and lengths of tasks, plans of trials.

Per-task counts are `n` trials with `c` passes, as in `pass_at_k`; `k` trials are taken together.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
import pandas as pd
from scipy import special

from calibration.statistics.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
)
from calibration.statistics.intervals import two_sided_z
from calibration.statistics.means import clustered_share
from calibration.success_rate.pass_at_k import checked_counts, shares_at, shares_hat

# A share of k such as .07 x 100 is a whole number up to its last digits.
SLACK = 1e-9

# The length that chances compound over.
STEPS = "n_steps"

# More tasks than these are no plan.
MOST_TASKS_PLANNED = 10_000_000
NARROWEST = 1e-6
MOST_TRIALS_PLANNED = 1_000


def g_pass_at_k(n: int, c: int, k: int, threshold: float) -> float | None:
    """Estimate the chance that at least `threshold` x k of k trials pass; None where n < k.

    The sum of C(c, j) C(n - c, k - j) / C(n, k) over j from ceil(threshold k), at least 1, to k.
    Unbiased under the assumptions of `pass_at_k`. With threshold 1 it is pass^k, and with 1/k or
    less pass@k. ValueError unless the threshold is in (0, 1], or as `pass_at_k`.

    References
    ----------
    Liu et al. (2024), "Are your LLMs capable of stable reasoning?".
    https://doi.org/10.48550/arXiv.2412.13147

    Examples
    --------
    At least two of three from five trials with three passes: (C(3, 2) C(2, 1) + C(3, 3)) / 10.

    >>> g_pass_at_k(5, 3, 3, 0.5), g_pass_at_k(5, 3, 3, 1.0), g_pass_at_k(2, 2, 3, 0.5)
    (0.7, 0.1, None)
    """
    counts = checked_counts([n], [c], k)
    return None if n < k else float(shares_g(*counts, k, threshold)[0])


def shares_g(n: IntArray, c: IntArray, k: int, threshold: float) -> FloatArray:
    """Return G-Pass@k of each task; every task has k trials or more."""
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be above 0 and at most 1, got {threshold!r}")
    needed = max(1, ceil(threshold * k - SLACK))
    if needed == 1:
        return shares_at(n, c, k)
    if needed == k:
        return shares_hat(n, c, k)
    j = np.arange(needed, k + 1)[:, None]
    possible = (j <= c) & (k - j <= n - c)
    logs = (
        _log_choose(c, np.minimum(j, c))
        + _log_choose(n - c, np.clip(k - j, 0, n - c))
        - _log_choose(n, np.full_like(n, k))
    )
    found: FloatArray = np.where(possible, np.exp(logs), 0.0).sum(axis=0)
    # Too few failures for fewer passes than needed.
    return np.where(k - (n - c) >= needed, 1.0, np.minimum(found, 1.0))


def _log_choose(n: IntArray, k: IntArray) -> FloatArray:
    found: FloatArray = (
        special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Chance of success, and expected number of tries, if a failed task is tried again."""

    retries: int
    success: float
    expected_tries: float


def with_retries(p: float, retries: int) -> Retries:
    """Return success and expected tries of a task that is tried again after each failure.

    At most `retries` times again, each try passing with chance `p`, independently: success
    1 - (1 - p)^(r + 1), and 1 + (1 - p) + ... + (1 - p)^r tries. ValueError if `p` is not in
    [0, 1], or `retries` is negative.

    Examples
    --------
    1 + 1/2 + 1/4 tries:

    >>> with_retries(0.5, 2)
    Retries(retries=2, success=0.875, expected_tries=1.75)
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p must be in [0, 1], got {p!r}")
    if retries < 0:
        raise ValueError(f"retries must be 0 or more, got {retries!r}")
    tries = sum((1 - p) ** i for i in range(retries + 1))
    return Retries(retries=retries, success=1 - (1 - p) ** (retries + 1), expected_tries=tries)


def tries_of_tasks(n: IntArray, c: IntArray, retries: int) -> FloatArray:
    """Return the expected tries of each task with `retries` trials or more, unbiased.

    1 + (1 - pass@1) + ... + (1 - pass@r).

    Examples
    --------
    Two of four passed: 1 + 2/4 + (2 x 1)/(4 x 3).

    >>> tries_of_tasks(np.array([4]), np.array([2]), 2).tolist()
    [1.66667]
    """
    found = np.ones(n.shape)
    for i in range(1, retries + 1):
        found += 1 - shares_at(n, c, i)
    return found


def step_rate(p: float, steps: int) -> float:
    """Return the chance per step that a task of that many steps implies, p^(1/steps).

    Steps succeed independently with one chance, and the task needs all of them.

    Examples
    --------
    >>> step_rate(0.81, 2)
    0.9
    """
    if not 0 <= p <= 1 or steps < 1:
        raise ValueError(f"p must be in [0, 1] and steps at least 1, got {p!r} and {steps!r}")
    return float(p ** (1 / steps))


def compounded(rate: float, steps: int) -> float:
    """Return the chance that all of some independent steps succeed, rate^steps.

    Examples
    --------
    >>> compounded(0.95, 20)
    0.35849
    """
    if not 0 <= rate <= 1 or steps < 0:
        raise ValueError(f"rate must be in [0, 1] and steps 0 or more, got {rate!r}, {steps!r}")
    return float(rate**steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthBin:
    """The runs of some lengths: the shortest and longest, the mean, and the share that succeeds.

    `compounded` is what the share would be if every step of every run had the same chance.
    """

    low: float
    high: float
    mean: float
    n: int
    success: Estimate
    compounded: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessByLength:
    """Success by bins of equal numbers of runs; `step_rate` is the chance a step that all imply."""

    key: str
    bins: tuple[LengthBin, ...]
    step_rate: float | None = None


def success_by_length(
    key: str,
    sums: pd.DataFrame,
    *,
    each: float = 1.0,
    noun: str = "runs",
    confidence_level: float = 0.95,
) -> SuccessByLength:
    """Estimate the share of successes in each bin of lengths, with the compounding of steps beside.

    The limits are those of `clustered_share`: tasks are independent, their runs need not be. The
    step rate is that of a run of the mean number of steps which succeeds as often as all runs do,
    p^(1 / steps), and a bin's `compounded` is it to the power of its mean number of steps. Longer
    tasks are often harder: neither is a causal effect of length.

    Parameters
    ----------
    sums : pandas.DataFrame
        One row per bin and unit: place (of the bin), unit, stratum, n (runs), of and hits (weights
        of the runs, and of those that succeed), total (sum of lengths), low, high.

    Examples
    --------
    Two runs of one step, both complete, two of three steps, one complete: .75^(1/2) a step.

    >>> sums = pd.DataFrame({"place": [0, 1], "unit": [0, 1], "stratum": 0, "n": 2, "of": 2.0,
    ...     "hits": [2.0, 1.0], "total": [2.0, 6.0], "low": [1.0, 3.0], "high": [1.0, 3.0]})
    >>> found = success_by_length("n_steps", sums)
    >>> found.step_rate, [b.success.value for b in found.bins], [b.compounded for b in found.bins]
    (0.86603, [1.0, 0.5], [0.86603, 0.64952])
    """
    n, of = sums["n"].sum(), sums["of"].sum()
    rate = None
    if key == STEPS and of and sums["total"].sum() >= n:
        rate = step_rate(float(sums["hits"].sum() / of), round(sums["total"].sum() / n))
    bins = []
    for _, rows in sums.groupby("place", sort=True):
        mean = float(rows["total"].sum() / rows["n"].sum())
        bins.append(
            LengthBin(
                low=float(rows["low"].min()),
                high=float(rows["high"].max()),
                mean=mean,
                n=int(rows["n"].sum()),
                success=clustered_share(
                    rows["hits"].to_numpy(np.float64),
                    rows["of"].to_numpy(np.float64),
                    n=int(rows["n"].sum()),
                    stratum=rows["stratum"].to_numpy(np.int64),
                    each=each,
                    noun=noun,
                    confidence_level=confidence_level,
                ),
                compounded=None if rate is None else compounded(rate, round(mean)),
            )
        )
    return SuccessByLength(key=key, bins=tuple(bins), step_rate=rate)


def task_variance(n: int, k: int, *, mean: float, correlation: float) -> float:
    """Return the variance, over random tasks, of the estimate of pass^k from n trials of one task.

    p of a task is Beta with this mean; the correlation is that of two trials of one task, 1 / (1 +
    a + b). With 0 all tasks have one p, with 1 a task passes always or never. k = 1 is pass@1.

    Examples
    --------
    m (1 - m) (rho + (1 - rho) / n):

    >>> task_variance(4, 1, mean=0.5, correlation=0.2)
    0.1
    """
    if not (0 <= mean <= 1 and 0 <= correlation <= 1):
        raise ValueError(
            f"mean and correlation must be in [0, 1], got {mean!r} and {correlation!r}"
        )
    if not 1 <= k <= n:
        raise ValueError(f"k must be from 1 to n = {n}, got {k!r}")
    c = np.arange(n + 1)
    chance = _chances(n, mean, correlation)
    of_count = shares_hat(np.full(n + 1, n), c, k)
    centre = float(chance @ of_count)
    return float(chance @ (of_count - centre) ** 2)


def _chances(n: int, mean: float, correlation: float) -> FloatArray:
    """Return the chance of each number of passes: beta-binomial, and its two limits."""
    c = np.arange(n + 1.0)
    found = np.zeros(n + 1)
    if correlation == 1 or mean in (0.0, 1.0):
        found[[0, n]] = 1 - mean, mean
        return found
    logs = _log_choose(np.full(n + 1, n), np.arange(n + 1))
    if correlation == 0:
        return np.asarray(np.exp(logs + c * np.log(mean) + (n - c) * np.log1p(-mean)))
    size = 1 / correlation - 1
    a, b = mean * size, (1 - mean) * size
    return np.asarray(np.exp(logs + special.betaln(a + c, b + n - c) - special.betaln(a, b)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsCombination:
    """A number of tasks x trials, and the half-width that pass^k is expected to have.

    `enough` : whether that is the wanted one or less. `n_tasks` None: more than 10 million.
    """

    n_trials: int
    n_tasks: int | None
    n_runs: int | None
    half_width: float | None
    enough: bool


def tasks_for_half_width(
    half_width: float,
    n_trials: Sequence[int],
    *,
    k: int = 1,
    mean: float,
    correlation: float,
    n_tasks: int | None = None,
    confidence_level: float = 0.95,
) -> tuple[TrialsCombination, ...]:
    """Return how many tasks each number of trials needs for a half-width of pass^k.

    z^2 V / w^2 tasks, with V of `task_variance` and the normal z: tasks are a random sample. With
    `n_tasks` the half-width that so many give instead. Trials cannot replace tasks: V stays above
    its part between tasks. ValueError if `half_width` is not in [1e-6, 1), or as `task_variance`.

    Examples
    --------
    Tasks alike, one trial, p = .5: 1.96^2 x .25 / .05^2 = 384.1.

    >>> tasks_for_half_width(0.05, [1], mean=0.5, correlation=0.0)[0].n_tasks
    385
    """
    check_confidence_level(confidence_level)
    if not NARROWEST <= half_width < 1:
        raise ValueError(f"half_width must be in [{NARROWEST:g}, 1), got {half_width!r}")
    z = two_sided_z(confidence_level)
    return tuple(_combinations(half_width, n_trials, k, mean, correlation, n_tasks, z))


def _combinations(
    wanted: float,
    n_trials: Sequence[int],
    k: int,
    mean: float,
    correlation: float,
    n_tasks: int | None,
    z: float,
) -> Iterator[TrialsCombination]:
    for n in n_trials:
        variance = task_variance(n, k, mean=mean, correlation=correlation)
        needed = max(1, ceil(z**2 * variance / wanted**2 - SLACK)) if n_tasks is None else n_tasks
        possible = needed <= MOST_TASKS_PLANNED
        reached = z * sqrt(variance / needed)
        yield TrialsCombination(
            n_trials=n,
            n_tasks=needed if possible else None,
            n_runs=n * needed if possible else None,
            half_width=reached if possible else None,
            enough=possible and reached <= wanted + SLACK,
        )


def trials_for_tasks(
    half_width: float,
    n_tasks: int,
    *,
    k: int = 1,
    mean: float,
    correlation: float,
    confidence_level: float = 0.95,
) -> int | None:
    """Return the fewest trials per task with which so many tasks reach a half-width of pass^k.

    None if 1,000 trials do not suffice: then more tasks are needed. Errors as
    `tasks_for_half_width`.

    Examples
    --------
    100 tasks alike are 4 x 100 trials, of which 385 are needed; tasks that pass always or never
    need 385 tasks, whatever their trials:

    >>> trials_for_tasks(0.05, 100, mean=0.5, correlation=0.0)
    4
    >>> trials_for_tasks(0.05, 100, mean=0.5, correlation=1.0)
    """
    numbers = range(k, MOST_TRIALS_PLANNED + 1)

    def enough(n: int) -> bool:
        one = tasks_for_half_width(
            half_width, [n], k=k, mean=mean, correlation=correlation, n_tasks=n_tasks,
            confidence_level=confidence_level,
        )[0]  # fmt: skip
        return one.enough

    place = bisect_left(numbers, True, key=enough)
    return numbers[place] if place < len(numbers) else None
