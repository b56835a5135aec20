"""Weeks: gaps, rolling means by hand, related weeks, anomalies and their false alarms."""

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from calibration.success_rate.trend import (
    WeeklySeries,
    cusum,
    expectation,
    false_alarm_rate,
    weekly_series,
)
from calibration.text import calendar
from tests.classes import count_runs
from tests.success_rate.rates import rng


def series(complete: dict[int, tuple[int, int]], **options: Any) -> WeeklySeries:
    """So many complete runs of so many, by the number of the week in 2026."""
    outcomes, weeks = [], []
    for week, (good, n) in complete.items():
        outcomes += [0] * good + [2] * (n - good)
        weeks += [f"2026-W{week:02d}"] * n
    counts = count_runs(outcomes, by={"week": weeks})
    return weekly_series(counts, rng=rng(), **options)


def test_values_and_rolling_mean_by_hand() -> None:
    """.5, .6, .7, .8: mean .65 with variance sum p (1 - p) / (n - 1) / 16."""
    given = {1: (50, 100), 2: (60, 100), 3: (70, 100), 4: (160, 200)}
    found = series(given)
    assert [week.rate.value for week in found.weeks] == [0.5, 0.6, 0.7, 0.8]
    assert [week.rate.n for week in found.weeks] == [100, 100, 100, 200]
    rolling = found.weeks[3].rolling
    assert rolling.value == pytest.approx(0.65)
    variance = (0.25 + 0.24 + 0.21) / 99 + 0.16 / 199
    assert rolling.se == pytest.approx(np.sqrt(variance) / 4)
    assert rolling.half_width == pytest.approx(1.96 * np.sqrt(variance) / 4, rel=0.1)
    assert "needs 4 weeks with runs, there are 3" in found.weeks[2].rolling.status
    # Pooled, a busy week counts more.
    assert series(given, pooled=True).weeks[3].rolling.value == pytest.approx(340 / 500)


def test_a_week_without_runs_is_shown_and_breaks_the_rolling_mean() -> None:
    found = series({1: (50, 100), 2: (50, 100), 4: (50, 100), 5: (50, 100)})
    assert [week.week for week in found.weeks][2] == "2026-W03"
    empty = found.weeks[2]
    assert (empty.n, empty.rate.value, empty.anomaly) == (0, None, False)
    assert empty.rate.status == "not_estimable: no runs in this week"
    assert "2026-W03 has none" in found.weeks[4].rolling.status


def test_weeks_of_few_runs_use_t_or_have_no_interval() -> None:
    few = series(dict.fromkeys(range(1, 5), (5, 10))).weeks[3].rolling
    assert few.method == "mean of 4 weeks, t"
    reach = stats.t.ppf(0.975, 36) * np.sqrt(4 * 0.25 / 9) / 4
    assert few.half_width == pytest.approx(reach)
    none = series({1: (5, 10), 2: (5, 10), 3: (2, 3), 4: (5, 10)}).weeks[3].rolling
    assert none.interval is None
    assert "a week has 3 runs" in none.status


def test_runs_without_a_time_are_counted() -> None:
    counts = count_runs([0, 0, 2], by={"week": ["2026-W01", None, None]})
    assert weekly_series(counts, rng=rng()).n_without_week == 2
    assert weekly_series(count_runs([0], by={"week": [None]}), rng=rng()).weeks == ()
    with pytest.raises(ValueError, match=r"by must be one of \[\], got 'week'"):
        weekly_series(count_runs([0]), rng=rng())
    with pytest.raises(ValueError, match="weeks must be ISO weeks like '2026-W07'"):
        calendar("2026-01", "2026-W02")


def test_the_same_tasks_every_week_make_weeks_related() -> None:
    """Forty tasks, each always with the same outcome: four weeks say no more than one."""
    outcomes = np.tile(np.repeat([0, 2], 20), 4)
    weeks = np.repeat([f"2026-W{week:02d}" for week in range(1, 5)], 40)
    same, others = (
        weekly_series(count_runs(outcomes, clusters=tasks, by={"week": weeks}), rng=rng())
        for tasks in (np.tile(np.arange(40), 4), np.repeat(np.arange(80), 2))
    )
    assert same.weeks[3].rolling.se == pytest.approx(same.weeks[3].rate.se)
    assert same.weeks[3].rolling.half_width == pytest.approx(same.weeks[3].rate.half_width)
    assert (others.weeks[3].rolling.se or 1) < 0.8 * (same.weeks[3].rolling.se or 0)


def test_a_sudden_drop_is_an_anomaly_and_a_steady_week_is_not() -> None:
    steady = {week: (300 + (week % 3) * 5, 500) for week in range(1, 10)}
    found = series({**steady, 10: (200, 500)})
    assert [week.anomaly for week in found.weeks] == [False] * 9 + [True]
    assert [week.expected is None for week in found.weeks[5:7]] == [True, False]
    last = found.weeks[9].expected
    assert last is not None
    assert last.n_weeks == 8
    assert found.false_alarm_rate == pytest.approx(0.004, abs=0.004)


