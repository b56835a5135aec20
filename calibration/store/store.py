"""The store as the rest of the project uses it."""

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd

from calibration.errors import StoreLockedError
from calibration.records import (
    Draft,
    LabelDraft,
    Reviewer,
    Trace,
    TraceForReview,
    Verdict,
    Workflow,
)
from calibration.store import (
    adjudication,
    batches,
    certification,
    frames,
    labels,
    leases,
    people,
    quality_checks,
    queue,
    sharing,
    sign_in,
    trace_search,
    traces,
    verdicts,
)
from calibration.store.batches import Batch, PracticeRound
from calibration.store.certification import Certificate, Exam
from calibration.store.database import Database
from calibration.store.labels import LabelsStored
from calibration.store.leases import CertificateDemand
from calibration.store.permissions import ADMIN, LEAD, REVIEWER, Calls, open_to, ranks
from calibration.store.queue import Queue
from calibration.store.sharing import Keeper
from calibration.store.sign_in import Access
from calibration.store.trace_search import TraceFacets, TraceFilter
from calibration.taxonomy import Taxonomy, default_taxonomy


class CertificationCalls(Calls):
    """Examinations, practice rounds, certificates, and what the store demands of them."""

    @open_to(REVIEWER, oneself="reviewer_id")
    def start_exam(
        self,
        *,
        reviewer_id: str,
        form: str,
        private: bool,
        trace_ids: Sequence[str],
        traces: Sequence[Trace] = (),
        design: Mapping[str, Any] | None = None,
    ) -> Exam:
        """Give a person an examination; one that is open already is returned instead."""
        return certification.start_exam(
            self._db,
            self._rules().version,
            reviewer_id=reviewer_id,
            form=form,
            private=private,
            trace_ids=trace_ids,
            traces=traces,
            design=design or {},
        )

    @open_to(REVIEWER, oneself="reviewer_id")
    def add_top_up(
        self,
        *,
        reviewer_id: str,
        tops_up: str,
        trace_ids: Sequence[str],
        traces: Sequence[Trace] = (),
        design: Mapping[str, Any] | None = None,
    ) -> Exam:
        """Give further traces to somebody whose form has to be topped up; only once."""
        return certification.add_top_up(
            self._db,
            self._rules().version,
            reviewer_id=reviewer_id,
            tops_up=tops_up,
            trace_ids=trace_ids,
            traces=traces,
            design=design or {},
        )

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_result(
        self,
        *,
        reviewer_id: str,
        batch_id: str,
        status: str,
        body: Mapping[str, Any],
        valid: timedelta,
    ) -> Exam:
        """Write down how an examination ended, once; a pass is a certificate."""
        return certification.record_result(
            self._db,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            status=status,
            body=body,
            valid=valid,
        )

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def exams_of(self, reviewer_id: str) -> list[Exam]:
        """Return the examinations of a person, oldest first, of every taxonomy version."""
        return certification.exams_of(self._db, reviewer_id)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def exam_labels(self, reviewer_id: str, batch_id: str) -> dict[str, str]:
        """Return the classes that a person gave in a batch, by trace."""
        return certification.exam_labels(self._db, self._rules().version, reviewer_id, batch_id)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def exam_key(self, reviewer_id: str, batch_id: str) -> dict[str, certification.Settled]:
        """Return what the team decided on the traces of an examination that has ended."""
        return certification.exam_key(self._db, self._rules().version, reviewer_id, batch_id)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def exam_traces(
        self, reviewer_id: str, batch_id: str, trace_ids: Sequence[str]
    ) -> list[TraceForReview]:
        """Return traces of an examination that is over."""
        return certification.exam_traces(self._db, reviewer_id, batch_id, trace_ids)

    @open_to(REVIEWER, oneself="reviewer_id")
    def draw_own_form(
        self, reviewer_id: str, wanted: Mapping[str, int], seed: int
    ) -> tuple[list[str], dict[str, int]]:
        """Draw adjudicated traces that a person has not seen; how many of each class there are."""
        return certification.draw_own_form(
            self._db, self._rules().version, reviewer_id, wanted, seed
        )

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def first_labels(self, reviewer_id: str) -> list[certification.Given]:
        """Return the first labels of a person's practice and examinations."""
        return certification.first_labels(self._db, self._rules().version, reviewer_id)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def seen_traces(self, reviewer_id: str) -> dict[str, datetime]:
        """Return when a person last labelled a trace or was shown what was said of it."""
        return certification.seen_traces(self._db, reviewer_id)

    @open_to(REVIEWER)
    def production_mix(self) -> certification.ClassMix | None:
        """Return the class mix of the newest production batch that has enough labels."""
        return certification.production_mix(self._db, self._rules().version)

    @open_to(REVIEWER, oneself="reviewer_id")
    def start_practice(
        self,
        *,
        reviewer_id: str,
        trace_ids: Sequence[str],
        traces: Sequence[Trace] = (),
        design: Mapping[str, Any] | None = None,
    ) -> PracticeRound:
        """Give a person a practice round; one that is not finished is returned instead."""
        return batches.start_practice(
            self._db,
            self._rules().version,
            reviewer_id=reviewer_id,
            trace_ids=trace_ids,
            traces=traces,
            design=design or {},
        )

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def practice_rounds(self, reviewer_id: str) -> list[PracticeRound]:
        """Return the practice rounds of a person, oldest first."""
        return batches.practice_rounds(self._db, self._rules().version, reviewer_id)

    @open_to(LEAD)
    def certificates(self) -> list[Certificate]:
        """Return every certificate, oldest first; past ones among them."""
        return certification.certificates(self._db)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def certificates_of(self, reviewer_id: str) -> list[Certificate]:
        """Return the certificates of a person, oldest first; past ones among them."""
        return certification.certificates(self._db, reviewer_id)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def certificate_of(self, reviewer_id: str, *, private: bool = False) -> Certificate | None:
        """Return the certificate of a person that holds now."""
        return certification.certificate_of(
            self._db, self._rules().version, reviewer_id, private=private
        )

    @open_to(LEAD, oneself="by")
    def allow_attempt(self, *, client_token: str, reviewer_id: str, by: str, reason: str) -> None:
        """Let somebody try once more than the rules allow."""
        certification.allow_attempt(
            self._db,
            self._rules().version,
            client_token=client_token,
            reviewer_id=reviewer_id,
            by=by,
            reason=reason,
        )

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def attempts_allowed(self, reviewer_id: str) -> list[datetime]:
        """Return when a lead allowed this person another attempt."""
        return certification.attempts_allowed(self._db, self._rules().version, reviewer_id)

    @open_to(REVIEWER)
    def certificate_demand(self) -> CertificateDemand:
        """Return what the store demands beyond its batches."""
        with self._db.read() as cursor:
            return leases.demand(cursor)

    @open_to(ADMIN, oneself="by")
    def set_certificate_demand(self, wanted: CertificateDemand, *, by: str) -> None:
        """Demand certificates from now on."""
        leases.set_demand(self._db, wanted, by=by)


