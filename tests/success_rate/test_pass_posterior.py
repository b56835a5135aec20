"""Posteriors of pass@k and pass^k: outside values, a finer grid, and how tasks are shrunk."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import special

from calibration.success_rate.pass_at_k import pass_of_one_task, pass_of_tasks
from tests.success_rate.test_pass_at_k import entries, trials


@pytest.mark.parametrize(
    ("given_", "expected"), entries("upstream docs Bayesian", "pass@3 = 0.90 CI claim")
)
def test_one_task_is_exact(given_: dict[str, Any], expected: dict[str, Any]) -> None:
    found = pass_of_one_task(given_["n"], given_["c"], given_["k"])
    for name, estimate in (("pass_at_k", found.pass_at_k), ("pass_pow_k", found.pass_hat_k)):
        assert estimate.value == pytest.approx(expected[name], abs=1e-9)
        assert estimate.interval == pytest.approx(tuple(expected[f"{name}_ci"]), abs=1e-9)


def by_brute_force(n: list[int], c: list[int], k: int) -> tuple[float, float, float]:
    """Sum over a plain grid of 600 x 600."""
    m = (np.arange(600) + 0.5) / 600
    edges = np.linspace(np.log(0.2), np.log(300), 601)
    s = np.exp((edges[:-1] + edges[1:]) / 2)
    a, b = m[:, None] * s, (1 - m)[:, None] * s
    log = -len(n) * special.betaln(a, b)
    for (x, y), times in Counter(zip(n, c, strict=True)).items():
        log += times * special.betaln(a + y, b + x - y)
    weight = np.exp(log - np.max(log))
    weight /= weight.sum()
    hat = np.exp(special.betaln(a + k, b) - special.betaln(a, b))
    order = np.argsort(hat.ravel())
    cumulated = np.cumsum(weight.ravel()[order])
    low, high = np.interp([0.025, 0.975], cumulated, hat.ravel()[order])
    return float((weight * hat).sum()), float(low), float(high)


@pytest.mark.parametrize(
    ("n", "c"),
    [
        ([5] * 12, [5, 5, 4, 3, 5, 0, 1, 5, 2, 5, 4, 3]),
        ([4] * 8, [4] * 8),
        ([3] * 10, [3, 0] * 5),
        ([10, 2, 3, 8, 1, 30], [9, 1, 3, 2, 0, 25]),
        ([8] * 60, [4, 5, 3] * 20),
    ],
)
def test_the_grid_agrees_with_one_that_is_finer_and_does_not_close_in(
    n: list[int], c: list[int]
) -> None:
    found = pass_of_tasks(trials(n, c), 3).pass_hat_k
    value, low, high = by_brute_force(n, c, 3)
    assert found.value == pytest.approx(value, abs=2e-3)
    assert found.interval == pytest.approx((low, high), abs=5e-3)


def test_a_task_is_drawn_towards_the_others_and_marked() -> None:
    found = pass_of_tasks(trials([4] * 9, [3] * 8 + [0]), 1)
    good, bad = found.tasks[0].pass_hat_k, found.tasks[-1].pass_hat_k
    assert (good.value or 1) < 0.75
    assert (bad.value or 0) > 0.05
    for estimate in (good, bad):
        assert estimate.status == "provisional: shrunk towards the other tasks"
        assert estimate.interval is not None
        assert estimate.interval[0] < (estimate.value or -1) < estimate.interval[1]
    assert [task.task for task in found.tasks] == list(range(9))


def test_no_task_and_impossible_counts() -> None:
    none = pass_of_tasks(trials([], []), 2)
    assert none.pass_hat_k.status == "not_estimable: no task: add runs"
    assert none.tasks == ()
    with pytest.raises(ValueError, match=r"c in \[0, n\]"):
        pass_of_tasks(trials([2], [3]), 1)
    with pytest.raises(ValueError, match="k must be"):
        pass_of_one_task(2, 1, 0)
    with pytest.raises(ValueError, match="confidence_level"):
        pass_of_one_task(2, 1, 1, confidence_level=1.0)
