"""The adjudicate page: what is open, what is settled, what the handbook learns; and its desk."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.desk import adjudicating
from app.desk.data import team_handbook
from app.desk.events import Receipts, apply_events
from calibration.errors import NotAllowedError
from calibration.records import Reviewer
from calibration.store import Store
from calibration.taxonomy import default_taxonomy
from tests.analyses.worlds import World, make_world
from tests.app.conftest import NewStore, OpenApp, press, texts

_tokens = count(1)
VIEW = Path(__file__).parents[2] / "app" / "views" / "adjudicate" / "page.py"
LEA = Reviewer(reviewer_id="lea", name="Lea", role="lead")
C, P, A = "complete", "partial_plus", "abandoned"


def differ(world: World) -> None:
    for who, classes in (("Ann", (C, C, C, A)), ("Ben", (P, A, C, A))):
        world.label(who, dict(zip(world.drawn, classes, strict=False)))


def settle(world: World, trace_id: str, outcome: str, **more: Any) -> None:
    """Let Lea decide a trace blind and settle it, by the events that the desk sends."""
    store = world.store
    batch = store.serve_adjudication(
        adjudicator="lea", batch_id=world.batch_id, trace_ids=[trace_id]
    )
    assert batch is not None
    desk = BenchDesk(store, world.batch_id, batch.batch_id)
    desk.data()
    answers = store.taxonomy().answers_for(outcome)
    desk.send(kind="label", trace_id=trace_id, answers=answers)
    due = desk.data()["settle"]
    desk.send(**settled(due, answers=answers, **more))
    assert not desk.receipts.refused


def settled(due: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the event that settles what the desk shows."""
    shown = {name: due[name] for name in ("trace_id", "answers", "supersedes", "label_events")}
    return {"kind": "settle", "cause": "rubric_unclear", "rationale": "Why not"} | shown | more


def settle_first(world: World) -> None:
    differ(world)
    settle(world, world.drawn[0], P, cause="slip")


class BenchDesk:
    """The desk of Lea without a browser."""

    def __init__(self, store: Store, of_batch: str, batch_id: str) -> None:
        self.store, self.of_batch, self.batch_id = store, of_batch, batch_id
        self.receipts = Receipts()

    def data(self) -> dict[str, Any]:
        return adjudicating.adjudication_data(
            self.store, LEA, self.of_batch, self.batch_id, self.receipts
        )

    def decided(self) -> dict[str, Any]:
        """Decide the first trace blind; return what the desk shows then."""
        trace = self.data()["queue"][0]["trace_id"]
        self.send(kind="label", trace_id=trace, answers={"output": "no"})
        shown: dict[str, Any] = self.data()["settle"]
        return shown

    def send(self, **event: Any) -> str:
        """Send an event; return why it was refused, or an empty text."""
        token = f"event-{next(_tokens)}"
        self.again(token, **event)
        return self.receipts.refused.get(token, self.receipts.trouble)

    def again(self, token: str, **event: Any) -> None:
        events = [{"token": token} | event]
        apply_events(
            self.store, "lea", self.batch_id, events, self.receipts,
            adjudicating.apply_adjudication,
        )  # fmt: skip


@pytest.fixture
def bench(store_file: Path) -> BenchDesk:
    made = make_world(store_file)
    made.store.add_reviewer("Lea", role="lead")
    differ(made)
    batch = made.store.serve_adjudication(
        adjudicator="lea", batch_id=made.batch_id, trace_ids=made.drawn[:2]
    )
    assert batch is not None
    # The rights of a lead are enough for all of it.
    return BenchDesk(made.store.acting_as(LEA), made.batch_id, batch.batch_id)


def said(app: AppTest) -> str:
    return "\n".join([texts(app), *(caption.value for caption in app.caption)])


def test_the_head_tells_of_no_one_trace(
    world: NewStore, open_app: OpenApp, store_file: Path
) -> None:
    world(differ)
    app = open_app("adjudicate", reviewer="lea")
    # Of eight labels 4, 1 and 3 are of a class: alpha is 1 - .5 / (38/56).
    assert "2 open disagreements · 0 adjudicated · alpha 0.263 [-0.861, 0.951], n = 4" in said(app)
    assert "0.263 [-0.861, 0.951] (95% delete-one jackknife, Fisher z, n=4)" in said(app)
    assert not app.dataframe
    for secret in ("Ann", "Ben", "all_subgoals", "abandoned"):
        assert secret not in said(app)
    press(app, "adjudicate_agreed")
    (batch,) = [b for b in session.open_store(store_file).batches() if b.purpose == "adjudication"]
    assert batch.n_items == 4


def test_without_a_disagreement_the_page_says_so(world: NewStore, open_app: OpenApp) -> None:
    world(lambda w: [w.label(who, dict.fromkeys(w.drawn[:4], C)) for who in ("Ann", "Ben")])
    shown = said(open_app("adjudicate", reviewer="lea"))
    assert "Reviewers agree on all 4 traces with two or more labels." in shown
    assert "not estimable: undefined without variation: every rating names one" in shown


