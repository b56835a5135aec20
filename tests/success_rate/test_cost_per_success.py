"""What a success costs: by hand, from cells, by task, and where nothing can be said."""

import numpy as np
import pandas as pd
import pytest

from calibration.success_rate.rate import cost_per_success
from tests.classes import count_runs, counts_of_frame


def test_by_hand() -> None:
    """Costs 1, 2, 3, 4, 5, 6, complete the first three: 21 / 3, residuals cost - 7 x complete."""
    costs = np.arange(1.0, 7.0)
    found = cost_per_success(count_runs([0, 0, 0, 2, 2, 2], costs=costs, ceilings=9.0))
    residual = costs - 7 * np.array([1, 1, 1, 0, 0, 0])
    assert found.value == 7
    assert found.se == pytest.approx(np.sqrt(6 / 5 * (residual**2).sum()) / 3)
    reach = 2.570582 * (found.se or 0) / 7
    assert found.interval == pytest.approx((7 * np.exp(-reach), 7 * np.exp(reach)), rel=1e-6)
    # A missing cost leaves the success out too.
    missing = count_runs([0, 0, 2], costs=[1.0, np.nan, 3.0], ceilings=9.0)
    assert cost_per_success(missing).value == 4.0


def test_cells_with_squares_give_what_rows_give() -> None:
    rng = np.random.default_rng(3)
    outcomes, costs = rng.choice(5, 500), rng.gamma(2, 1, 500)
    frame = pd.DataFrame(
        {
            "outcome": outcomes, "n": 1, "cost": costs, "cost_squared": costs**2,
            "score": np.array([1, 0.4, 0, 0, 0])[outcomes],
        }
    )  # fmt: skip
    cells = frame.groupby("outcome").sum().reset_index()
    cells = cells.assign(stratum="all", weight=1.0, cost_known=True, penalty_step=0, penalty=0.0)
    one = cost_per_success(count_runs(outcomes, costs=costs, ceilings=99.0))
    other = cost_per_success(counts_of_frame(cells))
    assert one.value == pytest.approx(other.value)
    assert one.se == pytest.approx(other.se)
    without = cost_per_success(counts_of_frame(cells.drop(columns="cost_squared")))
    assert without.value == pytest.approx(one.value)
    assert "without the squares of the costs" in without.status


def test_trials_of_a_task_are_one_unit() -> None:
    outcomes, costs = np.repeat([0, 2], 10), np.repeat([1.0, 3.0], 10)
    plain = cost_per_success(count_runs(outcomes, costs=costs, ceilings=9.0))
    whole = cost_per_success(
        count_runs(outcomes, costs=costs, ceilings=9.0, clusters=np.arange(20) // 2)
    )
    assert (plain.n, whole.n) == (20, 10)
    assert whole.se == pytest.approx((plain.se or 0) * np.sqrt(2 * 10 / 9 * 19 / 20))


def test_what_cannot_be_said() -> None:
    ones = [1.0, 1.0]
    given = [([2, 2], ones, "no complete"), ([0, 0], None, "no cost"), ([0, 0], ones, "from 2")]
    for outcomes, costs, why in given:
        counts = count_runs(outcomes, costs=costs, ceilings=2.0)
        assert why in cost_per_success(counts).status
    with pytest.raises(ValueError, match="confidence_level must be in"):
        cost_per_success(counts, confidence_level=1.0)
