"""Verdicts and labels of any number: five classes, a lenient judge, cost by outcome."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CREDIT = np.array([1.0, 0.7, 0.3, 0.0, 0.0])
MIX = {"production": [0.55, 0.18, 0.09, 0.12, 0.06], "reference": [0.25, 0.20, 0.20, 0.20, 0.15]}
ACCURACY = 0.85


@dataclass(frozen=True, slots=True, eq=False)
class Traces:
    """Class, verdict and penalty of each trace."""

    human: NDArray[np.int64]
    verdicts: NDArray[np.int64]
    penalties: NDArray[np.float64]

    def first(self, n: int) -> "Traces":
        """Return the first n, which are a random sample."""
        return Traces(self.human[:n], self.verdicts[:n], self.penalties[:n])

    def scores(self) -> NDArray[np.float64]:
        """Return the score of each trace."""
        return np.maximum(0.0, CREDIT[self.human] - self.penalties)

    def proxies(self) -> NDArray[np.float64]:
        """Return what each trace would score if its verdict were right."""
        return np.maximum(0.0, CREDIT[self.verdicts] - self.penalties)


def rates() -> NDArray[np.float64]:
    """Return P(verdict | class): half of the errors go to the best class."""
    found = np.full((5, 5), (1 - ACCURACY) / 8)
    found[:, 0] += (1 - ACCURACY) / 2
    found[0] = (1 - ACCURACY) / 4
    np.fill_diagonal(found, 0)
    found[np.arange(5), np.arange(5)] = 1 - found.sum(axis=1)
    return found


def traces(n: int, mix: str, *, seed: int) -> Traces:
    """Draw traces of production or of a reference set; dear runs are oftener bad ones."""
    rng = np.random.default_rng([seed, n, len(mix)])
    human = rng.choice(5, n, p=MIX[mix])
    verdicts = (rng.random(n)[:, None] > rates()[human].cumsum(axis=1)).sum(axis=1).clip(0, 4)
    dear = rng.random(n) < np.array([0.15, 0.35, 0.5, 0.6, 0.9])[human]
    return Traces(human, verdicts, np.where(dear, rng.random(n), 0.0))
