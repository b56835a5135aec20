"""Reliability of repeated runs: read from a table, and measured.

`read_runs` takes a file or a frame with the same columns, so that any source of runs can hand in a
frame; `measure_reliability` is the analysis.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from calibration.analyses.fingerprint import fingerprint
from calibration.errors import InputError
from calibration.reliability import predictability as predictabilities
from calibration.reliability import robustness as robustnesses
from calibration.reliability.consistency import (
    ERRORS,
    ActionLists,
    Consistency,
    TaskConsistency,
    consistency,
    consistency_score,
    score_statistic,
    task_consistency,
)
from calibration.reliability.predictability import Predictability, predictability
from calibration.reliability.robustness import ARMS, BASELINE, Robustness, robustness, task_rates
from calibration.reliability.safety import (
    NOT_ANALYSED,
    SEVERITIES,
    Safety,
    Violations,
    safety,
    worst_of_tasks,
)
from calibration.runs.results import SetAsideRows
from calibration.statistics.estimate import BoolArray, FloatArray, IntArray
from calibration.statistics.resampling import (
    Statistic,
    TaskEstimate,
    TaskResamples,
    bounded_mean,
    resample_tasks,
)
from calibration.tables.labels import MAX_USD
from calibration.tables.reading import Reading, ReadingOptions
from calibration.tables.rows import Row, Source, place_of
from calibration.tables.trials import (
    COST,
    GROUPS,
    OF_TRIALS,
    TrialSource,
    TrialTable,
    group_notes,
    read_trials,
)
from calibration.tables.words import cell, fold, is_missing, number_of, truth
from calibration.trace_formats.fields import MAX_COUNT, MAX_SECONDS, FieldError, wrong
from calibration.trace_formats.json_scanner import decode_line

# Amounts of a run by resource: its column, and the most it may be. Actions are counted.
AMOUNTS = {
    "cost": (COST, float(MAX_USD)),
    "time": ("latency_s", MAX_SECONDS),
    "api_calls": ("api_calls", float(MAX_COUNT)),
    ERRORS: ("n_errors", float(MAX_COUNT)),
    "call_latency": ("call_latency_s", MAX_SECONDS),
}
OF_RUNS = (
    *OF_TRIALS, *(name for name, _ in AMOUNTS.values() if name not in OF_TRIALS), "confidence",
    "actions", "violations", "analysed",
)  # fmt: skip
MOST_RUNS, MOST_CONSTRAINTS, MOST_VALUES = 1_000_000, 50, 50
MOST_NAME, MOST_NAMES, MOST_VIOLATIONS = 200, 100_000, 1_000
ALL_ACTIONS = 20_000_000

# Actions of one run that are compared with those of another.
MOST_ACTIONS = 2_000

# What the JSON holds as null where too many runs are left out.
FIGURES = ("overall", "consistency", "predictability", "robustness", "safety")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepeatedRuns:
    """Runs of tasks, sorted by task, perturbation and run; arrays have one element a run.

    `tasks` : ids of the tasks; `task` : place of a run's task in them
    `arm` : place of its perturbation in `ARMS`
    `confidence`, `amounts` : NaN where missing
    `n_too_long` : runs whose actions are too many to be compared
    `reading` : what was read of a table; `set_aside` : runs of a store that do not count
    `success_source` : where success comes from; `simulated` : whether the runs are
    """

    place: str
    tasks: tuple[str, ...]
    task: IntArray
    run: tuple[str, ...]
    success: BoolArray
    arm: IntArray
    confidence: FloatArray
    amounts: Mapping[str, FloatArray]
    actions: ActionLists
    action_names: tuple[str, ...]
    analysed: BoolArray
    violations: Violations
    reading: Reading | None = None
    set_aside: tuple[SetAsideRows, ...] = ()
    n_too_long: int = 0
    success_source: str
    simulated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsPerTask:
    """How many runs without perturbation the tasks have that have any."""

    min: int
    median: float
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReliability:
    """One task; `score` and its parts are of its runs without perturbation."""

    task_id: str
    difficulty: str | None
    category: str | None
    tier: str | None
    n_runs: int
    n_success: int
    score: float | None
    outcome: float | None
    trajectory_distribution: float | None
    trajectory_sequence: float | None
    confidence: float | None
    resource: float | None
    success_rates: dict[str, float | None]
    worst_severity: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityGroup:
    """The scores of the tasks with one value of a column of TASKS."""

    n_tasks: int
    n_runs: int
    overall: TaskEstimate
    success_rate: TaskEstimate
    consistency: TaskEstimate
    predictability: TaskEstimate
    robustness: TaskEstimate
    safety: TaskEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityReport:
    """Reliability of repeated runs; tasks come worst first.

    `success_source` names what a success is. `runs_per_task` is None without a run that is not
    perturbed. `by` holds the groups by column of TASKS and value. `reading` : of a table;
    `set_aside` : runs of a store that do not count.
    """

    success_source: str
    simulated: bool
    overall: TaskEstimate
    consistency: Consistency
    predictability: Predictability
    robustness: Robustness
    safety: Safety
    n_runs: int
    n_tasks: int
    runs_per_task: RunsPerTask | None
    by: dict[str, dict[str, ReliabilityGroup]]
    tasks: tuple[TaskReliability, ...]
    reading: Reading | None
    set_aside: tuple[SetAsideRows, ...]
    notes: tuple[str, ...]
    divergence: bool
    seed: int
    n_resamples: int
    confidence_level: float
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunDetails:
    """What a row says of a run besides its result and its amounts; actions as numbers."""

    arm: int
    confidence: float
    actions: "array[int] | None"
    n_actions: float
    analysed: bool
    violations: tuple[tuple[int, int], ...]


class _DetailReader:
    """Reads what rows say of runs, with a number for each action and constraint."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.names: dict[str, int] = {}
        self.constraints: dict[str, int] = {}
        self.n_rows = 0
        self.n_actions = 0

    def read(self, row: Row) -> _RunDetails:
        """Return what a row says of a run; FieldError where a value cannot be read."""
        self.n_rows += 1
        if self.n_rows > MOST_RUNS:
            raise InputError(f"{self.place}: has more than {MOST_RUNS:,} runs; split it")
        confidence = _confidence(row)
        actions = _names(row)
        violations = _violations(row)
        arm = _arm(row)
        said = cell(row.get("analysed"))
        analysed = violations is not None if is_missing(said) else truth(said)
        if analysed is None:
            raise wrong("analysed", "must say yes or no", said)
        if violations and not analysed:
            raise wrong("violations", "must be empty where analysed says no", "some")
        numbers, severities = self.constraints, list(SEVERITIES)
        coded = tuple(
            (numbers.setdefault(name, len(numbers)), severities.index(severity))
            for name, severity in violations or ()
        )
        if len(numbers) > MOST_CONSTRAINTS:
            raise InputError(
                f"{self.place}: violations name more than {MOST_CONSTRAINTS} constraints; is "
                "constraint a free text? Name each constraint the same way everywhere"
            )
        return _RunDetails(
            arm=arm,
            confidence=np.nan if confidence is None else confidence,
            actions=self._coded(actions),
            n_actions=np.nan if actions is None else float(len(actions)),
            analysed=analysed,
            violations=coded,
        )

    def _coded(self, actions: list[str] | None) -> "array[int] | None":
        if actions is None or len(actions) > MOST_ACTIONS:
            return None
        names = self.names
        self.n_actions += len(actions)
        coded = array("q", [names.setdefault(name, len(names)) for name in actions])
        for n, most, what in (
            (len(names), MOST_NAMES, "different actions; are arguments part of the names?"),
            (self.n_actions, ALL_ACTIONS, "actions; split the table"),
        ):
            if n > most:
                raise InputError(f"{self.place}: the runs have more than {most:,} {what}")
        return coded


