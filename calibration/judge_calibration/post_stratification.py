"""Rate and class shares from a probability sample, post-stratified by verdict.

All estimators here assume that the labelled traces are a probability sample of production, and
nothing about the judge. `human`, `verdicts`, `weights` and `clusters` are those of
`LabelledSample`; `production_counts`, shape (n_verdicts,), holds all judged production traces by
verdict, the labelled ones included; `strata` is the grouping of the verdicts that `post_stratified`
used.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from calibration.judge_calibration.samples import (
    LabelledSample,
    ProductionRuns,
    ProductionSums,
    RepeatedTasks,
    own_rows,
    tasks_of,
    validated_human,
)
from calibration.judge_calibration.strata import UNUSED, Strata, verdict_strata
from calibration.statistics.estimate import (
    OK,
    AnyTime,
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    cluster_indices,
    not_estimable,
    validated_codes,
    validated_weights,
)
from calibration.statistics.intervals import (
    MINIMUM_UNITS,
    NO_VARIANCE,
    NO_VARIATION,
    beta_quantile,
    clipped,
    exact_limits,
    logit_interval,
    percentile_estimate,
    resampled_sums,
    two_sided_t,
    two_sided_z,
    unseen_reach,
    unseen_share,
)

Estimand = Literal["process", "these_runs"]
Floor = Literal["gross", "differing"]
METHOD = "post-stratified residual, logit t"
BY_TASK = "post-stratified residual, by task over labels and production, logit t"
SHARES_METHOD = "post-stratified by verdict, exact limits at the effective number of labels"
BOOTSTRAP_METHOD = "post-stratified by verdict, two-source bootstrap"

# With fewer labels and costs over a ceiling, the variance is at least that of even strata.
FEW_LABELS = 60

# Number of labels near which the limits that hold at every look are tightest.
TIGHTEST = 200

# Below this share of the labels, the effective ones of a stratum are uneven.
EVEN = 0.8
# With fewer labels that differ from their verdict, the limits allow for errors not seen.
FEW_DIFFERING = 10
SAME = 1e-12

# Effective labels may exceed one by rounding error alone.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PostStratified:
    """Post-stratified estimate with its diagnostics.

    `stratum_means` : mean score in the stratum of each verdict; None for unused verdicts.
    `r_squared` : share of the variance of the labelled scores that verdict and cost explain; labels
    are worth about 1 / (1 - r_squared) times their number. None without variation.
    `variance_labels` : the part of the squared standard error due to the labels.
    `floor` : what widened the limits because few errors were seen: the gross rate, or the labels
        that differ from their verdict.
    `residual`, `tasks` : influences of labels and production, and their tasks.
    """

    estimate: Estimate
    stratum_means: tuple[float | None, ...]
    strata: Strata
    r_squared: float | None
    floor: tuple[Floor, ...] = ()
    variance_labels: float | None = None
    residual: "Residual | None" = field(default=None, compare=False, repr=False)
    tasks: RepeatedTasks | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Residual:
    """A mean of production: predictions, and the mean residual of the labels in each stratum.

    `d`, `residuals` : mean residual of each stratum, and those of the labels less it.
    `pooled` : variance of the residuals within strata.
    `variance`, `between` : of the mean, and the part of it due to production.
    `in_labels`, `in_production` : influence of each label, and N times that of each run.
    """

    value: float
    d: FloatArray
    residuals: FloatArray
    pooled: float
    variance: float
    between: float
    df: float
    in_labels: FloatArray
    in_production: FloatArray

    @property
    def se(self) -> float:
        """The standard error."""
        return float(np.sqrt(self.variance))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joined:
    """Labels and production on common strata and tasks.

    `share`, `worth` : share of production and credit of the verdict of each stratum.
    `stratum`, `weight` : of the labels.
    `scale` : weight of each label in the mean, M_k w / W_k.
    `labels` : effective labels of each stratum; `n_labels` their number.
    `tasks` : of labels and of production rows; none repeats where these runs are meant.
    """

    production: ProductionSums
    estimand: Estimand
    strata: Strata
    share: FloatArray
    worth: FloatArray
    stratum: IntArray
    weight: FloatArray
    scale: FloatArray
    labels: FloatArray
    n_labels: IntArray
    stratum_of: IntArray
    tasks: RepeatedTasks

    @property
    def task(self) -> IntArray | None:
        """Task of each label; None where none repeats."""
        return self.tasks.labels

    @property
    def units(self) -> int:
        """Number of labelled tasks."""
        return self.stratum.size if self.task is None else np.unique(self.task).size

    @property
    def effective(self) -> float:
        """Effective number of labelled tasks, for a share at which none differs."""
        by_task = self.scale if self.task is None else np.bincount(self.task, weights=self.scale)
        return 1.0 / float(by_task @ by_task)

    def unseen(self, confidence_level: float, shares: FloatArray | None = None) -> float:
        """Return the largest share of production that may differ where no label does.

        `shares` : of each label in the mean; by default `scale`.
        """
        if self.estimand == "these_runs":
            # Labelled runs are known: only the others may differ.
            sample = int(1.0 / float(self.scale @ self.scale) + ROUNDING)
            return unseen_share(round(self.production.n), sample, confidence_level=confidence_level)
        shares = self.scale if shares is None else shares
        if self.task is not None:
            shares = np.bincount(self.task, weights=shares).astype(np.float64)
        return unseen_reach(shares[shares > 0], confidence_level=confidence_level)

    @property
    def is_uneven(self) -> bool:
        """Whether weights differ inside a stratum, so that its labels are worth fewer."""
        return bool((self.labels < EVEN * self.n_labels).any())

    def mean(
        self,
        scores: FloatArray,
        predicted: FloatArray | None = None,
        predicted_of: FloatArray | None = None,
        *,
        net: bool = True,
    ) -> Residual:
        """Estimate the mean of production from scores of the labels and predictions of all runs.

        `predicted` of the labels and `predicted_of` of production rows are 0 by default. `net` :
        whether costs are in the scores.
        """
        times, n_strata = self.production.runs.times, self.share.size
        n_production = float(times.sum())
        of_rate = predicted is not None
        if predicted is None or predicted_of is None:
            predicted, predicted_of = np.zeros(scores.size), np.zeros(times.size)
        apart = scores - predicted
        total = np.bincount(self.stratum, weights=self.weight, minlength=n_strata)
        d = np.bincount(self.stratum, weights=self.weight * apart, minlength=n_strata) / total
        residuals = apart - d[self.stratum]
        squares = (self.weight * residuals) ** 2
        own = np.bincount(self.stratum, weights=squares, minlength=n_strata) / total**2
        # With equal weights own = v_k / n_k, so the pooled variance is sum n_k v_k / (n - K).
        pooled = float(self.labels**2 @ own / max(1.0, self.labels.sum() - n_strata))
        parts = self.share**2 * (own + pooled / self.labels**2)
        value = float(times @ predicted_of / n_production + self.share @ d)
        in_production = predicted_of + d[self.stratum_of] - value
        if self.estimand == "these_runs":
            parts = parts * (1 - self.n_labels / (self.share * n_production))
            in_production = np.zeros(times.size)
        df = _satterthwaite(parts, self.labels)
        spare = np.where(self.labels > 1 + ROUNDING, self.labels - 1, self.labels)
        in_labels = self.scale * residuals * np.sqrt(self.labels / spare)[self.stratum]
        variance, between = self.variance(in_labels, in_production)
        if self.task is None:
            variance = float(parts.sum()) + between
            # Few labels of a stratum with costs rarely show how far costs can move a score.
            if net and self.production.has_costs and of_rate and scores.size < FEW_LABELS:
                even = self.share**2 @ (pooled / self.n_labels) * (1 + 1 / scores.size)
                variance = max(variance, float(even) + between)
        else:
            df = min(df, self.tasks.df(self.scale))
        return Residual(
            value=value,
            d=d,
            residuals=residuals,
            pooled=pooled,
            variance=variance,
            between=between,
            df=df,
            in_labels=in_labels,
            in_production=in_production,
        )

    def variance(self, in_labels: FloatArray, in_production: FloatArray) -> tuple[float, float]:
        """Return the variance of a mean by its influences, and the part due to production.

        Influences are those of `Residual`; tasks that both sources know count once.
        """
        return self.tasks.variance(in_labels, in_production, self.scale)


def _satterthwaite(parts: FloatArray, labels: FloatArray) -> float:
    used = parts > 0
    if not used.any():
        return 1.0
    spare = np.maximum(1.0, labels[used] - 1)
    return float(parts.sum() ** 2 / (parts[used] ** 2 / spare).sum())


def join(
    labelled: LabelledSample,
    production: ProductionSums,
    *,
    estimand: Estimand = "process",
    minimum_labels: int = 5,
    strata: Strata | None = None,
) -> Joined:
    """Put labels and production on common strata and tasks.

    Strata are formed once, from the gross credits, unless given, and are the same for rates with
    and without cost and for class shares. ValueError if a verdict code has no production count, a
    verdict has more labels than production runs, tasks repeat in production and the labels name
    none, shapes differ or a weight is not positive.
    """
    counts, runs = production.counts, production.runs
    codes = validated_codes(labelled.verdicts, n_codes=counts.size, name="verdicts")
    human = validated_human(labelled.human)
    if codes.shape != (len(human),):
        raise ValueError(f"verdicts must have shape {(len(human),)!r}, got {codes.shape!r}")
    labels = np.bincount(codes, minlength=counts.size)
    if (labels > counts).any():
        raise ValueError(
            f"production_counts must include the labelled traces, got {counts.tolist()!r} "
            f"with {labels.tolist()!r} labels"
        )
    scores = labelled.scores(production.tables, net=False)
    gross = float(scores.mean()) if codes.size else 0.0
    if strata is None:
        strata = verdict_strata(
            codes, counts, production.verdict_values, otherwise=gross, minimum_labels=minimum_labels
        )
    worth = np.where(np.isnan(production.verdict_values), gross, production.verdict_values)
    group = np.array(strata.groups)
    used, stratum, n = group != UNUSED, group[codes], strata.n_strata
    share = np.bincount(group[used], weights=counts[used], minlength=n) / counts.sum()
    weight = validated_weights(labelled.weights, codes.size)
    total = np.bincount(stratum, weights=weight, minlength=n)
    tasks = RepeatedTasks(labels=None, runs=None, times=runs.times)
    if estimand == "process":
        tasks = tasks_of(labelled.clusters, codes.size, runs)
    return Joined(
        production=production,
        estimand=estimand,
        strata=strata,
        share=share,
        worth=worth[list(strata.survivors)],
        stratum=stratum,
        weight=weight,
        scale=share[stratum] * weight / total[stratum],
        labels=total**2 / np.bincount(stratum, weights=weight**2, minlength=n),
        n_labels=np.bincount(stratum, minlength=n),
        stratum_of=group[runs.verdicts],
        tasks=tasks,
    )


def post_stratified(
    labelled: LabelledSample,
    production: ProductionSums,
    *,
    net: bool = True,
    estimand: Estimand = "process",
    minimum_labels: int = 5,
    confidence_level: float = 0.95,
) -> PostStratified:
    """Estimate the mean score of production by the post-stratified residual.

    theta = mean over production of f + sum over verdicts of M_k x mean over its labels of s - f,
    where f is what the verdict promises for the run, max(0, credit - own penalty), s the score by
    the label, M_k the share of the verdict in production. Only the precision depends on the judge.
    Each trace has its own cost, so cost may depend on the outcome in any way. Without cost this is
    sum over verdicts of M_k x mean score of its labels.

    Parameters
    ----------
    labelled : LabelledSample
        A probability sample of production; `clusters` are tasks, named as those of production.
    production : ProductionSums
        All judged runs, the labelled ones included; `net` scores with their penalties.
    net : bool, default True
        Whether labelled scores have their own cost.
    estimand : {"process", "these_runs"}
        ``"process"``: runs like these, tasks and runs being a sample. ``"these_runs"``: the mean
        over the runs of production themselves, labelled one by one at random.
    minimum_labels : int, default 5
        A verdict with fewer labels is merged with the one of nearest credit.

    Returns
    -------
    PostStratified
        Limits on the logit scale, t.

    Raises
    ------
    ValueError
        As `join`, and if a penalty is outside [0, 1].

    Notes
    -----
    Every task one run: the variance of stratum k is M_k^2 (own_k + V / eff_k^2), own_k that of its
    Hajek mean of residuals, V the variance pooled within strata, a floor, since a few equal labels
    are no certainty; the variance of f + d over production is added; df are Satterthwaite's.
    Tasks repeat: one influence a task over both sources, their squared sum is the variance; df are
    the smallest of labelled tasks - 1, effective tasks of production - 1 and Satterthwaite's.

    References
    ----------
    Sarndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 6.3: the
    difference estimator. https://doi.org/10.1007/978-1-4612-4378-6
    Satterthwaite (1946), Biometrics Bulletin 2. https://doi.org/10.2307/3002019
    Chen et al. (2026), "Efficient inference for noisy LLM judge".
    https://doi.org/10.48550/arXiv.2601.05420

    Examples
    --------
    Verdict 0 is right 9 times of 10 and verdict 1 hides one success in 10; 800 and 200 in
    production: 0.8 x 0.9 + 0.2 x 0.1.

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> labelled = LabelledSample(
    ...     human=np.eye(2)[[0] * 9 + [1] + [0] + [1] * 9], verdicts=np.repeat([0, 1], 10)
    ... )
    >>> production = production_sums_from_counts([800, 200], credit=[1.0, 0.0])
    >>> post_stratified(labelled, production).estimate.value
    0.74
    """
    check_confidence_level(confidence_level)
    n = labelled.verdicts.size
    if n < 2:
        why = f"{n} labelled traces: label a random sample of production"
        refused = not_estimable(why, method=METHOD, n=n, confidence_level=confidence_level)
        unused = (UNUSED,) * production.counts.size
        return PostStratified(
            estimate=refused,
            stratum_means=(None,) * len(unused),
            strata=Strata(groups=unused, merged=()),
            r_squared=None,
        )
    joined = join(labelled, production, estimand=estimand, minimum_labels=minimum_labels)
    scores = labelled.scores(production.tables, net=net)
    _, kept = predictions(joined, labelled, net=net)
    found, estimate, floor = floored_rate(joined, labelled, confidence_level, net=net)
    if estimand == "process":
        estimate = with_any_time(estimate, floored=bool(floor))
    times = production.runs.times
    in_stratum = np.bincount(joined.stratum_of, weights=times, minlength=joined.share.size)
    promised = np.bincount(joined.stratum_of, weights=times * kept, minlength=joined.share.size)
    means = promised / in_stratum + found.d
    weight = joined.weight
    total = float(weight @ (scores - weight @ scores / weight.sum()) ** 2)
    return PostStratified(
        estimate=estimate,
        stratum_means=tuple(None if g == UNUSED else float(means[g]) for g in joined.strata.groups),
        strata=joined.strata,
        floor=floor,
        r_squared=None if total <= 0 else 1 - float(weight @ found.residuals**2) / total,
        variance_labels=None
        if estimate.se is None or estimate.status == NO_VARIATION
        else max(0.0, found.variance - found.between),
        residual=found,
        tasks=joined.tasks,
    )


def floored_rate(
    joined: Joined, labelled: LabelledSample, confidence_level: float, *, net: bool
) -> tuple[Residual, Estimate, tuple[Floor, ...]]:
    """Return a rate, its limits with floors where few errors were seen, and which floors moved it.

    A net rate has limits no closer than those of the gross rate, times the share of the credit that
    costs leave: costs vary a little in every stratum, so that the exact bound is never met. Where
    these runs are meant or weights are uneven, and fewer than 10 labels differ from their verdict,
    the limits of both reach as far as the Beta limits of the share of labels that differ in that
    direction, times how much they differ.
    """
    method = METHOD if joined.task is None else BY_TASK
    predicted, kept = predictions(joined, labelled, net=net)
    tables = joined.production.tables
    found = joined.mean(labelled.scores(tables, net=net), predicted, kept, net=net)
    estimate = limited_rate(found, joined, confidence_level, method=method)
    floors: list[Floor] = []
    if net and joined.production.has_costs:
        _, as_gross, _ = floored_rate(joined, labelled, confidence_level, net=False)
        times = joined.production.runs.times
        _, promised = predictions(joined, labelled, net=False)
        left = float(times @ kept / (times @ promised)) if times @ promised > 0 else 1.0
        if as_gross.value is not None and as_gross.interval is not None:
            reach = [left * abs(as_gross.value - limit) for limit in as_gross.interval]
            estimate = _with_floor(estimate, reach, "gross", floors)
    if joined.estimand == "these_runs" or joined.is_uneven:
        reaches = _differing_reach(joined, labelled, confidence_level, net=net)
        if reaches is not None:
            between = two_sided_z(confidence_level) ** 2 * found.between
            outer = [float(np.sqrt(reach**2 + between)) for reach in reaches]
            estimate = _with_floor(estimate, outer, "differing", floors)
    return found, estimate, tuple(floors)


def _with_floor(
    estimate: Estimate, reach: list[float], name: Floor, floors: list[Floor]
) -> Estimate:
    """Return an estimate whose limits lie at least so far below and above; note what moved them."""
    if estimate.value is None or estimate.interval is None:
        return estimate
    low, high = estimate.interval
    outer = clipped(min(low, estimate.value - reach[0]), max(high, estimate.value + reach[1]))
    if outer[0] < low - SAME or outer[1] > high + SAME:
        floors.append(name)
        return replace(estimate, interval=outer)
    return estimate


def _differing_reach(
    joined: Joined, labelled: LabelledSample, confidence_level: float, *, net: bool
) -> tuple[float, float] | None:
    """Return how far errors not seen may reach below and above; None where many labels differ."""
    production, h = joined.production, joined.scale
    codes = np.asarray(labelled.verdicts)
    credit = np.broadcast_to(
        own_rows(production.tables, labelled.table), (codes.size, production.tables.shape[1])
    )
    of_class = codes < credit.shape[1]
    worth = np.where(
        of_class,
        credit[np.arange(codes.size), np.minimum(codes, credit.shape[1] - 1)],
        joined.worth[joined.stratum],
    )
    penalty = labelled.penalties if net and labelled.penalties is not None else 0.0
    as_judged = np.maximum(0.0, worth - penalty)
    apart = labelled.scores(production.tables, net=net) - as_judged
    if int((np.abs(apart) > SAME).sum()) >= FEW_DIFFERING:
        return None
    m, tail = 1.0 / float(h @ h), (1 - confidence_level) / 2
    room = float(h @ as_judged), float(h @ np.maximum(0.0, 1 - penalty + 0 * h) - h @ as_judged)
    finite = 1.0
    if joined.estimand == "these_runs":
        finite = float(np.sqrt(1 - codes.size / production.n))
    reaches = []
    for side, size in ((apart < -SAME, room[0]), (apart > SAME, room[1])):
        share = float(h[side].sum())
        if share > 0:
            size = float(h[side] @ np.abs(apart[side]) / share)
        limit = beta_quantile(1 - tail, m * share + 0.5, m * (1 - share) + 0.5)
        reaches.append(max(0.0, limit - share) * size * finite)
    return reaches[0], reaches[1]


def predictions(
    joined: Joined, labelled: LabelledSample, *, net: bool
) -> tuple[FloatArray, FloatArray]:
    """Return max(0, credit - penalty) of labels and production rows, by the credit of the stratum.

    A merged stratum has the mean credit of its class verdicts in production, 0 without any; where
    workflows have their own credit, that of the run's.
    """
    production, n = joined.production, joined.share.size
    of_class = np.array(joined.strata.groups)[: production.credit.size]
    inside = of_class != UNUSED
    counts = production.counts[: production.credit.size][inside]
    total = np.bincount(of_class[inside], weights=counts, minlength=n)
    credit = np.zeros((len(production.tables), n))
    for row, table in zip(credit, production.tables, strict=True):
        worth = np.bincount(of_class[inside], weights=counts * table[inside], minlength=n)
        np.divide(worth, total, out=row, where=total > 0)
    several = len(credit) > 1
    first, second = (
        credit[table if several and table is not None else 0, stratum]
        for table, stratum in (
            (labelled.table, joined.stratum), (production.runs.table, joined.stratum_of),
        )
    )  # fmt: skip
    if not net:
        return first, second
    own = 0.0 if labelled.penalties is None else labelled.penalties
    return np.maximum(0.0, first - own), np.maximum(0.0, second - production.runs.penalties)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Promised:
    """What verdicts and costs promise for production.

    `mean`, `variance` : by stratum. `of_runs` : for each row of `runs`.
    """

    mean: FloatArray
    variance: FloatArray
    of_runs: FloatArray
    runs: ProductionRuns


def promised(
    labelled: LabelledSample, production: ProductionSums, *, strata: Strata, net: bool
) -> tuple[FloatArray, Promised]:
    """Return residuals of the labels, and what verdicts and costs promise for production."""
    joined = join(labelled, production, strata=strata)
    predicted, kept = predictions(joined, labelled, net=net)
    times, n = production.runs.times, joined.share.size
    total = np.bincount(joined.stratum_of, weights=times, minlength=n)
    mean = np.bincount(joined.stratum_of, weights=times * kept, minlength=n) / total
    apart = times * (kept - mean[joined.stratum_of]) ** 2
    variance = np.bincount(joined.stratum_of, weights=apart, minlength=n) / total
    found = Promised(mean=mean, variance=variance, of_runs=kept, runs=production.runs)
    return labelled.scores(production.tables, net=net) - predicted, found


def limited_rate(
    found: Residual, joined: Joined, confidence_level: float, *, shares: FloatArray | None = None,
    method: str = METHOD,
) -> Estimate:  # fmt: skip
    """Return the estimate of a rate; the exact bound where no residual varies.

    `shares` : of each label in the mean, where some of them alone show errors.
    """
    value, n = min(1.0, max(0.0, found.value)), joined.stratum.size
    few_tasks = joined.task is not None and joined.units < MINIMUM_UNITS
    if found.pooled >= NO_VARIANCE or few_tasks:
        return rate_limits(
            value, found.variance, df=found.df, joined=joined, method=method,
            confidence_level=confidence_level,
        )  # fmt: skip
    reach = two_sided_z(confidence_level) * np.sqrt(found.between)
    unseen = joined.unseen(confidence_level, shares)
    kept = value * (1 - unseen)
    return Estimate(
        value=value,
        interval=clipped(kept - reach, kept + unseen + reach),
        n=n,
        method="post-stratified residual, exact bound",
        confidence_level=confidence_level,
        status=NO_VARIATION,
        se=found.se,
        df=found.df,
    )


def rate_limits(
    value: float,
    variance: float,
    *,
    df: float,
    joined: Joined,
    method: str,
    confidence_level: float,
) -> Estimate:
    """Return a rate with limits inside [0, 1]: on the logit scale, exact ones at 0 and 1.

    No interval below 5 labelled tasks that repeat.
    """
    n, units = joined.stratum.size, joined.units
    if joined.task is not None and units < MINIMUM_UNITS:
        why = f"no interval: {units} tasks, at least {MINIMUM_UNITS} are needed"
        return Estimate(
            value=value, interval=None, n=n, method=method, confidence_level=confidence_level,
            status=why,
        )  # fmt: skip
    se = float(np.sqrt(variance))
    if 0 < value < 1:
        interval = logit_interval(value, se, df=df, confidence_level=confidence_level)
    else:
        interval = exact_limits(value, joined.effective, confidence_level)
    return Estimate(
        value=value,
        interval=interval,
        n=n,
        method=method,
        confidence_level=confidence_level,
        se=se,
        df=df,
    )


def with_any_time(estimate: Estimate, *, floored: bool = False) -> Estimate:
    """Add the limits of the asymptotic confidence sequence, tightest near `TIGHTEST` labels.

    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), "Time-uniform central limit theory and
    asymptotic confidence sequences". https://doi.org/10.48550/arXiv.2103.06476
    """
    if estimate.value is None or estimate.se is None or estimate.df is None:
        return estimate
    if not 0 < estimate.value < 1 or estimate.status == NO_VARIATION:
        return estimate
    level = estimate.confidence_level
    squared = (1 - level) ** 2
    tuned = (-float(special.lambertw(-squared / np.e, -1).real) - 1) / TIGHTEST
    r = estimate.n * tuned
    wider = float(np.sqrt((r + 1) / r * np.log((r + 1) / squared))) / two_sided_z(level)
    if floored and estimate.interval is not None:
        low, high = (wider * (limit - estimate.value) for limit in estimate.interval)
        limits = clipped(estimate.value + low, estimate.value + high)
    else:
        limits = logit_interval(
            estimate.value, wider * estimate.se, df=estimate.df, confidence_level=level
        )
    factor = wider * two_sided_t(level, estimate.df)
    return replace(estimate, any_time=AnyTime(factor=factor, interval=limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class IfSkipped:
    """The rate if every skipped trace had no credit, or the most; outer limits of both."""

    lowest: float
    highest: float
    lower_limit: float | None
    upper_limit: float | None


def if_skipped(
    asked: LabelledSample,
    skipped: BoolArray,
    production: ProductionSums,
    *,
    strata: Strata,
    estimand: Estimand = "process",
    confidence_level: float = 0.95,
) -> IfSkipped:
    """Return how far skipped traces could move the rate: nothing is assumed about them.

    Parameters
    ----------
    asked : LabelledSample
        Labelled and skipped traces, with the weights of the draw; classes of skipped ones are not
        read.
    skipped : bool array, shape (n,)
    production, estimand
        As in `post_stratified`.
    strata : Strata
        Those of the rate.

    Examples
    --------
    Of 20 traces 10 succeed, 8 fail and 2 were skipped:

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> asked = LabelledSample(
    ...     human=np.eye(2)[[0] * 10 + [1] * 10], verdicts=np.zeros(20, dtype=int)
    ... )
    >>> found = if_skipped(
    ...     asked, np.arange(20) >= 18, production_sums_from_counts([100, 0], credit=[1.0, 0.0]),
    ...     strata=Strata(groups=(0, -1), merged=()),
    ... )
    >>> round(found.lowest, 3), round(found.highest, 3)
    (0.5, 0.6)
    """
    joined = join(asked, production, estimand=estimand, strata=strata)
    predicted, kept = predictions(joined, asked, net=True)
    scores = asked.scores(production.tables)
    penalty = 0.0 if asked.penalties is None else asked.penalties
    most = np.maximum(0.0, own_rows(production.tables, asked.table).max(axis=1) - penalty)
    low, high = (
        limited_rate(
            joined.mean(np.where(skipped, given, scores), predicted, kept),
            joined,
            confidence_level,
        )
        for given in (0.0, most)
    )
    return IfSkipped(
        lowest=low.value or 0.0,
        highest=high.value or 0.0,
        lower_limit=None if low.interval is None else low.interval[0],
        upper_limit=None if high.interval is None else high.interval[1],
    )


def class_shares(
    labelled: LabelledSample,
    production: ProductionSums,
    *,
    estimand: Estimand = "process",
    minimum_labels: int = 5,
    confidence_level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate the share of each class in production; the values sum to one.

    Each class is a score of 0 or 1 in `post_stratified`, with no prediction and the same strata, so
    that credit x shares is the rate without cost. Parameters and errors are those of
    `post_stratified`. Limits are the exact binomial ones at the effective number of labels,
    p (1 - p) / variance, shrunk because the variance is itself estimated; they exist for a class
    that no label has. No interval below 5 labelled tasks that repeat.

    References
    ----------
    Korn and Graubard (1998), Survey Methodology 24, 193-201.

    Examples
    --------
    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> labelled = LabelledSample(
    ...     human=np.eye(2)[[0] * 9 + [1] + [0] + [1] * 9], verdicts=np.repeat([0, 1], 10)
    ... )
    >>> production = production_sums_from_counts([800, 200], credit=[1.0, 0.0])
    >>> [share.value for share in class_shares(labelled, production)]
    [0.74, 0.26]
    """
    check_confidence_level(confidence_level)
    human = validated_human(labelled.human)
    n, n_classes = int(human.shape[0]), int(human.shape[1])
    if n < 2 or production.n == 0:
        why = "no labelled traces or no verdicts: label a random sample of production"
        refused = not_estimable(why, method=SHARES_METHOD, confidence_level=confidence_level)
        return (refused,) * n_classes
    # No cost is in a share: a few kinds of runs take the place of all.
    alike = replace(production, runs=production.runs.by_verdict())
    joined = join(labelled, alike, estimand=estimand, minimum_labels=minimum_labels)
    return tuple(limited_share(joined.mean(column), joined, confidence_level) for column in human.T)


