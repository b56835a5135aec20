"""What a label holds beside its class, flags, reopened labels and a reviewer's own list."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import LabelRefusedError
from calibration.records import Evidence, SubGoal
from calibration.store import Store
from tests.store.builders import (
    ABANDONED,
    COMPLETE,
    HALLUCINATED,
    Clock,
    Desk,
    make_desk,
    make_trace,
    query,
)

GOALS = (SubGoal(id="1", text="Find it"), SubGoal(id="2", text="Say it", matters=False))


@pytest.fixture
def goals_desk(store: Store) -> Desk:
    traces = store.ingest([make_trace(k, sub_goals=GOALS) for k in range(3)]).imported
    for name in ("Ann", "Bob"):
        store.add_reviewer(name)
    batch = store.add_batch(purpose="practice", trace_ids=traces, labels_wanted=9)
    return Desk(store=store, batch=batch.batch_id, traces=traces)


def test_a_label_keeps_confidence_tags_and_sub_goals(goals_desk: Desk) -> None:
    desk = goals_desk
    (first, second, _) = desk.queue()
    desk.label(
        first, confidence=2, tags=(" policy  gap ", "Policy gap", "late"),
        sub_goals={"1": "done", "2": "unclear"},
    )  # fmt: skip
    desk.label(second)
    one, other = desk.store.label_frame(desk.batch).to_dict("records")
    assert one["confidence"] == 2
    assert json.loads(one["tags"]) == ["policy gap", "late"]
    assert json.loads(one["sub_goals"]) == {"1": "done", "2": "unclear"}
    assert desk.store.label_frame(desk.batch)["confidence"].isna().tolist() == [False, True]
    assert (json.loads(other["tags"]), json.loads(other["sub_goals"])) == ([], {})


def test_a_label_that_holds_what_it_must_not_is_refused(goals_desk: Desk) -> None:
    (first, *_) = goals_desk.queue()
    cases: list[tuple[str, Any, str]] = [
        ("confidence", 0, "confidence must be 1, 2 or 3"),
        ("confidence", 4, "confidence must be 1, 2 or 3"),
        ("tags", tuple(f"tag {k}" for k in range(51)), "at most 50 tags"),
        ("tags", ("x" * 81,), "at most 80 characters"),
        ("sub_goals", {"3": "done"}, "no sub-goal '3'"),
        ("sub_goals", {"1": "half"}, "must be one of done, not_done, unclear"),
    ]
    for name, value, why in cases:
        with pytest.raises(LabelRefusedError, match=why):
            goals_desk.label(first, **{name: value})
    assert goals_desk.events() == []


def test_a_draft_is_bounded(goals_desk: Desk) -> None:
    desk = goals_desk
    (first, *_) = desk.queue()
    many = {str(k): "done" for k in range(999)} | {"q": "what"}
    desk.save(first, rationale="x" * 9000, sub_goals=many)
    (kept,) = desk.drafts()
    assert (len(kept.rationale or ""), len(kept.sub_goals)) == (4000, 200)


def test_a_reopened_label_comes_first_with_what_it_held(goals_desk: Desk) -> None:
    desk = goals_desk
    first, second, third = desk.queue()
    said: dict[str, Any] = {
        "answers": HALLUCINATED, "rationale": "It made that up.", "confidence": 1,
        "tags": ("late",), "evidence": (Evidence(step_id="s2", quote="found it"),),
        "sub_goals": {"1": "done"},
    }  # fmt: skip
    desk.label(first, **said)
    desk.label(second)
    desk.reopen(first)
    assert desk.queue() == [first, third]
    assert desk.drafts() == [desk.draft(first, **said)]
    assert desk.labelled() == {(second, "ann"): "complete"}
    label, _, undo = query(
        desk.store, "SELECT event_id, kind, reason, supersedes FROM label_event ORDER BY seq"
    )
    assert undo[1:] == ("undo", "I misread the policy", label[0])
    desk.label(first, answers=ABANDONED)
    assert desk.labelled()[first, "ann"] == "abandoned"
    assert query(desk.store, "SELECT * FROM draft") == []


def test_a_skipped_trace_is_reopened_and_comes_first(shared_desk: Desk) -> None:
    desk = shared_desk
    first, second, third = desk.queue("ann")
    desk.skip(first, "ann")
    desk.label(second, "ann")
    ((skipped, _, task),) = desk.store.own_skips("ann", desk.batch)
    assert (skipped, task[:5]) == (first, "Task ")
    assert desk.store.own_skips("bob", desk.batch) == []
    desk.reopen(first, "ann", reason="Labelled after all")
    assert desk.queue("ann")[:2] == [first, third]
    assert desk.store.own_skips("ann", desk.batch) == []
    desk.label(first, "ann")
    assert desk.labelled("ann") == {(second, "ann"): "complete", (first, "ann"): "complete"}


def test_a_label_is_reopened_once_and_only_ones_own(shared_desk: Desk) -> None:
    desk = shared_desk
    first, second, *_ = desk.queue("ann")
    desk.queue("bob")
    desk.label(first, "bob")
    for trace, who, reason, why in (
        (first, "ann", "slip", "has no label and no skip of yours"),
        (second, "ann", "slip", "has no label and no skip of yours"),
        (first, "bob", "  ", "needs a reason"),
    ):
        with pytest.raises(LabelRefusedError, match=why):
            desk.reopen(trace, who, reason=reason)
    assert desk.labelled("bob") == {(first, "bob"): "complete"}
    for _ in range(2):
        desk.reopen(first, "bob", client_token="again")
    assert desk.labelled("bob") == {}
    desk.label(first, "bob")
    desk.reopen(first, "bob", client_token="again")
    assert desk.labelled("bob") == {(first, "bob"): "complete"}


def test_a_label_reopened_after_its_lease_is_not_given_to_others(desk: Desk, clock: Clock) -> None:
    (first, *_) = desk.queue("ann", limit=1)
    desk.label(first, "ann")
    clock.forward(hours=2)
    desk.queue("ann", limit=1)
    desk.reopen(first)
    assert first not in desk.queue("bob", limit=5)
    assert desk.queue("ann", limit=1) == [first]


def test_a_flag_stands_beside_labels_until_it_is_lowered(shared_desk: Desk) -> None:
    desk = shared_desk
    first, second, *_ = desk.queue("ann")
    desk.queue("bob")
    desk.flag(first, reason=" broken tool ", client_token="f")
    desk.flag(second)
    assert desk.queue("ann")[0] == first  # a flag decides nothing
    desk.label(first, "ann")
    desk.flag(first, "bob", reason="x" * 999)
    frame = desk.store.flag_frame(desk.batch)
    assert list(zip(frame["trace_id"], frame["reviewer_id"], strict=True)) == [
        (first, "ann"), (second, "ann"), (first, "bob"),
    ]  # fmt: skip
    assert frame["reason"].iloc[0] == "broken tool"
    assert len(frame["reason"].iloc[2]) == 300
    desk.flag(first, flagged=False)
    desk.flag(first, client_token="f")  # sent again: stored once
    assert desk.store.own_flags("ann", desk.batch, [first, second]) == {second: ""}
    assert desk.store.own_flags("bob", desk.batch, [second]) == {}
    assert len(query(desk.store, "SELECT * FROM flag_event")) == 4
    assert [kind for kind, *_ in desk.events()] == ["label"]
    assert desk.store.acknowledged("ann", desk.batch, ["f", "none"]) == {"f"}
    assert desk.store.acknowledged("bob", desk.batch, ["f"]) == set()
    with pytest.raises(LabelRefusedError, match="already belongs to another request"):
        desk.flag(first, "bob", client_token="f")


def test_the_list_of_labels_is_ones_own_newest_first(shared_desk: Desk) -> None:
    desk = shared_desk
    first, second, third = desk.queue("ann")
    desk.queue("bob")
    desk.label(first, "ann")
    desk.label(first, "bob", answers=ABANDONED)
    desk.label(second, "ann", answers=ABANDONED)
    desk.skip(third, "ann")
    found = desk.store.own_labels("ann", desk.batch)
    given = [(label.trace_id, label.outcome, task) for label, task in found]
    assert [row[:2] for row in given] == [(second, "abandoned"), (first, "complete")]
    assert given[0][2].startswith("Task ")
    assert found[0][0].created_at - found[1][0].created_at >= timedelta(0)
    assert len(desk.store.own_labels("ann", desk.batch, limit=1)) == 1
    desk.undo("ann")
    desk.undo("ann")
    assert [label.trace_id for label, _ in desk.store.own_labels("ann", desk.batch)] == [first]


def test_only_ones_own_tags_are_suggested_most_used_first(shared_desk: Desk) -> None:
    desk = shared_desk
    first, second, third = desk.queue("ann")
    desk.queue("bob")
    desk.label(first, "ann", tags=("rare", "often"))
    desk.label(second, "ann", tags=("often",))
    desk.label(third, "bob", tags=("of somebody else",))
    assert desk.store.queue("ann", desk.batch).tags == ["often", "rare"]


def test_the_pace_is_the_median_of_the_last_twenty_of_ones_own(tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "s.duckdb", 30, labels_wanted=2)
    with desk.store as store:
        for k, trace in enumerate(desk.queue("ann", limit=30)):
            assert (store.queue("ann", desk.batch).pace_s is None) == (k < 5)
            desk.label(trace, "ann", answers=COMPLETE, seconds_active=1000.0 if k < 10 else k)
        # The last twenty took 10, 11, ... 29 seconds.
        assert store.queue("ann", desk.batch).pace_s == 19.5
        assert store.queue("bob", desk.batch).pace_s is None
