"""Signals of the traces in a store, by hand: loops and tools from steps, the rest from fields."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibration.analyses.success_rate.assembly import (
    Operation,
    bad_values,
    signals,
    tasks_by_week,
    verdict_mix,
)
from calibration.analyses.success_rate.from_store import MISSING, listed_amounts
from calibration.analyses.success_rate.report import Signal, VerdictMix
from calibration.records import Step, Trace, Verdict
from calibration.runs import production_counts
from calibration.runs.sources import from_store
from calibration.store import Store
from tests.analyses.worlds import make_trace


def calls(*named: tuple[str, str], errors: int = 0) -> tuple[Step, ...]:
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
        counts = production_counts(source, taxonomy=store.taxonomy(), known_workflows_only=False)
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
    assert said["loops"] == (2 / 7, 7)
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
    assert (row["loop"], row["tool_calls"], row["feedback"]) == (0.0, 1.0, "down")
