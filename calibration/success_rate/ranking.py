"""Comparison of several sets of runs: each with a baseline, all pairs, and ranks."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Unpack

import numpy as np

from calibration.statistics.contingency import holm, rank_limits
from calibration.statistics.estimate import FloatArray
from calibration.success_rate.comparison import Difference, difference_between
from calibration.success_rate.rate import AgentSuccessRate, rate_of_counts
from calibration.success_rate.resampling import (
    BOOTSTRAP_UNITS,
    MOST_UNITS,
    Resampling,
    Units,
    grouped_at_random,
    most_tasks,
    pool_lone,
    resample,
    task_units,
    units_of,
)
from calibration.success_rate.runs import RunCounts

MOST_RUNS = 20
RULE = (
    "a rank goes from 1 + the number of sets shown to be better to the number of sets less those "
    "shown to be worse; shown: p of the pair at most {alpha:.2g} after Holm over all pairs"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPair:
    """Two of several sets of runs, second minus first, with the figures that they have alone.

    `n_pairs` : tasks that both have, 0 where they are not paired
    `p_holm` : p-value after Holm over the family that the pair is listed in; None without an
        interval
    """

    first: str
    second: str
    difference: Difference
    n_pairs: int
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRuns:
    """One of several sets of runs: its rate, and the ranks that its true rate may have.

    `rank` : the smallest and the largest, 1 being the highest rate
    `best_share` : share of the joint resamples in which its rate is the highest, ties divided; it
        is no probability of being the best. None with fewer than 20 runs or tasks in a set.
    """

    name: str
    rate: AgentSuccessRate
    rank: tuple[int, int]
    best_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Several sets of runs, the highest rate first; `rule` says how ranks are found."""

    runs: tuple[RankedRuns, ...]
    baseline: str
    against_baseline: tuple[RunPair, ...]
    pairs: tuple[RunPair, ...]
    rule: str


def rank_runs(
    named: Mapping[str, RunCounts],
    *,
    rng: np.random.Generator,
    baseline: str | None = None,
    paired: bool = True,
    **options: Unpack[Resampling],
) -> Ranking:
    """Compare 2 to 20 sets of runs with a baseline and with each other, and rank them.

    The ranks are those of the true rates: of runs like these, not of these samples. With
    probability `confidence_level` all rank intervals hold at once, since they rest on no wrong
    claim among all pairs. Marginal bootstrap intervals of ranks have no such property, and fail
    where rates are equal or nearly so.

    Differences and intervals are those of `compare_runs` on the pair alone. The adjusted p-values
    take t with the linearised standard error and Satterthwaite's degrees of freedom, because the
    p-value of 1,000 resamples cannot fall below .001 and all would be lost by the adjustment; where
    an exact bound stands in for the standard error, they take its p-value.

    Parameters
    ----------
    named : mapping of str to RunCounts
        In the order of the comparison, scored with the same credit.
    baseline : str, optional
        One of the names; by default the first.
    paired : bool, default True
        Whether tasks with one name are one task, resampled with all their runs together.

    Raises
    ------
    ValueError
        If there are fewer than 2 or more than 20 sets, the baseline is none of them, or credit or
        classes differ.

    References
    ----------
    Mogstad, Romano, Shaikh and Wilhelm (2024), "Inference for ranks with applications to mobility
    across neighbourhoods and academic achievement across countries", Rev. Econ. Stud. 91.
    https://doi.org/10.1093/restud/rdad006
    Holm (1979), Scand. J. Statist. 6, 65-70. https://www.jstor.org/stable/4615733

    Examples
    --------
    90, 60 and 58 of 100 runs complete: the first is shown to be the best, the others may be in
    either order.

    >>> from calibration.success_rate.runs import count_runs
    >>> from calibration.taxonomy import default_taxonomy
    >>> taxonomy = default_taxonomy()
    >>> named = {
    ...     name: count_runs([0] * n + [2] * (100 - n), taxonomy=taxonomy)
    ...     for name, n in (("a", 90), ("b", 60), ("c", 58))
    ... }
    >>> found = rank_runs(named, rng=np.random.default_rng(1))
    >>> [(of.name, of.rank) for of in found.runs]
    [('a', (1, 1)), ('b', (2, 3)), ('c', (2, 3))]
    """
    names = list(named)
    if not 2 <= len(names) <= MOST_RUNS:
        raise ValueError(f"named must hold 2 to {MOST_RUNS} sets of runs, got {len(names)}")
    baseline = names[0] if baseline is None else baseline
    if baseline not in named:
        raise ValueError(f"baseline must be one of {names!r}, got {baseline!r}")
    _same_scale(list(named.values()))
    ordered = [baseline, *(name for name in names if name != baseline)]
    found: list[RunPair] = []
    for one, other in combinations(ordered, 2):
        n_pairs = n_shared(named[one], named[other]) if paired else 0
        # Each from the same state, as if it were the only pair.
        difference = difference_between(
            named[one], named[other], rng=deepcopy(rng), paired=n_pairs > 0, **options
        )
        found.append(
            RunPair(first=one, second=other, difference=difference, n_pairs=n_pairs, p_holm=None)
        )
    pairs = _adjusted(found)
    rates = {
        name: rate_of_counts(runs, rng=deepcopy(rng), **options) for name, runs in named.items()
    }
    alpha = 1 - next(iter(rates.values())).asr.confidence_level
    ranks = rank_limits(names, _better(pairs, alpha))
    best = _best_shares(named, rng=deepcopy(rng), paired=paired, **options)
    ranked = [
        RankedRuns(name=name, rate=rates[name], rank=ranks[name], best_share=best.get(name))
        for name in names
    ]
    return Ranking(
        runs=tuple(sorted(ranked, key=lambda of: -(of.rate.asr.value or 0.0))),
        baseline=baseline,
        against_baseline=_adjusted(found[: len(names) - 1]),
        pairs=pairs,
        rule=RULE.format(alpha=alpha),
    )


