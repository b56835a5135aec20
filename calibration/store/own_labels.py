"""What a reviewer may see again of their own work: their labels, nobody else's."""

from dataclasses import dataclass
from datetime import datetime

from calibration.store.companions import both
from calibration.store.database import Database, rows
from calibration.store.parts import parts_directory, read_tasks
from calibration.taxonomy import Taxonomy

FIRST_WORDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLabel:
    """One current label of a reviewer, with the first words of its task."""

    trace_id: str
    outcome: str
    created_at: datetime
    task: str


def own_labels(
    db: Database, taxonomy: Taxonomy, reviewer_id: str, batch_id: str, limit: int
) -> list[OwnLabel]:
    """Return the reviewer's own current labels of a batch, newest first.

    A trace that was put in again stands there once, with its newest label.
    """
    with db.read() as cursor:
        found = rows(
            cursor,
            "SELECT l.trace_id, outcome, l.created_at, t.part FROM label_current l "
            "JOIN trace t USING (trace_id) WHERE reviewer_id = ? AND batch_id IN (?, ?) "
            "AND taxonomy_version = ? AND kind = 'label' "
            "QUALIFY row_number() OVER (PARTITION BY l.trace_id ORDER BY l.seq DESC) = 1 "
            "ORDER BY l.seq DESC LIMIT ?",
            [reviewer_id, *both(batch_id), taxonomy.version, limit],
        )
        tasks: dict[str, str] = {}
        for part in {row["part"] for row in found}:
            ids = [row["trace_id"] for row in found if row["part"] == part]
            tasks |= read_tasks(cursor, parts_directory(db.path) / part, ids, 4 * FIRST_WORDS)
    return [
        OwnLabel(
            trace_id=row["trace_id"],
            outcome=row["outcome"],
            created_at=row["created_at"],
            task=" ".join(tasks.get(row["trace_id"], "").split())[:FIRST_WORDS],
        )
        for row in found
    ]
