"""Results as JSON: full precision, undefined as null with a status."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from calibration.agreement.annotators import AgainstKey, PairAgreement
from calibration.agreement.disagreement import PairPrevalence, Share
from calibration.agreement.study import Study
from calibration.analyses.agreement.analysis import AgreementAnalysis, ReviewerProfile
from calibration.analyses.agreement.ratings import RatingsAgreement
from calibration.analyses.agreement.recommendations import Recommendation, next_steps
from calibration.analyses.demo import Demo
from calibration.analyses.evidence.data import ReviewedTrace
from calibration.analyses.imports import ImportReport
from calibration.analyses.judge.calibration import JudgeCalibration
from calibration.analyses.judge.diagnostics import JudgeDiagnostics
from calibration.analyses.judge.drift import JudgeDrift
from calibration.analyses.judge.groups import GroupRates
from calibration.analyses.success_rate.report import (
    Change,
    CostPanel,
    Latency,
    Origin,
    Passes,
    ProductionReport,
    RateGroup,
    Signal,
    VerdictMix,
    WorkList,
)
from calibration.judge_calibration.bias import NodeQuality, OrdinalAgreement
from calibration.judge_calibration.groups import GroupComparison
from calibration.judge_calibration.samples import ClassQuality
from calibration.records import OUTCOMES
from calibration.statistics.contingency import TestResult
from calibration.statistics.estimate import Estimate
from calibration.statistics.means import MeanAgainstZero
from calibration.success_rate.comparison import ClassChange, Difference
from calibration.success_rate.rate import AgentSuccessRate
from calibration.success_rate.trend import Week

FORMAT = "asr-report/1"


Json = dict[str, Any]


def estimate(result: Estimate) -> Json:
    """Return one estimate."""
    return {
        "value": result.value,
        "interval": None if result.interval is None else list(result.interval),
        "se": result.se,
        "n": result.n,
        "method": result.method,
        "confidence_level": result.confidence_level,
        "status": result.status,
    }


def as_text(data: Json) -> str:
    """Return JSON for a file, in full precision; NaN is an error here, never output."""
    return json.dumps(data, ensure_ascii=True, allow_nan=False, indent=1) + "\n"


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


def success_rate(found: AgentSuccessRate) -> Json:
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


def _groups(groups: tuple[RateGroup, ...]) -> Json:
    return {"" if g.name is None else g.name: _group(g) for g in groups}


def _group(group: RateGroup) -> Json:
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


def agreement(result: AgreementAnalysis) -> Json:
    """Return the agreement of a batch."""
    return {
        **_study(result.study, result.classes, result.reviewers),
        "against_keys": [_profile(of, result.classes) for of in result.profiles],
        "near": estimate(result.near),
        "near_misses": estimate(result.near_misses),
        "by_task": None if result.by_task is None else estimate(result.by_task),
        "weighted_to_production": {n: estimate(e) for n, e in result.weighted.items()} or None,
        "cluster": result.cluster,
        "disputed": [_disputed(of) for of in result.disputed],
        "next_steps": [_step(step) for step in next_steps(result)],
        "latent_truth_status": result.truth.status,
        "unplanned": result.unplanned,
        "exposed": result.exposed,
        "random_sample_of_production": result.is_sample,
        "batch_id": result.batch_id,
        "simulated": result.simulated,
        "fingerprint": result.fingerprint,
    }


def _disputed(of: ReviewedTrace) -> Json:
    return {
        "trace_id": of.trace_id,
        "labels": of.classes,
        "question": of.question,
        "cost": of.cost,
        "entropy": of.entropy,
        "adjudicated": of.adjudicated,
    }


def _step(step: Recommendation) -> Json:
    return {
        "kind": step.kind,
        "what": step.what,
        "why": step.why,
        "traces": [] if step.traces is None else list(step.traces.trace_ids),
        "command": None if step.command is None else f"asr {step.command}",
    }


def ratings(result: RatingsAgreement) -> Json:
    """Return the agreement on a file of ratings."""
    items = result.ratings.items
    return {
        **_study(result.study, result.ratings.classes, result.ratings.raters),
        "costly_items": [
            {"item": items[costly.item], "cost": costly.cost} for costly in result.study.costly
        ],
        "classes": list(result.ratings.classes),
        "weights": result.weights,
        "cluster": result.cluster,
    }


def _study(found: Study, classes: Sequence[str], raters: Sequence[str]) -> Json:
    counts = {"n_items": found.overall.n_items, "n_ratings": found.overall.n_ratings}
    return {
        "coefficients": {n: estimate(e) | counts for n, e in found.coefficients.items()},
        "bootstrap": _bootstrap(found),
        # A file that uses one class alone still has two: the other was never used.
        "per_class": {
            name: {"specific_agreement": estimate(same), "fleiss_kappa": estimate(kappa)}
            | {"share": share}
            for name, same, kappa, share in zip(
                classes, found.overall.specific, found.class_kappas, found.overall.class_shares,
                strict=False,
            )
        },
        "confusions": [
            {"classes": [classes[c.first], classes[c.second]]} | _share(c.share)
            for c in found.confusions
        ],
        "per_node": {
            name: {
                "krippendorff_alpha": estimate(node.alpha),
                "gwet_ac": estimate(node.ac1),
                "percent_agreement": estimate(node.percent_agreement),
                "disagreement": _share(node.share),
                "n_items": node.n_items,
                "n_ratings": node.n_ratings,
            }
            for name, node in found.nodes.items()
        },
        "per_week": {
            name: {
                "krippendorff_alpha": estimate(group.alpha),
                "gwet_ac": estimate(group.ac1),
                "percent_agreement": estimate(group.percent_agreement),
                "n_items": group.n_items,
                "n_ratings": group.n_ratings,
            }
            for name, group in found.groups.items()
        },
        "per_reviewer": [
            {
                "reviewer": raters[of.rater],
                "agreement_with_others": estimate(of.agreement_with_others),
                "krippendorff_alpha_without": estimate(of.alpha_without),
                "change_without": estimate(of.change),
                "p_holm": of.p_holm,
            }
            for of in found.beside
        ],
        "pairwise": [
            _pair(raters, pair, bias)
            for pair, bias in zip(found.pairs, found.prevalence.pairs, strict=True)
        ],
        "equal_use_of_classes": _margins(found, classes, raters),
        "prevalence": _prevalence(found, classes),
    }  # fmt: skip


def _bootstrap(found: Study) -> Json:
    bootstrap = found.bootstrap
    return {
        "krippendorff_alpha": {
            "percentile": estimate(bootstrap.percentile),
            "bca": estimate(bootstrap.bca),
            "reaches": [
                {"bound": bound, "probability": share} for bound, share in bootstrap.reaches.items()
            ],
        },
        "n_resamples": bootstrap.n_resamples,
        "seed": bootstrap.seed,
    }


def _share(share: Share) -> Json:
    return {
        "share": estimate(share.observed),
        "share_by_chance": share.expected,
        "lift": share.lift,
        "alpha": share.alpha,
        "n_items": share.n_items,
    }


def _test(found: TestResult) -> Json:
    return {
        "statistic": found.statistic,
        "df": found.df,
        "p_value": found.p_value,
        "n": found.n,
        "method": found.method,
        "status": found.status,
    }


def _pair(raters: Sequence[str], pair: PairAgreement, use: PairPrevalence) -> Json:
    return {
        "reviewers": [raters[pair.first], raters[pair.second]],
        "n_shared": pair.n_shared,
        "table": [list(row) for row in pair.table],
        "percent_agreement": estimate(pair.percent_agreement),
        "krippendorff_alpha": estimate(pair.alpha),
        "cohen_kappa": estimate(pair.kappa),
        "equal_margins": _test(pair.margins),
        "bias_index": use.bias_index,
        "kappa_max": use.kappa_max,
    }


def _profile(of: ReviewerProfile, classes: Sequence[str]) -> Json:
    return {
        "reviewer": of.reviewer_id,
        "n_labels": of.n_labels,
        "against_consensus": _key(of.consensus, classes),
        "against_canonical": _key(of.canonical, classes),
    }


def _key(found: AgainstKey | None, classes: Sequence[str]) -> Json | None:
    if found is None:
        return None
    return {
        "n": found.n,
        "accuracy": estimate(found.accuracy),
        "gwet_ac": estimate(found.gwet_ac),
        "cohen_kappa": estimate(found.cohen_kappa),
        "per_class": {
            classes[c.class_code]: {
                "recall": estimate(c.recall),
                "precision": estimate(c.precision),
            }
            for c in found.per_class
        },
        "rows_key_columns_reviewer": [list(row) for row in found.table],
    }


def _margins(found: Study, classes: Sequence[str], raters: Sequence[str]) -> Json:
    margins = found.margins
    return {
        "test": _test(margins.test),
        "n_differing": margins.n_differing,
        "differences": [
            {
                "reviewer": raters[d.rater],
                "class": classes[d.class_code],
                "share": d.share,
                "share_of_others": d.share_of_others,
                "difference": estimate(d.difference),
                "p_value": d.p_value,
                "p_holm": d.p_holm,
            }
            for d in margins.differences
        ],
    }


def _prevalence(found: Study, classes: Sequence[str]) -> dict[str, Any]:
    use = found.prevalence
    return {
        "status": use.status,
        "gap_alpha_less_ac1": estimate(use.gap),
        "prevalence_index": use.prevalence_index,
        "rare_classes": [classes[k] for k in use.rare_classes],
        "unused_classes": [classes[k] for k in use.unused_classes if k < len(classes)],
    }


def tested(found: MeanAgainstZero) -> Json:
    """Return a mean with its p-value."""
    return estimate(found.estimate) | {"p_value": found.p_value}


def diagnostics(result: JudgeDiagnostics) -> Json:
    """Return the diagnostics of a judge; disagreements all of them."""
    return {
        "ceiling": {
            name: {
                "humans": estimate(b.panel),
                "judge": estimate(b.outsider),
                "difference": estimate(b.difference),
                "within_human_disagreement": b.within,
            }
            for name, b in result.ceiling.items()
        },
        "grades": None
        if result.grades is None
        else ordinal(result.grades) | {"scale": list(result.grade_names)},
        "per_node": {
            name: _node(q) | {"errors_begin": result.errors.get(name, 0.0)}
            for name, q in result.nodes.items()
        },
        "errors_without_verdict": result.errors.get(None, 0.0),
        "disagreements": [_reviewed(item) for item in result.disagreements],
        "leniency": tested(result.leniency),
        "leniency_by": {
            by: {
                row.group: tested(row.gap)
                | {
                    "p_holm": row.p_holm,
                    "judge_credit": row.verdict_credit,
                    "human_credit": row.human_credit,
                }
                for row in rows
            }
            for by, rows in result.leniency_by.items()
        },
        "slopes_per_doubling": {name: tested(found) for name, found in result.slopes.items()},
        "own_family": tested(result.own_family),
        "retest": {
            "changed": estimate(result.retest.changed),
            "two_differ": estimate(result.retest.differ),
            "most_asked": result.retest.most_asked,
            "changed_by_first_verdict": _by_name(result.verdict_names, result.retest.per_verdict),
        },
        "missing": list(result.missing),
        "notes": list(result.notes),
        "fingerprint": result.fingerprint,
    }


def _reviewed(of: ReviewedTrace) -> Json:
    parts = ("trace_id", "workflow", "agent", "verdict", "human", "adjudicated")
    return {name: getattr(of, name) for name in parts} | {
        "labels": [
            {
                "reviewer": label.reviewer,
                "outcome": label.outcome,
                "rationale": label.rationale,
                "evidence": [asdict(part) for part in label.evidence],
            }
            for label in of.labels
        ],
        "reason": of.reason,
        "evidence": [asdict(part) for part in of.evidence],
        "question": of.question,
        "credit_difference": of.credit_difference,
        "weight": of.weight,
        "moves": of.moves,
    }


def _by_name(names: Sequence[str], found: Sequence[Estimate]) -> Json:
    return {name: estimate(e) for name, e in zip(names, found, strict=False)}


def _node(found: NodeQuality) -> Json:
    shares = ("accuracy", "yes_recall", "yes_precision", "no_recall", "no_precision")
    return {name: estimate(getattr(found, name)) for name in shares} | {
        "table_human_by_judge_yes_no": [list(row) for row in found.table],
        "only_human": found.only_human,
        "only_judge": found.only_judge,
    }


def drift(result: JudgeDrift) -> Json:
    """Return how two judges differ."""
    humans = result.against_humans
    return {
        "before": result.before,
        "after": result.after,
        "n": result.n,
        "verdicts": list(result.verdict_names),
        "table_before_by_after": [list(row) for row in result.table],
        "classes": {
            row.name: {
                "before": row.before,
                "after": row.after,
                "only_before": row.only_before,
                "only_after": row.only_after,
                "test": asdict(row.test),
                "p_holm": row.p_holm,
            }
            for row in result.classes
        },
        "credit_change": tested(result.credit_change),
        "same": estimate(result.same),
        "alpha": estimate(result.alpha),
        "against_humans": None
        if humans is None
        else {
            "n": humans.n,
            "accuracy_before": estimate(humans.accuracy_before.estimate),
            "accuracy_after": estimate(humans.accuracy_after.estimate),
            "accuracy_change": tested(humans.accuracy_change),
            "leniency_change": tested(humans.leniency_change),
            "error_change": tested(humans.error_change),
        },
        "fingerprint": result.fingerprint,
    }


def groups(result: GroupRates) -> Json:
    """Return the corrected rate of each group and the differences."""
    return {
        "design": result.design,
        "by": result.by,
        "groups": {
            row.name: {
                "kind": row.net.kind,
                "net": estimate(row.net.estimate),
                "gross": estimate(row.gross.estimate),
                "n_labels": row.net.n_labels,
                "n_production": row.net.n_production,
                "leniency": tested(row.leniency),
            }
            for row in result.groups
        },
        "error_rates_alike": asdict(result.rates),
        "comparisons": [
            {
                "first": pair.net.first,
                "second": pair.net.second,
                "kind": pair.net.kind,
                "may_gate": pair.net.may_gate,
                "net": _comparison(pair.net),
                "gross": _comparison(pair.gross),
                "leniency_difference": estimate(pair.leniency_difference),
            }
            for pair in result.pairs
        ],
        "seed": result.seed,
        "fingerprint": result.fingerprint,
    }


def _comparison(found: GroupComparison) -> Json:
    return estimate(found.difference) | {
        "sides": [estimate(side) for side in found.sides],
        "flip_chance": found.flip_chance,
        "flips_at": found.flips_at,
    }


def ordinal(found: OrdinalAgreement) -> Json:
    """Return how close the judge's grades come."""
    return {
        "exact": estimate(found.exact),
        "within_one": estimate(found.within_one),
        "within_one_by_chance": found.within_one_by_chance,
        "quadratic_kappa": estimate(found.kappa),
        "bias": found.bias,
    }


