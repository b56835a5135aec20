"""A judge, a production and labels to draw: five classes, a lenient judge, cost by outcome."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.judge_calibration.samples import ProductionSums, production_sums_from_counts
from calibration.statistics.estimate import Estimate

CREDIT = np.array([1.0, 0.7, 0.3, 0.0, 0.0])

PRODUCTION = np.array([0.55, 0.18, 0.09, 0.12, 0.06])

REFERENCE = np.array([0.25, 0.20, 0.20, 0.20, 0.15])

NAMES = ("complete", "partial+", "partial-", "hallucinated", "abandoned")

# Penalty distribution by class: abandoned and hallucinated runs are long and dear.
PENALTIES = np.array([0.0, 0.2, 0.5, 1.0])

PENALTY_GIVEN_CLASS = np.array(
    [
        [0.85, 0.08, 0.05, 0.02],
        [0.65, 0.20, 0.10, 0.05],
        [0.50, 0.20, 0.20, 0.10],
        [0.40, 0.20, 0.25, 0.15],
        [0.10, 0.20, 0.30, 0.40],
    ]
)

TRUE_SCORE = float(PRODUCTION @ CREDIT)

TRUE_NET = float(
    (
        PRODUCTION[:, None]
        * PENALTY_GIVEN_CLASS
        * np.maximum(0, CREDIT[:, None] - PENALTIES[None, :])
    ).sum()
)

Array = NDArray[np.int64]

Judge = Callable[..., None]


def lenient_judge(accuracy: float) -> NDArray[np.float64]:
    """Return P(verdict | class): half of the errors go to the best class."""
    rates = np.full((5, 5), (1 - accuracy) / 8)
    rates[:, 0] += (1 - accuracy) / 2
    rates[0] = (1 - accuracy) / 4
    np.fill_diagonal(rates, 0)
    rates[np.arange(5), np.arange(5)] = 1 - rates.sum(axis=1)
    return rates


def draw_cells(
    rng: np.random.Generator, n: int, mix: NDArray[np.float64], rates: NDArray[np.float64]
) -> Array:
    """Draw a table of classes x verdicts x penalties for n traces."""
    cells = (mix[:, None] * rates)[:, :, None] * PENALTY_GIVEN_CLASS[:, None, :]
    return rng.multinomial(n, cells.ravel()).reshape(cells.shape).astype(np.int64)


def unfold(cells: Array) -> tuple[Array, Array, NDArray[np.float64]]:
    """Return class, verdict and penalty of each trace of a table."""
    index = np.repeat(np.arange(cells.size), cells.ravel())
    human, verdicts, step = np.unravel_index(index, cells.shape)
    return human, verdicts, PENALTIES[step]


def sums_of(cells: Array, *, with_cost: bool) -> ProductionSums:
    """Return what the estimators see of production, from the table and not trace by trace."""
    by_verdict = cells.sum(axis=0).astype(np.float64)
    plain = production_sums_from_counts(by_verdict.sum(axis=1), credit=CREDIT)
    if not with_cost:
        return plain
    kept = np.maximum(0.0, plain.levels[:, None] - PENALTIES)
    raw = np.maximum(0.0, CREDIT[:, None] - PENALTIES)
    return ProductionSums(
        credit=plain.credit,
        levels=plain.levels,
        counts=plain.counts,
        sums=kept @ by_verdict.T,
        products=np.einsum("sp,up,kp->suk", kept, kept, by_verdict),
        raw_sum=float((raw * by_verdict).sum()),
        raw_n=plain.raw_n,
    )


def score(human: Array, penalties: NDArray[np.float64], *, with_cost: bool) -> NDArray[np.float64]:
    """Return the score of each trace."""
    return np.maximum(0.0, CREDIT[human] - penalties) if with_cost else CREDIT[human]


@dataclass
class Tally:
    """How often an interval held the truth, over all repetitions, refused ones included."""

    truth: float
    covered: int = 0
    repetitions: int = 0
    widths: list[float] = field(default_factory=list)
    refused: int | None = None

    def add(self, estimate: Estimate, *, refused: bool | None = None) -> None:
        """Count one repetition; without an interval it does not cover."""
        limits = estimate.interval
        self.covered += limits is not None and limits[0] <= self.truth <= limits[1]
        self.widths.append(estimate.half_width or 0.0)
        self.repetitions += 1
        if refused is not None:
            self.refused = (self.refused or 0) + refused

    def add_limits(self, value: float, reach: float) -> None:
        """Count an interval that is made here."""
        self.covered += abs(value - self.truth) <= reach
        self.widths.append(reach)
        self.repetitions += 1

    def give(
        self,
        judge: Judge,
        estimator: str,
        setting: str,
        *,
        seed: int,
        band: tuple[float, float] = (0.935, 0.975),
    ) -> str:
        """Judge the setting and return what failed, if anything."""
        try:
            judge(
                estimator,
                setting,
                covered=self.covered,
                repetitions=self.repetitions,
                seed=seed,
                half_width=float(np.mean(self.widths)),
                band=band,
                refused=None if self.refused is None else self.refused / self.repetitions,
            )
        except AssertionError as error:
            return str(error)
        return ""
