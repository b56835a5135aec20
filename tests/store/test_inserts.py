"""Gold and repeats: how often, in which batches, what leads see, what no number sees."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from calibration.store import queue
from calibration.store.database import utc_now
from tests.store.builders import ABANDONED, query
from tests.store.inserts import N_GOLD, N_NEW, N_OWN, World, first_insert, make_world


@pytest.mark.long
def test_gold_and_repeats_come_between_the_traces_and_once(world: World) -> None:
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
    again = world.store.add_batch(purpose="production", trace_ids=world.new, labels_wanted=2)
    world.desk = replace(world.desk, batch=again.batch_id)
    world.work()
    assert world.put_in()
    assert world.put_in().keys().isdisjoint(put_in)


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
    monkeypatch.setattr(queue, "GOLD_RATE", 1.0)
    monkeypatch.setattr(queue, "REPEAT_RATE", 0.0)
    monkeypatch.setattr(queue, "pick", lambda *args: min(args[-1], default=None))
    given = world.desk.queue("ann")
    assert len(given) == len(set(given)) == 3
    assert set(given) <= set(world.gold)


def test_another_secret_puts_in_at_other_slots() -> None:
    one, two = (queue.draws(secret, "b", "ann", 400) < 0.05 for secret in "ab")
    assert one.any()
    assert (one != two).any()


def test_rates_are_five_in_a_hundred_each() -> None:
    numbers = queue.draws("secret", "batch", "ann", 40_000)
    pool = {("gold", "w"): 30, ("repeat", "w"): 1}
    kinds = [queue.kind_at(n, "w", pool) for n in numbers.tolist()]
    assert np.isclose(kinds.count("gold") / 40_000, 0.05, atol=0.004)
    assert np.isclose(kinds.count("repeat") / 40_000, 0.05, atol=0.004)
    half = [queue.kind_at(n, "w", {("gold", "w"): 15}) for n in numbers.tolist()]
    assert np.isclose(half.count("gold") / 40_000, 0.025, atol=0.003)
    assert "repeat" not in half


@pytest.mark.parametrize(("pool", "rate"), [(0, 0), (3, 0.005), (29, 0.05 * 29 / 30), (31, 0.05)])
def test_a_small_pool_gives_less_gold(pool: int, rate: float) -> None:
    assert queue.gold_rate(pool) == pytest.approx(rate)


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


# What leads see, and what no number sees.


@pytest.mark.long
def test_what_was_put_in_stands_in_its_own_frame_and_in_no_other(world: World) -> None:
    batches = [world.gold_batch, world.own_batch, world.desk.batch]
    before = [world.store.label_frame(batch) for batch in batches[:2]]
    world.work(answers=ABANDONED)
    put_in = world.put_in()
    for trace in (trace for trace, kind in put_in.items() if kind == "gold"):
        # What comes later does not move what an insert is held against.
        world.store.adjudicate(trace_id=trace, answers=ABANDONED, adjudicator="lea")
    world.store.record_exposure("ann", list(put_in), "labels")  # shown after the label
    frame = world.frame()
    assert dict(zip(frame["trace_id"], frame["kind"], strict=True)) == put_in
    assert set(frame["against"]) == {"complete"}
    assert set(frame["given"]) == {"abandoned"}
    assert frame["blind"].all()
    assert set(frame["week"]) == {utc_now().strftime("%G-W%V")}
    for batch, old in zip(batches[:2], before, strict=True):
        assert world.store.label_frame(batch).equals(old)
    assert sorted(world.store.label_frame(world.desk.batch)["trace_id"]) == sorted(world.new)
    assert world.store.flag_frame(world.desk.batch).empty
    assert world.store.lease_frame(world.desk.batch).empty
    assert [b.batch_id for b in world.store.batches()] == batches[::-1]
    more = world.store.add_batch(purpose="production", trace_ids=world.new[:3])
    assert more.batch_id == "production-004"  # numbered as if there were no inserts


def test_what_was_shown_between_serving_and_labelling_is_not_blind(world: World) -> None:
    trace = first_insert(world)
    world.store.record_exposure("ann", [trace], "labels")
    world.desk.label(trace)
    assert not world.frame().set_index("trace_id").loc[trace, "blind"]


def test_pools_say_what_could_be_put_in(world: World) -> None:
    rows = world.store.hidden_item_pools(world.desk.batch).to_dict("records")
    found = {row["reviewer_id"]: row for row in rows}
    assert (found["ann"]["gold"], found["ann"]["repeats"]) == (N_GOLD, N_OWN)
    assert (found["lea"]["gold"], found["lea"]["repeats"]) == (0, 0)
    first = found["ann"]["repeats_from"].to_pydatetime()
    assert abs(first - (utc_now() - timedelta(days=1))) < timedelta(minutes=5)
