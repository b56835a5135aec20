import numpy as np
import pytest
from scipy import stats

from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.analyses.sampling.planning import plan_batch
from calibration.errors import CalibrationError, InputError, MixedDataError
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, known


@pytest.fixture
def half(new_world: NewWorld) -> World:
    """Return 200 traces, of which 60 are labelled and every second label is a success."""
    world = new_world(n=200, n_drawn=60)
    world.label("Ann", {t: ("complete", "abandoned")[k % 2] for k, t in enumerate(world.drawn)})
    return world


def around_a_half(se: float) -> float:
    """Return the half-width of 100 labels around 1/2, where the logit is 0 and se there 4 se."""
    return float(1 / (1 + np.exp(-stats.t.ppf(0.975, 99) * 4 * se)) - 0.5)


def test_without_labels_the_worst_case_is_planned_and_said(new_world: NewWorld) -> None:
    plan = plan_batch(new_world(n=120).store, n=100)
    assert plan.human_only == pytest.approx(around_a_half(0.5 / 10))
    assert (plan.n_basis, plan.basis, plan.hours) == (0, None, None)
    assert any("the worst case is assumed" in note for note in plan.notes)
    assert any("the hours are not known" in note for note in plan.notes)
    assert any("no judge has verdicts" in note for note in plan.notes)
    assert plan.corrected is None


def test_the_spread_of_the_labels_there_are_is_used(half: World) -> None:
    plan = plan_batch(half.store, n=100)
    # Half of 60 scores are 1: variance 0.25 x 60 / 59.
    assert plan.human_only == pytest.approx(around_a_half((0.25 * 60 / 59 / 100) ** 0.5))
    assert (plan.basis, plan.n_basis) == (half.batch_id, 60)


def test_a_judge_that_is_right_narrows_the_corrected_rate(half: World) -> None:
    human = {t: ("complete", "abandoned")[k % 2] for k, t in enumerate(half.drawn)}
    half.judge({t: human.get(t, "complete") for t in ids(200)})
    plan = plan_batch(half.store, n=100)
    assert plan.judge_id == "judge-1"
    assert known(plan.corrected) < plan.human_only / 1.4


def test_a_judge_before_any_label_is_assumed_to_tell_nothing(new_world: NewWorld) -> None:
    world = new_world(n=120)
    world.judge({t: ("complete", "abandoned")[k % 2] for k, t in enumerate(ids(120))})
    plan = plan_batch(world.store, n=100)
    assert plan.corrected == pytest.approx(plan.human_only, rel=0.08)
    assert any("the judge is assumed to add nothing" in note for note in plan.notes)


def test_the_overlap_decides_how_many_labels_are_made(half: World) -> None:
    plans = [
        plan_batch(half.store, n=100, labels_wanted=k, overlap=share, seconds_per_label=90)
        for k, share in ((2, 1.0), (2, 0.25), (3, 0.1), (1, 1.0))
    ]
    assert [plan.n_labels for plan in plans] == [200, 125, 120, 100]
    assert plans[1].hours == pytest.approx(125 * 90 / 3600)
    # Second labels are made for agreement: they promise no narrower rate.
    assert len({plan.human_only for plan in plans}) == 1


def test_new_labels_are_added_to_the_basis_as_in_a_rate(half: World) -> None:
    batch = draw_batch(half.store, SamplingDesign(seed=9), n=20)
    newer = World(store=half.store, batch_id=batch.batch_id, drawn=())
    newer.label(
        "Ann", dict.fromkeys(half.store.batch_items(batch.batch_id)["trace_id"], "complete")
    )
    pooled = plan_batch(half.store, n=50)
    assert pooled.basis == f"{half.batch_id}+{batch.batch_id}"
    assert pooled.n_basis > 60
    assert pooled.human_only == plan_batch(half.store, n=50, batch_id=pooled.basis).human_only
    plan = plan_batch(half.store, n=50, batch_id=batch.batch_id)
    assert plan.basis is None
    assert any("all labelled traces score the same" in note for note in plan.notes)


def test_impossible_plans_are_refused(half: World) -> None:
    with pytest.raises(InputError, match="n must be at least 2, got 1"):
        plan_batch(half.store, n=1)
    with pytest.raises(CalibrationError, match="201 traces were asked for and there are 200"):
        plan_batch(half.store, n=201)
    with pytest.raises(InputError, match=r"overlap must be a share in \[0, 1\], got 25"):
        plan_batch(half.store, n=10, overlap=25)
    with pytest.raises(InputError, match="labels wanted must be at least 1, got 0"):
        plan_batch(half.store, n=10, labels_wanted=0)
    with pytest.raises(InputError, match="seconds per label must be positive, got 0"):
        plan_batch(half.store, n=10, seconds_per_label=0)
    half.judge({half.drawn[0]: "complete"})
    with pytest.raises(InputError, match="no judge 'nobody'"):
        plan_batch(half.store, n=10, judge_id="nobody")
    half.judge({half.drawn[0]: "complete"}, "drawn", simulated=True)
    with pytest.raises(MixedDataError, match="both simulated or both real"):
        plan_batch(half.store, n=10, judge_id="drawn")


def test_the_judge_is_worth_what_it_saves(half: World) -> None:
    human = {t: ("complete", "abandoned")[k % 2] for k, t in enumerate(half.drawn)}
    wrong = set(half.drawn[::10])
    said = {t: "abandoned" if t in wrong else human.get(t, "complete") for t in ids(200)}
    half.judge(said)
    plan = plan_batch(
        half.store, n=100, labels_wanted=2, overlap=0.5, seconds_per_label=72, hourly_rate=50
    )
    worth = known(plan.worth)
    value, (low, high) = known(worth.multiplier.value), known(worth.multiplier.interval)
    assert 1 < low < value < high
    # 24 verdicts are complete and right, 36 abandoned of which 6 succeeded: 5 within, 15 over all.
    assert value == pytest.approx((15 / 59) / (5 / 58))
    saved = 100 * (value - 1)
    assert worth.equivalent == pytest.approx(100 + saved)
    assert worth.saved == pytest.approx(saved)
    # 1.5 labels a trace at 72 seconds and 50 an hour.
    assert worth.saved_labels == pytest.approx(1.5 * saved)
    assert worth.saved_hours == pytest.approx(1.5 * saved * 72 / 3600)
    assert worth.saved_cost == pytest.approx(1.5 * saved)
    assert plan.cost == pytest.approx(150)


def test_a_half_width_says_how_many_traces(half: World) -> None:
    human = {t: ("complete", "abandoned")[k % 2] for k, t in enumerate(half.drawn)}
    half.judge({t: human.get(t, "complete") for t in ids(200)})
    plan = plan_batch(half.store, half_width=0.1)
    needed = known(plan.needed)
    without = known(needed.without_judge)
    assert plan.n == needed.with_judge
    assert plan.n < without
    # As many are enough, and one fewer is not.
    at, below = (plan_batch(half.store, n=without - k).human_only for k in (0, 1))
    assert at <= 0.1 < below
    assert known(plan.corrected) <= 0.1


def test_a_half_width_that_needs_more_than_there_is_is_refused(half: World) -> None:
    with pytest.raises(CalibrationError, match=r"traces were asked for and there are 200"):
        plan_batch(half.store, half_width=0.01)
    needed = known(plan_batch(half.store, n=100, half_width=0.01).needed)
    assert known(needed.without_judge) > 9000
    for wrong in ({}, {"half_width": 0.7}, {"n": 50, "hourly_rate": -1.0}):
        with pytest.raises(InputError):
            plan_batch(half.store, **wrong)  # type: ignore[arg-type]
