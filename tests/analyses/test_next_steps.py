import shlex
from collections.abc import Sequence
from dataclasses import replace

import pytest
from click.testing import CliRunner

from calibration.analyses.agreement.analysis import AgreementAnalysis, analyse_agreement
from calibration.analyses.agreement.recommendations import Recommendation, next_steps
from calibration.analyses.agreement.traces import parting_at
from calibration.cli import main
from tests.analyses.conftest import NewWorld
from tests.analyses.worlds import World, kinds, known, of_kind

MIX = ("complete", "partial_plus", "partial_minus", "hallucinated", "abandoned")


def said(world: World, reviewer: str, classes: Sequence[str]) -> None:
    world.label(reviewer, {t: c for t, c in zip(world.drawn, classes, strict=False) if c})


def step_at(result: AgreementAnalysis, value: float, low: float, high: float) -> Recommendation:
    """Return the last step if alpha were so."""
    alpha = replace(result.study.alpha, value=value, interval=(low, high), status="ok")
    coefficients = result.study.coefficients | {"krippendorff_alpha": alpha}
    return next_steps(replace(result, study=replace(result.study, coefficients=coefficients)))[-1]


@pytest.fixture
def nearly_agreed(new_world: NewWorld) -> World:
    """Return 20 traces that two label, of which they differ on the first."""
    world = new_world(n=24, n_drawn=20)
    ann = [MIX[k % 5] for k in range(20)]
    said(world, "Ann", ann)
    said(world, "Ben", ["partial_plus", *ann[1:]])
    return world


@pytest.mark.parametrize(
    ("labels", "what", "why"),
    [
        ({}, "Have two reviewers label the batch", "Nobody has labelled it yet."),
        ({"Ann": "yyyyyy"}, "Have a second reviewer label the same", "Only Anna has labelled, 6 "),
        ({"Ann": "yyy", "Ben": "---yyy"}, "already have a label", "2 reviewers labelled 6 traces"),
    ],
)
def test_what_to_do_before_there_is_anything_to_compare(
    new_world: NewWorld, labels: dict[str, str], what: str, why: str
) -> None:
    world = new_world()
    for name, marks in labels.items():
        said(world, name, ["complete" if mark == "y" else "" for mark in marks])
    (step,) = next_steps(analyse_agreement(world.store), {"ann": "Anna"})
    assert step.kind == "label"
    assert what in step.what
    assert why in step.why


def test_the_steps_name_the_traces_the_question_and_the_classes(new_world: NewWorld) -> None:
    # 20 traces; Ben says partial_plus on five that Ann calls complete, and on one that she calls
    # partial_minus: five of six disagreements start at all_subgoals.
    world = new_world(n=24, n_drawn=20)
    ann = [MIX[k % 5] for k in range(20)]
    ben = ["partial_plus" if k in (0, 5, 10, 15, 2) else c for k, c in enumerate(ann)]
    ben[4] = "complete"
    said(world, "Ann", ann)
    said(world, "Ben", ben)
    world.settle(world.drawn[0], "complete")
    result = analyse_agreement(world.store)
    steps = next_steps(result)
    assert kinds(steps)[:3] == ["settle", "question", "classes"]

    settle, question, classes, *_ = steps
    left = known(settle.traces).trace_ids
    assert len(left) == 5
    assert world.drawn[0] not in left
    assert f"the 5 open disagreements, starting with {left[0]}." in settle.what

    assert question.traces == parting_at(result, "all_subgoals")
    assert "Are all sub-goals satisfied and the spec met?" in question.what
    assert "66.7 %" in question.why  # four of six: on one they part at the first question
    assert "on 4 traces" in question.why

    assert sorted(known(classes.traces).trace_ids) == sorted(world.drawn[k] for k in (0, 5, 10, 15))
    assert "complete and partial_plus" in classes.what
    titled = next_steps(result, titled=True)
    assert "Completed and Partial-correct" in titled[2].what
    assert "all_subgoals" not in titled[1].what
    assert known(classes.traces).trace_ids[0] in classes.what


def test_a_reviewer_who_uses_a_class_otherwise_is_named_with_figures(new_world: NewWorld) -> None:
    world = new_world(n=60, n_drawn=60)
    truth = [MIX[k % 5] for k in range(60)]
    said(world, "Ann", truth)
    said(world, "Ben", truth)
    said(world, "Cem", ["partial_plus" if c == "complete" else c for c in truth])
    result = analyse_agreement(world.store)
    step = of_kind(next_steps(result, {"cem": "Cem Y."}), "reviewer")
    assert "together with Cem Y." in step.what
    assert "20.0 pp [" in step.why
    assert "Holm p = " in step.why
    assert sorted(known(step.traces).trace_ids) == sorted(
        t for t, c in zip(world.drawn, truth, strict=True) if c == "complete"
    )


def test_the_last_step_follows_from_alpha_and_its_lower_limit(nearly_agreed: World) -> None:
    world = nearly_agreed
    result = analyse_agreement(world.store)
    steps = next_steps(result)
    assert f"Adjudicate the one open disagreement, {world.drawn[0]}." in steps[0].what
    # One disputed trace is no reason to mend a rule.
    assert {"question", "classes"} & set(kinds(steps)) == set()
    assert step_at(result, 0.9, 0.82, 0.95).kind == "use"
    chosen = step_at(replace(result, is_sample=False), 0.9, 0.82, 0.95)
    assert "chosen" in chosen.what
    assert chosen.command is None
    assert step_at(result, 0.5, 0.3, 0.7).kind == "relabel"
    assert "with care" in step_at(result, 0.75, 0.70, 0.79).what
    narrow = step_at(result, 0.802, 0.75, 0.85)
    assert (narrow.kind, narrow.command) == ("more_traces", None)
    few = step_at(result, 0.83, 0.75, 0.89)
    # The lower arm of .08 must come down to .03, so the half-width of .07 to .02625.
    assert few.command == (
        f"plan agreement --half-width 0.026 --alpha 0.83 --raters 2 --batch {world.batch_id}"
    )
    assert "to .8." in few.what
    assert "--half-width" in (step_at(result, 0.75, 0.6, 0.85).command or "")
    assert "to .667." in step_at(result, 0.75, 0.6, 0.85).what


def test_the_commands_of_the_steps_exist(nearly_agreed: World) -> None:
    result = analyse_agreement(nearly_agreed.store)
    nearly_agreed.store.close()
    for step in (step_at(result, 0.83, 0.77, 0.88), step_at(result, 0.9, 0.82, 0.95)):
        words = [*shlex.split(known(step.command)), "--store", str(nearly_agreed.store.path)]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
