"""Who is let into a batch, and what may still be taken back there."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from calibration.errors import (
    InputError,
    LabelRefusedError,
    NotAllowedError,
    UncertifiedReviewerError,
)
from calibration.store.database import Cursor, Database, record_audit, rows, utc_now

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


def demand(cursor: Cursor) -> CertificateDemand:
    """Return what the store demands."""
    found = cursor.execute(
        "SELECT value FROM setting WHERE name = ? ORDER BY seq DESC LIMIT 1", [SETTING]
    ).fetchone()
    return CertificateDemand() if found is None else CertificateDemand(**json.loads(found[0]))


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


def check_admitted(
    cursor: Cursor, reviewer_id: str, batch_id: str, taxonomy_version: str, *, to_label: bool
) -> None:
    """Require that a batch is served to this reviewer, and, to label, that they are certified.

    Raises
    ------
    NotAllowedError
        If the batch is served to somebody else only.
    UncertifiedReviewerError
        If the batch, or the store, demands a certificate that the reviewer does not have.
    """
    found = cursor.execute(
        "SELECT reviewer_id, certificate, purpose FROM batch WHERE batch_id = ?", [batch_id]
    ).fetchone()
    if found is None:
        raise InputError(f"batch {batch_id!r} is not in the store")
    served_to, asked, purpose = found
    if served_to is not None and served_to != reviewer_id:
        raise NotAllowedError(f"batch {batch_id!r} is served to another reviewer only")
    # Practice and examinations are how a certificate is earned.
    if not to_label or purpose in ("practice", "exam"):
        return
    store = demand(cursor)
    if asked is None and not (store.every_batch and purpose == "production"):
        return
    private = PRIVATE in (asked, store.form)
    if not valid_certificates(cursor, reviewer_id, taxonomy_version, utc_now(), private=private):
        kind = " on a private form" if private else ""
        raise UncertifiedReviewerError(
            f"batch {batch_id} asks for a certificate{kind}, and you have none that holds: take "
            "the examination on the Certificate page, then come back here"
        )


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
