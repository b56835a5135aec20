"""Reads for statistics: one frame a question, nothing looped over in Python."""

import pandas as pd

from calibration.records import SOURCE_JUDGE
from calibration.store.database import Database


def traces(db: Database) -> pd.DataFrame:
    """Return the index of all traces, one row each, in the order of import.

    Columns: trace_id, seq, source, workflow, task_key, trial, model, agent_version, status,
    started_at, latency_s, n_steps, cost_usd (missing: NaN), units, ceiling_usd (missing: NaN),
    simulated.
    """
    return _frame(
        db,
        "SELECT trace_id, seq, source, t.workflow, task_key, trial, model, agent_version, "
        "status, started_at, latency_s, n_steps, cost_usd, units, w.ceiling_usd, simulated "
        "FROM trace t LEFT JOIN workflow w ON w.name = t.workflow ORDER BY seq",
    )


def labels(
    db: Database, batch_id: str, taxonomy_version: str, trace_id: str | None = None
) -> pd.DataFrame:
    """Return the current labels and skips of a batch, or of one of its traces.

    Columns: trace_id, reviewer_id, kind, outcome, answers (JSON text), rationale, evidence
    (JSON text), confidence (1 to 3; missing: NA), tags and sub_goals (JSON text),
    seconds_active, reason, simulated, created_at, exposed (the reviewer had been shown what
    others said of the trace).
    """
    return _frame(
        db,
        "SELECT trace_id, reviewer_id, kind, outcome, answers, rationale, evidence, confidence, "
        "tags, sub_goals, seconds_active, reason, simulated, created_at, EXISTS (SELECT 1 FROM "
        "exposure e WHERE e.reviewer_id = l.reviewer_id AND e.trace_id = l.trace_id "
        "AND e.seq < l.seq) AS exposed FROM label_current l "
        "WHERE batch_id = ? AND taxonomy_version = ? AND (? IS NULL OR trace_id = ?) ORDER BY seq",
        [batch_id, taxonomy_version, trace_id, trace_id],
    )


def label_state(db: Database) -> tuple[int, int]:
    """Return what changes with every label, skip and undo, and with every adjudication."""
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT (SELECT coalesce(max(seq), 0) FROM label_event), "
            "(SELECT coalesce(max(seq), 0) FROM adjudication_event)"
        ).fetchone()
    return (0, 0) if found is None else (int(found[0]), int(found[1]))


def result_state(db: Database) -> tuple[int, int, int]:
    """Return what changes with everything that a corrected rate depends on.

    That is `label_state`, and a number that grows when traces, verdicts or ceilings come in.
    """
    with db.read() as cursor:
        found = cursor.execute(
            "SELECT coalesce(max(seq), 0) FROM audit "
            "WHERE what IN ('import', 'verdicts', 'workflow')"
        ).fetchone()
    return (*label_state(db), 0 if found is None else int(found[0]))


def flags(db: Database, batch_id: str) -> pd.DataFrame:
    """Return the flags of a batch that stand, for the lead, oldest first.

    Columns: trace_id, reviewer_id, reason (missing: none was given), simulated, created_at.
    """
    return _frame(
        db,
        "SELECT trace_id, reviewer_id, reason, simulated, created_at FROM flag_current "
        "WHERE batch_id = ? ORDER BY seq",
        [batch_id],
    )


def batch_items(db: Database, batch_id: str) -> pd.DataFrame:
    """Return trace_id, position, inclusion_probability, labels_wanted and stratum, in order.

    A stratum is a place in the strata that the design names; NA where none were drawn from.
    """
    return _frame(
        db,
        "SELECT trace_id, position, inclusion_probability, labels_wanted, stratum "
        "FROM batch_item WHERE batch_id = ? ORDER BY position",
        [batch_id],
    )


def consensus(db: Database, taxonomy_version: str) -> pd.DataFrame:
    """Return trace_id, outcome and simulated of every adjudicated trace."""
    return _frame(
        db,
        "SELECT trace_id, outcome, simulated FROM consensus WHERE taxonomy_version = ?",
        [taxonomy_version],
    )


def verdicts(db: Database, judge_id: str) -> pd.DataFrame:
    """Return the first verdict of a judge on each trace: trace_id, judge_id, outcome, proposed.

    The judge ``source:`` stands for the grades that came with the traces, whatever their
    format; a trace has at most one of them.
    """
    return _frame(
        db,
        "SELECT trace_id, judge_id, outcome, proposed FROM verdict "
        "WHERE sample = 0 AND (judge_id = ? OR (? = ? AND starts_with(judge_id, ?))) "
        "ORDER BY trace_id",
        [judge_id, judge_id, SOURCE_JUDGE, SOURCE_JUDGE],
    )


def verdict_samples(db: Database, judge_id: str) -> pd.DataFrame:
    """Return every verdict of a judge, with the ones it gave when asked again.

    Columns: trace_id, sample, outcome, grade (1 to 5; missing: NaN), reason, evidence (JSON text),
    in order of both. The judge
    ``source:`` stands for all grades that came with the traces.
    """
    return _frame(
        db,
        "SELECT trace_id, sample, outcome, grade, reason, evidence FROM verdict "
        "WHERE judge_id = ? OR (? = ? AND starts_with(judge_id, ?)) ORDER BY trace_id, sample",
        [judge_id, judge_id, SOURCE_JUDGE, SOURCE_JUDGE],
    )


def judges(db: Database) -> pd.DataFrame:
    """Return judge_id, number of verdicts and simulated of every judge."""
    return _frame(
        db,
        "SELECT judge_id, count(v.trace_id) AS n, any_value(simulated) AS simulated "
        "FROM judge LEFT JOIN verdict v USING (judge_id) GROUP BY judge_id ORDER BY judge_id",
    )


def _frame(db: Database, sql: str, values: list[object] | None = None) -> pd.DataFrame:
    with db.read() as cursor:
        return cursor.execute(sql, values or []).df()
