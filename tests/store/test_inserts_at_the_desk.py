"""What a reviewer sees of what was put in: nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from calibration.errors import InputError, LabelRefusedError
from calibration.store import Store
from calibration.store.database import utc_now
from tests.store.builders import ABANDONED, Clock, token
from tests.store.inserts import (
    N_NEW,
    World,
    age,
    first_insert,
    first_world,
    label_all,
    make_world,
    often,
    settle,
    world,
)

__all__ = ["first_world", "often", "world"]


@pytest.mark.long
def test_progress_does_not_move_when_an_insert_is_served(world: World) -> None:
    totals, done = set(), 0
    while True:
        queue = world.store.queue("ann", world.desk.batch)
        totals.add(queue.total)
        assert (queue.done, queue.skipped) == (done, 0)
        if not queue.items:
            break
        world.desk.label(queue.items[0].trace_id)
        done += 1
    assert totals == {done} == {N_NEW + len(world.put_in())}
    assert queue.state == "finished"


@pytest.mark.long
def test_a_small_pool_does_not_move_progress_either(tmp_path: Path, often: None) -> None:
    made = make_world(tmp_path / "few.duckdb", settled=7)
    totals = set()
    while (queue := made.store.queue("ann", made.desk.batch)).items:
        totals.add(queue.total)
        made.desk.label(queue.items[0].trace_id)
    assert len(totals) == 1
    made.store.close()


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


def test_two_browsers_are_shown_the_same(world: World) -> None:
    for _ in range(30):
        first, second = world.desk.queue(), world.desk.queue()
        assert first == second
        world.desk.label(first[0])
        with pytest.raises(LabelRefusedError, match="already carries"):
            world.desk.label(first[0])


def test_a_second_reviewer_is_not_disturbed(world: World) -> None:
    """What is put in for one is neither held nor counted for another."""
    turns, order = {"ann": 0, "bob": 0}, []
    while any(turn < 1000 for turn in turns.values()):
        for who in turns:
            given = world.desk.queue(who)
            if not given:
                turns[who] = 1000
                continue
            order.append(given[0])
            world.desk.label(given[0], who)
            turns[who] += 1
    labelled = {trace for trace, _ in world.desk.labelled()}
    assert labelled == set(world.new)
    assert set(world.put_in("ann")) & set(world.put_in("bob")) <= set(world.gold)


def test_every_call_of_the_desk_takes_an_insert_for_a_trace_of_the_batch(world: World) -> None:
    trace, batch, store = first_insert(world), world.desk.batch, world.store
    world.desk.save(trace, answers={"output": "no"})
    assert world.desk.drafts() == [world.desk.draft(trace, answers={"output": "no"})]
    flag = token()
    for _ in range(2):
        store.record_flag(
            client_token=flag, trace_id=trace, reviewer_id="ann", batch_id=batch, flagged=True,
            reason="odd",
        )  # fmt: skip
    assert store.own_flags("ann", batch, [trace]) == {trace: "odd"}
    sent = token()
    receipts = [
        world.desk.label(trace, answers=ABANDONED, client_token=sent, tags=("new tag",))
        for _ in range(2)
    ]
    assert [receipt.duplicate for receipt in receipts] == [False, True]
    assert store.acknowledged("ann", batch, [flag, sent]) == {flag, sent}
    assert store.own_labels("ann", batch)[0][0].trace_id == trace
    assert store.queue("ann", batch).tags == ["new tag"]
    assert store.last_label("ann", batch) == (trace, "abandoned")
    again = token()
    for _ in range(2):
        store.reopen(
            client_token=again, trace_id=trace, reviewer_id="ann", batch_id=batch, reason="wrong"
        )
    queue = store.queue("ann", batch)
    assert queue.items[0].trace_id == trace
    assert queue.drafts[trace].answers == ABANDONED
    world.desk.skip(trace)
    assert store.queue("ann", batch).skipped == 1
    undo = token()
    assert [world.desk.undo(client_token=undo) for _ in range(2)] == [trace, trace]
    assert store.has_open_items("ann", batch)


@pytest.mark.long
def test_an_insert_that_is_left_keeps_the_batch_open(world: World) -> None:
    world.work()
    assert not world.store.has_open_items("ann", world.desk.batch)
    last = next(t for t, _ in reversed(world.store.own_labels("ann", world.desk.batch))
                if t.trace_id in world.put_in())  # fmt: skip
    world.store.reopen(
        client_token=token(), trace_id=last.trace_id, reviewer_id="ann",
        batch_id=world.desk.batch, reason="again",
    )  # fmt: skip
    assert world.store.has_open_items("ann", world.desk.batch)
    assert world.desk.queue() == [last.trace_id]


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


@pytest.mark.long
def test_the_next_batch_is_numbered_as_if_there_were_no_inserts(world: World) -> None:
    world.work()
    more = world.store.add_batch(purpose="production", trace_ids=world.new[:3])
    assert more.batch_id == "production-004"


# A repeat in the batch of its first label.


def long_batch(world: World) -> str:
    """Let Ann label most of one batch, make that older, and go on up to a repeat of it."""
    label_all(world.store, world.desk.batch, world.new[:25], "ann")
    age(world.store, world.desk.batch, 8)
    world.store.record_exposure("ann", world.own, "labels")
    while True:
        (given, *_) = world.desk.queue()
        if world.put_in().get(given) == "repeat":
            return given
        world.desk.label(given)


def test_a_repeat_may_come_from_the_same_batch(world: World) -> None:
    trace = long_batch(world)
    assert trace in world.new[:25]
    world.desk.label(trace, answers=ABANDONED)
    mine = [label for label, _ in world.store.own_labels("ann", world.desk.batch)
            if label.trace_id == trace]  # fmt: skip
    assert [label.outcome for label in mine] == ["abandoned"]
    frame = world.frame().set_index("trace_id").loc[trace]
    assert (frame["against"], frame["given"], frame["kind"]) == ("complete", "abandoned", "repeat")
    assert world.desk.labelled("ann")[trace, "ann"] == "complete"
    assert world.desk.undo() == trace
    assert world.desk.labelled("ann")[trace, "ann"] == "complete"


def test_who_takes_the_first_label_back_gives_it_again_and_is_not_asked_twice(
    world: World,
) -> None:
    trace = long_batch(world)
    before = world.store.queue("ann", world.desk.batch).total
    world.store.reopen(
        client_token=token(), trace_id=trace, reviewer_id="ann", batch_id=world.desk.batch,
        reason="I was wrong",
    )  # fmt: skip
    queue = world.store.queue("ann", world.desk.batch)
    assert queue.items[0].trace_id == trace
    assert [t.trace_id for t in queue.items].count(trace) == 1
    assert trace not in world.put_in()
    assert queue.total <= before
    world.desk.label(trace, answers=ABANDONED)
    assert world.desk.labelled("ann")[trace, "ann"] == "abandoned"
    assert world.frame().empty or trace not in set(world.frame()["trace_id"])
