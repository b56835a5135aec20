"""Signals of operation: what files say of errors, cost and latency, week by week."""

import re

import pandas as pd

from calibration.analyses.asr_report import Latency, Signal
from calibration.production import ProductionCounts, Spread
from calibration.records import OUTCOMES

_FAILED = re.compile(r"error|fail|exception|crash", re.IGNORECASE)
_TIMED_OUT = re.compile(r"time.?out|timed.?out|deadline", re.IGNORECASE)


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


def signals(counts: ProductionCounts) -> tuple[Signal, ...]:
    """Return the signals that the files hold; what they do not record is not shown."""
    found = [_outcome(counts, "abandoned", "abandoned runs")]
    if len(counts.statuses):
        found += [
            _status(counts.statuses, _FAILED, "runs whose status is an error"),
            _status(counts.statuses, _TIMED_OUT, "runs whose status is a time-out"),
        ]
    for spread, overall, unit, what in (
        (counts.cost_weekly, counts.cost, "usd", "cost"),
        (counts.latency_weekly, counts.latency, "s", "latency"),
    ):
        if overall.table.iloc[0]["n_known"]:
            found += [_percentile(spread, overall, level, unit, what) for level in ("p50", "p90")]
    return tuple(found)


def _outcome(counts: ProductionCounts, outcome: str, name: str) -> Signal:
    cells = counts.cells.assign(hit=counts.cells["outcome"] == OUTCOMES.index(outcome))
    return _share(cells, name)


def _status(statuses: pd.DataFrame, which: re.Pattern[str], name: str) -> Signal:
    hit = statuses["status"].astype(object).fillna("").astype(str).str.contains(which)
    return _share(statuses.assign(hit=hit), name)


def _share(rows: pd.DataFrame, name: str) -> Signal:
    hits = rows["n"].where(rows["hit"], 0)
    weekly = rows.assign(hits=hits).groupby("week", observed=True)[["n", "hits"]].sum().sort_index()
    total = int(rows["n"].sum())
    return Signal(
        name=name,
        unit="share",
        value=float(hits.sum()) / total if total else None,
        n=total,
        by_week=tuple(
            (str(week), share) for week, share in (weekly["hits"] / weekly["n"]).to_dict().items()
        ),
    )


def _percentile(weekly: Spread, overall: Spread, level: str, unit: str, what: str) -> Signal:
    row = overall.table.iloc[0]
    return Signal(
        name=f"{what}, {level.upper()}",
        unit=unit,
        value=float(row[level]),
        n=int(row["n_known"]),
        by_week=tuple(
            (str(week), None if pd.isna(value) else float(value))
            for week, value in weekly.table[level].iloc[1:].items()
        ),
    )
