"""Drift of reviewers: how often a steady one is marked, and how long a fall goes unmarked."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from calibration.reviewers.quality import BASELINE, FALSE_ALARMS, RECENT, alarm_limit, sums
from calibration.statistics.estimate import FloatArray
from calibration.statistics.intervals import independent_difference, wilson_share
from tests.simulation.judged import Judge, Tally

pytestmark = pytest.mark.slow
SEED = 20300
REPETITIONS = 4_000
LIMIT_SIMULATIONS = 4_000
LONGEST = 600
STEADY = "reviewer drift, steady and marked"


@cache
def limits() -> FloatArray:
    """Return the limit by the number of hits within the baseline."""
    rng = np.random.default_rng([SEED, 1])
    return np.array([
        alarm_limit(hits, BASELINE, rng=rng, n_simulations=LIMIT_SIMULATIONS)
        for hits in range(BASELINE + 1)
    ])  # fmt: skip


def marked_at(accuracy: float, fall: float, *, steady: int, checks: int, seed: int) -> FloatArray:
    """Return after how many checks each simulated reviewer is marked; infinite: never.

    The reviewer is steady for a number of checks after the baseline, and then falls.
    """
    rng = np.random.default_rng([SEED, seed, int(100 * accuracy), int(100 * fall), steady])
    begin = rng.binomial(BASELINE, accuracy, REPETITIONS)
    chance = np.where(np.arange(checks) < steady, accuracy, accuracy - fall)
    hits = rng.random((REPETITIONS, checks)) < chance
    above = sums(hits, begin, BASELINE) > limits()[begin][:, None]
    return np.where(above.any(axis=1), above.argmax(axis=1) + 1.0, np.inf)


@pytest.mark.parametrize("accuracy", [0.75, 0.85, 0.95])
def test_false_alarms_of_one_kind_of_checks(judge: Judge, accuracy: float) -> None:
    when = marked_at(accuracy, 0.0, steady=0, checks=300, seed=1)
    for checks, most in ((100, FALSE_ALARMS), (300, 0.14)):
        tally = Tally(0.0, covered=int((when <= checks).sum()), repetitions=REPETITIONS)
        setting = f"accuracy {accuracy}, {checks} checks after {BASELINE}"
        tally.give(judge, STEADY, setting, seed=SEED, band=(0.0, most))


def test_false_alarms_of_both_kinds_together(judge: Judge) -> None:
    """The page tests gold and repeats: a steady reviewer must seldom be marked by either."""
    gold = marked_at(0.85, 0.0, steady=0, checks=100, seed=2)
    repeats = marked_at(0.75, 0.0, steady=0, checks=100, seed=3)
    marked = int((np.minimum(gold, repeats) <= 100).sum())
    setting = "gold at 0.85 or repeats at 0.75, 100 checks of each"
    Tally(0.0, marked, REPETITIONS).give(judge, STEADY, setting, seed=SEED, band=(0.0, 0.05))


@pytest.mark.parametrize(("before", "after", "n_before"), [
    (0.75, 0.75, 40), (0.85, 0.70, 40), (0.85, 0.85, 100), (0.95, 0.80, 60), (0.95, 0.95, 30),
])  # fmt: skip
def test_the_change_covers(judge: Judge, before: float, after: float, n_before: int) -> None:
    """Of reviewers whether marked or not: for those chosen by the test the fall looks larger."""
    rng = np.random.default_rng([SEED, 4, int(100 * before), int(100 * after), n_before])
    tally = Tally(after - before)
    for first, then in zip(
        rng.binomial(n_before, before, REPETITIONS).tolist(),
        rng.binomial(RECENT, after, REPETITIONS).tolist(),
        strict=True,
    ):
        found = independent_difference(
            wilson_share(then, RECENT, nothing=""),
            wilson_share(first, n_before, nothing=""),
            method="Newcombe",
        )
        tally.add_sure(found)
    setting = f"{before} in {n_before} checks, then {after} in {RECENT}"
    # Near one with so few checks it is too wide, never too narrow.
    tally.give(judge, "change of a reviewer, Newcombe", setting, seed=SEED, band=(0.93, 1.0))


@pytest.fixture(scope="module")
def delays() -> Iterator[list[str]]:
    """Collect the delays and write their table where it is asked for."""
    rows: list[str] = []
    yield rows
    target = os.environ.get("ASR_SIMULATION_DELAYS")
    if target and rows:
        head = "| kind, before | fall | steady before | median | 90 % | not in 600 |\n"
        Path(target).write_text(head + "|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n")


# At most so many checks until half of all reviewers are marked, by fall.
MEDIANS = {0.10: 350, 0.15: 170, 0.25: 85}


@pytest.mark.parametrize("kind", ["accuracy", "self-agreement"])
@pytest.mark.parametrize("before", [0.75, 0.85, 0.95])
@pytest.mark.parametrize("steady", [0, 70])
def test_delay(delays: list[str], kind: str, before: float, steady: int) -> None:
    medians = []
    for fall, most in MEDIANS.items():
        seed = 4 if kind == "accuracy" else 5
        when = marked_at(before, fall, steady=steady, checks=steady + LONGEST, seed=seed) - steady
        delay = when[when > 0]  # those marked before the fall are false alarms
        median, most_of_all = np.quantile(delay, [0.5, 0.9], method="higher")
        never = np.isinf(delay).mean()
        medians.append(median)
        assert median <= most
        shown = f"{most_of_all:.0f}" if np.isfinite(most_of_all) else "above 600"
        delays.append(
            f"| {kind} {before} | {fall:.2f} | {BASELINE + steady} | {median:.0f} | "
            f"{shown} | {never:.1%} |"
        )
    assert medians == sorted(medians, reverse=True)
