"""The Agent Success Rate: fixture values, identities, missing cost, intervals that must not lie."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from calibration.success_rate.runs import scores
from tests.classes import CREDIT
from tests.success_rate.rates import rate


def test_ten_abandoned_runs_over_budget_score_zero_but_literally_minus_one() -> None:
    result = rate([4] * 10, costs=[6.0] * 10, ceilings=2.0)
    assert result.asr.value == 0.0
    assert result.asr_literal == pytest.approx(-1.0)
    assert result.asr.interval == pytest.approx((0.0, 1 - 0.025 ** (1 / 10)))
    assert result.asr_without_abandoned.status.startswith("not_estimable")


def test_missing_cost_gives_no_penalty_and_a_range() -> None:
    """Four complete runs, two without a cost: between (1 + 0.5 + 0 + 0) / 4 and 3.5 / 4."""
    result = rate([0] * 4, costs=[1.0, 3.0, np.nan, np.nan], ceilings=2.0)
    assert result.asr.value == pytest.approx(0.875)
    assert result.asr_range == pytest.approx((0.375, 0.875))
    assert (result.n_missing_cost, result.cost_coverage) == (2, 0.5)
    assert result.share_over_ceiling.value == pytest.approx(0.5)
    without = rate([0] * 4)
    assert (without.cost_coverage, without.asr_range) == (0.0, (0.0, 1.0))
    assert not without.share_over_ceiling.ok


def test_weights_are_inverse_inclusion_probabilities_and_reviewers_enter_in_shares() -> None:
    # One complete run that stands for three and one failed run: 3 / 4.
    assert rate([0, 2], weights=np.array([3.0, 1.0])).asr.value == pytest.approx(0.75)
    rows = [[0.5, 0.5, 0, 0, 0], [1, 0, 0, 0, 0]]
    assert rate(rows).asr.value == pytest.approx((0.7 + 1) / 2)
    codes = np.random.default_rng(0).integers(0, 5, 60)
    assert rate(np.eye(5)[codes]) == rate(codes)


@pytest.mark.parametrize("outcome", [0, 1, 2])
def test_equal_runs_do_not_get_a_zero_length_interval(outcome: int) -> None:
    """At most 1 - .025^(1/50) = .07113 of the runs can differ."""
    found, low = rate([outcome] * 50).asr, CREDIT[outcome] * (1 - 0.07113)
    assert found.status == "no variation seen"
    assert found.interval == pytest.approx((low, low + 0.07113), abs=1e-5)


def test_percentile_interval_is_the_binomial_one() -> None:
    """For complete or not, the bootstrap mean is Binomial(n, k/n) / n exactly."""
    estimate = rate([0] * 60 + [2] * 40, n_resamples=40_000).asr
    exact = tuple(float(stats.binom.ppf(at, 100, 0.6)) / 100 for at in (0.025, 0.975))
    assert estimate.interval == pytest.approx(exact, abs=0.0101)


def test_few_tasks_use_t_on_task_totals_and_fewer_than_five_have_no_interval() -> None:
    """Six tasks of two runs: the mean of six task means, s / sqrt(6), t with 5 df 2.5706."""
    means = np.array([1.0, 1, 0.5, 0.5, 0, 1])
    outcomes = [k for m in means for k in ([0, 0] if m == 1 else [0, 2] if m else [2, 2])]
    estimate = rate(outcomes, clusters=np.repeat(np.arange(6), 2)).asr
    assert estimate.method == "ratio of totals over 6 tasks, t"
    assert estimate.se == pytest.approx(means.std(ddof=1) / np.sqrt(6))
    assert estimate.interval is not None
    low = means.mean() - 2.5706 * (estimate.se or 0)
    assert estimate.interval[0] == pytest.approx(low, abs=1e-4)
    few = rate([0, 0, 2, 2, 0, 1], clusters=np.array([0, 0, 1, 1, 2, 2])).asr
    assert few.value == pytest.approx(3.4 / 6)
    assert few.interval is None
    assert few.status.startswith("not_estimable: no interval from 3 tasks")


def test_strata_take_the_variance_between_them_out() -> None:
    """Stratum A is 40 of 50 complete, B 10 of 50: variance 2 x .25 x (.16 x 50 / 49) / 50."""
    outcomes = [0] * 40 + [2] * 10 + [0] * 10 + [2] * 40
    inside = rate(outcomes, strata=np.repeat([0, 1], 50)).asr
    across = rate(outcomes).asr
    assert inside.se == pytest.approx(np.sqrt(2 * 0.25 * 0.16 / 49))
    assert (inside.half_width or 1) < 0.9 * (across.half_width or 0)
    flat = rate([0] * 50 + [2] * 50, strata=np.repeat([0, 1], 50)).asr
    assert flat.status == "no variation seen"
    assert flat.half_width == pytest.approx((1 - 0.025 ** (1 / 100)) / 2)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"outcomes": []}, "must not be empty"),
        ({"outcomes": [5]}, r"outcomes must be in \[0, 5\)"),
        ({"outcomes": [0.5]}, "outcomes must be integer codes"),
        ({"outcomes": [[0.5, 0.2, 0, 0, 0]]}, "sum to 1"),
        ({"outcomes": [0], "costs": [1.0]}, "ceilings must be given"),
        ({"outcomes": [0], "costs": [-1.0], "ceilings": 1.0}, "costs must be finite"),
        ({"outcomes": [0], "costs": [1.0], "ceilings": 0.0}, "ceilings must be positive"),
        ({"outcomes": [0], "costs": [1.0, 2.0], "ceilings": 1.0}, "costs must have shape"),
        ({"outcomes": [0], "weights": np.array([0.0])}, "weights must be positive"),
        ({"outcomes": [0], "weights": np.ones(2)}, "weights must have shape"),
        ({"outcomes": [0], "credit": [2.0, 0.0]}, "credit must be in"),
        ({"outcomes": [0], "n_resamples": 0}, "n_resamples must be at least 1"),
        ({"outcomes": [0], "confidence_level": 1.0}, "confidence_level must be in"),
        ({"outcomes": [0], "interval": "basic"}, "interval must be 'percentile' or 'bca'"),
        ({"outcomes": [0] * 2, "clusters": np.zeros(2), "strata": np.arange(2)}, "in one stratum"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        rate(options.pop("outcomes"), **options)
    with pytest.raises(ValueError, match="penalties must have shape"):
        scores([0, 1], [0.0], credit=CREDIT)


@settings(max_examples=40, deadline=None)
@given(outcomes=st.lists(st.integers(0, 4), min_size=1, max_size=60), seed=st.integers(0, 1000))
def test_rates_stay_in_range_and_the_identity_holds(outcomes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = len(outcomes)
    costs = np.where(rng.random(n) < 0.2, np.nan, rng.gamma(1, 2, n))
    weights = rng.choice([1.0, 2.0, 5.0], n)
    result = rate(outcomes, costs=costs, ceilings=2.0, weights=weights, n_resamples=60)
    credit = sum(c * (s.value or 0) for c, s in zip(CREDIT, result.class_shares, strict=True))
    assert result.asr.value == pytest.approx(credit - result.mean_effective_penalty, abs=1e-9)
    assert result.asr_range[0] <= result.asr_range[1] + 1e-12
    assert -1 <= result.asr_literal <= (result.asr_gross.value or 0) + 1e-12
    for estimate in (result.asr, result.asr_gross, result.pass_rate, *result.class_shares):
        if estimate.interval is not None:
            assert 0 <= estimate.interval[0] <= estimate.interval[1] <= 1
