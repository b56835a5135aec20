"""Labels that compared versions of a judge do not correct its rate."""

import numpy as np
import pytest

from calibration.analyses.evidence.from_store import load_batch, load_judged
from calibration.analyses.judge.calibration import analyse_judge
from calibration.analyses.judging.exams import compare
from calibration.judging.selection import CERTIFICATION, DEVELOPMENT, split_of
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World

N = 120


def part_of(world: World, part: str) -> list[str]:
    return [t for t in sorted(world.drawn) if split_of(f"test/{t}") == part]


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """Return a batch of 80 labelled traces and two judges, of which the second errs less."""
    world = new_world(n=N, n_drawn=80)
    every = list(world.store.production_traces()["trace_id"])
    right = {t: "complete" if k % 3 else "abandoned" for k, t in enumerate(every)}
    world.label("Ann", {t: right[t] for t in world.drawn[:-2]})
    for skipped in world.drawn[-2:]:
        world.skip("Ann", skipped)
    wrong = {"complete": "abandoned", "abandoned": "complete"}
    for name, each in (("first", 4), ("second", 9)):
        world.judge({t: right[t] if k % each else wrong[right[t]]
                     for k, t in enumerate(every)}, name)  # fmt: skip
    return world


def test_versions_are_compared_on_three_tasks_in_ten(world: World) -> None:
    labelled = set(world.drawn[:-2])
    own = [t for t in part_of(world, DEVELOPMENT) if t in labelled]
    found = compare(world.store, "first", "second", batch_id=world.batch_id)
    assert 0 < found.n == len(own) < len(labelled) / 2
    assert {flip.trace_id for flip in found.flips} <= set(own)
    # Once more changes nothing.
    again = compare(world.store, "second", "first", batch_id=world.batch_id)
    assert again.n == found.n
    assert world.store.spent_batches("first") == [world.batch_id]


def test_labels_that_compared_versions_leave_the_correction_of_both(world: World) -> None:
    before = analyse_judge(world.store, world.batch_id, judge_id="first")
    world.judge(dict.fromkeys(world.drawn, "complete"), "third")
    compare(world.store, "first", "second", batch_id=world.batch_id)
    kept = set(part_of(world, CERTIFICATION))
    labelled = set(world.drawn[:-2])
    for judge in ("first", "second"):
        data = load_judged(world.store, world.batch_id, judge)
        assert set(data.labelled["trace_id"]) == kept & labelled
        assert set(data.labels["trace_id"]) == kept & labelled
        assert set(data.skipped_ids) == kept - labelled
        assert list(data.traces["trace_id"].iloc[data.at]) == list(data.labelled["trace_id"])
        assert len(data.human) == len(data.adjudicated) == len(data.at)
        n = len(labelled - kept)
        assert data.notes[0] == (
            f"{n} of 78 labelled traces compared versions of judge {judge} ({world.batch_id}); "
            "they do not enter its results"
        )
        # The population keeps them: their verdicts count.
        assert len(data.traces) == N
    after = analyse_judge(world.store, world.batch_id, judge_id="first")
    assert before.human is not None
    assert after.human is not None
    assert (before.human.n_labels, after.human.n_labels) == (78, len(kept & labelled))
    assert before.fingerprint != after.fingerprint
    # A judge of another line keeps all labels, and so does what needs no judge.
    assert len(load_judged(world.store, world.batch_id, "third").labelled) == 78
    assert len(load_batch(world.store, world.batch_id).labelled) == 78


def test_a_version_made_later_from_a_compared_one_has_spent_them_too(world: World) -> None:
    store = world.store
    store.add_judge("base", "v1", "{}")
    world.judge(dict.fromkeys(world.drawn, "complete"), "base")
    compare(store, "base", "first", batch_id=world.batch_id)
    store.add_judge("base-2", "v2", "{}", parent="base")
    world.judge(dict.fromkeys(world.drawn, "complete"), "base-2")
    assert store.spent_batches("base-2") == [world.batch_id]
    assert len(load_judged(store, world.batch_id, "base-2").labelled) < 78


def test_the_better_of_two_equal_judges_reads_too_high_only_on_the_labels_that_chose_it() -> None:
    rng = np.random.default_rng(20264)
    development = np.array([split_of(f"task-{k}") == DEVELOPMENT for k in range(300)])
    assert 0.2 < development.mean() < 0.4
    right = rng.random((4_000, 20, 300)) < 0.8
    chosen = right[:, :, development].mean(axis=2).argmax(axis=1)
    best = right[np.arange(4_000), chosen]
    on_chosen, on_rest = best[:, development].mean(axis=1), best[:, ~development].mean(axis=1)
    assert on_chosen.mean() - 0.8 > 0.05  # best of 20 on some 90 labels
    assert abs(on_rest.mean() - 0.8) < 4 * on_rest.std() / 4_000**0.5
