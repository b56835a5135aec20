"""Recommendations for a judge: the steps that follow from a calibration, with reasons."""

import shlex
from collections.abc import Iterator, Sequence

from calibration.analyses.agreement.recommendations import Recommendation
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.judge.calibration import CHOSEN, JudgeCalibration
from calibration.analyses.judge.diagnostics import (
    JudgeDiagnostics,
    JudgedTraces,
    of_class,
    open_ones,
    parting_at,
    without_verdict,
)
from calibration.analyses.sampling.escalation import FEWEST_JUDGES, Signal
from calibration.analyses.sampling.planning import Plan
from calibration.judge_calibration.label_planning import FEWEST_LABELS
from calibration.judge_calibration.samples import CLASS_LABELS_MIN, HEADLINE, Notice
from calibration.taxonomy import Taxonomy
from calibration.text import sentence

# Common half-widths; the next is at most this part of the current one.
WANTED = (0.1, 0.075, 0.05, 0.04, 0.03, 0.02, 0.015, 0.01)

NARROWER = 0.9
RANDOM_LABELS = 100

# Below this, errors at a question are one or two traces: no reason to change a prompt.
FEWEST_ERRORS = 3

NEEDS_RANDOM = (
    CHOSEN.code,
    "few_labels",
    "no_probability_sample",
    "classes_not_separated",
    "judge_too_weak",
)


def half_width_wanted(now: float | None) -> float:
    """Return the next half-width to plan for, well below the current one.

    Examples
    --------
    >>> half_width_wanted(0.036), half_width_wanted(None), half_width_wanted(0.004)
    (0.03, 0.05, 0.0036)
    """
    if now is None:
        return 0.05
    return next((w for w in WANTED if w <= NARROWER * now), NARROWER * now)


def judge_steps(
    result: JudgeCalibration,
    diagnosed: JudgeDiagnostics,
    traces: JudgedTraces,
    taxonomy: Taxonomy,
    *,
    plan: Plan | None = None,
    n_judges: int = 1,
) -> tuple[Recommendation, ...]:
    """Return the steps that improve the judge, or knowledge of it, in the order to take them.

    `result`, `diagnosed` and `traces` are of one judge and batch. `plan`, with a half-width and the
    judge, gives the effect of more labels. `n_judges` counts the judges in the store.
    """
    steps = [
        *_settle(traces),
        *_refused(result),
        *_warned(result),
        *_labels(result, plan),
        *_allocate(result, plan),
        *_escalate(result, diagnosed, n_judges),
        *_unjudged(result, traces),
        *_again(diagnosed),
        *_question(diagnosed, traces, taxonomy),
        *_classes(result, traces),
    ]
    return (*steps, *_use(result, steps))


def _settle(traces: JudgedTraces) -> Iterator[Recommendation]:
    todo = open_ones(traces)
    n = len(todo.trace_ids)
    if n:
        yield Recommendation(
            kind="settle",
            what=f"Adjudicate the {n:,} open disagreements between reviewers."
            if n > 1
            else "Adjudicate the one open disagreement between reviewers.",
            why=f"{_traces(n)} of the calibration sample without a final label: until they have "
            "one, every corrected number is provisional.",
            traces=todo,
        )


def _refused(result: JudgeCalibration) -> Iterator[Recommendation]:
    mine = [n for n in result.calibration.refusals if n.estimator == HEADLINE[result.design]]
    yield from (_notice("refused", notice) for notice in mine)


def _warned(result: JudgeCalibration) -> Iterator[Recommendation]:
    calibration = result.calibration
    for notice in calibration.headline_warnings:
        yield _notice("warned", notice)


def _notice(kind: str, notice: Notice) -> Recommendation:
    mend, why = notice.mend, notice.why
    return Recommendation(
        kind=kind,
        what=sentence(mend),
        why=f"{notice.estimator}: {why}.",
        command=f"sample --n {RANDOM_LABELS}" if notice.code in NEEDS_RANDOM else None,
    )


def _labels(result: JudgeCalibration, plan: Plan | None) -> Iterator[Recommendation]:
    head = result.calibration.headline_estimate
    now = None if head is None else head.net.half_width
    if plan is None or plan.needed is None or now is None or result.design != "production":
        return
    needed, n = plan.needed, result.calibration.n_labels
    wanted = needed.half_width
    here = f"Now \u00b1{100 * now:.1f} points with {_traces(n)}."
    enough = needed.with_judge
    if enough is None or enough > plan.population:
        yield Recommendation(
            kind="labels",
            what=f"Import more traces before asking for \u00b1{100 * wanted:g} points.",
            why=f"{here} No number of labels on these {plan.population:,} traces is enough.",
            command="import FILES",
            half_width=wanted,
        )
    elif enough > n:
        alone = needed.without_judge
        without = "no number is enough" if alone is None else _traces(alone)
        yield Recommendation(
            kind="labels",
            what=f"Label {enough - n:,} more random traces for \u00b1{100 * wanted:g} points.",
            why=f"{here} \u00b1{100 * wanted:g} points take {_traces(enough)} in all with the "
            f"judge; without it {without}. Continue with this batch while it has traces left to "
            "label, else draw another one.",
            command=f"plan labels --half-width {wanted:g} {_names(result)}",
            half_width=wanted,
        )


