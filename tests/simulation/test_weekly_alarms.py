"""Weekly anomalies when nothing but chance moves the weeks; coverage of the rolling mean."""

import numpy as np
import pytest

from calibration.judge_calibration.bias import changed_meanings
from calibration.success_rate.trend import cusum, expectation, false_alarm_rate, weekly_series
from tests.classes import count_runs
from tests.simulation.judged import (
    PRODUCTION,
    Floats,
    Judge,
    Tally,
    draw_cells,
    lenient_judge,
    unfold,
)
from tests.simulation.runs import CEILING, TRUTH, independent, repeated, shifted

pytestmark = pytest.mark.slow
REPETITIONS = 2000
ALARMS = "weekly anomaly, alarms without a change"
WEEKS = tuple(f"2026-W{week:02d}" for week in range(1, 10))


@pytest.mark.parametrize("between", [0.0, 0.03])
@pytest.mark.parametrize("n", [60, 400])
def test_false_alarms_of_the_ninth_week(judge: Judge, n: int, between: float) -> None:
    seed, tally = 20290, Tally(0.0)
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
        tally.count(series.weeks[-1].anomaly)
        printed += series.false_alarm_rate or 0
    of = f"{n} runs a week, weeks scatter by {between:g} (printed {printed / REPETITIONS:.4f})"
    tally.give(judge, ALARMS, of, seed=seed, band=(0.0, 0.015))


def test_printed_false_alarm_rate(judge: Judge) -> None:
    seed, n = 20291, 100_000
    rate = false_alarm_rate(np.full(9, 0.02), rng=np.random.default_rng(seed), n_simulations=n)
    assert rate is not None
    tally = Tally(0.0, covered=round(rate * n), repetitions=n)
    of = "normal weeks, equal standard errors, known"
    tally.give(judge, ALARMS, of, seed=seed, band=(0.0, 0.01))


@pytest.mark.parametrize("same_tasks", [False, True])
def test_rolling_mean_covers(judge: Judge, same_tasks: bool) -> None:
    """The same 40 tasks every week: their weeks are related, and the interval must know it."""
    seed, tally = 20292, Tally(TRUTH)
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
        tally.add_sure(weekly_series(counts, rng=rng).weeks[-1].rolling)
    of = f"40 tasks x 2 a week, {'the same every week' if same_tasks else 'others every week'}"
    tally.give(judge, "rolling 4-week mean", of, seed=seed, band=(0.93, 0.97))


def sixteen_weeks(
    rng: np.random.Generator, rate: float, scatter: float, drop: float, repetitions: int
) -> Floats:
    """Return weekly rates of a standard error of .02; the last eight weeks are lower by `drop`."""
    n = round(rate * (1 - rate) / SE**2)
    true = rate + scatter * rng.standard_normal((repetitions, 16))
    true[:, 8:] -= drop
    return np.array(rng.binomial(n, true.clip(0, 1)) / n)


def errors_of(values: Floats, rate: float) -> tuple[Floats, Floats]:
    """Return the standard errors of weekly rates, and their runs."""
    n = round(rate * (1 - rate) / SE**2)
    return np.sqrt(values * (1 - values) / (n - 1)), np.full(values.size, float(n))


SE = 0.02
DROP = "lasting drop, CUSUM"


@pytest.mark.parametrize("rate", [0.6, 0.85])
@pytest.mark.parametrize("scatter", [0.0, 0.01, 0.02])
def test_cusum_alarms_without_a_change(judge: Judge, rate: float, scatter: float) -> None:
    seed, tally = 20293, Tally(0.0)
    rng = np.random.default_rng([seed, int(100 * rate), int(100 * scatter)])
    for values in sixteen_weeks(rng, rate, scatter, 0.0, 8000):
        path, _, _ = cusum(values, *errors_of(values, rate))
        tally.count(bool(np.nanmax(path) > 4.3))
    of = f"no change, ASR {rate:g}, SE .02, true weeks scatter by {scatter:g}: alarms in 8 weeks"
    tally.give(judge, DROP, of, seed=seed, band=(0.0, 0.05))


@pytest.mark.parametrize("scatter", [0.0, 0.01])
def test_cusum_finds_a_lasting_drop(judge: Judge, scatter: float) -> None:
    seed, found, single = 20294, Tally(0.0), Tally(0.0)
    rng = np.random.default_rng([seed, int(100 * scatter)])
    for values in sixteen_weeks(rng, 0.6, scatter, 0.06, REPETITIONS):
        errors, sizes = errors_of(values, 0.6)
        path, _, _ = cusum(values, errors, sizes)
        found.count(bool(np.nanmax(path) > 4.3))
        nine = [slice(week - 8, week + 1) for week in range(8, 16)]
        seen = [expectation(values[of], errors[of], sizes[of]) for of in nine]
        single.count(any(one is not None and one.anomaly for one in seen))
    of = f"6 points at SE .02, true weeks scatter by {scatter:g}"
    found.give(judge, DROP, f"{of}: found within 8 weeks", seed=seed, band=(0.95, 1.0))
    single.give(judge, "weekly anomaly", f"{of}: found within 8 weeks", seed=seed, band=(0.0, 0.3))


@pytest.mark.parametrize(("n", "worse", "band"), [
    (60, 0.0, (0.0, 0.05)), (200, 0.0, (0.0, 0.05)), (400, 0.0, (0.0, 0.05)),
    (400, 0.2, (0.7, 1.0)),
])  # fmt: skip
def test_labels_are_called_stale(
    judge: Judge, n: int, worse: float, band: tuple[float, float]
) -> None:
    """Half of the labels are of each period; the judge may be worse in the second."""
    seed, tally = 20295, Tally(0.0)
    rng = np.random.default_rng([seed, n, round(100 * worse)])
    late = np.repeat([False, True], n // 2)
    for _ in range(REPETITIONS):
        halves = [
            unfold(draw_cells(rng, n // 2, PRODUCTION, lenient_judge(accuracy)))
            for accuracy in (0.85, 0.85 - worse)
        ]
        human, verdicts = (np.concatenate([half[k] for half in halves]) for k in (0, 1))
        found = changed_meanings(np.eye(5)[human], verdicts, late)
        tally.count(min(found.values(), default=1.0) < 0.05)
    of = f"{n} labels, judge .85, then {0.85 - worse:.2f}: some verdict has changed (Holm)"
    tally.give(judge, "labels called stale", of, seed=seed, band=band)
