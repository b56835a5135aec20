"""CSV exports of agreement, judge traces, labels and grades; no cell runs as a formula."""

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.agreement.traces import TraceSet, rated_traces
from calibration.analyses.evidence.data import ReviewedTrace, ReviewerLabel
from calibration.analyses.judge.calibration import CalibratedLabels
from calibration.analyses.judge.diagnostics import JudgedTraces
from calibration.analyses.reliability.grading import ProposedGrade
from calibration.records import Evidence
from calibration.reporting import to_json
from calibration.reporting.to_json import Json
from calibration.tables.rows import FLAG, NUMBER, TEXT, WHOLE, Row, TypedRows, as_csv

ESTIMATE_COLUMNS = {
    "what": TEXT, "value": NUMBER, "lower": NUMBER, "upper": NUMBER, "confidence_level": NUMBER,
    "n": WHOLE, "method": TEXT, "status": TEXT, "simulated": FLAG,
}  # fmt: skip

COLUMNS = (
    "trace_id", "workflow", "agent", "verdict", "human", "adjudicated", "question",
    "credit_difference", "moves", "judge_reason", "judge_evidence",
)  # fmt: skip

GRADES = ("trace_id", "workflow", "task", "grader", "reason")

AUDIT = ("seq", "created_at", "actor", "origin", "what", "detail")


def audit_rows(trail: pd.DataFrame) -> list[Row]:
    """Return the rows of an audit trail, times as texts in UTC, missing as None."""
    return [
        {name: None if pd.isna(row[name]) else row[name] for name in AUDIT}
        | {"created_at": row["created_at"].isoformat() + "Z"}
        for row in trail.to_dict("records")
    ]


def grades_as_csv(grades: Iterable[ProposedGrade]) -> str:
    """Return what graders propose, one row a run and grader; no column is that of a label."""
    proposed = {True: "pass", False: "fail", None: "not graded"}
    rows = (
        {name: getattr(of, name) for name in GRADES} | {"proposed": proposed[of.passed]}
        for of in grades
    )
    return as_csv([*GRADES, "proposed"], rows)


def estimate_rows(result: AgreementAnalysis) -> TypedRows:
    """Return every estimate of a result, one per row; `what` is its path in the JSON."""
    rows = (
        {
            "what": what,
            "value": of["value"],
            "lower": None if of["interval"] is None else of["interval"][0],
            "upper": None if of["interval"] is None else of["interval"][1],
            **{name: of[name] for name in ("confidence_level", "n", "method", "status")},
            "simulated": result.simulated,
        }
        for what, of in _estimates(to_json.data(result), "")
    )
    about: Row = {
        "what": "agreement of reviewers",
        "batch_id": result.batch_id,
        "taxonomy": result.taxonomy_version,
        "fingerprint": result.fingerprint,
        "simulated": result.simulated,
    }
    return TypedRows(columns=ESTIMATE_COLUMNS, rows=rows, about=about)


def estimates(result: AgreementAnalysis) -> str:
    """Return `estimate_rows` as CSV."""
    found = estimate_rows(result)
    return as_csv(list(found.columns), found.plain())


def _estimates(data: Any, where: str) -> Iterator[tuple[str, Json]]:
    if isinstance(data, dict):
        if {"value", "interval", "method"} <= data.keys():
            yield where, data
            return
        parts = list(data.items())
    elif isinstance(data, list):
        parts = [(_called(of, k), of) for k, of in enumerate(data)]
    else:
        return
    for name, of in parts:
        yield from _estimates(of, f"{where}/{name}" if where else str(name))


def _called(of: Any, place: int) -> str:
    """Return the name of a list entry, to tell its rows apart."""
    if not isinstance(of, dict):
        return str(place)
    about = [of.get("reviewer"), of.get("class"), *of.get("reviewers", []), *of.get("classes", [])]
    return "+".join(str(part) for part in about if part is not None) or str(place)


