"""Traces of a calibration with both sides and their reasons, as CSV that no spreadsheet runs."""

from calibration.analyses.agreement_traces import TraceSet
from calibration.analyses.judge_disagreements import Said
from calibration.analyses.judge_traces import JudgedTrace, JudgedTraces
from calibration.analyses.rows import Row, as_csv

COLUMNS = (
    "trace_id", "workflow", "agent", "verdict", "human", "adjudicated", "question",
    "credit_difference", "moves", "judge_reason", "judge_evidence",
)  # fmt: skip


def traces(judged: JudgedTraces, chosen: TraceSet) -> str:
    """Return some traces with verdict, labels and the reasons of both, in their order."""
    by_id = {of.trace_id: of for of in judged.labelled}
    people = sorted({said.reviewer for of in judged.labelled for said in of.labels})
    said = [f"{what} of {who}" for who in people for what in ("class", "reason", "evidence")]
    rows = (_row(trace_id, by_id.get(trace_id), people) for trace_id in chosen.trace_ids)
    return as_csv([*COLUMNS, *said], rows)


def human_side(of: JudgedTrace) -> str:
    """Return the class of a trace, or the classes with their shares.

    A trace on which reviewers differ and nobody has settled it has several.
    """
    if len(of.human) == 1:
        return next(iter(of.human))
    return ", ".join(f"{name} {share:.2g}" for name, share in of.human.items())


def _row(trace_id: str, of: JudgedTrace | None, people: list[str]) -> Row:
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
    if of.differs is not None:
        row |= {
            "question": of.differs.question,
            "credit_difference": of.differs.credit_difference,
            "moves": of.differs.moves,
        }
    for said in of.labels:
        row |= _said(said)
    return row


def _said(said: Said) -> Row:
    return {
        f"class of {said.reviewer}": said.outcome,
        f"reason of {said.reviewer}": said.rationale,
        f"evidence of {said.reviewer}": _quoted(said.evidence),
    }


def _quoted(evidence: tuple[dict[str, str], ...]) -> str | None:
    return "\n".join(f"{part['step_id']}: {part['quote']}" for part in evidence) or None
