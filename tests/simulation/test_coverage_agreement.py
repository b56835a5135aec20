"""Coverage of alpha's jackknife Fisher-z interval.

Raters know the class of an item with probability sqrt(alpha) and otherwise name a class drawn
from the prevalence, which makes alpha the population value whatever the prevalence.
"""

from collections.abc import Callable

import numpy as np
import pytest

from calibration.agreement.coefficients import krippendorff_alpha
from calibration.agreement.counts import count_patterns

pytestmark = pytest.mark.slow

MODERATE = (0.30, 0.20, 0.20, 0.17, 0.13)
SKEWED = (0.85, 0.05, 0.04, 0.03, 0.03)
# Bands of docs/methods/agreement.md: wider below at 30 items, where few disagreements are seen.
LARGE, SMALL = (0.93, 0.97), (0.91, 0.97)


@pytest.mark.parametrize(
    ("name", "prevalence", "alpha", "n_items", "band"),
    [
        ("moderate", MODERATE, 0.56, 30, SMALL),
        ("moderate", MODERATE, 0.56, 100, LARGE),
        ("moderate", MODERATE, 0.85, 100, LARGE),
        ("85 % in one class", SKEWED, 0.56, 30, SMALL),
        ("85 % in one class", SKEWED, 0.56, 100, LARGE),
        ("85 % in one class", SKEWED, 0.85, 100, LARGE),
    ],
)
def test_alpha_interval_covers(
    judge: Callable[..., None],
    name: str,
    prevalence: tuple[float, ...],
    alpha: float,
    n_items: int,
    band: tuple[float, float],
) -> None:
    seed, repetitions, n_raters = 20261, 4000, 5
    rng = np.random.default_rng([seed, n_items, round(100 * alpha)])
    covered, half_widths = 0, 0.0
    for _ in range(repetitions):
        truth = rng.choice(5, size=(n_items, 1), p=prevalence)
        guess = rng.choice(5, size=(n_items, n_raters), p=prevalence)
        codes = np.where(rng.random((n_items, n_raters)) < np.sqrt(alpha), truth, guess)
        codes[rng.random(codes.shape) < 0.3] = -1
        estimate = krippendorff_alpha(count_patterns(codes, n_classes=5))
        if estimate.interval is not None:
            covered += estimate.interval[0] <= alpha <= estimate.interval[1]
            half_widths += estimate.half_width or 0
    judge(
        "alpha, jackknife Fisher z",
        f"{name}, alpha {alpha}, {n_items} items, 5 raters, 30 % missing",
        covered=covered,
        repetitions=repetitions,
        seed=seed,
        half_width=half_widths / repetitions,
        band=band,
    )
