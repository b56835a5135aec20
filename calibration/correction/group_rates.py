"""Whether the judge errs alike in several groups, given what the humans say."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from calibration.correction.confusion import validated_human
from calibration.correction.intervals import FloatArray, IntArray, validated_codes
from calibration.estimates import OK

SMALL = 5.0
CHI_SQUARE = "chi-square of verdict given class over groups"
PERMUTED = "chi-square of verdict given class over groups, {n:,} permutations within class"


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesTest:
    """A test that the error rates of the judge are those of all groups together.

    Parameters
    ----------
    statistic, p_value : float or None
        None when there is nothing to compare; `status` says why.
    df : int
        Degrees of freedom of the chi-square.
    n, n_groups : int
        Labelled traces and groups that enter.
    smallest_expected : float or None
        Smallest expected count of a cell that is not empty by construction.
    method : str
    status : str
        ``ok`` or why there is no test.
    """

    statistic: float | None
    p_value: float | None
    df: int
    n: int
    n_groups: int
    smallest_expected: float | None
    method: str
    status: str = OK


def compare_rates(
    human: ArrayLike,
    verdicts: IntArray,
    groups: IntArray,
    *,
    n_verdicts: int,
    rng: np.random.Generator,
    n_permutations: int = 2000,
) -> RatesTest:
    """Test that P(verdict | class) is the same in all groups.

    That is what `synthetic` estimates of groups assume. Traces are independent. A large p-value
    does not show that the rates are the same: with few labels a group real differences go unseen.

    Parameters
    ----------
    human : array-like of float, shape (n, n_classes)
        Class shares per trace, rows summing to one.
    verdicts, groups : int array, shape (n,)
        Verdict and group of each trace, numbers from 0.
    n_verdicts : int
        Number of verdict codes.
    rng : numpy.random.Generator
        For the permutations.
    n_permutations : int, default 2000
        Drawn when an expected count is below 5, where the chi-square distribution is no guide;
        groups are then shuffled among traces of the same (most voted) class.

    Returns
    -------
    RatesTest
        Pearson's statistic summed over classes, each with (groups - 1) x (verdicts - 1) degrees of
        freedom, counting what occurs within the class.

    Raises
    ------
    ValueError
        If shapes differ, a row does not sum to one, or a code is out of range.

    References
    ----------
    Pearson (1900), Philosophical Magazine 50. https://doi.org/10.1080/14786440009463897

    Examples
    --------
    One class; the judge passes 30 of 40 traces of one group and 10 of 40 of the other: all four
    expected counts are 20, so 4 x 100 / 20:

    >>> human, groups = np.ones((80, 1)), np.repeat([0, 1], 40)
    >>> verdicts = np.repeat([0, 1, 0, 1], [30, 10, 10, 30])
    >>> rng = np.random.default_rng(0)
    >>> compare_rates(human, verdicts, groups, n_verdicts=2, rng=rng).statistic
    20.0
    """
    shares = validated_human(human)
    n = shares.shape[0]
    codes = validated_codes(verdicts, n_codes=n_verdicts, name="verdicts")
    group = validated_codes(groups, n_codes=None, name="groups")
    if codes.shape != (n,) or group.shape != (n,):
        raise ValueError(
            f"verdicts and groups must have shape ({n},), got {codes.shape!r} and {group.shape!r}"
        )
    names, group = np.unique(group, return_inverse=True)
    if names.size < 2:
        return _none(n, names.size, "labels of one group only: label traces of other groups")
    cells = _Cells(shares, codes, n_verdicts, names.size)
    table = cells.table(group)
    expected, df = _expected(table)
    if df == 0:
        return _none(n, names.size, "no class has labels in two groups and two verdicts")
    statistic = _pearson(table, expected)
    smallest = float(expected[expected > 0].min())
    p_value, method = float(stats.chi2.sf(statistic, df)), CHI_SQUARE
    if smallest < SMALL:
        method = PERMUTED.format(n=n_permutations)
        most = shares.argmax(axis=1)
        reached = 0
        for _ in range(n_permutations):
            # One shuffle, then put in order of class: a shuffle within each class.
            order = rng.permutation(n)
            shuffled = group.copy()
            shuffled[np.argsort(most, kind="stable")] = group[
                order[np.argsort(most[order], kind="stable")]
            ]
            drawn = cells.table(shuffled)
            reached += _pearson(drawn, _expected(drawn)[0]) >= statistic - 1e-9
        p_value = (1 + reached) / (1 + n_permutations)
    return RatesTest(
        statistic=statistic, p_value=p_value, df=df, n=n, n_groups=int(names.size),
        smallest_expected=smallest, method=method,
    )  # fmt: skip


class _Cells:
    """Counts traces by class, group and verdict for any allocation to groups."""

    def __init__(
        self, shares: FloatArray, verdicts: IntArray, n_verdicts: int, n_groups: int
    ) -> None:
        self._rows, self._classes = np.nonzero(shares)
        self._weight = shares[self._rows, self._classes]
        self._verdict = verdicts[self._rows]
        self._shape = (shares.shape[1], n_groups, n_verdicts)

    def table(self, group: IntArray) -> FloatArray:
        """Return counts, shape (n_classes, n_groups, n_verdicts)."""
        _, n_groups, n_verdicts = self._shape
        cell = (self._classes * n_groups + group[self._rows]) * n_verdicts + self._verdict
        counts = np.bincount(cell, weights=self._weight, minlength=int(np.prod(self._shape)))
        return np.asarray(counts.reshape(self._shape), dtype=np.float64)


def _expected(table: FloatArray) -> tuple[FloatArray, int]:
    rows, columns = table.sum(axis=2), table.sum(axis=1)
    total = np.maximum(rows.sum(axis=1), np.finfo(float).tiny)
    expected = rows[:, :, None] * columns[:, None, :] / total[:, None, None]
    free = np.maximum(0, (rows > 0).sum(axis=1) - 1) * np.maximum(0, (columns > 0).sum(axis=1) - 1)
    return expected, int(free.sum())


def _pearson(table: FloatArray, expected: FloatArray) -> float:
    seen = expected > 0
    return float(((table - expected)[seen] ** 2 / expected[seen]).sum())


def _none(n: int, n_groups: int, why: str) -> RatesTest:
    return RatesTest(
        statistic=None, p_value=None, df=0, n=n, n_groups=n_groups, smallest_expected=None,
        method=CHI_SQUARE, status=f"not_estimable: {why}",
    )  # fmt: skip
