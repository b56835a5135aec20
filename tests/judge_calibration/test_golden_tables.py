"""The five-class tables: outside values through the public call."""

from functools import cache

import numpy as np
import pytest

from calibration.judge_calibration.calibrate import Calibration, calibrate_tables
from tests.judge_calibration.test_golden_peers import golden, on_logit_scale, with_limits

TABLES = golden("judge_tables.json")
CASE_A, CASE_B, CREDIT = TABLES["case_a"], TABLES["case_b"], TABLES["credit"]


@cache
def case_a(pseudo_count: float) -> Calibration:
    table, counts = CASE_A["reference_confusion_true_x_judge"], CASE_A["production_judge_counts"]
    return calibrate_tables(
        table, counts, credit=CREDIT, design="reference", pseudo_count=pseudo_count
    )


@cache
def case_b() -> Calibration:
    table = CASE_B["production_labelled_true_x_judge"]
    counts = CASE_B["production_judge_counts_all_incl_labelled"]
    return calibrate_tables(table, counts, credit=CREDIT, design="production")


def test_plain_inversion() -> None:
    result = case_a(0)
    estimate = result.estimates["inversion"].net
    assert result.headline == "inversion"
    assert estimate.value == pytest.approx(CASE_A["theta_plain"], abs=1e-12)
    assert estimate.interval == pytest.approx(CASE_A["ci95_plain_delta"], abs=1e-9)
    inversion = result.inversion
    assert inversion.prevalence == pytest.approx(CASE_A["prevalence_plain_inversion"], abs=1e-12)
    assert inversion.verdict_weights == pytest.approx(CASE_A["credit_weights_Cinv_w"], abs=1e-12)
    assert inversion.sigma_min == pytest.approx(CASE_A["sigma_min"], abs=1e-12)
    assert inversion.variance_reference == pytest.approx(CASE_A["delta_var_calibration"], rel=1e-9)
    assert inversion.variance_production == pytest.approx(CASE_A["delta_var_production"], rel=1e-9)
    assert np.array(inversion.rates) == pytest.approx(
        np.array(CASE_A["C_row_normalised"]), abs=1e-11
    )


def test_inversion_with_half_a_pseudo_count_and_with_the_calibration_sample_ignored() -> None:
    result, outside = case_a(0.5), CASE_A["smoothed_half_delta"]
    assert with_limits(result.estimates["inversion"].net) == pytest.approx(outside, abs=1e-12)
    # Without the calibration sample the interval would be short, and wrong.
    reach = 1.959963984540054 * np.sqrt(result.inversion.variance_production)
    wrong = CASE_A["WRONG_ignore_calibration_ci"]
    assert [outside[0] - reach, outside[0] + reach] == pytest.approx(wrong, abs=2e-4)


def test_posterior_and_bootstrap_of_a_reference_set() -> None:
    result = case_a(0.5)
    posterior, drawn = (result.estimates[name].net for name in ("bayesian", "bootstrap"))
    assert with_limits(posterior) == pytest.approx(CASE_A["bayes_dirichlet_0.2_each_IS"], abs=0.003)
    expected = np.array(CASE_A["bayes_prevalence_mean_lo_hi"]).T.tolist()
    for share, values in zip(result.class_shares["bayesian"], expected, strict=True):
        assert with_limits(share) == pytest.approx(values, abs=0.003)
    assert with_limits(drawn) == pytest.approx(CASE_A["bootstrap_B20000_seed0"], abs=0.006)
    refused = {(n.code, n.estimator) for n in result.refusals}
    random_only = ("post_stratified", "ppi_plus_plus", "human_only")
    assert refused == {("no_probability_sample", name) for name in random_only}
    assert result.estimates["post_stratified"].net.status.startswith("not_estimable")


def test_estimates_of_a_sample_of_production() -> None:
    result = case_b()
    assert result.headline == "post_stratified"
    for name, outside in (
        ("post_stratified", on_logit_scale(CASE_B["poststrat_t"])),
        ("ppi_plus_plus", CASE_B["ppi_py_auto"]),
        ("human_only", on_logit_scale(CASE_B["human_only_t"])),
    ):  # fmt: skip
        assert with_limits(result.estimates[name].net) == pytest.approx(outside, abs=1e-12), name
    tuning = result.power_tuning
    assert tuning is not None
    assert 0 < tuning < 1
    assert result.post_stratification.stratum_means == pytest.approx(
        CASE_B["stratum_mean_credit_given_judge_class"], abs=1e-12
    )
    shares = [share.value for share in result.class_shares["post_stratified"]]
    assert shares == pytest.approx(CASE_B["prevalence_poststrat"], abs=1e-12)
    assert result.judge.kappa.value == pytest.approx(CASE_B["kappa"], abs=1e-12)
    assert result.judge.accuracy.value == pytest.approx(CASE_B["accuracy"], abs=1e-12)
    # The abandoned class has six labels: fewer than the ten that inversion asks for.
    refused = {(n.code, n.estimator) for n in result.refusals}
    assert refused == {("few_reference_labels", name) for name in ("inversion", "bayesian")}
    assert result.estimates["inversion"].net.value is None
    assert result.warnings == ()
    assert all(share.interval for share in result.class_shares["post_stratified"])