def _allocate(result: JudgeCalibration, plan: Plan | None) -> Iterator[Recommendation]:
    n, of = result.calibration.n_labels, result.calibration.n_production
    chosen = any(notice.code == CHOSEN.code for notice in result.calibration.refusals)
    if chosen or n >= of or result.design != "production":
        return
    size = RANDOM_LABELS
    if plan is not None and plan.needed is not None and plan.needed.with_judge is not None:
        size = max(size, plan.needed.with_judge)
    size = min(size, of)
    measured = n >= FEWEST_LABELS
    how = "neyman" if measured else "proportional"
    basis = f" --basis {shlex.quote(result.provenance.batch_id)}" if measured else ""
    yield Recommendation(
        kind="allocate",
        what=f"Draw a batch of {size:,} traces by verdict and workflow.",
        why="Each verdict of each workflow then gets its traces"
        + (", more where scores vary more" if measured else "")
        + ": no rare verdict is left to chance. The probability of each trace is stored, and every "
        "estimate weighs by it.",
        command=f"sample --n {size} --allocate {how} "
        f"--judge {shlex.quote(result.provenance.judge_id)}{basis}",
        n=size,
    )


def _escalate(
    result: JudgeCalibration, diagnosed: JudgeDiagnostics, n_judges: int
) -> Iterator[Recommendation]:
    signals: list[Signal] = []
    if diagnosed.retest.most_asked > 1:
        signals.append("samples")
    if result.calibration.headline is not None and result.design == "production":
        signals.append("probability")
    if n_judges >= FEWEST_JUDGES:
        signals.append("judges")
    if signals:
        yield Recommendation(
            kind="escalate",
            what="Send uncertain verdicts to people, and audit the rest.",
            why="A judge is also wrong where it is certain: a random part of the accepted verdicts "
            "is labelled too, and shows how often.",
            command=f"escalate --by {signals[0]} --judge {shlex.quote(result.provenance.judge_id)} "
            f"--basis {shlex.quote(result.provenance.batch_id)} --most {RANDOM_LABELS} --seed 1",
            signals=tuple(signals),
        )


def _unjudged(result: JudgeCalibration, traces: JudgedTraces) -> Iterator[Recommendation]:
    todo = without_verdict(traces)
    n = len(todo.trace_ids)
    if not n:
        return
    known = {t.trace_id for t in traces.labelled}
    labelled = sum(trace_id in known for trace_id in todo.trace_ids)
    yield Recommendation(
        kind="unjudged",
        what=f"Run the judge on the {_traces(n)} without a verdict, and import its verdicts.",
        why=f"{labelled:,} of them are labelled. They count as a verdict of "
        "their own, and come first in the list.",
        traces=todo,
        command=f"verdicts import FILE --judge {shlex.quote(result.provenance.judge_id)}",
    )


def _again(diagnosed: JudgeDiagnostics) -> Iterator[Recommendation]:
    if not diagnosed.retest.changed.ok:
        yield Recommendation(
            kind="again",
            what="Ask the judge again about some traces.",
            why="No trace has two verdicts of it, so its consistency is not known.",
        )


def _question(
    diagnosed: JudgeDiagnostics, traces: JudgedTraces, taxonomy: Taxonomy
) -> Iterator[Recommendation]:
    found = [(count, name) for name, count in diagnosed.errors.items() if name is not None]
    if not found:
        return
    count, name = max(found)
    if count < FEWEST_ERRORS:
        return
    total = sum(diagnosed.errors.values())
    asked = taxonomy.node(name).question
    yield Recommendation(
        kind="question",
        what=f"Fix the judge prompt for \u201c{asked}\u201d.",
        why=f"{100 * count / total:.1f} % of its errors start there ({count:g} of {total:g}): no "
        "question has more. A judge with another prompt is another judge, and needs a calibration "
        "of its own.",
        traces=parting_at(traces, name),
    )


def _classes(result: JudgeCalibration, traces: JudgedTraces) -> Iterator[Recommendation]:
    qualities = zip(result.classes, result.calibration.judge.per_class, strict=True)
    rare = [(name, of.n_human) for name, of in qualities if of.n_human < CLASS_LABELS_MIN]
    if not rare:
        return
    ids = [t for name, _ in rare for t in of_class(traces, name).trace_ids]
    few = ", ".join(f"{traces.title(name)} ({n:g})" for name, n in rare)
    yield Recommendation(
        kind="classes",
        what=f"Label more traces of the classes with fewer than {CLASS_LABELS_MIN}: {few}.",
        why="So few labels do not show how often the judge finds the class.",
        traces=TraceSet(
            what=f"of classes with fewer than {CLASS_LABELS_MIN} labels",
            trace_ids=tuple(dict.fromkeys(ids)),
        )
        if ids
        else None,
    )


def _use(result: JudgeCalibration, steps: Sequence[Recommendation]) -> Iterator[Recommendation]:
    if result.calibration.headline is None or result.design != "production":
        return
    if not any(step.kind in ("settle", "refused", "warned") for step in steps):
        yield Recommendation(
            kind="use",
            what="Use the corrected rate.",
            why="Its estimator is neither refused nor has it a warning, and every disagreement "
            "between reviewers is adjudicated.",
            command=f"report {_names(result)}",
        )


def _names(result: JudgeCalibration) -> str:
    of = result.provenance
    return f"--judge {shlex.quote(of.judge_id)} --batch {shlex.quote(of.batch_id)}"


def _traces(n: int) -> str:
    return f"{n:,} trace{'s' * (n != 1)}"
