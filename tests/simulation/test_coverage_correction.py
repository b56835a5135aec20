"""Coverage of the corrected ASR, and of a control that ignores the calibration sample."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.correction.class_shares import post_stratified_shares
from calibration.correction.inversion import invert
from calibration.correction.post_stratified import post_stratified
from calibration.correction.production import (
    ProductionSums,
    production_sums,
    production_sums_from_counts,
)

pytestmark = pytest.mark.slow

CREDIT = np.array([1.0, 0.7, 0.3, 0.0, 0.0])
PRODUCTION = np.array([0.55, 0.18, 0.09, 0.12, 0.06])
REFERENCE = np.array([0.25, 0.20, 0.20, 0.20, 0.15])
N = 10_000
# Penalty distribution by class: abandoned and hallucinated runs are long and dear.
PENALTIES = np.array([0.0, 0.2, 0.5, 1.0])
PENALTY_GIVEN_CLASS = np.array(
    [
        [0.85, 0.08, 0.05, 0.02],
        [0.65, 0.20, 0.10, 0.05],
        [0.50, 0.20, 0.20, 0.10],
        [0.40, 0.20, 0.25, 0.15],
        [0.10, 0.20, 0.30, 0.40],
    ]
)
TRUE_SCORE = float(PRODUCTION @ CREDIT)
TRUE_NET = float(
    (
        PRODUCTION[:, None]
        * PENALTY_GIVEN_CLASS
        * np.maximum(0, CREDIT[:, None] - PENALTIES[None, :])
    ).sum()
)
Array = NDArray[np.int64]


def lenient_judge(accuracy: float) -> NDArray[np.float64]:
    """Return P(verdict | class): half of the errors go to the best class."""
    rates = np.full((5, 5), (1 - accuracy) / 8)
    rates[:, 0] += (1 - accuracy) / 2
    rates[0] = (1 - accuracy) / 4
    np.fill_diagonal(rates, 0)
    rates[np.arange(5), np.arange(5)] = 1 - rates.sum(axis=1)
    return rates


def draw_cells(
    rng: np.random.Generator, n: int, mix: NDArray[np.float64], rates: NDArray[np.float64]
) -> Array:
    """Draw a table of classes x verdicts x penalties for n traces."""
    cells = (mix[:, None] * rates)[:, :, None] * PENALTY_GIVEN_CLASS[:, None, :]
    return rng.multinomial(n, cells.ravel()).reshape(cells.shape).astype(np.int64)


def unfold(cells: Array) -> tuple[Array, Array, NDArray[np.float64]]:
    """Return class, verdict and penalty of each trace of a table."""
    index = np.repeat(np.arange(cells.size), cells.ravel())
    human, verdicts, step = np.unravel_index(index, cells.shape)
    return human, verdicts, PENALTIES[step]


def sums_of(cells: Array, *, with_cost: bool) -> ProductionSums:
    if not with_cost:
        return production_sums_from_counts(cells.sum(axis=(0, 2)), credit=CREDIT)
    _, verdicts, penalties = unfold(cells)
    return production_sums(verdicts, penalties, credit=CREDIT, n_verdicts=5)


@pytest.mark.parametrize(
    ("accuracy", "n", "with_cost"),
    [
        (0.70, 100, False),
        (0.70, 200, False),
        (0.85, 400, False),
        (0.95, 200, False),
        (0.70, 200, True),
        (0.95, 200, True),
    ],
)
def test_post_stratified_covers(
    judge: Callable[..., None], accuracy: float, n: int, with_cost: bool
) -> None:
    seed, repetitions = 20262, 2000
    rng = np.random.default_rng([seed, n, round(100 * accuracy), with_cost])
    rates, truth = lenient_judge(accuracy), TRUE_NET if with_cost else TRUE_SCORE
    covered, half_widths = 0, 0.0
    shares, share_widths = np.zeros(5), 0.0
    for _ in range(repetitions):
        labelled = draw_cells(rng, n, PRODUCTION, rates)
        counts = (labelled + draw_cells(rng, N - n, PRODUCTION, rates)).sum(axis=(0, 2))
        human, verdicts, penalties = unfold(labelled)
        scores = np.maximum(0.0, CREDIT[human] - penalties) if with_cost else CREDIT[human]
        result = post_stratified(scores, verdicts, counts, verdict_values=CREDIT)
        assert result.estimate.interval is not None
        covered += result.estimate.interval[0] <= truth <= result.estimate.interval[1]
        half_widths += result.estimate.half_width or 0
        if not with_cost:
            estimates = post_stratified_shares(
                np.eye(5)[human], verdicts, counts, strata=result.strata, minimum_labels=0
            )
            for k, share in enumerate(estimates):
                assert share.interval is not None
                shares[k] += share.interval[0] <= PRODUCTION[k] <= share.interval[1]
                share_widths += (share.half_width or 0) / 5
    cost = ", cost depends on outcome" if with_cost else ""
    setting = f"judge {accuracy:.2f}, {n} labels of {N:,}{cost}"
    judge(
        "post-stratified ASR",
        setting,
        covered=covered,
        repetitions=repetitions,
        seed=seed,
        half_width=half_widths / repetitions,
    )
    if not with_cost:
        judge(
            "post-stratified class share, worst of five",
            setting,
            covered=int(shares.min()),
            repetitions=repetitions,
            seed=seed,
            half_width=share_widths / repetitions,
            band=(0.92, 0.98),
        )


@pytest.mark.parametrize(("tasks", "trials"), [(100, 4), (40, 10)])
def test_post_stratified_covers_when_tasks_repeat(
    judge: Callable[..., None], tasks: int, trials: int
) -> None:
    """Two runs of a task both have the task's own class with probability .33."""
    seed, repetitions, rates = 20263, 2000, lenient_judge(0.85)
    rng = np.random.default_rng([seed, tasks])
    covered, half_widths, n = 0, 0.0, tasks * trials
    clusters = np.repeat(np.arange(tasks), trials)
    cumulative = rates.cumsum(axis=1)
    for _ in range(repetitions):
        own = np.repeat(rng.choice(5, tasks, p=PRODUCTION), trials)
        fresh = rng.choice(5, n, p=PRODUCTION)
        human = np.where(rng.random(n) < np.sqrt(0.33), own, fresh)
        verdicts = (rng.random(n)[:, None] > cumulative[human]).sum(axis=1).clip(0, 4)
        counts = np.bincount(verdicts, minlength=5) + draw_cells(rng, N - n, PRODUCTION, rates).sum(
            axis=(0, 2)
        )
        estimate = post_stratified(
            CREDIT[human], verdicts, counts, verdict_values=CREDIT, clusters=clusters
        ).estimate
        assert estimate.interval is not None
        covered += estimate.interval[0] <= TRUE_SCORE <= estimate.interval[1]
        half_widths += estimate.half_width or 0
    judge(
        "post-stratified ASR, tasks repeat",
        f"judge 0.85, {tasks} tasks x {trials}, correlation .33",
        covered=covered,
        repetitions=repetitions,
        seed=seed,
        half_width=half_widths / repetitions,
    )


