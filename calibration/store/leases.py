"""Admission to a batch, and leases on its traces.

A lease that has ended stays: it proves that the trace was shown, and a label that comes late is
still taken in. So nothing here ever removes one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pandas as pd

from calibration.errors import (
    InputError,
    LabelRefusedError,
    NotAllowedError,
    UncertifiedReviewerError,
)
from calibration.store.database import (
    Cursor,
    Database,
    put_setting,
    record_audit,
    rows,
    setting,
    utc_now,
)
from calibration.store.people import check_lead
from calibration.store.permissions import ADMIN, LEAD, REVIEWER, StorePart, open_to
from calibration.store.progress import BatchPlan, StoreProgress

SETTING = "certificate"

ANY, PRIVATE = "any", "private"

EXAM_SKIP = "an examination has no skips: answer what you can defend best"

EXAM_ENDED = "the examination has ended; its labels stand"

# A lease binds nobody any more once its reviewer has labelled or skipped the trace.
_UNDECIDED = (
    "NOT EXISTS (SELECT 1 FROM label_current c WHERE c.batch_id = l.batch_id "
    "AND c.trace_id = l.trace_id AND c.reviewer_id = l.reviewer_id AND c.taxonomy_version = ?)"
)


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
    stored = setting(cursor, SETTING)
    return CertificateDemand() if stored is None else CertificateDemand(**stored)


def check_admitted(
    db: Database,
    cursor: Cursor,
    plan: BatchPlan,
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
    store = db.kept(SETTING, lambda: demand(cursor))
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


LEASE = timedelta(minutes=15)

LONG_AGO = datetime(1970, 1, 1)  # noqa: DTZ001  the store keeps UTC without zone


@dataclass(slots=True)
class Leases:
    """What is held of a batch, as the queue of one reviewer sees it.

    `held` and `apart` say until when this reviewer holds traces of the batch, and of its
    companion; `others` what every other one holds of the batch. `shown` are the traces of the
    batch that this reviewer was ever given.
    """

    held: dict[str, datetime] = field(default_factory=dict)
    apart: dict[str, datetime] = field(default_factory=dict)
    others: list[tuple[str, str]] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)

    @classmethod
    def read(
        cls,
        cursor: Cursor,
        progress: StoreProgress,
        *,
        batch_id: str,
        companion_id: str,
        reviewer_id: str,
        now: datetime,
    ) -> "Leases":
        """Read what is held now, and what this reviewer was given since it was last asked."""
        since, given = progress.given.get((batch_id, reviewer_id), (LONG_AGO, set[str]()))
        if since > now:
            since, given = LONG_AGO, set()
        leases = cls(shown=given)
        # Whatever is done to a lease, it then ends at that moment or later.
        found = cursor.execute(
            "SELECT batch_id, reviewer_id, trace_id, expires_at FROM lease "
            "WHERE batch_id IN ($1, $2) "
            "AND (expires_at > $3 OR (expires_at >= $4 AND reviewer_id = $5))",
            [batch_id, companion_id, now, since, reviewer_id],
        ).fetchall()
        for of, who, trace_id, expires_at in found:
            if who != reviewer_id:
                leases.others += [(who, trace_id)] if of == batch_id else []
                continue
            if of == batch_id:
                given.add(trace_id)
            if expires_at > now:
                (leases.held if of == batch_id else leases.apart)[trace_id] = expires_at
        progress.given[batch_id, reviewer_id] = now, given
        return leases


def due_leases(trace_ids: Sequence[str], held: Mapping[str, datetime], now: datetime) -> list[str]:
    """Return the traces that are not held, or not for long any more."""
    return [t for t in trace_ids if t not in held or held[t] - now < LEASE * 0.9]


def claim(cursor: Cursor, batch_id: str, trace_ids: Sequence[str], reviewer_id: str) -> None:
    """Give traces to a reviewer, or renew what they hold."""
    if not trace_ids:
        return
    ends = utc_now() + LEASE
    # ON CONFLICT would join the whole table: four times as long as to look first.
    found = cursor.execute(
        "SELECT trace_id FROM lease WHERE batch_id = ? AND reviewer_id = ? "
        "AND list_contains(?::VARCHAR[], trace_id)",
        [batch_id, reviewer_id, list(trace_ids)],
    ).fetchall()
    known = [row[0] for row in found]
    fresh = [t for t in dict.fromkeys(trace_ids) if t not in known]
    if known:
        cursor.execute(
            "UPDATE lease SET expires_at = ? WHERE batch_id = ? AND reviewer_id = ? "
            "AND list_contains(?::VARCHAR[], trace_id)",
            [ends, batch_id, reviewer_id, known],
        )
    if fresh:
        cursor.execute(
            f"INSERT INTO lease VALUES {', '.join(['(?, ?, ?, ?)'] * len(fresh))}",
            [value for t in fresh for value in (batch_id, t, reviewer_id, ends)],
        )


def end_lease(cursor: Cursor, batch_id: str, trace_id: str, reviewer_id: str) -> None:
    """Hold a trace no longer: its reviewer has decided it."""
    cursor.execute(
        "UPDATE lease SET expires_at = ? WHERE batch_id = ? AND trace_id = ? AND reviewer_id = ?",
        [utc_now(), batch_id, trace_id, reviewer_id],
    )


def check_offered(cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str) -> None:
    """Require a lease, live or expired: it proves that the trace was shown."""
    offered = cursor.execute(
        "SELECT 1 FROM lease WHERE batch_id = ? AND trace_id = ? AND reviewer_id = ?",
        [batch_id, trace_id, reviewer_id],
    ).fetchone()
    if offered is None:
        raise LabelRefusedError(
            f"trace {trace_id!r} was not given to {reviewer_id!r} in batch {batch_id!r}"
        )


class LeaseStore(StorePart):
    """Who holds which trace, and the certificates that the store demands."""

    @open_to(REVIEWER)
    def certificate_demand(self) -> CertificateDemand:
        """Return what the store demands beyond its batches."""
        with self._db.read() as cursor:
            return demand(cursor)

    @open_to(ADMIN, oneself="by")
    def set_certificate_demand(self, wanted: CertificateDemand, *, by: str) -> None:
        """Demand certificates from now on; it is written down who said so.

        Raises
        ------
        InputError
            If the form is neither any nor private.
        """
        if wanted.form not in (ANY, PRIVATE):
            raise InputError(f"form must be {ANY} or {PRIVATE}, got {wanted.form!r:.40}")
        with self._db.write() as cursor:
            if demand(cursor) != wanted:
                put_setting(cursor, SETTING, asdict(wanted), by=by)
                self._db.forget(SETTING)

    @open_to(LEAD)
    def lease_frame(self, batch_id: str) -> pd.DataFrame:
        """Return reviewer_id, trace_id and expires_at of each live lease, in order of its end.

        A trace that its reviewer has decided is not held any more.
        """
        return self._frame(
            "SELECT reviewer_id, trace_id, expires_at FROM lease l "
            f"WHERE batch_id = ? AND expires_at > ? AND {_UNDECIDED} "
            "ORDER BY expires_at, reviewer_id, trace_id",
            [batch_id, utc_now(), self._rules().version],
        )

    @open_to(LEAD, oneself="by")
    def release_leases(self, *, batch_id: str, reviewer_id: str, by: str) -> list[str]:
        """End what a reviewer holds in a batch, so that the queue offers it to others at once.

        Drafts stay, and so does the right to send a label of a trace that was shown. Returns the
        traces that were handed over; with none, nothing is written.

        Raises
        ------
        InputError
            If `by` is no lead of the store.
        """
        taxonomy_version = self._rules().version
        now = utc_now()
        with self._db.write() as cursor:
            check_lead(cursor, by)
            found = cursor.execute(
                "SELECT trace_id FROM lease l WHERE batch_id = ? AND reviewer_id = ? "
                f"AND expires_at > ? AND {_UNDECIDED} ORDER BY trace_id",
                [batch_id, reviewer_id, now, taxonomy_version],
            ).fetchall()
            released = [row[0] for row in found]
            if released:
                cursor.execute(
                    "UPDATE lease SET expires_at = ? WHERE batch_id = ? AND reviewer_id = ? "
                    "AND list_contains(?::VARCHAR[], trace_id)",
                    [now, batch_id, reviewer_id, released],
                )
                record_audit(
                    cursor, "leases released", batch_id=batch_id, reviewer_id=reviewer_id, by=by,
                    trace_ids=released,
                )  # fmt: skip
        return released