def _arm(row: Row) -> int:
    """Return the place of the perturbation of a run among `ARMS`."""
    name = fold(cell(row.get("perturbation")))
    if is_missing(cell(row.get("perturbation"))):
        name = BASELINE
    if name not in ARMS:
        raise wrong("perturbation", f"must be one of {', '.join(ARMS)}", name)
    return ARMS.index(name)


def _confidence(row: Row) -> float | None:
    text = cell(row.get("confidence"))
    if is_missing(text):
        return None
    value = number_of(text)
    if value is None or not 0 <= value <= 1:
        raise wrong("confidence", "must be a number from 0 to 1", text)
    return value


def _runs_of(table: TrialTable, reader: _DetailReader) -> RepeatedRuns:
    """Return the runs of a table, in an order that does not depend on its own."""
    details: tuple[_RunDetails, ...] = table.details
    keys = [
        (task, one.arm, run)
        for task, one, run in zip(table.tasks, details, table.trials, strict=True)
    ]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    tasks = tuple(dict.fromkeys(keys[k][0] for k in order))
    number = {name: k for k, name in enumerate(tasks)}
    task = np.array([number[keys[k][0]] for k in order], dtype=np.int64)
    constraints = _used(reader.constraints, (c for one in details for c, _ in one.violations))
    listed = [
        (int(task[k]), constraint, severity)
        for k, row in enumerate(order)
        for constraint, severity in details[row].violations
    ]
    columns = np.array(listed, dtype=np.int64).reshape(-1, 3).T
    actions, names = _lists([details[k].actions for k in order], reader.names)
    amounts = {name: table.amounts[column][order] for name, (column, _) in AMOUNTS.items()}
    amounts["actions"] = np.array([details[k].n_actions for k in order], dtype=np.float64)
    return RepeatedRuns(
        place=table.path,
        tasks=tasks,
        task=task,
        run=tuple(keys[k][2] for k in order),
        success=table.passed[order],
        arm=np.array([keys[k][1] for k in order], dtype=np.int64),
        confidence=np.array([details[k].confidence for k in order], dtype=np.float64),
        amounts=amounts,
        actions=actions,
        action_names=names,
        analysed=np.array([details[k].analysed for k in order], dtype=np.bool_),
        violations=Violations(
            names=constraints,
            task=columns[0],
            constraint=_recoded(reader.constraints, constraints)[columns[1]],
            severity=columns[2],
        ),
        reading=table.reading,
        n_too_long=sum(one.n_actions > MOST_ACTIONS for one in details),
        success_source=f"column {table.success} of {table.path}",
    )


