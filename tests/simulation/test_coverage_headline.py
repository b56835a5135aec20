"""Coverage of the headline where users are: tasks repeat in production, costs, high rates.

Production repeats its tasks, and the labels are some of its runs: an interval that knows the tasks
of the labels alone is too short here.
"""

from dataclasses import replace

import numpy as np
import pytest

from calibration.judge_calibration.post_stratification import class_shares, post_stratified
from calibration.judge_calibration.reviewer_error import (
    first_phase,
    noise_ceiling,
    reviewer_effects,
    two_phase,
    two_phase_shares,
)
from calibration.judge_calibration.samples import (
    LabelledSample,
    ProductionSums,
    production_sums,
)
from calibration.statistics.estimate import BoolArray
from tests.simulation.judged import (
    CREDIT,
    TRUE_NET,
    TRUE_SCORE,
    Array,
    Band,
    Floats,
    Judge,
    Tally,
    give_all,
    lenient_judge,
    say,
)
from tests.simulation.runs import COST_GIVEN_CLASS, MIX, PENALTIES, TOGETHER

pytestmark = pytest.mark.slow
REPETITIONS = 2000
BAND: Band = (0.935, 0.975)
SHARES: Band = (0.935, 1.0)


def classes_of(rng: np.random.Generator, task: Array, mix: Floats = MIX) -> Array:
    """Draw classes that agree within a task: some runs have the class of the task."""
    own = rng.choice(5, int(task.max()) + 1, p=mix)
    found = np.where(rng.random(task.size) < TOGETHER, own[task], rng.choice(5, task.size, p=mix))
    return found.astype(np.int64)


def drawn(
    rng: np.random.Generator, n: int, human: Array, verdicts: Array, penalties: Floats, task: Array
) -> tuple[LabelledSample, ProductionSums]:
    """Label n of the runs at random."""
    at = rng.choice(human.size, n, replace=False)
    labelled = LabelledSample(
        human=np.eye(5)[human[at]], verdicts=verdicts[at], penalties=penalties[at],
        clusters=task[at],
    )  # fmt: skip
    return labelled, production_sums(verdicts, penalties, credit=CREDIT, n_verdicts=5, tasks=task)


def costs(rng: np.random.Generator, human: Array) -> Floats:
    """Draw the penalty of each run given its class."""
    above = rng.random(human.size)[:, None] > COST_GIVEN_CLASS.cumsum(axis=1)[human]
    found: Floats = PENALTIES[above.sum(axis=1).clip(0, 3)]
    return found


@pytest.mark.parametrize(
    ("sizes", "n", "with_cost"),
    [
        ((4,) * 100, 200, False),
        ((4,) * 100, 200, True),
        ((10,) * 40, 100, False),
        ((4,) * 500, 200, True),
        ((2, 3, 4, 5, 6, 20, 40, 60) * 5, 200, False),
    ],
)
def test_tasks_that_production_repeats(
    judge: Judge, sizes: tuple[int, ...], n: int, with_cost: bool
) -> None:
    seed, rates = 20301, lenient_judge(0.85)
    task = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng([seed, len(sizes), n, with_cost])
    truth = TRUE_NET if with_cost else TRUE_SCORE
    known, unknown, share = Tally(truth), Tally(truth), Tally(float(MIX[0]))
    for _ in range(REPETITIONS):
        human = classes_of(rng, task)
        penalties = costs(rng, human) if with_cost else np.zeros(task.size)
        labelled, production = drawn(rng, n, human, say(rng, human, rates), penalties, task)
        known.add(post_stratified(labelled, production).estimate)
        share.add(class_shares(labelled, production)[0])
        alone = production_sums(production.runs.verdicts, penalties, credit=CREDIT, n_verdicts=5)
        unknown.add(post_stratified(labelled, alone).estimate)
    # Tasks of 2 to 60 runs weigh as much as 17 equal ones.
    band = BAND if len(set(sizes)) == 1 else (0.905, 0.975)
    named = f"{len(sizes)} tasks x {sizes[0]}" if len(set(sizes)) == 1 else "40 tasks of 2 to 60"
    setting = f"{named} in production, {n} labels, judge 0.85{', cost' if with_cost else ''}"
    give_all(
        judge, seed,
        (known, "headline by task over both sources", setting, band),
        (share, "share of complete by task", setting, band),
        (unknown, "control: headline, tasks of the labels alone", setting, (0.0, 0.945)),
    )  # fmt: skip


