"""Coverage of differences between groups, direct and synthetic, and of the judge's slopes."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from calibration.judge_calibration.bias import slope_within_class
from calibration.judge_calibration.confusion_inversion import invert
from calibration.judge_calibration.groups import (
    LabelledGroup,
    SharedCalibration,
    compare_groups,
    compare_pairs,
    estimate_group,
    estimate_groups,
)
from calibration.judge_calibration.samples import LabelledSample, confusion, production_sums
from tests.simulation.judged import (
    CREDIT,
    PRODUCTION,
    REFERENCE,
    Array,
    Floats,
    Judge,
    Tally,
    draw_cells,
    give_all,
    lenient_judge,
    say,
    sums_of,
    truth_of,
    unfold,
)
from tests.simulation.test_coverage_headline import classes_of, drawn

pytestmark = pytest.mark.slow
NAMES = ("a", "b", "c", "d", "e")
FIRST = PRODUCTION
SECOND = np.array([0.45, 0.20, 0.13, 0.14, 0.08])
OTHERS = np.array([0.35, 0.20, 0.20, 0.15, 0.10])


def group(name: str, labelled: Array, production: Array, *, with_cost: bool) -> LabelledGroup:
    human, verdicts, penalties = unfold(labelled)
    sample = LabelledSample(
        human=np.eye(5)[human], verdicts=verdicts, penalties=penalties if with_cost else None
    )
    sums = sums_of(production, with_cost=with_cost)
    return LabelledGroup(name=name, labelled=sample, production=sums)


NOBODY = LabelledSample(human=np.zeros((0, 5)), verdicts=np.zeros(0, dtype=np.int64))


def costed(with_cost: bool) -> str:
    return ", cost depends on outcome" if with_cost else ""


@pytest.mark.parametrize(
    ("accuracy", "labels", "with_cost"),
    [(0.70, (60, 60), False), (0.85, (60, 200), False), (0.85, (100, 60), True)],
)
def test_direct_differences_cover(
    judge: Judge, accuracy: float, labels: tuple[int, int], with_cost: bool
) -> None:
    """The judge errs differently in the two groups: nothing is assumed of it."""
    seed, repetitions, n = 20271, 2000, 3000
    rng = np.random.default_rng([seed, *labels, round(100 * accuracy), with_cost])
    rates = (lenient_judge(accuracy), lenient_judge(accuracy - 0.15))
    tally = Tally(truth_of(FIRST, with_cost=with_cost) - truth_of(SECOND, with_cost=with_cost))
    shared = SharedCalibration(table=np.eye(5), names=NAMES)
    for _ in range(repetitions):
        groups = []
        for mix, of, own in zip((FIRST, SECOND), rates, labels, strict=True):
            labelled = draw_cells(rng, own, mix, of)
            rest = draw_cells(rng, n - own, mix, of)
            groups.append(group("g", labelled, labelled + rest, with_cost=with_cost))
        found = compare_groups(groups[0], groups[1], shared)
        assert found.kind == "direct"
        tally.add_sure(found.difference)
    setting = f"judge {accuracy:.2f} and {accuracy - 0.15:.2f}, {labels[0]} and {labels[1]} labels"
    tally.give(judge, "difference of groups, direct", setting + costed(with_cost), seed=seed)


@pytest.mark.parametrize(
    ("own", "n_labels", "with_cost"),
    [(30, 40, False), (30, 40, True), (40, 50, True), (30, 300, False), (30, 300, True)],
)
def test_the_rate_of_a_group_covers_however_it_was_estimated(
    judge: Judge, own: int, n_labels: int, with_cost: bool
) -> None:
    """Few labels in all: the error rates are refused and the group is direct; many: synthetic.

    `own` labels are drawn from the group of 600 traces, the others from the rest of production.
    """
    seed, repetitions = 20275, 2000
    rng, rates = np.random.default_rng([seed, own, n_labels, with_cost]), lenient_judge(0.85)
    tally, kinds = Tally(truth_of(FIRST, with_cost=with_cost)), {"direct": 0, "synthetic": 0}
    for _ in range(repetitions):
        labelled = draw_cells(rng, own, FIRST, rates)
        produced = labelled + draw_cells(rng, 600 - own, FIRST, rates)
        table = labelled + draw_cells(rng, n_labels - own, OTHERS, rates)
        shared = SharedCalibration(table=table.sum(axis=2), names=NAMES)
        found = estimate_group(group("g", labelled, produced, with_cost=with_cost), shared)
        if found.estimate.interval is not None:
            kinds[found.kind] += 1
            tally.add(found.estimate)
    assert kinds["direct" if n_labels < 100 else "synthetic"] > 0.8 * repetitions
    setting = (
        f"judge 0.85, {own} of {n_labels} labels in the group of 600{costed(with_cost)}; "
        f"{kinds['direct']} direct, {kinds['synthetic']} synthetic, "
        f"{repetitions - tally.repetitions} refused"
    )
    tally.give(judge, "rate of a group", setting, seed=seed)


def synthetic(
    rng: np.random.Generator,
    rates: tuple[Floats, Floats, Floats],
    *,
    n: int,
    n_labels: int,
    design: str,
    with_cost: bool,
    repetitions: int,
) -> tuple[Tally, float]:
    """Return the tally of those not refused, and the width of independent sides against ours.

    Two groups of n traces and others of 6 n; with design production the labels are a random
    sample of all of them.
    """
    tally = Tally(truth_of(FIRST, with_cost=with_cost) - truth_of(SECOND, with_cost=with_cost))
    ratios = 0.0
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
            continue
        tally.add(found.difference)
        sides = [invert(table, side.production) for side in (first, second)]
        alone = sum(side.variance_reference + side.variance_production for side in sides)
        ratios += float(np.sqrt(alone)) / found.difference.se
    return tally, ratios / tally.repetitions


@pytest.mark.parametrize(
    ("accuracy", "n_labels", "design", "with_cost"),
    [
        (0.70, 400, "production", False), (0.85, 300, "production", False),
        (0.85, 300, "production", True), (0.85, 300, "reference", False),
        (0.95, 300, "reference", True),
    ],
)  # fmt: skip
def test_synthetic_differences_cover_when_the_judge_errs_alike(
    judge: Judge, accuracy: float, n_labels: int, design: str, with_cost: bool
) -> None:
    seed, repetitions = 20272, 2000
    rng = np.random.default_rng([seed, n_labels, round(100 * accuracy), with_cost])
    rates = lenient_judge(accuracy)
    tally, ratio = synthetic(
        rng, (rates,) * 3, n=2000, n_labels=n_labels, design=design, with_cost=with_cost,
        repetitions=repetitions,
    )  # fmt: skip
    refused = repetitions - tally.repetitions
    assert refused < 0.2 * repetitions
    # Two independent calibrations would be counted where there is one.
    assert 1.25 < ratio < 3
    setting = (
        f"judge {accuracy:.2f}, {n_labels} {design} labels{costed(with_cost)}, {refused} refused; "
        f"sides taken for independent x{ratio:.2f}"
    )
    tally.give(judge, "difference of groups, synthetic", setting, seed=seed)


@pytest.mark.parametrize("repeated", [False, True])
def test_synthetic_differences_cover_when_tasks_repeat(judge: Judge, repeated: bool) -> None:
    """Two groups of 100 tasks x 10 runs; 300 reference labels, in the second case 75 tasks x 4."""
    seed, rates = 20279, lenient_judge(0.85)
    rng = np.random.default_rng([seed, repeated])
    task, own = np.repeat(np.arange(100), 10), np.arange(300) // (4 if repeated else 1)
    truth = truth_of(FIRST, with_cost=False) - truth_of(SECOND, with_cost=False)
    known, alone = Tally(truth), Tally(truth)
    for _ in range(2000):
        sides = []
        for mix in (FIRST, SECOND):
            verdicts = say(rng, classes_of(rng, task, mix), rates)
            sides.append(
                [
                    LabelledGroup(
                        name="g",
                        labelled=NOBODY,
                        production=production_sums(
                            verdicts, None, credit=CREDIT, n_verdicts=5, tasks=tasks
                        ),
                    )
                    for tasks in (task, None)
                ]
            )
        human = classes_of(rng, own, REFERENCE)
        sample = LabelledSample(
            human=np.eye(5)[human], verdicts=say(rng, human, rates), clusters=own
        )
        shared = SharedCalibration(
            table=confusion(sample.human, sample.verdicts, n_verdicts=5).table,
            names=NAMES,
            labelled=sample,
            design="reference",
        )
        (first, first_alone), (second, second_alone) = sides
        known.add(compare_groups(first, second, shared).difference)
        single = replace(shared, labelled=None)
        alone.add(compare_groups(first_alone, second_alone, single).difference)
    setting = "100 tasks x 10 a group, judge 0.85, 300 reference labels"
    setting += ", 75 tasks x 4" if repeated else ""
    give_all(
        judge, seed,
        (known, "difference of groups by task, synthetic", setting, (0.935, 0.975)),
        (alone, "control: difference of groups, synthetic, single runs", setting, (0.0, 0.93)),
    )  # fmt: skip


def test_a_synthetic_difference_does_not_cover_when_the_judge_favours_one(judge: Judge) -> None:
    """The control: why a synthetic difference gates nothing."""
    seed, repetitions, rates = 20273, 1000, lenient_judge(0.85)
    favoured = rates.copy()
    favoured[1:, 0] += 0.1
    favoured[np.arange(1, 5), np.arange(1, 5)] -= 0.1
    tally, _ = synthetic(
        np.random.default_rng(seed), (favoured, rates, rates), n=2000, n_labels=300,
        design="production", with_cost=False, repetitions=repetitions,
    )  # fmt: skip
    name = "control: difference of groups, synthetic"
    setting = "judge passes 10 points more of the failed traces of one; must stay below .8"
    tally.give(judge, name, setting, seed=seed, band=(0.0, 0.8))


def slices(
    rng: np.random.Generator,
    n_groups: int,
    labels: tuple[int, int],
    *,
    errs: float,
    differ: float,
    with_cost: bool,
) -> tuple[list[LabelledGroup], list[float]]:
    """Return groups of 1,500 traces and their true rates.

    Mixes of classes and the accuracy of the judge, .85, differ: the log of a share by `differ`, the
    accuracy by `errs` (standard deviations).
    """
    groups, truths = [], []
    for number in range(n_groups):
        mix = PRODUCTION * np.exp(differ * rng.standard_normal(5))
        mix /= mix.sum()
        rates = lenient_judge(float(np.clip(0.85 + errs * rng.standard_normal(), 0.5, 0.98)))
        own = int(rng.integers(labels[0], labels[1] + 1))
        labelled = draw_cells(rng, own, mix, rates)
        production = labelled + draw_cells(rng, 1500 - own, mix, rates)
        groups.append(group(str(number), labelled, production, with_cost=with_cost))
        truths.append(truth_of(mix, with_cost=with_cost))
    return groups, truths


SHARED = SharedCalibration(table=np.eye(5), names=NAMES)


@pytest.mark.parametrize(
    ("n_groups", "labels", "errs", "with_cost"),
    [
        (6, (20, 33), 0.0, False), (6, (20, 33), 0.08, True), (10, (20, 33), 0.08, False),
        (3, (20, 33), 0.05, False), (8, (1, 40), 0.08, False), (8, (50, 150), 0.08, True),
    ],
)  # fmt: skip
def test_every_slice_covers(
    judge: Judge, n_groups: int, labels: tuple[int, int], errs: float, with_cost: bool
) -> None:
    seed, repetitions = 20276, 1000
    rng = np.random.default_rng([seed, n_groups, *labels, round(100 * errs), with_cost])
    rates = [Tally(0.0) for _ in range(n_groups)]
    apart = Tally(0.0)
    for _ in range(repetitions):
        groups, truths = slices(rng, n_groups, labels, errs=errs, differ=0.3, with_cost=with_cost)
        for tally, found, truth in zip(rates, estimate_groups(groups, SHARED), truths, strict=True):
            tally.truth = truth
            tally.add_sure(found.estimate)
        (pair,) = compare_pairs(groups, [("0", "1")], SHARED)
        apart.truth = truths[0] - truths[1]
        apart.add_sure(pair.difference)
    whole = Tally(
        0.0, sum(t.covered for t in rates), n_groups * repetitions, sum(t.widths for t in rates)
    )
    setting = (
        f"{n_groups} groups of {labels[0]} to {labels[1]} labels, judge .85 -+ {errs:g}"
        f"{costed(with_cost)}"
    )
    worst = min(rates, key=lambda tally: tally.covered)
    whole.give(judge, "rate of a slice", setting, seed=seed, band=(0.935, 1.0))
    worst.give(judge, "rate of a slice", f"{setting}: worst slice", seed=seed, band=(0.917, 1.0))
    apart.give(judge, "difference of slices", setting, seed=seed)


@pytest.mark.parametrize(("n_groups", "tasks", "size"), [(6, 100, 4), (10, 40, 10), (8, 100, 10)])
def test_every_slice_covers_when_tasks_repeat(
    judge: Judge, n_groups: int, tasks: int, size: int
) -> None:
    """Production repeats its tasks; 20 to 33 runs of each slice are labelled."""
    seed, repetitions = 20278, 2000
    rng = np.random.default_rng([seed, n_groups, tasks])
    rates, apart = [Tally(0.0) for _ in range(n_groups)], Tally(0.0)
    task = np.repeat(np.arange(tasks), size)
    for _ in range(repetitions):
        groups, truths = [], []
        for number in range(n_groups):
            mix = PRODUCTION * np.exp(0.3 * rng.standard_normal(5))
            mix /= mix.sum()
            judged = lenient_judge(float(np.clip(0.85 + 0.08 * rng.standard_normal(), 0.5, 0.98)))
            human = classes_of(rng, task, mix)
            verdicts, own = say(rng, human, judged), int(rng.integers(20, 34))
            labelled, production = drawn(rng, own, human, verdicts, np.zeros(task.size), task)
            groups.append(LabelledGroup(name=str(number), labelled=labelled, production=production))
            truths.append(truth_of(mix, with_cost=False))
        for tally, found, truth in zip(rates, estimate_groups(groups, SHARED), truths, strict=True):
            tally.truth = truth
            tally.add_sure(found.estimate)
        (pair,) = compare_pairs(groups, [("0", "1")], SHARED)
        apart.truth = truths[0] - truths[1]
        apart.add_sure(pair.difference)
    whole = Tally(
        0.0, sum(t.covered for t in rates), n_groups * repetitions, sum(t.widths for t in rates)
    )
    setting = f"{n_groups} groups of {tasks} tasks x {size}, 20 to 33 labels, judge .85 -+ 0.08"
    worst = min(rates, key=lambda tally: tally.covered)
    give_all(
        judge, seed,
        (whole, "rate of a slice", setting, (0.935, 1.0)),
        (worst, "rate of a slice", f"{setting}: worst slice", (0.917, 1.0)),
        (apart, "difference of slices", setting, (0.935, 0.99)),
    )  # fmt: skip


@pytest.mark.parametrize("n", [25, 60])
def test_six_equal_agents_rarely_differ(judge: Judge, n: int) -> None:
    seed, repetitions, tally = 20277, 2000, Tally(0.0)
    rng = np.random.default_rng([seed, n])
    pairs = [(str(a), str(b)) for a, b in combinations(range(6), 2)]
    for _ in range(repetitions):
        groups, _ = slices(rng, 6, (n, n), errs=0.0, differ=0.0, with_cost=False)
        found = compare_pairs(groups, pairs, SHARED)
        tally.count(any(one.p_holm is not None and one.p_holm < 0.05 for one in found))
    setting = f"six equal agents of {n} labels: some difference below .05 (Holm)"
    tally.give(judge, "difference of slices, false", setting, seed=seed, band=(0.0, 0.05))


@pytest.mark.parametrize(("n", "slope"), [(60, 0.0), (200, 0.05)])
def test_slopes_within_class_cover(judge: Judge, n: int, slope: float) -> None:
    """Gaps of three values whose mean follows the size; the size follows the class."""
    seed, repetitions = 20274, 2000
    rng = np.random.default_rng([seed, n])
    tally = Tally(0.5 * slope)
    for _ in range(repetitions):
        human = rng.choice(4, n, p=[0.5, 0.25, 0.15, 0.1])
        size = rng.normal(human * 0.7, 1.0).clip(-2, 4)
        lenient = 0.25 + slope * size
        gap = np.where(rng.random(n) < lenient, 0.5, 0.0) + np.where(rng.random(n) < 0.2, -0.5, 0)
        tally.add_sure(slope_within_class(gap, np.eye(4)[human], size).estimate)
    setting = f"{n} labels, four classes, slope {0.5 * slope:g}"
    tally.give(judge, "slope of the judge's gap, HC3", setting, seed=seed)
