"""Evaluate measurements against gates: thresholds, composed conditions, results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Literal

from calibration.gates.gate_file import ORDER, Acceptance, GateFile, Level, Rule, Setting
from calibration.statistics.estimate import Estimate
from calibration.statistics.intervals import (
    Events,
    chance_to_pass,
    exact_limits,
    tasks_to_show,
)
from calibration.text import counted

PASSED, FAILED = 0, 1

# A value equal to its threshold up to rounding meets it.
ROUNDING = 1e-9

ONE_SIDED = 0.95
# The rate below the threshold whose chance to pass is told.
BELOW = 0.05

# Added to the name of events: those in a row.
IN_A_ROW = "_in_a_row"

NOT_RECORDED = {
    "loops": "no column 'loops': record the runs that repeat a call three times",
    "data_corruption": "neither a tag data_corruption nor a state grader was recorded",
    ORDER: "rules of order need the steps of runs: gate a store, or grade traces (asr grade)",
    "human_review": "no reviewed transcripts: give human labels",
    "judge": "no human labels to compare the judge with",
    "non_inferior": "no baseline: give --baseline",
    "regression": "no baseline: give --baseline",
    "trend": "no column 'started_at': record when each run was started",
    "latency_p95": "no latency was recorded",
    "cost": "no cost was recorded",
}

Status = Literal["pass", "fail", "open", "skipped", "not_estimable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One of several conditions of a gate: a class, a category, a workflow."""

    name: str
    status: Status
    value: float | None
    interval: tuple[float, float] | None
    rule: str
    n: int
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedRisk:
    """Who ships although a should gate did not pass, why, and until when.

    `status` : ``accepted``; ``expired`` once the day is over, when it does not count;
        ``not_needed`` where the gate passed
    """

    status: Literal["accepted", "expired", "not_needed"]
    by: str
    why: str
    until: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """One gate.

    `status` : ``skipped`` when it was not recorded, ``not_estimable`` when there are too few units,
        ``open`` when the value misses the threshold and its limit does not
    `threshold` : None where the `parts` have their own
    `rule`, `why` : the condition in words; the reason for the status, and what would help
    `n`, `method` : units behind the value; estimator and interval
    `blocks` : a must gate that failed, or has no result and may not be skipped
    `accepted` : the decision to ship in spite of it, None without one
    """

    name: str
    level: Level
    status: Status
    rule: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    threshold: float | None = None
    n: int = 0
    method: str = ""
    why: str = ""
    blocks: bool = False
    parts: tuple[Condition, ...] = ()
    accepted: AcceptedRisk | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """All gates of a run."""

    gates: tuple[GateResult, ...]
    confidence_level: float

    @property
    def blocking(self) -> tuple[GateResult, ...]:
        """The gates that fail the run."""
        return tuple(gate for gate in self.gates if gate.blocks)

    @property
    def exit_code(self) -> int:
        """0 when nothing blocks, else 1."""
        return FAILED if self.blocking else PASSED


def _result(
    gate: Setting,
    status: Status,
    rule: str,
    estimate: Estimate | None = None,
    *,
    why: str = "",
    threshold: float | None = None,
    parts: tuple[Condition, ...] = (),
) -> GateResult:
    """Return a result before `allow_skipped` is applied."""
    found = GateResult(
        name=gate.name, level=gate.level, status=status, rule=rule, why=why, threshold=threshold,
        parts=parts,
    )  # fmt: skip
    if estimate is None:
        return found
    return replace(
        found,
        value=estimate.value,
        interval=estimate.interval,
        n=estimate.n,
        method=estimate.method,
    )


