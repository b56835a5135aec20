"""Silent gold and own repeats: every rule, and that neither reviewers nor numbers notice."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.errors import InputError, LabelRefusedError
from calibration.records import Draft, LabelDraft
from calibration.reviewing import inserts
from calibration.store import Store, inserted
from calibration.store.database import utc_now
from tests.store.builders import (
    ABANDONED,
    COMPLETE,
    Clock,
    Desk,
    empty_store,
    make_trace,
    query,
    token,
)

N_GOLD, N_OWN, N_NEW = 40, 40, 40


@dataclass
class World:
    """Gold of Bob and Cy, old labels of Ann, and a new batch."""

    store: Store
    gold: tuple[str, ...]
    own: tuple[str, ...]
    new: tuple[str, ...]
    gold_batch: str
    own_batch: str
    desk: Desk

    def frame(self) -> Any:
        return self.store.insert_frame()

    def put_in(self, reviewer: str = "ann") -> dict[str, str]:
        """Return the kind of everything that was put in for a reviewer."""
        found = query(
            self.store,
            "SELECT trace_id, kind FROM inserted WHERE reviewer_id = ? AND batch_id = ?",
            [reviewer, self.desk.batch],
        )
        return dict(found)

    def work(self, reviewer: str = "ann", answers: dict[str, str] | None = None) -> list[str]:
        """Label the whole batch and return the traces in the order they came."""
        served = []
        while given := self.desk.queue(reviewer):
            served.append(given[0])
            self.desk.label(given[0], reviewer, answers=answers)
        return served


def label_all(store: Store, batch: str, traces: tuple[str, ...], *reviewers: str) -> None:
    drafts = [
        LabelDraft(
            client_token=token(), trace_id=trace, reviewer_id=who, batch_id=batch, answers=COMPLETE
        )
        for trace in traces
        for who in reviewers
    ]
    assert store.import_labels(batch, drafts).stored == len(drafts)


def settle(store: Store, traces: tuple[str, ...], by: str = "lea") -> None:
    for trace in traces:
        store.adjudicate(trace_id=trace, answers=COMPLETE, adjudicator=by)


def age(store: Store, batch: str, days: float) -> None:
    """Make everything in a batch older."""
    with store._db.write() as cursor:
        for table, column in (("label_event", "created_at"), ("lease", "expires_at")):
            cursor.execute(
                f"UPDATE {table} SET {column} = {column} - to_minutes(?) WHERE batch_id = ?",
                [int(1440 * days), batch],
            )


def make_world(path: Path, *, days: float = 8, settled: int = N_GOLD) -> World:
    store = empty_store(path)
    traces = store.ingest([make_trace(k) for k in range(N_GOLD + N_OWN + N_NEW)]).imported
    for name in ("Ann", "Bob", "Cy"):
        store.add_reviewer(name)
    store.add_reviewer("Lea", role="lead")
    parts = traces[:N_GOLD], traces[N_GOLD : N_GOLD + N_OWN], traces[N_GOLD + N_OWN :]
    gold, own, new = (
        store.add_batch(purpose="production", trace_ids=part, labels_wanted=wanted).batch_id
        for part, wanted in zip(parts, (2, 1, 1), strict=True)
    )
    label_all(store, gold, parts[0], "bob", "cy")
    settle(store, parts[0][:settled])
    label_all(store, own, parts[1], "ann")
    age(store, own, days)
    desk = Desk(store=store, batch=new, traces=parts[2])
    return World(store, *parts, gold_batch=gold, own_batch=own, desk=desk)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put something in at every second slot or so."""
    monkeypatch.setattr(inserts, "GOLD_RATE", 0.25)
    monkeypatch.setattr(inserts, "REPEAT_RATE", 0.25)


