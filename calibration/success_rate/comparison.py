"""Comparison of two sets of runs: difference of rates, power, class changes.

Both sides are scored with the same credit. `paired`: tasks with one name are one task. `options`
are those of `resample`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibration.statistics.estimate import OK, Estimate, FloatArray, IntArray, not_estimable
from calibration.statistics.intervals import (
    MINIMUM_UNITS,
    NO_VARIANCE,
    NO_VARIATION,
    added_reach,
    normal_chance,
    normal_quantile,
    t_chance,
    t_interval,
    t_quantile,
    two_sided_t,
    two_sided_z,
    unanimous_interval,
    zero_event_upper_bound,
)
from calibration.success_rate.rate import AgentSuccessRate, rate_of_counts
from calibration.success_rate.resampling import (
    BOOTSTRAP_UNITS,
    MOST_UNITS,
    TASKS,
    UNDEFINED_DRAWS,
    Resampled,
    Resampling,
    Units,
    grouped_at_random,
    linearised_variance,
    most_tasks,
    pool_lone,
    resample,
    satterthwaite,
    share_feature,
    stratum_variances,
    task_units,
    units_of,
)
from calibration.success_rate.runs import RunCounts

BEFORE, AFTER = "before:", "after:"
POWER = 0.80
MOVED, LEVEL = 0.02, 0.05

# Two points exactly, up to rounding of shares, is not more than two.
EXACTLY = 1e-9

# The margin of the default gate, as a fraction.
MARGIN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointUnits:
    """Units with the features of both sides.

    `n_pairs`, `n_alone` : tasks that both sides have, and tasks of the first and of the second only
    (0 unless paired).

    Units of one side have zeros in the columns of the other. Tasks of both, of the first only and
    of the second only are strata, each resampled with its own number.
    """

    units: Units
    n_pairs: int = 0
    n_alone: tuple[int, int] = (0, 0)


def side_by_side(
    before: RunCounts,
    after: RunCounts,
    *,
    paired: bool,
    rng: np.random.Generator,
) -> JointUnits:
    """Join two sets of runs into one set of units."""
    if not paired:
        one, other = (units_of(side, rng=rng) for side in (before, after))
        rows = np.arange(one.multiplicity.size), np.arange(other.multiplicity.size)
        return JointUnits(units=_joined(one, other, rows[0], rows[1] + rows[0].size))
    (one, ids), (other, other_ids) = task_units(before), task_units(after)
    place = _union_places(ids, other_ids)
    both = np.intersect1d(place[0], place[1], return_indices=True)
    if (one.multiplicity[both[1]] != other.multiplicity[both[2]]).any():
        raise ValueError("tasks of one name must represent the same number of tasks on both sides")
    joined = _joined(one, other, *place)
    n_pairs = int(one.multiplicity[both[1]].sum())
    first, second = (int(side.multiplicity.sum()) - n_pairs for side in (one, other))
    return JointUnits(
        units=grouped_at_random(joined, rng, most_tasks(MOST_UNITS)),
        n_pairs=n_pairs,
        n_alone=(first, second),
    )


def _union_places(
    ids: NDArray[np.generic], other_ids: NDArray[np.generic]
) -> tuple[IntArray, IntArray]:
    _, place = np.unique(np.concatenate([ids, other_ids]), return_inverse=True)
    place = place.astype(np.int64)
    return place[: ids.size], place[ids.size :]


def _joined(one: Units, other: Units, place: IntArray, other_place: IntArray) -> Units:
    size = int(max(place.max(), other_place.max())) + 1

    def wide(units: Units, rows: IntArray) -> tuple[FloatArray, IntArray, IntArray]:
        sums = np.zeros((size, units.sums.shape[1]))
        sums[rows] = units.sums
        multiplicity, stratum = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        multiplicity[rows], stratum[rows] = units.multiplicity, units.stratum + 1
        return sums, multiplicity, stratum

    sums, multiplicity, stratum = wide(one, place)
    other_sums, other_multiplicity, other_stratum = wide(other, other_place)
    multiplicity = np.maximum(multiplicity, other_multiplicity)
    return replace(
        one,
        names=(*(BEFORE + name for name in one.names), *(AFTER + name for name in other.names)),
        sums=np.hstack([sums, other_sums]),
        multiplicity=multiplicity,
        stratum=pool_lone(stratum * (int(other_stratum.max()) + 1) + other_stratum, multiplicity),
        entering=np.concatenate([one.entering, other.entering]),
        n=int(multiplicity.sum()),
        effective_share=min(one.effective_share, other.effective_share),
        noun=TASKS if TASKS in (one.noun, other.noun) else one.noun,
        grouped=one.grouped or other.grouped,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference of rates, after minus before.

    `estimate` : as a fraction, in [-1, 1]; reports print percentage points
    `p_value` : two-sided, for a difference of `null`: the level at which the interval just reaches
        it
    `one_sided` : limits that the true difference exceeds, or stays below, each with
        `estimate.confidence_level`
    `minimum_detectable` : the smallest true difference that such samples show with `power`
    `p_by_t` : p-value by t with the linearised standard error, which may be as small as the data
        say, where that of the draws ends at one over their number; None with an exact bound
    """

    estimate: Estimate
    p_value: float | None
    one_sided: tuple[float, float] | None
    minimum_detectable: float | None
    power: float = POWER
    null: float = 0.0
    p_by_t: float | None = None

    @property
    def p_below(self) -> float | None:
        """One-sided p-value of "the true difference is not below `null`"; None without one."""
        if self.p_value is None or self.estimate.value is None:
            return None
        below = self.estimate.value < self.null
        return self.p_value / 2 if below else 1 - self.p_value / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    interval: tuple[float, float]
    one_sided: tuple[float, float]
    p_value: float
    minimum_detectable: float


