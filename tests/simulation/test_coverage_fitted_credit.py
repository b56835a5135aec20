"""Coverage of the partial credit that is fitted to usefulness."""

import numpy as np
import pytest

from calibration.success_rate.fitted_credit import fit_credit
from calibration.taxonomy import default_taxonomy
from tests.simulation.judged import Judge, Tally

pytestmark = pytest.mark.slow
SEED, REPETITIONS = 20271, 1000
MIX = np.array([0.45, 0.25, 0.15, 0.1, 0.05])
SCALE = (0.88, 0.48, 0.2, 0.08, 0.04)

# Runs of one class spread by this, and half of it is the task's where tasks repeat.
SPREAD = 0.15


@pytest.mark.parametrize(
    ("name", "means", "tasks", "trials", "band"),
    [
        ("usefulness", SCALE, 300, 1, (0.935, 0.975)),
        ("usefulness", SCALE, 80, 1, (0.925, 0.98)),
        ("usefulness", SCALE, 100, 4, (0.935, 0.975)),
        ("feedback", SCALE, 300, 1, (0.935, 0.975)),
        # Partly right runs are worth no more than others: the fit pools, and 0 is an end.
        ("usefulness, credit 0", (0.8, 0.2, 0.2, 0.2, 0.2), 300, 1, (0.935, 1.0)),
    ],
)
def test_the_interval_of_the_fitted_credit_covers(
    judge: Judge,
    name: str,
    means: tuple[float, ...],
    tasks: int,
    trials: int,
    band: tuple[float, float],
) -> None:
    rng = np.random.default_rng([SEED, tasks, trials, len(name)])
    mean, low = np.array(means), slice(2, None)
    zero = float(np.average(mean[low], weights=MIX[low]))
    tally = Tally((means[1] - zero) / (means[0] - zero))
    task = np.repeat(np.arange(tasks), trials)
    for _ in range(REPETITIONS):
        codes = rng.choice(5, size=tasks * trials, p=MIX)
        if name == "feedback":
            values = (rng.random(codes.size) < mean[codes]).astype(np.float64)
        else:
            shared = np.repeat(rng.normal(size=tasks), trials)
            own = rng.normal(size=codes.size)
            values = mean[codes] + SPREAD * (shared + own) * np.sqrt(0.5)
        found = fit_credit(
            codes,
            values,
            taxonomy=default_taxonomy(),
            rng=rng,
            tasks=task if trials > 1 else None,
            n_resamples=400,
        )
        tally.add(found.credit)
    setting = f"{name}, {tasks} tasks x {trials}"
    tally.give(judge, "fitted credit", setting, seed=SEED, band=band)
