"""The report on the Agent Success Rate as JSON; `schemas/report.schema.json` describes it."""

import json
from collections.abc import Sequence
from importlib.resources import files

from calibration.analyses.asr_report import (
    Change,
    CostPanel,
    Group,
    Latency,
    Origin,
    Passes,
    ProductionReport,
    Signal,
    VerdictMix,
    WorkList,
)
from calibration.estimates import Estimate
from calibration.metrics.asr import AgentSuccessRate
from calibration.metrics.class_changes import ClassChange
from calibration.metrics.differences import Difference
from calibration.metrics.weekly import Week
from calibration.records import OUTCOMES
from calibration.reporting.json_values import Json, estimate

FORMAT = "asr-report/1"


def schema() -> Json:
    """Return the JSON Schema that every report satisfies."""
    text = files("calibration.reporting").joinpath("schemas/report.schema.json").read_text("utf-8")
    loaded: Json = json.loads(text)
    return loaded


def report(result: ProductionReport) -> Json:
    """Return a report: full precision, null where undefined, with the reason in a status."""
    weekly = result.weekly
    return {
        "format": FORMAT,
        "calibrated": result.calibrated,
        "kind": result.kind,
        "target": result.target,
        "n": result.n,
        "n_tasks": result.n_tasks,
        "window": {"first": result.first, "last": result.last},
        "asr": estimate(result.asr),
        "asr_gross": estimate(result.asr_gross),
        "asr_literal": estimate(result.asr_literal),
        "asr_without_abandoned": estimate(result.asr_without_abandoned),
        "pass_rate": estimate(result.pass_rate),
        "mean_effective_penalty": result.mean_effective_penalty,
        "identity": result.identity,
        "asr_range_missing_cost": list(result.asr_range),
        "rounding": result.rounding,
        "class_shares": {c.outcome: estimate(c.share) for c in result.classes},
        "change": None if result.change is None else _change(result.change),
        "cost": cost(result.cost),
        "weekly": [] if weekly is None else [_week(week) for week in weekly.weeks],
        "weekly_rule": None
        if weekly is None
        else {
            "false_alarm_rate": weekly.false_alarm_rate,
            "n_without_week": weekly.n_without_week,
            "rolling": "pooled" if weekly.pooled else "mean of weeks",
        },
        "by_workflow": _groups(result.by_workflow),
        "by_model": _groups(result.by_model),
        "by_tag": _groups(result.by_tag),
        "tags_left_out": result.tags_left_out,
        "passes": [_passes(of) for of in result.passes],
        "sensitivity": [
            {
                "name": row.name,
                "credit": dict(zip(OUTCOMES, row.credit, strict=True)),
                "asr": estimate(row.asr),
            }
            for row in result.sensitivity
        ],
        "work_lists": {item.outcome: _work(item) for item in result.work_lists},
        "signals": {s.key: _signal(s) for s in result.signals},
        "verdict_mix": None if result.verdict_mix is None else _mix(result.verdict_mix),
        "latency": _latency(result.latency),
        "set_aside": [
            {"reason": row.reason, "n": row.n, "examples": list(row.examples)}
            for row in result.set_aside
        ],
        "judged": None
        if result.judged is None
        else {
            "judge_raw": optional(result.judged.judge_raw),
            "human_only": estimate(result.judged.human_only),
            "corrected": estimate(result.judged.corrected),
            "corrected_gross": estimate(result.judged.corrected_gross),
            "two_source": optional(result.judged.two_source),
        },
        "warnings": list(result.warnings),
        "notes": list(result.notes),
        "basis": result.basis,
        "marks": list(result.marks),
        "details": dict(result.details),
        "origin": origin(result.origin),
        "fingerprint": result.origin.fingerprint,
    }


def _signal(signal: Signal) -> Json:
    return {
        "name": signal.name,
        "unit": signal.unit,
        "over_all": estimate(signal.over_all),
        "weekly": {week: estimate(found) for week, found in signal.by_week},
    }


def _mix(mix: VerdictMix) -> Json:
    return {
        "status": mix.status,
        "weekly": [
            {
                "week": week.week,
                "n": week.n,
                "shares": {name: estimate(found) for name, found in week.shares},
                "distance_pp": _pp(week.shift.distance),
                "by_chance_pp": _pp(week.shift.by_chance),
                "p": week.shift.p_value,
                "adjusted_p": week.shift.adjusted_p_value,
                "flagged": week.shift.flagged,
                "status": week.shift.status,
            }
            for week in mix.weeks
        ],
    }


def optional(result: Estimate | None) -> Json | None:
    """Return an estimate, or null where none was made."""
    return None if result is None else estimate(result)


def difference(change: Difference) -> Json:
    """Return a difference in percentage points."""
    made = change.estimate
    return {
        "value_pp": _pp(made.value),
        "interval": None if made.interval is None else [100 * end for end in made.interval],
        "p": change.p_value,
        "mde_pp": _pp(change.minimum_detectable),
        "n": made.n,
        "method": made.method,
        "confidence_level": made.confidence_level,
        "status": made.status,
    }


