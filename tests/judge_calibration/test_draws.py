"""The posterior and the bootstraps: repeatable, and equal to plainer ways of computing them."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

from calibration.judge_calibration.bayesian import bayesian, draw_posterior, inverted_shares
from calibration.judge_calibration.confusion_inversion import bootstrap_inversion, invert
from calibration.judge_calibration.post_stratification import bootstrap_post_stratified
from calibration.judge_calibration.samples import (
    ProductionSums,
    production_sums,
    production_sums_from_counts,
)
from calibration.judge_calibration.strata import Strata
from tests.judge_calibration.test_estimators import stratified

CREDIT = [1.0, 0.4, 0.0]
TABLE = np.array([[40, 5, 3, 2], [4, 30, 5, 1], [2, 4, 50, 4]])


def sums_of(counts: ArrayLike, credit: ArrayLike = CREDIT) -> ProductionSums:
    return production_sums_from_counts(counts, credit=credit)


TWO, PRODUCTION = [1.0, 0.0], sums_of([520, 220, 210, 50])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("table", "counts"),
    [
        ([[12, 3], [2, 10]], [20, 12]),
        ([[12, 3, 2], [2, 10, 3]], [20, 12, 6]),
        ([[12, 3, 2, 1], [2, 10, 3, 2]], [20, 12, 6, 3]),
    ],
    ids=["square", "no_verdict", "no_verdict and split"],
)
@pytest.mark.long
def test_the_sampler_equals_weighting_draws_of_the_prior(
    table: list[list[int]], counts: list[int]
) -> None:
    """Rates from their Dirichlets and a uniform mix, weighted by the likelihood of production."""
    weighed_prior_agrees(table, counts)


def weighed_prior_agrees(
    table: list[list[int]], counts: list[int], *, count_further: bool = True
) -> None:
    """Without further verdicts: the likelihood of class verdicts given that they are such."""
    draw, size = rng(1), 200_000
    rates = np.stack([draw.dirichlet(np.array(row) + 0.5, size=size) for row in table], axis=1)
    mix = draw.dirichlet([1.0, 1.0], size=size)
    said = np.einsum("dk,dkv->dv", mix, rates)
    if not count_further:
        said = said[:, :2] / said[:, :2].sum(axis=1, keepdims=True)
    logs = np.log(said) @ counts[: said.shape[1]]
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ mix[:, 0]
    spread = np.sqrt(weights @ (mix[:, 0] - mean) ** 2)
    drawn = draw_posterior(
        np.array(table, float), np.array(counts, float), rng=rng(2), prior=0.5, wanted=50_000,
        count_further=count_further,
    )  # fmt: skip
    share = drawn.prevalence[:, 0]
    found = drawn.weights @ share
    assert found == pytest.approx(mean, abs=0.004)
    assert np.sqrt(drawn.weights @ (share - found) ** 2) == pytest.approx(spread, abs=0.004)
    assert np.einsum("dk,dkv->dv", drawn.prevalence, drawn.rates) == pytest.approx(drawn.mix)


def test_without_the_counts_of_further_verdicts_the_class_verdicts_decide() -> None:
    weighed_prior_agrees([[12, 3, 3], [2, 10, 1]], [20, 12, 6], count_further=False)


def test_further_verdicts_do_not_use_the_draws_up() -> None:
    table = np.array([[60, 5, 3, 0], [4, 50, 5, 0], [2, 4, 70, 1]])
    hardly = bayesian(table, sums_of([5200, 2200, 2100, 600]), rng=rng())
    assert hardly.estimate.ok
    assert hardly.effective_size > 400
    # Production a thousand times as large fixes its verdict shares, and costs no draws.
    large = sums_of(PRODUCTION.counts * 1000)
    found = bayesian(TABLE, large, rng=rng())
    assert found.effective_size > 0.5 * found.n_draws
    assert found.estimate.value == pytest.approx(invert(TABLE, large).estimate.value, abs=0.02)


def test_verdicts_that_do_not_fit_the_error_rates_are_not_estimable() -> None:
    production = sums_of([0, 90_000], TWO)
    found = bayesian([[700, 300], [300, 700]], production, rng=rng())
    assert found.estimate.status.startswith("not_estimable: ")
    assert "fewer than 400" in found.estimate.status
    assert all(not share.ok for share in found.shares)


def test_without_labels_or_production_there_is_no_posterior() -> None:
    nothing = sums_of([0, 0], TWO)
    assert not bayesian([[9, 1], [1, 9]], nothing, rng=rng()).estimate.ok
    some = sums_of([5, 5], TWO)
    assert not bayesian([[0, 0], [0, 0]], some, rng=rng()).estimate.ok
    with pytest.raises(ValueError, match="prior must be in"):
        bayesian([[9, 1], [1, 9]], some, rng=rng(), prior=0)
    with pytest.raises(ValueError, match="table must have shape"):
        bayesian([[9, 1, 0], [1, 9, 0]], some, rng=rng())


def test_a_class_nobody_labelled_is_left_out() -> None:
    found = bayesian([[30, 4, 0], [3, 30, 1], [0, 0, 0]], sums_of([600, 380, 20]), rng=rng())
    assert found.shares[2].status.startswith("not_estimable")
    assert (found.shares[0].value or 0) + (found.shares[1].value or 0) == pytest.approx(1)
    inversion = invert([[30, 4, 0], [3, 30, 1], [0, 0, 0]], sums_of([600, 380, 20]))
    assert not inverted_shares(inversion, found)[2].ok


def test_shares_of_an_inversion_have_the_limits_of_the_posterior() -> None:
    inversion = invert(TABLE, PRODUCTION)
    posterior = bayesian(TABLE, PRODUCTION, rng=rng())
    shares = inverted_shares(inversion, posterior)
    assert [share.value for share in shares] == list(inversion.prevalence)
    assert [share.interval for share in shares] == [s.interval for s in posterior.shares]
    # The judge errs toward the class more often than production has its verdict.
    few = sums_of([1200, 640, 160, 0])
    inversion, posterior = invert(TABLE, few), bayesian(TABLE, few, rng=rng())
    last = inverted_shares(inversion, posterior)[2]
    assert inversion.prevalence[2] < 0
    assert last.interval is not None
    assert (last.value, last.interval[0] > 0) == (posterior.shares[2].value, True)
    alike = invert([[10, 10], [10, 10]], sums_of([60, 40], TWO))
    assert {share.status for share in inverted_shares(alike, posterior)} == {alike.estimate.status}


def test_with_cost_posterior_and_bootstrap_agree_with_the_closed_form() -> None:
    draw = rng(9)
    verdicts = draw.choice(4, 4000, p=[0.5, 0.2, 0.25, 0.05])
    penalties = np.where(verdicts == 2, draw.random(4000), 0.3 * draw.random(4000))
    production = production_sums(verdicts, penalties, credit=CREDIT, n_verdicts=4)
    closed = invert(TABLE * 10, production)
    for found in (
        bayesian(TABLE * 10, production, rng=rng()).estimate,
        bootstrap_inversion(TABLE * 10, production, rng=rng()).estimate,
    ):
        assert found.value == pytest.approx(closed.estimate.value, abs=0.004)
        assert found.se == pytest.approx(closed.estimate.se, rel=0.06)
        assert found.interval == pytest.approx(closed.estimate.interval, abs=0.007)


def test_the_shares_of_production_are_resampled_too() -> None:
    """With fewer verdicts the interval is wider."""
    scores = np.array([1.0] * 90 + [0] * 10 + [1] * 10 + [0.0] * 90)
    strata = Strata(groups=(0, 1), merged=())
    halves = [
        bootstrap_post_stratified(
            scores[:, None], np.repeat([0, 1], 100), counts, strata=strata, rng=rng()
        )[0].half_width
        for counts in ([160, 240], [16_000, 24_000])
    ]
    assert (halves[0] or 0) > 1.2 * (halves[1] or 1)


def test_bootstrap_of_post_stratification_agrees_with_the_closed_form() -> None:
    draw = rng(3)
    verdicts = draw.integers(0, 3, 600)
    scores = np.clip(np.array([0.9, 0.4, 0.1])[verdicts] + draw.normal(0, 0.2, 600), 0, 1)
    counts, weights = [6000, 3000, 1000], draw.choice([1.0, 2.0], 600)
    for settings in ({}, {"weights": weights}, {"clusters": np.arange(600) // 3}):
        closed = stratified(scores, verdicts, counts, **settings)
        (found,) = bootstrap_post_stratified(
            scores[:, None], verdicts, counts, strata=closed.strata, rng=rng(), **settings
        )
        assert found.value == pytest.approx(closed.estimate.value)
        assert found.se == pytest.approx(closed.estimate.se, rel=0.06)


def test_what_no_resample_can_show_has_no_interval() -> None:
    strata = Strata(groups=(0, 1), merged=())
    columns = np.column_stack([np.repeat([1.0, 0.0], 20), np.tile([1.0, 0.0], 20)])
    same, varied = bootstrap_post_stratified(
        columns, np.repeat([0, 1], 20), [100, 100], strata=strata, rng=rng()
    )
    assert same.interval is None
    assert same.status.startswith("no interval: no variation")
    assert varied.interval is not None


def test_error_rates_that_cannot_be_inverted_are_guarded() -> None:
    production = sums_of([60, 40], TWO)
    flat = bootstrap_inversion([[10, 10], [10, 10]], production, rng=rng())
    assert "cannot tell some classes apart" in flat.estimate.status
    tiny = bootstrap_inversion([[2, 1], [1, 2]], production, pseudo_count=0, rng=rng())
    assert tiny.singular > 0.01
    assert "of the resamples cannot be inverted" in tiny.estimate.status
    perfect = bootstrap_inversion([[20, 0], [0, 20]], production, pseudo_count=0, rng=rng())
    assert perfect.estimate.interval is None
