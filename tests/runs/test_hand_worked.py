"""Small files whose counts were worked out by hand, the same from every kind of file."""

import csv
import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.runs.results import ProductionCounts
from calibration.taxonomy import CreditTable
from tests.runs.tables import assert_same_counts, count

COLUMNS = (
    "trace_id", "workflow", "outcome", "cost_usd", "units", "started_at", "task_id", "latency_s",
    "model", "status",
)  # fmt: skip

# research costs 2 USD at most, code_review 0.5 a unit.
ROWS = [
    ("a", "research", "complete", 1.0, None, "2026-11-02T09:30:00Z", "t1", 3.5, "m1", "ok"),
    ("b", "research", "complete", 3.0, None, "2026-11-02T00:30:00+02:00", "t1", 4.0, "m1", "ok"),
    ("c", "research", "partial_plus", 2.4, 1.0, "2026-11-02 09:30", "t2", None, "m1", "ok"),
    ("d", "code_review", "complete", 2.0, 4.0, "2026-11-09", "t2", 8.0, "modèle", "error"),
    ("é", "code_review", "abandoned", 9.0, 1.0, "2027-01-01T00:00Z", "t3", 60.0, None, "timeout"),
    ("f", "code_review", "partial_plus", None, 1.0, None, "t3", 1.0, "m1", "ok"),
]  # fmt: skip
OWN = {"code_review": (1, 0.25, 0, 0, 0)}
FURTHER = {"half": CreditTable(credit=(1, 0.5, 0, 0, 0), by_workflow=OWN)}


def as_frame() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=list(COLUMNS))


KINDS = ("csv", "csv.gz", "jsonl", "ndjson.gz", "parquet", "parts")


def written(folder: Path, kind: str) -> Path:
    """Write the rows as one kind of file; packed CSV has semicolons."""
    frame, path = as_frame(), folder / f"traces.{kind}"
    if kind.startswith("csv"):
        frame.to_csv(path, index=False, sep=";" if kind == "csv.gz" else ",")
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "parts":
        for k in range(3):
            frame[2 * k : 2 * k + 2].to_parquet(folder / f"part-{k}.parquet")
        return folder / "part-*.parquet"
    else:
        text = frame.to_json(orient="records", lines=True, force_ascii=False).encode()
        path.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    return path


@pytest.fixture(scope="module")
def of_frame() -> ProductionCounts:
    return count(as_frame(), further=FURTHER)


@pytest.mark.parametrize("kind", KINDS)
def test_cells_by_hand(kind: str, tmp_path: Path, of_frame: ProductionCounts) -> None:
    counts = count(written(tmp_path, kind), further=FURTHER)
    cells = counts.cells
    assert_same_counts(of_frame, counts)
    assert (counts.n_read, counts.n_kept, counts.set_aside) == (6, 6, ())
    found = cells[["week", "workflow", "outcome", "cost_known", "penalty_step", "n"]].astype(object)
    assert found.where(found.notna(), None).values.tolist() == [
        [None, "code_review", 1, False, 0, 1],
        ["2026-W44", "research", 0, True, 1, 1],
        ["2026-W45", "research", 0, True, 0, 1],
        ["2026-W45", "research", 1, True, 1, 1],
        ["2026-W46", "code_review", 0, True, 0, 1],
        ["2026-W53", "code_review", 4, True, 1, 1],
    ]
    assert cells["penalty"].tolist() == pytest.approx([0, 0.5, 0, 0.2, 0, 1])
    assert cells["score"].tolist() == pytest.approx([0.4, 0.5, 1, 0.2, 1, 0])
    assert cells["score_half"].tolist() == pytest.approx([0.25, 0.5, 1, 0.3, 1, 0])
    assert counts.first == datetime(2026, 11, 1, 22, 30, tzinfo=UTC)
    assert counts.last == datetime(2027, 1, 1, tzinfo=UTC)


