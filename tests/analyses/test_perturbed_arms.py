"""Runs of perturbed arms are in no number of production, and every result says how many."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.agreement.analysis import analyse_agreement
from calibration.analyses.evidence.from_files import load_tables
from calibration.analyses.evidence.from_store import load_batch
from calibration.analyses.exports import label_table
from calibration.analyses.gates.run import gate_files, gate_store
from calibration.analyses.judge.calibration import analyse_judge
from calibration.analyses.judge.report import JudgeReport
from calibration.analyses.reviewers.adjudication import adjudication_work
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch, drawn_batch
from calibration.analyses.sampling.planning import plan_batch
from calibration.analyses.success_rate.comparison import compare_files
from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.from_store import report_on_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections import agreement, gates, judge, plans, success_rate
from calibration.store import Store
from tests.analyses.conftest import NewWorld
from tests.analyses.production_files import runs, write
from tests.analyses.worlds import World, ids, make_trace

FEW = ReportOptions(n_resamples=200)
SAID = "3 runs of perturbed arms are left out"
ARMS = ("fault", "structure", "prompt")
GOOD = [("complete", 1.0)] * 6 + [("partial_plus", 1.0)] * 2
ARM_RUNS: list[dict[str, Any]] = [
    {
        "trace_id": f"arm{k}", "workflow": "research", "outcome": "abandoned", "cost_usd": 9.0,
        "perturbation": arm,
    }
    for k, arm in enumerate(ARMS)
]  # fmt: skip


def texts(found: Any) -> str:
    return "\n".join(map(str, found))


def arms(store: Store) -> list[str]:
    """Add a run of each perturbed arm; return the ids."""
    store.ingest([make_trace(f"arm{k}", perturbation=arm) for k, arm in enumerate(ARMS)])
    return [f"arm{k}" for k in range(len(ARMS))]


def marked(store: Store, trace_ids: Sequence[str]) -> None:
    """Let traces of a batch turn out to be of perturbed arms after it was drawn."""
    with store._db.write() as cursor:
        cursor.execute(
            "UPDATE trace SET perturbation = 'fault' WHERE list_contains(?::VARCHAR[], trace_id)",
            [list(trace_ids)],
        )


def all_labelled(new_world: NewWorld, **options: Any) -> World:
    world = new_world(n=30, n_drawn=30, **options)
    world.label("ann", {t: "abandoned" if k % 3 else "complete" for k, t in enumerate(ids(30))})
    return world


def file_of(folder: Path, name: str, rows: list[dict[str, Any]]) -> str:
    return write(folder / name, rows)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Return the same runs without arms, and with three among them and a control arm."""
    plain = runs(GOOD)
    with_arms = [row | {"perturbation": "none" if k else ""} for k, row in enumerate(plain)]
    return (
        file_of(tmp_path, "plain.csv", plain),
        file_of(tmp_path, "arms.csv", [*with_arms[:4], *ARM_RUNS, *with_arms[4:]]),
    )


def test_report_on_a_file(files: tuple[str, str]) -> None:
    plain, found = (report_on_files([path], options=FEW) for path in files)
    assert (found.asr, found.n) == (plain.asr, plain.n)
    assert f"{SAID}." in found.notes
    assert SAID in texts(text_lines(success_rate.document(found)))
    (row,) = to_json.data(found)["set_aside"]
    assert (row["n"], row["reason"]) == (3, "of a perturbed arm")
    assert not any("rows were skipped" in warning for warning in found.warnings)
    assert not any("perturbed" in warning for warning in plain.warnings)


def test_gate_on_a_file(files: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "gates.toml"
    path.write_text("allow_skipped = true\nmax_left_out = 0.0\n")
    plain, found = (gate_files([file], path) for file in files)
    assert found.asr == plain.asr
    assert f"{SAID}." in found.notes
    assert SAID in texts(text_lines(gates.document(found)))
    assert [row["n"] for row in to_json.data(found)["set_aside"]] == [3]


def test_compare_files(files: tuple[str, str]) -> None:
    found = compare_files(*files, options=FEW)
    assert found.found.asr.estimate.value == 0
    assert (found.a.notes, found.b.notes[0]) != ((), "")
    assert found.b.notes[0] == f"{SAID}."
    assert SAID in texts(text_lines(success_rate.comparison_document(found)))
    assert SAID in str(to_json.data(found))


def test_a_file_of_arms_alone_is_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path, "arms.csv", ARM_RUNS)
    with pytest.raises(Exception, match=r"no run is left .*3 of a perturbed arm"):
        report_on_files([path], options=FEW)


def test_a_draw(new_world: NewWorld) -> None:
    world = new_world(n=12, n_drawn=12)
    arms(world.store)
    batch = draw_batch(world.store, SamplingDesign(seed=2), n=12)
    assert set(world.store.batch_items(batch.batch_id)["trace_id"]) == set(ids(12))
    assert (batch.design["population"], batch.design["perturbed_left_out"]) == (12, 3)
    drawn = drawn_batch(world.store, batch)
    assert SAID in texts(text_lines(plans.drawn(drawn)))
    assert to_json.data(drawn)["design"]["perturbed_left_out"] == 3
    first = draw_batch(world.store, SamplingDesign(seed=3, workflow="flights"), n=2)
    assert first.design["perturbed_left_out"] == 3
    assert plan_batch(world.store, n=12).n == 12
    with pytest.raises(Exception, match="13 traces were asked for and there are 12"):
        draw_batch(world.store, SamplingDesign(seed=2), n=13)


