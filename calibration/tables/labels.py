"""Human labels, verdicts and ceilings as tables: CSV, JSONL, Parquet, or a pandas frame.

A table is opened (`open_answers`), which finds its columns; its rows are typed (`label_table`,
`verdict_table`), with their outcomes as written; `vocabulary` says what these mean; then
`settled_labels` and `settled_verdicts` say which of several rows for one thing counts.

A reader raises InputError with table, line and field if a field is not valid.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from calibration.errors import InputError, MissingColumnError
from calibration.records import (
    CONFIDENCES,
    GRADES,
    NO_VERDICT,
    PERTURBATIONS,
    PROMPTS,
    Evidence,
    is_perturbed,
)
from calibration.tables import words
from calibration.tables.columns import (
    ALIASES,
    OF_JUDGES,
    OF_PEOPLE,
    TASKS,
    Columns,
    Header,
    answer_column,
    chosen_columns,
    normalised,
    trace_columns,
)
from calibration.tables.reading import LeftOut, LeftOutCounter, Reading, ReadingOptions, reading_of
from calibration.tables.rows import (
    OpenTable,
    Row,
    Source,
    any_rows,
    cell_evidence,
    cell_flag,
    cell_moment,
    cell_number,
    cell_whole,
    cell_words,
    located,
    missing,
    open_table,
    raters_among,
)
from calibration.tables.words import cell, missing_notes
from calibration.text import several_judges
from calibration.trace_formats.fields import FieldError, outcome

MAX_USD = 1_000_000
MAX_WEIGHT = 1e9
MAX_SIZE = 1e12
MAX_SAMPLE = 2**31 - 1
MOST_CAUSE = 100  # characters

LABEL_COLUMNS = tuple(
    "trace_id reviewer outcome adjudicated weight cluster rationale evidence_step evidence_quote "
    "confidence tags sub_goals violations perturbation exposed".split()
)
VERDICT_COLUMNS = tuple(
    "trace_id outcome sample judge workflow task stratum cost_usd units ceiling_usd started_at "
    "agent model steps response_chars grade reason evidence_step evidence_quote of_all cause "
    "prompt".split()
)

# What is read: roles, under our names of them.
OF_LABELS = (*LABEL_COLUMNS, "evidence", "updated_at")
OF_VERDICTS = (
    *("task_id" if name == "task" else name for name in VERDICT_COLUMNS),
    *("perturbation", "evidence", "updated_at"),
)
NUMBERS = "weight confidence cost_usd units ceiling_usd steps response_chars grade sample".split()
TIMES = ("started_at", "updated_at")

OUTCOME, HUMAN, VERDICT = "outcome", "human", "verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKind:
    """Labels of people, or verdicts of a judge: their roles, and what their answer is called.

    `also` : other words for a role in --column. `noun` : what one answer is in messages.
    """

    noun: str
    roles: tuple[str, ...]
    names: tuple[str, ...]
    also: Mapping[str, str]


PEOPLE = AnswerKind(
    noun="label",
    roles=OF_LABELS,
    names=(OUTCOME, *OF_PEOPLE),
    also={HUMAN: OUTCOME, "label": OUTCOME, "rater": "reviewer"},
)
JUDGE = AnswerKind(
    noun="verdict",
    roles=OF_VERDICTS,
    names=(OUTCOME, *OF_JUDGES),
    also={VERDICT: OUTCOME, "task": "task_id"},
)

T = TypeVar("T", "LabelRow", "VerdictRow")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRow:
    """One label of a table; without an outcome the trace was skipped."""

    line: int
    trace_id: str
    outcome: str
    reviewer: str
    adjudicated: bool
    weight: float | None
    cluster: str
    rationale: str | None
    evidence: tuple[Evidence, ...]
    confidence: int | None = None
    tags: object = None
    sub_goals: object = None
    exposed: bool = False
    perturbation: str = ""
    violations: object = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """The verdict of a judge on one trace; without an outcome it gave no valid one.

    `own_ceiling` : whether the table has ceilings; then None is no ceiling. `of_all` : it is the
    verdict of all samples together, and not one more of them. `cause` : why there is no outcome.
    `prompt` : what the judge read of the trace.
    """

    line: int
    trace_id: str
    outcome: str = ""
    cause: str | None = None
    prompt: str = ""
    sample: int = 0
    of_all: bool = False
    workflow: str = ""
    task: str = ""
    stratum: str = ""
    judge: str = ""
    cost_usd: float | None = None
    units: float = 1.0
    ceiling_usd: float | None = None
    own_ceiling: bool = False
    started_at: datetime | None = None
    agent: str = ""
    model: str = ""
    steps: float | None = None
    response_chars: float | None = None
    reason: str | None = None
    grade: int | None = None
    evidence: tuple[Evidence, ...] = ()
    perturbation: str = ""
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTable:
    """Typed labels, their outcomes as written, and how the table was read.

    `column` : of the outcome, normalised. `is_wide` : a column holds the labels of one person.
    """

    place: str
    rows: tuple[LabelRow, ...]
    columns: Columns
    column: str = OUTCOME
    is_wide: bool = False
    n_rows: int = 0
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        """The rows of each outcome as written."""
        return Counter(row.outcome for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictTable:
    """Typed verdicts of one judge, or of several, and how the table was read.

    `judge` : the one whose rows these are; None if the table is taken as that of one judge.
    """

    place: str
    rows: tuple[VerdictRow, ...]
    columns: Columns
    column: str = OUTCOME
    judge: str | None = None
    n_rows: int = 0
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        """The rows of each outcome as written."""
        return Counter(row.outcome for row in self.rows)

    def of_judge(self, judge: str | None, *, names_it: bool = False) -> "VerdictTable":
        """Return the verdicts of one judge.

        With `names_it`, `judge` is the name of the judge of a table that names none.

        Raises
        ------
        InputError
            If there are no verdicts of `judge`, or those of several judges and none is named.
        """
        judges = list(dict.fromkeys(row.judge for row in self.rows))
        if judge is None:
            if len(judges) > 1:
                raise InputError(f"{self.place} holds verdicts of {several_judges(judges)}")
            return self
        if names_it and judges == [""]:
            return replace(self, judge=judge)
        # Rows without a name are of the judge that the others name.
        own = {judge, ""} if names_it and set(judges) == {judge, ""} else {judge}
        rows = tuple(row for row in self.rows if row.judge in own)
        if not rows:
            known = ", ".join(name for name in judges if name)
            raise InputError(
                f"{self.place}: no judge {judge!r:.80}; there are {known or 'none named':.200}"
            )
        return replace(self, rows=rows, judge=judge)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictFile:
    """Every row of a table of verdicts, by trace in the order of the table.

    `path` : its name in errors and reports.
    `rows`, `again` : the first verdict on each trace, and the further ones in order.
    `judge` : the judge of these rows; None if the table is taken as that of one judge.
    `arms` : the traces of perturbed arms, whose rows are left out.
    """

    path: str
    rows: Mapping[str, VerdictRow]
    again: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    judge: str | None = None
    arms: frozenset[str] = frozenset()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFile:
    """The rows of a table of human labels that count, by trace in the order of the table.

    `arms` : the traces of perturbed arms, whose rows are left out.
    """

    path: str
    rows: Mapping[str, tuple[LabelRow, ...]]
    reviewers: tuple[str, ...]
    arms: frozenset[str] = frozenset()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(slots=True, kw_only=True)
class AnswerTable:
    """An open table of labels or verdicts, with the column of each role.

    `traces` : the columns that may name the trace, the likeliest first. `decimals`, `clocks` : how
    columns write numbers and times. `raters` : the columns of a person each.
    """

    side: AnswerKind
    table: OpenTable
    header: Header
    by_role: dict[str, str]
    traces: list[str]
    raters: tuple[str, ...] = ()
    options: ReadingOptions = field(default_factory=ReadingOptions)
    is_numbered: bool = False

    @property
    def columns(self) -> Columns:
        """The column of each role, and the others."""
        used = {*self.by_role.values(), *self.raters}
        return Columns(
            by_role={r: self.by_role[r] for r in self.side.roles if r in self.by_role},
            not_read=tuple(name for name in self.header.columns if name not in used),
        )

    @property
    def column(self) -> str:
        """The normalised name of the column of the outcome, less whose it is."""
        name = normalised(self.by_role.get(OUTCOME, OUTCOME))
        for who in ("human", "llm_judge", "judge", "llm", "auto"):
            name = name.removeprefix(f"{who}_")
        return name


def open_answers(
    source: Source,
    side: AnswerKind,
    options: ReadingOptions | None = None,
    *,
    or_else: str = OUTCOME,
    table: OpenTable | None = None,
) -> AnswerTable:
    """Open a table of labels or verdicts and find its columns.

    Parameters
    ----------
    source : Path or DataFrame
    side : AnswerKind
        `PEOPLE` or `JUDGE`.
    options : ReadingOptions, optional
    or_else : str, default "outcome"
        A role that may stand in for the outcome.
    table : OpenTable, optional
        The table, where it is open already.

    Raises
    ------
    InputError
        If the table cannot be read, no column holds the answer, or two may and differ.
    """
    options = options or ReadingOptions()
    table = table or open_table(source, options, is_strict=True)
    header = Header.of(table.columns, table.place, side.roles)
    chosen = role_names(options.columns, side)
    by_role = chosen_columns(header, chosen, side.roles)
    sample = table.sample
    raters = raters_among(
        options.raters, [c for c in table.columns if c not in by_role.values()], table.place
    )
    if OUTCOME not in chosen and not raters:
        column = answer_column(
            header, sample, role=OUTCOME, names=side.names, taken=by_role.values()
        )
        if column is not None:
            by_role[OUTCOME] = column
    used = {*by_role.values(), *raters}
    for role in side.roles:
        if role in chosen or role in (OUTCOME, "trace_id", "evidence"):
            continue
        aliases = ALIASES.get(role, (role,)) if role != "task_id" else TASKS
        # Times of a run are no times of what was said of it.
        if role == "updated_at" and side is JUDGE:
            aliases = ("updated_at", "submitted_at", "judged_at")
        if present := header.there(aliases, used):
            by_role[role] = present[0]
            used.add(present[0])
    if "evidence" in header.names and "evidence" not in chosen:
        by_role["evidence"] = header.names["evidence"]
    traces = [] if "trace_id" in chosen else trace_columns(header, sample, used)
    if "trace_id" not in chosen and traces:
        by_role["trace_id"] = traces[0]
    answers = AnswerTable(
        side=side,
        table=table,
        header=header,
        by_role=by_role,
        traces=traces,
        raters=raters,
        options=options,
    )
    _check_answers(answers, or_else)
    return answers


def role_names(columns: Mapping[str, str | None], side: AnswerKind) -> dict[str, str | None]:
    """Return the columns that the user named under the roles of a side.

    Raises InputError if one role is named by two words.
    """
    chosen: dict[str, str | None] = {}
    for role, name in columns.items():
        ours = side.also.get(role, role)
        if ours in chosen:
            raise InputError(f"--column: {role} and {ours} are the same; give one of them")
        chosen[ours] = name
    return chosen


def _check_answers(answers: AnswerTable, or_else: str) -> None:
    """Refuse a table without an answer, and costs in another currency."""
    header, by_role, table = answers.header, answers.by_role, answers.table
    if OUTCOME not in by_role and or_else not in by_role and not answers.raters and header.columns:
        raise lacking(table.place, OUTCOME, header.columns)
    cost = by_role.get("cost_usd")
    for text in () if cost is None else table.sample.values(cost):
        if currency := words.currency_of(text):
            raise InputError(
                f"{table.place}: costs are read in US dollars, and {cost} holds {currency}: "
                "--column cost_usd= leaves them out"
            )


def lacking(place: str, role: str, columns: Sequence[str]) -> MissingColumnError:
    """Return the error of a table without a column for a role, with those that it has."""
    return MissingColumnError(
        f"{missing(place, role, columns)}; name the column to use: --column {role}=NAME",
        column=role,
    )


def _rows(answers: AnswerTable) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a table under our names, numbers and times in one form."""
    table, by_role, options = answers.table, answers.by_role, answers.options
    place, sample = table.place, table.sample
    if "trace_id" not in by_role and not answers.is_numbered and answers.header.columns:
        raise lacking(place, "trace_id", answers.header.columns)
    comma = {
        role
        for role in NUMBERS
        if role in by_role
        and words.decimal_of(
            sample.values(by_role[role]), place=f"{place}: {by_role[role]}", chosen=options.decimal
        )
        == "comma"
    }
    clocks = {
        role: words.clock_of(sample.values(by_role[role]), chosen=options.dates)
        for role in TIMES
        if role in by_role
    }
    for line, raw in table.rows:
        row = {role: raw.get(name) for role, name in by_role.items() if name in raw}
        for role in comma & row.keys():
            value = row[role]
            if isinstance(value, str) and (number := words.number_of(value, "comma")) is not None:
                row[role] = number
        for role, clock in clocks.items():
            value = row.get(role)
            if value is not None and not isinstance(value, datetime):
                row[role] = None if clock == "unclear" else words.iso_of(cell(value), clock)
        if answers.is_numbered:
            row["trace_id"] = str(line)
        elif not (trace := cell(row.get("trace_id"))) or words.is_missing(trace):
            raise InputError(f"{place}, line {line}: field 'trace_id' is missing")
        if not answers.raters:
            yield line, row
        for rater in answers.raters:
            if cell(raw.get(rater)):
                yield line, {**row, "reviewer": rater, OUTCOME: raw[rater]}


