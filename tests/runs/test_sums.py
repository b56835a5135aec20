"""Sums of costs, groups of tasks by one key at a time, and more names than have a number."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.runs.columns import MOST_NAMES
from tests.classes import OUTCOMES
from tests.runs.tables import count

ANY: dict[str, Any] = {"known_workflows_only": False}


def runs(n: int, *, tasks: int = 0, models: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng([11, n, tasks, models])
    frame = pd.DataFrame({
        "trace_id": [f"t{k}" for k in range(n)],
        "workflow": rng.choice(["research", "scheduling", "elsewhere"], n),
        "outcome": rng.choice(OUTCOMES, n),
        "cost_usd": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(-1, 1, n)),
        "started_at": pd.Timestamp("2026-01-05", tz="UTC")
        + pd.to_timedelta(rng.integers(0, 21, n), unit="D"),
        "model": [f"m{k}" for k in rng.integers(0, models, n)],
    })  # fmt: skip
    if tasks:
        frame["task_id"] = [f"task {k}" for k in rng.integers(0, tasks, n)]
    return frame


@pytest.mark.parametrize("most_exact", [0, 20_000])
def test_cells_carry_the_sums_of_costs_with_a_ceiling_and_without(most_exact: int) -> None:
    frame, keys = runs(500), ["workflow", "outcome"]
    cells = count(frame, **ANY, most_exact=most_exact).cells
    cost = frame["cost_usd"]
    wanted = (
        frame.assign(outcome=frame["outcome"].map(OUTCOMES.index), squared=cost**2)
        .groupby(keys)
        .agg({"cost_usd": ["count", "sum"], "squared": "sum"})
    )
    found = cells.groupby(keys, observed=True)[["n_costed", "cost", "cost_squared"]].sum()
    assert found.to_numpy() == pytest.approx(wanted.to_numpy())
    # Without a ceiling a cost is a cost, though there is no penalty.
    without = cells[cells["workflow"] == "elsewhere"]
    assert not without["cost_known"].any()
    assert without["n_costed"].sum() == cost[frame["workflow"] == "elsewhere"].count()


def test_groups_of_tasks_are_the_same_by_every_key() -> None:
    frame = runs(3_000, tasks=900)
    counts = count(frame, **ANY, most_tasks=50)
    assert counts.tasks is not None
    assert set(counts.tasks_by) == {"week", "workflow", "model"}
    sums = ["n", "n_costed", "cost", "penalty", "score"]
    whole = counts.tasks.groupby("task")[sums].sum()
    assert (len(whole), whole["n"].sum()) == (50, 3_000)
    for by, table in counts.tasks_by.items():
        pd.testing.assert_frame_equal(table.groupby("task")[sums].sum(), whole)
        pd.testing.assert_frame_equal(
            table.groupby(by, observed=True)[sums].sum(),
            counts.cells.groupby(by, observed=True)[sums].sum(),
        )


def test_more_models_than_have_a_number() -> None:
    frame = runs(2_000, tasks=60, models=MOST_NAMES + 200)
    counts, groups = count(frame, **ANY), count(frame, **ANY, most_tasks=10)
    wanted = frame["model"].value_counts().sort_index()
    assert counts.tasks is not None
    for table in (counts.cells, counts.tasks, groups.tasks_by["model"]):
        found = table.groupby("model", observed=True)["n"].sum().sort_index()
        assert found.to_dict() == wanted.to_dict()
