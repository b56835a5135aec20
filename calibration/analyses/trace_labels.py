"""One trace with everything that people said of it, for whoever may see that."""

import json
from dataclasses import dataclass

from calibration.errors import InputError
from calibration.records import Evidence, TraceForReview
from calibration.store import Store

CONFIDENCE = {1: "low", 2: "medium", 3: "high"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLabel:
    """What one reviewer said of a trace.

    Parameters
    ----------
    reviewer_id : str
    outcome : str or None
        The class; None where the reviewer skipped the trace.
    answers : dict of str
        By question, in the order asked.
    rationale, confidence : str or None
        Confidence in words.
    evidence : tuple of Evidence
    tags : tuple of str
    reason : str or None
        Of a skip.
    blind : bool
        Whether it was given before its reviewer was shown what others said; else agreement does
        not count it.
    """

    reviewer_id: str
    outcome: str | None
    answers: dict[str, str]
    rationale: str | None
    confidence: str | None
    evidence: tuple[Evidence, ...]
    tags: tuple[str, ...]
    reason: str | None
    blind: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTrace:
    """A trace as reviewers saw it, with their labels in the order given and its settled class."""

    trace: TraceForReview
    labels: tuple[GivenLabel, ...]
    settled: str | None


def labelled_trace(store: Store, batch_id: str, trace_id: str) -> LabelledTrace:
    """Return one trace of a batch with everybody's labels.

    Raises
    ------
    InputError
        If there is no such trace.
    """
    found = store.for_review([trace_id])
    if not found:
        raise InputError(f"no trace {trace_id!r}")
    said = store.label_frame(batch_id, trace_id)
    said = said.astype(object).where(said.notna(), None)
    consensus = store.consensus_frame()
    settled = consensus.loc[consensus["trace_id"] == trace_id, "outcome"].tolist()
    return LabelledTrace(
        trace=found[0],
        labels=tuple(
            GivenLabel(
                reviewer_id=row["reviewer_id"],
                outcome=row["outcome"],
                answers=json.loads(row["answers"] or "{}"),
                rationale=row["rationale"],
                confidence=CONFIDENCE.get(row["confidence"]),
                evidence=tuple(Evidence(**part) for part in json.loads(row["evidence"] or "[]")),
                tags=tuple(json.loads(row["tags"] or "[]")),
                reason=row["reason"],
                blind=not row["exposed"],
            )
            for row in said.to_dict("records")
        ),
        settled=settled[0] if settled else None,
    )
