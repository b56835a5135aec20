"""How close two classes are: agreement weights by name, from a partial order, or from a file."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from calibration.agreement.intervals import FloatArray

WEIGHTS = (
    "identity", "linear", "quadratic", "ordinal", "radical", "ratio", "circular", "bipolar",
)  # fmt: skip


def weight_matrix(name: str, n_classes: int) -> FloatArray:
    """Return the agreement weights of classes that stand in an order.

    The *position* 1 to q of a class in the declared list counts, never the number that it may be
    called by.

    Parameters
    ----------
    name : str
        One of `WEIGHTS`. ``ordinal`` is Gwet's, which looks at ranks only; Krippendorff's, which
        follows the use of the classes, is another.
    n_classes : int
        Declared classes.

    Returns
    -------
    float array, shape (n_classes, n_classes)
        1 on the diagonal, 0 for the pair that is farthest apart.

    Raises
    ------
    ValueError
        If the name is none of them or there are fewer than two classes.

    References
    ----------
    Gwet (2021), Handbook of Inter-Rater Reliability, 5th ed., vol. 1, ch. 3.

    Examples
    --------
    >>> weight_matrix("linear", 3).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    >>> weight_matrix("quadratic", 3)[0].tolist()
    [1.0, 0.75, 0.0]
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
    """Return the weights of classes that stand in a partial order.

    The distance of two classes is the number of classes that stand at or above one of them but
    not the other, so that classes which cannot be compared have an honest one.

    Parameters
    ----------
    above : sequence of sequence of int, length n_classes
        For each class the positions of the classes directly above it.

    Returns
    -------
    float array, shape (n_classes, n_classes)

    Raises
    ------
    ValueError
        If a position is none of a class, or classes stand above each other in a circle.

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
    """Return a matrix of agreement weights, checked.

    Raises
    ------
    ValueError
        If it is not of shape (n_classes, n_classes), not symmetric, not 1 on the diagonal, or
        holds a weight outside [0, 1).

    Examples
    --------
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
