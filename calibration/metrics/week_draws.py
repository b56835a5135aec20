"""Resamples of every week at once, and how the weekly values vary together."""

from dataclasses import dataclass, replace

import numpy as np

from calibration.estimates import Estimate
from calibration.metrics.arrays import FloatArray, IntArray
from calibration.metrics.breakdowns import units_a_group
from calibration.metrics.condensing import condensed
from calibration.metrics.counts import RunCounts
from calibration.metrics.laws import normal_quantile
from calibration.metrics.resampling import (
    MINIMUM_UNITS,
    Interval,
    Resampled,
    resample,
)
from calibration.metrics.units import (
    FEWEST_GROUPS,
    GRID,
    TASKS,
    Units,
    features,
    pool_lone,
    random_groups,
    units_of,
)
from calibration.metrics.variances import (
    linearised_variance,
)

# Task totals of all weeks that are held as they are; beyond it tasks are grouped at random.
MOST_TOTALS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeekDraws:
    """The weeks that have runs, in order.

    Parameters
    ----------
    estimates : tuple of Estimate, length n_weeks
        The rate of each week.
    values, errors, sizes : float array, shape (n_weeks,)
        Its value; its standard error (from the exact bound where nothing varied, NaN below five
        units); its weighted runs.
    entering : int array, shape (n_weeks,)
        Runs or tasks of each week.
    covariance : float array, shape (n_weeks, n_weeks)
        Of the weekly values.
    draws : float array, shape (n_resamples, n_weeks), optional
        The weekly values on each resample.
    method, noun : str
        How intervals were made, and over what.
    confidence_level : float
        Target coverage.
    """

    estimates: tuple[Estimate, ...]
    values: FloatArray
    errors: FloatArray
    sizes: FloatArray
    entering: IntArray
    covariance: FloatArray
    draws: FloatArray | None
    method: str
    noun: str
    confidence_level: float


def draw_weeks(
    counts: RunCounts,
    *,
    rng: np.random.Generator,
    rate: str,
    n_resamples: int,
    confidence_level: float,
    interval: Interval,
) -> WeekDraws:
    """Resample every week: apart where runs are independent, whole tasks where they repeat.

    Raises
    ------
    ValueError
        If there is no such rate.
    """

    def resampled(units: Units) -> Resampled:
        return resample(
            units,
            rng=rng,
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            interval=interval,
        )

    if counts.repeats:
        found = resampled(_units_of_all_weeks(counts, rate, rng))
        weeks = counts.labels("week").seen
        return _gathered([(found, f"{week}:top", f"{week}:bottom") for week in weeks])
    cells = condensed(counts, grid=GRID if counts.rounded else None, by="week")
    labels = cells.labels("week")
    most = units_a_group(len(labels.seen))
    return _gathered(
        [
            (resampled(units_of(cells.where(labels.of(week)), rng=rng, most=most)), rate, "runs")
            for week in labels.seen
        ]
    )


def _units_of_all_weeks(counts: RunCounts, rate: str, rng: np.random.Generator) -> Units:
    labels = counts.labels("week")
    counts = counts.where(labels.codes >= 0)
    labels = counts.labels("week")
    _, first, task = np.unique(np.asarray(counts.task), return_index=True, return_inverse=True)
    multiplicity, stratum = counts.like[first], counts.stratum[first]
    names, rows_of = features(counts)
    grouping = None
    if multiplicity.size * len(labels.seen) > MOST_TOTALS:
        most = max(FEWEST_GROUPS, MOST_TOTALS // len(labels.seen) // 10)
        grouping = random_groups(multiplicity, stratum, rng=rng, most=most)
    columns, entering = [], []
    for week in labels.seen:
        rows = labels.of(week)
        for name in (rate, "runs"):
            column = np.bincount(
                task[rows], weights=rows_of[names.index(name)][rows], minlength=multiplicity.size
            ).astype(np.float64)
            entering.append(int(multiplicity[column > 0].sum()))
            columns.append(column if grouping is None else grouping.added(column))
    runs = counts.runs * counts.like
    if grouping is not None:
        stratum = grouping.stratum
        multiplicity = np.ones(stratum.size, dtype=np.int64)
    return Units(
        names=tuple(f"{week}:{end}" for week in labels.seen for end in ("top", "bottom")),
        sums=np.stack(columns, axis=1),
        multiplicity=multiplicity,
        stratum=pool_lone(stratum, multiplicity),
        entering=np.array(entering, dtype=np.int64),
        n=counts.n_tasks,
        effective_share=float((counts.weight @ runs) ** 2 / (counts.weight**2 @ runs) / counts.n),
        noun=TASKS,
        grouped=grouping is not None,
    )


def _gathered(weeks: list[tuple[Resampled, str, str]]) -> WeekDraws:
    entering = np.array(
        [found.units.entering[found.units.column(bottom)] for found, _, bottom in weeks],
        dtype=np.int64,
    )
    estimates = [
        replace(found.ratio(top, bottom), n=int(n))
        for (found, top, bottom), n in zip(weeks, entering, strict=True)
    ]
    covariance = _covariance(weeks)
    errors = np.sqrt(np.diag(covariance))
    for i, estimate in enumerate(estimates):
        if entering[i] < MINIMUM_UNITS:
            errors[i] = np.nan
        elif estimate.se is None and estimate.half_width is not None:
            # Equal runs are no proof of a rate without error.
            level = (1 + estimate.confidence_level) / 2
            errors[i] = estimate.half_width / normal_quantile(level)
            covariance[i, i] = errors[i] ** 2
    first = weeks[0][0]
    draws = [found.ratio_draws(top, bottom) for found, top, bottom in weeks]
    known = [values for values in draws if values is not None]
    return WeekDraws(
        estimates=tuple(estimates),
        values=np.array([np.nan if e.value is None else e.value for e in estimates]),
        errors=errors,
        sizes=np.array([found.totals(bottom) for found, _, bottom in weeks]),
        entering=entering,
        covariance=covariance,
        draws=np.stack(known, axis=1) if len(known) == len(draws) else None,
        method=first.method(int(entering.max())),
        noun=first.units.noun,
        confidence_level=first.confidence_level,
    )


def _covariance(weeks: list[tuple[Resampled, str, str]]) -> FloatArray:
    """Return the covariance of the weekly values; weeks resampled apart are independent."""
    found = np.zeros((len(weeks), len(weeks)))
    influences = [resampled.influence(top, bottom) for resampled, top, bottom in weeks]
    together = all(resampled is weeks[0][0] for resampled, _, _ in weeks)
    if not together:
        for i, (resampled, _, _) in enumerate(weeks):
            found[i, i] = linearised_variance(influences[i], resampled.units)
        return found
    units = weeks[0][0].units
    columns = np.stack(influences, axis=1)
    for stratum in np.unique(units.stratum).tolist():
        rows = units.stratum == stratum
        count = units.multiplicity[rows]
        size = int(count.sum())
        centred = columns[rows] - count @ columns[rows] / size
        found += size / max(1, size - 1) * centred.T @ (count[:, None] * centred)
    return found
