"""Small stores in which every class, verdict and cost is set by the test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from calibration.analyses.agreement.recommendations import Recommendation
from calibration.analyses.evidence.from_store import load_judged, with_context
from calibration.analyses.judge.calibration import CalibrationOptions
from calibration.analyses.judge.diagnostics import JudgeDiagnostics, diagnose
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch, draw_ids
from calibration.judge_calibration.samples import Design
from calibration.records import LabelDraft, Step, Trace, Verdict, Violation, Workflow
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


ARMS = (None, None, None, None, "fault", "structure", "prompt")
LEAK = Violation(constraint="no PII exposure", severity="high")


def repeated_world(path: Path, *, tasks: int = 12, agents: Sequence[str] = ("model-x",)) -> World:
    """Create a store of tasks that were run four times, and once with each perturbation.

    Ann and Ben label them all and differ on the first run of the second task; a later task succeeds
    less often. A last run has only a verdict.
    """
    changes: dict[str, dict[str, Any]] = {}
    good: dict[str, str] = {}
    for task in range(tasks):
        for place, arm in enumerate(ARMS):
            trace_id = f"t{task:02d}-{place}"
            success = place not in (0, 4, 5, 1, 2)[: task % 6]
            good[trace_id] = "complete" if success else "abandoned"
            tools = ("find", "book") if success else ("find",) * (1 + place)
            changes[trace_id] = {
                "task_key": f"test/task {task:02d}", "model": agents[task % len(agents)],
                "confidence": 0.9 - place % 3 / 5 if success else 0.3 + task / 30,
                "perturbation": arm, "cost_usd": 0.1 * (1 + place), "trial": place,
                "violations": (LEAK,) if not success and task % 5 == 3 else (),
                "steps": tuple(
                    Step(step_id=f"s{k}", role="assistant", tool=tool, arguments="{}", result="ok")
                    for k, tool in enumerate(tools)
                ),
            }  # fmt: skip
    changes["judged"] = {"task_key": "test/task 00", "model": agents[0]}
    found = make_world(path, order=list(changes), n=len(changes), n_drawn=1, traces=changes)
    whole = found.store.add_batch(purpose="production", trace_ids=list(changes), design={})
    found = replace(found, batch_id=whole.batch_id, drawn=tuple(changes))
    found.label("Ann", good)
    found.label("Ben", good | {"t01-0": "partial_plus"})
    found.judge({"judged": "complete"})
    return found


def diagnose_judge(
    store: Store,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    judge_family: str | None = None,
) -> JudgeDiagnostics:
    """Compare a judge of a store with the humans, as the Judge page does."""
    data = with_context(store, load_judged(store, batch_id, judge_id, sample=False))
    return diagnose(data, CalibrationOptions(design=design, judge_family=judge_family))
