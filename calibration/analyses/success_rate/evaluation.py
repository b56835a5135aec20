"""Whether a report rests on an evaluation: tasks, trials, coverage, graders, leaks, repetition."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from calibration.agreement.ratings import TENTATIVE
from calibration.statistics.estimate import Estimate
from calibration.text import counted

# An evaluation has so many tasks, and runs each so often, in the mean.
LEAST_TASKS, LEAST_TRIALS = 50, 5

# Levels of difficulty, share of edge cases, and kinds of graders: code, people, a model.
LEAST_LEVELS, LEAST_EDGE, LEAST_GRADERS = 2, 0.10, 2

Status = Literal["met", "not met", "not known"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationCheck:
    """One condition of an evaluation: whether it is met, by which figure, and what to do if not."""

    name: str
    title: str
    status: Status
    figure: str
    action: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationFacts:
    """What a source knows of how its runs were made and graded; None: not known.

    `levels` : number of difficulties. `edge` : share of the runs whose tier is edge.
    `graders` : kinds of graders, in words. `agreement` : of the reviewers, beyond chance.
    `n_reference` : traces of the reference set among the runs. `repeats` : how the report is made
    again; empty where its source cannot be read again.
    """

    n_runs: int
    n_tasks: int | None
    levels: int | None = None
    edge: float | None = None
    graders: tuple[str, ...] | None = None
    agreement: Estimate | None = None
    n_reference: int = 0
    repeats: str


def evaluation_checks(of: EvaluationFacts) -> tuple[EvaluationCheck, ...]:
    """Return the conditions in their order.

    Examples
    --------
    >>> facts = EvaluationFacts(n_runs=240, n_tasks=60, repeats="seed 0")
    >>> [(c.name, c.status, c.figure) for c in evaluation_checks(facts)[:2]]
    [('tasks', 'met', '60 tasks'), ('trials', 'not met', '4.0 trials a task')]
    """
    return (*_size(of), *_coverage(of), *_grading(of), *_trust(of))


def _check(
    name: str, title: str, met: bool | None, figure: str, action: str, *, unknown: str = ""
) -> EvaluationCheck:
    """Return a condition; `unknown` is what to do where it is not known."""
    if met is None:
        return EvaluationCheck(
            name=name, title=title, status="not known", figure=figure, action=unknown
        )
    return EvaluationCheck(
        name=name,
        title=title,
        status="met" if met else "not met",
        figure=figure,
        action="" if met else action,
    )


def _size(of: EvaluationFacts) -> Iterator[EvaluationCheck]:
    n, name_tasks = of.n_tasks, "Name the task of each run (task_id)."
    yield _check(
        "tasks",
        f"{LEAST_TASKS} tasks or more",
        None if n is None else n >= LEAST_TASKS,
        "no run names its task" if n is None else counted(n, "task"),
        "Add tasks: more trials of the same tasks do not replace them.",
        unknown=name_tasks,
    )
    each = None if not n else of.n_runs / n
    yield _check(
        "trials",
        f"{LEAST_TRIALS} trials a task or more, in the mean",
        None if each is None else each >= LEAST_TRIALS,
        "no run names its task" if each is None else f"{each:.1f} trials a task",
        "Run each task more often: asr plan trials says how often.",
        unknown=name_tasks,
    )


def _coverage(of: EvaluationFacts) -> Iterator[EvaluationCheck]:
    yield _check(
        "difficulty",
        f"{LEAST_LEVELS} levels of difficulty or more",
        None if of.levels is None else of.levels >= LEAST_LEVELS,
        "no run names its difficulty"
        if of.levels is None
        else counted(of.levels, "level") + " of difficulty",
        "Add tasks of other difficulty.",
        unknown="Name the difficulty of each task (column difficulty).",
    )
    yield _check(
        "edge_cases",
        f"{100 * LEAST_EDGE:.0f} % edge cases or more",
        None if of.edge is None else of.edge >= LEAST_EDGE,
        "no run names its tier"
        if of.edge is None
        else f"{100 * of.edge:.1f} % of the runs are edge cases",
        "Add tasks that are unusual, or have to be refused.",
        unknown="Name the tier of each task, core or edge (column tier).",
    )


def _grading(of: EvaluationFacts) -> Iterator[EvaluationCheck]:
    graders = of.graders
    yield _check(
        "graders",
        f"{LEAST_GRADERS} kinds of graders or more: code, people, a judge",
        None if graders is None else len(graders) >= LEAST_GRADERS,
        "nothing says who gave the outcomes" if graders is None else " and ".join(graders),
        "Import the verdicts of a judge, or run one (asr judge), beside the labels.",
        unknown="Import the runs into a store and label a random sample (asr import, asr sample).",
    )
    found = of.agreement
    known = found is not None and found.value is not None and found.interval is not None
    figure = "no run is known to have two labels"
    if found is not None and found.value is not None:
        low, high = found.interval or (found.value, found.value)
        figure = f"alpha {found.value:.2f} [{low:.2f}, {high:.2f}], {found.n:,} traces"
    yield _check(
        "agreement",
        f"reviewers agree: lower limit of alpha {TENTATIVE:g} or more",
        found is not None and found.interval is not None and found.interval[0] >= TENTATIVE
        if known
        else None,
        figure,
        "See where reviewers differ and sharpen the guideline (asr agreement).",
        unknown="Have a part of the runs labelled by two reviewers.",
    )


def _trust(of: EvaluationFacts) -> Iterator[EvaluationCheck]:
    n = of.n_reference
    yield _check(
        "leakage",
        "no trace of the reference set",
        not n,
        f"{n:,} of {of.n_runs:,} runs" if n else f"none of {of.n_runs:,} runs",
        "Leave them out: reference traces are for practice and were written to be hard.",
    )
    yield _check(
        "reproducible",
        "can be made again",
        bool(of.repeats),
        of.repeats or "the source cannot be read again",
        "Save the runs to a file, and report on that.",
    )