def _used(numbers: Mapping[str, int], codes: Iterable[int]) -> tuple[str, ...]:
    """Return the names whose numbers occur, sorted."""
    present = set(codes)
    return tuple(sorted(name for name, code in numbers.items() if code in present))


def _lists(
    coded: "list[array[int] | None]", numbers: Mapping[str, int]
) -> tuple[ActionLists, tuple[str, ...]]:
    """Return the actions of runs under the numbers of their sorted names, and the names."""
    flat: array[int] = array("q")
    for codes in coded:
        flat.extend(codes or ())
    lengths = [len(codes or ()) for codes in coded]
    joined = np.frombuffer(flat, dtype=np.int64) if flat else np.zeros(0, dtype=np.int64)
    names = _used(numbers, np.unique(joined).tolist())
    lists = ActionLists(
        codes=_recoded(numbers, names)[joined],
        start=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        known=np.array([codes is not None for codes in coded], dtype=np.bool_),
    )
    return lists, names


def _recoded(numbers: Mapping[str, int], names: tuple[str, ...]) -> IntArray:
    """Return the place in `names` of each number; of numbers whose name is not there, 0."""
    place = np.zeros(len(numbers), dtype=np.int64)
    place[[numbers[name] for name in names]] = np.arange(len(names))
    return place


def read_runs(source: Source, options: ReadingOptions | None = None) -> RepeatedRuns:
    """Read runs from CSV, JSONL, Parquet or a frame.

    Columns: task_id, trial, outcome, by these names or their aliases; optional confidence in
    [0, 1], actions (a list of names, in CSV as JSON), cost_usd, latency_s, api_calls, n_errors,
    call_latency_s, perturbation (none, fault, structure or prompt), violations (a list of objects
    with constraint, severity and step), and analysed: by default a run is analysed for violations
    if it has a list of them, however empty.

    Rows that are not valid are left out with the reason, as `read_trials` does.

    Raises
    ------
    InputError
        If the file cannot be read, a column is missing, there are runs of several agents, or more
        than 1,000,000 runs, 20,000,000 actions, 100,000 names of actions or 50 constraints.
    CalibrationError
        If no row is valid.

    Examples
    --------
    >>> frame = pd.DataFrame({"task_id": ["a", "a"], "run": [1, 2], "success": [1, "maybe"]})
    >>> runs = read_runs(frame)
    >>> runs.tasks, runs.success.tolist(), [row.rows for row in runs.reading.left_out]
    (('a',), [True], [1])
    """
    reader = _DetailReader(place_of(source))
    (table,) = read_trials(
        TrialSource(
            source=source,
            options=options or ReadingOptions(),
            roles=OF_RUNS,
            amounts=dict(AMOUNTS.values()),
            details=reader.read,
            part_of=_arm_of,
            is_perturbed_read=True,
        )
    )
    return _runs_of(table, reader)


