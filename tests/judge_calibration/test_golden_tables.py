"""The five-class tables: outside values through the public call."""

import json
from pathlib import Path

import numpy as np
import pytest

from calibration.judge_calibration.calibrate import Calibration, calibrate_tables
from tests.judge_calibration.test_golden_peers import on_logit_scale

TABLES = json.loads(
    (Path(__file__).parents[1] / "golden" / "judge_tables.json").read_text(encoding="utf-8")
)
CASE_A, CASE_B, CREDIT = TABLES["case_a"], TABLES["case_b"], TABLES["credit"]


def case_a(pseudo_count: float) -> Calibration:
    return calibrate_tables(
        CASE_A["reference_confusion_true_x_judge"],
        CASE_A["production_judge_counts"],
        credit=CREDIT,
        design="reference",
        pseudo_count=pseudo_count,
    )


def case_b() -> Calibration:
    return calibrate_tables(
        CASE_B["production_labelled_true_x_judge"],
        CASE_B["production_judge_counts_all_incl_labelled"],
        credit=CREDIT,
        design="production",
    )


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


def test_inversion_with_half_a_pseudo_count() -> None:
    estimate = case_a(0.5).estimates["inversion"].net
    assert estimate.interval is not None
    assert [estimate.value, *estimate.interval] == pytest.approx(
        CASE_A["smoothed_half_delta"], abs=1e-12
    )


def test_ignoring_the_calibration_sample_would_give_the_wrong_short_interval() -> None:
    result = case_a(0.5)
    value, production = CASE_A["smoothed_half_delta"][0], result.inversion.variance_production
    reach = 1.959963984540054 * np.sqrt(production)
    assert [value - reach, value + reach] == pytest.approx(
        CASE_A["WRONG_ignore_calibration_ci"], abs=2e-4
    )


@pytest.mark.parametrize(("result", "case"), [(case_a(0.5), CASE_A), (case_b(), CASE_B)])
def test_judge_as_it_is_has_no_interval(result: Calibration, case: dict[str, list[float]]) -> None:
    estimate = result.estimates["judge_raw"].net
    assert estimate.value == pytest.approx(case["naive"][0], abs=1e-12)
    assert estimate.interval is None


def test_post_stratified() -> None:
    result = case_b()
    estimate = result.estimates["post_stratified"].net
    assert result.headline == "post_stratified"
    assert estimate.interval is not None
    assert [estimate.value, *estimate.interval] == pytest.approx(CASE_B["poststrat_t"], abs=1e-12)
    assert result.post_stratification.stratum_means == pytest.approx(
        CASE_B["stratum_mean_credit_given_judge_class"], abs=1e-12
    )
    shares = [share.value for share in result.class_shares["post_stratified"]]
    assert shares == pytest.approx(CASE_B["prevalence_poststrat"], abs=1e-12)


def test_human_only_and_judge_quality() -> None:
    result = case_b()
    estimate = result.estimates["human_only"].net
    assert estimate.interval is not None
    assert [estimate.value, *estimate.interval] == pytest.approx(
        on_logit_scale(CASE_B["human_only_t"]), abs=1e-12
    )
    assert result.judge.kappa.value == pytest.approx(CASE_B["kappa"], abs=1e-12)
    assert result.judge.accuracy.value == pytest.approx(CASE_B["accuracy"], abs=1e-12)


def test_a_class_with_six_labels_refuses_inversion_and_warns() -> None:
    """The abandoned class has six labels: fewer than the ten that inversion asks for."""
    result = case_b()
    assert {(n.code, n.estimator) for n in result.refusals} == {
        ("few_reference_labels", "inversion"),
        ("few_reference_labels", "bayesian"),
    }
    assert result.estimates["inversion"].net.value is None
    assert [n.code for n in result.warnings] == ["class_few_labels"]
    assert result.class_shares["post_stratified"][4].interval is None


def test_a_reference_set_refuses_what_needs_a_random_sample() -> None:
    result = case_a(0.5)
    refused = {(n.code, n.estimator) for n in result.refusals}
    assert refused == {
        ("no_probability_sample", "post_stratified"),
        ("no_probability_sample", "ppi_plus_plus"),
        ("no_probability_sample", "human_only"),
    }
    assert result.estimates["post_stratified"].net.status.startswith("not_estimable")
