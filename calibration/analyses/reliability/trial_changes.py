"""Repeated trials against a baseline: changes of pass^k, overall and by group of tasks."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from calibration.statistics.contingency import holm
from calibration.statistics.estimate import BoolArray, not_estimable
from calibration.success_rate.comparison import Difference, difference_between
from calibration.success_rate.pass_at_k import Trials, no_trials, shares_hat
from calibration.success_rate.resampling import share_feature
from calibration.success_rate.runs import runs_of_tasks
from calibration.taxonomy import Taxonomy, default_taxonomy

REGRESSION, IMPROVEMENT = "evidence of regression", "evidence of improvement"
NO_EVIDENCE = "no evidence of regression"
LEVEL_OF_EVIDENCE = 0.05


class Sampling(TypedDict):
    """How differences are resampled."""

    seed: int
    n_resamples: int
    confidence_level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsChange:
    """A change of a rate against a baseline, this run less the baseline, as a fraction.

    `p_holm` is adjusted for the number of groups compared. `evidence` is in words.
    """

    difference: Difference
    before: float | None
    after: float | None
    n_tasks: int
    p_holm: float | None
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstBaseline:
    """Changes against a baseline; `paired` by task where any task is in both."""

    source: str
    paired: bool
    n_shared: int
    n_new: int
    n_gone: int
    pass_at_1: TrialsChange
    pass_hat_k: Mapping[int, TrialsChange]
    by_difficulty: Mapping[str, TrialsChange]
    by_category: Mapping[str, TrialsChange]
    by_tier: Mapping[str, TrialsChange]


def against_baseline(
    now: Trials,
    before: Trials,
    groups: Mapping[str, Mapping[str, str]],
    *,
    source: str,
    ks: Sequence[int],
    **options: Unpack[Sampling],
) -> AgainstBaseline:
    """Compare with an earlier run, over the tasks of both if any task is in both.

    The tasks are a random sample. Intervals and p-values are those of `difference_between`: the
    bootstrap over tasks from 20 tasks on, t from 5; fewer are not tested. `groups` has difficulty,
    category and tier of each task; p-values within each are adjusted by Holm.
    """
    shared = set(now.tasks.tolist()) & set(before.tasks.tolist())
    paired = bool(shared)
    sides = _Sides(
        before=_within(before, shared) if paired else before,
        now=_within(now, shared) if paired else now,
        paired=paired,
        options=options,
        taxonomy=default_taxonomy(),
    )
    return AgainstBaseline(
        source=source,
        paired=paired,
        n_shared=len(shared),
        n_new=now.n.size - len(shared),
        n_gone=before.n.size - len(shared),
        pass_at_1=_judged(sides.change(1), None),
        pass_hat_k={k: _judged(sides.change(k), None) for k in ks if k > 1},
        by_difficulty=sides.by(groups.get("difficulty", {})),
        by_category=sides.by(groups.get("category", {})),
        by_tier=sides.by(groups.get("tier", {})),
    )


def groups_of(trials: Trials, known: Mapping[str, str]) -> NDArray[np.object_]:
    """Return the group of each task, empty where it has none."""
    return np.array([known.get(task, "") for task in trials.tasks.tolist()], dtype=object)


def _within(trials: Trials, tasks: Collection[object]) -> Trials:
    names = trials.tasks.tolist()
    return _rows(trials, np.array([name in tasks for name in names], dtype=np.bool_))


def _rows(trials: Trials, rows: BoolArray) -> Trials:
    return Trials(tasks=trials.tasks[rows], n=trials.n[rows], c=trials.c[rows])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sides:
    """Two runs, on the same tasks if paired."""

    before: Trials
    now: Trials
    paired: bool
    options: Sampling
    taxonomy: Taxonomy

    def change(self, k: int) -> TrialsChange:
        """Return the change of pass^k, over the tasks with k trials on both sides."""
        before, now = (_rows(side, side.n >= k) for side in (self.before, self.now))
        if self.paired:
            both = set(before.tasks.tolist()) & set(now.tasks.tolist())
            before, now = _within(before, both), _within(now, both)
        if not (before.n.size and now.n.size):
            nothing = not_estimable(no_trials(k), method="difference")
            return TrialsChange(
                difference=Difference(
                    estimate=nothing, p_value=None, one_sided=None, minimum_detectable=None
                ),
                before=None,
                after=None,
                n_tasks=0,
                p_holm=None,
                evidence="",
            )
        shares = [shares_hat(side.n, side.c, k) for side in (before, now)]
        found = difference_between(
            runs_of_tasks(shares[0], taxonomy=self.taxonomy, tasks=before.tasks),
            runs_of_tasks(shares[1], taxonomy=self.taxonomy, tasks=now.tasks),
            share_feature(self.taxonomy.success),
            rng=np.random.default_rng(self.options["seed"]),
            paired=self.paired,
            n_resamples=self.options["n_resamples"],
            confidence_level=self.options["confidence_level"],
        )
        return TrialsChange(
            difference=found,
            before=float(shares[0].mean()),
            after=float(shares[1].mean()),
            n_tasks=now.n.size,
            p_holm=None,
            evidence="",
        )

    def by(self, known: Mapping[str, str]) -> dict[str, TrialsChange]:
        """Return the change of pass@1 in each group, with p-values adjusted by Holm."""
        names = [groups_of(side, known) for side in (self.before, self.now)]
        listed = sorted(set(names[0].tolist()) & set(names[1].tolist()) - {""})
        found = {}
        for name in listed:
            sides = replace(
                self,
                before=_rows(self.before, names[0] == name),
                now=_rows(self.now, names[1] == name),
            )
            found[name] = sides.change(1)
        p_values = {
            name: one.difference.p_value
            for name, one in found.items()
            if one.difference.p_value is not None
        }
        adjusted = holm(p_values)
        return {name: _judged(one, adjusted.get(name)) for name, one in found.items()}


def _judged(change: TrialsChange, p_holm: float | None) -> TrialsChange:
    """Return a change with its evidence in words; never an improvement without evidence."""
    p_value = change.difference.p_value if p_holm is None else p_holm
    value = change.difference.estimate.value
    if value is None or p_value is None:
        words = f"not tested: {change.difference.estimate.status.removeprefix('not_estimable: ')}"
    elif p_value >= LEVEL_OF_EVIDENCE or value == 0:
        words = NO_EVIDENCE
    else:
        words = REGRESSION if value < 0 else IMPROVEMENT
    return replace(change, p_holm=p_holm, evidence=words)
