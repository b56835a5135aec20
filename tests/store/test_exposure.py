"""What people were shown of what others said, and what that does to their labels."""

import pytest

from calibration.store import Store
from tests.store.builders import Desk


def exposed(store: Store, batch: str) -> list[bool]:
    return [bool(value) for value in store.label_frame(batch)["exposed"]]


def test_a_label_after_what_one_was_shown_is_not_blind(desk: Desk) -> None:
    first, second, third = desk.queue()
    desk.label(first)
    desk.store.record_exposure("ann", [first, second], "labels")
    desk.store.record_exposure("bob", [third], "labels")
    desk.label(second)
    desk.label(third)
    assert exposed(desk.store, desk.batch) == [False, True, False]
    desk.reopen(first)
    desk.label(first)  # given again after it
    rows = desk.store.label_frame(desk.batch).set_index("trace_id")["exposed"]
    assert rows[[first, second, third]].tolist() == [True, True, False]


def test_the_first_time_counts_and_each_kind_is_kept(desk: Desk) -> None:
    first, second, _ = desk.queue()
    for _ in range(2):
        desk.store.record_exposure("ann", [first, first, second], "labels")
    desk.store.record_exposure("ann", [first], "verdicts")
    frame = desk.store.exposure_frame()
    assert frame[["trace_id", "what"]].to_numpy().tolist() == [
        [min(first, second), "labels"], [max(first, second), "labels"], [first, "verdicts"],
    ]  # fmt: skip


def test_a_kind_that_nobody_defined_is_refused(desk: Desk) -> None:
    with pytest.raises(Exception, match="nothing was stored"):
        desk.store.record_exposure("ann", desk.queue()[:1], "gossip")
