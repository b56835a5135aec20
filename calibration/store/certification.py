"""Examinations, their results, certificates, and the data for certification."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from calibration.errors import InputError, NotAllowedError
from calibration.records import Label, Trace, TraceForReview
from calibration.reviewers.certification import FAILED, PASSED, TOP_UP
from calibration.store.batches import BatchStore, personal_batch
from calibration.store.database import Cursor, record_audit, rows, utc_now
from calibration.store.labels import read_labels
from calibration.store.leases import StoreProgress, open_traces, valid_certificates
from calibration.store.people import LEAD, REVIEWER, open_to

_EXAMS = """
WITH labelled AS (
  SELECT e.batch_id, count(*) AS labelled, max(c.created_at) AS ended_at
  FROM exam e JOIN label_current c USING (batch_id, reviewer_id, taxonomy_version)
  WHERE c.kind = 'label' GROUP BY e.batch_id
), items AS (SELECT batch_id, count(*) AS n FROM batch_item GROUP BY batch_id)
SELECT e.batch_id, e.reviewer_id, e.taxonomy_version, e.form, e.private, e.attempt, e.tops_up,
  e.created_at AS started_at, i.n, coalesce(l.labelled, 0) AS labelled, l.ended_at, r.status, r.body
FROM exam e JOIN items i USING (batch_id) LEFT JOIN labelled l USING (batch_id)
  LEFT JOIN exam_result r USING (batch_id)
WHERE e.reviewer_id = ? ORDER BY e.seq
"""

MIX_NEEDS = 30
MAX_REASON = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """One examination, or the further traces that top one up."""

    batch_id: str
    reviewer_id: str
    taxonomy_version: str
    form: str
    private: bool
    attempt: int  # of this person under this taxonomy version, from 1
    tops_up: str | None  # batch of the form
    started_at: datetime
    n: int
    labelled: int
    ended_at: datetime | None  # when its last trace was labelled
    status: str | None  # the result, once recorded
    body: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Proof of a passed examination; `private` if nobody could read the form before."""

    batch_id: str
    reviewer_id: str
    taxonomy_version: str
    form: str
    private: bool
    simulated: bool
    issued_at: datetime
    expires_at: datetime


def _exams(cursor: Cursor, reviewer_id: str) -> list[Exam]:
    return [
        Exam(
            **row
            | {
                "ended_at": row["ended_at"] if row["labelled"] == row["n"] else None,
                "body": row["body"] and json.loads(row["body"]),
            }
        )
        for row in rows(cursor, _EXAMS, [reviewer_id])
    ]


def _exam(cursor: Cursor, reviewer_id: str, batch_id: str) -> Exam:
    for exam in _exams(cursor, reviewer_id):
        if exam.batch_id == batch_id:
            return exam
    raise InputError(f"{batch_id!r:.80} is not an examination of {reviewer_id!r:.80}")


def _insert(
    cursor: Cursor,
    version: str,
    reviewer_id: str,
    form: str,
    private: bool,
    attempt: int,
    tops_up: str | None,
    trace_ids: Sequence[str],
    design: Mapping[str, Any] | None,
) -> str:
    batch_id = personal_batch(cursor, "exam", reviewer_id, trace_ids, design)
    cursor.execute(
        "INSERT INTO exam SELECT ?, nextval('event_seq'), ?, ?, ?, ?, ?, ?, ?",
        [batch_id, reviewer_id, version, form, private, attempt, tops_up, utc_now()],
    )
    return batch_id