def difference_of(found: Resampled, top: str, *, null: float = 0.0) -> Difference:
    """Estimate the difference of a ratio between the sides of `side_by_side`.

    The bootstrap when both sides have 20 units or more; with 5 to 19 on a side, t with
    Satterthwaite's degrees of freedom; none below. Where one side shows no variation, its exact
    bound is combined with the other's interval by the square-and-add rule. Where all tasks are on
    both sides and all changed alike, the exact bound on the share of tasks that may differ.

    References
    ----------
    Zou and Donner (2008), Stat. Med. 27. https://doi.org/10.1002/sim.3095
    Satterthwaite (1946), Biometrics Bulletin 2. https://doi.org/10.2307/3002019
    """
    units = found.units
    one, other = (found.ratio(side + top, side + "runs") for side in (BEFORE, AFTER))
    fewest = min(int(units.entering[units.column(s + "runs")]) for s in (BEFORE, AFTER))
    if one.value is None or other.value is None:
        why = "no run enters this rate on one side: add runs"
        nothing = not_estimable(why, method="difference", confidence_level=found.confidence_level)
        return Difference(
            estimate=nothing, p_value=None, one_sided=None, minimum_detectable=None, null=null
        )
    value = other.value - one.value
    influence = found.influence(AFTER + top, AFTER + "runs") - found.influence(
        BEFORE + top, BEFORE + "runs"
    )
    se, status = sqrt(linearised_variance(influence, units)), OK
    method, limits = f"difference, {found.method(fewest)}", None
    draws, freedom = _gains(found, top), satterthwaite(*stratum_variances(influence, units))
    if fewest < MINIMUM_UNITS:
        status = (
            f"not_estimable: no interval from {fewest} {units.noun} on a side, "
            f"at least {MINIMUM_UNITS} are needed"
        )
    elif se**2 < NO_VARIANCE and _all_paired(units):
        method, status = f"difference, exact bound over {fewest:,} {units.noun}", NO_VARIATION
        limits = _alike(value, fewest, found.confidence_level, null)
    elif NO_VARIATION in (one.status, other.status):
        method, status = "difference, exact bound where all runs score the same", NO_VARIATION
        limits = _added(one, other, value, found.confidence_level, null)
    elif fewest < BOOTSTRAP_UNITS or draws is None:
        limits = _by_t(value, se, freedom, found.confidence_level, null)
    elif np.isnan(draws).any():
        status = UNDEFINED_DRAWS
    else:
        limits = _by_draws(found, draws, value, influence, se, null)
    return Difference(
        estimate=Estimate(
            value=value,
            interval=None if limits is None else limits.interval,
            n=units.n,
            method=method,
            confidence_level=found.confidence_level,
            status=status,
            se=se if status == OK and limits is not None else None,
        ),
        p_value=None if limits is None else limits.p_value,
        one_sided=None if limits is None else limits.one_sided,
        minimum_detectable=None if limits is None else limits.minimum_detectable,
        null=null,
        p_by_t=None if limits is None or status != OK else _t_level(value - null, se, freedom),
    )


def _t_level(gap: float, se: float, freedom: float) -> float:
    """Return the two-sided p-value of a distance from the null by t."""
    return 2 * t_chance(-abs(gap) / se, freedom) if se > 0 else float(gap == 0)


def _all_paired(units: Units) -> bool:
    """Return whether every unit that enters is on both sides."""
    here, there = (units.sums[:, units.column(side + "runs")] > 0 for side in (BEFORE, AFTER))
    return bool((here == there).all())


