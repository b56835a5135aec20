"""Human labels, verdicts and ceilings as files: CSV, JSONL or Parquet."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from calibration.errors import InputError
from calibration.records import NO_VERDICT, Evidence
from calibration.tables.rows import Row, any_rows, evidence_fields, said_as_text
from calibration.trace_formats.fields import FieldError, moment, number, whole, wrong

YES, NO = ("true", "yes", "1"), ("", "false", "no", "0")

MAX_USD = 1_000_000

MAX_WEIGHT = 1e9

MAX_SIZE = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRow:
    """One label of a file; without an outcome the trace was skipped."""

    line: int
    trace_id: str
    outcome: str
    reviewer: str
    adjudicated: bool
    weight: float | None
    cluster: str
    rationale: str | None
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """What a judge said of one trace; without an outcome it said nothing valid."""

    line: int
    trace_id: str
    outcome: str
    workflow: str
    judge: str
    cost_usd: float | None
    units: float
    started_at: datetime | None
    agent: str
    model: str
    steps: float | None
    response_chars: float | None
    reason: str | None
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictFile:
    """Every row of a file of verdicts, by trace in the order of the file.

    Parameters
    ----------
    path : Path
    rows : mapping of str to VerdictRow
        The first verdict on each trace.
    again : mapping of str to tuple of str
        What the judge said of a trace when it was asked again, in order.
    judge : str or None
        The judge whose rows these are; None where the file was taken as that of one.
    """

    path: Path
    rows: Mapping[str, VerdictRow]
    again: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    judge: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFile:
    """Every row of a file of human labels, by trace in the order of the file."""

    path: Path
    rows: Mapping[str, tuple[LabelRow, ...]]
    reviewers: tuple[str, ...]


def read_human_labels(path: Path) -> LabelFile:
    """Read human labels.

    Columns: trace_id, outcome; optional reviewer, adjudicated, weight, cluster, rationale,
    evidence_step, evidence_quote.

    Several rows of a trace are several reviewers. An empty outcome is a trace that was skipped.
    A row with `adjudicated` settles its trace.

    Raises
    ------
    InputError
        If a field is not what it must be, a reviewer labels a trace twice, or rows of a trace
        differ in weight, cluster or what was adjudicated.
    """
    by_trace: dict[str, list[LabelRow]] = {}
    reviewers: dict[str, None] = {}
    for line, row in _with_outcome(path):
        try:
            label = _label(path, line, row)
            _check_against(by_trace.setdefault(label.trace_id, []), label)
        except FieldError as error:
            raise InputError(f"{path}, line {line}, {error}") from error
        by_trace[label.trace_id].append(label)
        if label.reviewer:
            reviewers[label.reviewer] = None
    if not any(label.outcome for rows in by_trace.values() for label in rows):
        raise InputError(f"{path}: holds no labels")
    return LabelFile(
        path=path,
        rows={trace_id: tuple(rows) for trace_id, rows in by_trace.items()},
        reviewers=tuple(sorted(reviewers)),
    )


def _label(path: Path, line: int, row: Row) -> LabelRow:
    return LabelRow(
        line=line,
        trace_id=said_as_text(row["trace_id"]),
        outcome=said_as_text(row["outcome"]),
        reviewer=said_as_text(row.get("reviewer")),
        adjudicated=_flag(row.get("adjudicated"), "adjudicated"),
        weight=_amount(row.get("weight"), "weight", maximum=MAX_WEIGHT, above_zero=True),
        cluster=said_as_text(row.get("cluster")),
        rationale=said_as_text(row.get("rationale")) or None,
        evidence=evidence_fields(row, path=path, line=line),
    )


def _check_against(before: Sequence[LabelRow], label: LabelRow) -> None:
    """Refuse a row that contradicts another one of its trace."""
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


def read_verdicts(path: Path, *, judge: str | None = None) -> VerdictFile:
    """Read verdicts, those of one judge if it is named.

    Columns: trace_id, outcome, workflow, cost_usd; optional units, started_at, judge, agent, model,
    steps, response_chars, reason, evidence_step, evidence_quote, and sample: 0 or nothing for the
    first verdict on a trace, 1 and up when the judge was asked again.

    Raises
    ------
    InputError
        If a field is not what it must be, a trace has two first verdicts, or nothing is of `judge`.
    """
    rows: dict[str, VerdictRow] = {}
    again: dict[str, dict[int, str]] = {}
    judges: dict[str, None] = {}
    for line, row in _with_outcome(path):
        try:
            sample = whole(_amount(row.get("sample"), "sample", maximum=2**31), "sample") or 0
            found = _verdict(path, line, row)
        except FieldError as error:
            raise InputError(f"{path}, line {line}, {error}") from error
        judges[found.judge] = None
        if judge is not None and found.judge != judge:
            continue
        if sample == 0:
            other = rows.setdefault(found.trace_id, found)
            if other is not found:
                raise InputError(_second(path, found, other))
        elif sample in again.setdefault(found.trace_id, {}):
            raise InputError(
                f"{path}, line {line}, field 'sample': {sample} occurs twice for "
                f"{found.trace_id!r:.80}; if they are of two judges, name one with --judge"
            )
        else:
            again[found.trace_id][sample] = found.outcome or NO_VERDICT
    if judge is not None and judge not in judges:
        known = ", ".join(name for name in judges if name)
        raise InputError(f"{path}: no judge {judge!r:.80}; there are {known or 'none named':.200}")
    if not rows:
        raise InputError(f"{path}: holds no verdicts")
    return VerdictFile(
        path=path,
        rows=rows,
        again={t: tuple(said[k] for k in sorted(said)) for t, said in again.items()},
        judge=judge,
    )


def _verdict(path: Path, line: int, row: Row) -> VerdictRow:
    return VerdictRow(
        line=line,
        trace_id=said_as_text(row["trace_id"]),
        outcome=said_as_text(row["outcome"]),
        workflow=said_as_text(row.get("workflow")),
        judge=said_as_text(row.get("judge")),
        cost_usd=_amount(row.get("cost_usd"), "cost_usd", maximum=MAX_USD),
        units=_amount(row.get("units"), "units", maximum=1e9, above_zero=True) or 1.0,
        started_at=_moment(row.get("started_at")),
        agent=said_as_text(row.get("agent")),
        model=said_as_text(row.get("model")),
        steps=_amount(row.get("steps"), "steps", maximum=MAX_SIZE),
        response_chars=_amount(row.get("response_chars"), "response_chars", maximum=MAX_SIZE),
        reason=said_as_text(row.get("reason")) or None,
        evidence=evidence_fields(row, path=path, line=line),
    )


def _second(path: Path, row: VerdictRow, other: VerdictRow) -> str:
    start = f"{path}, line {row.line}, field 'trace_id': {row.trace_id!r:.80} has a verdict in "
    if row.judge == other.judge:
        return f"{start}line {other.line} already"
    return (
        f"{start}line {other.line} by another judge: name one of them with --judge "
        f"({other.judge!r:.60}, {row.judge!r:.60})"
    )


def read_ceilings(path: Path) -> dict[str, float]:
    """Read the cost ceiling per unit of each workflow: workflow, ceiling_usd.

    Raises
    ------
    InputError
        If a ceiling is no positive amount or a workflow occurs twice.
    """
    ceilings: dict[str, float] = {}
    for line, row in any_rows(path, required=("workflow", "ceiling_usd")):
        name = said_as_text(row["workflow"])
        try:
            found = _amount(row["ceiling_usd"], "ceiling_usd", maximum=MAX_USD, above_zero=True)
        except FieldError as error:
            raise InputError(f"{path}, line {line}, {error}") from error
        if name in ceilings or found is None:
            raise InputError(f"{path}, line {line}, field 'workflow': {name!r:.80} occurs twice")
        ceilings[name] = found
    return ceilings


def _with_outcome(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield rows that have a trace and a field for the outcome, which may be empty."""
    for line, row in any_rows(path, required=("trace_id",)):
        if "outcome" not in row:
            raise InputError(f"{path}, line {line}: field 'outcome' is missing")
        yield line, row


def _amount(value: object, name: str, *, maximum: float, above_zero: bool = False) -> float | None:
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            value = float(value)
        except ValueError as error:
            raise wrong(name, "must be a number", value) from error
    elif isinstance(value, float) and value != value:  # how Parquet may store what is missing
        return None
    return number(value, name, maximum=maximum, above_zero=above_zero)


def _flag(value: object, name: str) -> bool:
    said = said_as_text(value).casefold()
    if said not in (*YES, *NO):
        raise wrong(name, f"must be one of {', '.join(YES + NO[1:])}", value)
    return said in YES


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        value = value.isoformat()
    return moment(value, "started_at", UTC) if said_as_text(value) else None
