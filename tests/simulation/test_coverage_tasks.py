"""Coverage of the estimators beside the headline where production repeats its tasks."""

from typing import Any

import numpy as np
import pytest

from calibration.judge_calibration.bayesian import bayesian, inverted_shares
from calibration.judge_calibration.calibrate import calibrate, transport_gap
from calibration.judge_calibration.confusion_inversion import bootstrap_inversion, invert, lee
from calibration.judge_calibration.post_stratification import bootstrap_post_stratified, promised
from calibration.judge_calibration.prediction_powered import (
    ppi_plus_plus,
    score_proxies,
    score_sums,
)
from calibration.judge_calibration.samples import (
    LabelledSample,
    confusion,
    production_sums,
)
from calibration.judge_calibration.strata import verdict_strata
from tests.simulation.judged import (
    CREDIT,
    REFERENCE,
    TRUE_NET,
    TRUE_SCORE,
    Band,
    Judge,
    Tally,
    give_all,
    lenient_judge,
    say,
)
from tests.simulation.runs import MIX
from tests.simulation.test_coverage_headline import classes_of, costs, drawn

pytestmark = pytest.mark.slow
REPETITIONS = 2000
BAND: Band = (0.935, 0.975)
# Percentiles of means of few units are known to be short by a factor sqrt((n - 1) / n).
DRAWN: Band = (0.92, 0.975)
CONTROL: Band = (0.0, 0.945)
SIZES = [(100, 4, 200, False), (100, 4, 200, True), (40, 10, 100, False)]


