import json
from typing import Any

import pytest

from calibration.errors import InputError
from calibration.store.leases import LEASE
from tests.store.builders import Clock, Desk, make_trace, query

ID = make_trace(0).trace_id


def held(desk: Desk) -> list[tuple[str, str]]:
    frame = desk.store.lease_frame(desk.batch)
    return list(zip(frame["reviewer_id"], frame["trace_id"], strict=True))


@pytest.fixture
def led(desk: Desk) -> Desk:
    desk.store.add_reviewer("Lea", role="lead")
    desk.store.add_reviewer("Ada", role="admin")
    return desk


def test_a_lease_is_shown_until_it_ends_or_its_trace_is_decided(desk: Desk, clock: Clock) -> None:
    first, second, third = desk.queue()
    assert held(desk) == [("ann", t) for t in sorted((first, second, third))]
    assert set(desk.store.lease_frame(desk.batch)["expires_at"]) == {clock.now + LEASE}
    desk.label(first)
    desk.skip(second)
    assert held(desk) == [("ann", third)]
    desk.undo()
    assert held(desk) == [("ann", t) for t in sorted((second, third))]
    clock.forward(minutes=16)
    assert held(desk) == []


@pytest.mark.parametrize("by", ["lea", "ada"])
def test_what_somebody_away_holds_goes_to_the_others_at_once(
    led: Desk, clock: Clock, by: str
) -> None:
    mine = led.queue()
    assert not set(mine) & set(led.queue("bob"))
    released = led.store.release_leases(batch_id=led.batch, reviewer_id="ann", by=by)
    assert sorted(released) == sorted(mine)
    assert "ann" not in {by for by, _ in held(led)}
    assert set(mine) < set(led.queue("bob", limit=5))


def test_a_label_of_a_trace_that_was_handed_over_is_kept(led: Desk, clock: Clock) -> None:
    (first, *_) = led.queue()
    led.save(first, answers={"output": "yes"})
    led.store.release_leases(batch_id=led.batch, reviewer_id="ann", by="lea")
    led.save(first, answers={"output": "yes"})
    assert query(led.store, "SELECT count(*) FROM draft") == [(1,)]
    led.queue("bob")
    led.label(first, "bob")
    led.label(first, "ann")
    assert set(led.labelled()) == {(first, "ann"), (first, "bob")}


def test_handing_over_is_written_down_once(led: Desk, clock: Clock) -> None:
    mine = led.queue(limit=2)
    led.label(mine[0])
    for _ in range(2):
        led.store.release_leases(batch_id=led.batch, reviewer_id="ann", by="lea")
    ((text,),) = query(led.store, "SELECT detail FROM audit WHERE what = 'leases released'")
    assert json.loads(text) == {
        "batch_id": led.batch, "reviewer_id": "ann", "by": "lea", "trace_ids": [mine[1]],
    }  # fmt: skip


@pytest.mark.parametrize("by", ["bob", "nobody"])
def test_only_a_lead_hands_over(led: Desk, by: str) -> None:
    mine = led.queue()
    with pytest.raises(InputError, match=f"'{by}' is no lead"):
        led.store.release_leases(batch_id=led.batch, reviewer_id="ann", by=by)
    assert sorted(t for _, t in held(led)) == sorted(mine)


@pytest.fixture
def overlapping(desk: Desk) -> Desk:
    """Return a batch of which only the first two of four traces want two labels."""
    batch = desk.store.add_batch(
        purpose="production",
        trace_ids=desk.traces[:4],
        labels_wanted=2,
        item_labels=[2, 2, 1, 1],
        item_probabilities=[0.5, 0.5, 0.25, 0.25],
    )
    return Desk(store=desk.store, batch=batch.batch_id, traces=desk.traces[:4])


def test_each_trace_is_given_to_as_many_as_it_wants(overlapping: Desk) -> None:
    desk = overlapping
    assert desk.queue("ann", 4) == list(desk.traces)
    for trace_id in desk.traces:
        desk.label(trace_id, "ann")
    assert desk.store.has_open_items("bob", desk.batch)
    assert desk.queue("bob", 4) == list(desk.traces[:2])
    for trace_id in desk.traces[:2]:
        desk.label(trace_id, "bob")
    assert desk.state("bob") == "finished"
    assert not desk.store.has_open_items("bob", desk.batch)


def test_labels_and_probabilities_of_each_trace_are_stored(overlapping: Desk) -> None:
    items = overlapping.store.batch_items(overlapping.batch)
    assert items["labels_wanted"].tolist() == [2, 2, 1, 1]
    assert items["inclusion_probability"].tolist() == [0.5, 0.5, 0.25, 0.25]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"item_labels": [1, 1]}, "each of 5 traces, got 2 and 5"),
        ({"item_probabilities": [0.5]}, "each of 5 traces, got 5 and 1"),
        ({"item_labels": [1, 1, 1, 1, 3]}, r"in \[1, 2\], got 3"),
        ({"item_probabilities": [0.5, 0.5, 0.5, 0.5, 0.0]}, r"in \(0, 1\], got 0.0"),
        ({"inclusion_probability": 1.5}, r"in \(0, 1\], got 1.5"),
        ({"purpose": "fun"}, "purpose must be one of"),
        ({"labels_wanted": 0}, "at least 1, got 0"),
        ({"trace_ids": []}, "at least one trace"),
        ({"trace_ids": ["t-none"]}, "'t-none' is not in the store"),
        ({"trace_ids": [ID, ID]}, f"'{ID}' is named twice"),
    ],
)
def test_a_batch_that_cannot_be_is_refused(
    kept_desk: Desk, arguments: dict[str, Any], message: str
) -> None:
    values = {"purpose": "exam", "trace_ids": kept_desk.traces} | arguments
    with pytest.raises(InputError, match=message):
        kept_desk.store.add_batch(**values)
    assert len(kept_desk.store.batches()) == 1
