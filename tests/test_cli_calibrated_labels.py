"""`asr export probabilities`: what is in the file, what stands beside it, and what is refused."""

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from calibration.analyses.judge.calibration import (
    OF_CLASSES,
    OF_TRACE,
    analyse_judge,
    calibrated_labels,
)
from calibration.records import Workflow
from tests.analyses.worlds import World, ids, make_world
from tests.classes import OUTCOMES
from tests.cli_runs import Run

pytestmark = pytest.mark.usefixtures("few_draws")
N = 200
NAMED = "=1+1"  # a workflow that a spreadsheet would run


@pytest.fixture
def asr(asr: Run) -> Run:
    def called(*arguments: object, code: int = 0) -> Result:
        return asr("export", "probabilities", *arguments, code=code)

    return called


def judged_world(path: Path, *, costs: bool = False, n_labelled: int = 80) -> World:
    """Return 200 traces, half called complete, of which a quarter failed and cost twice as much."""
    names = ids(N)
    failed = {name: k % 4 == 0 for k, name in enumerate(names)}
    changes = {
        name: {"workflow": NAMED if k % 2 else "flights"}
        | ({"cost_usd": 0.3 if failed[name] else 1.9} if costs else {})
        for k, name in enumerate(names)
    }
    world = make_world(path, n=N, n_drawn=80, traces=changes)
    if costs:
        for name in (NAMED, "flights"):
            world.store.set_workflow(Workflow(name=name, ceiling_usd=1.0, unit="seat"))
    world.judge(dict.fromkeys(names, "complete"))
    truth = {name: "abandoned" if failed[name] else "complete" for name in names}
    world.label("Ann", {name: truth[name] for name in world.drawn[:n_labelled]})
    return world


def test_every_trace_has_the_probabilities_of_its_verdict_and_workflow(
    asr: Run, tmp_path: Path
) -> None:
    world = judged_world(tmp_path / "asr.duckdb")
    found = calibrated_labels(world.store)
    frame = found.frame
    assert tuple(frame.columns) == (*OF_TRACE, *OUTCOMES, *OF_CLASSES)
    assert sorted(frame["trace_id"]) == ids(N)
    assert frame[list(OUTCOMES)].sum(axis=1).to_numpy() == pytest.approx(1.0)
    assert set(frame["basis"]) == {"verdict x workflow"}
    # Every failed trace is in flights: its abandoned share is near a half, the other's near none.
    by_flow = frame.groupby("workflow")["abandoned"].first()
    assert 0.3 < by_flow["flights"] < 0.7
    assert by_flow[NAMED] < 0.05
    calibration = analyse_judge(world.store).fingerprint
    assert set(frame["calibration"]) == {calibration} == {found.fingerprint}
    assert found.note is None  # the mean of the labels agrees with the rate
    world.store.close()
    # The same in all three formats, and what they are beside.
    for form in ("csv", "jsonl", "parquet"):
        asr(f"labels.{form}")
        about = json.loads((tmp_path / f"labels.{form}.about.json").read_text())
        assert about["calibration"] == calibration
    csv = pd.read_csv("labels.csv")
    lines = pd.read_json("labels.jsonl", lines=True)
    parquet = pd.read_parquet("labels.parquet")
    assert set(csv["workflow"]) == {"flights", "'" + NAMED}
    assert set(lines["workflow"]) == set(parquet["workflow"]) == {"flights", NAMED}
    for read in (csv, lines):
        assert read["complete"].to_numpy() == pytest.approx(parquet["complete"].to_numpy())
    metadata = pq.read_schema("labels.parquet").metadata
    assert json.loads(metadata[b"about"])["calibration"] == calibration


def test_a_plug_in_that_differs_from_the_rate_is_said(asr: Run, tmp_path: Path) -> None:
    """Successes cost .9 of their credit here: given the verdict, cost goes with the outcome."""
    world = judged_world(tmp_path / "asr.duckdb", costs=True)
    found = calibrated_labels(world.store)
    assert found.headline.value is not None
    assert found.plug_in > found.headline.value + 0.05
    world.store.close()
    done = asr("labels.csv", "--force")
    assert "note: the mean of these labels is" in done.stdout
    assert "and the rate is" in done.stdout
    about = json.loads((tmp_path / "labels.csv.about.json").read_text())
    assert about["note"].startswith("the mean of these labels is")
    assert about["mean_of_these_labels"] == pytest.approx(found.plug_in)


def test_what_cannot_be_calibrated_is_refused(asr: Run, tmp_path: Path) -> None:
    judged_world(tmp_path / "asr.duckdb", n_labelled=20).store.close()
    assert "no calibrated labels" in asr("labels.csv", code=1).stderr
    assert "must end in .csv" in asr("labels.xlsx", code=2).stderr
    assert not (tmp_path / "labels.csv").exists()
    (tmp_path / "asr.csv").hardlink_to(tmp_path / "asr.duckdb")
    assert "is the store itself" in asr("asr.csv", "--force", code=2).stderr
