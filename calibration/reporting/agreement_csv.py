"""Agreement as CSV: every estimate, the traces with everybody's class, and the plain ratings.

No cell of these runs as a formula in a spreadsheet.
"""

from collections.abc import Iterator
from typing import Any

from calibration.analyses.agreement import AgreementAnalysis
from calibration.analyses.agreement_traces import TraceSet, rated_traces
from calibration.analyses.rows import as_csv
from calibration.reporting.agreement_json import agreement as as_json
from calibration.reporting.json_values import Json

ESTIMATE = ("value", "lower", "upper", "confidence_level", "n", "method", "status")


def estimates(result: AgreementAnalysis) -> str:
    """Return every estimate of a result, one a row; `what` is its place in the JSON."""
    rows = [
        {
            "what": what,
            "value": of["value"],
            "lower": None if of["interval"] is None else of["interval"][0],
            "upper": None if of["interval"] is None else of["interval"][1],
            **{name: of[name] for name in ("confidence_level", "n", "method", "status")},
        }
        for what, of in _estimates(as_json(result), "")
    ]
    return as_csv(["what", *ESTIMATE], rows)


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
    """Return what an entry of a list is about, so that its rows can be told apart."""
    if not isinstance(of, dict):
        return str(place)
    about = [of.get("reviewer"), of.get("class"), *of.get("reviewers", []), *of.get("classes", [])]
    return "+".join(str(part) for part in about if part is not None) or str(place)


def traces(result: AgreementAnalysis, chosen: TraceSet) -> str:
    """Return some traces with everybody's class, in the order to adjudicate."""
    rows = [
        {
            "trace_id": of.trace_id,
            "entropy_bits": of.entropy,
            "costs_alpha": of.cost,
            "question": of.question,
            "adjudicated": of.settled,
            "week": of.week,
            **{f"class by {who}": of.labels.get(who) for who in result.reviewers},
        }
        for of in rated_traces(result, chosen)
    ]
    columns = ["trace_id", "entropy_bits", "costs_alpha", "question", "adjudicated", "week"]
    return as_csv([*columns, *(f"class by {who}" for who in result.reviewers)], rows)


def ratings(result: AgreementAnalysis) -> str:
    """Return the ratings that agreement is about, as ``asr agreement FILE`` reads them."""
    rows = [
        {"item": trace_id, "rater": who, "label": result.classes[code]}
        for trace_id, given in zip(result.trace_ids, result.codes.tolist(), strict=True)
        for who, code in zip(result.reviewers, given, strict=True)
        if code >= 0
    ]
    return as_csv(["item", "rater", "label"], rows)
