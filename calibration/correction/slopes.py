"""Whether the judge's leniency follows something it should not: length, steps, its own family."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from calibration.correction.confusion import validated_human
from calibration.correction.intervals import (
    FloatArray,
    IntArray,
    check_confidence_level,
    cluster_indices,
    two_sided_t,
    validated_weights,
)
from calibration.correction.means import MeanAgainstZero
from calibration.estimates import OK, Estimate, not_estimable

HC3 = "least squares within human class, HC3, t"
CR3 = "least squares within human class, CR3 by task, t"
MINIMUM_TASKS = 10
MINIMUM_SPARE = 10
NO_LEVERAGE = 1e-9
NO_NOISE = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fit:
    """Coefficient of the last column, the rest of it, and what is left of the gaps."""

    coefficient: float
    free: FloatArray
    residuals: FloatArray
    design: FloatArray
    bread: FloatArray


def slope_within_class(
    gaps: ArrayLike,
    human: ArrayLike,
    size: ArrayLike,
    *,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    confidence_level: float = 0.95,
) -> MeanAgainstZero:
    """Estimate by how much the judge's gap grows with something, within the human class.

    gap = a constant of the human class + slope x size. An honest judge has slope zero: given what
    the humans said, the verdict does not depend on `size`. Long traces may well be worse; that is
    in the constants and not in the slope. Traces are independent, or independent between clusters.

    Parameters
    ----------
    gaps : array-like of float, shape (n,)
        Credit of the verdict less the human credit.
    human : array-like of float, shape (n, n_classes)
        Class shares of each trace, rows summing to one; a trace whose reviewers differ has the
        mean of their constants.
    size : array-like of float, shape (n,)
        For instance the base-2 logarithm of the length, which makes the slope that of a doubling,
        or 0 and 1.
    weights : float array, shape (n,), optional
        Inverse inclusion probabilities: weighted least squares, and a jackknife that leaves a trace
        out with its weight.
    clusters : array, shape (n,), optional
        Task of each trace, when tasks repeat.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    MeanAgainstZero
        The slope in units of credit with a t interval: n - columns df, with clusters clusters - 1.
        ``not_estimable`` with fewer than 10 traces more than constants, fewer than 10 clusters, or
        when `size` does not vary within a class.

    Raises
    ------
    ValueError
        If shapes differ or a value is not finite.

    Notes
    -----
    Least squares rather than a rank correlation, because gaps take a handful of values and are
    mostly ties at zero, because the slope is in credit and so says what the bias costs, and
    because the human class is held fixed by a constant each. HC3, because the variance of the gap
    depends on the class and because of all such standard errors it is the one to use with few
    traces; it equals the jackknife. With repeated tasks CR3, the same with whole tasks left out.

    References
    ----------
    MacKinnon and White (1985), J. Econometrics 29. https://doi.org/10.1016/0304-4076(85)90158-7
    Bell and McCaffrey (2002), Survey Methodology 28(2): CR3.

    Examples
    --------
    One class, gaps that fall by .1 a unit on average:

    >>> size = np.repeat([0.0, 1.0], 6)
    >>> gaps = np.array([0.3, 0.1] * 3 + [0.2, 0.0] * 3)
    >>> slope_within_class(gaps, np.ones((12, 1)), size).estimate.value
    -0.1
    """
    check_confidence_level(confidence_level)
    shares = validated_human(human)
    gap, of_size = np.asarray(gaps, dtype=np.float64), np.asarray(size, dtype=np.float64)
    n = shares.shape[0]
    if gap.shape != (n,) or of_size.shape != (n,):
        raise ValueError(
            f"gaps and size must have shape ({n},), got {gap.shape!r} and {of_size.shape!r}"
        )
    if not (np.isfinite(gap).all() and np.isfinite(of_size).all()):
        raise ValueError("gaps and size must be finite, got a value that is not")
    index = cluster_indices(clusters, n)
    method = HC3 if index is None else CR3
    used = shares[:, shares.sum(axis=0) > 0]
    spare = n - used.shape[1] - 1
    why = _why_not(spare, index)
    # Least squares of rows times the root of their weight is weighted least squares.
    root = np.sqrt(validated_weights(weights, n) / (1.0 if weights is None else np.mean(weights)))
    fit = None if why else _fit(gap * root, used * root[:, None], of_size * root)
    if fit is None:
        why = why or "it does not vary within a human class: label traces in which it differs"
        refused = not_estimable(why, method=method, n=n, confidence_level=confidence_level)
        return MeanAgainstZero(estimate=refused, p_value=None)
    df = float(spare if index is None else index.max())
    variance = _without_traces(fit) if index is None else _without_units(fit, index)
    return _result(fit.coefficient, variance, df, n, method, confidence_level)


def _why_not(spare: int, index: IntArray | None) -> str | None:
    if spare < MINIMUM_SPARE:
        return (
            f"{max(0, spare)} labelled traces more than constants, at least {MINIMUM_SPARE} are "
            "needed: label more"
        )
    if index is not None and index.max() + 1 < MINIMUM_TASKS:
        return f"{index.max() + 1} tasks, at least {MINIMUM_TASKS} are needed: label other tasks"
    return None


def _fit(gaps: FloatArray, constants: FloatArray, size: FloatArray) -> _Fit | None:
    # Of `size` only what the constants do not explain counts (Frisch and Waugh).
    free = size - constants @ np.linalg.lstsq(constants, size, rcond=None)[0]
    if float(free @ free) <= NO_LEVERAGE * max(1.0, float(size @ size)):
        return None
    design = np.column_stack([constants, size])
    bread = np.linalg.pinv(design.T @ design, hermitian=True)
    coefficients = bread @ design.T @ gaps
    return _Fit(
        coefficient=float(coefficients[-1]),
        free=free,
        residuals=gaps - design @ coefficients,
        design=design,
        bread=np.asarray(bread, dtype=np.float64),
    )


def _without_traces(fit: _Fit) -> float:
    """Return the sum of squared changes of the slope when a trace is left out.

    A trace that alone carries a constant says nothing about the slope.
    """
    rest = 1 - np.einsum("ij,jk,ik->i", fit.design, fit.bread, fit.design, optimize=True)
    said = rest > NO_LEVERAGE
    adjusted = np.where(said, fit.residuals, 0.0) / np.where(said, rest, 1.0)
    return float(((fit.free * adjusted) ** 2).sum() / float(fit.free @ fit.free) ** 2)


def _without_units(fit: _Fit, unit: IntArray) -> float:
    """Return the same with whole tasks left out; the pseudo-inverse skips what says nothing."""
    pull = fit.free / float(fit.free @ fit.free)
    order = np.argsort(unit, kind="stable")
    starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
    total = 0.0
    for rows in np.split(order, starts[1:]):
        own = fit.design[rows]
        rest = np.eye(rows.size) - own @ fit.bread @ own.T
        adjusted = np.linalg.pinv(rest, rcond=1e-9, hermitian=True) @ fit.residuals[rows]
        total += float(pull[rows] @ adjusted) ** 2
    return total


def _result(
    value: float, variance: float, df: float, n: int, method: str, confidence_level: float
) -> MeanAgainstZero:
    status, se, interval, p_value = OK, None, None, None
    if variance < NO_NOISE:
        status = "no interval: the gap does not vary within human classes; label more"
    else:
        se = float(np.sqrt(variance))
        reach = two_sided_t(confidence_level, df) * se
        interval = value - reach, value + reach
        p_value = float(2 * stats.t.sf(abs(value) / se, df))
    return MeanAgainstZero(
        estimate=Estimate(
            value=value, interval=interval, n=n, method=method,
            confidence_level=confidence_level, status=status, se=se,
        ),
        p_value=p_value,
    )  # fmt: skip
