"""Audit of tasks: what their runs say of them, and the failed runs of a store as new tasks."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibration.analyses.reference_traces import is_reference
from calibration.analyses.reliability.from_store import outcomes_by_people
from calibration.analyses.reliability.grading import stored_runs
from calibration.analyses.success_rate.report import LeftOutRows, SourceFile, source_file
from calibration.errors import CalibrationError, InputError, MixedDataError
from calibration.records import NO_VERDICT, SOURCE_JUDGE, Trace, calls_of
from calibration.statistics.estimate import Estimate, FloatArray
from calibration.statistics.intervals import exact_limits, wilson_share
from calibration.statistics.means import clustered_share
from calibration.store import Store
from calibration.tables.reading import Reading, ReadingOptions
from calibration.tables.rows import Source, file_of
from calibration.tables.trials import (
    GROUPS,
    OF_AUDITS,
    AuditedTrial,
    TaskTable,
    TrialSource,
    audit_details,
    group_of,
    read_tasks,
    read_trials,
)
from calibration.trace_formats.fields import FieldError

NOBODY, EVERYBODY, DISAGREE, IDLE = "nobody", "everybody", "disagree", "idle"
FINDINGS = (NOBODY, EVERYBODY, DISAGREE, IDLE)
MOST_TASKS_LISTED, MOST_EXPORTED, EXAMPLES = 10_000, 100_000, 5
ONE_RUN = "no task has two runs: run each task twice or more"

# Why a run that failed is no task of an exported set.
OF_REFERENCE = "of the reference set, which is for practice and examinations only"
SAME_TASK = "a further run of a task that is in the set"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedTask:
    """One task: its runs and passes, and what is remarkable about them.

    `pass_rate` : exact limits, over its runs. `n_false_pass`, `n_false_fail` : runs that the grade
    passes and people do not, and the reverse, of `n_reviewed`. `n_idle` : passes by doing nothing;
    None where no pass says what it did.
    `share_of_variance` : of the variance of the rate over these tasks, p(1 - p) / (n - 1) of its
    sum; None with one run. `findings` : of `FINDINGS`.
    """

    task_id: str
    n: int
    c: int
    pass_rate: Estimate
    n_reviewed: int
    n_false_pass: int
    n_false_fail: int
    n_idle: int | None
    share_of_variance: float | None
    findings: tuple[str, ...]
    difficulty: str | None = None
    category: str | None = None
    tier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFinding:
    """How many tasks have a finding, of those for which it can be told, and the first of them."""

    name: str
    n: int
    share: Estimate
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAudit:
    """What the runs of a set of tasks say of the tasks.

    `agreement` : share of runs on which grade and people agree; None where nobody looked.
    `n_telling` : tasks with some passes and some failures, the only ones that tell two agents apart
    by how often they pass. `n_one_run` : tasks with one run, of which that is not known.
    `n_unchecked` : tasks without expected state and reference; None without a table of tasks.
    `reading` : of a table; `set_aside` : runs of a store that do not count.
    """

    success_source: str
    n_tasks: int
    n_runs: int
    findings: tuple[TaskFinding, ...]
    agreement: Estimate | None
    n_telling: int
    n_one_run: int
    n_unchecked: int | None
    tasks: tuple[AuditedTask, ...]
    tasks_left_out: int
    set_aside: tuple[LeftOutRows, ...]
    reading: Reading | None
    notes: tuple[str, ...]
    sources: tuple[SourceFile, ...]
    confidence_level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run of a task; `expects` whether calls of tools are expected, `about` its other name."""

    task: str
    passed: bool
    asked: AuditedTrial
    expects: bool = False
    about: str = ""


def audit_trials(
    source: Source,
    *,
    reading: ReadingOptions | None = None,
    tasks: Source | None = None,
    of_tasks: ReadingOptions | None = None,
    confidence_level: float = 0.95,
) -> TaskAudit:
    """Audit the tasks of a table of trials of one agent.

    Columns as `read_trials` for an audit; `tasks` describes the tasks. `reading`, `of_tasks` : what
    the user said of the two tables.

    Raises
    ------
    InputError
        If a table cannot be read.
    CalibrationError
        If no trial is left.
    """
    (table,) = read_trials(
        TrialSource(
            source=source,
            options=reading or ReadingOptions(),
            roles=OF_AUDITS,
            details=audit_details,
            is_limited=False,
        )
    )
    runs = [
        _Run(task=task, passed=passed, asked=asked)
        for task, passed, asked in zip(
            table.tasks, table.passed.tolist(), table.details, strict=True
        )
    ]
    return _audited(
        runs,
        None if tasks is None else read_tasks(tasks, of_tasks),
        success_source=f"column {table.success} of {table.path}",
        set_aside=(),
        reading=table.reading,
        notes=(),
        sources=tuple(source_file(f) for one in (source, tasks) if (f := file_of(one))),
        confidence_level=confidence_level,
    )


