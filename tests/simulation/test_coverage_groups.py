"""Coverage of differences between groups, direct and synthetic, and of the judge's slopes."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.judge_calibration.bias import slope_within_class
from calibration.judge_calibration.confusion_inversion import invert
from calibration.judge_calibration.groups import (
    LabelledGroup,
    SharedCalibration,
    compare_groups,
    estimate_group,
)
from calibration.judge_calibration.samples import (
    LabelledSample,
)
from tests.simulation.judged import (
    CREDIT,
    PENALTIES,
    PENALTY_GIVEN_CLASS,
    REFERENCE,
    draw_cells,
    lenient_judge,
    sums_of,
    unfold,
)

pytestmark = pytest.mark.slow


NAMES = ("a", "b", "c", "d", "e")

FIRST = np.array([0.55, 0.18, 0.09, 0.12, 0.06])

SECOND = np.array([0.45, 0.20, 0.13, 0.14, 0.08])

OTHERS = np.array([0.35, 0.20, 0.20, 0.15, 0.10])

Mix = NDArray[np.float64]

Cells = NDArray[np.int64]


def truth(mix: Mix, *, with_cost: bool) -> float:
    if not with_cost:
        return float(mix @ CREDIT)
    kept = np.maximum(0, CREDIT[:, None] - PENALTIES[None, :])
    return float((mix[:, None] * PENALTY_GIVEN_CLASS * kept).sum())


def group(name: str, labelled: Cells, production: Cells, *, with_cost: bool) -> LabelledGroup:
    human, verdicts, penalties = unfold(labelled)
    return LabelledGroup(
        name=name,
        labelled=LabelledSample(
            human=np.eye(5)[human], verdicts=verdicts, penalties=penalties if with_cost else None
        ),
        production=sums_of(production, with_cost=with_cost),
    )


@pytest.mark.parametrize(
    ("accuracy", "labels", "with_cost"),
    [(0.70, (60, 60), False), (0.85, (60, 200), False), (0.85, (100, 60), True)],
)
def test_direct_differences_cover(
    judge: Callable[..., None], accuracy: float, labels: tuple[int, int], with_cost: bool
) -> None:
    """The judge errs differently in the two groups: nothing is assumed of it."""
    seed, repetitions, n = 20271, 2000, 3000
    rng = np.random.default_rng([seed, *labels, round(100 * accuracy), with_cost])
    rates = (lenient_judge(accuracy), lenient_judge(accuracy - 0.15))
    true = truth(FIRST, with_cost=with_cost) - truth(SECOND, with_cost=with_cost)
    covered, half_widths = 0, 0.0
    for _ in range(repetitions):
        groups = []
        for mix, of, own in zip((FIRST, SECOND), rates, labels, strict=True):
            labelled = draw_cells(rng, own, mix, of)
            rest = draw_cells(rng, n - own, mix, of)
            groups.append(group("g", labelled, labelled + rest, with_cost=with_cost))
        found = compare_groups(
            groups[0], groups[1], SharedCalibration(table=np.eye(5), names=NAMES)
        )
        assert found.kind == "direct"
        assert found.difference.interval is not None
        covered += found.difference.interval[0] <= true <= found.difference.interval[1]
        half_widths += found.difference.half_width or 0
    cost = ", cost depends on outcome" if with_cost else ""
    judge(
        "difference of groups, direct",
        f"judge {accuracy:.2f} and {accuracy - 0.15:.2f}, {labels[0]} and {labels[1]} labels{cost}",
        covered=covered,
        repetitions=repetitions,
        seed=seed,
        half_width=half_widths / repetitions,
    )


def rate_of_group(
    rng: np.random.Generator, *, own: int, n_labels: int, with_cost: bool, repetitions: int
) -> tuple[dict[str, int], int, float]:
    """Return estimates by kind, covered, and mean half-width of a group in a labelled production.

    `own` labels are drawn from the group of 600 traces, the others from the rest of production.
    """
    true, rates = truth(FIRST, with_cost=with_cost), lenient_judge(0.85)
    kinds, covered, half_widths = {"direct": 0, "synthetic": 0}, 0, 0.0
    for _ in range(repetitions):
        labelled = draw_cells(rng, own, FIRST, rates)
        produced = labelled + draw_cells(rng, 600 - own, FIRST, rates)
        table = labelled + draw_cells(rng, n_labels - own, OTHERS, rates)
        found = estimate_group(
            group("g", labelled, produced, with_cost=with_cost),
            SharedCalibration(table=table.sum(axis=2), names=NAMES),
        )
        if found.estimate.interval is None:
            continue
        low, high = found.estimate.interval
        kinds[found.kind] += 1
        covered += low <= true <= high
        half_widths += (high - low) / 2
    return kinds, covered, half_widths / max(1, sum(kinds.values()))


@pytest.mark.parametrize(
    ("own", "n_labels", "with_cost"),
    [(30, 40, False), (30, 40, True), (40, 50, True), (30, 300, False), (30, 300, True)],
)
def test_the_rate_of_a_group_covers_however_it_was_estimated(
    judge: Callable[..., None], own: int, n_labels: int, with_cost: bool
) -> None:
    """Few labels in all: the error rates are refused and the group is direct; many: synthetic."""
    seed, repetitions = 20275, 2000
    kinds, covered, half_width = rate_of_group(
        np.random.default_rng([seed, own, n_labels, with_cost]),
        own=own, n_labels=n_labels, with_cost=with_cost, repetitions=repetitions,
    )  # fmt: skip
    done = sum(kinds.values())
    assert kinds["direct" if n_labels < 100 else "synthetic"] > 0.8 * repetitions
    cost = ", cost depends on outcome" if with_cost else ""
    judge(
        "rate of a group",
        f"judge 0.85, {own} of {n_labels} labels in the group of 600{cost}; "
        f"{kinds['direct']} direct, {kinds['synthetic']} synthetic, {repetitions - done} refused",
        covered=covered,
        repetitions=done,
        seed=seed,
        half_width=half_width,
    )


def synthetic(
    rng: np.random.Generator,
    rates: tuple[Mix, Mix, Mix],
    *,
    n: int,
    n_labels: int,
    design: str,
    with_cost: bool,
    repetitions: int,
) -> tuple[int, float, float, int]:
    """Return covered, mean half-width, width of independent sides against ours, refused.

    Two groups of n traces and others of 6 n; with design production the labels are a random
    sample of all of them.
    """
    true = truth(FIRST, with_cost=with_cost) - truth(SECOND, with_cost=with_cost)
    covered, half_widths, ratios, refused = 0, 0.0, 0.0, 0
    for _ in range(repetitions):
        produced = [
            draw_cells(rng, size, mix, of)
            for size, mix, of in zip((n, n, 6 * n), (FIRST, SECOND, OTHERS), rates, strict=True)
        ]
        if design == "production":
            flat = np.concatenate([cells.ravel() for cells in produced])
            drawn = rng.multivariate_hypergeometric(flat, n_labels).reshape(3, *produced[0].shape)
            table = drawn.sum(axis=(0, 3))
        else:
            table = draw_cells(rng, n_labels, REFERENCE, rates[2]).sum(axis=2)
        none = np.zeros_like(produced[0])
        first, second = (group("g", none, cells, with_cost=with_cost) for cells in produced[:2])
        found = compare_groups(first, second, SharedCalibration(table=table, names=NAMES))
        if found.difference.interval is None or found.difference.se is None:
            refused += 1
            continue
        covered += found.difference.interval[0] <= true <= found.difference.interval[1]
        half_widths += found.difference.half_width or 0
        sides = [invert(table, side.production) for side in (first, second)]
        alone = sum(side.variance_reference + side.variance_production for side in sides)
        ratios += float(np.sqrt(alone)) / found.difference.se
    done = repetitions - refused
    return covered, half_widths / done, ratios / done, refused


@pytest.mark.parametrize(
    ("accuracy", "n_labels", "design", "with_cost"),
    [
        (0.70, 400, "production", False),
        (0.85, 300, "production", False),
        (0.85, 300, "production", True),
        (0.85, 300, "reference", False),
        (0.95, 300, "reference", True),
    ],
)
def test_synthetic_differences_cover_when_the_judge_errs_alike(
    judge: Callable[..., None], accuracy: float, n_labels: int, design: str, with_cost: bool
) -> None:
    seed, repetitions = 20272, 2000
    rng = np.random.default_rng([seed, n_labels, round(100 * accuracy), with_cost])
    rates = lenient_judge(accuracy)
    covered, half_width, ratio, refused = synthetic(
        rng, (rates,) * 3, n=2000, n_labels=n_labels, design=design, with_cost=with_cost,
        repetitions=repetitions,
    )  # fmt: skip
    assert refused < 0.2 * repetitions
    # Two independent calibrations would be counted where there is one.
    assert 1.25 < ratio < 3
    cost = ", cost depends on outcome" if with_cost else ""
    judge(
        "difference of groups, synthetic",
        f"judge {accuracy:.2f}, {n_labels} {design} labels{cost}, {refused} refused; sides taken "
        f"for independent x{ratio:.2f}",
        covered=covered,
        repetitions=repetitions - refused,
        seed=seed,
        half_width=half_width,
    )


def test_a_synthetic_difference_does_not_cover_when_the_judge_favours_one(
    judge: Callable[..., None],
) -> None:
    """The control: why a synthetic difference gates nothing."""
    seed, repetitions, rates = 20273, 1000, lenient_judge(0.85)
    favoured = rates.copy()
    favoured[1:, 0] += 0.1
    favoured[np.arange(1, 5), np.arange(1, 5)] -= 0.1
    covered, half_width, _, refused = synthetic(
        np.random.default_rng(seed), (favoured, rates, rates), n=2000, n_labels=300,
        design="production", with_cost=False, repetitions=repetitions,
    )  # fmt: skip
    judge(
        "control: difference of groups, synthetic",
        "judge passes 10 points more of the failed traces of one; must stay below .8",
        covered=covered,
        repetitions=repetitions - refused,
        seed=seed,
        half_width=half_width,
        band=(0.0, 0.8),
    )


@pytest.mark.parametrize(("n", "slope"), [(60, 0.0), (200, 0.05)])
def test_slopes_within_class_cover(judge: Callable[..., None], n: int, slope: float) -> None:
    """Gaps of three values whose mean follows the size; the size follows the class."""
    seed, repetitions = 20274, 2000
    rng = np.random.default_rng([seed, n])
    covered, half_widths, done = 0, 0.0, 0
    for _ in range(repetitions):
        human = rng.choice(4, n, p=[0.5, 0.25, 0.15, 0.1])
        size = rng.normal(human * 0.7, 1.0).clip(-2, 4)
        lenient = 0.25 + slope * size
        gap = np.where(rng.random(n) < lenient, 0.5, 0.0) + np.where(rng.random(n) < 0.2, -0.5, 0)
        found = slope_within_class(gap, np.eye(4)[human], size).estimate
        assert found.interval is not None
        covered += found.interval[0] <= 0.5 * slope <= found.interval[1]
        half_widths += found.half_width or 0
        done += 1
    judge(
        "slope of the judge's gap, HC3",
        f"{n} labels, four classes, slope {0.5 * slope:g}",
        covered=covered,
        repetitions=done,
        seed=seed,
        half_width=half_widths / done,
    )
