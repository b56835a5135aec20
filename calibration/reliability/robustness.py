"""Robustness: how much of an agent's success remains when its runs are perturbed.

`robustness_ratio` is the definition; `robustness` estimates it for faults, structural changes and
other prompts, over tasks.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibration.records import PERTURBATIONS
from calibration.statistics.estimate import OK, BoolArray, FloatArray, IntArray
from calibration.statistics.intervals import MINIMUM_UNITS
from calibration.statistics.resampling import Statistic, TaskEstimate, TaskResamples, ratio

BASELINE, *CHANGED = ARMS = PERTURBATIONS

NO_BASELINE = f"no run without perturbation: add runs with perturbation {BASELINE}"
NO_PERTURBED = f"no run with a perturbation: add runs with {', '.join(CHANGED)}"
NEVER = "no run without perturbation succeeds: nothing can be lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbationArm:
    """The runs of one perturbation: success rate as the mean over tasks.

    `n_shared` : tasks that also have runs without perturbation
    `paired` : whether the ratio is over the shared tasks only
    `baseline` : success rate without perturbation on the tasks of the ratio, None for the baseline
    `perturbed` : success rate of this arm on them
    """

    perturbation: str
    n_runs: int
    success_rate: TaskEstimate
    n_shared: int
    paired: bool
    baseline: float | None
    perturbed: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness:
    """Robustness over tasks; `missing` names the perturbations that the score does without."""

    score: TaskEstimate
    fault: TaskEstimate
    structure: TaskEstimate
    prompt: TaskEstimate
    missing: tuple[str, ...]
    arms: tuple[PerturbationArm, ...]


def robustness_ratio(perturbed: float, baseline: float) -> float | None:
    """Return min(perturbed / baseline, 1) of two success rates; None where the baseline is 0.

    An agent that does better under a perturbation is robust to it, no more.

    >>> robustness_ratio(0.5, 1.0), robustness_ratio(1.0, 0.25), robustness_ratio(1.0, 0.0)
    (0.5, 1.0, None)
    """
    for name, rate in (("perturbed", perturbed), ("baseline", baseline)):
        if not 0 <= rate <= 1:
            raise ValueError(f"{name} must be in [0, 1], got {rate!r}")
    return min(perturbed / baseline, 1.0) if baseline > 0 else None


def task_rates(
    task: IntArray, success: BoolArray, arm: IntArray, *, n_tasks: int
) -> dict[str, FloatArray]:
    """Return the success rate of each task in each arm, NaN without runs.

    Parameters
    ----------
    task, success, arm : array, shape (n_runs,)
        Number of the task, whether it succeeded, and the place of the perturbation in `ARMS`.
    """
    found = {}
    for place, name in enumerate(ARMS):
        here = arm == place
        runs = np.bincount(task[here], minlength=n_tasks).astype(np.float64)
        good = np.bincount(task[here & success], minlength=n_tasks).astype(np.float64)
        found[name] = ratio(good, runs)
    return found


def robustness(
    rates: Mapping[str, FloatArray],
    n_runs: Mapping[str, int],
    resamples: TaskResamples,
) -> Robustness:
    """Estimate robustness over tasks like these.

    Of each perturbation, the ratio of the success rates with and without it, each the mean over
    tasks, and 1 at most. Where five tasks or more have runs of both, it is over these tasks only,
    and they are resampled as pairs; otherwise over all tasks of either. The score is the mean of
    the ratios that exist.

    Parameters
    ----------
    rates : mapping of str to float array, shape (n_tasks,)
        As `task_rates` returns them.
    n_runs : mapping of str to int
        Runs in each arm.
    """
    leaves = {}
    for name in CHANGED:
        of = _ratio(name, rates, resamples)
        nothing = (
            f"no run with perturbation {name}: add such runs"
            if not n_runs[name]
            else NO_BASELINE if not n_runs[BASELINE] else NEVER
        )  # fmt: skip
        leaves[name] = resamples.estimate(of.ratio, of.entering, nothing=nothing, fewest=of.fewest)
    return Robustness(
        score=robustness_score(rates, n_runs, resamples),
        **leaves,
        missing=tuple(name for name in CHANGED if not leaves[name].ok),
        arms=tuple(_arm(name, rates, n_runs, resamples) for name in ARMS if n_runs[name]),
    )


def robustness_score(
    rates: Mapping[str, FloatArray], n_runs: Mapping[str, int], resamples: TaskResamples
) -> TaskEstimate:
    """Estimate the score of `robustness` alone."""
    used = {name: of for name, of in _ratios(rates, resamples).items() if of.defined}
    missing = [name for name in CHANGED if name not in used]
    entering = np.zeros(resamples.unit.size, dtype=np.bool_)
    for of in used.values():
        entering |= of.entering
    perturbed = any(n_runs[name] for name in CHANGED)
    nothing = NEVER if n_runs[BASELINE] else NO_BASELINE
    return resamples.estimate(
        score_statistic(rates, resamples),
        entering,
        nothing=nothing if perturbed else NO_PERTURBED,
        fewest=min((of.fewest for of in used.values()), default=0),
        status=f"provisional: without {', '.join(missing)}" if missing else OK,
    )


def score_statistic(rates: Mapping[str, FloatArray], resamples: TaskResamples) -> Statistic:
    """Return the mean of the ratios that exist as a statistic."""
    known = [of.ratio for of in _ratios(rates, resamples).values() if of.defined]

    def score(weights: FloatArray) -> FloatArray:
        if not known:
            return np.full(len(weights), np.nan)
        mean: FloatArray = np.mean([np.minimum(of(weights), 1.0) for of in known], axis=0)
        return mean

    return score


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ratio:
    """A ratio of success rates as a statistic, and its parts on the data.

    `entering` : tasks of either side; `fewest` : tasks of the smaller one
    """

    ratio: Statistic
    perturbed: float
    baseline: float
    entering: BoolArray
    fewest: int
    paired: bool

    @property
    def defined(self) -> bool:
        """Whether there is a value."""
        return bool(np.isfinite(self.perturbed) and self.baseline > 0)


def _ratios(rates: Mapping[str, FloatArray], resamples: TaskResamples) -> dict[str, _Ratio]:
    return {name: _ratio(name, rates, resamples) for name in CHANGED}


def _ratio(name: str, rates: Mapping[str, FloatArray], resamples: TaskResamples) -> _Ratio:
    base, rate = rates[BASELINE], rates[name]
    shared = np.isfinite(base) & np.isfinite(rate)
    paired = int(shared.sum()) >= MINIMUM_UNITS
    if paired:
        base, rate = (np.where(shared, of, np.nan) for of in (base, rate))
    above, below = resamples.mean_of(rate), resamples.mean_of(base)
    ones = np.ones((1, resamples.n_units))
    return _Ratio(
        ratio=lambda weights: ratio(above(weights), np.nan_to_num(below(weights))),
        perturbed=float(above(ones)[0]),
        baseline=float(below(ones)[0]),
        entering=np.isfinite(base) | np.isfinite(rate),
        fewest=min(int(np.isfinite(base).sum()), int(np.isfinite(rate).sum())),
        paired=paired,
    )


def _arm(
    name: str,
    rates: Mapping[str, FloatArray],
    n_runs: Mapping[str, int],
    resamples: TaskResamples,
) -> PerturbationArm:
    of = None if name == BASELINE or not n_runs[BASELINE] else _ratio(name, rates, resamples)
    return PerturbationArm(
        perturbation=name,
        n_runs=n_runs[name],
        success_rate=resamples.mean(rates[name], nothing="no run: add runs"),
        n_shared=int((np.isfinite(rates[BASELINE]) & np.isfinite(rates[name])).sum()),
        paired=of is not None and of.paired,
        baseline=None if of is None else of.baseline,
        perturbed=None if of is None else of.perturbed,
    )
