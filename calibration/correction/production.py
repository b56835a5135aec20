"""What the corrections need to know about production: sums per verdict, not traces."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.correction.intervals import FloatArray, IntArray, validated_codes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductionSums:
    """Sufficient statistics of verdicts and penalties in production.

    Parameters
    ----------
    credit : float array, shape (n_classes,)
        Credit of each class.
    levels : float array, shape (n_levels,)
        The distinct credits above zero; f_s(p) = max(0, level - p) are the only functions of the
        penalty that a score can be.
    counts : float array, shape (n_verdicts,)
        Traces with each verdict.
    sums : float array, shape (n_levels, n_verdicts)
        Sum of f_s over the traces with each verdict.
    products : float array, shape (n_levels, n_levels, n_verdicts)
        Sum of f_s f_u over the traces with each verdict.
    raw_sum : float
        Sum of scores if every verdict that is a class were right.
    raw_n : int
        Traces whose verdict is a class.
    """

    credit: FloatArray
    levels: FloatArray
    counts: FloatArray
    sums: FloatArray
    products: FloatArray
    raw_sum: float
    raw_n: int

    @property
    def n(self) -> int:
        """Production traces that were judged."""
        return round(float(self.counts.sum()))

    @property
    def has_costs(self) -> bool:
        """Whether any trace has a penalty."""
        return not np.allclose(self.sums, self.levels[:, None] * self.counts, rtol=1e-12, atol=0)


def validated_credit(credit: ArrayLike) -> FloatArray:
    """Return the credits of the classes, each in [0, 1].

    Raises
    ------
    ValueError
        If there are fewer than two or one lies outside [0, 1].
    """
    array = np.asarray(credit, dtype=np.float64)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(f"credit must name at least two classes, got shape {array.shape!r}")
    if not (array.min() >= 0 and array.max() <= 1):
        raise ValueError(f"credit must be in [0, 1], got {array.min()!r} to {array.max()!r}")
    return array


def production_sums(
    verdicts: IntArray,
    penalties: FloatArray | None,
    *,
    credit: ArrayLike,
    n_verdicts: int,
) -> ProductionSums:
    """Reduce judged production traces to sums per verdict.

    Parameters
    ----------
    verdicts : int array, shape (n,)
        Verdict codes; the labelled traces are included.
    penalties : float array, shape (n,), optional
        Cost penalty of each trace in [0, 1]; None scores without cost (gross).
    credit : array-like of float, shape (n_classes,)
        Credit of each class in [0, 1].
    n_verdicts : int
        Number of verdict codes, at least n_classes.

    Returns
    -------
    ProductionSums
        Counts, sums and products per verdict.

    Raises
    ------
    ValueError
        If shapes differ, a code is out of range, or a penalty is outside [0, 1].

    Examples
    --------
    >>> sums = production_sums(
    ...     np.array([0, 0, 1]), np.array([0.0, 0.5, 0.0]), credit=[1.0, 0.4], n_verdicts=2
    ... )
    >>> sums.levels.tolist(), sums.sums.tolist(), sums.raw_sum
    ([0.4, 1.0], [[0.4, 0.4], [1.5, 1.0]], 1.9)
    """
    credits = validated_credit(credit)
    if n_verdicts < credits.size:
        raise ValueError(f"n_verdicts must be at least {credits.size}, got {n_verdicts!r}")
    codes = validated_codes(verdicts, n_codes=n_verdicts, name="verdicts")
    if penalties is None:
        return production_sums_from_counts(np.bincount(codes, minlength=n_verdicts), credit=credits)
    penalty = np.asarray(penalties, dtype=np.float64)
    if penalty.shape != codes.shape:
        raise ValueError(f"penalties must have shape {codes.shape!r}, got {penalty.shape!r}")
    if penalty.size and not (penalty.min() >= 0 and penalty.max() <= 1):
        raise ValueError(f"penalties must be in [0, 1], got {penalty.min()!r} to {penalty.max()!r}")
    levels = np.unique(credits[credits > 0])
    counts = np.bincount(codes, minlength=n_verdicts)
    sums = np.zeros((levels.size, n_verdicts))
    products = np.zeros((levels.size, levels.size, n_verdicts))
    for k in np.flatnonzero(counts).tolist():
        kept = np.maximum(0.0, levels[:, None] - penalty[codes == k])
        sums[:, k] = kept.sum(axis=1)
        products[:, :, k] = kept @ kept.T
    of_class = sums[:, : credits.size]
    return ProductionSums(
        credit=credits,
        levels=levels,
        counts=counts.astype(np.float64),
        sums=sums,
        products=products,
        raw_sum=float(of_class[levels[:, None] == credits].sum()),
        raw_n=int(counts[: credits.size].sum()),
    )


def production_sums_from_counts(counts: ArrayLike, *, credit: ArrayLike) -> ProductionSums:
    """Return the sums for production known only by its verdict counts, without penalties.

    Raises
    ------
    ValueError
        If there are fewer verdicts than classes or a count is negative.

    Examples
    --------
    >>> production_sums_from_counts([7, 3, 1], credit=[1.0, 0.0]).sums.tolist()
    [[7.0, 3.0, 1.0]]
    """
    credits = validated_credit(credit)
    array = np.asarray(counts, dtype=np.float64)
    if array.ndim != 1 or array.size < credits.size:
        raise ValueError(
            f"counts must have at least {credits.size} entries, got shape {array.shape!r}"
        )
    if not (np.isfinite(array).all() and array.min() >= 0):
        raise ValueError(f"counts must not be negative, got {array.min()!r}")
    levels = np.unique(credits[credits > 0])
    return ProductionSums(
        credit=credits,
        levels=levels,
        counts=array,
        sums=levels[:, None] * array,
        products=levels[:, None, None] * levels[None, :, None] * array,
        raw_sum=float(credits @ array[: credits.size]),
        raw_n=round(float(array[: credits.size].sum())),
    )
