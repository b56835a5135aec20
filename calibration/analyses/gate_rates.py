"""From the tables of the engine to what the gates hold: trials, events, latency and cost."""

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.gate_comparable import Comparable, TaskRates, tree_fingerprint
from calibration.analyses.production_reading import ProductionRead, runs_of
from calibration.estimates import Estimate, not_estimable
from calibration.gates.measurements import CostMeasured, Events, WorkflowCost
from calibration.gates.settings import Setting
from calibration.metrics.counts import RunCounts
from calibration.metrics.pass_at_k import Trials, pass_over_tasks
from calibration.metrics.quantiles import quantile_estimate
from calibration.metrics.sums import SquareSums, ratio_of_totals
from calibration.production.gate_results import GateTables, Latencies, Squares
from calibration.production.gating import CORE, P95
from calibration.taxonomy import Taxonomy

MEAN_OVER_TASKS = "mean over tasks"


def passed_of(tables: GateTables, *, partial_plus_passes: bool) -> NDArray[np.int64]:
    """Return how many trials of each task passed."""
    tasks = tables.tasks
    complete = tasks["complete"].to_numpy(dtype=np.int64)
    partial = tasks["partial_plus"].to_numpy(dtype=np.int64)
    return complete + partial if partial_plus_passes else complete


def mixed_words(task: str) -> str:
    """Say which task has trials of several models."""
    return (
        f"trials of task {task!r:.60} are of several models, which are never pooled: choose one "
        "with --model"
    )


def pass_rate(
    tables: GateTables,
    gate: Setting,
    *,
    partial_plus_passes: bool,
    rng: np.random.Generator,
    n_resamples: int,
    confidence_level: float,
) -> Estimate | str:
    """Return pass@k or pass^k of a gate's tier, or why it is skipped."""
    if tables.mixed is not None:
        return not_estimable(
            mixed_words(tables.mixed), method=MEAN_OVER_TASKS, confidence_level=confidence_level
        )
    tasks = tables.tasks
    inside = np.ones(len(tasks), dtype=np.bool_)
    if gate.tier and not tables.has_tier and gate.tier != CORE:
        return f"no column 'tier': all tasks are {CORE}"
    if gate.tier and tables.has_tier:
        inside = (tasks["tier"] == gate.tier).to_numpy()
    if not inside.any():
        tiers = ", ".join(sorted(set(tasks["tier"]))[:10])
        return f"no task is of tier {gate.tier!r:.60}; there are {tiers:.200}"
    weights = tasks["weight"].to_numpy(dtype=np.float64)
    n = tasks["n"].to_numpy(dtype=np.int64)
    passed = passed_of(tables, partial_plus_passes=partial_plus_passes)
    found = pass_over_tasks(
        Trials(tasks=np.flatnonzero(inside), n=n[inside], c=passed[inside]),
        gate.k,
        weights=weights[inside],
        like=tasks["like"].to_numpy(dtype=np.int64)[inside],
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
    )
    return found.pass_at_k if gate.metric == "pass_at" else found.pass_hat_k


def events(tables: GateTables) -> dict[str, Events]:
    """Return the events that somebody looked for."""
    return {
        name: Events(count=found.count, n=found.n, n_tasks=found.n_tasks)
        for name, found in tables.events.items()
    }


def latency(found: Latencies | None, *, confidence_level: float) -> Estimate | None:
    """Return the 95th percentile of the known latencies."""
    if found is None:
        return None
    made = quantile_estimate(
        found.table["latency"].to_numpy(dtype=np.float64),
        P95,
        weights=found.table["weight"].to_numpy(dtype=np.float64),
        n=found.n,
        below=None if found.below is None else sums_of(found.below),
        confidence_level=confidence_level,
    )
    if not found.rounded:
        return made
    return replace(made, method=f"{made.method}, rounded up by less than .03 %")


def cost(
    tables: GateTables, taxonomy: Taxonomy, share_over: Estimate, *, confidence_level: float
) -> CostMeasured | None:
    """Return the mean cost per unit of every workflow, and the share of runs above theirs."""
    if not any(n_known for _, n_known, _ in tables.cost.values()):
        return None
    ceilings = {w.name: w.ceiling_usd for w in taxonomy.workflows}
    flows = []
    for name, (n, n_known, sums) in tables.cost.items():
        mean = ratio_of_totals(sums_of(sums), confidence_level=confidence_level)
        flows.append(
            WorkflowCost(
                name=name,
                ceiling=ceilings.get(name),
                mean_per_unit=replace(mean, method=f"USD per unit, {mean.method}"),
                n=n,
                n_known=n_known,
            )
        )
    if not share_over.ok:
        why = "no run has both a cost and a ceiling: set ceilings under [ceilings]"
        share_over = not_estimable(why, method="share", confidence_level=confidence_level)
    return CostMeasured(workflows=tuple(flows), share_over=share_over)


def sums_of(found: Squares) -> SquareSums:
    """Return sums of the engine as what the statistics take."""
    return SquareSums(
        n=found.n,
        top=found.top,
        bottom=found.bottom,
        top_squared=found.top_squared,
        product=found.product,
        bottom_squared=found.bottom_squared,
    )


def comparable_of(
    read: ProductionRead, tables: GateTables, *, partial_plus_passes: bool, stratify: bool
) -> Comparable:
    """Return what a later run can be compared with."""
    known = {w.name: w.ceiling_usd for w in read.taxonomy.workflows}
    tasks: TaskRates | str = f"trials of task {tables.mixed!r:.60} are of several models"
    if tables.mixed is None:
        tasks = _task_rates(tables, partial_plus_passes=partial_plus_passes)
    return Comparable(
        taxonomy=read.taxonomy.fingerprint,
        tree=tree_fingerprint(read.taxonomy),
        ceilings={name: known.get(name) for name in tables.cost},
        partial_plus_passes=partial_plus_passes,
        runs=runs_by_task(read, stratify=stratify),
        tasks=tasks,
    )


def runs_by_task(read: ProductionRead, *, stratify: bool) -> RunCounts:
    """Return the runs, with tasks known by workflow and task id: ids collide between workflows."""
    counts = read.counts
    if counts.tasks is None or counts.tasks_grouped:
        return read.runs
    frame = counts.tasks.assign(task=_key(counts.tasks["task"], counts.tasks["workflow"]))
    return runs_of(replace(counts, tasks=frame), read.taxonomy, stratify=stratify)


def _key(tasks: "pd.Series[str]", workflows: "pd.Series[str]") -> "pd.Series[str]":
    return tasks.astype(str) + "\n" + workflows.astype(str)


def _task_rates(tables: GateTables, *, partial_plus_passes: bool) -> TaskRates:
    tasks = tables.tasks
    names = None
    if tables.named:
        names = _key(tasks["task"], tasks["workflow"]).to_numpy(dtype=np.str_)
    category = "category" if tables.has_category else "workflow"
    return TaskRates(
        names=names,
        categories=tasks[category].to_numpy(dtype=np.str_),
        n=tasks["n"].to_numpy(dtype=np.int64),
        passed=passed_of(tables, partial_plus_passes=partial_plus_passes),
        like=tasks["like"].to_numpy(dtype=np.int64),
        weights=tasks["weight"].to_numpy(dtype=np.float64),
    )
