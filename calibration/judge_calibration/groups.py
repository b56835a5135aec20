"""Rates of groups that learn from each other's labels, and their differences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from calibration.judge_calibration.bayesian import bayesian, inverted_shares
from calibration.judge_calibration.confusion_inversion import (
    Inversion,
    TableLabels,
    inversion_refusals,
    invert,
)
from calibration.judge_calibration.post_stratification import class_shares, post_stratified
from calibration.judge_calibration.samples import (
    PROBABILITY_SAMPLE_MIN,
    Design,
    LabelledSample,
    ProductionSums,
    confusion_from_table,
    own_rows,
    right_inverse,
    validated_human,
    verdict_rates,
)
from calibration.statistics.contingency import holm
from calibration.statistics.estimate import (
    OK,
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
    NO_VARIANCE,
    NO_VARIATION,
    clipped,
    exact_limits,
    independent_difference,
    logit_interval,
    t_chance,
    t_interval,
    two_sided_t,
    two_sided_z,
    unanimous_interval,
)
from calibration.statistics.random_effects import Shrunk, shrunk_means

# With fewer labelled groups, or labels in all of them, the judge's error is not pooled over groups.
GROUPS_FOR_POOLING, LABELS_FOR_POOLING = 3, PROBABILITY_SAMPLE_MIN

LABELS_FOR_DIRECT = 50
# A group whose judge errs by so many standard errors more or less than the median keeps its own
# labels; below so many labelled tasks its limits are the outer ones of both.
FAR, FEW_LABELS = 1.0, 15
# Between this and 1 less this, limits of a slice are formed on the logit scale.
LOGIT_FROM = 0.2
VERDICTS_FOR_DIRECT = 2
POOLED = "judge error of the group, shrunk toward that of all groups (empirical Bayes), logit"
APART = "own labels, not pooled: differs from the others, logit"
OWN = "own labels, variance pooled over groups, logit t"
UNLABELLED = "no label of its own: label some of its traces"
POOLED_DIFFERENCE = "both on their own labels, variance pooled over groups, t"
SYNTHETIC = "inverted with the error rates of all groups, delta"
DIRECT_DIFFERENCE = "both post-stratified on their own labels, limits combined (MOVER)"
SYNTHETIC_DIFFERENCE = "both inverted with the same error rates, delta"
SMALL = 5.0
CHI_SQUARE = "chi-square of verdict given class over groups"
PERMUTED = "chi-square of verdict given class over groups, {n:,} permutations within class"
Kind = Literal["pooled", "direct", "synthetic"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedCalibration:
    """One calibration of the judge for all groups.

    `table` : labelled traces of *all* groups by human class and verdict (n_classes, n_verdicts).
    `labelled` : these traces, where their tasks repeat.
    `names` : of the verdicts, the classes first.
    `pseudo_count` : as in `invert`.
    `seed` : of the posterior that bounds synthetic class shares.

    ValueError if `confidence_level` is outside (0, 1) or the table is not one of counts.
    """

    table: ArrayLike
    names: Sequence[str]
    labelled: LabelledSample | None = None
    design: Design = "production"
    pseudo_count: float = 0.5
    seed: int = 0
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        check_confidence_level(self.confidence_level)
        confusion_from_table(self.table)

    @property
    def cells(self) -> FloatArray:
        """The table as an array of floats."""
        return confusion_from_table(self.table).table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledGroup:
    """The traces of one agent, workflow, model or week.

    For design ``production`` the labelled traces are among those of `production`.
    """

    name: str
    labelled: LabelledSample
    production: ProductionSums


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEstimate:
    """The corrected mean score and class shares of one group.

    ``pooled`` takes the judge's mean error in the groups for normal around one mean. ``direct``
    comes from its own labels and assumes nothing about the judge. ``synthetic`` assumes that the
    judge errs in this group as in all groups together.

    `own_weight` : share of its own labels in the judge's error, from 0 to 1; None unless pooled.
    `own` : whether it keeps its own labels, because the judge errs otherwise in the other groups.
    """

    name: str
    kind: Kind
    estimate: Estimate
    shares: tuple[Estimate, ...]
    n_labels: int
    n_production: int
    own_weight: float | None = None
    own: bool = False


def is_direct(group: LabelledGroup, *, design: Design, least: int = LABELS_FOR_DIRECT) -> bool:
    """Return whether a group has enough labels for an estimate of its own.

    It needs `least` labelled traces with two different verdicts, sampled from production: labels of
    a reference set do not show its class mix.
    """
    verdicts = group.labelled.verdicts
    enough = verdicts.size >= least
    return design == "production" and enough and np.unique(verdicts).size >= VERDICTS_FOR_DIRECT


def estimate_group(group: LabelledGroup, shared: SharedCalibration) -> GroupEstimate:
    """Estimate the mean score of one group, directly if it has enough labels.

    Direct is `post_stratified` on its own labels, synthetic `invert` with the common table. If
    `inversion_refusals` refuses that, the estimate is direct from 30 labels on, else
    ``not_estimable``.

    Examples
    --------
    No own labels; sensitivity .8, specificity .9, 45 % passed: (.45 + .9 - 1) / (.8 + .9 - 1).

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> week = LabelledGroup(
    ...     name="week",
    ...     labelled=LabelledSample(human=np.zeros((0, 2)), verdicts=np.zeros(0, dtype=int)),
    ...     production=production_sums_from_counts([450, 550], credit=[1.0, 0.0]),
    ... )
    >>> shared = SharedCalibration(
    ...     table=[[80, 20], [10, 90]], names=["yes", "no"], pseudo_count=0
    ... )
    >>> found = estimate_group(week, shared)
    >>> found.kind, found.estimate.value
    ('synthetic', 0.5)
    """
    kind, estimate = _rate(group, shared)
    shares = (_direct_shares if kind == "direct" else _synthetic_shares)(group, shared, estimate)
    return GroupEstimate(
        name=group.name,
        kind=kind,
        estimate=estimate,
        shares=shares,
        n_labels=int(group.labelled.verdicts.size),
        n_production=group.production.n,
    )


def _rate(group: LabelledGroup, shared: SharedCalibration) -> tuple[Kind, Estimate]:
    """Estimate the mean score of one group from its own labels, or by inversion."""
    if not is_direct(group, design=shared.design):
        estimate = _synthetic(group, shared)
        few = is_direct(group, design=shared.design, least=PROBABILITY_SAMPLE_MIN)
        if estimate.ok or not few:
            return "synthetic", estimate
    found = post_stratified(
        group.labelled, group.production, confidence_level=shared.confidence_level
    )
    return "direct", found.estimate


def _direct_shares(
    group: LabelledGroup, shared: SharedCalibration, _: Estimate
) -> tuple[Estimate, ...]:
    return class_shares(group.labelled, group.production, confidence_level=shared.confidence_level)


def _inverted(group: LabelledGroup, shared: SharedCalibration) -> Inversion:
    return invert(
        shared.cells,
        group.production,
        labelled=shared.labelled,
        pseudo_count=shared.pseudo_count,
        confidence_level=shared.confidence_level,
    )


def _synthetic(group: LabelledGroup, shared: SharedCalibration) -> Estimate:
    """Estimate the mean score of one group with the error rates of all groups."""
    production, found = group.production, _inverted(group, shared)
    estimate = replace(found.estimate, method=SYNTHETIC)
    refusals = inversion_refusals(
        shared.cells,
        found,
        credit=production.credit,
        verdict_shares=production.counts / max(1, production.n),
        names=shared.names,
    )
    if not (refusals and estimate.ok):
        return estimate
    return not_estimable(
        "; ".join(f"{notice.why} ({notice.mend})" for notice in refusals),
        method=SYNTHETIC,
        n=estimate.n,
        confidence_level=shared.confidence_level,
    )


def _synthetic_shares(
    group: LabelledGroup, shared: SharedCalibration, estimate: Estimate
) -> tuple[Estimate, ...]:
    if not estimate.ok:
        return (estimate,) * group.production.credit.size
    inversion = _inverted(group, shared)
    posterior = bayesian(
        shared.cells,
        group.production,
        rng=np.random.default_rng(shared.seed),
        effects=inversion.effects,
        confidence_level=shared.confidence_level,
    )
    return inverted_shares(inversion, posterior)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Slice:
    """The judge's error in one group, in columns: the score, then the share of each class.

    `error`, `own` : mean of label less verdict over the labels, and its variance by task.
    `n_labels`, `units`, `labels` : labels, labelled tasks, and the effective number of these.
    `promised`, `between` : mean of what the verdicts promise, and its variance.
    """

    error: FloatArray
    own: FloatArray
    n_labels: int
    units: int
    labels: float
    promised: FloatArray
    between: FloatArray


def _slice(group: LabelledGroup) -> _Slice:
    labelled, production = group.labelled, group.production
    tables, runs = production.tables, production.runs
    human = validated_human(labelled.human)
    weight = validated_weights(labelled.weights, len(human))
    share = weight / weight.sum()
    said = _promised(labelled.verdicts, labelled.penalties, own_rows(tables, labelled.table))
    apart = np.column_stack([labelled.scores(tables), human]) - said
    error = share @ apart
    influence, by_task = share[:, None] * (apart - error), share
    task = cluster_indices(labelled.clusters, share.size)
    if task is not None:
        influence = _by_code(influence, task)
        by_task = _by_code(share[:, None], task)[:, 0]
    units = by_task.size
    all_said = _promised(runs.verdicts, runs.penalties, own_rows(tables, runs.table))
    n = runs.times.sum()
    mean = runs.times @ all_said / n
    away = all_said - mean
    between = runs.times @ away**2 / n**2
    if runs.tasks is not None:
        of_task = _by_code(
            runs.times[:, None] * away / n, np.unique(runs.tasks, return_inverse=True)[1]
        )
        between = len(of_task) / max(1, len(of_task) - 1) * (of_task**2).sum(axis=0)
    return _Slice(
        error=error,
        own=units / max(1, units - 1) * (influence**2).sum(axis=0),
        n_labels=share.size,
        units=units,
        labels=1.0 / float(by_task @ by_task),
        promised=mean,
        between=between,
    )


def _promised(verdicts: IntArray, penalties: FloatArray | None, credit: FloatArray) -> FloatArray:
    """Return the score and the classes that verdicts promise; none for one that is no class.

    `credit` has a row for each run, or one row for all.
    """
    n_classes = credit.shape[1]
    classes = np.vstack([np.eye(n_classes), np.zeros(n_classes)])
    found = classes[np.minimum(verdicts, n_classes)]
    worth = found @ credit[0] if len(credit) == 1 else (found * credit).sum(axis=1)
    score = np.maximum(0.0, worth - (0.0 if penalties is None else penalties))
    return np.column_stack([score, found])


def _by_code(rows: FloatArray, code: IntArray) -> FloatArray:
    sums = np.zeros((int(code.max()) + 1, rows.shape[1]))
    np.add.at(sums, code, rows)
    return sums


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pooled:
    """Groups with their judge error pooled; `place` in `slices` of each that has enough labels.

    `variances`, shape (n_slices, n_columns) : of the errors, by the variance pooled over groups.
    `shrunk` : of each column; None for one in which no label differs from its group.
    """

    slices: tuple[_Slice, ...]
    place: Mapping[str, int]
    variances: FloatArray
    shrunk: tuple[Shrunk | None, ...]
    df: float

    def rate(self, name: str, column: int, confidence_level: float) -> Estimate:
        """Estimate the score or a class share of one group, its error shrunk."""
        at, shrunk, z = self.place[name], self.shrunk[column], two_sided_z(confidence_level)
        if shrunk is None:
            return self.own(name, confidence_level, column)
        one, level = self.slices[at], confidence_level
        pooled, own = (
            self._limited(at, column, float(error), float(reach) / z, np.inf, method, level)
            for error, reach, method in (
                (shrunk.values[at], shrunk.reaches[at], POOLED),
                (one.error[column], shrunk.own_reaches[at], APART),
            )
        )
        found = own if shrunk.far[at] else pooled
        if one.units >= FEW_LABELS or pooled.interval is None or own.interval is None:
            return found
        low, high = zip(pooled.interval, own.interval, strict=True)
        return replace(found, interval=(min(low), max(high)))

    def own(self, name: str, confidence_level: float, column: int = 0) -> Estimate:
        """Estimate the score or a class share of one group from its own labels."""
        if name not in self.place:
            return not_estimable(UNLABELLED, method=OWN, confidence_level=confidence_level)
        at = self.place[name]
        error, se = self.slices[at].error[column], np.sqrt(self.variances[at, column])
        return self._limited(at, column, float(error), se, self.df, OWN, confidence_level)

    def _limited(
        self, at: int, column: int, error: float, se: float, df: float, method: str, level: float
    ) -> Estimate:
        one, steady = self.slices[at], self.shrunk[column] is None
        value = min(1.0, max(0.0, float(one.promised[column]) + error))
        between = float(one.between[column])
        whole = float(np.sqrt(se**2 + between))
        if steady:
            low, high = unanimous_interval(value, one.units, confidence_level=level)
            reach = two_sided_z(level) * np.sqrt(between)
            limits = clipped(low - reach, high + reach)
        elif LOGIT_FROM <= value <= 1 - LOGIT_FROM:
            limits = logit_interval(value, whole, df=df, confidence_level=level)
        elif 0 < value < 1:
            # Near 0 and 1 the limits of few labels on the logit scale are far too wide.
            reach = two_sided_t(level, df) * whole
            limits = clipped(value - reach, value + reach)
        else:
            limits = exact_limits(value, one.labels, level)
        return Estimate(
            value=value, interval=limits, n=one.n_labels, method=method, confidence_level=level,
            se=None if steady else whole, status=NO_VARIATION if steady else OK,
        )  # fmt: skip


def _pool(groups: Sequence[LabelledGroup], shared: SharedCalibration) -> _Pooled | None:
    """Pool the judge's errors over groups; None where these are too few, or not of production."""
    if shared.design != "production":
        return None
    made = {group.name: _slice(group) for group in groups if group.labelled.verdicts.size}
    n_labels = sum(one.units for one in made.values())
    if len(made) < GROUPS_FOR_POOLING or n_labels < LABELS_FOR_POOLING:
        return None
    slices = tuple(made.values())
    labels = np.array([one.labels for one in slices])
    spare = np.maximum(0.0, labels - 1)
    df = float(spare.sum())
    within = (spare * labels) @ np.array([one.own for one in slices]) / df
    variances = within / labels[:, None]
    errors = np.array([one.error for one in slices])
    return _Pooled(
        slices=slices,
        place={name: at for at, name in enumerate(made)},
        variances=variances,
        shrunk=tuple(
            None
            if within[column] < NO_VARIANCE
            else shrunk_means(
                errors[:, column],
                variances[:, column],
                df=df,
                own_variances=np.array([one.own[column] for one in slices]),
                far=FAR,
                confidence_level=shared.confidence_level,
            )
            for column in range(within.size)
        ),
        df=df,
    )


