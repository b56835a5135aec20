"""Coverage of the limits of rare shares, and size of the test of a moved mix."""

import numpy as np
import pytest
from scipy.stats import binomtest

from calibration.statistics.means import clustered_share
from calibration.success_rate.trend import mix_shifts
from tests.simulation.judged import Judge, Tally

pytestmark = pytest.mark.slow
REPETITIONS = 2000

# Exact limits are on the safe side where few events are expected.
BAND = (0.94, 1.0)


@pytest.mark.parametrize(
    ("tasks", "trials", "share", "alike", "seed"),
    [
        (200, 1, 0.02, 0.0, 1), (1000, 1, 0.005, 0.0, 2), (50, 4, 0.1, 0.5, 3),
        (200, 4, 0.05, 0.3, 4), (30, 4, 0.3, 0.5, 5),
    ],
)  # fmt: skip
def test_shares(
    judge: Judge, tasks: int, trials: int, share: float, alike: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    tally = Tally(share)
    for _ in range(REPETITIONS):
        # A task's runs share one draw with a chance of `alike` each.
        common = rng.random((tasks, 1)) < share
        own = rng.random((tasks, trials)) < share
        copies = rng.random((tasks, trials)) < np.sqrt(alike)
        hits = np.where(copies, common, own).sum(axis=1).astype(np.float64)
        tally.add_sure(clustered_share(hits, np.full(tasks, float(trials)), n=tasks * trials))
    setting = f"{tasks} tasks x {trials}, share {share:g}, correlation {alike:g}"
    tally.give(judge, "share of operation, effective number", setting, seed=seed, band=BAND)


@pytest.mark.parametrize(("tasks", "trials", "seed"), [(100, 1, 11), (50, 4, 12), (300, 4, 13)])
def test_a_mix_that_has_not_moved(tasks: int, trials: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mix = np.array([0.6, 0.15, 0.1, 0.05, 0.08, 0.02])
    false = 0
    for _ in range(REPETITIONS):
        common = rng.choice(6, p=mix, size=(2 * tasks, 1))
        own = rng.choice(6, p=mix, size=(2 * tasks, trials))
        runs = np.where(rng.random((2 * tasks, trials)) < 0.6, common, own)
        counts = np.eye(6)[runs].sum(axis=1)
        week = np.repeat([0, 1], tasks)
        p = mix_shifts(counts, np.arange(2 * tasks), week)[1].p_value
        assert p is not None
        false += p <= 0.05
    assert binomtest(false, REPETITIONS, 0.07, alternative="greater").pvalue > 0.001, false
    assert binomtest(false, REPETITIONS, 0.03, alternative="less").pvalue > 0.001, false
