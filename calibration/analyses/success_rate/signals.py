"""Signals of operation: what runs say of errors, tools, cost, latency, verdicts, week by week."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from calibration.analyses.success_rate.report import Latency, Signal, VerdictMix, VerdictWeek
from calibration.runs import ProductionCounts
from calibration.runs.signals import LOOP, VERDICTS, SignalSums
from calibration.statistics.estimate import OK, Estimate, FloatArray, not_estimable
from calibration.statistics.means import (
    clustered_mean,
    clustered_share,
    limits_of_bins,
    quantile_of_bins,
)
from calibration.success_rate.trend import mix_shifts

# What each rate is called, and the columns that record it.
RATES: Mapping[str, tuple[str, str]] = {
    "errors": ("runs that ended in an error", "status"),
    "timeouts": ("runs that timed out", "status"),
    "tool_errors": ("tool calls that failed", "tool_calls and tool_errors"),
    "loops": (f"runs with the same call {LOOP} times in a row", "loop or max_repeats"),
    "escalated": ("runs escalated to a person", "escalated"),
    "feedback_given": ("runs with user feedback", "feedback"),
    "feedback": ("user feedback, mean from -1 to 1", "feedback"),
    "feedback_negative": ("feedback below 0", "feedback"),
}

NOT_RECORDED = "not recorded"

ADD = {
    **{key: f"add a column {columns}" for key, (_, columns) in RATES.items()},
    "latency": "add a column latency_s",
    "cost": "add a column cost_usd",
    "verdict": "add a column verdict",
}

LEVELS = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}

MEANS = ("feedback",)


class Amounts:
    """What runs took or cost: the percentiles of the runs that say so.

    A percentile is the smallest value with that share of the runs at or below it.

    Parameters
    ----------
    bins : pandas.DataFrame
        n, low and high by week, workflow and narrow bin, as `Spread.sums`; a bin of one value is
        exact.
    tasks : mapping of str or None to int, or None
        Tasks with runs in each week, and over all under None; None where no task repeats. The
        runs of a task may be as alike as it gets, so only the tasks count.
    """

    def __init__(self, bins: pd.DataFrame, tasks: Mapping[str | None, int] | None) -> None:
        self._tasks = tasks
        self._all = _counts(_merged(bins, ["bin"]))
        self._week, self._workflow = (
            {
                str(name): _counts(part)
                for name, part in _merged(bins, [by, "bin"]).groupby(by, observed=True)
            }
            for by in ("week", "workflow")
        )

    @property
    def weeks(self) -> tuple[str, ...]:
        """The ISO weeks with such runs."""
        return tuple(self._week)

    def percentile(
        self, q: float, week: str | None = None, *, confidence_level: float = 0.95
    ) -> Estimate | None:
        """Return a percentile with the exact limits of its rank; None where no run says more."""
        bins = self._all if week is None else self._week[week]
        n = int(bins[:, 0].sum())
        if not n:
            return None
        effective = n if self._tasks is None else min(n, self._tasks.get(week, n))
        limits = limits_of_bins(bins, q, effective, confidence_level=confidence_level)
        over = f"{effective:,} {'runs' if self._tasks is None else 'tasks'}"
        return Estimate(
            value=quantile_of_bins(bins, q),
            interval=limits,
            n=n,
            method=f"percentile, limits of its rank over {over}",
            confidence_level=confidence_level,
            status=OK if limits else f"provisional: no interval, {over} are too few",
        )

    def point(self, q: float, workflow: str | None = None) -> float | None:
        """Return a percentile over all or of a workflow, without limits."""
        bins = self._all if workflow is None else self._workflow.get(workflow)
        return None if bins is None or not bins.size else quantile_of_bins(bins, q)


def amounts(counts: ProductionCounts) -> tuple[Amounts, Amounts]:
    """Return latency and cost of the runs of a table."""
    tasks = tasks_by_week(counts)
    return Amounts(counts.latency.sums, tasks), Amounts(counts.cost.sums, tasks)


def signals(
    sums: SignalSums | None,
    latency: Amounts,
    cost: Amounts,
    *,
    missing: Mapping[str, str] = ADD,
    confidence_level: float = 0.95,
) -> tuple[Signal, ...]:
    """Return every signal.

    `missing` says of each what would record it, or that nothing does.
    """
    return (
        *_rates(sums, missing, confidence_level),
        *_percentiles("latency", "s", latency, missing, confidence_level),
        *_percentiles("cost", "usd", cost, missing, confidence_level),
    )


def _rates(
    sums: SignalSums | None, missing: Mapping[str, str], confidence_level: float
) -> Iterator[Signal]:
    for key, (name, _) in RATES.items():
        unit = "score" if key in MEANS else "share"
        if sums is None or key not in sums.recorded:
            nothing = not_estimable(
                f"{NOT_RECORDED}: {missing[key]}", method="share", confidence_level=confidence_level
            )
            yield Signal(key=key, name=name, unit=unit, over_all=nothing)
            continue
        table = sums.table
        yield Signal(
            key=key,
            name=name,
            unit=unit,
            over_all=_rate(table, sums, key, confidence_level),
            by_week=tuple(
                (str(week), _rate(rows, sums, key, confidence_level))
                for week, rows in table.groupby("week", observed=True, sort=True)
            ),
        )


def _rate(rows: pd.DataFrame, sums: SignalSums, key: str, confidence_level: float) -> Estimate:
    columns = [key, f"of_{key}", f"n_{key}"]
    by_unit = rows.groupby(["stratum", "unit"], sort=True)[columns].sum()
    estimate = clustered_mean if key in MEANS else clustered_share
    return estimate(
        by_unit[key].to_numpy(dtype=np.float64),
        by_unit[f"of_{key}"].to_numpy(dtype=np.float64),
        n=int(by_unit[f"n_{key}"].sum()),
        stratum=by_unit.index.get_level_values("stratum").to_numpy(dtype=np.int64),
        each=sums.each,
        noun="tasks" if sums.by_task else "runs",
        confidence_level=confidence_level,
    )


def verdict_mix(
    sums: SignalSums | None,
    *,
    missing: Mapping[str, str] = ADD,
    confidence_level: float = 0.95,
) -> VerdictMix:
    """Return the verdicts of each week, and how far they are from those of the weeks before."""
    keys = [f"verdict_{name}" for name in VERDICTS]
    if sums is None or keys[0] not in sums.recorded:
        return VerdictMix(status=f"{NOT_RECORDED}: {missing['verdict']}")
    table = sums.table[sums.table["week"].notna()]
    table = table[table[f"of_{keys[0]}"] > 0]
    if table.empty:
        return VerdictMix(status=f"{NOT_RECORDED}: no run with a verdict says when it was started")
    weeks = sorted(table["week"].astype(str).unique())
    found = mix_shifts(
        table[keys].to_numpy(dtype=np.float64),
        table["unit"].to_numpy(dtype=np.int64),
        table["week"].astype(str).map({week: k for k, week in enumerate(weeks)}).to_numpy(np.int64),
        noun="tasks" if sums.by_task else "runs",
    )
    made = []
    for week, shift in zip(weeks, found, strict=True):
        rows = table[table["week"].astype(str) == week]
        shares = tuple(
            (name, _rate(rows, sums, key, confidence_level))
            for name, key in zip(VERDICTS, keys, strict=True)
        )
        n = int(rows[f"n_{keys[0]}"].sum())
        made.append(VerdictWeek(week=week, n=n, shares=shares, shift=shift))
    return VerdictMix(status=OK, weeks=tuple(made))


def bad_values(sums: SignalSums | None) -> tuple[str, ...]:
    """Return warnings about values that cannot be read."""
    bad = {} if sums is None else sums.bad
    return tuple(
        f"{n:,} {'value counts' if n == 1 else 'values count'} as missing: {why}."
        for why, n in bad.items()
    )


def latency_of(amounts: Amounts) -> Latency | None:
    """Return the percentiles of latency; None where no run says how long it took."""
    known = amounts.percentile(LEVELS["p50"])
    if known is None:
        return None
    return Latency(n=known.n, **{level: amounts.point(q) for level, q in LEVELS.items()})


def tasks_by_week(counts: ProductionCounts) -> Mapping[str | None, int] | None:
    """Return the tasks with runs in each week, and in all; None where no task repeats."""
    if counts.tasks is None:
        return None
    # Where groups of tasks stand for them those of a week are fewer: on the safe side.
    weekly = counts.tasks_by.get("week", counts.tasks)
    by_week = weekly.groupby("week", observed=True)["task"].nunique()
    n = counts.n_tasks if counts.tasks_grouped else int(counts.tasks["task"].nunique())
    return {None: n or 0} | {str(week): int(tasks) for week, tasks in by_week.items()}


def _merged(bins: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    grouped = bins.groupby(keys, observed=True)
    return grouped.agg(n=("n", "sum"), low=("low", "min"), high=("high", "max"))


def _counts(bins: pd.DataFrame) -> FloatArray:
    return bins[["n", "low", "high"]].to_numpy(dtype=np.float64)


def _percentiles(
    what: str, unit: str, amounts: Amounts, missing: Mapping[str, str], confidence_level: float
) -> Iterator[Signal]:
    for level, q in LEVELS.items():
        over_all = amounts.percentile(q, confidence_level=confidence_level)
        by_week: tuple[tuple[str, Estimate], ...] = ()
        if over_all is None:
            over_all = not_estimable(
                f"{NOT_RECORDED}: {missing[what]}",
                method="percentile",
                confidence_level=confidence_level,
            )
        else:
            by_week = tuple(
                (week, found)
                for week in amounts.weeks
                if (found := amounts.percentile(q, week, confidence_level=confidence_level))
            )
        yield Signal(
            key=f"{what}_{level}",
            name=f"{what}, {level.upper()}",
            unit=unit,
            over_all=over_all,
            by_week=by_week,
        )
