"""A rate against its baseline: paired by task where the tasks are the same, else Welch's t."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from calibration.estimates import OK, Estimate, not_estimable

FloatArray = NDArray[np.float64]

MINIMUM_UNITS = 5
NO_VARIANCE = 1e-20


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A rate now less that of the baseline, in [-1, 1].

    Parameters
    ----------
    estimate : Estimate
        The difference, as a fraction; n counts tasks (or runs when none repeats).
    df : float
        Degrees of freedom; 0 where all tasks changed alike and the bound is exact.
    paired : bool
        Whether the same tasks were compared.
    note : str
        What a reader must know: tasks left out, weights restated.
    """

    estimate: Estimate
    df: float = 0.0
    paired: bool = False
    note: str = ""

    def lower(self, confidence_level: float) -> float | None:
        """Return the one-sided lower limit, None without an interval."""
        value, se = self.estimate.value, self.estimate.se
        if value is None or self.estimate.interval is None:
            return None
        if not se:
            share = 1 - float((1 - confidence_level) ** (1 / self.estimate.n))
            return value * (1 - share) - share
        return max(-1.0, value - float(stats.t.ppf(confidence_level, self.df)) * se)

    def p_below(self, bound: float) -> float | None:
        """Return the one-sided p-value of "the change is not below `bound`"."""
        value, se = self.estimate.value, self.estimate.se
        if value is None or self.estimate.interval is None:
            return None
        if not se:
            if value >= bound:
                return 1.0
            return float((1 - (bound - value) / (1 - value)) ** self.estimate.n)
        return float(stats.t.cdf((value - bound) / se, self.df))


def paired_change(
    now: tuple[FloatArray, FloatArray],
    before: tuple[FloatArray, FloatArray],
    *,
    confidence_level: float = 0.95,
    note: str = "",
) -> Change:
    """Estimate the change of a ratio of sums over the same tasks.

    Tasks are independent; the runs of a task may depend on each other, and the two runs of it too.

    Parameters
    ----------
    now, before : tuple of two float arrays, shape (n_tasks,)
        Numerator and denominator of every task, in the same order.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.
    note : str
        Kept in the result.

    Returns
    -------
    Change
        Linearised, t with tasks - 1 df; ``not_estimable`` below 5 tasks. Where all tasks changed
        alike, the exact bound on the share that may differ.

    References
    ----------
    Cochran (1977), "Sampling techniques", section 6.4. ISBN 978-0-471-16240-7

    Examples
    --------
    Six tasks of two trials, one pass fewer in three of them: 3/12.

    >>> two = np.full(6, 2.0)
    >>> paired_change((np.array([1.0, 1, 1, 2, 2, 2]), two), (two, two)).estimate.value
    -0.25
    """
    tasks = now[0].size
    method = "difference paired by task, t"
    if tasks == 0:
        return Change(estimate=not_estimable("no task in common", method=method), note=note)
    value, influence = 0.0, np.zeros(tasks)
    for sign, (tops, bottoms) in ((1, now), (-1, before)):
        total = bottoms.sum()
        rate = tops.sum() / total
        value += sign * float(rate)
        influence += sign * (tops - rate * bottoms) / total
    variance = tasks / max(1, tasks - 1) * float(influence @ influence)
    return _change(value, variance, tasks - 1, tasks, method, confidence_level, True, note)


def unpaired_change(
    now: Estimate, before: Estimate, *, confidence_level: float = 0.95, note: str = ""
) -> Change:
    """Estimate the change between two independent samples from their estimates alone.

    Parameters
    ----------
    now, before : Estimate
        Each with its standard error; one without variation enters with that of its exact bound.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.
    note : str
        Kept in the result.

    Returns
    -------
    Change
        Welch's t; ``not_estimable`` when a sample has no interval.

    References
    ----------
    Welch (1947), Biometrika 34. https://doi.org/10.1093/biomet/34.1-2.28

    Examples
    --------
    >>> def of(value):
    ...     return Estimate(value=value, interval=(0, 1), n=101, method="", se=0.03)
    >>> found = unpaired_change(of(0.7), of(0.8))
    >>> found.estimate.value, found.estimate.se, found.df
    (-0.1, 0.042426, 200.0)
    """
    method = "difference of two samples, Welch's t"
    if now.value is None or before.value is None:
        why = now.status if now.value is None else before.status
        why = f"one of the two is {why.replace('_', ' ', 1)}"
        return Change(estimate=not_estimable(why, method=method), note=note)
    value, n = now.value - before.value, min(now.n, before.n)
    errors = [_standard_error(estimate) for estimate in (now, before)]
    if None in errors:
        estimate = Estimate(
            value=value, interval=None, n=n, method=method, confidence_level=confidence_level,
            status="not_estimable: one of the two has no interval; add tasks",
        )  # fmt: skip
        return Change(estimate=estimate, note=note)
    parts = [(error or 0.0) ** 2 for error in errors]
    variance = sum(parts)
    spread = sum(part**2 / max(1, e.n - 1) for part, e in zip(parts, (now, before), strict=True))
    # A saved result may have an interval without length.
    df = variance**2 / spread if variance >= NO_VARIANCE else 0.0
    return _change(value, variance, df, n, method, confidence_level, False, note)


def _standard_error(estimate: Estimate) -> float | None:
    if estimate.se:
        return estimate.se
    if estimate.interval is None or estimate.value is None:
        return None
    reach = max(estimate.interval[1] - estimate.value, estimate.value - estimate.interval[0])
    return reach / float(stats.norm.ppf((1 + estimate.confidence_level) / 2))


def _change(
    value: float,
    variance: float,
    df: float,
    n: int,
    method: str,
    confidence_level: float,
    paired: bool,
    note: str,
) -> Change:
    status, se = OK, None
    interval: tuple[float, float] | None = None
    if n < MINIMUM_UNITS:
        status = f"not_estimable: no interval from {n} tasks, at least {MINIMUM_UNITS} are needed"
    elif variance < NO_VARIANCE:
        status, method, df = "no variation seen", f"exact bound over {n} tasks", 0.0
        share = 1 - ((1 - confidence_level) / 2) ** (1 / n)
        interval = value * (1 - share) - share, value * (1 - share) + share
    else:
        se = float(np.sqrt(variance))
        reach = float(stats.t.ppf((1 + confidence_level) / 2, df)) * se
        interval = max(-1.0, value - reach), min(1.0, value + reach)
    return Change(
        estimate=Estimate(
            value=value, interval=interval, n=n, method=method, se=se, status=status,
            confidence_level=confidence_level,
        ),
        df=df,
        paired=paired,
        note=note,
    )  # fmt: skip
