"""Coverage of the jackknife Fisher-z intervals of alpha and AC1.

Raters know the class of an item with probability sqrt(alpha) and otherwise name a class drawn
from the prevalence, which makes alpha the population value whatever the prevalence. Two raters
then agree with probability alpha + (1 - alpha) x sum of p_k^2, which gives AC1.
"""

from collections.abc import Callable

import numpy as np
import pytest

from calibration.agreement.coefficients import krippendorff_alpha
from calibration.agreement.counts import count_patterns
from calibration.agreement.gwet import gwet_ac1

pytestmark = pytest.mark.slow

MODERATE = (0.30, 0.20, 0.20, 0.17, 0.13)
SKEWED = (0.85, 0.05, 0.04, 0.03, 0.03)
REFERENCE = (0.38, 0.22, 0.16, 0.14, 0.10)
# Bands of docs/methods/agreement.md: wider below at 30 items, where few disagreements are seen.
LARGE, SMALL = (0.93, 0.97), (0.91, 0.97)


@pytest.mark.parametrize(
    ("name", "prevalence", "alpha", "n_items", "n_raters", "missing", "band"),
    [
        ("moderate", MODERATE, 0.56, 30, 5, 0.3, SMALL),
        ("moderate", MODERATE, 0.56, 100, 5, 0.3, LARGE),
        ("moderate", MODERATE, 0.85, 100, 5, 0.3, LARGE),
        ("85 % in one class", SKEWED, 0.56, 30, 5, 0.3, SMALL),
        ("85 % in one class", SKEWED, 0.56, 100, 5, 0.3, LARGE),
        ("85 % in one class", SKEWED, 0.85, 100, 5, 0.3, LARGE),
        ("reference set", REFERENCE, 0.85, 200, 2, 0.0, LARGE),
    ],
)
def test_alpha_and_ac1_intervals_cover(
    judge: Callable[..., None],
    name: str,
    prevalence: tuple[float, ...],
    alpha: float,
    n_items: int,
    n_raters: int,
    missing: float,
    band: tuple[float, float],
) -> None:
    seed, repetitions = 20261, 4000
    rng = np.random.default_rng([seed, n_items, round(100 * alpha)])
    share = np.array(prevalence)
    chance = float((share * (1 - share)).sum() / 4)
    agreeing = alpha + (1 - alpha) * float((share**2).sum())
    truths = {"alpha": alpha, "AC1": (agreeing - chance) / (1 - chance)}
    covered, half_widths = dict.fromkeys(truths, 0), dict.fromkeys(truths, 0.0)
    for _ in range(repetitions):
        truth = rng.choice(5, size=(n_items, 1), p=prevalence)
        guess = rng.choice(5, size=(n_items, n_raters), p=prevalence)
        codes = np.where(rng.random((n_items, n_raters)) < np.sqrt(alpha), truth, guess)
        codes[rng.random(codes.shape) < missing] = -1
        patterns = count_patterns(codes, n_classes=5)
        for key, estimate in (
            ("alpha", krippendorff_alpha(patterns)),
            ("AC1", gwet_ac1(patterns)),
        ):
            if estimate.interval is not None:
                covered[key] += estimate.interval[0] <= truths[key] <= estimate.interval[1]
                half_widths[key] += estimate.half_width or 0
    shown = f"{n_raters} raters" + (f", {missing:.0%} missing".replace("%", " %") * (missing > 0))
    for key, value in truths.items():
        judge(
            f"{key}, jackknife Fisher z",
            f"{name}, {key} {value:.2f}, {n_items} items, {shown}",
            covered=covered[key],
            repetitions=repetitions,
            seed=seed,
            half_width=half_widths[key] / repetitions,
            band=band,
        )
