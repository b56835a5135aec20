"""Calibrated labels as files: CSV that no spreadsheet runs, Parquet, or JSON lines."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from calibration.analyses.calibrated_labels import CalibratedLabels
from calibration.analyses.rows import as_csv
from calibration.errors import InputError
from calibration.reporting.json_values import Json, estimate

FORMATS = (".csv", ".parquet", ".jsonl")


def about(labels: CalibratedLabels) -> Json:
    """Return what whoever reads the file must know."""
    return {
        "what": "class probabilities given verdict and workflow; for drill-down and sampling",
        "batch_id": labels.batch_id,
        "judge_id": labels.judge_id,
        "n": len(labels.frame),
        "headline": estimate(labels.headline),
        "mean_of_these_labels": labels.plug_in,
        "note": labels.note,
        "simulated": labels.simulated,
        "calibration": labels.fingerprint,
    }


def labels_csv(labels: CalibratedLabels) -> str:
    """Return the labels as CSV."""
    rows = (
        {str(name): value for name, value in row.items()} for row in labels.frame.to_dict("records")
    )
    return as_csv([str(name) for name in labels.frame.columns], rows)


def write_labels(labels: CalibratedLabels, target: Path) -> Path:
    """Write the labels, and beside them what they are; return that second file.

    Raises
    ------
    InputError
        If the name ends in none of `FORMATS`.
    """
    form = target.suffix.lower()
    if form not in FORMATS:
        raise InputError(f"{target}: must end in {', '.join(FORMATS)}")
    beside = target.with_name(target.name + ".about.json")
    words = json.dumps(about(labels), indent=2, ensure_ascii=False, allow_nan=False)
    if form == ".csv":
        target.write_text(labels_csv(labels), encoding="utf-8", newline="")
    elif form == ".jsonl":
        text = labels.frame.to_json(orient="records", lines=True, double_precision=15)
        target.write_text(text, encoding="utf-8")
    else:
        table = pa.Table.from_pandas(labels.frame, preserve_index=False)
        known = table.schema.metadata or {}
        pq.write_table(table.replace_schema_metadata({**known, b"about": words.encode()}), target)
    beside.write_text(words + "\n", encoding="utf-8")
    return beside
