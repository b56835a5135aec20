"""PPI++: the rate from a probability sample with the verdicts as control variate.

The proxy of a trace is a function of verdict and penalty fixed by production alone: a proxy fitted
to the labels would be validated on the labels that made it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.judge_calibration.samples import (
    ProductionRuns,
    ProductionSums,
    tasks_of,
    with_enough_labels,
)
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
    two_sided_t,
    two_sided_z,
    unanimous_interval,
)

METHOD = "PPI++, normal"
BY_TASK = "PPI++, by task over labels and production, t"
NO_ERROR_SEEN = "no judge error seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySums:
    """Sums of a proxy and of its square over `n` traces.

    `by_run` : production and the proxy of each of its rows, where its tasks repeat.
    """

    n: float
    total: float
    squares: float
    by_run: tuple[ProductionRuns, FloatArray] | None = None

    @property
    def mean(self) -> float:
        """Mean of the proxy; 0 without traces."""
        return self.total / self.n if self.n > 0 else 0.0

    @property
    def variance(self) -> float:
        """Variance with divisor n; 0 without traces."""
        return max(0.0, self.squares / self.n - self.mean**2) if self.n > 0 else 0.0

    def plus(self, proxies: FloatArray, *, sign: int = 1) -> "ProxySums":
        """Return the sums with traces added, or removed with `sign` -1."""
        return ProxySums(
            n=max(0.0, self.n + sign * proxies.size),
            total=self.total + sign * float(proxies.sum()),
            squares=max(0.0, self.squares + sign * float(proxies @ proxies)),
        )


def score_weights(production: ProductionSums) -> FloatArray:
    """Return the weight of each f_s in the score proxy by verdict, shape (n_levels, n_verdicts).

    The proxy of a trace is sum_s weight[s, verdict] max(0, s - penalty). A class verdict has its
    own credit: max(0, credit - penalty). Another one (`no_verdict`, `split`) has the mean score
    that the class verdicts of production would have at the trace's own penalty.

    Examples
    --------
    Three of four class verdicts have credit 1, so the proxy of no verdict is 0.75:

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> score_weights(production_sums_from_counts([3, 1, 2], credit=[1.0, 0.0])).tolist()
    [[1.0, 0.0, 0.75]]
    """
    n_classes = production.credit.size
    weights = np.zeros((production.levels.size, production.counts.size))
    weights[:, :n_classes] = production.of_level.T
    of_class = production.counts[:n_classes]
    if of_class.sum() > 0:
        weights[:, n_classes:] = (weights[:, :n_classes] @ of_class / of_class.sum())[:, None]
    return weights


def score_proxies(
    verdicts: IntArray,
    penalties: FloatArray | None,
    production: ProductionSums,
    table: IntArray | None = None,
) -> FloatArray:
    """Return the proxy of each trace, shape (n,), with the weights of `score_weights`.

    `table` is that of the credit of each trace, where workflows have their own.

    Examples
    --------
    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> production = production_sums_from_counts([3, 1], credit=[1.0, 0.4])
    >>> score_proxies(np.array([0, 1, 1]), np.array([0.5, 0.1, 0.5]), production).tolist()
    [0.5, 0.3, 0.0]
    """
    penalty = np.zeros(verdicts.size) if penalties is None else np.asarray(penalties, np.float64)
    kept = production.kept(penalty, table)
    result: FloatArray = (score_weights(production)[:, verdicts] * kept).sum(axis=0)
    return result


def score_sums(production: ProductionSums) -> ProxySums:
    """Return the sums of the score proxy over production."""
    weights = score_weights(production)
    return ProxySums(
        n=float(production.counts.sum()),
        total=float((weights * production.sums).sum()),
        squares=float(np.einsum("sk,uk,suk->", weights, weights, production.products)),
        by_run=_by_run(
            lambda runs: score_proxies(runs.verdicts, runs.penalties, production, runs.table),
            production.runs,
        ),
    )


def class_proxies(production_counts: ArrayLike, n_classes: int) -> FloatArray:
    """Return the proxy of each class share by verdict, shape (n_classes, n_verdicts).

    1 for the verdict of the class and 0 for other classes; a verdict that is no class has the share
    of the class among the class verdicts of production.

    Examples
    --------
    >>> class_proxies([3, 1, 2], 2).tolist()
    [[1.0, 0.0, 0.75], [0.0, 1.0, 0.25]]
    """
    counts = np.asarray(production_counts, dtype=np.float64)
    result = np.eye(n_classes, counts.size)
    of_class = counts[:n_classes]
    if of_class.sum() > 0:
        result[:, n_classes:] = (of_class / of_class.sum())[:, None]
    return result


def sums_by_verdict(proxy: FloatArray, production: ProductionSums) -> ProxySums:
    """Return the sums over production of a proxy that depends on the verdict only."""
    return ProxySums(
        n=float(production.counts.sum()),
        total=float(proxy @ production.counts),
        squares=float(proxy**2 @ production.counts),
        by_run=_by_run(lambda runs: proxy[runs.verdicts], production.runs),
    )


def _by_run(
    proxies: Callable[[ProductionRuns], FloatArray], runs: ProductionRuns
) -> tuple[ProductionRuns, FloatArray] | None:
    """Return production and its proxies where its tasks repeat."""
    return None if runs.tasks is None else (runs, proxies(runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerTuned:
    """The PPI++ estimate and its factor in [0, 1]: 0 ignores the verdicts, 1 is plain PPI."""

    estimate: Estimate
    tuning: float | None


def ppi_plus_plus(
    scores: FloatArray,
    proxies: FloatArray,
    production: ProxySums,
    *,
    labels_in_production: bool = True,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    tuning: float | None = None,
    confidence_level: float = 0.95,
) -> PowerTuned:
    """Estimate the mean score of production by power-tuned prediction-powered inference.

    theta = f x mean(proxy of the unlabelled) + mean(score - f x proxy of the labelled), with the
    factor f in [0, 1] that makes the variance smallest. The labelled traces must be a probability
    sample of production; nothing is assumed about the judge. Traces are independent, or independent
    between clusters.

    Parameters
    ----------
    scores : float array, shape (n,)
        Scores of the labelled traces in [0, 1], with their own cost.
    proxies : float array, shape (n,)
        Proxies of the labelled traces.
    production : ProxySums
        Of all judged production traces.
    labels_in_production : bool, default True
        Whether the labelled traces are counted in `production`.
    weights, clusters : array, shape (n,), optional
        As in `LabelledSample`.
    tuning : float, optional
        The factor f; by default the best one.

    Returns
    -------
    PowerTuned
        With an interval cut to [0, 1].

    Raises
    ------
    ValueError
        If shapes differ, a score is outside [0, 1], or a weight is not positive.

    Notes
    -----
    Without weights and clusters value and interval are those of ppi_py's ``ppi_mean_ci`` with its
    own choice of the factor (divisor n, normal quantile). With unequal weights the proxy mean is
    that of all of production, because the unlabelled rest is no equal-probability sample; the
    labelled part is a Hajek mean with its linearised variance. With clusters the variance of the
    labelled part is that of the cluster totals, t with clusters - 1 df. Where tasks of production
    repeat, each has one influence over both sources, and their squared sum is the variance. If the
    labels show no variation, or every score equals its proxy, the normal interval would be far too
    short: it is widened to the exact bound on the deviations that n traces can have missed.

    References
    ----------
    Angelopoulos, Duchi and Zrnic (2023), "PPI++: Efficient Prediction-Powered Inference".
    https://doi.org/10.48550/arXiv.2311.01453

    Examples
    --------
    The judge calls one of 4 labelled traces and 50 of 100 unlabelled ones a success. The covariance
    is 0.125, the variance 0.2524 (of all 104), and f = 0.125 / (1.04 x 0.2524):

    >>> scores, proxies = np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 0, 0])
    >>> found = ppi_plus_plus(scores, proxies, ProxySums(n=104, total=51, squares=51))
    >>> found.tuning, found.estimate.value
    (0.4763, 0.6191)
    """
    check_confidence_level(confidence_level)
    array, proxy = validated_scores(scores), np.asarray(proxies, dtype=np.float64)
    n = array.size
    if proxy.shape != (n,):
        raise ValueError(f"proxies must have shape ({n},), got {proxy.shape!r}")
    if n < 2:
        why = f"{n} labelled traces: label a random sample of production"
        refused = not_estimable(why, method=METHOD, n=n, confidence_level=confidence_level)
        return PowerTuned(estimate=refused, tuning=None)
    weight = validated_weights(weights, n)
    index = cluster_indices(clusters, n)
    rest = production.plus(proxy, sign=-1) if labels_in_production else production
    if tuning is None:
        tuning = _tuning([(array, proxy, rest)], weight)
    read = rest
    if np.ptp(weight) > 0:
        read = whole = production if labels_in_production else production.plus(proxy)
        value, shares = tuning * whole.mean, weight / weight.sum()
        residual = array - tuning * proxy
        value += float(shares @ residual)
        spread = [float(shares @ (x - shares @ x) ** 2) for x in (array, residual)]
        of_production = max(0.0, spread[0] - spread[1]) / whole.n
    else:
        shares = np.full(n, 1 / n)
        residual = array - tuning * proxy
        value = tuning * rest.mean + float(residual.mean())
        of_production = tuning**2 * rest.variance / rest.n if rest.n > 0 else 0.0
    influence: FloatArray = shares * (residual - shares @ residual)
    if production.by_run is not None:
        runs, of_runs = production.by_run
        tasks = tasks_of(clusters, n, runs, shared=labels_in_production)
        each = tuning / max(1.0, read.n)
        # The mean is over `read`: production, with or without the labels.
        added = each * (proxy - read.mean) * np.sign(read.n - production.n)
        variance, of_production = tasks.variance(
            influence + added, production.n * each * (of_runs - read.mean), shares
        )
        units, df, method = tasks.units, tasks.df(shares), BY_TASK
    else:
        units, df, method = None if index is None else int(index.max()) + 1, np.inf, METHOD
        if index is not None:
            influence = np.bincount(index, weights=influence).astype(np.float64)
        variance = float(influence @ influence)
        if index is not None or np.ptp(weight) > 0:
            method = f"PPI++, {'cluster-' if index is not None else ''}linearised t"
            df = max(1.0, influence.size - 1.0)
            variance *= influence.size / df
        variance += of_production
    estimate = _interval(
        value, variance, df=df, method=method, units=units, n=n, confidence_level=confidence_level
    )
    if np.ptp(array) == 0 or np.ptp(array - proxy) == 0:
        estimate = _unanimous(estimate, array, of_production, index)
    return PowerTuned(estimate=estimate, tuning=tuning)


def _tuning(pairs: Sequence[tuple[FloatArray, FloatArray, ProxySums]], weight: FloatArray) -> float:
    """Return the factor that makes the summed variances of some means smallest.

    Each mean has scores, proxies, and the sums of the proxy over the unlabelled traces. As in
    ppi_py the variance of the proxy is pooled over all traces; with unequal weights only the
    labelled part counts, linearised.
    """
    covariance, variance = 0.0, 0.0
    unequal, total = np.ptp(weight) > 0, weight.sum()
    for scores, proxies, rest in pairs:
        if rest.n <= 0:
            return 0.0
        if unequal:
            deviation = weight * (proxies - weight @ proxies / total)
            variance += float(deviation @ deviation)
            covariance += float((weight * (scores - weight @ scores / total)) @ deviation)
            continue
        pooled = rest.plus(proxies)
        variance += (1 + scores.size / rest.n) * pooled.variance * pooled.n / (pooled.n - 1)
        covariance += float((scores - scores.mean()) @ (proxies - proxies.mean())) / scores.size
    return 0.0 if variance <= NO_VARIANCE else min(1.0, max(0.0, covariance / variance))


def _interval(
    value: float,
    variance: float,
    *,
    df: float,
    method: str,
    units: int | None,
    n: int,
    confidence_level: float,
) -> Estimate:
    """Return the estimate; `units` are tasks, None where none repeats."""
    quantile = two_sided_t(confidence_level, df)
    se: float | None = float(np.sqrt(variance))
    interval: tuple[float, float] | None = clipped(
        value - quantile * (se or 0.0), value + quantile * (se or 0.0)
    )
    status = OK
    if units is not None and units < MINIMUM_UNITS:
        status = f"no interval: {units} tasks, at least {MINIMUM_UNITS} are needed"
        interval, se = None, None
    return Estimate(
        value=min(1.0, max(0.0, value)),
        interval=interval,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=se,
    )


def _unanimous(
    estimate: Estimate, scores: FloatArray, of_production: float, index: IntArray | None
) -> Estimate:
    """Widen the interval to the exact bound of labels without a single deviation."""
    if estimate.interval is None or estimate.value is None:
        return estimate
    units = scores.size if index is None else int(index.max()) + 1
    level = estimate.confidence_level
    lower, upper = unanimous_interval(estimate.value, units, confidence_level=level)
    reach = two_sided_z(level) * float(np.sqrt(of_production))
    return Estimate(
        value=estimate.value,
        interval=clipped(lower - reach, upper + reach),
        n=estimate.n,
        method="PPI++, exact bound",
        confidence_level=level,
        status=NO_VARIATION if np.ptp(scores) == 0 else NO_ERROR_SEEN,
    )


def ppi_shares(
    human: FloatArray,
    verdicts: IntArray,
    production: ProductionSums,
    proxies: FloatArray,
    *,
    labels_in_production: bool = True,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    minimum_labels: int = 10,
    confidence_level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate the share of each class: `ppi_plus_plus` with 0 and 1 as scores.

    One factor for all classes makes their summed variances smallest, so that the values sum to one.
    `human` and `verdicts` are those of `LabelledSample`, `proxies` of `class_proxies`; a class with
    fewer than `minimum_labels` labels gets no interval.
    """
    pairs = []
    for labels, proxy in zip(human.T, proxies, strict=True):
        sums = sums_by_verdict(proxy, production)
        rest = sums.plus(proxy[verdicts], sign=-1) if labels_in_production else sums
        pairs.append((labels, proxy[verdicts], rest))
    tuning = None
    if verdicts.size > 1:
        tuning = _tuning(pairs, validated_weights(weights, verdicts.size))
    estimates = (
        ppi_plus_plus(
            labels,
            proxy[verdicts],
            sums_by_verdict(proxy, production),
            labels_in_production=labels_in_production,
            weights=weights,
            clusters=clusters,
            tuning=tuning,
            confidence_level=confidence_level,
        ).estimate
        for labels, proxy in zip(human.T, proxies, strict=True)
    )
    return with_enough_labels(estimates, human, minimum_labels)
