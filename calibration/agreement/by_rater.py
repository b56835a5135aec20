"""Coefficients in which it counts who gave a rating: Conger's and Light's kappa."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.chance_corrected import (
    NO_EXPECTATION,
    Coefficient,
    all_alike,
    distances_of,
    from_features,
    from_left_out,
)
from calibration.agreement.counts import MISSING, IntArray, count_patterns, validated_codes
from calibration.agreement.intervals import (
    METHOD,
    FloatArray,
    check_confidence_level,
)
from calibration.agreement.refusals import too_little
from calibration.estimates import Estimate, not_estimable


def conger_kappa(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate Conger's kappa: Cohen's for any fixed panel of raters.

    What two ratings of an item would agree by chance follows from each rater's own use of the
    classes. Items are a random sample and independent, ratings missing at random.

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
    Estimate
        With a jackknife Fisher-z interval, t with n - 1 df, n = items with two or more ratings.

    Raises
    ------
    ValueError
        As `count_patterns`, if the weights are none, or `confidence_level` is outside (0, 1).

    References
    ----------
    Conger (1980), Psychological Bulletin 88. https://doi.org/10.1037/0033-2909.88.2.322

    Examples
    --------
    The first says class 0 in one of three, the second in two of three; they agree on two items.
    By chance 1/3 x 2/3 + 2/3 x 1/3 = 4/9, so (2/3 - 4/9) / (1 - 4/9):

    >>> conger_kappa([[0, 0], [1, 0], [1, 1]], n_classes=2).value
    0.4
    """
    check_confidence_level(confidence_level)
    refused = too_little(count_patterns(codes, n_classes=n_classes), confidence_level)
    if refused is not None:
        return refused
    rows = distinct_rows(codes, n_classes=n_classes)
    return kappa_of_rows(rows, weights=weights, confidence_level=confidence_level)


