"""Batches: traces to be labelled together, in production, practice and examinations.

The labels of the hidden items of a batch are stored under a companion batch. No page lists it and
no number is drawn from it: the Label page knows the production batch only.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pandas as pd

from calibration.errors import CalibrationError, InputError, LabelRefusedError
from calibration.records import REFERENCE_SOURCE, Trace
from calibration.store.database import Cursor, record_audit, rows, utc_now
from calibration.store.leases import Seat, StoreProgress
from calibration.store.people import LEAD, REVIEWER, open_to, ranks
from calibration.store.traces import TraceStore, perturbed
from calibration.text import weeks_of

SUFFIX = "-inserted"

# Batches other than companions.
NO_COMPANION = "json_extract(design, '$.inserts_of') IS NULL"

# Name and people of each batch.
NAMED_NOW = (
    "FROM batch_event QUALIFY row_number() OVER (PARTITION BY batch_id ORDER BY seq DESC) = 1"
)

LONGEST_NAME = 60

# The kind of a design that is no random sample.
SELECTION = "traces chosen by filters"

# Kind of the batch in which a lead labels agreed traces again, blind.
AUDIT = "audit of agreed labels"

PURPOSES = ("practice", "exam", "production", "repeat", "adjudication")


def companion(batch_id: str) -> str:
    """Return the batch under which the labels of the hidden items of a batch are stored."""
    return f"{batch_id}{SUFFIX}"


def add_companion(cursor: Cursor, batch_id: str, now: datetime) -> None:
    """Store the companion of a batch unless it exists."""
    cursor.execute(
        "INSERT INTO batch (batch_id, purpose, labels_wanted, design, created_at) "
        "VALUES (?, 'repeat', 1, ?, ?) ON CONFLICT DO NOTHING",
        [companion(batch_id), json.dumps({"inserts_of": batch_id}), now],
    )


def both(batch_id: str) -> tuple[str, str]:
    """Return a batch and its companion; nothing for a companion, which no caller may name."""
    named = "" if batch_id.endswith(SUFFIX) else batch_id
    return named, named and companion(named)


def batch_of(
    cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str, taxonomy_version: str
) -> str:
    """Return the batch under which a reviewer's label of a trace is stored."""
    if batch_id.endswith(SUFFIX):
        raise LabelRefusedError(
            f"trace {trace_id!r:.80} was not given to {reviewer_id!r} in batch {batch_id!r:.80}"
        )
    found = cursor.execute(
        "SELECT 1 FROM inserted WHERE batch_id = ? AND reviewer_id = ? AND trace_id = ? "
        "AND taxonomy_version = ?",
        [batch_id, reviewer_id, trace_id, taxonomy_version],
    ).fetchone()
    return batch_id if found is None else companion(batch_id)


def hidden_items_of(
    cursor: Cursor, progress: StoreProgress, seat: Seat
) -> tuple[dict[str, int], list[str]]:
    """Return a reviewer's hidden items by trace with their slots, and the open ones."""
    # `progress` must have been read before.
    apart = progress.at(companion(seat.batch_id), seat.version).own[seat.reviewer_id]
    found = cursor.execute(
        "SELECT trace_id, slot FROM inserted WHERE batch_id = ? AND reviewer_id = ? "
        "AND taxonomy_version = ? ORDER BY slot",
        [seat.batch_id, seat.reviewer_id, seat.version],
    ).fetchall()
    slots = dict(found)
    return slots, [trace_id for trace_id in slots if trace_id not in apart.decided]


