"""Loops, versions, goals, lengths and the check of the evaluation in the report, by hand."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.analyses.success_rate.evaluation import EvaluationFacts, evaluation_checks
from calibration.analyses.success_rate.from_runs import reading_notes, report_on_files
from calibration.analyses.success_rate.from_store import report_on_store, without_models
from calibration.analyses.success_rate.report import ReportOptions, SuccessRateReport
from calibration.errors import InputError
from calibration.records import Step
from calibration.reporting import to_json
from calibration.reporting.document import markdown, text_lines
from calibration.reporting.render_html import html
from calibration.reporting.sections.success_rate import document
from calibration.runs.results import GateQuery, ProductionCounts
from calibration.runs.sources import Frame, open_frame
from calibration.statistics.estimate import Estimate, not_estimable
from calibration.statistics.intervals import chance_at_least, logit_interval
from calibration.success_rate.trials import success_by_length
from tests.analyses.conftest import NewWorld
from tests.analyses.production_files import write
from tests.analyses.worlds import ids
from tests.classes import TAXONOMY
from tests.cli_runs import data, run
from tests.runs.tables import counts_of_source

DOCS = Path(__file__).parents[2] / "docs"
GATES = "defaults = false\n[gates.loops]\nthreshold = 0.9\n"


def runs(n_tasks: int = 60, trials: int = 5) -> list[dict[str, Any]]:
    """Return 5 trials of 60 tasks: of 1, 2, 4, 8 and 16 steps, the first four complete."""
    return [
        {
            "trace_id": f"r{t}-{k}", "workflow": "research", "cost_usd": 0.5, "task_id": f"t{t}",
            "trial": k, "outcome": "complete" if k < 4 else "partial_minus", "model": "m",
            "agent_version": ("v1", "v2")[t % 2], "harness": ("cli", "api")[t % 3 == 0],
            "tier": "edge" if t % 6 == 0 else "core", "difficulty": ("easy", "hard")[t % 2],
            "n_steps": 2**k, "total_tokens": 900 * 2**k + t, "context_tokens": 1_000 * 2**k,
            "loops": "yes" if k == 4 else "no", "loops_in_a_row": "no",
        }
        for t in range(n_tasks)
        for k in range(trials)
    ]  # fmt: skip


def report(rows: Sequence[dict[str, Any]], **options: Any) -> SuccessRateReport:
    options = {"n_resamples": 100} | options
    return report_on_files(Frame(pd.DataFrame(rows)), options=ReportOptions(**options))


@pytest.fixture(scope="module")
def found() -> SuccessRateReport:
    targets = {"asr": 0.7, "complete": 0.8, "abandoned": 0.1}
    return report(runs(), targets=targets, context_window=32_000)


# Loops


def counted(rows: Sequence[dict[str, Any]], **options: Any) -> ProductionCounts:
    with open_frame(pd.DataFrame(rows)) as source:
        return counts_of_source(source, taxonomy=TAXONOMY, **options)


def test_loops_have_one_name_and_one_rule_in_report_and_gate(tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if "loops" not in k} for row in runs(2, 3)]
    said: dict[str, Sequence[Any]] = {
        "loops": ["4", "0", "yes", "no", "", "0"],
        "loop": ["true", "no", "3", "0", "", "f"],
        "max_repeats": ["3", "2", "7", "0", "", "1"],
    }
    for column, values in said.items():
        own = [
            row | {column: value, "loops_in_a_row": k == 0}
            for k, (row, value) in enumerate(zip(rows, values, strict=True))
        ]
        found = counted(own, gates=GateQuery())
        assert found.signals is not None
        assert found.for_gates is not None
        events, sums = found.for_gates.events, found.signals.table
        for name, (n, of) in {"loops": (2, 5), "loops_in_a_row": (1, 6)}.items():
            assert (sums[name].sum(), sums[f"of_{name}"].sum()) == (n, of), column
            assert (events[name].count, events[name].n) == (n, of), column
    told = [row | {"max_repeats": row["max_repeats"] or "0"} for row in own]
    file = write(tmp_path / "runs.csv", told)
    (tmp_path / "gates.toml").write_text(GATES, "utf-8")
    gate = data(run("gate", file, "--gates", tmp_path / "gates.toml", "--json"))["gates"][0]
    documented = " ".join((DOCS / "gates.md").read_text("utf-8").split())
    assert f"such as `{gate['why']}`" in documented
    both = counted([row | {"loops": "no", "loop": "yes", "max_repeats": 9} for row in rows])
    assert both.signals is not None
    assert both.signals.table["loops"].sum() == 0
    with pytest.raises(InputError, match="column 'max_repeats': 6 rows hold neither yes, no"):
        counted([row | {"max_repeats": "many"} for row in rows], gates=GateQuery())


def test_a_store_reads_loops_that_are_not_in_a_row_from_its_steps(new_world: NewWorld) -> None:
    def steps(*tools: str) -> tuple[Step, ...]:
        return tuple(
            Step(step_id=str(k), role="assistant", tool=tool, arguments="1")
            for k, tool in enumerate(tools)
        )

    made = {"x0": steps(*"ababab"), "x1": steps(*"aaab"), "x2": steps(*"aabb")}
    world = new_world(
        n=30, n_drawn=30,
        traces={
            name: {"steps": made.get(f"x{k}", steps("a")), "model": "m",
                   "agent_version": "cli@1" if k % 2 else "2"}
            for k, name in enumerate(ids(30))
        },
    )  # fmt: skip
    world.label("Ann", {t: "complete" if k % 3 else "abandoned" for k, t in enumerate(ids(30))})
    found = report_on_store(world.store, ReportOptions(n_resamples=200, targets={"asr": 0.9}))
    signals = {s.key: s.over_all.value for s in found.signals}
    assert (signals["loops"], signals["loops_in_a_row"]) == (2 / 30, 1 / 30)
    assert {g.name: g.n for g in found.by_version} == {"2": 15, "cli@1": 15}
    assert {g.name: g.n for g in found.by_harness} == {"cli": 15, None: 15}
    (goal,) = found.goals
    assert goal.chance == chance_at_least(found.asr, 0.9)
    assert goal.chance is not None
    assert 0 < goal.chance < 0.025
    (by_steps,) = found.by_length
    assert sum(of.n for of in by_steps.bins) == 30
    status = {check.name: check.status for check in found.evaluation}
    assert status["graders"] == status["tasks"] == "not met"
    assert status["agreement"] == status["edge_cases"] == "not known"
    made_by = without_models_of(found)
    assert (made_by.by_version, made_by.by_harness) == ((), ())


def without_models_of(found: SuccessRateReport) -> SuccessRateReport:
    from calibration.analyses.success_rate.from_store import StoreReport

    whole = StoreReport(report=found, work={}, rates=None)  # type: ignore[arg-type]
    return without_models(whole).report


# Versions and harnesses


def test_rates_by_version_and_harness_and_trials_of_each(found: SuccessRateReport) -> None:
    versions = {g.name: (g.n, g.asr.value) for g in found.by_version}
    assert set(versions) == {"api@v1", "api@v2", "cli@v1", "cli@v2"}
    assert sum(n for n, _ in versions.values()) == 300
    assert {g.name: g.n for g in found.by_harness} == {"api": 100, "cli": 200}
    assert {value for _, value in versions.values()} == {0.8}
    assert [of.agent for of in found.passes] == ["m api@v1", "m api@v2", "m cli@v1", "m cli@v2"]
    plain = report([{k: v for k, v in row.items() if k != "harness"} for row in runs(8)])
    assert [g.name for g in plain.by_version] == ["v1", "v2"]
    assert plain.by_harness == ()
    bare = counted([{k: v for k, v in row.items() if k != "agent_version"} for row in runs(8)])
    assert set(bare.cells["agent_version"]) == {"api@", "cli@"}
    assert [of.key for of in plain.by_length] == ["n_steps", "total_tokens"]  # no context window


def test_versions_in_random_groups_of_tasks_and_many_of_them() -> None:
    rows = [row | {"agent_version": f"v{row['task_id']}"} for row in runs(140, 2)]
    assert counted(rows).cells["agent_version"].nunique() == 140  # more names than have codes
    rows = [row | {"outcome": ("complete", "abandoned")[k % 2]}
            for k, row in enumerate(runs(40, 2))]  # fmt: skip
    names = pd.Series([f"{row['harness']}@{row['agent_version']}" for row in rows])
    for most in (20_000, 10):
        found = counted(rows, most_tasks=most)
        assert found.tasks_grouped == (most == 10)
        table = found.tasks_by.get("agent_version", found.tasks)
        assert table is not None
        n = table.groupby("agent_version", observed=True)[["n", "score"]].sum()
        assert n["n"].to_dict() == names.value_counts().to_dict()
        assert (n["score"] == n["n"] / 2).all()
        if most == 10:
            by_model = found.tasks_by["model"].groupby("model", observed=True)["n"].sum()
            assert by_model.to_dict() == {"m": 80}


# Goals


def test_goals_give_the_gap_and_the_chance(found: SuccessRateReport) -> None:
    goals = {goal.name: goal for goal in found.goals}
    rate, complete, abandoned = (goals[name] for name in ("asr", "complete", "abandoned"))
    assert rate.gap == pytest.approx(0.1)
    assert rate.reached
    # All tasks are alike: no resample differs, and the bound over tasks is no distribution.
    assert complete.gap == pytest.approx(0)
    assert abandoned.gap == pytest.approx(-0.1)
    assert not abandoned.reached
    made = to_json.data(found)["goals"]
    assert made["asr"]["gap_pp"] == pytest.approx(10)
    assert {"chance", "chance_method", "chance_status", "target"} <= made["asr"].keys()
    with pytest.raises(InputError, match="'great' is not one of asr, complete"):
        report(runs(8), targets={"great": 0.5})


def test_the_chance_is_the_share_of_the_resamples_behind_the_interval() -> None:
    rows = [
        row | {"task_id": row["trace_id"], "outcome": ("complete", "abandoned")[k % 2]}
        for k, row in enumerate(runs(20))
    ]
    found = report(rows, targets={"asr": 0.5, "complete": 0.9}, n_resamples=1000)
    half, most = found.goals
    assert half.method == "share of 1,000 resamples"
    assert half.chance == pytest.approx(0.5, abs=0.06)
    assert (most.chance, most.status) == (0.0, "ok")
    text = "\n".join(text_lines(document(found)))
    assert "Goal Completed 90.0 %: 50.0 %" in "\n".join(
        words.text for words in document(found).brief or () if hasattr(words, "text")
    )
    assert "< 0.1 %" in text


def test_the_chance_of_an_interval_is_that_of_what_it_was_made_from() -> None:
    limits = logit_interval(0.6, 0.05, df=9, confidence_level=0.95)
    rate = Estimate(value=0.6, interval=limits, n=10, method="t", df=9.0)
    assert chance_at_least(rate, limits[1]) == pytest.approx(0.025)
    assert chance_at_least(rate, limits[0]) == pytest.approx(0.975)
    assert chance_at_least(rate, 0.6) == pytest.approx(0.5)
    # The side that faces the target counts, on the plain scale where a limit is 0 or 1.
    sure = Estimate(value=1.0, interval=(0.9, 1.0), n=30, method="exact")
    assert chance_at_least(sure, 0.9) == pytest.approx(0.975)
    assert chance_at_least(sure, 1.1) is None
    assert chance_at_least(not_estimable("no labels", method="t"), 0.5) is None
    assert chance_at_least(Estimate(value=0.5, interval=None, n=3, method="t"), 0.5) is None


# Lengths


def test_success_by_steps_tokens_and_context(found: SuccessRateReport) -> None:
    steps, tokens, context = found.by_length
    assert [of.key for of in found.by_length] == ["n_steps", "total_tokens", "context_share"]
    assert [(of.low, of.high, of.n, of.success.value) for of in steps.bins] == [
        (2.0**k, 2.0**k, 60, float(k < 4)) for k in range(5)
    ]
    assert steps.bins[0].success.interval is not None
    assert steps.bins[0].success.interval[0] == pytest.approx(0.025 ** (1 / 60))
    # The mean of 1, 2, 4, 8 and 16 is 6.2, and .8 of the runs are complete.
    assert steps.step_rate == pytest.approx(0.8 ** (1 / 6))
    assert steps.bins[4].compounded == pytest.approx(0.8 ** (16 / 6))
    assert (tokens.step_rate, tokens.bins[0].compounded) == (None, None)
    assert [of.high for of in context.bins] == [2.0**k / 32 for k in range(5)]
    own = [row | {"context_window": 16_000} for row in runs(8)]
    assert counted(own, lengths=True).lengths[2].table["high"].max() == 1.0


def test_lengths_are_weighted_and_bad_ones_are_counted() -> None:
    rows = [
        row | {
            "weight": 3.0 if k % 5 == 0 else 1.0, "stratum": f"s{k % 2}", "task_id": f"{k}",
            "outcome": "complete" if k % 5 == 0 else "abandoned", "n_steps": 3,
        }
        for k, row in enumerate(runs(20))
    ]  # fmt: skip
    rows[0]["n_steps"], rows[1]["n_steps"] = -1, None
    found = counted(rows, lengths=True)
    (only,) = success_by_length("n_steps", found.lengths[0].table).bins
    assert (only.n, only.success.value) == (98, 3 * 19 / (3 * 19 + 79))
    assert found.notes.bad_lengths == 1
    assert any(note.startswith("1 runs have steps") for note in reading_notes(found.notes, 100))


# Is this an evaluation?


def test_the_last_section_asks_whether_this_is_an_evaluation(found: SuccessRateReport) -> None:
    said = {check.name: (check.status, check.figure) for check in found.evaluation}
    assert said["tasks"] == ("met", "60 tasks")
    assert said["trials"] == ("met", "5.0 trials a task")
    assert said["difficulty"] == ("met", "2 levels of difficulty")
    assert said["edge_cases"] == ("met", "16.7 % of the runs are edge cases")
    assert said["graders"][0] == said["agreement"][0] == "not known"
    assert said["leakage"] == ("met", "none of 300 runs")
    assert said["reproducible"] == ("not met", "the source cannot be read again")
    assert all(check.action for check in found.evaluation if check.status != "met")
    made = document(found)
    assert made.sections[-1].title == "Is this an evaluation?"
    assert made.sections[-1].answer == "5 of 8 conditions met, 2 not known"
    assert to_json.data(found)["evaluation"]["tasks"]["status"] == "met"
    for drawn in ("\n".join(text_lines(made)), markdown(made), html(made)):
        assert "50 tasks or more" in drawn
        assert "cannot be read again" in drawn


def test_what_is_not_met_and_what_is_not_known() -> None:
    alpha = Estimate(value=0.7, interval=(0.6, 0.8), n=40, method="jackknife")
    facts = EvaluationFacts(
        n_runs=120, n_tasks=40, levels=1, edge=0.05, graders=("labels of 2 reviewers",),
        agreement=alpha, n_reference=3, repeats="",
    )  # fmt: skip
    assert {check.status for check in evaluation_checks(facts)} == {"not met"}
    nothing = EvaluationFacts(n_runs=120, n_tasks=None, repeats="seed 0")
    assert [check.status for check in evaluation_checks(nothing)] == ["not known"] * 6 + ["met"] * 2
    assert np.all([check.action for check in evaluation_checks(nothing)[:6]])


# The documents


def test_the_examples_of_the_documents_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "runs.csv", runs(20))
    text = (DOCS / "report.md").read_text("utf-8")
    examples = re.findall(r"^    asr (report runs\.csv .*)$", text, re.MULTILINE)
    assert len(examples) == 2
    printed = "".join(run(*example.split()).stdout for example in examples)
    assert "Goal Agent Success Rate 70.0 %" in printed
    assert "Pass rate, by share of the context used" in printed
