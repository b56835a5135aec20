"""Resamples against scipy's bootstrap, exact variances, and what must not change them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from calibration.statistics.estimate import Estimate
from calibration.success_rate.rate import rate_of_counts
from calibration.success_rate.resampling import (
    Interval,
    Resampled,
    grouped_at_random,
    pool_lone,
    resample,
    task_units,
    units_of,
)
from calibration.success_rate.runs import RunCounts
from tests.classes import count_runs
from tests.success_rate.rates import agent_success_rate

MANY = 20_000


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def skewed(n: int = 40) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Mostly complete runs, a few dear or failed: a skewed score."""
    source = rng(7)
    return source.choice(5, n, p=[0.8, 0.08, 0.04, 0.04, 0.04]), source.gamma(2, 0.6, n)


def limits(estimate: Estimate) -> tuple[float, float]:
    assert estimate.interval is not None
    return estimate.interval


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_scipy_agrees_on_independent_runs(interval: Interval) -> None:
    outcomes, costs = skewed()
    counts = count_runs(outcomes, costs=costs, ceilings=1.5)
    ours = rate_of_counts(counts, rng=rng(), n_resamples=MANY, interval=interval).asr
    method: Any = {"percentile": "percentile", "bca": "BCa"}[interval]
    theirs = stats.bootstrap(
        (counts.score,), np.mean, n_resamples=MANY, method=method, rng=rng(2)
    ).confidence_interval
    # A limit at the 2.5 % quantile is known to 2.7 sqrt(2 / 20,000) of a standard error.
    assert ours.se is not None
    assert limits(ours) == pytest.approx((theirs.low, theirs.high), abs=0.08 * ours.se)


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_scipy_agrees_on_whole_tasks(interval: Interval) -> None:
    """Thirty tasks of one to five runs: scipy resamples pairs of totals.

    At the level of Hesterberg's expanded percentiles, which is t with 29 degrees of freedom.
    """
    source = rng(9)
    sizes = source.integers(1, 6, 30)
    clusters = np.repeat(np.arange(30), sizes)
    outcomes = source.choice(5, sizes.sum(), p=[0.6, 0.2, 0.1, 0.05, 0.05])
    counts = count_runs(outcomes, clusters=clusters)
    ours = rate_of_counts(counts, rng=rng(), n_resamples=MANY, interval=interval).asr
    totals = np.bincount(clusters, weights=counts.score)
    method: Any = {"percentile": "percentile", "bca": "BCa"}[interval]

    def ratio(top: Any, bottom: Any, axis: int = -1) -> Any:
        return top.sum(axis=axis) / bottom.sum(axis=axis)

    theirs = stats.bootstrap(
        (totals, sizes.astype(float)),
        ratio,
        paired=True,
        vectorized=True,
        n_resamples=MANY,
        method=method,
        confidence_level=1 - 2 * stats.norm.cdf(np.sqrt(30 / 29) * stats.t.ppf(0.025, 29)),
        rng=rng(2),
    ).confidence_interval
    assert ours.se is not None
    assert limits(ours) == pytest.approx((theirs.low, theirs.high), abs=0.08 * ours.se)


def test_bca_moves_towards_the_long_tail() -> None:
    outcomes, costs = skewed()
    plain, corrected = (
        agent_success_rate(
            outcomes, costs=costs, ceilings=1.5, rng=rng(), n_resamples=MANY, interval=interval
        ).asr
        for interval in ("percentile", "bca")
    )
    assert limits(corrected)[0] < limits(plain)[0]
    assert limits(corrected)[1] < limits(plain)[1]
    assert corrected.method == "BCa bootstrap, 20,000 resamples"


def variance_of_draws(found: Resampled) -> float:
    draws = found.ratio_draws("score", "runs")
    assert draws is not None
    return float(draws.var())


def test_multinomial_and_indexed_draws_have_the_exact_variance() -> None:
    """60 of 100 complete: .24 / 100, whether the runs are two cells or a hundred tasks."""
    outcomes = np.repeat([0, 2], [60, 40])
    cells = units_of(count_runs(outcomes), rng=rng())
    single = task_units(count_runs(outcomes, clusters=np.arange(100)))[0]
    assert cells.multiplicity.tolist() == [60, 40]
    assert single.multiplicity.tolist() == [1] * 100
    for units in (cells, single):
        found = resample(units, rng=rng(3), n_resamples=MANY)
        # The variance of 20,000 draws is known to sqrt(2 / 20,000) = 1 %.
        assert variance_of_draws(found) == pytest.approx(0.0024, rel=0.04)


def test_random_groups_keep_the_variance() -> None:
    outcomes = rng(4).choice(5, 4000, p=[0.5, 0.2, 0.1, 0.1, 0.1])
    counts = count_runs(outcomes, clusters=np.repeat(np.arange(2000), 2))
    tasks = task_units(counts)[0]
    groups = grouped_at_random(tasks, rng(), 500)
    whole, grouped = resample(tasks, rng=rng()), resample(groups, rng=rng())
    one, other = whole.ratio("score"), grouped.ratio("score")
    assert (groups.multiplicity.size, groups.grouped, other.n) == (500, True, 2000)
    assert one.value == pytest.approx(other.value or 0, abs=1e-12)
    # From 500 groups a standard error is known to 1 / sqrt(1,000) = 3 %.
    assert one.se == pytest.approx(other.se or 0, rel=0.1)


def test_a_lone_stratum_joins_another() -> None:
    assert pool_lone(np.array([0, 0, 1]), np.ones(3, dtype=np.int64)).tolist() == [0, 0, 0]
    assert pool_lone(np.array([0, 0, 1, 2]), np.ones(4, dtype=np.int64)).tolist() == [0, 0, 3, 3]


def runs(seed: int, n: int) -> dict[str, Any]:
    source = rng(seed)
    found: dict[str, Any] = {
        "outcomes": source.integers(0, 5, n),
        "costs": np.where(source.random(n) < 0.1, np.nan, source.choice([1.0, 2.5, 3.0], n)),
        "ceilings": 2.0,
        "weights": source.choice([1.0, 2.0], n),
        "strata": source.choice(["a", "b"], n),
    }
    return found


def rate(counts: RunCounts) -> Estimate:
    return rate_of_counts(counts, rng=rng(), n_resamples=50).asr


def same(one: Estimate, other: Estimate) -> bool:
    return (
        one.value == pytest.approx(other.value)
        and one.interval == pytest.approx(other.interval)
        and one.se == pytest.approx(other.se)
        and one.method == other.method
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(5, 80))
def test_order_of_rows_does_not_matter(seed: int, n: int) -> None:
    given_runs = runs(seed, n)
    order = rng(seed).permutation(n)
    moved: dict[str, Any] = {
        name: values[order] if isinstance(values, np.ndarray) else values
        for name, values in given_runs.items()
    }
    assert same(rate(count_runs(**given_runs)), rate(count_runs(**moved)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(5, 80), scale=st.sampled_from([0.01, 3.0, 1e6]))
def test_scale_of_weights_does_not_matter(seed: int, n: int, scale: float) -> None:
    given_runs = runs(seed, n)
    scaled = {**given_runs, "weights": given_runs["weights"] * scale}
    assert same(rate(count_runs(**given_runs)), rate(count_runs(**scaled)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(5, 80))
def test_tasks_of_one_run_are_independent_runs(seed: int, n: int) -> None:
    given_runs = runs(seed, n)
    names = rng(seed).permutation(n).astype(str)
    assert same(rate(count_runs(**given_runs)), rate(count_runs(**given_runs, clusters=names)))
