"""Repeated trials of tasks, and descriptions of tasks, as tables: CSV, JSONL or Parquet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from calibration.errors import CalibrationError, InputError
from calibration.records import NOT_PERTURBED
from calibration.runs.benchmark_results import NoResultsError, benchmark_results
from calibration.statistics.estimate import BoolArray, FloatArray
from calibration.tables import words
from calibration.tables.columns import (
    ARMS,
    MILLISECONDS,
    OF_RUNS,
    Columns,
    Header,
    chosen_columns,
    find_columns,
    named_columns,
    normalised,
)
from calibration.tables.labels import MAX_USD
from calibration.tables.reading import LeftOutCounter, Reading, ReadingOptions, reading_of
from calibration.tables.rows import (
    OpenTable,
    Row,
    Source,
    cell_tags,
    cell_whole,
    located,
    open_table,
)
from calibration.tables.scales import PASS_OR_FAIL, OutcomeColumn, OutcomeWords, read_outcomes
from calibration.tables.words import cell, clean, is_missing
from calibration.taxonomy import Taxonomy, default_taxonomy
from calibration.text import counted, names_there, shown
from calibration.trace_formats.fields import MAX_COUNT, MAX_METADATA_CHARS, FieldError, wrong
from calibration.trace_formats.json_scanner import decode_text

T = TypeVar("T")
TASK, TRIAL, OUTCOME, COST = "task_id", "trial", "outcome", "cost_usd"
GROUPS = ("difficulty", "category", "tier")
TIERS = ("core", "edge")
TAGS, REVIEWED, CALLS, RESPONSE = "tags", "reviewed", "tool_calls", "response"
STATE, REFERENCE, BEFORE = "expected_state", "reference", "before"
AGENT = ("model", "agent_version")
ARM = "arm"
PERTURBATION = "perturbation"
OF_TRIALS = (TASK, TRIAL, OUTCOME, *AGENT, "cost_usd", TAGS, "started_at", PERTURBATION, ARM)
OF_AUDITS = (*OF_TRIALS, REVIEWED, CALLS, RESPONSE)
OF_TASKS = (TASK, *GROUPS, STATE, REFERENCE, BEFORE)
MAX_REFERENCE, MAX_RULES = 20_000, 100

# Longer names are left out, as in files of runs.
MAX_NAME_BYTES = 4_096
MAX_GROUP = 200  # characters of a difficulty or category
MOST_NAMED = 8
# A prompt that is the same for all trials of a task is that of the task, not of the agent, if there
# are at least this many for each task.
OF_TASK = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialTable:
    """The trials of a table that count, in its order.

    `tasks`, `trials`, `passed` : of each trial; trials without a name are numbered by task.
    `amounts` : by role, NaN where unknown. `tags` : of each trial; empty where the table has no
    such column. `details` : what `TrialSource.details` returned of each. `success` names the
    column that says whether a trial passed; `numbered` whether trials have names. `model`,
    `agent_version` : the one of all trials, where it is known. `n_other` : trials of other models
    or versions. `unknown` : the task of each trial that is left out for a reason that may depend on
    its outcome; empty where the task is not known either.
    """

    path: str
    success: str
    numbered: bool
    tasks: tuple[str, ...]
    trials: tuple[str, ...]
    passed: BoolArray
    amounts: Mapping[str, FloatArray]
    model: str | None
    agent_version: str | None
    n_other: int
    unknown: tuple[str, ...]
    reading: Reading
    tags: tuple[tuple[str, ...], ...] = ()
    details: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedTrial:
    """What an audit of tasks asks of a trial; None where it is not known.

    `reviewed` : whether people call it a success. `calls` : calls of tools. `responded` : whether
    there was any final answer.
    """

    reviewed: bool | None = None
    calls: int | None = None
    responded: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSource:
    """A table of trials, and what is wanted of it.

    `model`, `agent_version` : whose trials; `required` : whether that one must occur. `roles` :
    those that are read; `amounts` : the roles of numbers, with the most that each may be. `details`
    returns what else is asked of a row under our names, or raises FieldError where a value cannot
    be read; trials of another `part_of` its details are others. `is_limited` : whether too many
    rows left out are refused; `is_perturbed_read` : whether runs under a perturbation count.
    """

    source: Source
    options: ReadingOptions = field(default_factory=ReadingOptions)
    model: str | None = None
    agent_version: str | None = None
    required: bool = True
    roles: tuple[str, ...] = OF_TRIALS
    amounts: Mapping[str, float] = field(default_factory=lambda: {COST: float(MAX_USD)})
    details: Callable[[Row], Any] | None = None
    part_of: Callable[[Any], Hashable] = lambda details: None
    is_limited: bool = True
    is_perturbed_read: bool = False


def read_trials(*sources: TrialSource, taxonomy: Taxonomy | None = None) -> tuple[TrialTable, ...]:
    """Read tables of repeated trials; what words and numbers of the outcome say goes for all.

    A trial passes if its outcome says so in words, or is the success class of the rubric. Without
    a column trial every row is a trial. A trial that is there again with the same result counts
    once; one that is there with both results does not count, unless the latest one does. A trial
    whose cost cannot be read counts, with an unknown cost. In a result file of a benchmark (.json)
    a run that ended in an error did not pass.

    Raises
    ------
    InputError
        If a table cannot be read, has no column of the task or the outcome, or holds trials of
        several agents; or if the outcomes can be read in two ways.
    CalibrationError
        If no trial is left.
    """
    tables = [_TrialRows.read(source) for source in sources]
    first = sources[0].options
    outcomes = read_outcomes(
        [
            OutcomeColumn(
                place=table.place,
                name=table.columns.by_role[OUTCOME],
                role_name=normalised(table.columns.by_role[OUTCOME]),
                counts=table.counts,
            )
            for table in tables
        ],
        taxonomy=taxonomy or default_taxonomy(),
        options=first.outcomes(is_named=taxonomy is not None),
    )
    return tuple(_ChosenRows(table, outcomes).trials() for table in tables)


@dataclass(slots=True)
class _TrialRows:
    """The rows of a table as they are, equal texts once: what they say is decided later."""

    asked: TrialSource
    table: OpenTable
    columns: Columns
    arm_columns: tuple[str, ...]
    lines: list[int] = field(default_factory=list)
    tasks: list[str | None] = field(default_factory=list)
    trials: list[str | None] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    amounts: dict[str, list[str]] = field(default_factory=dict)
    times: list[str] = field(default_factory=list)
    arms: list[tuple[str, ...]] = field(default_factory=list)
    tags: list[tuple[str, ...]] = field(default_factory=list)
    details: list[Any] = field(default_factory=list)
    perturbed: set[int] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    other_arms: set[tuple[str, ...]] = field(default_factory=set)

    @classmethod
    def read(cls, asked: TrialSource) -> _TrialRows:
        """Read a table."""
        table = _trial_table(asked)
        columns, arm_columns = _trial_columns(table, asked)
        rows = cls(asked=asked, table=table, columns=columns, arm_columns=arm_columns)
        table.pass_over = rows.pass_over
        rows.add_all()
        return rows

    @property
    def place(self) -> str:
        return self.table.place

    def pass_over(self, row: Row) -> None:
        """Count the words of a row that --where does not choose."""
        self.counts[cell(row.get(self.columns.by_role[OUTCOME]))] += 1
        self.other_arms.add(tuple(cell(row.get(name)) for name in self.arm_columns))

    def add_all(self) -> None:
        """Take every row that --where chooses."""
        by_role, names, groups = self.columns.by_role, _Names(), dict[Any, Any]()
        task_in, outcome_in = by_role[TASK], by_role[OUTCOME]
        trial_in, tags_in, details_of = by_role.get(TRIAL), by_role.get(TAGS), self.asked.details
        amounts = [role for role in self.asked.amounts if role in by_role]
        amounts_in = [(by_role[role], list[str]()) for role in amounts]
        time_in = by_role.get("started_at") if self.asked.options.latest else None
        perturbed_in = None if self.asked.is_perturbed_read else by_role.get(PERTURBATION)
        chosen = Counter[str]()
        for line, row in self.table.rows:
            self.lines.append(line)
            self.tasks.append(names.name(row.get(task_in)))
            if trial_in is not None:
                self.trials.append(names.name(row.get(trial_in)))
            outcome = names.text(row.get(outcome_in))
            self.outcomes.append(outcome)
            chosen[outcome] += 1
            for name, texts in amounts_in:
                texts.append(cell(row.get(name)))
            if perturbed_in is not None and _is_perturbed(row.get(perturbed_in)):
                self.perturbed.add(len(self.lines) - 1)
            if time_in is not None:
                self.times.append(cell(row.get(time_in)))
            arms = tuple([names.text(row.get(name)) for name in self.arm_columns])
            self.arms.append(groups.setdefault(arms, arms))
            if tags_in is not None:
                tags = cell_tags(row, tags_in)
                self.tags.append(groups.setdefault(tags, tags))
            if details_of is not None:
                self.details.append(_details(details_of, row, by_role))
        self.counts.update(chosen)
        self.amounts = {role: texts for role, (_, texts) in zip(amounts, amounts_in, strict=True)}


def _is_perturbed(value: object) -> bool:
    """Return whether a run was made under a perturbation."""
    text = cell(value)
    return not is_missing(text) and words.fold(text) != NOT_PERTURBED


def _details(
    details_of: Callable[[Row], Any], row: Row, by_role: Mapping[str, str]
) -> Any | FieldError:
    """Return what else is asked of a row, or why it cannot be read."""
    try:
        return details_of({role: row.get(name) for role, name in by_role.items()})
    except FieldError as error:
        return error


class _Names:
    """The texts of cells, each cleaned and kept once."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.names: dict[str, str | None] = {}

    def text(self, value: object) -> str:
        """Return the text of a cell."""
        if not isinstance(value, str):
            value = cell(value)
        text = self.texts.get(value)
        if text is None:
            text = self.texts[value] = clean(value)
        return text

    def name(self, value: object) -> str | None:
        """Return the name of a task or trial, empty where it is missing; None where it is none."""
        if isinstance(value, dict | list):
            return None
        if not isinstance(value, str):
            value = cell(value)
        if value not in self.names:
            text = self.text(value)
            self.names[value] = "" if is_missing(text) else _bounded_name(text)
        return self.names[value]