@pytest.fixture(scope="module")
def first_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return a world that is closed again: the others are copies of its files."""
    made = make_world(tmp_path_factory.mktemp("world") / "world.duckdb")
    made.store.close()
    return made


@pytest.fixture
def world(first_world: World, tmp_path: Path, often: None) -> Iterator[World]:
    source = first_world.store.path
    shutil.copytree(source.parent, tmp_path, dirs_exist_ok=True)
    with Store.open(tmp_path / source.name) as store:
        desk = replace(first_world.desk, store=store)
        yield replace(first_world, store=store, desk=desk)


def served(world: World, kind: str, reviewer: str = "ann") -> set[str]:
    world.work(reviewer)
    return {trace for trace, of in world.put_in(reviewer).items() if of == kind}


@pytest.mark.long
def test_gold_and_repeats_come_between_the_traces(world: World) -> None:
    order = world.work()
    put_in = world.put_in()
    assert {trace for trace, kind in put_in.items() if kind == "gold"} <= set(world.gold)
    assert {trace for trace, kind in put_in.items() if kind == "repeat"} <= set(world.own)
    assert {"gold", "repeat"} == set(put_in.values())
    assert [t for t in order if t not in put_in] == list(world.new)
    assert len(order) == len(set(order)) == N_NEW + len(put_in)
    slots = dict(query(world.store, "SELECT trace_id, slot FROM inserted"))
    assert slots == {t: place for place, t in enumerate(order) if t in put_in}
    assert order[-1] == world.new[-1]  # an insert stands before a trace, never alone at the end


@pytest.mark.long
def test_the_same_store_puts_the_same_in_at_the_same_slots(tmp_path: Path, often: None) -> None:
    orders = []
    for k in range(2):
        made = make_world(tmp_path / f"{k}.duckdb")
        with made.store._db.write() as cursor:
            cursor.execute(
                "INSERT INTO setting (name, value, created_at) "
                "VALUES ('insert_secret', '\"one\"', now()::TIMESTAMP)"
            )
        orders.append(made.work())
        made.store.close()
    assert orders[0] == orders[1]


def test_two_of_one_answer_are_two_traces(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the draw: the first of the pool is picked each time, at every slot."""
    monkeypatch.setattr(inserts, "GOLD_RATE", 1.0)
    monkeypatch.setattr(inserts, "REPEAT_RATE", 0.0)
    monkeypatch.setattr(inserted, "pick", lambda *args: min(args[-1], default=None))
    given = world.desk.queue("ann")
    assert len(given) == len(set(given)) == 3
    assert set(given) <= set(world.gold)


def test_another_secret_puts_in_at_other_slots() -> None:
    one, two = (inserts.draws(secret, "b", "ann", 400) < 0.05 for secret in "ab")
    assert one.any()
    assert (one != two).any()


def test_rates_are_five_in_a_hundred_each() -> None:
    numbers = inserts.draws("secret", "batch", "ann", 40_000)
    pool = {("gold", "w"): 30, ("repeat", "w"): 1}
    kinds = [inserts.kind_at(n, "w", pool) for n in numbers.tolist()]
    assert np.isclose(kinds.count("gold") / 40_000, 0.05, atol=0.004)
    assert np.isclose(kinds.count("repeat") / 40_000, 0.05, atol=0.004)
    half = [inserts.kind_at(n, "w", {("gold", "w"): 15}) for n in numbers.tolist()]
    assert np.isclose(half.count("gold") / 40_000, 0.025, atol=0.003)
    assert "repeat" not in half


@pytest.mark.parametrize(("pool", "rate"), [(0, 0), (3, 0.005), (29, 0.05 * 29 / 30), (31, 0.05)])
def test_a_small_pool_gives_less_gold(pool: int, rate: float) -> None:
    assert inserts.gold_rate(pool) == pytest.approx(rate)


def test_nothing_to_put_in_puts_nothing_in(tmp_path: Path, often: None) -> None:
    made = make_world(tmp_path / "none.duckdb", days=0, settled=0)
    assert made.work() == list(made.new)
    assert made.store.queue("ann", made.desk.batch).total == N_NEW
    made.store.close()


@pytest.mark.long
@pytest.mark.parametrize("purpose", ["practice", "exam", "repeat", "adjudication"])
def test_only_production_batches_have_inserts(world: World, purpose: str) -> None:
    other = world.store.add_batch(purpose=purpose, trace_ids=world.new, labels_wanted=1)
    world.desk = replace(world.desk, batch=other.batch_id)
    assert world.work() == list(world.new)


# What may be gold.


@pytest.mark.long
def test_gold_needs_a_consensus(tmp_path: Path, often: None) -> None:
    made = make_world(tmp_path / "some.duckdb", settled=12)
    assert served(made, "gold") <= set(made.gold[:12])
    made.store.close()


@pytest.mark.long
def test_gold_needs_labels_of_two_reviewers(world: World) -> None:
    alone = world.store.add_batch(
        purpose="production", trace_ids=world.new[:20], labels_wanted=1
    ).batch_id
    label_all(world.store, alone, world.new[:20], "bob")
    settle(world.store, world.new[:20])
    rest = world.store.add_batch(
        purpose="production", trace_ids=world.new[20:], labels_wanted=1
    ).batch_id
    world.desk = replace(world.desk, batch=rest)
    assert served(world, "gold").isdisjoint(world.new[:20])


