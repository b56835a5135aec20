"""Which traces may be put in for a reviewer: silent gold, and repeats of own labels."""

from datetime import datetime
from typing import Any

from calibration.records import REFERENCE_SOURCE
from calibration.reviewing.inserts import GOLD, GOLD_REVIEWERS, REPEAT, REPEAT_AFTER
from calibration.store.database import Cursor, rows

# Nobody is put a trace in that they know, or that will come to them by itself.
_OPEN_TO = """
  SELECT i.trace_id FROM batch_item i JOIN batch b USING (batch_id)
  LEFT JOIN (
    SELECT batch_id, trace_id, count(*) AS labels, bool_or(reviewer_id = $reviewer) AS mine
    FROM label_current WHERE taxonomy_version = $version AND kind = 'label'
    GROUP BY batch_id, trace_id
  ) AS l ON l.batch_id = i.batch_id AND l.trace_id = i.trace_id
  WHERE b.purpose = 'production' AND coalesce(labels, 0) < i.labels_wanted
  AND NOT coalesce(mine, false)
"""
_JUDGED_BY = """
  SELECT trace_id FROM exposure WHERE reviewer_id = $reviewer
  UNION ALL SELECT trace_id FROM adjudication_event WHERE adjudicator = $reviewer
  UNION ALL SELECT trace_id FROM flag_event WHERE reviewer_id = $reviewer
"""
_GOLD = f"""
SELECT c.trace_id, t.workflow, c.event_id AS against, c.outcome, false AS here
FROM consensus c JOIN trace t USING (trace_id) JOIN (
  SELECT trace_id FROM label_current SEMI JOIN (FROM batch WHERE purpose = 'production')
    USING (batch_id)
  WHERE kind = 'label' AND taxonomy_version = $version
  GROUP BY trace_id HAVING count(DISTINCT reviewer_id) >= {GOLD_REVIEWERS}
) USING (trace_id)
WHERE c.taxonomy_version = $version AND t.source <> '{REFERENCE_SOURCE}'
AND list_contains($workflows::VARCHAR[], t.workflow)
AND c.trace_id NOT IN (
  SELECT trace_id FROM label_event WHERE reviewer_id = $reviewer
  UNION ALL SELECT trace_id FROM lease WHERE reviewer_id = $reviewer
  -- Put in a moment ago for the same answer, and so not claimed yet.
  UNION ALL SELECT trace_id FROM inserted WHERE reviewer_id = $reviewer
  UNION ALL {_JUDGED_BY}
)
AND c.trace_id NOT IN ({_OPEN_TO})
"""
_REPEAT = f"""
SELECT l.trace_id, t.workflow, l.event_id AS against, l.outcome, l.batch_id = $batch AS here
FROM label_current l SEMI JOIN (FROM batch WHERE purpose = 'production') USING (batch_id)
JOIN trace t USING (trace_id)
WHERE l.reviewer_id = $reviewer AND l.kind = 'label' AND l.taxonomy_version = $version
AND t.source <> '{REFERENCE_SOURCE}' AND list_contains($workflows::VARCHAR[], t.workflow)
AND l.trace_id NOT IN (
  SELECT trace_id FROM label_event WHERE reviewer_id = $reviewer AND created_at > $cutoff
  UNION ALL SELECT trace_id FROM lease WHERE reviewer_id = $reviewer AND expires_at > $cutoff
  UNION ALL SELECT trace_id FROM inserted WHERE reviewer_id = $reviewer
  UNION ALL {_JUDGED_BY}
)
AND l.trace_id NOT IN ({_OPEN_TO})
QUALIFY row_number() OVER (PARTITION BY l.trace_id ORDER BY l.seq DESC) = 1
"""
_CANDIDATES = {GOLD: _GOLD, REPEAT: _REPEAT}


def candidates(
    cursor: Cursor,
    kind: str,
    *,
    reviewer: str,
    version: str,
    batch: str,
    workflows: list[str],
    now: datetime,
) -> list[dict[str, Any]]:
    """Return trace_id, workflow, against, outcome and here of what may be put in."""
    named: Any = {"reviewer": reviewer, "version": version, "workflows": workflows}
    if kind == REPEAT:
        named |= {"batch": batch, "cutoff": now - REPEAT_AFTER}
    return rows(cursor, _CANDIDATES[kind], named)
