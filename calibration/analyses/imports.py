"""Import verdicts and labels from files into the store, and export them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pandas as pd

from calibration.analyses.evidence.data import MISSING, UNKNOWN, group_names
from calibration.analyses.evidence.from_store import (
    batches_of,
    drawn_by,
    load_batch,
    started,
    with_judge,
)
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
from calibration.tables.labels import (
    EXPOSED,
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    LabelRow,
    VerdictRow,
    label_rows,
    verdict_rows,
)
from calibration.tables.rows import Row, Source, cell_text, located, none_of, place_of
from calibration.tables.vocabulary import Rest, Vocabulary, check_map
from calibration.taxonomy import Taxonomy
from calibration.text import names_there
from calibration.trace_formats.fields import class_of_grade, wrong
from calibration.trace_formats.json_scanner import decode_text
from calibration.trace_formats.reliability_fields import read_violations

R = TypeVar("R", LabelRow, VerdictRow)

SKIPPED, ADJUDICATED = "a skipped trace, no label", "an adjudicated class, no reviewer's label"

TAG_SEPARATOR = "; "
NO_EVIDENCE = {"step_id": "", "quote": ""}


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
    step; empty: nobody asked for any. Rows that are no blind label of a reviewer (skipped,
    adjudicated, exposed) are set aside. Raises InputError if a row is invalid (then nothing of the
    file is stored); CalibrationError if no label is for a trace of the batch.
    """
    taxonomy = store.taxonomy()
    path, words = place_of(source), Vocabulary(mapped=mapped or {}, classes=taxonomy.names)
    read = _named(store, path, label_rows(source))
    check_map(words, path, {row.outcome for row in read})
    every = [
        (replace(row, outcome=words.taken(row.outcome)), _no_label(row, exposed)) for row in read
    ]
    rows = [row for row, why in every if why is None]
    aside = [SetAside(file=path, line=row.line, reason=why) for row, why in every if why]
    named, there = people or {}, {row.reviewer for row in rows}
    for who in named:
        if who not in there:
            known = names_there(who, sorted(there))
            raise InputError(f"--people: no label of {who!r:.80} in {path}; {known}")
    names = [_reviewer(path, row, named) for row in rows]
    marks = [_marks(path, row) for row in rows]
    for row in rows:
        _check_texts(path, row)
    for row in rows:
        _class_of(path, row, taxonomy.names)
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
    return replace(done, set_aside=tuple(aside))


def _no_label(row: LabelRow, exposed: bool) -> str | None:
    if row.adjudicated or not row.outcome:
        return ADJUDICATED if row.adjudicated else SKIPPED
    return EXPOSED if row.exposed and not exposed else None


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


def stored_label_rows(store: Store, batch_id: str) -> list[Row]:
    """Return the labels of a batch as rows for `import_labels` and `read_human_labels`.

    One row a label, a skip or an adjudicated class, with the inverse inclusion probability of its
    trace. Labelled traces first, in the order of the batch: a result on the file adds its numbers
    in the order in which a result on the store does, and has the same last digit.
    """
    names = {r.reviewer_id: r.name for r in store.reviewers()}
    batches = batches_of(store, batch_id)
    traces = store.production_traces(arms=True)
    if len(batches) > 1:
        traces = batches[-1].population(traces)
    items, events, _ = drawn_by(store, batches, traces)
    items = items.set_index("trace_id")
    about = store.trace_frame().set_index("trace_id")
    given: dict[str, list[Row]] = {}
    labelled: set[str] = set()
    for event in events.to_dict("records"):
        label = {str(name): value for name, value in event.items()}
        given.setdefault(label["trace_id"], []).append(_label_row(label, names))
        if label["kind"] == "label" and not label["exposed"]:
            labelled.add(label["trace_id"])
    for trace_id, outcome, *_ in store.consensus_frame().itertuples(index=False):
        if trace_id in labelled:
            given[trace_id].append({"reviewer": "", "outcome": outcome, "adjudicated": "yes"})
    order = [t for t in items.index if t in labelled] + sorted(given.keys() - labelled)
    return [
        dict.fromkeys(LABEL_COLUMNS)
        | row
        | {
            "trace_id": trace_id,
            "weight": _number(1 / items["inclusion_probability"].get(trace_id, float("nan"))),
            "cluster": about["task_key"].get(trace_id),
            "perturbation": _text(about["perturbation"].get(trace_id)),
        }
        for trace_id in order
        for row in sorted(given[trace_id], key=lambda row: (row["adjudicated"], row["reviewer"]))
    ]


