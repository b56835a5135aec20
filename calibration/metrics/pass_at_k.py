"""Repeated trials of a task: one success in k tries (pass@k), and k successes in k (pass^k)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calibration.estimates import Estimate, not_estimable
from calibration.metrics.arrays import FloatArray, IntArray
from calibration.metrics.ratios import ratio_estimates
from calibration.metrics.resampling import MINIMUM_UNITS, NO_VARIATION
from calibration.metrics.trials import (
    Trials,
    checked_counts,
    count_trials,
    pass_at_k,
    pass_hat_k,
    passed,
    shares_at,
    shares_hat,
)

__all__ = [
    "PassAtK",
    "Trials",
    "advice",
    "band",
    "count_trials",
    "extrapolated",
    "pass_at_k",
    "pass_curve",
    "pass_hat_k",
    "pass_over_tasks",
    "passed",
]

# Below this many tasks the resamples see too few kinds of task; the hierarchy does not.
ADVISE_BAYESIAN = 30

Band = Literal["reliable", "inconsistent", "needs improvement", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassAtK:
    """pass@k and pass^k over tasks, for one k.

    Parameters
    ----------
    k : int
        Trials that are looked at together.
    pass_at_k, pass_hat_k : Estimate
        Mean over tasks of the chance that at least one of k trials passes, and that all do.
    n_tasks : int
        Tasks that enter.
    n_too_few : int
        Tasks left out because they have fewer than k trials.
    advice : str
        What to do about too few tasks; empty when there are enough.
    """

    k: int
    pass_at_k: Estimate
    pass_hat_k: Estimate
    n_tasks: int
    n_too_few: int
    advice: str

    @property
    def band(self) -> str | None:
        """The band of both values with its k, None where there is none."""
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

    Tasks are independent, and the trials of a task exchangeable. Every task weighs the same,
    however many trials it has; tasks with fewer than k trials are left out and counted.

    Parameters
    ----------
    trials : Trials
        From `count_trials`.
    k : int
        Trials looked at together, at least 1.
    rng : numpy.random.Generator
        Source of the resamples.
    weights : float array, shape (n_tasks,), optional
        Inverse inclusion probabilities of the tasks.
    like : int array, shape (n_tasks,), optional
        How many tasks each row stands for; 1 when None.
    n_resamples : int, default 1000
        Resamples of whole tasks.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    PassAtK
        With 20 or more tasks the percentile bootstrap over tasks, with 5 to 19 t, with fewer the
        value alone (``not_estimable``). Where every task gave 0, or every task 1, the status is
        ``one-sided`` and the interval ends in the exact bound. Below 30 tasks the advice is
        `calibration.metrics.pass_posterior.pass_of_tasks`.

    Raises
    ------
    ValueError
        If `k` is below 1, counts are impossible, or as `ratio_estimates`.

    References
    ----------
    Efron (1979), Ann. Statist. 7. https://doi.org/10.1214/aos/1176344552

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
        why = f"no task has {k} trials: run each task {k} times or more"
        nothing = not_estimable(why, method="mean over tasks", confidence_level=confidence_level)
        return PassAtK(
            k=k, pass_at_k=nothing, pass_hat_k=nothing, n_tasks=0, n_too_few=too_few, advice=""
        )
    of_task = np.column_stack(
        [shares_at(n[enough], c[enough], k), shares_hat(n[enough], c[enough], k)]
    )
    estimates = ratio_estimates(
        of_task,
        np.ones_like(of_task),
        weights=None if weights is None else np.asarray(weights, dtype=np.float64)[enough],
        like=like[enough],
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
    )
    at, hat = (_of_tasks(estimate, entering) for estimate in estimates)
    return PassAtK(
        k=k,
        pass_at_k=at,
        pass_hat_k=hat,
        n_tasks=entering,
        n_too_few=too_few,
        advice=advice(entering),
    )


def pass_curve(
    trials: Trials,
    ks: Sequence[int],
    *,
    rng: np.random.Generator,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> tuple[PassAtK, ...]:
    """Estimate pass@k and pass^k for several k, over the tasks that have the largest k trials.

    One set of tasks for all k: otherwise the curve would also show which tasks drop out.

    Raises
    ------
    ValueError
        As `pass_over_tasks`, or if `ks` is empty.

    Examples
    --------
    >>> two = count_trials([1] * 3 + [2], [True, True, False, False])
    >>> [point.n_tasks for point in pass_curve(two, [1, 3], rng=np.random.default_rng(1))]
    [1, 1]
    """
    if not ks:
        raise ValueError("ks must not be empty")
    enough = trials.n >= max(ks)
    kept = Trials(tasks=trials.tasks[enough], n=trials.n[enough], c=trials.c[enough])
    left_out = int((~enough).sum())
    points = (
        pass_over_tasks(
            kept, k, rng=rng, n_resamples=n_resamples, confidence_level=confidence_level
        )
        for k in ks
    )
    return tuple(replace(point, n_too_few=left_out) for point in points)


def extrapolated(
    trials: Trials,
    k: int,
    *,
    rng: np.random.Generator,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> PassAtK:
    """Extrapolate to k trials as if they were independent: mean of 1 - (1 - c/n)^k and (c/n)^k.

    For k above the number of trials there is no unbiased estimate. This one takes c/n for the
    chance itself: with few trials pass^k comes out too high and pass@k too low. Every estimate is
    marked ``provisional``.

    Raises
    ------
    ValueError
        As `pass_over_tasks`.

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
    of_task = np.column_stack([1 - (1 - share) ** k, share**k])
    estimates = ratio_estimates(
        of_task,
        np.ones_like(of_task),
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
    )
    at, hat = (_as_if_independent(_of_tasks(e, n.size), k) for e in estimates)
    return PassAtK(
        k=k, pass_at_k=at, pass_hat_k=hat, n_tasks=n.size, n_too_few=0, advice=advice(n.size)
    )


