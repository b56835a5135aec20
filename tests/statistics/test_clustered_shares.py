"""Shares and mix shifts, worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from calibration.statistics.intervals import exact_limits
from calibration.statistics.means import clustered_mean, clustered_share, limits_of_bins
from calibration.success_rate.trend import mix_shifts


def test_independent_runs_have_the_exact_binomial_limits_nearly() -> None:
    hits = np.array([1.0] * 6 + [0.0] * 94)
    found = clustered_share(hits, np.ones(100), n=100)
    exact = stats.binomtest(6, 100).proportion_ci()
    assert found.value == 0.06
    # The variance over n - 1 makes 99 of the 100 runs effective.
    assert found.interval == pytest.approx(exact_limits(0.06, 99, 0.95))
    assert found.interval == pytest.approx((exact.low, exact.high), abs=0.002)


def test_four_runs_alike_are_one() -> None:
    # 30 tasks of 4 runs each; 3 tasks fail whole: the limits are those of 3 of 30.
    hits = np.array([4.0] * 3 + [0.0] * 27)
    found = clustered_share(hits, np.full(30, 4.0), n=120, noun="tasks")
    assert (found.value, found.n) == (0.1, 120)
    alone = clustered_share(hits / 4, np.ones(30), n=30)
    # Only the t of 119 against 29 degrees of freedom differs.
    shrunk = (stats.t.ppf(0.975, 119) / stats.t.ppf(0.975, 29)) ** 2
    assert found.interval == pytest.approx(exact_limits(0.1, 29 * shrunk, 0.95))
    assert found.half_width == pytest.approx(alone.half_width, rel=0.05)
    assert "tasks" in found.method


def test_none_of_all_is_bounded_by_the_tasks_behind_the_groups() -> None:
    # 1 - .025 ** (1 / 2000): 100 groups of 20 tasks each.
    found = clustered_share(np.zeros(100), np.full(100, 20.0), n=2000, each=20.0)
    assert found.interval == pytest.approx((0.0, 1 - 0.025 ** (1 / 2000)))


def test_few_units_have_no_interval_and_none_no_value() -> None:
    few = clustered_share(np.array([1.0, 0, 0, 1]), np.ones(4), n=4)
    assert (few.value, few.interval) == (0.5, None)
    assert few.status.startswith("not_estimable: no interval from 4 runs")
    nothing = clustered_share(np.zeros(9), np.zeros(9), n=0)
    assert nothing.value is None
    assert nothing.status == "not_estimable: nothing of this kind was recorded"


def test_strata_that_explain_all_leave_no_width() -> None:
    hits = np.array([1.0] * 10 + [0.0] * 10)
    stratum = np.repeat([0, 1], 10)
    found = clustered_share(hits, np.ones(20), n=20, stratum=stratum)
    plain = clustered_share(hits, np.ones(20), n=20)
    assert found.interval == pytest.approx(exact_limits(0.5, 20, 0.95))
    assert plain.interval == pytest.approx(exact_limits(0.5, 19, 0.95), abs=1e-3)


def test_a_mean_of_equal_scores_is_not_certain() -> None:
    found = clustered_mean(np.full(20, 0.5), np.ones(20), n=20)
    limits = np.array(exact_limits(0.75, 20, 0.95))
    assert found.value == 0.5
    assert found.interval == pytest.approx(tuple(2 * limits - 1))


def test_the_test_of_two_classes_is_the_two_proportion_test() -> None:
    # 30 of 50 against 20 of 50: pooled .5, z^2 = .04 / (.25 x 2 / 50) = 4, times 99 / 100.
    runs = np.eye(2)[[0] * 30 + [1] * 20 + [0] * 20 + [1] * 30]
    found = mix_shifts(runs, np.arange(100), np.repeat([0, 1], 50))[1]
    assert found.distance == pytest.approx(0.2)
    assert found.p_value == pytest.approx(stats.f.sf(4 * 99 / 100, 1, 99))
    # Two shares, each with a normal difference of se .1: mean |d| = sqrt(2 / pi) x .1.
    assert found.by_chance == pytest.approx(np.sqrt(2 / np.pi) * 0.1 * np.sqrt(100 / 99))
    # Four runs of a task that are alike are one for the test.
    four = mix_shifts(4 * runs, np.arange(100), np.repeat([0, 1], 50))[1]
    assert four.p_value == pytest.approx(found.p_value)
    apart = mix_shifts(np.repeat(runs, 4, axis=0), np.arange(400), np.repeat([0, 1], 200))[1]
    assert (apart.p_value or 1) < 0.001 < (four.p_value or 0)


def test_a_week_is_held_against_all_before_it_and_flagged_once_it_moves() -> None:
    mixes = ([60, 40], [62, 38], [58, 42], [30, 70])
    runs = np.vstack([np.eye(2)[[0] * a + [1] * b] for a, b in mixes])
    found = mix_shifts(runs, np.arange(400), np.repeat(range(4), 100))
    assert [s.flagged for s in found] == [False, False, False, True]
    # 180 of 300 before, 30 of 100 in the last week.
    assert found[3].distance == pytest.approx(0.3)
    assert (found[0].distance, found[0].status) == (None, "no week with verdicts before it")


def test_a_small_move_of_many_runs_is_no_flag_however_certain() -> None:
    sums = np.array([[50_000.0, 50_000], [50_900, 49_100]])
    rows = np.repeat(sums / 1000, 1000, axis=0)
    rows[::2] += [1.0, -1.0]
    rows[1::2] -= [1.0, -1.0]
    found = mix_shifts(rows, np.arange(2000), np.repeat([0, 1], 1000))[1]
    assert (found.p_value or 1) < 0.001
    assert found.distance == pytest.approx(0.009)
    assert not found.flagged


def test_too_few_units_on_a_side_have_no_test() -> None:
    runs = np.eye(2)[[0] * 20 + [1] * 4]
    found = mix_shifts(runs, np.arange(24), np.array([0] * 20 + [1] * 4), noun="tasks")[1]
    assert found.p_value is None
    assert found.distance == 1.0
    assert "no test from 4 tasks" in found.status


def test_bins_of_one_value_have_the_limits_of_the_values() -> None:
    bins = np.array([[50.0, 1, 1], [30, 2, 2], [20, 3, 3]])
    # The exact limits of .5 with 100 runs are .398 and .602: the 40th and the 61st value.
    assert limits_of_bins(bins, 0.5, 100) == (1.0, 2.0)
    assert limits_of_bins(bins, 0.99, 100) is None
