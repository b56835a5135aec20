import numpy as np
import pytest
from scipy import stats

from calibration.analyses.sampling import draw_batch, draw_ids, population
from calibration.errors import CalibrationError, InputError
from calibration.records import Trace
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import drawn_ids, ids, make_trace


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
    one = new_world(seed=7)
    other = new_world(seed=7, order=ids(12)[::-1])
    assert one.drawn == other.drawn == tuple(drawn_ids(12, 6, seed=7))
    assert new_world(seed=8).drawn != one.drawn


def test_the_design_is_recorded(new_world: NewWorld) -> None:
    world = new_world()
    (batch,) = world.store.batches()
    assert batch.design["kind"] == "simple random sample"
    assert (batch.design["n"], batch.design["population"], batch.design["seed"]) == (6, 12, 1)
    items = world.store.batch_items(world.batch_id)
    assert items["inclusion_probability"].tolist() == [0.5] * 6


def test_all_traces_can_be_drawn(new_world: NewWorld) -> None:
    assert sorted(new_world(n_drawn=12).drawn) == ids(12)


@pytest.mark.parametrize(("n", "seed"), [(0, 1), (-3, 1), (2, -1)])
def test_impossible_arguments_are_refused(new_world: NewWorld, n: int, seed: int) -> None:
    with pytest.raises(InputError, match="must be"):
        draw_batch(new_world().store, n=n, seed=seed)


def test_more_than_there_are_is_refused(new_world: NewWorld) -> None:
    with pytest.raises(CalibrationError, match="13 traces were asked for and there are 12"):
        draw_batch(new_world().store, n=13, seed=1)


def test_a_workflow_draws_from_its_traces_only(new_world: NewWorld) -> None:
    hotels = {name: {"workflow": "hotels"} for name in ids(12)[:5]}
    world = new_world(traces=hotels)
    batch = draw_batch(world.store, n=5, seed=1, workflow="hotels")
    assert sorted(world.store.batch_items(batch.batch_id)["trace_id"]) == ids(12)[:5]
    assert batch.design["population"] == 5
    with pytest.raises(InputError, match=r"no trace has the workflow 'taxis'.*hotels"):
        draw_batch(world.store, n=1, seed=1, workflow="taxis")


def later(n: int, **changes: object) -> list[Trace]:
    return [make_trace(f"z{k}", **changes) for k in range(n)]


def test_later_traces_are_no_part_of_the_population(new_world: NewWorld) -> None:
    world = new_world(order=ids(12)[::-1])
    world.store.ingest(later(3))
    (batch,) = world.store.batches()
    # In order of id, whatever the order of import.
    assert population(batch, world.store.trace_frame())["trace_id"].tolist() == ids(12)


def test_a_population_that_lost_traces_is_refused(new_world: NewWorld) -> None:
    world = new_world()
    batch = draw_batch(world.store, n=3, seed=1, workflow="flights")
    assert len(population(batch, world.store.trace_frame())) == 12
    moved = [make_trace(name, workflow="hotels") for name in ids(4)]
    assert len(world.store.ingest(moved, take_changed=True).replaced) == 4
    with pytest.raises(CalibrationError, match="moved into or out of workflow 'flights'"):
        population(batch, world.store.trace_frame())


def test_a_batch_without_a_design_is_refused(new_world: NewWorld) -> None:
    world = new_world()
    batch = world.store.add_batch(purpose="production", trace_ids=ids(2))
    with pytest.raises(CalibrationError, match="does not say what it was drawn from"):
        population(batch, world.store.trace_frame())
