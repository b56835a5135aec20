"""Which traces may be gold, and which may be a repeat."""

from dataclasses import replace

from calibration.store.database import utc_now
from calibration.store.leases import Seat
from calibration.store.queue import candidates
from tests.store.builders import Desk, make_trace, token
from tests.store.inserts import World, age, label_all, settle


def may_be(world: World, kind: str, reviewer: str = "ann") -> set[str]:
    seat = Seat(reviewer, world.desk.batch, world.store.taxonomy().version)
    with world.store._db.read() as cursor:
        found = candidates(cursor, kind, seat, ["research"], utc_now())
    return {row["trace_id"] for row in found}


def batch_of(world: World, purpose: str, traces: tuple[str, ...], wanted: int = 1) -> Desk:
    batch = world.store.add_batch(purpose=purpose, trace_ids=traces, labels_wanted=wanted)
    return replace(world.desk, batch=batch.batch_id)


def test_gold_is_a_standing_consensus_that_is_new_to_the_reviewer(world: World) -> None:
    store, left = world.store, world.gold
    assert may_be(world, "gold") == set(left)
    assert may_be(world, "gold", "lea") == set()  # she has adjudicated them
    for trace in left[:5]:
        store.withdraw_consensus(client_token=token(), trace_id=trace, adjudicator="lea")
    label_all(store, batch_of(world, "practice", left[5:10]).batch, left[5:10], "ann")
    for k, what in enumerate(("labels", "verdicts", "canonical")):
        store.record_exposure("ann", left[10 + 5 * k : 15 + 5 * k], what)
    assert may_be(world, "gold") == set(left[25:])
    assert len(batch_of(world, "exam", left[25:30]).queue(limit=5)) == 5  # given, not labelled
    assert may_be(world, "gold") == set(left[30:])
    batch_of(world, "production", left[30:35], 3)  # may still come
    assert may_be(world, "gold") == set(left[35:])


def test_gold_needs_a_consensus_and_labels_of_two_reviewers(world: World) -> None:
    settle(world.store, world.own[:5])  # Ann's labels alone
    assert may_be(world, "gold", "bob") == set()
    label_all(world.store, world.own_batch, world.own[:10], "cy")
    assert may_be(world, "gold", "bob") == set(world.own[:5])


def test_gold_is_of_the_workflow_of_its_batch(world: World) -> None:
    others = [make_trace(500 + k, workflow="other") for k in range(30)]
    traces = world.store.ingest(others).imported
    world.desk = batch_of(world, "production", traces)
    assert world.work() == list(traces)


def test_a_repeat_is_an_own_label_of_seven_days_ago_untouched_since(world: World) -> None:
    store, own, first = world.store, world.own, replace(world.desk, batch=world.own_batch)
    assert may_be(world, "repeat", "lea") == set()
    age(store, world.own_batch, -1.01)  # 6.99 days old
    assert may_be(world, "repeat") == set()
    age(store, world.own_batch, 0.02)
    assert may_be(world, "repeat") == set(own)
    store.record_exposure("ann", own[:5], "labels")
    with store._db.write() as cursor:
        cursor.execute(
            "INSERT INTO lease SELECT ?, unnest(?::VARCHAR[]), 'ann', now()::TIMESTAMP "
            "- INTERVAL 9 DAY", [first.batch, list(own[5:10])],
        )  # fmt: skip
    for trace in own[5:10]:
        for flagged in (True, False):
            first.flag(trace, flagged=flagged)
    for _ in range(5):
        first.undo()
    assert may_be(world, "repeat") == set(own[10:35])
    assert len(batch_of(world, "exam", own[10:15]).queue(limit=5)) == 5
    assert may_be(world, "repeat") == set(own[15:35])
    batch_of(world, "production", own[15:20])
    assert may_be(world, "repeat") == set(own[20:35])