def give_back(
    cursor: Cursor, trace_id: str, reviewer_id: str, batch_id: str, taxonomy_version: str
) -> None:
    """Withdraw the repeat of a trace whose first label, of the same batch, was taken back."""
    cursor.execute(
        "DELETE FROM inserted WHERE batch_id = ? AND reviewer_id = ? AND trace_id = ? "
        "AND taxonomy_version = ?",
        [batch_id, reviewer_id, trace_id, taxonomy_version],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Traces to be labelled together, with the design of their draw."""

    batch_id: str
    purpose: str
    labels_wanted: int  # the most that any trace wants
    n_items: int
    design: dict[str, Any]
    created_at: datetime
    reviewer_id: str | None = None  # the only person it is served to
    certificate: str | None = None  # any or private: required of everybody who labels
    name: str = ""  # what a lead calls it
    people: tuple[str, ...] = ()  # whom a lead assigned it to; nobody: it is for everybody

    @property
    def title(self) -> str:
        """What it is called on pages."""
        return f"{self.name} ({self.batch_id})" if self.name else self.batch_id

    def is_for(self, reviewer_id: str) -> bool:
        """Return whether its traces are given to this person."""
        return self.reviewer_id in (None, reviewer_id) and (
            not self.people or reviewer_id in self.people
        )

    @property
    def is_sample(self) -> bool:
        """Whether it is a random sample of production whose design records the population."""
        return "last_seq" in self.design

    @property
    def week(self) -> str | None:
        """The ISO week (UTC) of the start times that it was drawn from; None for all of them."""
        return self.design.get("week")

    @property
    def is_audit(self) -> bool:
        """Whether a lead labels agreed traces of other batches again."""
        return self.design.get("kind") == AUDIT

    def population(self, traces: pd.DataFrame) -> pd.DataFrame:
        """Return the production traces that the batch was drawn from, without later imports.

        Perturbed arms among `traces` are kept: a batch may have been drawn before they were known.
        """
        # In order of id: a seeded resample must not depend on the order of import.
        if self.design.get("kind") == SELECTION:
            raise CalibrationError(
                f"batch {self.batch_id!r} holds {SELECTION} and no random sample of production: no "
                "rate follows from it; name another batch, or draw one with "
                "`asr sample --n 40 --seed 1`"
            )
        if not self.is_sample:
            raise CalibrationError(
                f"batch {self.batch_id!r} does not say what it was drawn from; "
                "draw one with `asr sample --n 40 --seed 1`"
            )
        workflow = self.design.get("workflow")
        chosen = traces[self.could_draw(traces)].sort_values("trace_id")
        if workflow is not None:
            known = (
                ids_digest(chosen["trace_id"]),
                ids_digest(chosen["trace_id"][~perturbed(chosen)]),
            )
            if self.design["population_sha256"] not in known:
                raise CalibrationError(
                    f"traces were moved into or out of workflow {workflow!r} after batch "
                    f"{self.batch_id!r} was drawn; import them with the workflow they had, or draw "
                    "a new batch"
                )
        return chosen.reset_index(drop=True)

    def could_draw(self, traces: pd.DataFrame) -> "pd.Series[bool]":
        """Return whether each trace was there to be drawn by this random batch."""
        inside: pd.Series[bool] = traces["seq"] <= self.design["last_seq"]
        if self.design.get("workflow") is not None:
            inside &= traces["workflow"] == self.design["workflow"]
        if self.week is not None:
            inside &= weeks_of(pd.to_datetime(traces["started_at"], utc=True)) == self.week
        return inside


def ids_digest(trace_ids: Iterable[str]) -> str:
    """Return a digest of a list of traces in this order."""
    return hashlib.sha256("\n".join(trace_ids).encode()).hexdigest()


def read_batches(cursor: Cursor) -> list[Batch]:
    """Return all batches but the companions, newest first."""
    found = rows(
        cursor,
        "SELECT batch_id, purpose, labels_wanted, design, b.created_at, reviewer_id, certificate, "
        "coalesce(e.name, '') AS name, coalesce(e.people, []) AS people, "
        "(SELECT count(*) FROM batch_item i WHERE i.batch_id = b.batch_id) AS n_items "
        f"FROM batch b LEFT JOIN ({NAMED_NOW}) e USING (batch_id) WHERE {NO_COMPANION} "
        "ORDER BY b.rowid DESC",
    )
    return [
        Batch(**(row | {"design": json.loads(row["design"]), "people": tuple(row["people"])}))
        for row in found
    ]


def _batch_in(cursor: Cursor, batch_id: str) -> Batch:
    found = next((b for b in read_batches(cursor) if b.batch_id == batch_id), None)
    if found is None:
        raise InputError(f"batch {batch_id!r:.80} is not in the store")
    return found


def _put_event(cursor: Cursor, before: Batch, after: Batch) -> Batch:
    """Store another name or other people of a batch; of what is equal no event."""
    if after != before:
        cursor.execute(
            "INSERT INTO batch_event (batch_id, name, people, created_at) VALUES (?, ?, ?, ?)",
            [after.batch_id, after.name, list(after.people), utc_now()],
        )
    return after


def _insert_batch(
    cursor: Cursor,
    trace_ids: Sequence[str],
    *,
    drawn: Sequence[float | None] | None = None,
    wanted: Sequence[int] | None = None,
    strata: Sequence[int | None] | None = None,
    **batch: Any,
) -> str:
    n = len(trace_ids)
    _check_traces(cursor, trace_ids)
    (taken,) = cursor.execute(f"SELECT count(*) FROM batch WHERE {NO_COMPANION}").fetchone() or (0,)
    batch_id = f"{batch['purpose']}-{taken + 1:03d}"
    record_audit(cursor, "batch", batch_id=batch_id, n=n, design=batch["design"])
    values = batch | {
        "batch_id": batch_id, "design": json.dumps(batch["design"]), "created_at": utc_now(),
    }  # fmt: skip
    cursor.execute(
        f"INSERT INTO batch ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
        list(values.values()),
    )
    cursor.execute(
        "INSERT INTO batch_item SELECT ?, unnest(?::VARCHAR[]), unnest(range(?)), "
        "unnest(?::DOUBLE[]), unnest(?::INTEGER[]), unnest(?::INTEGER[])",
        [
            batch_id, list(trace_ids), n, list(drawn or [None] * n), list(wanted or [1] * n),
            list(strata or [None] * n),
        ],
    )  # fmt: skip
    return batch_id


def _check_batch(
    purpose: str,
    n: int,
    most: int,
    wanted: Sequence[int],
    drawn: Sequence[float | None],
    certificate: str | None,
) -> None:
    if purpose not in PURPOSES:
        raise InputError(f"purpose must be one of {', '.join(PURPOSES)}, got {purpose!r}")
    if most < 1:
        raise InputError(f"labels wanted must be at least 1, got {most}")
    if n == 0:
        raise InputError("a batch needs at least one trace")
    if len(wanted) != n or len(drawn) != n:
        raise InputError(
            f"labels wanted and inclusion probabilities must be given for each of {n} traces, "
            f"got {len(wanted)} and {len(drawn)}"
        )
    if certificate not in (None, "any", "private"):
        raise InputError(f"certificate must be any or private, got {certificate!r:.40}")
    for count in wanted:
        if not 1 <= count <= most:
            raise InputError(f"labels wanted of a trace must be in [1, {most}], got {count}")
    for probability in drawn:
        if probability is not None and not 0 < probability <= 1:
            raise InputError(f"inclusion probability must be in (0, 1], got {probability}")


def _check_traces(cursor: Cursor, trace_ids: Sequence[str]) -> None:
    known = {row[0] for row in cursor.execute("SELECT trace_id FROM trace").fetchall()}
    seen: set[str] = set()
    for trace_id in trace_ids:
        if trace_id not in known:
            raise InputError(f"trace {trace_id!r} is not in the store")
        if trace_id in seen:
            raise InputError(f"trace {trace_id!r} is named twice; a batch holds a trace once")
        seen.add(trace_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class PracticeRound:
    """A practice batch of one person; finished when every trace is labelled."""

    batch_id: str
    n: int
    labelled: int
    finished_at: datetime | None


def personal_batch(
    cursor: Cursor,
    purpose: str,
    reviewer_id: str,
    trace_ids: Sequence[str],
    design: Mapping[str, Any] | None,
) -> str:
    """Store a batch that is served to one person only, and return its id."""
    if not trace_ids:
        raise InputError("a batch needs at least one trace")
    return _insert_batch(
        cursor, trace_ids, purpose=purpose, labels_wanted=1, design=dict(design or {}),
        reviewer_id=reviewer_id,
    )  # fmt: skip


def _rounds(cursor: Cursor, version: str, reviewer_id: str) -> list[PracticeRound]:
    found = rows(
        cursor,
        "SELECT b.batch_id, "
        "(SELECT count(*) FROM batch_item i WHERE i.batch_id = b.batch_id) AS n, "
        "count(c.trace_id) AS labelled, max(c.created_at) AS finished_at FROM batch b "
        "LEFT JOIN label_current c ON c.batch_id = b.batch_id AND c.reviewer_id = $who "
        "AND c.taxonomy_version = $version AND c.kind = 'label' "
        "WHERE b.purpose = 'practice' AND b.reviewer_id = $who "
        "GROUP BY b.batch_id, b.rowid ORDER BY b.rowid",
        {"who": reviewer_id, "version": version},
    )
    return [
        PracticeRound(
            **row | {"finished_at": row["finished_at"] if row["labelled"] == row["n"] else None}
        )
        for row in found
    ]


class BatchStore(TraceStore):
    """Batches and practice rounds."""

    def _take_in(self, traces: Sequence[Trace]) -> None:
        """Add traces of the reference set that the store lacks; no others."""
        for trace in traces:
            # A reviewer's call may add traces of the reference set only.
            if trace.source != REFERENCE_SOURCE:
                raise InputError(f"trace {trace.trace_id!r:.80} is not in the reference dataset")
        if traces:
            self._unbound().ingest(traces)

    @open_to(REVIEWER, oneself="reviewer_id")
    def start_practice(
        self,
        *,
        reviewer_id: str,
        trace_ids: Sequence[str],
        traces: Sequence[Trace] = (),
        design: Mapping[str, Any] | None = None,
    ) -> PracticeRound:
        """Start a practice round of a person, or return the open one."""
        version = self._rules().version
        self._take_in(traces)
        with self._db.write() as cursor:
            self._db.held(StoreProgress).check_reviewer(cursor, reviewer_id)
            for found in _rounds(cursor, version, reviewer_id):
                if found.finished_at is None:
                    return found
            batch_id = personal_batch(cursor, "practice", reviewer_id, trace_ids, design)
            return next(r for r in _rounds(cursor, version, reviewer_id) if r.batch_id == batch_id)

    @open_to(REVIEWER, oneself="reviewer_id", or_lead=True)
    def practice_rounds(self, reviewer_id: str) -> list[PracticeRound]:
        """Return the practice rounds of a person, oldest first."""
        version = self._rules().version
        with self._db.read() as cursor:
            return _rounds(cursor, version, reviewer_id)

    @open_to(REVIEWER)
    def batches(self) -> list[Batch]:
        """Return all batches, newest first; reviewers see none that is served to others only."""
        with self._db.read() as cursor:
            found, actor = read_batches(cursor), self._actor
        if actor is None or ranks(actor, LEAD):
            return found
        return [b for b in found if b.is_for(actor.reviewer_id)]

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
        """Store a batch; traces are served in the order given. The same `token` is stored once.

        `item_labels` and `item_probabilities` override the values for all traces; `item_strata` is
        the stratum of the design that each trace was drawn from.
        """
        n = len(trace_ids)
        wanted = [labels_wanted] * n if item_labels is None else list(item_labels)
        drawn: list[float | None] = [inclusion_probability] * n
        if item_probabilities is not None:
            drawn = list(item_probabilities)
        _check_batch(purpose, n, labels_wanted, wanted, drawn, certificate)
        if item_strata is not None and len(item_strata) != n:
            raise InputError(f"strata must be given for each of {n} traces, got {len(item_strata)}")
        with self._db.write() as cursor:
            found = cursor.execute("SELECT batch_id FROM batch WHERE token = ?", [token]).fetchone()
            batch_id = found[0] if found else _insert_batch(
                cursor, trace_ids, purpose=purpose, labels_wanted=labels_wanted,
                design=design or {}, token=token, reviewer_id=reviewer_id,
                certificate=certificate, wanted=wanted, drawn=drawn, strata=item_strata,
            )  # fmt: skip
            return next(b for b in read_batches(cursor) if b.batch_id == batch_id)

    @open_to(LEAD)
    def rename_batch(self, batch_id: str, name: str) -> Batch:
        """Give a batch a name for pages; an empty one takes it away. Its id stays."""
        name = " ".join(name.split())
        if len(name) > LONGEST_NAME:
            raise InputError(f"the name of a batch has up to {LONGEST_NAME} characters")
        with self._db.write() as cursor:
            batch = _batch_in(cursor, batch_id)
            taken = {b.name: b.batch_id for b in read_batches(cursor) if b.name}
            if taken.get(name, batch_id) != batch_id:
                raise InputError(f"batch {taken[name]!r} is called {name!r} already")
            return _put_event(cursor, batch, replace(batch, name=name))

    @open_to(LEAD)
    def assign_batch(self, batch_id: str, people: Sequence[str]) -> Batch:
        """Give the traces of a production batch to these people only; to nobody: to everybody.

        What the others have labelled stays, and what they were already given is still taken.
        """
        progress = self._db.held(StoreProgress)
        with self._db.write() as cursor:
            batch = _batch_in(cursor, batch_id)
            if batch.purpose != "production" or batch.reviewer_id is not None:
                raise InputError(f"batch {batch_id!r} is for one use; assign one of production")
            for reviewer_id in people:
                progress.check_reviewer(cursor, reviewer_id)
            progress.forget_plan(batch_id)
            return _put_event(cursor, batch, replace(batch, people=tuple(sorted(set(people)))))

    @open_to(LEAD)
    def batch_items(self, batch_id: str) -> pd.DataFrame:
        """Return the traces of a batch in order; `stratum` is an index into its design, or NA."""
        return self._frame(
            "SELECT trace_id, position, inclusion_probability, labels_wanted, stratum "
            "FROM batch_item WHERE batch_id = ? ORDER BY position",
            [batch_id],
        )
