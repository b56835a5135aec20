"""Agreement of every two reviewers: the two-way table, percent agreement and alpha."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.chance_corrected import (
    KRIPPENDORFF_ALPHA,
    PERCENT_AGREEMENT,
    estimate,
)
from calibration.agreement.counts import CountPatterns, IntArray, validated_codes
from calibration.agreement.intervals import check_confidence_level
from calibration.agreement.margins import TestResult, bhapkar
from calibration.agreement.two_raters import cohen_kappa_of_table
from calibration.estimates import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAgreement:
    """Agreement of two reviewers on the items that both rated.

    Parameters
    ----------
    first, second : int
        Columns of the ratings, ``first < second``.
    n_shared : int
        Items that both rated.
    table : tuple of tuple of int, shape (n_classes, n_classes)
        Items by the class of `first` (rows) and the class of `second` (columns).
    percent_agreement, alpha, kappa : Estimate
        Agreement of the two on their shared items; Cohen's kappa.
    margins : TestResult
        Bhapkar's test that the two use the classes alike, unweighted.
    """

    first: int
    second: int
    n_shared: int
    table: tuple[tuple[int, ...], ...]
    percent_agreement: Estimate
    alpha: Estimate
    kappa: Estimate
    margins: TestResult


def pairwise_agreement(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> tuple[PairAgreement, ...]:
    """Estimate the agreement of every two reviewers on the items they share.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes : int
        Declared number of classes, used or not.
    weights : array-like of float, shape (n_classes, n_classes), optional
        Agreement weights, 1 on the diagonal; default: classes agree or do not.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    tuple of PairAgreement
        One entry a pair in the order (0, 1), (0, 2), ...; pairs that share nothing are kept, with
        ``not_estimable`` estimates.

    Raises
    ------
    ValueError
        As `count_patterns`, if the weights are none, or `confidence_level` is outside (0, 1).

    Notes
    -----
    One product of the one-hot ratings gives the tables of all pairs at once.

    Examples
    --------
    >>> pair, = pairwise_agreement([[0, 0], [1, 1], [0, 1], [1, -1]], n_classes=2)
    >>> pair.table, pair.n_shared, pair.percent_agreement.value
    (((1, 1), (0, 1)), 3, 0.66667)
    """
    check_confidence_level(confidence_level)
    array = validated_codes(codes, n_classes=n_classes)
    n_items, n_raters = array.shape
    one_hot = (array[:, :, None] == np.arange(n_classes)).reshape(n_items, n_raters * n_classes)
    # Products of 0 and 1 are exact in floating point, and far faster there than on integers.
    wide = one_hot.astype(np.float64)
    gram = np.rint(wide.T @ wide).astype(np.int64)
    tables = gram.reshape(n_raters, n_classes, n_raters, n_classes)
    return tuple(
        _pair(first, second, tables[first, :, second, :], weights, confidence_level)
        for first, second in combinations(range(n_raters), 2)
    )


def _pair(
    first: int, second: int, table: IntArray, weights: ArrayLike | None, confidence_level: float
) -> PairAgreement:
    patterns = _table_patterns(table)
    percent, alpha = (
        estimate(c, patterns, weights=weights, confidence_level=confidence_level)
        for c in (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA)
    )
    return PairAgreement(
        first=first,
        second=second,
        n_shared=patterns.n_items,
        table=tuple(tuple(row) for row in table.tolist()),
        percent_agreement=percent,
        alpha=alpha,
        kappa=cohen_kappa_of_table(table, weights=weights, confidence_level=confidence_level),
        margins=bhapkar(table),
    )


def _table_patterns(table: IntArray) -> CountPatterns:
    """Return the count patterns of a two-way table: class a with class b is the row e_a + e_b."""
    identity = np.eye(table.shape[0], dtype=np.int64)
    rows, columns = np.nonzero(table)
    multiplicity = table[rows, columns]
    return CountPatterns(
        counts=identity[rows] + identity[columns],
        multiplicity=multiplicity,
        n_items=int(multiplicity.sum()),
        n_ratings=2 * int(multiplicity.sum()),
    )
