"""Lee's interval beside its special cases, and the gap between two calibrations."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibration.judge_calibration.calibrate import Calibration, calibrate, transport_gap
from calibration.judge_calibration.confusion_inversion import lee
from calibration.judge_calibration.samples import (
    LabelledSample,
    production_sums,
    production_sums_from_counts,
)

TABLE = [[40, 10], [6, 44]]


def test_a_score_is_a_stretched_rate() -> None:
    rate = lee(TABLE, production_sums_from_counts([500, 300], credit=[1.0, 0.0]))
    score = lee(TABLE, production_sums_from_counts([500, 300], credit=[0.9, 0.4]))
    assert rate.interval is not None
    assert score.value == pytest.approx(0.4 + 0.5 * (rate.value or 0))
    assert score.interval == pytest.approx([0.4 + 0.5 * limit for limit in rate.interval])
    other = production_sums_from_counts([300, 500], credit=[0.0, 1.0])
    turned = lee([row[::-1] for row in TABLE[::-1]], other)
    assert turned.interval == pytest.approx(rate.interval)
    # A verdict that is no class counts against the run.
    three = production_sums_from_counts([500, 200, 100], credit=[1.0, 0.0])
    two = production_sums_from_counts([500, 300], credit=[1.0, 0.0])
    assert lee([[40, 7, 3], [6, 40, 4]], three) == lee(TABLE, two)


@pytest.mark.parametrize(
    ("table", "counts", "credit", "why"),
    [
        ([[20, 20], [20, 20]], [5, 5], [1.0, 0.0], "no better than guessing"),
        ([[0, 0], [6, 44]], [5, 5], [1.0, 0.0], "reference labels of both classes"),
        (TABLE, [0, 0], [1.0, 0.0], "needs production verdicts"),
        (TABLE, [5, 5], [0.5, 0.5], "the same credit"),
        ([[900, 100], [300, 700]], [0, 9000], [1.0, 0.0], "outside [0, 1]"),
    ],
)
def test_what_it_is_not_for_is_said(
    table: list[list[int]], counts: list[int], credit: list[float], why: str
) -> None:
    estimate = lee(table, production_sums_from_counts(counts, credit=credit))
    assert not estimate.ok
    assert why in estimate.status


def test_costs_are_left_to_the_inversion() -> None:
    verdicts, costs = np.repeat([0, 1], 50), np.linspace(0, 0.5, 100)
    production = production_sums(verdicts, costs, credit=[1.0, 0.0], n_verdicts=2)
    assert "read inversion" in lee(TABLE, production).status
    with pytest.raises(ValueError, match="shape"):
        lee(np.eye(3, dtype=int), production)


def both(seed: int = 0, n: int = 150) -> tuple[Calibration, Calibration]:
    rng = np.random.default_rng(seed)
    rates = np.array([[0.85, 0.1, 0.05], [0.1, 0.8, 0.1], [0.05, 0.1, 0.85]])

    def draw(size: int, mix: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        human = rng.choice(3, size, p=mix)
        said = (rng.random(size)[:, None] > rates[human].cumsum(axis=1)).sum(axis=1)
        return human, said.clip(0, 2), rng.choice([0.0, 0.3], size)

    production, reference = draw(3000, [0.6, 0.2, 0.2]), draw(300, [0.3, 0.3, 0.4])
    settings: dict[str, Any] = {
        "production_verdicts": production[1], "production_penalties": production[2],
        "credit": [1.0, 0.4, 0.0],
    }  # fmt: skip
    human, said, penalties = (of[:n] for of in production)
    by_reference = calibrate(
        LabelledSample(human=np.eye(3)[reference[0]], verdicts=reference[1]),
        design="reference", estimators=["inversion"], **settings,
    )  # fmt: skip
    by_production = calibrate(
        LabelledSample(human=np.eye(3)[human], verdicts=said, penalties=penalties),
        design="production", estimators=["post_stratified"], **settings,
    )  # fmt: skip
    return by_reference, by_production


def test_the_gap_is_the_difference_with_both_errors() -> None:
    by_reference, by_production = both()
    found = transport_gap(by_reference, by_production)
    inverted = by_reference.estimates["inversion"].net
    direct = by_production.estimates["post_stratified"].net
    assert found.gap.net.value == pytest.approx((inverted.value or 0) - (direct.value or 0))
    # Independent errors, less what the verdicts of production share.
    apart = np.hypot(inverted.se or 0, direct.se or 0)
    assert found.gap.net.se == pytest.approx(apart, rel=0.1)
    assert (found.gap.net.se or 1) < apart
    assert found.headline == "production"
    assert found.gap.gross.value != found.gap.net.value
    # Few production labels leave the headline to the reference.
    assert transport_gap(*both(n=60)).headline == "reference"


def test_calibrations_that_do_not_belong_together_are_refused() -> None:
    by_reference, by_production = both()
    with pytest.raises(ValueError, match="must have these designs"):
        transport_gap(by_production, by_reference)
    other = both(seed=1)[0]
    with pytest.raises(ValueError, match="must be of one production"):
        transport_gap(other, by_production)
    without = replace(by_production.post_stratification, variance_labels=None)
    gap = transport_gap(by_reference, replace(by_production, post_stratification=without)).gap
    assert "label more" in gap.net.status
