"""Small builders of what the store tests need; every store is a real file."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from calibration.records import Evidence, LabelDraft, Step, Trace, trace_identity
from calibration.store import Receipt, Store
from calibration.store.traces import parts_directory
from tests.stores import hashing_quickly

ABANDONED = {"output": "no"}
COMPLETE = {"output": "yes", "fabrication": "no", "all_subgoals": "yes"}

PARTIAL_PLUS = {
    "output": "yes", "fabrication": "no", "all_subgoals": "no", "material_error": "no",
}  # fmt: skip

HALLUCINATED = {"output": "yes", "fabrication": "yes"}
_numbers = count(1)


def token() -> str:
    """Return a client token that no other test uses."""
    return f"token-{next(_numbers)}"


def make_trace(number: int, **changes: Any) -> Trace:
    """Return a trace whose text names its number."""
    values: dict[str, Any] = {
        "trace_id": trace_identity("test", str(number), 0),
        "source": "test",
        "source_id": str(number),
        "workflow": "research",
        "task_id": str(number),
        "task_key": f"test/{number}",
        "trial": 0,
        "prompt": f"Task {number}",
        "steps": (
            Step(step_id="s1", role="assistant", content=f"I look up {number}."),
            Step(step_id="s2", role="tool", tool="find", arguments='{"q": 1}', result="found it"),
        ),
        "response": f"The answer is {number}.",
        "model": "model-x",
        "status": "completed",
        "latency_s": 2.5,
    }
    return Trace(**(values | changes))


def make_traces(n: int) -> list[Trace]:
    return [make_trace(k) for k in range(n)]


@dataclass(frozen=True)
class Desk:
    """A store with one batch, and short ways to label in it."""

    store: Store
    batch: str
    traces: tuple[str, ...]

    def queue(self, reviewer: str = "ann", limit: int = 3) -> list[str]:
        return [t.trace_id for t in self.store.queue(reviewer, self.batch, limit=limit).items]

    def state(self, reviewer: str = "ann") -> str:
        return self.store.queue(reviewer, self.batch).state

    def label(self, trace_id: str, reviewer: str = "ann", **parts: Any) -> Receipt:
        values = {"answers": COMPLETE, "client_token": token()} | parts
        return self.store.record_label(self.draft(trace_id, reviewer, **values))

    def draft(self, trace_id: str, reviewer: str = "ann", **parts: Any) -> LabelDraft:
        values = {"client_token": "draft", "batch_id": self.batch} | parts
        return LabelDraft(trace_id=trace_id, reviewer_id=reviewer, **values)

    def save(self, trace_id: str, reviewer: str = "ann", **parts: Any) -> None:
        self.store.save_draft(self.draft(trace_id, reviewer, **parts))

    def drafts(self, reviewer: str = "ann") -> list[LabelDraft]:
        """Return the drafts of the queue, all of one token: a draft has none before its label."""
        found = self.store.queue(reviewer, self.batch).drafts
        assert all(trace_id == draft.trace_id for trace_id, draft in found.items())
        return [replace(draft, client_token="draft") for draft in found.values()]

    def hallucinated(self, trace_id: str, *evidence: tuple[str, str]) -> Receipt:
        quotes = tuple(Evidence(step_id=step, quote=quote) for step, quote in evidence)
        return self.label(trace_id, answers=HALLUCINATED, evidence=quotes)

    def skip(self, trace_id: str, reviewer: str = "ann", **changes: str) -> None:
        values = {"client_token": token(), "reason": "unclear"} | changes
        self.store.record_skip(
            trace_id=trace_id, reviewer_id=reviewer, batch_id=self.batch, **values
        )

    def undo(self, reviewer: str = "ann", *, client_token: str | None = None) -> str | None:
        return self.store.record_undo(
            client_token=client_token or token(), reviewer_id=reviewer, batch_id=self.batch
        )

    def reopen(self, trace_id: str, reviewer: str = "ann", **changes: str) -> None:
        values = {"client_token": token(), "reason": "I misread the policy"} | changes
        self.store.reopen(trace_id=trace_id, reviewer_id=reviewer, batch_id=self.batch, **values)

    def flag(self, trace_id: str, reviewer: str = "ann", **changes: Any) -> None:
        values: dict[str, Any] = {"client_token": token(), "flagged": True} | changes
        self.store.record_flag(
            trace_id=trace_id, reviewer_id=reviewer, batch_id=self.batch, **values
        )

    def labelled(self, reviewer: str | None = None) -> dict[tuple[str, str], str]:
        """Return the current decisions: the class of a label, ``skip`` for a skip."""
        rows = query(
            self.store,
            "SELECT trace_id, reviewer_id, kind, outcome FROM label_current "
            "WHERE batch_id = ? AND taxonomy_version = ?",
            [self.batch, self.store.taxonomy().version],
        )
        return {
            (trace, by): outcome if kind == "label" else kind
            for trace, by, kind, outcome in rows
            if reviewer in (None, by)
        }

    def events(self) -> list[tuple[Any, ...]]:
        """Return every event ever stored, in order."""
        return query(self.store, "SELECT kind, trace_id, reviewer_id FROM label_event ORDER BY seq")


@cache
def _empty_file() -> bytes:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "empty.duckdb"
        Store.open(path, create=True).close()
        return path.read_bytes()


def empty_store(path: Path) -> Store:
    """Open a new store; copying an empty one takes less time than its migrations."""
    path.write_bytes(_empty_file())
    return hashing_quickly(Store.open(path))


@cache
def _first_desk(
    n: int, labels_wanted: int, reviewers: tuple[str, ...]
) -> tuple[TemporaryDirectory[str], str, tuple[str, ...]]:
    """Return the folder of a closed store that others are copies of, its batch and traces."""
    folder = TemporaryDirectory()
    with empty_store(Path(folder.name) / "desk.duckdb") as store:
        traces = store.ingest(make_traces(n)).imported
        for name in reviewers:
            store.add_reviewer(name)
        batch = store.add_batch(purpose="production", trace_ids=traces, labels_wanted=labels_wanted)
    return folder, batch.batch_id, traces


def make_desk(
    path: Path, n: int = 5, *, labels_wanted: int = 1, reviewers: Sequence[str] = ("Ann", "Bob")
) -> Desk:
    """Create a store at `path` with `n` traces in one batch."""
    folder, batch, traces = _first_desk(n, labels_wanted, tuple(reviewers))
    first = Path(folder.name) / "desk.duckdb"
    shutil.copy(first, path)
    shutil.copytree(parts_directory(first), parts_directory(path))
    return Desk(store=Store.open(path), batch=batch, traces=traces)


def query(store: Store, sql: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
    """Look into the tables, for what the store does not show."""
    with store._db.read() as cursor:
        return cursor.execute(sql, values or []).fetchall()


class Clock:
    """A clock that tests turn by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, 0)  # noqa: DTZ001  the store keeps UTC without zone

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)
