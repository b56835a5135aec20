"""Human labels, verdicts and ceilings as tables: CSV, JSONL, Parquet, or a pandas frame.

A reader raises InputError with table, line and field if a field is not valid.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from calibration.errors import InputError
from calibration.records import (
    CONFIDENCES,
    GRADES,
    NO_VERDICT,
    PERTURBATIONS,
    PROMPTS,
    Evidence,
    SetAside,
    is_perturbed,
)
from calibration.tables.rows import (
    Renamed,
    Row,
    Source,
    any_rows,
    cell_evidence,
    cell_flag,
    cell_moment,
    cell_number,
    cell_text,
    cell_whole,
    cell_words,
    column_names,
    located,
    missing,
    place_of,
    under_our_names,
)
from calibration.text import several_judges
from calibration.trace_formats.fields import FieldError, outcome

MAX_USD = 1_000_000
MAX_WEIGHT = 1e9
MAX_SIZE = 1e12
MAX_SAMPLE = 2**31 - 1
MOST_CAUSE = 100  # characters

LABEL_COLUMNS = (
    "trace_id", "reviewer", "outcome", "adjudicated", "weight", "cluster", "rationale",
    "evidence_step", "evidence_quote", "confidence", "tags", "sub_goals", "violations",
    "perturbation", "exposed",
)  # fmt: skip

VERDICT_COLUMNS = (
    "trace_id", "outcome", "sample", "judge", "workflow", "task", "stratum", "cost_usd", "units",
    "ceiling_usd", "started_at", "agent", "model", "steps", "response_chars", "grade", "reason",
    "evidence_step", "evidence_quote", "of_all", "cause", "prompt",
)  # fmt: skip

# What is read beside what is exported.
OF_LABELS = (*LABEL_COLUMNS, "evidence")
OF_VERDICTS = (*VERDICT_COLUMNS, "perturbation", "evidence")

OUTCOME, HUMAN, VERDICT = "outcome", "human", "verdict"

EXPOSED = "not blind: its reviewer had seen labels or verdicts of the trace"
ARM = "of a perturbed arm: in no number of production"
REPEATED = "repeats another row exactly and names no reviewer"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFile:
    """The rows of a table of human labels that count, by trace in the order of the table."""

    path: str
    rows: Mapping[str, tuple[LabelRow, ...]]
    reviewers: tuple[str, ...]
    set_aside: tuple[SetAside, ...] = ()
    arms: frozenset[str] = frozenset()  # traces of perturbed arms, whose rows are set aside


def label_rows(source: Source, *, required: Sequence[str] = ()) -> Iterator[LabelRow]:
    """Yield the rows of a table of human labels.

    Columns: trace_id, outcome; optional reviewer, adjudicated, weight, cluster, rationale,
    evidence (a list, as JSON in CSV) or evidence_step and evidence_quote, confidence (1 to 3),
    tags, sub_goals, exposed, perturbation, violations. `required` ones must not be empty.
    """
    for line, row in _with_outcome(source, required):
        with located(place_of(source), line):
            found = _label(line, row)
        yield found


def _label(line: int, row: Row) -> LabelRow:
    return LabelRow(
        line=line,
        trace_id=cell_text(row["trace_id"]),
        outcome=cell_text(row["outcome"]),
        reviewer=cell_text(row.get("reviewer")),
        adjudicated=cell_flag(row, "adjudicated"),
        weight=cell_number(row, "weight", maximum=MAX_WEIGHT, above_zero=True),
        cluster=cell_text(row.get("cluster")),
        rationale=cell_words(row, "rationale"),
        evidence=cell_evidence(row),
        confidence=cell_whole(row, "confidence", minimum=CONFIDENCES[0], maximum=CONFIDENCES[-1]),
        tags=row.get("tags"),
        sub_goals=row.get("sub_goals"),
        exposed=cell_flag(row, "exposed"),
        perturbation=_arm(row),
        violations=row.get("violations"),
    )


def _arm(row: Row) -> str:
    """Return what was perturbed, one of `PERTURBATIONS`; empty where the row does not say."""
    found = cell_text(row.get("perturbation"))
    return found and outcome(found, "perturbation", PERTURBATIONS)


def read_human_labels(source: Source) -> LabelFile:
    """Read human labels, with the columns of `label_rows`.

    Several rows of a trace are several reviewers; an empty outcome is a skipped trace; a row with
    `adjudicated` decides its trace. A row is set aside if its reviewer had seen labels or verdicts
    of the trace (`exposed`), if its run is of a perturbed arm, or if it names no reviewer and
    repeats another one exactly. InputError also if a reviewer labels a trace twice, or rows of a
    trace differ in weight, cluster or adjudicated outcome.
    """
    path = place_of(source)
    by_trace: dict[str, list[LabelRow]] = {}
    reviewers: dict[str, None] = {}
    aside: list[SetAside] = []
    arms: set[str] = set()
    for label in label_rows(source):
        before = by_trace.get(label.trace_id, ())
        reason = EXPOSED if label.exposed else ""
        if is_perturbed(label.perturbation):
            reason = ARM
            arms.add(label.trace_id)
        elif not reason and any(_repeats(label, other) for other in before):
            reason = REPEATED
        if reason:
            aside.append(SetAside(file=path, line=label.line, reason=reason))
            continue
        with located(path, label.line):
            _check_against(before, label)
        by_trace.setdefault(label.trace_id, []).append(label)
        if label.reviewer and not label.adjudicated:
            reviewers[label.reviewer] = None
    if not any(label.outcome for rows in by_trace.values() for label in rows):
        raise InputError(f"{path}: holds no labels")
    return LabelFile(
        path=path,
        rows={trace_id: tuple(rows) for trace_id, rows in by_trace.items()},
        reviewers=tuple(sorted(reviewers)),
        set_aside=tuple(aside),
        arms=frozenset(arms),
    )


def _repeats(label: LabelRow, other: LabelRow) -> bool:
    """Return whether a row without a reviewer is another one once more."""
    # Missing cells of a frame are NaN, which differs from itself.
    one, two = (
        replace(
            row,
            line=0,
            tags=cell_text(row.tags),
            sub_goals=cell_text(row.sub_goals),
            violations=cell_text(row.violations),
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
        if label.reviewer and (other.reviewer, other.adjudicated) == (
            label.reviewer, label.adjudicated,
        ):  # fmt: skip
            raise FieldError(
                f"field 'reviewer': a second label of {label.reviewer!r:.60}, after line "
                f"{other.line}"
            )


def verdict_rows(
    source: Source, *, required: Sequence[str] = (), graded: bool = False
) -> Iterator[VerdictRow]:
    """Yield the rows of a table of verdicts.

    Columns: trace_id, outcome; optional workflow, task, stratum (of an uneven draw), cost_usd,
    units, ceiling_usd, started_at, judge, agent, model, steps, response_chars, reason, grade (1 to
    5), evidence_step, evidence_quote, perturbation, and sample: 0 or empty for the first verdict on
    a trace, 1 and up for further ones. `of_all` marks a first one that is the verdict of all
    samples together, `cause` says why there is none, `prompt` what the judge read: ``whole`` or
    ``cut``. `required` ones must not be empty. If `graded`, a table with grades needs no outcomes.
    """
    for line, row in _with_outcome(source, required, or_else="grade" if graded else "outcome"):
        with located(place_of(source), line):
            found = _verdict(line, row)
        yield found


def _verdict(line: int, row: Row) -> VerdictRow:
    return VerdictRow(
        line=line,
        trace_id=cell_text(row["trace_id"]),
        outcome=cell_text(row.get("outcome")),
        cause=_cause(row),
        prompt=_prompt(row),
        sample=cell_whole(row, "sample", maximum=MAX_SAMPLE) or 0,
        of_all=cell_flag(row, "of_all"),
        workflow=cell_text(row.get("workflow")),
        judge=cell_text(row.get("judge")),
        cost_usd=cell_number(row, "cost_usd", maximum=MAX_USD),
        units=cell_number(row, "units", maximum=1e9, above_zero=True) or 1.0,
        ceiling_usd=cell_number(row, "ceiling_usd", maximum=MAX_USD, above_zero=True),
        own_ceiling="ceiling_usd" in row,
        started_at=cell_moment(row, "started_at"),
        agent=cell_text(row.get("agent")),
        model=cell_text(row.get("model")),
        steps=cell_number(row, "steps", maximum=MAX_SIZE),
        response_chars=cell_number(row, "response_chars", maximum=MAX_SIZE),
        reason=cell_words(row, "reason"),
        grade=cell_whole(row, "grade", minimum=GRADES[0], maximum=GRADES[-1]),
        evidence=cell_evidence(row),
        task=cell_text(row.get("task")),
        stratum=cell_text(row.get("stratum")),
        perturbation=_arm(row),
    )


def _cause(row: Row) -> str | None:
    cause = cell_text(row.get("cause")) or None
    if cause is not None and len(cause) > MOST_CAUSE:
        raise FieldError(f"field 'cause': has {len(cause):,} characters, {MOST_CAUSE} at most")
    return cause


def _prompt(row: Row) -> str:
    prompt = cell_text(row.get("prompt")).casefold()
    if prompt not in ("", *PROMPTS):
        raise FieldError(f"field 'prompt': must be {' or '.join(PROMPTS)}, is {prompt!r:.60}")
    return prompt


def read_verdicts(
    source: Source, *, judge: str | None = None, names_it: bool = False
) -> VerdictFile:
    """Read verdicts, with the columns of `verdict_rows`, only those of `judge` if it is named.

    With `names_it`, `judge` is the name of the judge of a table that names none. Rows of perturbed
    arms are left out; `arms` has their traces.
    InputError also if a trace has two first verdicts, there are none of `judge`, or there are
    several judges and none of them is named.
    """
    path = place_of(source)
    tables: dict[str, _Verdicts] = {}
    judges: dict[str, None] = {}
    for found in verdict_rows(source):
        judges[found.judge] = None
        # Rows without a name count where the table names no judge.
        read = next(iter(judges)) if judge is None else judge
        if found.judge == read or (names_it and not found.judge):
            tables.setdefault(found.judge, _Verdicts()).add(path, found)
    named = [name for name in judges if name]
    if judge is None:
        if len(judges) > 1:
            raise InputError(f"{path} holds verdicts of {several_judges(judges)}")
        read = next(iter(judges), "")
    elif judge in judges:
        read = judge
    elif named or not names_it:
        known = ", ".join(named) or "none named"
        raise InputError(f"{path}: no judge {judge!r:.80}; there are {known:.200}")
    else:
        read = ""
    verdicts = tables.get(read)
    if verdicts is None or not verdicts.rows:
        raise InputError(f"{path}: holds no verdicts")
    return VerdictFile(
        path=path,
        rows=verdicts.rows,
        again={
            t: tuple(samples[k] for k in sorted(samples)) for t, samples in verdicts.again.items()
        },
        judge=judge,
        arms=frozenset(verdicts.arms),
    )


@dataclass(slots=True)
class _Verdicts:
    """The rows of one judge as they are read."""

    rows: dict[str, VerdictRow] = field(default_factory=dict)
    again: dict[str, dict[int, str]] = field(default_factory=dict)
    arms: set[str] = field(default_factory=set)

    def add(self, path: str, row: VerdictRow) -> None:
        """Add a row; InputError for a second one of the same trace and sample."""
        if is_perturbed(row.perturbation):
            self.arms.add(row.trace_id)
        elif row.sample == 0:
            other = self.rows.setdefault(row.trace_id, row)
            if other is not row:
                raise InputError(
                    f"{path}, line {row.line}, field 'trace_id': {row.trace_id!r:.80} has a "
                    f"verdict in line {other.line} already"
                )
        elif row.sample in self.again.setdefault(row.trace_id, {}):
            raise InputError(
                f"{path}, line {row.line}, field 'sample': {row.sample} occurs twice for "
                f"{row.trace_id!r:.80}; if they are of two judges, a column judge names them"
            )
        else:
            self.again[row.trace_id][row.sample] = row.outcome or NO_VERDICT


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTables:
    """Labels and verdicts to be joined, and the verdicts of another judge if one was named."""

    labels: LabelFile
    verdicts: VerdictFile
    against: VerdictFile | None = None


def of_two_tables(
    human: Path,
    verdicts: Path,
    columns: Mapping[str, str | None],
    raters: Sequence[str] = (),
    *,
    judge_id: str | None = None,
    against: str | None = None,
) -> JudgedTables:
    """Read labels and verdicts from two files whose columns have other names.

    A name goes for the files that have its column; `human` and `verdict` are the outcome of the one
    and of the other. `raters` are columns of `human`. `against` names another judge of `verdicts`,
    or another file. `judge_id` chooses a judge, or names that of a table without names. Raises
    InputError as `read_human_labels`, `read_verdicts`, `under_our_names`.
    """
    other = Path(against) if against is not None and Path(against).is_file() else None
    named = under_our_names(
        columns,
        (human, (*OF_LABELS, HUMAN)),
        (verdicts, (*OF_VERDICTS, VERDICT)),
        (other, (*OF_VERDICTS, VERDICT)),
    )
    labels, judged, others = (
        _as_outcome(table, name)
        for table, name in zip(named, (HUMAN, VERDICT, VERDICT), strict=True)
    )
    found = read_verdicts(judged or verdicts, judge=judge_id, names_it=True)
    if others is not None:
        earlier: VerdictFile | None = read_verdicts(others)
    elif against is None or against == judge_id:
        earlier = None
    else:
        earlier = read_verdicts(judged or verdicts, judge=against)
    return JudgedTables(
        labels=read_human_labels(_of_raters(labels or human, raters)),
        verdicts=found,
        against=earlier,
    )


def of_one_table(
    table: Path,
    columns: Mapping[str, str | None],
    raters: Sequence[str] = (),
    *,
    judge_id: str | None = None,
    against: str | None = None,
) -> JudgedTables:
    """Read labels and verdicts from one table, a row a trace.

    The column `human` has the class that people gave, or `raters` have a column each; `verdict`
    that of the judge: `judge_id`, or the name of the column, unless a column `judge` names several.
    `against` is another column of verdicts, another judge, or another file.

    Raises InputError as `of_two_tables`.
    """
    given = {HUMAN: HUMAN, VERDICT: VERDICT, **columns}
    if raters and HUMAN in columns:
        raise InputError("--raters are columns of the labels, as --column human=; give one of them")
    under_our_names(columns, (table, (*OF_LABELS, *OF_VERDICTS, HUMAN, VERDICT)))
    if OUTCOME in columns:
        raise InputError(f"--column: name {HUMAN} and {VERDICT} instead of {OUTCOME}")
    if given[HUMAN] is None or given[VERDICT] is None:
        raise InputError(f"--column: {HUMAN} and {VERDICT} cannot be left out")
    shared = {name: theirs for name, theirs in given.items() if name not in (HUMAN, VERDICT)}

    def side(known: Sequence[str], outcome: str | None) -> Renamed:
        own = {name: theirs for name, theirs in shared.items() if name in known}
        return Renamed(table=table, columns={**own, OUTCOME: outcome})

    verdict = given[VERDICT]
    judged = side(OF_VERDICTS, verdict)
    found = read_verdicts(judged, judge=judge_id, names_it=True)
    if judge_id is None and verdict != VERDICT and not any(r.judge for r in found.rows.values()):
        found = replace(found, judge=verdict)
    other = None
    if against is not None and Path(against).is_file():
        other = read_verdicts(Path(against))
    elif against is not None and against in column_names(table):
        other = replace(read_verdicts(side(OF_VERDICTS, against)), judge=against)
    elif against is not None and against != found.judge:
        other = read_verdicts(judged, judge=against)
    human = side(OF_LABELS, None if raters else given[HUMAN])
    return JudgedTables(
        labels=read_human_labels(_of_raters(human, raters)), verdicts=found, against=other
    )


def _as_outcome(table: Path | Renamed | None, name: str) -> Path | Renamed | None:
    """Return a table whose outcome may go by another name of ours."""
    if not isinstance(table, Renamed) or name not in table.columns:
        return table
    if OUTCOME in table.columns:
        raise InputError(f"--column: {name} and {OUTCOME} are the same; give one of them")
    columns = {OUTCOME if ours == name else ours: of for ours, of in table.columns.items()}
    return replace(table, columns=columns)


def _of_raters(table: Path | Renamed, raters: Sequence[str]) -> Path | Renamed:
    """Return a table in which each of these columns has the labels of one reviewer."""
    if not raters:
        return table
    known = table if isinstance(table, Renamed) else Renamed(table=table)
    return replace(known, raters=tuple(raters))


def read_ceilings(path: Path) -> dict[str, float]:
    """Return the cost ceiling in USD per unit of each workflow, from workflow and ceiling_usd.

    InputError also if a ceiling is not positive or a workflow occurs twice.
    """
    ceilings: dict[str, float] = {}
    for line, row in any_rows(path, required=("workflow", "ceiling_usd")):
        name = cell_text(row["workflow"])
        with located(path, line):
            found = cell_number(row, "ceiling_usd", maximum=MAX_USD, above_zero=True)
            if name in ceilings or found is None:
                raise FieldError(f"field 'workflow': {name!r:.80} occurs twice")
        ceilings[name] = found
    return ceilings


def _with_outcome(
    source: Source, required: Sequence[str], *, or_else: str = "outcome"
) -> Iterator[tuple[int, Row]]:
    """Yield rows with a trace and an outcome field, or another one, which may be empty."""
    for line, row in any_rows(source, required=("trace_id", *required)):
        if "outcome" not in row and or_else not in row:
            raise missing(f"{place_of(source)}, line {line}", "outcome", row, what="field")
        yield line, row
