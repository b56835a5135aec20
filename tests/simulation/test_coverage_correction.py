"""Coverage of the two defaults over the whole grid, and of what must not cover.

Each interval counts also where the product refuses to show it: to leave those repetitions out
would choose the lucky ones. The share refused is in the table.
"""

from itertools import product

import numpy as np
import pytest

from calibration.judge_calibration.confusion_inversion import Inversion, inversion_refusals, invert
from calibration.judge_calibration.post_stratification import (
    post_stratified,
    post_stratified_shares,
)
from calibration.judge_calibration.samples import ProductionSums
from tests.simulation.judged import (
    CREDIT,
    NAMES,
    PRODUCTION,
    REFERENCE,
    TRUE_NET,
    TRUE_SCORE,
    Array,
    Judge,
    Tally,
    draw_cells,
    lenient_judge,
    score,
    sums_of,
    unfold,
)

pytestmark = pytest.mark.slow


REPETITIONS = 2000

GRID = list(product((0.70, 0.85, 0.95), (200, 400, 600), (10_000, 100_000)))

WEAK = [(accuracy, 400, 10_000) for accuracy in (0.50, 0.60)]

WITH_COST = [(accuracy, n, 20_000) for accuracy in (0.70, 0.85, 0.95) for n in (200, 400)]

BELOW = 0.7


def named(accuracy: float, n: int, n_production: int, *, with_cost: bool = False) -> str:
    cost = ", cost depends on outcome" if with_cost else ""
    return f"judge {accuracy:.2f}, {n} labels, {n_production:,} verdicts{cost}"


def refuses(table: Array, inverted: Inversion, production: ProductionSums) -> bool:
    shares = production.counts / production.n
    return bool(
        inversion_refusals(
            table.astype(np.float64), inverted, credit=CREDIT, verdict_shares=shares, names=NAMES
        )
    )


@pytest.mark.parametrize("with_cost", [False, True])
def test_post_stratified_covers(judge: Judge, with_cost: bool) -> None:
    """Labels are a random sample of production; with fewer than 30 it would be refused."""
    seed, failed = 20262, []
    for accuracy, n, n_production in WITH_COST if with_cost else GRID + WEAK:
        rng = np.random.default_rng([seed, n, round(100 * accuracy), n_production, with_cost])
        rates, tally = lenient_judge(accuracy), Tally(TRUE_NET if with_cost else TRUE_SCORE)
        for _ in range(REPETITIONS):
            labelled = draw_cells(rng, n, PRODUCTION, rates)
            rest = draw_cells(rng, n_production - n, PRODUCTION, rates)
            human, verdicts, penalties = unfold(labelled)
            found = post_stratified(
                score(human, penalties, with_cost=with_cost),
                verdicts,
                (labelled + rest).sum(axis=(0, 2)),
                verdict_values=CREDIT,
            )
            tally.add(found.estimate)
        setting = named(accuracy, n, n_production, with_cost=with_cost)
        failed.append(tally.give(judge, "post-stratified ASR", setting, seed=seed))
    assert not any(failed), "\n".join(filter(None, failed))


@pytest.mark.parametrize(("accuracy", "n"), [(0.70, 100), (0.70, 200), (0.85, 400), (0.95, 200)])
def test_post_stratified_shares_cover(judge: Judge, accuracy: float, n: int) -> None:
    seed, rates = 20261, lenient_judge(accuracy)
    rng = np.random.default_rng([seed, n, round(100 * accuracy)])
    tallies = [Tally(float(share)) for share in PRODUCTION]
    for _ in range(REPETITIONS):
        labelled = draw_cells(rng, n, PRODUCTION, rates)
        counts = (labelled + draw_cells(rng, 10_000 - n, PRODUCTION, rates)).sum(axis=(0, 2))
        human, verdicts, _ = unfold(labelled)
        strata = post_stratified(CREDIT[human], verdicts, counts, verdict_values=CREDIT).strata
        shares = post_stratified_shares(
            np.eye(5)[human], verdicts, counts, strata=strata, minimum_labels=0
        )
        for tally, share in zip(tallies, shares, strict=True):
            tally.add(share)
    worst = min(tallies, key=lambda tally: tally.covered)
    name = "post-stratified class share, worst of five"
    failed = worst.give(judge, name, named(accuracy, n, 10_000), seed=seed, band=(0.92, 0.98))
    assert not failed, failed


