"""The rate week by week: intervals, rolling mean, anomalies, lasting drops, class mix.

`standard_errors` have one value per week, oldest first; `rng` is the source of resamples and
simulations; `options` are those of `resample`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
from scipy import special

from calibration.statistics.estimate import (
    OK,
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    not_estimable,
)
from calibration.statistics.intervals import (
    MINIMUM_UNITS,
    NO_VARIANCE,
    NO_VARIATION,
    f_chance_above,
    normal_chance,
    t_interval,
    t_quantile,
    two_sided_t,
    two_sided_z,
)
from calibration.success_rate.comparison import EXACTLY, LEVEL, MOVED, benjamini_hochberg
from calibration.success_rate.rate import units_a_group
from calibration.success_rate.resampling import (
    BOOTSTRAP_UNITS,
    FEWEST_GROUPS,
    TASKS,
    Resampled,
    Resampling,
    Units,
    effective_share,
    features,
    linearised_variance,
    pool_lone,
    random_groups,
    resample,
    units_of,
)
from calibration.success_rate.runs import RunCounts, condensed
from calibration.text import calendar

WINDOW, FEWEST, ANOMALY_LEVEL = 8, 6, 0.99

# Most task totals over all weeks; above it tasks are grouped at random.
MOST_TOTALS = 1_000_000

ROLLING = 4

# False alarms in eight weeks are at most .05 where true weekly values scatter by up to one standard
# error; 3.5 would do only where they are known not to.
REFERENCE_VALUE, CUSUM_LIMIT = 0.5, 4.3
CUSUM = (
    f"one-sided CUSUM, reference value {REFERENCE_VALUE:g}, limit {CUSUM_LIMIT:g}, baseline of "
    f"{WINDOW} weeks"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the weeks before lead one to expect of a week.

    `value` : random-effects mean of the `n_weeks` weeks before
    `interval` : prediction interval of this week's value, given its own standard error; in [0, 1]
    `between` : standard deviation between weeks that sampling does not explain, at `value`
    `anomaly` : the week is outside the interval
    """

    value: float
    interval: tuple[float, float]
    n_weeks: int
    between: float
    anomaly: bool


def expectation(
    values: FloatArray,
    standard_errors: FloatArray,
    sizes: FloatArray,
) -> Expectation | None:
    """Compare a rate with those of the weeks before it, on the logit scale.

    Weeks are independent, and their true values scatter around one mean. Where the same tasks run
    every week, the values share the variation between tasks, and the true false-alarm rate is below
    the nominal one. None with fewer than 6 weeks before.

    A rate v of effective size m = v (1 - v) / SE^2 enters as logit((v m + .5) / (m + 1)), which is
    finite at 0 and 1.

    Parameters
    ----------
    values, standard_errors, sizes : float array, shape (n_weeks + 1,)
        Of the weeks before, then of the week to judge: rates in [0, 1], their standard errors, and
        independent runs or tasks (used where a rate is 0 or 1).

    References
    ----------
    DerSimonian and Laird (1986), Control. Clin. Trials 7.
    https://doi.org/10.1016/0197-2456(86)90046-2
    Higgins, Thompson and Spiegelhalter (2009), J. R. Stat. Soc. A 172.
    https://doi.org/10.1111/j.1467-985X.2008.00552.x

    Examples
    --------
    Eight weeks at .5 with a standard error of .01, then .6: a week is worth 2,500 runs and the last
    one 2,400, so the errors are .04 and, at .55, .0410; the limits are 0 -+ t(6) x sqrt(.04^2 / 8 +
    .0410^2) = .1610 on the logit scale.

    >>> found = expectation(np.append(np.full(8, 0.5), 0.6), np.full(9, 0.01), np.full(9, 2500))
    >>> found.interval, found.anomaly
    ((0.45986, 0.54014), True)
    """
    if values.size <= FEWEST:
        return None
    logits, errors = on_logit_scale(values, standard_errors, sizes)
    mean = float(_predicted(logits[None, :-1], errors[:-1], errors[[-1]])[0][0])
    # The error of the week to judge is taken half-way between what was expected and what was seen:
    # at its own rate a week of 0 would excuse itself, at the expected one a week of 1 near 1 is
    # given too small an error.
    seen = special.expit(logits[-1])
    size = errors[[-1]] ** -2 / (seen * (1 - seen))
    middle = (special.expit(mean) + seen) / 2
    error = 1 / np.sqrt(size * middle * (1 - middle))
    between, reach = (
        float(part[0]) for part in _predicted(logits[None, :-1], errors[:-1], error)[1:]
    )
    low, high = float(special.expit(mean - reach)), float(special.expit(mean + reach))
    centre, value = float(special.expit(mean)), float(values[-1])
    anomaly = abs(float(logits[-1]) - mean) > reach
    if not anomaly:
        # A week of 0 or 1 is judged by its place on the scale.
        low, high = min(low, value), max(high, value)
    return Expectation(
        value=centre,
        interval=(low, high),
        n_weeks=int(values.size) - 1,
        between=float(np.sqrt(between)) * centre * (1 - centre),
        anomaly=anomaly,
    )


