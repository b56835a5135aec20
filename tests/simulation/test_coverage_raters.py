"""Coverage of what is said of single raters, and the size of the test of equal margins.

Raters know the class of an item with a probability of their own and otherwise draw it from a mix
of their own; 5 classes, ratings missing at random.
"""

import numpy as np
import pytest
from scipy.stats import binomtest

from calibration.agreement.annotators import against_key, equal_margins, leave_one_out
from tests.agreement.tables import MODERATE, SKEWED, rated
from tests.simulation.judged import Judge, Tally

pytestmark = pytest.mark.slow
HABIT = (0.10, 0.10, 0.10, 0.10, 0.60)
MIXES = {"moderate": MODERATE, "85 % in one class": SKEWED}
REPETITIONS = 4000

# A margin of a rare class rests on few items that differ, and errs on the wide side.
WIDE, SMALL = (0.93, 0.99), (0.91, 0.98)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_items", [100, 300])
@pytest.mark.parametrize("n_raters", [3, 5])
@pytest.mark.parametrize("knows", [0.75, 0.9])
def test_equal_raters_are_called_different_as_often_as_said(
    knows: float, n_raters: int, n_items: int, missing: float
) -> None:
    rng = np.random.default_rng([71, n_raters, n_items, round(10 * missing), round(100 * knows)])
    called = 0
    for _ in range(REPETITIONS):
        codes = rated(rng, n_items, (knows,) * n_raters, MODERATE, missing=missing)
        p_value = equal_margins(codes, n_classes=5).test.p_value
        called += p_value is not None and p_value < 0.05
    assert binomtest(called, REPETITIONS, 0.05).pvalue > 0.001, called


@pytest.mark.parametrize("name", list(MIXES))
@pytest.mark.parametrize(("n_raters", "missing"), [(2, 0.0), (5, 0.3)])
@pytest.mark.parametrize("n_items", [100, 300])
def test_the_difference_of_a_margin_covers(
    judge: Judge, name: str, n_raters: int, missing: float, n_items: int
) -> None:
    seed, mix, habit = 20262, np.array(MIXES[name]), np.array(HABIT)
    rng = np.random.default_rng([seed, n_items, n_raters, len(name)])
    # The first gives class 4 when it does not know; with the others' margins at the mix.
    truth = 0.2 * (habit - mix)
    tallies = {k: Tally(float(truth[k])) for k in (0, 4)}
    for _ in range(REPETITIONS):
        codes = rated(rng, n_items, (0.8,) * n_raters, MIXES[name], missing=missing, first=HABIT)
        for found in equal_margins(codes, n_classes=5).differences:
            if found.rater == 0 and found.class_code in tallies:
                tallies[found.class_code].add(found.difference)
    of = "margin of a rater less the others', Bonett-Price"
    for k, what in ((0, "the most common class"), (4, "the class of habit")):
        setting = f"{name}, {what}, {n_items} items, {n_raters} raters, {missing:.0%} missing"
        tallies[k].give(judge, of, setting, seed=seed, band=WIDE)


@pytest.mark.parametrize("name", list(MIXES))
@pytest.mark.parametrize("n_items", [30, 100])
def test_kappa_against_a_key_covers(judge: Judge, name: str, n_items: int) -> None:
    seed = 20263
    rng = np.random.default_rng([seed, n_items, len(name)])
    tally, of = Tally(0.7), "kappa against a key, Fleiss-Cohen-Everitt, Fisher z"
    for _ in range(REPETITIONS):
        codes = rated(rng, n_items, (1.0, 0.7), MIXES[name])
        kappa = against_key(codes[:, 1:], codes[:, 0], n_classes=5)[0].cohen_kappa
        if kappa.interval is not None:
            tally.add(kappa)
    band = SMALL if n_items == 30 else (0.93, 0.98)
    tally.give(judge, of, f"{name}, kappa .70, {n_items} items", seed=seed, band=band)


@pytest.mark.parametrize("name", list(MIXES))
@pytest.mark.parametrize("n_items", [100, 300])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_one_rater_beside_the_others_covers(
    judge: Judge, name: str, n_items: int, missing: float
) -> None:
    seed, mix, knows = 20264, np.array(MIXES[name]), (0.9, 0.9, 0.8, 0.4)
    rng = np.random.default_rng([seed, n_items, round(10 * missing), len(name)])
    # Two who know with k and l, and else draw from the same mix, have alpha k l.
    pairs = np.outer(knows, knows)[np.triu_indices(4, 1)].mean()
    without = np.outer(knows[:3], knows[:3])[np.triu_indices(3, 1)].mean()
    beyond = 0.4 * float(np.mean(knows[:3]))
    change, others = Tally(without - pairs), Tally(beyond + (1 - beyond) * float((mix**2).sum()))
    for _ in range(REPETITIONS):
        codes = rated(rng, n_items, knows, MIXES[name], missing=missing)
        last = leave_one_out(codes, n_classes=5).raters[3]
        change.add(last.change)
        others.add(last.agreement_with_others)
    setting, band = f"{name}, {n_items} items, 4 raters, {missing:.0%} missing", (0.92, 0.97)
    change.give(
        judge, "change of alpha without a rater, jackknife t", setting, seed=seed, band=band
    )
    others.give(judge, "agreement with others, jackknife Fisher z", setting, seed=seed, band=band)