def test_expectation_with_spread_by_hand() -> None:
    """Values .4 and .6 in turn, errors of .001: the spread between weeks is nearly all of it."""
    values, sizes = np.array([0.4, 0.6] * 4 + [0.7]), np.full(9, 1e6)
    found = expectation(values, np.full(9, 1e-3), sizes)
    assert found is not None
    # logit(.6) = .4055, so 8 x .4055^2 / 7 is their variance.
    between = 8 * special.logit(0.6) ** 2 / 7
    assert found.between == pytest.approx(np.sqrt(between) / 4, rel=1e-3)
    reach = stats.t.ppf(0.995, 6) * np.sqrt(between * 9 / 8)
    assert found.interval == pytest.approx((special.expit(-reach), special.expit(reach)), rel=1e-3)
    assert not found.anomaly
    assert expectation(values[:6], np.full(6, 1e-3), sizes[:6]) is None


@pytest.mark.parametrize(("rate", "n"), [(0.6, 60), (0.9, 20), (0.98, 20), (0.98, 200)])
def test_ranges_of_a_steady_rate_are_rates_and_rarely_alarm(rate: float, n: int) -> None:
    """On the scale of the rate itself a range reached to 1.09."""
    draws, alarms, found = np.random.default_rng([45, n]), 0, 0
    for _ in range(1_000):
        weeks = draws.binomial(n, rate, 9) / n
        bound = (1 - 0.025 ** (1 / n)) / 2 / 1.96
        errors = np.where(weeks % 1 > 0, np.sqrt(weeks * (1 - weeks) / (n - 1)), bound)
        expected = expectation(weeks, errors, np.full(9, n))
        assert expected is not None
        low, high = expected.interval
        assert 0 <= low <= expected.value <= high <= 1
        assert expected.anomaly == (not low <= weeks[-1] <= high)
        alarms += expected.anomaly
        found += expectation(np.append(weeks[:-1], rate - 0.25), errors, np.full(9, n)).anomaly  # type: ignore[union-attr]
    assert alarms <= 5
    assert n == 20 or rate < 0.9 or found > 990


def test_false_alarm_rate_of_a_spread_that_is_seen() -> None:
    """With a spread far above the errors the rule is a t interval with 7 of its 6 degrees."""
    rate = false_alarm_rate(np.full(9, 1e-3), rng=rng(), between=1.0, n_simulations=100_000)
    t = stats.t.ppf(0.995, 6)
    assert rate == pytest.approx(2 * stats.t.sf(t, 7), abs=0.001)
    assert false_alarm_rate(np.full(5, 0.1), rng=rng()) is None


def test_a_small_drop_that_lasts_is_named_with_the_week_it_began() -> None:
    """.60 of 600 for eight weeks, then .54: three standard errors a week are no anomaly."""
    steady = {week: (360 + (week % 2), 600) for week in range(1, 10)}
    found = series({**steady, **dict.fromkeys((10, 12, 13), (324, 600))})
    assert not any(week.anomaly for week in found.weeks)
    drop = found.drop
    assert drop is not None
    assert (drop.alarm, drop.since, drop.n_weeks) == (True, "2026-W10", 4)
    # W11 has no runs: it is named, and the path goes on after it.
    assert drop.left_out == ("2026-W11",)
    assert [week.cusum is None for week in found.weeks] == [True] * 8 + [False] * 2 + [
        True,
        False,
        False,
    ]
    assert drop.baseline == pytest.approx(360.5 / 600, abs=1e-3)
    assert [week.below for week in found.weeks[-3:]] == [False, True, True]
    # Errors of .0812 and .0808 / sqrt(8) on the logit scale.
    logit = special.logit(360.5 / 600) - special.logit(0.54)
    error = np.sqrt(1 / (600 * 0.54 * 0.46) + 1 / (8 * 600 * 0.6 * 0.4))
    assert found.weeks[9].cusum == pytest.approx(logit / error - 0.5, abs=0.03)


def test_the_path_needs_eight_weeks_with_an_interval_and_one_more() -> None:
    found = series({week: (2, 3) if week == 4 else (60, 100) for week in range(1, 10)}).drop
    assert found is not None
    assert found.status == "not_estimable: 9 weeks with an interval are needed, there are 8"
    assert (found.since, found.baseline, found.value, found.n_weeks) == (None, None, None, 0)
    assert found.left_out == ("2026-W04",)
    assert weekly_series(count_runs([0], by={"week": [None]}), rng=rng()).drop is None


def test_an_alarm_outlives_its_block_and_a_path_without_one_starts_anew() -> None:
    """Weeks 9 to 16 are below .6; they are the baseline of 17 to 24, which know no further drop."""
    low = np.repeat([0.6, 0.5, 0.5], 8)
    errors, sizes = np.full(24, 0.02), np.full(24, 600.0)
    path, since, baseline = cusum(low, errors, sizes)
    assert since == 8
    assert baseline == pytest.approx(0.6, abs=1e-3)
    np.testing.assert_allclose(np.diff(path[15:]), -0.5, atol=1e-9)
    # Just below its limit at the end of a block, the path begins at zero.
    small = np.concatenate([np.full(8, 0.6), np.full(7, 0.6), [0.52], np.full(8, 0.6)])
    path, since, _ = cusum(small, errors, sizes)
    assert 2 < path[15] < 4.3
    assert (path[16], since) == (0, None)
