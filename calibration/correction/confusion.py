"""The judge's verdicts crossed with the human classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.correction.intervals import (
    FloatArray,
    IntArray,
    validated_codes,
    validated_weights,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Confusion:
    """Human classes by judge verdicts.

    Parameters
    ----------
    table : float array, shape (n_classes, n_verdicts)
        Effective number of traces with that human class and that verdict. The first `n_classes`
        verdicts are the classes; further columns are verdicts like `no_verdict` or `split`.
    n : int
        Labelled traces behind the table; its sum is the effective number, smaller with weights.
    """

    table: FloatArray
    n: int


def validated_human(human: ArrayLike) -> FloatArray:
    """Return the human class shares, shape (n, n_classes), rows summing to one.

    Raises
    ------
    ValueError
        If the array is not two-dimensional, holds a value outside [0, 1], or a row does not
        sum to one.
    """
    array = np.asarray(human, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"human must have shape (n, n_classes), got {array.shape!r}")
    if array.size and not (np.isfinite(array).all() and array.min() >= 0):
        raise ValueError(f"human must be in [0, 1], got {array.min()!r}")
    sums = array.sum(axis=1)
    if array.size and np.abs(sums - 1).max() > 1e-6:
        worst = float(sums[np.abs(sums - 1).argmax()])
        raise ValueError(f"human rows must sum to 1, got {worst!r}")
    return array


def confusion(
    human: ArrayLike,
    verdicts: IntArray,
    *,
    n_verdicts: int | None = None,
    weights: FloatArray | None = None,
) -> Confusion:
    """Cross the human classes with the judge's verdicts.

    A trace labelled by m reviewers counts 1/m for each of their classes, so disagreement among the
    humans is kept rather than dropped or settled by the first.

    Parameters
    ----------
    human : array-like of float, shape (n, n_classes)
        Class shares per trace; one-hot for an adjudicated or single label.
    verdicts : int array, shape (n,)
        Verdict codes; codes from n_classes up are verdicts that are no class.
    n_verdicts : int, optional
        Number of verdict codes; the default is the larger of n_classes and the largest code + 1.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities. The table is scaled to the effective number (sum w)^2 /
        sum w^2, so that intervals do not take weighted traces for more than they are.

    Returns
    -------
    Confusion
        The table and the number of labelled traces.

    Raises
    ------
    ValueError
        If shapes differ, a row does not sum to one, or a code is outside [0, n_verdicts).

    Examples
    --------
    The second trace has two reviewers who disagree:

    >>> confusion([[1, 0], [0.5, 0.5]], np.array([0, 1]), n_verdicts=3).table.tolist()
    [[1.0, 0.5, 0.0], [0.0, 0.5, 0.0]]
    """
    shares = validated_human(human)
    n, n_classes = shares.shape
    codes = validated_codes(verdicts, n_codes=n_verdicts, name="verdicts")
    if codes.shape != (n,):
        raise ValueError(f"verdicts must have shape ({n},), got {codes.shape!r}")
    if n_verdicts is None:
        n_verdicts = max(n_classes, int(codes.max(initial=-1)) + 1)
    if n_verdicts < n_classes:
        raise ValueError(f"n_verdicts must be at least n_classes={n_classes}, got {n_verdicts!r}")
    weight = validated_weights(weights, n)
    if n:
        weight = weight * weight.sum() / (weight @ weight)
    table = np.zeros((n_verdicts, n_classes))
    np.add.at(table, codes, shares * weight[:, None])
    return Confusion(table=np.ascontiguousarray(table.T), n=n)


def confusion_from_table(table: ArrayLike) -> Confusion:
    """Wrap a table of counts, human classes in rows and verdicts in columns.

    Raises
    ------
    ValueError
        If the table has fewer columns than rows or a negative entry.

    Examples
    --------
    >>> confusion_from_table([[8, 2], [1, 9]]).n
    20
    """
    array = np.asarray(table, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < array.shape[0]:
        raise ValueError(
            f"table must have shape (n_classes, n_verdicts) with n_verdicts >= n_classes, "
            f"got {array.shape!r}"
        )
    if not (np.isfinite(array).all() and array.min(initial=0) >= 0):
        raise ValueError(f"table must not hold negative counts, got {array.min()!r}")
    return Confusion(table=array, n=round(float(array.sum())))