def limited_share(
    found: Residual, joined: Joined, confidence_level: float, *, effective: float | None = None,
    method: str = SHARES_METHOD,
) -> Estimate:  # fmt: skip
    """Return a share with exact limits at the effective number of labels.

    `effective` is that of a share of 0 or 1, by default of the labelled tasks.
    """
    value, interval, status = min(1.0, max(0.0, found.value)), None, OK
    n = joined.stratum.size
    if joined.task is not None and joined.units < MINIMUM_UNITS:
        status = f"no interval: {joined.units} tasks, at least {MINIMUM_UNITS} are needed"
    else:
        effective = joined.effective if effective is None else effective
        if 0 < value < 1 and found.variance > NO_VARIANCE:
            known, estimated = (two_sided_t(confidence_level, df) for df in (n - 1, found.df))
            effective = value * (1 - value) / found.variance * (known / estimated) ** 2
        interval = exact_limits(value, effective, confidence_level)
    return Estimate(
        value=value,
        interval=interval,
        n=n,
        method=method,
        confidence_level=confidence_level,
        status=status,
        se=None if interval is None else found.se,
        df=None if interval is None else found.df,
    )


def bootstrap_post_stratified(
    columns: ArrayLike,
    verdicts: IntArray,
    production_counts: ArrayLike,
    *,
    strata: Strata,
    rng: np.random.Generator,
    promised: Promised | None = None,
    weights: FloatArray | None = None,
    clusters: NDArray[np.generic] | None = None,
    n_resamples: int = 2_000,
    confidence_level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Bootstrap the post-stratified means of several columns at once.

    Each resample draws the labelled traces (whole tasks when they repeat) and the verdicts of
    production anew, and keeps `strata`. Where tasks of production repeat, whole tasks are drawn,
    with their runs and their labels.

    `columns`, shape (n, n_columns), are values of the labelled traces, for instance scores and
    class shares. With `promised` the first column holds residuals, and the means of the promises
    are drawn by the normal approximation, or with their tasks. Intervals are percentiles; a column
    without variation within the strata has none, since no resample varies either. ValueError if
    shapes differ or a weight is not positive.

    Notes
    -----
    Traces with the same stratum, columns and weight are one cell, so a resample is a multinomial
    draw over the cells and a matrix product, as for production. A stratum that a resample leaves
    empty takes the mean of that resample.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    https://doi.org/10.1201/9780429246593

    Examples
    --------
    >>> scores = np.array([[1.0]] * 9 + [[0.0]] + [[1.0]] + [[0.0]] * 9)
    >>> (found,) = bootstrap_post_stratified(
    ...     scores, np.repeat([0, 1], 10), [800, 200], strata=Strata(groups=(0, 1), merged=()),
    ...     rng=np.random.default_rng(0),
    ... )
    >>> found.value
    0.74
    """
    check_confidence_level(confidence_level)
    values = np.asarray(columns, dtype=np.float64)
    counts = np.asarray(production_counts, dtype=np.float64)
    codes = validated_codes(verdicts, n_codes=counts.size, name="verdicts")
    n = codes.size
    if values.ndim != 2 or values.shape[0] != n:
        raise ValueError(f"columns must have shape ({n}, n_columns), got {values.shape!r}")
    weight = validated_weights(weights, n)
    if n < 2 or strata.n_strata == 0 or counts.sum() <= 0:
        why = f"{n} labelled traces: label a random sample of production"
        refused = not_estimable(
            why, method=BOOTSTRAP_METHOD, n=n, confidence_level=confidence_level
        )
        return tuple(refused for _ in range(values.shape[1]))
    group = np.array(strata.groups)
    share = np.bincount(
        group[group != UNUSED], weights=counts[group != UNUSED], minlength=strata.n_strata
    )
    units, times = _units(values, group[codes], weight, cluster_indices(clusters, n), strata)
    parts = units.reshape(len(units), strata.n_strata, -1)
    seen = _stratum_means(np.tensordot(times, parts, axes=1)[None])[0]
    means = (share / share.sum()) @ seen
    if promised is not None:
        means[0] += float(share @ promised.mean / share.sum())
    tasks = None if promised is None else tasks_of(clusters, n, promised.runs)
    if promised and tasks and tasks.labels is not None and tasks.runs is not None:
        resampled = _by_task(
            (tasks.labels, group[codes]), np.column_stack([weight, weight[:, None] * values]),
            (tasks.runs, group[promised.runs.verdicts]), promised,
            n_resamples=n_resamples, rng=rng,
        )  # fmt: skip
    else:
        sums = resampled_sums(units, times.astype(np.int64), n_resamples=n_resamples, rng=rng)
        drawn = _stratum_means(sums.reshape(n_resamples, *parts.shape[1:]))
        shares = rng.multinomial(round(counts.sum()), share / share.sum(), size=n_resamples)
        resampled = np.einsum("dg,dgc->dc", shares / counts.sum(), drawn)
        if promised is not None:
            mean, variance = promised.mean, promised.variance
            spread = np.sqrt(variance / np.maximum(1, shares)) * rng.standard_normal(shares.shape)
            resampled[:, 0] += ((mean + spread) * shares).sum(axis=1) / counts.sum()
    within = values - seen[group[codes]]
    varies = (np.abs(within) > 1e-12).any(axis=0).tolist()
    status = OK
    if cluster_indices(clusters, n) is not None and times.sum() < MINIMUM_UNITS:
        status = f"no interval: {times.sum():g} tasks, at least {MINIMUM_UNITS} are needed"
    return tuple(
        percentile_estimate(
            float(means[c]),
            resampled[:, c],
            n,
            BOOTSTRAP_METHOD,
            confidence_level,
            status if varies[c] else "no interval: no variation seen within the verdicts",
        )
        for c in range(values.shape[1])
    )


def _units(
    values: FloatArray,
    stratum: IntArray,
    weight: FloatArray,
    cluster: IntArray | None,
    strata: Strata,
) -> tuple[FloatArray, FloatArray]:
    """Return weights and weighted columns of the sampling units by stratum, and their counts."""
    extended = np.column_stack([weight, weight[:, None] * values])
    if cluster is None:
        keys, index, times = np.unique(
            np.column_stack([stratum, extended]), axis=0, return_index=True, return_counts=True
        )
        rows, at, place = extended[index], stratum[index], np.arange(len(keys))
    else:
        rows, at, place = extended, stratum, cluster
        times = np.ones(int(cluster.max()) + 1, dtype=np.int64)
    units = np.zeros((len(times), strata.n_strata, rows.shape[1]))
    np.add.at(units, (place, at), rows)
    return units.reshape(len(times), -1), times.astype(np.float64)


def _by_task(
    labels: tuple[IntArray, IntArray],
    weighted: FloatArray,
    production: tuple[IntArray, IntArray],
    promised: Promised,
    *,
    n_resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the means in draws of tasks with their runs and labels, if they hold any label.

    `labels` and `production` are task and stratum of each row.
    """
    runs, n_strata = promised.runs, promised.mean.size
    both = runs.times[:, None] * np.column_stack([np.ones(runs.times.size), promised.of_runs])
    n_tasks = 1 + int(max(labels[0].max(), production[0].max()))
    units = np.zeros((n_tasks, n_strata, 2 + weighted.shape[1]))
    np.add.at(units[..., :2], production, both)
    np.add.at(units[..., 2:], labels, weighted)
    sums = resampled_sums(
        units.reshape(n_tasks, -1), np.ones(n_tasks, dtype=np.int64),
        n_resamples=n_resamples, rng=rng,
    ).reshape(n_resamples, n_strata, -1)  # fmt: skip
    sums = sums[sums[..., 2].sum(axis=1) > 0]
    total = sums[..., 0].sum(axis=1, keepdims=True)
    means = _stratum_means(sums[..., 2:])
    drawn: FloatArray = np.einsum("dg,dgc->dc", sums[..., 0] / total, means)
    drawn[:, 0] += sums[..., 1].sum(axis=1) / total[:, 0]
    return drawn


def _stratum_means(sums: FloatArray) -> FloatArray:
    """Return the mean of each column in each stratum, shape (n_draws, n_strata, n_columns)."""
    total, weighted = sums[..., :1], sums[..., 1:]
    overall = weighted.sum(axis=1, keepdims=True) / total.sum(axis=1, keepdims=True)
    result: FloatArray = np.where(
        total > 0, np.divide(weighted, total, where=total > 0, out=np.zeros_like(weighted)), overall
    )
    return result
