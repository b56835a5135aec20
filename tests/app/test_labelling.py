from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.desk.data import bounded, desk_data, trace_for_page
from app.desk.events import Receipts, apply_events, find_quote
from calibration.records import Step
from calibration.store import Store
from tests.browser.samples import build_store

BATCH = "production-001"
COMPLETE = {"output": "yes", "fabrication": "no", "all_subgoals": "yes"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    build_store(tmp_path / "store.duckdb", 3)
    with Store.open(tmp_path / "store.duckdb") as store:
        store.add_reviewer("Anna")
        store.queue("anna", BATCH)
        yield store


def label(token: str, trace_id: str, **changes: object) -> dict[str, object]:
    return {"token": token, "kind": "label", "trace_id": trace_id, "answers": COMPLETE} | changes


def n_labels(store: Store) -> int:
    return len(store.label_frame(BATCH))


def test_an_outbox_sent_twice_is_stored_once(store: Store) -> None:
    receipts = Receipts()
    events = [label("a", "t-000"), label("b", "t-001")]
    apply_events(store, "anna", BATCH, events, receipts)
    apply_events(store, "anna", BATCH, events, receipts)
    assert n_labels(store) == 2
    assert receipts.refused == {}
    assert store.acknowledged("anna", BATCH, ["a", "b", "c"]) == {"a", "b"}


def test_a_quote_is_found_in_the_run_and_not_in_what_instructs_the_agent(store: Store) -> None:
    (trace, *_) = store.queue("anna", BATCH).items
    rules = Step(step_id="s0", role="developer", content="Refunds take 5 days.")
    told = replace(trace, steps=(rules, *trace.steps), response="They take 5 days.")
    assert find_quote(told, "Refunds take") == ""
    assert find_quote(told, "take 5 days") == "response"
    assert find_quote(told, "Where is my order") == "s1"


def test_the_page_learns_which_call_a_result_answers_and_who_was_simulated(store: Store) -> None:
    (trace, *_) = store.queue("anna", BATCH).items
    steps = (
        Step(step_id="s1", role="assistant", tool="get", arguments="{}", agent="planner"),
        Step(step_id="s2", role="tool", tool="get", result="no", call="s1"),
    )
    shown = trace_for_page(replace(trace, steps=steps, simulated_user=True))
    assert [step.get("call") for step in shown["steps"]] == [None, "s1"]
    assert [step.get("agent") for step in shown["steps"]] == ["planner", None]
    assert shown["simulated_user"] is True
    assert trace_for_page(trace)["simulated_user"] is False


def test_a_refused_event_stops_no_other_and_its_undo_takes_no_older_one_back(store: Store) -> None:
    receipts = Receipts()
    undo = {"token": "u", "kind": "undo", "trace_id": "t-002", "undoes": "t-001"}
    events = [
        label("z", "t-unknown"),
        label("a", "t-000"),
        label("b", "t-001", answers={"output": "yes", "fabrication": "yes"}),
        undo,
    ]
    apply_events(store, "anna", BATCH, events, receipts)
    assert sorted(receipts.refused) == ["b", "u", "z"]
    assert store.last_label("anna", BATCH) == ("t-000", "complete")


def test_a_malformed_event_is_refused_and_changes_nothing_and_junk_is_ignored(store: Store) -> None:
    of_trace: dict[str, object] = {"token": "x", "trace_id": "t-000"}
    draft = of_trace | {"kind": "draft", "answers": {}}
    malformed: list[dict[str, object]] = [
        {"token": "x", "kind": "label"},
        of_trace | {"kind": "label", "trace_id": 3, "answers": {}},
        of_trace | {"kind": "label", "answers": {"output": "maybe"}},
        of_trace | {"kind": "label", "answers": {}, "evidence": 3},
        of_trace | {"kind": "skip"},
        of_trace | {"kind": "undo", "undoes": "t-000"},
        {"token": "x", "kind": "undo", "undoes": "t-000", "reason": "nothing there"},
        {"token": "x", "kind": "flag", "trace_id": "t-unknown", "flagged": True},
        draft | {"confidence": "2"},
        draft | {"tags": [3]},
        draft | {"sub_goals": [3]},
        draft | {"violations": "high"},
        draft | {"violations": [3]},
        draft | {"violations": [{"constraint": "c"}]},
        draft | {"violations": [{"constraint": "c", "severity": "minor"}]},
        {"token": "x", "kind": "other"},
    ]
    for event in malformed:
        receipts = Receipts()
        apply_events(store, "anna", BATCH, [event], receipts)
        assert (event, list(receipts.refused)) == (event, ["x"])
        assert n_labels(store) == 0
    receipts = Receipts()
    apply_events(store, "anna", BATCH, [None, 3, {"kind": "label"}, {"token": 4}], receipts)
    assert receipts == Receipts()


def test_a_draft_is_given_back_and_acknowledged(store: Store) -> None:
    receipts = Receipts()
    quote = {"step_id": "s1", "quote": "Where is"}
    broken = {"constraint": "no PII exposure", "severity": "high", "step": None}
    held = {
        "answers": {"output": "yes"}, "confidence": 2, "tags": ["late"], "rationale": "so far",
        "sub_goals": {"1": "done"}, "seconds_active": 7.0, "evidence": [quote],
        "violations": [broken],
    }  # fmt: skip
    draft = held | {"token": "d", "kind": "draft", "trace_id": "t-000"}
    apply_events(store, "anna", BATCH, [draft], receipts)
    (anna,) = store.reviewers()
    data = desk_data(store, anna, BATCH, receipts)
    assert data["drafts"] == {"t-000": held | {
        "tags": ("late",), "evidence": (quote,), "violations": (broken,),
    }}  # fmt: skip
    assert data["acked"] == ["d"]


def test_a_reviewer_gets_back_only_their_own_work(store: Store) -> None:
    store.add_reviewer("Ben")
    store.queue("ben", BATCH)
    flag = {"token": "bf", "kind": "flag", "trace_id": "t-001", "flagged": True, "reason": "ODD"}
    apply_events(store, "ben", BATCH, [label("b", "t-000", tags=["ODD"]), flag], Receipts())
    receipts = Receipts(listing=True)
    mine = {"token": "af", "kind": "flag", "trace_id": "t-000", "flagged": True, "reason": "see"}
    apply_events(store, "anna", BATCH, [label("a", "t-000", tags=["late"]), mine], receipts)
    anna = next(r for r in store.reviewers() if r.name == "Anna")
    data = desk_data(store, anna, BATCH, receipts)
    assert data["acked"] == ["a", "af"]
    assert [own["trace_id"] for own in data["own_labels"]] == ["t-000"]
    assert data["own_labels"][0]["task"].startswith("Help customer 0")
    assert (data["flags"], data["tags"], data["pace_s"]) == ({"t-000": "see"}, ["late"], None)
    assert "ODD" not in str(data)
    assert desk_data(store, anna, BATCH, Receipts())["own_labels"] is None


def test_the_page_gets_no_credit_and_no_model_name_and_long_texts_cut(store: Store) -> None:
    (anna,) = store.reviewers()
    text = str(desk_data(store, anna, BATCH, Receipts()))
    for hidden in ("hidden-model", "credit", "synthetic"):
        assert hidden not in text
    assert bounded("x" * 150_000) == {"text": "x" * 100_000, "more": 50_000}
