"""Import verdicts and labels from files into the store; `exports` writes such files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from calibration.errors import CalibrationError, InputError, LabelRefusedError
from calibration.records import (
    MAX_TAG,
    MAX_TAGS,
    NO_VERDICT,
    SOURCE_JUDGE,
    LabelDraft,
    Verdict,
    Violation,
)
from calibration.store import (
    MAX_TEXT,
    ImportResult,
    Store,
    check_sub_goals,
    check_violations,
    clean_tags,
    import_token,
    reviewer_id_of,
)
from calibration.tables.labels import (
    LabelRow,
    VerdictRow,
    counted,
    latest_labels,
    latest_verdicts,
    read_labels,
    read_verdict_rows,
    reading_of_answers,
)
from calibration.tables.reading import Reading, ReadingOptions
from calibration.tables.rows import Source, bounded_tags, located, place_of, tag_words
from calibration.tables.scales import class_of_grade
from calibration.tables.vocabulary import Rest, check_words, read_words
from calibration.tables.words import cell
from calibration.taxonomy import Taxonomy
from calibration.text import counted as counted_of
from calibration.text import names_there
from calibration.trace_formats.fields import wrong
from calibration.trace_formats.json_scanner import decode_text
from calibration.trace_formats.reliability_fields import read_violations

K = TypeVar("K", str, tuple[str, str])
R = TypeVar("R", LabelRow, VerdictRow)

NOT_NAMED = "not named"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableImport(Generic[K]):
    """What an import of labels or verdicts stored, and what was read of the table."""

    stored: ImportResult[K]
    reading: Reading


def import_verdicts(
    store: Store,
    source: Source,
    *,
    judge_id: str,
    options: ReadingOptions | None = None,
    rest: Rest | None = None,
) -> TableImport[str]:
    """Store the verdicts of a CSV, JSONL or Parquet file, with the columns of `read_verdict_rows`.

    Words are classes of the taxonomy in any spelling that folds alike, or pass and fail: its
    success and its failed check. `rest` is what every other one is taken as. A row with a grade and
    no outcome has the class that the grade proposes (`class_of_grade`), for a person to confirm; a
    row with neither is no verdict. Of two rows for one sample of a trace the later counts. Raises
    InputError if a row is invalid (then nothing of the file is stored); CalibrationError if no
    verdict is for a trace of the store.
    """
    path = place_of(source)
    if not judge_id.strip() or judge_id.startswith(SOURCE_JUDGE):
        raise InputError(
            f"judge must be a name that does not begin with {SOURCE_JUDGE!r} (the grades that came "
            f"with the traces), got {judge_id!r}"
        )
    taxonomy = store.taxonomy()
    table = read_verdict_rows(source, options, graded=True)
    words = read_words(table, taxonomy, options, rest=rest)
    check_words(table, words)
    left_out = counted(table.left_out)
    rows = [replace(row, outcome=words.taken_as[row.outcome]) for row in table.rows]
    # A sample is one of the judge that is named, whoever the file names.
    latest = latest_verdicts(rows, path, left_out)
    verdicts = [
        Verdict(
            judge_id=judge_id.strip(),
            trace_id=row.trace_id,
            outcome=class_of_grade(grade, taxonomy) if grade else row.outcome or NO_VERDICT,
            proposed=grade is not None,
            sample=row.sample,
            reason=row.reason,
            evidence=row.evidence,
            grade=row.grade,
            cause=row.cause if row.outcome in ("", NO_VERDICT) else None,
            detail=_detail(row),
        )
        for row in _named(store, path, latest)
        for grade in [None if row.outcome else row.grade]
    ]
    done = store.add_verdicts(verdicts)
    if verdicts and len(done.unknown) == len(verdicts):
        raise CalibrationError(
            f"{path}: none of its {len(verdicts)} verdicts is for a trace of this store; "
            "import the traces first"
        )
    return TableImport(
        stored=done,
        reading=reading_of_answers(
            table, left_out.listed(), roles=("trace_id", "outcome", "judge"), words=words
        ),
    )


def _detail(row: VerdictRow) -> str | None:
    """Return what a row tells of how its verdict came about, as a judge that we run does."""
    known = {"of_all": row.of_all or None, "prompt": row.prompt or None}
    told = {name: value for name, value in known.items() if value is not None}
    return json.dumps(told) if told else None


def _named(store: Store, path: str, rows: Iterable[R]) -> list[R]:
    """Return rows by trace id where the file names traces by the ids of their source."""
    listed = list(rows)
    by_source = store.ids_by_source({row.trace_id for row in listed})
    for row in listed:
        traces = by_source.get(row.trace_id, [])
        if len(traces) > 1:
            with located(path, row.line):
                raise wrong(
                    "trace_id", f"names {len(traces)} traces, {traces[0]} and others", row.trace_id
                )
    return [
        replace(row, trace_id=by_source[row.trace_id][0]) if row.trace_id in by_source else row
        for row in listed
    ]


def import_labels(
    store: Store,
    source: Source,
    *,
    batch_id: str,
    options: ReadingOptions | None = None,
    people: Mapping[str, str] | None = None,
    exposed: bool = False,
    replacing: bool = False,
) -> TableImport[tuple[str, str]]:
    """Store the labels of a CSV, JSONL or Parquet file, with the columns of `read_labels`.

    Words are classes of the taxonomy in any spelling that folds alike, or pass and fail: its
    success and its failed check. `people` has the name of reviewers of the file. With `exposed` all
    labels are stored as not blind. Tags are separated by semicolons; `sub_goals` is a JSON object
    of states by sub-goal id, and `violations` a JSON list of constraint, severity and step; empty:
    nobody asked for any. An adjudicated row is the consensus of its trace, and counted as
    `settled`. A label that is later than the stored one by its own time, or any other one if
    `replacing`, is a new event; the stored one stays in the log. Rows that are no blind label of a
    reviewer (skipped, exposed) are left out. Raises InputError if a row is invalid (then nothing of
    the file is stored); CalibrationError if no label is for a trace of the batch.
    """
    taxonomy, path = store.taxonomy(), place_of(source)
    table = read_labels(source, options)
    words = read_words(table, taxonomy, options)
    check_words(table, words)
    left_out = counted(table.left_out)
    counting = []
    for written in table.rows:
        row = replace(written, outcome=words.taken_as[written.outcome])
        if not row.outcome:
            left_out.add("skipped", row.line)
        elif row.exposed and not exposed:
            left_out.add("not_blind", row.line)
        else:
            _check_texts(path, row)
            counting.append(row)
    latest = _named(store, path, latest_labels(counting, path, left_out))
    decided = [_decision(taxonomy, batch_id, row) for row in latest if row.adjudicated]
    rows = [row for row in latest if not row.adjudicated]
    names = _reviewers(path, rows, people or {})
    marks = [_marks(path, row) for row in rows]
    drafts = [
        _draft(taxonomy, batch_id, reviewer_id_of(name), row, mark)
        for row, name, mark in zip(rows, names, marks, strict=True)
    ]
    done = store.import_labels(
        batch_id, drafts, names=list(dict.fromkeys(names)), exposed=exposed, replacing=replacing
    )
    if drafts and not (done.imported or done.already_there or done.changed or done.replaced):
        raise CalibrationError(
            f"{path}: none of its {len(drafts)} labels is for a trace of batch {batch_id!r}; "
            "name the batch with --batch"
        )
    if decided:
        settled = store.import_consensus(batch_id, decided)
        done = replace(
            done,
            unknown=tuple(dict.fromkeys((*done.unknown, *settled.unknown))),
            settled=settled.imported,
            settled_before=settled.changed,
        )
    n_tags = sum(mark.beyond for mark in marks)
    reading = reading_of_answers(
        table,
        left_out.listed(),
        roles=("trace_id", "reviewer", "outcome", "updated_at"),
        words=words,
        notes=[
            f"{counted_of(n_tags, 'tag')} left out: a label has at most {MAX_TAGS} tags of "
            f"{MAX_TAG} characters."
        ]
        if n_tags
        else [],
    )
    return TableImport(stored=done, reading=reading)


def _reviewers(path: str, rows: Sequence[LabelRow], people: Mapping[str, str]) -> list[str]:
    """Return the name of the reviewer of each row."""
    present = {row.reviewer for row in rows}
    for who in people:
        if who not in present:
            known = names_there(who, sorted(present))
            raise InputError(f"--people: no label of {who!r:.80} in {path}; {known}")
    return [_reviewer(path, row, people) for row in rows]


def _decision(taxonomy: Taxonomy, batch_id: str, row: LabelRow) -> LabelDraft:
    """Return an adjudicated row as a decision, of its reviewer where it names one."""
    by = reviewer_id_of(row.reviewer) or NOT_NAMED
    return LabelDraft(
        client_token=import_token(
            f"adjudicated in {batch_id}", taxonomy.version, by, row.trace_id, row.outcome
        ),
        trace_id=row.trace_id,
        reviewer_id=by,
        batch_id=batch_id,
        answers=taxonomy.answers_for(row.outcome),
        rationale=row.rationale,
    )


def _reviewer(path: str, row: LabelRow, people: Mapping[str, str]) -> str:
    if not row.reviewer:
        raise InputError(f"{path}, line {row.line}: field 'reviewer' is missing")
    name = " ".join(people.get(row.reviewer, row.reviewer).split())
    if not reviewer_id_of(name) or len(name) > 80:
        with located(path, row.line):
            raise wrong("reviewer", "must have 1 to 80 letters or digits", name)
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marks:
    """What a label marks besides its class; `beyond` : tags that are too long or too many."""

    tags: tuple[str, ...]
    beyond: int
    sub_goals: dict[str, str]
    violations: tuple[Violation, ...] | None


def _marks(path: str, row: LabelRow) -> _Marks:
    """Return tags, sub-goals and violations; lists and objects are accepted as they are."""
    written: object = row.sub_goals if cell(row.sub_goals) else "{}"
    at = "tags"
    try:
        tags, beyond = bounded_tags(tag_words({"tags": row.tags}, "tags", split=";"))
        tags = clean_tags(tags)
        at = "sub_goals"
        sub_goals = decode_text(written) if isinstance(written, str) else written
        if not isinstance(sub_goals, dict):
            raise ValueError(f"must be an object, got {written!r:.80}")
        check_sub_goals(sub_goals, sub_goals)
        at = "violations"
        violations = _violations(row.violations)
    except (LabelRefusedError, ValueError, TypeError) as error:
        raise InputError(f"{path}, line {row.line}, field {at!r}: {error}") from error
    return _Marks(tags=tags, beyond=beyond, sub_goals=sub_goals, violations=violations)


def _violations(given: object) -> tuple[Violation, ...] | None:
    """Return violations of a JSON list; None where the cell is empty: nobody asked for any."""
    if not cell(given):
        return None
    found = read_violations(decode_text(given) if isinstance(given, str) else given)
    check_violations(found)
    return found


def _check_texts(path: str, row: LabelRow) -> None:
    texts = [("rationale", row.rationale), *(("evidence", item.quote) for item in row.evidence)]
    for name, text in texts:
        if text and len(text) > MAX_TEXT:
            with located(path, row.line):
                raise wrong(name, f"must have up to {MAX_TEXT:,} characters", text)


def _draft(
    taxonomy: Taxonomy, batch_id: str, reviewer_id: str, row: LabelRow, marks: _Marks
) -> LabelDraft:
    return LabelDraft(
        client_token=import_token(
            batch_id, taxonomy.version, reviewer_id, row.trace_id, row.outcome, row.updated_at
        ),
        trace_id=row.trace_id,
        reviewer_id=reviewer_id,
        batch_id=batch_id,
        answers=taxonomy.answers_for(row.outcome),
        rationale=row.rationale,
        evidence=row.evidence,
        confidence=row.confidence,
        tags=marks.tags,
        sub_goals=marks.sub_goals,
        violations=marks.violations,
        given_at=row.updated_at,
    )
