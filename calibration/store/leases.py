"""Admission to a batch, and leases on its traces.

No lease is ever removed: an expired one proves that the trace was shown, and admits a late label.
"""

import json
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
from calibration.store.people import ADMIN, LEAD, REVIEWER, StorePart, check_lead, open_to

PACE_LABELS, PACE_NEEDS = 20, 5
MAX_TAGS_OFFERED = 50

# Traces by kind and workflow.
Pool = Mapping[tuple[str, str], int]


class Decided(NamedTuple):
    """A label or skip in force; a skip has no class."""

    seq: int
    event_id: str
    kind: str
    outcome: str | None


@dataclass(slots=True)
class OwnProgress:
    """One reviewer's work in one batch under one taxonomy version."""

    decided: dict[str, Decided] = field(default_factory=dict)  # in the order of the decisions
    undone: dict[str, int] = field(default_factory=dict)  # sequence number of the undo
    tags: dict[str, tuple[int, tuple[int, int]]] = field(default_factory=dict)  # uses, last use
    # Sequence number and active seconds of the last labels, withdrawn ones included.
    seconds: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=PACE_LABELS))
    kinds: Counter[str] = field(default_factory=Counter)  # of the decisions
    left: dict[str, None] | None = None  # still to label, in order; None: unknown

    def latest(self) -> tuple[str, Decided] | None:
        """Return the decision that one undo would take back."""
        return next(reversed(self.decided.items()), None)


@dataclass(frozen=True, slots=True)
class DeskWork:
    """One reviewer's work on a batch; totals include hidden items, which must not stand out."""

    own: OwnProgress
    apart: OwnProgress  # on hidden items

    @property
    def kinds(self) -> Counter[str]:
        """Numbers of labels and skips in force."""
        return self.own.kinds + self.apart.kinds

    def latest(self) -> tuple[str, Decided, bool] | None:
        """Return the last decision with its trace, and whether that is a hidden item."""
        found = [(w.latest(), w is self.apart) for w in (self.own, self.apart)]
        both = [(*last, apart) for last, apart in found if last is not None]
        return max(both, key=lambda last: last[1].seq, default=None)

    def own_tags(self) -> list[str]:
        """Return this reviewer's tags by use, then last use; others' tags would hint at classes."""
        counts: Counter[str] = Counter()
        newest: dict[str, tuple[int, int]] = {}
        for work in (self.own, self.apart):
            for tag, (count, last) in work.tags.items():
                counts[tag] += count
                newest[tag] = max(last, newest.get(tag, last))
        ranked = sorted(counts, key=lambda tag: (counts[tag], newest[tag]), reverse=True)
        return ranked[:MAX_TAGS_OFFERED]

    def pace(self) -> float | None:
        """Return the median active seconds of the last 20 labels; None below five."""
        both = sorted([*self.own.seconds, *self.apart.seconds])[-PACE_LABELS:]
        return median(seconds for _, seconds in both) if len(both) >= PACE_NEEDS else None


