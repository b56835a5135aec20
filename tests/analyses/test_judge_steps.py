"""What would make a judge better: which steps follow from which result, and that they work."""

import shlex
from collections.abc import Iterator
from dataclasses import replace

import pytest
from click.testing import CliRunner

from calibration.analyses.agreement.recommendations import Recommendation
from calibration.analyses.evidence.from_store import load_judged, with_context
from calibration.analyses.judge.calibration import JudgeCalibration, analyse_judge
from calibration.analyses.judge.diagnostics import (
    JudgeDiagnostics,
    JudgedTraces,
    differing,
    in_cell,
    in_group,
    judged_traces,
    missed,
    parting_at,
    with_verdict,
    wrongly,
)
from calibration.analyses.judge.recommendations import half_width_wanted, judge_steps
from calibration.analyses.sampling.planning import plan_batch
from calibration.cli import main
from calibration.judge_calibration.samples import Notice
from calibration.records import Verdict
from calibration.store import Store
from calibration.store.batches import SELECTION
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, diagnose_judge, ids, kinds, known, make_world, of_kind
from tests.classes import OUTCOMES

C, P, M, H, A = MIX = OUTCOMES


def filled(world: World) -> World:
    """Label 200 of 1,500 traces, 40 of each class; the judge errs on three of four partial_plus."""
    truth = {t: MIX[k % 5] for k, t in enumerate(world.drawn)}
    world.label("Ann", truth)
    world.label("Ben", truth)
    # Partial_plus taken for complete: the ways part at all_subgoals.
    wrong = dict.fromkeys([t for t, c in truth.items() if c == P][:30], C)
    rest = enumerate(sorted({*ids(1500)} - {*truth}))
    others = {t: C if k % 20 in (6, 11, 16) else MIX[k % 5] for k, t in rest}
    world.judge(truth | wrong | others)
    return world


@pytest.fixture
def world(new_world: NewWorld) -> World:
    return filled(new_world(n=1500, n_drawn=200))


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = make_world(tmp_path_factory.mktemp("steps") / "s.duckdb", n=1500, n_drawn=200)
    with made.store:
        yield filled(made)


def traces_of(store: Store, diagnosed: JudgeDiagnostics) -> JudgedTraces:
    of = diagnosed.provenance
    return judged_traces(
        with_context(store, load_judged(store, of.batch_id, of.judge_id, sample=False))
    )


def steps_of(world: World, **options: object) -> tuple[Recommendation, ...]:
    return steps_from(world, analyse_judge(world.store, **options))  # type: ignore[arg-type]


def steps_from(
    world: World, result: JudgeCalibration, n_judges: int = 1, wanted: float | None = None
) -> tuple[Recommendation, ...]:
    store = world.store
    diagnosed = diagnose_judge(store, judge_id=result.provenance.judge_id)
    head = result.calibration.headline_estimate
    plan = plan_batch(
        store, n=2,
        half_width=wanted or half_width_wanted(None if head is None else head.net.half_width),
        judge_id=result.provenance.judge_id, batch_id=result.provenance.batch_id,
    )  # fmt: skip
    traces = traces_of(store, diagnosed)
    return judge_steps(result, diagnosed, traces, store.taxonomy(), plan=plan, n_judges=n_judges)


def test_a_judge_that_nothing_stands_against(read_only: World) -> None:
    steps = steps_of(read_only)
    assert kinds(steps) == ["labels", "allocate", "escalate", "again", "question", "use"]
    question = of_kind(steps, "question")
    assert "Are all sub-goals satisfied" in question.what
    assert "100.0 % of its errors start there (30 of 30)" in question.why
    assert len(known(question.traces).trace_ids) == 30


def test_labels_for_a_half_width_are_those_of_the_plan(read_only: World) -> None:
    result = analyse_judge(read_only.store)
    now = known(known(result.calibration.headline_estimate).net.half_width)
    step = of_kind(steps_from(read_only, result), "labels")
    assert step.half_width == half_width_wanted(now) < now
    needed = known(plan_batch(read_only.store, n=2, half_width=step.half_width).needed)
    assert needed.with_judge is not None
    assert f"Label {needed.with_judge - 200:,} more random traces" in step.what
    # A batch is a calibration of its own: a new one must have them all.
    assert of_kind(steps_from(read_only, result), "allocate").n == needed.with_judge
    assert f"\u00b1{100 * now:.1f} points with 200 traces" in step.why
    # A half-width that no labels give asks for traces.
    step = of_kind(steps_from(read_only, result, wanted=0.001), "labels")
    assert "Import more traces before asking for \u00b10.1 points" in step.what
    assert step.command == "import FILES"


def test_a_refused_rate_names_its_mend_and_the_rest_still_stands(new_world: NewWorld) -> None:
    world = new_world(n=40, n_drawn=12)
    world.label("Ann", {t: MIX[k % 5] for k, t in enumerate(world.drawn)})
    world.judge(dict.fromkeys(ids(40), C))
    steps = steps_of(world)
    assert kinds(steps)[0] == "refused"
    assert steps[0].what == "Label more traces drawn at random from production."
    assert steps[0].why == "post_stratified: 12 labels, fewer than 30."
    assert steps[0].command == "sample --n 100"
    # 3, 3, 2, 2 and 2 labels: all five classes are rare.
    assert (
        "Completed (3), Partial-correct (3), Partial-incorrect (2)"
        in of_kind(steps, "classes").what
    )
    assert {"labels", "use", "escalate"} & set(kinds(steps)) == set()


