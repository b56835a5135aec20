"""Agreement of a batch: which traces count, where they part, who, and what to settle first."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibration.agreement.study import Options
from calibration.analyses.agreement.analysis import (
    AgreementAnalysis,
    agreement_with_others,
    analyse_agreement,
)
from calibration.analyses.reference_traces import published_set
from calibration.analyses.reviewers.examinations import add_practice
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.errors import InputError
from calibration.store import labels
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, known, make_world

CLASSES = ["complete", "partial_plus", "partial_minus", "hallucinated", "abandoned"]


def labelled(world: World, **classes: list[str]) -> AgreementAnalysis:
    for reviewer, given in classes.items():
        world.label(reviewer, dict(zip(world.drawn, given, strict=False)))
    return analyse_agreement(world.store)


def test_disputed_traces_say_where_and_what_they_cost(new_world: NewWorld) -> None:
    result = labelled(
        new_world(n=20, n_drawn=8),
        Ann=["complete", "complete", "partial_plus", "abandoned", *CLASSES[:4]],
        Ben=["complete", "partial_plus", "partial_minus", "complete", *CLASSES[:4]],
    )
    asked = sorted(d.question or "" for d in result.disputed)
    assert asked == ["all_subgoals", "material_error", "output"]
    assert all(d.cost and d.cost > 0 and not d.adjudicated for d in result.disputed)
    shares = {name: node.share.observed.value for name, node in result.study.nodes.items()}
    assert shares["output"] == shares["all_subgoals"] == pytest.approx(1 / 3)
    assert shares["fabrication"] == 0
    entropies = [d.entropy for d in result.disputed]
    assert entropies == sorted(entropies, reverse=True)
    assert entropies[-1] > 0


def test_what_is_settled_comes_last_and_reviewers_meet_it(new_world: NewWorld) -> None:
    world = new_world(n=20, n_drawn=8)
    given = {
        "Ann": ["complete", "complete", *CLASSES, "complete"],
        "Ben": ["complete", "abandoned", *CLASSES, "partial_plus"],
    }
    before = labelled(world, **given)
    first = before.disputed[0]
    assert before.profiles[0].consensus is None
    world.settle(first.trace_id, first.classes["ann"])
    after = analyse_agreement(world.store)
    assert [d.adjudicated for d in after.disputed] == [False, True]
    assert after.disputed[1].trace_id == first.trace_id
    settled = [known(of.consensus).accuracy.value for of in after.profiles]
    assert settled == [1.0, 0.0]
    assert after.study.alpha == before.study.alpha


def test_a_second_label_that_nobody_planned_is_left_out_and_counted(new_world: NewWorld) -> None:
    world = new_world(n=40, n_drawn=4)
    batch = draw_batch(world.store, SamplingDesign(seed=3, labels_wanted=2, overlap=0.5), n=12)
    items = world.store.batch_items(batch.batch_id)
    world = World(store=world.store, batch_id=batch.batch_id, drawn=tuple(items["trace_id"]))
    twice = set(items.loc[items["labels_wanted"] == 2, "trace_id"])
    once = [trace_id for trace_id in world.drawn if trace_id not in twice]
    world.label("Ann", {t: CLASSES[k % 5] for k, t in enumerate(world.drawn)})
    world.label("Ben", {t: CLASSES[k % 5] for k, t in enumerate(world.drawn) if t in twice})
    agreed = analyse_agreement(world.store, batch.batch_id)
    assert (agreed.study.n_items, agreed.unplanned) == (len(twice), 0)
    world.label("Ben", {once[0]: "abandoned", once[1]: "hallucinated"})
    late = analyse_agreement(world.store, batch.batch_id)
    assert late.study.alpha == agreed.study.alpha
    assert late.unplanned == 2
    assert not late.disputed


def test_a_week_is_that_of_the_last_label(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_world(n=20, n_drawn=8)

    def on(day: int) -> None:
        moment = datetime(2026, 11, day, 12, tzinfo=UTC)
        monkeypatch.setattr(labels, "utc_now", lambda: moment)

    on(3)
    world.label("Ann", dict(zip(world.drawn, [*CLASSES, *CLASSES[:3]], strict=True)))
    world.label("Ben", dict(zip(world.drawn[:3], CLASSES[:3], strict=True)))
    on(10)
    world.label("Ben", dict(zip(world.drawn[3:], ["complete"] * 5, strict=True)))
    weeks = analyse_agreement(world.store).study.groups
    assert {name: group.n_items for name, group in weeks.items()} == {"2026-W45": 3, "2026-W46": 5}
    assert (weeks["2026-W45"].percent_agreement.value, weeks["2026-W45"].alpha.value) == (1, 1)
    assert (weeks["2026-W46"].alpha.value or 1) < 0.5


def test_runs_of_one_task_are_one_cluster(new_world: NewWorld) -> None:
    alone = labelled(new_world(n=12, n_drawn=12), Ann=CLASSES * 2, Ben=CLASSES * 2)
    assert alone.by_task is None
    traces: dict[str, dict[str, Any]] = {
        name: {"task_key": f"test/{k // 3}", "trial": k % 3} for k, name in enumerate(ids(12))
    }
    world = new_world(n=12, n_drawn=12, traces=traces)
    classes = {name: CLASSES[k // 3] for k, name in enumerate(ids(12))}
    world.label("Ann", classes)
    world.label("Ben", classes | dict.fromkeys(ids(3), "abandoned"))
    result = analyse_agreement(world.store)
    alpha = known(result.by_task)
    assert alpha.value == pytest.approx(result.study.alpha.value)
    assert alpha.n == 4
    assert (alpha.half_width or 0) > (result.study.alpha.half_width or 1)
    by_task = analyse_agreement(world.store, cluster="task")
    assert by_task.study.alpha == by_task.by_task == alpha
    assert by_task.fingerprint != result.fingerprint
    with pytest.raises(InputError, match="cluster must be one of trace, task"):
        analyse_agreement(world.store, cluster="week")


def test_near_misses_are_told_from_far_ones(new_world: NewWorld) -> None:
    near, far = (
        labelled(new_world(n=20, n_drawn=10), Ann=CLASSES * 2, Ben=[*CLASSES, odd, *CLASSES[1:]])
        for odd in ("partial_plus", "abandoned")
    )
    assert near.study.alpha.value == pytest.approx(far.study.alpha.value, abs=0.01)
    assert (near.near_misses.value or 0) > (far.near_misses.value or 0)


def test_practice_is_held_against_the_canonical_labels(new_world: NewWorld) -> None:
    world = new_world(n=20, n_drawn=8)
    labelled(world, Ann=CLASSES + CLASSES[:3], Ben=CLASSES + CLASSES[:3])
    dataset = published_set()
    batch = add_practice(world.store, dataset)
    lessons = tuple(world.store.batch_items(batch.batch_id)["trace_id"])[:6]
    practice = World(store=world.store, batch_id=batch.batch_id, drawn=lessons)
    right = {name: dataset.labels[name].outcome for name in lessons}
    wrong = {name: "complete" if right[name] == "abandoned" else "abandoned" for name in lessons}
    practice.label("Ann", right)
    practice.label("Ben", wrong)
    ann, ben = analyse_agreement(world.store, world.batch_id).profiles
    assert (known(ann.canonical).n, known(ann.canonical).accuracy.value) == (6, 1.0)
    assert known(ben.canonical).accuracy.value == 0.0
    assert ann.beside.agreement_with_others.value == 1.0


def test_options_reach_the_study_and_the_fingerprint(new_world: NewWorld) -> None:
    world = new_world(n=30, n_drawn=20)
    labelled(world, Ann=CLASSES * 4, Ben=[*CLASSES * 3, *CLASSES[::-1]])
    one, two = (
        analyse_agreement(world.store, options=Options(interval=interval))
        for interval in ("jackknife", "percentile")
    )
    assert one.fingerprint != two.fingerprint
    assert "percentile" in two.study.alpha.method
    again = analyse_agreement(world.store, options=Options(interval="percentile"))
    assert again.study.coefficients == two.study.coefficients


# How each reviewer agrees with the others over all production batches, worked by hand


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
    assert agreement_with_others(world.store) == {}
    world.label("Ann", {world.drawn[0]: C})
    world.label("Bot", {world.drawn[0]: C}, simulated=True)
    found = agreement_with_others(world.store)
    assert "shared no item" in found["ann"].status
    assert "shared no item" in found["bot"].status
