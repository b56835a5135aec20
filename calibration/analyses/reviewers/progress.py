"""Progress of a batch: labels by reviewer, remaining work, and the precision so far."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime

import pandas as pd

from calibration.agreement.coefficients import Agreement, agreement
from calibration.analyses.agreement.analysis import planned_codes
from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import load_batch
from calibration.analyses.sampling.planning import (
    check_half_width,
    expected_half_widths,
    median_seconds,
)
from calibration.analyses.success_rate.assembly import weekly_rates
from calibration.analyses.success_rate.from_store import rates_of_store, without_labels
from calibration.analyses.success_rate.report import LeftOutRows, ReportOptions
from calibration.errors import CalibrationError
from calibration.judge_calibration.label_planning import smallest
from calibration.judge_calibration.post_stratification import with_any_time
from calibration.statistics.estimate import OK, Estimate, not_estimable
from calibration.store import Store
from calibration.success_rate.trend import WeeklySeries

# Further labels, as shares of the labelled traces.
FURTHER = (0.25, 0.5, 1.0)

NO_LIMITS = "not_estimable: this rate has no limits that hold at every look: label a random sample"

# Half-width at which labelling may stop, unless another is asked for.
GOAL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerProgress:
    """One reviewer's work in the batch; `holds` counts live leases."""

    reviewer_id: str
    labels: int
    skips: int
    median_seconds: float | None
    last_active: datetime | None
    holds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A trace leased to a reviewer until a time (UTC)."""

    reviewer_id: str
    trace_id: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A trace that a reviewer skipped or flagged, and why."""

    trace_id: str
    reviewer_id: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """The half-width with `more` labelled traces."""

    more: int
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """Whether labelling may stop at a half-width, however often one has looked before.

    `goal` : the half-width wanted
    `now` : half-width of the limits that hold at every look (asymptotic confidence sequence); None
        where the rate has none, with the reason in `status`
    `more` : labelled traces that are expected to be needed beyond `n`; 0 where labelling may stop,
        None where all traces together do not suffice
    """

    batch_id: str
    goal: float
    now: float | None
    n: int
    more: int | None
    confidence_level: float
    status: str

    @property
    def may_stop(self) -> bool:
        """Whether the limits are as narrow as wanted."""
        return self.now is not None and self.now <= self.goal


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress that every role may see: nothing of the answers."""

    batch_id: str
    n_items: int
    items_open: int  # with fewer labels than wanted
    labels: int
    labels_left: int  # missing on these
    seconds_per_label: float | None
    hours_left: float | None
    reviewers: tuple[ReviewerProgress, ...]
    days: tuple[tuple[date, int], ...]  # labels of each day with any
    leases: tuple[Lease, ...]
    skips: tuple[Remark, ...]
    flags: tuple[Remark, ...]  # for leads only


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Results that labelling reviewers must not see."""

    agreement: Agreement | None
    alpha: Estimate
    headline: Estimate  # the leading rate of the report
    calibrated: bool
    further: tuple[Further, ...]  # half-widths with more labels
    stopping: StoppingRule
    simulated: bool
    judge_id: str | None = None
    correction: str = OK  # why the rate is not corrected for judge error
    includes_reviewers: bool = False  # whether the interval carries the errors of reviewers
    weekly: WeeklySeries | None = None  # the trend of the report; None without a rate
    left_out: tuple[LeftOutRows, ...] = ()  # traces of the sample without a label that counts


def batch_progress(store: Store, batch_id: str) -> Progress:
    """Count labels, skips, leases and remaining work of a batch."""
    items = store.batch_items(batch_id)
    events = store.label_frame(batch_id)
    labels = events[events["kind"] == "label"]
    skips = events[events["kind"] == "skip"]
    leases = store.lease_frame(batch_id)
    got = items["trace_id"].map(labels.groupby("trace_id").size()).fillna(0)
    lacking = (items["labels_wanted"] - got).clip(lower=0)
    left = int(lacking.sum())
    seconds = median_seconds(labels)
    per_day = labels["created_at"].dt.date.value_counts().sort_index()
    return Progress(
        batch_id=batch_id,
        n_items=len(items),
        items_open=int((lacking > 0).sum()),
        labels=len(labels),
        labels_left=left,
        seconds_per_label=seconds,
        hours_left=None if seconds is None else left * seconds / 3600,
        reviewers=tuple(_reviewers(events, leases)),
        days=tuple(zip(per_day.index.tolist(), per_day.tolist(), strict=True)),
        leases=tuple(
            Lease(reviewer_id=by, trace_id=trace, expires_at=until.to_pydatetime())
            for by, trace, until in leases.itertuples(index=False)
        ),
        skips=_remarks(skips),
        flags=_remarks(store.flag_frame(batch_id)),
    )


def _remarks(rows: pd.DataFrame) -> tuple[Remark, ...]:
    columns = rows[["trace_id", "reviewer_id", "reason", "created_at"]]
    return tuple(
        Remark(
            trace_id=trace,
            reviewer_id=by,
            reason="" if pd.isna(reason) else str(reason),
            at=at.to_pydatetime(),
        )
        for trace, by, reason, at in columns.itertuples(index=False)
    )


