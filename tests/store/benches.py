"""A batch that two reviewers have labelled and a lead adjudicates."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from calibration.store import Store
from calibration.store.adjudication import Settlement
from tests.store.builders import ABANDONED, COMPLETE, Desk, make_desk, token


@dataclass(frozen=True)
class Bench:
    """A batch that Ann and Bob have labelled, and Lea who adjudicates it."""

    desk: Desk

    @property
    def store(self) -> Store:
        return self.desk.store

    @property
    def trace(self) -> str:
        return self.desk.traces[0]

    def said(self, *answers: dict[str, str], trace: str | None = None) -> None:
        for reviewer, given in zip(("ann", "bob", "cy"), answers, strict=False):
            self.desk.queue(reviewer, limit=5)
            self.desk.label(trace or self.trace, reviewer, answers=given)

    def serve(self, *traces: str, by: str = "lea") -> str:
        batch = self.store.serve_adjudication(
            adjudicator=by, batch_id=self.desk.batch, trace_ids=traces or [self.trace]
        )
        assert batch is not None
        return batch.batch_id

    def blind(
        self, answers: dict[str, str], trace: str | None = None, *, by: str = "lea"
    ) -> Settlement | None:
        batch = self.serve(trace or self.trace, by=by)
        self.store.queue(by, batch, limit=5)
        self.desk.label(trace or self.trace, by, answers=answers, batch_id=batch)
        return self.store.settlement(by, self.desk.batch)

    def settle(self, answers: dict[str, str], **more: Any) -> Any:
        values: dict[str, Any] = {
            "client_token": token(), "trace_id": self.trace, "adjudicator": "lea",
            "batch_id": self.desk.batch, "cause": "slip",
        }  # fmt: skip
        return self.store.adjudicate(answers=answers, **(values | more))

    def settled(self) -> None:
        """Let Ann and Bob differ and Lea settle it."""
        self.said(COMPLETE, ABANDONED)
        self.blind(COMPLETE)
        self.settle(COMPLETE)

    def frame(self) -> list[dict[str, Any]]:
        rows = self.store.adjudication_frame(self.desk.batch).to_dict("records")
        return [{str(k): v for k, v in row.items()} for row in rows]

    def reopened(self) -> list[bool]:
        return [row["reopened"] for row in self.frame()]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    desk = make_desk(tmp_path / "d.duckdb", labels_wanted=4, reviewers=("Ann", "Bob", "Cy"))
    for name in ("Lea", "Leo"):
        desk.store.add_reviewer(name, role="lead")
    yield Bench(desk)
    desk.store.close()
