"""Why a judge gave no verdict, and what it read of a trace, are segments of the corrected rate."""

import json

import pytest

from calibration.analyses.judge.calibration import analyse_judge
from calibration.analyses.judge.diagnostics import diagnose_judge
from calibration.analyses.judge.groups import analyse_groups
from calibration.errors import CalibrationError
from calibration.records import Verdict
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, ids, known

N = 200
CAUSES = {1: "refusal", 3: "split"}


@pytest.fixture
def world(new_world: NewWorld) -> World:
    """Refused runs are complete, split ones are abandoned; a quarter each, the rest judged."""
    world = new_world(n=N, n_drawn=80)
    right = {t: "abandoned" if k % 4 == 3 else "complete" for k, t in enumerate(ids(N))}
    world.label("Ann", {t: right[t] for t in world.drawn})
    world.store.add_verdicts([
        Verdict(
            trace_id=t, judge_id="judge-1", outcome="no_verdict" if k % 4 in CAUSES else "complete",
            cause=CAUSES.get(k % 4),
            detail=json.dumps({"of_all": True, "cut_characters": 500 if k % 8 == 0 else 0}),
        )
        for k, t in enumerate(ids(N))
    ])  # fmt: skip
    return world


def test_each_cause_is_a_stratum_of_its_own(world: World) -> None:
    found = analyse_judge(world.store, world.batch_id)
    assert found.verdict_names[-2:] == ("no_verdict: refusal", "no_verdict: split")
    at = {name: k for k, name in enumerate(found.verdict_names)}
    table = known(found.calibration.confusion).table
    assert table[0][at["no_verdict: split"]] == 0
    assert table[0][at["no_verdict: refusal"]] > 0
    # As one stratum they would have the mean of the labelled ones, which are no quarter each.
    assert known(known(found.calibration.headline_estimate).net.value) == pytest.approx(0.75)
    drawn = [int(t[1:]) % 4 for t in world.drawn]
    assert drawn.count(1) != drawn.count(3)


def test_traces_that_were_cut_to_fit_are_groups_of_their_own(world: World) -> None:
    groups = analyse_groups(world.store, world.batch_id, by="prompt")
    assert {row.name: row.net.n_production for row in groups.groups} == {
        "cut to fit": 25, "whole": 175,
    }  # fmt: skip
    composed = known(analyse_judge(world.store, world.batch_id).composition)
    assert "prompt" in composed.p_holm
    rows = diagnose_judge(world.store, world.batch_id).leniency_by["prompt"]
    assert {row.group for row in rows} == {"cut to fit", "whole"}


def test_groups_by_prompt_need_a_cut_trace(new_world: NewWorld) -> None:
    world = new_world(n=20, n_drawn=10)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    world.judge(dict.fromkeys(ids(20), "complete"))
    with pytest.raises(CalibrationError, match="no trace is known to have been cut to fit"):
        analyse_groups(world.store, world.batch_id, by="prompt")
