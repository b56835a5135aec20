"""Trials of tasks, and the exact estimates of pass@k and pass^k of one task."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.metrics.arrays import FloatArray, IntArray

COMPLETE, PARTIAL_PLUS = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trials:
    """Trials and successes of each task: all that pass@k and pass^k depend on.

    Parameters
    ----------
    tasks : array, shape (n_tasks,)
        Names of the tasks, sorted.
    n, c : int array, shape (n_tasks,)
        Trials, and those of them that passed.
    """

    tasks: NDArray[np.generic]
    n: IntArray
    c: IntArray


def passed(outcomes: ArrayLike, *, partial_plus_passes: bool = False) -> NDArray[np.bool_]:
    """Return which runs count as successes: the complete ones, or partial_plus too.

    Examples
    --------
    >>> passed([0, 1, 4]).tolist(), passed([0, 1, 4], partial_plus_passes=True).tolist()
    ([True, False, False], [True, True, False])
    """
    codes = np.asarray(outcomes)
    return np.isin(codes, [COMPLETE, PARTIAL_PLUS] if partial_plus_passes else [COMPLETE])


def count_trials(tasks: ArrayLike, passed: ArrayLike) -> Trials:
    """Count the trials of each task and those that passed.

    Trials of one task must be of one model and agent version: give those of one at a time.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> found = count_trials(["a", "b", "a"], [True, False, False])
    >>> found.n.tolist(), found.c.tolist()
    ([2, 1], [1, 0])
    """
    names, success = np.asarray(tasks), np.asarray(passed, dtype=np.bool_)
    if names.ndim != 1 or names.shape != success.shape:
        raise ValueError(
            f"tasks and passed must have one shape (n,), got {names.shape!r} and {success.shape!r}"
        )
    unique, index = np.unique(names, return_inverse=True)
    n = np.bincount(index, minlength=unique.size).astype(np.int64)
    c = np.bincount(index[success], minlength=unique.size).astype(np.int64)
    return Trials(tasks=unique, n=n, c=c)


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Estimate the chance that at least one of k trials of a task passes; None where n < k.

    Unbiased for 1 - (1 - p)^k when the n trials are independent with the same p.

    Parameters
    ----------
    n, c : int
        Trials of the task, and those that passed.
    k : int
        Trials looked at together, at least 1.

    Returns
    -------
    float or None
        1 - C(n - c, k) / C(n, k).

    Raises
    ------
    ValueError
        If `k` is below 1 or `c` is outside [0, n].

    References
    ----------
    Chen et al. (2021), "Evaluating large language models trained on code".
    https://doi.org/10.48550/arXiv.2107.03374

    Examples
    --------
    1 - C(2, 2) / C(10, 2) = 44/45, and no two of ten trials can fail thrice:

    >>> pass_at_k(10, 8, 2), pass_at_k(10, 8, 3), pass_at_k(10, 8, 11)
    (0.97778, 1.0, None)
    """
    counts = checked_counts([n], [c], k)
    return None if n < k else float(shares_at(*counts, k)[0])


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Estimate the chance that all of k trials of a task pass; None where n < k.

    Unbiased for p^k when the n trials are independent with the same p.

    Parameters
    ----------
    n, c : int
        Trials of the task, and those that passed.
    k : int
        Trials looked at together, at least 1.

    Returns
    -------
    float or None
        C(c, k) / C(n, k).

    Raises
    ------
    ValueError
        As `pass_at_k`.

    References
    ----------
    Yao et al. (2024), "tau-bench: a benchmark for tool-agent-user interaction in real-world
    domains". https://doi.org/10.48550/arXiv.2406.12045

    Examples
    --------
    C(8, 3) / C(10, 3) = 56 / 120:

    >>> pass_hat_k(10, 8, 3), pass_hat_k(2, 2, 3)
    (0.46667, None)
    """
    counts = checked_counts([n], [c], k)
    return None if n < k else float(shares_hat(*counts, k)[0])


def checked_counts(n: ArrayLike, c: ArrayLike, k: int) -> tuple[IntArray, IntArray]:
    """Return trials and successes as whole numbers.

    Raises
    ------
    ValueError
        If they are impossible, or `k` is below 1.
    """
    trials, successes = np.asarray(n), np.asarray(c)
    for name, array in (("n", trials), ("c", successes)):
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"{name} must be whole numbers, got dtype {array.dtype!s}")
    if trials.ndim != 1 or trials.shape != successes.shape:
        raise ValueError(
            f"n and c must have one shape (n_tasks,), got {trials.shape!r} and {successes.shape!r}"
        )
    if isinstance(k, bool) or k != int(k) or k < 1:
        raise ValueError(f"k must be a whole number from 1 up, got {k!r}")
    if trials.size and (successes.min() < 0 or (successes > trials).any() or trials.min() < 1):
        raise ValueError("n must be at least 1 and c in [0, n] for every task")
    return trials.astype(np.int64), successes.astype(np.int64)


def shares_hat(n: IntArray, c: IntArray, k: int) -> FloatArray:
    """Return C(c, k) / C(n, k) of each task, as a product: no factorial overflows."""
    found = np.ones(n.shape)
    for i in range(k):
        found *= np.maximum(0, c - i) / (n - i)
        if not found.any():
            break
    return found


def shares_at(n: IntArray, c: IntArray, k: int) -> FloatArray:
    """Return 1 - C(n - c, k) / C(n, k) of each task; by logarithms, to keep rare successes."""
    sure = n - c < k
    exponent = np.zeros(n.shape)
    for i in range(k):
        exponent += np.log1p(-np.where(sure, 0, c) / (n - i))
    return np.where(sure, 1.0, -np.expm1(exponent))
