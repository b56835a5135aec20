"""From runs to what the gates hold: rates, trials, events, latency and cost."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.gate_runs import FloatArray, IntArray, Runs
from calibration.errors import InputError
from calibration.estimates import Estimate, not_estimable
from calibration.gates.measurements import CostMeasured, Events, WorkflowCost
from calibration.gates.settings import Setting
from calibration.metrics.asr import AgentSuccessRate, agent_success_rate
from calibration.metrics.pass_at_k import Trials, count_trials, pass_over_tasks, passed
from calibration.metrics.quantiles import quantile_estimate
from calibration.metrics.ratios import ratio_estimates
from calibration.metrics.resampling import NO_VARIATION
from calibration.metrics.score import cost_penalties, scores
from calibration.records import OUTCOMES
from calibration.taxonomy import Taxonomy

CORE = "core"


def ceilings_of(runs: Runs, taxonomy: Taxonomy, own: dict[str, float]) -> FloatArray:
    """Return the ceiling per unit of every run, NaN where its workflow has none."""
    known = {w.name: w.ceiling_usd for w in taxonomy.workflows if w.ceiling_usd is not None} | own
    return np.array([known.get(name, np.nan) for name in runs.workflows], dtype=np.float64)


def rate(
    runs: Runs,
    taxonomy: Taxonomy,
    ceilings: FloatArray,
    *,
    rng: np.random.Generator,
    confidence_level: float,
) -> AgentSuccessRate:
    """Return the Agent Success Rate of the runs under a taxonomy.

    Raises
    ------
    InputError
        If the runs of a task lie in several strata.
    """
    try:
        return agent_success_rate(
            runs.outcomes,
            costs=np.where(np.isnan(ceilings), np.nan, runs.costs),
            ceilings=np.nan_to_num(ceilings, nan=1.0),
            units=runs.units,
            credit=[taxonomy.credit[name] for name in OUTCOMES],
            weights=runs.weights,
            clusters=runs.tasks if runs.repeat else None,
            strata=None if runs.strata is None else np.array(runs.strata),
            rng=rng,
            confidence_level=confidence_level,
        )
    except ValueError as error:
        if "strat" not in str(error):
            raise
        raise InputError("field 'stratum': the runs of a task lie in several strata") from error


def run_scores(runs: Runs, taxonomy: Taxonomy, ceilings: FloatArray) -> FloatArray:
    """Return the score of every run under a taxonomy."""
    penalties = cost_penalties(
        np.where(np.isnan(ceilings), np.nan, runs.costs),
        np.nan_to_num(ceilings, nan=1.0),
        runs.units,
    )
    return scores(runs.outcomes, penalties, credit=[taxonomy.credit[name] for name in OUTCOMES])


def of_each_task(runs: Runs, texts: Sequence[str], name: str) -> list[str]:
    """Return what every task says of itself.

    Raises
    ------
    InputError
        If runs of one task differ.
    """
    found = [""] * len(runs.task_names)
    said = [False] * len(runs.task_names)
    for task, text in zip(runs.tasks.tolist(), texts, strict=True):
        if said[task] and found[task] != text:
            raise InputError(
                f"field {name!r}: task {runs.task_names[task][1]!r:.80} is both "
                f"{found[task]!r:.60} and {text!r:.60}"
            )
        found[task], said[task] = text, True
    return found


def task_weights(runs: Runs) -> FloatArray | None:
    """Return the mean weight of the runs of every task."""
    if runs.weights is None:
        return None
    means: FloatArray = np.bincount(runs.tasks, weights=runs.weights) / np.bincount(runs.tasks)
    return means


def mixed_models(runs: Runs) -> str:
    """Name a task whose trials are of several models; empty when there is none."""
    first: dict[int, str] = {}
    for task, model in zip(runs.tasks.tolist(), runs.models, strict=True):
        if first.setdefault(task, model) != model:
            return (
                f"trials of task {runs.task_names[task][1]!r:.60} are of several models, which "
                "are never pooled: choose one with --model"
            )
    return ""


def trials_of(runs: Runs, *, partial_plus_passes: bool) -> Trials:
    """Count trials and successes of every task, in the order of `task_names`."""
    success = passed(runs.outcomes, partial_plus_passes=partial_plus_passes)
    return count_trials(runs.tasks, success)


def pass_rate(
    runs: Runs,
    trials: Trials,
    gate: Setting,
    *,
    rng: np.random.Generator,
    confidence_level: float,
) -> Estimate | str:
    """Return pass@k or pass^k of a gate's tier, or why it is skipped."""
    method = "mean over tasks"
    mixed = mixed_models(runs)
    if mixed:
        return not_estimable(mixed, method=method, confidence_level=confidence_level)
    inside = np.ones(len(runs.task_names), dtype=np.bool_)
    if gate.tier and runs.tiers is None and gate.tier != CORE:
        return f"no column 'tier': all tasks are {CORE}"
    if gate.tier and runs.tiers is not None:
        tiers = of_each_task(runs, [tier or CORE for tier in runs.tiers], "tier")
        inside = np.array([tier == gate.tier for tier in tiers])
    if not inside.any():
        return f"no task is of tier {gate.tier!r}"
    weights = task_weights(runs)
    found = pass_over_tasks(
        Trials(tasks=trials.tasks[inside], n=trials.n[inside], c=trials.c[inside]),
        gate.k,
        weights=None if weights is None else weights[inside],
        rng=rng,
        confidence_level=confidence_level,
    )
    return found.pass_at_k if gate.metric == "pass_at" else found.pass_hat_k


