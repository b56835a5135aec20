"""Ratings reduced to unique rows of class counts: all that nominal coefficients need."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.int64]

MISSING = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountPatterns:
    """Distinct rows of class counts and how many items show each.

    Parameters
    ----------
    counts : int array, shape (n_patterns, n_classes)
        Ratings of each class; the row sum is the number of ratings of such an item.
    multiplicity : int array, shape (n_patterns,)
        Items that show the pattern.
    n_items : int
        All items, with those that nobody rated.
    n_ratings : int
        All ratings, with those of items rated once.
    """

    counts: IntArray
    multiplicity: IntArray
    n_items: int
    n_ratings: int

    def pairable(self) -> "CountPatterns":
        """Return the patterns with two or more ratings, the only ones that show agreement."""
        keep = self.counts.sum(axis=1) >= 2
        counts, multiplicity = self.counts[keep], self.multiplicity[keep]
        return CountPatterns(
            counts=counts,
            multiplicity=multiplicity,
            n_items=int(multiplicity.sum()),
            n_ratings=int(multiplicity @ counts.sum(axis=1)),
        )


def validated_codes(codes: ArrayLike, *, n_classes: int) -> IntArray:
    """Return the ratings as an integer array of shape (n_items, n_raters), checked.

    Raises
    ------
    ValueError
        If the array is not two-dimensional, not of integers, or holds a code outside
        -1 (missing) to `n_classes` - 1; or if `n_classes` is below 2.
    """
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes!r}")
    array = np.asarray(codes)
    if array.ndim != 2:
        raise ValueError(f"codes must have shape (n_items, n_raters), got {array.shape!r}")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"codes must be integers, got dtype {array.dtype!s}")
    result = array.astype(np.int64)
    if result.size and (result.min() < MISSING or result.max() >= n_classes):
        raise ValueError(
            f"codes must be in [-1, {n_classes - 1}], got {result.min()} to {result.max()}"
        )
    return result


def count_patterns(codes: ArrayLike, *, n_classes: int) -> CountPatterns:
    """Count the distinct rows of class counts in a table of ratings.

    Which rater gave which rating is dropped, so the cost of everything that follows depends on
    the number of patterns (at most C(R + q, q) for R raters and q classes), not on the items.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes : int
        Declared number of classes, used or not.

    Returns
    -------
    CountPatterns
        Patterns in lexicographic order.

    Raises
    ------
    ValueError
        If a code is outside -1 to `n_classes` - 1 or the array is not two-dimensional.

    Examples
    --------
    >>> patterns = count_patterns([[0, 0], [1, 0], [0, 1], [1, -1]], n_classes=2)
    >>> patterns.counts.tolist(), patterns.multiplicity.tolist()
    ([[0, 1], [1, 1], [2, 0]], [1, 2, 1])
    """
    return patterns_from_counts(class_counts(codes, n_classes=n_classes))


def class_counts(codes: ArrayLike, *, n_classes: int) -> IntArray:
    """Return the ratings of each class that an item was given, shape (n_items, n_classes).

    Examples
    --------
    >>> class_counts([[0, 0], [1, -1]], n_classes=2).tolist()
    [[2, 0], [0, 1]]
    """
    array = validated_codes(codes, n_classes=n_classes)
    rows, columns = np.nonzero(array != MISSING)
    cells = rows * n_classes + array[rows, columns]
    counted = np.bincount(cells, minlength=len(array) * n_classes)
    return counted.reshape(len(array), n_classes).astype(np.int64)


def patterns_from_counts(counts: ArrayLike) -> CountPatterns:
    """Count the distinct rows of a table that already holds class counts per item.

    Parameters
    ----------
    counts : array-like of int, shape (n_items, n_classes)
        Ratings of each class an item was given.

    Returns
    -------
    CountPatterns
        Patterns in lexicographic order.

    Raises
    ------
    ValueError
        If the array is not two-dimensional, not of integers, or holds a negative count.

    Examples
    --------
    >>> patterns_from_counts([[2, 0], [2, 0], [1, 1]]).multiplicity.tolist()
    [1, 2]
    """
    array = np.asarray(counts)
    if array.ndim != 2 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(
            f"counts must be integers of shape (n_items, n_classes), "
            f"got dtype {array.dtype!s} and shape {array.shape!r}"
        )
    if array.size and array.min() < 0:
        raise ValueError(f"counts must not be negative, got {array.min()}")
    array = array.astype(np.int64)
    _, first, multiplicity = np.unique(_keys(array), return_index=True, return_counts=True)
    return CountPatterns(
        counts=array[first],
        multiplicity=multiplicity.astype(np.int64),
        n_items=array.shape[0],
        n_ratings=int(array.sum()),
    )


def patterns_of_items(codes: ArrayLike, *, n_classes: int) -> tuple[CountPatterns, IntArray]:
    """Count the patterns and say which of them each item shows.

    Parameters
    ----------
    codes, n_classes
        As in `count_patterns`.

    Returns
    -------
    tuple of CountPatterns and int array, shape (n_items,)

    Examples
    --------
    >>> patterns_of_items([[0, 0], [1, 0], [0, 0]], n_classes=2)[1].tolist()
    [1, 0, 1]
    """
    counts = class_counts(codes, n_classes=n_classes)
    _, inverse = np.unique(_keys(counts), return_inverse=True)
    return patterns_from_counts(counts), inverse.astype(np.int64)


def _keys(counts: IntArray) -> IntArray:
    """Return one number an item that sorts as its row: several times faster than whole rows."""
    base = int(counts.max(initial=0)) + 1
    if counts.shape[1] * np.log2(base) < 62:
        powers = base ** np.arange(counts.shape[1] - 1, -1, -1, dtype=np.int64)
        return np.asarray(counts @ powers)
    return np.unique(counts, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
