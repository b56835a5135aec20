"""Progress of each batch and the last shown traces, kept in memory.

The queue asks for this on every label, and a query over all events takes longer the more of
them there are. Events are only ever appended and their sequence numbers are drawn under the
write lock, so what was added up stays right and only the events after it have to be read.
"""

import json
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from calibration.errors import InputError
from calibration.reviewers.quality_checks import Pool

PACE_LABELS, PACE_NEEDS = 20, 5

MAX_TAGS_OFFERED = 50


class Decided(NamedTuple):
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
    active seconds of the last labels by sequence number, those taken back among them; `kinds`
    how many decisions are labels and skips. `left` are the traces that the batch still wants
    this reviewer to label, in its order; None: nobody asked, or they have to be found anew.
    """

    decided: dict[str, Decided] = field(default_factory=dict)
    undone: dict[str, int] = field(default_factory=dict)
    tags: dict[str, tuple[int, tuple[int, int]]] = field(default_factory=dict)
    seconds: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=PACE_LABELS))
    kinds: Counter[str] = field(default_factory=Counter)
    left: dict[str, None] | None = None

    def latest(self) -> tuple[str, Decided] | None:
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
    def kinds(self) -> Counter[str]:
        """How many of the decisions that stand are labels, and how many skips."""
        return self.own.kinds + self.apart.kinds

    def latest(self) -> tuple[str, Decided, bool] | None:
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

    `labels` counts how many reviewers have labelled a trace, `wanted` says how many should.
    """

    own: defaultdict[str, OwnProgress] = field(default_factory=lambda: defaultdict(OwnProgress))
    labels: Counter[str] = field(default_factory=Counter)
    wanted: Mapping[str, int] = field(default_factory=dict)

    def left(self, wanted: Mapping[str, int], reviewer_id: str) -> Mapping[str, None]:
        """Return the traces that somebody may still label for the batch, in its order."""
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
        """Take in the next event."""
        own, trace_id, kind = self.own[event["reviewer_id"]], event["trace_id"], event["kind"]
        before = own.decided.pop(trace_id, None)
        if before is not None:
            own.kinds[before.kind] -= 1
            self.labels[trace_id] -= before.kind == "label"
            # What is open again has a place in the order: rare enough to find them all anew.
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
        """Leave a trace no more to those who have decided it, or to anybody if it has enough."""
        full = self.labels[trace_id] >= self.wanted.get(trace_id, 0)
        for other in self.own.values() if full else (own,):
            if other.left is not None:
                other.left.pop(trace_id, None)


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What never changes of a batch, and labels wanted and workflow of each of its traces.

    `places` has their order; `served_to` and `certificate` are as in `Batch`.
    """

    purpose: str
    served_to: str | None
    certificate: str | None
    wanted: dict[str, int]
    workflows: dict[str, str]
    places: dict[str, int]


class StoreProgress:
    """The progress of every batch of a store; used under the write lock only."""

    def __init__(self) -> None:
        self._seen = 0
        self._by_batch: defaultdict[tuple[str, str], BatchProgress] = defaultdict(BatchProgress)
        self._plans: dict[str, BatchPlan] = {}
        # What could be put in, by batch, reviewer and taxonomy version, and when it was counted.
        self.pools: dict[tuple[str, str, str], tuple[datetime, Pool]] = {}
        # What the slots of inserts are drawn from, once it is stored, and what was drawn.
        self.secret: str | None = None
        self.drawn: dict[tuple[str, str], NDArray[np.float64]] = {}
        # The workflow of traces that were put in.
        self.workflows: dict[str, str] = {}
        # What a reviewer was ever given of a batch, and until when that was looked up.
        self.given: dict[tuple[str, str], tuple[datetime, set[str]]] = {}
        # Until when a reviewer has a certificate: by taxonomy version, and whether private.
        self.certified: dict[tuple[str, str, bool], datetime] = {}
        self._reviewers: set[str] = set()

    def plan(self, cursor: duckdb.DuckDBPyConnection, batch_id: str) -> BatchPlan:
        """Return the plan of a batch, read once."""
        if batch_id not in self._plans:
            items = cursor.execute(
                "SELECT trace_id, i.labels_wanted, t.workflow, purpose, reviewer_id, certificate "
                "FROM batch b JOIN batch_item i USING (batch_id) "
                "LEFT JOIN trace t USING (trace_id) WHERE batch_id = ? ORDER BY position",
                [batch_id],
            ).fetchall()
            if not items:
                raise InputError(f"batch {batch_id!r} is not in the store")
            purpose, served_to, certificate = items[0][3:]
            self._plans[batch_id] = BatchPlan(
                purpose=purpose,
                served_to=served_to,
                certificate=certificate,
                wanted={item[0]: item[1] for item in items},
                workflows={item[0]: item[2] for item in items},
                places={item[0]: place for place, item in enumerate(items)},
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

    def workflows_of(
        self, cursor: duckdb.DuckDBPyConnection, trace_ids: Sequence[str]
    ) -> Mapping[str, str]:
        """Return the workflows of these traces, read once: one with a label is never replaced."""
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
        """Read the events since the last call and return the progress of a batch.

        `at` returns that of another one as of then.

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
        return self.at(batch_id, taxonomy_version)

    def at(self, batch_id: str, taxonomy_version: str) -> BatchProgress:
        """Return the progress of a batch as of the last call of `of`."""
        return self._by_batch[batch_id, taxonomy_version]


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
