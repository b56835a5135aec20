"""Examinations, practice rounds, certificates, and what the store demands of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from calibration.records import Trace, TraceForReview
from calibration.store import admission, attempts, certification, examined, personal
from calibration.store.admission import CertificateDemand
from calibration.store.certification import Certificate, Exam
from calibration.store.interface.base import Calls
from calibration.store.interface.roles import ADMIN, LEAD, REVIEWER, open_to
from calibration.store.personal import PracticeRound


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
        return examined.exam_labels(self._db, self._rules().version, reviewer_id, batch_id)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def exam_key(self, reviewer_id: str, batch_id: str) -> dict[str, examined.Settled]:
        """Return what the team decided on the traces of an examination that has ended."""
        return examined.exam_key(self._db, self._rules().version, reviewer_id, batch_id)

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
        return examined.draw_own_form(self._db, self._rules().version, reviewer_id, wanted, seed)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def first_labels(self, reviewer_id: str) -> list[examined.Given]:
        """Return the first labels of a person's practice and examinations."""
        return examined.first_labels(self._db, self._rules().version, reviewer_id)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def seen_traces(self, reviewer_id: str) -> dict[str, datetime]:
        """Return when a person last labelled a trace or was shown what was said of it."""
        return examined.seen_traces(self._db, reviewer_id)

    @open_to(REVIEWER)
    def production_mix(self) -> examined.ClassMix | None:
        """Return the class mix of the newest production batch that has enough labels."""
        return examined.production_mix(self._db, self._rules().version)

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
        return personal.start_practice(
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
        return personal.practice_rounds(self._db, self._rules().version, reviewer_id)

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
        attempts.allow_attempt(
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
        return attempts.attempts_allowed(self._db, self._rules().version, reviewer_id)

    @open_to(REVIEWER)
    def certificate_demand(self) -> CertificateDemand:
        """Return what the store demands beyond its batches."""
        with self._db.read() as cursor:
            return admission.demand(cursor)

    @open_to(ADMIN, oneself="by")
    def set_certificate_demand(self, wanted: CertificateDemand, *, by: str) -> None:
        """Demand certificates from now on."""
        admission.set_demand(self._db, wanted, by=by)