def _typed(answers: AnswerTable, read: Callable[[int, Row], T]) -> tuple[T, ...]:
    """Return typed rows; an invalid field is an error with table and line."""
    typed = []
    for line, row in _rows(answers):
        with located(answers.table.place, line):
            typed.append(read(line, row))
    return tuple(typed)


def _time_notes(answers: AnswerTable) -> tuple[str, ...]:
    """Say that times were not read, where day and month cannot be told apart."""
    sample, by_role = answers.table.sample, answers.by_role
    return tuple(
        f"{by_role[role]} is not read: day and month cannot be told apart; --dates dmy or mdy."
        for role in TIMES
        if role in by_role
        and words.clock_of(sample.values(by_role[role]), chosen=answers.options.dates) == "unclear"
    )


def label_table(answers: AnswerTable) -> LabelTable:
    """Read the rows of an open table of labels."""
    rows = _typed(answers, _label)
    return LabelTable(
        place=answers.table.place,
        rows=rows,
        columns=answers.columns,
        column=answers.column,
        is_wide=bool(answers.raters),
        n_rows=len(rows) if answers.raters else answers.table.n_rows,
        left_out=answers.table.left_out.listed(),
        notes=_time_notes(answers),
    )


def verdict_table(answers: AnswerTable) -> VerdictTable:
    """Read the rows of an open table of verdicts."""
    rows = _typed(answers, _verdict)
    return VerdictTable(
        place=answers.table.place,
        rows=rows,
        columns=answers.columns,
        column=answers.column,
        n_rows=answers.table.n_rows,
        left_out=answers.table.left_out.listed(),
        notes=_time_notes(answers),
    )


