"""Verdicts of judges."""

import json
from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd
import pyarrow as pa

from calibration.errors import InputError
from calibration.records import GRADES, NO_VERDICT, OUTCOMES, SOURCE_JUDGE, Verdict
from calibration.store.database import Cursor, insert_table, record_audit, utc_now
from calibration.store.permissions import LEAD, StorePart, open_to
from calibration.store.traces import ImportResult


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
    insert_table(cursor, "verdict", table)


class VerdictStore(StorePart):
    """Verdicts of judges."""

    @open_to(LEAD)
    def add_verdicts(self, new: Sequence[Verdict]) -> ImportResult[str]:
        """Store verdicts; a judge's verdict on a trace (and sample) is never overwritten.

        Raises
        ------
        InputError
            If a verdict is neither a class nor ``no_verdict``, or a grade is not one from 1 to 5.
        """
        for verdict in new:
            where = f"judge {verdict.judge_id!r} on trace {verdict.trace_id!r}"
            if verdict.outcome not in (*OUTCOMES, NO_VERDICT):
                raise InputError(f"{where}: outcome {verdict.outcome!r} is no class")
            if verdict.grade is not None and verdict.grade not in GRADES:
                raise InputError(
                    f"{where}: grade must be a whole number from 1 to 5, got {verdict.grade!r}"
                )
        with self._db.write() as cursor:
            traces = {row[0] for row in cursor.execute("SELECT trace_id FROM trace").fetchall()}
            known = {
                (judge, trace, sample): outcome
                for judge, trace, sample, outcome in cursor.execute(
                    "SELECT judge_id, trace_id, sample, outcome FROM verdict"
                ).fetchall()
            }
            fresh: dict[tuple[str, str, int], Verdict] = {}
            already, changed, unknown = [], [], []
            for verdict in new:
                key = (verdict.judge_id, verdict.trace_id, verdict.sample)
                stored = known.get(key) or (fresh[key].outcome if key in fresh else None)
                if verdict.trace_id not in traces:
                    unknown.append(verdict.trace_id)
                elif stored is None:
                    fresh[key] = verdict
                elif stored == verdict.outcome:
                    already.append(verdict.trace_id)
                else:
                    changed.append(verdict.trace_id)
            _insert(cursor, list(fresh.values()))
            if fresh:
                judges = sorted({v.judge_id for v in fresh.values()})
                record_audit(cursor, "verdicts", judges=judges, stored=len(fresh))
        return ImportResult(
            imported=tuple(v.trace_id for v in fresh.values()),
            already_there=tuple(already),
            changed=tuple(changed),
            unknown=tuple(unknown),
        )

    @open_to(LEAD)
    def verdict_samples(self, judge_id: str) -> pd.DataFrame:
        """Return every verdict of a judge, with the ones it gave when asked again.

        Columns: trace_id, sample, outcome, grade (1 to 5; missing: NaN), reason, evidence (JSON
        text), in order of both. The judge ``source:`` stands for all grades that came with the
        traces.
        """
        return self._frame(
            "SELECT trace_id, sample, outcome, grade, reason, evidence FROM verdict "
            "WHERE judge_id = ? OR (? = ? AND starts_with(judge_id, ?)) ORDER BY trace_id, sample",
            [judge_id, judge_id, SOURCE_JUDGE, SOURCE_JUDGE],
        )

    @open_to(LEAD)
    def verdict_frame(self, judge_id: str) -> pd.DataFrame:
        """Return the first verdict of a judge on each trace: trace_id, judge_id, outcome, proposed.

        The judge ``source:`` stands for the grades that came with the traces, whatever their
        format; a trace has at most one of them.
        """
        return self._frame(
            "SELECT trace_id, judge_id, outcome, proposed FROM verdict "
            "WHERE sample = 0 AND (judge_id = ? OR (? = ? AND starts_with(judge_id, ?))) "
            "ORDER BY trace_id",
            [judge_id, judge_id, SOURCE_JUDGE, SOURCE_JUDGE],
        )

    @open_to(LEAD)
    def judge_frame(self) -> pd.DataFrame:
        """Return judge_id, number of verdicts and simulated of every judge."""
        return self._frame(
            "SELECT judge_id, count(v.trace_id) AS n, any_value(simulated) AS simulated "
            "FROM judge LEFT JOIN verdict v USING (judge_id) GROUP BY judge_id ORDER BY judge_id",
        )
