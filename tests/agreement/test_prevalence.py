"""The paradox panel: the published tables, Byrt's indices, and what cannot be described."""

import numpy as np
import pytest

from calibration.agreement.annotators import pairwise_agreement
from calibration.agreement.coefficients import cohen_kappa
from calibration.agreement.disagreement import BY_PREVALENCE, BY_UNUSED, prevalence
from tests.agreement.tables import codes_from, rated


@pytest.mark.parametrize(
    ("table", "kappa", "index", "bias", "kappa_max"),
    [
        # Feinstein and Cicchetti (1990): agreement .85 in both, margins balanced or not.
        ([[40, 9], [6, 45]], 0.6995192, 0.05, 0.03, (0.97 - 0.5008) / 0.4992),
        ([[80, 10], [5, 5]], 0.3181818, 0.75, 0.05, (0.95 - 0.78) / 0.22),
    ],
)
def test_the_two_paradox_tables(
    table: list[list[int]], kappa: float, index: float, bias: float, kappa_max: float
) -> None:
    codes = codes_from(table)
    (pair,) = pairwise_agreement(codes, n_classes=2)
    assert cohen_kappa(codes, n_classes=2).value == pytest.approx(kappa, abs=1e-7)
    assert prevalence(codes, n_classes=2).prevalence_index == pytest.approx(index)
    assert pair.bias_index == pytest.approx(bias)
    assert pair.kappa_max == pytest.approx(kappa_max)
    # Byrt, Bishop and Carlin (1993): kappa from PABAK and the two indices.
    pabak = 2 * (table[0][0] + table[1][1]) / 100 - 1
    rebuilt = (pabak - index**2 + bias**2) / (1 - index**2 + bias**2)
    assert rebuilt == pytest.approx(kappa, abs=1e-7)


def test_the_skewed_table_names_its_rare_class() -> None:
    found = prevalence(codes_from([[80, 10], [5, 5]]), n_classes=2)
    assert (found.status, found.rare_classes) == (BY_PREVALENCE, (1,))
    assert found.unused_classes == ()
    # Pairs that differ .15, by chance 1 - .875^2 - .125^2 = .21875 x 200/199; AC1 from Gwet.
    alpha = 1 - 0.15 / (0.21875 * 200 / 199)
    assert found.gap.value == pytest.approx(alpha - 0.808, abs=1e-9)
    assert found.gap.interval is not None
    assert found.gap.interval[1] < 0


def test_declared_classes_that_nobody_used_are_told_from_rare_ones() -> None:
    """Two of five classes, half each: alpha .5, AC1 with q = 5 is 1 - .25 / .875."""
    codes = codes_from([[75, 25], [25, 75]])
    found = prevalence(codes, n_classes=5)
    # Alpha with q = 2 and AC1 with q = 5.
    assert found.gap.value == pytest.approx(1 - 0.25 / (0.5 * 400 / 399) - (1 - 0.25 / 0.875))
    assert (found.status, found.unused_classes, found.rare_classes) == (BY_UNUSED, (2, 3, 4), ())
    assert prevalence(codes, n_classes=2).status == "ok"
    assert found.prevalence_index == pytest.approx((0.5 - 0.2) / 0.8)


def test_the_gap_covers_its_true_value() -> None:
    """Raters who know with sqrt(.6): alpha .6, AC1 from the closed form; 3 raters, 30 % missing."""
    rng = np.random.default_rng(31)
    share, repetitions, covered = np.array([0.7, 0.2, 0.1]), 500, 0
    chance, same = float((share * (1 - share)).sum() / 2), 0.6 + 0.4 * float((share**2).sum())
    truth = 0.6 - (same - chance) / (1 - chance)
    for _ in range(repetitions):
        codes = rated(rng, 150, [0.6**0.5] * 3, share.tolist(), missing=0.3)
        interval = prevalence(codes, n_classes=3).gap.interval
        covered += interval is not None and interval[0] <= truth <= interval[1]
    assert 0.915 < covered / repetitions < 0.98


def test_one_class_has_no_highest_kappa_and_no_pair_no_index() -> None:
    found = pairwise_agreement([[0, 0, -1], [0, 0, -1], [-1, -1, 1]], n_classes=2)
    assert [(p.n_shared, p.bias_index, p.kappa_max) for p in found] == [
        (2, 0.0, None), (0, None, None), (0, None, None),
    ]  # fmt: skip


def test_without_disagreement_or_with_a_handful_of_items_there_is_no_paradox() -> None:
    found = prevalence([[0, 0], [1, 1], [0, 0]], n_classes=2)
    assert (found.status, found.gap.value, found.gap.interval) == ("ok", 0.0, None)
    assert found.gap.status == "no disagreement seen"
    # A handful of items with alpha above AC1.
    found = prevalence([[0, 1], [0, 1]], n_classes=2)
    assert found.gap.value == pytest.approx(-0.5 - -1.0)
    assert found.status == "ok"
