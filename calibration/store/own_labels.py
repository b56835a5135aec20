"""What a reviewer may see again of their own work: labels, tags and pace; nobody else's."""

from dataclasses import dataclass
from datetime import datetime

from calibration.store.database import Database, rows
from calibration.store.parts import parts_directory, read_tasks
from calibration.taxonomy import Taxonomy

FIRST_WORDS = 120
PACE_LABELS, PACE_NEEDS = 20, 5


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
    """Return the reviewer's own current labels of a batch, newest first."""
    with db.read() as cursor:
        found = rows(
            cursor,
            "SELECT l.trace_id, outcome, l.created_at, t.part FROM label_current l "
            "JOIN trace t USING (trace_id) WHERE reviewer_id = ? AND batch_id = ? "
            "AND taxonomy_version = ? AND kind = 'label' ORDER BY l.seq DESC LIMIT ?",
            [reviewer_id, batch_id, taxonomy.version, limit],
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


def own_tags(db: Database, reviewer_id: str, batch_id: str, limit: int = 50) -> list[str]:
    """Return the tags that this reviewer has used in a batch, the most used first.

    Only their own: a tag of somebody else tells what they thought of a trace.
    """
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT tag FROM (SELECT unnest(from_json(tags, '[\"VARCHAR\"]')) AS tag, seq "
            "FROM label_event WHERE reviewer_id = ? AND batch_id = ? AND kind = 'label') "
            "GROUP BY tag ORDER BY count(*) DESC, max(seq) DESC, tag LIMIT ?",
            [reviewer_id, batch_id, limit],
        ).fetchall()
    return [row[0] for row in found]


def pace(db: Database, reviewer_id: str, batch_id: str) -> float | None:
    """Return the median active seconds of a reviewer's last 20 labels; None below five.

    A label that was taken back since counts: the time was spent.
    """
    with db.read() as cursor:
        ((n, median),) = cursor.execute(
            "SELECT count(*), median(seconds_active) FROM (SELECT seconds_active "
            "FROM label_event WHERE reviewer_id = ? AND batch_id = ? AND kind = 'label' "
            "AND seconds_active IS NOT NULL ORDER BY seq DESC LIMIT ?)",
            [reviewer_id, batch_id, PACE_LABELS],
        ).fetchall()
    return float(median) if n >= PACE_NEEDS else None
