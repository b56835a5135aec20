import pytest

from calibration.analyses.evidence.from_store import labelled_trace
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.errors import InputError
from calibration.records import Evidence, LabelDraft, Workflow
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import make_trace


def test_one_trace_with_everything_that_was_said_of_it(new_world: NewWorld) -> None:
    world = new_world()
    store, trace_id = world.store, world.drawn[0]
    world.skip("Cem", trace_id)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    ben = store.add_reviewer("Ben").reviewer_id
    store.record_exposure(ben, [trace_id], "labels")
    store.import_labels(
        world.batch_id,
        [
            LabelDraft(
                client_token="b", trace_id=trace_id, reviewer_id=ben, batch_id=world.batch_id,
                answers=store.taxonomy().answers_for("partial_plus"), rationale="one is missing",
                evidence=(Evidence(step_id="response", quote="Booked"),), confidence=1,
                tags=("refund",),
            )
        ],
    )  # fmt: skip
    world.settle(trace_id, "partial_plus")
    trace, found = labelled_trace(store, world.batch_id, trace_id)
    assert trace == store.for_review([trace_id])[0]
    assert found.consensus == "partial_plus"
    cem, ann, b = found.labels
    assert (ann.reviewer, ann.outcome, ann.rationale, ann.blind) == (
        "ann",
        "complete",
        None,
        True,
    )
    assert b.answers == store.taxonomy().answers_for("partial_plus")
    assert (b.rationale, b.confidence, b.tags, b.blind) == (
        "one is missing",
        "low",
        ("refund",),
        False,
    )
    assert b.evidence == (Evidence(step_id="response", quote="Booked"),)
    assert (cem.outcome, cem.reason, cem.answers) == (None, "cannot tell", {})
    assert labelled_trace(store, world.batch_id, world.drawn[1])[1].consensus is None
    with pytest.raises(InputError, match="no trace 'x'"):
        labelled_trace(store, world.batch_id, "x")


def test_the_state_of_the_labels_changes_with_labels_and_consensus_alone(
    new_world: NewWorld,
) -> None:
    world = new_world()
    states = [world.store.label_state()]
    world.label("Ann", {world.drawn[0]: "complete"})
    states.append(world.store.label_state())
    world.settle(world.drawn[0], "complete")
    states.append(world.store.label_state())
    world.skip("Ann", world.drawn[1])
    states.append(world.store.label_state())
    assert len(set(states)) == 4
    world.store.record_exposure("ann", [world.drawn[0]], "labels")
    world.store.add_reviewer("Ben")
    assert world.store.label_state() == states[-1]


def test_the_state_of_results_changes_with_all_that_enters_a_rate(new_world: NewWorld) -> None:
    world = new_world()
    store = world.store
    states = [store.result_state()]
    for change in (
        lambda: world.label("Ann", {world.drawn[0]: "complete"}),
        lambda: world.judge({world.drawn[0]: "complete"}),
        lambda: store.ingest([make_trace("new")]),
        lambda: store.set_workflow(Workflow(name="flights", ceiling_usd=0.5, unit="seat")),
        lambda: world.settle(world.drawn[0], "complete"),
    ):
        change()
        states.append(store.result_state())
    assert len(set(states)) == 6
    draw_batch(store, SamplingDesign(seed=5), n=3)
    store.record_exposure("ann", [world.drawn[0]], "labels")
    assert store.result_state() == states[-1]