def test_a_consensus_can_be_withdrawn(world: NewStore, open_app: OpenApp) -> None:
    world(settle_first)
    app = open_app("adjudicate", reviewer="lea", view="Adjudicated")
    app.session_state["adjudicate_done"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    app.run()
    assert "Labels at the decision: Ann: complete, Ben: partial_plus" in texts(app)
    press(app, "adjudicate_withdraw")
    assert "Nothing has been adjudicated in this batch yet." in texts(app)


def test_a_proposal_is_edited_then_taken(
    world: NewStore, open_app: OpenApp, store_file: Path
) -> None:
    def fill(w: World) -> None:
        traces = dict.fromkeys(w.drawn[:3], C)
        w.label("Ann", traces)
        w.label("Ben", dict.fromkeys(traces, P))
        for trace in traces:
            settle(w, trace, P)

    world(fill)
    app = open_app("adjudicate", reviewer="lea", view="Handbook")
    assert "Are all sub-goals satisfied and the spec met?\nBetween Completed and" in texts(app)
    next(b for b in app.button if b.label == "Accept").click().run()
    assert "Not saved: replace when ... in the sentence" in texts(app)
    (text,) = app.text_area
    text.input("A missing source is a missing sub-goal.")
    next(b for b in app.button if b.label == "Decline").click().run()
    assert "needs a reason" in texts(app)
    next(b for b in app.button if b.label == "Accept").click().run()
    assert not app.exception
    assert "- A missing source is a missing sub-goal." in texts(app)
    session.close_stores()
    with Store.open(store_file) as store:
        read = team_handbook(store)["all_subgoals"]
    assert read.endswith("Added by your team:\n- A missing source is a missing sub-goal.")
    # The catalogue of tags is there too.
    for pattern in default_taxonomy().patterns:
        assert f"{pattern.tag}: {pattern.definition}\nTest: {pattern.test}" in texts(app)


def test_the_page_is_for_leads(world: NewStore) -> None:
    world(differ)
    app = AppTest.from_file(VIEW, default_timeout=20)
    app.session_state["reviewer_id"] = "ann"
    app.run()
    assert "you are not a lead." in texts(app)


def test_an_adjudication_batch_is_on_no_other_page(world: NewStore, open_app: OpenApp) -> None:
    world(settle_first)
    for who in ("ann", "lea"):
        app = open_app("label", reviewer=who, plain="true")
        assert "adjudication-" not in texts(app)
        assert not [box for box in app.selectbox if box.label == "Batch"]
    app = open_app("data", reviewer="lea")
    offered = app.multiselect(key="q").options
    assert "batch:production-001" in offered
    assert not [term for term in offered if "adjudication" in term]


def test_labels_come_under_letters_and_only_after_the_blind_decision(bench: BenchDesk) -> None:
    data = bench.data()
    trace = data["queue"][0]["trace_id"]
    assert data["settle"] is None
    assert bench.store.exposure_frame().empty
    assert bench.send(kind="label", trace_id=trace, answers={"output": "no"}) == ""
    due = bench.data()["settle"]
    assert (due["trace_id"], due["outcome"], due["blind"]) == (trace, A, True)
    assert [(label["who"], label["outcome"]) for label in due["given"]] == [("A", C), ("B", P)]
    assert "ann" not in str(due["given"])
    assert [label["violations"] for label in due["given"]] == ["", ""]
    assert list(bench.store.exposure_frame()["what"]) == ["labels"]


def test_a_settlement_sent_twice_is_stored_once_and_undone_once(bench: BenchDesk) -> None:
    due = bench.decided()
    trace = due["trace_id"]
    for _ in range(2):
        bench.receipts.stored.clear()
        bench.again("once", **settled(due))
    assert len(bench.store.consensus_frame()) == 1
    assert bench.data()["settle"] is None
    assert bench.data()["last"] == {"trace_id": trace, "outcome": A}
    for _ in range(2):
        bench.receipts.stored.clear()
        bench.again("back", kind="undo", undoes=trace)
    assert not bench.receipts.refused
    assert bench.store.consensus_frame().empty
    assert bench.data()["settle"]["trace_id"] == trace


def test_what_is_incomplete_is_refused_and_the_desk_goes_on(bench: BenchDesk) -> None:
    due = bench.decided()
    changes: list[tuple[dict[str, Any], str]] = [
        ({"cause": None}, "needs a cause"),
        ({"answers": {"output": "perhaps"}}, "answers must be yes or no"),
        ({"label_events": ["other"]}, "labels have changed"),
        ({"label_events": None}, "label_events must be"),
        ({"trace_id": "r999"}, "not in the store"),
        ({"trace_id": None}, "trace_id must be a text"),
    ]
    for change, why in changes:
        assert why in bench.send(**settled(due, **change))
        assert bench.store.consensus_frame().empty
    assert bench.send(**settled(due)) == ""


def test_only_the_last_step_is_taken_back(bench: BenchDesk) -> None:
    first, second = (trace["trace_id"] for trace in bench.data()["queue"])
    assert "no such adjudication" in bench.send(kind="undo", undoes=first)
    bench.send(kind="skip", trace_id=first, reason="unclear")
    assert bench.data()["last"] == {"trace_id": first, "outcome": None}
    bench.send(kind="label", trace_id=second, answers={"output": "no"})
    # The answers to the second are shown by now: its blind decision stands.
    bench.data()
    assert "finish the trace" in bench.send(kind="undo", undoes=first)
    bench.send(**settled(bench.data()["settle"]))
    assert "no such adjudication" in bench.send(kind="undo", undoes=first)
    assert bench.send(kind="undo", undoes=second) == ""


def test_nobody_settles_in_the_name_of_somebody_else_or_in_another_batch(bench: BenchDesk) -> None:
    due, own = bench.decided(), bench.batch_id
    bench.batch_id = bench.of_batch
    assert "is not for adjudication" in bench.send(kind="undo", undoes="r001")
    bench.batch_id = own
    bench.store = bench.store.acting_as(Reviewer(reviewer_id="leo", name="Leo", role="lead"))
    assert "only in one's own name" in bench.send(**settled(due))
    with pytest.raises(NotAllowedError):
        bench.data()
