"""Coverage of the estimators beside the defaults, at a few settings each."""

import numpy as np
import pytest

from calibration.judge_calibration.bayesian import bayesian, inverted_shares
from calibration.judge_calibration.calibrate import calibrate, calibrate_tables, transport_gap
from calibration.judge_calibration.confusion_inversion import bootstrap_inversion, invert, lee
from calibration.judge_calibration.post_stratification import bootstrap_post_stratified, promised
from calibration.judge_calibration.prediction_powered import (
    ppi_plus_plus,
    score_proxies,
    score_sums,
)
from calibration.judge_calibration.samples import LabelledSample, production_sums_from_counts
from calibration.judge_calibration.strata import verdict_strata
from tests.simulation.judged import (
    CREDIT,
    PRODUCTION,
    REFERENCE,
    TRUE_SCORE,
    Judge,
    Tally,
    draw_cells,
    give_all,
    lenient_judge,
    named,
    say,
    score,
    sums_of,
    truth_of,
    unfold,
)

pytestmark = pytest.mark.slow
REPETITIONS = 2000

# Where every repetition draws by itself.
FEWER = 1000
N = 10_000
SETTINGS = [(0.70, 200, False), (0.85, 400, False), (0.95, 200, False), (0.70, 400, True)]


@pytest.mark.parametrize(("accuracy", "n", "with_cost"), SETTINGS)
def test_ppi_plus_plus_and_bootstrap_cover(
    judge: Judge, accuracy: float, n: int, with_cost: bool
) -> None:
    seed, rates = 20271, lenient_judge(accuracy)
    rng = np.random.default_rng([seed, n, round(100 * accuracy), with_cost])
    tuned, drawn = (Tally(truth_of(PRODUCTION, with_cost=with_cost)) for _ in range(2))
    for _ in range(REPETITIONS):
        labelled = draw_cells(rng, n, PRODUCTION, rates)
        cells = labelled + draw_cells(rng, N - n, PRODUCTION, rates)
        production = sums_of(cells, with_cost=with_cost)
        human, verdicts, penalties = unfold(labelled)
        scores = score(human, penalties, with_cost=with_cost)
        proxies = score_proxies(verdicts, penalties if with_cost else None, production)
        tuned.add(ppi_plus_plus(scores, proxies, score_sums(production)).estimate)
        strata = verdict_strata(verdicts, production.counts, CREDIT, otherwise=0.0)
        sample = LabelledSample(
            human=np.eye(5)[human], verdicts=verdicts, penalties=penalties if with_cost else None
        )
        residuals, of_production = promised(sample, production, strata=strata, net=with_cost)
        (found,) = bootstrap_post_stratified(
            residuals[:, None], verdicts, production.counts, strata=strata, rng=rng,
            promised=of_production, n_resamples=500,
        )  # fmt: skip
        drawn.add(found)
    setting = named(accuracy, n, N, with_cost=with_cost)
    give_all(
        judge, seed, (tuned, "PPI++ ASR", setting, (0.93, 0.975)),
        # Percentiles of means of few labels are known to be short by a factor sqrt((n - 1) / n).
        (drawn, "bootstrap, post-stratified", setting, (0.92, 0.975)),
    )  # fmt: skip


@pytest.mark.parametrize("sampling", ["unequal", "tasks"])
def test_ppi_plus_plus_covers_with_weights_and_tasks(judge: Judge, sampling: str) -> None:
    """Verdicts other than the first are drawn three times as often, or tasks come in fours."""
    seed, rates, tally = 20272, lenient_judge(0.85), Tally(TRUE_SCORE)
    rng = np.random.default_rng([seed, len(sampling)])
    tasks = 100
    for _ in range(REPETITIONS):
        if sampling == "unequal":
            human, verdicts, _ = unfold(draw_cells(rng, N, PRODUCTION, rates))
            counts = np.bincount(verdicts, minlength=5)
            chance = np.where(verdicts == 0, 1.0, 3.0)
            chance *= 400 / chance.sum()
            drawn = rng.random(N) < chance
            human, verdicts = human[drawn], verdicts[drawn]
            weights, clusters = 1 / chance[drawn], None
        else:
            own = np.repeat(rng.choice(5, tasks, p=PRODUCTION), 4)
            fresh = rng.choice(5, 4 * tasks, p=PRODUCTION)
            human = np.where(rng.random(own.size) < np.sqrt(0.33), own, fresh)
            verdicts = say(rng, human, rates)
            rest = draw_cells(rng, N - own.size, PRODUCTION, rates).sum(axis=(0, 2))
            counts = np.bincount(verdicts, minlength=5) + rest
            weights, clusters = None, np.repeat(np.arange(tasks), 4)
        production = production_sums_from_counts(counts, credit=CREDIT)
        proxies, sums = score_proxies(verdicts, None, production), score_sums(production)
        found = ppi_plus_plus(CREDIT[human], proxies, sums, weights=weights, clusters=clusters)
        tally.add(found.estimate)
    setting = {
        "unequal": "judge 0.85, about 400 labels drawn with unequal chances",
        "tasks": "judge 0.85, 100 tasks x 4, correlation .33",
    }
    tally.give(judge, "PPI++ ASR", setting[sampling], seed=seed)


