"""Repeated trials of tasks, and descriptions of tasks, as tables: CSV, JSONL or Parquet."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from calibration.errors import InputError
from calibration.statistics.estimate import BoolArray, FloatArray
from calibration.tables.labels import MAX_USD, Source
from calibration.tables.rows import NO, YES, Row, any_rows, cell_number, cell_text, place_of
from calibration.text import counted
from calibration.trace_formats.fields import FieldError

TASK, TRIAL, SUCCESS = "task_id", "trial", "success"
OTHERS = ("model", "agent_version")
GROUPS = ("difficulty", "category", "tier")
TIERS = ("core", "edge")

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialTable:
    """The trials of a table that count, in its order.

    `tasks`, `passed`, `cost_usd` (NaN where unknown) : of each trial. `others` : `model` and
    `agent_version` of each trial, where the table has the column. `success` names the column that
    says whether a trial passed; `numbered` whether trials have names. `set_aside` : lines of rows
    that do not count, by reason.
    """

    path: str
    success: str
    numbered: bool
    tasks: tuple[str, ...]
    passed: BoolArray
    cost_usd: FloatArray
    others: Mapping[str, tuple[str, ...]]
    set_aside: Mapping[str, list[int]]


@dataclass(slots=True)
class _TrialRows:
    """What is read so far; a trial that contradicts an earlier one takes that one along."""

    path: str
    aside: dict[str, list[int]] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    passed: list[bool] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    others: list[tuple[str, ...]] = field(default_factory=list)
    seen: dict[tuple[str, ...], int] = field(default_factory=dict)
    contrary: set[int] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)

    def named(self, name: str) -> str:
        """Return the first text that is equal to this one."""
        return self.names.setdefault(name, name)

    def leave(self, reason: str, line: int) -> None:
        """Set a row aside."""
        self.aside.setdefault(reason, []).append(line)


def read_trials(source: Source, *, success: str = SUCCESS) -> TrialTable:
    """Read repeated trials: columns task_id, trial, and `success`; optional model, agent_version.

    `success` is 1 or 0, true or false, yes or no. Rows with a bad or missing value are set aside
    with the reason. So is a trial that is there again with the same result, and every row of a
    trial that is there with both results. Without a column trial every row is a trial. Another
    optional column is cost_usd.

    Raises
    ------
    InputError
        If the table cannot be read, or has no column task_id or `success`.
    """
    path = place_of(source)
    reading, columns = _TrialRows(path=path), None
    numbered, others = False, tuple[str, ...]()
    for line, row in any_rows(source):
        if columns is None:
            columns = _columns(path, row, (TASK, success))
            numbered, others = TRIAL in columns, tuple(n for n in OTHERS if n in columns)
        _add(reading, line, row, success, others, numbered)
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
    )


def _columns(path: str, row: Row, needed: Iterable[str]) -> frozenset[str]:
    """Return the columns of the first row; raise if one is missing."""
    for name in needed:
        if name not in row:
            raise InputError(
                f"{path}: column {name!r:.80} is missing; it has {', '.join(row):.200}"
            )
    return frozenset(row)


def _add(
    reading: _TrialRows, line: int, row: Row, success: str, others: tuple[str, ...], numbered: bool
) -> None:
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
    return None


def passed(value: object) -> bool | None:
    """Return whether a cell says yes or no; None if neither."""
    text = cell_text(value).casefold()
    if text in ("1.0", "0.0"):
        text = text[0]
    return True if text in YES else False if text and text in NO else None


def read_task_groups(source: Source) -> dict[str, dict[str, str]]:
    """Return difficulty, category and tier of each task, of the columns that the table has.

    A tier is core or edge.

    Raises
    ------
    InputError
        If the table cannot be read, has none of those columns, names a task twice or not at all, or
        another tier.
    """
    path = place_of(source)
    groups: dict[str, dict[str, str]] | None = None
    lines: dict[str, int] = {}
    for line, row in any_rows(source):
        if groups is None:
            columns = _columns(path, row, (TASK,))
            groups = {name: {} for name in GROUPS if name in columns}
            if not groups:
                raise InputError(f"{path}: needs one of the columns {', '.join(GROUPS)}")
        task = cell_text(row.get(TASK))
        if not task:
            raise InputError(f"{path}, line {line}: field {TASK!r} is missing")
        if task in lines:
            raise InputError(
                f"{path}, line {line}: task {task!r:.80} is there already, in line {lines[task]}"
            )
        lines[task] = line
        for name, known in groups.items():
            value = cell_text(row.get(name))
            if name == "tier" and value not in ("", *TIERS):
                raise InputError(
                    f"{path}, line {line}, field 'tier': {value!r:.80} is not one of "
                    f"{', '.join(TIERS)}"
                )
            if len(value) > MAX_GROUP:
                raise InputError(
                    f"{path}, line {line}, field {name!r}: has {len(value):,} characters, at most "
                    f"{MAX_GROUP} are allowed"
                )
            if value:
                known[task] = value
    if groups is None:
        raise InputError(f"{path}: holds no tasks")
    return groups


def group_notes(tasks: Iterable[str], groups: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield how many tasks have no group of a kind, and how many tasks with one are not there."""
    present = set(tasks)
    for name, known in groups.items():
        missing, unrun = len(present - known.keys()), len(known.keys() - present)
        if missing:
            yield f"Without a {name}: {counted(missing, 'task')}."
        if unrun:
            yield f"With a {name} but no trial: {counted(unrun, 'task')}."