@pytest.mark.parametrize(("tasks", "trials"), [(100, 4), (40, 10)])
def test_post_stratified_covers_when_tasks_repeat(judge: Judge, tasks: int, trials: int) -> None:
    """Two runs of a task both have the task's own class with probability .33."""
    seed, rates, tally = 20263, lenient_judge(0.85), Tally(TRUE_SCORE)
    rng = np.random.default_rng([seed, tasks])
    n, clusters = tasks * trials, np.repeat(np.arange(tasks), trials)
    cumulative = rates.cumsum(axis=1)
    for _ in range(REPETITIONS):
        own = np.repeat(rng.choice(5, tasks, p=PRODUCTION), trials)
        human = np.where(rng.random(n) < np.sqrt(0.33), own, rng.choice(5, n, p=PRODUCTION))
        verdicts = (rng.random(n)[:, None] > cumulative[human]).sum(axis=1).clip(0, 4)
        rest = draw_cells(rng, 10_000 - n, PRODUCTION, rates).sum(axis=(0, 2))
        found = post_stratified(
            CREDIT[human],
            verdicts,
            np.bincount(verdicts, minlength=5) + rest,
            verdict_values=CREDIT,
            clusters=clusters,
        )
        tally.add(found.estimate)
    setting = f"judge 0.85, {tasks} tasks x {trials}, correlation .33"
    failed = tally.give(judge, "post-stratified ASR, tasks repeat", setting, seed=seed)
    assert not failed, failed


def test_inversion_covers_and_ignoring_the_reference_sample_does_not(judge: Judge) -> None:
    """Only the class mix differs; the control takes the variance of production alone."""
    seed, failed, controls = 20264, [], []
    for accuracy, n, n_production in GRID + WEAK:
        rng = np.random.default_rng([seed, n, round(100 * accuracy), n_production])
        rates, tally, control = lenient_judge(accuracy), Tally(TRUE_SCORE), Tally(TRUE_SCORE)
        for _ in range(REPETITIONS):
            table = draw_cells(rng, n, REFERENCE, rates).sum(axis=2)
            production = sums_of(draw_cells(rng, n_production, PRODUCTION, rates), with_cost=False)
            found = invert(table, production)
            tally.add(found.estimate, refused=refuses(table, found, production))
            reach = 1.959964 * np.sqrt(found.variance_production)
            control.add_limits(-1.0 if found.unclipped is None else found.unclipped, reach)
        setting = named(accuracy, n, n_production)
        failed.append(tally.give(judge, "inverted ASR", setting, seed=seed))
        if (accuracy, n, n_production) in GRID:
            controls.append(control)
            limit = BELOW if n_production >= 50_000 else 1.0
            name = "control: calibration uncertainty ignored"
            failed.append(control.give(judge, name, setting, seed=seed, band=(0.0, limit)))
            if control.covered >= limit * REPETITIONS:
                failed.append(f"{name}, {setting}: {control.covered} of {REPETITIONS}")
    covered = sum(control.covered for control in controls)
    assert covered < BELOW * REPETITIONS * len(GRID)
    assert not any(failed), "\n".join(filter(None, failed))


def test_inversion_covers_when_cost_depends_on_the_outcome(judge: Judge) -> None:
    seed, failed = 20265, []
    for accuracy, n, n_production in WITH_COST:
        rng = np.random.default_rng([seed, n, round(100 * accuracy)])
        rates, tally = lenient_judge(accuracy), Tally(TRUE_NET)
        for _ in range(REPETITIONS):
            table = draw_cells(rng, n, REFERENCE, rates).sum(axis=2)
            production = sums_of(draw_cells(rng, n_production, PRODUCTION, rates), with_cost=True)
            found = invert(table, production)
            tally.add(found.estimate, refused=refuses(table, found, production))
        setting = named(accuracy, n, n_production, with_cost=True)
        failed.append(tally.give(judge, "inverted ASR", setting, seed=seed))
    assert not any(failed), "\n".join(filter(None, failed))


@pytest.mark.parametrize("accuracy", [0.70, 0.85])
def test_the_plug_in_is_off_when_cost_depends_on_the_outcome(judge: Judge, accuracy: float) -> None:
    """Sum of P(class | verdict) max(0, credit - penalty): cost tells of the class, and is ignored.

    It is given the half-width of the post-stratified estimate on the same labels.
    """
    seed, n, n_production, rates = 20268, 400, 20_000, lenient_judge(accuracy)
    rng = np.random.default_rng([seed, round(100 * accuracy)])
    values, tally = [], Tally(TRUE_NET)
    for _ in range(REPETITIONS):
        labelled = draw_cells(rng, n, PRODUCTION, rates)
        cells = labelled + draw_cells(rng, n_production - n, PRODUCTION, rates)
        production = sums_of(cells, with_cost=True)
        table = labelled.sum(axis=2)
        given = table / np.maximum(1, table.sum(axis=0))
        by_level = (CREDIT == production.levels[:, None]) @ given
        values.append(float((by_level * production.sums).sum()) / n_production)
        human, verdicts, penalties = unfold(labelled)
        scores = score(human, penalties, with_cost=True)
        direct = post_stratified(
            scores, verdicts, production.counts, verdict_values=CREDIT
        ).estimate
        tally.add_limits(values[-1], direct.half_width or 0.0)
    bias, error = np.mean(values) - TRUE_NET, np.std(values) / np.sqrt(REPETITIONS)
    assert abs(bias) > 10 * error, f"bias {bias:.4f}, standard error {error:.4f}"
    setting = named(accuracy, n, n_production, with_cost=True) + f", bias {bias:+.3f}"
    name = "control: plug-in of P(class given verdict)"
    failed = tally.give(judge, name, setting, seed=seed, band=(0.0, 0.935))
    assert not failed, failed