def kappa_of_rows(
    rows: "RatedRows", *, weights: ArrayLike | None, confidence_level: float
) -> Estimate:
    """Estimate Conger's kappa from distinct rows of ratings of which some hold two or more."""
    distances = distances_of(weights, rows.given.shape[2])
    counts = rows.given.sum(axis=1)
    return from_features(
        CONGER_KAPPA,
        conger_features(rows, distances),
        rows.items,
        distances,
        n=int(rows.items[counts.sum(axis=1) >= 2].sum()),
        alike=all_alike(counts, distances),
        confidence_level=confidence_level,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatedRows:
    """Distinct rows of ratings: `given` is 1 where a rater gave a class, `items` show the row."""

    given: FloatArray
    items: IntArray


def distinct_rows(codes: ArrayLike, *, n_classes: int) -> RatedRows:
    """Return the distinct rows of ratings; raters and items without any are dropped.

    Examples
    --------
    >>> rows = distinct_rows([[0, 1], [1, -1], [0, 1], [-1, -1]], n_classes=2)
    >>> rows.given.tolist(), rows.items.tolist()
    ([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]], [2, 1])
    """
    array = validated_codes(codes, n_classes=n_classes)
    given = array != MISSING
    array = array[given.any(axis=1)][:, given.any(axis=0)]
    rows, items = np.unique(array, axis=0, return_counts=True)
    one_hot = np.eye(n_classes)[rows] * (rows != MISSING)[..., None]
    return RatedRows(given=one_hot, items=items.astype(np.int64))


def conger_features(rows: RatedRows, distances: FloatArray) -> FloatArray:
    """Return each row's part in the sums of Conger's kappa."""
    counts = rows.given.sum(axis=1)
    ratings = counts.sum(axis=1)
    pairable = ratings >= 2
    differing = ((counts @ distances) * counts).sum(axis=1)
    mean = differing / np.where(pairable, ratings * (ratings - 1), 1)
    n, raters, q = rows.given.shape
    return np.column_stack([pairable, mean, rows.given.reshape(n, raters * q)])


def _conger(totals: FloatArray, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
    q = distances.shape[0]
    given = totals[..., 2:].reshape(*totals.shape[:-1], -1, q)
    used = given / np.maximum(given.sum(axis=-1, keepdims=True), 1)
    r = used.shape[-2]
    # The sum over pairs of raters, for each pair of classes, without a rater with themselves.
    together, alone = used.sum(axis=-2), np.einsum("...gk,kl,...gl->...", used, distances, used)
    expected = (((together @ distances) * together).sum(axis=-1) - alone) / (r * (r - 1))
    return totals[..., 1] / totals[..., 0], expected


CONGER_KAPPA = Coefficient(
    "conger_kappa",
    -1.0,
    lambda counts, _distances: counts,  # made by `conger_features`
    _conger,
    pairable_only=False,
)


def light_kappa(
    codes: ArrayLike,
    *,
    n_classes: int,
    weights: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate Light's kappa: the mean of Cohen's over all pairs of raters.

    A pair is compared on the items that both rated; pairs for which kappa is not defined are
    left out of the mean. Items are a random sample and independent, ratings missing at random.

    Parameters
    ----------
    codes, n_classes, weights, confidence_level
        As in `conger_kappa`.

    Returns
    -------
    Estimate
        With a jackknife Fisher-z interval, n = items with two or more ratings.

    Raises
    ------
    ValueError
        As `conger_kappa`.

    References
    ----------
    Light (1971), Psychological Bulletin 76. https://doi.org/10.1037/h0031643

    Examples
    --------
    With two raters it is Cohen's:

    >>> light_kappa([[0, 0], [1, 0], [1, 1]], n_classes=2).value
    0.4
    """
    check_confidence_level(confidence_level)
    array = validated_codes(codes, n_classes=n_classes)
    patterns = count_patterns(array, n_classes=n_classes)
    refused = too_little(patterns, confidence_level)
    if refused is not None:
        return refused
    distances = distances_of(weights, n_classes)
    pairs = [_LightPair.of(array, j, k, distances) for j, k in _pairs(array.shape[1])]
    defined = [pair for pair in pairs if pair.expected > 0]
    if not defined:
        return not_estimable(NO_EXPECTATION, method=METHOD, confidence_level=confidence_level)
    rated = array[(array != MISSING).sum(axis=1) >= 2]
    # What is left without an item depends on one cell of each pair's table alone.
    without = np.mean([pair.without(rated) for pair in defined], axis=0)
    value = float(np.mean([pair.kappa for pair in defined]))
    expected = float(np.mean([pair.expected for pair in defined]))
    counts = patterns.pairable().counts.astype(np.float64)
    return from_left_out(
        value, without, np.ones(len(rated), dtype=np.int64),
        observed=(1 - value) * expected, expected=expected, lowest=-1.0, n=len(rated),
        alike=all_alike(counts, distances), confidence_level=confidence_level,
    )  # fmt: skip


def _pairs(n_raters: int) -> Iterator[tuple[int, int]]:
    return combinations(range(n_raters), 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LightPair:
    """Cohen's kappa of two raters, whole and without one item of each cell of their table."""

    first: int
    second: int
    kappa: float
    expected: float
    without_one: FloatArray

    @classmethod
    def of(cls, codes: IntArray, first: int, second: int, distances: FloatArray) -> "_LightPair":
        q = len(distances)
        both = codes[(codes[:, first] != MISSING) & (codes[:, second] != MISSING)]
        cells = both[:, first] * q + both[:, second]
        table = np.bincount(cells, minlength=q * q).astype(np.float64)
        one_less = np.vstack([table, table - np.eye(q * q)]).reshape(-1, q, q)
        total = one_less.sum(axis=(1, 2))
        rows, columns = one_less.sum(axis=2), one_less.sum(axis=1)
        observed = (one_less * distances).sum(axis=(1, 2)) / np.maximum(total, 1)
        chance = ((rows @ distances) * columns).sum(axis=1) / np.maximum(total, 1) ** 2
        kappa = np.where(chance > 0, 1 - observed / np.where(chance > 0, chance, 1), np.nan)
        return cls(
            first=first, second=second, kappa=float(kappa[0]), expected=float(chance[0]),
            without_one=np.append(kappa[1:], kappa[0]),
        )  # fmt: skip

    def without(self, codes: IntArray) -> FloatArray:
        """Return kappa without each item; an item that one of the two left out changes nothing."""
        q = round((self.without_one.size - 1) ** 0.5)
        one, other = codes[:, self.first], codes[:, self.second]
        shared = (one != MISSING) & (other != MISSING)
        return np.asarray(self.without_one[np.where(shared, one * q + other, q * q)])