def _gains(found: Resampled, top: str) -> FloatArray | None:
    after = found.ratio_draws(AFTER + top, AFTER + "runs")
    before = found.ratio_draws(BEFORE + top, BEFORE + "runs")
    return None if after is None or before is None else after - before


def _alike(value: float, n: int, level: float, null: float) -> _Limits:
    """Bound the share of units that may differ from the others, by anything in [-1, 1]."""
    # A one-sided limit at `level` is that of the two-sided interval at 2 * level - 1.
    interval, one_sided = (
        unanimous_interval(value, n, confidence_level=of, lowest=-1.0)
        for of in (level, 2 * level - 1)
    )
    p_value = 1.0
    if null != value:
        needed = (null - value) / ((1 if null > value else -1) - value)
        p_value = min(1.0, 2 * float((1 - needed) ** n))
    seen = 1 - (1 - POWER) ** (1 / n)
    return _Limits(
        interval=interval,
        one_sided=one_sided,
        p_value=p_value,
        minimum_detectable=min(1.0, zero_event_upper_bound(n, confidence_level=level) + seen),
    )


def _by_t(value: float, se: float, freedom: float, level: float, null: float) -> _Limits:
    reach = two_sided_t(level, freedom) * se
    interval, one_sided = (
        t_interval(value, se, df=freedom, confidence_level=of, lowest=-1.0, highest=1.0)
        for of in (level, 2 * level - 1)
    )
    return _Limits(
        interval=interval,
        one_sided=one_sided,
        p_value=_t_level(value - null, se, freedom),
        minimum_detectable=reach + t_quantile(POWER, freedom) * se,
    )


def _by_draws(
    found: Resampled,
    draws: FloatArray,
    value: float,
    influence: FloatArray,
    se: float,
    null: float,
) -> _Limits:
    level = found.confidence_level
    short = found.shortness(influence)
    ends = (1 + level) / 2, POWER
    if short is None:
        z = sum(map(normal_quantile, ends))
    else:
        z = sum(t_quantile(end, short.freedom) for end in ends)
    return _Limits(
        interval=found.between(draws, value, influence),
        one_sided=found.between(draws, value, influence, tail=1 - level),
        p_value=found.p_value(null, draws, value, influence),
        minimum_detectable=z * se,
    )


