"""Reliability of repeated runs: read from a table, and measured.

`read_runs` takes a file or a frame with the same columns, so that any source of runs can hand in a
frame; `measure_reliability` is the analysis.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median

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
from calibration.runs.results import Example, SetAsideRows
from calibration.statistics.estimate import BoolArray, FloatArray, IntArray
from calibration.statistics.resampling import (
    Statistic,
    TaskEstimate,
    TaskResamples,
    bounded_mean,
    resample_tasks,
)
from calibration.tables.labels import MAX_USD
from calibration.tables.rows import (
    NO,
    YES,
    Row,
    Source,
    any_rows,
    cell_flag,
    cell_number,
    cell_text,
    missing,
    place_of,
)
from calibration.tables.trials import (
    GROUPS,
    MAX_NAME_BYTES,
    group_notes,
    passed,
)
from calibration.trace_formats.fields import MAX_COUNT, MAX_SECONDS, FieldError, wrong
from calibration.trace_formats.json_scanner import decode_line

# Amounts of a run by resource: its column, and the most it may be. Actions are counted.
AMOUNTS = {
    "cost": ("cost_usd", float(MAX_USD)),
    "time": ("latency_s", MAX_SECONDS),
    "api_calls": ("api_calls", float(MAX_COUNT)),
    ERRORS: ("n_errors", float(MAX_COUNT)),
    "call_latency": ("call_latency_s", MAX_SECONDS),
}

OF_RUNS = (
    "task_id", "run", "success", "confidence", "actions", *(name for name, _ in AMOUNTS.values()),
    "perturbation", "violations", "analysed",
)  # fmt: skip
MOST_RUNS, MOST_CONSTRAINTS, MOST_VALUES = 1_000_000, 50, 50
MOST_NAME, MOST_NAMES, MOST_VIOLATIONS = 200, 100_000, 1_000
ALL_ACTIONS, EXAMPLES = 20_000_000, 5

# Actions of one run that are compared with those of another.
MOST_ACTIONS = 2_000

REPEATED = "repeats a run of its task and perturbation, with the same result"
CONTRARY = "a run of its task and perturbation that is there with both results"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepeatedRuns:
    """Runs of tasks, sorted by task, perturbation and run; arrays have one element a run.

    `tasks` : ids of the tasks; `task` : place of a run's task in them
    `arm` : place of its perturbation in `ARMS`
    `confidence`, `amounts` : NaN where missing
    `n_too_long` : runs whose actions are too many to be compared
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
    perturbed. `by` holds the groups by column of TASKS and value.
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
    set_aside: tuple[SetAsideRows, ...]
    notes: tuple[str, ...]
    divergence: bool
    seed: int
    n_resamples: int
    confidence_level: float
    fingerprint: str