def agreement_traces_csv(result: AgreementAnalysis, chosen: TraceSet) -> str:
    """Return traces with the class of each reviewer, in the order to adjudicate."""
    rows = [
        {
            "trace_id": of.trace_id,
            "entropy_bits": of.entropy,
            "costs_alpha": of.cost,
            "question": of.question,
            "adjudicated": of.consensus,
            "week": of.week,
            **{f"class by {who}": of.classes.get(who) for who in result.reviewers},
        }
        for of in rated_traces(result, chosen)
    ]
    columns = ["trace_id", "entropy_bits", "costs_alpha", "question", "adjudicated", "week"]
    return as_csv([*columns, *(f"class by {who}" for who in result.reviewers)], rows)


def ratings(result: AgreementAnalysis) -> str:
    """Return the ratings behind the agreement, in the format of ``asr agreement FILE``."""
    rows = [
        {"item": trace_id, "rater": who, "label": result.classes[code]}
        for trace_id, codes in zip(result.trace_ids, result.codes.tolist(), strict=True)
        for who, code in zip(result.reviewers, codes, strict=True)
        if code >= 0
    ]
    return as_csv(["item", "rater", "label"], rows)


def judge_traces_csv(judged: JudgedTraces, chosen: TraceSet) -> str:
    """Return traces with verdict, labels, and the rationales of both."""
    by_id = {of.trace_id: of for of in judged.labelled}
    people = sorted({label.reviewer for of in judged.labelled for label in of.labels})
    of_people = [f"{what} of {who}" for who in people for what in ("class", "reason", "evidence")]
    rows = (_row(trace_id, by_id.get(trace_id), people) for trace_id in chosen.trace_ids)
    return as_csv([*COLUMNS, *of_people], rows)


def human_side(of: ReviewedTrace) -> str:
    """Return the class of a trace, or the classes with their shares while no consensus exists."""
    if len(of.human) == 1:
        return next(iter(of.human))
    return ", ".join(f"{name} {share:.2g}" for name, share in of.human.items())


def _row(trace_id: str, of: ReviewedTrace | None, people: list[str]) -> Row:
    row: Row = dict.fromkeys(COLUMNS)
    row["trace_id"] = trace_id
    row |= {f"{what} of {who}": None for who in people for what in ("class", "reason", "evidence")}
    if of is None:
        return row
    row |= {
        "workflow": of.workflow,
        "agent": of.agent,
        "verdict": of.verdict,
        "human": human_side(of),
        "adjudicated": "yes" if of.adjudicated else "no",
        "judge_reason": of.reason,
        "judge_evidence": _quoted(of.evidence),
    }
    if of.differs:
        row |= {
            "question": of.question,
            "credit_difference": of.credit_difference,
            "moves": of.moves,
        }
    for label in of.labels:
        row |= _label_cells(label)
    return row


def _label_cells(label: ReviewerLabel) -> Row:
    return {
        f"class of {label.reviewer}": label.outcome,
        f"reason of {label.reviewer}": label.rationale,
        f"evidence of {label.reviewer}": _quoted(label.evidence),
    }


def _quoted(evidence: tuple[Evidence, ...]) -> str | None:
    return "\n".join(f"{part.step_id}: {part.quote}" for part in evidence) or None


def about(labels: CalibratedLabels) -> Json:
    """Return the facts that a reader of the file needs."""
    return {
        "what": "class probabilities given verdict and workflow; for drill-down and sampling",
        "batch_id": labels.batch_id,
        "judge_id": labels.judge_id,
        "n": len(labels.frame),
        "headline": to_json.data(labels.headline),
        "mean_of_these_labels": labels.plug_in,
        "note": labels.note,
        "simulated": labels.simulated,
        "calibration": labels.fingerprint,
    }


def probability_rows(labels: CalibratedLabels) -> TypedRows:
    """Return the calibrated labels as rows for a file."""
    frame = labels.frame.assign(simulated=labels.simulated)
    kinds = {"f": NUMBER, "i": WHOLE, "b": FLAG}
    names = tuple(map(str, frame.columns))
    return TypedRows(
        columns={name: kinds.get(frame[name].dtype.kind, TEXT) for name in names},
        rows=(dict(zip(names, row, strict=True)) for row in frame.itertuples(index=False)),
        about=about(labels),
    )


def labels_csv(labels: CalibratedLabels) -> str:
    """Return the labels as CSV."""
    found = probability_rows(labels)
    return as_csv(list(found.columns), found.plain())
