"""Results as JSON: full precision, undefined as null with a status, never NaN."""

from calibration.analyses.asr import AsrAnalysis, CostSummary
from calibration.analyses.demo import Demo
from calibration.analyses.importing import ImportReport
from calibration.metrics.asr import AgentSuccessRate
from calibration.records import OUTCOMES
from calibration.reporting.calibration_json import of_store
from calibration.reporting.json_values import Json, estimate


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


def rate(result: AgentSuccessRate | None) -> Json | None:
    """Return one Agent Success Rate with everything it splits into."""
    if result is None:
        return None
    return {
        "asr": estimate(result.asr),
        "asr_gross": estimate(result.asr_gross),
        "asr_literal": result.asr_literal,
        "asr_without_abandoned": estimate(result.asr_without_abandoned),
        "pass_rate": estimate(result.pass_rate),
        "mean_effective_penalty": result.mean_effective_penalty,
        "asr_range_missing_cost": list(result.asr_range),
        "cost_coverage": result.cost_coverage,
        "class_shares": dict(zip(OUTCOMES, map(estimate, result.class_shares), strict=True)),
    }


def asr(result: AsrAnalysis) -> Json:
    """Return the report on one batch."""
    return {
        "headline": estimate(result.headline),
        "calibrated": result.calibrated,
        "judge_id": result.judge_id,
        "raw": rate(result.raw),
        "human_only": rate(result.human_only),
        "corrected": estimate(result.corrected),
        "corrected_gross": estimate(result.corrected_gross),
        "class_shares": dict(zip(OUTCOMES, map(estimate, result.class_shares), strict=True)),
        "cost": _cost(result.cost),
        "by_workflow": {
            w.name: {
                "ceiling_usd": w.ceiling_usd,
                "unit": w.unit,
                "cost": _cost(w.cost),
                "n_labelled": w.n_labelled,
                "human_only": estimate(w.human_only),
            }
            for w in result.workflows
        },
        "sampling": {
            "batch_id": result.batch_id,
            "design": result.design,
            "n_production": result.n_production,
            "n_labelled": result.n_labelled,
            "unlabelled": result.unlabelled,
            "skipped": result.skipped,
            "exposed": result.exposed,
            "later_traces": result.later_traces,
            "open_disagreements": result.open_disagreements,
            "reviewers": list(result.reviewers),
        },
        "calibration": None if result.judge is None else of_store(result.judge),
        "credit": dict(result.credit),
        "taxonomy": {
            "version": result.taxonomy_version,
            "fingerprint": result.taxonomy_fingerprint,
        },
        "seed": result.seed,
        "n_resamples": result.n_resamples,
        "simulated": result.simulated,
        "fingerprint": result.fingerprint,
    }


def _cost(cost: CostSummary) -> Json:
    return {
        "n": cost.n,
        "n_known": cost.n_known,
        "coverage": cost.n_known / cost.n if cost.n else None,
        "n_without_ceiling": cost.n_without_ceiling,
        "mean_usd": cost.mean,
        "p50_usd": cost.p50,
        "p90_usd": cost.p90,
        "p99_usd": cost.p99,
        "share_over_ceiling": cost.share_over_ceiling,
    }


def demo(result: Demo) -> Json:
    """Return the three rates of the demonstration beside the truth."""
    raw = result.analysis.raw
    three = {
        "raw": None if raw is None else raw.asr,
        "human_only": result.analysis.human_only.asr,
        "corrected": result.analysis.corrected,
    }
    return {
        **{name: None if e is None else estimate(e) for name, e in three.items()},
        "truth": result.truth,
        "simulated": True,
        "seed": result.seed,
        "fingerprint": result.analysis.fingerprint,
    }
