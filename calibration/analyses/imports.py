"""Import verdicts and labels from files into the store; `exports` writes such files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from calibration.errors import CalibrationError, InputError, LabelRefusedError
from calibration.records import (
    NO_VERDICT,
    SOURCE_JUDGE,
    LabelDraft,
    SetAside,
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
from calibration.tables.labels import EXPOSED, LabelRow, VerdictRow, label_rows, verdict_rows
from calibration.tables.rows import Source, cell_text, located, none_of, place_of
from calibration.tables.scales import class_of_grade
from calibration.tables.vocabulary import Rest, Vocabulary, check_map
from calibration.taxonomy import Taxonomy
from calibration.text import names_there
from calibration.trace_formats.fields import wrong
from calibration.trace_formats.json_scanner import decode_text
from calibration.trace_formats.reliability_fields import read_violations

R = TypeVar("R", LabelRow, VerdictRow)

SKIPPED, NOT_NAMED = "a skipped trace, no label", "not named"


def import_verdicts(
    store: Store,
    source: Source,
    *,
    judge_id: str,
    mapped: Mapping[str, str] | None = None,
    rest: Rest | None = None,
) -> ImportResult[str]:
    """Store the verdicts of a CSV, JSONL or Parquet file, with the columns of `verdict_rows`.

    `mapped` has the class of verdicts that are none, `rest` what every other one is taken as. A row
    with a grade and no outcome has the class that the grade proposes (`class_of_grade`), for a
    person to confirm. Raises InputError if a row is invalid (then nothing of the file is stored);
    CalibrationError if no verdict is for a trace of the store.
    """
    path = place_of(source)
    if not judge_id.strip() or judge_id.startswith(SOURCE_JUDGE):
        raise InputError(
            f"judge must be a name that does not begin with {SOURCE_JUDGE!r} (the grades that came "
            f"with the traces), got {judge_id!r}"
        )
    taxonomy = store.taxonomy()
    verdicts, known = [], (*taxonomy.names, NO_VERDICT)
    words = Vocabulary(mapped=mapped or {}, rest=rest, classes=taxonomy.names)
    found = _named(store, path, verdict_rows(source, graded=True))
    check_map(words, path, {row.outcome for row in found})
    for row in found:
        row = replace(row, outcome=words.taken(row.outcome))
        grade = None if row.outcome else row.grade
        if not row.outcome and grade is None:
            raise InputError(f"{path}, line {row.line}: field 'outcome' is missing")
        verdicts.append(
            Verdict(
                judge_id=judge_id.strip(),
                trace_id=row.trace_id,
                outcome=class_of_grade(grade, taxonomy) if grade else _class_of(path, row, known),
                proposed=grade is not None,
                sample=row.sample,
                reason=row.reason,
                evidence=row.evidence,
                grade=row.grade,
                cause=row.cause if row.outcome in ("", NO_VERDICT) else None,
                detail=_detail(row),
            )
        )
    done = store.add_verdicts(verdicts)
    if verdicts and len(done.unknown) == len(verdicts):
        raise CalibrationError(
            f"{path}: none of its {len(verdicts)} verdicts is for a trace of this store; "
            "import the traces first"
        )
    return done


def _detail(row: VerdictRow) -> str | None:
    """Return what a row tells of how its verdict came about, as a judge that we run does."""
    known = {"of_all": row.of_all or None, "prompt": row.prompt or None}
    told = {name: value for name, value in known.items() if value is not None}
    return json.dumps(told) if told else None


def _named(store: Store, path: str, rows: Iterable[R]) -> list[R]:
    """Return rows by trace id where the file names traces by the ids of their source."""
    found = list(rows)
    ids = store.ids_by_source({row.trace_id for row in found})
    for row in found:
        of = ids.get(row.trace_id, [])
        if len(of) > 1:
            with located(path, row.line):
                raise wrong("trace_id", f"names {len(of)} traces, {of[0]} and others", row.trace_id)
    return [replace(r, trace_id=ids[r.trace_id][0]) if r.trace_id in ids else r for r in found]


def _class_of(path: str, row: LabelRow | VerdictRow, known: Sequence[str]) -> str:
    if row.outcome not in known:
        with located(path, row.line):
            raise none_of("outcome", row.outcome, known)
    return row.outcome


def import_labels(
    store: Store,
    source: Source,
    *,
    batch_id: str,
    mapped: Mapping[str, str] | None = None,
    people: Mapping[str, str] | None = None,
    exposed: bool = False,
) -> ImportResult[tuple[str, str]]:
    """Store the labels of a CSV, JSONL or Parquet file, with the columns of `label_rows`.

    `mapped` has the class of labels that are none, `people` the name of reviewers of the file. With
    `exposed` all labels are stored as not blind. Tags are separated by semicolons; `sub_goals` is a
    JSON object of states by sub-goal id, and `violations` a JSON list of constraint, severity and
    step; empty: nobody asked for any. An adjudicated row is the consensus of its trace, and counted
    as `settled`. Rows that are no blind label of a reviewer (skipped, exposed) are set aside.
    Raises InputError if a row is invalid (then nothing of the file is stored); CalibrationError if
    no label is for a trace of the batch.
    """
    taxonomy = store.taxonomy()
    path, words = place_of(source), Vocabulary(mapped=mapped or {}, classes=taxonomy.names)
    read = _named(store, path, label_rows(source))
    check_map(words, path, {row.outcome for row in read})
    every = [
        (replace(row, outcome=words.taken(row.outcome)), _no_label(row, exposed)) for row in read
    ]
    counted = [row for row, why in every if why is None]
    aside = [SetAside(file=path, line=row.line, reason=why) for row, why in every if why]
    for row in counted:
        _check_texts(path, row)
    for row in counted:
        _class_of(path, row, taxonomy.names)
    decided = [_decision(taxonomy, batch_id, row) for row in counted if row.adjudicated]
    rows = [row for row in counted if not row.adjudicated]
    named, there = people or {}, {row.reviewer for row in rows}
    for who in named:
        if who not in there:
            known = names_there(who, sorted(there))
            raise InputError(f"--people: no label of {who!r:.80} in {path}; {known}")
    names = [_reviewer(path, row, named) for row in rows]
    marks = [_marks(path, row) for row in rows]
    drafts = [
        _draft(taxonomy, batch_id, reviewer_id_of(name), row, *of)
        for row, name, of in zip(rows, names, marks, strict=True)
    ]
    done = store.import_labels(batch_id, drafts, names=list(dict.fromkeys(names)), exposed=exposed)
    if drafts and not (done.imported or done.already_there or done.changed):
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
    return replace(done, set_aside=tuple(aside))


def _no_label(row: LabelRow, exposed: bool) -> str | None:
    if not row.outcome:
        return SKIPPED
    return EXPOSED if row.exposed and not exposed else None


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


def _marks(
    path: str, row: LabelRow
) -> tuple[tuple[str, ...], dict[str, str], tuple[Violation, ...] | None]:
    """Return tags, sub-goals and violations; lists and objects are accepted as they are."""
    tags, given, at = row.tags or (), row.sub_goals or "{}", "tags"
    try:
        cleaned = clean_tags(list(map(str, tags)) if isinstance(tags, list) else [str(tags or "")])
        at = "sub_goals"
        sub_goals = decode_text(given) if isinstance(given, str) else given
        if not isinstance(sub_goals, dict):
            raise ValueError(f"must be an object, got {given!r:.80}")
        check_sub_goals(sub_goals, sub_goals)
        at = "violations"
        violations = _violations(row.violations)
    except (LabelRefusedError, ValueError, TypeError) as error:
        raise InputError(f"{path}, line {row.line}, field {at!r}: {error}") from error
    return cleaned, sub_goals, violations


def _violations(given: object) -> tuple[Violation, ...] | None:
    """Return violations of a JSON list; None where the cell is empty: nobody asked for any."""
    if not cell_text(given):
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
    taxonomy: Taxonomy, batch_id: str, reviewer_id: str, row: LabelRow,
    tags: tuple[str, ...], sub_goals: dict[str, str], violations: tuple[Violation, ...] | None,
) -> LabelDraft:  # fmt: skip
    return LabelDraft(
        client_token=import_token(
            batch_id, taxonomy.version, reviewer_id, row.trace_id, row.outcome
        ),
        trace_id=row.trace_id,
        reviewer_id=reviewer_id,
        batch_id=batch_id,
        answers=taxonomy.answers_for(row.outcome),
        rationale=row.rationale,
        evidence=row.evidence,
        confidence=row.confidence,
        tags=tags,
        sub_goals=sub_goals,
        violations=violations,
    )
