"""The Agent Success Rate from counts of runs, overall and by group.

Runs are independent, or tasks are where the counts name them. `rng` is the source of the
resamples; `options` are those of `resample`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from calibration.statistics.estimate import (
    Estimate,
    FloatArray,
    IntArray,
    check_confidence_level,
    not_estimable,
)
from calibration.statistics.intervals import MINIMUM_UNITS, two_sided_t
from calibration.success_rate.resampling import (
    MOST_UNITS,
    Resampled,
    Resampling,
    resample,
    share_feature,
    share_features,
    units_of,
)
from calibration.success_rate.runs import RunCounts, condensed
from calibration.taxonomy import Taxonomy

# The rate among the names of classes.
ASR = "asr"

# Units of all groups of a breakdown, and the fewest per group.
ALL_UNITS, LEAST_UNITS = 2_400, 120

ALL_OUTPUT = "the rubric has no class of runs without output"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSuccessRate:
    """Agent Success Rate of a set of runs, and the figures printed beside it.

    `asr`, `asr_gross` : mean score with cost penalties, and without
    `asr_without_abandoned` : mean score of the runs that were not abandoned
    `pass_rate`, `class_shares` : share of complete runs, and of each class
    `share_over_ceiling` : share of the runs with a known cost that cost more than their ceiling
    `at_other_credit` : ASR under the further credit tables that the runs were counted with
    `asr_literal` : the formula as printed, which subtracts the penalty of failed runs too; in [-1,
        1]. A diagnostic.
    `mean_effective_penalty` : asr_gross - asr, so asr = sum of credit x class share - this
    `cost_coverage` : share of the runs whose cost is known
    `asr_range` : ASR with every missing cost at twice the ceiling, and with every one within it
    `credit` : of each class; None where workflows have their own
    `n`, `n_missing_cost`, `n_clusters` : runs; runs without a cost; tasks (n without `clusters`)
    """

    asr: Estimate
    asr_gross: Estimate
    asr_without_abandoned: Estimate
    pass_rate: Estimate
    classes: tuple[str, ...]
    class_shares: tuple[Estimate, ...]
    share_over_ceiling: Estimate
    at_other_credit: Mapping[str, Estimate]
    asr_literal: float
    mean_effective_penalty: float
    cost_coverage: float
    asr_range: tuple[float, float]
    credit: tuple[float, ...] | None
    n: int
    n_missing_cost: int
    n_clusters: int

    @property
    def identity(self) -> str:
        """The terms of the rate in one line; it need not exceed the pass rate."""
        lost = f"- mean effective penalty {self.mean_effective_penalty:.3f}"
        if self.credit is None:
            return f"ASR {self.asr.value:.3f} = gross {self.asr_gross.value:.3f} {lost}"
        earned = " + ".join(
            f"{credit:g} x {name} {share.value:.3f}"
            for credit, name, share in zip(
                self.credit, self.classes, self.class_shares, strict=True
            )
            if credit > 0
        )
        return f"ASR {self.asr.value:.3f} = {earned or '0'} {lost}"


def without_abandoned(taxonomy: Taxonomy, found: Estimate) -> Estimate:
    """Return a rate of the runs with output; not estimable in a rubric that tells none apart."""
    if taxonomy.without_output is not None:
        return found
    return not_estimable(
        ALL_OUTPUT, method=found.method, n=found.n, confidence_level=found.confidence_level
    )


def rate_of_counts(
    counts: RunCounts,
    *,
    rng: np.random.Generator,
    most_units: int = MOST_UNITS,
    **options: Unpack[Resampling],
) -> AgentSuccessRate:
    """Estimate the Agent Success Rate of the population that the runs were drawn from.

    The outcomes are taken as given: the interval covers sampling error, not the errors of reviewers
    or judge. Intervals are those of `Resampled.ratio`. Above `most_units` distinct cells the
    resamples, and only they, replace the penalties of equal runs by two values of the same mean and
    variance. Values and standard errors come from exact sums.

    References
    ----------
    Efron (1979), Ann. Statist. 7. https://doi.org/10.1214/aos/1176344552

    Examples
    --------
    Five complete runs, one of them 50 % over its ceiling: (4 + 0.5) / 5.

    >>> from calibration.success_rate.runs import count_runs
    >>> from calibration.taxonomy import default_taxonomy
    >>> taxonomy, costs = default_taxonomy(), [1, 1, 1, 1, 3]
    >>> counts = count_runs([0] * 5, taxonomy=taxonomy, costs=costs, ceilings=2.0)
    >>> result = rate_of_counts(counts, rng=np.random.default_rng(1))
    >>> result.asr.value, result.asr_gross.value, result.mean_effective_penalty
    (0.9, 1.0, 0.1)
    """
    found = resample(units_of(counts, rng=rng, most=most_units), rng=rng, **options)
    asr, gross = found.ratio("score"), found.ratio("gross")
    runs = counts.runs * counts.like
    lost = float((counts.weight * counts.like) @ counts.penalty) / found.totals("runs")
    n_known = int(runs[counts.known].sum())
    highest, of_gross = _value(found, "score"), _value(found, "gross")
    return AgentSuccessRate(
        asr=asr,
        asr_gross=gross,
        asr_without_abandoned=without_abandoned(
            counts.taxonomy, found.ratio("of_present", "present")
        ),
        pass_rate=found.ratio(share_feature(counts.taxonomy.success)),
        classes=counts.taxonomy.names,
        class_shares=tuple(found.ratio(name) for name in share_features(counts.taxonomy)),
        share_over_ceiling=found.ratio("over", "known"),
        at_other_credit={name: found.ratio(f"score:{name}") for name in counts.other_scores},
        asr_literal=of_gross - lost,
        mean_effective_penalty=of_gross - highest,
        cost_coverage=n_known / counts.n,
        # No credit exceeds the penalty of 1 that a run at twice its ceiling has.
        asr_range=(_value(found, "score_known"), highest),
        credit=None if counts.own_credit else tuple(counts.credit.tolist()),
        n=counts.n,
        n_missing_cost=counts.n - n_known,
        n_clusters=counts.n_tasks,
    )


def shares_at_least(
    counts: RunCounts,
    targets: Mapping[str, float],
    *,
    rng: np.random.Generator,
    **options: Unpack[Resampling],
) -> dict[str, float | None]:
    """Return the share of the resamples of `rate_of_counts` at or above each target.

    The rate is named `ASR`, the share of a class by the class; None where the interval is not one
    of resamples. A generator in the same state gives the resamples behind the interval.

    Examples
    --------
    >>> from calibration.success_rate.runs import count_runs
    >>> from calibration.taxonomy import default_taxonomy
    >>> counts = count_runs([0] * 20 + [2] * 20, taxonomy=default_taxonomy())
    >>> rng = np.random.default_rng(1)
    >>> shares_at_least(counts, {"asr": 0.2, "complete": 0.9}, rng=rng)
    {'asr': 1.0, 'complete': 0.0}
    """
    found = resample(units_of(counts, rng=rng), rng=rng, **options)
    return {
        name: found.share_at_least(target, "score" if name == ASR else share_feature(name))
        for name, target in targets.items()
    }


def score_of(
    counts: RunCounts,
    *,
    rng: np.random.Generator,
    most_units: int = MOST_UNITS,
    **options: Unpack[Resampling],
) -> Estimate:
    """Estimate the Agent Success Rate alone, as `rate_of_counts` does."""
    return resample(units_of(counts, rng=rng, most=most_units), rng=rng, **options).ratio("score")


def _value(found: Resampled, name: str) -> float:
    return found.totals(name) / found.totals("runs")


def units_a_group(n_groups: int) -> int:
    """Return how many units each group of a breakdown draws from."""
    return max(LEAST_UNITS, ALL_UNITS // max(1, n_groups))


def rates_by(
    counts: RunCounts,
    by: str,
    *,
    rng: np.random.Generator,
    **options: Unpack[Resampling],
) -> dict[str, AgentSuccessRate]:
    """Estimate the Agent Success Rate of every workflow, model or week, sorted by name.

    `by` is ``"workflow"``, ``"model"`` or ``"week"``; runs without one are left out. Groups are
    resampled one by one, each from fewer distinct cells than the whole (see `rate_of_counts`).
    """
    if not counts.repeats:
        counts = condensed(counts, by=by)
    labels = counts.labels(by)
    seen = labels.seen
    return {
        name: rate_of_counts(
            counts.where(labels.of(name)), rng=rng, most_units=units_a_group(len(seen)), **options
        )
        for name in seen
    }


METHOD = "total cost over complete runs, linearised on the log scale, t"


def cost_per_success(
    counts: RunCounts, *, costed: IntArray | None = None, confidence_level: float = 0.95
) -> Estimate:
    """Estimate the cost of all runs per complete run, in the currency of the costs.

    Runs without a known cost enter neither the cost nor the successes. The estimate is not bounded
    by 1; the interval is multiplicative, since costs are skewed. A bootstrap over cells would
    ignore the spread of costs within a cell. ValueError if `confidence_level` is outside (0, 1).

    Parameters
    ----------
    counts : RunCounts
        With costs, and with their squares where a row holds several runs: otherwise the spread of
        costs within a row is not known, and there is no interval.
    costed : int array, shape (n_rows,), optional
        Runs of each row with a known cost, with or without a ceiling; None: those `known`.

    Examples
    --------
    Four runs at 1.00, two of them complete: 2.00 a success.

    >>> from calibration.success_rate.runs import count_runs
    >>> from calibration.taxonomy import default_taxonomy
    >>> taxonomy = default_taxonomy()
    >>> counts = count_runs([0, 0, 2, 2], taxonomy=taxonomy, costs=[1.0] * 4, ceilings=2.0)
    >>> cost_per_success(counts).value
    2.0
    """
    check_confidence_level(confidence_level)
    rows = counts.where(counts.known if costed is None else costed > 0)
    if costed is not None:
        rows = replace(rows, runs=costed[costed > 0])
    if rows.cost is None or not rows.runs.size:
        return _nothing("no cost is known: record costs", confidence_level)
    weight = rows.weight * rows.like
    complete = rows.success * rows.runs
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