@dataclass(slots=True)
class BatchProgress:
    """Decisions on the traces of one batch under one taxonomy version."""

    own: defaultdict[str, OwnProgress] = field(default_factory=lambda: defaultdict(OwnProgress))
    labels: Counter[str] = field(default_factory=Counter)  # reviewers who labelled each trace
    wanted: Mapping[str, int] = field(default_factory=dict)

    def left(self, wanted: Mapping[str, int], reviewer_id: str) -> Mapping[str, None]:
        """Return the traces of the batch that may still be labelled, in order."""
        if wanted is not self.wanted:
            self.wanted = wanted
            self._forget_left()
        own = self.own[reviewer_id]
        if own.left is None:
            own.left = {
                t: None
                for t, w in wanted.items()
                if self.labels.get(t, 0) < w and t not in own.decided
            }
        return own.left

    def _forget_left(self) -> None:
        for own in self.own.values():
            own.left = None

    def add(self, event: dict[str, Any]) -> None:
        """Add the next event."""
        own, trace_id, kind = self.own[event["reviewer_id"]], event["trace_id"], event["kind"]
        before = own.decided.pop(trace_id, None)
        if before is not None:
            own.kinds[before.kind] -= 1
            self.labels[trace_id] -= before.kind == "label"
            # A reopened trace keeps its position: rare enough to rebuild the list.
            self._forget_left()
        if kind == "undo":
            own.undone[trace_id] = event["seq"]
            return
        own.kinds[kind] += 1
        self.labels[trace_id] += kind == "label"
        self._take_out(own, trace_id)
        seq = event["seq"]
        own.decided[trace_id] = Decided(seq, str(event["event_id"]), kind, event["outcome"])
        if event["seconds_active"] is not None:
            own.seconds.append((seq, event["seconds_active"]))
        for place, tag in enumerate(json.loads(event["tags"] or "[]")):
            count, _ = own.tags.get(tag, (0, None))
            own.tags[tag] = count + 1, (seq, -place)

    def _take_out(self, own: OwnProgress, trace_id: str) -> None:
        """Remove a trace for the reviewers who decided it, or for all if it has enough labels."""
        full = self.labels[trace_id] >= self.wanted.get(trace_id, 0)
        for other in self.own.values() if full else (own,):
            if other.left is not None:
                other.left.pop(trace_id, None)


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """A batch as its queue needs it, with labels wanted and workflow of each trace."""

    purpose: str
    served_to: str | None  # as `Batch.reviewer_id`
    people: frozenset[str]  # as `Batch.people`
    certificate: str | None
    wanted: dict[str, int]
    workflows: dict[str, str]
    places: dict[str, int]  # position by trace


@dataclass(frozen=True, slots=True)
class Seat:
    """One reviewer in one batch under one version of the taxonomy."""

    reviewer_id: str
    batch_id: str
    version: str


class StoreProgress:
    """The progress of every batch of a store; used under the write lock only."""

    def __init__(self) -> None:
        self._seen = 0
        self._by_batch: defaultdict[tuple[str, str], BatchProgress] = defaultdict(BatchProgress)
        self._plans: dict[str, BatchPlan] = {}
        # Available items by batch, reviewer and taxonomy version, and when they were counted.
        self.pools: dict[Seat, tuple[datetime, Pool]] = {}
        # The secret of the slots, once stored, and the numbers drawn from it.
        self.secret: str | None = None
        self.drawn: dict[tuple[str, str], NDArray[np.float64]] = {}
        # Workflow of each hidden item.
        self.workflows: dict[str, str] = {}
        # Traces of a batch ever leased to a reviewer, and the time of the last look-up.
        self.given: dict[tuple[str, str], tuple[datetime, set[str]]] = {}
        # End of a reviewer's certificate, by taxonomy version and whether private.
        self.certified: dict[tuple[str, str, bool], datetime] = {}
        self._reviewers: set[str] = set()

    def plan(self, cursor: duckdb.DuckDBPyConnection, batch_id: str) -> BatchPlan:
        """Return the plan of a batch, read once."""
        if batch_id not in self._plans:
            items = cursor.execute(
                "SELECT trace_id, i.labels_wanted, t.workflow, purpose, reviewer_id, certificate, "
                "(SELECT people FROM batch_event e WHERE e.batch_id = b.batch_id "
                " ORDER BY seq DESC LIMIT 1) AS people "
                "FROM batch b JOIN batch_item i USING (batch_id) "
                "LEFT JOIN trace t USING (trace_id) WHERE batch_id = ? ORDER BY position",
                [batch_id],
            ).fetchall()
            if not items:
                raise InputError(f"batch {batch_id!r:.80} is not in the store")
            purpose, served_to, certificate, people = items[0][3:]
            self._plans[batch_id] = BatchPlan(
                purpose=purpose,
                served_to=served_to,
                people=frozenset(people or ()),
                certificate=certificate,
                wanted={item[0]: item[1] for item in items},
                workflows={item[0]: item[2] for item in items},
                places={item[0]: place for place, item in enumerate(items)},
            )
        return self._plans[batch_id]

    def forget_plan(self, batch_id: str) -> None:
        """Drop the plan of a batch: an adjudicator's batch changes, and people are assigned."""
        self._plans.pop(batch_id, None)

    def check_reviewer(self, cursor: duckdb.DuckDBPyConnection, reviewer_id: str) -> None:
        """Require a reviewer of the store; reviewers are never removed."""
        if reviewer_id not in self._reviewers:
            found = cursor.execute("SELECT reviewer_id FROM reviewer").fetchall()
            self._reviewers = {row[0] for row in found}
        if reviewer_id not in self._reviewers:
            raise InputError(f"reviewer {reviewer_id!r:.80} is not in the store")

    def workflows_of(
        self, cursor: duckdb.DuckDBPyConnection, trace_ids: Sequence[str]
    ) -> Mapping[str, str]:
        """Return the workflows of these traces, cached: a labelled trace is never replaced."""
        missing = [t for t in trace_ids if t not in self.workflows]
        if missing:
            found = cursor.execute(
                "SELECT trace_id, workflow FROM trace WHERE list_contains(?::VARCHAR[], trace_id)",
                [missing],
            ).fetchall()
            self.workflows.update(found)
        return self.workflows

    def of(
        self, cursor: duckdb.DuckDBPyConnection, batch_id: str, taxonomy_version: str
    ) -> BatchProgress:
        """Read the events since the last call and return the progress of a batch."""
        # Before the transaction's first event: a rollback could not be followed.
        result = cursor.execute(
            "SELECT seq, event_id, batch_id, taxonomy_version, trace_id, reviewer_id, kind, "
            "outcome, tags, seconds_active FROM label_event WHERE seq > ? ORDER BY seq",
            [self._seen],
        )
        names = [column[0] for column in result.description]
        for row in result.fetchall():
            event = dict(zip(names, row, strict=True))
            self._by_batch[event["batch_id"], event["taxonomy_version"]].add(event)
            self._seen = event["seq"]
        return self.at(batch_id, taxonomy_version)

    def at(self, batch_id: str, taxonomy_version: str) -> BatchProgress:
        """Return the progress of a batch as of the last call of `of`."""
        return self._by_batch[batch_id, taxonomy_version]


