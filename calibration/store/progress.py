"""What the queue keeps in memory: how far each batch is, and the traces shown last.

The queue asks for this on every label, and a query over all events takes longer the more of
them there are. Events are only ever appended and their sequence numbers are drawn under the
write lock, so what was added up stays right and only the events after it have to be read.
"""

import threading
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Any

import duckdb

from calibration.errors import InputError


@dataclass(slots=True)
class BatchProgress:
    """Decisions on the traces of one batch under one taxonomy version.

    `decided` holds label or skip by reviewer and trace, `undone` the sequence number of the
    undo that made a trace open again, `labels` how many reviewers have labelled a trace.
    """

    decided: defaultdict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    undone: defaultdict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    labels: Counter[str] = field(default_factory=Counter)

    def add(self, trace_id: str, reviewer_id: str, kind: str, seq: int) -> None:
        """Take in the next event."""
        mine = self.decided[reviewer_id]
        before = mine.pop(trace_id, None)
        self.labels[trace_id] += (kind == "label") - (before == "label")
        if kind == "undo":
            self.undone[reviewer_id][trace_id] = seq
        else:
            mine[trace_id] = kind


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
        self._plans: dict[str, dict[str, int]] = {}
        self._reviewers: set[str] = set()

    def plan(self, cursor: duckdb.DuckDBPyConnection, batch_id: str) -> dict[str, int]:
        """Return the labels wanted of each trace of a batch, in its order; it never changes."""
        if batch_id not in self._plans:
            items = cursor.execute(
                "SELECT trace_id, labels_wanted FROM batch_item WHERE batch_id = ? "
                "ORDER BY position",
                [batch_id],
            ).fetchall()
            if not items:
                raise InputError(f"batch {batch_id!r} is not in the store")
            self._plans[batch_id] = dict(items)
        return self._plans[batch_id]

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
        events = cursor.execute(
            "SELECT batch_id, taxonomy_version, trace_id, reviewer_id, kind, seq "
            "FROM label_event WHERE seq > ? ORDER BY seq",
            [self._seen],
        ).fetchall()
        for batch, version, trace_id, reviewer_id, kind, seq in events:
            self._by_batch[batch, version].add(trace_id, reviewer_id, kind, seq)
            self._seen = seq
        return self._by_batch[batch_id, taxonomy_version]
