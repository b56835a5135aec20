"""How long the two calls behind every label take in a big batch; printed, never asserted."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from calibration.records import LabelDraft
from calibration.store import Store
from tests.store.builders import ABANDONED, Desk, empty_store, make_traces, token

ITEMS, EVENTS, CALLS = 5_000, 10_000, 40


def fill(store: Store) -> Desk:
    """Store 5,000 items, of which the first 3,333 have three labels each."""
    traces = store.ingest(make_traces(ITEMS)).imported
    people = [store.add_reviewer(f"Reviewer {k}").reviewer_id for k in range(4)]
    batch = store.add_batch(purpose="production", trace_ids=traces, labels_wanted=4).batch_id
    drafts = [
        LabelDraft(
            client_token=token(),
            trace_id=traces[k // 3],
            reviewer_id=people[k % 3],
            batch_id=batch,
            answers=ABANDONED,
        )
        for k in range(EVENTS)
    ]
    assert len(store.import_labels(batch, drafts).imported) == EVENTS
    return Desk(store=store, batch=batch, traces=traces)


def timed(times: list[float], work: Callable[..., Any], *args: Any, **more: Any) -> Any:
    start = perf_counter()
    result = work(*args, **more)
    times.append(1000 * (perf_counter() - start))
    return result


@pytest.mark.slow
def test_queue_and_label_in_a_big_batch(tmp_path: Path) -> None:
    with empty_store(tmp_path / "store.duckdb") as store:
        desk = fill(store)
        for reviewer in ("reviewer-0", "reviewer-3"):
            asked: list[float] = []
            labelled: list[float] = []
            for _ in range(CALLS):
                (first, *_) = timed(asked, desk.queue, reviewer)
                timed(labelled, desk.label, first, reviewer, answers=ABANDONED)
            for what, times in (("queue", asked), ("record_label", labelled)):
                p50, p95 = np.percentile(times, [50, 95])
                print(f"{reviewer} {what}: p50 {p50:.1f} ms, p95 {p95:.1f} ms")  # noqa: T201
        assert len(desk.events()) == EVENTS + 2 * CALLS
