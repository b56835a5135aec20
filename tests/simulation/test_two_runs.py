"""Two runs: size of the test, power at the printed minimum, false flags of classes."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.success_rate.comparison import (
    Difference,
    class_changes,
    difference_of,
    side_by_side,
)
from calibration.success_rate.resampling import resample
from calibration.success_rate.runs import RunCounts
from tests.classes import OUTCOMES, count_runs
from tests.simulation.judged import Band, Judge, Tally
from tests.simulation.runs import CEILING, MIX, independent, repeated, shifted

pytestmark = pytest.mark.slow
REPETITIONS = 2000

# What the methodology's default report shows.
PRINTED_MIX = np.array([0.58, 0.12, 0.08, 0.04, 0.18])


@dataclass(frozen=True)
class Design:
    """How the two sides were run."""

    name: str
    size: int
    trials: int = 1
    paired: bool = False

    def rng(self, seed: int) -> np.random.Generator:
        return np.random.default_rng([seed, self.size, self.trials, self.paired])

    def sides(
        self, rng: np.random.Generator, mix: NDArray[np.float64], other: NDArray[np.float64]
    ) -> tuple[RunCounts, RunCounts]:
        if self.trials == 1:
            size = np.arange(self.size)
            both = [(*independent(rng, self.size, m), size) for m in (mix, other)]
        else:
            own = rng.random(self.size)
            again = own if self.paired else rng.random(self.size)
            both = [
                repeated(rng, own, self.trials, mix), repeated(rng, again, self.trials, other),
            ]  # fmt: skip
        one, two = (
            count_runs(outcomes, costs=costs, ceilings=CEILING, clusters=clusters)
            for outcomes, costs, clusters in both
        )
        return one, two

    def difference(self, rng: np.random.Generator, other: NDArray[np.float64]) -> Difference:
        one, two = self.sides(rng, MIX, other)
        joint = side_by_side(one, two, paired=self.paired, rng=rng)
        return difference_of(resample(joint.units, rng=rng), "score")


DESIGNS = [
    Design("independent, 200 and 200 runs", 200),
    Design("independent, 1,000 and 1,000 runs", 1000),
    Design("unpaired, 60 and 60 tasks x 4", 60, 4),
    Design("paired by task, 60 tasks x 4", 60, 4, paired=True),
    Design("unpaired, 12 and 12 tasks x 4", 12, 4),
    Design("paired by task, 12 tasks x 4", 12, 4, paired=True),
]


def judge_rejections(
    judge: Judge, design: Design, name: str, *, seed: int, power: bool, band: Band
) -> None:
    """Count significant differences; with `power` those upwards, of a true one as printed."""
    rng, tally, other = design.rng(seed), Tally(0.0), MIX
    if power:
        printed = [design.difference(rng, MIX).minimum_detectable for _ in range(100)]
        other = shifted(float(np.mean([value for value in printed if value is not None])))
    for _ in range(REPETITIONS):
        found = design.difference(rng, other)
        assert found.p_value is not None
        up = not power or (found.estimate.value or 0) > 0
        tally.count(found.p_value <= 0.05 and up, found.estimate.half_width or 0)
    tally.give(judge, name, design.name, seed=seed, band=band)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_two_equal_runs_differ_in_one_of_twenty(judge: Judge, design: Design) -> None:
    name = "two runs, rejections without a difference"
    judge_rejections(judge, design, name, seed=20280, power=False, band=(0.035, 0.065))


@pytest.mark.parametrize("design", DESIGNS[:4], ids=lambda design: design.name)
def test_power_at_the_minimum_detectable_difference(judge: Judge, design: Design) -> None:
    name = "two runs, power at the printed minimum detectable difference"
    judge_rejections(judge, design, name, seed=20281, power=True, band=(0.75, 0.85))


@pytest.mark.parametrize(
    "design",
    [
        *DESIGNS[:2],
        Design("unpaired, 250 and 250 tasks x 4", 250, 4),
        Design("unpaired, 50 and 50 tasks x 4", 50, 4),
        Design("paired by task, 50 tasks x 4", 50, 4, paired=True),
    ],
    ids=lambda design: design.name,
)
def test_flags_of_classes_without_a_change(judge: Judge, design: Design) -> None:
    seed, tally, bare = 20282, Tally(0.0), 0
    rng = design.rng(seed)
    for _ in range(REPETITIONS):
        one, two = design.sides(rng, PRINTED_MIX, PRINTED_MIX)
        joint = side_by_side(one, two, paired=design.paired, rng=rng)
        # One resample: the flag is a test, and does not look at the draws.
        changes = class_changes(resample(joint.units, rng=rng, n_resamples=1), OUTCOMES)
        tally.count(any(change.flagged for change in changes))
        bare += any(abs(change.after - change.before) > 0.02 for change in changes)
    setting = f"{design.name} (the bare 2-point rule: {bare / REPETITIONS:.3f})"
    tally.give(judge, "class flag, alarms without a change", setting, seed=seed, band=(0.0, 0.07))
