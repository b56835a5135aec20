"""Coverage of the other intervals of agreement: bootstrap, Gwet's, clusters, differences, shares.

Raters are those of test_coverage_agreement.py: alpha is the population value for any distances,
so the difference of two weighted alphas is 0, and disagreement of classes k and l is in
proportion to p_k p_l.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from calibration.agreement.coefficients import GWET_AC, KRIPPENDORFF_ALPHA, estimate, sums_of
from calibration.agreement.disagreement import class_pairs, disagreement_shares
from calibration.agreement.inference import change, clusters_of, difference, gwet_interval, resample
from calibration.agreement.ratings import count_patterns, patterns_of_items
from calibration.statistics.estimate import Estimate
from tests.simulation.judged import Band, Judge, Tally, give_all
from tests.simulation.test_coverage_agreement import (
    LARGE,
    MODERATE,
    QUADRATIC,
    SEED,
    SKEWED,
    SMALL,
    Q,
    Setting,
    population_values,
)

pytestmark = pytest.mark.slow
REPETITIONS = 2000
Found = Iterator[tuple[str, str, float, Estimate, Band]]


def judge_all(judge: Judge, found: Found) -> None:
    """Judge what comes as (estimator, setting, population value, estimate, band)."""
    tallies: dict[tuple[str, str, Band], Tally] = {}
    for estimator, setting, truth, estimated, band in found:
        tallies.setdefault((estimator, setting, band), Tally(truth)).add(estimated)
    give_all(judge, SEED, *((tally, *key) for key, tally in tallies.items()))


@pytest.mark.parametrize(
    "setting",
    [
        MODERATE(0.56, 30, 5, 0.3), MODERATE(0.56, 100, 5, 0.3), MODERATE(0.85, 100, 5, 0.3),
        SKEWED(0.56, 100, 5, 0.3),
    ],
    ids=str,
)  # fmt: skip
def test_bootstrap_and_gwets_interval_cover(judge: Judge, setting: Setting) -> None:
    rng, truths, band = setting.rng(), population_values(setting), setting.band

    def found() -> Found:
        for _ in range(REPETITIONS):
            patterns = count_patterns(setting.draw(rng), n_classes=Q)
            sums = [sums_of(coefficient, patterns) for coefficient in (KRIPPENDORFF_ALPHA, GWET_AC)]
            both = resample(sums, rng=rng, n_resamples=1000)
            for name, drawn in zip(("alpha", "AC1"), both, strict=True):
                row = setting.row(name, truths[name])
                yield f"{name}, percentile bootstrap", row, truths[name], drawn.percentile(), band
                yield f"{name}, BCa bootstrap", row, truths[name], drawn.bca(), band
                gwets = gwet_interval(drawn.sums)
                # Known to be too wide for AC1 where items are rated once.
                widest = (band[0], 0.99) if name == "AC1" else band
                yield f"{name}, Gwet's t", row, truths[name], gwets, widest

    judge_all(judge, found())


@pytest.mark.parametrize("n_items", [30, 100])
def test_differences_on_the_same_items_cover(judge: Judge, n_items: int) -> None:
    before, after = MODERATE(0.56, n_items, 4, 0.2), MODERATE(0.75, n_items, 4, 0.2)
    rng, band = before.rng(), before.band

    def found() -> Found:
        for _ in range(REPETITIONS):
            truth = rng.choice(Q, size=(n_items, 1), p=before.prevalence)
            codes = [before.draw(rng, truth), after.draw(rng, truth)]
            moved = change(KRIPPENDORFF_ALPHA, *codes, n_classes=Q)
            words = f"moderate, alpha .56 to .75, {n_items} items, 4 raters, 20 % missing"
            yield "change of alpha, jackknife t", words, after.alpha - before.alpha, moved, band
            patterns = count_patterns(codes[0], n_classes=Q)
            gap = difference(
                sums_of(KRIPPENDORFF_ALPHA, patterns, weights=QUADRATIC),
                sums_of(KRIPPENDORFF_ALPHA, patterns),
            )
            row = before.row("alpha", before.alpha)
            yield "weighted less plain alpha, jackknife t", row, 0.0, gap, band

    judge_all(judge, found())


@pytest.mark.parametrize(
    "setting",
    [MODERATE(0.56, 100, 4, 0.2), MODERATE(0.85, 100, 2, 0.0), SKEWED(0.56, 200, 2, 0.0)],
    ids=str,
)
def test_shares_of_disagreement_cover(judge: Judge, setting: Setting) -> None:
    share = np.array(setting.prevalence)
    pairs, part = class_pairs(Q)
    weight = np.array([share[k] * share[m] for k, m in pairs])
    truths = weight / weight.sum()
    rng = setting.rng()

    def found() -> Found:
        for _ in range(REPETITIONS):
            patterns = count_patterns(setting.draw(rng), n_classes=Q)
            shares = disagreement_shares(patterns, part, n_parts=len(pairs))
            for k in (0, 4):
                row = setting.row("alpha", setting.alpha) + f", share {truths[k]:.2f}"
                # Wide above: few items differ, and where none of them is of the pair the
                # bound is exact.
                yield "share of disagreement, logit", row, truths[k], shares[k].observed, (0.93, 1)

    judge_all(judge, found())


def test_clusters_cover_where_items_do_not(judge: Judge) -> None:
    n_tasks, runs, raters, alpha = 60, 4, 3, 0.6
    share = np.array(MODERATE(alpha, 1, 1, 0.0).prevalence)
    rng = np.random.default_rng([SEED, 60])
    task = np.repeat(np.arange(n_tasks), runs)
    words = f"moderate, alpha .60, {n_tasks} tasks x {runs} runs of one class, {raters} raters"

    def found() -> Found:
        for _ in range(REPETITIONS):
            # Tasks are easy or hard, and their runs mostly end alike.
            knows = rng.choice(np.sqrt([0.3, 0.9]), size=(n_tasks, 1))[task]
            truth = rng.choice(Q, size=(n_tasks, 1), p=share)[task]
            shape = n_tasks * runs, raters
            guess = rng.choice(Q, size=shape, p=share)
            codes = np.where(rng.random(shape) < knows, truth, guess)
            patterns, of_item = patterns_of_items(codes, n_classes=Q)
            clusters = clusters_of(of_item, task, n_patterns=len(patterns.counts))
            sums = sums_of(KRIPPENDORFF_ALPHA, patterns, clusters=clusters)
            (drawn,) = resample([sums], rng=rng, n_resamples=1000)
            yield "alpha by cluster, jackknife Fisher z", words, alpha, drawn.seen, LARGE
            yield "alpha by cluster, percentile bootstrap", words, alpha, drawn.percentile(), SMALL
            by_item = estimate(KRIPPENDORFF_ALPHA, patterns)
            yield "control: alpha, clusters ignored", words, alpha, by_item, (0.0, 0.93)

    judge_all(judge, found())