@pytest.mark.parametrize(
    ("accuracy", "n", "with_cost"), [*SETTINGS, (0.70, 400, False), (0.85, 400, True)]
)
def test_posterior_and_bootstrap_from_a_reference_set_cover(
    judge: Judge, accuracy: float, n: int, with_cost: bool
) -> None:
    seed, rates = 20273, lenient_judge(accuracy)
    rng = np.random.default_rng([seed, n, round(100 * accuracy), with_cost])
    posterior, drawn = (Tally(truth_of(PRODUCTION, with_cost=with_cost)) for _ in range(2))
    shares = [Tally(float(share)) for share in PRODUCTION]
    for _ in range(FEWER):
        table = draw_cells(rng, n, REFERENCE, rates).sum(axis=2)
        production = sums_of(draw_cells(rng, N, PRODUCTION, rates), with_cost=with_cost)
        found = bayesian(table, production, rng=rng, effective_size=1000)
        posterior.add(found.estimate)
        for tally, share in zip(shares, found.shares, strict=True):
            tally.add(share)
        drawn.add(bootstrap_inversion(table, production, rng=rng, n_resamples=500).estimate)
    setting, wide = named(accuracy, n, N, with_cost=with_cost), (0.92, 0.975)
    worst = min(shares, key=lambda tally: tally.covered)
    give_all(
        judge, seed, (posterior, "posterior ASR", setting, wide),
        (drawn, "bootstrap, inverted", setting, wide),
        (worst, "posterior class share, worst of five", setting, (0.90, 0.98)),
    )  # fmt: skip


@pytest.mark.parametrize("n", [100, 200, 400])
@pytest.mark.parametrize("of_production", [False, True])
def test_shares_of_an_inversion_cover(judge: Judge, n: int, of_production: bool) -> None:
    """Shares of .5 to .03; a share without any label of its class is refused."""
    seed, rates, size = 20274, lenient_judge(0.85), 2_000
    mix = np.array([0.5, 0.25, 0.14, 0.08, 0.03])
    rng = np.random.default_rng([seed, n, of_production])
    shares = [Tally(float(share)) for share in mix]
    for _ in range(REPETITIONS):
        table = draw_cells(rng, n, mix if of_production else REFERENCE, rates).sum(axis=2)
        rest = draw_cells(rng, size - n if of_production else size, mix, rates).sum(axis=(0, 2))
        counts = rest + table.sum(axis=0) if of_production else rest
        production = production_sums_from_counts(counts, credit=CREDIT)
        posterior = bayesian(table, production, rng=rng, effective_size=1000)
        found = inverted_shares(invert(table, production), posterior)
        for tally, share in zip(shares, found, strict=True):
            if share.interval is not None:
                tally.add(share)
    source = "labels of production" if of_production else "reference labels"
    setting = f"judge 0.85, {n} {source}, 2,000 verdicts"
    band = (0.936, 1.0)
    assert min(tally.repetitions for tally in shares) >= 0.95 * REPETITIONS
    give_all(
        judge, seed,
        *((tally, f"inverted share of {tally.truth:.2f}",
           f"{setting}, {REPETITIONS - tally.repetitions} refused", band) for tally in shares),
    )  # fmt: skip