def _arm_of(details: Any) -> int:
    """Return the perturbation of a run: its runs of several arms are several."""
    arm: int = details.arm
    return arm


def trial_frame(runs: RepeatedRuns) -> pd.DataFrame:
    """Return the runs without perturbation as the table that `analyse_trials` takes.

    Examples
    --------
    >>> frame = pd.DataFrame({"task_id": ["a", "a"], "run": [1, 2], "success": [1, 0]})
    >>> trial_frame(read_runs(frame.assign(perturbation=["none", "fault"]))).to_dict("list")
    {'task_id': ['a'], 'trial': ['1'], 'success': [True]}
    """
    here = np.flatnonzero(runs.arm == ARMS.index(BASELINE)).tolist()
    return pd.DataFrame(
        {
            "task_id": [runs.tasks[runs.task[k]] for k in here],
            "trial": [runs.run[k] for k in here],
            "success": runs.success[here],
        }
    )


def _items(row: Row, name: str, rule: str) -> list[object] | None:
    """Return a list of a row, which CSV holds as JSON; None where it is missing."""
    value = row.get(name)
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            value = decode_line(value.encode("utf-8", "replace"))
        except FieldError as error:
            raise wrong(name, rule, row[name]) from error
    elif isinstance(value, np.ndarray | tuple):
        value = list(value)
    elif not isinstance(value, list) and not cell(value):
        return None
    if not isinstance(value, list):
        raise wrong(name, rule, value)
    return value


def _names(row: Row) -> list[str] | None:
    rule = f"must be a list of names of 1 to {MOST_NAME} characters"
    found = _items(row, "actions", rule)
    for name in found or ():
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME:
            raise wrong("actions", rule, name)
    return None if found is None else [str(name) for name in found]


def _violations(row: Row) -> list[tuple[str, str]] | None:
    rule = "must be a list of objects with constraint and severity (low, medium or high)"
    found = _items(row, "violations", rule)
    if found is None:
        return None
    if len(found) > MOST_VIOLATIONS:
        raise FieldError(f"field 'violations': must hold at most {MOST_VIOLATIONS:,}")
    taken = []
    for item in found:
        if not isinstance(item, dict):
            raise wrong("violations", rule, item)
        constraint, severity = item.get("constraint"), item.get("severity")
        if not isinstance(constraint, str) or not 0 < len(constraint.strip()) <= MOST_NAME:
            raise wrong("violations", rule, item)
        if severity not in SEVERITIES:
            raise wrong("violations", rule, severity)
        taken.append((constraint.strip(), str(severity)))
    return taken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Measured:
    """What the scores of all tasks and of a group are made of."""

    runs: RepeatedRuns
    by_task: TaskConsistency
    rates: dict[str, FloatArray]
    worst: FloatArray
    resamples: TaskResamples

    def within(self, tasks: BoolArray) -> "_Measured":
        """Return it without the other tasks."""
        kept = tasks[self.runs.task]
        return replace(
            self,
            runs=replace(
                self.runs,
                task=self.runs.task[kept],
                success=self.runs.success[kept],
                arm=self.runs.arm[kept],
                confidence=self.runs.confidence[kept],
            ),
            by_task=self.by_task.within(tasks),
            rates={name: np.where(tasks, of, np.nan) for name, of in self.rates.items()},
            worst=np.where(tasks, self.worst, np.nan),
        )

    @property
    def baseline(self) -> tuple[IntArray, BoolArray, FloatArray]:
        """Task, success and confidence of the runs without perturbation."""
        here = self.runs.arm == ARMS.index(BASELINE)
        return self.runs.task[here], self.runs.success[here], self.runs.confidence[here]

    @property
    def n_runs(self) -> dict[str, int]:
        """Runs by perturbation."""
        counts = np.bincount(self.runs.arm, minlength=len(ARMS)).tolist()
        return dict(zip(ARMS, counts, strict=True))


