"""Means, shares, ratios of totals and quantiles, weighted and clustered, with intervals.

`weights` are inverse inclusion probabilities; `clusters` names the task of each value where tasks
repeat. Values are independent, or independent between clusters when those are given.
`confidence_level` is the target coverage. Estimators raise ValueError if it is outside (0, 1),
shapes differ, a weight is not positive and finite, or a value is outside its range.
"""

from dataclasses import dataclass, replace
from math import exp, inf, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.statistics.estimate import (
    OK,
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    cluster_indices,
    not_estimable,
    validated_scores,
    validated_weights,
)
from calibration.statistics.intervals import (
    MINIMUM_UNITS,
    NO_VARIANCE,
    NO_VARIATION,
    clipped,
    exact_limits,
    logit_interval,
    t_chance,
    t_interval,
    two_sided_t,
    two_sided_z,
    unanimous_interval,
)

MEAN, BY_TASK, ALIKE = "mean, t", "mean, cluster-linearised t", "mean, exact bound"
HUMAN = "human labels only"

# A variance below this share of its terms is rounding error of the sums.
ROUNDING = 1e-12


def clustered_share(
    hits: FloatArray,
    of: FloatArray,
    *,
    n: int,
    stratum: IntArray | None = None,
    each: float = 1.0,
    noun: str = "runs",
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a share from sums over independent units, with limits that hold for rare events.

    The share is sum(hits) / sum(of): of runs, or of tool calls. Units (tasks, or runs) are
    independent within strata; within a unit any dependence is allowed. The limits are the exact
    binomial ones at the effective number of trials, share (1 - share) / variance; where no unit or
    every unit is a hit, the exact bound over the units. No interval below 5 units. A bootstrap has
    no width at zero hits and is too narrow at the few hits of an error rate.

    Parameters
    ----------
    hits, of : float array, shape (n_units,)
        Weighted sums of one unit, 0 <= hits <= of. Units with nothing in `of` do not enter.
    n : int
        Runs or calls behind all of them, unweighted.
    stratum : int array, shape (n_units,), optional
        Design stratum of each unit.
    each : float, default 1.0
        Tasks or runs in a unit, where units are random groups of them.
    noun : str, default "runs"

    References
    ----------
    Korn and Graubard (1998), Survey Methodology 24, 193-201.
    Franco, Little, Louis and Slud (2019), J. Surv. Stat. Methodol. 7.
    https://doi.org/10.1093/jssam/smy019

    Examples
    --------
    None of 20 runs failed: at most 1 - .025 ** (1 / 20) fail.

    >>> found = clustered_share(np.zeros(20), np.ones(20), n=20)
    >>> found.value, found.interval
    (0.0, (0.0, 0.16843))
    """
    if hits.shape != of.shape or hits.ndim != 1:
        raise ValueError(f"hits and of must have one shape, got {hits.shape!r} and {of.shape!r}")
    check_confidence_level(confidence_level)
    method = f"exact limits at the effective number, over {noun} (Korn and Graubard)"
    inside = of > 0
    entering = int(inside.sum())
    if not entering:
        return not_estimable(
            "nothing of this kind was recorded", method=method, confidence_level=confidence_level
        )
    strata = _strata(stratum, inside)
    hits, of = hits[inside], of[inside]
    share = min(1.0, float(hits.sum() / of.sum()))
    status, limits = OK, None
    if entering < MINIMUM_UNITS:
        status = (
            f"not_estimable: no interval from {entering} {noun}, "
            f"at least {MINIMUM_UNITS} are needed"
        )
    else:
        variance, freedom = _variance((hits - share * of) / of.sum(), strata)
        if variance < NO_VARIANCE or not 0 < share < 1:
            effective = each * float(of.sum() ** 2 / (of @ of))
        else:
            effective = min(float(n), share * (1 - share) / variance)
            effective *= _shrunk(n, freedom, confidence_level)
        limits = exact_limits(share, effective, confidence_level)
    return Estimate(
        value=share,
        interval=limits,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
    )


def clustered_mean(
    sums: FloatArray,
    of: FloatArray,
    *,
    n: int,
    stratum: IntArray | None = None,
    each: float = 1.0,
    noun: str = "runs",
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate the mean of a score in [-1, 1] from sums over independent units.

    As `clustered_share`, with the linearised standard error and t. Where all units score the same
    the interval is the exact bound on the share of units that may differ.

    Ten thumbs, seven of them up: (7 - 3) / 10.

    >>> scores = np.array([1.0] * 7 + [-1.0] * 3)
    >>> found = clustered_mean(scores, np.ones(10), n=10)
    >>> found.value, found.interval
    (0.4, (-0.29110, 1.0))
    """
    half = clustered_share(
        (sums + of) / 2,
        of,
        n=n,
        stratum=stratum,
        each=each,
        noun=noun,
        confidence_level=confidence_level,
    )
    method = f"mean score, t over {noun}"
    if half.value is None or half.interval is None:
        value = None if half.value is None else 2 * half.value - 1
        return Estimate(
            value=value, interval=None, n=half.n, method=method, status=half.status,
            confidence_level=confidence_level,
        )  # fmt: skip
    inside = of > 0
    mean = float(sums.sum() / of.sum())
    variance, freedom = _variance((sums - mean * of)[inside] / of.sum(), _strata(stratum, inside))
    low, high = (2 * end - 1 for end in half.interval)
    if variance >= NO_VARIANCE:
        low, high = t_interval(
            mean,
            sqrt(variance),
            df=freedom,
            confidence_level=confidence_level,
            lowest=-1.0,
            highest=1.0,
        )
    return Estimate(
        value=mean,
        interval=(low, high),
        n=n,
        method=method,
        confidence_level=confidence_level,
    )


def _strata(stratum: IntArray | None, inside: NDArray[np.bool_]) -> IntArray:
    if stratum is None:
        return np.zeros(int(inside.sum()), dtype=np.int64)
    found = np.unique(stratum[inside], return_inverse=True)[1].ravel()
    return found.astype(np.int64)


def _variance(influence: FloatArray, stratum: IntArray) -> tuple[float, float]:
    """Return the variance of summed influences within strata, and its degrees of freedom.

    A stratum of one unit joins the first stratum: alone it would add no variance.
    """
    sizes = np.bincount(stratum)
    stratum = np.where(sizes[stratum] < 2, int(sizes.argmax()), stratum)
    sizes = np.bincount(stratum).astype(np.float64)
    means = np.bincount(stratum, weights=influence) / np.maximum(1, sizes)
    squares = np.bincount(stratum, weights=(influence - means[stratum]) ** 2)
    freedom = float(max(1, stratum.size - int(np.count_nonzero(sizes))))
    return float((sizes / np.maximum(1, sizes - 1) * squares).sum()), freedom


def _shrunk(n: int, freedom: float, confidence_level: float) -> float:
    """Return the factor on the effective number because the variance is itself estimated."""
    known, estimated = (two_sided_t(confidence_level, df) for df in (max(1, n - 1), freedom))
    return (known / estimated) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HajekMean:
    """A weighted mean with its linearised variance; `units` counts clusters, else values.

    `freedom` : degrees of freedom of the variance; None: units - 1.
    `between` : part of the variance that stratum means have over the population.
    """

    value: float
    variance: float
    units: int
    clustered: bool
    freedom: float | None = None
    between: float = 0.0

    @property
    def df(self) -> float:
        """Degrees of freedom of the variance."""
        return self.units - 1.0 if self.freedom is None else self.freedom

    @property
    def se(self) -> float:
        """The standard error."""
        return sqrt(self.variance)


def variance_of_tasks(influence: FloatArray, shares: FloatArray) -> float:
    """Return the variance of a mean from the influences of tasks of unequal size.

    Every squared influence counts 1 / (1 - h) times, h being the share of the task in the mean: a
    task moves the mean that its influence is measured from. Equal tasks: G / (G - 1).

    Parameters
    ----------
    influence, shares : float array, shape (n_tasks,)
        `shares` sum to 1.

    Examples
    --------
    .1^2 / .5 + 2 x .05^2 / .75:

    >>> variance_of_tasks(np.array([0.1, -0.05, -0.05]), np.array([0.5, 0.25, 0.25]))
    0.026667
    """
    if shares.size < 2:
        return 0.0
    return float((influence**2 / np.maximum(1 - shares, np.finfo(np.float64).tiny)).sum())


def df_of_tasks(shares: FloatArray) -> float:
    """Return the degrees of freedom of a variance by task: the effective tasks less one.

    >>> df_of_tasks(np.array([0.5, 0.25, 0.25]))
    1.66667
    """
    return 1.0 / float(shares @ shares) - 1


def hajek_mean(
    values: FloatArray,
    *,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
) -> HajekMean:
    """Return the weighted mean of a probability sample of at least one value.

    Variance: G / (G - 1) times the sum over the G units of their squared influence, the influence
    being the sum of w (value - mean) / sum w over the values of the unit. Clusters: as
    `variance_of_tasks`, with their shares of the weights.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., section 6.3: the ratio of two totals.

    Examples
    --------
    Of 0, 0, 1, 1 the variance of the mean is 1/3 by 4:

    >>> found = hajek_mean(np.array([0.0, 0.0, 1.0, 1.0]))
    >>> found.value, found.variance, found.units
    (0.5, 0.08333, 4)
    """
    weight = validated_weights(weights, values.size)
    index = cluster_indices(clusters, values.size)
    value = float(weight @ values / weight.sum())
    influence = weight * (values - value) / weight.sum()
    if index is not None:
        shares = np.bincount(index, weights=weight / weight.sum()).astype(np.float64)
        by_task = np.bincount(index, weights=influence).astype(np.float64)
        return HajekMean(
            value=value, variance=variance_of_tasks(by_task, shares), units=shares.size,
            clustered=True, freedom=df_of_tasks(shares),
        )  # fmt: skip
    units = influence.size
    variance = units / (units - 1) * float(influence @ influence) if units > 1 else 0.0
    return HajekMean(value=value, variance=variance, units=units, clustered=False)


def stratified_mean(
    values: FloatArray,
    *,
    weights: FloatArray,
    strata: NDArray[np.generic],
    these_runs: bool = False,
) -> HajekMean:
    """Return the weighted mean of values drawn at random within strata.

    Variance: sum of M_h^2 (own_h + V / n_h^2) over the strata, as for verdicts in
    `post_stratified`, with M_h = W_h / W their shares of the weights, own_h the variance of a
    stratum mean and V the variance pooled within strata, a floor; and the variance of the stratum
    means over the population, sum of W_h (mean_h - mean)^2 / W^2. With `these_runs` the population
    itself is meant: the part of a stratum is 1 - n_h / W_h of that, and nothing is added. df are
    Satterthwaite's. `weights` are inverse inclusion probabilities.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., section 5.3: stratified means.

    Examples
    --------
    Two strata of 2 drawn from 10 and 30, with means .5 and 0; own is .125 and 0, V = .25:
    .25^2 (.125 + .25 / 4) + .75^2 x .25 / 4, and (10 x .375^2 + 30 x .125^2) / 40^2.

    >>> found = stratified_mean(
    ...     np.array([0.0, 1.0, 0.0, 0.0]), weights=np.array([5.0, 5.0, 15.0, 15.0]),
    ...     strata=np.array([1, 1, 2, 2]),
    ... )
    >>> found.value, found.variance, found.df
    (0.125, 0.048047, 1.6)
    """
    stratum = np.unique(strata, return_inverse=True)[1].ravel()
    mass = np.bincount(stratum, weights=weights)
    labels = mass**2 / np.bincount(stratum, weights=weights**2)
    means = np.bincount(stratum, weights=weights * values) / mass
    share = mass / mass.sum()
    value = float(share @ means)
    own = np.bincount(stratum, weights=(weights * (values - means[stratum])) ** 2) / mass**2
    pooled = float(labels**2 @ own) / max(1.0, float(labels.sum()) - labels.size)
    parts = share**2 * (own + pooled / labels**2)
    between = float(share @ (means - value) ** 2 / mass.sum())
    if these_runs:
        between = 0.0
        parts = parts * np.maximum(0.0, 1 - np.bincount(stratum) / mass)
    squares = float((parts**2 / np.maximum(1.0, labels - 1)).sum())
    whole = float(parts.sum())
    return HajekMean(
        value=value,
        variance=whole + between,
        units=values.size,
        clustered=False,
        freedom=whole**2 / squares if squares > 0 else 1.0,
        between=between,
    )


def human_only(
    scores: FloatArray,
    *,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    strata: NDArray[np.generic] | None = None,
    population: int | None = None,
    most_df: float = inf,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate ASR from the labelled traces alone, without the judge.

    The labels must be a probability sample of production. The interval is on the logit scale, t
    with n - 1 (or clusters - 1) df. If no score varies (within the strata) it is the exact bound
    and the status says so. No interval from fewer than 5 tasks that repeat.

    Parameters
    ----------
    scores : float array, shape (n,)
        Score of each labelled trace in [0, 1], with its own cost.
    weights, clusters : array, shape (n,), optional
    strata : array, shape (n,), optional
        Strata of a draw with unequal `weights`, see `stratified_mean`; not read where tasks repeat.
    population : int, optional
        Number of runs that the traces were drawn from, one by one, where the mean of these runs is
        asked and not that of runs like them: the variance is 1 - n / population of that, and tasks
        play no part.
    most_df : float, optional
        Degrees of freedom of the tasks of production, where these repeat.

    Examples
    --------
    Mean 0.5, standard error s / sqrt(4) = 0.2887. The logit of 1/2 is 0, and .2887 there is 1.1547;
    t with 3 df is 3.1824: 1 / (1 + exp(+-3.1824 x 1.1547)).

    >>> found = human_only(np.array([0.0, 0.0, 1.0, 1.0]))
    >>> found.se, found.interval
    (0.28868, (0.02472, 0.97528))
    """
    check_confidence_level(confidence_level)
    array = validated_scores(scores)
    n, method = array.size, f"{HUMAN}, logit t"
    if n < 2:
        why = f"{n} labelled traces: at least two are needed"
        return not_estimable(why, method=method, n=n, confidence_level=confidence_level)
    tasks = None if population else cluster_indices(clusters, n)
    if strata is not None and weights is not None and tasks is None:
        method = f"{HUMAN}, stratified logit t"
        mean = stratified_mean(
            array, weights=weights, strata=strata, these_runs=population is not None
        )
    else:
        mean = hajek_mean(array, weights=weights, clusters=tasks)
        if population is not None:
            mean = replace(mean, variance=mean.variance * max(0.0, 1 - n / population))
    se: float | None = None
    interval: tuple[float, float] | None = None
    if mean.clustered:
        method = f"{HUMAN}, cluster-linearised logit t"
    if mean.clustered and mean.units < MINIMUM_UNITS:
        status = f"no interval: {mean.units} tasks, at least {MINIMUM_UNITS} are needed"
    elif mean.variance - mean.between < NO_VARIANCE:
        status, method = NO_VARIATION, f"{HUMAN}, exact bound"
        reach = two_sided_z(confidence_level) * sqrt(mean.between)
        low, high = unanimous_interval(mean.value, mean.units, confidence_level=confidence_level)
        interval, se = clipped(low - reach, high + reach), mean.se
    else:
        status, se = OK, mean.se
        mean = replace(mean, freedom=min(mean.df, most_df))
        interval = logit_interval(mean.value, se, df=mean.df, confidence_level=confidence_level)
    return Estimate(
        value=mean.value,
        interval=interval,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=se,
        df=None if se is None else mean.df,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanAgainstZero:
    """A mean and the p-value of a two-sided t test against zero; None without a standard error."""

    estimate: Estimate
    p_value: float | None


def mean_against_zero(
    values: ArrayLike,
    *,
    nothing: str,
    lowest: float = -1.0,
    highest: float = 1.0,
    weights: ArrayLike | None = None,
    clusters: NDArray[np.generic] | None = None,
    confidence_level: float = 0.95,
) -> MeanAgainstZero:
    """Estimate the mean of a bounded value over traces, and test it against zero.

    The interval is a t interval on n - 1 (or clusters - 1) df. When all values are equal the
    interval is the exact bound on the share of traces that could differ, and there is no test.

    Parameters
    ----------
    values : array-like of float, shape (n,)
        For instance the credit of the verdict less that of the label.
    nothing : str
        Status without traces: why, and what would help.
    lowest, highest : float, default -1 and 1
        Range of the values; the interval is cut there.
    weights, clusters : array-like, shape (n,), optional

    Examples
    --------
    Mean 0.5, standard deviation 0.57735, so t = 0.5 / 0.28868 = 1.732 on 3 df:

    >>> found = mean_against_zero([0.0, 0.0, 1.0, 1.0], nothing="no traces: label some")
    >>> found.estimate.value, found.estimate.se, found.p_value
    (0.5, 0.28868, 0.18169)
    """
    check_confidence_level(confidence_level)
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"values must be one-dimensional, got shape {array.shape!r}")
    n = array.size
    if n == 0:
        refused = not_estimable(nothing, method=MEAN, confidence_level=confidence_level)
        return MeanAgainstZero(estimate=refused, p_value=None)
    slack = 1e-9
    if not (array.min() >= lowest - slack and array.max() <= highest + slack):
        raise ValueError(
            f"values must be in [{lowest}, {highest}], got {array.min()!r} to {array.max()!r}"
        )
    mean = hajek_mean(
        array, weights=None if weights is None else np.asarray(weights), clusters=clusters
    )
    method, status = BY_TASK if mean.clustered else MEAN, OK
    se, interval, p_value = None, None, None
    if n == 1:
        status = "no interval: one trace, at least two are needed"
    elif mean.clustered and mean.units < MINIMUM_UNITS:
        status = f"no interval: {mean.units} tasks, at least {MINIMUM_UNITS} are needed"
    elif mean.variance < NO_VARIANCE:
        method, status = ALIKE, NO_VARIATION
        interval = unanimous_interval(
            mean.value, mean.units, confidence_level=confidence_level,
            lowest=lowest, highest=highest,
        )  # fmt: skip
    else:
        se, df = mean.se, mean.units - 1
        interval = t_interval(
            mean.value, se, df=df, confidence_level=confidence_level,
            lowest=lowest, highest=highest,
        )  # fmt: skip
        p_value = 2 * t_chance(-abs(mean.value) / se, df)
    return MeanAgainstZero(
        estimate=Estimate(
            value=mean.value, interval=interval, n=n, method=method,
            confidence_level=confidence_level, status=status, se=se,
        ),
        p_value=p_value,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareSums:
    """Sums over independent units of y, x, y^2, xy and x^2: enough for a ratio and its error.

    `n` counts the units with x above zero; neither y (top) nor x (bottom) is negative.
    """

    n: int
    top: float
    bottom: float
    top_squared: float
    product: float
    bottom_squared: float

    @property
    def ratio(self) -> float:
        """The ratio of the sums."""
        return self.top / self.bottom

    @property
    def variance(self) -> float:
        """Linearised variance of the ratio, 0 where it is the same in all units.

        Tops 1, 2, 3 over 1 each: the variance of their mean is 1/3.

        >>> square_sums(np.array([1.0, 2.0, 3.0]), np.ones(3)).variance
        0.33333
        """
        value = self.ratio
        terms = self.top_squared, 2 * value * self.product, value**2 * self.bottom_squared
        left = terms[0] - terms[1] + terms[2]
        if self.n < 2 or left <= ROUNDING * sum(terms):
            return 0.0
        return self.n / (self.n - 1) * left / self.bottom**2


def square_sums(tops: FloatArray, bottoms: FloatArray) -> SquareSums:
    """Return the sums of units that are given one by one."""
    return SquareSums(
        n=int(np.count_nonzero(bottoms > 0)),
        top=float(tops.sum()),
        bottom=float(bottoms.sum()),
        top_squared=float(tops @ tops),
        product=float(tops @ bottoms),
        bottom_squared=float(bottoms @ bottoms),
    )


def ratio_of_totals(sums: SquareSums, *, confidence_level: float = 0.95) -> Estimate:
    """Estimate a ratio of sums that is not negative and has no upper bound, such as a mean cost.

    Units are independent; within a unit any dependence is allowed. The interval is linearised
    on the log scale, t with units - 1 df: multiplicative, since costs are skewed. With fewer than 5
    units ``not_estimable``. Without variation no interval: equal costs bound no unseen cost.

    Parameters
    ----------
    sums : SquareSums
        Over the units, weighted by their inverse inclusion probabilities.

    References
    ----------
    Cochran (1977), "Sampling techniques", section 6.4. ISBN 978-0-471-16240-7

    Examples
    --------
    Six runs at 1.00 and 2.00 in turn: the mean is 1.50.

    >>> found = ratio_of_totals(square_sums(np.array([1.0, 2.0] * 3), np.ones(6)))
    >>> found.value, found.interval
    (1.5, (1.02252, 2.20046))
    """
    check_confidence_level(confidence_level)
    method = "ratio of totals, linearised on the log scale, t"
    if sums.n == 0:
        why = "nothing is known: record it"
        return not_estimable(why, method=method, confidence_level=confidence_level)
    value, se, status = sums.ratio, None, OK
    interval: tuple[float, float] | None = None
    if sums.n < MINIMUM_UNITS:
        status = (
            f"not_estimable: no interval from {sums.n} runs or tasks, at least {MINIMUM_UNITS} "
            "are needed"
        )
    elif sums.variance == 0:
        status = NO_VARIATION
    else:
        se = sqrt(sums.variance)
        reach = two_sided_t(confidence_level, sums.n - 1) * se / value
        interval = value * exp(-reach), value * exp(reach)
    return Estimate(
        value=value,
        interval=interval,
        n=sums.n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )


def quantile_estimate(
    values: FloatArray,
    q: float,
    *,
    weights: FloatArray | None = None,
    n: int | None = None,
    below: SquareSums | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a quantile over runs, for instance the latency p95.

    Runs are independent, or tasks are when `below` sums over them. No distribution is assumed. The
    value is the smallest with share q at or below it. The limits are the values at the exact limits
    of that share (Woodruff), over the effective number of runs. With too few runs for both limits
    the status is ``provisional`` and there is no interval.

    Parameters
    ----------
    values : float array, shape (n_values,)
        Finite; a value may stand for several runs. Leave out runs for which it is unknown.
    q : float
        Share of runs at or below the quantile, in (0, 1).
    weights : float array, shape (n_values,), optional
        Runs with the value, or the sum of their inverse inclusion probabilities.
    n : int, optional
        Runs, where a value stands for several.
    below : SquareSums, optional
        Over the tasks: weight of the runs at or below the quantile, over weight of all. Needed
        where tasks repeat or runs have weights.

    References
    ----------
    Woodruff (1952), J. Amer. Statist. Assoc. 47. https://doi.org/10.2307/2280781
    Korn and Graubard (1998), Survey Methodology 24, for the effective number of runs.

    Examples
    --------
    >>> found = quantile_estimate(np.arange(1.0, 101.0), 0.5)
    >>> found.value, found.interval
    (50.0, (40.0, 61.0))
    """
    if not 0 < q < 1:
        raise ValueError(f"q must be in (0, 1), got {q!r}")
    if not np.isfinite(values).all():
        raise ValueError("values must be finite; leave out runs for which they are not known")
    method = "quantile, limits of its rank"
    n = values.size if n is None else n
    if not n:
        why = "no value is known: record it"
        return not_estimable(why, method=method, confidence_level=confidence_level)
    weight = np.ones(values.size) if weights is None else np.asarray(weights, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weight[order]) / weight.sum()

    def at(share: float) -> float:
        # Sums of weights miss their share by rounding.
        place = int(np.searchsorted(cumulated, share - 1e-12))
        return float(values[order][min(place, values.size - 1)])

    effective = _effective(q, n, below)
    low, high = exact_limits(q, effective, confidence_level)
    interval: tuple[float, float] | None = None
    tail = (1 - confidence_level) / 2
    status = f"provisional: no interval, {n:,} runs are too few for the {100 * q:g}th percentile"
    if q**effective <= tail and (1 - q) ** effective <= tail:
        status, interval = OK, (at(low), at(high))
    return Estimate(
        value=at(q),
        interval=interval,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
    )


def _effective(q: float, n: int, below: SquareSums | None) -> float:
    """Return the number of independent runs with the same variance of the share below."""
    if below is None:
        return float(n)
    if below.n < MINIMUM_UNITS or below.variance == 0:
        return float(below.n)
    return min(float(n), q * (1 - q) / below.variance)


def limits_of_bins(
    bins: FloatArray, q: float, effective: float, *, confidence_level: float = 0.95
) -> tuple[float, float] | None:
    """Return the limits of a quantile from counts of narrow bins, or None with too few runs.

    As `quantile_estimate`, linear within a bin.

    Parameters
    ----------
    bins : float array, shape (n_bins, 3)
        Count, lowest and highest value of each bin, in any order; no two overlap.
    effective : float

    Examples
    --------
    A hundred runs, one in each bin, at 1 to 100:

    >>> at = np.arange(1.0, 101.0)
    >>> limits_of_bins(np.column_stack([np.ones(100), at, at]), 0.5, 100)
    (40.0, 61.0)
    """
    tail = (1 - confidence_level) / 2
    if effective <= 0 or q**effective > tail or (1 - q) ** effective > tail:
        return None
    low, high = exact_limits(q, effective, confidence_level)
    return quantile_of_bins(bins, low), quantile_of_bins(bins, high)


def quantile_of_bins(bins: FloatArray, q: float) -> float:
    """Return the smallest value with share `q` at or below it, from the bins of `limits_of_bins`.

    A bin of one or two values, or of equal ones, is exact.

    >>> at = np.arange(1.0, 101.0)
    >>> quantile_of_bins(np.column_stack([np.ones(100), at, at]), 0.5)
    50.0
    """
    n, lowest, highest = bins[np.argsort(bins[:, 1], kind="stable")].T
    last = n.cumsum()
    place = min(max(0.0, np.ceil(q * last[-1] - 1e-9) - 1), last[-1] - 1)
    k = int(np.searchsorted(last, place, side="right"))
    inside = place - (last[k] - n[k])
    return float(lowest[k] + (highest[k] - lowest[k]) * (inside / (n[k] - 1) if n[k] > 1 else 0.0))


def edges_of_bins(values: FloatArray, parts: int = 5) -> tuple[float, ...]:
    """Return the upper ends of all parts but the last, of about equal numbers of runs.

    Equal values lie in one part, so there may be fewer.

    Parameters
    ----------
    values : float array, shape (n, 3)
        Count, lowest and highest value of narrow bins, as in `quantile_of_bins`.

    Examples
    --------
    Half of ten runs have one step:

    >>> edges_of_bins(np.array([[5.0, 1, 1], [3, 2, 2], [2, 9, 9]]))
    (1.0, 2.0)
    """
    if not values.size:
        return ()
    ends = {quantile_of_bins(values, k / parts) for k in range(1, parts)}
    return tuple(sorted(end for end in ends if end < values[:, 2].max()))
