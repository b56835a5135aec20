"""Checks of reviewers that were made elsewhere: second labels, and labels of settled traces."""

from collections.abc import Sequence

from calibration.errors import InputError
from calibration.records import LabelDraft
from calibration.reviewing.inserts import GOLD, REPEAT
from calibration.store.companions import add_companion, companion
from calibration.store.database import Cursor, Database, record_audit, utc_now
from calibration.store.label_import import insert_labels
from calibration.taxonomy import Taxonomy

# What an insert is held against: the own label of the batch, else the consensus.
_AGAINST = """
SELECT 'repeat', event_id, outcome FROM label_current WHERE batch_id = $batch
AND reviewer_id = $reviewer AND trace_id = $trace AND taxonomy_version = $version
AND kind = 'label'
UNION ALL SELECT 'gold', event_id, outcome FROM consensus
WHERE trace_id = $trace AND taxonomy_version = $version
"""


def import_inserts(
    db: Database, taxonomy: Taxonomy, batch_id: str, drafts: Sequence[LabelDraft]
) -> int:
    """Store checks of a batch once each, in their order; return how many are new.

    A trace that carries the reviewer's label of the batch is a repeat of it, one with a consensus
    is gold. The labels count nowhere but for drift and self-agreement.

    Raises
    ------
    InputError
        If a trace carries neither.
    """
    with db.write() as cursor:
        people = dict(cursor.execute("SELECT reviewer_id, simulated FROM reviewer").fetchall())
        traces = dict(cursor.execute("SELECT trace_id, simulated FROM trace").fetchall())
        known = {
            (reviewer_id, trace_id): slot
            for reviewer_id, trace_id, slot in cursor.execute(
                "SELECT reviewer_id, trace_id, slot FROM inserted WHERE batch_id = ? "
                "AND taxonomy_version = ?",
                [batch_id, taxonomy.version],
            ).fetchall()
        }
        fresh = []
        for draft in drafts:
            if draft.reviewer_id not in people or draft.trace_id not in traces:
                raise InputError(
                    f"no reviewer {draft.reviewer_id!r} or no trace {draft.trace_id!r} in the store"
                )
            if (draft.reviewer_id, draft.trace_id) in known:
                continue
            own = [slot for (who, _), slot in known.items() if who == draft.reviewer_id]
            slot = max(own, default=-1) + 1
            _insert(cursor, taxonomy.version, batch_id, draft, slot)
            known[draft.reviewer_id, draft.trace_id] = slot
            fresh.append((draft, taxonomy.outcome(draft.answers)))
        if fresh:
            add_companion(cursor, batch_id, utc_now())
            simulated = [people[d.reviewer_id] or traces[d.trace_id] for d, _ in fresh]
            insert_labels(cursor, taxonomy, companion(batch_id), fresh, simulated)
            record_audit(cursor, "checks imported", batch_id=batch_id, stored=len(fresh))
    return len(fresh)


def _insert(cursor: Cursor, version: str, batch_id: str, draft: LabelDraft, slot: int) -> None:
    named = {
        "batch": batch_id,
        "reviewer": draft.reviewer_id,
        "trace": draft.trace_id,
        "version": version,
    }
    found = {kind: rest for kind, *rest in cursor.execute(_AGAINST, named).fetchall()}
    kind = REPEAT if REPEAT in found else GOLD
    if kind not in found:
        raise InputError(
            f"trace {draft.trace_id!r} has no consensus, and no label of {draft.reviewer_id!r} in "
            f"batch {batch_id!r}: there is nothing to hold a check against"
        )
    cursor.execute(
        "INSERT INTO inserted (batch_id, reviewer_id, trace_id, taxonomy_version, kind, slot, "
        "against, outcome, seq, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, nextval('event_seq'), ?)",
        [
            batch_id, draft.reviewer_id, draft.trace_id, version, kind, slot, *found[kind],
            utc_now(),
        ],
    )  # fmt: skip
