"""Diagnostics of a batch drawn with unequal probabilities speak about production, not the batch."""

import numpy as np
import pytest

from calibration.analyses.judge.calibration import analyse_judge
from calibration.analyses.judge.diagnostics import WEIGHED, diagnose_judge
from calibration.analyses.judge.drift import compare_judges
from calibration.analyses.judge.groups import analyse_groups
from calibration.analyses.sampling.draw import SamplingDesign
from calibration.analyses.sampling.stratified import draw_allocated
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids

N = 400

# The judge passes 300 of 400 traces, of which 15 failed; of the 100 others 50 succeeded.
SAID = dict(zip(ids(N), ["complete"] * 300 + ["hallucinated"] * 100, strict=True))

TRUTH = dict(
    zip(
        ids(N),
        ["complete"] * 285 + ["abandoned"] * 15 + ["complete"] * 50 + ["abandoned"] * 50,
        strict=True,
    )
)

GAP = {name: float(SAID[name] == "complete") - float(TRUTH[name] == "complete") for name in SAID}

LENIENCY = (15 - 50) / N


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """Label a batch that holds the uncertain verdict far more often than production does."""
    traces = {name: {"model": "one" if k % 2 else "two"} for k, name in enumerate(ids(N))}
    made = new_world(n=N, n_drawn=80, traces=traces)
    made.judge(SAID)
    made.label("Ann", {name: TRUTH[name] for name in made.drawn})
    batch = draw_allocated(made.store, SamplingDesign(seed=2), n=120, allocation="neyman")
    drawn = tuple(made.store.batch_items(batch.batch_id)["trace_id"])
    found = World(store=made.store, batch_id=batch.batch_id, drawn=drawn)
    found.label("Ann", {name: TRUTH[name] for name in drawn})
    return found


def weights(world: World) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    items = world.store.batch_items(world.batch_id).set_index("trace_id")
    drawn = items.loc[list(world.drawn), "inclusion_probability"]
    return np.asarray(1 / drawn.to_numpy(dtype=np.float64))


def test_leniency_is_that_of_production(world: World) -> None:
    found = diagnose_judge(world.store, world.batch_id)
    gaps = np.array([GAP[name] for name in world.drawn])
    weight = weights(world)
    by_hand = float(weight @ gaps / weight.sum())
    value = found.leniency.estimate.value
    assert value == pytest.approx(by_hand)
    assert abs(by_hand - LENIENCY) < 0.02
    # The plain mean over the batch is more than twice as far down.
    assert gaps.mean() < 2 * LENIENCY
    assert found.notes == (WEIGHED,)
    models = {row.group: row for row in found.leniency_by["agent"]}
    one = np.array([int(name[1:]) % 2 == 1 for name in world.drawn])
    assert models["one"].gap.estimate.value == pytest.approx(
        weight[one] @ gaps[one] / weight[one].sum()
    )
    assert models["one"].verdict_credit - models["one"].human_credit == pytest.approx(
        models["one"].gap.estimate.value
    )


@pytest.mark.long
def test_questions_count_as_the_calibration_does(world: World) -> None:
    found = diagnose_judge(world.store, world.batch_id)
    table = analyse_judge(world.store, world.batch_id).calibration.confusion.table
    weight = weights(world)
    assert table.sum() == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    (both, only_human), (only_judge, neither) = found.nodes["output"].table
    # Complete and hallucinated are output, abandoned is none.
    assert both == pytest.approx(table[:4].sum())
    assert only_judge == pytest.approx(table[4].sum())
    assert only_human == neither == 0


def test_disagreements_weigh_what_they_stand_for(world: World) -> None:
    found = diagnose_judge(world.store, world.batch_id).disagreements
    # 15 passed that failed, 50 failed that passed, and 50 hallucinated that were abandoned.
    assert sum(d.weight for d in found) == pytest.approx(115 / N, abs=0.03)
    assert sum(d.moves or 0.0 for d in found) == pytest.approx(65 / N, abs=0.03)
    assert len(found) / len(world.drawn) > 115 / N + 0.1


def test_groups_and_drift_are_weighed(world: World) -> None:
    groups = {g.name: g for g in analyse_groups(world.store, world.batch_id, by="model").groups}
    share = sum(TRUTH[name] == "complete" for name in ids(N)[1::2]) / (N / 2)
    one = groups["one"]
    assert one.net.kind == "direct"
    assert one.net.estimate.value == pytest.approx(share, abs=0.05)
    assert one.leniency.estimate.value == pytest.approx(LENIENCY, abs=0.04)
    world.judge(dict.fromkeys(ids(N), "complete"), "always")
    drift = compare_judges(world.store, "judge-1", "always", batch_id=world.batch_id)
    humans = drift.against_humans
    assert humans is not None
    assert humans.accuracy_before.estimate.value == pytest.approx(285 / N, abs=0.03)
    assert humans.accuracy_after.estimate.value == pytest.approx(335 / N, abs=0.03)
    right = np.array([TRUTH[name] == "complete" for name in world.drawn])
    assert abs(right.mean() - 335 / N) > 0.08