def read_labels(source: Source, options: ReadingOptions | None = None) -> LabelTable:
    """Read a table of labels, a row a label, their outcomes as written.

    Columns: trace_id, outcome; optional reviewer, adjudicated, weight, cluster, rationale,
    evidence (a list, as JSON in CSV) or evidence_step and evidence_quote, confidence (1 to 3),
    tags, sub_goals, exposed, perturbation, violations, updated_at.
    """
    return label_table(open_answers(source, PEOPLE, options))


def read_verdict_rows(
    source: Source, options: ReadingOptions | None = None, *, graded: bool = False
) -> VerdictTable:
    """Read a table of verdicts, a row a verdict, their outcomes as written.

    Columns: trace_id, outcome; optional workflow, task_id, stratum (of an uneven draw), cost_usd,
    units, ceiling_usd, started_at, judge, agent, model, steps, response_chars, reason, grade (1 to
    5), evidence_step, evidence_quote, perturbation, updated_at, and sample: 0 or empty for the
    first verdict on a trace, 1 and up for further ones. `of_all` marks a first one that is the
    verdict of all samples together, `cause` says why there is none, `prompt` what the judge read:
    ``whole`` or ``cut``. If `graded`, a table with grades needs no outcomes.
    """
    return verdict_table(
        open_answers(source, JUDGE, options, or_else="grade" if graded else OUTCOME)
    )


