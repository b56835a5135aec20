"""Coverage of the mean cost per unit: skewed costs, single runs and repeated tasks."""

import numpy as np
import pytest

from calibration.statistics.means import ratio_of_totals, square_sums
from tests.simulation.judged import Judge, Tally

pytestmark = pytest.mark.slow
SEED, REPETITIONS = 20301, 2000

# Log-normal with standard deviation .8 in the logarithm; tasks handle 1 to 4 units.
TRUTH = float(np.exp(0.32))


@pytest.mark.parametrize(("tasks", "trials"), [(50, 1), (1000, 1), (20, 4), (100, 4)])
def test_the_interval_of_the_cost_per_unit_covers(judge: Judge, tasks: int, trials: int) -> None:
    rng = np.random.default_rng([SEED, tasks, trials])
    tally = Tally(TRUTH)
    for _ in range(REPETITIONS):
        units = rng.integers(1, 5, (tasks, 1)) * np.ones((1, trials))
        # Half of the variance is the task's, so its trials correlate.
        log = 0.8 * np.sqrt(0.5) * (rng.normal(size=(tasks, 1)) + rng.normal(size=(tasks, trials)))
        costs = units * np.exp(log)
        tally.add_sure(ratio_of_totals(square_sums(costs.sum(axis=1), units.sum(axis=1))))
    setting = f"log-normal, {tasks} tasks x {trials}"
    tally.give(judge, "cost per unit", setting, seed=SEED, band=(0.92, 0.97))