def check(
    estimate: Estimate,
    threshold: float,
    *,
    at_least: bool,
    rule: Rule = "value",
    sided: Estimate | None = None,
) -> tuple[Status, str]:
    """Compare an estimate with a threshold by a rule.

    `sided` : the same estimate with two-sided 90 % limits, of which each is a one-sided 95 % limit;
    only the rule ``value`` does without.
    """
    value, interval = estimate.value, estimate.interval
    if value is None or estimate.status.startswith("not_estimable"):
        return "not_estimable", estimate.status.removeprefix("not_estimable: ")
    limited = estimate.status if estimate.status.startswith("provisional") else ""
    met = _meets(value, threshold, at_least=at_least)
    if rule != "value":
        limits = None if sided is None else sided.interval
        status, why = _by_limits(value, limits, threshold, at_least=at_least, rule=rule)
        return status, _both(why, limited)
    if interval is None:
        return ("pass" if met else "fail"), estimate.status if estimate.status != "ok" else ""
    best, worst = (interval[1], interval[0]) if at_least else interval
    if met:
        sure = _meets(worst, threshold, at_least=at_least)
        return "pass", _both("" if sure else "the interval reaches beyond the threshold", limited)
    reached = _meets(best, threshold, at_least=at_least)
    return "fail", _both("the interval includes the threshold" if reached else "", limited)


def _meets(value: float, threshold: float, *, at_least: bool) -> bool:
    return (value - threshold if at_least else threshold - value) >= -ROUNDING


def _by_limits(
    value: float,
    limits: tuple[float, float] | None,
    threshold: float,
    *,
    at_least: bool,
    rule: Rule,
) -> tuple[Status, str]:
    """Decide by the one-sided limits of a value."""
    if limits is None:
        return "not_estimable", f"no limits, which the rule {rule} needs"
    best, worst = (limits[1], limits[0]) if at_least else limits
    level = f"one-sided {100 * ONE_SIDED:g} %"
    side, other = ("lower", "upper") if at_least else ("upper", "lower")
    if rule == "shown_good":
        shown = f"{level} {side} limit {worst:.3g}"
        if _meets(worst, threshold, at_least=at_least):
            return "pass", shown
        return "fail", f"not shown: {shown}"
    if not _meets(best, threshold, at_least=at_least):
        return "fail", f"shown to miss {threshold:g}: {level} {other} limit {best:.3g}"
    if _meets(value, threshold, at_least=at_least):
        return "pass", ""
    return "open", f"{value:.2f}, not shown to miss {threshold:g}"


def _both(why: str, limited: str) -> str:
    """Join the reason of a result and what limits the estimate behind it."""
    return "; ".join(filter(None, (why, limited)))


def checked_part(
    name: str,
    estimate: Estimate,
    threshold: float,
    *,
    at_least: bool = True,
    rule: Rule = "value",
    sided: Estimate | None = None,
) -> Condition:
    """Compare one of several estimates of a gate with its threshold."""
    status, why = check(estimate, threshold, at_least=at_least, rule=rule, sided=sided)
    return Condition(
        name=name, status=status, value=estimate.value, interval=estimate.interval,
        rule=f"{'>=' if at_least else '<='} {threshold:g}", n=estimate.n, why=why,
    )  # fmt: skip


# From the worst; what a gate of several parts says of those that are so.
_WORST: dict[Status, str] = {
    "fail": "failed",
    "not_estimable": "not estimable",
    "open": "not shown to miss",
}


def worst_of(parts: Sequence[Condition]) -> tuple[Status, str]:
    """Fail if a part fails; otherwise have no result if a part has none, or be open if one is."""
    for status, word in _WORST.items():
        named = [part.name for part in parts if part.status == status]
        if named:
            shown = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if named[5:] else "")
            return status, f"{word}: {shown}"
    return "pass", ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineChange:
    """Current rate less that of the baseline, in [-1, 1].

    `estimate` counts tasks, or runs when none repeats. `lower` is the one-sided 95 % lower limit.
    `p_below` is the one-sided p-value of "the change is not below the drop that the gate allows".
    `note` names tasks left out and restated weights.
    """

    estimate: Estimate
    lower: float | None = None
    p_below: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeMeasured:
    """Judge against human labels: agreement, kappa, recall of each class with its n."""

    agreement: Estimate
    kappa: Estimate
    recall: Mapping[str, Estimate]
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowCost:
    """Cost per unit of a workflow, with its ceiling, in USD; `n_known` runs have a known cost."""

    name: str
    ceiling: float | None
    mean_per_unit: Estimate
    n: int
    n_known: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostMeasured:
    """Cost of every workflow, and the share of runs above their ceiling."""

    workflows: tuple[WorkflowCost, ...]
    share_over: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendMeasured:
    """The CUSUM of the weekly rates in the last week, its limit, and the alarm in words.

    `path.n` counts the weeks that were judged.
    """

    path: Estimate
    limit: float
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderMeasured:
    """Runs to which a rule of order applies, those that break it, and the first of these."""

    rule: str
    events: Events
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """All measurements that gates may need; a missing one was not recorded.

    `rates` by gate, such as ``pass_at_1[core]``, ``asr``, ``latency_p95``; `events` are ``loops``,
    ``loops_in_a_row`` and ``data_corruption``, `orders` one a rule of order; `review` is the share
    of acceptable transcripts in a random sample; `changes` are ``asr`` and ``pass_at_1`` against
    the baseline, `by_category` pass@1 of each category; `why_not` gives, by gate, the reason for a
    missing measurement and the remedy.
    """

    rates: Mapping[str, Estimate] = field(default_factory=dict)
    events: Mapping[str, Events] = field(default_factory=dict)
    orders: tuple[OrderMeasured, ...] = ()
    review: Estimate | None = None
    judge: JudgeMeasured | None = None
    changes: Mapping[str, BaselineChange] = field(default_factory=dict)
    by_category: Mapping[str, BaselineChange] = field(default_factory=dict)
    cost: CostMeasured | None = None
    trend: TrendMeasured | None = None
    why_not: Mapping[str, str] = field(default_factory=dict)


