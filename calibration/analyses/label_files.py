"""Labels as files: those made elsewhere brought in, those of a batch taken out."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from calibration.analyses.rows import Row, guard, outcome_field, read_rows, text_field
from calibration.errors import CalibrationError, InputError, LabelRefusedError
from calibration.records import CONFIDENCES, OUTCOMES, Evidence, LabelDraft
from calibration.store import LabelsStored, Store, check_sub_goals, clean_tags, import_token
from calibration.taxonomy import Taxonomy

LABEL_COLUMNS = (
    "trace_id", "reviewer", "outcome", "rationale", "evidence_step", "evidence_quote",
    "confidence", "tags", "sub_goals",
)  # fmt: skip
TAG_SEPARATOR = "; "
NO_EVIDENCE = {"step_id": "", "quote": ""}


def import_labels(store: Store, path: Path, *, batch_id: str) -> LabelsStored:
    """Store the labels of a CSV or JSONL file: trace_id, reviewer, outcome, optional rest.

    Tags are parted by semicolons; `sub_goals` is a JSON object of states by sub-goal id.

    Raises
    ------
    InputError
        If a row is not what it must be: nothing of the file is stored then.
    CalibrationError
        If no label is for a trace of the batch.
    """
    taxonomy = store.taxonomy()
    rows = list(read_rows(path, required=LABEL_COLUMNS[:3]))
    checked = [_checked(path, line, row) for line, row in rows]
    people: dict[str, str] = {}
    for (line, _), row in zip(rows, checked, strict=True):
        name = str(row["reviewer"])
        if name not in people:
            try:
                people[name] = store.add_reviewer(name).reviewer_id
            except InputError as error:
                raise InputError(f"{path}, line {line}, field 'reviewer': {error}") from error
    drafts = [_draft(taxonomy, batch_id, people[str(row["reviewer"])], row) for row in checked]
    done = store.import_labels(batch_id, drafts)
    if drafts and not (done.stored or done.already_there or done.changed):
        raise CalibrationError(
            f"{path}: none of its {len(drafts)} labels is for a trace of batch {batch_id!r}; "
            "name the batch with --batch"
        )
    return done


def _checked(path: Path, line: int, row: Row) -> Row:
    """Return a row with every field as it will be stored."""
    texts = {
        name: text_field(row, name, path=path, line=line)
        for name in ("rationale", "evidence_step", "evidence_quote")
    }
    name = " ".join(str(row["reviewer"]).split())
    if not any(map(str.isalnum, name)) or len(name) > 80:
        raise InputError(
            f"{path}, line {line}, field 'reviewer': must have 1 to 80 letters or digits, "
            f"got {name!r:.100}"
        )
    outcome = outcome_field(row, OUTCOMES, path=path, line=line)
    return (
        {"trace_id": str(row["trace_id"]).strip(), "reviewer": name, "outcome": outcome}
        | texts
        | _checked_marks(path, line, row)
    )


def _checked_marks(path: Path, line: int, row: Row) -> Row:
    """Return confidence, tags and sub-goals of a row; a list or an object may stand as itself."""
    tags, given = row.get("tags") or (), row.get("sub_goals") or "{}"
    at = "confidence"
    try:
        confidence = _confidence(row.get(at))
        at = "tags"
        cleaned = clean_tags([tags] if isinstance(tags, str) else list(map(str, tags)))
        at = "sub_goals"
        sub_goals = json.loads(given) if isinstance(given, str) else given
        if not isinstance(sub_goals, dict):
            raise ValueError(f"must be an object, got {given!r:.80}")
        check_sub_goals(sub_goals, sub_goals)
    except (LabelRefusedError, ValueError, TypeError) as error:
        raise InputError(f"{path}, line {line}, field {at!r}: {error}") from error
    return {"confidence": confidence, "tags": cleaned, "sub_goals": sub_goals}


def _confidence(value: Any) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool) or str(value) not in map(str, CONFIDENCES):
        raise ValueError(f"must be 1, 2 or 3, got {value!r:.80}")
    return int(value)


def _draft(taxonomy: Taxonomy, batch_id: str, reviewer_id: str, row: Row) -> LabelDraft:
    evidence = Evidence(step_id=row["evidence_step"] or "", quote=row["evidence_quote"] or "")
    return LabelDraft(
        client_token=import_token(
            batch_id, taxonomy.version, reviewer_id, row["trace_id"], row["outcome"]
        ),
        trace_id=row["trace_id"],
        reviewer_id=reviewer_id,
        batch_id=batch_id,
        answers=taxonomy.answers_for(row["outcome"]),
        rationale=row["rationale"],
        evidence=(evidence,) if evidence.quote else (),
        confidence=row["confidence"],
        tags=row["tags"],
        sub_goals=row["sub_goals"],
    )


def label_rows(store: Store, batch_id: str) -> list[dict[str, str]]:
    """Return the current labels of a batch as rows that `import_labels` reads back."""
    names = {r.reviewer_id: r.name for r in store.reviewers()}
    frame = store.label_frame(batch_id)
    rows = []
    for label in frame[frame["kind"] == "label"].to_dict("records"):
        evidence = (json.loads(_text(label["evidence"]) or "[]") or [NO_EVIDENCE])[0]
        values = (
            label["trace_id"], names[label["reviewer_id"]], label["outcome"],
            _text(label["rationale"]), evidence["step_id"], evidence["quote"],
            "" if pd.isna(label["confidence"]) else int(label["confidence"]),
            TAG_SEPARATOR.join(json.loads(_text(label["tags"]) or "[]")),
            _sub_goals_text(label["sub_goals"]),
        )  # fmt: skip
        rows.append(dict(zip(LABEL_COLUMNS, map(guard, map(str, values)), strict=True)))
    return sorted(rows, key=lambda row: (row["trace_id"], row["reviewer"]))


def _sub_goals_text(value: object) -> str:
    sub_goals = json.loads(_text(value) or "{}")
    return json.dumps(sub_goals, ensure_ascii=False) if sub_goals else ""


def _text(value: object) -> str:
    """Return a text of a frame; missing ones (None or NaN) are empty."""
    return value if isinstance(value, str) else ""
