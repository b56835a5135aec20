"""G-Pass@k, retries, steps and plans of trials: every case by hand, and invariants."""

from itertools import combinations
from math import comb
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.success_rate.pass_at_k import (
    Trials,
    count_trials,
    pass_at_k,
    pass_hat_k,
    pass_of_tasks,
    pass_over_tasks,
    passes_of_tasks,
)
from calibration.success_rate.trials import (
    compounded,
    g_pass_at_k,
    shares_g,
    step_rate,
    task_variance,
    tasks_for_half_width,
    trials_for_tasks,
    tries_of_tasks,
    with_retries,
)
from tests.success_rate.test_pass_at_k import rng, trials

COUNTS = st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@pytest.mark.parametrize("c", range(6))
@pytest.mark.parametrize("k", range(1, 6))
@pytest.mark.parametrize("threshold", [0.01, 0.34, 0.5, 0.75, 1.0])
def test_g_pass_is_the_share_of_subsets_that_pass_often_enough(
    c: int, k: int, threshold: float
) -> None:
    passed = [1] * c + [0] * (5 - c)
    needed = max(1, int(np.ceil(threshold * k)))
    shares = [sum(of) >= needed for of in combinations(passed, k)]
    assert g_pass_at_k(5, c, k, threshold) == pytest.approx(np.mean(shares), abs=1e-12)


def test_g_pass_ends_at_pass_at_k_and_pass_hat_k() -> None:
    assert g_pass_at_k(10, 4, 3, 1 / 3) == pass_at_k(10, 4, 3)
    assert g_pass_at_k(10, 4, 3, 1.0) == pass_hat_k(10, 4, 3)
    # Seven of a hundred are seven, though .07 x 100 is a little more.
    n, c = np.array([1000]), np.array([60])
    assert shares_g(n, c, 100, 0.07) == pytest.approx(shares_g(n, c, 100, 0.0699))
    assert g_pass_at_k(2, 2, 3, 0.5) is None
    for wrong in (0.0, 1.1, float("nan")):
        with pytest.raises(ValueError, match="threshold must be"):
            g_pass_at_k(5, 3, 3, wrong)


def test_retries_by_hand() -> None:
    found = with_retries(0.5, 2)
    assert (found.success, found.expected_tries) == (0.875, 1.75)
    assert with_retries(0.0, 2).expected_tries == 3
    assert with_retries(1.0, 5).expected_tries == 1
    # Failures of two of four trials: 1 + 1/2 + 1/6.
    tries = tries_of_tasks(np.array([4]), np.array([2]), 2)
    assert tries == pytest.approx([1 + 1 / 2 + 1 / 6])
    for p, r in ((-0.1, 1), (1.1, 1), (float("nan"), 1), (0.5, -1)):
        with pytest.raises(ValueError, match="must be"):
            with_retries(p, r)


def test_steps_compound_and_are_taken_apart_again() -> None:
    assert compounded(0.95, 10) == pytest.approx(0.5987369392)
    assert step_rate(compounded(0.95, 10), 10) == pytest.approx(0.95)
    with pytest.raises(ValueError, match="must be in"):
        step_rate(0.5, 0)
    with pytest.raises(ValueError, match="must be in"):
        compounded(1.2, 3)


@pytest.mark.parametrize(("correlation", "k"), [(0.2, 1), (0.2, 3), (0.0, 2), (1.0, 3)])
def test_the_variance_of_a_plan_is_that_of_simulated_tasks(correlation: float, k: int) -> None:
    draw = np.random.default_rng(4)
    if correlation in (0.0, 1.0):
        p = np.full(200_000, 0.6) if correlation == 0 else (draw.random(200_000) < 0.6) * 1.0
    else:
        size = 1 / correlation - 1
        p = draw.beta(0.6 * size, 0.4 * size, 200_000)
    c = draw.binomial(5, p)
    of_task = np.array([comb(x, k) / comb(5, k) for x in range(6)])[c]
    found = task_variance(5, k, mean=0.6, correlation=correlation)
    assert found == pytest.approx(of_task.var(), rel=0.02)


