"""Counts: the same figures as from rows, whatever way the rows are cut into cells."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.success_rate.rate import AgentSuccessRate, rate_of_counts, rates_by
from calibration.success_rate.resampling import units_of
from calibration.success_rate.runs import condensed, cost_penalties, scores
from tests.classes import CREDIT, count_runs, counts_of_frame
from tests.success_rate.rates import rate, rng

CELL = ["week", "workflow", "model", "stratum", "weight", "outcome", "cost_known", "penalty_step"]
SUMS = ["n", "penalty", "penalty_squared", "score", "score_half", "cost", "cost_squared"]


def rows(n: int, seed: int = 5, *, trials: int = 1, costs: Any = None) -> pd.DataFrame:
    """Production traces, one a row."""
    source = rng(seed)
    cost = source.gamma(3, 0.8, n) if costs is None else source.choice(costs, n)
    cost = np.where(source.random(n) < 0.05, np.nan, cost)
    outcome = source.choice(5, n, p=[0.55, 0.2, 0.1, 0.05, 0.1])
    penalty = cost_penalties(cost, 2.0)
    return pd.DataFrame(
        {
            "week": np.array(["2026-W01", "2026-W02", None])[source.integers(0, 3, n)],
            "workflow": source.choice(["research", "scheduling"], n),
            "model": source.choice(["a", "b"], n), "stratum": source.choice(["x", "y"], n),
            "weight": source.choice([1.0, 2.0], n), "outcome": outcome, "n": 1,
            "cost_known": ~np.isnan(cost), "raw_cost": cost, "cost": np.nan_to_num(cost),
            "cost_squared": np.nan_to_num(cost) ** 2, "penalty": penalty,
            "penalty_squared": penalty**2, "penalty_step": between(outcome, penalty),
            "score": scores(outcome, penalty, credit=CREDIT),
            "score_half": scores(outcome, penalty, credit=[1, 0.5, 0, 0, 0]),
            "task": np.arange(n) // trials,
        }
    )  # fmt: skip


def between(outcome: Any, penalty: Any) -> Any:
    """Return 0 without a penalty, else 1 and one more for each credit of the class in reach."""
    reached = (penalty >= 0.4).astype(int) + (penalty >= 0.5)
    return np.where(penalty > 0, 1 + np.where(outcome == 1, reached, 0), 0)


def cells_of(frame: pd.DataFrame, *more: str) -> pd.DataFrame:
    """Aggregate as production/ does."""
    return frame.groupby([*CELL, *more], dropna=False)[SUMS].sum().reset_index()


def from_rows(frame: pd.DataFrame, **options: Any) -> AgentSuccessRate:
    columns = {"costs": "raw_cost", "weights": "weight", "strata": "stratum"}
    options |= {name: frame[column].to_numpy() for name, column in columns.items()}
    half = {"half": (1, 0.5, 0, 0, 0)}
    return rate(frame["outcome"].to_numpy(), ceilings=2.0, other_credit=half, **options)


def assert_same(one: AgentSuccessRate, other: AgentSuccessRate, width: float = 1e-9) -> None:
    """Values are exact; interval ends may differ by `width`, the draws not being the same."""
    for name in ("asr", "asr_gross", "asr_without_abandoned", "pass_rate", "share_over_ceiling"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert mine.value == pytest.approx(theirs.value, abs=1e-12), name
        assert mine.interval == pytest.approx(theirs.interval, abs=width), name
    for mine, theirs in zip(one.class_shares, other.class_shares, strict=True):
        assert mine.value == pytest.approx(theirs.value, abs=1e-12)
    assert one.at_other_credit["half"].value == pytest.approx(other.at_other_credit["half"].value)
    for name in ("asr_literal", "mean_effective_penalty", "cost_coverage", "asr_range", "n"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-12), name
    assert one.n_missing_cost == other.n_missing_cost
    assert one.n_clusters == other.n_clusters


def test_cells_give_what_rows_give() -> None:
    """With few distinct costs nothing is rounded, and the draws are the same."""
    frame = rows(3000, costs=[1.0, 2.5, 3.0, 9.0])
    counts = counts_of_frame(cells_of(frame, "raw_cost"))
    assert_same(rate_of_counts(counts, rng=rng()), from_rows(frame))


def test_kinds_give_the_exact_values_and_an_interval_as_long() -> None:
    frame = rows(8_000)
    counts = counts_of_frame(cells_of(frame))
    found = rate_of_counts(counts, rng=rng(), most_units=100, n_resamples=2000)
    exact = from_rows(frame, n_resamples=2000)
    assert_same(found, exact, width=0.003)
    assert found.asr.se == pytest.approx(exact.asr.se, rel=1e-9)


def test_two_values_keep_mean_and_variance_of_every_score() -> None:
    """Also where nearly all runs have hardly any penalty: the lower value is not negative."""
    cost = 2 + 2 * rng(3).beta(0.1, 3, 4_000)
    outcome = np.where(np.arange(4_000) % 3, 0, 1)
    counts = count_runs(outcome, costs=cost, ceilings=2.0, other_credit={"half": (1, 0.5, 0, 0, 0)})
    kinds, single = (units_of(counts, rng=rng(), most=most) for most in (100, 10_000))
    assert kinds.multiplicity.size <= 18 < single.multiplicity.size
    assert (kinds.n, kinds.names) == (single.n, single.names)
    for name in ("score", "of_present", "score_known", "score:half", "over", "gross"):
        moments = [
            (u.multiplicity @ u.sums[:, u.column(name)] ** power) / u.n
            for power in (1, 2)
            for u in (kinds, single)
        ]
        assert moments[0] == pytest.approx(moments[1], rel=1e-10), name
        assert moments[2] == pytest.approx(moments[3], rel=1e-10), name
    score = kinds.sums[:, kinds.column("score")]
    assert score.min() >= 0
    assert score.max() <= 1 + 1e-9


def test_tasks_give_what_rows_give() -> None:
    frame = rows(400, trials=4)
    frame["stratum"] = "all"
    tasks = cells_of(frame, "task").assign(tasks=1)
    found = rate_of_counts(counts_of_frame(tasks), rng=rng())
    assert found.n_clusters == 100
    assert_same(found, from_rows(frame, clusters=frame["task"].to_numpy()))


def test_equal_tasks_are_counted_with_their_number() -> None:
    """Thirty tasks with a complete and a failed run, twenty with two complete ones: .7."""
    tasks = good_frame(
        task=[0, 0, 1], tasks=[30, 30, 20], outcome=[0, 2, 0], n=[1, 1, 2], score=[1.0, 0.0, 2.0]
    )
    found = rate_of_counts(counts_of_frame(tasks), rng=rng())
    single = rate([0, 2] * 30 + [0, 0] * 20, clusters=np.repeat(np.arange(50), 2))
    assert (found.n, found.n_clusters, found.asr.value) == (100, 50, 0.7)
    assert found.asr.se == pytest.approx(single.asr.se)


def test_condensing_keeps_every_sum() -> None:
    counts = counts_of_frame(cells_of(rows(2000)))
    small = condensed(counts, kinds=True, by="week")
    assert small.runs.size < counts.runs.size / 3
    assert small.n == counts.n
    for name in ("penalty", "penalty_squared", "score", "abandoned_score", "cost", "cost_squared"):
        assert getattr(small, name).sum() == pytest.approx(getattr(counts, name).sum()), name
    one, other = (c.where(c.labels("week").of("2026-W01")).score.sum() for c in (small, counts))
    assert one == pytest.approx(other)


def test_breakdowns_add_up() -> None:
    frame = rows(4000)
    frame["weight"] = 1.0
    counts = counts_of_frame(cells_of(frame))
    for by in ("workflow", "model", "week"):
        found = rates_by(counts, by, rng=rng())
        known = frame[frame[by].notna()]
        assert sum(of.n for of in found.values()) == len(known)
        for name, of in found.items():
            assert of.asr.value == pytest.approx(known[known[by] == name]["score"].mean())


def test_sensitivity_comes_from_the_same_resamples() -> None:
    """A half for partial_plus: higher by .1 of its share, on every resample."""
    outcomes = rng(2).choice(5, 400, p=[0.4, 0.4, 0.1, 0.05, 0.05])
    found = rate(outcomes, other_credit={"0.4": CREDIT, "0.5": (1, 0.5, 0, 0, 0)})
    assert found.at_other_credit["0.4"] == found.asr
    share = found.class_shares[1].value
    assert share is not None
    assert found.at_other_credit["0.5"].value == pytest.approx((found.asr.value or 0) + 0.1 * share)


def test_runs_that_keep_no_credit_are_one_cell_of_their_own() -> None:
    # Not drawn as runs with nearly all credit.
    counts = count_runs([0] * 60, costs=[2.0001] * 30 + [9.0] * 30, ceilings=2.0)
    found = condensed(counts, kinds=True)
    assert sorted(found.score.round(2).tolist()) == [0.0, 30.0]
    # How far a failed run is over its ceiling moves nothing but the literal value.
    counts = count_runs([2] * 50, costs=np.linspace(2.1, 9, 50), ceilings=2.0)
    assert condensed(counts).runs.tolist() == [50]


def good_frame(**changes: Any) -> pd.DataFrame:
    frame = {
        "stratum": "all", "weight": 1.0, "outcome": [0, 2], "cost_known": True,
        "penalty_step": 0, "n": [3, 2], "penalty": 0.0, "score": [3.0, 0.0],
    }  # fmt: skip
    return pd.DataFrame({**frame, **changes})


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (good_frame().drop(columns="score"), r"\['score'\] are missing"),
        (good_frame().iloc[:0], "must not be empty"),
        (good_frame(n=[3, 0]), "must be 1 or more"),
        (good_frame(weight=[1.0, -1.0]), "weights must be positive"),
        (good_frame(outcome=[0, 5]), r"outcome must be in \[0, 5\)"),
        (good_frame(score=[3.5, 0.0]), "score must be a sum"),
        (good_frame(penalty_step=1, penalty=[9.0, 0.0]), "penalty must be a sum"),
        (good_frame(task=[1, 1], tasks=[1, 2]), "one number of tasks like it"),
        (good_frame(task=[1, 1], tasks=1, stratum=["x", "y"]), "lie in one stratum"),
    ],
)
def test_impossible_counts_are_refused(frame: pd.DataFrame, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        counts_of_frame(frame)


def test_workflows_with_their_own_credit() -> None:
    """Two partial runs of research at .3 and two of scheduling at .4: gross 1.4 / 4."""
    frame = good_frame(workflow=["research", "scheduling"], outcome=1, n=2, score=[0.6, 0.8])
    counts = counts_of_frame(frame, own_credit={"research": (1, 0.3, 0, 0, 0)})
    found = rate_of_counts(counts, rng=rng())
    assert found.asr_gross.value == pytest.approx(0.35)
    assert found.mean_effective_penalty == pytest.approx(0)
    assert found.identity == "ASR 0.350 = gross 0.350 - mean effective penalty 0.000"


def test_random_groups_of_tasks_keep_the_number_of_tasks() -> None:
    frame = rows(800, trials=4)
    frame["stratum"] = "all"
    grouped = frame.assign(task=rng().permutation(200)[frame["task"]] % 50)
    counts = counts_of_frame(cells_of(grouped, "task").assign(tasks=1), grouped_tasks=200)
    found = rate_of_counts(counts, rng=rng())
    whole = rate_of_counts(counts_of_frame(cells_of(frame, "task").assign(tasks=1)), rng=rng())
    assert (found.n_clusters, found.asr.n, whole.asr.n) == (200, 200, 200)
    assert found.asr.value == pytest.approx(whole.asr.value)
    # From 50 groups a standard error is known to 10 %.
    assert found.asr.se == pytest.approx(whole.asr.se, rel=0.3)