def of_judge(gate: Setting, measured: Measurements, sided: Measurements) -> GateResult:
    """Check every quality of a judge that a judge which always passes would fail."""
    numbers = gate.numbers
    least = int(numbers["minimum_labels"])
    rule = (
        f"agreement >= {numbers['agreement']:g}, kappa >= {numbers['kappa']:g} with lower limit "
        f">= {numbers['kappa_lower']:g}, recall >= {numbers['recall']:g} of every class with "
        f"{least} labels"
    )
    judge = measured.judge
    if judge is None:
        return _result(gate, "skipped", rule)
    limits = sided.judge or judge
    by = gate.rule
    parts = [
        checked_part("agreement", judge.agreement, numbers["agreement"], rule=by,
                     sided=limits.agreement),
        checked_part("kappa", judge.kappa, numbers["kappa"], rule=by, sided=limits.kappa),
        _kappa_lower(judge.kappa, numbers["kappa_lower"]),
    ]  # fmt: skip
    for name, recall in judge.recall.items():
        if recall.n >= least:
            parts.append(checked_part(f"recall of {name}", recall, numbers["recall"], rule=by,
                                      sided=limits.recall[name]))  # fmt: skip
    few = [f"{name} ({recall.n})" for name, recall in judge.recall.items() if recall.n < least]
    status, why = worst_of(parts)
    if few:
        why = "; ".join(filter(None, [why, f"too few labels to check {', '.join(few)}"]))
    kappa = replace(judge.kappa, n=judge.n, method=f"kappa, {judge.kappa.method}")
    return _result(
        gate, status, rule, kappa, why=why, threshold=numbers["kappa"], parts=tuple(parts)
    )


def _kappa_lower(kappa: Estimate, threshold: float) -> Condition:
    """Check the lower limit, whether or not gates use intervals."""
    low = None if kappa.interval is None else kappa.interval[0]
    status: Status = "not_estimable"
    if low is not None:
        status = "pass" if low >= threshold - ROUNDING else "fail"
    return Condition(
        name="lower limit of kappa", status=status, value=low, interval=None,
        rule=f">= {threshold:g}", n=kappa.n, why=kappa.status if low is None else "",
    )  # fmt: skip


def of_non_inferior(gate: Setting, measured: Measurements, sided: Measurements) -> GateResult:
    """Test whether the rate is no worse than the baseline less the margin.

    It asks to be shown, so that ``value`` and ``shown_good`` are one rule here.
    """
    margin = gate.numbers["margin_pp"] / 100
    rule = f"ASR lower limit (one-sided {100 * ONE_SIDED:g} %) above baseline - {100 * margin:g} pp"
    change = measured.changes.get("asr")
    if change is None:
        return _result(gate, "skipped", rule, threshold=-margin)
    estimate, lower = change.estimate, change.lower
    if lower is None:
        status: Status = "not_estimable"
        why = estimate.status.removeprefix("not_estimable: ")
    elif lower > -margin - ROUNDING:
        status, why = "pass", f"lower limit {100 * lower:+z.1f} pp"
    else:
        status, why = "fail", f"not shown: lower limit {100 * lower:+z.1f} pp"
        limits = sided.changes["asr"].estimate.interval if "asr" in sided.changes else None
        if gate.rule == "not_shown_bad" and limits is not None and limits[1] >= -margin:
            status, why = "open", f"{why}, and not shown to be inferior either"
    why = "; ".join(filter(None, [why, change.note]))
    return _result(gate, status, rule, estimate, why=why, threshold=-margin)


