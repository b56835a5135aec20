"""Labels that were made elsewhere, taken into a batch in one transaction."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from calibration.errors import InputError
from calibration.records import LabelDraft
from calibration.store.admission import is_exam
from calibration.store.database import Cursor, Database, record_audit, utc_now
from calibration.store.label_checks import clean_tags
from calibration.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsStored:
    """What became of imported labels; `changed` lists (trace, reviewer) labelled otherwise."""

    stored: int
    already_there: int
    changed: tuple[tuple[str, str], ...]
    not_in_batch: tuple[str, ...]


def import_token(
    batch_id: str, taxonomy_version: str, reviewer_id: str, trace_id: str, outcome: str
) -> str:
    """Return the client token of an imported label: the same row is the same label."""
    key = json.dumps([batch_id, taxonomy_version, reviewer_id, trace_id, outcome])
    return "import-" + hashlib.sha256(key.encode()).hexdigest()[:24]


def import_labels(
    db: Database, taxonomy: Taxonomy, batch_id: str, drafts: Sequence[LabelDraft]
) -> LabelsStored:
    """Store labels of a batch once each; a label that is already there is never overwritten.

    Unlike a label from the Label page these need no lease and no evidence: whoever made them
    saw the trace elsewhere.
    """
    with db.write() as cursor:
        if is_exam(cursor, batch_id):
            raise InputError(f"batch {batch_id!r} is an examination: nothing is imported into it")
        items = _column(cursor, "SELECT trace_id FROM batch_item WHERE batch_id = ?", [batch_id])
        tokens = _column(
            cursor, "SELECT client_token FROM label_event WHERE batch_id = ?", [batch_id]
        )
        people = dict(cursor.execute("SELECT reviewer_id, simulated FROM reviewer").fetchall())
        traces = dict(cursor.execute("SELECT trace_id, simulated FROM trace").fetchall())
        current = {
            (trace_id, reviewer_id): outcome
            for trace_id, reviewer_id, outcome in cursor.execute(
                "SELECT trace_id, reviewer_id, outcome FROM label_current "
                "WHERE batch_id = ? AND taxonomy_version = ? AND kind = 'label'",
                [batch_id, taxonomy.version],
            ).fetchall()
        }
        fresh: dict[tuple[str, str], tuple[LabelDraft, str]] = {}
        changed, missing, already = [], [], 0
        for draft in drafts:
            key = (draft.trace_id, draft.reviewer_id)
            outcome = taxonomy.outcome(draft.answers)
            stored = current.get(key) or (fresh[key][1] if key in fresh else None)
            if draft.trace_id not in items:
                missing.append(draft.trace_id)
            elif draft.reviewer_id not in people:
                raise InputError(f"reviewer {draft.reviewer_id!r} is not in the store; add them")
            # Also a label that was taken back since: importing it again does not undo that.
            elif stored is None and draft.client_token in tokens:
                already += 1
            elif stored is None:
                fresh[key] = (draft, outcome)
            elif stored == outcome:
                already += 1
            else:
                changed.append(key)
        simulated = [people[d.reviewer_id] or traces[d.trace_id] for d, _ in fresh.values()]
        insert_labels(cursor, taxonomy, batch_id, list(fresh.values()), simulated)
        if fresh:
            record_audit(cursor, "labels imported", batch_id=batch_id, stored=len(fresh))
    return LabelsStored(
        stored=len(fresh),
        already_there=already,
        changed=tuple(changed),
        not_in_batch=tuple(dict.fromkeys(missing)),
    )


def _column(cursor: Cursor, sql: str, values: list[str]) -> set[str]:
    return {row[0] for row in cursor.execute(sql, values).fetchall()}


def insert_labels(
    cursor: Cursor,
    taxonomy: Taxonomy,
    batch_id: str,
    fresh: list[tuple[LabelDraft, str]],
    simulated: list[bool],
) -> None:
    """Append labels, all of one moment."""
    if not fresh:
        return
    drafts = [draft for draft, _ in fresh]
    text = pa.string()
    table = pa.table(
        {
            "client_token": [draft.client_token for draft in drafts],
            "trace_id": [draft.trace_id for draft in drafts],
            "reviewer_id": [draft.reviewer_id for draft in drafts],
            "answers": [json.dumps(draft.answers) for draft in drafts],
            "outcome": [outcome for _, outcome in fresh],
            "rationale": pa.array([draft.rationale for draft in drafts], text),
            "evidence": [json.dumps([asdict(e) for e in draft.evidence]) for draft in drafts],
            "confidence": pa.array([draft.confidence for draft in drafts], pa.int32()),
            "tags": [json.dumps(clean_tags(draft.tags)) for draft in drafts],
            "sub_goals": [json.dumps(draft.sub_goals) for draft in drafts],
            "seconds_active": pa.array([d.seconds_active for d in drafts], pa.float64()),
            "simulated": simulated,
        }
    )
    cursor.register("incoming", table)
    cursor.execute(
        "INSERT INTO label_event BY NAME SELECT *, nextval('event_seq') AS seq, 'label' AS kind, "
        "?::VARCHAR AS batch_id, ?::VARCHAR AS taxonomy_version, ?::TIMESTAMP AS created_at "
        "FROM incoming",
        [batch_id, taxonomy.version, utc_now()],
    )
    cursor.unregister("incoming")
