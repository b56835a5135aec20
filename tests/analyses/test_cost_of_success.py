"""What a completed run costs in a report on files: weighted, by task, by workflow."""

from pathlib import Path

import pytest

from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.report import ReportOptions
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections import success_rate
from tests.analyses.production_files import write


def rows(trials: int) -> list[dict[str, object]]:
    return [
        {"trace_id": f"t{task}-{trial}", "workflow": "research", "cost_usd": 1, "task_id": task,
         "outcome": "complete" if task % 3 else "abandoned"}
        for task in range(30) for trial in range(trials)
    ]  # fmt: skip


def test_trials_of_a_task_are_no_further_evidence(tmp_path: Path) -> None:
    path = str(write(tmp_path / "f.csv", rows(4)))
    options = ReportOptions(n_resamples=200)
    alone = ReportOptions(n_resamples=200, columns={"task_id": None})
    by_task, by_run = (report_on_files([path], options=o) for o in (options, alone))
    found, other = by_task.cost.per_success, by_run.cost.per_success
    # 120 USD for 80 complete runs; four equal trials a task double the error.
    assert found.value == pytest.approx(1.5)
    assert other.value == pytest.approx(1.5)
    assert (found.n, other.n) == (30, 120)
    assert found.se is not None
    assert other.se is not None
    assert found.se / other.se == pytest.approx((4 * 30 / 29 * 119 / 120) ** 0.5)
    assert found.interval is not None
    low, high = found.interval
    assert low * high == pytest.approx(1.5**2)
    assert by_task.by_workflow[0].cost is not None
    assert by_task.by_workflow[0].cost.per_success == found
    assert to_json.data(by_task)["cost"]["cost_per_success_usd"]["interval"] == [low, high]
    text = "\n".join(text_lines(success_rate.document(by_task)))
    assert success_rate.money(found) in text


def test_costs_count_with_the_weights_of_their_runs(tmp_path: Path) -> None:
    data = [
        {"trace_id": f"{kind}{k}", "workflow": "research", "outcome": outcome, "cost_usd": cost,
         "weight": weight}
        for k in range(10)
        for kind, outcome, cost, weight in (("a", "complete", 1, 3), ("b", "abandoned", 5, 1))
    ]  # fmt: skip
    found = report_on_files([str(write(tmp_path / "f.csv", data))]).cost.per_success
    assert found.value == pytest.approx((3 * 1 + 5) / 3)


def test_a_cost_without_a_ceiling_is_paid_too(tmp_path: Path) -> None:
    data = [
        {"trace_id": f"t{k}", "workflow": "elsewhere", "outcome": "complete", "cost_usd": 2}
        for k in range(9)
    ]
    path = str(write(tmp_path / "f.csv", data))
    found = report_on_files([path], options=ReportOptions(any_workflow=True)).cost.per_success
    assert (found.value, found.n) == (2.0, 9)
