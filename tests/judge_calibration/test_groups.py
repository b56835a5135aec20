"""Groups that share one calibration, their differences, and whether the judge errs alike."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from calibration.judge_calibration.confusion_inversion import invert
from calibration.judge_calibration.groups import (
    LabelledGroup,
    SharedCalibration,
    compare_groups,
    compare_pairs,
    compare_rates,
    estimate_group,
    estimate_groups,
    is_direct,
)
from calibration.judge_calibration.post_stratification import post_stratified
from calibration.judge_calibration.samples import (
    LabelledSample,
    ProductionSums,
    production_sums,
    production_sums_from_counts,
)
from tests.golden_cases import headline_2

NAMES = ("complete", "failed")
TABLE = [[80, 20], [10, 90]]
FIVE = np.array(
    [[60, 4, 3, 2, 1], [6, 30, 3, 1, 0], [4, 3, 33, 2, 1], [3, 1, 2, 26, 0], [0, 1, 1, 0, 23]]
)
FIVE_NAMES = ("complete", "partial_plus", "partial_minus", "hallucinated", "abandoned")
SHARED = SharedCalibration(table=TABLE, names=NAMES)
FIVE_SHARED = SharedCalibration(table=FIVE, names=FIVE_NAMES)
CREDIT = [1.0, 0.4, 0.0, 0.0, 0.0]


def group(
    name: str, production: ProductionSums, scores: ArrayLike = (), verdicts: ArrayLike = ()
) -> LabelledGroup:
    """Labels of the first class where the score is 1, of the second where it is 0."""
    second = (1 - np.asarray(scores)).astype(np.int64)
    human = np.eye(production.credit.size)[second]
    labelled = LabelledSample(human=human, verdicts=np.asarray(verdicts, dtype=np.int64))
    return LabelledGroup(name=name, labelled=labelled, production=production)


def binary(name: str, passed: int, failed: int) -> LabelledGroup:
    return group(name, production_sums_from_counts([passed, failed], credit=[1.0, 0.0]))


def labelled(name: str, hits: int, misses: int, counts: tuple[int, int]) -> LabelledGroup:
    """Fifty labels: 30 with verdict 0, of them `hits` right, and 20 with verdict 1."""
    scores = [1.0] * hits + [0.0] * (30 - hits) + [1.0] * misses + [0.0] * (20 - misses)
    production = production_sums_from_counts(counts, credit=[1.0, 0.0])
    return group(name, production, scores, [0] * 30 + [1] * 20)


def test_a_synthetic_difference_by_hand() -> None:
    # Sensitivity .8, specificity .9, so a = C^-1 (1, 0) = (.9/.7, -.1/.7), and
    #   a: (.45 - .1) / .7 = .5         b: (.38 - .1) / .7 = .4
    # Var of a row: (.8 x .2) and (.9 x .1), times (a0 - a1)^2 = (1/.7)^2; pi_a - pi_b = .1:
    #   reference  .1^2 (.16 + .09) / .49 / 100
    #   production (.45 x .55 + .38 x .62) / .49 / 1000
    sides = binary("a", 450, 550), binary("b", 380, 620)
    found = compare_groups(*sides, replace(SHARED, pseudo_count=0))
    reference = 0.01 * (0.16 + 0.09) / 0.49 / 100
    production = (0.45 * 0.55 + 0.38 * 0.62) / 0.49 / 1000
    se = np.sqrt(reference + production)
    assert (found.kind, found.may_gate) == ("synthetic", False)
    assert found.difference.value == pytest.approx(0.1)
    assert found.difference.se == pytest.approx(se)
    reach = stats.norm.ppf(0.975) * se
    assert found.difference.interval == pytest.approx((0.1 - reach, 0.1 + reach))
    assert found.flip_chance == pytest.approx(stats.norm.sf(0.1 / se))
    # Seven traces of a hundred more that the judge passes in `a` move it by .07 / .7 = .1.
    assert found.flips_at == pytest.approx(0.07)


def test_a_synthetic_difference_of_repeated_tasks_by_hand() -> None:
    """Twenty tasks of 50 equal runs a side, of which 9 and 8 pass, are worth 20 runs.

    Var of the first side is .45 x .55 / .49 / 19 (20 / 19 of the mean square by 20); pi_a - pi_b =
    .05 / .7. With labels in equal pairs the reference part doubles, by 100 / 99 of 100 tasks.
    """

    def side(name: str, passed: int) -> LabelledGroup:
        task = np.repeat(np.arange(20), 50)
        verdicts = np.where(task < passed, 0, 1)
        return group(
            name, production_sums(verdicts, None, credit=[1.0, 0.0], n_verdicts=2, tasks=task)
        )

    shared = replace(SHARED, pseudo_count=0)
    sides = side("a", 9), side("b", 8)
    production = (0.45 * 0.55 + 0.40 * 0.60) / 0.49 / 19
    reference = (0.05 / 0.7) ** 2 * (0.16 + 0.09) / 0.49 / 100
    found = compare_groups(*sides, shared).difference
    assert found.value == pytest.approx(0.05 / 0.7)
    assert found.df == pytest.approx(19)
    assert found.se == pytest.approx(np.sqrt(production + reference))
    assert found.half_width == pytest.approx(stats.t.ppf(0.975, 19) * (found.se or 0))
    human = np.repeat([0, 0, 1, 1], [80, 20, 10, 90])
    verdicts = np.repeat([0, 1, 0, 1], [80, 20, 10, 90])
    pairs = LabelledSample(
        human=np.eye(2)[human], verdicts=verdicts, clusters=np.repeat(np.arange(100), 2)
    )
    found = compare_groups(*sides, replace(shared, labelled=pairs)).difference
    assert found.se == pytest.approx(np.sqrt(production + reference * 2 * 100 / 99))
    # Fewer than five tasks give no interval.
    few = group(
        "c",
        production_sums(
            np.array([0, 0, 1, 1]), None, credit=[1.0, 0.0], n_verdicts=2,
            tasks=np.array([0, 0, 1, 1]),
        ),
    )  # fmt: skip
    lacking = compare_groups(sides[0], few, shared)
    assert (lacking.difference.interval, lacking.p_value) == (None, None)
    assert "2 tasks" in lacking.difference.status


def test_the_same_mix_leaves_the_production_part() -> None:
    first, second = binary("a", 450, 550), binary("b", 4500, 5500)
    found = compare_groups(first, second, SHARED)
    sides = [invert(TABLE, side.production) for side in (first, second)]
    only = np.sqrt(sum(side.variance_production for side in sides))
    assert found.difference.value == pytest.approx(0.0, abs=1e-12)
    assert found.difference.se == pytest.approx(only)
    assert found.flip_chance == pytest.approx(0.5)


def test_the_variance_is_the_derivative_of_the_difference_with_cost() -> None:
    """Numerical derivative of the difference in every cell of the table, costs included."""
    rng = np.random.default_rng(3)
    sums = [
        production_sums(
            rng.choice(5, 800, p=mix), rng.choice([0.0, 0.3, 1.0], 800, p=[0.6, 0.3, 0.1]),
            credit=CREDIT, n_verdicts=5,
        )
        for mix in ([0.5, 0.2, 0.1, 0.1, 0.1], [0.3, 0.2, 0.3, 0.1, 0.1])
    ]  # fmt: skip
    first, second = group("a", sums[0]), group("b", sums[1])
    found = compare_groups(first, second, replace(FIVE_SHARED, pseudo_count=0))

    def difference(table: NDArray[np.float64]) -> float:
        one, other = (invert(table, s, pseudo_count=0).unclipped for s in sums)
        return (one or 0) - (other or 0)

    rates = FIVE / FIVE.sum(axis=1, keepdims=True)
    reference = 0.0
    for j in range(5):
        slopes = np.zeros(5)
        for k in range(5):
            moved = rates.copy()
            moved[j, k] += 1e-6
            # invert() rescales each row; take the part of that back out of the slope.
            slopes[k] = (difference(moved) - difference(rates)) / 1e-6
        mean = rates[j] @ slopes
        reference += (rates[j] @ slopes**2 - mean**2) / FIVE[j].sum()
    production = sum(invert(FIVE, s, pseudo_count=0).variance_production for s in sums)
    assert found.difference.se == pytest.approx(np.sqrt(reference + production), rel=1e-4)


def test_a_group_with_fifty_labels_of_two_verdicts_stands_on_its_own() -> None:
    one = labelled("a", 27, 3, (600, 400))
    found = estimate_group(one, SHARED)
    assert found.kind == "direct"
    assert found.estimate == post_stratified(one.labelled, one.production).estimate
    assert found.estimate.value == pytest.approx(0.6 * 0.9 + 0.4 * 0.15)
    assert [share.value for share in found.shares] == pytest.approx([0.6, 0.4])
    # The same labels from a reference set say nothing about the mix of the group.
    assert estimate_group(one, replace(SHARED, design="reference")).kind == "synthetic"
    fewer = one.labelled.where(np.arange(50) < 49)
    alike = replace(one.labelled, verdicts=np.zeros(50, dtype=np.int64))
    for labels in (fewer, alike):
        assert not is_direct(replace(one, labelled=labels), design="production")


def test_a_direct_difference_combines_the_limits() -> None:
    one, other = labelled("a", 27, 3, (600, 400)), labelled("b", 20, 2, (500, 500))
    found = compare_groups(one, other, SHARED)
    sides = [estimate_group(side, SHARED).estimate for side in (one, other)]
    assert (found.kind, found.may_gate) == ("direct", True)
    assert (found.flip_chance, found.flips_at) == (None, None)
    v1, v2 = (side.value or 0.0 for side in sides)
    (l1, u1), (l2, u2) = (side.interval or (0.0, 0.0) for side in sides)
    assert found.difference.value == pytest.approx(v1 - v2)
    assert found.difference.interval == pytest.approx(
        (v1 - v2 - np.hypot(v1 - l1, u2 - v2), v1 - v2 + np.hypot(u1 - v1, v2 - l2))
    )
    assert found.difference.se == pytest.approx(np.hypot(sides[0].se or 0, sides[1].se or 0))


def test_one_side_without_labels_makes_both_synthetic() -> None:
    found = compare_groups(labelled("a", 27, 3, (600, 400)), binary("b", 1, 3), SHARED)
    assert found.kind == "synthetic"
    assert found.difference.n == 1004
    # Of both sides the synthetic value is subtracted, also of the one that has its own.
    own = invert(TABLE, labelled("a", 27, 3, (600, 400)).production).estimate
    first, second = (side.value or 0 for side in found.sides)
    assert first == pytest.approx(own.value)
    assert found.difference.value == pytest.approx(first - second)


def test_a_judge_that_is_too_weak_gives_no_synthetic_figure() -> None:
    weak = SharedCalibration(table=[[60, 40], [45, 55]], names=NAMES)
    found = estimate_group(binary("a", 450, 550), weak)
    assert found.estimate.status.startswith("not_estimable: its verdicts do not tell")
    difference = compare_groups(binary("a", 5, 5), binary("b", 4, 6), weak).difference
    assert "improve the judge" in difference.status
    # With 30 labels of its own the group needs no error rates of others.
    one = labelled("a", 27, 3, (600, 400))
    own = replace(one, labelled=one.labelled.where(np.arange(50) % 5 < 3))
    assert estimate_group(own, SHARED).kind == "synthetic"
    assert estimate_group(own, weak).kind == "direct"
    assert estimate_group(own, weak).estimate.method == "post-stratified residual, logit t"
    empty = compare_groups(binary("a", 0, 0), binary("b", 4, 6), SHARED).difference
    assert empty.status.startswith("not_estimable: no production verdicts")


def slices(*wrong: int, n: int = 20, **more: Any) -> list[LabelledGroup]:
    """Groups of n labels, 12 with verdict 0, of which so many are wrong."""
    return [
        LabelledGroup(
            name=str(number),
            labelled=LabelledSample(
                human=np.eye(2)[[0] * (12 - k) + [1] * (n - 12 + k)],
                verdicts=np.repeat([0, 1], [12, n - 12]),
                **more,
            ),
            production=production_sums_from_counts([600, 400], credit=[1.0, 0.0]),
        )
        for number, k in enumerate(wrong)
    ]


def test_slices_that_are_alike_share_one_error_with_a_shorter_interval() -> None:
    """Errors of -.15 each: nothing of its own is kept, and u^2 / J is what the mean has."""
    found = estimate_groups(slices(3, 3, 3, 3, 3, 3), SHARED)
    assert {one.kind for one in found} == {"pooled"}
    assert [one.own_weight for one in found] == [0.0] * 6
    assert [one.estimate.value for one in found] == pytest.approx([0.45] * 6)
    within = 20 / 19 * 0.15 * 0.85
    reach = stats.t.ppf(0.975, 5) * np.sqrt(within / 20 / 6)
    se = np.sqrt((reach / stats.norm.ppf(0.975)) ** 2 + 0.24 / 1000)
    assert found[0].estimate.se == pytest.approx(se)
    margin = stats.norm.ppf(0.975) * se / (0.45 * 0.55)
    limits = special.expit(special.logit(0.45) + np.array([-margin, margin]))
    assert found[0].estimate.interval == pytest.approx(limits)
    assert [share.value for share in found[0].shares] == pytest.approx([0.45, 0.55])
    alone = estimate_groups(slices(3, 3), SHARED)
    assert {one.kind for one in alone} == {"synthetic"}


def test_fifty_labels_stay_direct_and_one_label_is_enough_to_borrow() -> None:
    large, *rest = slices(3, 3, 3, n=60)[:1] + slices(2, 3, 4)
    few = replace(rest[0], name="few", labelled=rest[0].labelled.where(np.arange(20) < 1))
    none = replace(rest[0], name="none", labelled=rest[0].labelled.where(np.arange(20) < 0))
    groups = [replace(large, name="large"), few, none, *rest[1:]]
    found = {one.name: one for one in estimate_groups(groups, SHARED)}
    kinds = [one.kind for one in found.values()]
    assert kinds == ["direct", "pooled", "pooled", "pooled", "pooled"]
    assert found["large"].estimate == post_stratified(large.labelled, large.production).estimate
    assert found["few"].estimate.ok
    assert (found["few"].own_weight or 0) < (found["1"].own_weight or 0) + 1e-12
    assert found["none"].estimate.status.startswith("not_estimable: no label of its own")
    pairs = [("large", "few"), ("large", "none"), ("1", "2")]
    compared = compare_pairs(groups, pairs, SHARED)
    assert [one.difference.ok for one in compared] == [True, False, True]
    assert compared[1].p_holm is None


def test_weights_and_tasks_enter_through_the_influence_of_the_slice() -> None:
    """Each label twice, as one task, or with any common weight, says what it says once."""
    plain = estimate_groups(slices(2, 3, 4, 6), SHARED)
    twice = [
        replace(
            group,
            labelled=LabelledSample(
                human=np.repeat(group.labelled.human, 2, axis=0),
                verdicts=np.repeat(group.labelled.verdicts, 2),
                weights=np.full(40, 7.0),
                clusters=np.repeat(np.arange(20), 2),
            ),
        )
        for group in slices(2, 3, 4, 6)
    ]
    for one, other in zip(plain, estimate_groups(twice, SHARED), strict=True):
        assert other.estimate.value == pytest.approx(one.estimate.value)
        assert other.estimate.interval == pytest.approx(one.estimate.interval)


def test_a_judge_without_any_error_has_exact_bounds_in_every_slice() -> None:
    found = estimate_groups(slices(0, 0, 0), SHARED)
    assert {one.estimate.value for one in found} == {0.6}
    low, high = found[0].estimate.interval or (0.0, 0.0)
    bound, reach = 1 - 0.025 ** (1 / 20), stats.norm.ppf(0.975) * np.sqrt(0.24 / 1000)
    assert (low, high) == pytest.approx((0.6 * (1 - bound) - reach, 0.6 + 0.4 * bound + reach))
    (pair,) = compare_pairs(slices(0, 0, 0), [("0", "1")], SHARED)
    assert pair.difference.interval is not None
    assert pair.p_holm is None


def test_a_difference_of_slices_is_by_their_own_labels() -> None:
    """Errors of -.1 and -.5 of 20: .4, with the variance pooled over all four."""
    groups = slices(2, 2, 2, 10)
    (pair,) = compare_pairs(groups, [("0", "3")], SHARED)
    within = 20 / 19 * (3 * 0.09 + 0.25) / 4
    se = np.sqrt(2 * within / 20 + 2 * 0.24 / 1000)
    assert pair.difference.value == pytest.approx(0.4)
    reach = stats.t.ppf(0.975, 76) * se
    assert pair.difference.interval == pytest.approx((0.4 - reach, 0.4 + reach))
    assert pair.p_value == pair.p_holm == pytest.approx(2 * stats.t.sf(0.4 / se, 76))
    rates = estimate_groups(groups, SHARED)
    assert (rates[0].estimate.value or 0) - (rates[3].estimate.value or 0) < 0.4


def test_equal_rates_by_hand_and_against_scipy() -> None:
    # Class 0: groups 30/10 and 20/20; class 1: groups 5/35 and 20/20.
    first, second = np.array([[30, 10], [20, 20]]), np.array([[5, 35], [20, 20]])
    human = np.eye(2)[np.repeat([0, 1], 80)]
    groups = np.tile(np.repeat([0, 1], 40), 2)
    verdicts = np.concatenate([np.repeat([0, 1, 0, 1], t.ravel()) for t in (first, second)])
    found = compare_rates(human, verdicts, groups, n_verdicts=3, rng=np.random.default_rng(0))
    witness = [stats.chi2_contingency(t, correction=False).statistic for t in (first, second)]
    assert found.statistic == pytest.approx(sum(witness))
    assert (found.df, found.n, found.n_groups) == (2, 160, 2)
    assert found.p_value == pytest.approx(stats.chi2.sf(sum(witness), 2))
    assert found.smallest_expected == 12.5


def test_few_labels_are_tested_by_permutation() -> None:
    """Fisher's exact test of one 2 x 2 table is its witness."""
    human, groups = np.ones((18, 1)), np.repeat([0, 1], 9)
    verdicts = np.repeat([0, 1, 0, 1], [8, 1, 3, 6])
    found = compare_rates(
        human, verdicts, groups, n_verdicts=2, rng=np.random.default_rng(0), n_permutations=4000
    )
    assert "4,000 permutations" in found.method
    exact = stats.fisher_exact(np.array([[8, 1], [3, 6]])).pvalue
    assert found.p_value == pytest.approx(exact, abs=0.015)