@pytest.mark.parametrize("workflow", [None, "flights"])
def test_report_on_a_store(new_world: NewWorld, workflow: str | None) -> None:
    """A batch may have been drawn, and labelled, before the arms were known."""
    world = all_labelled(new_world)
    gone = [t for k, t in enumerate(ids(30)) if k % 3 and k < 5]
    if workflow is not None:
        batch = draw_batch(world.store, SamplingDesign(seed=2, workflow=workflow), n=30)
        assert batch.population(world.store.production_traces()).shape[0] == 30
    marked(world.store, gone)
    assert len(gone) == 3
    found = report_on_store(world.store, FEW)
    assert found.n == 27
    assert found.asr.value == pytest.approx(10 / 27)
    assert f"{SAID}." in found.warnings
    assert SAID in texts(text_lines(success_rate.document(found)))
    (row,) = [r for r in to_json.data(found)["set_aside"] if "perturbed" in r["reason"]]
    assert row["n"] == 3
    if workflow is not None:
        data = load_batch(world.store, batch.batch_id)
        assert (len(data.traces), data.perturbed) == (27, 3)
    assert len(world.store.label_frame(world.batch_id)) == 30


def test_gate_on_a_store(new_world: NewWorld, tmp_path: Path) -> None:
    world = all_labelled(new_world)
    marked(world.store, ids(30)[1:3] + ids(30)[4:5])
    path = tmp_path / "gates.toml"
    path.write_text("allow_skipped = true\n")
    found = gate_store(world.store, path)
    assert found.n_runs == 27
    assert f"{SAID}." in found.notes
    assert SAID in str(to_json.data(found))


def test_calibrate_on_a_store(new_world: NewWorld) -> None:
    world = all_labelled(new_world)
    world.judge(dict.fromkeys(ids(30), "complete"))
    marked(world.store, ids(30)[1:3] + ids(30)[4:5])
    found = analyse_judge(world.store)
    assert (found.calibration.n_labels, found.calibration.n_production) == (27, 27)
    assert SAID in found.notes
    shown = JudgeReport(calibration=found)
    assert SAID in texts(text_lines(judge.document(shown)))
    assert SAID in to_json.data(shown)["notes"]


def test_agreement_on_a_store(new_world: NewWorld) -> None:
    world = new_world(n=12, n_drawn=12)
    same: Mapping[str, str] = {
        t: "abandoned" if k % 3 else "complete" for k, t in enumerate(ids(12))
    }
    world.label("ann", same)
    world.label("bob", dict(same) | dict.fromkeys(ids(12)[:3], "hallucinated"))
    marked(world.store, ids(12)[:3])
    found = analyse_agreement(world.store, world.batch_id)
    assert found.disputed == ()
    assert (len(found.trace_ids), found.perturbed) == (9, 3)
    assert SAID in texts(text_lines(agreement.agreement(found)))
    assert to_json.data(found)["perturbed"] == 3


def test_their_labels_are_settled_and_exported(new_world: NewWorld) -> None:
    """Labels of perturbed arms remain labels: reliability needs their consensus."""
    world = new_world(n=6, n_drawn=6)
    world.label("ann", dict.fromkeys(ids(6), "complete"))
    world.label("bob", dict.fromkeys(ids(6), "abandoned"))
    world.store.add_reviewer("Lea", role="lead")
    marked(world.store, ids(6)[:2])
    work = adjudication_work(world.store, world.batch_id, "lea")
    assert {due.trace_id for due in work.due} == set(ids(6))
    rows = list(label_table(world.store, world.batch_id).rows)
    arms_of = {row["trace_id"]: row["perturbation"] for row in rows}
    assert {t for t, arm in arms_of.items() if arm == "fault"} == set(ids(6)[:2])
    assert len(rows) == 12


@pytest.mark.parametrize("where", ["labels", "verdicts"])
def test_calibrate_on_files(tmp_path: Path, where: str) -> None:
    labels: list[dict[str, Any]] = [
        {"trace_id": f"t{k}", "outcome": "complete" if k % 2 else "abandoned"} for k in range(30)
    ]
    verdicts = [row | {"outcome": "complete"} for row in labels]
    for row in {"labels": labels, "verdicts": verdicts}[where]:
        row["perturbation"] = "fault" if row["trace_id"] in ("t0", "t2", "t4") else "none"
    found = load_tables(
        Path(write(tmp_path / "labels.csv", labels)),
        Path(write(tmp_path / "verdicts.csv", verdicts)),
    )
    assert len(found.labelled) == 27
    assert SAID in found.notes
    arms = [
        sum(rows.rows for rows in reading.left_out if rows.code == "perturbed_arm")
        for reading in found.readings
    ]
    # The labels of a run of an arm are left out with its verdict.
    assert arms == ([3, 0] if where == "labels" else [3, 3])
    if where == "verdicts":
        assert len(found.traces) == 27
