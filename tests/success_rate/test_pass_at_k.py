"""pass@k and pass^k: outside values, every case of few or equal tasks, and invariants."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calibration.success_rate.pass_at_k import (
    Trials,
    band,
    count_trials,
    extrapolated,
    pass_at_k,
    pass_hat_k,
    pass_over_tasks,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "trials_and_gates.json"
ENTRIES: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))


def entries(*starts: str) -> list[Any]:
    found = [e for e in ENTRIES if e["item"].startswith(starts)]
    assert found
    return [pytest.param(e["inputs"], e["recomputed"], id=e["item"]) for e in found]


def rng() -> np.random.Generator:
    return np.random.default_rng(8)


def trials(n: list[int], c: list[int]) -> Trials:
    return Trials(tasks=np.arange(len(n)), n=np.array(n), c=np.array(c))


@pytest.mark.parametrize(("given_", "expected"), entries("pass table", "Agent A", "Agent B"))
def test_the_table_of_trials(given_: dict[str, Any], expected: dict[str, float]) -> None:
    k = given_.get("k", 3)
    at, hat = pass_at_k(given_["n"], given_["c"], k), pass_hat_k(given_["n"], given_["c"], k)
    assert at == pytest.approx(expected.get("pass_at", expected.get("pass@3")), abs=1e-9)
    assert hat == pytest.approx(expected.get("pass_hat", expected.get("pass^3")), abs=1e-9)


@pytest.mark.parametrize(("given_", "expected"), entries("Bernoulli plug-in"))
def test_as_if_trials_were_independent(given_: dict[str, Any], expected: dict[str, float]) -> None:
    found = extrapolated(trials([given_["n"]], [given_["c"]]), given_["k"], rng=rng())
    assert found.pass_at_k.value == pytest.approx(expected["pass_at_k"], abs=1e-9)
    assert found.pass_hat_k.value == pytest.approx(expected["pass_pow_k"], abs=1e-9)
    # What is extrapolated says so.
    found = extrapolated(trials([4] * 25, [1, 2, 3, 4, 0] * 5), 10, rng=rng())
    assert found.pass_hat_k.status.startswith("provisional: extrapolated to k = 10")
    assert found.pass_hat_k.interval is not None


@given(st.integers(1, 60), st.data())
def test_both_are_the_exact_ratios_of_binomials(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    all_of_them = math.comb(n, k)
    hat = pass_hat_k(n, c, k)
    assert hat == pytest.approx(math.comb(c, k) / all_of_them, rel=1e-12, abs=0)
    assert pass_at_k(n, c, k) == pytest.approx(
        (all_of_them - math.comb(n - c, k)) / all_of_them, rel=1e-12, abs=0
    )


def test_many_trials_neither_overflow_nor_cancel() -> None:
    n = 10**9
    assert pass_at_k(n, 3, 5) == pytest.approx(15 / n, rel=1e-8)
    assert pass_hat_k(n, n // 2, 10) == pytest.approx(2.0**-10, rel=1e-7)
    assert pass_at_k(10_000, 5_000, 5_001) == 1.0


def test_fewer_trials_than_k_are_no_number() -> None:
    assert pass_at_k(2, 2, 3) is None
    assert pass_hat_k(2, 0, 3) is None
    found = pass_over_tasks(trials([2, 2, 3], [2, 2, 3]), 3, rng=rng())
    assert (found.n_tasks, found.n_too_few, found.pass_hat_k.value) == (1, 2, 1.0)
    none = pass_over_tasks(trials([2, 2], [1, 2]), 3, rng=rng())
    assert none.pass_hat_k.value is None
    assert none.pass_hat_k.status.startswith("not_estimable: no task has 3 trials")
    assert (none.n_tasks, none.n_too_few, none.band) == (0, 2, None)


def test_tasks_weigh_alike_however_many_trials_they_have_unless_weighted() -> None:
    found = pass_over_tasks(trials([100, 2, 2, 2, 2], [100, 0, 0, 0, 0]), 1, rng=rng())
    assert found.pass_at_k.value == pytest.approx(0.2)
    weights = np.array([4.0, 1.0, 1.0, 1.0, 1.0])
    found = pass_over_tasks(trials([3, 2, 2, 2, 2], [3, 0, 0, 0, 0]), 2, rng=rng(), weights=weights)
    assert found.pass_hat_k.value == pytest.approx(0.5)


@pytest.mark.parametrize(("n_tasks", "has_interval"), [(4, False), (5, True), (20, True)])
def test_the_interval_needs_five_tasks(n_tasks: int, has_interval: bool) -> None:
    c = [2 + k % 2 for k in range(n_tasks)]
    found = pass_over_tasks(trials([3] * n_tasks, c), 2, rng=rng()).pass_hat_k
    assert (found.interval is not None) == has_interval == found.status.startswith("ok")
    assert found.method == "Gaffke's limits over tasks"
    assert found.n == n_tasks


@pytest.mark.parametrize("n_tasks", [6, 50])
def test_limits_of_one_trial_a_task_are_those_of_clopper_and_pearson(n_tasks: int) -> None:
    passed = n_tasks - 1
    c = [1] * passed + [0]
    found = pass_over_tasks(trials([1] * n_tasks, c), 1, rng=rng(), n_resamples=100_000)
    exact = stats.binomtest(passed, n_tasks).proportion_ci(method="exact")
    assert found.pass_at_k.interval == pytest.approx((exact.low, exact.high), abs=0.003)


def test_one_task_that_differs_leaves_no_interval_without_length() -> None:
    """49 tasks pass ten of ten, one two of ten: pass@3 is 1 but for that task's 1 - 56/120."""
    found = pass_over_tasks(trials([10] * 50, [10] * 49 + [2]), 3, rng=rng()).pass_at_k
    assert found.value == pytest.approx((49 + 1 - 56 / 120) / 50)
    assert found.interval is not None
    # All 50 alike would have .929; a task that fails in all trials .894 (Clopper and Pearson).
    assert 0.894 < found.interval[0] < 0.929
    assert found.interval[1] > 0.998
    assert found.status == "ok"


