"""The report on a store, part by part, against figures that can be worked out by hand."""

import csv
import io
import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import jsonschema
import pytest

from calibration.analyses.evidence.from_store import load_batch
from calibration.analyses.success_rate import from_store
from calibration.analyses.success_rate.from_store import (
    labelled_csv,
    rates_of_store,
    report_choices,
    report_on_store,
    report_with_work,
    warnings,
    without_models,
)
from calibration.analyses.success_rate.report import ReportOptions, SuccessRateReport
from calibration.errors import CalibrationError, InputError
from calibration.records import REFERENCE_SOURCE, Evidence, LabelDraft
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.render_html import html
from calibration.reporting.sections import success_rate
from calibration.statistics.estimate import Estimate
from tests.analyses.conftest import NewWorld
from tests.analyses.production_files import HOSTILE
from tests.analyses.worlds import World, ids, known, make_trace

N = 48
WEEKS = ("2026-W40", "2026-W41")
DAYS = (datetime(2026, 9, 29, 10, tzinfo=UTC), datetime(2026, 10, 6, 10, tzinfo=UTC))
_tokens = count(1)


def report(world: World, **asked: Any) -> SuccessRateReport:
    """Return a report that satisfies the published schema and can be printed."""
    found = report_on_store(world.store, ReportOptions(**({"n_resamples": 200} | asked)))
    jsonschema.Draft202012Validator(to_json.schema()).validate(to_json.data(found))
    assert list(text_lines(success_rate.document(found)))
    return found