@pytest.mark.long
def test_a_withdrawn_consensus_is_no_gold(world: World) -> None:
    with world.store._db.write() as cursor:
        cursor.execute(
            "INSERT INTO adjudication_event (seq, client_token, kind, trace_id, taxonomy_version, "
            "adjudicator, simulated, created_at) SELECT nextval('event_seq'), 'w' || trace_id, "
            "'withdrawal', trace_id, taxonomy_version, adjudicator, simulated, created_at "
            "FROM adjudication_event"
        )
    assert served(world, "gold") == set()


def test_gold_is_of_the_workflow_of_its_batch(world: World) -> None:
    others = [make_trace(500 + k, workflow="other") for k in range(30)]
    traces = world.store.ingest(others).imported
    batch = world.store.add_batch(purpose="production", trace_ids=traces, labels_wanted=1)
    world.desk = replace(world.desk, batch=batch.batch_id)
    assert world.work() == list(traces)


@pytest.mark.long
def test_an_own_label_in_any_batch_is_no_gold(world: World) -> None:
    practice = world.store.add_batch(purpose="practice", trace_ids=world.gold[:30])
    label_all(world.store, practice.batch_id, world.gold[:30], "ann")
    assert served(world, "gold") <= set(world.gold[30:])
    assert served(world, "gold")


@pytest.mark.long
@pytest.mark.parametrize("what", ["labels", "verdicts", "canonical"])
def test_what_was_shown_is_no_gold(world: World, what: str) -> None:
    world.store.record_exposure("ann", world.gold[:30], what)
    assert served(world, "gold") <= set(world.gold[30:])


def test_what_was_given_or_flagged_before_is_no_gold(world: World) -> None:
    seen = world.store.add_batch(purpose="exam", trace_ids=world.gold[:30])
    desk = replace(world.desk, batch=seen.batch_id)
    given = desk.queue("ann", limit=30)
    assert served(world, "gold").isdisjoint(given)


def test_the_adjudicator_has_seen_the_trace(world: World) -> None:
    assert served(world, "gold", "lea") == set()
    assert served(world, "gold", "ann") == set()  # Lea has labelled the batch


def test_a_trace_that_may_still_come_is_not_put_in(world: World) -> None:
    world.store.add_batch(purpose="production", trace_ids=world.gold[:30], labels_wanted=3)
    world.store.add_batch(purpose="production", trace_ids=world.own[:30], labels_wanted=1)
    world.work()
    put_in = set(world.put_in())
    assert put_in.isdisjoint(world.gold[:30])
    assert put_in.isdisjoint(world.own[:30])
    assert put_in


@pytest.mark.long
def test_gold_comes_once_to_a_reviewer(world: World) -> None:
    first = served(world, "gold")
    again = world.store.add_batch(purpose="production", trace_ids=world.new, labels_wanted=2)
    world.desk = replace(world.desk, batch=again.batch_id)
    assert served(world, "gold").isdisjoint(first)


# What may be a repeat.


@pytest.mark.long
@pytest.mark.parametrize(("days", "some"), [(6.99, False), (7.01, True)])
def test_repeats_are_seven_days_old(tmp_path: Path, often: None, days: float, some: bool) -> None:
    made = make_world(tmp_path / "days.duckdb", days=days)
    assert bool(served(made, "repeat")) is some
    made.store.close()


def test_a_repeat_is_an_own_label(world: World) -> None:
    assert served(world, "repeat", "bob") == set()


@pytest.mark.long
def test_a_repeat_comes_once(world: World) -> None:
    first = served(world, "repeat")
    again = world.store.add_batch(purpose="production", trace_ids=world.new, labels_wanted=2)
    world.desk = replace(world.desk, batch=again.batch_id)
    assert first
    assert served(world, "repeat", "ann").isdisjoint(first)


@pytest.mark.long
def test_what_was_seen_since_is_no_repeat(world: World) -> None:
    world.store.record_exposure("ann", world.own[:30], "labels")
    assert served(world, "repeat") <= set(world.own[30:])