@pytest.mark.parametrize(("tasks", "size", "n", "with_cost"), SIZES)
def test_labels_of_production(judge: Judge, tasks: int, size: int, n: int, with_cost: bool) -> None:
    """The labels are some of the runs, in tasks that agree with a correlation of .33."""
    seed, rates, task = 20311, lenient_judge(0.85), np.repeat(np.arange(tasks), size)
    rng = np.random.default_rng([seed, tasks, with_cost])
    truth = TRUE_NET if with_cost else TRUE_SCORE
    names = ("PPI++", "inversion", "bootstrap", "PPI++ of labels")
    tally = {name: Tally(truth) for name in names}
    for _ in range(REPETITIONS):
        human = classes_of(rng, task)
        penalties = costs(rng, human) if with_cost else np.zeros(task.size)
        labelled, production = drawn(rng, n, human, say(rng, human, rates), penalties, task)
        alone = production_sums(production.runs.verdicts, penalties, credit=CREDIT, n_verdicts=5)
        scores = labelled.scores(CREDIT)
        proxies = score_proxies(labelled.verdicts, labelled.penalties, production)
        for name, of in (("PPI++", production), ("PPI++ of labels", alone)):
            found = ppi_plus_plus(scores, proxies, score_sums(of), clusters=labelled.clusters)
            tally[name].add(found.estimate)
        table = confusion(labelled.human, labelled.verdicts, n_verdicts=5).table
        both = invert(table, production, labelled=labelled, of_production=True)
        tally["inversion"].add(both.estimate)
        strata = verdict_strata(labelled.verdicts, production.counts, CREDIT, otherwise=0.0)
        residuals, of_production = promised(labelled, production, strata=strata, net=True)
        (again,) = bootstrap_post_stratified(
            residuals[:, None], labelled.verdicts, production.counts, strata=strata, rng=rng,
            promised=of_production, clusters=labelled.clusters, n_resamples=400,
        )  # fmt: skip
        tally["bootstrap"].add(again)
    cost = ", cost" if with_cost else ""
    setting = f"{tasks} tasks x {size} in production, {n} labels of it, judge 0.85{cost}"
    give_all(
        judge, seed,
        (tally["PPI++"], "PPI++ by task over both sources", setting, BAND),
        (tally["inversion"], "inversion by task over both sources", setting, BAND),
        (tally["bootstrap"], "bootstrap of tasks, post-stratified", setting, DRAWN),
        (tally["PPI++ of labels"], "control: PPI++, tasks of the labels alone", setting, CONTROL),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tasks", "size", "repeated", "with_cost"),
    [(100, 10, False, False), (100, 10, False, True), (40, 10, True, False)],
)
def test_labels_of_a_reference_set(
    judge: Judge, tasks: int, size: int, repeated: bool, with_cost: bool
) -> None:
    """The tasks of the reference set are others; they repeat four times, or not at all."""
    seed, rates, task, n = 20312, lenient_judge(0.85), np.repeat(np.arange(tasks), size), 400
    rng = np.random.default_rng([seed, tasks, with_cost])
    own = np.repeat(np.arange(n // 4), 4) if repeated else np.arange(n)
    truth = TRUE_NET if with_cost else TRUE_SCORE
    known, again, unknown = (Tally(truth) for _ in range(3))
    for _ in range(REPETITIONS):
        human = classes_of(rng, task)
        penalties = costs(rng, human) if with_cost else np.zeros(task.size)
        verdicts = say(rng, human, rates)
        classes = classes_of(rng, own, REFERENCE)
        labelled = LabelledSample(
            human=np.eye(5)[classes], verdicts=say(rng, classes, rates), clusters=own
        )
        table = confusion(labelled.human, labelled.verdicts, n_verdicts=5).table
        production, alone = (
            production_sums(verdicts, penalties, credit=CREDIT, n_verdicts=5, tasks=tasks)
            for tasks in (task, None)
        )
        known.add(invert(table, production, labelled=labelled).estimate)
        unknown.add(invert(table, alone).estimate)
        drawn_anew = bootstrap_inversion(
            table, production, rng=rng, labelled=labelled, n_resamples=400
        )
        again.add(drawn_anew.estimate)
    more = (", 100 tasks x 4 of labels" if repeated else "") + (", cost" if with_cost else "")
    setting = f"{tasks} tasks x {size} in production, 400 reference labels, judge 0.85{more}"
    give_all(
        judge, seed,
        (known, "inversion by task", setting, BAND),
        (again, "bootstrap of tasks, inverted", setting, DRAWN),
        (unknown, "control: inversion, single runs", setting, CONTROL),
    )  # fmt: skip


@pytest.mark.parametrize(("tasks", "size"), [(100, 10), (40, 10)])
def test_posterior_and_lee_at_the_effective_size(judge: Judge, tasks: int, size: int) -> None:
    seed, rates, task, n = 20313, lenient_judge(0.85), np.repeat(np.arange(tasks), size), 400
    rng = np.random.default_rng([seed, tasks])
    posterior, posterior_alone = Tally(TRUE_SCORE), Tally(TRUE_SCORE)
    good, shares = float(MIX[0]), [Tally(float(share)) for share in MIX]
    by_lee, lee_alone = Tally(good), Tally(good)
    for _ in range(REPETITIONS):
        human, classes = classes_of(rng, task), rng.choice(5, n, p=REFERENCE)
        said, verdicts = say(rng, classes, rates), say(rng, human, rates)
        table = confusion(np.eye(5)[classes], said, n_verdicts=5).table
        production = production_sums(verdicts, None, credit=CREDIT, n_verdicts=5, tasks=task)
        effects = invert(table, production).effects
        for tally, factors in ((posterior, effects), (posterior_alone, (1.0, 1.0))):
            found = bayesian(table, production, rng=rng, effects=factors, effective_size=500)
            tally.add(found.estimate)
            if tally is posterior:
                for share, of_class in zip(shares, found.shares, strict=True):
                    share.add(of_class)
        two = confusion(np.eye(2)[(classes > 0) * 1], (said > 0) * 1, n_verdicts=2).table
        whole = production_sums((verdicts > 0) * 1, None, credit=[1, 0], n_verdicts=2, tasks=task)
        effects = invert(two, whole).effects
        by_lee.add(lee(two, whole, effects=effects))
        lee_alone.add(lee(two, whole))
    setting = f"{tasks} tasks x {size} in production, 400 reference labels, judge 0.85"
    give_all(
        judge, seed,
        (posterior, "posterior at the effective size", setting, (0.92, 0.985)),
        *((share, f"posterior share of {share.truth:.2f} at the effective size", setting,
           (0.936, 1.0)) for share in shares),
        (by_lee, "Lee et al. at the effective size, two classes", setting, (0.935, 0.985)),
        (posterior_alone, "control: posterior, single runs", setting, CONTROL),
        (lee_alone, "control: Lee et al., single runs, two classes", setting, CONTROL),
    )  # fmt: skip


def test_shares_of_an_inversion_of_labels_of_production(judge: Judge) -> None:
    """All classes have one design effect: that of the rate alone would be too small for some."""
    seed, rates, task, n = 20315, lenient_judge(0.85), np.repeat(np.arange(100), 10), 400
    rng = np.random.default_rng(seed)
    shares = [Tally(float(share)) for share in MIX]
    for _ in range(REPETITIONS):
        human = classes_of(rng, task)
        labelled, production = drawn(
            rng, n, human, say(rng, human, rates), np.zeros(task.size), task
        )
        table = confusion(labelled.human, labelled.verdicts, n_verdicts=5).table
        inversion = invert(table, production, labelled=labelled, of_production=True)
        posterior = bayesian(
            table, production, rng=rng, effects=inversion.effects, effective_size=500
        )
        for share, found in zip(shares, inverted_shares(inversion, posterior), strict=True):
            share.add(found)
    setting = "100 tasks x 10 in production, 400 labels of it, judge 0.85"
    give_all(
        judge, seed,
        *((share, f"inverted share of {share.truth:.2f}", setting, (0.936, 1.0))
          for share in shares),
    )  # fmt: skip


def test_the_transport_gap_covers_zero(judge: Judge) -> None:
    seed, rates, task, n = 20314, lenient_judge(0.85), np.repeat(np.arange(100), 4), 200
    rng, tally = np.random.default_rng(seed), Tally(0.0)
    for _ in range(REPETITIONS):
        human, classes = classes_of(rng, task), rng.choice(5, n, p=REFERENCE)
        verdicts, penalties = say(rng, human, rates), costs(rng, human)
        sample, _ = drawn(rng, n, human, verdicts, penalties, task)
        others = LabelledSample(human=np.eye(5)[classes], verdicts=say(rng, classes, rates))
        of: dict[str, Any] = {
            "production_verdicts": verdicts, "production_penalties": penalties,
            "production_tasks": task, "credit": CREDIT,
            "estimators": ["post_stratified", "inversion"],
        }  # fmt: skip
        by_reference = calibrate(others, design="reference", **of)
        by_production = calibrate(sample, design="production", **of)
        tally.add(transport_gap(by_reference, by_production).gap.net)
    setting = (
        "100 tasks x 4 in production, 200 labels of it, 200 reference labels, judge 0.85, cost"
    )
    tally.give(judge, "transport gap by task", setting, seed=seed, band=BAND)
