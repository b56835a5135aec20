"""Limits where few errors were seen: the exact bound, and the floors of net rates."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from calibration.judge_calibration.post_stratification import (
    PostStratified,
    limited_rate,
    post_stratified,
    predictions,
)
from calibration.judge_calibration.post_stratification import join as joined_of
from calibration.judge_calibration.samples import (
    LabelledSample,
    ProductionSums,
    production_sums,
)
from calibration.statistics.intervals import unseen_reach, unseen_share
from tests.classes import OUTCOMES
from tests.golden_cases import headline_2

CASES = headline_2()
RATES = ("net_no_error_seen", "net_few_errors", "these_runs_few_errors")


def tables(name: str) -> tuple[LabelledSample, ProductionSums, str]:
    """Return labels and production of a case, every run with its own cost."""
    given = CASES[name]["inputs"]
    labels, runs = (pd.read_csv(io.StringIO(given[f"{of}_csv"])) for of in ("human", "verdicts"))
    penalties = np.clip(runs["cost_usd"].to_numpy() / given["ceiling"] - 1, 0, 1)
    verdicts = runs["outcome"].map(OUTCOMES.index).to_numpy()
    rows = pd.Series(np.arange(len(runs)), index=runs["trace_id"])[labels["trace_id"]].to_numpy()
    labelled = LabelledSample(
        human=np.eye(5)[labels["outcome"].map(OUTCOMES.index)],
        verdicts=verdicts[rows], penalties=penalties[rows],
    )  # fmt: skip
    production = production_sums(verdicts, penalties, credit=given["credit"], n_verdicts=5)
    return labelled, production, given["estimand"]


def rate(name: str, *, net: bool) -> PostStratified:
    labelled, production, estimand = tables(name)
    return post_stratified(labelled, production, net=net, estimand=estimand)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("kind", ["net", "gross"])
def test_golden_rates(name: str, kind: str) -> None:
    expected = CASES[name]["expected"][kind]
    found = rate(name, net=kind == "net").estimate
    assert found.interval is not None
    for value, known in (
        (found.value, expected["value"]), (found.se, expected["se"]), (found.df, expected["df"]),
        *zip(found.interval, expected["interval"], strict=True),
    ):  # fmt: skip
        assert value == pytest.approx(known, rel=1e-9)


@pytest.mark.parametrize("name", RATES)
def test_limits_without_floors_are_those_of_before(name: str) -> None:
    """The rule of before fails where a floor binds."""
    labelled, production, estimand = tables(name)
    joined = joined_of(labelled, production, estimand=estimand)  # type: ignore[arg-type]
    predicted, kept = predictions(joined, labelled, net=True)
    before = limited_rate(
        joined.mean(labelled.scores(production.tables), predicted, kept), joined, 0.95
    )
    assert before.interval == pytest.approx(CASES[name]["expected"]["unfloored_net"], rel=1e-9)
    found = rate(name, net=True)
    binds = {
        "net_no_error_seen": ("gross",), "net_few_errors": (),
        "these_runs_few_errors": ("gross", "differing"),
    }  # fmt: skip
    assert found.floor == binds[name]
    assert (found.estimate.interval == before.interval) is (not found.floor)


def test_golden_bounds() -> None:
    given, expected = CASES["exact_bound"]["inputs"], CASES["exact_bound"]["expected"]
    assert unseen_reach(np.array(given["h"]), confidence_level=0.95) == pytest.approx(
        expected["unequal"], rel=1e-9
    )
    equal = np.full(given["n"], 1 / given["n"])
    assert unseen_reach(equal, confidence_level=0.95) == pytest.approx(expected["equal"], rel=1e-9)
    assert unseen_share(given["N"], given["n"], confidence_level=0.95) == expected["finite"]


def test_the_bound_is_the_worst_case_that_no_label_shows() -> None:
    """The best of many error rates with prod(1 - q) = alpha/2, and the root of the page's sum."""
    rng = np.random.default_rng(3)
    for n in (1, 2, 5, 30):
        h = rng.dirichlet(np.full(n, 0.7))
        bound = unseen_reach(h, confidence_level=0.9)
        root = optimize.brentq(
            lambda y, h=h: np.minimum(0, y - np.log(h)).sum() - np.log(0.05), -60, 0
        )
        by_root = h @ np.maximum(0, 1 - np.exp(root) / h)
        assert bound == pytest.approx(float(by_root))
        for tried in rng.dirichlet(np.ones(n), size=200):
            assert h @ (1 - 0.05**tried) <= bound + 1e-12


@pytest.mark.parametrize(("population", "sample"), [(400, 40), (60, 59), (60, 60), (1000, 3)])
def test_the_share_of_a_finite_population(population: int, sample: int) -> None:
    wrong = round(population * unseen_share(population, sample, confidence_level=0.95))
    missed, more = (
        float(stats.hypergeom.pmf(0, population, number, sample)) for number in (wrong, wrong + 1)
    )
    assert missed >= 0.025
    assert wrong + sample == population or more < 0.025


def test_a_floor_never_narrows_and_needs_costs() -> None:
    labelled, production, _ = tables("net_no_error_seen")
    gross = post_stratified(labelled, production, net=False)
    assert gross.floor == ()
    without = production_sums(
        np.repeat([0, 4], 50), None, credit=[1.0, 0.4, 0.0, 0.0, 0.0], n_verdicts=5
    )
    plain = LabelledSample(human=np.eye(5)[[0] * 20 + [4] * 20], verdicts=np.repeat([0, 4], 20))
    assert post_stratified(plain, without).floor == ()


def test_limits_at_every_look_multiply_the_reach_that_is_printed() -> None:
    found = rate("net_no_error_seen", net=True).estimate
    assert found.interval is not None
    assert found.any_time is not None
    assert found.any_time.interval is not None
    value = found.value or 0.0
    wider = (value - found.any_time.interval[0]) / (value - found.interval[0])
    assert wider > 1
    top = min(1.0, value + wider * (found.interval[1] - value))
    assert found.any_time.interval[1] == pytest.approx(top)