def test_shuffling_keeps_the_class() -> None:
    """Verdicts follow the class and each class has one group: nothing can be compared."""
    human = np.eye(2)[np.repeat([0, 1], 20)]
    verdicts = groups = np.repeat([0, 1], 20)
    rng = np.random.default_rng(0)
    found = compare_rates(human, verdicts, groups, n_verdicts=2, rng=rng)
    assert found.status.startswith("not_estimable: no class has labels in two groups")
    one = compare_rates(human, verdicts, np.zeros(40, dtype=int), n_verdicts=2, rng=rng)
    assert one.status.startswith("not_estimable: labels of one group only")
    # Groups of another class mix, a judge that is alike in both and always right: statistic 0.
    mixed = np.tile([0, 0, 0, 1], 10)
    right = compare_rates(np.eye(2)[mixed], mixed, groups, n_verdicts=2, rng=rng)
    assert right.statistic is None


@pytest.mark.long
def test_permutation_p_values_are_uniform_when_rates_are_equal() -> None:
    rng = np.random.default_rng(11)
    rejected = 0
    for _ in range(300):
        human = rng.choice(2, 40, p=[0.7, 0.3])
        groups = rng.choice(3, 40)
        verdicts = np.where(rng.random(40) < 0.85, human, 1 - human)
        found = compare_rates(
            np.eye(2)[human], verdicts, groups, n_verdicts=2, rng=rng, n_permutations=99
        )
        rejected += found.p_value is not None and found.p_value <= 0.05
    assert 4 <= rejected <= 28


