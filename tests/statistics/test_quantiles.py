"""Quantiles of latency: the value, its limits, weights and few runs."""

import numpy as np
import pytest

from calibration.statistics.means import quantile_estimate, square_sums


def rng() -> np.random.Generator:
    return np.random.default_rng(8)


def test_the_limits_are_those_of_the_rank() -> None:
    """Clopper-Pearson of 95 in 100 is [.887, .984]: the 89th and the 99th of 100."""
    found = quantile_estimate(np.arange(1.0, 101.0), 0.95)
    assert (found.value, found.interval, found.n) == (95.0, (89.0, 99.0), 100)
    assert found.status == "ok"


def test_few_runs_have_a_value_and_no_upper_limit() -> None:
    """No run of 71 exceeds the p95 with probability .026 > .025, of 72 with .0249."""
    few = quantile_estimate(np.arange(1.0, 72.0), 0.95)
    assert (few.value, few.interval) == (68.0, None)
    assert few.status.startswith("provisional: no interval, 71 runs")
    assert quantile_estimate(np.arange(1.0, 73.0), 0.95).interval is not None


def test_weights_count_for_runs() -> None:
    values = np.array([1.0, 2.0, 3.0] * 40)
    weights = np.where(values == 3, 0.1, 1.0)
    below = square_sums(np.where(values <= 2, weights, 0.0), weights)
    found = quantile_estimate(values, 0.95, weights=weights, below=below)
    assert found.value == 2.0


def test_values_counted_once_give_what_the_rows_give() -> None:
    rows = np.repeat(np.arange(1.0, 31.0), 10)
    counted = quantile_estimate(np.arange(1.0, 31.0), 0.9, weights=np.full(30, 10.0), n=300)
    assert counted == quantile_estimate(rows, 0.9)


def test_repeated_tasks_widen_the_interval() -> None:
    of_task = rng().lognormal(2, 1, 100)
    values, tasks = np.repeat(of_task, 5), np.repeat(np.arange(100), 5)
    alone = quantile_estimate(values, 0.9)
    assert alone.value is not None
    inside = np.bincount(tasks, weights=values <= alone.value).astype(np.float64)
    clustered = quantile_estimate(values, 0.9, below=square_sums(inside, np.full(100, 5.0)))
    assert clustered.value == alone.value
    assert (clustered.half_width or 0) > 1.5 * (alone.half_width or 0)


def test_nothing_known_and_bad_arguments() -> None:
    assert quantile_estimate(np.array([]), 0.5).status.startswith("not_estimable")
    with pytest.raises(ValueError, match="q must be"):
        quantile_estimate(np.ones(3), 1.0)
    with pytest.raises(ValueError, match="values must be finite"):
        quantile_estimate(np.array([1.0, np.nan]), 0.5)
