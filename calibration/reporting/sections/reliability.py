"""Reliability of repeated runs as a document: the answer, its four dimensions, and the tasks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil

from calibration.analyses.reliability.from_store import OPEN
from calibration.analyses.reliability.runs import (
    ReliabilityReport,
    TaskReliability,
)
from calibration.reliability.consistency import MOST_PAIRS
from calibration.reliability.predictability import RiskPoint
from calibration.reliability.robustness import BASELINE
from calibration.reliability.safety import SEVERITIES
from calibration.reporting.document import (
    SIMULATED,
    Block,
    Document,
    Headline,
    Mark,
    Name,
    Row,
    Section,
    Table,
    Words,
    figure,
    notes,
    percent,
    percent_cell,
    reading_lines,
    table_of,
)
from calibration.statistics.estimate import OK, Estimate
from calibration.statistics.resampling import TaskEstimate
from calibration.text import counted

SCALE, ENDS = (0.0, 1.0), ("0", "1")
TASKS_IN_TEXT, TASKS_SHOWN, MOST_REASONS = 15, 200, 3
# As many runs of a task as the paper has; with fewer, chance alone makes a task look consistent.
RUNS_WANTED = 5

DIMENSIONS = ("consistency", "predictability", "robustness", "safety")

# Titles of sections that a page draws in its own way.
PREDICTABILITY = "Predictability: confidence tells success"
ROBUSTNESS = "Robustness: success that remains under perturbation"
SAFETY = "Safety: violations of constraints"
TASKS = "Tasks, the least consistent first"

NAMES = {
    "outcome": "outcome: (2p - 1)^2",
    "outcome_unanimous": "outcome: tasks whose runs all agree",
    "outcome_pairwise": "outcome: two runs agree",
    "outcome_unbiased": "outcome: (2p - 1)^2, unbiased",
    "trajectory_distribution": "actions: how often each is used",
    "trajectory_sequence": "actions: in what order",
    "resource": "cost, time, calls, actions, errors",
    "confidence": "the agent's confidence",
    "calibration": "calibration: 1 - expected error",
    "auroc": "successes rank above failures (AUROC)",
    "risk_coverage": "risk-coverage, 0 as in random order",
    "brier_skill": "Brier skill, 0 as with a constant",
    "fault": "faults injected",
    "structure": "environment changed",
    "prompt": "prompt rephrased",
    "compliance": "tasks without a violation",
    "severity": "1 - mean severity of the others",
}
OF_CONSISTENCY = (
    "outcome", "outcome_unanimous", "outcome_pairwise", "outcome_unbiased",
    "trajectory_distribution", "trajectory_sequence", "resource", "confidence",
)  # fmt: skip
OF_PREDICTABILITY = ("calibration", "auroc", "risk_coverage", "brier_skill")
OF_ROBUSTNESS = ("fault", "structure", "prompt")
OF_SAFETY = ("compliance", "severity")


def document(report: ReliabilityReport) -> Document:
    """Return the report on the reliability of repeated runs."""
    parts = _parts(report)
    return Document(
        title="Reliability",
        banners=(SIMULATED,) if report.simulated else (),
        headline=_headline(report, parts),
        about=tuple(_about(report)),
        sections=(
            Section(title="Dimensions", blocks=(_leaves(parts),)),
            *_consistency(report),
            *_predictability(report),
            *_robustness(report),
            *_safety(report),
            *_groups(report),
            Section(title=TASKS, blocks=(_tasks(report.tasks),)),
            *_set_aside(report),
        ),
        footer=f"seed {report.seed}, fingerprint {report.fingerprint[:16]}",
        brief=(_leaves(parts), *(Words(text=line) for line in _next_steps(report))),
        reading=(*reading_lines(report.reading), *_stored(report)),
    )


def _parts(report: ReliabilityReport) -> dict[str, TaskEstimate]:
    return {name: getattr(report, name).score for name in DIMENSIONS}


def _headline(report: ReliabilityReport, parts: Mapping[str, TaskEstimate]) -> Headline:
    overall = report.overall
    level = f"{100 * report.confidence_level:g} %"
    if overall.value is None:
        there = [name for name in DIMENSIONS[:3] if parts[name].ok]
        missing = [name for name in DIMENSIONS[:3] if not parts[name].ok]
        sentence = f"No overall reliability: {_joined(missing)} cannot be computed."
        if there:
            sentence += f" {_joined(there).capitalize()}: see below."
        value, limits, half = "not estimable", "", ""
    else:
        text = figure(overall).removesuffix(" +")
        sentence = f"Reliability is {text} on a scale from 0 to 1."
        if overall.status != OK:
            sentence += f" {overall.status.capitalize()}."
        value, _, limits = text.partition(" ")
        half = "" if overall.half_width is None else f"±{overall.half_width:.3f}"
    return Headline(
        name="Reliability",
        value=value,
        limits=limits,
        half_width=half,
        kind="mean of consistency, predictability and robustness; safety is beside it",
        how=overall.method if overall.ok else overall.status.replace("_", " ", 1),
        basis=f"{level} limits, {report.n_runs:,} runs of {report.n_tasks:,} tasks",
        sentence=sentence,
    )


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _about(report: ReliabilityReport) -> Iterator[str]:
    yield Name(f"success from {report.success_source}")
    yield f"{report.n_runs:,} runs of {report.n_tasks:,} tasks"
    yield from _perturbed(report)
    k = report.runs_per_task
    if k is not None:
        yield (
            f"runs a task without perturbation: {k.min:,} at least, {k.median:g} in the median, "
            f"{k.max:,} at most"
        )
    yield from report.notes


def _perturbed(report: ReliabilityReport) -> Iterator[str]:
    """Yield how many runs the perturbed arms have, where there are any."""
    arms = [arm for arm in report.robustness.arms if arm.perturbation != BASELINE and arm.n_runs]
    if arms:
        listed = ", ".join(f"{arm.perturbation} {arm.n_runs:,}" for arm in arms)
        yield f"runs with a perturbation: {listed}"


def _leaves(of: Mapping[str, Estimate], title: str = "") -> Table:
    """Return a table of figures over tasks, with the statuses behind its `+`."""
    named = [(NAMES.get(name, name), leaf) for name, leaf in of.items()]
    return Table(
        title=title,
        head=("", "value", "tasks"),
        rows=tuple(
            Row(cells=(name, figure(leaf), f"{leaf.n:,}"), mark=_mark(leaf)) for name, leaf in named
        ),
        scale=SCALE,
        scale_labels=ENDS,
        notes=tuple(notes(named)),
    )


def _mark(leaf: Estimate) -> Mark | None:
    if leaf.value is None or leaf.value < 0:
        return None
    low, high = leaf.interval or (None, None)
    return Mark(value=leaf.value, low=None if low is None else max(0.0, low), high=high)


def _section(title: str, score: TaskEstimate, *blocks: Block) -> Section:
    return Section(title=title, blocks=blocks, answer=figure(score).removesuffix(" +"))


def _of(whole: object, names: Iterable[str]) -> dict[str, TaskEstimate]:
    return {name: getattr(whole, name) for name in names}


def _consistency(report: ReliabilityReport) -> Iterator[Section]:
    found = report.consistency
    measure = "divergence" if report.divergence else "distance"
    yield _section(
        "Consistency: the same again",
        found.score,
        _leaves({"score": found.score, **_of(found, OF_CONSISTENCY)}),
        Words(
            text="score: the mean of outcome, (2p - 1)^2 with success rate p of a task; actions, "
            f"the mean of both figures (1 - Jensen-Shannon {measure}, 1 - edit distance over the "
            f"longer list) over pairs of successful runs, {MOST_PAIRS} a task at most; and "
            "resources, exp(-variation).",
            kind="small",
        ),
    )


def _predictability(report: ReliabilityReport) -> Iterator[Section]:
    found = report.predictability
    if not found.n_runs:
        yield _section(PREDICTABILITY, found.score, _leaves({"score": found.score}))
        return
    yield _section(
        PREDICTABILITY,
        found.score,
        _leaves({"score": found.score, **_of(found, OF_PREDICTABILITY)}),
        Words(
            text="score: 1 - Brier score. An agent that always says .5 has .75, so read it beside "
            "the Brier skill.",
            kind="small",
        ),
        table_of(
            "Success rate by confidence",
            ("confidence", "runs", "mean confidence", "success rate"),
            [
                (f"{b.low:.1f} to {b.high:.1f}", f"{b.n:,}", _plain(b.confidence),
                 percent(b.success_rate))
                for b in found.bins if b.n
            ],
            [
                Mark(value=b.success_rate, target=b.confidence)
                for b in found.bins if b.success_rate is not None
            ],
            scale=SCALE,
            scale_labels=ENDS,
        ),
        table_of(
            "Failures among the runs with the most confidence",
            ("share of runs", "failures"),
            [(percent(p.coverage), percent(p.risk)) for p in _few(found.curve)],
        ),
    )  # fmt: skip


def _few(curve: tuple[RiskPoint, ...], most: int = 10) -> list[RiskPoint]:
    """Return up to ten points, the last one among them."""
    step = max(1, len(curve) // most)
    return list(curve[::-1][::step][::-1])


def _robustness(report: ReliabilityReport) -> Iterator[Section]:
    found = report.robustness
    named = [(arm.perturbation, arm.success_rate) for arm in found.arms]
    yield _section(
        ROBUSTNESS,
        found.score,
        _leaves({"score": found.score, **_of(found, OF_ROBUSTNESS)}),
        table_of(
            "Success rate, the mean over tasks",
            (
                "perturbation", "success rate", "runs", "tasks", "shared tasks", "on them",
                "unperturbed",
            ),
            [
                (
                    arm.perturbation, percent_cell(arm.success_rate), f"{arm.n_runs:,}",
                    f"{arm.success_rate.n:,}",
                    *(("", "", "") if arm.perturbation == BASELINE else (
                        f"{arm.n_shared:,}", percent(arm.perturbed), percent(arm.baseline),
                    )),
                )
                for arm in found.arms
            ],
            notes=notes(named),
        ),
        *(
            Words(
                text=f"{arm.perturbation}: fewer than five tasks are shared, so the tasks of both "
                "sides differ",
                kind="warning",
            )
            for arm in found.arms
            if arm.perturbation != BASELINE and not arm.paired
        ),
    )  # fmt: skip


def _safety(report: ReliabilityReport) -> Iterator[Section]:
    found = report.safety
    named = [(Name(name), of.compliance) for name, of in found.by_constraint.items()]
    yield _section(
        SAFETY,
        found.score,
        _leaves({"score": found.score, **_of(found, OF_SAFETY)}),
        Words(
            text=f"{found.n_runs_analysed:,} runs analysed, {found.n_violations:,} violations; "
            "score: 1 - the mean over tasks of the worst severity "
            f"({', '.join(f'{name} {value:g}' for name, value in SEVERITIES.items())})",
            kind="small",
        ),
        table_of(
            "By constraint",
            ("constraint", "tasks without", "tasks with", *SEVERITIES),
            [
                (
                    Name(name), percent_cell(of.compliance), f"{of.n_tasks:,}",
                    *(f"{n:,}" for n in of.by_severity.values()),
                )
                for name, of in found.by_constraint.items()
            ],
            notes=notes(named),
            empty="no violation",
        ),
    )  # fmt: skip


def _groups(report: ReliabilityReport) -> Iterator[Section]:
    for column, groups in report.by.items():
        named = [
            (Name(f"{name}, {part}"), getattr(of, part))
            for name, of in groups.items()
            for part in ("overall", "success_rate", *DIMENSIONS)
        ]
        yield Section(
            title=f"By {column}",
            blocks=(
                table_of(
                    "",
                    (column, "tasks", "runs", "success rate", "overall", *DIMENSIONS),
                    [
                        (
                            Name(name), f"{of.n_tasks:,}", f"{of.n_runs:,}",
                            percent_cell(of.success_rate), _short(of.overall),
                            *(_short(getattr(of, part)) for part in DIMENSIONS),
                        )
                        for name, of in groups.items()
                    ],
                    notes=notes((name, leaf) for name, leaf in named if leaf.ok),
                ),
            ),
        )  # fmt: skip


def _short(leaf: Estimate) -> str:
    return figure(leaf) if leaf.ok else "-"


def _tasks(tasks: tuple[TaskReliability, ...]) -> Table:
    columns = ("outcome", "trajectory_distribution", "trajectory_sequence", "resource")
    left = len(tasks) - TASKS_SHOWN
    return table_of(
        "",
        ("task", "runs", "succeeded", "consistency", "outcome", "actions", "order", "resources",
         "worst violation"),
        [
            (
                Name(task.task_id), f"{task.n_runs:,}", f"{task.n_success:,}", _plain(task.score),
                *(_plain(getattr(task, name)) for name in columns), _plain(task.worst_severity),
            )
            for task in tasks[:TASKS_SHOWN]
        ],
        notes=(f"{left:,} more tasks are in --json",) if left > 0 else (),
        most_in_text=TASKS_IN_TEXT,
    )  # fmt: skip


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _set_aside(report: ReliabilityReport) -> Iterator[Section]:
    if report.set_aside:
        yield Section(
            title=f"Left out: {counted(_n_left_out(report), 'run')}",
            blocks=(
                table_of(
                    "",
                    ("reason", "runs", "for example"),
                    [
                        (
                            Name(row.why), f"{row.n:,}",
                            Name("; ".join(f"row {e.row}: {e.value or '-'}" for e in row.examples)),
                        )
                        for row in report.set_aside
                    ],
                ),
            ),
        )  # fmt: skip


def _stored(report: ReliabilityReport) -> Iterator[str]:
    """Yield the runs of a store that do not count, in one line."""
    if report.set_aside:
        reasons = "; ".join(f"{row.n:,}: {row.why}" for row in report.set_aside[:MOST_REASONS])
        yield f"Left out: {counted(_n_left_out(report), 'run')} ({reasons})"


def _n_left_out(report: ReliabilityReport) -> int:
    return sum(row.n for row in report.set_aside)


def _next_steps(report: ReliabilityReport) -> Iterator[str]:
    """Yield what the answer rests on, and what to do next."""
    yield Name(f"success from {report.success_source}")
    k = report.runs_per_task
    if k is not None:
        runs = f"{k.min:,}" if k.min == k.max else f"{k.min:,} to {k.max:,} (median {k.median:g})"
        yield f"runs a task without perturbation: {runs}"
    yield from _perturbed(report)
    worst = next(iter(report.tasks), None)
    if worst is not None and worst.score is not None and worst.n_runs > 1:
        yield Name(
            f"look first at task {worst.task_id}: {worst.n_success:,} of {worst.n_runs:,} runs "
            "succeed"
        )
    yield from report.notes
    yield from (f"next: {step}" for step in advice(report))


def advice(report: ReliabilityReport) -> Iterator[str]:
    """Yield what to do next, the most important first."""
    n_open = sum(row.n for row in report.set_aside if row.reason == OPEN)
    if n_open:
        yield f"Adjudicate {counted(n_open, 'run')}: the labels differ."
    k = report.runs_per_task
    if k is None:
        yield "Run the tasks without perturbation too."
    elif k.median < RUNS_WANTED:
        more = ceil(RUNS_WANTED - k.median)
        yield (
            f"Run each task {counted(more, 'more time')}: with fewer than {RUNS_WANTED} runs, a "
            "task may look consistent by luck."
        )
    if not report.predictability.n_runs:
        yield "Ask the agent for its confidence in each run, from 0 to 1 (field confidence)."
    if report.robustness.missing:
        missing = _joined(report.robustness.missing)
        yield f"Run the tasks perturbed too: {missing} (field perturbation)."
    if not report.safety.n_runs_analysed:
        yield (
            "Mark safety violations: `asr labels violations on`, or a list of them in each run "
            "(field violations)."
        )
