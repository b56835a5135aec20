"""Repeated trials of tasks, and descriptions of tasks, as tables: CSV, JSONL or Parquet."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from calibration.errors import InputError
from calibration.runs.benchmark_results import (
    ERROR,
    NOT_PASSED,
    NoResultsError,
    benchmark_results,
)
from calibration.statistics.estimate import BoolArray, FloatArray
from calibration.tables.labels import MAX_USD
from calibration.tables.rows import (
    NO,
    YES,
    Row,
    Source,
    any_rows,
    cell_number,
    cell_tags,
    cell_text,
    cell_whole,
    located,
    missing,
    place_of,
)
from calibration.text import counted
from calibration.trace_formats.fields import MAX_COUNT, MAX_METADATA_CHARS, FieldError
from calibration.trace_formats.json_scanner import decode_text

T = TypeVar("T")
TASK, TRIAL, SUCCESS = "task_id", "trial", "success"
OTHERS = ("model", "agent_version")
GROUPS = ("difficulty", "category", "tier")
TIERS = ("core", "edge")
TAGS, REVIEWED, CALLS, RESPONSE = "tags", "reviewed", "tool_calls", "response"
STATE, REFERENCE, BEFORE = "expected_state", "reference", "before"
OF_TRIALS = (TASK, TRIAL, SUCCESS, *OTHERS, "cost_usd", TAGS)
OF_AUDITS = (*OF_TRIALS, REVIEWED, CALLS, RESPONSE)
OF_TASKS = (TASK, *GROUPS, STATE, REFERENCE, BEFORE)
MAX_REFERENCE, MAX_RULES = 20_000, 100

# Longer names are set aside, as in files of runs.
MAX_NAME_BYTES = 4_096

NO_TASK = "no task_id"
NO_TEXT = "task_id or trial is a list or an object"
LONG_TASK = f"the task_id is longer than {MAX_NAME_BYTES:,} bytes"
NO_TRIAL = "no trial, though the file has that column"
NO_SUCCESS = "success is empty"
BAD_SUCCESS = "success is not one of 1, 0, true, false, yes, no"
MAX_GROUP = 200  # characters of a difficulty or category
SAME = "repeats a trial of the task, with the same result"
CONTRARY = "a trial of the task that is there with both results"
BAD_COST = "cost_usd is not a number from 0 up"
BAD_REVIEW = "reviewed is not one of 1, 0, true, false, yes, no, or empty"
BAD_CALLS = "tool_calls is not a whole number from 0 up"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialTable:
    """The trials of a table that count, in its order.

    `tasks`, `passed`, `cost_usd` (NaN where unknown) : of each trial. `others` : `model` and
    `agent_version` of each trial, where the table has the column. `tags` : of each trial; empty
    where the table has no such column. `audited` : what an audit of tasks asks of each trial, where
    it was asked for. `success` names the column that says whether a trial passed; `numbered`
    whether trials have names. `set_aside` : lines of rows that do not count, by reason.
    """

    path: str
    success: str
    numbered: bool
    tasks: tuple[str, ...]
    passed: BoolArray
    cost_usd: FloatArray
    others: Mapping[str, tuple[str, ...]]
    set_aside: Mapping[str, list[int]]
    tags: tuple[tuple[str, ...], ...] = ()
    audited: tuple["AuditedTrial", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedTrial:
    """What an audit of tasks asks of a trial; None where it is not known.

    `reviewed` : whether people call it a success. `calls` : calls of tools. `responded` : whether
    there was any final answer.
    """

    reviewed: bool | None = None
    calls: int | None = None
    responded: bool | None = None


@dataclass(slots=True)
class _TrialRows:
    """What is read so far; a trial that contradicts an earlier one takes that one along."""

    path: str
    tags_from: str
    aside: dict[str, list[int]] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    passed: list[bool] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    others: list[tuple[str, ...]] = field(default_factory=list)
    tags: list[tuple[str, ...]] = field(default_factory=list)
    audited: list[AuditedTrial] = field(default_factory=list)
    seen: dict[tuple[str, ...], int] = field(default_factory=dict)
    contrary: set[int] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)

    def named(self, name: str) -> str:
        """Return the first text that is equal to this one."""
        return self.names.setdefault(name, name)

    def leave(self, reason: str, line: int) -> None:
        """Set a row aside."""
        self.aside.setdefault(reason, []).append(line)


def read_trials(
    source: Source, *, success: str = SUCCESS, tags: str = TAGS, audit: bool = False
) -> TrialTable:
    """Read repeated trials: columns task_id, trial, and `success`; optional model, agent_version.

    `success` is 1 or 0, true or false, yes or no. Rows with a bad or missing value are set aside
    with the reason. So is a trial that is there again with the same result, and every row of a
    trial that is there with both results. Without a column trial every row is a trial. Other
    optional columns are cost_usd and `tags`; of an `audit` reviewed, tool_calls and response too.
    In a result file of a benchmark (.json) a run that ended in an error did not pass.

    Raises
    ------
    InputError
        If the table cannot be read, or has no column task_id or `success`; or none of another name
        than `tags` that is given for it.
    """
    path = place_of(source)
    reading, columns = _TrialRows(path=path, tags_from=tags), None
    numbered, others = False, tuple[str, ...]()
    for line, row in _trial_rows(source):
        if columns is None:
            wanted = (TASK, success, *([] if tags == TAGS else [tags]))
            columns = _columns(path, row, wanted)
            numbered, others = TRIAL in columns, tuple(n for n in OTHERS if n in columns)
        _add(reading, line, row, success, others, numbered, audit=audit)
    if columns is None:
        raise InputError(
            f"{path}: holds no trials; it needs the columns {TASK}, {TRIAL}, {SUCCESS}"
        )
    kept = [k for k in range(len(reading.tasks)) if k not in reading.contrary]
    return TrialTable(
        path=path,
        success=success,
        numbered=numbered,
        tasks=tuple(reading.tasks[k] for k in kept),
        passed=np.array([reading.passed[k] for k in kept], dtype=np.bool_),
        cost_usd=np.array([reading.costs[k] for k in kept], dtype=np.float64),
        others={
            name: tuple(reading.others[k][place] for k in kept) for place, name in enumerate(others)
        },
        set_aside=reading.aside,
        tags=tuple(reading.tags[k] for k in kept) if tags in columns else (),
        audited=tuple(reading.audited[k] for k in kept) if audit else (),
    )


def _trial_rows(source: Source) -> Iterator[tuple[int, Row]]:
    """Yield rows of trials, also from a result file of a benchmark."""
    if isinstance(source, Path) and source.suffix == ".json":
        try:
            found = benchmark_results(source)
        except NoResultsError:
            found = []
        if found and not any(run["task_id"] for run in found):
            raise InputError(
                f"{source}: names only the entries that failed, so its tasks cannot be told apart; "
                "`asr report` takes it"
            )
        columns = (TASK, TRIAL, *OTHERS, "cost_usd")
        known = [name for name in columns if any(run[name] for run in found)]
        for run in found:
            row: Row = {name: run[name] for name in known}
            row[SUCCESS] = NOT_PASSED if run["outcome"] == ERROR else run["outcome"]
            yield int(run["line"] or 0), row
        if found:
            return
    yield from any_rows(source)


def _columns(path: str, row: Row, needed: Iterable[str]) -> frozenset[str]:
    """Return the columns of the first row; raise if one is missing."""
    for name in needed:
        if name not in row:
            raise missing(path, name, row)
    return frozenset(row)


def _add(
    reading: _TrialRows, line: int, row: Row, success: str, others: tuple[str, ...], numbered: bool,
    *, audit: bool,
) -> None:  # fmt: skip
    if isinstance(row.get(TASK), dict | list) or isinstance(row.get(TRIAL), dict | list):
        return reading.leave(NO_TEXT, line)
    # A name of many rows is kept once.
    task = reading.named(cell_text(row.get(TASK)))
    trial = reading.named(cell_text(row.get(TRIAL))) if numbered else ""
    result = passed(row.get(success))
    if not task:
        return reading.leave(NO_TASK, line)
    if len(task.encode(errors="replace")) > MAX_NAME_BYTES:
        return reading.leave(LONG_TASK, line)
    if numbered and not trial:
        return reading.leave(NO_TRIAL, line)
    if result is None:
        return reading.leave(BAD_SUCCESS if cell_text(row.get(success)) else NO_SUCCESS, line)
    try:
        cost = cell_number(row, "cost_usd", maximum=MAX_USD)
    except FieldError:
        return reading.leave(BAD_COST, line)
    try:
        asked = _audited(row) if audit else None
    except FieldError as error:
        return reading.leave(str(error), line)
    own = tuple(reading.named(cell_text(row.get(name))) for name in others)
    if numbered:
        before = reading.seen.setdefault((task, trial, *own), len(reading.tasks))
        if before < len(reading.tasks):
            if reading.passed[before] == result and before not in reading.contrary:
                return reading.leave(SAME, line)
            if before not in reading.contrary:
                reading.contrary.add(before)
                reading.leave(CONTRARY, reading.lines[before])
            return reading.leave(CONTRARY, line)
    reading.lines.append(line)
    reading.tasks.append(task)
    reading.passed.append(result)
    reading.costs.append(np.nan if cost is None else cost)
    reading.others.append(own)
    reading.tags.append(tuple(map(reading.named, cell_tags(row, reading.tags_from))))
    if asked is not None:
        reading.audited.append(asked)
    return None


def _audited(row: Row) -> AuditedTrial:
    """Return what an audit asks of a row; FieldError with the reason that sets the row aside."""
    reviewed = passed(row.get(REVIEWED))
    if reviewed is None and cell_text(row.get(REVIEWED)):
        raise FieldError(BAD_REVIEW)
    try:
        calls = cell_whole(row, CALLS, maximum=MAX_COUNT)
    except FieldError as error:
        raise FieldError(BAD_CALLS) from error
    responded = bool(cell_text(row[RESPONSE])) if RESPONSE in row else None
    return AuditedTrial(reviewed=reviewed, calls=calls, responded=responded)


def passed(value: object) -> bool | None:
    """Return whether a cell says yes or no; None if neither."""
    text = cell_text(value).casefold()
    if text in ("1.0", "0.0"):
        text = text[0]
    return True if text in YES else False if text and text in NO else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTable:
    """What a table says of tasks, by task: each mapping holds the tasks of which it is known.

    `groups` : difficulty, category and tier, of the columns that the table has. `expected_state` :
    a JSON value that the task ends in. `reference` : text of a right answer. `before` : pairs of
    tools, of which a call of the first must precede every call of the second.
    """

    path: str
    tasks: tuple[str, ...]
    groups: Mapping[str, Mapping[str, str]]
    expected_state: Mapping[str, object]
    reference: Mapping[str, str]
    before: Mapping[str, tuple[tuple[str, str], ...]]

    def known_of(self, of: Mapping[str, T], *names: str) -> T | None:
        """Return what is known of a task under the first of its names that the table has."""
        return next((of[name] for name in names if name in of), None)


def read_tasks(source: Source) -> TaskTable:
    """Read a table of tasks: task_id, with any of the columns that `TaskTable` names.

    Raises
    ------
    InputError
        If the table cannot be read, has none of those columns, or a row does not name its task or
        names it again, or has another tier, a text that is too long, or a state or rule that is no
        JSON.
    """
    path = place_of(source)
    groups: dict[str, dict[str, str]] = {}
    states: dict[str, object] = {}
    references: dict[str, str] = {}
    rules: dict[str, tuple[tuple[str, str], ...]] = {}
    lines: dict[str, int] = {}
    for line, row in any_rows(source):
        if not lines:
            columns, known = _columns(path, row, (TASK,)), (*GROUPS, STATE, REFERENCE, BEFORE)
            groups = {name: {} for name in GROUPS if name in columns}
            if columns.isdisjoint(known):
                raise InputError(f"{path}: needs one of the columns {', '.join(known)}")
        with located(path, line):
            task = _task_of(row, lines)
            lines[task] = line
            for name, of in groups.items():
                if value := group_of(row, name):
                    of[task] = value
            if (state := _json_of(row, STATE)) is not None:
                states[task] = state
            if text := _bounded(cell_text(row.get(REFERENCE)), REFERENCE, MAX_REFERENCE):
                references[task] = text
            if pairs := _pairs_of(row):
                rules[task] = pairs
    if not lines:
        raise InputError(f"{path}: holds no tasks")
    return TaskTable(
        path=path, tasks=tuple(lines), groups=groups, expected_state=states, reference=references,
        before=rules,
    )  # fmt: skip


def read_task_groups(source: Source) -> dict[str, dict[str, str]]:
    """Return difficulty, category and tier of each task, of the columns that the table has.

    A tier is core or edge. Raises InputError as `read_tasks`, or if the table has no such column.
    """
    groups = read_tasks(source).groups
    if not groups:
        raise InputError(f"{place_of(source)}: needs one of the columns {', '.join(GROUPS)}")
    return {name: dict(known) for name, known in groups.items()}


def _task_of(row: Row, lines: Mapping[str, int]) -> str:
    task = cell_text(row.get(TASK))
    if not task:
        raise FieldError(f"field {TASK!r} is missing")
    if task in lines:
        raise FieldError(f"task {task!r:.80} is there already, in line {lines[task]}")
    return task


def group_of(row: Row, name: str) -> str:
    """Return difficulty, category or tier of a row, empty without one; FieldError if it is none."""
    value = cell_text(row.get(name))
    if name == "tier" and value not in ("", *TIERS):
        raise FieldError(f"field 'tier': {value!r:.80} is not one of {', '.join(TIERS)}")
    return _bounded(value, name, MAX_GROUP)


def _bounded(value: str, name: str, most: int) -> str:
    if len(value) > most:
        raise FieldError(
            f"field {name!r}: has {len(value):,} characters, at most {most:,} are allowed"
        )
    return value


def _json_of(row: Row, name: str) -> object:
    """Return a JSON value, as it is or as text; None where there is none."""
    value: object = row.get(name)
    if isinstance(value, dict | list):
        _bounded(json.dumps(value, default=str), name, MAX_METADATA_CHARS)
        return value
    text = _bounded(cell_text(value), name, MAX_METADATA_CHARS)
    if not text or not isinstance(value, str):
        return value if text else None
    try:
        return decode_text(text)
    except FieldError as error:
        raise FieldError(f"field {name!r}: {error}") from error


def _pairs_of(row: Row) -> tuple[tuple[str, str], ...]:
    """Return pairs of tools of a row."""
    given = _json_of(row, BEFORE)
    pairs: list[Any] = given if isinstance(given, list) else [] if given is None else [given]
    for pair in pairs:
        if not (
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(p, str) for p in pair)
        ):
            raise FieldError(
                f"field {BEFORE!r}: must be a list of pairs of tools, [FIRST, LATER], got "
                f"{pair!r:.80}"
            )
    if len(pairs) > MAX_RULES:
        raise FieldError(f"field {BEFORE!r}: has {len(pairs):,} pairs, at most {MAX_RULES}")
    return tuple((first, later) for first, later in pairs)


def group_notes(tasks: Iterable[str], groups: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield how many tasks have no group of a kind, and how many tasks with one are not there."""
    present = set(tasks)
    for name, known in groups.items():
        missing, unrun = len(present - known.keys()), len(known.keys() - present)
        if missing:
            yield f"Without a {name}: {counted(missing, 'task')}."
        if unrun:
            yield f"With a {name} but no trial: {counted(unrun, 'task')}."