def _label(line: int, row: Row) -> LabelRow:
    return LabelRow(
        line=line,
        trace_id=cell(row["trace_id"]),
        outcome=cell(row.get(OUTCOME)),
        reviewer=cell(row.get("reviewer")),
        adjudicated=cell_flag(row, "adjudicated"),
        weight=cell_number(row, "weight", maximum=MAX_WEIGHT, above_zero=True),
        cluster=cell(row.get("cluster")),
        rationale=cell_words(row, "rationale"),
        evidence=cell_evidence(row),
        confidence=cell_whole(row, "confidence", minimum=CONFIDENCES[0], maximum=CONFIDENCES[-1]),
        tags=row.get("tags"),
        sub_goals=row.get("sub_goals"),
        exposed=cell_flag(row, "exposed"),
        perturbation=_arm(row),
        violations=row.get("violations"),
        updated_at=cell_moment(row, "updated_at"),
    )


def _arm(row: Row) -> str:
    """Return what was perturbed, one of `PERTURBATIONS`; empty where the row does not say."""
    found = cell(row.get("perturbation"))
    return found and outcome(found, "perturbation", PERTURBATIONS)


def settled_labels(table: LabelTable, taken_as: Mapping[str, str] | None = None) -> LabelFile:
    """Return the labels that count, each outcome taken as `taken_as` says, else as written.

    Several rows of a trace are several reviewers; an empty outcome is a skipped trace; a row with
    `adjudicated` decides its trace. Left out are rows whose reviewer had seen labels or verdicts of
    the trace (`exposed`), whose run is of a perturbed arm, that say the same again, or that their
    reviewer changed later. InputError also if a reviewer gives a trace two labels of which no time
    says which is later, or rows of a trace differ in weight, cluster or adjudicated outcome.
    """
    path, taken_as = table.place, taken_as or {}
    left_out = counted(table.left_out)
    rows: list[LabelRow] = []
    arms: set[str] = set()
    for written in table.rows:
        label = replace(written, outcome=taken_as.get(written.outcome, written.outcome))
        if is_perturbed(label.perturbation):
            arms.add(label.trace_id)
            left_out.add("perturbed_arm", label.line)
        elif label.exposed:
            left_out.add("not_blind", label.line)
        elif table.is_wide and not label.outcome:
            left_out.add("missing_outcome", label.line, written.outcome)
        else:
            rows.append(label)
    by_trace: dict[str, list[LabelRow]] = {}
    for label in latest_labels(rows, path, left_out):
        before = by_trace.setdefault(label.trace_id, [])
        if any(_repeats(label, other) for other in before):
            left_out.add("identical_duplicate", label.line)
            continue
        with located(path, label.line):
            _check_against(before, label)
        before.append(label)
    if not any(label.outcome for labels in by_trace.values() for label in labels):
        raise InputError(f"{path}: holds no labels")
    counting = [label for labels in by_trace.values() for label in labels]
    named = {r.reviewer for r in counting if r.reviewer and not r.adjudicated}
    return LabelFile(
        path=path,
        rows={trace_id: tuple(labels) for trace_id, labels in by_trace.items()},
        reviewers=tuple(sorted(named)),
        arms=frozenset(arms),
        left_out=left_out.listed(),
    )


