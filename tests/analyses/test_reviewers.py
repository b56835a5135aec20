"""How each reviewer agrees with the others over all production batches, worked by hand."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from calibration.analyses.agreement.analysis import agreement_with_others, analyse_agreement
from tests.analyses.worlds import World, make_world

C, A = "complete", "abandoned"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path / "s.duckdb", n=12, n_drawn=6)
    yield made
    made.store.close()


def test_it_is_the_share_of_the_others_who_say_the_same(world: World) -> None:
    one, two, three, *_ = world.drawn
    world.label("Ann", {one: C, two: C, three: C})
    world.label("Ben", {one: C, two: A, three: C})
    world.label("Cy", {one: A, two: C})
    found = agreement_with_others(world.store)
    # Ann: one 1/2, two 1/2, three 1. Ben: 1/2, 0, 1. Cy: 0, 1/2.
    assert found["ann"].value == pytest.approx(2 / 3)
    assert found["ben"].value == pytest.approx(1 / 2)
    assert found["cy"].value == pytest.approx(1 / 4)
    assert [found[who].n for who in ("ann", "ben", "cy")] == [3, 3, 2]


def test_one_batch_gives_what_the_agreement_page_gives(world: World) -> None:
    world.label("Ann", dict.fromkeys(world.drawn, C))
    world.label("Ben", dict.fromkeys(world.drawn[:4], C) | {world.drawn[4]: A})
    found = agreement_with_others(world.store)
    (ann, ben) = analyse_agreement(world.store).profiles
    assert found["ann"] == ann.beside.agreement_with_others
    assert found["ben"] == ben.beside.agreement_with_others


def test_batches_count_together_and_a_trace_once(world: World) -> None:
    more = world.store.add_batch(
        purpose="production", trace_ids=[world.drawn[0], "r000"], labels_wanted=2
    )
    again = World(world.store, more.batch_id, (world.drawn[0], "r000"))
    for who in ("Ann", "Ben"):
        world.label(who, {world.drawn[0]: C, world.drawn[1]: C})
    again.label("Ann", {world.drawn[0]: A, "r000": A})
    again.label("Ben", {world.drawn[0]: C, "r000": C})
    found = agreement_with_others(world.store)["ann"]
    n = len({world.drawn[0], world.drawn[1], "r000"})
    assert found.value == pytest.approx(2 / 3)
    assert found.n == n


def test_the_demo_and_people_are_not_mixed(world: World) -> None:
    world.label("Ann", {world.drawn[0]: C})
    world.label("Bot", {world.drawn[0]: C}, simulated=True)
    found = agreement_with_others(world.store)
    assert "shared no item" in found["ann"].status
    assert "shared no item" in found["bot"].status


def test_without_labels_there_is_nobody(world: World) -> None:
    assert agreement_with_others(world.store) == {}
