"""Coverage of what is said of single raters, and the size of the test of equal margins.

Raters know the class of an item with a probability of their own and otherwise draw it from a mix
of their own; 5 classes, ratings missing at random.
"""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest

from calibration.agreement.annotators import against_key, equal_margins, leave_one_out

pytestmark = pytest.mark.slow


MODERATE = (0.30, 0.20, 0.20, 0.17, 0.13)

SKEWED = (0.85, 0.05, 0.04, 0.03, 0.03)

HABIT = (0.10, 0.10, 0.10, 0.10, 0.60)

MIXES = {"moderate": MODERATE, "85 % in one class": SKEWED}

REPETITIONS = 4000

# A margin of a rare class rests on few items that differ, and errs on the wide side.
WIDE, SMALL = (0.93, 0.99), (0.91, 0.98)

Judge = Callable[..., None]


def simulated(
    rng: np.random.Generator,
    n_items: int,
    knows: tuple[float, ...],
    mix: tuple[float, ...],
    *,
    missing: float = 0.0,
    first: tuple[float, ...] | None = None,
) -> NDArray[np.int64]:
    truth = rng.choice(5, size=(n_items, 1), p=mix)
    guess = rng.choice(5, size=(n_items, len(knows)), p=mix)
    if first is not None:
        guess[:, 0] = rng.choice(5, size=n_items, p=first)
    codes = np.where(rng.random(guess.shape) < np.array(knows), truth, guess)
    codes[rng.random(codes.shape) < missing] = -1
    return codes


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
        codes = simulated(rng, n_items, (knows,) * n_raters, MODERATE, missing=missing)
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
    covered, width = np.zeros(2, dtype=int), np.zeros(2)
    for _ in range(REPETITIONS):
        codes = simulated(
            rng, n_items, (0.8,) * n_raters, MIXES[name], missing=missing, first=HABIT
        )
        found = equal_margins(codes, n_classes=5).differences
        of_first = {d.class_code: d.difference for d in found if d.rater == 0}
        for place, k in enumerate((0, 4)):
            part = of_first[k]
            low, high = part.interval or (9.0, 9.0)
            covered[place] += low <= truth[k] <= high
            width[place] += part.half_width or 0.0
    for place, what in enumerate(("the most common class", "the class of habit")):
        judge(
            "margin of a rater less the others', Bonett-Price",
            f"{name}, {what}, {n_items} items, {n_raters} raters, {missing:.0%} missing",
            covered=int(covered[place]),
            repetitions=REPETITIONS,
            seed=seed,
            half_width=width[place] / REPETITIONS,
            band=WIDE,
        )


@pytest.mark.parametrize("name", list(MIXES))
@pytest.mark.parametrize("n_items", [30, 100])
def test_kappa_against_a_key_covers(judge: Judge, name: str, n_items: int) -> None:
    seed = 20263
    rng = np.random.default_rng([seed, n_items, len(name)])
    covered, width, shown = 0, 0.0, 0
    for _ in range(REPETITIONS):
        codes = simulated(rng, n_items, (1.0, 0.7), MIXES[name])
        kappa = against_key(codes[:, 1:], codes[:, 0], n_classes=5)[0].cohen_kappa
        if kappa.interval is None:
            continue
        shown += 1
        covered += kappa.interval[0] <= 0.7 <= kappa.interval[1]
        width += kappa.half_width or 0.0
    judge(
        "kappa against a key, Fleiss-Cohen-Everitt, Fisher z",
        f"{name}, kappa .70, {n_items} items",
        covered=covered,
        repetitions=shown,
        seed=seed,
        half_width=width / shown,
        band=SMALL if n_items == 30 else (0.93, 0.98),
    )


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
    truths = (without - pairs, beyond + (1 - beyond) * float((mix**2).sum()))
    covered, width = np.zeros(2, dtype=int), np.zeros(2)
    for _ in range(REPETITIONS):
        codes = simulated(rng, n_items, knows, MIXES[name], missing=missing)
        last = leave_one_out(codes, n_classes=5).raters[3]
        for place, part in enumerate((last.change, last.agreement_with_others)):
            low, high = part.interval or (9.0, 9.0)
            covered[place] += low <= truths[place] <= high
            width[place] += part.half_width or 0.0
    for place, what in enumerate(("change of alpha without a rater", "agreement with others")):
        judge(
            f"{what}, jackknife {'t' if place == 0 else 'Fisher z'}",
            f"{name}, {n_items} items, 4 raters, {missing:.0%} missing",
            covered=int(covered[place]),
            repetitions=REPETITIONS,
            seed=seed,
            half_width=width[place] / REPETITIONS,
            band=(0.92, 0.97),
        )
