"""Post-stratification, inversion and the one-source estimators on small hand-made data."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy import stats

from calibration.judge_calibration.calibrate import calibrate
from calibration.judge_calibration.confusion_inversion import invert
from calibration.judge_calibration.post_stratification import (
    PostStratified,
    class_shares,
    post_stratified,
)
from calibration.judge_calibration.samples import (
    LabelledSample,
    judge_raw,
    production_sums,
    production_sums_from_counts,
)
from calibration.judge_calibration.strata import Strata, merge_small
from calibration.statistics.means import human_only
from tests.judge_calibration.test_golden_peers import on_logit_scale

CREDIT = [1.0, 0.4, 0.0]
counted = partial(production_sums_from_counts, credit=[1.0, 0.0])

# Ten labels of each of two verdicts, of which 8 and 2 score 1: means .8 and .2, sum of squares 1.6.
TENS = [1.0] * 8 + [0.0] * 2 + [1.0] * 2 + [0.0] * 8
BOTH = np.repeat([0, 1], 10)
OF_TENS = 2 * 0.25 * (1.6 / 100 + 3.2 / 18 / 100)
BETWEEN = 0.3**2 / 100


def random_labels(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    verdicts = rng.integers(0, 3, size=n)
    scores = np.clip(np.array([0.9, 0.4, 0.1])[verdicts] + rng.normal(0, 0.2, n), 0, 1)
    return scores, verdicts


def scored(scores: ArrayLike, verdicts: ArrayLike, **more: Any) -> LabelledSample:
    """Return labels: what scores 1 is of the first class, what scores 0 of the second."""
    human = np.column_stack([scores, np.subtract(1, scores)])
    return LabelledSample(human=human, verdicts=np.asarray(verdicts, dtype=np.int64), **more)


def stratified(
    scores: ArrayLike, verdicts: ArrayLike, counts: ArrayLike, **more: Any
) -> PostStratified:
    return post_stratified(scored(scores, verdicts, **more), counted(counts))


def test_variance_by_hand() -> None:
    """Strata of 4 (scores 1, 1, 1, 0) and 4 (0, 0, 1, 1), each half of 100 traces.

    v = 3/16 and 1/4; V_w = (4 x 3/16 + 4 x 1/4) / 6 = 0.291667; variances of the means
    (0.75 + V_w) / 16 and (1 + V_w) / 16; theta = 0.625; between (0.125^2) / 100.
    """
    labels = scored([1, 1, 1, 0, 0, 0, 1, 1], np.repeat([0, 1], 4))
    result = post_stratified(labels, counted([50, 50]), minimum_labels=4)
    floor = (0.75 + 1.0) / 6
    parts = 0.25 * np.array([0.75 + floor, 1 + floor]) / 16
    se, df = np.sqrt(parts.sum() + 0.125**2 / 100), parts.sum() ** 2 / (parts**2 / 3).sum()
    found = result.estimate
    assert (found.value, found.se, found.df) == pytest.approx((0.625, se, df))
    limits = on_logit_scale([0.625, 0, 0.625 + stats.t.ppf(0.975, df) * se])
    assert found.interval == pytest.approx(limits[1:])
    total, within = 8 * 0.625 * 0.375, 4 * 3 / 16 + 4 * 1 / 4
    assert result.r_squared == pytest.approx(1 - within / total)


def test_costs_over_the_ceiling_by_hand() -> None:
    """Verdict 0 promises 1, less .4 in 15 of its 60 runs; verdict 1 promises nothing in 40 runs.

    Mean f = (45 + 15 x .6) / 100 = .54. Labels of verdict 0, two of them with the cost, score
    1, 0, .6, .6, so s - f = 0, -1, 0, 0 and d = -.25; of verdict 1: 1, 0, 0, 0 and d = .25.
    theta = .54 - .6 x .25 + .4 x .25 = .49. Sums of squares .75 each, V = 1.5 / 6; below 60 labels
    with costs the label part is (1 + 1/8) (.6^2 + .4^2) V / 4, above .52 (.75 + V) / 16.
    f + d is .75, .35 and .25 in 45, 15 and 40 runs.
    """
    costs = np.repeat([0.0, 0.4, 0.0], [45, 15, 40])
    verdicts = np.repeat([0, 1], [60, 40])
    production = production_sums(verdicts, costs, credit=[1.0, 0.0], n_verdicts=2)
    own = np.repeat([0, 0.4, 0], [2, 2, 4])
    labels = scored([1, 0, 1, 1, 1, 0, 0, 0], np.repeat([0, 1], 4), penalties=own)
    found = post_stratified(labels, production, minimum_labels=4)
    between = (45 * 0.26**2 + 15 * 0.14**2 + 40 * 0.24**2) / 100**2
    se = np.sqrt(1.125 * 0.52 * 0.25 / 4 + between)
    df = 3 * 0.52**2 / (0.36**2 + 0.16**2)
    rate = found.estimate
    assert (rate.value, rate.se, rate.df) == pytest.approx((0.49, se, df))
    assert found.variance_labels == pytest.approx(1.125 * 0.52 * 0.25 / 4)
    assert found.stratum_means == pytest.approx((0.9 - 0.25, 0.25))


def test_clusters_of_one_and_equal_weights_change_nothing_and_one_stratum_is_the_mean() -> None:
    scores, verdicts = random_labels()
    one = stratified(scores, np.zeros(90), [1000, 0]).estimate
    assert one.value == pytest.approx(human_only(scores).value)
    plain = stratified(scores, verdicts, [300] * 3).estimate
    each: dict[str, Any] = {"clusters": np.arange(90), "weights": np.full(90, 3.0)}
    same = stratified(scores, verdicts, [300] * 3, **each).estimate
    assert same.value == pytest.approx(plain.value)
    assert same.interval == pytest.approx(plain.interval)


def test_repeated_tasks_widen_the_interval() -> None:
    scores, verdicts = random_labels(n=40)
    clusters, counts = np.tile(np.arange(40), 3), [300] * 3
    thrice = np.tile(scores, 3), np.tile(verdicts, 3), counts
    iid, whole = stratified(*thrice).estimate, stratified(*thrice, clusters=clusters).estimate
    assert whole.value == pytest.approx(iid.value)
    assert (whole.se or 0) > 1.4 * (iid.se or 1)
    alone = human_only(thrice[0], clusters=clusters)
    assert alone.se == pytest.approx(human_only(scores).se)
    few = stratified(scores, verdicts, counts, clusters=np.arange(40) % 4).estimate
    assert few.interval is None
    assert few.status.startswith("no interval: 4 tasks")


def test_tasks_that_repeat_in_production_only_by_hand() -> None:
    """Twenty tasks of 5 runs with one verdict each, and a label of one run of each task.

    psi = 5 (+-.3) / 100 + .5 / 10 x r x sqrt(10 / 9); the label parts sum to 0 within verdicts, so
    the squares sum to 20 x .015^2 + .0025 x 10 / 9 x (1.6 + 1.6). Labelled tasks less one are 19,
    effective tasks of production too, Satterthwaite's 18.
    """
    tasks = np.arange(20)
    named: dict[str, Any] = {"credit": [1.0, 0.0], "n_verdicts": 2, "tasks": np.repeat(tasks, 5)}
    production = production_sums(np.repeat(BOTH, 5), None, **named)
    found = post_stratified(scored(TENS, BOTH, clusters=tasks), production).estimate
    squares = 20 * 0.015**2 + 0.0025 * 10 / 9 * 3.2
    assert (found.value, found.df) == pytest.approx((0.5, 18))
    assert found.se == pytest.approx(np.sqrt(20 / 19 * squares))
    alone = stratified(TENS, BOTH, [50, 50]).estimate
    assert alone.se == pytest.approx(np.sqrt(OF_TENS + BETWEEN))
    assert (found.half_width or 0) > 1.15 * (alone.half_width or 1)


def test_these_runs_by_hand() -> None:
    """A fifth of the runs is labelled: (1 - 10/50) of the variance, and no part of production."""
    found, every = (
        post_stratified(scored(TENS, BOTH), counted(counts), estimand="these_runs").estimate
        for counts in ([50, 50], [10, 10])
    )
    assert (found.value, found.se) == pytest.approx((0.5, np.sqrt(0.8 * OF_TENS)))
    assert found.any_time is None
    assert every.se == 0
    assert every.interval == pytest.approx((0.5, 0.5))


def test_human_labels_of_a_draw_within_verdicts_are_post_stratified() -> None:
    """Ten of 80 and ten of 20: the strata of the draw are those of the rate."""
    scores, weights = np.array(TENS), np.repeat([8.0, 2.0], 10)
    labels, production = scored(TENS, BOTH, weights=weights), counted([80, 20])
    of_rates = (
        post_stratified(labels, production).estimate,
        post_stratified(labels, production, estimand="these_runs").estimate,
    )
    for of_rate, population in zip(of_rates, (None, 100), strict=True):
        found = human_only(scores, weights=weights, strata=BOTH, population=population)
        assert (found.value, found.se, found.df) == pytest.approx(
            (of_rate.value, of_rate.se, of_rate.df)
        )
        assert found.method == "human labels only, stratified logit t"
    unknown = human_only(scores, weights=weights)
    assert (unknown.se or 0) > (of_rates[0].se or 1)


def test_labels_that_do_not_vary_within_the_strata_of_a_draw_have_the_exact_bound() -> None:
    """Value .8; 1 - .025^(1/20) of .2 and .8 more, and 1.96 sqrt(.8 x .2 / 100) of production."""
    weights = np.repeat([8.0, 2.0], 10)
    found = human_only(np.repeat([1.0, 0.0], 10), weights=weights, strata=BOTH)
    share, reach = 1 - 0.025 ** (1 / 20), 1.959964 * 0.04
    assert found.status == "no variation seen"
    assert found.interval == pytest.approx((0.8 * (1 - share) - reach, 0.8 + 0.2 * share + reach))


def test_verdict_without_labels_joins_the_nearest() -> None:
    """Verdict 1 has production but no labels; its credit .4 is nearer to 0 than to 1.

    The stratum of both promises (20 x .4 + 30 x 0) / 50 = .16. Its labels have no cost and mean
    .1, so d = -.06; half of its runs cost .1 and promise .06: .5 x .9 + .5 x (.11 - .06).
    """
    labels = LabelledSample(human=np.eye(3)[[0] * 9 + [2] * 10 + [0]], verdicts=2 * BOTH)
    verdicts = np.repeat([0, 1, 2], [50, 20, 30])
    costs = np.repeat([0, 0.1, 0.0, 0.1], [50, 20, 25, 5])
    for penalties, value in ((None, 0.5 * 0.9 + 0.5 * 0.1), (costs, 0.475)):
        production = production_sums(verdicts, penalties, credit=CREDIT, n_verdicts=3)
        result = post_stratified(labels, production)
        assert result.strata == Strata(groups=(0, 1, 1), merged=((1, 2),))
        assert result.estimate.value == pytest.approx(value)
    # Merging ends with one stratum.
    ends = np.array([1, 0, 1])
    strata = merge_small(ends, 5.0 * ends, np.array(CREDIT), minimum_labels=5)
    assert (strata.groups, strata.n_strata) == ((0, -1, 0), 1)


@pytest.mark.parametrize("means", [(0.0, 0.0), (0.4, 0.4), (1.0, 1.0), (1.0, 0.0)])
def test_labels_that_do_not_vary_give_the_exact_bound(means: tuple[float, float]) -> None:
    """And the part of production, 60 and 40 of 100: .6 x .4 x (difference of the means)^2 / 100."""
    scores, value = np.repeat(means, 20), np.dot([0.6, 0.4], means)
    reach = 1.959964 * np.sqrt(0.0024) * abs(means[0] - means[1])
    # 20 labels count .03 each and 20 .02: ln x is the mean of ln .03, ln .02 and ln(.025) / 40.
    x = np.sqrt(0.03 * 0.02) * 0.025 ** (1 / 40)
    unequal = 20 * ((0.03 - x) + max(0.0, 0.02 - x))
    if x > 0.02:  # the lighter ones are right: ln x = ln .03 + ln(.025) / 20
        unequal = 20 * 0.03 * (1 - 0.025 ** (1 / 20))
    found = [(stratified(scores, np.repeat([0, 1], 20), [60, 40]).estimate, unequal)]
    if not np.ptp(means):
        found.append((human_only(scores), 1 - 0.025 ** (1 / 40)))
    for estimate, share in found:
        low = value * (1 - share)
        limits = np.array([low - reach, low + share + reach]).clip(0, 1)
        assert estimate.value == pytest.approx(value)
        assert estimate.status == "no variation seen"
        assert estimate.interval == pytest.approx(tuple(limits), abs=1e-7)


def test_limits_at_every_look_by_hand() -> None:
    """At 200 labels r = ln((r + 1) / .05^2) = 8.2120, so that the factor is sqrt(1 + r)."""
    found = stratified(TENS * 10, np.tile(BOTH, 10), [5000, 5000]).estimate
    assert found.any_time is not None
    assert found.value == pytest.approx(0.5)
    wide = stats.t.ppf(0.975, found.df or 1) / 1.959964
    assert found.any_time.factor == pytest.approx(np.sqrt(9.2120) * wide, rel=1e-5)
    limits = on_logit_scale([0.5, 0, 0.5 + found.any_time.factor * (found.se or 0)])
    assert found.any_time.interval == pytest.approx(limits[1:])


def test_what_is_no_sample_is_refused_and_one_label_is_not_estimable() -> None:
    with pytest.raises(ValueError, match="must include the labelled traces"):
        stratified(np.ones(3), np.zeros(3), [2, 5])
    for scores, match in (([0.5, 1.2], r"in \[0, 1\]"), ([[0.5]], "one-dimensional")):
        with pytest.raises(ValueError, match=match):
            human_only(np.array(scores))
    assert not human_only(np.array([1.0])).ok
    assert not stratified([1.0], [0], [5, 0]).estimate.ok


def test_class_shares_by_hand() -> None:
    """Halves of 100 with TENS, so p = .5 with the variance of the rate, t_19 known and t_18 not.

    No label is of the last class: 1 - .025^(1/20), each label weighing 1/20.
    """
    labels = LabelledSample(human=np.eye(3)[1 - np.array(TENS, dtype=int)], verdicts=BOTH)
    production = production_sums_from_counts([50, 50, 0], credit=CREDIT)
    shares = class_shares(labels, production)
    values = [share.value or 0 for share in shares]
    assert values == pytest.approx([0.5, 0.5, 0.0])
    gross = post_stratified(labels, production, net=False).estimate.value
    assert np.dot(values, CREDIT) == pytest.approx(gross)
    t_known, t_estimated = (stats.t.ppf(0.975, df) for df in (19, 18))
    half = 0.25 / (OF_TENS + BETWEEN) * (t_known / t_estimated) ** 2 / 2
    low = stats.beta.ppf(0.025, half, half + 1)
    assert shares[0].interval == pytest.approx((low, 1 - low))
    assert shares[2].interval == pytest.approx((0, 1 - 0.025 ** (1 / 20)))


def test_cost_aware_inversion_by_hand() -> None:
    """Each trace contributes C^-1 w_p at its verdict, w_p = max(0, credit - p)."""
    rng = np.random.default_rng(6)
    verdicts, penalties = rng.integers(0, 3, 200), rng.random(200)
    table = np.array([[30, 5, 5], [4, 30, 6], [2, 4, 44]])
    rates = table / table.sum(axis=1, keepdims=True)
    kept = np.maximum(0.0, np.array(CREDIT) - penalties[:, None])
    per_trace = np.array(
        [np.linalg.solve(rates, w)[v] for w, v in zip(kept, verdicts, strict=True)]
    )
    sums = production_sums(verdicts, penalties, credit=CREDIT, n_verdicts=3)
    result = invert(table, sums, pseudo_count=0)
    assert result.estimate.value == pytest.approx(per_trace.mean())
    assert result.variance_production == pytest.approx(per_trace.var() / 200)
    inverse = np.linalg.inv(rates)
    mixed = np.zeros((3, 3))
    for w, v in zip(kept, verdicts, strict=True):
        for s in (0, 1):
            mixed += np.outer(inverse[v] * w[s], inverse[:, s]) / 200
    spread = (rates * mixed**2).sum(axis=1) - (rates * mixed).sum(axis=1) ** 2
    assert result.variance_reference == pytest.approx((spread / table.sum(axis=1)).sum())


def test_a_judge_without_error_needs_a_pseudo_count() -> None:
    production = production_sums_from_counts([60, 40], credit=[1.0, 0.0])
    plain = invert([[20, 0], [0, 20]], production, pseudo_count=0).estimate
    assert plain.interval is None
    assert plain.status.startswith("no interval: no judge error seen")
    assert invert([[20, 0], [0, 20]], production).estimate.interval is not None


def test_what_cannot_be_inverted_says_so() -> None:
    production = production_sums_from_counts([60, 40], credit=[1.0, 0.0])
    same_rows = invert([[10, 10], [10, 10]], production)
    assert "cannot tell some classes apart" in same_rows.estimate.status
    nothing = invert([[10, 2], [1, 10]], production_sums_from_counts([0, 0], credit=[1.0, 0.0]))
    assert not nothing.estimate.ok
    unlabelled = invert([[0, 0], [0, 0]], production)
    assert not unlabelled.estimate.ok
    shifted = invert(
        [[700, 300], [300, 700]], production_sums_from_counts([0, 9000], credit=[1, 0])
    )
    assert "outside [0, 1]" in shifted.estimate.status
    assert shifted.prevalence[0] < 0
    assert shifted.prevalence_clipped == (0.0, 1.0)


def test_a_class_without_reference_traces_is_left_out() -> None:
    production = production_sums_from_counts([60, 38, 2], credit=CREDIT)
    result = invert([[30, 4, 0], [3, 30, 0], [0, 0, 0]], production)
    assert result.prevalence[2] == 0.0
    assert result.estimate.ok


def test_judge_raw_skips_traces_without_a_class() -> None:
    sums = production_sums(
        np.array([0, 1, 3, 3]), np.array([0.0, 0.5, 0.0, 0.0]), credit=CREDIT, n_verdicts=4
    )
    estimate = judge_raw(sums)
    assert (estimate.value, estimate.n, estimate.interval) == (0.5, 2, None)
    assert not judge_raw(production_sums_from_counts([0, 0, 0, 5], credit=CREDIT)).ok


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(60, 120))
def test_renaming_verdicts_changes_nothing(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    classes, verdicts, order = rng.integers(0, 4, n), rng.integers(0, 4, n), rng.permutation(4)
    counts, credit = np.bincount(verdicts, minlength=4) + 50, np.array([1.0, 0.4, 0.1, 0.0])
    first, second = (
        post_stratified(
            LabelledSample(human=np.eye(4)[by[classes]], verdicts=by[verdicts]),
            production_sums_from_counts(counts[by.argsort()], credit=credit[by.argsort()]),
        )
        for by in (np.arange(4), order)
    )
    assert first.estimate.value == pytest.approx(second.estimate.value)
    assert first.estimate.interval == pytest.approx(second.estimate.interval)
    assert first.estimate.interval is not None
    lower, upper = first.estimate.interval
    assert 0 <= lower <= (first.estimate.value or 0) <= upper <= 1


def test_costs_reach_every_estimate_alike_and_gross_takes_none() -> None:
    """All 100 runs pay .4: 18 and 2 of 20 are complete, so .6 x .5 net and .5 gross."""
    human, verdicts = np.eye(2)[[0] * 18 + [1] * 20 + [0] * 2], np.repeat([0, 1], 20)
    sample = LabelledSample(human=human, verdicts=verdicts, penalties=np.full(40, 0.4))
    made, paid = np.repeat([0, 1], 50), np.full(100, 0.4)
    production = production_sums(made, paid, credit=[1.0, 0.0], n_verdicts=2)
    assert post_stratified(sample, production).estimate.value == pytest.approx(0.3)
    assert post_stratified(sample, production, net=False).estimate.value == pytest.approx(0.5)
    found = calibrate(
        sample, production_verdicts=made, production_penalties=paid, credit=[1.0, 0.0],
        design="production",
    )  # fmt: skip
    assert found.estimates["bootstrap"].net.value == pytest.approx(0.3)
    assert found.estimates["bootstrap"].net.half_width == pytest.approx(
        found.estimates["post_stratified"].net.half_width, rel=0.2
    )


def test_tasks_of_production_need_tasks_of_the_labels() -> None:
    sample = LabelledSample(human=np.eye(2)[[0, 1] * 10], verdicts=np.zeros(20, dtype=int))
    production = production_sums(
        np.zeros(40, dtype=int), None, credit=[1.0, 0.0], n_verdicts=2, tasks=np.arange(40) // 2
    )
    with pytest.raises(ValueError, match="clusters of the labelled traces are needed"):
        post_stratified(sample, production)


def test_labels_that_never_vary_have_the_standard_error_of_production_alone() -> None:
    """50 of 80 runs pass: sqrt(50/80 x 30/80 / 80); the exact bound of 40 labels is added to it."""
    codes = np.repeat([0, 1], [30, 10])
    labelled = LabelledSample(human=np.eye(2)[codes], verdicts=codes)
    found = post_stratified(labelled, production_sums_from_counts([50, 30], credit=[1.0, 0.0]))
    estimate = found.estimate
    assert (estimate.value, estimate.df, estimate.any_time) == (0.625, 1.0, None)
    assert estimate.se == pytest.approx((0.625 * 0.375 / 80) ** 0.5)
    # 30 labels count 5/240 each and 10 of them 9/240: the heavy ones alone may be wrong.
    b = 10 * 9 / 240 * (1 - 0.025 ** (1 / 10))
    reach = 1.959963984540054 * (0.625 * 0.375 / 80) ** 0.5
    assert estimate.interval == pytest.approx(
        (0.625 * (1 - b) - reach, 0.625 * (1 - b) + b + reach)
    )
    # Nothing is known of how the labels vary within the verdicts.
    assert found.variance_labels is None
