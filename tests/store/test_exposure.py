"""What people were shown of what others said, and what that does to their labels."""

import pytest

from calibration.store import Store
from tests.store.builders import Desk


def exposed(store: Store, batch: str) -> list[bool]:
    return [bool(value) for value in store.label_frame(batch)["exposed"]]


def test_a_label_before_is_blind_and_one_after_is_not(desk: Desk) -> None:
    first, second, _ = desk.queue()
    desk.label(first)
    desk.store.record_exposure("ann", [first, second], "labels")
    desk.label(second)
    assert exposed(desk.store, desk.batch) == [False, True]


def test_a_label_given_again_after_it_is_not_blind(desk: Desk) -> None:
    first = desk.queue()[0]
    desk.label(first)
    desk.store.record_exposure("ann", [first], "labels")
    desk.undo()
    desk.queue()
    desk.label(first)
    assert exposed(desk.store, desk.batch) == [True]


def test_what_somebody_else_saw_changes_nothing(desk: Desk) -> None:
    desk.store.add_reviewer("Bob")
    first = desk.queue()[0]
    desk.store.record_exposure("bob", [first], "labels")
    desk.label(first)
    assert exposed(desk.store, desk.batch) == [False]


def test_the_first_time_counts_and_each_kind_is_kept(desk: Desk) -> None:
    first, second, _ = desk.queue()
    for _ in range(2):
        desk.store.record_exposure("ann", [first, first, second], "labels")
    desk.store.record_exposure("ann", [first], "verdicts")
    frame = desk.store.exposure_frame()
    assert frame[["trace_id", "what"]].to_numpy().tolist() == [
        [min(first, second), "labels"],
        [max(first, second), "labels"],
        [first, "verdicts"],
    ]


def test_a_kind_that_nobody_defined_is_refused(desk: Desk) -> None:
    with pytest.raises(Exception, match="nothing was stored"):
        desk.store.record_exposure("ann", desk.queue()[:1], "gossip")
