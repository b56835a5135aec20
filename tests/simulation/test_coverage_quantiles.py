"""Coverage of the 95th percentile of latencies: independent runs, and repeated tasks."""

import numpy as np
import pytest

from calibration.statistics.means import quantile_estimate, square_sums
from tests.simulation.judged import Judge, Tally

pytestmark = pytest.mark.slow
SEED, REPETITIONS = 20269, 2000

# Log-normal with standard deviation 1 in the logarithm.
TRUTH = float(np.exp(1.6448536269514722))


@pytest.mark.parametrize(("tasks", "trials"), [(100, 1), (1000, 1), (100, 4), (400, 4)])
def test_the_interval_of_the_p95_covers(judge: Judge, tasks: int, trials: int) -> None:
    rng = np.random.default_rng([SEED, tasks, trials])
    clusters = np.repeat(np.arange(tasks), trials)
    tally = Tally(TRUTH)
    for _ in range(REPETITIONS):
        shared = np.repeat(rng.normal(size=tasks), trials)
        own = rng.normal(size=tasks * trials)
        # Half of the variance is the task's, so its trials correlate by .5.
        values = np.exp(shared * np.sqrt(0.5) + own * np.sqrt(0.5))
        below = None
        if trials > 1:
            p95 = np.quantile(values, 0.95, method="inverted_cdf")
            inside = np.bincount(clusters, weights=values <= p95).astype(np.float64)
            below = square_sums(inside, np.full(tasks, float(trials)))
        tally.add_sure(quantile_estimate(values, 0.95, below=below))
    setting = f"log-normal, {tasks} tasks x {trials}"
    tally.give(judge, "p95", setting, seed=SEED, band=(0.93, 0.985))
