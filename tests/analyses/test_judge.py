"""The judge of a store: skipped traces, the human side, alpha."""

import pytest

from calibration.analyses.judge.calibration import analyse_judge
from calibration.judge_calibration.calibrate import calibrate_tables
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids


def judged_world(new_world: NewWorld, *, workflows: bool = False) -> World:
    traces = {t: {"workflow": "ab"[k % 2]} for k, t in enumerate(ids(60))} if workflows else None
    world = new_world(n=60, n_drawn=40, traces=traces)
    world.judge({t: "complete" if k % 3 else "abandoned" for k, t in enumerate(ids(60))})
    return world


def test_the_human_side_is_stated(new_world: NewWorld) -> None:
    world = judged_world(new_world)
    world.label("Ann", dict.fromkeys(world.drawn[:36], "complete"))
    world.label("Ben", dict.fromkeys(world.drawn[:4], "abandoned"))
    world.settle(world.drawn[0], "abandoned")
    world.skip("Ben", world.drawn[39])
    found = analyse_judge(world.store)
    side = found.human
    assert side is not None
    assert (side.n_labels, side.reviewers, side.n_shared) == (40, ("ann", "ben"), 4)
    assert (side.n_adjudicated, side.n_open) == (1, 3)
    verdict = "complete" if int(world.drawn[39][1:]) % 3 else "abandoned"
    assert side.skipped_by_verdict == {verdict: 1}
    net = found.calibration.estimates["human_only"].net
    assert net.status == "provisional: 3 open disagreements"
    assert found.calibration.confusion.table[0].sum() == pytest.approx(32 + 3 / 2, rel=0.01)


def test_skipped_traces_are_stood_for_by_those_of_their_verdict_and_workflow(
    new_world: NewWorld,
) -> None:
    world = judged_world(new_world, workflows=True)
    even = [t for t in world.drawn if int(t[1:]) % 2 == 0]
    odd = [t for t in world.drawn if int(t[1:]) % 2]
    # All of workflow a succeed and all of b fail, but six of b with one verdict are skipped.
    skipped = [t for t in odd if int(t[1:]) % 3][:6]
    kept = [t for t in odd if t not in skipped]
    world.label("Ann", dict.fromkeys(even, "complete") | dict.fromkeys(kept, "partial_minus"))
    for trace_id in skipped:
        world.skip("Ann", trace_id)
    found = analyse_judge(world.store)
    assert found.skipped == 6
    # As if all of b were labelled.
    rows = {"complete": even, "partial_minus": odd}
    table = [
        [sum(bool(int(t[1:]) % 3) for t in rows.get(name, [])), 0, 0, 0,
         sum(int(t[1:]) % 3 == 0 for t in rows.get(name, []))]
        for name in found.classes
    ]  # fmt: skip
    whole = calibrate_tables(
        table, [40, 0, 0, 0, 20], credit=list(found.credit.values()), design="production"
    )
    value = found.calibration.estimates["post_stratified"].net.value
    assert value == pytest.approx(whole.estimates["post_stratified"].net.value)
    assert found.if_skipped is not None
    low, high = found.if_skipped
    assert low < (value or 0) < high


def test_alpha_and_options_reach_the_judge(new_world: NewWorld) -> None:
    world = judged_world(new_world)
    world.label("Ann", {t: "complete" if int(t[1:]) % 3 else "abandoned" for t in world.drawn})
    found = analyse_judge(world.store, seed=4, confidence_level=0.9, pseudo_count=0)
    assert found.alpha.value == 1
    assert found.alpha.interval is not None
    assert found.alpha.interval[0] < 1
    assert found.seed == 4
    assert {e.net.confidence_level for e in found.calibration.estimates.values()} == {0.9}
    assert found.fingerprint != analyse_judge(world.store, seed=5).fingerprint