def _bounded_name(text: str) -> str | None:
    return None if len(text) * 4 > MAX_NAME_BYTES and _bytes(text) > MAX_NAME_BYTES else text


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _trial_table(asked: TrialSource) -> OpenTable:
    """Open a table of trials, or a result file of a benchmark."""
    source = asked.source
    if isinstance(source, Path) and source.suffix == ".json":
        try:
            runs = benchmark_results(source)
        except NoResultsError:
            runs = []
        if runs and not any(run["task_id"] for run in runs):
            raise InputError(
                f"{source}: names only the entries that failed, so its tasks cannot be told apart; "
                "`asr report` takes it"
            )
        names = (TASK, TRIAL, *AGENT, "cost_usd", "started_at")
        known = [name for name in names if any(run[name] for run in runs)]
        if runs:
            import pandas as pd

            frame = pd.DataFrame(
                [[run[name] for name in (*known, OUTCOME)] for run in runs],
                columns=[*known, OUTCOME],
                dtype=object,
            )
            return open_table(frame, asked.options, place=str(source))
    return open_table(source, asked.options)


def _trial_columns(table: OpenTable, asked: TrialSource) -> tuple[Columns, tuple[str, ...]]:
    """Return the columns of a table of trials, and those that may tell agents apart."""
    place, chosen = table.place, asked.options.columns
    roles = asked.roles
    if not table.columns:
        raise InputError(f"{place}: holds no trials; it needs the columns {TASK} and {OUTCOME}")
    header = Header.of(table.columns, place, roles)
    picked = chosen_columns(header, chosen, roles)
    found = find_columns(
        table.columns,
        table.sample,
        place=place,
        chosen={role: name for role, name in chosen.items() if role != ARM},
        further=tuple(role for role in roles if role not in (*OF_RUNS, ARM)),
        mapped=asked.options.mapped,
    )
    by_role = {role: name for role, name in found.by_role.items() if role in roles}
    if OUTCOME not in by_role:
        raise InputError(f"{place}: trials need an outcome: --column outcome=NAME")
    if TASK not in by_role:
        once = found.by_role.get("trace_id")
        raise InputError(
            f"{place}: no column says which task a trial is of; "
            f"{names_there(TASK, table.columns)}: --column {TASK}={once or 'NAME'}"
        )
    if not asked.options.latest:
        by_role.pop("started_at", None)
    elif "started_at" not in by_role:
        raise InputError(
            f"{place}: --latest needs a column of times; {names_there('started_at', table.columns)}"
            ": --column started_at=NAME"
        )
    taken = {name for role, name in by_role.items() if role not in AGENT}
    agent = [by_role[role] for role in AGENT if role in by_role]
    arms = dict.fromkeys([*agent, *header.there(ARMS, taken)])
    if ARM in chosen:
        arms = dict.fromkeys([picked[ARM]] if ARM in picked else [])
    used = {*by_role.values(), *arms}
    return (
        Columns(
            by_role={role: by_role[role] for role in roles if role in by_role},
            not_read=tuple(name for name in header.columns if name not in used),
        ),
        tuple(arms),
    )