def counted(listed: Sequence[LeftOut]) -> LeftOutCounter:
    """Return a counter that goes on from rows that were left out before."""
    counter = LeftOutCounter()
    for one in listed:
        counter.counts[one.code] = one.rows
        if one.first is not None:
            counter.first[one.code] = one.first
    return counter


def _whose(label: LabelRow) -> tuple[object, ...] | None:
    """Return of what and whose a label is; None where nobody is named."""
    return (label.trace_id, label.reviewer, label.adjudicated) if label.reviewer else None


def _which(verdict: VerdictRow) -> tuple[object, ...]:
    """Return of what and whose a verdict is."""
    return (verdict.trace_id, verdict.judge, verdict.sample)


def latest_labels(
    rows: Sequence[LabelRow], place: str, left_out: LeftOutCounter
) -> Iterator[LabelRow]:
    """Yield one label of each person on each trace: of equal ones the first, else the latest.

    Raises InputError if two of one person differ and no time says which is later.
    """
    return _latest(rows, _whose, place, left_out)


def latest_verdicts(
    rows: Sequence[VerdictRow], place: str, left_out: LeftOutCounter
) -> Iterator[VerdictRow]:
    """Yield one verdict for each trace, judge and sample, as `latest_labels` does."""
    return _latest(rows, _which, place, left_out)


