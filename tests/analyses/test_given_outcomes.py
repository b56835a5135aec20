"""Outcomes that came with the runs of a store, taken as given: no batch, no label."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from calibration.analyses.evidence.from_store import source_judge
from calibration.analyses.gates.run import gate_store
from calibration.analyses.sampling.draw import SamplingDesign, draw_batch
from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.from_store import given_runs, report_on_store
from calibration.analyses.success_rate.report import ReportOptions
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.records import Step, Verdict
from calibration.reporting import to_json
from calibration.reporting.document import markdown
from calibration.reporting.sections.success_rate import document
from calibration.runs.sources import Frame
from calibration.store import Store
from calibration.tables.reading import ReadingOptions
from tests.analyses.worlds import World, make_trace
from tests.cli_runs import Run

BENCH, OTHER = "source:bench", "source:other"
FEW = ReportOptions(judge_id=BENCH, n_resamples=100, reading=ReadingOptions(max_left_out=0.5))
# By task, of two trials each: how many succeed.
PASSED = (2, 1, 0, 2, 1, 2)
UNSAID = "reward 0.5 is neither 0 nor 1"


def rows() -> list[dict[str, Any]]:
    """Return twelve trials of six tasks, with outcome, cost and latency."""
    return [
        {
            "trace_id": f"b{task}-{trial}", "workflow": "flights", "task_id": f"bench/{task}",
            "outcome": "complete" if trial < n else "partial_minus",
            "cost_usd": 0.1 + task / 100, "latency_s": 2.0 + trial, "model": "m",
        }
        for task, n in enumerate(PASSED) for trial in range(2)
    ]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store of these runs, one of a perturbed arm, two without a class, and one of elsewhere."""
    made = Store.open(tmp_path / "given.duckdb", create=True)
    step = Step(step_id="s1", role="assistant", tool="book", arguments="{}", result="ok")
    of_bench: dict[str, Any] = {"source": "bench", "model": "m", "steps": (step,)}
    traces = [
        make_trace(
            str(row["trace_id"]), task_key=str(row["task_id"]), cost_usd=row["cost_usd"],
            latency_s=row["latency_s"], trial=k % 2, **of_bench,
        )
        for k, row in enumerate(rows())
    ]  # fmt: skip
    traces += [
        make_trace("arm", perturbation="fault", **of_bench),
        make_trace("half", **of_bench),
        make_trace("silent", **of_bench),
        make_trace("elsewhere", source="files"),
    ]
    made.ingest(traces)
    said = {str(row["trace_id"]): str(row["outcome"]) for row in rows()} | {"arm": "abandoned"}
    made.add_verdicts(
        [Verdict(judge_id=BENCH, trace_id=t, outcome=c, proposed=True) for t, c in said.items()]
        + [Verdict(judge_id=BENCH, trace_id="half", outcome="no_verdict", reason=UNSAID)]
    )
    return made


def test_it_is_the_report_on_a_table_of_the_same_runs(store: Store) -> None:
    report = report_on_store(store, FEW)
    table = report_on_files(
        Frame(pd.DataFrame(rows())), options=ReportOptions(n_resamples=100, any_workflow=True)
    )
    # Eight of twelve by hand, and the interval is over the six tasks.
    assert report.asr.value == pytest.approx(8 / 12)
    for name in ("asr", "asr_gross", "pass_rate", "classes", "latency"):
        assert getattr(report, name) == getattr(table, name)
    assert (report.n, report.n_tasks, report.asr.n) == (12, 6, 6)
    assert report.cost.per_success == table.cost.per_success
    (ours,), (theirs,) = report.passes, table.passes
    assert ours.points == theirs.points
    assert ours.source == f"outcomes of {BENCH}, as given"
    # One call in each of the twelve runs, none an error.
    (failed,) = [of for of in report.signals if of.key == "tool_errors"]
    assert (failed.over_all.value, failed.over_all.n) == (0.0, 12)


def test_every_output_names_the_source_and_that_nobody_has_checked_it(store: Store) -> None:
    report = report_on_store(store, FEW)
    kind = f"outcomes of {BENCH}, taken as given: no reviewer has checked them"
    assert (report.kind, report.origin.judge, report.calibrated) == (kind, kind, False)
    made = document(report)
    assert made.headline is not None
    assert made.headline.sentence.endswith(f"by the outcomes of {BENCH}, taken as given.")
    assert "not the errors of those who gave the outcomes" in markdown(made)
    data = to_json.data(report)
    assert (data["outcomes"], data["given_by"]) == ("taken as given", BENCH)
    assert data["judged"] is None


def test_what_is_not_in_the_rate_is_counted_with_its_reason(store: Store) -> None:
    store.ingest([make_trace("ref", source="reference")])
    report = report_on_store(store, FEW)
    left = {row.reason.partition(": ")[0]: row for row in report.set_aside}
    assert {name: row.n for name, row in left.items()} == {
        "without an outcome": 1, "without a verdict": 1,
        "of a perturbed arm": 1, f"traces of other sources than {BENCH}": 1,
        "traces of the reference set": 1,
    }  # fmt: skip
    assert left["without a verdict"].examples == (UNSAID,)
    assert report.reading is not None
    assert (
        report.reading.folded_line
        == "Left out: 1 of 15 rows (1 of a perturbed arm, first: 'fault')"
    )


