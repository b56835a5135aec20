"""A judge, a production and labels to draw: five classes, a lenient judge, cost by outcome.

Also the tally in which every simulation counts how often an interval holds the truth.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.judge_calibration.samples import (
    LabelledSample,
    ProductionSums,
    production_sums,
    production_sums_from_counts,
)
from calibration.statistics.estimate import Estimate
from tests.simulation.runs import COST_GIVEN_CLASS, MIX, PENALTIES

CREDIT = np.array([1.0, 0.7, 0.3, 0.0, 0.0])
PRODUCTION = MIX
REFERENCE = np.array([0.25, 0.20, 0.20, 0.20, 0.15])
NAMES = ("complete", "partial+", "partial-", "hallucinated", "abandoned")
Array = NDArray[np.int64]
Floats = NDArray[np.float64]
Band = tuple[float, float]
Judge = Callable[..., None]


def truth_of(mix: Floats, *, with_cost: bool) -> float:
    """Return the true mean score of traces with this mix of classes."""
    if not with_cost:
        return float(mix @ CREDIT)
    kept = np.maximum(0, CREDIT[:, None] - PENALTIES[None, :])
    return float((mix[:, None] * COST_GIVEN_CLASS * kept).sum())


TRUE_SCORE, TRUE_NET = (truth_of(PRODUCTION, with_cost=costed) for costed in (False, True))


def lenient_judge(accuracy: float) -> Floats:
    """Return P(verdict | class): half of the errors go to the best class."""
    rates = np.full((5, 5), (1 - accuracy) / 8)
    rates[:, 0] += (1 - accuracy) / 2
    rates[0] = (1 - accuracy) / 4
    np.fill_diagonal(rates, 0)
    rates[np.arange(5), np.arange(5)] = 1 - rates.sum(axis=1)
    return rates


def say(rng: np.random.Generator, human: Array, rates: Floats) -> Array:
    """Draw the verdict of each trace of a known class."""
    above = rng.random(human.shape)[..., None] > rates.cumsum(axis=1)[human]
    return np.asarray(above.sum(axis=-1).clip(0, 4))


def draw_cells(rng: np.random.Generator, n: int, mix: Floats, rates: Floats) -> Array:
    """Draw a table of classes x verdicts x penalties for n traces."""
    cells = (mix[:, None] * rates)[:, :, None] * COST_GIVEN_CLASS[:, None, :]
    return rng.multinomial(n, cells.ravel()).reshape(cells.shape).astype(np.int64)


def unfold(cells: Array) -> tuple[Array, Array, Floats]:
    """Return class, verdict and penalty of each trace of a table."""
    index = np.repeat(np.arange(cells.size), cells.ravel())
    human, verdicts, step = np.unravel_index(index, cells.shape)
    return human, verdicts, PENALTIES[step]


def sums_of(cells: Array, *, with_cost: bool) -> ProductionSums:
    """Return what the estimators see of production."""
    if not with_cost:
        return production_sums_from_counts(cells.sum(axis=(0, 2)), credit=CREDIT)
    _, verdicts, penalties = unfold(cells)
    return production_sums(verdicts, penalties, credit=CREDIT, n_verdicts=5)


def labels_of(cells: Array, *, with_cost: bool = False) -> LabelledSample:
    """Return the labels of a table."""
    human, verdicts, penalties = unfold(cells)
    return labels(human, verdicts, penalties=penalties if with_cost else None)


def labels(human: Array, verdicts: Array, **more: Any) -> LabelledSample:
    """Return labels of these classes."""
    return LabelledSample(human=np.eye(5)[human], verdicts=verdicts, **more)


def score(human: Array, penalties: Floats, *, with_cost: bool) -> Floats:
    """Return the score of each trace."""
    return np.maximum(0.0, CREDIT[human] - penalties) if with_cost else CREDIT[human]


def named(accuracy: float, n: int, n_production: int, *, with_cost: bool = False) -> str:
    """Return the words for the table."""
    cost = ", cost depends on outcome" if with_cost else ""
    return f"judge {accuracy:.2f}, {n} labels, {n_production:,} verdicts{cost}"


@dataclass
class Tally:
    """How often an interval held the truth, over all repetitions, refused ones included."""

    truth: float
    covered: int = 0
    repetitions: int = 0
    widths: float = 0.0
    refused: int | None = None

    def add(self, estimate: Estimate, *, refused: bool | None = None) -> None:
        """Count one repetition; without an interval it does not cover."""
        low, high = estimate.interval or (np.inf, -np.inf)
        self.count(low <= self.truth <= high, estimate.half_width or 0.0)
        if refused is not None:
            self.refused = (self.refused or 0) + refused

    def add_sure(self, estimate: Estimate) -> None:
        """Count one repetition, which must have an interval."""
        assert estimate.interval is not None
        self.add(estimate)

    def count(self, covered: bool, reach: float = 0.0) -> None:
        """Count one repetition that was judged elsewhere."""
        self.covered += bool(covered)
        self.widths += reach
        self.repetitions += 1

    def give(
        self, judge: Judge, estimator: str, setting: str, *, seed: int, band: Band = (0.935, 0.975)
    ) -> None:
        """Judge the setting."""
        judge(
            estimator, setting, covered=self.covered, repetitions=self.repetitions, seed=seed,
            half_width=self.widths / self.repetitions, band=band,
            refused=None if self.refused is None else self.refused / self.repetitions,
        )  # fmt: skip


def give_all(judge: Judge, seed: int, *rows: tuple[Tally, str, str, Band]) -> None:
    """Judge tallies by estimator, setting and band, and fail when all are written down."""
    failed = []
    for tally, estimator, setting, band in rows:
        try:
            tally.give(judge, estimator, setting, seed=seed, band=band)
        except AssertionError as error:
            failed.append(str(error))
    assert not failed, "\n".join(failed)