def on_logit_scale(
    values: FloatArray, standard_errors: FloatArray, sizes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return rates and standard errors on the logit scale of `expectation`; NaN without an error.

    Examples
    --------
    All of 20 runs: logit(20.5 / 21) = log(41), and 1 / sqrt(20 x 20.5 x .5 / 21^2):

    >>> logits, errors = on_logit_scale(np.ones(1), np.full(1, 0.04), np.full(1, 20.0))
    >>> round(float(logits[0]), 4), round(float(errors[0]), 4)
    (3.7136, 1.4667)
    """
    spread = values * (1 - values)
    size = np.where(spread > 0, spread / standard_errors**2, sizes)
    size = np.where(np.isfinite(standard_errors), size, np.nan)
    inside = (values * size + 0.5) / (size + 1)
    return special.logit(inside), 1 / np.sqrt(size * inside * (1 - inside))


def _predicted(
    values: FloatArray, standard_errors: FloatArray, standard_error: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean, the variance between weeks and the half-width of each row of values."""
    mean, between, variance = _random_effects(values, standard_errors)
    spread = np.sqrt(between + standard_error**2 + variance)
    return mean, between, two_sided_t(ANOMALY_LEVEL, values.shape[1] - 2) * spread


def _random_effects(
    values: FloatArray, standard_errors: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean of each row, the variance between weeks and the variance of the mean."""
    precision = 1 / standard_errors**2
    total = precision.sum()
    off = values - (values @ precision / total)[:, None]
    surplus = off**2 @ precision - (values.shape[1] - 1)
    between = np.maximum(0.0, surplus / (total - (precision**2).sum() / total))
    weights = 1 / (standard_errors**2 + between[:, None])
    sums = weights.sum(axis=1)
    return (weights * values).sum(axis=1) / sums, between, 1 / sums


def cusum(
    values: FloatArray, standard_errors: FloatArray, sizes: FloatArray
) -> tuple[FloatArray, int | None, float | None]:
    """Add up how far weeks are below their baseline: a small drop that lasts is found early.

    Return the path (NaN for a week without an interval and in the first baseline); the place of the
    week after its last zero, None unless it ends above its limit; and the baseline that it fell
    from, without an alarm that of the last block, None where no week could be judged.

    A week adds z - .5 to the path, which is never below 0 and gives the alarm above 4.3; z = (base
    - x) / sqrt(SE^2 + tau^2 + Var base), on the logit scale of `expectation`. The baseline is the
    random-effects mean of eight weeks, tau^2 their variance between weeks. It holds for the eight
    weeks after them, a block, which are the baseline of the next block. The path starts at 0 in
    every block unless the alarm is on. Weeks without an interval are left out.

    Weeks are independent. Where the same tasks run every week, z is too small: fewer false alarms,
    and fewer drops that are found.

    Parameters
    ----------
    values, standard_errors, sizes : float array, shape (n_weeks,)
        As in `expectation`, oldest first; a standard error of NaN is a week without an interval.

    References
    ----------
    Page (1954), Biometrika 41. https://doi.org/10.1093/biomet/41.1-2.100
    DerSimonian and Laird (1986), Control. Clin. Trials 7.
    https://doi.org/10.1016/0197-2456(86)90046-2

    Examples
    --------
    Eight weeks at .5 with a standard error of .02, then three at .44. A week at .44 is worth .44 x
    .56 / .02^2 = 616 runs and is -.2408 on the scale, with an error of .0812; the baseline has the
    error .08 / sqrt(8) = .0283. So z = .2408 / sqrt(.0812^2 + .0283^2) = 2.80, each week adds 2.30,
    and the path passes 4.3 in the second week.

    >>> weeks = np.append(np.full(8, 0.5), np.full(3, 0.44))
    >>> path, since, baseline = cusum(weeks, np.full(11, 0.02), np.full(11, 625.0))
    >>> np.round(path[8:], 2), since, baseline
    (array([2.3, 4.6, 6.9]), 8, 0.5)
    """
    logits, errors = on_logit_scale(values, standard_errors, sizes)
    usable = np.flatnonzero(np.isfinite(errors))
    path = np.full(values.size, np.nan)
    total, since, baseline = 0.0, None, None
    for start in range(WINDOW, usable.size, WINDOW):
        before, block = usable[start - WINDOW : start], usable[start : start + WINDOW]
        mean, between, variance = (
            float(part[0]) for part in _random_effects(logits[None, before], errors[before])
        )
        if total <= CUSUM_LIMIT:
            total = 0.0
        for week in block.tolist():
            if total == 0:
                since, baseline = week, float(special.expit(mean))
            z = (mean - logits[week]) / np.sqrt(errors[week] ** 2 + between + variance)
            path[week] = total = max(0.0, total + float(z) - REFERENCE_VALUE)
    return path, since if total > CUSUM_LIMIT else None, baseline


def false_alarm_rate(
    standard_errors: FloatArray,
    *,
    rng: np.random.Generator,
    between: float = 0.0,
    n_simulations: int = 10_000,
) -> float | None:
    """Estimate the share of weeks that the rule calls anomalies although nothing has changed.

    Mean over the weeks that can be judged, None without any. Simulated weekly values are normal on
    the logit scale around one mean, with standard deviation `between` of the true values.
    `standard_errors` are on that scale, NaN for a week that was not judged.
    """
    spread = np.sqrt(standard_errors**2 + between**2)
    values = spread * rng.standard_normal((n_simulations, standard_errors.size))
    rates = []
    for week in range(standard_errors.size):
        before = weeks_before(np.isfinite(standard_errors), week)
        if np.isfinite(standard_errors[week]) and before.size >= FEWEST:
            mean, _, reach = _predicted(
                values[:, before], standard_errors[before], standard_errors[[week]]
            )
            rates.append(float(np.mean(np.abs(values[:, week] - mean) > reach)))
    return float(np.mean(rates)) if rates else None


def weeks_before(usable: BoolArray, week: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the usable weeks among the eight before a week."""
    first = max(0, week - WINDOW)
    return np.flatnonzero(usable[first:week]) + first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeekDraws:
    """The weeks that have runs, in order, with their values on each resample.

    `errors` are from the exact bound where nothing varied, and NaN below five units. `entering`
    counts the units of each week, runs or tasks as `noun` says. `sizes` are weighted runs.
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
    **options: Unpack[Resampling],
) -> WeekDraws:
    """Resample the weeks: one by one if runs are independent, by whole tasks if tasks repeat."""
    if counts.repeats:
        found = resample(_units_of_all_weeks(counts, rng), rng=rng, **options)
        weeks = counts.labels("week").seen
        return _gathered([(found, f"{week}:top", f"{week}:bottom") for week in weeks])
    cells = condensed(counts, by="week")
    labels = cells.labels("week")
    most = units_a_group(len(labels.seen))
    units = (units_of(cells.where(labels.of(week)), rng=rng, most=most) for week in labels.seen)
    return _gathered([(resample(one, rng=rng, **options), "score", "runs") for one in units])


def _units_of_all_weeks(counts: RunCounts, rng: np.random.Generator) -> Units:
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
        for name in ("score", "runs"):
            column = np.bincount(
                task[rows], weights=rows_of[names.index(name)][rows], minlength=multiplicity.size
            ).astype(np.float64)
            entering.append(int(multiplicity[column > 0].sum()))
            columns.append(column if grouping is None else grouping.added(column))
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
        effective_share=effective_share(counts.weight, counts.runs * counts.like),
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
            # Equal runs do not prove a rate without error.
            errors[i] = estimate.half_width / two_sided_z(estimate.confidence_level)
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
    """Return the covariance of the weekly values; weeks resampled one by one are independent."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """One ISO week: its rate, and the rolling mean of it and the three weeks before.

    `expected` is None with fewer than six weeks among the eight before. `cusum` is the path of the
    CUSUM, None without an interval and in its first baseline.
    """

    week: str
    n: int
    rate: Estimate
    rolling: Estimate
    expected: Expectation | None
    cusum: float | None

    @property
    def anomaly(self) -> bool:
        """Whether the week lies outside its prediction interval."""
        return self.expected is not None and self.expected.anomaly

    @property
    def below(self) -> bool:
        """Whether the CUSUM is above its limit: the rate is below its baseline."""
        return self.cusum is not None and self.cusum > CUSUM_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class LastingDrop:
    """Whether the last week that was judged is below its baseline, by CUSUM.

    `since` : the week after the last zero of the path; None without an alarm
    `baseline` : the rate that it fell from; without an alarm that of the last block of weeks
    `value`, `limit` : the path in the last week that was judged, and the limit of the alarm
    `n_weeks`, `left_out` : weeks that were judged; weeks without an interval, which are not
    """

    status: str
    since: str | None
    baseline: float | None
    value: float | None
    limit: float
    n_weeks: int
    left_out: tuple[str, ...]
    method: str = CUSUM

    @property
    def alarm(self) -> bool:
        """Whether the rate is below its baseline."""
        return self.since is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklySeries:
    """A rate over time.

    `weeks` : every week from the first with runs to the last, those without runs too
    `n_without_week` : runs without a time, which are not in it
    `false_alarm_rate` : share of the judged weeks that the rule would call anomalies if nothing
        changed, by simulation with the standard errors of this series; None if no week could be
        judged
    `drop` : whether a lasting drop is found; None without weeks
    `pooled` : the rolling mean weighs weeks by their runs
    """

    weeks: tuple[Week, ...]
    n_without_week: int
    false_alarm_rate: float | None
    pooled: bool
    drop: LastingDrop | None = None


def weekly_series(
    counts: RunCounts,
    *,
    rng: np.random.Generator,
    pooled: bool = False,
    **options: Unpack[Resampling],
) -> WeeklySeries:
    """Estimate the Agent Success Rate of every week; flag anomalies and lasting drops.

    Runs are independent, or tasks are: a task that runs in several weeks is resampled with all of
    them, so the rolling mean allows for the dependence between weeks.

    With `pooled` the rolling mean weights its weeks by their runs. ValueError if the runs were not
    counted by ``"week"``, or a week is no ISO week.

    Examples
    --------
    >>> from calibration.success_rate.runs import count_runs
    >>> from calibration.taxonomy import default_taxonomy
    >>> weeks = ["2026-W01", "2026-W01", "2026-W02"]
    >>> counts = count_runs([0, 0, 4], taxonomy=default_taxonomy(), by={"week": weeks})
    >>> [(w.week, w.rate.value) for w in weekly_series(counts, rng=np.random.default_rng(1)).weeks]
    [('2026-W01', 1.0), ('2026-W02', 0.0)]
    """
    labels = counts.labels("week")
    runs = counts.runs * counts.like
    without = int(runs[labels.codes < 0].sum())
    seen = labels.seen
    if not seen:
        return WeeklySeries(weeks=(), n_without_week=without, false_alarm_rate=None, pooled=pooled)
    names = calendar(seen[0], seen[-1])
    drawn = draw_weeks(counts, rng=rng, **options)
    place = [seen.index(name) if name in seen else None for name in names]
    errors = np.array([np.nan if i is None else drawn.errors[i] for i in place])
    values = np.array([np.nan if i is None else drawn.values[i] for i in place])
    units = np.array([0 if i is None else drawn.entering[i] for i in place], dtype=np.float64)
    n_runs = np.bincount(labels.codes[labels.codes >= 0], weights=runs[labels.codes >= 0])
    sizes = {name: int(n_runs[labels.names.index(name)]) for name in seen}
    empty = not_estimable(
        "no runs in this week", method="bootstrap", confidence_level=drawn.confidence_level
    )
    path, since, baseline = cusum(values, errors, units)
    judged = path[np.isfinite(path)]
    usable = np.isfinite(errors)
    lack = f"{WINDOW + 1} weeks with an interval are needed, there are {usable.sum()}"
    weeks = tuple(
        Week(
            week=name,
            n=sizes.get(name, 0),
            rate=empty if i is None else drawn.estimates[i],
            rolling=_rolling(drawn, names, place, at, pooled),
            expected=_expected(values, errors, units, at),
            cusum=float(path[at]) if np.isfinite(path[at]) else None,
        )
        for at, (name, i) in enumerate(zip(names, place, strict=True))
    )
    return WeeklySeries(
        weeks=weeks,
        n_without_week=without,
        false_alarm_rate=false_alarm_rate(on_logit_scale(values, errors, units)[1], rng=rng),
        pooled=pooled,
        drop=LastingDrop(
            status=OK if judged.size else f"not_estimable: {lack}",
            since=None if since is None else names[since],
            baseline=baseline,
            value=float(judged[-1]) if judged.size else None,
            limit=CUSUM_LIMIT,
            n_weeks=judged.size,
            left_out=tuple(name for name, known in zip(names, usable, strict=True) if not known),
        ),
    )


def _expected(
    values: FloatArray, errors: FloatArray, units: FloatArray, at: int
) -> Expectation | None:
    if not np.isfinite(errors[at]):
        return None
    weeks = np.append(weeks_before(np.isfinite(errors), at), at)
    return expectation(values[weeks], errors[weeks], units[weeks])


def _rolling(
    drawn: WeekDraws,
    names: Sequence[str],
    place: Sequence[int | None],
    at: int,
    pooled: bool,
) -> Estimate:
    window = range(at - ROLLING + 1, at + 1)
    inside = [i for i in (place[k] for k in window if k >= 0) if i is not None]
    kind = "runs of 4 weeks pooled" if pooled else "mean of 4 weeks"
    level = drawn.confidence_level
    if len(inside) < ROLLING:
        empty = [names[k] for k in window if k >= 0 and place[k] is None]
        lack = f"{empty[-1]} has none" if empty else f"there are {len(inside)} so far"
        why = f"a rolling mean needs {ROLLING} weeks with runs, {lack}"
        return not_estimable(why, method=kind, confidence_level=level)
    weights = drawn.sizes[inside] if pooled else np.ones(len(inside))
    weights = weights / weights.sum()
    value = float(weights @ drawn.values[inside])
    fewest = int(drawn.entering[inside].min())
    n = int(drawn.entering[inside].sum())
    if fewest < MINIMUM_UNITS:
        why = f"no interval: a week has {fewest} {drawn.noun}, at least {MINIMUM_UNITS} are needed"
        return Estimate(
            value=value,
            interval=None,
            n=n,
            method=kind,
            confidence_level=level,
            status=f"not_estimable: {why}",
        )
    variance = float(weights @ drawn.covariance[np.ix_(inside, inside)] @ weights)
    se = float(np.sqrt(variance))
    draws = None if drawn.draws is None else drawn.draws[:, inside] @ weights
    steady = any(drawn.estimates[i].status == NO_VARIATION for i in inside)
    if draws is None or steady or fewest < BOOTSTRAP_UNITS or np.isnan(draws).any():
        parts = (weights * drawn.errors[inside]) ** 2
        freedom = parts.sum() ** 2 / (parts**2 / (drawn.entering[inside] - 1)).sum()
        limits = t_interval(value, se, df=freedom, confidence_level=level, lowest=0.0, highest=1.0)
        method = f"{kind}, t"
    else:
        tail = (1 - level) / 2
        if drawn.noun == TASKS:
            # As in `Resampled.shortness`; all four weeks may have the same tasks.
            wider = float(np.sqrt(fewest / (fewest - 1))) * t_quantile(tail, fewest - 1)
            tail = normal_chance(wider)
        low, high = np.quantile(draws, [tail, 1 - tail])
        limits, method = (float(low), float(high)), f"{kind}, {drawn.method}"
    return Estimate(
        value=value, interval=limits, n=n, method=method, confidence_level=level, status=OK, se=se
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MixShift:
    """Class mix of one week against the pooled weeks before it.

    `distance` : half the sum of the absolute differences of all shares; None for the first week.
    `by_chance` : its expectation under equal mixes.
    `p_value`, `adjusted_p_value` : cluster-robust test of equal mixes; after Benjamini-Hochberg.
    `flagged` : distance above 2 percentage points and an adjusted p-value of at most .05.
    """

    distance: float | None
    by_chance: float | None
    p_value: float | None
    adjusted_p_value: float | None
    flagged: bool
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    distance: float | None
    by_chance: float | None
    p_value: float | None
    status: str


def mix_shifts(
    counts: FloatArray, unit: IntArray, week: IntArray, *, noun: str = "runs"
) -> tuple[MixShift, ...]:
    """Compare the class mix of every week with the pooled weeks before it, from week 0 to the last.

    Units (tasks, or runs) are independent; a unit may have runs in several weeks.

    The Pearson statistic of the two mixes with its second-order correction for the units (Rao and
    Scott), compared with F (Thomas and Rao), with the variance under equal mixes. It needs no
    matrix inverse, so rare classes do no harm.

    Parameters
    ----------
    counts : float array, shape (n_rows, n_classes)
        Weighted runs of each class, of one unit in one week.
    unit, week : int array, shape (n_rows,)
        The unit and the week of each row; the first week is 0. ValueError without rows, or if
        shapes differ.
    noun : str, default "runs"
        The name of the units.

    References
    ----------
    Rao and Scott (1984), Ann. Statist. 12. https://doi.org/10.1214/aos/1176346391
    Thomas and Rao (1987), J. Amer. Statist. Assoc. 82. https://doi.org/10.2307/2289475

    Examples
    --------
    Ten runs of each of two classes, then fifteen and five: a quarter has moved.

    >>> before, after = [0] * 10 + [1] * 10, [0] * 15 + [1] * 5
    >>> found = mix_shifts(np.eye(2)[before + after], np.arange(40), np.repeat([0, 1], 20))
    >>> found[1].distance, found[1].p_value
    (0.25, 0.11493)
    """
    if counts.ndim != 2 or not len(counts) or not len(counts) == unit.size == week.size:
        raise ValueError(
            f"counts, unit and week must have one row each, at least one, got {counts.shape!r}, "
            f"{unit.shape!r} and {week.shape!r}"
        )
    tests = [_tested(counts, unit, week, number, noun) for number in range(int(week.max()) + 1)]
    adjusted = benjamini_hochberg([test.p_value for test in tests])
    return tuple(
        MixShift(
            distance=test.distance,
            by_chance=test.by_chance,
            p_value=test.p_value,
            adjusted_p_value=p,
            flagged=(
                test.distance is not None
                and test.distance > MOVED + EXACTLY
                and p is not None
                and p <= LEVEL
            ),
            status=test.status,
        )
        for test, p in zip(tests, adjusted, strict=True)
    )


def _tested(counts: FloatArray, unit: IntArray, week: IntArray, number: int, noun: str) -> _Test:
    sides = [
        _by_unit(counts[rows], unit[rows], int(unit.max()) + 1)
        for rows in (week < number, week == number)
    ]
    entering = [int((side.sum(axis=1) > 0).sum()) for side in sides]
    if not entering[1]:
        return _Test(distance=None, by_chance=None, p_value=None, status="no verdicts in this week")
    if not entering[0]:
        return _Test(
            distance=None, by_chance=None, p_value=None, status="no week with verdicts before it"
        )
    totals = [float(side.sum()) for side in sides]
    shares = [side.sum(axis=0) / total for side, total in zip(sides, totals, strict=True)]
    distance = float(np.abs(shares[1] - shares[0]).sum() / 2)
    if min(entering) < MINIMUM_UNITS:
        why = (
            f"not_estimable: no test from {min(entering)} {noun} on a side, "
            f"at least {MINIMUM_UNITS} are needed"
        )
        return _Test(distance=distance, by_chance=None, p_value=None, status=why)
    pooled = (sides[0] + sides[1]).sum(axis=0) / sum(totals)
    # What each unit adds to the difference of the mixes if these are equal.
    influence = sum(
        sign * (side - side.sum(axis=1, keepdims=True) * pooled) / total
        for side, sign, total in zip(sides, (-1.0, 1.0), totals, strict=True)
    )
    used = influence[np.abs(influence).sum(axis=1) > 0] if np.any(influence) else influence[:0]
    units = int(((sides[0] + sides[1]).sum(axis=1) > 0).sum())
    return _judged(distance, shares[1] - shares[0], pooled, used, units)


def _judged(
    distance: float, moved: FloatArray, pooled: FloatArray, influence: FloatArray, units: int
) -> _Test:
    occurring = pooled > 0
    covariance = units / (units - 1) * influence.T @ influence
    scale = 1 / np.sqrt(pooled[occurring])
    scaled = covariance[np.ix_(occurring, occurring)] * np.outer(scale, scale)
    mean, squares = float(np.trace(scaled)), float((scaled**2).sum())
    by_chance = float(np.sqrt(2 / np.pi * np.diag(covariance)).sum() / 2)
    if mean < NO_VARIANCE:
        return _Test(distance=distance, by_chance=0.0, p_value=1.0, status=OK)
    statistic = float((moved[occurring] ** 2 / pooled[occurring]).sum()) / mean
    freedom = mean**2 / squares
    p = f_chance_above(statistic, freedom, freedom * (units - 1))
    return _Test(distance=distance, by_chance=by_chance, p_value=p, status=OK)


def _by_unit(counts: FloatArray, unit: IntArray, n: int) -> FloatArray:
    return np.stack([np.bincount(unit, weights=c, minlength=n) for c in counts.T], axis=1)
