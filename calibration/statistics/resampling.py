"""The bootstrap over tasks: any number that can be recomputed from weighted tasks, with its limits.

A statistic is a function of weights: given rows of weights, one column per unit, it returns its
value on each row, NaN where it is undefined. A row of ones is the data; a row of counts is a
resample; a row with one zero leaves a task out. So a number is defined once, and whatever is
resampled together stays paired.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.statistics.estimate import (
    OK,
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    validated_weights,
)
from calibration.statistics.intervals import (
    CELLS,
    MINIMUM_UNITS,
    NO_SPREAD,
    NO_VARIATION,
    expanded_tail,
    jackknife_se,
    t_interval,
    unanimous_interval,
)

BOOTSTRAP_TASKS = 20

# Above this many tasks, random groups of tasks are drawn: the standard error has an error of 1 %.
MOST_UNITS = 5_000

# Below this many tasks t covers .87 instead of .95 where most tasks are alike.
FEW_TASKS = 10
TOO_SHORT = f"provisional: with fewer than {FEW_TASKS} tasks the limits are too short; add tasks"

SOME_UNDEFINED = "no interval: undefined in some resamples; add tasks"

GAFFKE = "Gaffke's limits over tasks"

Statistic = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEstimate(Estimate):
    """An estimate over tasks: `n` is the number of tasks that enter it, or its smallest part."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskResamples:
    """Resamples of whole tasks, shared by every number on the same tasks.

    `unit` : unit of each task, shape (n_tasks,): itself, or one of 5,000 random groups
    `weights` : how often each resample holds each unit, shape (n_resamples, n_units)
    """

    unit: IntArray
    weights: FloatArray
    confidence_level: float

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.weights.shape[1])

    def sums(self, columns: Sequence[FloatArray]) -> FloatArray:
        """Return the sum of each column of tasks in each unit, shape (n_units, n_columns)."""
        added = [np.bincount(self.unit, weights=c, minlength=self.n_units) for c in columns]
        return np.stack(added, axis=1).astype(np.float64)

    def mean_of(self, values: FloatArray) -> Statistic:
        """Return the mean over tasks as a statistic; a task with NaN does not enter.

        Examples
        --------
        The second row holds the last task twice and the first not at all:

        >>> drawn = resample_tasks(3, rng=np.random.default_rng(1), n_resamples=1)
        >>> mean = drawn.mean_of(np.array([0.0, 1.0, 0.5]))
        >>> mean(np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]]))
        array([0.5       , 0.66666667])
        """
        there = np.isfinite(values)
        sums = self.sums([np.where(there, values, 0.0), there.astype(np.float64)])
        return lambda weights: ratio(*(weights @ sums).T)

    def mean(self, values: FloatArray, *, nothing: str, lowest: float = 0.0) -> TaskEstimate:
        """Estimate the mean over tasks of values in [`lowest`, 1], NaN where a task has none."""
        entering = np.isfinite(values)
        return self.estimate(self.mean_of(values), entering, nothing=nothing, lowest=lowest)

    def estimate(
        self,
        statistic: Statistic,
        entering: BoolArray,
        *,
        nothing: str,
        lowest: float = 0.0,
        highest: float = 1.0,
        fewest: int | None = None,
        status: str = OK,
    ) -> TaskEstimate:
        """Estimate a statistic over tasks like these.

        From 20 tasks on, the percentile bootstrap, whose tails are widened for the number of tasks
        (draws of n tasks have (n - 1)/n of the variance, and the tail of a normal instead of t).
        From 5 to 19 the delete-one jackknife and t, `provisional` below 10. With fewer the value
        alone. Where no resample differs, the exact bound on the share of tasks that may differ.

        Parameters
        ----------
        statistic : callable
            Value on rows of weights, shape (n_rows, n_units).
        entering : bool array, shape (n_tasks,)
            Tasks that contribute.
        nothing : str
            Why there is no value where it is undefined, and what would help.
        lowest, highest : float
            Range of the number; value and limits are cut to it.
        fewest : int, optional
            Tasks that enter the smallest of its parts, for a number made of several: its `n`.
        status : str
            Status of a value with an interval.

        References
        ----------
        Hesterberg (2015), "What teachers should know about the bootstrap", Am. Stat. 69.
        https://doi.org/10.1080/00031305.2015.1089789
        Efron (1979), "Bootstrap methods: another look at the jackknife", Ann. Statist. 7.
        https://doi.org/10.1214/aos/1176344552

        Examples
        --------
        s / sqrt(n) of 0, 0, 1, 1, 1 is .2449, and t with 4 degrees of freedom 2.776:

        >>> drawn = resample_tasks(5, rng=np.random.default_rng(1))
        >>> print(drawn.mean(np.array([0.0, 0.0, 1.0, 1.0, 1.0]), nothing="no tasks"))
        0.600 [0.000, 1.000] (95% jackknife over tasks, t, n=5) (provisional: with fewer than 10
        tasks the limits are too short; add tasks)
        """
        entering = np.asarray(entering, dtype=np.bool_)
        n = int(np.count_nonzero(entering)) if fewest is None else fewest
        exact = float(statistic(np.ones((1, self.n_units)))[0]) if entering.any() else np.nan
        if not np.isfinite(exact):
            return self._made(None, None, n, f"not_estimable: {nothing}")
        value = min(highest, max(lowest, exact)) + 0.0  # no negative zero
        if n < MINIMUM_UNITS:
            few = f"no interval from {n} tasks, at least {MINIMUM_UNITS} are needed"
            return self._made(value, None, n, f"not_estimable: {few}")
        if n < BOOTSTRAP_TASKS:
            limits, why = self._jackknife(statistic, entering, exact, n)
            if n < FEW_TASKS and why == status == OK:
                status = TOO_SHORT
        else:
            limits, why = self._percentiles(statistic, n)
        if why == NO_VARIATION:
            limits = self._unanimous(value, n, lowest, highest)
        if limits is not None:
            low, high = (min(highest, max(lowest, end)) for end in limits)
            limits = min(low, value) + 0.0, max(high, value) + 0.0
        return self._made(value, limits, n, status if why == OK else why)

    def _percentiles(self, statistic: Statistic, n: int) -> tuple[tuple[float, float] | None, str]:
        draws = statistic(self.weights)
        if not np.isfinite(draws).all():
            return None, SOME_UNDEFINED
        if np.ptp(draws) < NO_SPREAD:
            return None, NO_VARIATION
        tail = expanded_tail(
            (1 - self.confidence_level) / 2,
            factor=float(np.sqrt(n / (n - 1))),
            freedom=n - 1,
        )
        low, high = np.quantile(draws, [tail, 1 - tail])
        return (float(low), float(high)), OK

    def _jackknife(
        self, statistic: Statistic, entering: BoolArray, exact: float, n: int
    ) -> tuple[tuple[float, float] | None, str]:
        units = np.unique(self.unit[entering])
        left_out = np.empty(units.size)
        block = max(1, CELLS // self.n_units)
        for start in range(0, units.size, block):
            some = units[start : start + block]
            weights = np.ones((some.size, self.n_units))
            weights[np.arange(some.size), some] = 0.0
            left_out[start : start + block] = statistic(weights)
        if not np.isfinite(left_out).all():
            return None, SOME_UNDEFINED
        if np.ptp(left_out) < NO_SPREAD:
            return None, NO_VARIATION
        se = jackknife_se(left_out, np.ones(units.size, dtype=np.int64))
        return t_interval(exact, se, df=n - 1, confidence_level=self.confidence_level), OK

    def _unanimous(
        self, value: float, n: int, lowest: float, highest: float
    ) -> tuple[float, float] | None:
        if not (np.isfinite(lowest) and np.isfinite(highest)):
            return None
        return unanimous_interval(
            value, n, confidence_level=self.confidence_level, lowest=lowest, highest=highest
        )

    def _made(
        self, value: float | None, interval: tuple[float, float] | None, n: int, status: str
    ) -> TaskEstimate:
        if status == NO_VARIATION and interval is not None:
            method = f"exact bound over {n:,} tasks"
        elif n < BOOTSTRAP_TASKS:
            method = "jackknife over tasks, t"
        else:
            method = f"bootstrap over tasks, {len(self.weights):,} resamples"
        return TaskEstimate(
            value=value,
            interval=interval,
            n=n,
            method=method,
            confidence_level=self.confidence_level,
            status=status,
        )


def bounded_mean(
    values: FloatArray,
    *,
    rng: np.random.Generator,
    nothing: str,
    n_draws: int = 10_000,
    confidence_level: float = 0.95,
) -> TaskEstimate:
    """Estimate a mean over tasks of values in [0, 1] most of which are alike, as of rare failures.

    Where few tasks differ from all others, resamples that miss them make the bootstrap too short.
    The limits are those of `gaffke_limits`.

    Parameters
    ----------
    values : float array, shape (n_tasks,)
        NaN where a task has none.
    nothing : str
        Why there is no value without tasks, and what would help.

    Examples
    --------
    Nine of ten; the limits of Clopper and Pearson are .555 and .997:

    >>> tasks = np.repeat([1.0, 0.0], [9, 1])
    >>> print(bounded_mean(tasks, rng=np.random.default_rng(1), nothing="no tasks"))
    0.900 [0.55, 1.00] (95% Gaffke's limits over tasks, n=10)
    """
    kept = values[np.isfinite(values)]
    n = kept.size
    interval = gaffke_limits(kept, rng=rng, n_draws=n_draws, confidence_level=confidence_level)
    return TaskEstimate(
        value=float(kept.mean()) if n else None,
        interval=interval,
        n=n,
        method=GAFFKE,
        confidence_level=confidence_level,
        status=few_tasks(n) if n else f"not_estimable: {nothing}",
    )


def few_tasks(n: int) -> str:
    """Return the status of a mean over so many tasks: whether there are enough for limits.

    >>> few_tasks(4)
    'not_estimable: no interval from 4 tasks, at least 5 are needed; add tasks'
    """
    if n >= MINIMUM_UNITS:
        return OK
    return (
        f"not_estimable: no interval from {n} tasks, at least {MINIMUM_UNITS} are needed; add tasks"
    )


def gaffke_limits(
    values: FloatArray,
    *,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
    like: IntArray | None = None,
    n_draws: int = 10_000,
    confidence_level: float = 0.95,
) -> tuple[float, float] | None:
    """Return Gaffke's limits of the mean over tasks of values in [0, 1]; None below 5 tasks.

    The n tasks and one more have weights from Dirichlet(1, ..., 1), the additional one with the
    value 0 for the lower limit and 1 for the upper. For values 0 and 1 these are the exact limits
    of Clopper and Pearson; for others no distribution is known that they cover too rarely. Tasks
    are independent. With unequal weights they are approximate: the additional task has the weight
    sum w^2 / sum w, one in the effective number of tasks.

    Parameters
    ----------
    values : float array, shape (n_tasks,)
        ValueError unless in [0, 1].
    weights : float array, shape (n_tasks,), optional
        Inverse inclusion probabilities; ValueError unless positive.
    like : int array, shape (n_tasks,), optional
        Number of identical tasks that a row represents; 1 when None.

    References
    ----------
    Gaffke (2005), "Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable", Math. Methods Statist. 14.
    Learned-Miller and Thomas (2019), "A new confidence interval for the mean of a bounded random
    variable". https://doi.org/10.48550/arXiv.1905.06208

    Examples
    --------
    20 tasks alike: .025^(1/20) of their value, and as far from 1.

    >>> gaffke_limits(np.full(20, 0.5), rng=np.random.default_rng(1))
    (0.41579, 0.58421)
    """
    check_confidence_level(confidence_level)
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise ValueError(f"values must be in [0, 1], got {values.min()!r} to {values.max()!r}")
    times = np.ones(values.size, dtype=np.int64) if like is None else like
    weight = validated_weights(weights, values.size)
    if times.sum() < MINIMUM_UNITS:
        return None
    rows, place = np.unique(np.column_stack([values, weight]), axis=0, return_inverse=True)
    points, own = rows.T
    counts = np.bincount(place.ravel(), weights=times)
    whole = float(counts @ own)
    mean, additional = float(counts @ (own * points)) / whole, float(counts @ own**2) / whole
    if np.ptp(points) < NO_SPREAD:
        return unanimous_interval(mean, whole / additional, confidence_level=confidence_level)
    drawn = np.empty((n_draws, 2))
    block = max(1, CELLS // points.size)
    columns = np.column_stack([own * points, own])
    for start in range(0, n_draws, block):
        part = drawn[start : start + block]
        part[:] = rng.standard_gamma(counts, size=(len(part), points.size)) @ columns
    more = additional * rng.standard_exponential(n_draws)
    inside, total = drawn[:, 0], drawn[:, 1] + more
    tail = (1 - confidence_level) / 2
    low = float(np.quantile(inside / total, tail))
    high = float(np.quantile((inside + more) / total, 1 - tail))
    return min(low, mean), min(1.0, max(high, mean))


def ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return above / below, NaN where below is not positive."""
    found: FloatArray = np.full(np.broadcast(above, below).shape, np.nan)
    np.divide(above, below, out=found, where=below > 0)
    return found


def resample_tasks(
    n_tasks: int,
    *,
    rng: np.random.Generator,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> TaskResamples:
    """Draw tasks with replacement, each with all of its runs.

    Above 5,000 tasks the units are 5,000 random groups of tasks: the variance between groups is,
    per task, the variance between tasks.

    ValueError if there is no task or resample, or the level is outside (0, 1).
    """
    check_confidence_level(confidence_level)
    if n_tasks < 1 or n_resamples < 1:
        raise ValueError(
            f"n_tasks and n_resamples must be at least 1, got {n_tasks!r} and {n_resamples!r}"
        )
    n_units = min(n_tasks, MOST_UNITS)
    unit = np.arange(n_tasks) % n_units
    if n_units < n_tasks:
        rng.shuffle(unit)
    weights = np.empty((n_resamples, n_units))
    block = max(1, CELLS // n_units)
    for start in range(0, n_resamples, block):
        rows = min(block, n_resamples - start)
        drawn = rng.integers(0, n_units, size=(rows, n_units)) + np.arange(rows)[:, None] * n_units
        counts = np.bincount(drawn.ravel(), minlength=rows * n_units)
        weights[start : start + rows] = counts.reshape(rows, n_units)
    return TaskResamples(
        unit=unit.astype(np.int64), weights=weights, confidence_level=confidence_level
    )
