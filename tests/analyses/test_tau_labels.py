"""Forty real runs, labelled by two reviewers blind to each other and to the grade of the run."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration.agreement.annotators import pairwise_agreement
from calibration.agreement.coefficients import agreement
from tests.classes import OUTCOMES

LABELS = Path(__file__).parents[1] / "fixtures" / "tau_labels.csv"


def test_agreement_of_the_two_reviewers() -> None:
    labels = pd.read_csv(LABELS, keep_default_na=False)
    # Every run has one label of each with a reason.
    assert len(labels) == 80
    assert labels.groupby("trace_id")["reviewer"].nunique().eq(2).all()
    assert set(labels["outcome"]) <= set(OUTCOMES)
    assert labels["rationale"].str.len().between(10, 250).all()

    wide = labels.pivot_table(
        index="trace_id", columns="reviewer", values="outcome", aggfunc="first"
    )
    codes = wide.map(OUTCOMES.index).to_numpy(dtype=np.int64)
    result = agreement(codes, n_classes=len(OUTCOMES))
    # 32 of 40 pairs agree. Labels by class: 18, 7, 29, 8, 18 of 80.
    # alpha = 1 - (80 - 1) * 16 / (80**2 - (18**2 + 7**2 + 29**2 + 8**2 + 18**2))
    assert result.percent_agreement.value == pytest.approx(0.8)
    assert result.alpha.value == pytest.approx(1 - 79 * 16 / (6400 - 1602))
    (pair,) = pairwise_agreement(codes, n_classes=len(OUTCOMES))
    assert ["".join(map(str, row)) for row in pair.table] == [
        "65100", "00200", "001300", "00040", "00009",
    ]  # fmt: skip
