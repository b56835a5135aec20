"""Ratings as unique rows of class counts, agreement weights, and recoding to one class or node."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.statistics.estimate import Estimate, FloatArray, IntArray, not_estimable
from calibration.statistics.intervals import METHOD

MISSING = -1

# Krippendorff's bounds: rely on the labels from .8, tentative conclusions from .667.
RELY, TENTATIVE = 0.8, 0.667

WEIGHTS = (
    "identity", "linear", "quadratic", "ordinal", "radical", "ratio", "circular", "bipolar",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountPatterns:
    """Distinct rows of class counts, (n_patterns, n_classes), and the number of items of each.

    `n_items` includes items that nobody rated, and `n_ratings` those of items rated once.
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
    """Return the ratings as an integer array of shape (n_items, n_raters).

    ValueError if the array has other dimensions, is not of integers, or holds a code outside -1
    (missing) to `n_classes` - 1; or if `n_classes` is below 2.
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
    """Count the distinct rows of class counts in a table of ratings, in lexicographic order.

    The raters of the ratings are dropped, so the time of all later steps depends on the number of
    patterns (at most C(R + q, q) for R raters and q classes), not on the items. ValueError as
    `validated_codes`.

    Parameters
    ----------
    codes : array-like of int, shape (n_items, n_raters)
        Position of the class in the declared list, -1 where the rater gave no rating.
    n_classes : int
        Declared number of classes, used or not.

    Examples
    --------
    >>> patterns = count_patterns([[0, 0], [1, 0], [0, 1], [1, -1]], n_classes=2)
    >>> patterns.counts.tolist(), patterns.multiplicity.tolist()
    ([[0, 1], [1, 1], [2, 0]], [1, 2, 1])
    """
    return patterns_from_counts(class_counts(codes, n_classes=n_classes))


def class_counts(codes: ArrayLike, *, n_classes: int) -> IntArray:
    """Return the number of ratings of each class by item, shape (n_items, n_classes).

    >>> class_counts([[0, 0], [1, -1]], n_classes=2).tolist()
    [[2, 0], [0, 1]]
    """
    array = validated_codes(codes, n_classes=n_classes)
    rows, columns = np.nonzero(array != MISSING)
    cells = rows * n_classes + array[rows, columns]
    counted = np.bincount(cells, minlength=len(array) * n_classes)
    return counted.reshape(len(array), n_classes).astype(np.int64)


def patterns_from_counts(counts: ArrayLike) -> CountPatterns:
    """Count the distinct rows of class counts, shape (n_items, n_classes), in lexicographic order.

    ValueError if the array has other dimensions, is not of integers, or holds a negative count.

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
    """Count the patterns and return with them the pattern of each item, shape (n_items,).

    >>> patterns_of_items([[0, 0], [1, 0], [0, 0]], n_classes=2)[1].tolist()
    [1, 0, 1]
    """
    counts = class_counts(codes, n_classes=n_classes)
    _, inverse = np.unique(_keys(counts), return_inverse=True)
    return patterns_from_counts(counts), inverse.astype(np.int64)


def _keys(counts: IntArray) -> IntArray:
    """Return one number per item that sorts as its row: several times faster than whole rows."""
    base = int(counts.max(initial=0)) + 1
    if counts.shape[1] * np.log2(base) < 62:
        powers = base ** np.arange(counts.shape[1] - 1, -1, -1, dtype=np.int64)
        return np.asarray(counts @ powers)
    return np.unique(counts, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def weight_matrix(name: str, n_classes: int) -> FloatArray:
    """Return the agreement weights of ordered classes, shape (n_classes, n_classes).

    1 on the diagonal, 0 for the most distant pair. The *position* 1 to q of a class in the declared
    list counts, never a number in its name.

    Parameters
    ----------
    name : str
        One of `WEIGHTS`, else ValueError. ``ordinal`` is Gwet's, which uses ranks only;
        Krippendorff's, which follows the use of the classes, differs.

    References
    ----------
    Gwet (2021), Handbook of Inter-Rater Reliability, 5th ed., vol. 1, ch. 3.

    Examples
    --------
    >>> weight_matrix("linear", 3)[0].tolist(), weight_matrix("quadratic", 3)[0].tolist()
    ([1.0, 0.5, 0.0], [1.0, 0.75, 0.0])
    """
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes!r}")
    if name not in WEIGHTS:
        raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}, got {name!r}")
    if name == "identity":
        return np.eye(n_classes)
    place = np.arange(1.0, n_classes + 1)
    distance = _distance(name, place[:, None], place[None, :])
    return np.asarray(1 - distance / distance.max(), dtype=np.float64)


def _distance(name: str, a: FloatArray, b: FloatArray) -> FloatArray:
    q, apart = a.size, np.abs(a - b)
    if name == "linear":
        return np.asarray(apart)
    if name == "quadratic":
        return np.asarray(apart**2)
    if name == "radical":
        return np.asarray(np.sqrt(apart))
    if name == "ordinal":
        return np.asarray(apart * (apart + 1) / 2)
    if name == "ratio":
        return np.asarray((apart / (a + b)) ** 2)
    if name == "circular":
        return np.asarray(np.sin(np.pi * apart / q) ** 2)
    # Bipolar: a step counts for more towards the ends of the scale.
    room = (a + b - 2) * (2 * q - a - b)
    return np.asarray(apart**2 / np.where(apart > 0, room, 1))


