"""What a batch holds: the human side, what is left out, and all that was said of one trace."""

import pytest

from calibration.analyses.evidence.from_store import choose_batch, labelled_trace, load_batch
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.records import Evidence, LabelDraft, Workflow
from calibration.store import Store
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, make_trace
from tests.classes import OUTCOMES


def shares(world: World) -> dict[str, list[float]]:
    loaded = load_batch(world.store)
    return dict(zip(loaded.labelled["trace_id"], loaded.human.tolist(), strict=True))


def test_the_human_side_is_the_settled_class_else_the_mean(new_world: NewWorld) -> None:
    world = new_world()
    a, b, c, d, *_ = world.drawn
    world.label("Ann", {a: "complete", b: "complete", c: "complete", d: "abandoned"})
    world.label("Ben", {a: "complete", b: "partial_plus", c: "partial_minus"})
    world.label("Cleo", {b: "partial_plus", c: "hallucinated"})
    world.settle(c, "abandoned")
    world.settle(c, "partial_plus")  # none of what the three said, and later
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


def test_skipped_and_unlabelled_traces_are_counted_apart(new_world: NewWorld) -> None:
    world = new_world(n_drawn=6)
    a, b, c, *_ = world.drawn
    world.label("Ann", {a: "complete", b: "complete"})
    world.skip("Ben", b)  # labelled by another: not skipped by everybody
    world.skip("Ben", c)
    loaded = load_batch(world.store)
    assert (len(loaded.labelled), loaded.skipped, loaded.unlabelled) == (2, 1, 3)


def test_labels_that_were_not_blind_are_left_out_and_counted(new_world: NewWorld) -> None:
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
    late = [make_trace("z1"), make_trace("z2", simulated=True), make_trace("z3", workflow="hotels")]
    world.store.ingest(late)
    loaded = load_batch(world.store, batch.batch_id)
    assert loaded.human.shape == (0, len(OUTCOMES))
    assert not loaded.simulated
    assert loaded.traces["trace_id"].tolist() == ids(12)
    assert loaded.later_traces == (3 if workflow is None else 2)


@pytest.mark.parametrize("what", ["trace", "label", "consensus"])
def test_simulated_and_real_rows_are_never_mixed(new_world: NewWorld, what: str) -> None:
    first = ids(12)[0]
    world = new_world(traces={first: {"simulated": True}} if what == "trace" else None)
    world.label("Ann", {world.drawn[0]: "complete"}, simulated=what == "label")
    if what == "consensus":
        world.settle(world.drawn[0], "complete", simulated=True)
    with pytest.raises(MixedDataError, match="simulated and real rows"):
        load_batch(world.store)


def test_the_newest_production_batch_is_the_default(new_world: NewWorld) -> None:
    world = new_world()
    newer = draw_batch(world.store, SamplingDesign(seed=3), n=2)
    world.store.add_batch(purpose="practice", trace_ids=ids(2))
    assert choose_batch(world.store, None).batch_id == newer.batch_id
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    assert choose_batch(world.store, None).batch_id == world.batch_id
    assert choose_batch(world.store, None, to_label=True).batch_id == newer.batch_id
    assert choose_batch(world.store, world.batch_id).batch_id == world.batch_id
    with pytest.raises(InputError, match="no batch 'x'; there are practice-003, production-002"):
        choose_batch(world.store, "x")
    with pytest.raises(InputError, match="for practice, not for production"):
        load_batch(world.store, "practice-003")


def test_a_store_without_a_batch_names_the_command(new_world: NewWorld) -> None:
    store: Store = new_world().store
    with store._db.write() as cursor:
        cursor.execute("DELETE FROM batch")
    with pytest.raises(CalibrationError, match="asr sample --n 40 --seed 1"):
        load_batch(store)


def test_one_trace_with_everything_that_was_said_of_it(new_world: NewWorld) -> None:
    world = new_world()
    store, trace_id = world.store, world.drawn[0]
    world.skip("Cem", trace_id)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    ben = store.add_reviewer("Ben").reviewer_id
    store.record_exposure(ben, [trace_id], "labels")
    answers = store.taxonomy().answers_for("partial_plus")
    quote = Evidence(step_id="response", quote="Booked")
    draft = LabelDraft(
        client_token="b", trace_id=trace_id, reviewer_id=ben, batch_id=world.batch_id,
        answers=answers, rationale="one is missing", evidence=(quote,), confidence=1,
        tags=("refund",),
    )  # fmt: skip
    store.import_labels(world.batch_id, [draft])
    world.settle(trace_id, "partial_plus")
    trace, found = labelled_trace(store, world.batch_id, trace_id)
    assert trace == store.for_review([trace_id])[0]
    assert found.consensus == "partial_plus"
    cem, ann, b = found.labels
    assert (ann.reviewer, ann.outcome, ann.rationale, ann.blind) == ("ann", "complete", None, True)
    assert b.answers == answers
    assert (b.rationale, b.confidence, b.tags, b.blind) == (
        "one is missing",
        "low",
        ("refund",),
        False,
    )
    assert b.evidence == (quote,)
    assert (cem.outcome, cem.reason, cem.answers) == (None, "cannot tell", {})
    assert labelled_trace(store, world.batch_id, world.drawn[1])[1].consensus is None
    with pytest.raises(InputError, match="no trace 'x'"):
        labelled_trace(store, world.batch_id, "x")


def test_the_state_of_results_changes_with_all_that_enters_a_rate(new_world: NewWorld) -> None:
    world = new_world()
    store, first = world.store, world.drawn[0]
    states = [(store.label_state(), store.result_state())]
    # Labels and consensus alone change the state of the labels.
    for change, of_labels in (
        (lambda: world.label("Ann", {first: "complete"}), True),
        (lambda: world.judge({first: "complete"}), False),
        (lambda: store.ingest([make_trace("new")]), False),
        (lambda: store.set_workflow(Workflow(name="flights", ceiling_usd=0.5)), False),
        (lambda: world.settle(first, "complete"), True),
        (lambda: world.skip("Ann", world.drawn[1]), True),
    ):
        change()
        states.append((store.label_state(), store.result_state()))
        assert (states[-1][0] != states[-2][0]) is of_labels
    assert len({of_rate for _, of_rate in states[:6]}) == 6
    draw_batch(store, SamplingDesign(seed=5), n=3)
    store.record_exposure("ann", [first], "labels")
    assert (store.label_state(), store.result_state()) == states[-1]