def of_regression(
    gate: Setting, measured: Measurements, sided: Measurements, confidence_level: float
) -> GateResult:
    """Test whether pass@1 dropped, over all tasks and in each category."""
    drop = gate.numbers["max_drop_pp"] / 100
    rule = f"pass@1 not more than {100 * drop:g} pp below the baseline"
    change = measured.changes.get("pass_at_1")
    if change is None:
        return _result(gate, "skipped", rule, threshold=-drop)
    estimate = change.estimate
    limits = sided.changes["pass_at_1"].estimate if "pass_at_1" in sided.changes else None
    status, why = check(estimate, -drop, at_least=True, rule=gate.rule, sided=limits)
    parts = _categories(measured, drop, 1 - confidence_level)
    worse = [part.name for part in parts if part.status == "fail"]
    if worse:
        shown = ", ".join(worse[:5]) + (f" and {len(worse) - 5} more" if worse[5:] else "")
        status, why = "fail", "; ".join(filter(None, [why, f"category {shown} (Holm)"]))
    why = "; ".join(filter(None, [why, change.note]))
    return _result(gate, status, rule, estimate, why=why, threshold=-drop, parts=parts)


def _categories(measured: Measurements, drop: float, alpha: float) -> tuple[Condition, ...]:
    """Fail the categories shown to have dropped by more, at `alpha` over all (Holm).

    A category that cannot be tested neither fails nor passes: the gate rests on all tasks.
    """
    p_values = {name: change.p_below for name, change in measured.by_category.items()}
    tested = sorted((p, name) for name, p in p_values.items() if p is not None)
    rejected: set[str] = set()
    for rank, (smallest, name) in enumerate(tested):
        if smallest > alpha / (len(tested) - rank):
            break
        rejected.add(name)
    parts = []
    for name, change in measured.by_category.items():
        p, estimate = p_values[name], change.estimate
        status: Status = "not_estimable" if p is None else "fail" if name in rejected else "pass"
        why = estimate.status.removeprefix("not_estimable: ") if p is None else f"p = {p:.2g}"
        parts.append(
            Condition(
                name=name, status=status, value=estimate.value, interval=estimate.interval,
                rule=f">= {-100 * drop:g} pp (Holm)", n=estimate.n, why=why,
            )
        )  # fmt: skip
    return tuple(parts)


def of_cost(gate: Setting, measured: Measurements, sided: Measurements) -> GateResult:
    """Compare every workflow with its ceiling, and the share of runs above with its limit."""
    most, least = gate.numbers["max_share_over"], gate.numbers["minimum_coverage"]
    rule = f"mean per unit <= ceiling in every workflow, <= {100 * most:g} % of runs above"
    cost = measured.cost
    if cost is None:
        return _result(gate, "skipped", rule, threshold=most)
    limits = sided.cost or cost
    means = {flow.name: flow.mean_per_unit for flow in limits.workflows}
    parts = [checked_part("runs above their ceiling", cost.share_over, most, at_least=False,
                          rule=gate.rule, sided=limits.share_over)]  # fmt: skip
    for flow in cost.workflows:
        mean, coverage = flow.mean_per_unit, flow.n_known / flow.n if flow.n else 0.0
        if flow.ceiling is None:
            part = Condition(
                name=flow.name, status="not_estimable", value=mean.value, interval=mean.interval,
                rule="<= ceiling", n=flow.n_known,
                why="no ceiling: set one, for files under [ceilings]",
            )  # fmt: skip
        else:
            part = checked_part(flow.name, mean, flow.ceiling, at_least=False, rule=gate.rule,
                                sided=means.get(flow.name))  # fmt: skip
        # Low costs of runs with a known cost prove nothing about the others.
        if coverage < least - ROUNDING and part.status == "pass":
            why = f"cost known of {flow.n_known:,} of {flow.n:,} runs, {100 * least:g} % are needed"
            part = replace(part, status="not_estimable", why=why)
        parts.append(part)
    status, why = worst_of(parts)
    return _result(gate, status, rule, cost.share_over, why=why, threshold=most, parts=tuple(parts))


