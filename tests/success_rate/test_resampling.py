"""Resamples against scipy's bootstrap, and what must not change them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from calibration.statistics.estimate import Estimate
from calibration.success_rate.rate import rate_of_counts
from calibration.success_rate.resampling import (
    Interval,
    grouped_at_random,
    pool_lone,
    ratio_estimates,
    resample,
    task_units,
    units_of,
)
from calibration.success_rate.runs import RunCounts
from tests.classes import count_runs
from tests.success_rate.rates import rng

MANY = 20_000


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
        (totals, sizes.astype(float)), ratio, paired=True, vectorized=True, n_resamples=MANY,
        confidence_level=1 - 2 * stats.norm.cdf(np.sqrt(30 / 29) * stats.t.ppf(0.025, 29)),
        method=method, rng=rng(2),
    ).confidence_interval  # fmt: skip
    # A limit at the 2.5 % quantile is known to 2.7 sqrt(2 / 20,000) of a standard error.
    assert ours.interval == pytest.approx((theirs.low, theirs.high), abs=0.08 * (ours.se or 0))


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
@given(seed=st.integers(0, 10_000), n=st.integers(5, 80), scale=st.sampled_from([0.01, 3.0, 1e6]))
def test_order_of_rows_and_scale_of_weights_do_not_matter(seed: int, n: int, scale: float) -> None:
    given_runs = runs(seed, n)
    order, whole = rng(seed).permutation(n), rate(count_runs(**given_runs))
    moved: dict[str, Any] = {
        name: values[order] if isinstance(values, np.ndarray) else values
        for name, values in given_runs.items()
    }
    assert same(whole, rate(count_runs(**moved)))
    scaled = {**given_runs, "weights": given_runs["weights"] * scale}
    assert same(whole, rate(count_runs(**scaled)))
    # Tasks of one run are independent runs.
    names = rng(seed).permutation(n).astype(str)
    assert same(whole, rate(count_runs(**given_runs, clusters=names)))


def of(tops: list[float], bottoms: list[float], **more: Any) -> Estimate:
    top, bottom = np.array(tops)[:, None], np.array(bottoms)[:, None]
    (found,) = ratio_estimates(top, bottom, rng=rng(), **more)
    return found


def test_ratios_by_hand() -> None:
    # (2 x 1 + 1 x 0 + 1 x 3) / (2 x 1 + 1 x 2 + 1 x 4)
    found = of([1, 0, 3], [1, 2, 4], weights=np.array([2.0, 1.0, 1.0]))
    assert found.value == pytest.approx(5 / 8)
    assert found.interval is None
    assert found.status.startswith("not_estimable: no interval from 3 runs")
    # Rows of a cluster that repeat each other add nothing.
    tops = [float(k % 3 == 0) for k in range(60)]
    once = of(tops, [1.0] * 60, clusters=np.arange(60))
    twice = of(tops * 2, [1.0] * 120, clusters=np.tile(np.arange(60), 2))
    assert twice.se == pytest.approx(once.se)
    assert twice.n == once.n == 60
    nothing = of([0.0] * 8, [0.0] * 8)
    assert nothing.value is None
    assert nothing.status.startswith("not_estimable: no run enters this rate")
    for weights in ([1.0, 0.0], [1.0], [1.0, float("nan")]):
        with pytest.raises(ValueError, match="positive"):
            of([1.0, 0.0], [1.0, 1.0], weights=np.array(weights))


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "shape"), [(200, (3.0, 0.8)), (200, (0.7, 3.0)), (200, (8.0, 0.1)), (1_000, (3.0, 0.8))]
)
def test_kinds_of_runs_have_the_limits_of_single_runs(n: int, shape: tuple[float, float]) -> None:
    """Many draws on both sides: what is left of their own error is .3 % of a half-width."""
    source = rng(2)
    outcomes = source.choice(5, n, p=[0.55, 0.2, 0.1, 0.05, 0.1])
    counts = count_runs(outcomes, costs=source.gamma(*shape, n), ceilings=2.0)
    single = np.concatenate([
        counts.score[source.integers(0, n, (1_000, n))].mean(axis=1) for _ in range(200)
    ])  # fmt: skip
    units = units_of(counts, rng=source, most=n // 5)
    kinds = resample(units, rng=source, n_resamples=800_000).ratio_draws("score", "runs")
    assert kinds is not None
    assert units.multiplicity.size <= 2 * 18
    wanted, found = (np.quantile(draws, [0.025, 0.975]) for draws in (single, kinds))
    assert found == pytest.approx(wanted, abs=0.01 * (wanted[1] - wanted[0]) / 2)
