"""Counts of real judges: what other packages and independent code make of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.judge_calibration.calibrate import Calibration, calibrate_tables
from calibration.statistics.estimate import Estimate


def golden(name: str) -> Any:
    return json.loads((Path(__file__).parents[1] / "golden" / name).read_text(encoding="utf-8"))


CASES: list[dict[str, Any]] = golden("judge_peers.json")
BINARY = [case for case in CASES if len(case["credit"]) == 2]
GRADES = [case for case in CASES if len(case["credit"]) > 2]


def with_limits(estimate: Estimate) -> list[float | None]:
    return [estimate.value, *(estimate.interval or ())]


def on_logit_scale(outside: list[float]) -> list[float]:
    """Return an outside mean whose limits are value -+ t se, with limits on the logit scale."""
    value, _, high = outside
    reach = (high - value) / (value * (1 - value))
    ends = np.log(value / (1 - value)) + np.array([-reach, reach])
    return [value, *(1 / (1 + np.exp(-ends))).tolist()]


def by_reference(case: dict[str, Any], **settings: Any) -> Calibration:
    return calibrate_tables(
        case["labelled_true_x_judge"], case["unlabelled_judge_counts"], credit=case["credit"],
        design="reference", force=True, **settings,
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_estimates_from_production_labels(case: dict[str, Any]) -> None:
    table = np.array(case["labelled_true_x_judge"])
    result = calibrate_tables(
        table, table.sum(axis=0) + case["unlabelled_judge_counts"], credit=case["credit"],
        design="production", estimators=["post_stratified", "ppi_plus_plus", "human_only"],
    )  # fmt: skip
    for name in ("post_stratified", "ppi_plus_plus", "human_only"):
        outside = case[name] if name == "ppi_plus_plus" else on_logit_scale(case[name])
        assert with_limits(result.estimates[name].net) == pytest.approx(outside, abs=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_inversion_plain_and_smoothed(case: dict[str, Any]) -> None:
    plain = by_reference(case, pseudo_count=0, estimators=["inversion"])
    value = plain.estimates["inversion"].net.value
    assert value == pytest.approx(case["inversion_plain"], abs=1e-12)
    smoothed = with_limits(by_reference(case, estimators=["inversion"]).estimates["inversion"].net)
    assert smoothed == pytest.approx(case["inversion_smoothed"], abs=1e-12)


@pytest.mark.parametrize("case", BINARY, ids=lambda case: case["name"])
def test_two_classes(case: dict[str, Any]) -> None:
    result = by_reference(case, estimators=["lee", "judge_raw"])
    assert with_limits(result.estimates["lee"].net) == pytest.approx(case["lee"], abs=1e-12)
    assert result.estimates["judge_raw"].net.value == pytest.approx(case["judge_raw"], abs=1e-12)
    assert result.judge.kappa.value == pytest.approx(case["kappa"], abs=1e-12)
    passed, failed = result.class_shares["lee"][1], result.class_shares["lee"][0]
    assert with_limits(passed) == pytest.approx(case["lee"], abs=1e-12)
    assert failed.value == pytest.approx(1 - case["lee"][0])


@pytest.mark.parametrize("case", GRADES, ids=lambda case: case["name"])
def test_posterior_with_flat_prior_equals_nuts(case: dict[str, Any]) -> None:
    """These judges are refused by default; the value is there when it is forced."""
    result = by_reference(case, prior=1.0, estimators=["bayesian"])
    estimate = result.estimates["bayesian"].net
    assert estimate.status.startswith("not_estimable")
    assert with_limits(estimate) == pytest.approx(case["posterior_flat_prior"], abs=0.008)
    shares = [share.value for share in result.class_shares["bayesian"]]
    assert shares == pytest.approx(case["prevalence_flat_prior"], abs=0.008)