@pytest.mark.parametrize("recall", [0.70, 0.85, 0.95])
@pytest.mark.parametrize("rate", [0.10, 0.60])
def test_the_interval_of_lee_covers(judge: Judge, recall: float, rate: float) -> None:
    seed, tally = 20274, Tally(rate)
    rng = np.random.default_rng([seed, round(100 * recall), round(100 * rate)])
    for _ in range(REPETITIONS):
        good, bad = rng.binomial(100, recall), rng.binomial(100, 0.9)
        passed = rng.binomial(1000, rate * recall + (1 - rate) * 0.1)
        production = production_sums_from_counts([passed, 1000 - passed], credit=[1.0, 0.0])
        tally.add(lee([[good, 100 - good], [100 - bad, bad]], production))
    setting = f"recall {recall:.2f}, specificity 0.90, 200 labels, rate {rate:.2f}"
    tally.give(judge, "Lee et al., two classes", setting, seed=seed, band=(0.935, 0.995))


@pytest.mark.parametrize(("accuracy", "with_cost"), [(0.85, False), (0.85, True)])
def test_the_transport_gap_covers_zero_when_nothing_drifts(
    judge: Judge, accuracy: float, with_cost: bool
) -> None:
    seed, rates, tally = 20275, lenient_judge(accuracy), Tally(0.0)
    rng = np.random.default_rng([seed, with_cost])
    for _ in range(500):
        cells = draw_cells(rng, 200, REFERENCE, rates)
        labelled = draw_cells(rng, 200, PRODUCTION, rates)
        human, verdicts, penalties = unfold(labelled)
        rest = unfold(draw_cells(rng, 2_000, PRODUCTION, rates))
        every = np.concatenate([verdicts, rest[1]])
        costs = np.concatenate([penalties, rest[2]]) if with_cost else None
        own, said, _ = unfold(cells)
        by_reference = calibrate(
            LabelledSample(human=np.eye(5)[own], verdicts=said), production_verdicts=every,
            production_penalties=costs, credit=CREDIT, design="reference", estimators=["inversion"],
        )  # fmt: skip
        sample = LabelledSample(
            human=np.eye(5)[human], verdicts=verdicts, penalties=penalties if with_cost else None
        )
        by_production = calibrate(
            sample, production_verdicts=every, production_penalties=costs, credit=CREDIT,
            design="production", estimators=["post_stratified"],
        )  # fmt: skip
        tally.add(transport_gap(by_reference, by_production).gap.net)
    setting = f"judge {accuracy:.2f}, 200 and 200 labels" + (", with cost" if with_cost else "")
    tally.give(judge, "transport gap", setting, seed=seed)


def test_further_verdicts_do_not_hurt(judge: Judge) -> None:
    """`no_verdict` and `split` on top, oftener the worse the run."""
    seed, n = 20276, 400
    rng = np.random.default_rng(seed)
    further = np.array([[0.02, 0.03], [0.03, 0.05], [0.05, 0.05], [0.08, 0.04], [0.15, 0.05]])
    rates = np.hstack([lenient_judge(0.85) * (1 - further.sum(axis=1))[:, None], further])
    by_design = {
        "reference": ["inversion", "bootstrap", "bayesian"],
        "production": ["post_stratified", "ppi_plus_plus"],
    }
    tallies = {name: Tally(TRUE_SCORE) for names in by_design.values() for name in names}
    for _ in range(500):
        for design, names in by_design.items():
            mix = REFERENCE if design == "reference" else PRODUCTION
            table = rng.multinomial(n, (mix[:, None] * rates).ravel()).reshape(rates.shape)
            counts = rng.multinomial(N - n, PRODUCTION @ rates)
            if design == "production":
                counts = counts + table.sum(axis=0)
            result = calibrate_tables(
                table, counts, credit=CREDIT, estimators=names, force=True,
                design="reference" if design == "reference" else "production",
                seed=int(rng.integers(1 << 30)),
            )  # fmt: skip
            refused = {notice.estimator for notice in result.refusals}
            for name in names:
                tallies[name].add(result.estimates[name].net, refused=name in refused)
    setting = "judge 0.85, 400 labels, no_verdict and split depend on the class"
    rows = ((tally, f"{name} ASR", setting, (0.92, 0.98)) for name, tally in tallies.items())
    give_all(judge, seed, *rows)
