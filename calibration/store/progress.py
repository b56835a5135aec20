"""What the queue keeps in memory: how far each batch is, and the traces shown last.

The queue asks for this on every label, and a query over all events takes longer the more of
them there are. Events are only ever appended and their sequence numbers are drawn under the
write lock, so what was added up stays right and only the events after it have to be read.
"""

import json
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple

import duckdb

from calibration.errors import InputError
from calibration.reviewing.inserts import Pool

PACE_LABELS, PACE_NEEDS = 20, 5
MAX_TAGS_OFFERED = 50


class Decision(NamedTuple):
    """A label or skip that stands; a skip has no class."""

    seq: int
    event_id: str
    kind: str
    outcome: str | None


@dataclass(slots=True)
class OwnProgress:
    """One reviewer's work in one batch under one taxonomy version.

    `decided` is in the order of the decisions; `undone` holds the sequence number of the undo
    that made a trace open again; `tags` how often a tag was given, and when last; `seconds` the
    active seconds of the last labels by sequence number, those taken back among them.
    """

    decided: dict[str, Decision] = field(default_factory=dict)
    undone: dict[str, int] = field(default_factory=dict)
    tags: dict[str, tuple[int, tuple[int, int]]] = field(default_factory=dict)
    seconds: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=PACE_LABELS))

    def latest(self) -> tuple[str, Decision] | None:
        """Return what one undo would take back."""
        return next(reversed(self.decided.items()), None)


@dataclass(frozen=True, slots=True)
class DeskWork:
    """What one reviewer did at the desk of a batch: on its own traces, and on what was put in.

    Everything that the reviewer sees of it is of both: what was put in must not stand out.
    """

    own: OwnProgress
    apart: OwnProgress

    @property
    def decisions(self) -> list[Decision]:
        """Every decision that stands."""
        return [*self.own.decided.values(), *self.apart.decided.values()]

    def latest(self) -> tuple[str, Decision, bool] | None:
        """Return the last decision with its trace, and whether that was put in."""
        found = [(w.latest(), w is self.apart) for w in (self.own, self.apart)]
        both = [(*last, apart) for last, apart in found if last is not None]
        return max(both, key=lambda last: last[1].seq, default=None)

    def own_tags(self) -> list[str]:
        """Return the tags of this reviewer, the most used first, then the one used last.

        Only their own: a tag of somebody else tells what they thought of a trace.
        """
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
    """Decisions on the traces of one batch under one taxonomy version.

    `labels` counts how many reviewers have labelled a trace.
    """

    own: defaultdict[str, OwnProgress] = field(default_factory=lambda: defaultdict(OwnProgress))
    labels: Counter[str] = field(default_factory=Counter)

    def add(self, event: dict[str, Any]) -> None:
        """Take in the next event."""
        own, trace_id, kind = self.own[event["reviewer_id"]], event["trace_id"], event["kind"]
        before = own.decided.pop(trace_id, None)
        self.labels[trace_id] += (kind == "label") - (before is not None and before.kind == "label")
        if kind == "undo":
            own.undone[trace_id] = event["seq"]
            return
        seq = event["seq"]
        own.decided[trace_id] = Decision(seq, str(event["event_id"]), kind, event["outcome"])
        if event["seconds_active"] is not None:
            own.seconds.append((seq, event["seconds_active"]))
        for place, tag in enumerate(json.loads(event["tags"] or "[]")):
            count, _ = own.tags.get(tag, (0, None))
            own.tags[tag] = count + 1, (seq, -place)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a batch is for, and labels wanted and workflow of each of its traces, in its order."""

    purpose: str
    wanted: dict[str, int]
    workflows: dict[str, str]


class Shown:
    """The traces that were shown last, at most so many and of so much text; any thread may ask.

    Twenty reviewers with three traces each ask for sixty in turn: fewer than that kept, and
    every answer would read them all from the disk again.
    """

    def __init__(self, size: int = 256, characters: int = 64_000_000) -> None:
        self._size, self._characters = size, characters
        self._lengths: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()

    def get(self, key: tuple[str, str]) -> dict[str, Any] | None:
        """Return a trace that is kept; others must not change it."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: tuple[str, str], body: dict[str, Any], characters: int) -> None:
        """Keep a trace instead of those asked for longest ago."""
        with self._lock:
            self._kept[key], self._lengths[key] = body, characters
            while len(self._kept) > self._size or (
                len(self._kept) > 1 and sum(self._lengths.values()) > self._characters
            ):
                oldest, _ = self._kept.popitem(last=False)
                del self._lengths[oldest]


class Progress:
    """The progress of every batch of a store; used under the write lock only."""

    def __init__(self) -> None:
        self._seen = 0
        self._by_batch: defaultdict[tuple[str, str], BatchProgress] = defaultdict(BatchProgress)
        self._plans: dict[str, Plan] = {}
        # What could be put in, by batch, reviewer and taxonomy version, and when it was counted.
        self.pools: dict[tuple[str, str, str], tuple[datetime, Pool]] = {}
        # What the slots of inserts are drawn from, once it is stored.
        self.secret: str | None = None
        self._reviewers: set[str] = set()

    def plan(self, cursor: duckdb.DuckDBPyConnection, batch_id: str) -> Plan:
        """Return the plan of a batch, read once."""
        if batch_id not in self._plans:
            items = cursor.execute(
                "SELECT purpose, trace_id, i.labels_wanted, t.workflow FROM batch b "
                "JOIN batch_item i USING (batch_id) LEFT JOIN trace t USING (trace_id) "
                "WHERE batch_id = ? ORDER BY position",
                [batch_id],
            ).fetchall()
            if not items:
                raise InputError(f"batch {batch_id!r} is not in the store")
            self._plans[batch_id] = Plan(
                purpose=items[0][0],
                wanted={trace_id: labels for _, trace_id, labels, _ in items},
                workflows={trace_id: workflow for _, trace_id, _, workflow in items},
            )
        return self._plans[batch_id]

    def forget_plan(self, batch_id: str) -> None:
        """Read the plan anew when it is next asked for: an adjudicator's batch changes."""
        self._plans.pop(batch_id, None)

    def check_reviewer(self, cursor: duckdb.DuckDBPyConnection, reviewer_id: str) -> None:
        """Require a reviewer of the store; nobody is ever removed."""
        if reviewer_id not in self._reviewers:
            found = cursor.execute("SELECT reviewer_id FROM reviewer").fetchall()
            self._reviewers = {row[0] for row in found}
        if reviewer_id not in self._reviewers:
            raise InputError(f"reviewer {reviewer_id!r} is not in the store")

    def of(
        self, cursor: duckdb.DuckDBPyConnection, batch_id: str, taxonomy_version: str
    ) -> BatchProgress:
        """Read the events since the last call and return the progress of a batch.

        Must be called before the transaction of `cursor` appends an event: a rollback could
        not be followed.
        """
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
        return self._by_batch[batch_id, taxonomy_version]