def _latest(
    rows: Sequence[T],
    key: Callable[[T], tuple[object, ...] | None],
    place: str,
    left_out: LeftOutCounter,
) -> Iterator[T]:
    """Yield one row for each key: of equal ones the first, of others that of the latest time."""
    groups: dict[object, list[T]] = {}
    for row in rows:
        whose = key(row)
        groups.setdefault(id(row) if whose is None else whose, []).append(row)
    for group in groups.values():
        answers = {(row.outcome, getattr(row, "grade", None)) for row in group}
        latest = group[0] if len(answers) == 1 else _later_one(group, place)
        for row in group:
            if row is not latest:
                answer = (row.outcome, getattr(row, "grade", None))
                same = answer == (latest.outcome, getattr(latest, "grade", None))
                left_out.add("identical_duplicate" if same else "superseded", row.line)
        yield latest


def _later_one(group: Sequence[T], place: str) -> T:
    """Return the row of the latest time, or refuse rows of which it cannot be told."""
    times = [row.updated_at or getattr(row, "started_at", None) for row in group]
    known = [time for time in times if time is not None]
    latest = [row for row, time in zip(group, times, strict=True) if time == max(known, default=0)]
    if len(known) == len(group) and len({row.outcome for row in latest}) == 1:
        return latest[0]
    first, other = group[0], next(row for row in group if row.outcome != group[0].outcome)
    if isinstance(first, LabelRow):
        what = f"two different labels of {first.reviewer!r:.60}"
    else:
        of_judge = (
            f" of {first.judge!r:.60}" if isinstance(first, VerdictRow) and first.judge else ""
        )
        what = f"two different verdicts{of_judge}"
    raise InputError(
        f"{place}: trace {first.trace_id!r:.80} has {what} (lines {first.line}, {other.line}), and "
        "no time says which is later; --column updated_at=NAME names the column of times"
    )