SETTING = "certificate"
ANY, PRIVATE = "any", "private"
EXAM_SKIP = "an examination has no skips: answer what you can defend best"
EXAM_ENDED = "the examination has ended; its labels are final"

# A lease ends once its reviewer has labelled or skipped the trace.
_UNDECIDED = (
    "NOT EXISTS (SELECT 1 FROM label_current c WHERE c.batch_id = l.batch_id "
    "AND c.trace_id = l.trace_id AND c.reviewer_id = l.reviewer_id AND c.taxonomy_version = ?)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateDemand:
    """The certificates that a store requires, beyond those of its batches."""

    form: str = ANY  # ``any`` or ``private``, wherever one is required
    every_batch: bool = False  # of production


def demand(cursor: Cursor) -> CertificateDemand:
    """Return the certificates that the store requires."""
    stored = setting(cursor, SETTING)
    return CertificateDemand() if stored is None else CertificateDemand(**stored)


def check_admitted(
    db: Database, cursor: Cursor, plan: BatchPlan, seat: Seat, *, to_label: bool
) -> None:
    """Require a batch served to this reviewer, and a certificate to label; under the write lock."""
    if plan.served_to not in (None, seat.reviewer_id):
        raise NotAllowedError(f"batch {seat.batch_id!r} is served to another reviewer only")
    if plan.people and seat.reviewer_id not in plan.people:
        raise NotAllowedError(f"batch {seat.batch_id!r} is assigned to others; open another batch")
    # Practice and examinations are how a certificate is earned.
    if not to_label or plan.purpose in ("practice", "exam"):
        return
    store = db.kept(SETTING, lambda: demand(cursor))
    if plan.certificate is None and not (store.every_batch and plan.purpose == "production"):
        return
    private = PRIVATE in (plan.certificate, store.form)
    if not _certified(db, cursor, seat.reviewer_id, seat.version, private=private):
        kind = " on a private form" if private else ""
        raise UncertifiedReviewerError(
            f"batch {seat.batch_id} asks for a certificate{kind}, and you have none that holds: "
            "take the examination on the Certificate page, then come back here"
        )


def _certified(
    db: Database, cursor: Cursor, reviewer_id: str, taxonomy_version: str, *, private: bool
) -> bool:
    """Return whether a reviewer has a valid certificate; none is ever revoked."""
    now, who = utc_now(), (reviewer_id, taxonomy_version, private)
    until = db.held(StoreProgress).certified.get(who)
    if until is not None and now < until:
        return True
    found = valid_certificates(cursor, reviewer_id, taxonomy_version, now, private=private)
    if found:
        db.held(StoreProgress).certified[who] = max(one["expires_at"] for one in found)
    return bool(found)


def valid_certificates(
    cursor: Cursor, reviewer_id: str, taxonomy_version: str, now: datetime, *, private: bool
) -> list[dict[str, Any]]:
    """Return the valid certificates, private forms first, then the newest."""
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
    """Refuse to skip a trace of an examination."""
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
    """The leases in a batch, as the queue of one reviewer needs them."""

    held: dict[str, datetime] = field(default_factory=dict)  # this reviewer's, with their ends
    apart: dict[str, datetime] = field(default_factory=dict)  # the same, in the companion
    others: list[tuple[str, str]] = field(default_factory=list)  # reviewer and trace
    shown: set[str] = field(default_factory=set)  # every trace ever leased to this reviewer

    @classmethod
    def read(
        cls,
        cursor: Cursor,
        progress: StoreProgress,
        seat: Seat,
        *,
        companion_id: str,
        now: datetime,
    ) -> "Leases":
        """Read the live leases, and those of this reviewer since the last call."""
        batch_id, reviewer_id = seat.batch_id, seat.reviewer_id
        since, given = progress.given.get((batch_id, reviewer_id), (LONG_AGO, set[str]()))
        if since > now:
            since, given = LONG_AGO, set()
        leases = cls(shown=given)
        # Every change to a lease makes it end now or later.
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
    """Return the traces whose lease is missing or ends soon."""
    return [t for t in trace_ids if t not in held or held[t] - now < LEASE * 0.9]


def claim(cursor: Cursor, batch_id: str, trace_ids: Sequence[str], reviewer_id: str) -> None:
    """Lease traces to a reviewer, or renew their leases."""
    if not trace_ids:
        return
    ends = utc_now() + LEASE
    # ON CONFLICT would join the whole table: four times slower than a look-up first.
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
    """End the lease of a decided trace."""
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
            f"trace {trace_id!r:.80} was not given to {reviewer_id!r} in batch {batch_id!r:.80}"
        )