@pytest.fixture
def two_weeks(new_world: NewWorld) -> World:
    """Make 24 traces a week, all labelled.

    First week: 12 complete, 12 abandoned. Second: 21 complete, 3 partial_minus.
    """
    traces = {
        name: {
            "started_at": DAYS[k // 24], "model": "a" if k % 2 else "b",
            "workflow": "hotels" if k % 24 < 6 else "flights", "latency_s": float(k),
        }
        for k, name in enumerate(ids(N))
    }  # fmt: skip
    world = new_world(n=N, n_drawn=N, traces=traces)
    world.label("Ann", {name: class_of(k) for k, name in enumerate(ids(N))})
    return world


def class_of(k: int) -> str:
    if k < 24:
        return "complete" if k % 2 else "abandoned"
    return "partial_minus" if k >= 45 else "complete"


def test_a_window_is_compared_with_the_one_of_its_length_before(two_weeks: World) -> None:
    found = report(two_weeks, since=WEEKS[1], until=WEEKS[1])
    assert (found.n, found.first, found.last) == (24, WEEKS[1], WEEKS[1])
    assert found.asr.value == pytest.approx(0.875)
    change = known(found.change)
    assert (change.later, change.earlier) == (WEEKS[1], "the window before")
    assert change.before.value == pytest.approx(0.5)
    assert change.asr.estimate.value == pytest.approx(0.375)
    # Nothing lies before the first week.
    first = report(two_weeks, since=WEEKS[0], until=WEEKS[0])
    assert first.asr.value == pytest.approx(0.5)
    assert first.change is None
    assert re.fullmatch(
        r"the window before, from [-\d]{10} to [-\d]{10}, holds no labelled run to compare with",
        first.why_no_change,
    )
    without_end = report(two_weeks, since=WEEKS[1])
    assert without_end.change is None
    assert without_end.why_no_change.startswith("a window without --to has no length")
    assert report(two_weeks, since=WEEKS[0], until=WEEKS[0], compare_to=None).why_no_change == ""
    with pytest.raises(CalibrationError, match=r"none of the 0 traces .* is labelled"):
        report(two_weeks, since="2027-01-01", until="2027-01-02")
    with pytest.raises(CalibrationError, match=r"48 of 48 traces have no cost \(--strict-cost\)"):
        report(two_weeks, strict_cost=True)
    with pytest.raises(InputError, match="compares with its own past"):
        report(two_weeks, compare_to="other.csv")


def test_what_the_page_can_be_narrowed_to_and_a_workflow_alone(two_weeks: World) -> None:
    choices = report_choices(load_batch(two_weeks.store, two_weeks.batch_id).traces)
    assert choices.workflows == ("flights", "hotels")
    assert choices.last_weeks(1) == (WEEKS[1], WEEKS[1])
    assert choices.last_weeks(4) == ("2026-W38", WEEKS[1])
    # Of hotels, k % 24 < 6: three complete of six, then six complete of six.
    found = report(two_weeks, workflow="hotels")
    assert found.n == 12
    assert found.asr.value == pytest.approx(9 / 12)
    assert [g.name for g in found.by_workflow] == ["hotels"]
    with pytest.raises(InputError, match="no trace has the workflow 'trains'"):
        report(two_weeks, workflow="trains")


def test_groups_latency_and_work_lists(two_weeks: World) -> None:
    found = report(two_weeks)
    assert [(g.name, g.n) for g in found.by_workflow] == [("flights", 36), ("hotels", 12)]
    assert [g.asr.value for g in found.by_workflow] == pytest.approx([24 / 36, 9 / 12])
    # k odd: 12 of 12 complete, then k = 45 and 47 not; k even: none of 12, then all but 46.
    assert [(g.name, g.n) for g in found.by_model] == [("a", 24), ("b", 24)]
    assert [g.asr.value for g in found.by_model] == pytest.approx([22 / 24, 11 / 24])
    assert known(found.latency).p50 == 23.0  # 0 to 47: the 24th of them
    lists = {one.outcome: one for one in found.work_lists}
    assert lists["partial_minus"].by_week == ((WEEKS[0], 0), (WEEKS[1], 3))
    assert [i.trace_id for i in lists["partial_minus"].first] == ["r045", "r046", "r047"]
    assert (lists["abandoned"].n, lists["hallucinated"].n) == (12, 0)
    shown = without_models(report_with_work(two_weeks.store))
    assert shown.report.by_model == ()
    assert {i.model for of in shown.work.values() for i in of} == {None}
    assert "model" not in labelled_csv(shown.loaded, "abandoned", models=False)


def test_a_model_or_workflow_without_a_label_says_so(new_world: NewWorld) -> None:
    traces: dict[str, dict[str, Any]] = {name: {"model": "a"} for name in ids(12)}
    world = new_world(traces=traces)
    unlabelled = next(name for name in ids(12) if name not in world.drawn)
    changed = make_trace(unlabelled, model="b", workflow="trains")
    assert world.store.ingest([changed], take_changed=True).replaced
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    found = report(world)
    for groups, name in ((found.by_model, "b"), (found.by_workflow, "trains")):
        (group,) = (g for g in groups if g.name == name)
        assert group.asr.value is None
        assert "none of its traces is labelled" in group.asr.status


def test_undated_and_reference_traces_are_never_counted_and_said(new_world: NewWorld) -> None:
    traces = {name: {"started_at": DAYS[1]} for name in ids(12)[2:]}
    world = new_world(n=12, n_drawn=12, traces=traces)
    world.store.ingest(
        [make_trace(f"reference-{k}", source=REFERENCE_SOURCE, started_at=DAYS[1]) for k in "ab"]
    )
    world.label("Ann", dict.fromkeys(world.drawn, "complete"))
    found = report(world, since=WEEKS[1], until=WEEKS[1])
    assert found.n == 10
    left_out = {row.reason.split(":")[0]: row.n for row in found.set_aside}
    assert left_out["traces that do not say when they were started"] == 2
    assert left_out["traces of the reference set"] == 2


def label_fully(world: World, reviewer: str, trace_id: str, outcome: str, **said: Any) -> None:
    person = world.store.add_reviewer(reviewer)
    draft = LabelDraft(
        client_token=f"full-{next(_tokens)}", trace_id=trace_id, reviewer_id=person.reviewer_id,
        batch_id=world.batch_id, answers=world.store.taxonomy().answers_for(outcome), **said,
    )  # fmt: skip
    assert len(world.store.import_labels(world.batch_id, [draft]).imported) == 1


def test_tags_and_evidence_come_from_the_labels(new_world: NewWorld) -> None:
    world = new_world(n=6, n_drawn=6)
    first, second, third, *others = world.drawn
    quote = Evidence(step_id="response", quote=f"Booked {first}")
    label_fully(
        world, "Ann", first, "hallucinated", rationale="=1+1", evidence=(quote,), tags=("Policy",)
    )
    label_fully(world, "Ben", first, "hallucinated", rationale=HOSTILE[0], tags=("policy", "late"))
    label_fully(world, "Ann", second, "complete", tags=("late",))
    # Reviewers differ: in no list until it is settled.
    label_fully(world, "Ann", third, "abandoned")
    label_fully(world, "Ben", third, "complete")
    world.label("Ann", dict.fromkeys(others, "complete"))
    found = report(world)
    assert {g.name: (g.n, g.asr.value) for g in found.by_tag} == {
        "late": (2, 0.5), "Policy": (1, 0.0),
    }  # fmt: skip
    lists = {one.outcome: one for one in found.work_lists}
    (item,) = lists["hallucinated"].first
    assert item.trace_id == first
    assert item.reasons == ("=1+1", HOSTILE[0])
    assert HOSTILE[0] not in html(success_rate.document(found))
    assert item.evidence == (f"response: Booked {first}",)
    assert lists["abandoned"].n == 0
    made = report_with_work(world.store)
    (row,) = csv.DictReader(io.StringIO(labelled_csv(made.loaded, "hallucinated"), newline=""))
    assert row["reasons"] == f"'=1+1\n{HOSTILE[0]}"  # no spreadsheet runs it
    assert row["evidence"] == f"response: Booked {first}"
    world.settle(third, "abandoned")
    assert {one.outcome: one.n for one in report(world).work_lists}["abandoned"] == 1


def test_repeated_trials_agent_by_agent(new_world: NewWorld) -> None:
    # Five tasks of two trials by one agent, and two runs of tasks of their own by another.
    traces: dict[str, dict[str, Any]] = {
        name: {"task_key": f"t/{k // 2}", "trial": k % 2, "model": "m", "agent_version": "1"}
        for k, name in enumerate(ids(12))
    }
    others = {name: {"model": "other"} for name in ids(12)[10:]}
    world = new_world(n=12, n_drawn=12, traces=traces | others)
    # One trial of each task is labelled.
    good = {"r000", "r001", "r002", "r003", "r004"}
    classes = {t: "complete" if t in good else "partial_plus" for t in world.drawn}
    world.label("Ann", {t: c for t, c in classes.items() if t in ids(10)[::2]})
    two = report(world).passes[0].points[1]
    assert (two.n_tasks, two.n_too_few) == (0, 5)
    assert two.pass_at_k.value is None
    assert "no task has k labelled trials" in two.pass_at_k.status
    # Two of five tasks pass twice, one once: pass@1 = 5/10, pass@2 = 3/5, pass^2 = 2/5.
    world.label("Ann", {t: c for t, c in classes.items() if t not in ids(10)[::2]})
    (of,) = report(world).passes
    assert (of.agent, of.n_tasks, of.most_trials) == ("m 1", 5, 2)
    one, two = of.points
    assert (one.k, one.pass_at_k.value, one.pass_hat_k.value) == (1, 0.5, 0.5)
    assert (two.k, two.n_tasks, two.n_too_few) == (2, 5, 0)
    assert two.pass_at_k.value == pytest.approx(0.6)
    assert two.pass_hat_k.value == pytest.approx(0.4)


def test_repeated_trials_from_verdicts_beside_those_from_labels(new_world: NewWorld) -> None:
    """Two figures with their source, never one of both; this judge makes no errors."""
    # 40 tasks of two trials, of which 16 pass twice, 12 once and 12 never; 60 are labelled.
    passed = [2] * 16 + [1] * 12 + [0] * 12
    traces: dict[str, dict[str, Any]] = {
        name: {"task_key": f"t/{k // 2}", "trial": k % 2, "model": "m", "agent_version": "1"}
        for k, name in enumerate(ids(80))
    }
    world = new_world(n=80, n_drawn=60, traces=traces)
    good = {t for k, t in enumerate(ids(80)) if k % 2 < passed[k // 2]}
    classes = {t: "complete" if t in good else "abandoned" for t in ids(80)}
    world.label("Ann", {t: classes[t] for t in world.drawn})
    world.judge(classes)
    made = report(world)
    labels, verdicts = made.passes
    assert (labels.agent, labels.source) == ("m 1", "labels")
    assert labels.points[1].n_tasks < 40
    assert (verdicts.agent, verdicts.source) == ("m 1", "verdicts of judge-1, corrected")
    one, two = verdicts.points
    assert (two.n_tasks, two.n_too_few) == (40, 0)
    # Without errors, but for the pseudo-count: 44 of 80, 16 of 40 and 28 of 40.
    assert one.pass_hat_k.value == pytest.approx(0.55, abs=0.01)
    assert two.pass_hat_k.value == pytest.approx(0.4, abs=0.02)
    assert two.pass_at_k.value == pytest.approx(0.7, abs=0.02)
    text = "\n".join(text_lines(success_rate.document(made)))
    assert "verdicts of judge-1, corrected" in text
    assert "corrected for the judge's errors as the labels show them" in text


def test_repeated_trials_from_verdicts_need_a_corrected_rate(new_world: NewWorld) -> None:
    traces: dict[str, dict[str, Any]] = {
        name: {"task_key": f"t/{k // 2}", "model": "m"} for k, name in enumerate(ids(12))
    }
    world = new_world(n=12, n_drawn=6, traces=traces)
    classes = dict.fromkeys(ids(12), "complete") | {world.drawn[0]: "abandoned"}
    world.label("Ann", {t: classes[t] for t in world.drawn})
    world.judge(classes)
    found = report(world)
    assert not found.calibrated
    _, verdicts = found.passes
    for point in verdicts.points:
        for estimate in (point.pass_at_k, point.pass_hat_k):
            assert estimate.value is None
            assert "labels" in estimate.status


def test_rarer_tags_and_further_agents_are_left_out_and_counted(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_store, "MOST_TAGS", 1)
    monkeypatch.setattr(from_store, "MOST_AGENTS", 1)
    traces = {
        name: {"task_key": f"t/{k // 4}", "trial": k, "model": f"m{k % 2}", "agent_version": "1"}
        for k, name in enumerate(ids(12))
    }
    world = new_world(n=12, n_drawn=12, traces=traces)
    for k, trace_id in enumerate(world.drawn):
        label_fully(world, "Ann", trace_id, "complete", tags=("often", "rare")[: 1 + (k == 0)])
    found = report(world)
    assert [tag.name for tag in found.by_tag] == ["often"]
    assert found.tags_left_out == 1
    assert [of.agent for of in found.passes] == ["m0 1"]
    assert "Left out: 1 further agent with repeated trials." in found.notes


def test_two_intervals_that_differ_by_a_fifth_are_a_warning(two_weeks: World) -> None:
    rates = rates_of_store(two_weeks.store, options=ReportOptions(n_resamples=100))
    ours = Estimate(value=0.5, interval=(0.4, 0.6), n=9, method="post-stratified")
    for other, warned in ((0.081, False), (0.079, True), (0.126, True)):
        check = replace(ours, interval=(0.5 - other, 0.5 + other), method="bootstrap")
        said = list(warnings(replace(rates, corrected=ours), check))
        assert any("differ by more than 20 %" in line for line in said) is warned
