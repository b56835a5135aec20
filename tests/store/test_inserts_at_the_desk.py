"""What a reviewer sees of what was put in: nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibration.errors import InputError, LabelRefusedError
from calibration.store import Store
from calibration.store.database import utc_now
from calibration.store.queue import set_secret
from tests.store.builders import ABANDONED, Clock, token
from tests.store.inserts import (
    N_GOLD,
    N_NEW,
    World,
    age,
    first_insert,
    label_all,
    make_world,
    settle,
)


@pytest.mark.long
@pytest.mark.parametrize("settled", [N_GOLD, 7])
def test_progress_does_not_move_when_an_insert_is_served(
    tmp_path: Path, often: None, settled: int
) -> None:
    world = make_world(tmp_path / "s.duckdb", settled=settled)
    store, batch = world.store, world.desk.batch
    totals, done = set(), 0
    while (queue := store.queue("ann", batch)).items:
        totals.add(queue.total)
        assert (queue.done, queue.skipped) == (done, 0)
        world.desk.label(queue.items[0].trace_id)
        done += 1
    assert totals == {done} == {N_NEW + len(world.put_in())}
    assert (queue.state, queue.total, queue.done) == ("finished", done, done)
    # An insert that is left keeps the batch open.
    assert not store.has_open_items("ann", batch)
    (last, *_) = [t.trace_id for t, _ in store.own_labels("ann", batch)
                  if t.trace_id in world.put_in()]  # fmt: skip
    world.desk.reopen(last)
    assert store.has_open_items("ann", batch)
    assert world.desk.queue() == [last]
    store.close()


@pytest.mark.long
def test_a_new_trace_only_ever_comes_last(world: World) -> None:
    before = world.desk.queue()
    while before:
        assert world.desk.queue() == before
        world.desk.label(before[0])
        after = world.desk.queue()
        assert after[: len(before) - 1] == before[1:]
        before = after


@pytest.mark.long
def test_undo_and_restart_keep_the_order(world: World) -> None:
    order = world.work()
    for trace in reversed(order[-25:]):
        assert world.store.last_label("ann", world.desk.batch) == (trace, "complete")
        assert world.desk.undo() == trace
        assert world.desk.queue()[0] == trace
    totals = {world.store.queue("ann", world.desk.batch).total}
    path = world.store.path
    world.store.close()
    world.store = Store.open(path)
    world.desk = replace(world.desk, store=world.store)
    assert world.work() == order[-25:]
    assert totals == {len(order)}


@pytest.mark.long
def test_a_pause_longer_than_the_lease_keeps_the_order(
    tmp_path: Path, often: None, clock: Clock
) -> None:
    clock.now = utc_now()
    made = make_world(tmp_path / "pause.duckdb", settled=0)
    for _ in range(3 * N_NEW):
        before = made.desk.queue()
        clock.forward(minutes=20)
        assert made.desk.queue() == before
        # More may be put in from now on, but not before what the page shows already.
        if not made.put_in():
            settle(made.store, made.gold)
        if not before:
            break
        made.desk.label(before[0])
    assert made.put_in()
    made.store.close()


def test_a_second_reviewer_is_not_disturbed(world: World) -> None:
    """What is put in for one is neither held nor counted for another."""
    at_work = ["ann", "bob"]
    while at_work:
        for who in tuple(at_work):
            if given := world.desk.queue(who):
                world.desk.label(given[0], who)
            else:
                at_work.remove(who)
    labelled = {trace for trace, _ in world.desk.labelled()}
    assert labelled == set(world.new)
    assert set(world.put_in("ann")) & set(world.put_in("bob")) <= set(world.gold)


def test_every_call_of_the_desk_takes_an_insert_for_a_trace_of_the_batch(world: World) -> None:
    trace, batch, store, desk = first_insert(world), world.desk.batch, world.store, world.desk
    desk.save(trace, answers={"output": "no"})
    assert desk.drafts() == [desk.draft(trace, answers={"output": "no"})]
    flag, sent, again, undo = (token() for _ in range(4))
    for _ in range(2):
        desk.flag(trace, client_token=flag, reason="odd")
    assert store.own_flags("ann", batch, [trace]) == {trace: "odd"}
    more: dict[str, Any] = {"answers": ABANDONED, "client_token": sent, "tags": ("new tag",)}
    assert [desk.label(trace, **more).duplicate for _ in range(2)] == [False, True]
    with pytest.raises(LabelRefusedError, match="already has"):
        desk.label(trace)
    assert store.acknowledged("ann", batch, [flag, sent]) == {flag, sent}
    assert store.own_labels("ann", batch)[0][0].trace_id == trace
    assert store.queue("ann", batch).tags == ["new tag"]
    assert store.last_label("ann", batch) == (trace, "abandoned")
    for _ in range(2):
        desk.reopen(trace, client_token=again)
    queue = store.queue("ann", batch)
    assert queue.items[0].trace_id == trace
    assert queue.drafts[trace].answers == ABANDONED
    desk.skip(trace)
    assert store.queue("ann", batch).skipped == 1
    assert [desk.undo(client_token=undo) for _ in range(2)] == [trace, trace]
    assert store.has_open_items("ann", batch)


def test_the_companion_cannot_be_named(world: World) -> None:
    trace = first_insert(world)
    world.desk.label(trace)
    hidden = f"{world.desk.batch}-inserted"
    assert hidden not in {b.batch_id for b in world.store.batches()}
    aside = replace(world.desk, batch=hidden)
    with pytest.raises(InputError, match="not in the store"):
        aside.queue()
    for call in (aside.label, aside.skip):
        for any_trace in (trace, world.new[-1]):
            with pytest.raises(LabelRefusedError, match="was not given to 'ann' in batch"):
                call(any_trace)
    assert aside.undo() is None
    assert world.store.own_labels("ann", hidden) == []
    assert world.store.own_flags("ann", hidden, [trace]) == {}
    assert world.store.last_label("ann", hidden) is None
    with pytest.raises(LabelRefusedError, match="was not given"):
        world.desk.save(trace, batch_id=hidden)


# A repeat in the batch of its first label.


def long_batch(world: World) -> str:
    """Let Ann label a third of one batch, make that older, and go on up to a repeat of it."""
    label_all(world.store, world.desk.batch, world.new[:15], "ann")
    age(world.store, world.desk.batch, 8)
    world.store.record_exposure("ann", world.own, "labels")
    while True:
        (given, *_) = world.desk.queue()
        if world.put_in().get(given) == "repeat":
            return given
        world.desk.label(given)


def test_a_repeat_may_come_from_the_same_batch(world: World) -> None:
    trace = long_batch(world)
    assert trace in world.new[:15]
    world.desk.label(trace, answers=ABANDONED)
    mine = [label for label, _ in world.store.own_labels("ann", world.desk.batch)
            if label.trace_id == trace]  # fmt: skip
    assert [label.outcome for label in mine] == ["abandoned"]
    frame = world.frame().set_index("trace_id").loc[trace]
    assert (frame["against"], frame["given"], frame["kind"]) == ("complete", "abandoned", "repeat")
    assert world.desk.labelled("ann")[trace, "ann"] == "complete"
    assert world.desk.undo() == trace
    assert world.desk.labelled("ann")[trace, "ann"] == "complete"


def test_who_takes_the_first_label_back_gives_it_again_and_is_not_asked_twice(world: World) -> None:
    trace = long_batch(world)
    world.desk.reopen(trace)
    queue = world.store.queue("ann", world.desk.batch)
    assert queue.items[0].trace_id == trace
    assert [t.trace_id for t in queue.items].count(trace) == 1
    assert trace not in world.put_in()
    world.desk.label(trace, answers=ABANDONED)
    assert world.desk.labelled("ann")[trace, "ann"] == "abandoned"
    assert world.frame().empty or trace not in set(world.frame()["trace_id"])


@pytest.mark.parametrize("secret", ["s2", "s3"])
def test_progress_is_what_comes_after_a_label_was_taken_back(world: World, secret: str) -> None:
    with world.store._db.write() as cursor:
        set_secret(cursor, secret)
    world.desk.reopen(long_batch(world))
    totals = set()
    while (queue := world.store.queue("ann", world.desk.batch)).items:
        totals.add(queue.total)
        world.desk.label(queue.items[0].trace_id)
    assert totals == {queue.done}
