"""Signals of operation of the traces in a store: the same rates as on production files."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from calibration.analyses.asr_report import ProductionReport, Signal, VerdictMix
from calibration.analyses.production_signals import (
    LEVELS,
    NOT_RECORDED,
    bad_values,
    rates,
    verdict_mix,
)
from calibration.estimates import not_estimable
from calibration.metrics.quantiles import quantile_by_task
from calibration.production.signals import (
    BAD,
    DOWN,
    FAILED,
    NEUTRAL,
    NO,
    TIMED_OUT,
    UP,
    VERDICTS,
    YES,
    SignalSums,
)
from calibration.store import Store

MISSING = {
    "errors": f"{NOT_RECORDED}: no trace of the store has a status",
    "timeouts": f"{NOT_RECORDED}: no trace of the store has a status",
    "tool_errors": f"{NOT_RECORDED}: no trace of the store has steps",
    "loops": f"{NOT_RECORDED}: no trace of the store has steps",
    "escalated": f"{NOT_RECORDED}: no trace has a field escalated",
    "feedback_given": f"{NOT_RECORDED}: no trace has a field feedback",
    "feedback": f"{NOT_RECORDED}: no trace has a field feedback",
    "feedback_negative": f"{NOT_RECORDED}: no trace has a field feedback",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSignals:
    """The signals of the traces in a store, and what has to be said of bad values."""

    signals: tuple[Signal, ...]
    verdict_mix: VerdictMix
    notes: tuple[str, ...]


def with_signals(
    report: ProductionReport, store: Store, traces: pd.DataFrame, judge_id: str | None
) -> ProductionReport:
    """Return a report on a store with the signals of its traces."""
    found = signals_of_store(store, traces, judge_id, report.origin.confidence_level)
    return replace(
        report,
        signals=found.signals,
        verdict_mix=found.verdict_mix,
        notes=(*report.notes, *found.notes),
    )


def signals_of_store(
    store: Store, traces: pd.DataFrame, judge_id: str | None, confidence_level: float = 0.95
) -> StoreSignals:
    """Return the signals of some traces of a store.

    Parameters
    ----------
    store : Store
    traces : pandas.DataFrame
        Of `Store.trace_frame`.
    judge_id : str or None
        Whose verdicts; None for none.
    confidence_level : float, default 0.95
    """
    frame = traces.merge(store.operation_frame(), on="trace_id", how="left")
    if judge_id is not None:
        verdicts = store.verdict_frame(judge_id)[["trace_id", "outcome"]]
        frame = frame.merge(verdicts.rename(columns={"outcome": "verdict"}), how="left")
    sums = sums_of(frame)
    mix = verdict_mix(sums, confidence_level)
    if not mix.weeks and judge_id is None:
        mix = VerdictMix(status=f"{NOT_RECORDED}: the store holds no verdicts")
    return StoreSignals(
        signals=(
            *rates(sums, confidence_level, missing=MISSING),
            *_percentiles(frame, confidence_level),
        ),
        verdict_mix=mix,
        notes=bad_values(sums),
    )


def sums_of(frame: pd.DataFrame) -> SignalSums:
    """Return sums by week and task, as production files have them."""
    task, _ = pd.factorize(frame["task_key"], sort=True)
    by_task = len(np.unique(task)) < len(task)
    parts, bad = _parts(frame)
    columns: dict[str, Any] = {
        "week": _weeks(frame["started_at"]),
        "unit": task,
        "stratum": np.zeros(len(frame), dtype=np.int64),
        "n": np.ones(len(frame), dtype=np.int64),
    }
    for key, (of, hits) in parts.items():
        columns[f"n_{key}"] = columns[f"of_{key}"] = of.astype(np.float64)
        columns[key] = hits.where(of > 0, 0.0).astype(np.float64)
    rows = pd.DataFrame(columns)
    table = rows.groupby(["week", "unit", "stratum"], dropna=False, sort=True).sum().reset_index()
    return SignalSums(
        table=table,
        recorded=tuple(key for key, (of, _) in parts.items() if of.any()),
        bad={BAD[name]: n for name, n in bad.items() if n},
        n_units=len(np.unique(task)),
        by_task=by_task,
    )


def _weeks(times: "pd.Series[Any]") -> "pd.Series[Any]":
    iso = pd.to_datetime(times, utc=True).dt.isocalendar()
    names = [
        None if pd.isna(year) else f"{int(year):04d}-W{int(week):02d}"
        for year, week in zip(iso["year"], iso["week"], strict=True)
    ]
    return pd.Series(names, dtype="str")


def _parts(
    frame: pd.DataFrame,
) -> tuple[dict[str, tuple["pd.Series[Any]", "pd.Series[Any]"]], dict[str, int]]:
    """Return what each rate is a share of and its hits, a row a trace; and the bad values."""
    status = frame["status"].astype("str").str.lower()
    late = status.str.contains(TIMED_OUT, regex=True).fillna(False).astype(bool)
    failed = status.str.contains(FAILED, regex=True).fillna(False).astype(bool)
    said = status.notna() & (status != "")
    parts = {
        "errors": (said * 1.0, (failed & ~late) * 1.0),
        "timeouts": (said * 1.0, late * 1.0),
        "tool_errors": (frame["tool_calls"].fillna(0.0), frame["tool_errors"].fillna(0.0)),
        "loops": (frame["loop"].notna() * 1.0, frame["loop"].fillna(0.0)),
    }
    escalated, bad_escalated = _read(frame["escalated"], _happened)
    feedback, bad_feedback = _read(frame["feedback"], _score)
    known = escalated.notna() * 1.0
    parts["escalated"] = known, (escalated > 0) * 1.0
    given = feedback.notna() * 1.0
    if given.any() or bad_feedback:
        parts["feedback_given"] = given * 0.0 + 1.0, given
        parts["feedback"] = given, feedback.fillna(0.0)
        parts["feedback_negative"] = given, (feedback < 0) * 1.0
    if "verdict" in frame:
        judged = frame["verdict"].isin(VERDICTS) * 1.0
        for name in VERDICTS:
            parts[f"verdict_{name}"] = judged, (frame["verdict"] == name) * 1.0
    return parts, {"escalated": bad_escalated, "feedback": bad_feedback}


def _read(values: "pd.Series[Any]", read: Any) -> tuple["pd.Series[Any]", int]:
    """Return values as numbers, missing where nothing or no value is said, and count the latter."""
    texts = values.where(values.notna(), "").astype("str").str.strip().str.lower()
    numbers = texts.map({text: read(text) for text in texts.unique()}).astype("float64")
    return numbers, int(((texts != "") & numbers.isna()).sum())


def _happened(text: str) -> float:
    if text in YES or text in NO:
        return float(text in YES)
    number = _number(text)
    return number if number >= 0 and number == int(number) else np.nan


def _score(text: str) -> float:
    for names, worth in ((UP, 1.0), (DOWN, -1.0), (NEUTRAL, 0.0)):
        if text in names:
            return worth
    number = _number(text)
    return number if -1 <= number <= 1 else np.nan


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def _percentiles(frame: pd.DataFrame, confidence_level: float) -> Iterator[Signal]:
    weeks = _weeks(frame["started_at"])
    task = pd.factorize(frame["task_key"], sort=True)[0]
    for what, unit, column in (("latency", "s", "latency_s"), ("cost", "usd", "cost_usd")):
        values = frame[column].to_numpy(dtype=np.float64)
        known = np.isfinite(values)
        for level, q in LEVELS.items():

            def at(rows: Any, q: float = q, values: Any = values) -> Any:
                several = len(np.unique(task[rows])) < int(rows.sum())
                return quantile_by_task(
                    values[rows],
                    q,
                    task[rows] if several else None,
                    confidence_level=confidence_level,
                )

            name = f"{what}, {level.upper()}"
            if not known.any():
                nothing = not_estimable(
                    f"{NOT_RECORDED}: no trace says its {what}",
                    method="percentile",
                    confidence_level=confidence_level,
                )
                yield Signal(key=f"{what}_{level}", name=name, unit=unit, over_all=nothing)
                continue
            by_week = tuple(
                (week, at(rows))
                for week in sorted(weeks[known].dropna().unique())
                if (rows := known & (weeks == week).to_numpy()).any()
            )
            yield Signal(
                key=f"{what}_{level}", name=name, unit=unit, over_all=at(known), by_week=by_week
            )
