"""Confusion of judge and humans: accuracy, kappa, recall and precision."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.judge_calibration.samples import (
    cohen_kappa,
    confusion,
    confusion_from_table,
    judge_quality,
)

GOLDEN = [
    entry
    for entry in json.loads(
        (Path(__file__).parents[1] / "golden" / "agreement.json").read_text("utf-8")
    )
    if entry["coefficient"] == "cohen_kappa" and entry["weights"] == "identity"
]


def table_of(entry: dict[str, Any]) -> list[list[int]]:
    if entry["data_kind"] == "table_rater1_x_rater2":
        return [list(row) for row in entry["data"]]
    names = entry["categories"]
    table = np.zeros((len(names), len(names)), dtype=int)
    for first, second in zip(*entry["data"], strict=True):
        table[names.index(first), names.index(second)] += 1
    return [list(row) for row in table.tolist()]


@pytest.mark.parametrize("entry", GOLDEN, ids=lambda e: e["name"])
def test_kappa_equals_outside_value(entry: dict[str, Any]) -> None:
    estimate = cohen_kappa(confusion_from_table(table_of(entry)))
    assert estimate.value == pytest.approx(entry["expected"], abs=max(1e-6, entry["tolerance"]))
    if entry["se"] is not None:
        # Some of the sources divide by n - 1 where Fleiss, Cohen and Everitt divide by n.
        assert estimate.se == pytest.approx(entry["se"], rel=1.5 / estimate.n + 1e-4)


def test_kappa_standard_error_by_hand() -> None:
    """Table [[10, 2], [3, 31]] / 46, agreement a = 41/46, chance c = (12 x 13 + 34 x 33) / 46^2.

    For two classes: sum p_ij (1[i=j] - (1 - k)(p_.i + p_j.))^2 - (k - c (1 - k))^2, over
    n (1 - c)^2, worked out cell by cell.
    """
    p = [[10 / 46, 2 / 46], [3 / 46, 31 / 46]]
    row, column = [12 / 46, 34 / 46], [13 / 46, 33 / 46]
    chance = row[0] * column[0] + row[1] * column[1]
    kappa = (41 / 46 - chance) / (1 - chance)
    total = 0.0
    for i in (0, 1):
        for j in (0, 1):
            total += p[i][j] * ((i == j) - (1 - kappa) * (column[i] + row[j])) ** 2
    variance = (total - (kappa - chance * (1 - kappa)) ** 2) / (46 * (1 - chance) ** 2)
    estimate = cohen_kappa(confusion_from_table([[10, 2], [3, 31]]))
    assert estimate.value == pytest.approx(kappa)
    assert estimate.se == pytest.approx(variance**0.5)


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


def test_perfect_and_constant_judges_say_what_they_cannot_show() -> None:
    perfect = cohen_kappa(confusion_from_table([[10, 0], [0, 10]]))
    assert (perfect.value, perfect.status) == (1.0, "no disagreement seen")
    assert perfect.interval == pytest.approx((1 - 0.16843 / 0.5, 1.0), abs=1e-4)
    constant = cohen_kappa(confusion_from_table([[82, 0], [18, 0]]))
    assert constant.value == pytest.approx(0.0)
    assert constant.interval is None
    assert not cohen_kappa(confusion_from_table([[10, 0], [0, 0]])).ok
    assert not cohen_kappa(confusion_from_table([[0, 0], [0, 0]])).ok


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
