"""Whether labelled traces look like production: one stratum, several, and levels nobody has."""

from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from calibration.judge_calibration import samples
from calibration.judge_calibration.samples import composition, composition_of_counts, missed_levels

Table = list[list[tuple[int, int]]]


def p_of(table: Table) -> float | None:
    """Return the p-value of strata x levels x (asked, others)."""
    levels = [f"level {k}" for k in range(len(table[0]))]
    return composition_of_counts({"x": (levels, np.array(table, dtype=float))}).p.get("x")


def test_one_stratum_is_fisher_and_pearson() -> None:
    two = [(3, 7), (9, 4)]
    assert p_of([two]) == pytest.approx(stats.fisher_exact(np.array(two).T).pvalue, rel=1e-9)
    three = [(13, 47), (29, 54), (20, 20)]
    pearson = stats.chi2_contingency(np.array(three), correction=False).pvalue
    assert p_of([three]) == pytest.approx(pearson, rel=1e-12)
    # A stratum of which everybody, or nobody, was asked about says nothing.
    idle = [(50, 0), (10, 0), (0, 0)], [(0, 9), (0, 9), (0, 30)]
    assert p_of([three, *idle]) == pytest.approx(pearson, rel=1e-12)
    assert p_of([*map(list, idle)]) is None


def draws(levels: list[int], n: int) -> list[NDArray[np.int64]]:
    """Return the number of each level in every choice of n traces."""
    return [
        np.bincount(list(chosen), minlength=max(levels) + 1) for chosen in combinations(levels, n)
    ]


def test_two_levels_in_two_strata_are_every_choice_counted() -> None:
    """4 of 7 and 3 of 6 traces asked about: 35 x 20 choices."""
    first, second = [0, 0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1]
    sums = [int(a[0] + b[0]) for a, b in product(draws(first, 4), draws(second, 3))]
    chance = {k: sums.count(k) / len(sums) for k in set(sums)}
    # Asked about: 4 of the 4 and 1 of the 1 of level 0.
    found = p_of([[(4, 0), (0, 3)], [(1, 0), (2, 3)]])
    assert len(sums) == 700
    assert found == pytest.approx(sum(c for c in chance.values() if c <= chance[5]), rel=1e-9)


def test_three_levels_in_two_strata_are_the_moments_of_every_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(samples, "EXPECTED_MIN", 0)
    first, second = [0, 0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 2]
    sums = np.array([a + b for a, b in product(draws(first, 4), draws(second, 3))])
    asked = np.array([3, 1, 0]) + np.array([1, 2, 0])
    apart = asked - sums.mean(axis=0)
    covariance = np.cov(sums.T, bias=True)
    statistic = apart[:2] @ np.linalg.inv(covariance[:2, :2]) @ apart[:2]
    found = p_of([[(3, 0), (1, 1), (0, 2)], [(1, 0), (2, 0), (0, 3)]])
    assert found == pytest.approx(stats.chi2.sf(statistic, 2), rel=1e-9)


def test_an_uneven_draw_warns_of_a_skew_within_its_strata_alone() -> None:
    """Half of 200 failures and a tenth of 800 others; most failures are of agent a.

    Asked about: 100 of the 200, as many of each agent as its share. Without strata the labels are
    60 % of a and production 36 %. Then every failure asked about is of agent a.
    """
    failed = np.arange(1000) < 200
    agents = np.where(failed, np.arange(1000) % 5 < 4, np.arange(1000) % 4 < 1)
    agent = np.where(agents, "a", "b")
    even = np.where(failed, np.arange(1000) // 5 % 2 == 0, np.arange(1000) // 4 % 10 == 0)
    strata = failed.astype(np.int64)
    assert composition({"agent": agent}, even).warned == ("agent",)
    found = composition({"agent": agent}, even, strata)
    assert (found.warned, found.strata) == ((), 2)
    assert found.p["agent"] == pytest.approx(1.0)
    skewed = even & ~failed
    skewed[np.flatnonzero(failed & agents)[:100]] = True
    found = composition({"agent": agent}, skewed, strata)
    # 20 more of agent a than expected; variances 100 x .8 x .2 x 100/199 = 8.0 in one stratum,
    # 80 x .25 x .75 x 720/799 = 13.5 in the other: 4.3 standard deviations.
    assert found.warned == ("agent",)
    assert found.p["agent"] == pytest.approx(2 * stats.norm.sf(19.5 / np.sqrt(8.0 + 13.5)), rel=0.5)
    # What the draw was stratified by cannot differ.
    of_draw = composition({"verdict": np.where(failed, "fail", "pass")}, even, strata)
    assert (of_draw.p, of_draw.warned) == ({}, ())


def test_a_level_is_refused_where_draws_within_strata_would_hold_it() -> None:
    """Level b has 60 of 200 traces; 20 of each hundred are asked about, none of b."""
    missed = comb(70, 20) / comb(100, 20)
    assert missed == pytest.approx(3.02e-4, rel=0.01)
    one = np.array([[(20, 50), (0, 30)]] * 2, dtype=float)
    assert composition_of_counts({"x": ("ab", one)}).refused == (("x", "b"),)
    # Alone, the first stratum is not enough; of another stratum nobody was asked about at all.
    idle = np.array([[(20, 50), (0, 30)], [(0, 70), (0, 30)]], dtype=float)
    assert composition_of_counts({"x": ("ab", idle)}).refused == ()


@pytest.mark.parametrize(("size", "refused"), [(100, ()), (200, (("agent", "b"),))])
def test_without_strata_a_level_is_refused_by_the_smallest_chance(
    size: int, refused: tuple[tuple[str, str], ...]
) -> None:
    """Weights 2 and 20 of 45 traces each, of 1,000: 990 / (20 x 1,000) = .0495 is the smallest.

    .9505^100 is .0062, and .9505^200 .00004. With weights 2 alone all would be asked about evenly.
    """
    agent = np.where(np.arange(1000) < size, "b", "a")
    asked = np.arange(1000) >= 910
    found = missed_levels({"agent": agent}, asked, np.repeat([2.0, 20.0], 45))
    assert (found.refused, found.checked, dict(found.p)) == (refused, False, {})
    asked[0] = True
    assert missed_levels({"agent": agent}, asked, np.repeat([2.0, 20.0], [45, 46])).refused == ()