def _added(
    one: Estimate, other: Estimate, value: float, level: float, null: float
) -> _Limits | None:
    reach = added_reach(other, one)
    if reach is None:
        return None
    down, up = reach
    z, one_sided = two_sided_z(level), normal_quantile(level)
    toward = down if value > null else up
    return _Limits(
        interval=(max(-1.0, value - down), min(1.0, value + up)),
        one_sided=(
            max(-1.0, value - down * one_sided / z),
            min(1.0, value + up * one_sided / z),
        ),
        p_value=2 * normal_chance(-z * abs(value - null) / toward) if toward > 0 else 1.0,
        minimum_detectable=(1 + normal_quantile(POWER) / z) * max(down, up),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassChange:
    """One class share on both sides, and its cluster-robust two-proportion test.

    `adjusted_p_value` is after Benjamini-Hochberg over the classes; `flagged` says that the share
    moved by more than 2 percentage points and the adjusted p-value is .05 or less.
    """

    outcome: str
    before: float
    after: float
    change: Difference
    p_value: float | None
    adjusted_p_value: float | None
    flagged: bool


def class_changes(found: Resampled, classes: Sequence[str]) -> tuple[ClassChange, ...]:
    """Compare the share of every class on both sides, and flag the classes that moved.

    A flag needs both size (2 points) and evidence (a false discovery rate of .05): with 1,000 runs
    a side, 2 points alone would flag some class in 58 % of the weeks without any change.

    References
    ----------
    Benjamini and Hochberg (1995), J. R. Stat. Soc. B 57.
    https://doi.org/10.1111/j.2517-6161.1995.tb02031.x
    Rao and Scott (1992), Biometrics 48. https://doi.org/10.2307/2532311
    """
    features = list(map(share_feature, classes))
    p_values = [_two_proportion_test(found, name) for name in features]
    adjusted = benjamini_hochberg(p_values)
    changes = []
    for outcome, name, p, adjusted_p in zip(classes, features, p_values, adjusted, strict=True):
        before, after = (
            found.totals(side + name) / found.totals(side + "runs") for side in (BEFORE, AFTER)
        )
        changes.append(
            ClassChange(
                outcome=outcome,
                before=before,
                after=after,
                change=difference_of(found, name),
                p_value=p,
                adjusted_p_value=adjusted_p,
                flagged=(
                    abs(after - before) > MOVED + EXACTLY
                    and adjusted_p is not None
                    and adjusted_p <= LEVEL
                ),
            )
        )
    return tuple(changes)


def _two_proportion_test(found: Resampled, name: str) -> float | None:
    """Return the p-value of equal shares, with the variance under equality."""
    units = found.units
    runs = [found.totals(side + "runs") for side in (BEFORE, AFTER)]
    entering = [int(units.entering[units.column(side + "runs")]) for side in (BEFORE, AFTER)]
    if min(entering) < MINIMUM_UNITS:
        return None
    counts = [found.totals(side + name) for side in (BEFORE, AFTER)]
    pooled = sum(counts) / sum(runs)
    influence = np.zeros(units.multiplicity.size)
    for side, sign, size in zip((BEFORE, AFTER), (-1, 1), runs, strict=True):
        of_class, all_runs = (
            units.sums[:, units.column(side + feature)] for feature in (name, "runs")
        )
        influence += sign * (of_class - pooled * all_runs) / size
    variance, freedom = _null_variance(influence, units)
    if variance < NO_VARIANCE:
        return 1.0
    gap = counts[1] / runs[1] - counts[0] / runs[0]
    return 2 * t_chance(-abs(gap) / float(np.sqrt(variance)), freedom)


def _null_variance(influence: FloatArray, units: Units) -> tuple[float, float]:
    """Return the variance of the difference and its degrees of freedom.

    Under equal shares the influences have mean zero on each side, which keeps the test from
    rejecting for a class that one side lacks. Between design strata their means differ anyhow.
    """
    sides = [units.sums[:, units.column(side + "runs")] > 0 for side in (BEFORE, AFTER)]
    kinds = np.unique(2 * sides[0] + sides[1]).size
    if np.unique(units.stratum).size > kinds:
        parts, sizes = stratum_variances(influence, units)
    else:
        parts, sizes = stratum_variances(influence, units, centred=False)
    return float(parts.sum()), satterthwaite(parts, sizes)


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for the false discovery rate; None stays None and does not count.

    Examples
    --------
    >>> benjamini_hochberg([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    known = [p for p in p_values if p is not None]
    if not known:
        return [None] * len(p_values)
    adjusted = iter(_step_up(known))
    return [None if p is None else float(next(adjusted)) for p in p_values]


def _step_up(p_values: Sequence[float]) -> list[float]:
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)[::-1]
    raised = p[order] * p.size / np.arange(p.size, 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(raised))
    return [float(p) for p in adjusted]


Verdict = Literal["better", "worse", "equivalent", "inconclusive"]
Rule = Literal["difference", "separate intervals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two Agent Success Rates and their differences, after minus before.

    `paired`, `n_pairs` : tasks of both sides were resampled together; how many both have
    `n_alone` : tasks that only the first and only the second side has, where paired
    `paired_only` : difference of the Agent Success Rates over the tasks of both; None where not
        paired, or where no task is alone
    `margin` : of equivalence and of non-inferiority, as a fraction
    `non_inferior` : the one-sided limit excludes a loss of `margin` or more; None without a limit
    `verdict`, `rule` : ``better``, ``worse``, ``equivalent`` or ``inconclusive``, of `after`; the
        rule in words
    """

    before: AgentSuccessRate
    after: AgentSuccessRate
    asr: Difference
    asr_gross: Difference
    pass_rate: Difference
    paired: bool
    n_pairs: int
    n_alone: tuple[int, int]
    paired_only: Difference | None
    class_changes: tuple[ClassChange, ...]
    margin: float
    non_inferior: bool | None
    verdict: Verdict
    rule: str


def compare_runs(
    before: RunCounts,
    after: RunCounts,
    *,
    rng: np.random.Generator,
    paired: bool = False,
    margin: float = MARGIN,
    rule: Rule = "difference",
    **options: Unpack[Resampling],
) -> Comparison:
    """Compare the Agent Success Rates of two sets of runs, on one set of resamples.

    The sides are independent samples, or share tasks when `paired`: shared tasks are resampled with
    their runs on both sides, the others as in an unpaired comparison, and no run is left out.
    Outcomes are taken as given; `calibration.judge_calibration` compares labels that were corrected
    with one shared calibration.

    Better and worse come first: with many runs a difference may be real and still lie within the
    margin. Equivalence is two one-sided tests at 1 - `confidence_level`.

    Parameters
    ----------
    margin : float, default 0.05
        Smallest loss that matters, as a fraction in (0, 1).
    rule : str, default "difference"
        ``"separate intervals"``: the intervals of the two rates must not overlap; stricter than a
        test of the difference, and no test.

    Raises
    ------
    ValueError
        If the sides differ in classes or credit, `margin` is outside (0, 1), `paired` without
        tasks, or an option is unknown.

    References
    ----------
    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15. https://doi.org/10.1007/BF01068419

    Examples
    --------
    70 of 100 and 90 of 100 complete runs:

    >>> from calibration.success_rate.runs import count_runs
    >>> from calibration.taxonomy import default_taxonomy
    >>> taxonomy = default_taxonomy()
    >>> sides = (count_runs([0] * n + [2] * (100 - n), taxonomy=taxonomy) for n in (70, 90))
    >>> found = compare_runs(*sides, rng=np.random.default_rng(1))
    >>> found.asr.estimate.value, found.verdict
    (0.2, 'better')
    """
    if before.taxonomy.names != after.taxonomy.names:
        raise ValueError("both sides must have the same classes in one order (RunCounts.recoded)")
    tables = [side.credit_table for side in (before, after)]
    if tables[0] != tables[1]:
        raise ValueError(
            "both sides must be scored with the same credit (RunCounts.restated), "
            f"got {tables[0]!r} and {tables[1]!r}"
        )
    if not 0 < margin < 1:
        raise ValueError(f"margin must be in (0, 1), got {margin!r}")
    if rule not in ("difference", "separate intervals"):
        raise ValueError(f"rule must be 'difference' or 'separate intervals', got {rule!r}")
    joint = side_by_side(before, after, paired=paired, rng=rng)
    found = resample(joint.units, rng=rng, **options)
    asr = difference_of(found, "score")
    one, other = (rate_of_counts(side, rng=rng, **options) for side in (before, after))
    verdict, words = _verdict(asr, one, other, margin, rule)
    paired_only = None
    if joint.n_pairs and any(joint.n_alone) and before.task is not None and after.task is not None:
        both = np.intersect1d(before.task, after.task)
        first, second = (
            side.where(np.isin(np.asarray(side.task), both)) for side in (before, after)
        )
        paired_only = difference_between(first, second, rng=rng, paired=True, **options)
    return Comparison(
        before=one,
        after=other,
        asr=asr,
        asr_gross=difference_of(found, "gross"),
        pass_rate=difference_of(found, share_feature(before.taxonomy.success)),
        paired=joint.n_pairs > 0,
        n_pairs=joint.n_pairs,
        n_alone=joint.n_alone,
        paired_only=paired_only,
        class_changes=class_changes(found, before.taxonomy.names),
        margin=margin,
        non_inferior=None if asr.one_sided is None else asr.one_sided[0] > -margin,
        verdict=verdict,
        rule=words,
    )


def difference_between(
    before: RunCounts,
    after: RunCounts,
    top: str = "score",
    *,
    rng: np.random.Generator,
    paired: bool = False,
    null: float = 0.0,
    **options: Unpack[Resampling],
) -> Difference:
    """Estimate the difference of one rate between two sets of runs, as `compare_runs` does.

    `top` is ``"score"``, the Agent Success Rate, or the `share_feature` of a class; `null` is the
    difference that the p-value tests.
    """
    found = resample(side_by_side(before, after, paired=paired, rng=rng).units, rng=rng, **options)
    return difference_of(found, top, null=null)


def _verdict(
    asr: Difference, one: AgentSuccessRate, other: AgentSuccessRate, margin: float, rule: Rule
) -> tuple[Verdict, str]:
    level = f"{100 * asr.estimate.confidence_level:g} %"
    if rule == "difference":
        decisive, what = asr.estimate.interval, f"the {level} interval of the difference excludes 0"
    else:
        decisive, what = _gap(one, other), f"the two {level} intervals do not overlap"
    inner = f"{200 * asr.estimate.confidence_level - 100:g} %"
    words = (
        f"better or worse: {what}; equivalent: the {inner} interval "
        f"of the difference is within {100 * margin:g} pp of 0; otherwise inconclusive"
    )
    if decisive is not None and decisive[0] > 0:
        return "better", words
    if decisive is not None and decisive[1] < 0:
        return "worse", words
    if asr.one_sided is not None and -margin < asr.one_sided[0] and asr.one_sided[1] < margin:
        return "equivalent", words
    return "inconclusive", words


def _gap(one: AgentSuccessRate, other: AgentSuccessRate) -> tuple[float, float] | None:
    """Return limits that exclude zero if and only if the two intervals do not overlap."""
    if one.asr.interval is None or other.asr.interval is None:
        return None
    return other.asr.interval[0] - one.asr.interval[1], other.asr.interval[1] - one.asr.interval[0]
