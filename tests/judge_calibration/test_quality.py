"""Confusion of judge and humans: accuracy, kappa, recall and precision."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.judge_calibration.samples import confusion, confusion_from_table, judge_quality
from calibration.statistics.contingency import kappa_of_table
from calibration.statistics.intervals import wilson_interval


def test_a_verdict_that_is_no_class_counts_as_wrong() -> None:
    with_extra = judge_quality(confusion_from_table([[8, 1, 1], [1, 8, 1]]))
    assert with_extra.accuracy.value == pytest.approx(0.8)
    assert with_extra.per_class[0].recall.value == pytest.approx(0.8)
    assert with_extra.per_class[0].precision.value == pytest.approx(8 / 9)
    # Agreement .8; by chance .5 x 9/20 twice: (.8 - .45) / .55, the value of scikit-learn too.
    assert with_extra.kappa.value == pytest.approx(0.35 / 0.55)


def test_reviewers_who_differ_count_by_their_shares() -> None:
    crossed = confusion([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], np.array([0, 0, 1]))
    assert crossed.table.tolist() == [[1.5, 0.0], [0.5, 1.0]]
    assert judge_quality(crossed).accuracy.value == pytest.approx(2.5 / 3)


def test_equal_weights_are_no_weights() -> None:
    human, verdicts = np.eye(2)[[0, 0, 1, 1]], np.array([0, 1, 1, 1])
    plain = confusion(human, verdicts)
    weighted = confusion(human, verdicts, weights=np.full(4, 7.0))
    assert weighted.table == pytest.approx(plain.table)
    uneven = confusion(human, verdicts, weights=np.array([1.0, 1.0, 1.0, 5.0]))
    assert uneven.table.sum() == pytest.approx(64 / 28)


def test_kappa_of_a_judge_is_that_of_two_reviewers() -> None:
    table = [[9, 2], [3, 26]]
    assert judge_quality(confusion_from_table(table)).kappa == kappa_of_table(table)


@pytest.mark.parametrize(
    ("human", "verdicts", "match"),
    [
        ([[0.5, 0.4]], [0], "sum to 1"),
        ([[1, 0]], [0, 1], "verdicts must have shape"),
        ([[1, 0]], [-1], "verdicts must be in"),
        ([1, 0], [0, 1], "human must have shape"),
        ([[2, -1]], [0], r"human must be in \[0, 1\]"),
    ],
)
def test_bad_input_is_refused(human: Any, verdicts: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        confusion(human, np.array(verdicts))


@settings(max_examples=50, deadline=None)
@given(cells=st.lists(st.integers(0, 20), min_size=12, max_size=12), seed=st.integers(0, 50))
def test_renaming_classes_changes_nothing(cells: list[int], seed: int) -> None:
    table = np.array(cells).reshape(3, 4)
    order = np.random.default_rng(seed).permutation(3)
    renamed = table[order][:, [*order, 3]]
    first, second = (judge_quality(confusion_from_table(t)) for t in (table, renamed))
    assert first.kappa.value == pytest.approx(second.kappa.value, abs=1e-9)
    assert first.kappa.se == pytest.approx(second.kappa.se, abs=1e-7)
    assert first.accuracy == second.accuracy
    for new, old in enumerate(order.tolist()):
        assert first.per_class[old] == second.per_class[new]
    for quality in first.per_class:
        if quality.recall.interval is not None and quality.recall.value is not None:
            lower, upper = quality.recall.interval
            assert 0 <= lower <= quality.recall.value <= upper <= 1


def test_every_share_has_its_own_effective_number() -> None:
    """Six hits of weight 4 and three misses of 1: 24/27, (96 (1/9)^2 + 3 (8/9)^2) / 27^2.

    Verdict 0 has weights of 4 alone: its precision is that of 8 traces, 6 of them right.
    """
    human = np.eye(2)[[0] * 6 + [1] * 2 + [0] * 3 + [1] * 9]
    weights = np.repeat([4.0, 1.0], [8, 12])
    crossed = confusion(human, np.repeat([0, 1], [8, 12]), weights=weights)
    first = judge_quality(crossed).per_class[0]
    recall = 24 / 27
    effective = recall / 9 / ((96 / 81 + 3 * 64 / 81) / 27**2)
    assert first.recall.value == pytest.approx(recall)
    assert first.recall.interval == pytest.approx(
        wilson_interval(recall * effective, effective, confidence_level=0.95)
    )
    assert first.precision.interval == pytest.approx(wilson_interval(6, 8, confidence_level=0.95))
    assert (first.n_human, first.n_judge) == pytest.approx((27**2 / 99, 8))
    # Equal weights are none.
    same = judge_quality(confusion(human, np.repeat([0, 1], [8, 12]), weights=np.full(20, 3.0)))
    assert same == judge_quality(confusion(human, np.repeat([0, 1], [8, 12])))