def partial_order_weights(above: Sequence[Sequence[int]]) -> FloatArray:
    """Return the weights of partially ordered classes, shape (n_classes, n_classes).

    The distance of two classes is the number of classes at or above one of them but not the other,
    which is defined for classes that cannot be compared too.

    Parameters
    ----------
    above : sequence of sequence of int, length n_classes
        For each class the positions of the classes directly above it. ValueError for an unknown
        position or a cycle.

    Examples
    --------
    Two classes below a third; those two cannot be compared:

    >>> partial_order_weights([[], [0], [0]]).tolist()
    [[1.0, 0.5, 0.5], [0.5, 1.0, 0.0], [0.5, 0.0, 1.0]]
    """
    n = len(above)
    reach = np.eye(n, dtype=bool)
    for k, direct in enumerate(above):
        for other in direct:
            if not 0 <= other < n:
                raise ValueError(f"above must name positions in [0, {n - 1}], got {other!r}")
            reach[k, other] = True
    for middle in range(n):
        reach |= reach[:, middle, None] & reach[None, middle, :]
    if (reach & reach.T & ~np.eye(n, dtype=bool)).any():
        raise ValueError("above must be a partial order, but classes stand above each other")
    differing = (reach[:, None, :] ^ reach[None, :, :]).sum(axis=2)
    return np.asarray(1 - differing / differing.max(), dtype=np.float64)


def checked_weights(weights: ArrayLike, *, n_classes: int) -> FloatArray:
    """Return a matrix of agreement weights.

    ValueError if it is not of shape (n_classes, n_classes), not symmetric, not 1 on the diagonal,
    or holds another weight outside [0, 1).

    >>> checked_weights([[1, 0.5], [0.5, 1]], n_classes=2).shape
    (2, 2)
    """
    matrix = np.asarray(weights, dtype=np.float64)
    if matrix.shape != (n_classes, n_classes):
        raise ValueError(
            f"weights must have shape ({n_classes}, {n_classes}), got {matrix.shape!r}"
        )
    if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-12):
        raise ValueError("weights must be symmetric")
    if not np.all(np.diag(matrix) == 1):
        raise ValueError(f"weights must be 1 on the diagonal, got {np.diag(matrix).tolist()!r}")
    outside = matrix[~np.eye(n_classes, dtype=bool)]
    if not ((outside >= 0) & (outside < 1)).all():
        raise ValueError("weights of different classes must be in [0, 1)")
    return matrix


Path = Sequence[tuple[str, str]]


def one_against_rest(codes: ArrayLike, *, class_code: int, n_classes: int) -> IntArray:
    """Return the ratings as 1 for one class and 0 for any other; missing ratings stay missing.

    >>> one_against_rest([[0, 2], [1, -1]], class_code=2, n_classes=3).tolist()
    [[0, 1], [0, -1]]
    """
    array = validated_codes(codes, n_classes=n_classes)
    return np.where(array == MISSING, MISSING, (array == class_code).astype(np.int64))


def answers_at(codes: ArrayLike, *, node: str, paths: Sequence[Path]) -> IntArray:
    """Return the answers that the ratings imply at one question: 1 yes, 0 no.

    A rating whose path does not reach the question is missing there, so agreement at the question
    is conditional on two raters reaching it (Coleman 1966; Light 1971,
    https://doi.org/10.1037/h0031643).

    Parameters
    ----------
    paths : sequence of sequence of (question, answer), length n_classes
        The path from the root to each class; answers are ``yes`` or ``no``.

    Examples
    --------
    >>> paths = [[("a", "yes")], [("a", "no"), ("b", "yes")], [("a", "no"), ("b", "no")]]
    >>> answers_at([[0, 1, 2, -1]], node="b", paths=paths).tolist()
    [[-1, 1, 0, -1]]
    """
    array = validated_codes(codes, n_classes=len(paths))
    branch = {"yes": 1, "no": 0, None: MISSING}
    # A missing rating, -1, picks the last entry.
    answers = [branch[dict(path).get(node)] for path in paths]
    return np.array([*answers, MISSING], dtype=np.int64)[array]


def parting_questions(paths: Sequence[Path]) -> list[list[str | None]]:
    """Return for each two classes the question at which their paths part; None on the diagonal.

    ValueError if the paths of two classes never part; `paths` as in `answers_at`.

    >>> parting_questions([[("a", "yes")], [("a", "no"), ("b", "yes")], [("a", "no"), ("b", "no")]])
    [[None, 'a', 'a'], ['a', None, 'b'], ['a', 'b', None]]
    """
    return [
        [None if j == k else _parting(first, second) for k, second in enumerate(paths)]
        for j, first in enumerate(paths)
    ]


def _parting(first: Path, second: Path) -> str:
    for (question, answer), (other_question, other_answer) in zip(first, second, strict=False):
        if question == other_question and answer != other_answer:
            return question
    raise ValueError(f"the paths {list(first)!r} and {list(second)!r} never part")


def too_little(ratings: IntArray, confidence_level: float) -> Estimate | None:
    """Return the `not_estimable` that the coefficients share, or None with enough ratings.

    `ratings` holds the number of ratings of each item (or of each kind of item that occurs).
    """
    if not ratings.any():
        why = "no ratings: have two reviewers label the same items"
    elif not (ratings >= 2).any():
        why = "no item has two ratings: give some items to two or more reviewers"
    else:
        return None
    return not_estimable(why, method=METHOD, confidence_level=confidence_level)


def one_item(value: float, confidence_level: float) -> Estimate:
    """Return a value without interval: one item shows no variation between items."""
    return Estimate(
        value=value,
        interval=None,
        n=1,
        method=METHOD,
        confidence_level=confidence_level,
        status="no interval: one item with two or more ratings, at least two are needed",
    )
