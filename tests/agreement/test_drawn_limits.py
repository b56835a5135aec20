"""Limits of agreement from drawn weights of items: few items, common classes, many items."""

import io
import time

import numpy as np
import pandas as pd
import pytest

from calibration.agreement.coefficients import FLEISS_KAPPA, GWET_AC, KRIPPENDORFF_ALPHA, estimate
from calibration.agreement.inference import drawn_interval, drawn_kappa_interval
from calibration.agreement.ratings import class_counts, count_patterns
from calibration.statistics.estimate import IntArray
from tests.golden_cases import headline_2

NAMED = {"alpha": KRIPPENDORFF_ALPHA, "fleiss": FLEISS_KAPPA, "ac1": GWET_AC}
FILES = ("agreement_common_class", "agreement_four_raters_missing")


def codes_of(name: str) -> IntArray:
    given = headline_2()[name]["inputs"]
    table = pd.read_csv(io.StringIO(given["file"]), index_col=0)
    place = {text: k for k, text in enumerate(given["classes"])}
    return table.map(lambda cell: place.get(cell, -1)).to_numpy(dtype=np.int64)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("coefficient", NAMED)
def test_golden_limits(name: str, coefficient: str) -> None:
    expected = headline_2()[name]["expected"][coefficient]
    codes = codes_of(name)
    found = drawn_interval(NAMED[coefficient], class_counts(codes, n_classes=5))
    assert found == pytest.approx(expected["interval"], rel=1e-9)
    seen = estimate(NAMED[coefficient], count_patterns(codes, n_classes=5))
    assert seen.value == pytest.approx(expected["value"], rel=1e-9)
    # The jackknife of before has other limits.
    assert seen.interval != pytest.approx(expected["interval"], rel=1e-3)


def test_golden_kappa() -> None:
    case = headline_2()["kappa_few"]
    found = drawn_kappa_interval(case["inputs"]["table"])
    assert found == pytest.approx(case["expected"]["interval"], rel=1e-9)


def test_without_two_classes_or_five_items_there_are_no_limits() -> None:
    few = np.array([[2, 0], [0, 2], [1, 1], [2, 0]])
    assert drawn_interval(KRIPPENDORFF_ALPHA, few) is None
    assert drawn_interval(KRIPPENDORFF_ALPHA, np.array([[2, 0]] * 30)) is None
    assert drawn_kappa_interval([[3, 0], [0, 1]]) is drawn_kappa_interval([[30, 0], [0, 0]]) is None
    # Perfect agreement on two classes has limits.
    perfect = drawn_interval(KRIPPENDORFF_ALPHA, np.array([[2, 0]] * 20 + [[0, 2]] * 10))
    assert perfect is not None
    assert 0.5 < perfect[0] < perfect[1] < 1


def test_items_of_a_task_share_a_weight() -> None:
    counts = np.array([[2, 0], [1, 1], [0, 2]] * 20)
    apart = drawn_interval(KRIPPENDORFF_ALPHA, counts)
    alone = drawn_interval(KRIPPENDORFF_ALPHA, counts, clusters=np.arange(60))
    together = drawn_interval(KRIPPENDORFF_ALPHA, counts, clusters=np.repeat(np.arange(6), 10))
    assert apart is not None
    assert together is not None
    assert alone == pytest.approx(apart)
    assert together != pytest.approx(apart, abs=1e-3)


def test_many_equal_items_share_a_draw_and_memory_is_bounded() -> None:
    """3,000 items: the limits are those of 3,000 weights, but for the draws."""
    rows = np.array([[3, 0, 0], [2, 1, 0], [0, 3, 0], [0, 1, 2], [1, 1, 1]])
    counts = rows[np.random.default_rng(1).integers(0, 5, 3_000)]
    many = drawn_interval(KRIPPENDORFF_ALPHA, counts)
    apart = drawn_interval(KRIPPENDORFF_ALPHA, counts, clusters=np.arange(3_000))
    assert many is not None
    assert apart is not None
    assert many == pytest.approx(apart, abs=0.004)
    began = time.process_time()
    drawn_interval(KRIPPENDORFF_ALPHA, rows[np.random.default_rng(2).integers(0, 5, 100_000)])
    assert time.process_time() - began < 5