def test_golden_slices() -> None:
    """One workflow of seven has a judge who passes what failed; one has eight labels."""
    case = headline_2()["slices_one_lenient_workflow"]
    given, expected = case["inputs"], case["expected"]
    labels, runs = (pd.read_csv(io.StringIO(given[f"{of}_csv"])) for of in ("human", "verdicts"))
    runs["code"] = runs["outcome"].map(FIVE_NAMES.index)
    rows = labels.merge(runs, on="trace_id", suffixes=("", "_judged"))
    groups = [
        LabelledGroup(
            name=str(name),
            labelled=LabelledSample(
                human=np.eye(5)[of_one["outcome"].map(FIVE_NAMES.index)],
                verdicts=of_one["code"].to_numpy(),
            ),
            production=production_sums(
                runs.loc[runs["workflow"] == name, "code"].to_numpy(), None,
                credit=given["credit"], n_verdicts=5,
            ),
        )
        for name, of_one in rows.groupby("workflow")
    ]  # fmt: skip
    found = estimate_groups(groups, SharedCalibration(table=np.eye(5), names=FIVE_NAMES))
    assert [one.n_labels for one in found] == given["labels"]
    assert [one.own for one in found] == expected["own"]
    limits = [one.estimate.interval or (np.nan, np.nan) for one in found]
    for name, values in (
        ("value", [one.estimate.value for one in found]),
        ("low", [low for low, _ in limits]),
        ("high", [high for _, high in limits]),
    ):
        assert values == pytest.approx(expected[name], rel=1e-9)
    # Without the rule the lenient workflow is drawn toward the others.
    at = int(np.argmin(expected["value"]))
    deltas = np.array(given["mean_gap"])
    assert expected["own"][at]
    assert deltas[at] == deltas.min()