class _ChosenRows:
    """The rows of a table that count, by what their outcomes are taken as."""

    def __init__(self, rows: _TrialRows, outcomes: OutcomeWords) -> None:
        self.rows, self.asked = rows, rows.asked
        self.options, self.by_role = rows.asked.options, rows.columns.by_role
        self.numbered = TRIAL in self.by_role
        self.left_out: LeftOutCounter = rows.table.left_out
        self.passes = {
            text: name == outcomes.taxonomy.success for text, name in outcomes.classes.items()
        }
        self.outcomes = outcomes
        self.unknown: list[str] = []
        self.passed: dict[int, bool] = {}  # by row

    def trials(self) -> TrialTable:
        """Return the trials that count."""
        chosen = list(range(len(self.rows.lines)))
        agent: dict[str, str | None] = {}
        for role, wanted in zip(AGENT, (self.asked.model, self.asked.agent_version), strict=True):
            chosen, agent[role] = self._of_agent(chosen, role, wanted)
        self._check_arms(chosen)
        n_other = len(self.rows.lines) - len(chosen)
        if n_other:
            self.left_out.counts["where"] = self.left_out.counts.get("where", 0) + n_other
        for row in chosen:
            self._take(row)
        if self.numbered:
            self._settle_repeated()
        unreadable = self.left_out.counts.get("unreadable_row", 0)
        kept, rows = list(self.passed), self.rows
        amounts = {role: self._amounts(role, kept) for role in self.asked.amounts}
        notes = [note for _, note in amounts.values() if note]
        reading = self._reading(chosen, len(kept), notes)
        if not kept:
            why = reading.left_out_line or reading.folded_line or "it holds none"
            raise CalibrationError(f"{rows.place}: no trial is left ({why})")
        return TrialTable(
            path=rows.place,
            success=self.by_role[OUTCOME],
            numbered=self.numbered,
            tasks=tuple(rows.tasks[k] or "" for k in kept),
            trials=self._names(kept),
            passed=np.array(list(self.passed.values()), dtype=np.bool_),
            amounts={role: values for role, (values, _) in amounts.items()},
            model=agent["model"],
            agent_version=agent["agent_version"],
            n_other=n_other,
            unknown=(*self.unknown, *[""] * unreadable),
            reading=reading,
            tags=tuple(rows.tags[k] for k in kept) if rows.tags else (),
            details=tuple(rows.details[k] for k in kept) if rows.details else (),
        )

    def _names(self, kept: Sequence[int]) -> tuple[str, ...]:
        """Return the name of each trial, which is its number among those of its task without."""
        if self.numbered:
            return tuple(self.rows.trials[row] or "" for row in kept)
        number = Counter[str | None]()
        names = []
        for row in kept:
            number[self.rows.tasks[row]] += 1
            names.append(str(number[self.rows.tasks[row]]))
        return tuple(names)

    def _of_agent(
        self, chosen: list[int], role: str, wanted: str | None
    ) -> tuple[list[int], str | None]:
        """Return the rows of one model or version, and its name."""
        option, place = f"--{role.replace('_', '-')}", self.rows.place
        column = self.by_role.get(role)
        if column is None or column not in self.rows.arm_columns:
            if wanted is not None and self.asked.required:
                raise InputError(f"{place}: has no column {role!r} for {option}")
            return chosen, None
        k = self.rows.arm_columns.index(column)
        values = {self.rows.arms[row][k] for row in chosen}
        if wanted in values:
            return [row for row in chosen if self.rows.arms[row][k] == wanted], wanted
        known = sorted(value for value in values if not is_missing(value))
        if wanted is not None and self.asked.required:
            raise InputError(
                f"{place}: no trial of {role} {wanted!r:.80}; there are {_listed(known) or 'none'}"
            )
        return chosen, known[0] if len(known) == 1 else None

    def _check_arms(self, chosen: Sequence[int]) -> None:
        """Refuse trials of several agents."""
        for k, column in enumerate(self.rows.arm_columns):
            values = {arms[k] for arms in {self.rows.arms[row] for row in chosen}}
            known = sorted(value for value in values if not is_missing(value))
            if len(known) < 2 or self._describes_tasks(chosen, k, len(known)):
                continue
            option = f"--where {column}={shown(known[0], most=60)}"
            raise InputError(
                f"{self.rows.place}: {column} has {len(known):,} values ({_listed(known)}): trials "
                f"of different agents are not pooled; {option}; --column arm= if it is one agent"
            )

    def _describes_tasks(self, chosen: Sequence[int], k: int, n_values: int) -> bool:
        """Return whether a column holds the prompts of the tasks."""
        if normalised(self.rows.arm_columns[k]) != "prompt":
            return False
        of_task: dict[str | None, str] = {}
        rows = self.rows
        if any(of_task.setdefault(rows.tasks[row], rows.arms[row][k]) != rows.arms[row][k]
               for row in chosen):  # fmt: skip
            return False
        return n_values >= max(3, OF_TASK * len(of_task))

    def _take(self, row: int) -> None:
        """Take a row, or leave it out with the reason."""
        rows = self.rows
        task, outcome = rows.tasks[row], rows.outcomes[row]
        trial = rows.trials[row] if self.numbered else "-"
        passed = self.passes.get(outcome)
        if row in rows.perturbed:
            self.left_out.add("perturbed_arm", rows.lines[row])
            return
        if task is None or trial is None:
            code, value = "bad_value", "a list, or too long a name"
        elif not task:
            code, value = "missing_task", None
        elif not trial:
            code, value = "missing_trial", None
        elif passed is None:
            code, value = self.outcomes.left_out[outcome], outcome or None
        elif rows.details and isinstance(rows.details[row], FieldError):
            code, value = "bad_value", _bad_value(str(rows.details[row]))
        else:
            self.passed[row] = passed
            return
        self.left_out.add(code, rows.lines[row], value)
        self.unknown.append(task or "")

    def _settle_repeated(self) -> None:
        """Keep one of equal rows of a trial, and none or the latest of those that differ."""
        rows, first = self.rows, dict[Hashable, int]()
        again: dict[int, list[int]] = {}
        for row in self.passed:
            part = self.asked.part_of(rows.details[row]) if rows.details else None
            before = first.setdefault((rows.tasks[row], rows.trials[row], part), row)
            if before != row:
                again.setdefault(before, [before]).append(row)
        moments = self._moments([row for repeated in again.values() for row in repeated])
        n_conflicts = 0
        kept: int | None
        for repeated in again.values():
            if len({self.passed[row] for row in repeated}) == 1:
                code, kept = "identical_duplicate", repeated[0]
            else:
                code, kept = "superseded", _latest(repeated, moments)
            if kept is None:
                code, n_conflicts = "conflicting_duplicate", n_conflicts + 1
                self.unknown.append(rows.tasks[repeated[0]] or "")
            for row in repeated:
                if row != kept:
                    del self.passed[row]
                    self.left_out.add(code, rows.lines[row])
        if n_conflicts:
            self.left_out.runs["conflicting_duplicate"] = n_conflicts

    def _moments(self, repeated: Sequence[int]) -> dict[int, datetime]:
        """Return the time of rows, where --latest asks for it and it can be read."""
        if not self.options.latest or not repeated:
            return {}
        texts, column = self.rows.times, self.by_role["started_at"]
        clock = words.clock_of(texts, chosen=self.options.dates)
        if clock == "unclear":
            raise InputError(
                f"{self.rows.place}: {column} holds dates such as {texts[repeated[0]]!r:.40}: "
                "does the day or the month come first? --dates dmy or --dates mdy"
            )
        moments = {}
        for row in repeated:
            try:
                moment = datetime.fromisoformat(words.iso_of(texts[row], clock))
            except ValueError:
                continue
            moments[row] = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moments

    def _amounts(self, role: str, kept: Sequence[int]) -> tuple[FloatArray, str]:
        """Return an amount of each trial, and what to say of those that cannot be read."""
        texts = self.rows.amounts.get(role)
        if texts is None:
            return np.full(len(kept), np.nan), ""
        column = self.by_role[role]
        per_unit = 1000.0 if normalised(column) in MILLISECONDS else 1.0
        numbers = words.read_numbers(
            [texts[row] for row in kept],
            place=f"{self.rows.place}: {column}",
            most=self.asked.amounts[role] * per_unit,
            chosen=self.options.decimal,
            in_dollars=role == COST,
        )
        note = ""
        if numbers.first is not None:
            place, text = numbers.first
            note = (
                f"{column}: {counted(numbers.unread, 'value')} cannot be read and count as unknown "
                f"(first line {self.rows.lines[kept[place]]:,}: '{shown(text, most=40)}')."
            )
        return np.array(numbers.values, dtype=np.float64) / per_unit, note

    def _reading(self, chosen: Sequence[int], used: int, more: Sequence[str]) -> Reading:
        rows = self.rows
        counts = Counter(rows.outcomes[row] for row in chosen)
        known = _of_texts(self.outcomes, counts)
        several = [
            name
            for k, name in enumerate(rows.arm_columns)
            if len({arms[k] for arms in {*rows.arms, *rows.other_arms}} - words.MISSING) > 1
        ]
        success = known.taxonomy.success
        notes = [note for note in known.notes if note != PASS_OR_FAIL]
        if not known.is_two_class:
            notes.append(f"A trial passes if its outcome is {success}.")
        return reading_of(
            replace(rows.columns, arms=tuple(several)),
            roles=[role for role in self.asked.roles if role != ARM],
            left_out=self.left_out.listed(),
            place=rows.place,
            rows=rows.table.n_rows,
            used=used,
            words={OUTCOME: known.words} if known.words else {},
            missing_words=known.missing,
            rubric=known.taxonomy.version,
            scale=known.scale,
            max_left_out=self.options.limit if self.asked.is_limited else None,
            notes=(*notes, *more),
        )  # fmt: skip


