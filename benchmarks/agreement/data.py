"""Ratings of any size: reviewers who know the class or guess, ratings missing at random."""

import numpy as np
from numpy.typing import NDArray

CLASSES = 5
RATERS = 10
PREVALENCE = (0.30, 0.20, 0.20, 0.17, 0.13)
KNOWN = 0.75
Codes = NDArray[np.int64]


def ratings(n_items: int, *, missing: float, seed: int) -> Codes:
    """Draw codes of shape (n_items, RATERS), -1 for a missing rating."""
    rng = np.random.default_rng([seed, n_items, round(100 * missing)])
    shape = n_items, RATERS
    truth = rng.choice(CLASSES, size=(n_items, 1), p=PREVALENCE)
    guess = rng.choice(CLASSES, size=shape, p=PREVALENCE)
    codes = np.where(rng.random(shape) < KNOWN, truth, guess)
    codes[rng.random(shape) < missing] = -1
    return codes
