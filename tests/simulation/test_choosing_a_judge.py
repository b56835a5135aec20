"""Choosing the best of many versions of a judge: how much too high it reads, and looks at an exam.

Versions of one judge err on the same traces: each says what the judge says with chance `ALIKE`, and
draws its verdict anew otherwise, so that being right correlates by about `ALIKE` squared. That is
set, not measured: such versions read as much too high as `TOO_HIGH` says, others more or less.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binomtest

from calibration.judging.selection import (
    AGREEMENT,
    FIRST,
    KAPPA,
    SECOND,
    best_version,
    level_of_look,
    paired_comparison,
)
from calibration.statistics.contingency import kappas_of_tables, quality_against_key
from tests.simulation.judged import (
    REFERENCE,
    Array,
    Floats,
    Judge,
    Tally,
    give_all,
    lenient_judge,
)

pytestmark = pytest.mark.slow
LABELS, SEED, ALIKE = 70, 22, 0.82


def versions(
    rng: np.random.Generator, accuracies: Floats, alike: float = ALIKE
) -> tuple[Array, Array]:
    """Draw classes of 70 traces and the verdicts of versions with these accuracies."""
    human = rng.choice(5, size=LABELS, p=REFERENCE).astype(np.int64)
    # One luck for what all versions share, another for what each draws by itself.
    shared, luck = rng.random((LABELS, 2)), rng.random((LABELS, accuracies.size, 2))
    common = rng.random((LABELS, accuracies.size, 1)) < alike
    luck = np.where(common, shared[:, None, :], luck)
    rates = np.stack([lenient_judge(accuracy) for accuracy in accuracies])
    right = luck[:, :, 0] < rates[:, human, human].T
    wrong = rates[:, human].copy()  # of each version and trace, the chances of the classes
    wrong[:, np.arange(LABELS), human] = 0
    steps = wrong.cumsum(axis=2) / wrong.sum(axis=2, keepdims=True)
    other = (luck[:, :, 1].T[:, :, None] > steps).sum(axis=2).clip(0, 4).T
    return human, np.where(right, human[:, None], other)


def truth(accuracy: float, measure: str) -> float:
    """Return the true score of a version."""
    table = REFERENCE[:, None] * lenient_judge(accuracy)
    if measure == KAPPA:
        return float(kappas_of_tables(table))
    return float(np.trace(table))


@dataclass
class Bias:
    """How much a score exceeds the true one, over repetitions."""

    total: float = 0.0
    squares: float = 0.0
    n: int = 0

    def add(self, gap: float) -> None:
        self.total, self.squares, self.n = self.total + gap, self.squares + gap**2, self.n + 1

    @property
    def mean(self) -> float:
        return self.total / self.n

    @property
    def error(self) -> float:
        return float(np.sqrt((self.squares / self.n - self.mean**2) / self.n))

    def between(self, low: float, high: float) -> bool:
        """Return whether the mean lies in the range, up to three errors of the simulation."""
        return low - 3 * self.error <= self.mean <= high + 3 * self.error


# How much too high the best of so many versions reads, if all are equally good.
TOO_HIGH = {5: (0.03, 0.04), 20: (0.04, 0.06), 50: (0.06, 0.07)}


@pytest.mark.parametrize("measure", [AGREEMENT, KAPPA])
@pytest.mark.parametrize("spread", [0.0, 0.03])
@pytest.mark.parametrize("n_versions", [5, 20, 50])
def test_the_best_of_many_versions_reads_too_high(
    judge: Judge, n_versions: int, spread: float, measure: str
) -> None:
    repetitions = 1_000
    rng = np.random.default_rng([SEED, n_versions, round(1000 * spread), measure == KAPPA])
    read, corrected = Bias(), Bias()
    as_read, moved = Tally(0.0), Tally(0.0)
    for _ in range(repetitions):
        accuracies = np.clip(0.75 + spread * rng.standard_normal(n_versions), 0.5, 0.95)
        human, verdicts = versions(rng, accuracies)
        found = best_version(
            human, verdicts, n_classes=5, rng=rng, measure=measure, n_resamples=500
        )
        true = truth(accuracies[found.version], measure)
        assert found.as_read.value is not None
        assert found.corrected.value is not None
        read.add(found.as_read.value - true)
        corrected.add(found.corrected.value - true)
        as_read.truth = moved.truth = true
        as_read.add(found.as_read)
        moved.add_sure(found.corrected)
    apart = f"differ by {spread:g}" if spread else "equally good"
    setting = f"{measure} of the best of {n_versions} versions, {apart}, {LABELS} labels"
    give_all(
        judge, SEED,
        (moved, "score of the chosen version, corrected", setting, (0.91, 0.985)),
        (as_read, "control: score of the chosen version, as read", setting, (0.75, 0.98)),
    )  # fmt: skip
    if spread:
        # A choice from the bag is worse where versions truly differ: the correction is cautious.
        assert corrected.between(-0.02, 0.007)
        assert abs(corrected.mean) < read.mean
    else:
        assert corrected.between(-0.007, 0.007)
    if not spread and measure == AGREEMENT:
        assert read.between(*TOO_HIGH[n_versions])


@pytest.mark.parametrize("pair", [(0.75, 0.75), (0.80, 0.70), (0.92, 0.88)])
@pytest.mark.parametrize("alike", [0.0, ALIKE])
def test_differences_of_two_versions_cover(
    judge: Judge, pair: tuple[float, float], alike: float
) -> None:
    repetitions = 4_000
    rng = np.random.default_rng([SEED, 2, round(100 * pair[0]), round(100 * alike)])
    tally, found_better = Tally(truth(pair[0], AGREEMENT) - truth(pair[1], AGREEMENT)), 0
    for _ in range(repetitions):
        human, verdicts = versions(rng, np.array(pair), alike)
        found = paired_comparison(human, verdicts[:, 0], verdicts[:, 1], n_classes=5)
        tally.add_sure(found.difference)
        found_better += found.better in (FIRST, SECOND)
    related = "that err alike" if alike else "that err independently"
    setting = f"agreement {pair[0]:.2f} and {pair[1]:.2f} of two versions {related}, 70 traces"
    tally.give(
        judge, "difference of two versions, Bonett-Price", setting, seed=SEED, band=(0.935, 0.985)
    )
    if pair[0] == pair[1]:
        # The exact test finds a difference where there is none at most as often as it says.
        assert binomtest(found_better, repetitions, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("number", [2, 5, 10])
def test_looks_cover_with_their_level(judge: Judge, number: int) -> None:
    """At each look a new version is read; the best one so far is reported."""
    repetitions = 4_000
    rng = np.random.default_rng([SEED, 3, number])
    plain, levelled = Tally(truth(0.75, AGREEMENT)), Tally(truth(0.75, AGREEMENT))
    for _ in range(repetitions):
        human, verdicts = versions(rng, np.full(number, 0.75))
        right = (verdicts == human[:, None]).sum(axis=0)
        best = verdicts[:, int(right.argmax())]
        table = np.bincount(human * 5 + best, minlength=25).reshape(5, 5)
        plain.add_sure(quality_against_key(table).accuracy)
        level = level_of_look(number).confidence_level
        levelled.add_sure(quality_against_key(table, confidence_level=level).accuracy)
    setting = f"agreement of the best of {number} looks at {LABELS} labels"
    give_all(
        judge, SEED,
        (levelled, f"look {number}, level 1 - .05 / {number}", setting, (0.95, 1.0)),
        (plain, "control: look, level .95", setting, (0.85, 0.97)),
    )  # fmt: skip
