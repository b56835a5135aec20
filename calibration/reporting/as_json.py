"""Results as JSON: full precision, undefined as null with a status, never NaN."""

from calibration.analyses.demo import Demo
from calibration.analyses.importing import ImportReport
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
