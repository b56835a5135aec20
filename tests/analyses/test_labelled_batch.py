import pytest

from calibration.analyses.evidence.from_store import choose_batch, load_batch
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.store import Store
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, make_trace
from tests.classes import OUTCOMES


def shares(world: World) -> dict[str, list[float]]:
    loaded = load_batch(world.store)
    return dict(zip(loaded.labelled["trace_id"], loaded.human.tolist(), strict=True))


def test_the_human_side_is_the_adjudicated_class_else_the_mean_over_reviewers(
    new_world: NewWorld,
) -> None:
    world = new_world()
    a, b, c, d, *_ = world.drawn
    world.label("Ann", {a: "complete", b: "complete", c: "complete", d: "abandoned"})
    world.label("Ben", {a: "complete", b: "partial_plus", c: "partial_minus"})
    world.label("Cleo", {b: "partial_plus", c: "hallucinated"})
    world.settle(c, "partial_plus")  # none of what the three said
    third = 1 / 3
    assert shares(world) == {
        a: [1, 0, 0, 0, 0],
        b: pytest.approx([third, 2 * third, 0, 0, 0]),
        c: [0, 1, 0, 0, 0],
        d: [0, 0, 0, 0, 1],
    }
    loaded = load_batch(world.store)
    assert loaded.open_disagreements == 1  # b; c is settled
    assert loaded.adjudicated.tolist() == [False, False, True, False]
    assert loaded.reviewers == ("ann", "ben", "cleo")
    assert loaded.codes().tolist() == [[0, 0, -1], [0, 1, 1], [0, 2, 3], [4, -1, -1]]


def test_the_latest_adjudication_counts(new_world: NewWorld) -> None:
    world = new_world()
    first = world.drawn[0]
    world.label("Ann", {first: "complete"})
    world.settle(first, "abandoned")
    world.settle(first, "hallucinated")
    assert shares(world) == {first: [0, 0, 0, 1, 0]}


def test_skipped_and_unlabelled_traces_are_counted_apart(new_world: NewWorld) -> None:
    world = new_world(n_drawn=6)
    a, b, c, *_ = world.drawn
    world.label("Ann", {a: "complete", b: "complete"})
    world.skip("Ben", b)  # labelled by another: not skipped by everybody
    world.skip("Ben", c)
    loaded = load_batch(world.store)
    assert (len(loaded.labelled), loaded.skipped, loaded.unlabelled) == (2, 1, 3)


def test_labels_given_after_seeing_what_others_said_are_left_out_and_counted(
    new_world: NewWorld,
) -> None:
    world = new_world(n_drawn=4)
    a, b, c, _ = world.drawn
    world.label("Ann", {a: "complete"})
    world.store.add_reviewer("Ben")
    world.store.record_exposure("ben", [a, b], "labels")
    world.label("Ben", {a: "abandoned", b: "abandoned", c: "complete"})
    loaded = load_batch(world.store)
    assert loaded.exposed == 2
    assert loaded.codes().tolist() == [[0, -1], [-1, 0]]
    # A trace that only an exposed label names is as good as not labelled.
    assert (len(loaded.labelled), loaded.skipped, loaded.unlabelled) == (2, 0, 2)


@pytest.mark.parametrize("workflow", [None, "flights"])
def test_later_traces_are_counted_and_left_out(new_world: NewWorld, workflow: str | None) -> None:
    world = new_world()
    batch = draw_batch(world.store, SamplingDesign(seed=2, workflow=workflow), n=4)
    world.store.ingest([make_trace("z1"), make_trace("z2"), make_trace("z3", workflow="hotels")])
    loaded = load_batch(world.store, batch.batch_id)
    assert loaded.traces["trace_id"].tolist() == ids(12)
    assert loaded.later_traces == (3 if workflow is None else 2)


def test_an_unlabelled_batch_loads_empty(new_world: NewWorld) -> None:
    world = new_world()
    loaded = load_batch(world.store)
    assert loaded.human.shape == (0, len(OUTCOMES))
    assert loaded.codes().shape == (0, 0)
    assert (loaded.skipped, loaded.unlabelled, loaded.open_disagreements) == (0, 6, 0)


@pytest.mark.parametrize("what", ["trace", "label", "consensus"])
def test_simulated_and_real_rows_are_never_mixed(new_world: NewWorld, what: str) -> None:
    first = ids(12)[0]
    world = new_world(traces={first: {"simulated": True}} if what == "trace" else None)
    world.label("Ann", {world.drawn[0]: "complete"}, simulated=what == "label")
    if what == "consensus":
        world.settle(world.drawn[0], "complete", simulated=True)
    with pytest.raises(MixedDataError, match="simulated and real rows"):
        load_batch(world.store)


def test_later_simulated_traces_do_no_harm(new_world: NewWorld) -> None:
    world = new_world()
    world.label("Ann", {world.drawn[0]: "complete"})
    world.store.ingest([make_trace("z1", simulated=True)])
    assert not load_batch(world.store).simulated


def test_the_newest_production_batch_is_the_default(new_world: NewWorld) -> None:
    world = new_world()
    newer = draw_batch(world.store, SamplingDesign(seed=3), n=2)
    world.store.add_batch(purpose="practice", trace_ids=ids(2))
    assert choose_batch(world.store, None).batch_id == newer.batch_id
    assert choose_batch(world.store, world.batch_id).batch_id == world.batch_id
    with pytest.raises(InputError, match=r"no batch 'x'; there are \['practice-003'"):
        choose_batch(world.store, "x")
    with pytest.raises(InputError, match="for practice, not for production"):
        load_batch(world.store, "practice-003")


def test_a_store_without_a_batch_names_the_command(new_world: NewWorld) -> None:
    store: Store = new_world().store
    with store._db.write() as cursor:
        cursor.execute("DELETE FROM batch")
    with pytest.raises(CalibrationError, match="asr sample --n 40 --seed 1"):
        load_batch(store)
