"""PPI++: special cases that must coincide, weights, tasks, and verdicts that are no class."""

import numpy as np
import pytest

from calibration.judge_calibration.prediction_powered import (
    ProxySums,
    class_proxies,
    ppi_plus_plus,
    score_proxies,
    score_sums,
    sums_by_verdict,
)
from calibration.judge_calibration.samples import production_sums, production_sums_from_counts
from calibration.statistics.means import human_only

CREDIT = [1.0, 0.4, 0.0]


def sample(seed: int = 3, n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.choice([1.0, 0.4, 0.0], n, p=[0.6, 0.2, 0.2])
    return scores, np.where(rng.random(n) < 0.8, scores, rng.choice([1.0, 0.4, 0.0], n))


def whole(proxies: np.ndarray, n: int = 5000) -> ProxySums:
    return ProxySums(n=n, total=0.58 * n, squares=0.55 * n).plus(proxies)


def test_production_that_is_all_labelled_has_nothing_to_add() -> None:
    scores, proxies = sample()
    found = ppi_plus_plus(scores, proxies, ProxySums(n=0, total=0, squares=0).plus(proxies))
    assert found.tuning == 0
    assert found.estimate.value == pytest.approx(scores.mean())
    # Equal weights and tasks of one change nothing.
    plain = ppi_plus_plus(scores, proxies, whole(proxies))
    same = ppi_plus_plus(
        scores, proxies, whole(proxies), weights=np.full(120, 4.0), clusters=np.arange(120)
    )
    assert same == plain


def test_unequal_weights_with_a_useless_judge_are_the_hajek_mean() -> None:
    scores, _ = sample()
    weights = np.where(scores > 0.5, 1.0, 3.0)
    nothing = ProxySums(n=900, total=0, squares=0)
    found = ppi_plus_plus(scores, np.zeros(120), nothing, weights=weights)
    alone = human_only(scores, weights=weights)
    assert found.estimate.value == pytest.approx(alone.value)
    assert found.estimate.se == pytest.approx(alone.se)


def test_unequal_weights_take_the_proxy_mean_over_all_of_production() -> None:
    """With proxy = score - 0.3 and a factor near 1 the value is the proxy mean plus 0.3."""
    scores = np.tile([1.0, 0.4], 40)
    scores[0] = 0.9
    proxies = scores - 0.3
    proxies[1] += 1e-3
    weights = np.tile([1.0, 3.0], 40)
    production = ProxySums(n=100_000, total=20_000, squares=30_000)
    found = ppi_plus_plus(scores, proxies, production, weights=weights)
    assert found.tuning == pytest.approx(1.0, abs=1e-2)
    assert found.estimate.value == pytest.approx(0.5, abs=1e-2)


def test_repeated_tasks_widen_the_interval_and_keep_the_value() -> None:
    scores, proxies = sample(n=40)
    thrice, said = np.tile(scores, 3), np.tile(proxies, 3)
    alone = ppi_plus_plus(thrice, said, whole(said)).estimate
    kept = ppi_plus_plus(thrice, said, whole(said), clusters=np.tile(np.arange(40), 3)).estimate
    assert kept.value == pytest.approx(alone.value)
    assert (kept.se or 0) > 1.6 * (alone.se or 1)
    few = ppi_plus_plus(thrice, said, whole(said), clusters=np.arange(120) % 4).estimate
    assert few.interval is None
    assert few.status.startswith("no interval: 4 tasks")


@pytest.mark.parametrize(
    ("scores", "status"),
    [(np.ones(50), "no variation seen"), (np.repeat([1.0, 0.0], 25), "no judge error seen")],
)
def test_labels_without_a_single_deviation_leave_room(scores: np.ndarray, status: str) -> None:
    found = ppi_plus_plus(scores, scores, ProxySums(n=10_000, total=6000, squares=6000)).estimate
    assert found.status == status
    assert found.interval is not None
    assert found.interval[1] - found.interval[0] > 0.07


def test_proxy_sums_equal_the_traces_one_by_one() -> None:
    rng = np.random.default_rng(4)
    verdicts, penalties = rng.integers(0, 5, 400), rng.random(400)
    production = production_sums(verdicts, penalties, credit=CREDIT, n_verdicts=5)
    proxies = score_proxies(verdicts, penalties, production)
    sums = score_sums(production)
    by_trace = (400, proxies.sum(), proxies @ proxies)
    assert (sums.n, sums.total, sums.squares) == pytest.approx(by_trace)
    of_class = verdicts < 3
    expected = np.maximum(0.0, np.array(CREDIT)[verdicts[of_class]] - penalties[of_class])
    assert proxies[of_class] == pytest.approx(expected)
    # A trace without a class stands for what the class verdicts would score at its penalty.
    shares = np.bincount(verdicts[of_class], minlength=3) / of_class.sum()
    one = int(np.flatnonzero(~of_class)[0])
    assert proxies[one] == pytest.approx(shares @ np.maximum(0.0, CREDIT - penalties[one]))


def test_class_proxies_sum_to_one() -> None:
    counts = np.array([50.0, 30, 20, 5, 2])
    proxies = class_proxies(counts, 3)
    assert proxies.sum(axis=0) == pytest.approx(np.ones(5))
    production = production_sums_from_counts(counts, credit=CREDIT)
    assert sums_by_verdict(proxies[0], production).total == pytest.approx(50 + 7 * 0.5)
    assert score_sums(production).mean == pytest.approx(0.62)


def test_bad_input_is_refused() -> None:
    sums = ProxySums(n=9, total=5, squares=5)
    with pytest.raises(ValueError, match="proxies must have shape"):
        ppi_plus_plus(np.ones(3), np.ones(2), sums)
    assert not ppi_plus_plus(np.ones(1), np.ones(1), sums).estimate.ok