@pytest.mark.parametrize("rate", [0.94, 0.97, 0.99])
@pytest.mark.parametrize("n", [100, 200, 400])
def test_rates_near_one_and_rare_classes(judge: Judge, rate: float, n: int) -> None:
    seed, rates = 20302, lenient_judge(0.9)
    mix = np.array([rate, 0.0, 0.0, (1 - rate) * 2 / 3, (1 - rate) / 3])
    rng = np.random.default_rng([seed, n, round(100 * rate)])
    task = np.arange(2000)
    whole, rare = Tally(rate), Tally(float(mix[4]))
    for _ in range(REPETITIONS):
        human = rng.choice(5, task.size, p=mix)
        verdicts = say(rng, human, rates)
        labelled, production = drawn(rng, n, human, verdicts, np.zeros(task.size), task)
        whole.add(post_stratified(labelled, production).estimate)
        rare.add(class_shares(labelled, production)[4])
    setting = f"rate {rate}, {n} labels, 2,000 verdicts, judge 0.90"
    give_all(
        judge, seed,
        (whole, "headline, logit limits", setting, (0.935, 0.99)),
        (rare, "share of a rare class, exact limits", setting, (0.945, 1.0)),
    )  # fmt: skip


@pytest.mark.parametrize("n", [60, 200])
def test_these_runs_themselves(judge: Judge, n: int) -> None:
    """The truth is the mean of the 400 runs, other ones in every repetition."""
    seed, rates, task = 20303, lenient_judge(0.85), np.repeat(np.arange(100), 4)
    rng = np.random.default_rng([seed, n])
    tally = Tally(0.0)
    for _ in range(REPETITIONS):
        human = classes_of(rng, task)
        penalties = costs(rng, human)
        labelled, production = drawn(rng, n, human, say(rng, human, rates), penalties, task)
        truth = float(np.maximum(0.0, CREDIT[human] - penalties).mean())
        found = post_stratified(labelled, production, estimand="these_runs").estimate
        assert found.interval is not None
        low, high = found.interval
        tally.count(low <= truth <= high, (high - low) / 2)
    setting = f"100 tasks x 4 in production, {n} labels, judge 0.85, cost"
    tally.give(judge, "headline of these runs themselves", setting, seed=seed, band=BAND)