def test_labels_make_another_report_unless_outcomes_are_asked_for_as_given(store: Store) -> None:
    batch = draw_batch(store, SamplingDesign(seed=1), n=12)
    assert given_runs(store, FEW) is not None
    assert given_runs(store, replace(FEW, batch_id=batch.batch_id)) is None
    assert given_runs(store, replace(FEW, judge_id=None)) is None
    (item, *_) = store.batch_items(batch.batch_id)["trace_id"]
    World(store=store, batch_id=batch.batch_id, drawn=()).label("Ann", {item: "complete"})
    assert given_runs(store, FEW) is None
    again = report_on_store(store, replace(FEW, as_given=True))
    assert again.asr.value == pytest.approx(8 / 12)
    assert again.kind == f"outcomes of {BENCH}, taken as given: not corrected with the labels of " \
        "1 trace"  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"judge_id": "source:nix"}, f"gave no verdicts; the judges with verdicts are: {BENCH}"),
        ({"judge_id": "judge-1", "as_given": True}, "is not a source of the runs"),
        ({"as_given": True, "batch_id": "b"}, "--batch is for labels"),
        ({"design": "reference"}, "--design reference is for labels"),
        ({"estimand": "these_runs"}, "--estimand these-runs is for labels"),
        ({"compare_to": "runs.csv"}, "--compare-to FILE is for files"),
        ({"workflow": "nix"}, "there are flights"),
    ],
)
def test_what_is_refused(store: Store, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        given_runs(store, replace(FEW, **options))


def test_two_sources_are_named_or_taken_together(store: Store) -> None:
    store.ingest([make_trace("o1", source="other")])
    store.add_verdicts([Verdict(judge_id=OTHER, trace_id="o1", outcome="complete")])
    with pytest.raises(InputError, match="name one with --judge"):
        source_judge(store, None)
    report = report_on_store(store, replace(FEW, judge_id="source:"))
    assert (report.n, report.given_by) == (13, f"{BENCH} and {OTHER}")


def test_simulated_and_real_runs_do_not_mix(store: Store) -> None:
    store.ingest([make_trace("sim", source="bench", simulated=True)])
    store.add_verdicts([Verdict(judge_id=BENCH, trace_id="sim", outcome="complete")])
    with pytest.raises(MixedDataError):
        given_runs(store, FEW)


def test_nothing_with_a_class_is_no_rate(store: Store) -> None:
    store.add_verdicts([Verdict(judge_id=OTHER, trace_id="elsewhere", outcome="no_verdict")])
    with pytest.raises(CalibrationError, match=r"no run is left .*1 without a verdict"):
        report_on_store(store, replace(FEW, judge_id=OTHER))


GATES = """
defaults = false
before = [["find", "book"]]
max_left_out = 0.2
[gates.asr]
threshold = 0.5
[gates."pass_hat_2[core]"]
threshold = 0.4
[gates.loops]
"""


def test_gates_take_them_as_given_by_option_or_by_the_gate_file(
    store: Store, tmp_path: Path
) -> None:
    gates = tmp_path / "gates.toml"
    gates.write_text(GATES)
    found = gate_store(store, gates, judge_id=BENCH, n_resamples=100)
    of = {gate.name: gate for gate in found.report.gates}
    assert of["asr"].value == pytest.approx(8 / 12)
    # Three of six tasks pass both trials.
    assert of["pass_hat_2[core]"].value == pytest.approx(3 / 6)
    # No run found before it booked; the perturbed one and those without a class do not count.
    assert (of["order"].value, of["order"].parts[0].n) == (1.0, 12)
    assert (found.outcomes, found.given_by, found.calibrated) == ("taken as given", BENCH, False)
    assert found.kind == f"outcomes of {BENCH}, taken as given: no reviewer has checked them"
    gates.write_text(f'outcomes = "{BENCH}"\n{GATES}')
    again = gate_store(store, gates, n_resamples=100)
    assert (again.report, again.fingerprint) == (found.report, found.fingerprint)
    with pytest.raises(InputError, match="leave one out"):
        gate_store(store, gates, judge_id=OTHER)
    gates.write_text(f'outcomes = "judge-1"\n{GATES}')
    with pytest.raises(InputError, match="must be a judge that came with the runs"):
        gate_store(store, gates)


@pytest.mark.long
def test_the_commands(store: Store, tmp_path: Path, asr: Run) -> None:
    path = str(store.path)
    store.close()
    of = ("--store", path, "--resamples", "100")
    hint = asr("report", *of, code=1).stderr
    assert "there is no batch yet" in hint
    assert f"which no reviewer has checked, name their source: --judge {BENCH}" in hint
    refused = asr("report", *of, "--judge", BENCH, code=1).output
    assert "left out 2 of 14 rows" in refused
    raised = (*of, "--max-left-out", "0.15")
    written = asr("report", *raised, "--judge", BENCH, "--json", "--work", "todo").stdout
    assert "b1-1" in Path("todo/partial_minus.csv").read_text()
    saved = tmp_path / "report.json"
    saved.write_text(written)
    assert asr("verify", str(saved), "--store", path).stdout.startswith("the same")
    # Half credit for a failed run: 8 and 4 halves of 12.
    credit = ("--credit", "partial_minus=0.5")
    half = asr("report", *raised, "--judge", BENCH, *credit, "--json").stdout
    assert json.loads(half)["asr"]["value"] == pytest.approx(10 / 12)
    gates = tmp_path / "gates.toml"
    gates.write_text(f'outcomes = "{BENCH}"\n{GATES.replace("0.4", "0.9")}')
    base = str(tmp_path / "base.json")
    gated = asr("gate", *raised, "--gates", str(gates), "--write-baseline", base, code=1).stdout
    assert "taken as given: no reviewer has checked them" in gated
    assert json.loads(Path(base).read_text())["given_by"] == BENCH
    assert "--as-given is for the store" in asr("report", base, "--as-given", code=2).stderr