def _repeats(label: LabelRow, other: LabelRow) -> bool:
    """Return whether a row without a reviewer is another one once more."""
    # Missing cells of a frame are NaN, which differs from itself.
    one, two = (
        replace(
            row,
            line=0,
            tags=cell(row.tags),
            sub_goals=cell(row.sub_goals),
            violations=cell(row.violations),
        )
        for row in (label, other)
    )
    return not label.reviewer and one == two


def _check_against(before: Sequence[LabelRow], label: LabelRow) -> None:
    """Raise FieldError if a row contradicts another one of its trace."""
    for other in before:
        for name in ("weight", "cluster"):
            if getattr(other, name) != getattr(label, name):
                raise FieldError(
                    f"field {name!r}: is {getattr(label, name)!r:.60} and was "
                    f"{getattr(other, name)!r:.60} of the same trace in line {other.line}"
                )
        if other.adjudicated and label.adjudicated and other.outcome != label.outcome:
            raise FieldError(
                f"field 'outcome': the trace was adjudicated {other.outcome!r:.60} in line "
                f"{other.line}"
            )


def _verdict(line: int, row: Row) -> VerdictRow:
    return VerdictRow(
        line=line,
        trace_id=cell(row["trace_id"]),
        outcome=cell(row.get("outcome")),
        cause=_cause(row),
        prompt=_prompt(row),
        sample=cell_whole(row, "sample", maximum=MAX_SAMPLE) or 0,
        of_all=cell_flag(row, "of_all"),
        workflow=cell(row.get("workflow")),
        judge=cell(row.get("judge")),
        cost_usd=cell_number(row, "cost_usd", maximum=MAX_USD),
        units=cell_number(row, "units", maximum=1e9, above_zero=True) or 1.0,
        ceiling_usd=cell_number(row, "ceiling_usd", maximum=MAX_USD, above_zero=True),
        own_ceiling="ceiling_usd" in row,
        started_at=cell_moment(row, "started_at"),
        agent=cell(row.get("agent")),
        model=cell(row.get("model")),
        steps=cell_number(row, "steps", maximum=MAX_SIZE),
        response_chars=cell_number(row, "response_chars", maximum=MAX_SIZE),
        reason=cell_words(row, "reason"),
        grade=cell_whole(row, "grade", minimum=GRADES[0], maximum=GRADES[-1]),
        evidence=cell_evidence(row),
        task=cell(row.get("task_id")),
        stratum=cell(row.get("stratum")),
        perturbation=_arm(row),
        updated_at=cell_moment(row, "updated_at"),
    )


def _cause(row: Row) -> str | None:
    cause = cell(row.get("cause")) or None
    if cause is not None and len(cause) > MOST_CAUSE:
        raise FieldError(f"field 'cause': has {len(cause):,} characters, {MOST_CAUSE} at most")
    return cause


def _prompt(row: Row) -> str:
    prompt = cell(row.get("prompt")).casefold()
    if prompt not in ("", *PROMPTS):
        raise FieldError(f"field 'prompt': must be {' or '.join(PROMPTS)}, is {prompt!r:.60}")
    return prompt


def read_verdicts(
    source: Source, options: ReadingOptions | None = None, *, judge: str | None = None
) -> VerdictFile:
    """Read the verdicts that count, their outcomes as written; see `read_verdict_rows`.

    Only those of `judge` if it is named. Rows of perturbed arms are left out; `arms` has their
    traces. InputError also if a trace has two first verdicts that differ, of which no time says
    which is later, or there are none of `judge`.
    """
    return settled_verdicts(read_verdict_rows(source, options).of_judge(judge))


