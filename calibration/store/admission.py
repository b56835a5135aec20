"""Who is let into a batch, and what may still be taken back there."""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from calibration.errors import (
    InputError,
    LabelRefusedError,
    NotAllowedError,
    UncertifiedReviewerError,
)
from calibration.store.database import Cursor, Database, record_audit, rows, utc_now
from calibration.store.progress import Plan

SETTING = "certificate"
ANY, PRIVATE = "any", "private"
EXAM_SKIP = "an examination has no skips: answer what you can defend best"
EXAM_ENDED = "the examination has ended; its labels stand"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateDemand:
    """What a store demands beyond its batches.

    `form` is ``any`` or ``private``: where a certificate is demanded, whether one on a public
    form will do. `every_batch` demands one for every production batch.
    """

    form: str = ANY
    every_batch: bool = False


# How often this process has set a demand, by store: one process may open a file twice.
_times_set: Counter[Path] = Counter()


def demand(cursor: Cursor) -> CertificateDemand:
    """Return what the store demands."""
    return _demanded(_stored(cursor))


def _stored(cursor: Cursor) -> str | None:
    found = cursor.execute(
        "SELECT value FROM setting WHERE name = ? ORDER BY seq DESC LIMIT 1", [SETTING]
    ).fetchone()
    return None if found is None else str(found[0])


def _demanded(stored: str | None) -> CertificateDemand:
    return CertificateDemand() if stored is None else CertificateDemand(**json.loads(stored))


def set_demand(db: Database, wanted: CertificateDemand, *, by: str) -> None:
    """Demand certificates from now on; it is written down who said so.

    Raises
    ------
    InputError
        If the form is neither any nor private.
    """
    if wanted.form not in (ANY, PRIVATE):
        raise InputError(f"form must be {ANY} or {PRIVATE}, got {wanted.form!r:.40}")
    with db.write() as cursor:
        if demand(cursor) != wanted:
            cursor.execute(
                "INSERT INTO setting (name, value, created_at) VALUES (?, ?, ?)",
                [SETTING, json.dumps(asdict(wanted)), utc_now()],
            )
            record_audit(cursor, "certificate demand", by=by, demand=asdict(wanted))
            _times_set[db.path.resolve()] += 1


def _kept_demand(db: Database, cursor: Cursor) -> CertificateDemand:
    """Return what the store demands; the queue asks on every label, and it hardly ever changes."""
    times_set, kept = _times_set[db.path.resolve()], db.progress.demand
    if kept is None or kept[0] != times_set:
        kept = db.progress.demand = times_set, _stored(cursor)
    return _demanded(kept[1])


def check_admitted(
    db: Database,
    cursor: Cursor,
    plan: Plan,
    *,
    reviewer_id: str,
    batch_id: str,
    taxonomy_version: str,
    to_label: bool,
) -> None:
    """Require that a batch is served to this reviewer, and, to label, that they are certified.

    Must be called under the write lock.

    Raises
    ------
    NotAllowedError
        If the batch is served to somebody else only.
    UncertifiedReviewerError
        If the batch, or the store, demands a certificate that the reviewer does not have.
    """
    if plan.served_to not in (None, reviewer_id):
        raise NotAllowedError(f"batch {batch_id!r} is served to another reviewer only")
    # Practice and examinations are how a certificate is earned.
    if not to_label or plan.purpose in ("practice", "exam"):
        return
    store = _kept_demand(db, cursor)
    if plan.certificate is None and not (store.every_batch and plan.purpose == "production"):
        return
    private = PRIVATE in (plan.certificate, store.form)
    if not _certified(db, cursor, reviewer_id, taxonomy_version, private=private):
        kind = " on a private form" if private else ""
        raise UncertifiedReviewerError(
            f"batch {batch_id} asks for a certificate{kind}, and you have none that holds: take "
            "the examination on the Certificate page, then come back here"
        )


def _certified(
    db: Database, cursor: Cursor, reviewer_id: str, taxonomy_version: str, *, private: bool
) -> bool:
    """Return whether somebody has a certificate that holds; none is ever taken back."""
    now, who = utc_now(), (reviewer_id, taxonomy_version, private)
    until = db.progress.certified.get(who)
    if until is not None and now < until:
        return True
    found = valid_certificates(cursor, reviewer_id, taxonomy_version, now, private=private)
    if found:
        db.progress.certified[who] = max(one["expires_at"] for one in found)
    return bool(found)


def valid_certificates(
    cursor: Cursor, reviewer_id: str, taxonomy_version: str, now: datetime, *, private: bool
) -> list[dict[str, Any]]:
    """Return the certificates that hold now, those on a private form first, then the newest."""
    return rows(
        cursor,
        "SELECT batch_id, reviewer_id, taxonomy_version, form, private, simulated, issued_at, "
        "expires_at FROM certificate WHERE reviewer_id = ? AND taxonomy_version = ? "
        "AND expires_at > ? AND (private OR NOT ?) ORDER BY private DESC, seq DESC",
        [reviewer_id, taxonomy_version, now, private],
    )


def is_exam(cursor: Cursor, batch_id: str) -> bool:
    """Return whether a batch is an examination."""
    return (
        cursor.execute("SELECT 1 FROM exam WHERE batch_id = ?", [batch_id]).fetchone() is not None
    )


def check_may_skip(cursor: Cursor, batch_id: str) -> None:
    """Refuse to pass over a trace of an examination."""
    if is_exam(cursor, batch_id):
        raise LabelRefusedError(EXAM_SKIP)


def check_not_ended(cursor: Cursor, reviewer_id: str, batch_id: str, taxonomy_version: str) -> None:
    """Refuse to take back a label of an examination whose last trace is labelled."""
    if is_exam(cursor, batch_id) and not open_traces(
        cursor, reviewer_id, batch_id, taxonomy_version
    ):
        raise LabelRefusedError(EXAM_ENDED)


def open_traces(
    cursor: Cursor, reviewer_id: str, batch_id: str, taxonomy_version: str
) -> list[str]:
    """Return the traces of a batch that this reviewer has not labelled, in order."""
    found = cursor.execute(
        "SELECT i.trace_id FROM batch_item i WHERE i.batch_id = $batch AND NOT EXISTS ("
        "SELECT 1 FROM label_current c WHERE c.batch_id = $batch AND c.trace_id = i.trace_id "
        "AND c.reviewer_id = $reviewer AND c.taxonomy_version = $version AND c.kind = 'label') "
        "ORDER BY i.position",
        {"batch": batch_id, "reviewer": reviewer_id, "version": taxonomy_version},
    ).fetchall()
    return [row[0] for row in found]