@pytest.mark.parametrize(
    ("accuracy", "n", "with_cost"),
    [
        (0.70, 400, False),
        (0.85, 200, False),
        (0.95, 400, False),
        (0.70, 400, True),
        (0.85, 200, True),
    ],
)
def test_inversion_covers_when_only_the_class_mix_differs(
    judge: Callable[..., None], accuracy: float, n: int, with_cost: bool
) -> None:
    seed, repetitions = 20264, 2000
    rng = np.random.default_rng([seed, n, round(100 * accuracy), with_cost])
    rates, truth = lenient_judge(accuracy), TRUE_NET if with_cost else TRUE_SCORE
    covered, half_widths = 0, 0.0
    for _ in range(repetitions):
        table = draw_cells(rng, n, REFERENCE, rates).sum(axis=2)
        production = sums_of(draw_cells(rng, N, PRODUCTION, rates), with_cost=with_cost)
        estimate = invert(table, production).estimate
        assert estimate.interval is not None
        covered += estimate.interval[0] <= truth <= estimate.interval[1]
        half_widths += estimate.half_width or 0
    cost = ", cost depends on outcome" if with_cost else ""
    judge(
        "inverted ASR",
        f"judge {accuracy:.2f}, {n} reference labels, other class mix{cost}",
        covered=covered,
        repetitions=repetitions,
        seed=seed,
        half_width=half_widths / repetitions,
    )


def test_ignoring_the_calibration_sample_does_not_cover(judge: Callable[..., None]) -> None:
    """The control: the same estimate with the variance of production alone must fail."""
    seed, repetitions, rates = 20265, 1000, lenient_judge(0.85)
    rng = np.random.default_rng(seed)
    covered, half_widths = 0, 0.0
    for _ in range(repetitions):
        table = draw_cells(rng, 400, REFERENCE, rates).sum(axis=2)
        production = sums_of(draw_cells(rng, N, PRODUCTION, rates), with_cost=False)
        result = invert(table, production)
        assert result.unclipped is not None
        reach = 1.959964 * np.sqrt(result.variance_production)
        covered += abs(result.unclipped - TRUE_SCORE) <= reach
        half_widths += reach
    assert covered / repetitions < 0.7
    judge(
        "control: calibration uncertainty ignored",
        "judge 0.85, 400 reference labels; must stay below .7",
        covered=covered,
        repetitions=repetitions,
        seed=seed,
        half_width=half_widths / repetitions,
        band=(0.0, 0.7),
    )
