"""Post-stratification, inversion and the one-source estimators on small hand-made data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.judge_calibration.confusion_inversion import invert
from calibration.judge_calibration.post_stratification import (
    Strata,
    merge_small,
    post_stratified,
    post_stratified_shares,
)
from calibration.judge_calibration.samples import (
    judge_raw,
    production_sums,
    production_sums_from_counts,
)
from calibration.statistics.means import human_only

CREDIT = [1.0, 0.4, 0.0]


def labelled(seed: int = 5, n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    verdicts = rng.integers(0, 3, size=n)
    scores = np.clip(np.array([0.9, 0.4, 0.1])[verdicts] + rng.normal(0, 0.2, n), 0, 1)
    return scores, verdicts


def test_post_stratified_variance_by_hand() -> None:
    """Strata of 4 (scores 1, 1, 1, 0) and 4 (0, 0, 1, 1), each half of 100 traces.

    v = 3/16 and 1/4; V_w = (4 x 3/16 + 4 x 1/4) / 6 = 0.291667; variances of the means
    (0.75 + V_w) / 16 and (1 + V_w) / 16; theta = 0.625; between (0.125^2) / 100.
    """
    scores = np.array([1.0, 1, 1, 0, 0, 0, 1, 1])
    result = post_stratified(scores, np.repeat([0, 1], 4), [50, 50], minimum_labels=4)
    floor = (0.75 + 1.0) / 6
    parts = 0.25 * np.array([0.75 + floor, 1 + floor]) / 16
    assert result.estimate.value == pytest.approx(0.625)
    assert result.estimate.se == pytest.approx(np.sqrt(parts.sum() + 0.125**2 / 100))
    total, within = 8 * 0.625 * 0.375, 4 * 3 / 16 + 4 * 1 / 4
    assert result.r_squared == pytest.approx(1 - within / total)


def test_clusters_of_one_and_equal_weights_change_nothing_and_one_stratum_is_the_mean() -> None:
    scores, verdicts = labelled()
    one = post_stratified(scores, np.zeros(90, dtype=int), [1000]).estimate
    assert one.value == pytest.approx(human_only(scores).value)
    plain = post_stratified(scores, verdicts, [300, 300, 300])
    same = post_stratified(
        scores, verdicts, [300, 300, 300], clusters=np.arange(90), weights=np.full(90, 3.0)
    )
    assert same.estimate.value == pytest.approx(plain.estimate.value)
    assert same.estimate.interval == pytest.approx(plain.estimate.interval)


def test_repeated_tasks_widen_the_interval() -> None:
    scores, verdicts = labelled(n=40)
    repeated = np.tile(scores, 3), np.tile(verdicts, 3)
    iid = post_stratified(*repeated, [300, 300, 300]).estimate
    whole = post_stratified(*repeated, [300, 300, 300], clusters=np.tile(np.arange(40), 3)).estimate
    assert whole.value == pytest.approx(iid.value)
    assert (whole.se or 0) > 1.4 * (iid.se or 1)
    alone = human_only(repeated[0], clusters=np.tile(np.arange(40), 3))
    assert alone.se == pytest.approx(human_only(scores).se)
    few = post_stratified(scores, verdicts, [90, 90, 90], clusters=np.arange(40) % 4).estimate
    assert few.interval is None
    assert few.status.startswith("no interval: 4 tasks")


def test_verdict_without_labels_joins_the_nearest() -> None:
    """Verdict 1 has production but no labels; its credit .4 is nearer to 0 than to 1."""
    scores = np.array([1.0] * 9 + [0] + [0.0] * 9 + [1])
    credit = np.array(CREDIT)
    result = post_stratified(scores, np.repeat([0, 2], 10), [50, 20, 30], verdict_values=credit)
    assert result.strata == Strata(groups=(0, 1, 1), merged=((1, 2),))
    assert result.estimate.value == pytest.approx(0.5 * 0.9 + 0.5 * 0.1)
    # Merging ends with one stratum.
    strata = merge_small(np.array([1, 0, 1]), np.array([5.0, 0, 5.0]), credit, minimum_labels=5)
    assert (strata.groups, strata.n_strata) == ((0, -1, 0), 1)


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0])
def test_equal_scores_give_the_exact_bound(value: float) -> None:
    scores, share = np.full(40, value), 1 - 0.025 ** (1 / 40)
    limits = (value * (1 - share), value * (1 - share) + share)
    for estimate in (
        human_only(scores),
        post_stratified(scores, np.repeat([0, 1], 20), [100, 100]).estimate,
    ):
        assert estimate.status == "no variation seen"
        assert estimate.interval == pytest.approx(limits, abs=1e-9)


def test_what_is_no_sample_is_refused_and_one_label_is_not_estimable() -> None:
    with pytest.raises(ValueError, match="must include the labelled traces"):
        post_stratified(np.ones(3), np.zeros(3, dtype=int), [2, 5])
    for scores, match in (([0.5, 1.2], r"in \[0, 1\]"), ([[0.5]], "one-dimensional")):
        with pytest.raises(ValueError, match=match):
            human_only(np.array(scores))
    assert not human_only(np.array([1.0])).ok
    assert not post_stratified(np.array([1.0]), np.array([0]), [5]).estimate.ok


def test_share_intervals_equal_a_monte_carlo_posterior() -> None:
    """The two-moment beta interval against draws of the Dirichlet posterior itself."""
    rng = np.random.default_rng(11)
    verdicts = rng.choice(3, size=300, p=[0.6, 0.25, 0.15])
    rates = np.array([[0.85, 0.1, 0.05], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]])
    human = np.array([rng.multinomial(1, rates[v]) for v in verdicts], dtype=np.float64)
    counts = np.array([6000, 2500, 1500])
    strata = Strata(groups=(0, 1, 2), merged=())
    shares = post_stratified_shares(human, verdicts, counts, strata=strata)
    table = np.array([human[verdicts == k].sum(axis=0) for k in range(3)])
    given = np.stack([rng.dirichlet(row + 0.2, size=40_000) for row in table], axis=1)
    draws = np.einsum("dk,dkc->dc", rng.dirichlet(counts, size=40_000), given)
    for k in range(3):
        assert shares[k].interval == pytest.approx(
            tuple(np.quantile(draws[:, k], [0.025, 0.975])), abs=0.004
        )
    assert sum(s.value or 0 for s in shares) == pytest.approx(1.0)


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
    assert result.shares[2].status.startswith("not_estimable")
    assert result.estimate.ok


def test_judge_raw_skips_traces_without_a_class() -> None:
    sums = production_sums(
        np.array([0, 1, 3, 3]), np.array([0.0, 0.5, 0.0, 0.0]), credit=CREDIT, n_verdicts=4
    )
    estimate = judge_raw(sums)
    assert (estimate.value, estimate.n, estimate.interval) == (0.5, 2, None)
    assert not judge_raw(production_sums_from_counts([0, 0, 0, 5], credit=CREDIT)).ok


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(30, 120))
def test_renaming_verdicts_changes_nothing(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores, verdicts = rng.choice([0.0, 0.4, 1.0], n), rng.integers(0, 4, n)
    counts, values = np.bincount(verdicts, minlength=4) + 50, np.array([1.0, 0.4, 0.1, 0.0])
    order = rng.permutation(4)
    first = post_stratified(scores, verdicts, counts, verdict_values=values)
    second = post_stratified(
        scores, order[verdicts], counts[order.argsort()], verdict_values=values[order.argsort()]
    )
    assert first.estimate.value == pytest.approx(second.estimate.value)
    assert first.estimate.interval == pytest.approx(second.estimate.interval)
    assert first.estimate.interval is not None
    lower, upper = first.estimate.interval
    assert 0 <= lower <= (first.estimate.value or 0) <= upper <= 1