class LeaseStore(StorePart):
    """Leases, and the certificates that the store requires."""

    @open_to(REVIEWER)
    def certificate_demand(self) -> CertificateDemand:
        """Return the certificates that the store requires beyond those of its batches."""
        with self._db.read() as cursor:
            return demand(cursor)

    @open_to(ADMIN, oneself="by")
    def set_certificate_demand(self, wanted: CertificateDemand, *, by: str) -> None:
        """Require certificates from now on; the change is audited."""
        if wanted.form not in (ANY, PRIVATE):
            raise InputError(f"form must be {ANY} or {PRIVATE}, got {wanted.form!r:.40}")
        with self._db.write() as cursor:
            if demand(cursor) != wanted:
                put_setting(cursor, SETTING, asdict(wanted), by=by)
                self._db.forget(SETTING)

    @open_to(LEAD)
    def lease_frame(self, batch_id: str) -> pd.DataFrame:
        """Return reviewer_id, trace_id and expires_at of the live leases on open traces, by end."""
        return self._frame(
            "SELECT reviewer_id, trace_id, expires_at FROM lease l "
            f"WHERE batch_id = ? AND expires_at > ? AND {_UNDECIDED} "
            "ORDER BY expires_at, reviewer_id, trace_id",
            [batch_id, utc_now(), self._rules().version],
        )

    @open_to(LEAD, oneself="by")
    def release_leases(self, *, batch_id: str, reviewer_id: str, by: str) -> list[str]:
        """End a reviewer's leases in a batch; return the traces. Late labels are still accepted."""
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
