"""Weekly anomalies when nothing but chance moves the weeks; coverage of the rolling mean."""

from collections.abc import Callable

import numpy as np
import pytest

from calibration.success_rate.trend import false_alarm_rate, weekly_series
from tests.classes import count_runs
from tests.simulation.runs import CEILING, TRUTH, independent, repeated, shifted

pytestmark = pytest.mark.slow


REPETITIONS = 2000

WEEKS = tuple(f"2026-W{week:02d}" for week in range(1, 10))


@pytest.mark.parametrize("between", [0.0, 0.03])
@pytest.mark.parametrize("n", [60, 400])
def test_false_alarms_of_the_ninth_week(judge: Callable[..., None], n: int, between: float) -> None:
    seed, alarms = 20290, 0
    rng = np.random.default_rng([seed, n, int(100 * between)])
    weeks = np.repeat(WEEKS, n)
    printed = 0.0
    for _ in range(REPETITIONS):
        mixes = [shifted(float(d)) for d in (between * rng.standard_normal(9)).clip(-0.1, 0.1)]
        both = [independent(rng, n, mix) for mix in mixes]
        counts = count_runs(
            np.concatenate([outcomes for outcomes, _ in both]),
            costs=np.concatenate([costs for _, costs in both]),
            ceilings=CEILING,
            by={"week": weeks},
        )
        series = weekly_series(counts, rng=rng, n_resamples=20)
        alarms += series.weeks[-1].anomaly
        printed += series.false_alarm_rate or 0
    judge(
        "weekly anomaly, alarms without a change",
        f"{n} runs a week, weeks scatter by {between:g} (printed {printed / REPETITIONS:.4f})",
        covered=alarms,
        repetitions=REPETITIONS,
        seed=seed,
        half_width=0.0,
        band=(0.0, 0.015),
    )


def test_printed_false_alarm_rate(judge: Callable[..., None]) -> None:
    seed = 20291
    rate = false_alarm_rate(
        np.full(9, 0.02), rng=np.random.default_rng(seed), n_simulations=100_000
    )
    assert rate is not None
    judge(
        "weekly anomaly, alarms without a change",
        "normal weeks, equal standard errors, known",
        covered=round(rate * 100_000),
        repetitions=100_000,
        seed=seed,
        half_width=0.0,
        band=(0.0, 0.01),
    )


@pytest.mark.parametrize("same_tasks", [False, True])
def test_rolling_mean_covers(judge: Callable[..., None], same_tasks: bool) -> None:
    """The same 40 tasks every week: their weeks are related, and the interval must know it."""
    seed, covered, half_widths = 20292, 0, 0.0
    rng = np.random.default_rng([seed, same_tasks])
    for _ in range(REPETITIONS):
        own = rng.random(40) if same_tasks else rng.random(160)
        weeks = [
            repeated(rng, own if same_tasks else own[40 * k : 40 * k + 40], 2) for k in range(4)
        ]
        tasks = [
            clusters + (0 if same_tasks else 40 * k) for k, (_, _, clusters) in enumerate(weeks)
        ]
        counts = count_runs(
            np.concatenate([outcomes for outcomes, _, _ in weeks]),
            costs=np.concatenate([costs for _, costs, _ in weeks]),
            ceilings=CEILING,
            clusters=np.concatenate(tasks),
            by={"week": np.repeat(WEEKS[:4], 80)},
        )
        rolling = weekly_series(counts, rng=rng).weeks[-1].rolling
        assert rolling.interval is not None
        covered += rolling.interval[0] <= TRUTH <= rolling.interval[1]
        half_widths += rolling.half_width or 0
    judge(
        "rolling 4-week mean",
        f"40 tasks x 2 a week, {'the same every week' if same_tasks else 'others every week'}",
        covered=covered,
        repetitions=REPETITIONS,
        seed=seed,
        half_width=half_widths / REPETITIONS,
        band=(0.93, 0.97),
    )
