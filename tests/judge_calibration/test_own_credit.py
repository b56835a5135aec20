"""Workflows with their own credit, in every estimator, against sums over single runs."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.judge_calibration.calibrate import Calibration, calibrate
from calibration.judge_calibration.groups import (
    LabelledGroup,
    SharedCalibration,
    estimate_groups,
)
from calibration.judge_calibration.post_stratification import post_stratified
from calibration.judge_calibration.samples import (
    Design,
    LabelledSample,
    production_sums,
    right_inverse,
    verdict_rates,
)
from calibration.statistics.estimate import FloatArray, IntArray
from tests.analyses.worlds import known

# The second workflow pays less for partly right runs, and something for those that are wrong.
TABLES = np.array([[1.0, 0.4, 0.0], [1.0, 0.2, 0.1]])
N, LABELLED = 1200, 240


def drawn(seed: int = 1) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Return truth, verdicts, penalties and workflow of production."""
    rng = np.random.default_rng(seed)
    table = (rng.random(N) < 0.4).astype(np.int64)
    truth = np.where(table == 1, rng.choice(3, N, p=[0.3, 0.4, 0.3]), rng.choice(3, N))
    wrong = rng.random(N) < 0.2
    verdicts = np.where(wrong, rng.choice(3, N), truth)
    return truth, verdicts, np.maximum(0, rng.normal(-0.1, 0.3, N)).clip(0, 1), table


TRUTH, SAID, PENALTIES, TABLE = drawn()


def sample(table: IntArray | None = TABLE) -> LabelledSample:
    """Return the first runs as the labelled ones, which are a random part."""
    return LabelledSample(
        human=np.eye(3)[TRUTH[:LABELLED]],
        verdicts=SAID[:LABELLED],
        penalties=PENALTIES[:LABELLED],
        table=None if table is None else table[:LABELLED],
    )


def calibrated(
    tables: FloatArray = TABLES, table: IntArray | None = TABLE, design: Design = "production"
) -> Calibration:
    return calibrate(
        sample(table),
        production_verdicts=SAID,
        production_penalties=PENALTIES,
        production_table=table,
        credit=tables,
        design=design,
    )


def value(found: Calibration, name: str, *, net: bool = True) -> float:
    return known((found.estimates[name].net if net else found.estimates[name].gross).value)


@pytest.mark.parametrize("net", [True, False])
def test_every_estimator_scores_a_run_by_the_credit_of_its_workflow(net: bool) -> None:
    found = calibrated()
    penalty = PENALTIES if net else np.zeros(N)
    worth = np.maximum(0.0, TABLES[TABLE] - penalty[:, None])
    rows, own = np.arange(N), np.arange(LABELLED)
    score, said = worth[own, TRUTH[:LABELLED]], worth[rows, SAID]
    assert value(found, "human_only", net=net) == pytest.approx(score.mean(), abs=1e-9)
    assert value(found, "judge_raw", net=net) == pytest.approx(said.mean(), abs=1e-9)
    apart = [(score - said[:LABELLED])[SAID[:LABELLED] == k].mean() for k in range(3)]
    share = np.bincount(SAID) / N
    assert value(found, "post_stratified", net=net) == pytest.approx(
        said.mean() + share @ apart, abs=1e-9
    )
    counts = np.zeros((3, 3))
    np.add.at(counts, (TRUTH[:LABELLED], SAID[:LABELLED]), 1)
    inverse = right_inverse(verdict_rates(counts, pseudo_count=0.5))
    inverted = (inverse[SAID] * worth).sum() / N
    assert value(found, "inversion", net=net) == pytest.approx(inverted, abs=1e-9)
    if net:
        rest = said[LABELLED:].mean() - said[:LABELLED].mean()
        assert value(found, "ppi_plus_plus") == pytest.approx(
            score.mean() + known(found.power_tuning) * rest, abs=1e-9
        )
    for name, apart_by in (("bayesian", 0.03), ("bootstrap", 1e-9)):
        other = "inversion" if name == "bayesian" else "post_stratified"
        assert value(found, name, net=net) == pytest.approx(
            value(found, other, net=net), abs=apart_by
        )
        assert found.estimates[name].net.half_width == pytest.approx(
            found.estimates[other].net.half_width, rel=0.1
        )


def test_equal_tables_are_one_table() -> None:
    alike, one = calibrated(TABLES[[0, 0]]), calibrated(TABLES[0], None)
    for name in ("post_stratified", "inversion", "human_only", "judge_raw", "ppi_plus_plus"):
        for mine, other in (
            (alike.estimates[name].net, one.estimates[name].net),
            (alike.estimates[name].gross, one.estimates[name].gross),
        ):
            assert mine.value == pytest.approx(known(other.value), abs=1e-12)
            assert mine.half_width == (
                None if other.half_width is None else pytest.approx(other.half_width, abs=1e-12)
            )
    reference = calibrated(design="reference")
    assert reference.headline == "inversion"


def test_groups_and_repeated_tasks_take_the_credit_of_the_run() -> None:
    tasks = np.arange(N) // 4
    labelled = replace(sample(), clusters=tasks[:LABELLED])
    production = production_sums(
        SAID, PENALTIES, credit=TABLES, n_verdicts=3, tasks=tasks, table=TABLE
    )
    assert known(post_stratified(labelled, production).estimate.value) == pytest.approx(
        value(calibrated(), "post_stratified")
    )
    groups = []
    for group in range(4):
        of = np.arange(N) % 4 == group
        inside = of[:LABELLED] & (np.arange(LABELLED) < 100)
        groups.append(
            LabelledGroup(
                name=str(group),
                labelled=sample().where(inside),
                production=production_sums(
                    SAID[of], PENALTIES[of], credit=TABLES, n_verdicts=3, table=TABLE[of]
                ),
            )
        )
    shared = SharedCalibration(table=np.eye(3) * 9 + 1, names=["a", "b", "c"])
    truth = np.maximum(0.0, TABLES[TABLE, TRUTH] - PENALTIES)
    for found in estimate_groups(groups, shared):
        assert found.kind == "pooled"
        low, high = known(found.estimate.interval)
        assert low < truth[np.arange(N) % 4 == int(found.name)].mean() < high


def test_several_tables_without_knowing_which_are_refused() -> None:
    with pytest.raises(ValueError, match="table must have shape"):
        calibrated(TABLES, None)
    production = production_sums(SAID, None, credit=TABLES, n_verdicts=3, table=TABLE)
    with pytest.raises(ValueError, match="table of each trace is needed"):
        post_stratified(sample(None), production)
