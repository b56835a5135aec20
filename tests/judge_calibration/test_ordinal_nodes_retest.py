"""Grades in an order, answers at a question, and verdicts asked for again."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score  # type: ignore[import-untyped]

from calibration.judge_calibration.bias import (
    errors_by_node,
    node_quality,
    ordinal_agreement,
    retest,
)
from tests.agreement.tables import codes_from, jackknife_se

# Human grade 1 to 5 in rows.
GRADES = np.array(
    [[9, 3, 1, 0, 0], [2, 8, 4, 1, 0], [0, 3, 9, 5, 1], [0, 1, 2, 11, 6], [1, 0, 1, 4, 18]]
)

# The default tree: output, then fabrication, then all sub-goals, then a material error.
ALL_SUBGOALS = [1, 0, 0, -1, -1]
MATERIAL = [-1, 0, 1, -1, -1]


def test_within_one_and_quadratic_kappa_of_grades() -> None:
    found = ordinal_agreement(GRADES)
    # Diagonal 55, one step off 3+2+4+3+5+2+6+4 = 29, of 90.
    assert found.exact.value == pytest.approx(55 / 90)
    assert found.within_one.value == pytest.approx(84 / 90)
    human, judge = codes_from(GRADES).T
    witness = cohen_kappa_score(human, judge, weights="quadratic")
    assert found.kappa.value == pytest.approx(witness)
    assert found.bias == pytest.approx((judge - human).mean())
    # By chance: shares of the rows and columns that lie within one step.
    rows, columns = GRADES.sum(axis=1) / 90, GRADES.sum(axis=0) / 90
    near = sum(rows[i] * columns[j] for i in range(5) for j in range(5) if abs(i - j) <= 1)
    assert found.within_one_by_chance == pytest.approx(near)


def test_quadratic_kappa_error_equals_a_jackknife() -> None:
    """An independent witness of the error: leave out a trace of each cell in turn."""
    left = []
    for cell in map(tuple, np.argwhere(GRADES > 0)):
        fewer = GRADES.copy()
        fewer[cell] -= 1
        left += [ordinal_agreement(fewer).kappa.value] * int(GRADES[cell])
    assert ordinal_agreement(GRADES).kappa.se == pytest.approx(jackknife_se(left), rel=0.05)
    # A verdict that is no grade is never within one.
    found = ordinal_agreement([[4, 0, 1], [0, 4, 1]])
    assert found.within_one.value == 0.8
    assert found.kappa.n == 8


def test_grades_that_show_nothing_say_so() -> None:
    none = ordinal_agreement(np.zeros((5, 5)))
    assert not none.exact.ok
    assert not none.kappa.ok
    assert (none.bias, none.within_one_by_chance) == (None, None)
    one = ordinal_agreement([[9, 0], [0, 0]])
    assert one.kappa.status.startswith("not_estimable: undefined without variation")
    perfect = ordinal_agreement(np.eye(3) * 10).kappa
    assert (perfect.value, perfect.status) == (1.0, "no disagreement seen")
    constant = ordinal_agreement([[9, 0], [4, 0]]).kappa
    assert constant.interval is None
    with pytest.raises(ValueError, match="at least two grades"):
        ordinal_agreement([[3]])


def test_a_question_by_hand() -> None:
    #            complete plus minus halluc. abandoned no_verdict
    table = [
        [20, 3, 2, 1, 0, 1], [2, 6, 4, 0, 0, 0], [5, 3, 12, 1, 0, 0],
        [3, 0, 2, 5, 0, 0], [0, 0, 0, 0, 9, 0],
    ]  # fmt: skip
    goals, material = node_quality(table, ALL_SUBGOALS), node_quality(table, MATERIAL)
    # Both come to it on the first three rows and columns: yes/yes 20, yes/no 5, no/yes 7, no/no 25.
    assert goals.table == ((20.0, 5.0), (7.0, 25.0))
    assert goals.accuracy.value == pytest.approx(45 / 57)
    assert goals.yes_recall.value == pytest.approx(20 / 25)
    assert goals.yes_precision.value == pytest.approx(20 / 27)
    assert goals.no_recall.value == pytest.approx(25 / 32)
    assert goals.no_precision.value == pytest.approx(25 / 30)
    # Humans alone: verdict hallucinated 1 + 1, no verdict 1. Judge alone: 3 + 2 hallucinated runs.
    assert (goals.only_human, goals.only_judge) == (3.0, 5.0)
    # Partial runs only: human yes is partial_minus.
    assert material.table == ((12.0, 3.0), (4.0, 6.0))


def test_a_question_that_nobody_comes_to_is_not_estimable() -> None:
    table = np.diag([5.0, 0, 0, 5, 5])
    found = node_quality(table, MATERIAL)
    assert not found.accuracy.ok
    assert "label more" in found.yes_recall.status
    with pytest.raises(ValueError, match="answers must have length 5"):
        node_quality(table, [1, 0])


def test_errors_are_split_by_the_first_question_that_parts() -> None:
    parting = [[None, "a", "a"], ["a", None, "b"], ["a", "b", None]]
    assert errors_by_node(np.diag([3, 4, 5]), parting) == {}
    found = errors_by_node([[0, 0, 0, 2], [0, 4, 9, 0], [1, 0, 0, 0]], parting)
    assert list(found.items()) == [("b", 9.0), (None, 2.0), ("a", 1.0)]


def test_flips_by_hand() -> None:
    # Five traces: two keep 0, one goes 0 to 1, one 1 to 0 and back, one was asked about once.
    found = retest([[0, 0, -1], [0, 0, 0], [0, 1, -1], [1, 0, 1], [1, -1, -1]], n_verdicts=3)
    assert (found.changed.value, found.changed.n) == (0.5, 4)
    assert found.differ.value == pytest.approx((0 + 0 + 1 + 2 / 3) / 4)
    assert [share.value for share in found.per_verdict] == [pytest.approx(1 / 3), 1.0, None]
    assert found.most_asked == 3


def test_a_judge_asked_once_has_no_retest() -> None:
    for samples in (np.zeros((3, 1), dtype=np.int64), np.zeros((0, 0), dtype=np.int64)):
        found = retest(samples, n_verdicts=2)
        assert "judge some traces twice" in found.changed.status
        assert not found.differ.ok
    steady = retest([[0, 0]] * 20, n_verdicts=2)
    assert steady.differ.interval == pytest.approx((0, 0.16843), abs=1e-5)
    with pytest.raises(ValueError, match="samples must be in"):
        retest([[0, 5]], n_verdicts=2)
    with pytest.raises(ValueError, match="must be integers"):
        retest([0, 1], n_verdicts=2)
