"""Weeks that lie outside what the weeks before them lead one to expect."""

from dataclasses import dataclass

import numpy as np

from calibration.metrics.arrays import BoolArray, FloatArray
from calibration.metrics.laws import t_quantile

WINDOW, FEWEST, LEVEL = 8, 6, 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the weeks before lead one to expect of a week.

    Parameters
    ----------
    value : float
        Their random-effects mean.
    interval : tuple of float
        Prediction interval of the value of this week, given its own standard error.
    n_weeks : int
        Weeks behind it.
    between : float
        Standard deviation between weeks that sampling does not explain.
    anomaly : bool
        Whether the week lies outside.
    """

    value: float
    interval: tuple[float, float]
    n_weeks: int
    between: float
    anomaly: bool


def expectation(
    values: FloatArray,
    standard_errors: FloatArray,
    value: float,
    standard_error: float,
    *,
    level: float = LEVEL,
) -> Expectation | None:
    """Compare a value with those before it.

    Weeks are independent, and their true values scatter around one mean. Where the same tasks run
    every week the values share what the tasks have in common, and the rule alarms less often than
    it says.

    Parameters
    ----------
    values, standard_errors : float array, shape (n_weeks,)
        The weeks before.
    value, standard_error : float
        The week to judge.
    level : float, default 0.99
        Of the prediction interval.

    Returns
    -------
    Expectation or None
        None with fewer than 6 weeks before.

    References
    ----------
    DerSimonian and Laird (1986), Control. Clin. Trials 7.
    https://doi.org/10.1016/0197-2456(86)90046-2
    Higgins, Thompson and Spiegelhalter (2009), J. R. Stat. Soc. A 172.
    https://doi.org/10.1111/j.1467-985X.2008.00552.x

    Examples
    --------
    Eight weeks at .60 with a standard error of .01, then .70: the limit is t(6) x sqrt(9 / 8) x .01
    away.

    >>> found = expectation(np.full(8, 0.6), np.full(8, 0.01), 0.7, 0.01)
    >>> found.interval, found.anomaly
    ((0.5607, 0.6393), True)
    """
    if values.size < FEWEST:
        return None
    mean, between, reach = _predicted(
        values[None, :], standard_errors, np.array([standard_error]), level
    )
    low, high = float(mean[0] - reach[0]), float(mean[0] + reach[0])
    return Expectation(
        value=float(mean[0]),
        interval=(low, high),
        n_weeks=int(values.size),
        between=float(np.sqrt(between[0])),
        anomaly=not low <= value <= high,
    )


def _predicted(
    values: FloatArray, standard_errors: FloatArray, standard_error: FloatArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, variance between weeks, and half-width, for each row of values."""
    precision = 1 / standard_errors**2
    total = precision.sum()
    n_weeks = values.shape[1]
    off = values - (values @ precision / total)[:, None]
    surplus = off**2 @ precision - (n_weeks - 1)
    between = np.maximum(0.0, surplus / (total - (precision**2).sum() / total))
    weights = 1 / (standard_errors**2 + between[:, None])
    sums = weights.sum(axis=1)
    mean = (weights * values).sum(axis=1) / sums
    t = t_quantile((1 + level) / 2, n_weeks - 2)
    return mean, between, t * np.sqrt(between + standard_error**2 + 1 / sums)


def false_alarm_rate(
    standard_errors: FloatArray,
    *,
    rng: np.random.Generator,
    between: float = 0.0,
    level: float = LEVEL,
    n_simulations: int = 10_000,
) -> float | None:
    """Return how often the rule calls a week an anomaly when nothing has changed.

    By simulation of normal weekly values with these standard errors around one mean.

    Parameters
    ----------
    standard_errors : float array, shape (n_weeks,)
        Of the weeks, oldest first; NaN for a week that was not judged.
    rng : numpy.random.Generator
        Source of the simulated weeks.
    between : float, default 0
        Standard deviation of the true weekly values around their mean.
    level : float, default 0.99
        Of the prediction interval.
    n_simulations : int, default 10000
        Simulated series.

    Returns
    -------
    float or None
        Mean over the weeks that can be judged; None if there is none.

    Examples
    --------
    >>> rate = false_alarm_rate(np.full(20, 0.02), rng=np.random.default_rng(1))
    >>> 0 < rate < 0.01
    True
    """
    spread = np.sqrt(standard_errors**2 + between**2)
    values = spread * rng.standard_normal((n_simulations, standard_errors.size))
    rates = []
    for week in range(standard_errors.size):
        before = weeks_before(np.isfinite(standard_errors), week)
        if np.isfinite(standard_errors[week]) and before.size >= FEWEST:
            mean, _, reach = _predicted(
                values[:, before], standard_errors[before], standard_errors[[week]], level
            )
            rates.append(float(np.mean(np.abs(values[:, week] - mean) > reach)))
    return float(np.mean(rates)) if rates else None


def weeks_before(usable: BoolArray, week: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the usable ones among the eight weeks before a week."""
    first = max(0, week - WINDOW)
    return np.flatnonzero(usable[first:week]) + first
