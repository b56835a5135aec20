"""Labels and adjudicated consensus of single traces, with their provenance."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from calibration.analyses.evidence.data import ReviewedTrace, ReviewerLabel
from calibration.errors import InputError
from calibration.records import Evidence, TraceForReview
from calibration.store import Store

CONFIDENCE = {1: "low", 2: "medium", 3: "high"}


def labelled_trace(
    store: Store, batch_id: str, trace_id: str
) -> tuple[TraceForReview, ReviewedTrace]:
    """Return one trace of a batch, with all its labels in the order given and its consensus.

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
    reviewed = ReviewedTrace(
        trace_id=trace_id,
        human=dict.fromkeys(settled[:1], 1.0),
        adjudicated=bool(settled),
        labels=tuple(
            ReviewerLabel(
                reviewer=row["reviewer_id"],
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
    )
    return found[0], reviewed


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A trace that has a consensus.

    Parameters
    ----------
    trace_id, outcome, adjudicator : str
    labels : tuple of (str, str)
        Reviewer and class of what was settled, as it stood; empty for a consensus from elsewhere.
    blind_outcome, question, cause, rationale : str or None
    blind : bool
        Whether the adjudicator had been shown nothing before they decided.
    own : bool
    reopened : bool
        Whether labels have changed since; it stays consensus until somebody decides.
    elsewhere : bool
        Whether it came from a file: nothing is known of how it was made.
    at : datetime
    """

    trace_id: str
    outcome: str
    adjudicator: str
    labels: tuple[tuple[str, str], ...]
    blind_outcome: str | None
    blind: bool
    question: str | None
    cause: str | None
    rationale: str | None
    own: bool
    reopened: bool
    elsewhere: bool
    at: datetime

    @property
    def changed(self) -> bool:
        """Whether the adjudicator decided otherwise once they had seen the answers."""
        return self.blind_outcome is not None and self.blind_outcome != self.outcome


def settled_traces(store: Store, batch_id: str) -> tuple[Settled, ...]:
    """Return the consensus that stands in a batch, newest first."""
    frame = store.adjudication_frame(batch_id)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return tuple(_settled({str(name): value for name, value in row.items()}) for row in rows)


def _settled(row: dict[str, Any]) -> Settled:
    labels = json.loads(row["labels"] or "[]")
    return Settled(
        trace_id=row["trace_id"],
        outcome=row["outcome"],
        adjudicator=row["adjudicator"],
        labels=tuple((label["reviewer_id"], label["outcome"]) for label in labels),
        blind_outcome=row["blind_outcome"],
        blind=bool(row["blind"]),
        question=row["question"],
        cause=row["cause"],
        rationale=row["rationale"],
        own=bool(row["own_label"]),
        reopened=bool(row["reopened"]),
        elsewhere=row["batch_id"] is None,
        at=pd.Timestamp(row["created_at"]).to_pydatetime(),
    )
