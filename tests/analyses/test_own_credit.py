"""Workflows with their own credit, in reports on files and on a store, by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration.analyses.evidence.from_files import load_tables
from calibration.analyses.judge.calibration import (
    CalibrationOptions,
    analyse_judge,
    calibrate_judge,
)
from calibration.analyses.success_rate.comparison import compare_files
from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.records import Workflow
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections import success_rate
from calibration.runs.sources import open_files
from calibration.success_rate.rate import rate_of_counts
from calibration.success_rate.runs import counts_of_frame
from calibration.taxonomy import Taxonomy, default_taxonomy
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import ids, known
from tests.runs.tables import counts_of_source

PARTIAL = default_taxonomy().acceptable[1]
OPTIONS = ReportOptions(n_resamples=200, any_workflow=True)


def forked(credit: float = 0.2) -> Taxonomy:
    """Return the default taxonomy with another credit of partly right runs of research."""
    return replace(default_taxonomy(), own_credit={"research": {PARTIAL: credit}})


def runs_file(folder: Path, n: int = 40) -> str:
    """Write as many partly right runs of research as of scheduling, one in two over its ceiling."""
    rows = pd.DataFrame(
        {
            "trace_id": [f"t{k}" for k in range(n)],
            "workflow": np.where(np.arange(n) % 2, "research", "scheduling"),
            "outcome": PARTIAL,
            "task_id": [f"k{k // 4}" for k in range(n)],
            "cost_usd": np.where(
                np.arange(n) % 4 < 2, 0.01, np.where(np.arange(n) % 2, 2.2, 0.165)
            ),
        }
    )
    path = folder / "runs.csv"
    rows.to_csv(path, index=False)
    return str(path)


def test_a_report_on_files_pays_each_workflow_its_own_credit(tmp_path: Path) -> None:
    """Gross (.4 + .2) / 2; a penalty of .1 for one run in two."""
    path = runs_file(tmp_path)
    found = report_on_files([path], options=OPTIONS, taxonomy=forked())
    assert found.asr_gross.value == pytest.approx(0.3)
    assert found.asr.value == pytest.approx(0.25)
    by = {group.name: group for group in found.by_workflow}
    assert known(known(by["research"].asr_gross).value) == pytest.approx(0.2)
    assert known(known(by["scheduling"].asr_gross).value) == pytest.approx(0.4)
    at = {row.name: known(row.asr.value) for row in found.sensitivity}
    default = next(value for name, value in at.items() if name.startswith("default weights"))
    assert default == pytest.approx(0.35)
    assert at["partial credit 0.3"] == pytest.approx(0.25)
    assert "research 1 / 0.2 / 0 / 0 / 0" in next(iter(at))
    words = "\n".join(text_lines(success_rate.document(found)))
    assert f"research has its own credit: {PARTIAL} 0.2." in words
    assert json.loads(to_json.as_text(to_json.data(found)))["own_credit"] == {
        "research": {PARTIAL: 0.2}
    }
    plain = report_on_files([path], options=OPTIONS)
    assert plain.origin.taxonomy_fingerprint == default_taxonomy().fingerprint
    assert found.origin.taxonomy_fingerprint == forked().fingerprint
    assert plain.own_credit == {}
    assert forked(0.4).credit_table == default_taxonomy().credit_table


def test_random_groups_of_tasks_know_the_credit_of_their_runs(tmp_path: Path) -> None:
    taxonomy = forked()
    with open_files([runs_file(tmp_path)]) as source:
        counts = counts_of_source(source, taxonomy=taxonomy, most_tasks=5)
    assert counts.tasks is not None
    assert counts.tasks_grouped
    assert "workflow" not in counts.tasks
    runs = counts_of_frame(counts.tasks, taxonomy=taxonomy, grouped_tasks=counts.n_tasks)
    found = rate_of_counts(runs, rng=np.random.default_rng(1), n_resamples=100)
    assert known(found.asr_gross.value) == pytest.approx(0.3)
    assert known(found.asr.value) == pytest.approx(0.25)


def test_two_sides_with_other_credit_of_a_workflow_are_restated(tmp_path: Path) -> None:
    path = runs_file(tmp_path)
    both = compare_files(path, path, options=OPTIONS, taxonomies=(forked(), default_taxonomy()))
    assert both.restated is not None
    assert known(both.found.before.asr.value) == pytest.approx(0.35)
    same = compare_files(path, path, options=OPTIONS, taxonomies=(forked(), forked()))
    assert same.restated is None
    assert same.a.notes[0] == f"research has its own credit: {PARTIAL} 0.2."
    assert known(same.found.before.asr.value) == pytest.approx(0.25)


def test_files_are_calibrated_with_the_credit_of_each_workflow(tmp_path: Path) -> None:
    n = 80
    rows = pd.DataFrame(
        {
            "trace_id": [f"t{k}" for k in range(n)],
            "workflow": np.where(np.arange(n) % 2, "research", "scheduling"),
            "outcome": np.where(np.arange(n) % 8 < 2, PARTIAL, default_taxonomy().success),
        }
    )
    data = load_tables(rows.head(40)[["trace_id", "outcome"]], rows, taxonomy=forked())
    found = calibrate_judge(data, CalibrationOptions())
    # A quarter partly right, half of it in research: 3/4 + 1/8 x .4 + 1/8 x .2.
    for name in ("post_stratified", "human_only", "judge_raw"):
        rate = known(found.calibration.estimates[name].net.value)
        assert rate == pytest.approx(0.825, abs=1e-6)
    assert found.own_credit == {"research": {PARTIAL: 0.2}}
    given = dict.fromkeys(default_taxonomy().names, 0.0) | {PARTIAL: 1.0}
    over = load_tables(
        rows.head(40)[["trace_id", "outcome"]], rows, taxonomy=forked(), credit=given
    )
    assert over.own_credit == {}


def test_a_report_on_a_store_pays_each_workflow_its_own_credit(new_world: NewWorld) -> None:
    """Half of the 40 partly right runs are of hotels at .2, half of flights at .4."""
    n = 40
    traces = {name: {"workflow": "hotels" if k % 2 else "flights"} for k, name in enumerate(ids(n))}
    world = new_world(n=n, n_drawn=n, traces=traces)
    rules = world.store.taxonomy()
    world.store.set_taxonomy(
        replace(
            rules,
            version="2",
            own_credit={"hotels": {PARTIAL: 0.2}},
            workflows=(*rules.workflows, Workflow(name="hotels")),
        )
    )
    assert world.store.taxonomy().own_credit == {"hotels": {PARTIAL: 0.2}}
    world.label("ann", dict.fromkeys(world.drawn[1:], PARTIAL))
    world.skip("ann", world.drawn[0])
    for judged in (False, True):
        if judged:
            world.judge(dict.fromkeys(ids(n), PARTIAL))
        found = report_on_store(world.store, OPTIONS)
        assert known(found.asr.value) == pytest.approx(0.3)
        assert known(found.asr_gross.value) == pytest.approx(0.3)
        by = {group.name: known(group.asr.value) for group in found.by_workflow}
        assert by == {"flights": pytest.approx(0.4), "hotels": pytest.approx(0.2)}
        at = {row.name: known(row.asr.value) for row in found.sensitivity if row.asr.ok}
        defaults = [value for name, value in at.items() if "default weights" in name]
        assert defaults == [pytest.approx(0.4)] * (1 + judged)
        assert found.own_credit == {"hotels": {PARTIAL: 0.2}}
    alone = report_on_store(world.store, replace(OPTIONS, workflow="hotels"))
    assert known(alone.asr.value) == pytest.approx(0.2)
    of_judge = analyse_judge(world.store)
    # The skipped run is worth 0 or 1 instead of .2 or .4.
    skips = known(of_judge.if_skipped)
    assert skips.lowest == pytest.approx(0.3, abs=0.011)
    assert skips.highest == pytest.approx(0.3 + 0.7 / n, abs=0.003)


def test_a_report_says_the_rate_at_other_ceilings(tmp_path: Path, new_world: NewWorld) -> None:
    """Scheduling at 0.165 of 0.15 and research at 2.2 of 2.0, each one run in two.

    At half the ceiling both cost 2.2 times as much: no credit is left. At twice, no penalty.
    """
    path = runs_file(tmp_path)
    found = report_on_files([path], options=OPTIONS)
    at = {(row.factor, row.workflow): row.asr for row in found.at_ceilings}
    assert at[1.0, None] == found.asr
    for workflow in (None, "research", "scheduling"):
        for factor, rate in ((0.5, 0.2), (1.0, 0.35), (2.0, 0.4)):
            assert known(at[factor, workflow].value) == pytest.approx(rate)
    assert at[0.5, None].interval is not None
    scaled = ReportOptions(n_resamples=200, ceilings={"research": 1.0, "scheduling": 0.075})
    exact = report_on_files([path], options=scaled)
    assert known(exact.asr.value) == pytest.approx(known(at[0.5, None].value))
    assert exact.asr.half_width == pytest.approx(known(at[0.5, None].half_width), rel=0.2)
    words = "\n".join(text_lines(success_rate.document(found)))
    assert "if every ceiling were multiplied" in words
    n = 40
    costs = {name: {"cost_usd": 1.5 if k % 2 else 0.1} for k, name in enumerate(ids(n))}
    world = new_world(n=n, n_drawn=n, traces=costs, ceiling=1.0)
    success = default_taxonomy().success
    world.label("ann", dict.fromkeys(world.drawn, success))
    for judged in (False, True):
        if judged:
            world.judge(dict.fromkeys(ids(n), success))
        stored = report_on_store(world.store, OPTIONS)
        assert stored.calibrated == judged
        rates = {(row.factor, row.workflow): row.asr for row in stored.at_ceilings}
        for workflow in (None, "flights"):
            for factor, rate in ((0.5, 0.5), (1.0, 0.75), (2.0, 1.0)):
                assert known(rates[factor, workflow].value) == pytest.approx(rate)