@pytest.mark.long
def test_what_was_flagged_is_no_repeat(world: World) -> None:
    desk = replace(world.desk, batch=world.own_batch)
    with world.store._db.write() as cursor:
        cursor.execute(
            "INSERT INTO lease SELECT ?, unnest(?::VARCHAR[]), 'ann', now()::TIMESTAMP "
            "- INTERVAL 9 DAY", [desk.batch, list(world.own[:30])],
        )  # fmt: skip
    for trace in world.own[:30]:
        for flagged in (True, False):
            world.store.record_flag(
                client_token=token(), trace_id=trace, reviewer_id="ann", batch_id=desk.batch,
                flagged=flagged,
            )  # fmt: skip
    assert served(world, "repeat") <= set(world.own[30:])


@pytest.mark.long
def test_a_label_taken_back_is_no_repeat(world: World) -> None:
    desk = replace(world.desk, batch=world.own_batch)
    for _ in range(10):
        desk.undo("ann")
    assert served(world, "repeat") <= set(world.own[:30])


# What the reviewer sees.


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


def first_insert(world: World) -> str:
    """Label up to the first insert and return it."""
    while (given := world.desk.queue()[0]) not in world.put_in():
        world.desk.label(given)
    return given


def test_every_call_of_the_desk_takes_an_insert_for_a_trace_of_the_batch(world: World) -> None:
    trace, batch, store = first_insert(world), world.desk.batch, world.store
    store.save_draft(
        reviewer_id="ann", trace_id=trace, batch_id=batch, draft=Draft(answers={"output": "no"})
    )
    assert store.queue("ann", batch).drafts[trace].answers == {"output": "no"}
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
    assert store.own_labels("ann", batch)[0].trace_id == trace
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
    last = next(t for t in reversed(world.store.own_labels("ann", world.desk.batch))
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
        world.store.save_draft(
            reviewer_id="ann", trace_id=trace, batch_id=hidden, draft=Draft(answers={})
        )


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
    mine = [label for label in world.store.own_labels("ann", world.desk.batch)
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


# What leads see, and what no number sees.


@pytest.mark.long
def test_the_frame_says_what_was_given_against_what(world: World) -> None:
    world.work(answers=ABANDONED)
    frame = world.frame()
    assert len(frame) == len(world.put_in())
    assert set(frame["kind"]) == {"gold", "repeat"}
    assert set(frame["against"]) == {"complete"}
    assert set(frame["given"]) == {"abandoned"}
    assert frame["blind"].all()
    assert set(frame["week"]) == {utc_now().strftime("%G-W%V")}
    world.store.record_exposure("ann", [frame["trace_id"].iloc[0]], "labels")
    assert world.frame()["blind"].all()  # shown after the label


def test_what_was_shown_between_serving_and_labelling_is_not_blind(world: World) -> None:
    trace = first_insert(world)
    world.store.record_exposure("ann", [trace], "labels")
    world.desk.label(trace)
    assert not world.frame().set_index("trace_id").loc[trace, "blind"]


@pytest.mark.long
def test_later_events_do_not_move_what_an_insert_is_held_against(world: World) -> None:
    world.work()
    settled = [t for t, kind in world.put_in().items() if kind == "gold"]
    for trace in settled:
        world.store.adjudicate(trace_id=trace, answers=ABANDONED, adjudicator="lea")
    assert set(world.frame()["against"]) == {"complete"}


def test_pools_say_what_could_be_put_in(world: World) -> None:
    rows = world.store.insert_pools(world.desk.batch).to_dict("records")
    found = {row["reviewer_id"]: row for row in rows}
    assert (found["ann"]["gold"], found["ann"]["repeats"]) == (N_GOLD, N_OWN)
    assert (found["lea"]["gold"], found["lea"]["repeats"]) == (0, 0)
    first = found["ann"]["repeats_from"].to_pydatetime()
    assert abs(first - (utc_now() - timedelta(days=1))) < timedelta(minutes=5)


@pytest.mark.long
def test_no_frame_of_any_batch_holds_what_was_put_in(world: World) -> None:
    batches = [world.gold_batch, world.own_batch, world.desk.batch]
    before = [world.store.label_frame(batch) for batch in batches[:2]]
    world.work(answers=ABANDONED)
    for batch, frame in zip(batches[:2], before, strict=True):
        assert world.store.label_frame(batch).equals(frame)
    assert sorted(world.store.label_frame(world.desk.batch)["trace_id"]) == sorted(world.new)
    assert world.store.flag_frame(world.desk.batch).empty
    assert world.store.lease_frame(world.desk.batch).empty
    assert [b.batch_id for b in world.store.batches()] == batches[::-1]
