"""Examinations, their results, and certificates."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from calibration.errors import InputError, NotAllowedError
from calibration.records import Trace, TraceForReview
from calibration.store.admission import open_traces, valid_certificates
from calibration.store.database import Cursor, Database, record_audit, rows, utc_now
from calibration.store.personal import personal_batch, take_in
from calibration.store.review import for_review

PASSED, FAILED, TOP_UP = "passed", "failed", "top_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """One examination, or what tops one up (`tops_up` names the form's batch then).

    `ended_at` is when its last trace was labelled, `status` and `body` the result once it is
    recorded. `attempt` counts the examinations of this person on this taxonomy version.
    """

    batch_id: str
    reviewer_id: str
    taxonomy_version: str
    form: str
    private: bool
    attempt: int
    tops_up: str | None
    started_at: datetime
    n: int
    labelled: int
    ended_at: datetime | None
    status: str | None
    body: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Proof that somebody passed; `private` when the form was nobody's to read before."""

    batch_id: str
    reviewer_id: str
    taxonomy_version: str
    form: str
    private: bool
    simulated: bool
    issued_at: datetime
    expires_at: datetime


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


def exams_of(db: Database, reviewer_id: str) -> list[Exam]:
    """Return the examinations of a person, oldest first, of every taxonomy version."""
    with db.read() as cursor:
        return _exams(cursor, reviewer_id)


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
    raise InputError(f"{batch_id!r:.80} is no examination of {reviewer_id!r:.80}")


def start_exam(
    db: Database,
    version: str,
    *,
    reviewer_id: str,
    form: str,
    private: bool,
    trace_ids: Sequence[str],
    traces: Sequence[Trace],
    design: Mapping[str, Any],
) -> Exam:
    """Give a person an examination; one that is open already is returned instead.

    `traces` are those of the reference dataset that the store may lack; `trace_ids` is the order
    in which they are served.

    Raises
    ------
    InputError
        If a trace is none of the reference dataset, or one is not in the store.
    """
    take_in(db, traces)
    with db.write() as cursor:
        db.progress.check_reviewer(cursor, reviewer_id)
        theirs = [e for e in _exams(cursor, reviewer_id) if e.taxonomy_version == version]
        unsettled = [e for e in theirs if e.status is None]
        if unsettled:
            return unsettled[-1]
        attempt = 1 + sum(e.tops_up is None for e in theirs)
        batch_id = _insert(
            cursor, version, reviewer_id, form, private, attempt, None, trace_ids, design
        )
        return _exam(cursor, reviewer_id, batch_id)


def add_top_up(
    db: Database,
    version: str,
    *,
    reviewer_id: str,
    tops_up: str,
    trace_ids: Sequence[str],
    traces: Sequence[Trace],
    design: Mapping[str, Any],
) -> Exam:
    """Give further traces to somebody whose form has to be topped up; only once.

    Raises
    ------
    InputError
        If the form is none of theirs.
    NotAllowedError
        If its result asks for no further traces.
    """
    take_in(db, traces)
    with db.write() as cursor:
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


def _insert(
    cursor: Cursor,
    version: str,
    reviewer_id: str,
    form: str,
    private: bool,
    attempt: int,
    tops_up: str | None,
    trace_ids: Sequence[str],
    design: Mapping[str, Any],
) -> str:
    batch_id = personal_batch(cursor, "exam", reviewer_id, trace_ids, design)
    cursor.execute(
        "INSERT INTO exam SELECT ?, nextval('event_seq'), ?, ?, ?, ?, ?, ?, ?",
        [batch_id, reviewer_id, version, form, private, attempt, tops_up, utc_now()],
    )
    return batch_id


def record_result(
    db: Database,
    *,
    reviewer_id: str,
    batch_id: str,
    status: str,
    body: Mapping[str, Any],
    valid: timedelta,
) -> Exam:
    """Write down how an examination ended, once; a pass is a certificate.

    The first result stands, whatever is sent later. The certificate runs from the last label.

    Raises
    ------
    NotAllowedError
        If traces of it are left.
    InputError
        If the examination is none of theirs, the status is none, or a second topping up is asked
        for.
    """
    if status not in (PASSED, FAILED, TOP_UP):
        raise InputError(f"status must be passed, failed or top_up, got {status!r:.40}")
    with db.write() as cursor:
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
        record_audit(cursor, "examination", batch_id=batch_id, reviewer=reviewer_id, status=status)
        return _exam(cursor, reviewer_id, batch_id)


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


def certificates(db: Database, reviewer_id: str | None = None) -> list[Certificate]:
    """Return every certificate, or those of one person, oldest first; past ones among them."""
    with db.read() as cursor:
        found = rows(
            cursor,
            "SELECT * EXCLUDE (seq) FROM certificate WHERE reviewer_id = coalesce(?, reviewer_id) "
            "ORDER BY seq",
            [reviewer_id],
        )
    return [Certificate(**row) for row in found]


def certificate_of(
    db: Database, version: str, reviewer_id: str, *, private: bool
) -> Certificate | None:
    """Return the certificate of a person that holds now; `private` wants one on a private form."""
    with db.read() as cursor:
        found = valid_certificates(cursor, reviewer_id, version, utc_now(), private=private)
    return Certificate(**found[0]) if found else None


def exam_traces(
    db: Database, reviewer_id: str, batch_id: str, trace_ids: Sequence[str]
) -> list[TraceForReview]:
    """Return traces of an examination of one's own that is over, what tops it up included.

    Raises
    ------
    InputError
        If the examination is none of theirs.
    NotAllowedError
        If it is not over.
    """
    with db.read() as cursor:
        exam = _exam(cursor, reviewer_id, batch_id)
        if exam.status not in (PASSED, FAILED):
            raise NotAllowedError(f"{batch_id!r} is not over")
        found = cursor.execute(
            "SELECT trace_id FROM batch_item WHERE batch_id IN (?, ?)", [batch_id, exam.tops_up]
        ).fetchall()
    theirs = {row[0] for row in found}
    return for_review(db, [t for t in trace_ids if t in theirs])
