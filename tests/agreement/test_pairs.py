"""Agreement of every two reviewers."""

import numpy as np
import pytest

from calibration.agreement.annotators import pairwise_agreement
from calibration.agreement.coefficients import agreement


def test_tables_count_shared_items_by_the_classes_of_both() -> None:
    pairs = pairwise_agreement([[0, 1, -1], [0, 0, 2], [2, -1, 2]], n_classes=3)
    assert [(p.first, p.second, p.n_shared) for p in pairs] == [(0, 1, 2), (0, 2, 2), (1, 2, 1)]
    assert pairs[0].table == ((1, 1, 0), (0, 0, 0), (0, 0, 0))
    assert pairs[1].table == ((0, 0, 1), (0, 0, 0), (0, 0, 1))


def test_a_pair_equals_the_agreement_of_its_two_columns() -> None:
    codes = np.random.default_rng(3).integers(-1, 4, size=(60, 4))
    for pair in pairwise_agreement(codes, n_classes=4):
        both = codes[:, [pair.first, pair.second]]
        expected = agreement(both, n_classes=4)
        assert pair.alpha.value == pytest.approx(expected.alpha.value)
        assert pair.alpha.interval == pytest.approx(expected.alpha.interval)
        assert pair.percent_agreement.value == pytest.approx(expected.percent_agreement.value)
        assert sum(map(sum, pair.table)) == pair.n_shared == expected.n_items


def test_pairs_without_shared_items_are_kept_and_say_so() -> None:
    (pair,) = pairwise_agreement([[0, -1], [-1, 1]], n_classes=2)
    assert pair.n_shared == 0
    assert pair.alpha.status.startswith("not_estimable")
    assert pair.percent_agreement.value is None
    assert pairwise_agreement([[0], [1]], n_classes=2) == ()