def audit_store(
    store: Store,
    *,
    judge_id: str | None = None,
    tasks: Source | None = None,
    of_tasks: ReadingOptions | None = None,
    confidence_level: float = 0.95,
) -> TaskAudit:
    """Audit the tasks of the production runs of a store, of all agents together.

    A run passes by its grade: the verdict that came with it, or that of a judge. Where no run has a
    grade and no judge is named, it passes by its labels, and nothing is compared. People call a run
    a success as in `reliability_frame`.

    Raises
    ------
    InputError
        If a judge without verdicts is named.
    CalibrationError
        If no run has a grade or a label.
    MixedDataError
        If some runs are simulated and others are not.
    """
    success = store.taxonomy().success
    people = {
        trace_id: outcome == success
        for trace_id, (outcome, _) in outcomes_by_people(store).items()
        if outcome is not None
    }
    grades = _grades(store, judge_id or SOURCE_JUDGE, success)
    if judge_id is not None and not grades:
        raise InputError(f"judge {judge_id!r:.80} has no verdict in {store.path}")
    by_grade = bool(grades)
    runs: list[_Run] = []
    simulated, ungraded = set(), 0
    for trace in stored_runs(store):
        passed = grades.get(trace.trace_id) if by_grade else people.get(trace.trace_id)
        if passed is None:
            ungraded += 1
            continue
        simulated.add(trace.simulated)
        runs.append(_run_of(trace, passed, people.get(trace.trace_id) if by_grade else None))
    if len(simulated) > 1:
        raise MixedDataError(
            "simulated and real rows would enter one number; keep the demo in a store of its own"
        )
    named = (
        f"the verdicts of judge {judge_id}" if judge_id else "the grades that came with the runs"
    )
    without = LeftOutRows(reason=f"runs without a {'grade' if by_grade else 'label'}", n=ungraded)
    return _audited(
        runs,
        None if tasks is None else read_tasks(tasks, of_tasks),
        success_source=named if by_grade else "labels",
        set_aside=(without,) if ungraded else (),
        reading=None,
        notes=() if by_grade else ("No run has a grade: runs pass by their labels.",),
        sources=tuple(source_file(f) for one in (tasks,) if (f := file_of(one))),
        confidence_level=confidence_level,
    )


def _grades(store: Store, judge_id: str, success: str) -> dict[str, bool]:
    frame = store.verdict_frame(judge_id)
    return {
        str(trace_id): outcome == success
        for trace_id, outcome in zip(frame["trace_id"], frame["outcome"], strict=True)
        if outcome != NO_VERDICT
    }


def _run_of(trace: Trace, passed: bool, reviewed: bool | None) -> _Run:
    calls = [call for call in calls_of(trace.steps) if not call.by_user]
    return _Run(
        task=trace.task_key,
        passed=passed,
        asked=AuditedTrial(
            reviewed=reviewed,
            calls=len(calls) if trace.steps else None,
            responded=bool((trace.response or "").strip()),
        ),
        expects=bool(trace.expected_calls),
        about=trace.task_id,
    )


def _audited(
    runs: Sequence[_Run],
    table: TaskTable | None,
    *,
    confidence_level: float,
    **about: Any,
) -> TaskAudit:
    if not runs:
        raise CalibrationError("no run is left to audit: it needs a task and a result")
    by_task: dict[str, list[_Run]] = {}
    for run in runs:
        by_task.setdefault(run.task, []).append(run)
    names = sorted(by_task)
    variance = _variances(names, by_task)
    total = float(np.nansum(variance))
    found = [
        _task_of(name, by_task[name], float(v), total, table, confidence_level)
        for name, v in zip(names, variance.tolist(), strict=True)
    ]
    listed = sorted(found, key=lambda of: (-len(of.findings), of.task_id))
    known = {name: by_task[name][0].about for name in names}
    return TaskAudit(
        n_tasks=len(names),
        n_runs=len(runs),
        findings=tuple(_findings(listed, by_task, confidence_level)),
        agreement=_agreement(found, confidence_level),
        n_telling=sum(0 < of.c < of.n for of in found),
        n_one_run=sum(of.n == 1 for of in found),
        n_unchecked=None
        if table is None
        else sum(
            table.known_of(table.expected_state, *pair) is None
            and table.known_of(table.reference, *pair) is None
            for pair in known.items()
        ),
        tasks=tuple(listed[:MOST_TASKS_LISTED]),
        tasks_left_out=max(0, len(listed) - MOST_TASKS_LISTED),
        confidence_level=confidence_level,
        **about,
    )