def calibrated(result: JudgeCalibration) -> Json:
    """Return what holds wherever labels and verdicts came from."""
    calibration = result.calibration
    estimates = calibration.estimates
    return {
        "design": result.design,
        "classes": list(result.classes),
        "credit": result.credit,
        "n_labels": calibration.n_labels,
        "n_production": calibration.n_production,
        "headline": calibration.headline,
        "estimates": {name: estimate(e.net) for name, e in estimates.items()},
        "estimates_gross": {name: estimate(e.gross) for name, e in estimates.items()},
        "class_shares": {
            name: _by_class(result, shares) for name, shares in calibration.class_shares.items()
        },
        "judge": _quality(result),
        "label_worth": None if calibration.gain is None else estimate(calibration.gain),
        "confusion": {
            "rows_human": list(result.classes),
            "columns_verdict": list(result.verdict_names),
            "counts": calibration.confusion.table.tolist(),
        },
        "human": None if result.human is None else asdict(result.human),
        "disagreements": [_differing(of) for of in result.disagreements],
        "without_reviewer": result.without_reviewer,
        "skipped": result.skipped,
        "if_skipped": None if result.if_skipped is None else list(result.if_skipped),
        "refusals": [asdict(notice) for notice in calibration.refusals],
        "warnings": [asdict(notice) for notice in calibration.warnings],
        "notes": list(result.notes),
        "set_aside": [asdict(row) for row in result.set_aside],
        "seed": result.seed,
        "fingerprint": result.fingerprint,
    }