def _issue(cursor: Cursor, exam: Exam, issued_at: datetime, expires_at: datetime) -> None:
    cursor.execute(
        "INSERT INTO certificate SELECT nextval('event_seq'), $batch, $reviewer, $version, $form, "
        "$private, (SELECT bool_or(simulated) FROM label_event WHERE batch_id = $batch), "
        "$issued, $expires",
        {
            "batch": exam.batch_id, "reviewer": exam.reviewer_id,
            "version": exam.taxonomy_version, "form": exam.form, "private": exam.private,
            "issued": issued_at, "expires": expires_at,
        },
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMix:
    """Class shares in a production batch, from its human labels and its design."""

    batch_id: str
    n: int
    shares: dict[str, float]


class CertificationStore(BatchStore):
    """Examinations, their results and certificates."""

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
        """Start an examination, or return the open one; `traces` that the store lacks are added."""
        version = self._rules().version
        self._take_in(traces)
        with self._db.write() as cursor:
            self._db.held(StoreProgress).check_reviewer(cursor, reviewer_id)
            theirs = [e for e in _exams(cursor, reviewer_id) if e.taxonomy_version == version]
            unsettled = [e for e in theirs if e.status is None]
            if unsettled:
                return unsettled[-1]
            attempt = 1 + sum(e.tops_up is None for e in theirs)
            batch_id = _insert(
                cursor, version, reviewer_id, form, private, attempt, None, trace_ids, design
            )
            return _exam(cursor, reviewer_id, batch_id)

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
        """Give further traces to a person whose form is topped up; only once."""
        version = self._rules().version
        self._take_in(traces)
        with self._db.write() as cursor:
            form = _exam(cursor, reviewer_id, tops_up)
            for exam in _exams(cursor, reviewer_id):
                if exam.tops_up == tops_up:
                    return exam
            if form.status != TOP_UP or form.taxonomy_version != version:
                raise NotAllowedError(f"the result of {tops_up!r} asks for no further traces")
            batch_id = _insert(
                cursor, version, reviewer_id, form.form, form.private, form.attempt, tops_up,
                trace_ids, design,
            )  # fmt: skip
            return _exam(cursor, reviewer_id, batch_id)

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
        """Record the first result of an examination; a pass is valid from the last label."""
        if status not in (PASSED, FAILED, TOP_UP):
            raise InputError(f"status must be passed, failed or top_up, got {status!r:.40}")
        with self._db.write() as cursor:
            exam = _exam(cursor, reviewer_id, batch_id)
            if exam.status is not None:
                return exam
            left = open_traces(cursor, reviewer_id, batch_id, exam.taxonomy_version)
            if left or exam.ended_at is None:
                raise NotAllowedError(f"{batch_id!r} has not ended: {len(left)} traces are left")
            if status == TOP_UP and exam.tops_up is not None:
                raise InputError(f"{batch_id!r} tops up already; it is passed or failed")
            cursor.execute(
                "INSERT INTO exam_result VALUES (?, ?, ?, ?)",
                [batch_id, status, json.dumps(dict(body)), utc_now()],
            )
            if status == PASSED:
                _issue(cursor, exam, exam.ended_at, exam.ended_at + valid)
            record_audit(
                cursor, "examination", batch_id=batch_id, reviewer=reviewer_id, status=status
            )
            return _exam(cursor, reviewer_id, batch_id)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def exams_of(self, reviewer_id: str) -> list[Exam]:
        """Return the examinations of a person under every taxonomy version, oldest first."""
        with self._db.read() as cursor:
            return _exams(cursor, reviewer_id)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def exam_labels(self, reviewer_id: str, batch_id: str) -> dict[str, str]:
        """Return a person's classes in a batch, by trace, in the order served."""
        version = self._rules().version
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT i.trace_id, c.outcome FROM batch_item i JOIN label_current c "
                "USING (batch_id, trace_id) WHERE i.batch_id = ? AND c.reviewer_id = ? "
                "AND c.taxonomy_version = ? AND c.kind = 'label' ORDER BY i.position",
                [batch_id, reviewer_id, version],
            ).fetchall()
        return dict(found)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def exam_key(self, reviewer_id: str, batch_id: str) -> dict[str, tuple[str, str | None]]:
        """Return consensus class and rationale of each trace of an examination that has ended."""
        version = self._rules().version
        with self._db.read() as cursor:
            _exam(cursor, reviewer_id, batch_id)
            if open_traces(cursor, reviewer_id, batch_id, version):
                raise NotAllowedError(f"{batch_id!r} has not ended")
            found = cursor.execute(
                "SELECT trace_id, c.outcome, c.rationale FROM consensus c JOIN batch_item i "
                "USING (trace_id) WHERE i.batch_id = ? AND c.taxonomy_version = ?",
                [batch_id, version],
            ).fetchall()
        return {trace_id: (outcome, rationale) for trace_id, outcome, rationale in found}

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def exam_traces(
        self, reviewer_id: str, batch_id: str, trace_ids: Sequence[str]
    ) -> list[TraceForReview]:
        """Return traces of one's own ended examination, and of the form that it tops up."""
        with self._db.read() as cursor:
            exam = _exam(cursor, reviewer_id, batch_id)
            if exam.status not in (PASSED, FAILED):
                raise NotAllowedError(f"{batch_id!r} is not over")
            found = cursor.execute(
                "SELECT trace_id FROM batch_item WHERE batch_id IN (?, ?)", [batch_id, exam.tops_up]
            ).fetchall()
        theirs = {row[0] for row in found}
        return self._unbound().for_review([t for t in trace_ids if t in theirs])

    @open_to(REVIEWER, oneself="reviewer_id")
    def draw_own_form(
        self, reviewer_id: str, wanted: Mapping[str, int], seed: int
    ) -> tuple[list[str], dict[str, int]]:
        """Draw adjudicated traces of this team that a person has neither labelled nor seen."""
        # In random order, with the number available of each class, never the class of a trace.
        version = self._rules().version
        seen = set(self.seen_traces(reviewer_id))
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT trace_id, outcome FROM consensus WHERE taxonomy_version = ? "
                "ORDER BY md5(concat(trace_id, '/', ?::VARCHAR))",
                [version, str(seed)],
            ).fetchall()
        drawn: list[str] = []
        there = dict.fromkeys(wanted, 0)
        for trace_id, outcome in found:
            if outcome in there and trace_id not in seen:
                if there[outcome] < wanted[outcome]:
                    drawn.append(trace_id)
                there[outcome] += 1
        return drawn, there

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def first_labels(self, reviewer_id: str) -> list[Label]:
        """Return a person's first labels in practice and exams: later ones know the answers."""
        with self._db.read() as cursor:
            return read_labels(
                cursor,
                "FROM label_event l JOIN batch b ON b.batch_id = l.batch_id "
                "WHERE l.reviewer_id = ? AND l.taxonomy_version = ? AND l.kind = 'label' "
                "AND b.purpose IN ('practice', 'exam') "
                "QUALIFY row_number() OVER (PARTITION BY l.batch_id, l.trace_id ORDER BY l.seq) "
                "= 1 ORDER BY l.seq",
                [reviewer_id, self._rules().version],
            )

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def seen_traces(self, reviewer_id: str) -> dict[str, datetime]:
        """Return when a person last labelled a trace, was examined on it or saw its labels."""
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT trace_id, max(moment) FROM ("
                "SELECT trace_id, created_at AS moment FROM label_event WHERE reviewer_id = $who "
                "UNION ALL SELECT trace_id, created_at FROM exposure WHERE reviewer_id = $who "
                "UNION ALL SELECT i.trace_id, e.created_at FROM exam e JOIN batch_item i "
                "USING (batch_id) WHERE e.reviewer_id = $who) GROUP BY trace_id",
                {"who": reviewer_id},
            ).fetchall()
        return dict(found)

    @open_to(REVIEWER)
    def production_mix(self) -> ClassMix | None:
        """Return the class mix of the newest production batch with 30 labelled traces or more."""
        # Traces have design weights; the labels of a trace share its weight.
        version = self._rules().version
        with self._db.read() as cursor:
            found = cursor.execute(
                "WITH given AS (SELECT b.rowid AS place, l.batch_id, l.trace_id, l.outcome, "
                "1 / coalesce(i.inclusion_probability, 1) / "
                "count(*) OVER (PARTITION BY l.batch_id, l.trace_id) AS weight "
                "FROM label_current l JOIN batch b USING (batch_id) "
                "JOIN batch_item i USING (batch_id, trace_id) WHERE b.purpose = 'production' "
                "AND l.kind = 'label' AND l.taxonomy_version = $version), "
                "newest AS (SELECT batch_id, count(DISTINCT trace_id) AS n FROM given "
                "GROUP BY batch_id HAVING n >= $needs ORDER BY max(place) DESC LIMIT 1) "
                "SELECT batch_id, n, outcome, sum(weight) FROM given JOIN newest USING (batch_id) "
                "GROUP BY ALL ORDER BY outcome",
                {"version": version, "needs": MIX_NEEDS},
            ).fetchall()
        if not found:
            return None
        total = sum(weight for *_, weight in found)
        shares = {outcome: float(weight / total) for _, _, outcome, weight in found}
        return ClassMix(batch_id=found[0][0], n=found[0][1], shares=shares)

    @open_to(LEAD)
    def certificates(self) -> list[Certificate]:
        """Return every certificate, expired ones too, oldest first."""
        with self._db.read() as cursor:
            found = rows(cursor, "SELECT * EXCLUDE (seq) FROM certificate ORDER BY seq")
        return [Certificate(**row) for row in found]

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def certificates_of(self, reviewer_id: str) -> list[Certificate]:
        """Return the certificates of a person, expired ones too, oldest first."""
        return [c for c in self._unbound().certificates() if c.reviewer_id == reviewer_id]

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def certificate_of(self, reviewer_id: str, *, private: bool = False) -> Certificate | None:
        """Return a valid certificate of a person; `private`: one on a private form."""
        version = self._rules().version
        with self._db.read() as cursor:
            found = valid_certificates(cursor, reviewer_id, version, utc_now(), private=private)
        return Certificate(**found[0]) if found else None

    @open_to(LEAD, oneself="by")
    def allow_attempt(self, *, client_token: str, reviewer_id: str, by: str, reason: str) -> None:
        """Allow a person a further attempt, once per token; a lead gives the reason."""
        version = self._rules().version
        if not reason.strip():
            raise InputError("allowing another attempt needs a reason")
        with self._db.write() as cursor:
            self._db.held(StoreProgress).check_reviewer(cursor, reviewer_id)
            cursor.execute(
                "INSERT INTO attempt_allowed SELECT nextval('event_seq'), ?, ?, ?, ?, ?, ? "
                "ON CONFLICT (client_token) DO NOTHING",
                [client_token, reviewer_id, version, by, reason.strip()[:MAX_REASON], utc_now()],
            )

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def attempts_allowed(self, reviewer_id: str) -> list[datetime]:
        """Return when a lead allowed this person a further attempt on this taxonomy version."""
        version = self._rules().version
        with self._db.read() as cursor:
            found = cursor.execute(
                "SELECT created_at FROM attempt_allowed WHERE reviewer_id = ? "
                "AND taxonomy_version = ? ORDER BY seq",
                [reviewer_id, version],
            ).fetchall()
        return [row[0] for row in found]
