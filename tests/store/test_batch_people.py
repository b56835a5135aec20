"""What a lead calls a batch, and whom it is given to."""

import pytest

from calibration.errors import InputError, NotAllowedError
from calibration.records import Reviewer
from tests.store.builders import Desk, query

ANN, BOB, LEA = (Reviewer(reviewer_id=who, name=who, role=role) for who, role in (
    ("ann", "reviewer"), ("bob", "reviewer"), ("lea", "lead"),
))  # fmt: skip


def test_a_batch_is_renamed_and_keeps_its_id(desk: Desk) -> None:
    store = desk.store.acting_as(LEA)
    store.rename_batch(desk.batch, "  First   week ")
    (batch,) = store.batches()
    assert (batch.batch_id, batch.title) == (desk.batch, f"First week ({desk.batch})")
    other = desk.store.add_batch(purpose="production", trace_ids=desk.traces[:1]).batch_id
    with pytest.raises(InputError, match="is called 'First week' already"):
        store.rename_batch(other, "First week")
    with pytest.raises(InputError, match="up to 60 characters"):
        store.rename_batch(other, "x" * 61)
    with pytest.raises(InputError, match="is not in the store"):
        store.rename_batch("no such", "x")
    assert store.rename_batch(desk.batch, "").title == desk.batch


def test_every_change_is_an_event_and_none_is_lost(desk: Desk) -> None:
    store = desk.store
    for _ in range(2):
        store.rename_batch(desk.batch, "A")
    store.assign_batch(desk.batch, ["bob", "ann", "bob"])
    store.rename_batch(desk.batch, "B")
    found = query(store, "SELECT name, people FROM batch_event ORDER BY seq")
    assert found == [("A", []), ("A", ["ann", "bob"]), ("B", ["ann", "bob"])]
    # Of what is equal there is no event, but who asked for it is known.
    trail = store.audit_trail()["what"].tolist()
    assert (trail.count("rename_batch"), trail.count("assign_batch")) == (3, 1)


def test_an_assigned_batch_is_given_to_its_people_only(desk: Desk) -> None:
    assert desk.queue("bob", limit=1)
    desk.store.assign_batch(desk.batch, ["ann"])
    assert [b.batch_id for b in desk.store.acting_as(ANN).batches()] == [desk.batch]
    assert desk.store.acting_as(BOB).batches() == []
    assert len(desk.store.acting_as(LEA).batches()) == 1
    assert desk.queue("ann", limit=1)
    with pytest.raises(NotAllowedError, match="is assigned to others"):
        desk.queue("bob")
    # What was on his screen is still taken.
    desk.label(desk.traces[0], "bob")
    assert (desk.traces[0], "bob") in desk.labelled()
    desk.store.assign_batch(desk.batch, [])
    assert desk.queue("bob", limit=1)


def test_who_is_none_and_batches_of_one_person_are_refused(desk: Desk) -> None:
    with pytest.raises(InputError, match="'nobody' is not in the store"):
        desk.store.assign_batch(desk.batch, ["ann", "nobody"])
    practice = desk.store.add_batch(purpose="practice", trace_ids=desk.traces[:1]).batch_id
    with pytest.raises(InputError, match="assign one of production"):
        desk.store.assign_batch(practice, ["ann"])
    with pytest.raises(NotAllowedError):
        desk.store.acting_as(ANN).assign_batch(desk.batch, [])
    assert all(batch.people == () for batch in desk.store.batches())