def estimate_groups(
    groups: Sequence[LabelledGroup], shared: SharedCalibration
) -> tuple[GroupEstimate, ...]:
    """Estimate the mean score of every group; one with few labels borrows from the others.

    From 50 labels on a group is ``direct``, as in `estimate_group`. Others are ``pooled``:
    theta_j = mean f_j + mu + B_j (delta_j - mu). f is what verdict and cost of a run promise,
    max(0, credit - penalty); delta_j the mean of score less f over the labels of group j, with
    their weights; mu and B_j as in `shrunk_means`. Class shares likewise, divided by their sum. The
    fewer labels a group has, and the less the groups differ, the more its error is drawn toward
    that of all. Errors of groups are taken for normal, and groups for independent; all groups with
    a label are pooled, also direct ones. A group without any is ``not_estimable``.

    With fewer than three labelled groups or 30 labelled tasks, and with a reference set, each is
    estimated by `estimate_group`.

    Notes
    -----
    u_j^2, the variance of delta_j, is the variance pooled within groups over the effective labels
    of the group; both by task where tasks repeat. The half-width adds z^2 Var(f_j) / N_j (by task)
    to that of `shrunk_means`; limits are formed on the logit scale. Labels are among the runs, and
    a judge too lenient to a task has less credit left to give: both make the true variance smaller.

    References
    ----------
    Morris (1983), J. Am. Stat. Assoc. 78. https://doi.org/10.1080/01621459.1983.10477920
    Ghosh and Rao (1994), "Small area estimation: an appraisal", Statist. Sci. 9.
    https://doi.org/10.1214/ss/1177010647

    Examples
    --------
    Four groups of 20 labels; the judge passes 12 of each, of which 2, 2, 2 and 6 failed: errors of
    -.1, -.1, -.1 and -.3 around -.15. The variance within groups is .12 x 20 / 19, so u^2 = .00632,
    and that of the four means .03 / 3 = .01: B = 1 - .00632 / .01 = .368 of each distance is kept.

    >>> from calibration.judge_calibration.samples import production_sums_from_counts
    >>> groups = [
    ...     LabelledGroup(
    ...         name=name,
    ...         labelled=LabelledSample(
    ...             human=np.eye(2)[[0] * (12 - wrong) + [1] * (8 + wrong)],
    ...             verdicts=np.repeat([0, 1], [12, 8]),
    ...         ),
    ...         production=production_sums_from_counts([600, 400], credit=[1.0, 0.0]),
    ...     )
    ...     for name, wrong in [("a", 2), ("b", 2), ("c", 2), ("d", 6)]
    ... ]
    >>> shared = SharedCalibration(table=np.eye(2), names=["yes", "no"])
    >>> [round(found.estimate.value, 3) for found in estimate_groups(groups, shared)]
    [0.468, 0.468, 0.468, 0.3]
    """
    pooled = _pool(groups, shared)
    if pooled is None:
        return tuple(estimate_group(group, shared) for group in groups)
    return tuple(
        estimate_group(group, shared)
        if is_direct(group, design=shared.design)
        else _of_pool(group, pooled, shared.confidence_level)
        for group in groups
    )


