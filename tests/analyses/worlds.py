"""Small stores in which every class, verdict and cost is set by the test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from calibration.analyses.agreement.recommendations import Recommendation
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch, draw_ids
from calibration.records import LabelDraft, Trace, Verdict, Workflow
from calibration.store import Store

_tokens = count(1)
T = TypeVar("T")


def known(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


def kinds(steps: Sequence[Recommendation]) -> list[str]:
    return [step.kind for step in steps]


def of_kind(steps: Sequence[Recommendation], kind: str) -> Recommendation:
    (step,) = [step for step in steps if step.kind == kind]
    return step


def ids(n: int) -> list[str]:
    return [f"r{k:03d}" for k in range(n)]


def drawn_ids(n: int, n_drawn: int, seed: int = 1) -> list[str]:
    """Return what a batch of `n_drawn` of `n` traces will hold, in its order."""
    return draw_ids(np.array(ids(n)), n=n_drawn, seed=seed)


def make_trace(trace_id: str, **changes: Any) -> Trace:
    values: dict[str, Any] = {
        "trace_id": trace_id, "source": "test", "source_id": trace_id, "workflow": "flights",
        "task_id": trace_id, "task_key": f"test/{trace_id}", "trial": 0,
        "prompt": f"Book {trace_id}", "response": f"Booked {trace_id}",
    }  # fmt: skip
    return Trace(**(values | changes))


@dataclass(frozen=True)
class World:
    """A store with one production batch."""

    store: Store
    batch_id: str
    drawn: tuple[str, ...]

    def label(self, reviewer: str, classes: Mapping[str, str], *, simulated: bool = False) -> None:
        person = self.store.add_reviewer(reviewer, simulated=simulated)
        taxonomy = self.store.taxonomy()
        drafts = [
            LabelDraft(
                client_token=f"token-{next(_tokens)}", trace_id=trace_id, batch_id=self.batch_id,
                reviewer_id=person.reviewer_id, answers=taxonomy.answers_for(outcome),
            )
            for trace_id, outcome in classes.items()
        ]  # fmt: skip
        done = self.store.import_labels(self.batch_id, drafts)
        assert len(done.imported) == len(drafts)

    def skip(self, reviewer: str, trace_id: str) -> None:
        person = self.store.add_reviewer(reviewer)
        self.store.queue(person.reviewer_id, self.batch_id, limit=len(self.drawn))
        self.store.record_skip(
            client_token=f"token-{next(_tokens)}", trace_id=trace_id, batch_id=self.batch_id,
            reviewer_id=person.reviewer_id, reason="cannot tell",
        )  # fmt: skip

    def settle(self, trace_id: str, outcome: str, *, simulated: bool = False) -> None:
        self.store.adjudicate(
            trace_id=trace_id,
            answers=self.store.taxonomy().answers_for(outcome),
            adjudicator="lead",
            simulated=simulated,
        )

    def judge(
        self, verdicts: Mapping[str, str], name: str = "judge-1", *, simulated: bool = False
    ) -> None:
        said: dict[str, Any] = {"judge_id": name, "simulated": simulated}
        self.store.add_verdicts(
            [Verdict(trace_id=t, outcome=c, **said) for t, c in verdicts.items()]
        )


def make_world(
    path: Path,
    *,
    n: int = 12,
    n_drawn: int = 6,
    seed: int = 1,
    ceiling: float | None = None,
    traces: Mapping[str, Mapping[str, Any]] | None = None,
    order: Sequence[str] | None = None,
) -> World:
    """Create a store of `n` traces and draw a batch; `traces` changes fields by trace id."""
    store = Store.open(path, create=True)
    changes = traces or {}
    store.ingest([make_trace(t, **changes.get(t, {})) for t in order or ids(n)])
    if ceiling is not None:
        store.set_workflow(Workflow(name="flights", ceiling_usd=ceiling, unit="seat"))
    batch = draw_batch(store, SamplingDesign(seed=seed), n=n_drawn)
    drawn = tuple(store.batch_items(batch.batch_id)["trace_id"])
    return World(store=store, batch_id=batch.batch_id, drawn=drawn)