def _of_texts(outcomes: OutcomeWords, counts: Counter[str]) -> OutcomeWords:
    """Return what some of the texts are taken as, with their rows."""
    verdicts = {text: verdict for text, verdict in outcomes.verdicts.items() if counts[text]}
    return replace(
        outcomes,
        classes={text: name for text, name in outcomes.classes.items() if counts[text]},
        verdicts=verdicts,
        missing={text: counts[text] for text in outcomes.missing if counts[text]},
        ended=sum(counts[text] for text, verdict in verdicts.items() if verdict == "ended"),
        counts=counts,
    )


def _bad_value(error: str) -> str:
    """Return what cannot be read, as ``confidence 85``, of the message of a field."""
    rule, _, got = error.partition(", got ")
    name = rule.partition(":")[0].removeprefix("field ").strip("'")
    return f"{name} {got.strip(chr(39))}".strip()


def _listed(names: Sequence[str]) -> str:
    """Return the first of some names of the data."""
    few = ", ".join(shown(name, most=60) for name in names[:MOST_NAMED])
    return few + ", ..." * (len(names) > MOST_NAMED)


def _latest(repeated: Sequence[int], moments: Mapping[int, datetime]) -> int | None:
    """Return the row of the latest time; None where it is not known or shared by two rows."""
    if not all(row in moments for row in repeated):
        return None
    last = max(moments[row] for row in repeated)
    rows = [row for row in repeated if moments[row] == last]
    return rows[0] if len(rows) == 1 else None


