"""Which traces may be gold, and which may be a repeat."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.builders import make_trace, token
from tests.store.inserts import (
    World,
    first_world,
    label_all,
    make_world,
    often,
    served,
    settle,
    world,
)

__all__ = ["first_world", "often", "world"]


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


def test_what_was_given_before_or_may_still_come_is_not_put_in(world: World) -> None:
    seen = world.store.add_batch(purpose="exam", trace_ids=world.gold[:15])
    given = replace(world.desk, batch=seen.batch_id).queue("ann", limit=15)
    assert len(given) == 15
    world.store.add_batch(purpose="production", trace_ids=world.gold[15:30], labels_wanted=3)
    world.store.add_batch(purpose="production", trace_ids=world.own[:30], labels_wanted=1)
    world.work()
    put_in = set(world.put_in())
    assert put_in.isdisjoint(world.gold[:30])
    assert put_in.isdisjoint(world.own[:30])
    assert put_in


def test_the_adjudicator_has_seen_the_gold_and_a_repeat_is_an_own_label(world: World) -> None:
    world.work("lea")
    assert world.put_in("lea") == {}


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