def _differing(of: ReviewedTrace) -> Json:
    reasons = {label.reviewer: label.rationale for label in of.labels if label.rationale}
    return {
        "trace_id": of.trace_id,
        "verdict": of.verdict,
        "labels": of.classes,
        "rationales": reasons,
    }


def result(found: JudgeCalibration) -> Json:
    """Return a calibration with where its labels and verdicts came from."""
    of = found.provenance
    if of.source == "store":
        said: Json = {
            "judge_id": of.judge_id,
            "batch_id": of.batch_id,
            "simulated": of.simulated,
        }
    elif of.source == "files":
        said = {"human_file": of.labels, "verdict_file": of.verdicts}
    else:
        said = {"file": of.verdicts}
    return {**said, **calibrated(found)}


def _by_class(result: JudgeCalibration, shares: tuple[Estimate, ...]) -> Json:
    return dict(zip(result.classes, map(estimate, shares), strict=True))


def _quality(result: JudgeCalibration) -> Json:
    quality = result.calibration.judge
    return {
        "kappa": estimate(quality.kappa),
        "alpha": estimate(result.alpha),
        "accuracy": estimate(quality.accuracy),
        "per_class": {
            name: _of_class(one)
            for name, one in zip(result.classes, quality.per_class, strict=True)
        },
    }


def _of_class(quality: ClassQuality) -> Json:
    return {
        "recall": estimate(quality.recall),
        "precision": estimate(quality.precision),
        "n_human": quality.n_human,
        "n_judge": quality.n_judge,
    }


def import_report(report: ImportReport) -> Json:
    """Return what an import did."""
    return {
        "files": report.files,
        "imported": report.imported,
        "already_there": report.already_there,
        "changed": report.changed,
        "possible_duplicates": report.possible_duplicates,
        "verdicts": report.verdicts,
        "set_aside": [
            {"file": row.file, "line": row.line, "reason": row.reason} for row in report.set_aside
        ],
    }


def demo(result: Demo) -> Json:
    """Return the three rates of the demonstration beside the truth."""
    judged = result.report.judged
    three = (
        {}
        if judged is None
        else {
            "raw": judged.judge_raw,
            "human_only": judged.human_only,
            "corrected": judged.corrected,
        }
    )
    return {
        **{name: None if e is None else estimate(e) for name, e in three.items()},
        "truth": result.truth,
        "simulated": True,
        "seed": result.seed,
        "fingerprint": result.report.origin.fingerprint,
    }
