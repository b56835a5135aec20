from collections import Counter

import pytest
from scipy import stats

from calibration.analyses.reference_traces import published_set
from calibration.analyses.reviewers.examinations import add_practice
from calibration.analyses.sampling.draw import SHARES, SPLITS, labelled_splits, split_of_task
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids


def test_tasks_are_split_by_their_shares() -> None:
    counts = Counter(split_of_task(f"tau/airline/{k}") for k in range(5000))
    found = [counts[name] for name in SPLITS]
    assert stats.chisquare(found, [5000 * share for share in SHARES]).pvalue > 0.001


def test_the_split_of_a_task_never_changes() -> None:
    """Frozen: another split would put tasks that were tuned on into the locked test."""
    found = [split_of_task(f"task-{k}") for k in (0, 1, 2, 3, 4, 5)]
    assert found == ["development"] * 3 + ["few_shots", "development", "locked_test"]


def test_no_task_straddles_two_splits(new_world: NewWorld) -> None:
    trials = {name: {"task_key": f"test/{k // 4}"} for k, name in enumerate(ids(80))}
    world = new_world(n=80, n_drawn=60, traces=trials)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    found = labelled_splits(world.store)
    assert sorted(found["trace_id"]) == sorted(world.drawn)
    assert (found.groupby("task_key")["split"].nunique() == 1).all()
    assert found["split"].nunique() == 3
    # More labels move nothing.
    world.label("Ben", dict.fromkeys(world.drawn[:5], "abandoned"))
    assert labelled_splits(world.store).equals(found)


def test_a_label_that_was_skipped_or_taken_back_is_none(new_world: NewWorld) -> None:
    world = new_world()
    world.skip("Ann", world.drawn[0])
    assert labelled_splits(world.store).empty


@pytest.mark.parametrize(
    ("form", "split"),
    [("practice", "few_shots"), ("exam_a", "development"), ("exam_b", "locked_test")],
)
def test_the_forms_of_the_reference_dataset_have_a_split_each(
    new_world: NewWorld, form: str, split: str
) -> None:
    world = new_world()
    batch = add_practice(world.store, published_set(), form=form)
    drawn = tuple(world.store.batch_items(batch.batch_id)["trace_id"])
    lessons = World(store=world.store, batch_id=batch.batch_id, drawn=drawn)
    lessons.label("Ann", dict.fromkeys(drawn[:5], "complete"))
    assert labelled_splits(world.store)["split"].tolist() == [split] * 5


def test_no_task_of_the_reference_dataset_is_in_two_forms() -> None:
    dataset = published_set()
    forms: dict[str, set[str]] = {}
    for form, names in dataset.forms.items():
        for name in names:
            forms.setdefault(dataset.traces[name].task_key, set()).add(form)
    assert all(len(found) == 1 for found in forms.values())