class _Reader:
    """Rows of runs, collected column by column."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.keys: list[tuple[str, int, str]] = []
        self.success: list[bool] = []
        self.confidence: list[float] = []
        self.amounts: dict[str, list[float]] = {name: [] for name in (*AMOUNTS, "actions")}
        self.codes: list[array[int] | None] = []
        self.names: dict[str, int] = {}
        self.constraints: dict[str, int] = {}
        self.analysed: list[bool] = []
        self.violations: list[list[tuple[int, int]]] = []
        self.seen: dict[tuple[str, int, str], int] = {}
        self.contrary: set[int] = set()
        self.n_actions = 0
        self.n_too_long = 0
        self.reasons: Counter[str] = Counter()
        self.examples: dict[str, list[Example]] = {}

    def add(self, line: int, row: Row) -> None:
        """Take a row, or set it aside with the reason."""
        try:
            self._take(row)
        except FieldError as error:
            reason, _, value = str(error).partition(", got ")
            self.reasons[reason] += 1
            few = self.examples.setdefault(reason, [])
            if len(few) < EXAMPLES:
                few.append(Example(file=self.place, row=line, value=value or None))

    def _take(self, row: Row) -> None:
        key = self._key(row)
        success = passed(row.get("success"))
        if success is None:
            if not cell_text(row.get("success")):
                raise FieldError("field 'success': is missing")
            raise wrong("success", f"must be one of {', '.join(YES + NO[1:])}", row["success"])
        confidence = cell_number(row, "confidence", maximum=1.0)
        amounts = {
            name: cell_number(row, column, maximum=most) for name, (column, most) in AMOUNTS.items()
        }
        actions = _names(row)
        found = _violations(row)
        blank = not cell_text(row.get("analysed"))
        analysed = found is not None if blank else cell_flag(row, "analysed")
        if found and not analysed:
            raise FieldError("field 'violations': lists some, but analysed says no")
        before = self.seen.setdefault(key, len(self.keys))
        if before < len(self.keys):
            if self.success[before] == success and before not in self.contrary:
                raise FieldError(REPEATED)
            new = {before, len(self.keys)} - self.contrary
            self.contrary |= new
            self.reasons[CONTRARY] += len(new)
            self.examples.setdefault(CONTRARY, [])
        self.keys.append(key)
        self.success.append(success)
        self.confidence.append(np.nan if confidence is None else confidence)
        n_actions = None if actions is None else float(len(actions))
        for name, amount in (*amounts.items(), ("actions", n_actions)):
            self.amounts[name].append(np.nan if amount is None else amount)
        self.codes.append(self._coded(actions))
        self.analysed.append(analysed)
        names = self.constraints
        severities = list(SEVERITIES)
        self.violations.append(
            [(names.setdefault(c, len(names)), severities.index(s)) for c, s in found or ()]
        )
        if len(names) > MOST_CONSTRAINTS:
            raise InputError(
                f"{self.place}: violations name more than {MOST_CONSTRAINTS} constraints; is "
                "constraint a free text? Name each constraint the same way everywhere"
            )

    def _key(self, row: Row) -> tuple[str, int, str]:
        task, run = cell_text(row.get("task_id")), cell_text(row.get("run"))
        for name, value in (("task_id", task), ("run", run)):
            if not value:
                raise FieldError(f"field {name!r}: is missing")
            if len(value.encode(errors="replace")) > MAX_NAME_BYTES:
                raise wrong(name, f"must have at most {MAX_NAME_BYTES:,} bytes", value)
        perturbation = cell_text(row.get("perturbation")) or BASELINE
        if perturbation not in ARMS:
            raise wrong("perturbation", f"must be one of {', '.join(ARMS)}", perturbation)
        return task, ARMS.index(perturbation), run

    def _coded(self, actions: list[str] | None) -> "array[int] | None":
        if actions is None:
            return None
        if len(actions) > MOST_ACTIONS:
            self.n_too_long += 1
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

    def runs(self) -> RepeatedRuns:
        """Return the rows taken, in an order that does not depend on theirs."""
        kept = (k for k in range(len(self.keys)) if k not in self.contrary)
        order = sorted(kept, key=self.keys.__getitem__)
        tasks = tuple(dict.fromkeys(self.keys[k][0] for k in order))
        number = {name: k for k, name in enumerate(tasks)}
        task = np.array([number[self.keys[k][0]] for k in order], dtype=np.int64)
        names = tuple(sorted(self.names))
        constraints = tuple(sorted(self.constraints))
        listed = [
            (int(task[k]), constraint, severity)
            for k, row in enumerate(order)
            for constraint, severity in self.violations[row]
        ]
        columns = np.array(listed, dtype=np.int64).reshape(-1, 3).T
        return RepeatedRuns(
            place=self.place,
            tasks=tasks,
            task=task,
            run=tuple(self.keys[k][2] for k in order),
            success=np.array(self.success, dtype=np.bool_)[order],
            arm=np.array([self.keys[k][1] for k in order], dtype=np.int64),
            confidence=np.array(self.confidence, dtype=np.float64)[order],
            amounts={
                name: np.array(of, dtype=np.float64)[order] for name, of in self.amounts.items()
            },
            actions=self._lists(order, names),
            action_names=names,
            analysed=np.array(self.analysed, dtype=np.bool_)[order],
            violations=Violations(
                names=constraints,
                task=columns[0],
                constraint=_recoded(self.constraints, constraints)[columns[1]],
                severity=columns[2],
            ),
            set_aside=tuple(
                SetAsideRows(reason=_code(why), why=why, n=n, examples=tuple(self.examples[why]))
                for why, n in sorted(self.reasons.items())
            ),
            n_too_long=self.n_too_long,
            success_source=f"column success of {self.place}",
        )

    def _lists(self, order: list[int], names: tuple[str, ...]) -> ActionLists:
        kept = [self.codes[k] for k in order]
        flat: array[int] = array("q")
        for codes in kept:
            flat.extend(codes or ())
        lengths = [len(codes or ()) for codes in kept]
        joined = np.frombuffer(flat, dtype=np.int64) if flat else np.zeros(0, dtype=np.int64)
        return ActionLists(
            codes=_recoded(self.names, names)[joined],
            start=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
            known=np.array([codes is not None for codes in kept], dtype=np.bool_),
        )


def _code(why: str) -> str:
    """Return the short name of a reason: that of its field."""
    named = re.match(r"field '(\w+)'", why)
    return f"bad_{named[1]}" if named else "contrary_run" if why == CONTRARY else "repeated_run"


def _recoded(numbers: Mapping[str, int], names: tuple[str, ...]) -> IntArray:
    """Return the place in `names` of each number that a name was given."""
    found = np.zeros(len(names), dtype=np.int64)
    found[[numbers[name] for name in names]] = np.arange(len(names))
    return found


def read_runs(source: Source) -> RepeatedRuns:
    """Read runs from CSV, JSONL, Parquet or a frame.

    Columns: task_id, run, success; optional confidence in [0, 1], actions (a list of names, in CSV
    as JSON), cost_usd, latency_s, api_calls, n_errors, call_latency_s, perturbation (none, fault,
    structure or prompt), violations (a list of objects with constraint, severity and step), and
    analysed: by default a run is analysed for violations if it has a list of them, however empty.

    Rows that are not valid are set aside with the reason.

    Raises
    ------
    InputError
        If the file cannot be read, a column is missing, no row is valid, or there are more than
        1,000,000 runs, 20,000,000 actions, 100,000 names of actions or 50 constraints.

    Examples
    --------
    >>> frame = pd.DataFrame({"task_id": ["a", "a"], "run": [1, 2], "success": [1, "maybe"]})
    >>> runs = read_runs(frame)
    >>> runs.tasks, runs.success.tolist(), [row.n for row in runs.set_aside]
    (('a',), [True], [1])
    """
    place = place_of(source)
    reader, columns = _Reader(place), dict[str, None]()
    for line, row in any_rows(source):
        if line > MOST_RUNS:
            raise InputError(f"{place}: has more than {MOST_RUNS:,} runs; split it")
        columns |= dict.fromkeys(row)
        reader.add(line, row)
    for name in ("task_id", "run", "success"):
        if name not in columns:
            raise missing(place, name, columns)
    if len(reader.keys) == len(reader.contrary):
        reason, n = reader.reasons.most_common(1)[0]
        raise InputError(f"{place}: no run is valid; {n:,} rows: {reason}")
    return reader.runs()


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
    elif not isinstance(value, list) and not cell_text(value):
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