def settled_verdicts(table: VerdictTable, taken_as: Mapping[str, str] | None = None) -> VerdictFile:
    """Return the verdicts that count, each outcome taken as `taken_as` says, else as written."""
    path, taken_as = table.place, taken_as or {}
    left_out = counted(table.left_out)
    rows: list[VerdictRow] = []
    arms: set[str] = set()
    for verdict in table.rows:
        if is_perturbed(verdict.perturbation):
            arms.add(verdict.trace_id)
            left_out.add("perturbed_arm", verdict.line)
        else:
            outcome = taken_as.get(verdict.outcome, verdict.outcome)
            rows.append(replace(verdict, outcome=outcome))
    first: dict[str, VerdictRow] = {}
    again: dict[str, dict[int, str]] = {}
    for verdict in latest_verdicts(rows, path, left_out):
        if verdict.sample == 0:
            other = first.setdefault(verdict.trace_id, verdict)
            if other is not verdict:
                raise InputError(_second(path, verdict, other))
        elif verdict.sample in again.setdefault(verdict.trace_id, {}):
            raise InputError(
                f"{path}, line {verdict.line}, field 'sample': {verdict.sample} occurs twice for "
                f"{verdict.trace_id!r:.80}; if they are of two judges, name one with --judge"
            )
        else:
            again[verdict.trace_id][verdict.sample] = verdict.outcome or NO_VERDICT
    if not first:
        raise InputError(f"{path}: holds no verdicts")
    return VerdictFile(
        path=path,
        rows=first,
        again={t: tuple(samples[k] for k in sorted(samples)) for t, samples in again.items()},
        judge=table.judge,
        arms=frozenset(arms),
        left_out=left_out.listed(),
    )


def _second(path: str, row: VerdictRow, other: VerdictRow) -> str:
    start = f"{path}, line {row.line}, field 'trace_id': {row.trace_id!r:.80} has a verdict in "
    if row.judge == other.judge:
        return f"{start}line {other.line} already"
    return (
        f"{start}line {other.line} by another judge: name one of them with --judge "
        f"({other.judge!r:.60}, {row.judge!r:.60})"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsRead:
    """What the words of one table are taken as; empty: no label, or no verdict.

    `missing` : rows by word that is missing. `classes` : what a word may be. `rubric`, `scale` :
    what the classes are of.
    """

    taken_as: Mapping[str, str]
    missing: Mapping[str, int]
    classes: tuple[str, ...] = ()
    rubric: str | None = None
    scale: str | None = None
    notes: tuple[str, ...] = ()


def reading_of_answers(
    table: LabelTable | VerdictTable,
    left_out: Sequence[LeftOut],
    *,
    roles: Sequence[str],
    words: WordsRead,
    notes: Sequence[str] = (),
) -> Reading:
    """Return what was read of a table of labels or verdicts; it has no limit for rows left out."""
    is_verdicts = isinstance(table, VerdictTable)
    layout = "runs" if is_verdicts else "wide" if getattr(table, "is_wide", False) else "long"
    kept = table.n_rows - sum(one.rows for one in left_out)
    renamed = {w: into or "missing" for w, into in words.taken_as.items() if w and w != into}
    return reading_of(
        table.columns,
        roles=roles,
        left_out=left_out,
        place=table.place,
        rows=table.n_rows,
        used=max(kept, 0),
        layout=layout,
        words={OUTCOME: renamed} if renamed else {},
        missing_words=dict(words.missing),
        rubric=words.rubric,
        scale=words.scale,
        max_left_out=None,
        notes=(
            *table.notes,
            *words.notes,
            *missing_notes(words.missing, "verdict" if is_verdicts else "label"),
            *notes,
        ),
    )


def read_ceilings(path: Path) -> dict[str, float]:
    """Return the cost ceiling in USD per unit of each workflow, from workflow and ceiling_usd.

    InputError also if a ceiling is not positive or a workflow occurs twice.
    """
    ceilings: dict[str, float] = {}
    for line, row in any_rows(path, required=("workflow", "ceiling_usd")):
        name = cell(row["workflow"])
        with located(path, line):
            found = cell_number(row, "ceiling_usd", maximum=MAX_USD, above_zero=True)
            if name in ceilings or found is None:
                raise FieldError(f"field 'workflow': {name!r:.80} occurs twice")
        ceilings[name] = found
    return ceilings
