"""What a successful task costs, failures paid for too."""

from dataclasses import replace

import numpy as np

from calibration.statistics.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    not_estimable,
)
from calibration.statistics.intervals import MINIMUM_UNITS, two_sided_t
from calibration.success_rate.runs import COMPLETE, RunCounts

METHOD = "total cost over complete runs, linearised on the log scale, t"


def cost_per_success(
    counts: RunCounts, *, costed: IntArray | None = None, confidence_level: float = 0.95
) -> Estimate:
    """Estimate what all runs cost for each complete one, in the currency of the costs.

    Runs without a known cost enter neither the cost nor the successes. Runs are independent, or
    tasks are.

    Parameters
    ----------
    counts : RunCounts
        With costs, and with their squares where a row holds several runs: without them the spread
        of costs within a row is not known, and there is no interval.
    costed : int array, shape (n_rows,), optional
        Runs of each row whose cost is known, where a cost counts without a ceiling too; those that
        are `known` when None.
    confidence_level : float, default 0.95
        Target coverage, strictly between 0 and 1.

    Returns
    -------
    Estimate
        Not bounded by 1. The interval is multiplicative, since costs are skewed.

    Raises
    ------
    ValueError
        If `confidence_level` is outside (0, 1).

    Notes
    -----
    A bootstrap over cells would take the spread of costs within a cell for none.

    Examples
    --------
    Four runs at 1.00, two of them complete: 2.00 a success.

    >>> from calibration.success_rate.runs import count_runs
    >>> cost_per_success(count_runs([0, 0, 2, 2], costs=[1.0] * 4, ceilings=2.0)).value
    2.0
    """
    check_confidence_level(confidence_level)
    rows = counts.where(counts.known if costed is None else costed > 0)
    if costed is not None:
        rows = replace(rows, runs=costed[costed > 0])
    if rows.cost is None or not rows.runs.size:
        return _nothing("no cost is known: record costs", confidence_level)
    weight = rows.weight * rows.like
    complete = rows.shares[rows.mix, COMPLETE] * rows.runs
    successes = float(weight @ complete)
    if successes == 0:
        return _nothing("no complete run with a known cost: add runs", confidence_level)
    value = float(weight @ rows.cost) / successes
    n = rows.n_tasks
    status, limits, se = "ok", None, None
    variance = _variance(rows, value * complete, successes) if n > 1 else None
    if n < MINIMUM_UNITS:
        status = f"not_estimable: no interval from {n} runs or tasks, at least 5 are needed"
    elif variance is None:
        status = "not_estimable: no interval without the squares of the costs: count them too"
    elif value > 0:
        se = float(np.sqrt(variance))
        reach = two_sided_t(confidence_level, n - 1) * se / value
        limits = value * float(np.exp(-reach)), value * float(np.exp(reach))
    return Estimate(
        value=value,
        interval=limits,
        n=n,
        method=METHOD,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )


def _nothing(why: str, confidence_level: float) -> Estimate:
    return not_estimable(why, method=METHOD, confidence_level=confidence_level)


def _variance(rows: RunCounts, paid_for: FloatArray, successes: float) -> float | None:
    """Return the variance of the ratio: between units, and within rows of several."""
    if rows.cost is None:
        return None
    residual = (rows.cost - paid_for) * rows.weight
    n = rows.n_tasks
    if rows.repeats:
        _, first, task = np.unique(np.asarray(rows.task), return_index=True, return_inverse=True)
        of_task = np.bincount(task, weights=residual)
        between, hidden = float(rows.like[first] @ of_task**2), rows.like > 1
    else:
        between, hidden = float(rows.like @ (residual**2 / rows.runs)), rows.runs * rows.like > 1
    within = 0.0
    if hidden.any():
        if rows.cost_squared is None:
            return None
        spread = np.maximum(0.0, rows.cost_squared - rows.cost**2 / rows.runs)
        within = float((rows.weight**2 * rows.like * spread)[hidden].sum())
    return n / (n - 1) * (between + within) / successes**2