def rate(found: AgentSuccessRate) -> Json:
    """Return one Agent Success Rate with everything that it splits into."""
    return {
        "asr": estimate(found.asr),
        "asr_gross": estimate(found.asr_gross),
        "asr_literal": found.asr_literal,
        "asr_without_abandoned": estimate(found.asr_without_abandoned),
        "pass_rate": estimate(found.pass_rate),
        "mean_effective_penalty": found.mean_effective_penalty,
        "asr_range_missing_cost": list(found.asr_range),
        "cost_coverage": found.cost_coverage,
        "class_shares": dict(zip(OUTCOMES, map(estimate, found.class_shares), strict=True)),
    }


def cost(panel: CostPanel) -> Json:
    """Return a cost panel."""
    return {
        "n": panel.n,
        "n_known": panel.n_known,
        "coverage": panel.coverage,
        "n_without_ceiling": panel.n_without_ceiling,
        "mean_usd": panel.mean,
        "p50_usd": panel.p50,
        "p90_usd": panel.p90,
        "p99_usd": panel.p99,
        "share_above_ceiling": optional(panel.share_above_ceiling),
        "cost_per_success_usd": estimate(panel.per_success),
        "of_ceiling": None
        if panel.of_ceiling is None
        else dict(zip(("p50", "p90", "p99"), panel.of_ceiling, strict=True)),
    }


def _pp(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _change(change: Change) -> Json:
    return {
        "later": change.later,
        "earlier": change.earlier,
        "before": estimate(change.before),
        "after": estimate(change.after),
        "asr": difference(change.asr),
        "n_pairs": change.n_pairs,
        "class_shares": class_changes(change.classes),
    }


def class_changes(classes: Sequence[ClassChange]) -> Json:
    """Return what became of every class share, with its flag."""
    return {
        c.outcome: {
            **difference(c.change),
            "before": c.before,
            "after": c.after,
            "p": c.p_value,
            "adjusted_p": c.adjusted_p_value,
            "flagged": c.flagged,
        }
        for c in classes
    }


def _week(week: Week) -> Json:
    expected = week.expected
    return {
        "week": week.week,
        "n": week.n,
        "asr": estimate(week.rate),
        "rolling_4_weeks": estimate(week.rolling),
        "expected": None
        if expected is None
        else {
            "value": expected.value,
            "interval": list(expected.interval),
            "n_weeks": expected.n_weeks,
        },
        "anomaly": None if expected is None else expected.anomaly,
    }


def _groups(groups: tuple[Group, ...]) -> Json:
    return {"" if g.name is None else g.name: _group(g) for g in groups}


def _group(group: Group) -> Json:
    return {
        "n": group.n,
        "asr": estimate(group.asr),
        "asr_gross": optional(group.asr_gross),
        "pass_rate": optional(group.pass_rate),
        "cost": None if group.cost is None else cost(group.cost),
        "ceiling_usd": group.ceiling_usd,
        "unit": group.unit,
    }


def _passes(of: Passes) -> Json:
    return {
        "agent": of.agent,
        "n_tasks": of.n_tasks,
        "most_trials": of.most_trials,
        "points": [
            {
                "k": point.k,
                "pass_at_k": estimate(point.pass_at_k),
                "pass_hat_k": estimate(point.pass_hat_k),
                "n_tasks": point.n_tasks,
                "n_too_few": point.n_too_few,
                "band": point.band,
            }
            for point in of.points
        ],
    }


def _work(item: WorkList) -> Json:
    return {
        "goes_to": item.goes_to,
        "n": item.n,
        "weekly": dict(item.by_week),
        "first": [
            {
                "trace_id": run.trace_id,
                "workflow": run.workflow,
                "week": run.week,
                "model": run.model,
                "cost_usd": run.cost_usd,
                "reasons": list(run.reasons),
                "evidence": list(run.evidence),
            }
            for run in item.first
        ],
    }


def _latency(latency: Latency | None) -> Json | None:
    if latency is None:
        return None
    return {
        "n": latency.n,
        "p50_s": latency.p50,
        "p90_s": latency.p90,
        "p95_s": latency.p95,
        "p99_s": latency.p99,
    }


def origin(made: Origin) -> Json:
    """Return what it takes to make a result again."""
    return {
        "sources": [{"name": s.name, "size": s.size, "sha256": s.sha256} for s in made.sources],
        "settings": dict(made.settings),
        "sampling": made.sampling,
        "judge": made.judge,
        "taxonomy": {
            "version": made.taxonomy_version,
            "fingerprint": made.taxonomy_fingerprint,
        },
        "seed": made.seed,
        "n_resamples": made.n_resamples,
        "confidence_level": made.confidence_level,
        "version": made.package_version,
    }
