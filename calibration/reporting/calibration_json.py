"""The calibration of a judge as JSON."""

from dataclasses import asdict

from calibration.analyses.calibrated import Calibrated
from calibration.analyses.calibration_files import FileCalibration
from calibration.analyses.calibration_tables import TableCalibration
from calibration.analyses.judge import JudgeAnalysis
from calibration.correction.quality import ClassQuality
from calibration.estimates import Estimate
from calibration.reporting.json_values import Json, estimate


def calibrated(result: Calibrated) -> Json:
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
        "disagreements": list(result.disagreements),
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


def result(found: Calibrated) -> Json:
    """Return a calibration with where its labels and verdicts came from."""
    if isinstance(found, JudgeAnalysis):
        return of_store(found)
    if isinstance(found, FileCalibration):
        files = {"human_file": found.human_file, "verdict_file": found.verdict_file}
        return {**files, **calibrated(found)}
    if isinstance(found, TableCalibration):
        return {"file": found.file, **calibrated(found)}
    return calibrated(found)


def of_store(result: JudgeAnalysis) -> Json:
    """Return the calibration of a judge of the store."""
    return {
        "judge_id": result.judge_id,
        "batch_id": result.batch_id,
        "simulated": result.simulated,
        **calibrated(result),
    }


def _by_class(result: Calibrated, shares: tuple[Estimate, ...]) -> Json:
    return dict(zip(result.classes, map(estimate, shares), strict=True))


def _quality(result: Calibrated) -> Json:
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
