"""Signals of operation, by hand: of the traces in a store, and of files."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.analyses.success_rate.assembly import (
    Operation,
    bad_values,
    signals,
    tasks_by_week,
    verdict_mix,
)
from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.from_store import MISSING, listed_amounts
from calibration.analyses.success_rate.report import (
    ReportOptions,
    Signal,
    SuccessRateReport,
    VerdictMix,
)
from calibration.records import Step, Trace, Verdict
from calibration.runs.sources import from_store
from calibration.statistics.intervals import exact_limits
from calibration.store import Store
from tests.analyses.production_files import alike, write
from tests.analyses.worlds import known, make_trace
from tests.runs.tables import counts_of_source


def calls(*named: tuple[str, str | None], errors: int = 0) -> tuple[Step, ...]:
    """Return a turn before each call: rows of calls are counted among calls alone."""
    steps = []
    for k, (tool, arguments) in enumerate(named):
        steps.append(Step(step_id=f"a{k}", role="assistant", content="let me see"))
        steps.append(
            Step(step_id=f"c{k}", role="tool", tool=tool, arguments=arguments, error=k < errors)
        )
    return tuple(steps)


FIND, OTHER, BOOK = ("find", '{"id": 1}'), ("find", '{"id": 2}'), ("book", '{"id": 1}')


def traces() -> list[Trace]:
    week = datetime(2026, 10, 5, tzinfo=UTC)
    rows: list[dict[str, Any]] = [
        {"steps": calls(FIND, FIND, FIND), "status": "ok", "latency_s": 1.0},
        {"steps": calls(FIND, FIND, BOOK, FIND, errors=1), "status": "error", "latency_s": 2.0},
        {"steps": calls(FIND, OTHER, FIND, OTHER), "status": "timeout", "latency_s": 3.0},
        {"steps": calls(BOOK, FIND, FIND, FIND, FIND, errors=2), "status": "ok"},
        {"steps": calls(), "metadata": {"escalated": True, "feedback": "up"}},
        {"steps": (Step(step_id="s", role="assistant", content="hello"),)},
        {"steps": calls(FIND), "metadata": {"escalated": "no", "feedback": -0.5}},
        {"steps": calls(FIND), "metadata": {"escalated": "perhaps", "feedback": 5}},
    ]
    return [make_trace(f"t{k}", started_at=week, **row) for k, row in enumerate(rows)]


@dataclass(frozen=True)
class Found:
    signals: tuple[Signal, ...]
    verdict_mix: VerdictMix
    notes: tuple[str, ...]


def signals_of(store: Store, judge_id: str | None) -> Found:
    traces = store.trace_frame()
    verdicts = None if judge_id is None else store.verdict_frame(judge_id)
    with from_store(traces, store.operation_frame(), verdicts, taxonomy=store.taxonomy()) as source:
        counts = counts_of_source(source, taxonomy=store.taxonomy(), known_workflows_only=False)
    latency, cost, _ = listed_amounts(traces, tasks_by_week(counts))
    runs = Operation(sums=counts.signals, latency=latency, cost=cost, missing=MISSING)
    return Found(
        signals=signals(runs), verdict_mix=verdict_mix(runs), notes=bad_values(counts.signals)
    )


@pytest.fixture
def found(tmp_path: Path) -> Found:
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        store.ingest(traces())
        store.add_verdicts(
            [Verdict(judge_id="j", trace_id=f"t{k}", outcome="complete") for k in range(6)]
        )
        return signals_of(store, "j")


def test_values_by_hand(found: Found) -> None:
    said = {s.key: (s.over_all.value, s.over_all.n) for s in found.signals}
    # Rows of 3, 2, 1, 4 and 1, 1; one trace has steps and no call, one has no steps.
    assert (said["loops"], said["loops_in_a_row"]) == ((3 / 7, 7), (2 / 7, 7))
    assert said["tool_errors"] == (3 / 18, 18)
    assert said["errors"] == (1 / 4, 4)
    assert said["timeouts"] == (1 / 4, 4)
    assert said["escalated"] == (1 / 2, 2)
    assert said["feedback_given"] == (2 / 8, 8)
    assert said["feedback"] == (0.25, 2)
    assert said["feedback_negative"] == (1 / 2, 2)
    assert said["latency_p50"] == (2.0, 3)
    assert len(found.notes) == 2
    (week,) = found.verdict_mix.weeks
    assert (week.week, week.n, dict(week.shares)["complete"].value) == ("2026-W41", 6, 1.0)


def test_what_the_store_does_not_hold_is_said(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        store.ingest([make_trace(f"t{k}", steps=(), latency_s=None) for k in range(3)])
        found = signals_of(store, None)
    status = {s.key: s.over_all.status for s in found.signals if not s.recorded}
    assert status["loops"] == "not_estimable: not recorded: no trace of the store has steps"
    assert status["feedback"] == "not_estimable: not recorded: no trace has a field feedback"
    assert status["latency_p99"] == "not_estimable: not recorded: no trace says its latency"
    assert found.verdict_mix.status == "not recorded: the store holds no verdicts"


def test_a_replaced_trace_is_read_from_its_newer_part(tmp_path: Path) -> None:
    old, new = (
        make_trace("t", steps=calls(*[FIND] * n), metadata={"feedback": said})
        for n, said in ((5, "up"), (1, "down"))
    )
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        store.ingest([old])
        store.ingest([new], take_changed=True)
        row = store.operation_frame().iloc[0]
    assert (row["loops"], row["tool_calls"], row["feedback"]) == (0.0, 1.0, "down")


def test_answers_to_calls_in_one_turn_are_no_loop_and_calls_without_arguments_are(
    tmp_path: Path,
) -> None:
    asked = [
        Step(step_id=f"a{k}", role="assistant", tool="find", arguments=f'{{"q": {k}}}')
        for k in range(3)
    ]
    answers = [Step(step_id=f"t{k}", role="tool", tool="find", result="[]") for k in range(3)]
    same = [Step(step_id=f"b{k}", role="assistant", tool="find", arguments="{}") for k in range(3)]
    between = [step for pair in zip(same, answers, strict=True) for step in pair]
    bare = calls(("x", None), *[("find", None)] * 3)
    rows = {"r1": (*asked, *answers), "r2": tuple(between), "r3": bare, "r4": bare[:-2]}
    with Store.open(tmp_path / "s.duckdb", create=True) as store:
        store.ingest([make_trace(trace_id, steps=made) for trace_id, made in rows.items()])
        frame = store.operation_frame()
    assert sorted(frame["trace_id"][frame["loops"] == 1]) == ["r2", "r3"]


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
    first, second = known(report(two_weeks(tmp_path)).verdict_mix).weeks
    assert dict(first.shares)["complete"].value == 0.75
    assert dict(second.shares)["hallucinated"].value == 0.75
    assert first.shift.distance is None
    assert second.shift.distance == pytest.approx(0.5)
    assert second.shift.flagged


def test_groups_of_many_tasks_have_percentiles_too(tmp_path: Path) -> None:
    """Above 20,000 tasks groups stand for them, counted by week apart."""
    n = 20_100
    run = np.arange(2 * n)
    frame = pd.DataFrame(
        {
            "trace_id": [f"t{k}" for k in run], "workflow": "research", "cost_usd": 1.0,
            "outcome": np.where(run % 3 == 0, "abandoned", "complete"),
            "task_id": [f"k{k}" for k in run // 2], "latency_s": 1.0 + run // 2 % 1_000,
            "started_at": [WEEKS[k % 2] for k in run],
        }
    )  # fmt: skip
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