def advice(n_tasks: int) -> str:
    """Return what to do about this many tasks, empty when there are enough.

    Examples
    --------
    >>> advice(30)
    ''
    """
    if n_tasks >= ADVISE_BAYESIAN:
        return ""
    return (
        f"{n_tasks} tasks are few: below {ADVISE_BAYESIAN} use the Bayesian mode, which learns "
        "from all tasks how much tasks differ"
    )


def band(at: float, hat: float) -> Band:
    """Return what pass@k and pass^k of one k say together.

    Examples
    --------
    >>> band(0.99, 0.8), band(0.99, 0.3), band(0.6, 0.1), band(0.97, 0.6)
    ('reliable', 'inconsistent', 'needs improvement', 'mixed')
    """
    if at > 0.95 and hat > 0.70:
        return "reliable"
    if at > 0.95 and hat < 0.50:
        return "inconsistent"
    return "needs improvement" if at < 0.70 else "mixed"


def _of_tasks(estimate: Estimate, n_tasks: int) -> Estimate:
    """Say tasks where the resampling says runs, and mark what is bounded on one side only."""
    status = estimate.status.replace(" runs", " tasks")
    method = estimate.method.replace(" runs", " tasks").replace("resamples", "resamples of tasks")
    if estimate.status == NO_VARIATION and estimate.value in (0.0, 1.0):
        status = f"one-sided: all {n_tasks} tasks agree"
    elif n_tasks < MINIMUM_UNITS:
        status = f"{status}; add tasks"
    return replace(estimate, status=status, method=f"mean over tasks, {method}")


def _as_if_independent(estimate: Estimate, k: int) -> Estimate:
    how = f"extrapolated to k = {k} as if trials were independent"
    status = f"provisional: {how}"
    if estimate.status.startswith("not_estimable"):
        status = estimate.status
    return replace(estimate, status=status, method=f"independent trials, {estimate.method}")