class LabelCalls(Calls):
    """What reviewers decide, and what they may see again of it."""

    @open_to(REVIEWER, oneself="draft.reviewer_id")
    def record_label(self, draft: LabelDraft) -> labels.LabelReceipt:
        """Store a label once, however often it is sent."""
        return labels.record_label(self._db, self._rules(), draft)

    @open_to(LEAD)
    def import_labels(self, batch_id: str, drafts: Sequence[LabelDraft]) -> LabelsStored:
        """Store labels that were made elsewhere; none is ever overwritten."""
        return labels.import_labels(self._db, self._rules(), batch_id, drafts)

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_skip(
        self, *, client_token: str, trace_id: str, reviewer_id: str, batch_id: str, reason: str
    ) -> None:
        """Pass over a trace, with the reason."""
        labels.record_skip(
            self._db,
            self._rules(),
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            reason=reason,
        )

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_undo(self, *, client_token: str, reviewer_id: str, batch_id: str) -> str | None:
        """Take back the reviewer's latest label or skip; return its trace."""
        return labels.record_undo(
            self._db,
            self._rules(),
            client_token=client_token,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
        )

    @open_to(REVIEWER, oneself="reviewer_id")
    def last_label(self, reviewer_id: str, batch_id: str) -> tuple[str, str | None] | None:
        """Return trace and class of what one undo would take back."""
        return labels.last_label(self._db, self._rules(), reviewer_id, batch_id)

    @open_to(REVIEWER, oneself="reviewer_id")
    def reopen(
        self, *, client_token: str, trace_id: str, reviewer_id: str, batch_id: str, reason: str
    ) -> None:
        """Take back one's label of a trace, with the reason; what it held is the draft then."""
        labels.reopen(
            self._db,
            self._rules(),
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            reason=reason,
        )

    @open_to(REVIEWER, oneself="reviewer_id")
    def save_draft(self, *, reviewer_id: str, trace_id: str, batch_id: str, draft: Draft) -> None:
        """Keep what was decided so far."""
        labels.save_draft(
            self._db,
            reviewer_id=reviewer_id,
            trace_id=trace_id,
            batch_id=batch_id,
            taxonomy_version=self._rules().version,
            draft=draft,
        )

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_flag(
        self,
        *,
        client_token: str,
        trace_id: str,
        reviewer_id: str,
        batch_id: str,
        flagged: bool,
        reason: str | None = None,
    ) -> None:
        """Raise or lower a reviewer's flag on a trace once, however often it is sent."""
        labels.record_flag(
            self._db,
            client_token=client_token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            taxonomy_version=self._rules().version,
            flagged=flagged,
            reason=reason,
        )

    @open_to(LEAD)
    def flag_frame(self, batch_id: str) -> pd.DataFrame:
        """Return the flags of a batch that stand, for the lead."""
        return frames.flags(self._db, batch_id)

    @open_to(REVIEWER, oneself="reviewer_id")
    def own_flags(
        self, reviewer_id: str, batch_id: str, trace_ids: Sequence[str]
    ) -> dict[str, str]:
        """Return which of these traces a reviewer has flagged, and why."""
        return labels.own_flags(self._db, reviewer_id, batch_id, trace_ids)

    @open_to(REVIEWER, oneself="reviewer_id")
    def own_labels(
        self, reviewer_id: str, batch_id: str, *, limit: int = 200
    ) -> list[labels.OwnLabel]:
        """Return the reviewer's own current labels of a batch, newest first."""
        return labels.own_labels(self._db, self._rules(), reviewer_id, batch_id, limit)

    @open_to(REVIEWER, oneself="reviewer_id")
    def acknowledged(self, reviewer_id: str, batch_id: str, tokens: Sequence[str]) -> set[str]:
        """Return which of these client tokens of a reviewer the store holds."""
        return labels.acknowledged(self._db, reviewer_id, batch_id, tokens)

    @open_to(LEAD)
    def label_frame(self, batch_id: str, trace_id: str | None = None) -> pd.DataFrame:
        """Return the current labels and skips of a batch, or of one of its traces."""
        return frames.labels(self._db, batch_id, self._rules().version, trace_id)

    @open_to(LEAD)
    def label_state(self) -> tuple[int, int]:
        """Return what stays the same as long as no label and no consensus comes or goes."""
        return frames.label_state(self._db)

    @open_to(LEAD)
    def result_state(self) -> tuple[int, int, int]:
        """Return what changes with everything that a corrected rate depends on."""
        return frames.result_state(self._db)

    @open_to(REVIEWER, oneself="reviewer_id")
    def record_exposure(self, reviewer_id: str, trace_ids: Sequence[str], what: str) -> None:
        """Write down that a reviewer is shown what others said of these traces."""
        labels.record_exposure(self._db, reviewer_id, trace_ids, what)

    @open_to(LEAD)
    def exposure_frame(self) -> pd.DataFrame:
        """Return who was shown what of which trace."""
        return labels.exposures(self._db)


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
        return adjudication.consensus_history(self._db, trace_id)

    @open_to(LEAD)
    def adjudication_frame(self, batch_id: str) -> pd.DataFrame:
        """Return the consensus that stands of each trace of a batch, and whether it is reopened."""
        return adjudication.adjudication_frame(self._db, self._rules().version, batch_id)

    @open_to(LEAD, oneself="adjudicator")
    def serve_adjudication(
        self, *, adjudicator: str, batch_id: str, trace_ids: Sequence[str]
    ) -> Batch | None:
        """Put traces of a production batch before an adjudicator, in this order."""
        return adjudication.serve_adjudication(
            self._db,
            self._rules().version,
            adjudicator=adjudicator,
            batch_id=batch_id,
            trace_ids=trace_ids,
        )

    @open_to(LEAD, oneself="adjudicator")
    def adjudication_batch(self, adjudicator: str, batch_id: str) -> Batch | None:
        """Return the batch in which this person decides the traces of a production batch."""
        return adjudication.adjudication_batch(self._db, adjudicator, batch_id)

    @open_to(LEAD, oneself="adjudicator")
    def settlement(self, adjudicator: str, batch_id: str) -> adjudication.Settlement | None:
        """Return the labels of the trace that this person decided blind and has not settled."""
        return adjudication.settlement(
            self._db, self._rules(), adjudicator=adjudicator, batch_id=batch_id
        )

    @open_to(LEAD, oneself="adjudicator")
    def last_adjudication(self, adjudicator: str, batch_id: str) -> adjudication.LastStep | None:
        """Return what one undo would take back."""
        return adjudication.last_adjudication(
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
        adjudication.decide_proposal(
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
        return adjudication.proposal_frame(self._db, self._rules().version)

    @open_to(REVIEWER)
    def handbook_additions(self) -> dict[str, list[str]]:
        """Return the sentences that the team has added to the handbook, by question."""
        return adjudication.handbook_additions(self._db, self._rules().version)


class BatchCalls(Calls):
    """Batches, the queue, and who holds what."""

    @open_to(REVIEWER)
    def batches(self) -> list[Batch]:
        """Return all batches, newest first; reviewers see none that is served to others only."""
        found, actor = batches.batches(self._db), self._actor
        if actor is None or ranks(actor, LEAD):
            return found
        return [b for b in found if b.reviewer_id in (None, actor.reviewer_id)]

    @open_to(LEAD)
    def add_batch(
        self,
        *,
        purpose: str,
        trace_ids: Sequence[str],
        inclusion_probability: float | None = None,
        labels_wanted: int = 2,
        design: dict[str, Any] | None = None,
        token: str | None = None,
        item_labels: Sequence[int] | None = None,
        item_probabilities: Sequence[float] | None = None,
        item_strata: Sequence[int] | None = None,
        reviewer_id: str | None = None,
        certificate: str | None = None,
    ) -> Batch:
        """Store a batch; traces are served in the order given. A repeated token adds nothing."""
        return batches.add_batch(
            self._db,
            purpose=purpose,
            trace_ids=trace_ids,
            inclusion_probability=inclusion_probability,
            labels_wanted=labels_wanted,
            design=design or {},
            token=token,
            item_labels=item_labels,
            item_probabilities=item_probabilities,
            item_strata=item_strata,
            reviewer_id=reviewer_id,
            certificate=certificate,
        )

    @open_to(LEAD)
    def batch_items(self, batch_id: str) -> pd.DataFrame:
        """Return the traces of a batch in order."""
        return frames.batch_items(self._db, batch_id)

    @open_to(REVIEWER, oneself="reviewer_id")
    def queue(self, reviewer_id: str, batch_id: str, *, limit: int = 3) -> Queue:
        """Claim and return the next traces for a reviewer."""
        return queue.queue(self._db, reviewer_id, batch_id, self._rules().version, limit)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def has_open_items(self, reviewer_id: str, batch_id: str) -> bool:
        """Return whether this reviewer still has traces of the batch to label."""
        version = self._rules().version
        return queue.has_open_items(self._db, reviewer_id, batch_id, version)

    @open_to(LEAD)
    def lease_frame(self, batch_id: str) -> pd.DataFrame:
        """Return who holds which trace of a batch, and until when."""
        return leases.lease_frame(self._db, batch_id, self._rules().version)

    @open_to(LEAD, oneself="by")
    def release_leases(self, *, batch_id: str, reviewer_id: str, by: str) -> list[str]:
        """Hand what somebody holds over to the others; a lead may, and it is written down."""
        version = self._rules().version
        return leases.release_leases(
            self._db, batch_id=batch_id, reviewer_id=reviewer_id, by=by, taxonomy_version=version
        )


class InsertedCalls(Calls):
    """What was put between the traces of reviewers, for leads."""

    @open_to(LEAD)
    def insert_frame(self) -> pd.DataFrame:
        """Return every silent gold and own repeat that was decided, against what it is held."""
        return quality_checks.insert_frame(self._db, self._rules().version)

    @open_to(LEAD)
    def insert_pools(self, batch_id: str) -> pd.DataFrame:
        """Return what could be put in, by reviewer and workflow of a batch."""
        return quality_checks.insert_pools(self._db, self._rules().version, batch_id)

    @open_to(LEAD)
    def import_inserts(self, batch_id: str, drafts: Sequence[LabelDraft]) -> int:
        """Store checks of reviewers that were made elsewhere; return how many are new."""
        return quality_checks.import_inserts(self._db, self._rules(), batch_id, drafts)


class JudgingCalls(Calls):
    """Verdicts of judges."""

    @open_to(LEAD)
    def add_verdicts(self, new: Sequence[Verdict]) -> verdicts.VerdictsStored:
        """Store verdicts; none is ever overwritten."""
        return verdicts.add_verdicts(self._db, new)

    @open_to(LEAD)
    def verdict_samples(self, judge_id: str) -> pd.DataFrame:
        """Return every verdict of a judge, with reasons and with those given when asked again."""
        return frames.verdict_samples(self._db, judge_id)

    @open_to(LEAD)
    def verdict_frame(self, judge_id: str) -> pd.DataFrame:
        """Return the verdicts of a judge."""
        return frames.verdicts(self._db, judge_id)

    @open_to(LEAD)
    def judge_frame(self) -> pd.DataFrame:
        """Return all judges with the number of their verdicts."""
        return frames.judges(self._db)


class PeopleCalls(Calls):
    """People, the taxonomy in force, workflows."""

    @open_to(REVIEWER)
    def taxonomy(self) -> Taxonomy:
        """Return the taxonomy in force."""
        return people.taxonomy(self._db)

    @open_to(ADMIN)
    def set_taxonomy(self, taxonomy: Taxonomy) -> None:
        """Put a taxonomy in force."""
        people.set_taxonomy(self._db, taxonomy)

    @open_to(REVIEWER)
    def workflows(self) -> dict[str, Workflow]:
        """Return the workflows by name."""
        return people.workflows(self._db)

    @open_to(LEAD)
    def set_workflow(self, workflow: Workflow) -> None:
        """Set ceiling and unit of a workflow."""
        people.set_workflow(self._db, workflow)

    @open_to(LEAD)
    def reviewers(self) -> list[Reviewer]:
        """Return everybody who can label."""
        return people.reviewers(self._db)

    @open_to(ADMIN)
    def add_reviewer(
        self, name: str, *, role: str = "reviewer", simulated: bool = False
    ) -> Reviewer:
        """Add a reviewer, or return the one who has this name."""
        return people.add_reviewer(self._db, name, role=role, simulated=simulated)


class SignInCalls(Calls):
    """Who people are, and what they may: identities, passphrases, sessions, roles."""

    @open_to(REVIEWER)
    def identities(self) -> str:
        """Return how people say who they are: `open` or `passphrase`."""
        return sign_in.identities(self._db)

    @open_to(ADMIN)
    def set_identities(self, wanted: str) -> None:
        """Choose how people say who they are; open is refused once somebody has a passphrase."""
        sign_in.set_identities(self._db, wanted, by=self._by())

    @open_to(ADMIN)
    def sign_in_is_configured(self) -> bool:
        """Return whether the store may be served beyond this machine."""
        return sign_in.is_configured(self._db)

    @open_to(ADMIN)
    def wants_first_admin(self) -> bool:
        """Return whether people have to sign in and nobody can yet."""
        return sign_in.wants_first_admin(self._db)

    @open_to(ADMIN)
    def make_first_admin(self, name: str, passphrase: str) -> str:
        """Make the first admin where nobody can sign in yet; return their session's token."""
        return sign_in.make_first_admin(self._db, name, passphrase)

    @open_to(ADMIN)
    def access(self) -> list[Access]:
        """Return everybody who is real, with how they come in."""
        return sign_in.access(self._db)

    @open_to(ADMIN)
    def set_passphrase(self, reviewer_id: str, passphrase: str) -> None:
        """Give a person a passphrase; sessions that they have end."""
        sign_in.store_hash(self._db, reviewer_id, sign_in.hashed(passphrase), by=self._by())

    @open_to(REVIEWER, oneself="reviewer_id")
    def change_passphrase(self, reviewer_id: str, old: str, new: str, address: str) -> str:
        """Give oneself another passphrase; return the token of a new session."""
        return sign_in.change_passphrase(self._db, reviewer_id, old, new, address)

    @open_to(ADMIN)
    def take_passphrase(self, reviewer_id: str) -> None:
        """Let a person sign in no more; what they labelled stays."""
        sign_in.take_passphrase(self._db, reviewer_id, by=self._by())

    @open_to(ADMIN)
    def set_role(self, reviewer_id: str, role: str) -> Reviewer:
        """Give a person another role; the last admin stays one."""
        return sign_in.set_role(self._db, reviewer_id, role, by=self._by())

    @open_to(ADMIN)
    def verify_sign_in(self, name: str, passphrase: str, address: str) -> str:
        """Return the token of a new session for whoever knows the passphrase of a name."""
        return sign_in.verify_sign_in(self._db, name, passphrase, address)

    @open_to(ADMIN)
    def person_of_session(self, token: str) -> Reviewer | None:
        """Return whose session a token is, None when it is nobody's or has ended."""
        return sign_in.person_of_session(self._db, token)

    @open_to(REVIEWER)
    def end_session(self, token: str) -> None:
        """End a session."""
        sign_in.end_session(self._db, token)

    def _by(self) -> str | None:
        return None if self._actor is None else self._actor.reviewer_id


class TraceCalls(Calls):
    """Traces: what they are, and which a filter finds."""

    @open_to(LEAD)
    def ingest(self, new: Sequence[Trace], *, take_changed: bool = False) -> traces.IngestResult:
        """Store the traces that are new."""
        return traces.ingest(self._db, new, take_changed=take_changed)

    @open_to(LEAD)
    def for_review(self, trace_ids: Sequence[str]) -> list[TraceForReview]:
        """Return what a labelling reviewer may see of these traces."""
        return traces.for_review(self._db, trace_ids)

    @open_to(LEAD)
    def trace_frame(self) -> pd.DataFrame:
        """Return the index of all traces."""
        return frames.traces(self._db)

    @open_to(LEAD)
    def looping_ids(self) -> frozenset[str]:
        """Return the traces that made the same tool call three times in a row or more."""
        return traces.looping(self._db)

    @open_to(LEAD)
    def operation_frame(self) -> pd.DataFrame:
        """Return what every trace says of tools, loops, escalation and feedback."""
        return traces.operation(self._db)

    @open_to(LEAD)
    def trace_facets(self) -> TraceFacets:
        """Return the workflows, statuses, models and tools to filter traces by."""
        return trace_search.facets(self._db)

    @open_to(LEAD)
    def count_traces(self, chosen: TraceFilter) -> int:
        """Return how many traces a filter finds."""
        return trace_search.count(self._db, chosen, self._rules().version)

    @open_to(LEAD)
    def selected_ids(self, chosen: TraceFilter) -> list[str]:
        """Return the ids of the traces that a filter finds, in order of id."""
        return trace_search.ids(self._db, chosen, self._rules().version)

    @open_to(LEAD)
    def trace_list(
        self,
        chosen: TraceFilter,
        *,
        for_leads: bool,
        sort: str = "imported",
        descending: bool = False,
        limit: int | None = 100,
        offset: int = 0,
    ) -> pd.DataFrame:
        """Return the traces that a filter finds; classes, models and costs for leads only."""
        return trace_search.listed(
            self._db,
            chosen,
            self._rules().version,
            for_leads=for_leads,
            sort=sort,
            descending=descending,
            limit=limit,
            offset=offset,
        )

    @open_to(LEAD)
    def saved_queries(self) -> dict[str, TraceFilter]:
        """Return the filters that were saved, by name."""
        return trace_search.saved_queries(self._db)

    @open_to(LEAD)
    def save_query(self, name: str, chosen: TraceFilter) -> str:
        """Keep filters under a name."""
        return trace_search.save_query(self._db, name, chosen)

    @open_to(LEAD)
    def forget_query(self, name: str) -> None:
        """Take a saved name back."""
        trace_search.forget_query(self._db, name)

    @open_to(REVIEWER)
    def is_simulated(self) -> bool:
        """Return whether any trace of the store is simulated."""
        with self._db.read() as cursor:
            found = cursor.execute("SELECT 1 FROM trace WHERE simulated LIMIT 1").fetchone()
        return found is not None


class Store(
    AdjudicationCalls,
    BatchCalls,
    CertificationCalls,
    InsertedCalls,
    JudgingCalls,
    LabelCalls,
    PeopleCalls,
    SignInCalls,
    TraceCalls,
):
    """Traces, labels and verdicts of one team, in one DuckDB file.

    Every method opens its own cursor and may be called from any thread. Writes are
    idempotent: repeating one stores nothing twice. Whoever opens the file may do everything;
    `acting_as` is the same store with the rights of one person.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    @classmethod
    def open(
        cls, path: str | Path, *, create: bool = False, taxonomy: Taxonomy | None = None
    ) -> Self:
        """Open a store; `create` makes a missing one with `taxonomy` or the default one."""
        db = Database(Path(path), create=create)
        try:
            if taxonomy is not None or not people.has_taxonomy(db):
                people.set_taxonomy(db, taxonomy or default_taxonomy())
        except BaseException:
            db.close()
            raise
        return cls(db)

    @classmethod
    def open_to_read(cls, path: str | Path) -> "tuple[Store, float | None]":
        """Open a store for questions only, or its snapshot while the app holds it.

        Returns
        -------
        Store
            Of a snapshot, every write is refused.
        float or None
            The age of the snapshot in seconds; None for the store itself.
        """
        path = Path(path)
        try:
            return cls.open(path), None
        except StoreLockedError as locked:
            return cls(sharing.open_snapshot(path, locked)), sharing.age(path)

    def keeper(self) -> Keeper:
        """Return the thread that serves other processes while this one holds the store."""
        return Keeper(self._db)

    def close(self) -> None:
        """Let the file go, so that another process can open it."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The DuckDB file."""
        return self._db.path

    def acting_as(self, person: Reviewer) -> Self:
        """Return this store as a person may use it: what their role does not allow is refused."""
        bound = copy(self)
        bound._actor, bound._lasts = person, None
        return bound

    @property
    def actor(self) -> Reviewer | None:
        """The person whose rights this store goes by, None for whoever holds the file."""
        return self._actor

    def of_session(self, token: str) -> Self | None:
        """Return this store as the person of a session may use it, None if it has ended.

        When it ends, or the person gets another role, calls are refused from then on: a page
        may still be open.
        """
        person = sign_in.person_of_session(self._db, token)
        if person is None:
            return None
        bound = self.acting_as(person)
        bound._lasts = sign_in.lasting(self._db, token, person)
        return bound