@pytest.mark.parametrize(("n", "tasks"), [(200, None), (400, None), (800, None), (400, 500)])
def test_a_lenient_reviewer(judge: Judge, n: int, tasks: int | None) -> None:
    """One of two reviewers calls .3 of partial classes complete; a quarter is adjudicated."""
    seed, rates, size = 20304, lenient_judge(0.85), 2_000
    rng = np.random.default_rng([seed, n, tasks or 0])
    task = np.arange(size) if tasks is None else np.repeat(np.arange(tasks), size // tasks)
    both, alone = Tally(TRUE_NET), Tally(TRUE_NET)
    shares = [Tally(share) for share in MIX]
    for _ in range(REPETITIONS):
        human = classes_of(rng, task)
        labelled, production = drawn(rng, n, human, say(rng, human, rates), costs(rng, human), task)
        mixed = reviewed_twice(rng, labelled)
        both.add(two_phase(mixed, production).estimate)
        alone.add(post_stratified(mixed, production).estimate)
        for tally, share in zip(shares, two_phase_shares(mixed, production), strict=True):
            tally.add(share)
    repeat = "" if tasks is None else f", {tasks} tasks x {size // tasks}"
    setting = f"a lenient reviewer of two, {n} labels, overlap 25 %, judge 0.85, cost{repeat}"
    give_all(
        judge, seed,
        (both, "two phases", setting, BAND),
        *((tally, f"two phases, share of class {k}", setting, SHARES) for k, tally in
          enumerate(shares)),
        (alone, "control: one phase with a lenient reviewer", setting, (0.0, 0.94)),
    )  # fmt: skip


def reviewed_twice(
    rng: np.random.Generator, labelled: LabelledSample, overlap: BoolArray | None = None
) -> LabelledSample:
    """Let two reviewers share the labels, the second lenient; the overlap is adjudicated."""
    truth = np.asarray(labelled.human).argmax(axis=1)
    partial = (truth == 1) | (truth == 2)
    lenient = np.where(partial & (rng.random(truth.size) < 0.3), 0, truth)
    if overlap is None:
        overlap = rng.random(truth.size) < 0.25
    second = rng.random(truth.size) < 0.5
    codes = np.column_stack([
        np.where(overlap | ~second, truth, -1), np.where(overlap | second, lenient, -1),
    ])  # fmt: skip
    first = first_phase(codes, 5)
    human = np.where(overlap[:, None], labelled.human, first)
    return replace(labelled, human=human, overlap=overlap, first_human=first)


@pytest.mark.parametrize("accuracy", [0.7, 0.85])
def test_two_batches_of_a_growing_population(judge: Judge, accuracy: float) -> None:
    """120 of 1,000 runs are labelled; 1,000 worse ones come in, and 80 of all are labelled."""
    seed, rates = 20307, lenient_judge(accuracy)
    rng = np.random.default_rng([seed, round(100 * accuracy)])
    later = MIX + np.array([-0.2, 0, 0, 0, 0.2])
    truth = float(CREDIT @ (MIX + later) / 2)
    weighted, alike = Tally(truth), Tally(truth)
    early = np.arange(2_000) < 1_000
    chance = np.where(early, 1 - 0.88 * 0.96, 0.04)
    for _ in range(REPETITIONS):
        human = np.concatenate([rng.choice(5, 1_000, p=mix) for mix in (MIX, later)])
        verdicts = say(rng, human, rates)
        production = production_sums(verdicts, None, credit=CREDIT, n_verdicts=5)
        drawn_first = rng.choice(1_000, 120, replace=False)
        at = np.union1d(drawn_first, rng.choice(2_000, 80, replace=False))
        labelled = LabelledSample(
            human=np.eye(5)[human[at]], verdicts=verdicts[at], weights=1 / chance[at]
        )
        weighted.add(post_stratified(labelled, production).estimate)
        alike.add(post_stratified(replace(labelled, weights=None), production).estimate)
    setting = f"120 of the first 1,000 runs, then 80 of 2,000, judge {accuracy}"
    give_all(
        judge, seed,
        (weighted, "headline of two batches", setting, BAND),
        (alike, "control: two batches without weights", setting, (0.0, 0.94)),
    )  # fmt: skip


@pytest.mark.parametrize("accuracy", [0.7, 0.85])
def test_looking_while_labels_come_in(judge: Judge, accuracy: float) -> None:
    """Looks at 40, 60, ... 400 labels: a miss at any of them counts."""
    seed, rates, size = 20305, lenient_judge(accuracy), 4_000
    rng = np.random.default_rng([seed, round(100 * accuracy)])
    always, fixed = Tally(TRUE_SCORE), Tally(TRUE_SCORE)
    for _ in range(REPETITIONS):
        human = rng.choice(5, size, p=MIX)
        verdicts = say(rng, human, rates)
        production = production_sums(verdicts, None, credit=CREDIT, n_verdicts=5)
        looks = [
            post_stratified(
                LabelledSample(human=np.eye(5)[human[:n]], verdicts=verdicts[:n]), production
            ).estimate
            for n in range(40, 401, 20)
        ]
        ever = [None if look.any_time is None else look.any_time.interval for look in looks]
        for tally, limits in ((always, ever), (fixed, [look.interval for look in looks])):
            inside = [of is not None and of[0] <= TRUE_SCORE <= of[1] for of in limits]
            low, high = limits[-1] or (0.0, 0.0)
            tally.count(all(inside), (high - low) / 2)
    setting = f"every look from 40 to 400 labels, judge {accuracy}"
    give_all(
        judge, seed,
        (always, "headline, limits that hold at every look", setting, (0.935, 1.0)),
        (fixed, "control: headline, fixed limits at every look", setting, (0.0, 0.85)),
    )  # fmt: skip


def test_looking_while_an_overlap_grows(judge: Judge) -> None:
    """Looks at an overlap of 40, 60, ... 400 traces, a quarter of the labels, as they come in."""
    seed, rates, size = 20308, lenient_judge(0.85), 8_000
    rng = np.random.default_rng(seed)
    task, overlap = np.arange(size), np.arange(1_600) % 4 == 0
    always, fixed = Tally(TRUE_SCORE), Tally(TRUE_SCORE)
    for _ in range(REPETITIONS):
        human = rng.choice(5, size, p=MIX)
        labelled, production = drawn(
            rng, overlap.size, human, say(rng, human, rates), np.zeros(size), task
        )
        labelled = reviewed_twice(rng, replace(labelled, penalties=None, clusters=None), overlap)
        looks = [
            two_phase(labelled.where(task[: overlap.size] < 4 * traces), production).estimate
            for traces in range(40, 401, 20)
        ]
        ever = [None if look.any_time is None else look.any_time.interval for look in looks]
        for tally, limits in ((always, ever), (fixed, [look.interval for look in looks])):
            inside = [of is not None and of[0] <= TRUE_SCORE <= of[1] for of in limits]
            low, high = limits[-1] or (0.0, 0.0)
            tally.count(all(inside), (high - low) / 2)
    setting = "a lenient reviewer of two, every look from overlap 40 to 400 (25 %), judge 0.85"
    give_all(
        judge, seed,
        (always, "two phases, limits that hold at every look", setting, (0.95, 1.0)),
        (fixed, "control: two phases, fixed limits at every look", setting, (0.0, 0.85)),
    )  # fmt: skip


@pytest.mark.parametrize(("n", "people"), [(100, 3), (300, 3), (300, 6)])
def test_differences_of_reviewers_and_the_ceiling(judge: Judge, n: int, people: int) -> None:
    """Two of the reviewers label each shared trace; the first calls .3 of partial ones complete."""
    seed = 20306
    rng = np.random.default_rng([seed, n, people])
    lenient, careful, right = reviewers_of(rng, 400_000, people)
    outlier, every, chance = Tally(lenient), Tally(0.0), Tally(right)
    for _ in range(REPETITIONS):
        codes, settled = two_of(rng, n, people)
        found = reviewer_effects(codes, settled, np.tile(CREDIT, (n, 1)))
        outlier.add(found[0])
        for truth, one in zip([lenient] + [careful] * (people - 1), found, strict=True):
            assert one.interval is not None
            low, high = one.interval
            every.count(low <= truth <= high, (high - low) / 2)
        shared = LabelledSample(
            human=np.eye(5)[settled], verdicts=np.zeros(n, dtype=np.int64),
            first_human=first_phase(codes, 5), overlap=np.ones(n, dtype=bool),
        )  # fmt: skip
        chance.add(noise_ceiling(shared).reviewer)
    setting = f"{people} reviewers, one lenient, {n} shared traces"
    give_all(
        judge, seed,
        (every, "differences of reviewers, all together", setting, SHARES),
        # What is pulled toward the others is covered less often: the limits hold on average.
        (outlier, "difference of the lenient reviewer alone", setting, (0.72, 1.0)),
        (chance, "chance that a reviewer is right", setting, BAND),
    )  # fmt: skip


def two_of(rng: np.random.Generator, n: int, people: int) -> tuple[Array, Array]:
    """Return labels by two reviewers drawn for each trace, and the settled classes."""
    truth = rng.choice(5, n, p=MIX)
    codes = np.full((n, people), -1)
    seats = rng.random((n, people)).argsort(axis=1)[:, :2]
    for who in range(people):
        partial = (truth == 1) | (truth == 2)
        given = np.where((rng.random(n) < 0.04), rng.integers(0, 5, n), truth)
        if who == 0:
            given = np.where(partial & (rng.random(n) < 0.3), 0, given)
        codes[:, who] = np.where((seats == who).any(axis=1), given, -1)
    row = np.arange(n)
    one, other = codes[row, seats[:, 0]], codes[row, seats[:, 1]]
    return codes, np.where(one == other, one, truth)


def reviewers_of(rng: np.random.Generator, n: int, people: int) -> tuple[float, float, float]:
    """Return the true differences of the first two reviewers, and the chance of being right."""
    codes, settled = two_of(rng, n, people)
    first, second = (
        float((CREDIT[codes[of, who]] - CREDIT[settled[of]]).mean())
        for who in (0, 1)
        for of in (codes[:, who] >= 0,)
    )
    given = codes >= 0
    return first, second, float((codes == settled[:, None])[given].mean())
