from datetime import timedelta

import pytest

from calibration.analyses.reviewers.progress import batch_progress, batch_results
from calibration.records import LabelDraft
from calibration.reporting.sections.plans import enough
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, known


def label(world: World, reviewer: str, trace_id: str, outcome: str, seconds: float | None) -> None:
    person = world.store.add_reviewer(reviewer).reviewer_id
    world.store.queue(person, world.batch_id, limit=len(world.drawn))
    draft = LabelDraft(
        client_token=f"{reviewer}-{trace_id}", trace_id=trace_id, reviewer_id=person,
        batch_id=world.batch_id, answers=world.store.taxonomy().answers_for(outcome),
        seconds_active=seconds,
    )  # fmt: skip
    world.store.record_label(draft)


def test_what_is_left_is_counted_to_the_wanted_number(new_world: NewWorld) -> None:
    world = new_world()
    one, two, three, *_ = world.drawn
    label(world, "Ann", one, "complete", 60)
    label(world, "Ann", two, "abandoned", 120)
    label(world, "Bob", one, "complete", 90)
    world.skip("Ann", three)
    progress = batch_progress(world.store, world.batch_id)
    # Six traces want two labels each: one has both, one has one, four have none.
    assert (progress.n_items, progress.items_open, progress.labels) == (6, 5, 3)
    assert progress.labels_left == 9
    # The median of 60, 90 and 120 s.
    assert progress.seconds_per_label == 90
    assert progress.hours_left == pytest.approx(9 * 90 / 3600)
    ann, bob = progress.reviewers
    assert (ann.reviewer_id, ann.labels, ann.skips, ann.median_seconds) == ("ann", 2, 1, 90)
    assert (bob.labels, bob.skips, bob.median_seconds) == (1, 0, 90)
    # Ann decided three of the six she was given, Bob one.
    assert (ann.holds, bob.holds) == (3, 5)
    assert ann.last_active is not None
    assert [(s.trace_id, s.reason) for s in progress.skips] == [(three, "cannot tell")]
    assert progress.flags == ()
    assert len(progress.leases) == 8
    # A label that is undone is left again; days are counted apart.
    world.store.record_undo(client_token="undo", reviewer_id="bob", batch_id=world.batch_id)
    with world.store._db.write() as cursor:
        earlier = "UPDATE label_event SET created_at = created_at - INTERVAL 3 DAY"
        cursor.execute(f"{earlier} WHERE trace_id = ?", [two])
    progress = batch_progress(world.store, world.batch_id)
    assert (progress.labels, progress.labels_left) == (2, 10)
    (early, one_day), (late, other) = progress.days
    assert (one_day, other, late - early) == (1, 1, timedelta(days=3))


def test_labels_beyond_the_wanted_number_leave_no_debt(new_world: NewWorld) -> None:
    world = new_world(n_drawn=2)
    for reviewer in ("Ann", "Bob", "Cy"):
        world.label(reviewer, {world.drawn[0]: "complete"})
    progress = batch_progress(world.store, world.batch_id)
    assert (progress.items_open, progress.labels_left) == (1, 2)
    assert progress.seconds_per_label is progress.hours_left is None


def test_an_untouched_batch_has_no_results_and_says_so(new_world: NewWorld) -> None:
    world = new_world()
    progress = batch_progress(world.store, world.batch_id)
    assert (progress.reviewers, progress.days, progress.leases) == ((), (), ())
    results = batch_results(world.store, world.batch_id)
    assert "nobody has labelled this batch yet" in results.alpha.status
    assert "nobody has labelled this batch yet" in enough(results)


def test_further_labels_start_from_the_interval_there_is(new_world: NewWorld) -> None:
    world = new_world(n=400, n_drawn=100)
    outcomes = {t: ("complete", "abandoned")[k % 2] for k, t in enumerate(world.drawn[:60])}
    world.label("Ann", outcomes)
    results = batch_results(world.store, world.batch_id)
    now = known(results.headline.half_width)
    # A quarter, a half and as many again, in tens, and the 40 that are left of the batch.
    assert [step.more for step in results.further] == [20, 30, 40, 60]
    widths = [step.half_width for step in results.further]
    assert sorted(widths, reverse=True) == widths
    # Twice the labels, half the variance; t has a little less to add.
    assert widths[-1] == pytest.approx(now / 2**0.5, rel=0.02)
    assert enough(results).startswith(f"now ±{100 * now:.1f} points; 20 more give")
    # More than production holds is never promised.
    world = new_world(n=12, n_drawn=12)
    world.label("Ann", {t: ("complete", "abandoned")[k % 2] for k, t in enumerate(world.drawn)})
    results = batch_results(world.store, world.batch_id)
    assert results.further == ()
    assert "every trace is labelled" in enough(results)