def measure_reliability(
    runs: RepeatedRuns,
    groups: Mapping[str, Mapping[str, str]] | None = None,
    *,
    divergence: bool = False,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> ReliabilityReport:
    """Measure consistency, predictability, robustness and safety of repeated runs.

    LeftOutError if too many rows of their table are left out.

    Consistency and predictability use the runs without perturbation, robustness compares the others
    with them, and safety takes all runs that were analysed. The overall score is the mean of the
    first three and needs all of them. Intervals are over tasks like these, from one set of
    resamples.

    Parameters
    ----------
    groups : mapping, optional
        As `read_task_groups` returns it; gives the scores by difficulty, category and tier.
    divergence : bool, default False
        Compare shares of actions by the Jensen-Shannon divergence, not its square root.
    """
    if runs.reading is not None:
        runs.reading.check_limit(*FIGURES)
    rng = np.random.default_rng(seed)
    n_tasks = len(runs.tasks)
    here = runs.arm == ARMS.index(BASELINE)
    by_task = task_consistency(
        runs.task[here],
        runs.success[here],
        n_tasks=n_tasks,
        actions=_kept(runs.actions, here),
        confidence=runs.confidence[here],
        resources={name: of[here] for name, of in runs.amounts.items()},
        rng=rng,
        divergence=divergence,
    )
    measured = _Measured(
        runs=runs,
        by_task=by_task,
        rates=task_rates(runs.task, runs.success, runs.arm, n_tasks=n_tasks),
        worst=worst_of_tasks(runs.task[runs.analysed], runs.violations, n_tasks=n_tasks),
        resamples=resample_tasks(
            n_tasks, rng=rng, n_resamples=n_resamples, confidence_level=confidence_level
        ),
    )
    consistent = consistency(by_task, measured.resamples)
    predictable = predictability(*measured.baseline, measured.resamples)
    robust = robustness(measured.rates, measured.n_runs, measured.resamples)
    known = groups or {}
    settings = {"divergence": divergence, "n_resamples": n_resamples, "level": confidence_level}
    by_group, left_out = _groups(measured, known, rng)
    return ReliabilityReport(
        success_source=runs.success_source,
        simulated=runs.simulated,
        overall=_overall(measured, consistent.score, predictable.score, robust.score),
        consistency=consistent,
        predictability=predictable,
        robustness=robust,
        safety=safety(
            measured.worst,
            runs.violations,
            rng=rng,
            n_runs=int(runs.analysed.sum()),
            confidence_level=confidence_level,
        ),
        n_runs=runs.task.size,
        n_tasks=n_tasks,
        runs_per_task=_per_task(measured),
        by=by_group,
        tasks=tuple(_tasks(measured, known)),
        reading=runs.reading,
        set_aside=runs.set_aside,
        notes=(*_notes(runs, by_task, known), *left_out),
        divergence=divergence,
        seed=seed,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        fingerprint=_fingerprint(runs, known, settings | {"seed": seed}),
    )


def _kept(actions: ActionLists, runs: BoolArray) -> ActionLists:
    lengths = actions.lengths
    return ActionLists(
        codes=actions.codes[np.repeat(runs, lengths)],
        start=np.concatenate([[0], np.cumsum(lengths[runs])]).astype(np.int64),
        known=actions.known[runs],
    )


def _overall(measured: _Measured, *scores: TaskEstimate) -> TaskEstimate:
    """Estimate the mean of the three scores, or say which is missing."""
    names = ("consistency", "predictability", "robustness")
    parts = dict(zip(names, scores, strict=True))
    missing = [
        f"no {name} ({part.status.removeprefix('not_estimable: ')})"
        for name, part in parts.items()
        if not part.ok
    ]
    open_ = [name for name, part in parts.items() if part.status.startswith("provisional: without")]
    resamples = measured.resamples
    statistics: list[Statistic] = [
        score_statistic(measured.by_task, resamples),
        predictabilities.score_statistic(*measured.baseline, resamples),
        robustnesses.score_statistic(measured.rates, resamples),
    ]
    return resamples.estimate(
        lambda weights: np.mean([of(weights) for of in statistics], axis=0),
        np.full(resamples.unit.size, not missing),
        nothing="; ".join(missing),
        fewest=min(part.n for part in scores),
        status=f"provisional: parts are missing in {', '.join(open_)}" if open_ else "ok",
    )


def _groups(
    measured: _Measured, known: Mapping[str, Mapping[str, str]], rng: np.random.Generator
) -> tuple[dict[str, dict[str, ReliabilityGroup]], list[str]]:
    """Return the groups by column of TASKS, and a note on each column that has too many values."""
    found: dict[str, dict[str, ReliabilityGroup]] = {}
    left_out = []
    for column, of_task in known.items():
        values = np.array([of_task.get(t, "") for t in measured.runs.tasks], dtype=np.str_)
        names = [str(name) for name in np.unique(values) if name]
        if len(names) > MOST_VALUES:
            left_out.append(
                f"no figures by {column}: {len(names):,} values, at most {MOST_VALUES} are shown"
            )
        elif names:
            found[column] = {n: _group(measured.within(values == n), rng) for n in names}
    return found, left_out


def _group(measured: _Measured, rng: np.random.Generator) -> ReliabilityGroup:
    resamples, rates = measured.resamples, measured.rates
    consistent = consistency_score(measured.by_task, resamples)
    predictable = predictabilities.score(*measured.baseline, resamples)
    robust = robustnesses.robustness_score(rates, measured.n_runs, resamples)
    return ReliabilityGroup(
        n_tasks=int(np.unique(measured.runs.task).size),
        n_runs=measured.runs.task.size,
        overall=_overall(measured, consistent, predictable, robust),
        success_rate=resamples.mean(rates[BASELINE], nothing=robustnesses.NO_BASELINE),
        consistency=consistent,
        predictability=predictable,
        robustness=robust,
        safety=bounded_mean(
            1 - measured.worst,
            rng=rng,
            nothing=NOT_ANALYSED,
            confidence_level=resamples.confidence_level,
        ),
    )


def _per_task(measured: _Measured) -> RunsPerTask | None:
    counts = np.unique(measured.baseline[0], return_counts=True)[1].tolist()
    if not counts:
        return None
    return RunsPerTask(min=min(counts), median=float(median(counts)), max=max(counts))


def _tasks(
    measured: _Measured, known: Mapping[str, Mapping[str, str]]
) -> Iterator[TaskReliability]:
    """Yield the tasks, the least consistent first, those without a score last."""
    tasks, by, rates = measured.runs.tasks, measured.by_task, measured.rates
    score = by.score
    of_baseline = measured.baseline
    n = np.bincount(of_baseline[0], minlength=len(tasks)).tolist()
    good = np.bincount(of_baseline[0][of_baseline[1]], minlength=len(tasks)).tolist()
    for k in np.lexsort([np.nan_to_num(rates[BASELINE]), score]).tolist():
        yield TaskReliability(
            task_id=tasks[k],
            **{name: known.get(name, {}).get(tasks[k]) for name in GROUPS},
            n_runs=n[k],
            n_success=good[k],
            score=_known(score[k]),
            outcome=_known(by.outcome[k]),
            trajectory_distribution=_known(by.trajectory_distribution[k]),
            trajectory_sequence=_known(by.trajectory_sequence[k]),
            confidence=_known(by.confidence[k]),
            resource=_known(by.resource[k]),
            success_rates={name: _known(of[k]) for name, of in rates.items()},
            worst_severity=_known(measured.worst[k]),
        )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _notes(
    runs: RepeatedRuns, by_task: TaskConsistency, known: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    if by_task.pairs is not None:
        yield (
            f"actions: at most {by_task.pairs} pairs of runs of a task are compared, drawn at "
            "random"
        )
    if runs.n_too_long:
        yield (
            f"actions of {runs.n_too_long:,} runs are not compared: more than {MOST_ACTIONS:,} of "
            "them"
        )
    yield from group_notes(runs.tasks, known)


def _fingerprint(
    runs: RepeatedRuns, known: Mapping[str, Mapping[str, str]], settings: Mapping[str, object]
) -> str:
    columns = {"task": runs.task, "run": runs.run, "success": runs.success, "arm": runs.arm}
    more = {"confidence": runs.confidence, "analysed": runs.analysed, **runs.amounts}
    violations = runs.violations
    return fingerprint(
        taxonomy="",
        settings={"kind": "reliability", "constraints": violations.names, **settings},
        runs=pd.DataFrame(columns | more),
        tasks=pd.DataFrame({"task": runs.tasks}),
        groups=pd.DataFrame(
            [(name, *pair) for name in sorted(known) for pair in sorted(known[name].items())]
        ),
        actions=pd.DataFrame({"code": runs.actions.codes}),
        names=pd.DataFrame({"name": runs.action_names}),
        violations=pd.DataFrame(
            {"task": violations.task, "of": violations.constraint, "how": violations.severity}
        ),
    )
