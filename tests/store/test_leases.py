import json
from dataclasses import replace
from typing import Any

import pytest

from calibration.errors import InputError
from calibration.store.leases import LEASE
from tests.store.builders import Clock, Desk, make_trace, query

ID = make_trace(0).trace_id


def held(desk: Desk) -> list[tuple[str, str]]:
    frame = desk.store.lease_frame(desk.batch)
    return list(zip(frame["reviewer_id"], frame["trace_id"], strict=True))


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


def test_what_somebody_away_holds_goes_to_the_others_and_it_is_written_down_once(
    desk: Desk, clock: Clock
) -> None:
    desk.store.add_reviewer("Lea", role="lead")
    mine = desk.queue()
    assert not set(mine) & set(desk.queue("bob"))
    desk.label(mine[0])
    handed = {"batch_id": desk.batch, "reviewer_id": "ann"}
    for by in ("bob", "nobody"):
        with pytest.raises(InputError, match=f"'{by}' is not a lead"):
            desk.store.release_leases(by=by, **handed)
    released = [sorted(desk.store.release_leases(by="lea", **handed)) for _ in range(2)]
    assert released == [sorted(mine[1:]), []]
    assert "ann" not in {by for by, _ in held(desk)}
    assert set(mine[1:]) < set(desk.queue("bob", limit=5))
    ((text,),) = query(desk.store, "SELECT detail FROM audit WHERE what = 'leases released'")
    found = json.loads(text)
    assert sorted(found.pop("trace_ids")) == released[0]
    assert found == handed | {"by": "lea"}


def test_a_label_of_a_trace_that_was_handed_over_is_kept(desk: Desk, clock: Clock) -> None:
    desk.store.add_reviewer("Ada", role="admin")
    (first, *_) = desk.queue()
    desk.save(first, answers={"output": "yes"})
    desk.store.release_leases(batch_id=desk.batch, reviewer_id="ann", by="ada")
    desk.save(first, answers={"output": "yes"})
    assert query(desk.store, "SELECT count(*) FROM draft") == [(1,)]
    desk.queue("bob")
    desk.label(first, "bob")
    desk.label(first, "ann")
    assert set(desk.labelled()) == {(first, "ann"), (first, "bob")}


def test_each_trace_is_given_to_as_many_as_it_wants(desk: Desk) -> None:
    ids = desk.traces[:4]
    batch = desk.store.add_batch(
        purpose="production", trace_ids=ids, labels_wanted=2, item_labels=[2, 2, 1, 1],
        item_probabilities=[0.5, 0.5, 0.25, 0.25],
    )  # fmt: skip
    items = desk.store.batch_items(batch.batch_id)
    assert items["labels_wanted"].tolist() == [2, 2, 1, 1]
    assert items["inclusion_probability"].tolist() == [0.5, 0.5, 0.25, 0.25]
    desk = replace(desk, batch=batch.batch_id)
    assert desk.queue("ann", 4) == list(ids)
    for trace_id in ids:
        desk.label(trace_id, "ann")
    assert desk.store.has_open_items("bob", desk.batch)
    assert desk.queue("bob", 4) == list(ids[:2])
    for trace_id in ids[:2]:
        desk.label(trace_id, "bob")
    assert desk.state("bob") == "finished"
    assert not desk.store.has_open_items("bob", desk.batch)


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
