"""What leads ask of inserts: what became of them, and what could be put in."""

import pandas as pd

from calibration.reviewing.inserts import GOLD, REPEAT, REPEAT_AFTER
from calibration.store.companions import SUFFIX
from calibration.store.database import Database, utc_now
from calibration.store.insert_candidates import candidates


def insert_frame(db: Database, taxonomy_version: str) -> pd.DataFrame:
    """Return every insert that was decided, in the order of the decisions.

    Columns: reviewer_id, trace_id, workflow, batch_id, kind (gold or repeat), slot, against
    (class of the consensus, or of the first label), given (class; missing: a skip), blind (nobody
    showed the reviewer meanwhile what others said), flag (reason or an empty text; missing: not
    flagged), simulated, at, week (ISO, for instance 2026-W07).
    """
    with db.read() as cursor:
        return cursor.execute(
            "SELECT i.reviewer_id, i.trace_id, t.workflow, i.batch_id, i.kind, i.slot, "
            "i.outcome AS against, l.outcome AS given, NOT EXISTS (SELECT 1 FROM exposure e "
            "WHERE e.reviewer_id = i.reviewer_id AND e.trace_id = i.trace_id AND e.seq < l.seq) "
            "AS blind, CASE WHEN f.seq IS NOT NULL THEN coalesce(f.reason, '') END AS flag, "
            "l.simulated, l.created_at AS at, strftime(l.created_at, '%G-W%V') AS week "
            "FROM inserted i JOIN trace t USING (trace_id) JOIN label_current l "
            "ON l.batch_id = i.batch_id || ? AND l.reviewer_id = i.reviewer_id "
            "AND l.trace_id = i.trace_id AND l.taxonomy_version = i.taxonomy_version "
            "LEFT JOIN flag_current f ON f.batch_id = l.batch_id "
            "AND f.reviewer_id = l.reviewer_id AND f.trace_id = l.trace_id "
            "WHERE i.taxonomy_version = ? ORDER BY l.seq",
            [SUFFIX, taxonomy_version],
        ).df()


def insert_pools(db: Database, taxonomy_version: str, batch_id: str) -> pd.DataFrame:
    """Return what could be put in, by reviewer and workflow of a batch.

    Columns: reviewer_id, workflow, gold, repeats (traces) and repeats_from (when the first own
    label is old enough; missing: there is none).
    """
    now, found = utc_now(), []
    with db.read() as cursor:
        named = cursor.execute(
            "SELECT DISTINCT t.workflow FROM batch_item JOIN trace t USING (trace_id) "
            "WHERE batch_id = ? ORDER BY 1",
            [batch_id],
        ).fetchall()
        first = cursor.execute(
            "SELECT reviewer_id, workflow, min(l.created_at) FROM label_current l "
            "SEMI JOIN (FROM batch WHERE purpose = 'production') USING (batch_id) "
            "JOIN trace t USING (trace_id) WHERE kind = 'label' AND taxonomy_version = ? "
            "GROUP BY ALL",
            [taxonomy_version],
        ).fetchall()
        begun = {(who, workflow): at + REPEAT_AFTER for who, workflow, at in first}
        workflows = [row[0] for row in named]
        people = cursor.execute("SELECT reviewer_id FROM reviewer ORDER BY 1").fetchall()
        for (reviewer,) in people:
            by_kind = {
                kind: candidates(
                    cursor, kind, reviewer=reviewer, version=taxonomy_version, batch=batch_id,
                    workflows=workflows, now=now,
                )
                for kind in (GOLD, REPEAT)
            }  # fmt: skip
            found += [
                {
                    "reviewer_id": reviewer,
                    "workflow": name,
                    "gold": sum(c["workflow"] == name for c in by_kind[GOLD]),
                    "repeats": sum(c["workflow"] == name for c in by_kind[REPEAT]),
                    "repeats_from": begun.get((reviewer, name)),
                }
                for name in workflows
            ]
    columns = ["reviewer_id", "workflow", "gold", "repeats", "repeats_from"]
    return pd.DataFrame(found, columns=columns)
