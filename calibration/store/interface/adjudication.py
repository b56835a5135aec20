"""Adjudication: what is settled, by whom and why, and what the handbook learns from it."""

from collections.abc import Sequence

import pandas as pd

from calibration.store import adjudication, adjudication_frames, frames, proposals, settling
from calibration.store.batches import Batch
from calibration.store.interface.base import Calls
from calibration.store.interface.roles import LEAD, REVIEWER, open_to


class AdjudicationCalls(Calls):
    """Adjudication: what is settled, by whom and why, and what the handbook learns from it."""

    @open_to(LEAD, oneself="adjudicator")
    def adjudicate(
        self,
        *,
        trace_id: str,
        answers: dict[str, str],
        adjudicator: str,
        batch_id: str | None = None,
        cause: str | None = None,
        rationale: str | None = None,
        label_events: Sequence[str] | None = None,
        supersedes: str | None = None,
        simulated: bool = False,
        client_token: str | None = None,
    ) -> adjudication.AdjudicationReceipt:
        """Append a consensus with where it comes from; a repeated token stores nothing twice."""
        return adjudication.adjudicate(
            self._db,
            self._rules(),
            trace_id=trace_id,
            answers=answers,
            adjudicator=adjudicator,
            batch_id=batch_id,
            cause=cause,
            rationale=rationale,
            label_events=label_events,
            supersedes=supersedes,
            simulated=simulated,
            client_token=client_token,
        )

    @open_to(LEAD, oneself="adjudicator")
    def withdraw_consensus(
        self, *, client_token: str, trace_id: str, adjudicator: str, reason: str | None = None
    ) -> None:
        """Take the consensus of a trace back; it is open again."""
        adjudication.withdraw_consensus(
            self._db,
            self._rules(),
            client_token=client_token,
            trace_id=trace_id,
            adjudicator=adjudicator,
            reason=reason,
        )

    @open_to(LEAD)
    def consensus_frame(self) -> pd.DataFrame:
        """Return every adjudicated trace."""
        return frames.consensus(self._db, self._rules().version)

    @open_to(LEAD)
    def consensus_history(self, trace_id: str) -> pd.DataFrame:
        """Return every adjudication and withdrawal of a trace, oldest first."""
        return adjudication_frames.consensus_history(self._db, trace_id)

    @open_to(LEAD)
    def adjudication_frame(self, batch_id: str) -> pd.DataFrame:
        """Return the consensus that stands of each trace of a batch, and whether it is reopened."""
        return adjudication_frames.adjudication_frame(self._db, self._rules().version, batch_id)

    @open_to(LEAD, oneself="adjudicator")
    def serve_adjudication(
        self, *, adjudicator: str, batch_id: str, trace_ids: Sequence[str]
    ) -> Batch | None:
        """Put traces of a production batch before an adjudicator, in this order."""
        return settling.serve_adjudication(
            self._db,
            self._rules().version,
            adjudicator=adjudicator,
            batch_id=batch_id,
            trace_ids=trace_ids,
        )

    @open_to(LEAD, oneself="adjudicator")
    def adjudication_batch(self, adjudicator: str, batch_id: str) -> Batch | None:
        """Return the batch in which this person decides the traces of a production batch."""
        return settling.adjudication_batch(self._db, adjudicator, batch_id)

    @open_to(LEAD, oneself="adjudicator")
    def settlement(self, adjudicator: str, batch_id: str) -> settling.Settlement | None:
        """Return the labels of the trace that this person decided blind and has not settled."""
        return settling.settlement(
            self._db, self._rules(), adjudicator=adjudicator, batch_id=batch_id
        )

    @open_to(LEAD, oneself="adjudicator")
    def last_adjudication(self, adjudicator: str, batch_id: str) -> settling.LastStep | None:
        """Return what one undo would take back."""
        return settling.last_adjudication(
            self._db, self._rules(), adjudicator=adjudicator, batch_id=batch_id
        )

    @open_to(LEAD, oneself="decided_by")
    def decide_proposal(
        self,
        *,
        client_token: str,
        proposal_id: str,
        question: str,
        text: str,
        trace_ids: Sequence[str],
        status: str,
        decided_by: str,
        reason: str | None = None,
    ) -> None:
        """Accept or decline a sentence for the handbook; the newest decision counts."""
        proposals.decide_proposal(
            self._db,
            self._rules(),
            client_token=client_token,
            proposal_id=proposal_id,
            question=question,
            text=text,
            trace_ids=trace_ids,
            status=status,
            decided_by=decided_by,
            reason=reason,
        )

    @open_to(LEAD)
    def proposal_frame(self) -> pd.DataFrame:
        """Return the newest decision on each proposal."""
        return proposals.proposal_frame(self._db, self._rules().version)

    @open_to(REVIEWER)
    def handbook_additions(self) -> dict[str, list[str]]:
        """Return the sentences that the team has added to the handbook, by question."""
        return proposals.handbook_additions(self._db, self._rules().version)
