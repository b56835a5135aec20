"""Ranks of several sets of runs: how often all rank intervals hold at once."""

from dataclasses import dataclass

import numpy as np
import pytest

from calibration.success_rate.ranking import rank_runs
from calibration.success_rate.runs import RunCounts
from tests.classes import count_runs
from tests.simulation.judged import Judge, Tally
from tests.simulation.runs import CEILING, MIX, independent, rate_of, repeated, shifted

pytestmark = pytest.mark.slow
REPETITIONS = 1000


@dataclass(frozen=True)
class Field:
    """Sets of runs whose true rates lie this far from the first."""

    name: str
    shifts: tuple[float, ...]
    size: int
    trials: int = 1
    paired: bool = False

    def sets(self, rng: np.random.Generator) -> dict[str, RunCounts]:
        found, own = {}, rng.random(self.size)
        for number, by in enumerate(self.shifts):
            mix = shifted(by) if by else MIX
            if self.trials == 1:
                outcomes, costs = independent(rng, self.size, mix)
                clusters = np.arange(self.size)
            else:
                tasks = own if self.paired else rng.random(self.size)
                outcomes, costs, clusters = repeated(rng, tasks, self.trials, mix)
            found[str(number)] = count_runs(
                outcomes, costs=costs, ceilings=CEILING, clusters=clusters
            )
        return found

    def truth(self) -> list[tuple[int, int]]:
        """Return the ranks of the true rates; equal rates have several each."""
        rates = np.array([rate_of(shifted(by) if by else MIX) for by in self.shifts]).round(12)
        return [
            (1 + int((rates > own).sum()), rates.size - int((rates < own).sum())) for own in rates
        ]


FIELDS = [
    Field("5 equal sets of 200 runs", (0, 0, 0, 0, 0), 200),
    Field("5 equal sets, the same 60 tasks x 4", (0, 0, 0, 0, 0), 60, 4, paired=True),
    Field("5 equal sets, the same 12 tasks x 4", (0, 0, 0, 0, 0), 12, 4, paired=True),
    Field("5 equal sets, 60 tasks x 4 each of its own", (0, 0, 0, 0, 0), 60, 4),
    Field("10 equal sets of 100 runs", (0,) * 10, 100),
    Field("3 and 3 equal sets of 400 runs, .12 apart", (0, 0, 0, 0.12, 0.12, 0.12), 400),
    Field("6 sets of 200 runs, .01 apart", (0, 0.01, 0.02, 0.03, 0.04, 0.05), 200),
    Field("20 equal sets of 100 runs", (0,) * 20, 100),
]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_all_ranks_hold_at_once(judge: Judge, field: Field) -> None:
    seed = 20290
    rng, tally = np.random.default_rng([seed, len(field.shifts), field.size]), Tally(0.0)
    truth = field.truth()
    repetitions = REPETITIONS // 2 if len(field.shifts) > 10 else REPETITIONS
    for _ in range(repetitions):
        # The tests behind the ranks do not look at the draws.
        found = rank_runs(field.sets(rng), rng=rng, paired=field.paired, n_resamples=20)
        ranks = {of.name: of.rank for of in found.runs}
        held = all(
            ranks[str(number)][0] <= low and high <= ranks[str(number)][1]
            for number, (low, high) in enumerate(truth)
        )
        width = float(np.mean([high - low for low, high in ranks.values()]))
        tally.count(held, width / 2)
    tally.give(judge, "ranks of several sets, all at once", field.name, seed=seed, band=(0.94, 1.0))