def test_plans_by_hand() -> None:
    one, two = tasks_for_half_width(0.05, [1, 2], mean=0.5, correlation=0.0)
    assert (one.n_tasks, two.n_tasks, two.n_runs) == (385, 193, 386)
    assert one.enough
    # Tasks that pass always or never: trials of a task add nothing.
    few = tasks_for_half_width(0.05, [1, 20], mean=0.5, correlation=1.0)
    assert [of.n_tasks for of in few] == [385, 385]
    (given_,) = tasks_for_half_width(0.05, [1], mean=0.5, correlation=0.0, n_tasks=100)
    assert not given_.enough
    assert given_.half_width == pytest.approx(0.098, abs=1e-4)
    assert trials_for_tasks(0.05, 100, mean=0.5, correlation=0.0) == 4
    assert trials_for_tasks(0.05, 100, mean=0.5, correlation=1.0) is None
    (beyond,) = tasks_for_half_width(1e-6, [1], mean=0.5, correlation=0.0)
    assert (beyond.n_tasks, beyond.enough) == (None, False)
    for wrong in (
        lambda: tasks_for_half_width(float("nan"), [1], mean=0.5, correlation=0.0),
        lambda: task_variance(2, 3, mean=0.5, correlation=0.0),
        lambda: task_variance(2, 1, mean=1.5, correlation=0.0),
    ):
        with pytest.raises(ValueError, match="must be"):
            wrong()


def estimates(counts: list[tuple[int, int]], k: int) -> tuple[float | None, float | None]:
    n, c = map(list, zip(*counts, strict=True))
    found = pass_over_tasks(trials(n, c), k, rng=rng(), n_resamples=1)
    return found.pass_at_k.value, found.pass_hat_k.value


@settings(max_examples=40)
@given(st.lists(COUNTS, min_size=1, max_size=6), st.integers(1, 5))
def test_all_pass_less_often_than_one_and_one_less_than_any(
    counts: list[tuple[int, int]], k: int
) -> None:
    counts = [(n + k, c) for n, c in counts]
    (one, _), (at, hat) = estimates(counts, 1), estimates(counts, k)
    assert one is not None
    assert at is not None
    assert hat is not None
    assert hat <= one + 1e-12 <= at + 2e-12
    # With k one rises and the other falls; both rise with c.
    more_at, more_hat = estimates([(n + 1, c) for n, c in counts], k)
    next_at, next_hat = estimates([(n + 1, c) for n, c in counts], k + 1)
    assert next_at is not None
    assert next_hat is not None
    assert next_at >= (more_at or 0) - 1e-12
    assert next_hat <= (more_hat or 0) + 1e-12
    better_at, better_hat = estimates([(n, min(n, c + 1)) for n, c in counts], k)
    assert better_at is not None
    assert better_hat is not None
    assert better_at >= at - 1e-12
    assert better_hat >= hat - 1e-12


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1), st.randoms())
def test_the_order_of_runs_and_tasks_does_not_matter(
    runs: list[tuple[int, bool]], random: Random
) -> None:
    shuffled = list(runs)
    random.shuffle(shuffled)
    one, other = (count_trials(*map(list, zip(*of, strict=True))) for of in (runs, shuffled))
    assert (one.n.tolist(), one.c.tolist()) == (other.n.tolist(), other.c.tolist())
    backwards = Trials(tasks=one.tasks[::-1], n=one.n[::-1], c=one.c[::-1])
    first, second = (
        pass_over_tasks(of, 1, rng=rng(), n_resamples=20).pass_hat_k for of in (one, backwards)
    )
    assert first == second


def test_no_share_is_a_negative_zero() -> None:
    found = pass_over_tasks(trials([3] * 6, [0] * 6), 2, rng=rng())
    for value in (pass_at_k(3, 0, 2), found.pass_at_k.value, found.pass_hat_k.value):
        assert str(value) == "0.0"


def test_the_hierarchy_reaches_the_ends_where_all_trials_agree() -> None:
    # By a grid of 4,000 x 400 cells: [.8060, .9989] and [.9583, .9998].
    for tasks, n, limits in ((8, 4, (0.8060, 0.9989)), (40, 5, (0.9583, 0.9998))):
        found = pass_of_tasks(trials([n] * tasks, [n] * tasks), 1).pass_hat_k.interval
        assert found == pytest.approx(limits, abs=3e-4)
        failed = pass_of_tasks(trials([n] * tasks, [0] * tasks), 1).pass_hat_k.interval
        assert failed == pytest.approx((1 - limits[1], 1 - limits[0]), abs=3e-4)


def test_several_k_share_one_posterior_and_large_counts_agree_with_small_ones() -> None:
    counted = trials([6] * 9, [6, 5, 3, 0, 2, 6, 6, 1, 4])
    both = passes_of_tasks(counted, [1, 4])
    assert both == (pass_of_tasks(counted, 1), pass_of_tasks(counted, 4))
    # Above 100 trials log gamma takes the place of sums of logarithms.
    few, many = (
        pass_of_tasks(trials([n] * 9, [n // 2] * 9), 1).pass_hat_k.value for n in (100, 101)
    )
    assert few == pytest.approx(many, abs=5e-3)
