"""What gates need from the engine, against the same figures from pandas."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.errors import InputError
from calibration.runs.results import GateQuery, GateTables, ProductionCounts
from tests.runs.tables import count


def world(n: int = 300) -> pd.DataFrame:
    """Return runs with weights, some without a task, a cost, a latency or a mark."""
    rng = np.random.default_rng(7)

    def some(values: Any, share: float = 0.8) -> Any:
        return pd.Series(values, dtype=object).where(rng.random(n) < share, None)

    task = rng.integers(0, 60, n)
    return pd.DataFrame(
        {
            "trace_id": [f"r{k}" for k in range(n)],
            "workflow": np.where(task % 2 == 0, "research", "scheduling"),
            "outcome": rng.choice(["complete", "partial_plus", "abandoned"], n),
            "cost_usd": some(rng.gamma(2.0, 0.5, n)).astype(float),
            "units": rng.integers(1, 4, n).astype(float),
            "weight": rng.choice([1.0, 2.5], n),
            "latency_s": some(rng.integers(1, 40, n).astype(float)).astype(float),
            "task_id": some([f"k{t // 2}" for t in task]),
            "tier": np.where(task // 2 % 5 == 0, "edge", "core"),
            "loops": some(rng.choice(["0", "no", "2", "true"], n)),
            "tags": some(rng.choice(["slow", "slow, data_corruption"], n)),
        }
    )


def counted(frame: pd.DataFrame, **query: Any) -> tuple[ProductionCounts, GateTables]:
    counts = count(frame, named_tasks=True, gates=GateQuery(**query))
    assert counts.for_gates is not None
    return counts, counts.for_gates


def by_task(frame: pd.DataFrame) -> Any:
    unit = ("t" + frame["workflow"] + "\x1f" + frame["task_id"].astype(str)).where(
        frame["task_id"].notna(), "r" + frame["trace_id"]
    )
    return frame.assign(task=unit).groupby(["task", "workflow"])


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return world()


@pytest.fixture(scope="module")
def found(frame: pd.DataFrame) -> GateTables:
    return counted(frame)[1]


def test_the_table_of_tasks_is_that_of_pandas(frame: pd.DataFrame, found: GateTables) -> None:
    wanted = by_task(
        frame.assign(
            complete=frame["outcome"] == "complete", partial=frame["outcome"] == "partial_plus"
        )
    ).agg(n=("trace_id", "size"), successes=("complete", "sum"), partial=("partial", "sum"),
          weight=("weight", "mean"), tier=("tier", "first")).reset_index()  # fmt: skip
    got = found.tasks.sort_values(["task", "workflow"], ignore_index=True)
    assert (found.named, found.n_tasks, found.repeat) == (True, len(wanted), True)
    for name in wanted.columns:
        if name == "weight":
            assert got[name].to_numpy() == pytest.approx(wanted[name].to_numpy())
        else:
            assert got[name].tolist() == wanted[name].tolist()


def test_cost_and_latency_are_those_of_pandas(frame: pd.DataFrame, found: GateTables) -> None:
    known = frame[frame["cost_usd"].notna()]
    known = known.assign(
        top=known["cost_usd"] * known["weight"], bottom=known["units"] * known["weight"]
    )
    for name, (n, n_known, sums) in found.cost.items():
        own = by_task(known[known["workflow"] == name])[["top", "bottom"]].sum()
        assert n == (frame["workflow"] == name).sum()
        assert n_known == (known["workflow"] == name).sum()
        assert sums.n == len(own)
        assert (sums.top, sums.bottom) == pytest.approx(tuple(own.sum()))
        assert sums.top_squared == pytest.approx(float(own["top"] @ own["top"]))
        assert sums.product == pytest.approx(float(own["top"] @ own["bottom"]))
    assert found.latency is not None
    late = frame[frame["latency_s"].notna()].sort_values("latency_s")
    table = found.latency.table
    assert (found.latency.n, int(table["n"].sum())) == (len(late), len(late))
    assert table["weight"].tolist() == pytest.approx(
        late.groupby("latency_s")["weight"].sum().tolist()
    )
    share = late["weight"].cumsum() / late["weight"].sum()
    p95 = float(late["latency_s"][share >= 0.95].iloc[0])
    inside = by_task(late.assign(w=late["weight"].where(late["latency_s"] <= p95, 0.0)))["w"].sum()
    assert found.latency.below is not None
    assert found.latency.below.top == pytest.approx(inside.sum())
    assert found.latency.below.top_squared == pytest.approx(float(inside @ inside))


def test_events_count_the_runs_in_which_somebody_looked(
    frame: pd.DataFrame, found: GateTables
) -> None:
    marked = {"loops": ("loops", ["2", "true"])}
    marked["data_corruption"] = ("tags", ["slow, data_corruption"])
    for name, (column, marks) in marked.items():
        looked = frame[frame[column].notna()]
        events = found.events[name]
        assert (events.count, events.n) == (looked[column].isin(marks).sum(), len(looked))
        assert events.n_tasks == by_task(looked).ngroups


def test_tasks_that_are_not_named_are_counted_by_kind(
    monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame, found: GateTables
) -> None:
    monkeypatch.setattr("calibration.runs.counts.MOST_NAMED", 5)
    _, kinds = counted(frame)
    assert not kinds.named
    assert kinds.tasks["like"].sum() == found.n_tasks == kinds.n_tasks
    equal = ["workflow", "tier", "n", "successes", "weight"]
    again = kinds.tasks.loc[kinds.tasks.index.repeat(kinds.tasks["like"]), equal]
    assert sorted(map(tuple, again.to_numpy().tolist())) == sorted(
        map(tuple, found.tasks[equal].to_numpy().tolist())
    )
    for name, (n, n_known, sums) in kinds.cost.items():
        # Threads add in another order each time.
        assert (n, n_known, sums.n) == (*found.cost[name][:2], found.cost[name][2].n)
        assert sums.top == pytest.approx(found.cost[name][2].top)


def test_one_model_and_the_outcomes_asked_for() -> None:
    frame = world().assign(model=lambda f: np.where(f.index % 3 == 0, "a", "b"))
    _, whole = counted(frame, trace_ids=("r0", "r1", "none"))
    assert whole.mixed is not None
    assert whole.outcomes == dict(zip(["r0", "r1"], frame["outcome"].head(2), strict=True))
    only, of_a = counted(frame, model="a")
    assert (only.n_kept, of_a.mixed) == (100, None)
    assert of_a.tasks["n"].sum() == 100


def test_rows_that_are_set_aside_are_in_no_table_and_no_question_needs_none() -> None:
    frame = world()
    frame.loc[0, "outcome"] = "won"
    found, tables = counted(pd.concat([frame, frame.tail(1)]))
    assert found.n_kept == tables.tasks["n"].sum() == 299
    assert count(frame.assign(outcome="pending"), gates=GateQuery()).for_gates is None
    # Without the question nothing is brought back and no column is read.
    frame = world().assign(loops="maybe")
    assert count(frame).for_gates is None
    with pytest.raises(InputError, match="300 rows hold neither yes, no nor a number"):
        counted(frame)