def audit_details(row: Row) -> AuditedTrial:
    """Return what an audit of tasks asks of a trial."""
    reviewed = cell(row.get(REVIEWED))
    verdict = words.truth(reviewed)
    if verdict is None and not is_missing(reviewed):
        raise wrong(REVIEWED, "must say yes or no", reviewed)
    calls = cell(row.get(CALLS))
    return AuditedTrial(
        reviewed=verdict,
        calls=cell_whole({CALLS: None if is_missing(calls) else calls}, CALLS, maximum=MAX_COUNT),
        responded=not is_missing(cell(row[RESPONSE])) if RESPONSE in row else None,
    )


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


def read_tasks(source: Source, options: ReadingOptions | None = None) -> TaskTable:
    """Read a table of tasks: task_id, with any of the columns that `TaskTable` names.

    Raises
    ------
    InputError
        If the table cannot be read, has none of those columns, or a row does not name its task or
        names it again, or has another tier, a text that is too long, or a state or rule that is no
        JSON.
    """
    options = options or ReadingOptions()
    table = open_table(source, options)
    path = table.place
    if not table.columns:
        raise InputError(f"{path}: holds no tasks")
    by_role = named_columns(
        table.columns, place=path, roles=OF_TASKS, chosen=options.columns
    ).by_role
    if TASK not in by_role:
        raise InputError(
            f"{path}: no column names the task; {names_there(TASK, table.columns)}: "
            f"--column {TASK}=NAME"
        )
    if by_role.keys() == {TASK}:
        raise InputError(f"{path}: needs one of the columns {', '.join(OF_TASKS[1:])}")
    groups: dict[str, dict[str, str]] = {name: {} for name in GROUPS if name in by_role}
    states: dict[str, object] = {}
    references: dict[str, str] = {}
    rules: dict[str, tuple[tuple[str, str], ...]] = {}
    lines: dict[str, int] = {}
    for line, given in table.rows:
        row = {role: given.get(name) for role, name in by_role.items()}
        with located(path, line):
            task = _task_of(row, lines)
            lines[task] = line
            for name, group_by_task in groups.items():
                if value := group_of(row, name):
                    group_by_task[task] = value
            if (state := _json_of(row, STATE)) is not None:
                states[task] = state
            if text := _bounded(cell(row.get(REFERENCE)), REFERENCE, MAX_REFERENCE):
                references[task] = text
            if pairs := _pairs_of(row):
                rules[task] = pairs
    unreadable = table.left_out.first.get("unreadable_row")
    if unreadable is not None:
        raise InputError(f"{path}, line {unreadable.line}: is no row of a table")
    return TaskTable(
        path=path, tasks=tuple(lines), groups=groups, expected_state=states, reference=references,
        before=rules,
    )  # fmt: skip


def read_task_groups(
    source: Source, options: ReadingOptions | None = None
) -> dict[str, dict[str, str]]:
    """Return difficulty, category and tier of each task, of the columns that the table has.

    A tier is core or edge. Raises InputError as `read_tasks`, or if the table has no such column.
    """
    table = read_tasks(source, options)
    groups = table.groups
    if not groups:
        raise InputError(f"{table.path}: needs one of the columns {', '.join(GROUPS)}")
    return {name: dict(known) for name, known in groups.items()}


def _task_of(row: Row, lines: Mapping[str, int]) -> str:
    task = cell(row.get(TASK))
    if is_missing(task):
        raise FieldError(f"field {TASK!r} is missing")
    if task in lines:
        raise FieldError(f"task {task!r:.80} is there already, in line {lines[task]}")
    return task


def group_of(row: Row, name: str) -> str:
    """Return difficulty, category or tier of a row, empty without one; FieldError if it is none."""
    value = cell(row.get(name))
    value = "" if is_missing(value) else value
    if name == "tier" and words.fold(value) in TIERS:
        value = words.fold(value)
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
    text = _bounded(cell(value), name, MAX_METADATA_CHARS)
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
