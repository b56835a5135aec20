"""Coverage of the mean cost per unit: skewed costs, single runs and repeated tasks."""

from collections.abc import Callable

import numpy as np
import pytest

from calibration.statistics.means import ratio_of_totals, square_sums

pytestmark = pytest.mark.slow


SEED, REPETITIONS = 20301, 2000

# Log-normal with standard deviation .8 in the logarithm; tasks handle 1 to 4 units.
TRUTH = float(np.exp(0.32))


@pytest.mark.parametrize(("tasks", "trials"), [(50, 1), (1000, 1), (20, 4), (100, 4)])
def test_the_interval_of_the_cost_per_unit_covers(
    judge: Callable[..., None], tasks: int, trials: int
) -> None:
    rng = np.random.default_rng([SEED, tasks, trials])
    covered, widths = 0, 0.0
    for _ in range(REPETITIONS):
        units = rng.integers(1, 5, (tasks, 1)) * np.ones((1, trials))
        # Half of the variance is the task's, so its trials correlate.
        log = 0.8 * np.sqrt(0.5) * (rng.normal(size=(tasks, 1)) + rng.normal(size=(tasks, trials)))
        costs = units * np.exp(log)
        found = ratio_of_totals(square_sums(costs.sum(axis=1), units.sum(axis=1)))
        assert found.interval is not None
        covered += found.interval[0] <= TRUTH <= found.interval[1]
        widths += found.half_width or 0
    judge(
        "cost per unit",
        f"log-normal, {tasks} tasks x {trials}",
        covered=covered,
        repetitions=REPETITIONS,
        seed=SEED,
        half_width=widths / REPETITIONS,
        band=(0.92, 0.97),
    )