def test_a_warning_of_the_headline_is_a_step_and_one_of_a_check_is_not(read_only: World) -> None:
    result = analyse_judge(read_only.store)
    notices = tuple(
        Notice(code="wider_than_human_only", estimator=name, why="it is wide", mend="mend it")
        for name in ("post_stratified", "inversion")
    )
    calibration = replace(result.calibration, warnings=notices)
    steps = steps_from(read_only, replace(result, calibration=calibration))
    assert of_kind(steps, "warned").what == "Mend it."
    assert "use" not in kinds(steps)


def test_traces_without_a_verdict_are_listed_labelled_ones_first(new_world: NewWorld) -> None:
    world = new_world(n=60, n_drawn=40)
    world.label("Ann", {t: MIX[k % 5] for k, t in enumerate(world.drawn)})
    silent = {world.drawn[3], *[t for t in ids(60) if t not in world.drawn][:4]}
    world.judge({t: C for t in ids(60) if t not in silent})
    step = of_kind(steps_of(world), "unjudged")
    assert set(known(step.traces).trace_ids) == silent
    assert known(step.traces).trace_ids[0] == world.drawn[3]
    assert step.what.startswith("Run the judge on the 5 traces")
    assert step.why.startswith("1 of them are labelled")
    assert step.command == "verdicts import FILE --judge judge-1"


def test_what_comes_in_changes_the_steps(world: World) -> None:
    result = analyse_judge(world.store)
    assert of_kind(steps_from(world, result), "escalate").signals == ("probability",)
    assert of_kind(steps_from(world, result, 3), "escalate").signals == ("probability", "judges")
    settled, still_open = world.drawn[0], world.drawn[1]
    again = Verdict(judge_id="judge-1", trace_id=settled, outcome=A, sample=1)
    world.store.add_verdicts([again])
    # Open disagreements come first and their traces are named.
    world.label("Cem", {settled: M, still_open: A})
    world.settle(settled, C)
    steps = steps_of(world)
    assert kinds(steps)[0] == "settle"
    assert "the one open disagreement" in steps[0].what
    assert known(steps[0].traces).trace_ids == (still_open,)
    assert {"use", "again"} & set(kinds(steps)) == set()
    assert of_kind(steps, "escalate").signals == ("samples", "probability")


def test_labels_of_a_reference_promise_no_batch_of_production(read_only: World) -> None:
    steps = steps_of(read_only, design="reference")
    assert {"labels", "allocate", "escalate", "use"} & set(kinds(steps)) == set()


@pytest.mark.long
def test_the_commands_of_the_steps_exist(world: World) -> None:
    steps = steps_of(world)
    commands = [step.command for step in steps if step.command is not None]
    assert len(commands) == 4
    path = str(world.store.path)
    world.store.close()
    for command in commands:
        words = shlex.split(command.replace("--most 100", "--most 100 --threshold 0"))
        done = CliRunner().invoke(main, [*words, "--store", path])
        assert done.exit_code == 0, (command, done.output)


def test_the_traces_behind_the_numbers(read_only: World) -> None:
    diagnosed = diagnose_judge(read_only.store)
    traces = traces_of(read_only.store, diagnosed)
    wrong = [found.trace_id for found in diagnosed.disagreements]
    assert len(wrong) == 30
    assert [t.trace_id for t in traces.labelled[:30]] == wrong
    assert list(differing(traces).trace_ids) == wrong
    for found in (
        in_cell(traces, P, C), missed(traces, P), wrongly(traces, C),
        parting_at(traces, "all_subgoals"), in_group(traces, "workflow", "flights"),
    ):  # fmt: skip
        assert list(found.trace_ids) == wrong, found.what
    assert len(in_cell(traces, C, C).trace_ids) == 40
    assert len(with_verdict(traces, C).trace_ids) == 70
    assert missed(traces, C).trace_ids == ()


@pytest.mark.parametrize(("now", "wanted"), [(0.3, 0.1), (0.05, 0.04), (0.0305, 0.02)])
def test_the_next_half_width_is_a_plain_number_well_below(now: float, wanted: float) -> None:
    assert half_width_wanted(now) == wanted


def test_chosen_failures_show_how_many_the_judge_finds_without_a_rate(new_world: NewWorld) -> None:
    world = new_world(n=60, n_drawn=40)
    picked = ids(60)[:20]
    batch = world.store.add_batch(
        purpose="production", trace_ids=picked, design={"kind": SELECTION}, labels_wanted=1
    )
    replace(world, batch_id=batch.batch_id).label("Ann", dict.fromkeys(picked, A))
    world.judge(dict.fromkeys(ids(60), C) | dict.fromkeys(picked[:15], A))
    result = analyse_judge(world.store, batch.batch_id)
    assert {n.code for n in result.calibration.refusals} >= {"chosen", "one_class_only"}
    recall = result.calibration.judge.per_class[4].recall
    assert (recall.value, recall.n) == (0.75, 20)
    diagnosed = diagnose_judge(world.store, batch.batch_id)
    assert len(diagnosed.disagreements) == 5
    traces = traces_of(world.store, diagnosed)
    steps = judge_steps(result, diagnosed, traces, world.store.taxonomy())
    assert kinds(steps)[0] == "refused"
    assert {"allocate", "escalate", "use"} & set(kinds(steps)) == set()
    # Without a name the drawn batch is meant, though the chosen one is newer.
    world.label("Ann", dict.fromkeys(world.drawn, C))
    assert analyse_judge(world.store).provenance.batch_id == world.batch_id
