"""Signals of operation in the report: values by hand, and what was not recorded."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.report import ReportOptions, Signal, SuccessRateReport
from calibration.reporting.document import text_lines
from calibration.reporting.sections import success_rate
from calibration.statistics.intervals import exact_limits
from tests.analyses.production_files import alike, write

WEEKS = ("2026-09-28T10:00:00Z", "2026-10-05T10:00:00Z")


def report(path: str, **options: Any) -> SuccessRateReport:
    return report_on_files([path], options=ReportOptions(n_resamples=100, **options))


def two_weeks(tmp_path: Path) -> str:
    """Return 40 runs in each of two weeks: 2 and 10 of them escalated, verdicts that move."""
    rows = []
    for week, (escalated, complete) in enumerate(((2, 30), (10, 10))):
        own = alike(f"w{week}-", {"complete": 40}, started_at=WEEKS[week])
        for k, row in enumerate(own):
            row["escalated"] = k < escalated
            row["verdict"] = "complete" if k < complete else "hallucinated"
            row["latency_s"] = k + 1
            row["feedback"] = ("up", "down", "", "")[k % 4]
            row["tool_calls"], row["tool_errors"] = 5, int(k < 4)
        rows += own
    return write(tmp_path / "f.csv", rows)


def by_key(found: SuccessRateReport) -> dict[str, Signal]:
    return {s.key: s for s in found.signals}


def test_values_and_limits_by_hand(tmp_path: Path) -> None:
    found = by_key(report(two_weeks(tmp_path)))
    escalated = found["escalated"]
    assert (escalated.over_all.value, escalated.over_all.n) == (12 / 80, 80)
    assert escalated.over_all.interval == pytest.approx(exact_limits(0.15, 79, 0.95), abs=1e-3)
    assert [(week, e.value, e.n) for week, e in escalated.by_week] == [
        ("2026-W40", 0.05, 40), ("2026-W41", 0.25, 40),
    ]  # fmt: skip
    assert (found["tool_errors"].over_all.value, found["tool_errors"].over_all.n) == (8 / 400, 400)
    assert found["feedback_given"].over_all.value == 0.5
    assert found["feedback"].over_all.value == 0.0
    assert found["feedback_negative"].over_all.value == 0.5
    # 1 to 40, twice: the 40th of 80.
    assert found["latency_p50"].over_all.value == 20
    assert found["latency_p50"].over_all.interval is not None
    assert found["cost_p99"].over_all.value == 1.0
    assert found["cost_p99"].over_all.status == "provisional: no interval, 80 runs are too few"


def test_the_verdicts_of_a_week_are_held_against_those_before(tmp_path: Path) -> None:
    mix = report(two_weeks(tmp_path)).verdict_mix
    assert mix is not None
    first, second = mix.weeks
    assert dict(first.shares)["complete"].value == 0.75
    assert dict(second.shares)["hallucinated"].value == 0.75
    assert first.shift.distance is None
    assert second.shift.distance == pytest.approx(0.5)
    assert second.shift.flagged


def test_what_is_not_recorded_is_said(tmp_path: Path) -> None:
    found = report(write(tmp_path / "f.csv", alike("a", {"complete": 20})))
    missing = {s.key: s.over_all.status for s in found.signals if not s.recorded}
    assert missing["loops"] == "not_estimable: not recorded: add a column loop or max_repeats"
    assert missing["latency_p95"] == "not_estimable: not recorded: add a column latency_s"
    assert "cost_p50" not in missing
    assert found.verdict_mix is not None
    assert found.verdict_mix.status == "not recorded: add a column verdict"
    text = "\n".join(text_lines(success_rate.document(found)))
    assert "runs escalated to a person: not recorded: add a column escalated." in text


def test_bad_values_are_counted_and_the_runs_kept(tmp_path: Path) -> None:
    rows = alike("a", {"complete": 20}, feedback="up")
    rows[3]["feedback"], rows[4]["feedback"] = "7", "great"
    found = report(write(tmp_path / "f.csv", rows))
    assert found.n == 20
    assert by_key(found)["feedback"].over_all.n == 18
    assert any(note.startswith("2 values count as missing: feedback") for note in found.notes)


def test_groups_of_many_tasks_have_percentiles_too(tmp_path: Path) -> None:
    """Above 20,000 tasks groups stand for them, counted by week apart."""
    n = 20_100
    run = np.arange(2 * n)
    frame = pd.DataFrame(
        {
            "trace_id": [f"t{k}" for k in run],
            "workflow": "research",
            "outcome": np.where(run % 3 == 0, "abandoned", "complete"),
            "cost_usd": 1.0,
            "task_id": [f"k{k}" for k in run // 2],
            "started_at": [WEEKS[k % 2] for k in run],
            "latency_s": 1.0 + run // 2 % 1_000,
        }
    )
    path = tmp_path / "many.parquet"
    frame.to_parquet(path)
    found = by_key(report(str(path)))["latency_p50"]
    assert found.over_all.value == pytest.approx(500, rel=0.01)
    assert found.over_all.method == "percentile, limits of its rank over 20,100 tasks"
    low, high = found.over_all.interval or (0.0, 0.0)
    # 1.96 sqrt(.25 / 20,100) of ranks, over the thousand values.
    assert high - low == pytest.approx(2 * 6.9, abs=2)
    assert [week for week, _ in found.by_week] == ["2026-W40", "2026-W41"]
    assert all(e.interval is not None for _, e in found.by_week)