def _of_pool(group: LabelledGroup, pooled: _Pooled, confidence_level: float) -> GroupEstimate:
    n_labels, at = int(group.labelled.verdicts.size), pooled.place.get(group.name)
    weight, own = None, False
    if at is None:
        estimate = not_estimable(UNLABELLED, method=POOLED, confidence_level=confidence_level)
        shares = (estimate,) * group.production.credit.size
    else:
        estimate, *of_classes = (
            pooled.rate(group.name, column, confidence_level)
            for column in range(len(pooled.shrunk))
        )
        total = sum(share.value or 0.0 for share in of_classes) or 1.0
        shares = tuple(_divided(share, total) for share in of_classes)
        of_rate = pooled.shrunk[0]
        own = of_rate is not None and bool(of_rate.far[at])
        weight = 1.0 if of_rate is None or own else float(of_rate.kept[at])
    return GroupEstimate(
        name=group.name,
        kind="pooled",
        estimate=estimate,
        shares=shares,
        n_labels=n_labels,
        n_production=group.production.n,
        own_weight=weight,
        own=own,
    )


def _divided(share: Estimate, total: float) -> Estimate:
    low, high = share.interval or (0.0, 1.0)
    return replace(
        share,
        value=(share.value or 0.0) / total,
        interval=(low / total, min(1.0, high / total)),
        se=None if share.se is None else share.se / total,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupComparison:
    """The difference of two groups, first less second.

    `kind` : ``pooled``, or ``direct`` when both are estimated from their own labels alone, as the
    groups themselves. Else both sides are ``synthetic``.
    `sides` : the two estimates, of the same kind.
    `flip_chance` : chance that the true difference has the other sign if the error rates are the
    same in both; None without a standard error and for a direct difference.
    `flips_at` : the synthetic ranking is reversed if the judge gives the best verdict instead of
    the worst to this share more of one group's traces than of the other's.
    """

    first: str
    second: str
    kind: Kind
    sides: tuple[Estimate, Estimate]
    difference: Estimate
    flip_chance: float | None = None
    flips_at: float | None = None
    p_value: float | None = None
    p_holm: float | None = None

    @property
    def may_gate(self) -> bool:
        """Whether the difference may pass or fail a gate."""
        return self.kind != "synthetic" and self.difference.interval is not None


def compare_pairs(
    groups: Sequence[LabelledGroup], pairs: Sequence[tuple[str, str]], shared: SharedCalibration
) -> tuple[GroupComparison, ...]:
    """Estimate the differences of pairs of groups, by name; Holm's adjustment is over the pairs.

    Where a side is pooled, both have mean f + delta instead, not shrunk, from their own labels: a
    judge who favours one group does not hide in the others. Only the variance is pooled over
    groups; t with its degrees of freedom. Otherwise as `compare_groups`.
    """
    named, pooled = {group.name: group for group in groups}, _pool(groups, shared)
    found = []
    for names in pairs:
        first, second = (named[name] for name in names)
        alone = all(is_direct(group, design=shared.design) for group in (first, second))
        if pooled is None or alone:
            found.append(compare_groups(first, second, shared))
        else:
            found.append(_own_difference(first, second, pooled, shared.confidence_level))
    p_values = {at: one.p_value for at, one in enumerate(found) if one.p_value is not None}
    adjusted = holm(p_values)
    return tuple(replace(one, p_holm=adjusted.get(at)) for at, one in enumerate(found))


def _own_difference(
    first: LabelledGroup, second: LabelledGroup, pooled: _Pooled, confidence_level: float
) -> GroupComparison:
    level = confidence_level
    sides = (pooled.own(first.name, level), pooled.own(second.name, level))
    difference = independent_difference(*sides, method=POOLED_DIFFERENCE)
    if difference.se and difference.value is not None:
        limits = t_interval(
            difference.value, difference.se, df=pooled.df, confidence_level=level, lowest=-1.0,
            highest=1.0,
        )  # fmt: skip
        difference = replace(difference, interval=limits, df=pooled.df)
    return GroupComparison(
        first=first.name,
        second=second.name,
        kind="pooled",
        sides=sides,
        difference=difference,
        p_value=_p_value(difference, pooled.df),
    )


def compare_groups(
    first: LabelledGroup, second: LabelledGroup, shared: SharedCalibration
) -> GroupComparison:
    """Estimate the difference of two groups without common traces, directly if both allow it.

    Direct: the limits of the two intervals combined as independent; where both ran the same tasks
    the interval is too wide. Synthetic: one calibration for both sides, so that most of the
    uncertainty about the judge cancels.

    Notes
    -----
    With M = sum_s (C^-T t_s / N)(C^-1 e_s)^T of each side (see `invert`), the synthetic variance is
    the sum of the two production parts plus sum_j Var_{C_j}(M_a,j. - M_b,j.) / n_j. Without cost
    this last part is sum_j (pi_a,j - pi_b,j)^2 Var_{C_j}(a) / n_j. The sum of the variances of the
    sides would count the calibration twice.

    References
    ----------
    Zou and Donner (2008), "Construction of confidence limits about effect measures", Stat. Med. 27.
    https://doi.org/10.1002/sim.3095
    Fiedler (2026), on comparisons that share one calibration.
    https://doi.org/10.48550/arXiv.2605.06939
    """
    sides = [_rate(group, shared) for group in (first, second)]
    if all(kind == "direct" for kind, _ in sides):
        (_, one), (_, other) = sides
        difference = independent_difference(one, other, method=DIRECT_DIFFERENCE)
        return GroupComparison(
            first=first.name,
            second=second.name,
            kind="direct",
            sides=(one, other),
            difference=difference,
            p_value=_p_value(difference, min(one.df or np.inf, other.df or np.inf)),
        )
    one, other = (_synthetic(group, shared) for group in (first, second))
    result = GroupComparison(
        first=first.name,
        second=second.name,
        kind="synthetic",
        sides=(one, other),
        difference=replace(other if one.ok else one, method=SYNTHETIC_DIFFERENCE),
    )
    if not (one.ok and other.ok):
        return result
    return _synthetic_difference(result, first, second, shared)


def _p_value(difference: Estimate, df: float) -> float | None:
    if not difference.se or difference.value is None:
        return None
    return 2 * t_chance(-abs(difference.value) / difference.se, df)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """One side of a synthetic difference: its inversion, M, and the reach of a verdict."""

    inversion: Inversion
    mixed: FloatArray
    reach: float

    @classmethod
    def of(
        cls, group: LabelledGroup, shared: SharedCalibration, rates_inverse: FloatArray
    ) -> "_Side":
        found, production = _inverted(group, shared), group.production
        sums = production.sums.T / production.n
        return cls(
            inversion=found,
            mixed=rates_inverse.T @ sums @ np.array(found.level_weights).T,
            reach=float(np.ptp(found.verdict_weights[: production.credit.size])),
        )


def _synthetic_difference(
    compared: GroupComparison,
    first: LabelledGroup,
    second: LabelledGroup,
    shared: SharedCalibration,
) -> GroupComparison:
    cells, pseudo_count = shared.cells, shared.pseudo_count
    known = cells.sum(axis=1) > 0
    rates, inverse = np.zeros_like(cells), np.zeros(cells.shape[::-1])
    rates[known] = verdict_rates(cells[known], pseudo_count=pseudo_count)
    inverse[:, known] = right_inverse(rates[known])
    sizes = np.where(known, cells.sum(axis=1) + pseudo_count, 1.0)
    one, other = (_Side.of(group, shared, inverse) for group in (first, second))
    apart = one.mixed - other.mixed
    by_row = (rates * apart**2).sum(axis=1) - (rates * apart).sum(axis=1) ** 2
    variance = float((by_row / sizes).sum())
    labels = TableLabels.of(
        shared.labelled, first.production, cells.sum(axis=1) / sizes, shared=False
    )
    if labels.tasks.labels is not None:
        still = np.zeros(first.production.runs.times.size)
        variance = labels.variances(apart, still, variance)[0]
    variance += one.inversion.variance_production + other.inversion.variance_production
    value = (one.inversion.unclipped or 0.0) - (other.inversion.unclipped or 0.0)
    se, df = float(np.sqrt(max(0.0, variance))), min(side.df or np.inf for side in compared.sides)
    reach = two_sided_t(shared.confidence_level, df) * se
    difference = Estimate(
        value=min(1.0, max(-1.0, value)),
        interval=(max(-1.0, min(1.0, value - reach)), min(1.0, max(-1.0, value + reach))),
        n=first.production.n + second.production.n,
        method=SYNTHETIC_DIFFERENCE,
        confidence_level=shared.confidence_level,
        se=se,
        df=df if df < np.inf else None,
    )
    for side in compared.sides:
        if side.interval is None:
            unbounded = replace(difference, interval=None, se=None, status=side.status)
            return replace(compared, difference=unbounded)
    return replace(
        compared,
        difference=difference,
        p_value=_p_value(difference, df),
        flip_chance=t_chance(-abs(value) / se, df) if se > 0 else None,
        flips_at=abs(value) / one.reach if one.reach > 0 else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesTest:
    """A test that the judge's error rates are equal in all groups; empty unless `status` is ``ok``.

    `smallest_expected` : smallest expected count of a cell that is not empty by construction.
    """

    statistic: float | None
    p_value: float | None
    df: int
    n: int
    n_groups: int
    smallest_expected: float | None
    method: str
    status: str = OK


def compare_rates(
    human: ArrayLike,
    verdicts: IntArray,
    groups: IntArray,
    *,
    n_verdicts: int,
    rng: np.random.Generator,
    n_permutations: int = 2000,
) -> RatesTest:
    """Test that P(verdict | class) is the same in all groups, as `synthetic` estimates assume.

    Traces are independent. A large p-value does not show that the rates are the same: with few
    labels a group, real differences go undetected.

    Parameters
    ----------
    human : array-like of float, shape (n, n_classes)
        Class shares per trace, rows summing to one.
    verdicts, groups : int array, shape (n,)
        Codes from 0.
    n_permutations : int, default 2000
        Used when an expected count is below 5, where the chi-square approximation fails; groups are
        permuted among traces of the same (most voted) class.

    Returns
    -------
    RatesTest
        Pearson's statistic summed over classes, each with (groups - 1) x (verdicts - 1) df,
        counting what occurs within the class.

    Raises
    ------
    ValueError
        If shapes differ, a row does not sum to one, or a code is out of range.

    References
    ----------
    Pearson (1900), Philosophical Magazine 50. https://doi.org/10.1080/14786440009463897

    Examples
    --------
    One class; the judge passes 30 of 40 traces of one group and 10 of 40 of the other: all four
    expected counts are 20, so 4 x 100 / 20:

    >>> human, groups = np.ones((80, 1)), np.repeat([0, 1], 40)
    >>> verdicts = np.repeat([0, 1, 0, 1], [30, 10, 10, 30])
    >>> rng = np.random.default_rng(0)
    >>> compare_rates(human, verdicts, groups, n_verdicts=2, rng=rng).statistic
    20.0
    """
    shares = validated_human(human)
    n = shares.shape[0]
    codes = validated_codes(verdicts, n_codes=n_verdicts, name="verdicts")
    group = validated_codes(groups, n_codes=None, name="groups")
    if codes.shape != (n,) or group.shape != (n,):
        raise ValueError(
            f"verdicts and groups must have shape ({n},), got {codes.shape!r} and {group.shape!r}"
        )
    names, group = np.unique(group, return_inverse=True)
    if names.size < 2:
        return _none(n, names.size, "labels of one group only: label traces of other groups")
    cells = _Cells(shares, codes, n_verdicts, names.size)
    table = cells.table(group)
    expected, df = _expected(table)
    if df == 0:
        return _none(n, names.size, "no class has labels in two groups and two verdicts")
    statistic = _pearson(table, expected)
    smallest = float(expected[expected > 0].min())
    p_value, method = float(special.chdtrc(df, statistic)), CHI_SQUARE
    if smallest < SMALL:
        method = PERMUTED.format(n=n_permutations)
        most = shares.argmax(axis=1)
        reached = 0
        for _ in range(n_permutations):
            # One shuffle, then put in order of class: a shuffle within each class.
            order = rng.permutation(n)
            shuffled = group.copy()
            shuffled[np.argsort(most, kind="stable")] = group[
                order[np.argsort(most[order], kind="stable")]
            ]
            drawn = cells.table(shuffled)
            reached += _pearson(drawn, _expected(drawn)[0]) >= statistic - 1e-9
        p_value = (1 + reached) / (1 + n_permutations)
    return RatesTest(
        statistic=statistic, p_value=p_value, df=df, n=n, n_groups=int(names.size),
        smallest_expected=smallest, method=method,
    )  # fmt: skip


class _Cells:
    """Counts of traces by class, group and verdict, for any allocation to groups."""

    def __init__(
        self, shares: FloatArray, verdicts: IntArray, n_verdicts: int, n_groups: int
    ) -> None:
        self._rows, self._classes = np.nonzero(shares)
        self._weight = shares[self._rows, self._classes]
        self._verdict = verdicts[self._rows]
        self._shape = (shares.shape[1], n_groups, n_verdicts)

    def table(self, group: IntArray) -> FloatArray:
        """Return counts, shape (n_classes, n_groups, n_verdicts)."""
        _, n_groups, n_verdicts = self._shape
        cell = (self._classes * n_groups + group[self._rows]) * n_verdicts + self._verdict
        counts = np.bincount(cell, weights=self._weight, minlength=int(np.prod(self._shape)))
        return np.asarray(counts.reshape(self._shape), dtype=np.float64)


def _expected(table: FloatArray) -> tuple[FloatArray, int]:
    rows, columns = table.sum(axis=2), table.sum(axis=1)
    total = np.maximum(rows.sum(axis=1), np.finfo(float).tiny)
    expected = rows[:, :, None] * columns[:, None, :] / total[:, None, None]
    free = np.maximum(0, (rows > 0).sum(axis=1) - 1) * np.maximum(0, (columns > 0).sum(axis=1) - 1)
    return expected, int(free.sum())


def _pearson(table: FloatArray, expected: FloatArray) -> float:
    seen = expected > 0
    return float(((table - expected)[seen] ** 2 / expected[seen]).sum())


def _none(n: int, n_groups: int, why: str) -> RatesTest:
    return RatesTest(
        statistic=None, p_value=None, df=0, n=n, n_groups=n_groups, smallest_expected=None,
        method=CHI_SQUARE, status=f"not_estimable: {why}",
    )  # fmt: skip