def test_tasks_costs_latencies_statuses_and_notes(tmp_path: Path) -> None:
    counts = count(written(tmp_path, "csv"))
    # t2 of research and t2 of code_review are two tasks.
    assert counts.n_tasks == 4
    assert counts.tasks is not None
    assert not counts.tasks_grouped
    scores = counts.tasks.groupby("task")["score"].sum().tolist()
    assert scores == pytest.approx([1, 0.4, 1.5, 0.2])
    assert counts.tasks["penalty_step"].tolist() == [0, 0, 1, 1, 0, 1]
    cost = counts.cost.table
    assert counts.cost.error == 0
    assert cost.to_dict("index")["research"] == pytest.approx({
        "n": 3, "n_known": 3, "mean": 6.4 / 3, "p50": 2.4, "p90": 2.88, "p95": 2.94,
        "p99": 2.988,
        "n_held": 3, "share_over_ceiling": 2 / 3, "cost_per_unit": 6.4 / 3, "cost_per_success": 3.2,
    })  # fmt: skip
    assert cost["cost_per_unit"].tolist() == pytest.approx([17.4 / 8, 11 / 5, 6.4 / 3])
    assert cost.iloc[0]["cost_per_success"] == pytest.approx(17.4 / 3)
    assert counts.signals is not None
    assert counts.signals.table[["errors", "timeouts"]].sum().tolist() == [1, 1]
    notes = counts.notes
    assert (notes.naive_times, notes.no_time, notes.no_cost, notes.no_units) == (2, 1, 1, 2)
    assert (notes.no_latency, notes.bad_latency, notes.timezone) == (1, 0, "UTC")
    there = count(tmp_path / "traces.csv", timezone="Pacific/Auckland")
    assert there.notes.naive_times == 2
    # Monday, 9 November, in Auckland is Sunday in UTC.
    assert "2026-W46" not in set(there.cells["week"].dropna())
    counts = count(as_frame().assign(task_id=list("abcdef")))
    assert (counts.tasks, counts.n_tasks) == (None, 6)  # tasks that do not repeat are none


def costed(n: int, **columns: Any) -> pd.DataFrame:
    frame = {"trace_id": [str(k) for k in range(n)], "workflow": "research", "cost_usd": 0.01}
    return pd.DataFrame(frame | columns)


def test_penalties_between_the_same_credits_are_one_cell_with_exact_sums() -> None:
    costs = [2 * (1 + k / 5000) for k in range(1, 5001)]
    frame = costed(5000, outcome=["complete", "partial_plus"] * 2500, cost_usd=costs)
    credits = {"third": CreditTable(credit=(1, 1 / 3, 0, 0, 0))}
    between, exact = (count(frame, further=credits, most_exact=m) for m in (100, 20_000))
    assert len(exact.cells) == 5000
    # Complete runs are one; partial_plus is cut at 1/3 and at .4.
    assert between.cells["penalty_step"].tolist() == [1, 1, 2, 3]
    squares = sum((k / 5000) ** 2 for k in range(1, 5001))
    assert between.cells["penalty_squared"].sum() == pytest.approx(squares, rel=1e-12)
    penalty = pd.Series([k / 5000 for k in range(1, 5001)])
    for name, credit in (("score", 0.4), ("score_third", 1 / 3)):
        worth = pd.Series([1.0, credit] * 2500)
        truth = (worth - penalty).clip(lower=0).sum()
        assert between.cells[name].sum() == pytest.approx(truth, abs=1e-9)
        assert exact.cells[name].sum() == pytest.approx(truth, abs=1e-9)


def test_groups_of_tasks_have_the_error_of_the_tasks_themselves() -> None:
    # Two workflows that differ much, two traces a task that always end alike: the standard error
    # of the share of complete is that of 6,000 tasks, sqrt(p (1 - p) / 6000), p = (.9 + .1) / 2.
    rng = np.random.default_rng(5)
    task = np.arange(12_000) // 2
    workflow = np.where(task % 2, "research", "scheduling")
    done = rng.random(6_000) < np.where(np.arange(6_000) % 2, 0.9, 0.1)
    outcome, names = np.where(done[task], "complete", "abandoned"), [f"t{k}" for k in task]
    frame = costed(12_000, workflow=workflow, outcome=outcome, task_id=names)
    grouped = count(frame, most_tasks=1_000)
    assert grouped.tasks_grouped
    assert grouped.tasks is not None
    totals = grouped.tasks.pivot_table(index="task", columns="outcome", values="n", aggfunc="sum")
    totals = totals.fillna(0)
    share = float(totals[0].sum() / 12_000)
    residuals = totals[0] - share * totals.sum(axis=1)
    error = float(np.sqrt((residuals**2).sum()) / 12_000)
    assert error == pytest.approx(np.sqrt(share * (1 - share) / 6_000), rel=0.1)


def test_cells_with_line_ends_as_pythons_csv_module_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)  # ends lines with CRLF
        writer.writerow(["trace_id", "workflow", "outcome", "cost_usd", "note"])
        for k in range(5):
            note = "two\nlines" if k == 3 else "one"
            writer.writerow([f"t{k}", "research", "complete", 0.5, note])
    counts = count(path)
    assert (counts.n_read, counts.n_kept, counts.set_aside) == (5, 5, ())
