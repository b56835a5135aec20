"""Random tables against a plain implementation in pandas."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calibration.runs.sources import open_frame
from calibration.taxonomy import CreditTable, default_taxonomy
from tests.classes import OUTCOMES
from tests.runs.tables import counts_of_source

CEILINGS = {w.name: w.ceiling_usd for w in default_taxonomy().workflows}
FORK = CreditTable(credit=(1, 0.3, 0.1, 0, 0), by_workflow={"research": (0.9, 0.45, 0, 0.2, 0)})
MISSING = st.none()
ROW = st.fixed_dictionaries({
    "trace_id": st.one_of(MISSING, st.integers(0, 30).map(lambda k: f"t{k}")),
    "workflow": st.sampled_from([None, "elsewhere", *CEILINGS]),
    "outcome": st.sampled_from([*OUTCOMES, *OUTCOMES, None, "done"]),
    "cost_usd": st.one_of(MISSING, st.floats(-0.1, 5), st.sampled_from([0.1, 2.0, 2e6, -1.0])),
    "units": st.sampled_from([None, 1.0, 2.0, 0.0, 0.5]),
    "started_at": st.one_of(
        MISSING,
        st.datetimes(datetime(1969, 1, 1), datetime(2030, 1, 1)).map(  # noqa: DTZ001
            lambda at: at.replace(tzinfo=UTC)
        ),
    ),
    "weight": st.sampled_from([1.0, 2.5, 1.0, -1.0, None]),
    "model": st.sampled_from([None, "", "modèle", "模型"]),
    "task_id": st.sampled_from([None, "a", "b", "c"]),
})  # fmt: skip


def plain(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the kept rows with week, penalty and scores."""
    good = (
        frame["trace_id"].notna()
        & frame["workflow"].isin(CEILINGS)
        & frame["outcome"].isin(OUTCOMES)
        & (frame["weight"] > 0)
    )
    kept = frame[good].copy()
    kept["model"] = kept["model"].replace("", None)
    kept = kept.drop_duplicates()
    kept = kept[~kept["trace_id"].duplicated(keep=False)]
    # What cannot be read is not known; the run counts.
    units = kept["units"].fillna(1.0)
    bad_cost = (kept["cost_usd"] < 0) | (units <= 0) | (kept["cost_usd"] > 1e6 * units)
    kept["cost_usd"] = kept["cost_usd"].mask(bad_cost)
    kept["units"] = units.mask(units <= 0, 1.0)
    kept["started_at"] = kept["started_at"].mask(kept["started_at"].dt.year < 1990)
    ceiling = kept["workflow"].map(CEILINGS).astype(float) * kept["units"]
    kept["penalty"] = ((kept["cost_usd"] - ceiling) / ceiling).clip(0, 1).fillna(0)
    iso = kept["started_at"].dt.isocalendar()
    kept["week"] = [
        None if pd.isna(y) else f"{y:04d}-W{w:02d}"
        for y, w in zip(iso["year"], iso["week"], strict=True)
    ]
    kept["outcome"] = kept["outcome"].map(OUTCOMES.index)
    for name, table in (
        ("score", default_taxonomy().credit_table),
        ("score_fork", FORK),
    ):
        credit = [table.of(w)[o] for w, o in zip(kept["workflow"], kept["outcome"], strict=True)]
        kept[name] = (pd.Series(credit, index=kept.index, dtype=float) - kept["penalty"]).clip(
            lower=0
        )
    return kept, len(frame) - len(kept)


def summed(cells: pd.DataFrame, keys: list[str]) -> dict[Any, tuple[float, ...]]:
    frame = cells.assign(**{k: cells[k].astype(object).where(cells[k].notna(), "-") for k in keys})
    sums = frame.groupby(keys)[["n", "penalty", "score", "score_fork"]].sum()
    return {k: tuple(row) for k, *row in sums.itertuples()}


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=40))
def test_cells_and_tasks_equal_a_plain_count(rows: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame(rows).astype(
        {"cost_usd": float, "units": float, "weight": float, "started_at": "datetime64[us, UTC]"}
    )
    for name in ("trace_id", "workflow", "outcome", "model", "task_id"):
        frame[name] = frame[name].astype("str")
    assume(frame["outcome"].isin(OUTCOMES).any())  # otherwise a question, no count
    with open_frame(frame) as source:
        exact, grid = (
            counts_of_source(
                source, taxonomy=default_taxonomy(), further={"fork": FORK}, most_exact=m
            )
            for m in (20_000, 0)
        )
    kept, n_set_aside = plain(frame)
    keys = ["week", "workflow", "model", "weight", "outcome"]
    wanted = summed(kept.assign(n=1), keys)
    for counts in (exact, grid):
        assert counts.n_read == len(frame) == counts.n_kept + counts.n_set_aside
        assert counts.n_set_aside == n_set_aside
        found = summed(counts.cells, keys)
        assert found.keys() == wanted.keys()
        for key, row in wanted.items():
            assert found[key] == pytest.approx(row, abs=1e-9)
        if counts.tasks is not None:
            by_task = summed(counts.tasks, keys)
            assert {k: pytest.approx(row, abs=1e-9) for k, row in by_task.items()} == wanted


@pytest.mark.parametrize("days", [3, 300])
@pytest.mark.parametrize("n_listed", [1, 7, 100, 10_000])
def test_the_first_runs_of_a_class_are_those_of_a_sorted_table(days: int, n_listed: int) -> None:
    """Many begin at the same time, and some have none: those come last."""
    draw, n = np.random.default_rng(days), 1_500
    frame = pd.DataFrame({
        "trace_id": [f"t{k:04d}" for k in draw.permutation(n)],
        "workflow": draw.choice(["research", "scheduling"], n),
        "outcome": draw.choice(OUTCOMES, n, p=[0.5, 0.2, 0.1, 0.1, 0.1]),
        "cost_usd": draw.choice([0.05, 0.4, 3.0, np.nan], n),
        "started_at": pd.Timestamp("2026-01-01", tz="UTC")
        + pd.to_timedelta(draw.integers(0, 24 * days, n), unit="h"),
    })  # fmt: skip
    frame.loc[draw.random(n) < 0.1, "started_at"] = pd.NaT
    classes = ("abandoned", "hallucinated")
    with open_frame(frame) as source:
        counts = counts_of_source(
            source, taxonomy=default_taxonomy(), listed=classes, n_listed=n_listed
        )
    assert counts.listed is not None
    found = counts.listed.groupby("outcome")["trace_id"].agg(list)
    in_order = frame.sort_values(["started_at", "trace_id"], na_position="last")
    for name in classes:
        assert found[name] == in_order[in_order["outcome"] == name]["trace_id"].tolist()[:n_listed]
