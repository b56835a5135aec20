"""The rate week by week: each with its interval, the rolling mean, and weeks that stand out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from calibration.estimates import OK, Estimate, not_estimable
from calibration.metrics.anomalies import (
    Expectation,
    expectation,
    false_alarm_rate,
    weeks_before,
)
from calibration.metrics.arrays import FloatArray
from calibration.metrics.counts import RunCounts
from calibration.metrics.laws import normal_chance, t_quantile
from calibration.metrics.resampling import BOOTSTRAP_UNITS, MINIMUM_UNITS, NO_VARIATION, Interval
from calibration.metrics.units import TASKS
from calibration.metrics.week_draws import WeekDraws, draw_weeks

ROLLING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """One ISO week.

    Parameters
    ----------
    week : str
        For instance ``"2026-W07"``, Monday to Sunday in UTC.
    n : int
        Runs.
    rate : Estimate
        The rate of this week.
    rolling : Estimate
        Mean of the weekly values of this week and the three before it.
    expected : Expectation or None
        What the eight weeks before lead one to expect; None with fewer than six of them.
    """

    week: str
    n: int
    rate: Estimate
    rolling: Estimate
    expected: Expectation | None

    @property
    def anomaly(self) -> bool:
        """Whether the week lies outside what the weeks before lead one to expect."""
        return self.expected is not None and self.expected.anomaly


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklySeries:
    """A rate over time.

    Parameters
    ----------
    weeks : tuple of Week
        Every week from the first with runs to the last, those without runs too.
    n_without_week : int
        Runs that have no time, and so are not in it.
    false_alarm_rate : float or None
        Share of the judged weeks that the rule would call anomalies if nothing changed, by
        simulation with the standard errors of this series; None if no week could be judged.
    pooled : bool
        Whether the rolling mean weighs weeks by their runs.
    """

    weeks: tuple[Week, ...]
    n_without_week: int
    false_alarm_rate: float | None
    pooled: bool


def weekly_series(
    counts: RunCounts,
    *,
    rng: np.random.Generator,
    rate: str = "score",
    pooled: bool = False,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    interval: Interval = "percentile",
) -> WeeklySeries:
    """Estimate the Agent Success Rate of every week, its rolling mean, and which weeks stand out.

    Runs are independent, or tasks are: a task that runs in several weeks is resampled with all of
    them, so the rolling mean knows that its weeks are related.

    Parameters
    ----------
    counts : RunCounts
        Counted by ``"week"``.
    rng : numpy.random.Generator
        Source of the resamples and of the simulated false alarms.
    rate : str, default "score"
        Or ``"gross"``, or ``"share:complete"`` and the other classes.
    pooled : bool, default False
        Weigh the weeks of a rolling mean by their runs, so that a busy week counts more.
    n_resamples, confidence_level, interval
        As in `agent_success_rate`.

    Returns
    -------
    WeeklySeries
        Oldest week first; empty if no run has a week.

    Raises
    ------
    ValueError
        If the runs were not counted by week, or a week is no ISO week.

    Examples
    --------
    >>> from calibration.metrics.counting import count_runs
    >>> counts = count_runs([0, 0, 4], by={"week": ["2026-W01", "2026-W01", "2026-W02"]})
    >>> [(w.week, w.rate.value) for w in weekly_series(counts, rng=np.random.default_rng(1)).weeks]
    [('2026-W01', 1.0), ('2026-W02', 0.0)]
    """
    labels = counts.labels("week")
    runs = counts.runs * counts.like
    without = int(runs[labels.codes < 0].sum())
    seen = labels.seen
    if not seen:
        return WeeklySeries(weeks=(), n_without_week=without, false_alarm_rate=None, pooled=pooled)
    names = calendar(seen[0], seen[-1])
    drawn = draw_weeks(
        counts,
        rng=rng,
        rate=rate,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        interval=interval,
    )
    place = [seen.index(name) if name in seen else None for name in names]
    errors = np.array([np.nan if i is None else drawn.errors[i] for i in place])
    values = np.array([np.nan if i is None else drawn.values[i] for i in place])
    n_runs = np.bincount(labels.codes[labels.codes >= 0], weights=runs[labels.codes >= 0])
    sizes = {name: int(n_runs[labels.names.index(name)]) for name in seen}
    empty = not_estimable(
        "no runs in this week", method="bootstrap", confidence_level=confidence_level
    )
    weeks = tuple(
        Week(
            week=name,
            n=sizes.get(name, 0),
            rate=empty if i is None else drawn.estimates[i],
            rolling=_rolling(drawn, names, place, at, pooled),
            expected=_expected(values, errors, at),
        )
        for at, (name, i) in enumerate(zip(names, place, strict=True))
    )
    return WeeklySeries(
        weeks=weeks,
        n_without_week=without,
        false_alarm_rate=false_alarm_rate(errors, rng=rng),
        pooled=pooled,
    )


def calendar(first: str, last: str) -> tuple[str, ...]:
    """Return the ISO weeks from one to another.

    Raises
    ------
    ValueError
        If one of them is no ISO week.

    Examples
    --------
    >>> calendar("2026-W52", "2027-W01")
    ('2026-W52', '2026-W53', '2027-W01')
    """
    try:
        monday, end = (date.fromisoformat(f"{week}-1") for week in (first, last))
    except ValueError as error:
        raise ValueError(
            f"weeks must be ISO weeks like '2026-W07', got {first!r} to {last!r}"
        ) from error
    weeks = []
    while monday <= end:
        year, week, _ = monday.isocalendar()
        weeks.append(f"{year}-W{week:02d}")
        monday += timedelta(weeks=1)
    return tuple(weeks)


def _expected(values: FloatArray, errors: FloatArray, at: int) -> Expectation | None:
    if not np.isfinite(errors[at]):
        return None
    before = weeks_before(np.isfinite(errors), at)
    return expectation(values[before], errors[before], float(values[at]), float(errors[at]))


def _rolling(
    drawn: WeekDraws,
    names: Sequence[str],
    place: Sequence[int | None],
    at: int,
    pooled: bool,
) -> Estimate:
    window = range(at - ROLLING + 1, at + 1)
    inside = [i for i in (place[k] for k in window if k >= 0) if i is not None]
    kind = "runs of 4 weeks pooled" if pooled else "mean of 4 weeks"
    level = drawn.confidence_level
    if len(inside) < ROLLING:
        empty = [names[k] for k in window if k >= 0 and place[k] is None]
        lack = f"{empty[-1]} has none" if empty else f"there are {len(inside)} so far"
        why = f"a rolling mean needs {ROLLING} weeks with runs, {lack}"
        return not_estimable(why, method=kind, confidence_level=level)
    weights = drawn.sizes[inside] if pooled else np.ones(len(inside))
    weights = weights / weights.sum()
    value = float(weights @ drawn.values[inside])
    fewest = int(drawn.entering[inside].min())
    n = int(drawn.entering[inside].sum())
    if fewest < MINIMUM_UNITS:
        why = f"no interval: a week has {fewest} {drawn.noun}, at least {MINIMUM_UNITS} are needed"
        return Estimate(
            value=value,
            interval=None,
            n=n,
            method=kind,
            confidence_level=level,
            status=f"not_estimable: {why}",
        )
    variance = float(weights @ drawn.covariance[np.ix_(inside, inside)] @ weights)
    se = float(np.sqrt(variance))
    draws = None if drawn.draws is None else drawn.draws[:, inside] @ weights
    steady = any(drawn.estimates[i].status == NO_VARIATION for i in inside)
    if draws is None or steady or fewest < BOOTSTRAP_UNITS or np.isnan(draws).any():
        parts = (weights * drawn.errors[inside]) ** 2
        freedom = parts.sum() ** 2 / (parts**2 / (drawn.entering[inside] - 1)).sum()
        reach = t_quantile((1 + level) / 2, freedom) * se
        limits, method = (max(0.0, value - reach), min(1.0, value + reach)), f"{kind}, t"
    else:
        tail = (1 - level) / 2
        if drawn.noun == TASKS:
            # As in `Resampled.shortness`; the same tasks may stand behind all four weeks.
            wider = float(np.sqrt(fewest / (fewest - 1))) * t_quantile(tail, fewest - 1)
            tail = normal_chance(wider)
        low, high = np.quantile(draws, [tail, 1 - tail])
        limits, method = (float(low), float(high)), f"{kind}, {drawn.method}"
    return Estimate(
        value=value, interval=limits, n=n, method=method, confidence_level=level, status=OK, se=se
    )