def of_trend(gate: Setting, measured: Measurements) -> GateResult:
    """Fail while the weekly rate is below its baseline by CUSUM."""
    trend, rule = measured.trend, "no lasting drop of the weekly rate (CUSUM)"
    if trend is None:
        return _result(gate, "skipped", rule)
    # The path has no interval; its limit is set for its false alarms.
    status, why = check(trend.path, trend.limit, at_least=False)
    return _result(gate, status, rule, trend.path, why=trend.why or why, threshold=trend.limit)


def evaluate(
    measured: Measurements,
    gates: GateFile,
    *,
    sided: Measurements | None = None,
    today: date | None = None,
) -> GateReport:
    """Decide every gate.

    `sided` : the same measurements with two-sided 90 % limits, which the rules ``shown_good`` and
    ``not_shown_bad`` need. An open gate does not fail the run, and has not passed.

    A must gate that is skipped or not estimable fails the run unless it has `allow_skipped`:
    without a measurement nothing passes. A decision to accept a gate changes no status; it counts
    up to and including its day, `today` being the present day in UTC by default.

    Examples
    --------
    >>> from calibration.gates.gate_file import default_gates
    >>> report = evaluate(Measurements(), default_gates())
    >>> {gate.status for gate in report.gates}, report.exit_code
    ({'skipped'}, 1)
    """
    results = []
    today = today or datetime.now(UTC).date()
    decided = {one.gate: one for one in gates.accepted}
    for gate in gates.gates:
        found = _decide(gate, measured, sided or Measurements(), gates.confidence_level)
        missing = found.status in ("skipped", "not_estimable")
        blocks = gate.level == "must" and (
            found.status == "fail" or (missing and not gate.allow_skipped)
        )
        risk = _risk(decided.get(gate.name), found.status, today)
        results.append(replace(found, blocks=blocks, accepted=risk))
    return GateReport(gates=tuple(results), confidence_level=gates.confidence_level)


def _risk(one: Acceptance | None, status: Status, today: date) -> AcceptedRisk | None:
    """Return what a decision means for a gate with this status."""
    if one is None:
        return None
    return AcceptedRisk(
        status="not_needed"
        if status == "pass"
        else "accepted"
        if today <= one.until
        else "expired",
        by=one.by,
        why=one.why,
        until=one.until.isoformat(),
    )


def _decide(
    gate: Setting, measured: Measurements, sided: Measurements, confidence_level: float
) -> GateResult:
    match gate.metric:
        case "pass_at" | "pass_hat" | "asr" | "latency_p95":
            found = _rate(gate, measured.rates.get(gate.name), sided.rates.get(gate.name))
        case "loops" | "data_corruption":
            events, in_a_row = (measured.events.get(f"{gate.name}{of}") for of in ("", IN_A_ROW))
            found = _events(gate, events, confidence_level, in_a_row)
        case "order":
            found = _order(gate, measured.orders, confidence_level)
        case "human_review":
            found = _review(gate, measured.review, sided.review)
        case "judge":
            found = of_judge(gate, measured, sided)
        case "non_inferior":
            found = of_non_inferior(gate, measured, sided)
        case "regression":
            found = of_regression(gate, measured, sided, confidence_level)
        case "trend":
            found = of_trend(gate, measured)
        case _:
            found = of_cost(gate, measured, sided)
    if found.status != "skipped":
        return found
    why = measured.why_not.get(gate.name) or NOT_RECORDED.get(gate.metric, "not measured")
    return replace(found, why=why)


def _rate(gate: Setting, estimate: Estimate | None, sided: Estimate | None) -> GateResult:
    """Decide a rate, or the latency, which is strictly below its threshold."""
    at_least, threshold = gate.metric != "latency_p95", gate.numbers["threshold"]
    rule = f">= {threshold:g}" if at_least else f"< {threshold:g} s"
    if estimate is None:
        return _result(gate, "skipped", rule, threshold=threshold)
    status, why = check(estimate, threshold, at_least=at_least, rule=gate.rule, sided=sided)
    if status == "pass" and not at_least and estimate.value == threshold and not why:
        status = "open" if gate.rule == "not_shown_bad" else "fail"
    size = _of_size(gate, estimate, status) if at_least else ""
    why = f"{why} {size}" if status == "open" and size else _both(why, size)
    return _result(gate, status, rule, estimate, why=why, threshold=threshold)


