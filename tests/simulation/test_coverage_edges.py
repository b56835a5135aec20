"""Coverage of the headline at its edges: skipped traces, no judge error seen, few labels."""

import numpy as np
import pytest

from calibration.judge_calibration.post_stratification import if_skipped, post_stratified
from calibration.judge_calibration.samples import LabelledSample, production_sums
from tests.simulation.judged import (
    CREDIT,
    TRUE_NET,
    Judge,
    Tally,
    give_all,
    lenient_judge,
    say,
)
from tests.simulation.runs import COST_GIVEN_CLASS, MIX, PENALTIES
from tests.simulation.test_coverage_headline import costs, drawn

pytestmark = pytest.mark.slow
REPETITIONS = 2000

# Chance that reviewers skip a trace of each class.
SKIPPED = np.array([0.02, 0.10, 0.15, 0.30, 0.10])


@pytest.mark.parametrize(("n", "tasks"), [(100, None), (200, None), (400, None), (200, 100)])
def test_the_limits_if_skipped_hold_both_extremes(judge: Judge, n: int, tasks: int | None) -> None:
    """The extremes are those of all runs: each has a chance of being skipped by its class."""
    seed, rates, size = 20321, lenient_judge(0.85), 2_000 if tasks is None else 4 * tasks
    rng = np.random.default_rng([seed, n, tasks or 0])
    task = np.arange(size) if tasks is None else np.repeat(np.arange(tasks), 4)
    kept = np.maximum(0.0, CREDIT[:, None] - PENALTIES)
    own = (COST_GIVEN_CLASS * kept).sum(axis=1)
    most = (COST_GIVEN_CLASS * np.maximum(0.0, 1 - PENALTIES)).sum(axis=1)
    lowest = float(MIX @ ((1 - SKIPPED) * own))
    highest = lowest + float(MIX @ (SKIPPED * most))
    both, low, high = Tally(np.nan), Tally(lowest), Tally(highest)
    for _ in range(REPETITIONS):
        # Runs of a task share its class, so that tasks matter.
        human = rng.choice(5, int(task.max()) + 1, p=MIX)[task]
        verdicts, penalties = say(rng, human, rates), costs(rng, human)
        sample, production = drawn(rng, n, human, verdicts, penalties, task)
        classes = np.asarray(sample.human).argmax(axis=1)
        skipped = rng.random(n) < SKIPPED[classes]
        strata = post_stratified(sample.where(~skipped), production).strata
        found = if_skipped(sample, skipped, production, strata=strata)
        assert found.lower_limit is not None
        assert found.upper_limit is not None
        below, above = found.lower_limit <= lowest, highest <= found.upper_limit
        reach = (found.upper_limit - found.lower_limit) / 2
        for tally, covered in ((both, below and above), (low, below), (high, above)):
            tally.count(covered, reach)
    of_tasks = "" if tasks is None else f", {tasks} tasks x 4 alike"
    setting = f"{n} traces asked about, a tenth skipped by class, judge 0.85, cost{of_tasks}"
    give_all(
        judge, seed,
        (both, "limits if skipped, both extremes", setting, (0.935, 0.985)),
        (low, "lower limit if skipped", setting, (0.965, 0.995)),
        (high, "upper limit if skipped", setting, (0.96, 0.995)),
    )  # fmt: skip


@pytest.mark.parametrize("wrong", [0.005, 0.02, 0.05])
@pytest.mark.parametrize(("labelled_tasks", "each"), [(40, 1), (40, 3)])
def test_no_judge_error_seen(judge: Judge, labelled_tasks: int, each: int, wrong: float) -> None:
    """The judge is right but in some tasks, all runs of which it passes though they fail.

    Without an error among the labels, the bound counts labelled tasks, or single runs where these
    runs are meant.
    """
    seed, n_tasks = 20322, 400
    rng = np.random.default_rng([seed, each, round(1000 * wrong)])
    task = np.repeat(np.arange(n_tasks), each)
    process, these = Tally(0.6 * (1 - wrong)), Tally(np.nan)
    for _ in range(REPETITIONS):
        passed = (rng.random(n_tasks) < 0.6)[task]
        right = (rng.random(n_tasks) >= wrong)[task]
        classes = np.where(passed & right, 0, 1)
        verdicts = np.where(passed, 0, 1)
        production = production_sums(
            verdicts, None, credit=[1.0, 0.0], n_verdicts=2, tasks=task if each > 1 else None
        )
        of_tasks = np.isin(task, rng.choice(n_tasks, labelled_tasks, replace=False))
        singly = rng.choice(task.size, labelled_tasks * each, replace=False)
        for tally, at in ((process, np.flatnonzero(of_tasks)), (these, singly)):
            estimate = post_stratified(
                LabelledSample(
                    human=np.eye(2)[classes[at]], verdicts=verdicts[at], clusters=task[at]
                ),
                production, estimand="process" if tally is process else "these_runs",
            ).estimate  # fmt: skip
            assert estimate.interval is not None
            truth = tally.truth if tally is process else float((classes == 0).mean())
            low, high = estimate.interval
            tally.count(low <= truth <= high, (high - low) / 2)
    named = f"{labelled_tasks} of 400 tasks labelled" + (f", {each} runs each" if each > 1 else "")
    setting = f"{named}, {wrong:.1%} of tasks wrongly passed"
    # Three or four errors seen among the labels, all in one direction: limits of t are short.
    few = each > 1 and wrong == 0.05
    name, band = "headline, exact bound without an error", (0.935, 1.0)
    of_these = f"{name}, these runs{', known to be short' if few else ''}"
    give_all(
        judge, seed,
        (process, f"{name}, process", setting, band),
        (these, of_these, setting, (0.885, 1.0) if few else band),
    )  # fmt: skip


@pytest.mark.parametrize("accuracy", [0.85, 0.95])
@pytest.mark.parametrize("n", [30, 40, 55])
def test_few_labels_with_costs(judge: Judge, n: int, accuracy: float) -> None:
    seed, rates, size = 20323, lenient_judge(accuracy), 2_000
    rng = np.random.default_rng([seed, n, round(100 * accuracy)])
    tally, task = Tally(TRUE_NET), np.arange(size)
    for _ in range(REPETITIONS):
        human = rng.choice(5, size, p=MIX)
        labelled, production = drawn(rng, n, human, say(rng, human, rates), costs(rng, human), task)
        tally.add(post_stratified(labelled, production).estimate)
    setting = f"{n} labels, judge {accuracy}, cost depends on outcome"
    tally.give(judge, "headline, few labels with costs", setting, seed=seed, band=(0.925, 0.975))
