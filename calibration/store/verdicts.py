"""Verdicts of judges."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from calibration.errors import InputError
from calibration.records import GRADES, NO_VERDICT, OUTCOMES, Verdict
from calibration.store.database import Cursor, Database, record_audit, utc_now


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictsStored:
    """What became of the verdicts of one file."""

    stored: int
    already_there: int
    changed: tuple[str, ...]
    unknown_traces: tuple[str, ...]


def add_verdicts(db: Database, verdicts: Sequence[Verdict]) -> VerdictsStored:
    """Store verdicts; a judge's verdict on a trace (and sample) is never overwritten.

    Raises
    ------
    InputError
        If a verdict is neither one of the five classes nor ``no_verdict``, or a grade is not one
        from 1 to 5.
    """
    for verdict in verdicts:
        if verdict.outcome not in (*OUTCOMES, NO_VERDICT):
            raise InputError(
                f"judge {verdict.judge_id!r} on trace {verdict.trace_id!r}: "
                f"outcome {verdict.outcome!r} is no class"
            )
        if verdict.grade is not None and verdict.grade not in GRADES:
            raise InputError(
                f"judge {verdict.judge_id!r} on trace {verdict.trace_id!r}: grade must be a whole "
                f"number from 1 to 5, got {verdict.grade!r}"
            )
    with db.write() as cursor:
        traces = {row[0] for row in cursor.execute("SELECT trace_id FROM trace").fetchall()}
        known = {
            (judge, trace, sample): outcome
            for judge, trace, sample, outcome in cursor.execute(
                "SELECT judge_id, trace_id, sample, outcome FROM verdict"
            ).fetchall()
        }
        fresh: dict[tuple[str, str, int], Verdict] = {}
        changed, unknown, already = [], [], 0
        for verdict in verdicts:
            key = (verdict.judge_id, verdict.trace_id, verdict.sample)
            stored = known.get(key) or (fresh[key].outcome if key in fresh else None)
            if verdict.trace_id not in traces:
                unknown.append(verdict.trace_id)
            elif stored is None:
                fresh[key] = verdict
            elif stored == verdict.outcome:
                already += 1
            else:
                changed.append(verdict.trace_id)
        _insert(cursor, list(fresh.values()))
        if fresh:
            judges = sorted({v.judge_id for v in fresh.values()})
            record_audit(cursor, "verdicts", judges=judges, stored=len(fresh))
    return VerdictsStored(
        stored=len(fresh),
        already_there=already,
        changed=tuple(changed),
        unknown_traces=tuple(unknown),
    )


def _insert(cursor: Cursor, fresh: list[Verdict]) -> None:
    now = utc_now()
    for judge_id, simulated in dict.fromkeys((v.judge_id, v.simulated) for v in fresh):
        cursor.execute(
            "INSERT INTO judge VALUES (?, ?, ?) ON CONFLICT (judge_id) "
            "DO UPDATE SET simulated = simulated OR excluded.simulated",
            [judge_id, simulated, now],
        )
    table = pa.table(
        {
            "judge_id": pa.array([v.judge_id for v in fresh], pa.string()),
            "trace_id": pa.array([v.trace_id for v in fresh], pa.string()),
            "sample": pa.array([v.sample for v in fresh], pa.int32()),
            "outcome": pa.array([v.outcome for v in fresh], pa.string()),
            "reason": pa.array([v.reason for v in fresh], pa.string()),
            "evidence": pa.array(
                [json.dumps([asdict(e) for e in v.evidence]) for v in fresh], pa.string()
            ),
            "proposed": pa.array([v.proposed for v in fresh], pa.bool_()),
            "grade": pa.array([v.grade for v in fresh], pa.int32()),
            "cost_usd": pa.array([v.cost_usd for v in fresh], pa.float64()),
            "created_at": pa.array([now] * len(fresh), pa.timestamp("us")),
        }
    )
    cursor.register("incoming", table)
    cursor.execute("INSERT INTO verdict BY NAME SELECT * FROM incoming")
    cursor.unregister("incoming")
