"""Why a judge gave no verdict, and what it read of a trace, are segments of the corrected rate."""

import json
from pathlib import Path

import pandas as pd
import pytest

from calibration.analyses.evidence.data import MOST_CAUSES, verdict_codes
from calibration.analyses.evidence.from_files import load_tables
from calibration.analyses.exports import label_table, verdict_table
from calibration.analyses.imports import import_verdicts
from calibration.analyses.judge.calibration import (
    CalibrationOptions,
    analyse_judge,
    calibrate_judge,
)
from calibration.analyses.judge.groups import analyse_groups, group_rates
from calibration.errors import CalibrationError
from calibration.records import Verdict
from calibration.tables.rows import write_rows
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, diagnose_judge, ids, known

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
        "cut": 25, "whole": 175,
    }  # fmt: skip
    composed = known(analyse_judge(world.store, world.batch_id).composition)
    assert "prompt" in composed.p_holm
    rows = diagnose_judge(world.store, world.batch_id).leniency_by["prompt"]
    assert {row.group for row in rows} == {"cut", "whole"}


def test_files_say_the_same_as_the_store(world: World, tmp_path: Path) -> None:
    batch, store = world.batch_id, world.store
    tables = {}
    for name, found in (
        ("labels", label_table(store, batch)),
        ("verdicts", verdict_table(store, batch)),
    ):
        tables[name] = tmp_path / f"{name}.csv"
        write_rows(found, tables[name])
    options = CalibrationOptions()
    data = load_tables(tables["labels"], tables["verdicts"])
    of_files, of_store = calibrate_judge(data, options), analyse_judge(store, batch)
    assert of_files.verdict_names == of_store.verdict_names
    assert of_files.calibration.estimates == of_store.calibration.estimates
    groups = group_rates(data, options, by="prompt").groups
    assert {row.name: row.net.n_production for row in groups} == {"cut": 25, "whole": 175}
    # And back into a store.
    done = import_verdicts(store, tables["verdicts"], judge_id="again")
    assert len(done.stored.imported) == N
    before, after = (
        store.verdict_frame(judge).drop(columns="judge_id") for judge in ("judge-1", "again")
    )
    pd.testing.assert_frame_equal(before, after)


def test_groups_by_prompt_need_a_cut_trace(new_world: NewWorld) -> None:
    world = new_world(n=20, n_drawn=10)
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    world.judge(dict.fromkeys(ids(20), "complete"))
    with pytest.raises(CalibrationError, match="no trace is known to have been cut"):
        analyse_groups(world.store, world.batch_id, by="prompt")


def test_a_column_of_free_text_makes_no_strata_without_end() -> None:
    causes = pd.Series(["often"] * 3 + [f"cause {k}" for k in range(500)], dtype=object)
    outcomes = pd.Series(["no_verdict"] * len(causes), dtype=object)
    codes, names = verdict_codes(outcomes, ("a", "b"), causes=causes)
    assert len(names) == 2 + 1 + MOST_CAUSES
    assert (codes[:3] == names.index("no_verdict: often")).all()
    assert (codes == names.index("no_verdict")).sum() == 503 - 3 - (MOST_CAUSES - 1)
