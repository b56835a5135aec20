"""Random draws and their design, and the splits of what is labelled."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from calibration.analyses.agreement.analysis import analyse_agreement
from calibration.analyses.judge.calibration import analyse_judge
from calibration.analyses.reference_traces import published_set
from calibration.analyses.reviewers.examinations import add_practice
from calibration.analyses.sampling import draw
from calibration.analyses.sampling.draw import (
    SHARES,
    SPLITS,
    SamplingDesign,
    draw_batch,
    draw_ids,
    labelled_splits,
    split_of_task,
)
from calibration.analyses.success_rate.from_store import rates_of_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import CalibrationError, InputError
from calibration.store import Store
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, drawn_ids, ids, make_trace


def test_every_trace_is_drawn_equally_often_in_every_place() -> None:
    n, n_drawn, n_seeds = 12, 5, 2000
    names = np.array(ids(n))
    drawn = np.array([draw_ids(names, n=n_drawn, seed=seed) for seed in range(n_seeds)])
    assert all(len(set(row)) == n_drawn for row in drawn)
    counts = np.array([(drawn == name).sum() for name in names])
    # Each count is Binomial(2000, 5/12); 24 tests at .001 / 24 keep the family at .001.
    for column_counts, p in (
        (counts, n_drawn / n),
        (np.array([(drawn[:, 0] == name).sum() for name in names]), 1 / n),
    ):
        for found in column_counts.tolist():
            assert stats.binomtest(found, n_seeds, p).pvalue > 0.001 / 24
    # Without replacement counts vary by (1 - n/N) and sum to a constant: chi-square on N - 1 df.
    expected = n_seeds * n_drawn / n
    spread = ((counts - expected) ** 2).sum() / (expected * (1 - n_drawn / n)) * (n - 1) / n
    assert stats.chi2.sf(spread, n - 1) > 0.001


def test_the_draw_depends_on_the_traces_and_not_on_their_order(new_world: NewWorld) -> None:
    turned = new_world(seed=7, order=ids(12)[::-1])
    assert turned.drawn == tuple(drawn_ids(12, 6, seed=7)) != tuple(drawn_ids(12, 6, seed=8))
    (batch,) = turned.store.batches()
    assert (batch.design["n"], batch.design["population"], batch.design["seed"]) == (6, 12, 7)
    items = turned.store.batch_items(turned.batch_id)
    assert items["inclusion_probability"].tolist() == [0.5] * 6
    # Later traces are no part of the population, which is in order of id.
    turned.store.ingest([make_trace("z1")])
    assert batch.population(turned.store.trace_frame())["trace_id"].tolist() == ids(12)
    names, workflows = np.array(ids(9)), np.array(["a", "b", "c"] * 3)
    even = draw.draw_evenly(names[::-1], workflows[::-1], n=4, seed=3)
    assert even == draw.draw_evenly(names, workflows, n=4, seed=3)


@pytest.mark.parametrize(
    ("n", "changes", "why"),
    [
        (0, {}, "n must be at least 1, got 0"),
        (2, {"seed": -1}, "seed must be 0 or more"),
        (13, {}, "13 traces were asked for and there are 12"),
        (2, {"overlap": float("nan")}, r"overlap must be a share in \[0, 1\]"),
        (2, {"labels_wanted": 0}, "labels wanted must be at least 1"),
    ],
)
def test_an_impossible_draw_is_refused(
    new_world: NewWorld, n: int, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(CalibrationError, match=why):
        draw_batch(new_world().store, SamplingDesign(**({"seed": 1} | changes)), n=n)


def test_a_workflow_draws_from_its_traces_only(new_world: NewWorld) -> None:
    hotels = {name: {"workflow": "hotels"} for name in ids(12)[:5]}
    world = new_world(traces=hotels)
    batch = draw_batch(world.store, SamplingDesign(seed=1, workflow="hotels"), n=5)
    assert sorted(world.store.batch_items(batch.batch_id)["trace_id"]) == ids(12)[:5]
    assert batch.design["population"] == 5
    even = draw_batch(world.store, SamplingDesign(seed=2), n=6, by_workflow=True)
    assert even.design["population_by_workflow"] == {"flights": 7, "hotels": 5}
    assert set(world.store.batch_items(even.batch_id)["inclusion_probability"]) == {0.5}
    with pytest.raises(InputError, match=r"no trace has the workflow 'taxis'.*hotels"):
        draw_batch(world.store, SamplingDesign(seed=1, workflow="taxis"), n=1)


def test_a_population_that_lost_traces_is_refused(new_world: NewWorld) -> None:
    world = new_world()
    batch = draw_batch(world.store, SamplingDesign(seed=1, workflow="flights"), n=3)
    assert len(batch.population(world.store.trace_frame())) == 12
    moved = [make_trace(name, workflow="hotels") for name in ids(4)]
    assert len(world.store.ingest(moved, take_changed=True).replaced) == 4
    with pytest.raises(CalibrationError, match="moved into or out of workflow 'flights'"):
        batch.population(world.store.trace_frame())
    batch = world.store.add_batch(purpose="production", trace_ids=ids(2))
    with pytest.raises(CalibrationError, match="does not say what it was drawn from"):
        batch.population(world.store.trace_frame())


def test_an_even_draw_gives_every_trace_the_same_chance_and_every_workflow_its_share() -> None:
    n_seeds, n_drawn = 2000, 7
    names = np.array(ids(20))
    workflows = np.array(["flights"] * 11 + ["hotels"] * 8 + ["taxis"])
    drawn = np.array(
        [draw.draw_evenly(names, workflows, n=n_drawn, seed=s) for s in range(n_seeds)]
    )
    assert all(len(set(row)) == n_drawn for row in drawn)
    # Each count is Binomial(2000, 7/20), in the first place of the batch 1/20; 40 tests.
    for counted, p in ((drawn, n_drawn / 20), (drawn[:, :1], 1 / 20)):
        for name in names:
            assert stats.binomtest(int((counted == name).sum()), n_seeds, p).pvalue > 0.001 / 40
    of = dict(zip(names.tolist(), workflows.tolist(), strict=True))
    for row in drawn.tolist():
        counts = Counter(of[name] for name in row)
        # 7 x 11 / 20 = 3.85, 7 x 8 / 20 = 2.8 and 7 / 20 = .35, rounded down or up.
        assert counts["flights"] in (3, 4)
        assert counts["hotels"] in (2, 3)
        assert counts["taxis"] in (0, 1)


def test_an_overlap_wants_two_labels_of_a_random_share(new_world: NewWorld) -> None:
    store = new_world(n=80).store
    wanted = []
    for seed in range(1, 13):
        batch = draw_batch(store, SamplingDesign(seed=seed, overlap=0.25), n=20)
        items = store.batch_items(batch.batch_id)
        assert sorted(items["labels_wanted"]) == [1] * 15 + [2] * 5
        assert set(items["inclusion_probability"]) == {0.25}
        assert (batch.design["overlap"], batch.labels_wanted) == (0.25, 2)
        wanted.append(items["labels_wanted"].to_numpy())
    # Every place of the batch is in the overlap now and then.
    assert (np.sum(np.array(wanted) == 2, axis=0) > 0).all()
    again = draw_batch(store, SamplingDesign(seed=12, overlap=0.25), n=20)
    assert store.batch_items(again.batch_id)["labels_wanted"].tolist() == wanted[-1].tolist()
    # The overlap leaves the draw as it is.
    whole = draw_batch(store, SamplingDesign(seed=12), n=20)
    drawn = [store.batch_items(of.batch_id)["trace_id"].tolist() for of in (again, whole)]
    assert drawn[0] == drawn[1]


def test_the_same_draw_is_stored_once_when_that_is_asked(new_world: NewWorld) -> None:
    store = new_world().store
    first = draw_batch(store, SamplingDesign(seed=1, once=True), n=4)
    assert draw_batch(store, SamplingDesign(seed=1, once=True), n=4) == first
    other = draw_batch(store, SamplingDesign(seed=1, overlap=0.5, once=True), n=4)
    assert other.batch_id != first.batch_id
    store.ingest([make_trace("z1")])
    third = draw_batch(store, SamplingDesign(seed=1, once=True), n=4)
    assert third.batch_id not in (first.batch_id, other.batch_id)


def test_a_draw_that_hides_a_probability_is_refused(new_world: NewWorld) -> None:
    world = new_world()
    (batch,) = world.store.batches()
    hidden = world.store.add_batch(
        purpose="production", trace_ids=ids(4), inclusion_probability=None, design=batch.design
    )

    def rates(store: Store, batch: str) -> object:
        return rates_of_store(store, ReportOptions(batch_id=batch))

    for analyse in (analyse_agreement, analyse_judge, rates):
        with pytest.raises(CalibrationError, match="with what probability 4 of its traces"):
            analyse(world.store, hidden.batch_id)


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
    world.skip("Ann", world.drawn[0])
    assert labelled_splits(world.store).empty
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    found = labelled_splits(world.store)
    assert sorted(found["trace_id"]) == sorted(world.drawn)
    assert (found.groupby("task_key")["split"].nunique() == 1).all()
    assert found["split"].nunique() == 3
    # More labels move nothing.
    world.label("Ben", dict.fromkeys(world.drawn[:5], "abandoned"))
    assert labelled_splits(world.store).equals(found)


def test_the_forms_of_the_reference_dataset_have_a_split_each(new_world: NewWorld) -> None:
    world, dataset = new_world(), published_set()
    due = {"practice": "few_shots", "exam_a": "development", "exam_b": "locked_test"}
    for form in due:
        batch = add_practice(world.store, dataset, form=form)
        drawn = tuple(world.store.batch_items(batch.batch_id)["trace_id"])[:5]
        World(world.store, batch.batch_id, drawn).label("Ann", dict.fromkeys(drawn, "complete"))
    split = dict(labelled_splits(world.store)[["trace_id", "split"]].to_numpy())
    for form, name in due.items():
        assert [split[t] for t in dataset.forms[form] if t in split] == [name] * 5
    forms: dict[str, set[str]] = {}
    for form, names in dataset.forms.items():
        for name in names:
            forms.setdefault(dataset.traces[name].task_key, set()).add(form)
    assert all(len(found) == 1 for found in forms.values())