def test_tasks_that_all_agree_have_an_exact_bound() -> None:
    all_pass = pass_over_tasks(trials([4] * 30, [4] * 30), 3, rng=rng())
    assert (all_pass.pass_hat_k.value, all_pass.band) == (1, "reliable (k = 3)")
    assert all_pass.pass_hat_k.interval == pytest.approx((0.025 ** (1 / 30), 1.0))
    assert all_pass.pass_hat_k.status == "ok"
    none = pass_over_tasks(trials([4] * 30, [0] * 30), 3, rng=rng())
    assert none.pass_at_k.interval == pytest.approx((0.0, 1 - 0.025 ** (1 / 30)))


def test_figures_that_are_the_same_have_the_same_limits() -> None:
    found = pass_over_tasks(trials([3] * 9, [0, 1, 2, 3, 3, 3, 2, 1, 0]), 1, rng=rng())
    one, other = found.pass_at_k, found.pass_hat_k
    # The last digit of a limit depends on the processor.
    assert one.interval == pytest.approx(other.interval, abs=1e-12)
    assert replace(one, interval=other.interval) == other


def test_bands_leave_no_gap() -> None:
    assert (band(0.96, 0.71), band(0.96, 0.49)) == ("reliable", "inconsistent")
    assert band(0.69, 0.1) == "needs improvement"
    for at, hat in ((0.96, 0.70), (0.96, 0.50), (0.95, 0.9), (0.70, 0.1)):
        assert band(at, hat) == "mixed"


@pytest.mark.parametrize(
    ("n", "c", "k", "match"),
    [
        (3, 4, 1, r"c in \[0, n\]"), (3, -1, 1, r"c in \[0, n\]"),
        (0, 0, 1, "n must be at least 1"), (3.5, 1, 1, "n must be whole"),
        (3, 1, 0, "k must be"), (3, 1, 1.5, "k must be"),
    ],
)  # fmt: skip
def test_impossible_counts_are_refused(n: Any, c: Any, k: Any, match: str) -> None:
    for of in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=match):
            of(n, c, k)
    with pytest.raises(ValueError, match="one shape"):
        count_trials(["a", "b"], [True])


def test_equal_tasks_may_be_given_once() -> None:
    one_by_one = pass_over_tasks(trials([3] * 40, [3] * 25 + [1] * 15), 2, rng=rng())
    counted = pass_over_tasks(trials([3, 3], [3, 1]), 2, rng=rng(), like=np.array([25, 15]))
    assert counted == one_by_one
