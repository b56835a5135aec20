from dataclasses import fields
from datetime import UTC, datetime

from calibration.records import ExpectedCall, Trace, TraceForReview, Verdict, Violation
from calibration.store import Queue, Store
from tests.store.builders import Desk, make_trace, query, token

MARKER = "XHIDDENX"
HIDDEN_TEXT = ("source_id", "source", "model", "agent_version", "success_criteria")
HIDDEN_NUMBERS = {
    "cost_usd": 7.654321, "total_tokens": 987654, "units": 3.210123, "confidence": 0.123457,
    "context_tokens": 876543,
}  # fmt: skip
HIDDEN_LISTS = {
    "expected_calls": (ExpectedCall(name=MARKER, arguments={MARKER: 1}),),
    "violations": (Violation(constraint=MARKER, severity="high", step="s1"),),
}
STARTED = datetime(2019, 8, 7, 6, 5, 43, tzinfo=UTC)


def marked_trace() -> Trace:
    texts = {name: f"{MARKER}-{name}" for name in HIDDEN_TEXT}
    return make_trace(
        1, **texts, **HIDDEN_NUMBERS, **HIDDEN_LISTS, perturbation="structure",
        task_id=f"{MARKER}-task", task_key=f"{MARKER}-task-key",
        trial=4711, started_at=STARTED, metadata={MARKER: {"nested": [MARKER]}},
    )  # fmt: skip


def marked_store(store: Store) -> Desk:
    """Fill a store in which everything a reviewer must not see carries the marker."""
    (trace,) = store.ingest([marked_trace()]).imported
    for name in ("Ann", "Bob"):
        store.add_reviewer(name)
    batch = store.add_batch(
        purpose="production", trace_ids=[trace], labels_wanted=2, design={"why": MARKER}
    )
    desk = Desk(store=store, batch=batch.batch_id, traces=(trace,))
    desk.queue("bob")
    desk.label(trace, "bob", rationale=MARKER, client_token=f"{MARKER}-{token()}")
    store.add_verdicts(
        [
            Verdict(judge_id=judge, trace_id=trace, outcome="abandoned", reason=MARKER)
            for judge in (f"{MARKER}-judge", f"source:{MARKER}")
        ]
    )
    store.adjudicate(trace_id=trace, answers={"output": "no"}, adjudicator=MARKER, rationale=MARKER)
    return desk


def leaks(shown: Queue | list[TraceForReview]) -> list[str]:
    """Return which hidden things stand anywhere in what is shown."""
    text = repr(shown)
    hidden = [MARKER, "4711", "abandoned", "2019", "structure", *map(str, HIDDEN_NUMBERS.values())]
    return [sign for sign in hidden if sign in text]


def test_nothing_hidden_reaches_the_queue_or_a_trace_for_review(store: Store) -> None:
    desk = marked_store(store)
    queue, shown = store.queue("ann", desk.batch), store.for_review(desk.traces)
    assert [t.trace_id for t in (*queue.items, *shown)] == [make_trace(1).trace_id] * 2
    assert leaks(queue) == leaks(shown) == []
    ((of_bob,),) = query(store, "SELECT client_token FROM label_event")
    assert store.acknowledged("ann", desk.batch, [of_bob]) == set()
    assert store.last_label("ann", desk.batch) is None
    desk.undo("bob")
    desk.save(desk.traces[0], "bob", answers={"output": MARKER})
    queue = store.queue("ann", desk.batch)
    assert queue.drafts == {}
    assert leaks(queue) == []


def test_the_search_for_leaks_finds_what_is_planted() -> None:
    """A search that finds nothing anywhere would prove nothing."""
    text = repr(marked_trace())
    assert all(f"{MARKER}-{name}" in text for name in HIDDEN_TEXT)
    assert all(str(number) in text for number in (*HIDDEN_NUMBERS.values(), 4711, 2019))


def test_every_field_of_a_trace_is_either_shown_or_planted() -> None:
    shown = {f.name for f in fields(TraceForReview)} - {"agent", "simulated_user"}
    planted = {
        *HIDDEN_TEXT, *HIDDEN_NUMBERS, *HIDDEN_LISTS, "perturbation", "task_id", "task_key",
        "trial", "started_at", "metadata",
    }  # fmt: skip
    assert {f.name for f in fields(Trace)} == shown | planted | {"simulated"}
