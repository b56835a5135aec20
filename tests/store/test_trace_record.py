from collections.abc import Iterator
from pathlib import Path

import pytest

from calibration.errors import NotAllowedError
from calibration.records import Evidence, Step, Verdict, Workflow
from calibration.store import Store
from tests.store.builders import ABANDONED, COMPLETE, Desk, empty_store, make_trace, token


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Return a batch that two people are to label; Lea is a lead."""
    with empty_store(tmp_path / "s.duckdb") as store:
        traces = [make_trace(k) for k in range(4)]
        store.ingest(traces)
        for name, role in (("Ann", "reviewer"), ("Bob", "reviewer"), ("Lea", "lead")):
            store.add_reviewer(name, role=role)
        ids = tuple(trace.trace_id for trace in traces)
        batch = store.add_batch(purpose="production", trace_ids=ids[:3], labels_wanted=2)
        desk = Desk(store=store, batch=batch.batch_id, traces=ids)
        for who in ("ann", "bob"):
            desk.queue(who)
        yield desk


def blind(desk: Desk, who: str = "lea") -> list[int]:
    """Return the numbers of the traces that somebody can still decide blind."""
    found = desk.store.still_blind(who, desk.traces)
    return [k for k, trace_id in enumerate(desk.traces) if trace_id in found]


def test_open_traces_are_blind_until_they_have_their_labels(desk: Desk) -> None:
    assert blind(desk) == [0, 1, 2]  # the fourth is in no batch
    desk.label(desk.traces[0], "ann")
    assert blind(desk) == [0, 1, 2]
    desk.label(desk.traces[0], "bob")
    assert blind(desk) == [1, 2]
    assert blind(desk, "ann") == [1, 2]


def test_a_disagreement_is_blind_until_it_is_adjudicated(desk: Desk) -> None:
    trace = desk.traces[0]
    desk.label(trace, "ann")
    desk.label(trace, "bob", answers=ABANDONED)
    assert blind(desk) == [0, 1, 2]
    desk.store.adjudicate(trace_id=trace, answers=COMPLETE, adjudicator="lea")
    assert blind(desk) == [1, 2]
    desk.store.withdraw_consensus(client_token=token(), trace_id=trace, adjudicator="lea")
    assert blind(desk) == [0, 1, 2]


def test_a_flag_waits_for_an_adjudicator(desk: Desk) -> None:
    trace = desk.traces[0]
    for who in ("ann", "bob"):
        desk.label(trace, who)
    assert blind(desk) == [1, 2]
    desk.flag(trace, reason="odd")
    assert blind(desk) == [0, 1, 2]


def test_what_an_adjudicator_was_given_is_blind_though_reviewers_agree(desk: Desk) -> None:
    trace, store = desk.traces[0], desk.store
    for who in ("ann", "bob"):
        desk.label(trace, who)
    served = store.serve_adjudication(adjudicator="lea", batch_id=desk.batch, trace_ids=[trace])
    assert served is not None
    assert blind(desk) == [0, 1, 2]
    assert blind(desk, "bob") == [1, 2]
    store.queue("lea", served.batch_id)
    desk.label(trace, "lea", batch_id=served.batch_id)
    assert blind(desk) == [1, 2]


@pytest.mark.parametrize("what", ["labels", "verdicts"])
def test_what_was_shown_is_blind_no_more(desk: Desk, what: str) -> None:
    desk.store.record_exposure("lea", [desk.traces[1]], what)
    assert blind(desk) == [0, 2]


def test_a_batch_of_somebody_else_is_not_open(desk: Desk) -> None:
    store, last = desk.store, desk.traces[3]
    store.add_batch(purpose="production", trace_ids=[last], reviewer_id="bob", labels_wanted=1)
    assert blind(desk) == [0, 1, 2]
    assert blind(desk, "bob") == [0, 1, 2, 3]


def test_the_facts_of_a_trace_include_what_reviewers_may_not_see(tmp_path: Path) -> None:
    steps = (
        Step(step_id="s1", role="tool", tool="pay", result="x", error=True),
        Step(step_id="s2", role="user", tool="look", result="y"),
    )
    changes = {"cost_usd": 0.25, "success_criteria": "Paid.", "metadata": {"team": "b"}}
    with empty_store(tmp_path / "s.duckdb") as store:
        store.set_workflow(Workflow(name="research", ceiling_usd=0.5, unit="question"))
        store.ingest([make_trace(0), make_trace(1, steps=steps, **changes)])
        trace_id = make_trace(1).trace_id
        batch = store.add_batch(purpose="production", trace_ids=[trace_id]).batch_id
        store.add_batch(purpose="exam", trace_ids=[trace_id])
        facts = store.trace_facts(trace_id)
        assert facts is not None
        assert (facts.source_id, facts.model, facts.cost_usd) == ("1", "model-x", 0.25)
        assert (facts.ceiling_usd, facts.unit) == (0.5, "question")
        assert (facts.n_steps, facts.tool_calls, facts.tool_errors) == (2, 1, 1)
        assert (facts.success_criteria, facts.metadata) == ("Paid.", {"team": "b"})
        assert facts.batches == (batch,)
        assert store.trace_facts("t-nowhere") is None


def test_every_event_of_a_trace_is_in_its_history(desk: Desk) -> None:
    trace, store = desk.traces[0], desk.store
    store.add_verdicts(
        [
            Verdict(
                judge_id="j", trace_id=trace, outcome="abandoned", reason="No answer", grade=2,
                evidence=(Evidence(step_id="s1", quote="I look"),),
            )
        ]
    )  # fmt: skip
    desk.label(trace, "ann", rationale="All there")
    desk.undo("ann")
    desk.skip(trace, "bob", reason="unclear task")
    desk.flag(trace, reason="odd")
    store.record_exposure("lea", [trace], "labels")
    store.adjudicate(trace_id=trace, answers=COMPLETE, adjudicator="lea", rationale="It is")
    store.withdraw_consensus(client_token=token(), trace_id=trace, adjudicator="lea")
    events = store.trace_events(trace)
    assert events["event"].tolist() == [
        "import", "verdict", "label", "undo", "skip", "flag", "shown labels", "consensus",
        "withdrawal",
    ]  # fmt: skip
    assert events["who"].fillna("").tolist() == [
        "", "j", "ann", "ann", "bob", "ann", "lea", "lea", "lea",
    ]  # fmt: skip
    reasons = events.set_index("event")["reason"]
    assert reasons["skip"] == "unclear task"
    assert reasons["label"] == "All there"
    assert reasons["verdict"] == "No answer"
    (verdict,) = store.trace_verdicts(trace).to_dict("records")
    assert (verdict["judge_id"], verdict["outcome"], verdict["grade"]) == ("j", "abandoned", 2)
    assert store.trace_events(desk.traces[1])["event"].tolist() == ["import"]


def test_only_a_lead_reads_the_record_of_a_trace(desk: Desk) -> None:
    people = {person.reviewer_id: person for person in desk.store.reviewers()}
    reviewer: Store = desk.store.acting_as(people["ann"])
    for call in (reviewer.trace_facts, reviewer.trace_events, reviewer.trace_verdicts):
        with pytest.raises(NotAllowedError, match="this is for leads"):
            call(desk.traces[0])
    with pytest.raises(NotAllowedError, match="in one's own name"):
        desk.store.acting_as(people["lea"]).still_blind("bob", desk.traces)