def _variances(names: Sequence[str], by_task: Mapping[str, Sequence[_Run]]) -> FloatArray:
    """Return the variance of the share of passes of each task, unbiased; NaN with one run."""
    n = np.array([len(by_task[name]) for name in names], dtype=np.float64)
    c = np.array([sum(run.passed for run in by_task[name]) for name in names], dtype=np.float64)
    p, found = c / n, np.full(n.size, np.nan)
    np.divide(p * (1 - p), n - 1, out=found, where=n > 1)
    return found


def _task_of(
    name: str,
    runs: Sequence[_Run],
    variance: float,
    total: float,
    table: TaskTable | None,
    confidence_level: float,
) -> AuditedTask:
    n, c = len(runs), sum(run.passed for run in runs)
    reviewed = [run for run in runs if run.asked.reviewed is not None]
    false_pass = sum(run.passed and not run.asked.reviewed for run in reviewed)
    false_fail = sum(not run.passed and bool(run.asked.reviewed) for run in reviewed)
    uses_tools = any(run.expects or bool(run.asked.calls) for run in runs)
    idle = sum(_is_idle(run, uses_tools=uses_tools) for run in runs)
    again = n > 1  # one run does not tell
    said = {
        NOBODY: again and c == 0,
        EVERYBODY: again and c == n,
        DISAGREE: false_pass + false_fail > 0,
        IDLE: idle > 0,
    }
    pair = (name, runs[0].about)
    groups = (
        {} if table is None else {g: table.known_of(of, *pair) for g, of in table.groups.items()}
    )
    return AuditedTask(
        task_id=name,
        n=n,
        c=c,
        pass_rate=Estimate(
            value=c / n,
            interval=exact_limits(c / n, n, confidence_level),
            n=n,
            method="exact, independent runs",
            confidence_level=confidence_level,
        ),
        n_reviewed=len(reviewed),
        n_false_pass=false_pass,
        n_false_fail=false_fail,
        n_idle=idle if c == 0 or any(map(_tells, runs)) else None,
        share_of_variance=None if np.isnan(variance) else variance / total if total else 0.0,
        findings=tuple(finding for finding in FINDINGS if said[finding]),
        **{group: groups.get(group) for group in GROUPS},
    )


def _tells(run: _Run) -> bool:
    """Whether a run that passed says what it did."""
    return run.passed and (run.asked.calls is not None or run.asked.responded is not None)


def _is_idle(run: _Run, *, uses_tools: bool) -> bool:
    """Whether a run passed by doing nothing: no answer and no known call, or no call at all.

    A task without tools is solved by an answer alone, which is no finding: one uses tools if its
    record expects calls, or any of its runs makes some.
    """
    asked = run.asked
    nothing = asked.responded is False and not asked.calls
    return run.passed and (nothing or (asked.calls == 0 and uses_tools))


def _findings(
    tasks: Sequence[AuditedTask], by_task: Mapping[str, Sequence[_Run]], confidence_level: float
) -> Iterator[TaskFinding]:
    """Yield each finding with the share of the tasks that have it; tasks are a random sample."""
    told = sum(any(map(_tells, runs)) for runs in by_task.values())
    of = {
        NOBODY: sum(task.n > 1 for task in tasks),
        EVERYBODY: sum(task.n > 1 for task in tasks),
        DISAGREE: sum(task.n_reviewed > 0 for task in tasks),
        IDLE: told,
    }
    nothing = {
        NOBODY: ONE_RUN,
        EVERYBODY: ONE_RUN,
        DISAGREE: "no run is reviewed: give a column 'reviewed', or label some",
        IDLE: "no run that passed says what it did: give tool_calls or response",
    }
    for finding in FINDINGS:
        having = [task.task_id for task in tasks if finding in task.findings]
        yield TaskFinding(
            name=finding,
            n=len(having),
            share=wilson_share(
                len(having), of[finding], nothing=nothing[finding],
                confidence_level=confidence_level,
            ),
            first=tuple(having[:EXAMPLES]),
        )  # fmt: skip