def events(runs: Runs, happened: FloatArray | None) -> Events | None:
    """Count the runs in which something happened, of those in which somebody looked."""
    if happened is None or np.isnan(happened).all():
        return None
    looked = ~np.isnan(happened)
    return Events(
        count=int(happened[looked].sum()),
        n=int(looked.sum()),
        n_tasks=int(np.unique(runs.tasks[looked]).size),
    )


def latency(runs: Runs, *, rng: np.random.Generator, confidence_level: float) -> Estimate | None:
    """Return the 95th percentile of the known latencies."""
    known = ~np.isnan(runs.latencies)
    if not known.any():
        return None
    return quantile_estimate(
        runs.latencies[known],
        0.95,
        weights=None if runs.weights is None else runs.weights[known],
        clusters=runs.tasks[known] if runs.repeat else None,
        rng=rng,
        confidence_level=confidence_level,
    )


def cost(
    runs: Runs,
    ceilings: FloatArray,
    share_over: Estimate,
    *,
    rng: np.random.Generator,
    confidence_level: float,
) -> CostMeasured | None:
    """Return the mean cost per unit of every workflow, and the share of runs above theirs."""
    if np.isnan(runs.costs).all():
        return None
    flows = []
    names, flow = np.unique(np.array(runs.workflows), return_inverse=True)
    for number, name in enumerate(names.tolist()):
        inside = np.flatnonzero(flow == number)
        known = inside[~np.isnan(runs.costs[inside])]
        ceiling = float(ceilings[inside[0]])
        flows.append(
            WorkflowCost(
                name=name or "(no workflow)",
                ceiling=None if np.isnan(ceiling) else ceiling,
                mean_per_unit=_mean_cost(runs, known, rng, confidence_level),
                n=inside.size,
                n_known=known.size,
            )
        )
    return CostMeasured(workflows=tuple(flows), share_over=share_over)


def _mean_cost(
    runs: Runs, rows: IntArray, rng: np.random.Generator, confidence_level: float
) -> Estimate:
    if not rows.size:
        why = "the cost of no run is known: record it"
        return not_estimable(why, method="ratio", confidence_level=confidence_level)
    costs, units = runs.costs[rows], runs.units[rows]
    # Ratios of sums are estimated in [0, 1]; the dearest unit is the unit of the scale.
    dearest = float((costs / units).max()) or 1.0
    (found,) = ratio_estimates(
        (costs / dearest)[:, None],
        units[:, None],
        weights=None if runs.weights is None else runs.weights[rows],
        clusters=runs.tasks[rows] if runs.repeat else None,
        rng=rng,
        confidence_level=confidence_level,
    )
    interval = found.interval
    if found.status == NO_VARIATION or interval is None:
        interval = None  # equal costs bound no cost that was not seen
    else:
        interval = interval[0] * dearest, interval[1] * dearest
    return Estimate(
        value=None if found.value is None else found.value * dearest,
        interval=interval,
        n=found.n,
        method=f"USD per unit, {found.method}",
        confidence_level=confidence_level,
        status=found.status,
        se=None if found.se is None else found.se * dearest,
    )


def subset(runs: Runs, keep: NDArray[np.bool_]) -> Runs:
    """Return some of the runs, their tasks numbered anew."""
    at = np.flatnonzero(keep).tolist()
    old, tasks = np.unique(runs.tasks[keep], return_inverse=True)

    def of(texts: list[str] | None) -> list[str] | None:
        return None if texts is None else [texts[k] for k in at]

    def part(values: FloatArray | None) -> FloatArray | None:
        return None if values is None else values[keep]

    return Runs(
        trace_ids=[runs.trace_ids[k] for k in at],
        workflows=[runs.workflows[k] for k in at],
        models=[runs.models[k] for k in at],
        outcomes=runs.outcomes[keep],
        tasks=tasks.astype(np.int64),
        task_names=[runs.task_names[k] for k in old.tolist()],
        costs=runs.costs[keep],
        latencies=runs.latencies[keep],
        units=runs.units[keep],
        weights=part(runs.weights),
        strata=of(runs.strata),
        tiers=of(runs.tiers),
        categories=of(runs.categories),
        loops=part(runs.loops),
        corrupted=part(runs.corrupted),
    )
