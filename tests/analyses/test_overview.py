from datetime import timedelta

import pytest

from calibration.analyses.reviewers.progress import batch_progress, batch_results
from calibration.records import LabelDraft
from calibration.reporting.sections.plans import enough
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World


def label(world: World, reviewer: str, trace_id: str, outcome: str, seconds: float | None) -> None:
    person = world.store.add_reviewer(reviewer).reviewer_id
    world.store.queue(person, world.batch_id, limit=len(world.drawn))
    world.store.record_label(
        LabelDraft(
            client_token=f"{reviewer}-{trace_id}",
            trace_id=trace_id,
            reviewer_id=person,
            batch_id=world.batch_id,
            answers=world.store.taxonomy().answers_for(outcome),
            seconds_active=seconds,
        )
    )


def test_flags_that_stand_are_listed_with_their_reasons(new_world: NewWorld) -> None:
    world = new_world()
    one, two, three, *_ = world.drawn
    label(world, "Ann", one, "complete", 60)
    for trace_id, flagged, reason in (
        (one, True, "odd rule"),
        (two, True, None),
        (three, True, "a slip"),
        (three, False, None),
    ):
        world.store.record_flag(
            client_token=f"flag-{trace_id}-{flagged}",
            trace_id=trace_id,
            reviewer_id="ann",
            batch_id=world.batch_id,
            flagged=flagged,
            reason=reason,
        )
    flags = batch_progress(world.store, world.batch_id).flags
    assert [(f.trace_id, f.reviewer_id, f.reason) for f in flags] == [
        (one, "ann", "odd rule"),
        (two, "ann", ""),
    ]


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
    assert sum(count for _, count in progress.days) == 3
    assert len(progress.leases) == 8


def test_an_undone_label_is_left_again(new_world: NewWorld) -> None:
    world = new_world()
    label(world, "Ann", world.drawn[0], "complete", 60)
    world.store.record_undo(client_token="undo", reviewer_id="ann", batch_id=world.batch_id)
    progress = batch_progress(world.store, world.batch_id)
    assert (progress.labels, progress.labels_left, progress.days) == (0, 12, ())


def test_labels_beyond_the_wanted_number_leave_no_debt(new_world: NewWorld) -> None:
    world = new_world(n_drawn=2)
    for reviewer in ("Ann", "Bob", "Cy"):
        world.label(reviewer, {world.drawn[0]: "complete"})
    progress = batch_progress(world.store, world.batch_id)
    assert (progress.items_open, progress.labels_left) == (1, 2)


def test_labels_without_a_time_leave_the_hours_unknown(new_world: NewWorld) -> None:
    world = new_world()
    label(world, "Ann", world.drawn[0], "complete", None)
    progress = batch_progress(world.store, world.batch_id)
    assert progress.seconds_per_label is None
    assert progress.hours_left is None


def test_an_untouched_batch_has_no_results_and_says_so(new_world: NewWorld) -> None:
    world = new_world()
    progress = batch_progress(world.store, world.batch_id)
    assert (progress.reviewers, progress.days, progress.leases) == ((), (), ())
    results = batch_results(world.store, world.batch_id)
    assert "nobody has labelled this batch yet" in results.alpha.status
    assert "nobody has labelled this batch yet" in enough(results)


def test_too_few_to_agree_on_is_said(new_world: NewWorld) -> None:
    world = new_world()
    world.label("Ann", dict.fromkeys(world.drawn[:3], "complete"))
    results = batch_results(world.store, world.batch_id)
    assert results.alpha.value is None
    assert results.alpha.status.startswith("not_estimable")


def test_further_labels_start_from_the_interval_there_is(new_world: NewWorld) -> None:
    world = new_world(n=400, n_drawn=100)
    outcomes = {t: ("complete", "abandoned")[k % 2] for k, t in enumerate(world.drawn[:60])}
    world.label("Ann", outcomes)
    results = batch_results(world.store, world.batch_id)
    now = results.headline.half_width
    assert now is not None
    # A quarter, a half and as many again, in tens, and the 40 that are left of the batch.
    assert [step.more for step in results.further] == [20, 30, 40, 60]
    widths = [step.half_width for step in results.further]
    assert sorted(widths, reverse=True) == widths
    # Twice the labels, half the variance; t has a little less to add.
    assert widths[-1] == pytest.approx(now / 2**0.5, rel=0.02)
    assert enough(results).startswith(f"now ±{now:.3f}".replace("±0.", "±."))


def test_more_than_production_holds_is_never_promised(new_world: NewWorld) -> None:
    world = new_world(n=12, n_drawn=12)
    world.label("Ann", {t: ("complete", "abandoned")[k % 2] for k, t in enumerate(world.drawn)})
    results = batch_results(world.store, world.batch_id)
    assert results.further == ()
    assert "every trace is labelled" in enough(results)


def test_days_are_counted_apart(new_world: NewWorld) -> None:
    world = new_world()
    for trace_id in world.drawn[:3]:
        label(world, "Ann", trace_id, "complete", 60)
    with world.store._db.write() as cursor:
        cursor.execute(
            "UPDATE label_event SET created_at = created_at - INTERVAL 3 DAY WHERE trace_id = ?",
            [world.drawn[0]],
        )
    (early, one), (late, two) = batch_progress(world.store, world.batch_id).days
    assert (one, two) == (1, 2)
    assert late - early == timedelta(days=3)