def n_shared(one: RunCounts, other: RunCounts) -> int:
    """Return how many tasks two sets have in common, 0 where their tasks cannot be matched."""
    if not (_has_tasks(one) and _has_tasks(other)):
        return 0
    return int(np.intersect1d(np.asarray(one.task), np.asarray(other.task)).size)


def _has_tasks(runs: RunCounts) -> bool:
    return runs.task is not None and runs.grouped_tasks is None


def _same_scale(sets: Sequence[RunCounts]) -> None:
    scales = {
        (runs.taxonomy.names, tuple(runs.credit.tolist()), tuple(sorted(runs.own_credit.items())))
        for runs in sets
    }
    if len(scales) > 1:
        raise ValueError("named must hold runs with one credit table and the same classes")


def _adjusted(pairs: Sequence[RunPair]) -> tuple[RunPair, ...]:
    """Return a family of pairs with p-values adjusted for its size."""
    p_values = {}
    for at, of in enumerate(pairs):
        alone = of.difference.p_by_t
        p_value = of.difference.p_value if alone is None else alone
        if p_value is not None:
            p_values[at] = p_value
    adjusted = holm(p_values)
    return tuple(replace(of, p_holm=adjusted.get(at)) for at, of in enumerate(pairs))


def _better(pairs: Sequence[RunPair], alpha: float) -> list[tuple[str, str]]:
    """Return who is shown to be better than whom."""
    return [
        (of.second, of.first)
        if (of.difference.estimate.value or 0.0) > 0
        else (of.first, of.second)
        for of in pairs
        if of.p_holm is not None and of.p_holm <= alpha
    ]


def _best_shares(
    named: Mapping[str, RunCounts],
    *,
    rng: np.random.Generator,
    paired: bool,
    **options: Unpack[Resampling],
) -> dict[str, float]:
    """Return the share of joint resamples in which each set has the highest rate."""
    if min(runs.n_tasks for runs in named.values()) < BOOTSTRAP_UNITS:
        return {}
    together = [name for name, runs in named.items() if paired and _has_tasks(runs)]
    draws: dict[str, FloatArray | None] = {}
    if len(together) > 1:
        joint = resample(_joint_units([named[name] for name in together], rng), rng=rng, **options)
        for at, name in enumerate(together):
            draws[name] = joint.ratio_draws(f"score:{at}", f"runs:{at}")
    for name, runs in named.items():
        if name not in draws:
            own = resample(units_of(runs, rng=rng), rng=rng, **options)
            draws[name] = own.ratio_draws("score", "runs")
    known = [column for name in named if (column := draws[name]) is not None]
    if len(known) < len(named) or np.isnan(known).any():
        return {}
    rates = np.column_stack(known)
    highest = rates >= rates.max(axis=1, keepdims=True) - 1e-12
    shares = (highest / highest.sum(axis=1, keepdims=True)).mean(axis=0)
    return dict(zip(named, shares.tolist(), strict=True))


def _joint_units(sets: Sequence[RunCounts], rng: np.random.Generator) -> Units:
    """Return one unit per task of any set, with its score and runs in each of them.

    Tasks of the same sets, and of the same strata there, are one stratum.
    """
    each = [task_units(runs) for runs in sets]
    every = np.unique(np.concatenate([ids for _, ids in each]))
    columns, present = [], []
    multiplicity = np.zeros(every.size, dtype=np.int64)
    for units, ids in each:
        place = np.searchsorted(every, ids)
        for name in ("score", "runs"):
            column = np.zeros(every.size)
            column[place] = units.sums[:, units.column(name)]
            columns.append(column)
        inside = np.zeros(every.size, dtype=np.int64)
        inside[place] = units.stratum + 1
        present.append(inside)
        multiplicity[place] = np.maximum(multiplicity[place], units.multiplicity)
    strata = np.unique(np.column_stack(present), axis=0, return_inverse=True)[1].ravel()
    first, sums = each[0][0], np.column_stack(columns)
    units = Units(
        names=tuple(f"{name}:{at}" for at in range(len(sets)) for name in ("score", "runs")),
        sums=sums,
        multiplicity=multiplicity,
        stratum=pool_lone(strata.astype(np.int64), multiplicity),
        entering=(sums > 0).T.astype(np.int64) @ multiplicity,
        n=int(multiplicity.sum()),
        effective_share=min(units.effective_share for units, _ in each),
        noun=first.noun,
    )
    return grouped_at_random(units, rng, most_tasks(MOST_UNITS))
