"""Two sets of runs: by hand, against scipy, pairs, verdicts, flags, what was refused."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from calibration.success_rate.comparison import (
    Comparison,
    compare_runs,
    difference_between,
    difference_of,
    side_by_side,
)
from calibration.success_rate.resampling import resample
from calibration.success_rate.runs import RunCounts
from tests.classes import count_runs
from tests.success_rate.rates import rng, runs


def compare(before: RunCounts, after: RunCounts, **options: Any) -> Comparison:
    return compare_runs(before, after, rng=rng(), **options)


def test_difference_by_hand() -> None:
    """.7 and .9 of 100: variance (.7 x .3 + .9 x .1) / 99; 2.8016 standard errors to be seen."""
    found = compare(runs(70, 0, 30), runs(90, 0, 10)).asr
    se = np.sqrt((0.7 * 0.3 + 0.9 * 0.1) / 99)
    assert found.estimate.value == pytest.approx(0.2)
    assert found.estimate.se == pytest.approx(se)
    assert found.minimum_detectable == pytest.approx(2.80159 * se, rel=1e-5)


def test_p_value_is_the_level_at_which_the_interval_reaches_zero() -> None:
    before, after = runs(60, 0, 40), runs(72, 0, 28)
    for interval in ("percentile", "bca"):
        options: dict[str, Any] = {"interval": interval, "n_resamples": 5000}
        p = compare(before, after, **options).asr.p_value
        assert p is not None
        inside = compare(before, after, confidence_level=1 - p - 0.02, **options).asr.estimate
        outside = compare(before, after, confidence_level=1 - p + 0.02, **options).asr.estimate
        assert (outside.interval or (0, 0))[0] < 0 < (inside.interval or (0, 0))[0]
    z = 0.12 / np.sqrt((0.6 * 0.4 + 0.72 * 0.28) / 99)
    assert p == pytest.approx(2 * stats.norm.sf(z), abs=0.02)


def by_task(outcomes: list[int], first: int = 0) -> RunCounts:
    return count_runs(outcomes, clusters=np.arange(first, first + len(outcomes)))


def test_pairs_take_the_difficulty_of_tasks_out() -> None:
    """Forty tasks, two more succeed: the gain is 2 of 40 with s of the forty differences."""
    one, other = [0] * 20 + [2] * 20, [0] * 22 + [2] * 18
    paired = compare(by_task(one), by_task(other), paired=True)
    apart = compare(by_task(one), by_task(other))
    gains = np.repeat([1.0, 0.0], [2, 38])
    assert (paired.n_pairs, paired.paired, apart.n_pairs, apart.paired) == (40, True, 0, False)
    assert paired.asr.estimate.se == pytest.approx(gains.std(ddof=1) / np.sqrt(40))
    assert (apart.asr.estimate.se or 0) > 3 * (paired.asr.estimate.se or 1)
    assert (apart.asr.minimum_detectable or 0) > 3 * (paired.asr.minimum_detectable or 1)


def test_tasks_of_one_side_only_stay_in_and_without_a_common_one_there_are_no_pairs() -> None:
    """Thirty tasks on both sides, ten more on each: all runs enter, thirty pairs."""
    one, other = [0] * 25 + [2] * 15, [0] * 30 + [2] * 10
    found = compare(by_task(one), by_task(other, 10), paired=True)
    assert (found.n_pairs, found.asr.estimate.n) == (30, 50)
    assert found.asr.estimate.value == pytest.approx(30 / 40 - 25 / 40)
    assert found.n_alone == (10, 10)
    # Tasks 10 to 39 are on both sides: 15 of 30 succeed first and all of them then.
    alone = compare(by_task(one[10:], 10), by_task(other[:30], 10), paired=True)
    assert alone.paired_only is None
    assert found.paired_only is not None
    assert found.paired_only.estimate.value == pytest.approx(0.5)
    assert found.paired_only.estimate.n == 30
    assert found.paired_only.estimate.se == pytest.approx(alone.asr.estimate.se)
    apart, paired = (compare(by_task(one), by_task(other, 100), paired=p) for p in (False, True))
    assert (paired.paired, paired.n_pairs) == (False, 0)
    assert paired.asr.estimate.se == pytest.approx(apart.asr.estimate.se)


def test_few_tasks_use_t_with_welch_degrees_of_freedom() -> None:
    one, other = [0] * 5 + [2] * 5, [0] * 10 + [2] * 5
    found = compare(count_runs(one), count_runs(other)).asr
    welch = stats.ttest_ind(np.equal(other, 0), np.equal(one, 0), equal_var=False)
    assert found.p_value == pytest.approx(welch.pvalue)
    assert found.estimate.interval == pytest.approx(tuple(welch.confidence_interval()))


def test_fewer_than_five_on_a_side_keep_the_value_alone() -> None:
    found = compare(runs(3, 0, 1), runs(50, 0, 50))
    change = found.asr.estimate
    assert change.value == pytest.approx(-0.25)
    assert change.interval is None
    assert change.status.startswith("not_estimable: no interval from 4 runs")
    assert (found.asr.p_value, found.non_inferior, found.verdict) == (None, None, "inconclusive")
    assert [change.p_value for change in found.class_changes] == [None] * 5


def test_two_sides_without_variation_are_not_known_exactly() -> None:
    """All complete on both sides: at most 1 - .025^(1/n) of either can differ."""
    found = compare(runs(50), runs(30)).asr
    bound = [1 - 0.025 ** (1 / n) for n in (50, 30)]
    assert found.estimate.interval == pytest.approx((-bound[1], bound[0]))
    assert found.estimate.status == "no variation seen"
    assert found.p_value == 1.0


@pytest.mark.parametrize(
    ("n", "before", "after", "verdict", "non_inferior"),
    [
        (1000, 500, 600, "better", True),
        (1000, 600, 500, "worse", False),
        (10_000, 5000, 5010, "equivalent", True),
        (100, 50, 52, "inconclusive", False),
        (10_000, 5000, 4800, "worse", True),
    ],
)
def test_verdicts(n: int, before: int, after: int, verdict: str, non_inferior: bool) -> None:
    found = compare(runs(before, 0, n - before), runs(after, 0, n - after))
    assert (found.verdict, found.non_inferior) == (verdict, non_inferior)


def test_separate_intervals_are_the_stricter_rule() -> None:
    """.60 and .66 of 1,000: half-widths of .030 and .029 overlap, the difference has .042."""
    before, after = runs(600, 0, 400), runs(655, 0, 345)
    assert compare(before, after).verdict == "better"
    assert compare(before, after, rule="separate intervals").verdict == "inconclusive"


def test_a_class_is_flagged_for_size_and_evidence() -> None:
    """Abandoned .18 to .23 of 2,000 each; two points of 200 runs are chance."""
    many = compare(runs(1160, 240, 160, 80, 360), runs(1060, 240, 160, 80, 460))
    assert [c.outcome for c in many.class_changes if c.flagged] == ["complete", "abandoned"]
    small = compare(runs(116, 24, 16, 8, 36), runs(110, 24, 16, 8, 42))
    assert not any(change.flagged for change in small.class_changes)
    tiny = compare(runs(50_000, 0, 50_000), runs(51_000, 0, 49_000))
    moved = tiny.class_changes[0]
    assert moved.change.estimate.value == pytest.approx(0.01)
    assert (moved.p_value or 1) < 0.001
    assert not moved.flagged


def test_class_test_is_the_pooled_two_proportion_test() -> None:
    """.70 and .58 of 100, pooled .64: variance 2 x .64 x .36 / 99; Benjamini-Hochberg by scipy."""
    found = compare(runs(70, 10, 20), runs(58, 10, 32)).class_changes
    t = 0.12 / np.sqrt(0.64 * 0.36 * 2 / 99)
    assert found[0].p_value == pytest.approx(2 * stats.t.sf(t, 198), rel=1e-2)
    p_values = [change.p_value for change in found if change.p_value is not None]
    assert [c.adjusted_p_value for c in found] == pytest.approx(
        stats.false_discovery_control(p_values).tolist()
    )
    assert found[3].p_value == 1.0


def test_design_strata_stay_apart_in_a_comparison() -> None:
    strata = np.repeat(["x", "y"], 50)
    one = count_runs([0] * 45 + [2] * 5 + [0] * 5 + [2] * 45, strata=strata)
    other = count_runs([0] * 48 + [2] * 2 + [0] * 8 + [2] * 42, strata=strata)
    joint = side_by_side(one, other, paired=False, rng=rng())
    found = difference_of(resample(joint.units, rng=rng()), "score")
    parts = [0.9 * 0.1, 0.1 * 0.9, 0.96 * 0.04, 0.16 * 0.84]
    assert found.estimate.se == pytest.approx(np.sqrt(sum(parts) / 49) / 2)


@pytest.mark.parametrize(
    ("after", "options", "match"),
    [
        (runs(5, credit=(1, 0.5, 0, 0, 0)), {}, "scored with the same credit"),
        (runs(5), {"margin": 0.0}, r"margin must be in \(0, 1\)"),
        (runs(5), {"rule": "guess"}, "rule must be 'difference'"),
        (runs(5), {"paired": True}, "must name the task"),
    ],
)
def test_bad_comparisons_are_refused(after: RunCounts, options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        compare(runs(5), after, **options)


def test_sides_of_different_credit_are_compared_once_restated() -> None:
    """Partial runs at .4 and at .5: the gain is the change of classes, not of the weights."""
    default, fork = (1, 0.4, 0, 0, 0.0), (1, 0.5, 0, 0, 0.1)
    costs = np.tile([1.0, 1.2], 50)
    options: dict[str, Any] = {"costs": costs, "ceilings": 1.0}
    forked = runs(40, 40, 10, 0, 10, credit=fork, other_credit={"default": default}, **options)
    restated = forked.restated("default", credit=default)
    plain = runs(40, 40, 10, 0, 10, credit=default, **options)
    for name in ("gross", "score", "abandoned_score", "credit"):
        assert getattr(restated, name) == pytest.approx(getattr(plain, name)), name
    found = compare(plain, restated)
    assert found.asr.estimate.value == 0
    with pytest.raises(ValueError, match=r"name must be one of \['default'\], got 'other'"):
        forked.restated("other", credit=default)


def test_tasks_that_did_not_change_bound_the_change_and_do_not_prove_it() -> None:
    """Forty pairs alike: with chance .025 none of 1 - .025^(1/40) that differ was seen."""
    same = by_task([0] * 20 + [2] * 20)
    found = compare(same, same, paired=True)
    share = 1 - 0.025 ** (1 / 40)
    assert found.asr.estimate.interval == pytest.approx((-share, share))
    assert found.asr.one_sided == pytest.approx((-(1 - 0.05 ** (1 / 40)), 1 - 0.05 ** (1 / 40)))
    assert (found.asr.estimate.status, found.asr.p_value) == ("no variation seen", 1.0)
    assert (found.non_inferior, found.verdict) == (False, "inconclusive")
    enough = by_task([0] * 30 + [2] * 29)
    assert compare(enough, enough, paired=True).non_inferior
    # All forty lost everything: a true loss of 5 pp or less has a chance below 1e-6.
    sides = by_task([0] * 40), by_task([2] * 40)
    lost = difference_between(*sides, "share:complete", paired=True, null=-0.05, rng=rng())
    assert lost.estimate.value == -1
    assert (lost.p_below or 0) < 1e-6


def test_a_bound_is_tested_from_either_side() -> None:
    """.8 and .7 of 100 against a loss of 5 pp: z = -.05 / .0611 by the unpaired formula."""
    sides = runs(80, 0, 20), runs(70, 0, 30)
    options: dict[str, Any] = {"n_resamples": 20_000}
    found = difference_between(*sides, null=-0.05, rng=rng(), **options)
    z = -0.05 / np.sqrt((0.8 * 0.2 + 0.7 * 0.3) / 99)
    assert found.p_below == pytest.approx(stats.norm.cdf(z), abs=0.01)
    above = difference_between(*sides, null=-0.15, rng=rng(), **options)
    assert above.p_below == pytest.approx(stats.norm.sf(z), abs=0.01)
    few = difference_between(runs(8, 0, 2), runs(7, 0, 3), null=-0.05, rng=rng())
    assert few.p_below is not None
    assert 0.3 < few.p_below < 0.5
