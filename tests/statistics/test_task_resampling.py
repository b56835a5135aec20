"""The bootstrap over tasks: what is undefined, groups of tasks, and exact limits."""

import numpy as np
import pytest
from scipy import stats

from calibration.statistics import resampling
from calibration.statistics.resampling import (
    SOME_UNDEFINED,
    TaskEstimate,
    bounded_mean,
    gaffke_limits,
    ratio,
    resample_tasks,
)


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_a_resample_holds_as_many_tasks_as_there_are() -> None:
    drawn = resample_tasks(40, rng=rng(), n_resamples=50)
    assert (drawn.weights.sum(axis=1) == 40).all()
    assert drawn.unit.tolist() == list(range(40))


def test_the_interval_is_that_of_the_mean() -> None:
    values = rng().random(200)
    found = resample_tasks(200, rng=rng(), n_resamples=4000).mean(values, nothing="")
    expected = stats.t.interval(0.95, 199, values.mean(), values.std(ddof=1) / np.sqrt(200))
    assert found.interval == pytest.approx(expected, abs=0.003)


def test_groups_of_tasks_give_the_same_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).random(3000)
    alone = resample_tasks(3000, rng=rng()).mean(values, nothing="")
    monkeypatch.setattr(resampling, "MOST_UNITS", 1000)
    grouped = resample_tasks(3000, rng=rng())
    assert grouped.n_units == 1000
    assert set(np.bincount(grouped.unit)) == {3}
    found = grouped.mean(values, nothing="")
    assert found.value == pytest.approx(alone.value)
    assert found.half_width == pytest.approx(alone.half_width, rel=0.1)


def test_the_jackknife_of_a_mean_is_its_t_interval() -> None:
    values = np.array([0.2, 0.4, 0.5, 0.5, 0.6, 0.9, np.nan])
    found = resample_tasks(7, rng=rng()).mean(values, nothing="")
    kept = values[:6]
    expected = stats.t.interval(0.95, 5, kept.mean(), kept.std(ddof=1) / np.sqrt(6))
    assert found.interval == pytest.approx(expected)
    assert found.n == 6


def test_what_some_resamples_do_not_have_has_no_interval() -> None:
    drawn = resample_tasks(30, rng=rng())
    rare = np.arange(30) < 1

    def of_rare(weights: np.ndarray) -> np.ndarray:
        return ratio(weights @ rare, weights @ rare)

    found = drawn.estimate(of_rare, np.ones(30, bool), nothing="")
    assert (found.value, found.interval, found.status) == (1.0, None, SOME_UNDEFINED)


def test_without_variation_the_bound_is_exact() -> None:
    found = resample_tasks(30, rng=rng()).mean(np.ones(30), nothing="")
    assert found.interval == pytest.approx((0.025 ** (1 / 30), 1.0))
    nothing = resample_tasks(30, rng=rng()).mean(np.full(30, np.nan), nothing="add tasks")
    assert nothing == TaskEstimate(
        value=None, interval=None, n=0, method="jackknife over tasks, t",
        status="not_estimable: add tasks",
    )  # fmt: skip


@pytest.mark.parametrize(("good", "n"), [(0, 20), (3, 20), (20, 20), (49, 50)])
def test_limits_of_a_share_are_exact(good: int, n: int) -> None:
    values = np.arange(n) < good
    found = bounded_mean(values.astype(float), rng=rng(), nothing="", n_draws=100_000)
    exact = stats.binomtest(good, n).proportion_ci(method="exact")
    assert found.interval == pytest.approx((exact.low, exact.high), abs=0.003)


def test_weights_of_tasks_that_are_equal_change_nothing() -> None:
    values = np.array([0.2, 0.9, 1.0, 1.0, 0.5, 0.0])
    plain, scaled = (
        gaffke_limits(values, rng=rng(), weights=weights) for weights in (None, np.full(6, 7.0))
    )
    assert scaled == pytest.approx(plain)
    with pytest.raises(ValueError, match="positive"):
        gaffke_limits(values, rng=rng(), weights=np.zeros(6))


def test_unequal_weights_have_the_limits_of_the_effective_number_of_tasks() -> None:
    """30 tasks of weight 1 and 10 of 4: 70^2 / 190 = 25.8 tasks."""
    weights = np.repeat([1.0, 4.0], [30, 10])
    alike = gaffke_limits(np.ones(40), rng=rng(), weights=weights)
    assert alike == pytest.approx((0.025 ** (190 / 70**2), 1.0))
    # Nearly alike is nearly that.
    nearly = np.where(np.arange(40) == 0, 0.999, 1.0)
    found = gaffke_limits(nearly, rng=rng(), weights=weights, n_draws=100_000)
    assert found == pytest.approx(alike, abs=0.01)


def test_limits_of_a_bounded_mean_need_values_in_its_range() -> None:
    with pytest.raises(ValueError, match="in \\[0, 1\\]"):
        bounded_mean(np.array([1.5] * 5), rng=rng(), nothing="")
    assert bounded_mean(np.array([1.0] * 4), rng=rng(), nothing="").interval is None
    with pytest.raises(ValueError, match="at least 1"):
        resample_tasks(0, rng=rng())
