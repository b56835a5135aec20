"""One trace with all that is known of it: facts, verdicts, events, and who may not see them yet."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from calibration.records import ExpectedCall, Violation
from calibration.store.database import rows
from calibration.store.people import LEAD, StorePart, open_to
from calibration.store.queue import OPEN_TO
from calibration.store.traces import parts_directory, read_part

_FACTS = """
SELECT t.* EXCLUDE (seq, content_hash, n_expected_calls, n_violations, specialists),
  w.ceiling_usd, w.unit,
  coalesce(used.calls, 0) AS tool_calls, coalesce(used.errors, 0) AS tool_errors,
  coalesce((
    SELECT list(i.batch_id ORDER BY b.created_at) FROM batch_item i JOIN batch b USING (batch_id)
    WHERE i.trace_id = t.trace_id AND b.purpose = 'production'
  ), []) AS batches
FROM trace t LEFT JOIN workflow w ON w.name = t.workflow
LEFT JOIN (
  SELECT trace_id, sum(calls)::INTEGER AS calls, sum(errors)::INTEGER AS errors
  FROM trace_tool WHERE NOT by_user GROUP BY trace_id
) AS used ON used.trace_id = t.trace_id
WHERE t.trace_id = ?
"""

_EVENTS = """
SELECT created_at, 'import' AS event, NULL AS who, NULL AS batch_id, NULL AS outcome,
  NULL AS reason, 0 AS seq
FROM trace WHERE trace_id = $trace
UNION ALL SELECT min(created_at), 'verdict', judge_id, NULL, outcome, reason, 0
FROM verdict WHERE trace_id = $trace GROUP BY judge_id, sample, outcome, reason
UNION ALL SELECT created_at, kind, reviewer_id, batch_id, outcome, coalesce(reason, rationale), seq
FROM label_event WHERE trace_id = $trace
UNION ALL SELECT created_at, kind, reviewer_id, batch_id, NULL, reason, seq
FROM flag_event WHERE trace_id = $trace
UNION ALL SELECT created_at, kind, adjudicator, batch_id, outcome, rationale, seq
FROM adjudication_event WHERE trace_id = $trace
UNION ALL SELECT created_at, 'shown ' || what, reviewer_id, NULL, NULL, NULL, seq
FROM exposure WHERE trace_id = $trace
ORDER BY created_at, seq
"""

# What a lead can still decide without having seen others: open traces of batches, traces given to
# them, and disputed or flagged ones that nobody has adjudicated.
_BLIND = f"""
SELECT trace_id FROM (
  {OPEN_TO} AND coalesce(b.reviewer_id, $reviewer) = $reviewer
  UNION ALL
  SELECT trace_id FROM (
    SELECT batch_id, trace_id FROM batch_item SEMI JOIN (
      FROM batch WHERE reviewer_id = $reviewer
    ) USING (batch_id)
    UNION ALL SELECT batch_id, trace_id FROM lease WHERE reviewer_id = $reviewer
  ) ANTI JOIN (FROM label_event WHERE reviewer_id = $reviewer) USING (batch_id, trace_id)
  UNION ALL
  (SELECT trace_id FROM label_current JOIN batch b USING (batch_id)
   WHERE b.purpose = 'production' AND kind = 'label' AND taxonomy_version = $version
   GROUP BY trace_id, batch_id HAVING count(DISTINCT outcome) > 1
   UNION ALL SELECT trace_id FROM flag_current
   EXCEPT SELECT trace_id FROM consensus WHERE taxonomy_version = $version)
) WHERE list_contains($traces::VARCHAR[], trace_id) AND trace_id NOT IN (
  SELECT trace_id FROM exposure WHERE reviewer_id = $reviewer
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """What a store knows of a run beside its text; most of it is hidden from reviewers."""

    trace_id: str
    source: str
    source_id: str
    workflow: str
    task_id: str
    task_key: str
    trial: int
    model: str | None
    agent_version: str | None
    agent_tag: str
    status: str | None
    started_at: datetime | None  # UTC
    latency_s: float | None
    cost_usd: float | None
    ceiling_usd: float | None  # per unit
    unit: str | None
    units: float
    total_tokens: int | None
    n_steps: int
    tool_calls: int
    tool_errors: int
    possible_duplicate_of: str | None
    simulated: bool
    created_at: datetime  # of the import, UTC
    batches: tuple[str, ...]  # of production, oldest first
    success_criteria: str | None
    metadata: dict[str, Any]
    perturbation: str | None = None
    confidence: float | None = None
    context_tokens: int | None = None
    expected_calls: tuple[ExpectedCall, ...] | None = None
    violations: tuple[Violation, ...] | None = None


class TraceRecordStore(StorePart):
    """All that is known of one trace."""

    @open_to(LEAD)
    def trace_facts(self, trace_id: str) -> TraceFacts | None:
        """Return the facts of a trace; None if it is not in the store."""
        with self._db.read() as cursor:
            found = rows(cursor, _FACTS, [trace_id])
        if not found:
            return None
        row = found[0]
        part = parts_directory(self._db.path) / row.pop("part")
        hidden = json.loads(read_part(part, [trace_id], "hidden")[trace_id])
        # A part of before has neither.
        for name, kind in (("expected_calls", ExpectedCall), ("violations", Violation)):
            if hidden.get(name) is not None:
                hidden[name] = tuple(kind(**one) for one in hidden[name])
        return TraceFacts(**row | {"batches": tuple(row["batches"])}, **hidden)

    @open_to(LEAD)
    def trace_verdicts(self, trace_id: str) -> pd.DataFrame:
        """Return the verdicts on a trace, by judge and sample.

        Columns: judge_id, sample, outcome, grade, reason, evidence and detail (JSON text), cause,
        cost_usd.
        """
        return self._frame(
            "SELECT judge_id, sample, outcome, grade, reason, evidence, cause, cost_usd, detail "
            "FROM verdict "
            "WHERE trace_id = ? ORDER BY judge_id, sample",
            [trace_id],
        )

    @open_to(LEAD)
    def trace_events(self, trace_id: str) -> pd.DataFrame:
        """Return all that happened to a trace, oldest first.

        Columns: created_at, event, who (a person or judge), batch_id, outcome, reason. Events:
        import, verdict, label, undo, skip, flag, unflag, consensus, withdrawal, and what somebody
        was shown of the trace (``shown labels``).
        """
        return self._frame(_EVENTS, {"trace": trace_id}).drop(columns="seq")

    @open_to(LEAD, oneself="reviewer_id")
    def still_blind(self, reviewer_id: str, trace_ids: Sequence[str]) -> set[str]:
        """Return which of these traces a lead may still label or adjudicate blind.

        Not those of which the lead has seen a label or verdict.
        """
        named = {
            "reviewer": reviewer_id, "version": self._rules().version, "traces": list(trace_ids),
        }  # fmt: skip
        with self._db.read() as cursor:
            return {row[0] for row in cursor.execute(_BLIND, named).fetchall()}