def _of_size(gate: Setting, estimate: Estimate, status: Status) -> str:
    """Say what the number of tasks can show; empty where tasks are not yes or no, or are enough."""
    threshold, n = gate.numbers["threshold"], estimate.n
    if gate.metric not in ("pass_at", "pass_hat") or not 0 < threshold < 1 or n < 1:
        return ""
    good = (1 + threshold) / 2
    needed = tasks_to_show(threshold, good)
    if needed is None or n >= needed:
        return ""
    if status == "open":
        return f"({counted(n, 'task')}; {needed:,} would show {good:.2f})"
    if gate.rule != "value" or threshold <= BELOW:
        return ""
    chance = chance_to_pass(n, threshold - BELOW, threshold, rule="value")
    return (
        f"with {counted(n, 'task')} an agent of {threshold - BELOW:g} passes in {100 * chance:.2g} "
        "% of cases"
    )


def _events(
    gate: Setting, events: Events | None, confidence_level: float, in_a_row: Events | None = None
) -> GateResult:
    threshold, most = gate.numbers["threshold"], gate.numbers["max_upper"]
    rule = f"<= {threshold:g} of runs" + (f", upper limit <= {most:g}" if most < 1 else "")
    if events is None or not events.n:
        return _result(gate, "skipped", rule, threshold=threshold)
    share, interval = events.count / events.n, events.interval(confidence_level)
    found = Estimate(value=share, interval=interval, n=events.n, method="exact, independent runs")
    sided = replace(found, interval=exact_limits(share, events.n, 2 * ONE_SIDED - 1))
    status, reason = check(found, threshold, at_least=False, rule=gate.rule, sided=sided)
    why = f"{events.count:,} of {events.n:,} runs; exact upper limit {100 * interval[1]:.2g} %"
    if not events.count and events.n_tasks < events.n:
        by_task = events.bound_by_task(confidence_level)
        why += f", {100 * by_task:.2g} % when the runs of a task count once"
    if in_a_row is not None:
        why += f"; in a row in {in_a_row.count:,} of {in_a_row.n:,}"
    if gate.rule != "value":
        why = _both(reason, why)
    if status == "pass" and interval[1] > most:
        status, why = "not_estimable", f"{why}: more runs are needed to show {100 * most:g} %"
    return _result(gate, status, rule, found, why=why, threshold=threshold)


def _order(gate: Setting, orders: Sequence[OrderMeasured], confidence_level: float) -> GateResult:
    """Check each rule of order; a rule that applies to no run is skipped."""
    of_rules = [(of, _events(gate, of.events, confidence_level)) for of in orders]
    parts = tuple(
        Condition(
            name=of.rule, status=found.status, value=found.value, interval=found.interval,
            rule=found.rule, n=found.n,
            why=found.why + (f"; first: {', '.join(of.first)}" if of.first else "")
            if of.events.n
            else "applies to no run",
        )
        for of, found in of_rules
    )  # fmt: skip
    told = [found for _, found in of_rules if found.value is not None]
    if not told:
        return replace(_events(gate, None, confidence_level), parts=parts)
    worst = max(told, key=lambda found: found.value or 0.0)
    status, why = worst_of(parts)
    return replace(worst, status=status, why=why, parts=parts)


def _review(gate: Setting, review: Estimate | None, sided: Estimate | None) -> GateResult:
    threshold, least = gate.numbers["threshold"], int(gate.numbers["minimum_n"])
    rule = f">= {threshold:g} of at least {least} transcripts"
    if review is None:
        return _result(gate, "skipped", rule, threshold=threshold)
    status, why = check(review, threshold, at_least=True, rule=gate.rule, sided=sided)
    if review.n < least:
        status, why = "not_estimable", f"{review.n} reviewed, {least} are needed: review more"
    return _result(gate, status, rule, review, why=why, threshold=threshold)