def _label_row(label: Row, names: Mapping[str, str]) -> Row:
    confidence = label["confidence"]
    return {
        "reviewer": names[label["reviewer_id"]],
        "outcome": _text(label["outcome"]),
        "adjudicated": "",
        "rationale": _text(label["rationale"]) or _text(label["reason"]),
        **_evidence(label["evidence"]),
        "confidence": None if pd.isna(confidence) else int(confidence),
        "tags": TAG_SEPARATOR.join(json.loads(_text(label["tags"]) or "[]")),
        "sub_goals": _sub_goals_text(label["sub_goals"]),
        "violations": _text(label["violations"]),
        "exposed": "yes" if label["exposed"] and label["kind"] == "label" else "",
    }


def stored_verdict_rows(store: Store, batch_id: str, judge_id: str | None = None) -> list[Row]:
    """Return the verdicts of a judge on the population of a batch, as rows for `read_verdicts`.

    Every trace has a row, `no_verdict` where the judge gave none, and one more for each time it was
    asked again. Raises as `load_batch` and `with_judge`.
    """
    data = with_judge(store, load_batch(store, batch_id, sample=False), judge_id)
    judge = data.provenance.judge_id
    again: dict[str, list[Row]] = {}
    for verdict in store.verdict_samples(judge).to_dict("records"):
        row = {str(name): value for name, value in verdict.items()}
        again.setdefault(row["trace_id"], []).append(row)
    texts = {
        t.trace_id: t.response or "" for t in store.for_review(list(data.labelled["trace_id"]))
    }
    traces = data.traces.assign(
        agent=group_names(data.traces, "agent"),
        started_at=started(data.traces),
        stratum=""
        if data.strata is None
        else [str(k + 1) if k != MISSING else "" for k in data.strata],
    )
    rows: list[Row] = []
    for found in traces.to_dict("records"):
        trace = {str(name): value for name, value in found.items()}
        trace_id = trace["trace_id"]
        of_trace = again.get(trace_id, [])
        if not of_trace or of_trace[0]["sample"] > 0:
            of_trace = [{"outcome": NO_VERDICT, "sample": 0}, *of_trace]
        about = {
            "trace_id": trace_id,
            "judge": judge,
            "workflow": trace["workflow"],
            "task": trace["task_key"],
            "stratum": trace["stratum"],
            **{name: _number(trace[name]) for name in ("cost_usd", "units", "ceiling_usd")},
            "started_at": "" if pd.isna(trace["started_at"]) else trace["started_at"].isoformat(),
            "agent": "" if trace["agent"] == UNKNOWN else trace["agent"],
            "model": _text(trace["model"]),
            "steps": trace["n_steps"],
            "response_chars": len(texts[trace_id]) if trace_id in texts else None,
        }
        rows += [dict.fromkeys(VERDICT_COLUMNS) | about | _verdict_row(row) for row in of_trace]
    return rows


def _verdict_row(verdict: Row) -> Row:
    grade = verdict.get("grade")
    return {
        "outcome": verdict["outcome"],
        "sample": verdict["sample"],
        "of_all": "yes" if verdict.get("of_all") else "",
        "cause": _text(verdict.get("cause")),
        "prompt": _text(verdict.get("prompt")),
        "grade": None if pd.isna(grade) else int(grade),
        "reason": _text(verdict.get("reason")),
        **_evidence(verdict.get("evidence")),
    }


def _evidence(stored: object) -> Row:
    """Return the first quote: a row of CSV has one."""
    first = (json.loads(_text(stored) or "[]") or [NO_EVIDENCE])[0]
    return {"evidence_step": first["step_id"], "evidence_quote": first["quote"]}


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def _sub_goals_text(value: object) -> str:
    sub_goals = json.loads(_text(value) or "{}")
    return json.dumps(sub_goals, ensure_ascii=False) if sub_goals else ""


def _text(value: object) -> str:
    """Return the text of a cell, empty if missing (None or NaN)."""
    return value if isinstance(value, str) else ""