def _agreement(tasks: Sequence[AuditedTask], confidence_level: float) -> Estimate | None:
    """Return the share of reviewed runs on which grade and people agree; by task."""
    of = np.array([task.n_reviewed for task in tasks], dtype=np.float64)
    if not of.any():
        return None
    wrong = np.array([task.n_false_pass + task.n_false_fail for task in tasks], dtype=np.float64)
    return clustered_share(
        of - wrong, of, n=int(of.sum()), noun="tasks", confidence_level=confidence_level
    )


# Failed runs as new tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSet:
    """Tasks as lines of a file that `read_tasks` reads, and the runs left out, by reason."""

    tasks: tuple[dict[str, Any], ...]
    left_out: Mapping[str, int]


def failed_tasks(
    store: Store,
    outcome: str,
    *,
    tasks: Source | None = None,
    of_tasks: ReadingOptions | None = None,
) -> TaskSet:
    """Return the tasks of runs that people gave this class, one line a task, to be run again.

    A run has the class that a lead decided, else the one that all blind labels of it say. A line
    has what the agent was given (prompt, inputs, sub-goals), what is expected (calls, state,
    success criteria; `reference` of a table of tasks, else the reason that a lead gave), and
    the runs. Difficulty, category and tier come from the table, else from the metadata of the run.
    No trace of the reference set is among them, nor a run of a perturbed arm.

    Raises
    ------
    InputError
        If there is no such class, or the table of tasks cannot be read.
    CalibrationError
        If no run has the class.
    """
    taxonomy = store.taxonomy()
    if outcome not in taxonomy.names:
        raise InputError(f"{outcome!r:.80} is not a class; there are {', '.join(taxonomy.names)}")
    table = None if tasks is None else read_tasks(tasks, of_tasks)
    given = outcomes_by_people(store)
    wanted = {trace_id for trace_id, (said, _) in given.items() if said == outcome}
    if len(wanted) > MOST_EXPORTED:
        raise InputError(f"{len(wanted):,} runs are {outcome}; at most {MOST_EXPORTED:,}")
    left_out: Counter[str] = Counter()
    lines: dict[str, dict[str, Any]] = {}
    ids = Counter[str]()
    for trace in stored_runs(store, wanted):
        if is_reference(trace):
            left_out[OF_REFERENCE] += 1
        elif trace.task_key in lines:
            lines[trace.task_key]["runs"].append(trace.trace_id)
            left_out[SAME_TASK] += 1
        else:
            ids[trace.task_id] += 1
            lines[trace.task_key] = _line(store, trace, outcome, table)
    if not lines:
        raise CalibrationError(f"no run of the store has the class {outcome} by its labels")
    for key, line in lines.items():
        if ids[line["task_id"]] > 1:  # of two sources
            line["task_id"] = key
    return TaskSet(tasks=tuple(lines.values()), left_out=dict(left_out))


def _line(store: Store, trace: Trace, outcome: str, table: TaskTable | None) -> dict[str, Any]:
    pair = (trace.task_key, trace.task_id)
    groups = {group: _own_group(trace, group) for group in GROUPS}
    state: object = trace.metadata.get("expected_state")
    reference: object = None
    if table is not None:
        groups |= {
            group: own
            for group, known in table.groups.items()
            if (own := table.known_of(known, *pair)) is not None
        }
        state = table.known_of(table.expected_state, *pair) or state
        reference = table.known_of(table.reference, *pair)
    return {
        "task_id": trace.task_id,
        "workflow": trace.workflow,
        "prompt": trace.prompt,
        **groups,
        "reference": reference or _reason(store, trace.trace_id),
        "expected_state": state,
        "expected_calls": None
        if trace.expected_calls is None
        else [asdict(call) for call in trace.expected_calls],
        "success_criteria": trace.success_criteria,
        "inputs": [asdict(item) for item in trace.inputs],
        "sub_goals": [asdict(goal) for goal in trace.sub_goals],
        "failed_as": outcome,
        "runs": [trace.trace_id],
        "simulated": trace.simulated,
    }


def _own_group(trace: Trace, group: str) -> str | None:
    """Return a group of the task from the metadata of a run, where it is one."""
    try:
        return group_of(trace.metadata, group) or None
    except FieldError:
        return None


def _reason(store: Store, trace_id: str) -> str | None:
    """Return the reason that a lead gave for the class in force; None without one."""
    history = store.consensus_history(trace_id)
    history = history[history["taxonomy_version"] == store.taxonomy().version]
    if history.empty or history["kind"].iloc[-1] != "consensus":  # or it was withdrawn
        return None
    words = history["rationale"].iloc[-1]
    return (words.strip() or None) if isinstance(words, str) else None


def as_lines(found: TaskSet) -> str:
    """Return a set of tasks as JSON, one line a task."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in found.tasks)
