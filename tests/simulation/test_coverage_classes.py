"""Coverage of what is said of one class, and of Light's kappa.

Raters are those of test_coverage_agreement.py. A second rating repeats class k with probability
alpha + (1 - alpha) p_k; the class against all others has kappa alpha, and so has every pair of
raters. The rarest class of the skewed mix is on three of a hundred items: its intervals are too
short, and the rows are there to say by how much.
"""

import pytest

from calibration.agreement.coefficients import class_kappas, light_kappa, specific_agreement
from calibration.agreement.ratings import count_patterns
from tests.simulation.judged import Band, Judge
from tests.simulation.test_coverage_agreement import (
    LARGE,
    MODERATE,
    REFERENCE,
    REPETITIONS,
    SKEWED,
    SMALL,
    Q,
    Setting,
)
from tests.simulation.test_coverage_resampling import Found, judge_all

pytestmark = pytest.mark.slow
METHOD, SHORT = "jackknife Fisher z", ", known to be short"
FEW = (0.80, 0.97)


@pytest.mark.parametrize(
    ("setting", "rarest"),
    [
        (MODERATE(0.56, 30, 5, 0.3), (0.88, 0.97)), (MODERATE(0.56, 100, 5, 0.3), LARGE),
        (MODERATE(0.85, 100, 5, 0.3), LARGE), (SKEWED(0.56, 100, 5, 0.3), FEW),
        (SKEWED(0.85, 100, 5, 0.3), FEW), (REFERENCE(0.85, 200, 2, 0.0), LARGE),
    ],
    ids=str,
)  # fmt: skip
def test_intervals_of_classes_cover(judge: Judge, setting: Setting, rarest: Band) -> None:
    rng, alpha, band = setting.rng(), setting.alpha, setting.band

    def found() -> Found:
        for _ in range(REPETITIONS):
            codes = setting.draw(rng)
            patterns = count_patterns(codes, n_classes=Q)
            same, kappas = specific_agreement(patterns), class_kappas(patterns)
            for k, which, within in ((0, "commonest", band), (Q - 1, "rarest", rarest)):
                share = setting.prevalence[k]
                truth = alpha + (1 - alpha) * share
                words = METHOD + SHORT * (within not in (LARGE, SMALL))
                row = setting.row("alpha", alpha) + f", {which} class, {share:.2f} of the items"
                yield f"specific agreement, {words}", row, truth, same[k], within
                yield f"kappa of a class, {words}", row, alpha, kappas[k], within
            light = light_kappa(codes, n_classes=Q)
            yield f"Light, {METHOD}", setting.row("Light", alpha), alpha, light, band

    judge_all(judge, found())