def _reviewers(events: pd.DataFrame, leases: pd.DataFrame) -> list[ReviewerProgress]:
    """Return everybody with decisions or leases, most decisions first."""
    held = leases.groupby("reviewer_id").size()
    rows = []
    for reviewer_id in sorted({*events["reviewer_id"], *leases["reviewer_id"]}):
        mine = events[events["reviewer_id"] == reviewer_id]
        labels = mine[mine["kind"] == "label"]
        rows.append(
            ReviewerProgress(
                reviewer_id=reviewer_id,
                labels=len(labels),
                skips=len(mine) - len(labels),
                median_seconds=median_seconds(labels),
                last_active=None if mine.empty else mine["created_at"].max().to_pydatetime(),
                holds=int(held.get(reviewer_id, 0)),
            )
        )
    return sorted(rows, key=lambda row: -row.labels)


def batch_results(
    store: Store, batch_id: str, *, judge_id: str | None = None, goal: float = GOAL
) -> Results:
    """Return agreement and headline rate so far, the gain from more labels, and when to stop.

    `batch_id` : a name, or names joined as by `pooled_id`.
    """
    check_half_width(goal)
    loaded = load_batch(store, batch_id)
    if loaded.labelled.empty:
        why = not_estimable("nobody has labelled this batch yet", method="none")
        return Results(
            agreement=None,
            alpha=why,
            headline=why,
            calibrated=False,
            further=(),
            stopping=_stopping(loaded, why, goal, None),
            simulated=loaded.simulated,
        )
    agreed = agreement(planned_codes(loaded)[1], n_classes=len(loaded.classes))
    try:
        rate = rates_of_store(store, ReportOptions(batch_id=batch_id, judge_id=judge_id))
    except CalibrationError as error:
        why = not_estimable(str(error), method="none")
        return Results(
            agreement=agreed,
            alpha=agreed.alpha,
            headline=why,
            calibrated=False,
            further=(),
            stopping=_stopping(loaded, why, goal, None),
            simulated=loaded.simulated,
        )
    expected, headline = None, rate.headline
    if headline.half_width is not None and len(loaded.labelled) > 1:
        judge = rate.judge_id if rate.calibrated else None
        expected = expected_half_widths(store, loaded, judge_id=judge)
    return Results(
        agreement=agreed,
        alpha=agreed.alpha,
        headline=headline,
        calibrated=rate.calibrated,
        further=_further(loaded, headline, expected),
        stopping=_stopping(loaded, headline, goal, expected),
        simulated=loaded.simulated,
        judge_id=rate.judge_id,
        correction=rate.corrected.status,
        includes_reviewers=rate.includes_reviewers,
        weekly=weekly_rates(rate.runs, rate.options, rate.disputed),
        left_out=tuple(without_labels(rate.loaded)),
    )


def _further(
    loaded: CalibrationData, headline: Estimate, expected: Callable[[int], float] | None
) -> tuple[Further, ...]:
    """Return the half-widths after the rest of the batch, then after some steps beyond."""
    # Scaled to the current interval, so that the first step starts from the figure shown.
    now, n = headline.half_width, len(loaded.labelled)
    if now is None or expected is None:
        return ()
    most = len(loaded.traces) - n
    steps = {min(most, -int(-share * n // 10) * 10) for share in FURTHER}
    steps.add(min(most, loaded.unlabelled))
    planned = expected(n)
    return tuple(
        Further(more=more, half_width=now * expected(n + more) / planned)
        for more in sorted(steps)
        if more > 0
    )


def _stopping(
    loaded: CalibrationData,
    headline: Estimate,
    goal: float,
    expected: Callable[[int], float] | None,
) -> StoppingRule:
    """Compare the limits that hold at every look with the goal, now and with more labels."""
    rule = StoppingRule(
        batch_id=loaded.provenance.batch_id,
        goal=goal,
        now=_any_time(headline),
        n=len(loaded.labelled),
        more=None,
        confidence_level=headline.confidence_level,
        status=OK,
    )
    if rule.now is None or expected is None or not loaded.is_sample:
        lack = headline.status if headline.status.startswith("not_estimable") else NO_LIMITS
        return replace(rule, now=None, status=lack)
    if rule.may_stop:
        return replace(rule, more=0)
    planned = expected(rule.n)

    def enough(more: int) -> bool:
        shrunk = (headline.se or 0.0) * expected(rule.n + more) / planned
        half = _any_time(replace(headline, n=headline.n + more, se=shrunk))
        return half is not None and half <= goal

    return replace(rule, more=smallest(enough, 1, len(loaded.traces) - rule.n))


def _any_time(estimate: Estimate) -> float | None:
    """Return the half-width of the limits that hold at every look, from value, SE and df."""
    found = with_any_time(estimate).any_time
    return None if found is None else (found.interval[1] - found.interval[0]) / 2
