"""Signals of operation: what runs say of errors, tools, cost, latency, verdicts, week by week."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from calibration.analyses.success_rate.report import Latency, Signal, VerdictMix, VerdictWeek
from calibration.runs import ProductionCounts, Spread
from calibration.runs.signals import LOOP, VERDICTS, SignalSums
from calibration.statistics.estimate import OK, Estimate, not_estimable
from calibration.statistics.means import clustered_mean, clustered_share
from calibration.statistics.quantiles import limits_of_bins
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

LEVELS = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}

MEANS = ("feedback",)


def signals(counts: ProductionCounts, confidence_level: float = 0.95) -> tuple[Signal, ...]:
    """Return every signal; of what the source does not record the status says so."""
    return (
        *rates(counts.signals, confidence_level),
        *_percentiles(counts, confidence_level),
    )


def rates(
    sums: SignalSums | None,
    confidence_level: float = 0.95,
    *,
    missing: Mapping[str, str] | None = None,
) -> Iterator[Signal]:
    """Yield every rate from sums by week and unit.

    `missing` says of a rate why it is not recorded, instead of which column would.
    """
    for key, (name, columns) in RATES.items():
        unit = "score" if key in MEANS else "share"
        if sums is None or key not in sums.recorded:
            why = (missing or {}).get(key, f"{NOT_RECORDED}: add a column {columns}")
            nothing = not_estimable(why, method="share", confidence_level=confidence_level)
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


def verdict_mix(sums: SignalSums | None, confidence_level: float = 0.95) -> VerdictMix:
    """Return the verdicts of each week, and how far they are from those of the weeks before."""
    keys = [f"verdict_{name}" for name in VERDICTS]
    if sums is None or keys[0] not in sums.recorded:
        return VerdictMix(status=f"{NOT_RECORDED}: add a column verdict")
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
    """Return what has to be said of values that are none."""
    bad = {} if sums is None else sums.bad
    return tuple(
        f"{n:,} {'value counts' if n == 1 else 'values count'} as missing: {why}."
        for why, n in bad.items()
    )


def latency(counts: ProductionCounts) -> Latency | None:
    """Return the percentiles of latency; None where no run says how long it took."""
    row = counts.latency.table.iloc[0]
    if not row["n_known"]:
        return None
    return Latency(
        n=int(row["n_known"]),
        p50=float(row["p50"]),
        p90=float(row["p90"]),
        p95=float(row["p95"]),
        p99=float(row["p99"]),
    )


def _percentiles(counts: ProductionCounts, confidence_level: float) -> Iterator[Signal]:
    tasks = _tasks(counts)
    for what, unit, column, weekly in (
        ("latency", "s", "latency_s", counts.latency_weekly),
        ("cost", "usd", "cost_usd", counts.cost_weekly),
    ):
        of_week = _merged(weekly.sums, ["week", "bin"])
        by_week = {str(week): part for week, part in of_week.groupby("week", observed=True)}
        bins = _merged(weekly.sums, ["bin"])
        for level, q in LEVELS.items():
            name = f"{what}, {level.upper()}"
            over_all = _percentile(weekly, None, level, q, bins, tasks, confidence_level)
            if over_all is None:
                nothing = not_estimable(
                    f"{NOT_RECORDED}: add a column {column}",
                    method="percentile",
                    confidence_level=confidence_level,
                )
                yield Signal(key=f"{what}_{level}", name=name, unit=unit, over_all=nothing)
                continue
            yield Signal(
                key=f"{what}_{level}",
                name=name,
                unit=unit,
                over_all=over_all,
                by_week=tuple(
                    (week, found)
                    for week, part in by_week.items()
                    if (found := _percentile(weekly, week, level, q, part, tasks, confidence_level))
                ),
            )


def _tasks(counts: ProductionCounts) -> Mapping[str | None, int] | None:
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


def _percentile(
    spread: Spread,
    week: str | None,
    level: str,
    q: float,
    bins: pd.DataFrame,
    tasks: Mapping[str | None, int] | None,
    confidence_level: float,
) -> Estimate | None:
    # The first row is of all, under no name, which pandas does not find by label.
    row: Any = spread.table.iloc[0] if week is None else spread.table.loc[week]
    n = int(row["n_known"])
    if not n:
        return None
    # Runs of a task may be as alike as it gets: then only the tasks count.
    effective = n if tasks is None else min(n, tasks.get(week, n))
    limits = limits_of_bins(bins, q, effective, confidence_level=confidence_level)
    over = f"{effective:,} {'runs' if tasks is None else 'tasks'}"
    return Estimate(
        value=float(row[level]),
        interval=limits,
        n=n,
        method=f"percentile, limits of its rank over {over}",
        confidence_level=confidence_level,
        status=OK if limits else f"provisional: no interval, {over} are too few",
    )
