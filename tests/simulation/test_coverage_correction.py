"""Coverage of the two defaults over the whole grid, and of what must not cover.

Each interval counts also where the product refuses to show it: to leave those repetitions out
would choose the lucky ones. The share refused is in the table.
"""

from itertools import product

import numpy as np
import pytest

from calibration.judge_calibration.confusion_inversion import Inversion, inversion_refusals, invert
from calibration.judge_calibration.post_stratification import class_shares, post_stratified
from calibration.judge_calibration.samples import ProductionSums
from tests.simulation.judged import (
    CREDIT,
    NAMES,
    PRODUCTION,
    REFERENCE,
    TRUE_NET,
    TRUE_SCORE,
    Array,
    Band,
    Judge,
    Tally,
    draw_cells,
    give_all,
    labels_of,
    lenient_judge,
    named,
    sums_of,
)

pytestmark = pytest.mark.slow
REPETITIONS = 2000
GRID = list(product((0.70, 0.85, 0.95), (200, 400, 600), (10_000, 100_000)))
WEAK = [(accuracy, 400, 10_000) for accuracy in (0.50, 0.60)]
WITH_COST = [(accuracy, n, 20_000) for accuracy in (0.70, 0.85, 0.95) for n in (200, 400)]
BAND, BELOW = (0.935, 0.975), 0.7


def refuses(table: Array, inverted: Inversion, production: ProductionSums) -> bool:
    shares = production.counts / production.n
    return bool(
        inversion_refusals(
            table.astype(np.float64), inverted, credit=CREDIT, verdict_shares=shares, names=NAMES
        )
    )


@pytest.mark.parametrize(
    ("accuracy", "n", "n_production", "with_cost"),
    [*((*of, False) for of in GRID + WEAK), *((*of, True) for of in WITH_COST)],
)
def test_post_stratified_covers(
    judge: Judge, accuracy: float, n: int, n_production: int, with_cost: bool
) -> None:
    """Labels are a random sample of production; with fewer than 30 it would be refused."""
    seed, rates = 20262, lenient_judge(accuracy)
    tally = Tally(TRUE_NET if with_cost else TRUE_SCORE)
    rng = np.random.default_rng([seed, n, round(100 * accuracy), n_production, with_cost])
    for _ in range(REPETITIONS):
        labelled = draw_cells(rng, n, PRODUCTION, rates)
        rest = draw_cells(rng, n_production - n, PRODUCTION, rates)
        production = sums_of(labelled + rest, with_cost=with_cost)
        tally.add(post_stratified(labels_of(labelled, with_cost=with_cost), production).estimate)
    setting = named(accuracy, n, n_production, with_cost=with_cost)
    tally.give(judge, "post-stratified ASR", setting, seed=seed)


@pytest.mark.parametrize(("accuracy", "n"), [(0.70, 100), (0.70, 200), (0.85, 400), (0.95, 200)])
def test_post_stratified_shares_cover(judge: Judge, accuracy: float, n: int) -> None:
    seed, rates = 20261, lenient_judge(accuracy)
    rng = np.random.default_rng([seed, n, round(100 * accuracy)])
    tallies = [Tally(float(share)) for share in PRODUCTION]
    for _ in range(REPETITIONS):
        labelled = draw_cells(rng, n, PRODUCTION, rates)
        cells = labelled + draw_cells(rng, 10_000 - n, PRODUCTION, rates)
        shares = class_shares(labels_of(labelled), sums_of(cells, with_cost=False))
        for tally, share in zip(tallies, shares, strict=True):
            tally.add(share)
    worst = min(tallies, key=lambda tally: tally.covered)
    name = "post-stratified class share, worst of five"
    worst.give(judge, name, named(accuracy, n, 10_000), seed=seed, band=(0.92, 0.98))


def test_inversion_covers_and_ignoring_the_reference_sample_does_not(judge: Judge) -> None:
    """Only the class mix differs; the control takes the variance of production alone."""
    seed, controls = 20264, 0
    rows: list[tuple[Tally, str, str, Band]] = []
    for accuracy, n, n_production in GRID + WEAK:
        rng = np.random.default_rng([seed, n, round(100 * accuracy), n_production])
        rates, tally, control = lenient_judge(accuracy), Tally(TRUE_SCORE), Tally(TRUE_SCORE)
        for _ in range(REPETITIONS):
            table = draw_cells(rng, n, REFERENCE, rates).sum(axis=2)
            production = sums_of(draw_cells(rng, n_production, PRODUCTION, rates), with_cost=False)
            found = invert(table, production)
            tally.add(found.estimate, refused=refuses(table, found, production))
            reach = 1.959964 * np.sqrt(found.variance_production)
            value = -1.0 if found.unclipped is None else found.unclipped
            control.count(abs(value - TRUE_SCORE) <= reach, reach)
        setting = named(accuracy, n, n_production)
        rows.append((tally, "inverted ASR", setting, BAND))
        if (accuracy, n, n_production) in GRID:
            controls += control.covered
            limit = BELOW if n_production >= 50_000 else 1.0
            name = "control: calibration uncertainty ignored"
            rows.append((control, name, setting, (0.0, limit)))
    give_all(judge, seed, *rows)
    for control, name, setting, (low, limit) in rows:
        if low == 0.0:
            assert control.covered < limit * REPETITIONS, f"{name}, {setting}"
    assert controls < BELOW * REPETITIONS * len(GRID)


@pytest.mark.parametrize(("accuracy", "n", "n_production"), WITH_COST)
def test_inversion_covers_when_cost_depends_on_the_outcome(
    judge: Judge, accuracy: float, n: int, n_production: int
) -> None:
    seed, rates, tally = 20265, lenient_judge(accuracy), Tally(TRUE_NET)
    rng = np.random.default_rng([seed, n, round(100 * accuracy)])
    for _ in range(REPETITIONS):
        table = draw_cells(rng, n, REFERENCE, rates).sum(axis=2)
        production = sums_of(draw_cells(rng, n_production, PRODUCTION, rates), with_cost=True)
        found = invert(table, production)
        tally.add(found.estimate, refused=refuses(table, found, production))
    tally.give(judge, "inverted ASR", named(accuracy, n, n_production, with_cost=True), seed=seed)


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
        direct = post_stratified(labels_of(labelled, with_cost=True), production)
        reach = direct.estimate.half_width or 0.0
        tally.count(abs(values[-1] - TRUE_NET) <= reach, reach)
    bias, error = np.mean(values) - TRUE_NET, np.std(values) / np.sqrt(REPETITIONS)
    assert abs(bias) > 10 * error, f"bias {bias:.4f}, standard error {error:.4f}"
    setting = named(accuracy, n, n_production, with_cost=True) + f", bias {bias:+.3f}"
    name = "control: plug-in of P(class given verdict)"
    tally.give(judge, name, setting, seed=seed, band=(0.0, 0.935))
