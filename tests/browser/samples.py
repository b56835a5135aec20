"""Small synthetic traces, and a store filled with them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibration.records import Attachment, Step, SubGoal, Trace
from calibration.store import Store

SENTENCE = "The customer asked for the order status and the agent looked it up in the system. "


def sample_trace(number: int, *, steps: int = 6, text: str = "") -> Trace:
    """Return a trace whose every part names its number."""
    transcript = [
        Step(
            step_id="s1", role="user", content=f"Where is my order W{1000 + number}? {text}", at=0.0
        )
    ]
    for i in range(2, steps + 1):
        if i % 2 == 0:
            transcript.append(
                Step(
                    step_id=f"s{i}",
                    role="tool",
                    tool="get_order_details",
                    error=i == 4,
                    at=1.7 * i,
                    arguments=f'{{"order_id": "W{1000 + number}", "part": {i}}}',
                    result=f'{{"status": "shipped", "note": "{text}"}}' + "\n" + SENTENCE * (4 * i),
                )
            )
        else:
            transcript.append(
                Step(step_id=f"s{i}", role="assistant", content=SENTENCE * 3 + text, at=1.7 * i)
            )
    return Trace(
        trace_id=f"t-{number:03d}", source="synthetic", source_id=f"run-{number}",
        workflow="support_triage", task_id=f"task-{number}", task_key=f"synthetic/{number}",
        trial=0, status="completed", model="hidden-model", latency_s=12.5 + number,
        prompt=f"Help customer {number} with order W{1000 + number}. {SENTENCE * 2}{text}",
        inputs=(Attachment(name="policy.md", text=("# Refunds\n" + SENTENCE * 12) + text),),
        sub_goals=(
            SubGoal(id="1", text=f"Find order W{1000 + number}{text}"),
            SubGoal(id="2", text="Tell the customer the delivery date"),
            SubGoal(id="3", text="Offer help with anything else", matters=False),
        ),
        steps=tuple(transcript),
        response=f"Your order W{1000 + number} has shipped and arrives on Tuesday. {text}",
    )  # fmt: skip


def even(trace: Trace, characters: int = 1_500) -> Trace:
    """Return a trace whose tool results are all of one length: only the number of steps counts."""
    steps = [
        replace(step, result=(step.result + SENTENCE * 20)[:characters]) if step.result else step
        for step in trace.steps
    ]
    return replace(trace, steps=tuple(steps))


def build_store(
    path: Path, n_traces: int, *, steps: int = 6, text: str = "", evenly: bool = False
) -> str:
    """Create a store with one batch of `n_traces` and return the id of the batch."""
    traces = [sample_trace(i, steps=steps, text=text) for i in range(n_traces)]
    return store_of(path, [even(trace) for trace in traces] if evenly else traces)


def store_of(path: Path, traces: Sequence[Trace], people: Sequence[str] = (), **batch: Any) -> str:
    """Create a store with one batch of these traces and return the id of the batch."""
    n = len(traces)
    drawn = {"n": n, "population": n, "last_seq": n}
    every: dict[str, Any] = {"purpose": "production", "inclusion_probability": 1.0, "design": drawn}
    with Store.open(path, create=True) as store:
        store.ingest(traces)
        for name in people:
            store.add_reviewer(name)
        return store.add_batch(trace_ids=[t.trace_id for t in traces], **(every | batch)).batch_id
