"""Repeated tasks in every estimator, by hand: 20 tasks of 5 runs with one verdict each.

Half of the tasks pass. One run of each is labelled; 8 of 10 labels agree with the verdict. The
parts of the labels and of production are of one task and do not add up in squares.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.judge_calibration.bayesian import bayesian
from calibration.judge_calibration.calibrate import calibrate, transport_gap
from calibration.judge_calibration.confusion_inversion import bootstrap_inversion, invert, lee
from calibration.judge_calibration.post_stratification import bootstrap_post_stratified, promised
from calibration.judge_calibration.prediction_powered import (
    ppi_plus_plus,
    score_proxies,
    score_sums,
)
from calibration.judge_calibration.samples import (
    Design,
    LabelledSample,
    ProductionSums,
    production_sums,
    production_sums_from_counts,
)
from calibration.judge_calibration.strata import Strata
from calibration.statistics.intervals import two_sided_t, two_sided_z
from calibration.statistics.means import df_of_tasks, variance_of_tasks
from tests.cli_runs import run
from tests.golden_cases import headline_2

TASKS = np.arange(20)
SAID = np.repeat([0, 1], 10)
LABELS = LabelledSample(
    human=np.eye(2)[[0] * 8 + [1] * 2 + [0] * 2 + [1] * 8], verdicts=SAID, clusters=TASKS
)
TABLE = np.array([[8.0, 2.0], [2.0, 8.0]])

# Sum of squares of the influence: every task has +-.025.
SQUARES = 20 * 0.025**2


def production(verdicts: Any = SAID, *, tasks: bool = True) -> ProductionSums:
    named = np.repeat(np.arange(len(verdicts)), 5) if tasks else None
    runs = np.repeat(verdicts, 5)
    return production_sums(runs, None, credit=[1.0, 0.0], n_verdicts=2, tasks=named)


def test_ppi_plus_plus() -> None:
    """psi = 4 unlabelled runs (+-.5) / 80 + r / 20; r is -1 or 1 for a wrong verdict.

    That is .025 - .05 where a verdict passes a failure, and .025 where it is right.
    """
    of = production()
    proxies = score_proxies(SAID, None, of)
    scores = LABELS.scores(of.credit)
    found = ppi_plus_plus(scores, proxies, score_sums(of), clusters=TASKS, tuning=1.0).estimate
    assert found.value == pytest.approx(0.5)
    assert found.se == pytest.approx(np.sqrt(20 / 19 * SQUARES))
    reach = two_sided_t(0.95, 19) * np.sqrt(20 / 19 * SQUARES)
    assert found.interval == pytest.approx((0.5 - reach, 0.5 + reach))
    # Single runs: variance .2 of the residuals by 20, and of the proxies by 80.
    alone = ppi_plus_plus(scores, proxies, score_sums(production(tasks=False)), tuning=1.0).estimate
    assert alone.se == pytest.approx(np.sqrt(0.2 / 20 + 0.25 / 80))


def test_inversion_of_labels_of_production() -> None:
    """a = 4/3 and -1/3; psi = 5 (+-5/6) / 100 of a task, and of its label -1/60 or -1/15.

    M of a passed label is 2/3, .5 on average over the good ones and 0 over the bad ones, by 10.
    """
    found = invert(TABLE, production(), labelled=LABELS, of_production=True, pseudo_count=0)
    assert found.estimate.value == pytest.approx(0.5)
    assert found.estimate.se == pytest.approx(np.sqrt(20 / 19 * SQUARES))
    assert found.estimate.method == "confusion matrix inverted, delta by task, t"
    single = 2 / 90 + 25 / 36 / 100
    wider = (two_sided_t(0.95, 19) / two_sided_z(0.95)) ** 2
    assert found.effects == pytest.approx((max(1.0, wider * 20 / 19 * SQUARES / single),) * 2)


def test_the_design_effect_is_that_of_the_class_shares_where_it_is_larger() -> None:
    """Ten of 20 tasks of ten equal runs are of each of two classes, both of credit 1.

    Every score is 1. A share of .5 has the variance .25 / 200 of single runs, .25 / 19 by task.
    """
    runs = production_sums(
        np.repeat([0, 1], 100), None, credit=[1.0, 1.0, 0.0], n_verdicts=3,
        tasks=np.repeat(np.arange(20), 10),
    )  # fmt: skip
    found = invert(30 * np.eye(3), runs, pseudo_count=0)
    assert found.variance_production == pytest.approx(0.0, abs=1e-15)
    wider = (two_sided_t(0.95, 19) / two_sided_z(0.95)) ** 2
    assert found.effects == pytest.approx((1.0, wider * 200 / 19))


NINE = np.repeat([0, 1], [9, 11])
WIDE = [[80, 20], [10, 90]]


def test_inversion_of_a_reference_set() -> None:
    """Nine of 20 tasks pass: .45 x .55 / .49 / 19. Single labels: .5^2 (.16 + .09) / .49 / 100."""
    found = invert(WIDE, production(NINE), pseudo_count=0)
    of_tasks, of_labels = 0.2475 / 0.49 / 19, 0.25 * 0.25 / 0.49 / 100
    assert found.estimate.value == pytest.approx(0.5)
    assert found.estimate.se == pytest.approx(np.sqrt(of_tasks + of_labels))
    wider = (two_sided_t(0.95, 19) / two_sided_z(0.95)) ** 2
    assert found.effects == pytest.approx((wider, wider * 100 / 19))
    few = invert(WIDE, production([0, 0, 1, 1]), pseudo_count=0).estimate
    assert (few.interval, few.status) == (None, "no interval: 4 tasks, at least 5 are needed")


def test_tasks_of_the_reference_set_are_others() -> None:
    """Twenty labels in ten tasks of two that agree: twice the variance, and 10 / 9 for G - 1."""
    twice = LabelledSample(
        human=np.repeat(np.eye(2)[[0] * 5 + [1] * 5], 2, axis=0),
        verdicts=np.repeat([0, 0, 0, 0, 1, 0, 1, 1, 1, 1], 2),
        clusters=np.repeat(np.arange(10), 2),
    )
    single = production(NINE, tasks=False)
    alone = invert(TABLE, single, pseudo_count=0)
    found = invert(TABLE, single, labelled=twice, pseudo_count=0)
    assert found.variance_production == pytest.approx(alone.variance_production)
    assert found.variance_reference == pytest.approx(20 / 9 * alone.variance_reference)
    # Production has tasks 0 to 19 too: no task is taken for one of the reference set.
    both = invert(TABLE, production(NINE), labelled=twice, pseudo_count=0)
    assert both.variance_reference == pytest.approx(found.variance_reference)
    assert both.variance_production == pytest.approx(
        invert(TABLE, production(NINE), pseudo_count=0).variance_production
    )


def test_bootstraps_draw_whole_tasks() -> None:
    of, strata = production(), Strata(groups=(0, 1), merged=())
    residuals, promise = promised(LABELS, of, strata=strata, net=False)
    (found,) = bootstrap_post_stratified(
        residuals[:, None], SAID, of.counts, strata=strata, promised=promise, clusters=TASKS,
        rng=np.random.default_rng(1), n_resamples=20_000,
    )  # fmt: skip
    assert found.value == pytest.approx(0.5)
    assert found.se == pytest.approx(np.sqrt(SQUARES), rel=0.04)
    again = bootstrap_inversion(
        [[8_000, 2_000], [1_000, 9_000]], production(NINE), pseudo_count=0,
        rng=np.random.default_rng(1), n_resamples=20_000,
    ).estimate  # fmt: skip
    assert again.se == pytest.approx(np.sqrt(0.2475 / 0.49 / 20), rel=0.02)


def test_posterior_and_lee_take_counts_at_their_effective_size() -> None:
    whole = production_sums_from_counts([400, 600], credit=[1.0, 0.0])
    quarter = production_sums_from_counts([100, 150], credit=[1.0, 0.0])
    found, fewer = lee(WIDE, whole, effects=(1.0, 4.0)), lee(WIDE, quarter)
    assert found.value == fewer.value
    assert found.interval == pytest.approx(fewer.interval)
    assert (found.n, fewer.n) == (1000, 250)
    drawn = [
        bayesian(WIDE, of, effects=effects, rng=np.random.default_rng(1)).estimate
        for of, effects in ((whole, (1.0, 4.0)), (quarter, (1.0, 1.0)))
    ]
    assert (drawn[0].value, drawn[0].interval) == (drawn[1].value, drawn[1].interval)
    assert drawn[0].n == 1000


DESIGNS: tuple[Design, Design] = ("production", "reference")


@pytest.mark.parametrize("design", DESIGNS)
def test_every_estimate_knows_the_tasks_of_production(design: Design) -> None:
    rng = np.random.default_rng(3)
    task = np.repeat(np.arange(60), 5)
    verdicts = np.repeat(rng.integers(0, 2, 60), 5)
    at = rng.permutation(300)[:120]
    human = np.eye(2)[np.where(rng.random(120) < 0.9, verdicts[at], 1 - verdicts[at])]
    common: dict[str, Any] = {
        "production_verdicts": verdicts, "production_penalties": None, "credit": [1.0, 0.0],
        "design": design, "force": True,
    }  # fmt: skip
    tasks = LabelledSample(human=human, verdicts=verdicts[at], clusters=task[at])
    known = calibrate(tasks, production_tasks=task, **common)
    unknown = calibrate(LabelledSample(human=human, verdicts=verdicts[at]), **common)
    assert not [notice for notice in known.warnings if notice.code == "repeated_tasks"]
    names = {"inversion", "bayesian", "lee", "bootstrap"}
    if design == "production":
        names |= {"ppi_plus_plus", "post_stratified"}
    for name in names:
        wide, short = (of.estimates[name].net.half_width for of in (known, unknown))
        assert wide is not None
        assert short is not None
        assert wide > (1.1 if design == "production" else 1.4) * short, name


def test_transport_gap_by_task() -> None:
    """Runs of a task and its label enter once; the reference set adds what its labels do.

    psi = 5 (+-5/6) / 100 less 5 (+-.3) / 100, less .01 or -.04 of the label, times sqrt(10 / 9).
    """
    common: dict[str, Any] = {
        "production_verdicts": np.repeat(SAID, 5), "production_penalties": None,
        "production_tasks": np.repeat(TASKS, 5), "credit": [1.0, 0.0], "pseudo_count": 0,
        "force": True, "estimators": ["post_stratified", "inversion"],
    }  # fmt: skip
    by_production = calibrate(LABELS, design="production", **common)
    others = LabelledSample(human=LABELS.human, verdicts=SAID)
    gap = transport_gap(calibrate(others, design="reference", **common), by_production).gap.net
    shrunk = np.sqrt(10 / 9)
    apart = 1 / 24 - 0.015 - 0.01 * shrunk, 1 / 24 - 0.015 + 0.04 * shrunk
    squares = 16 * apart[0] ** 2 + 4 * apart[1] ** 2
    assert gap.value == pytest.approx(0.0)
    assert gap.se == pytest.approx(np.sqrt(2 / 90 + 20 / 19 * squares))


def test_golden_factors_of_tasks() -> None:
    case = headline_2()["task_factors"]
    shares, expected = np.array(case["inputs"]["shares"]), case["expected"]
    for at, factor in enumerate(expected["factor"]):
        alone = np.where(np.arange(shares.size) == at, 1.0, 0.0)
        assert variance_of_tasks(alone, shares) == pytest.approx(factor, rel=1e-9)
    assert df_of_tasks(shares) == pytest.approx(expected["df"], rel=1e-9)
    # The rule of before: one factor for all, and as many df as tasks less one.
    assert max(expected["factor"]) > shares.size / (shares.size - 1)
    assert expected["df"] < shares.size - 1


@pytest.mark.parametrize("name", ["post_stratified", "human_only"])
def test_golden_few_effective_tasks(name: str, tmp_path: Path) -> None:
    case = headline_2()["few_effective_tasks"]
    for table in ("human", "verdicts"):
        (tmp_path / f"{table}.csv").write_text(case["inputs"][f"{table}_csv"], "utf-8")
    printed = run(
        "calibrate", "--human", str(tmp_path / "human.csv"), "--verdicts",
        str(tmp_path / "verdicts.csv"), "--json",
    )  # fmt: skip
    expected = case["expected"]["net" if name == "post_stratified" else name]
    found = json.loads(printed.stdout)["estimates"][name]
    for one in ("value", "se", "df", "interval"):
        assert found[one] == pytest.approx(expected[one], rel=1e-9)
