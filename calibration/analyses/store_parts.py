"""The parts of a report on a store: cost, groups, other weights, repeated trials."""

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.asr_report import (
    AtOtherWeights,
    CostPanel,
    Group,
    Latency,
    Passes,
)
from calibration.analyses.judge import rate_at_credit
from calibration.analyses.judged_population import judged_population
from calibration.analyses.labelled_batch import LabelledBatch
from calibration.analyses.store_rates import (
    StoreRates,
    named,
    provisional,
    provisional_rate,
)
from calibration.analyses.weight_tables import credit_in_words, other_tables, table_in_words
from calibration.estimates import Estimate, not_estimable
from calibration.metrics.asr import AgentSuccessRate, rate_of_counts
from calibration.metrics.breakdowns import rates_by
from calibration.metrics.cost import cost_per_success
from calibration.metrics.counting import count_runs
from calibration.metrics.pass_at_k import PassAtK, count_trials, pass_over_tasks
from calibration.records import OUTCOMES, Workflow

MOST_TAGS, MOST_AGENTS = 50, 20
KS = (1, 2, 4, 8)
ABOVE = "share of the runs with a cost and a ceiling"
Rows = NDArray[np.bool_]


def cost_panel(rates: StoreRates, of: Rows, labelled: Rows) -> CostPanel:
    """Return what some traces cost, and what a success did among the labelled ones of them."""
    loaded = rates.loaded
    frame = loaded.traces[of]
    costs = frame["cost_usd"].dropna().to_numpy(dtype=np.float64)
    held = frame["cost_usd"].notna() & frame["ceiling_usd"].notna()
    times = (frame["cost_usd"] / (frame["ceiling_usd"] * frame["units"]))[held]
    over = times > 1
    p50, p90, p99 = np.quantile(costs, [0.5, 0.9, 0.99]).tolist() if len(costs) else (None,) * 3
    above = None
    if len(over):
        above = Estimate(value=float(over.mean()), interval=None, n=len(over), method=ABOVE)
    return CostPanel(
        n=len(frame),
        n_known=len(costs),
        n_without_ceiling=int(frame["ceiling_usd"].isna().sum()),
        mean=float(costs.mean()) if len(costs) else None,
        p50=p50,
        p90=p90,
        p99=p99,
        share_above_ceiling=above,
        of_ceiling=_percentiles(times),
        per_success=_per_success(rates, labelled),
    )


def _percentiles(times: pd.Series) -> tuple[float, float, float] | None:
    if times.empty:
        return None
    p50, p90, p99 = np.quantile(times.to_numpy(dtype=np.float64), [0.5, 0.9, 0.99]).tolist()
    return p50, p90, p99


def _per_success(rates: StoreRates, labelled: Rows) -> Estimate:
    """Return what a complete trace costs by the labels, or why that is not known."""
    if not labelled.any():
        return not_estimable("none of its traces is labelled: label some", method="total cost")
    loaded = rates.loaded
    frame = loaded.labelled[labelled]
    task = pd.factorize(frame["task_key"])[0]
    return cost_per_success(
        count_runs(
            loaded.human[labelled],
            costs=frame["cost_usd"].to_numpy(dtype=np.float64),
            # What a run cost is known without a ceiling too, and a penalty enters nowhere.
            ceilings=1.0,
            weights=None if loaded.weights is None else loaded.weights[labelled],
            clusters=task if len(np.unique(task)) < len(task) else None,
        ),
        confidence_level=rates.options.confidence_level,
    )


def whole_panel(rates: StoreRates) -> CostPanel:
    """Return the cost of all traces."""
    loaded = rates.loaded
    return cost_panel(
        rates, np.ones(len(loaded.traces), dtype=bool), np.ones(len(loaded.labelled), dtype=bool)
    )


def latency(loaded: LabelledBatch) -> Latency | None:
    """Return the percentiles of latency; None where no trace says how long it took."""
    seconds = loaded.traces["latency_s"].dropna().to_numpy(dtype=np.float64)
    if not seconds.size:
        return None
    p50, p90, p95, p99 = np.quantile(seconds, [0.5, 0.9, 0.95, 0.99]).tolist()
    return Latency(n=seconds.size, p50=p50, p90=p90, p95=p95, p99=p99)


def workflow_groups(rates: StoreRates, known: dict[str, Workflow]) -> Iterator[Group]:
    """Yield the rate and the cost of every workflow, those without a label too."""
    loaded = rates.loaded
    found = rates_by(rates.runs, "workflow", **rates.options.resampling(2))
    for name in sorted(loaded.traces["workflow"].unique()):
        labelled = (loaded.labelled["workflow"] == name).to_numpy()
        of = (loaded.traces["workflow"] == name).to_numpy()
        yield replace(
            _group(rates, name, labelled, found.get(name)),
            cost=cost_panel(rates, of, labelled),
            ceiling_usd=known[name].ceiling_usd,
            unit=known[name].unit,
        )


def model_groups(rates: StoreRates) -> Iterator[Group]:
    """Yield the rate of every model of the traces; nothing where none names one."""
    loaded = rates.loaded
    every = named(loaded.traces, "model")
    models = sorted({name for name in every if name is not None})
    if not models:
        return
    of_label = named(loaded.labelled, "model")
    found = rates_by(rates.runs, "model", **rates.options.resampling(3))
    for name in models:
        yield _group(rates, name, of_label == name, found.get(name))
    without = np.array([name is None for name in of_label], dtype=bool)
    if any(name is None for name in every):
        rate = None
        if without.any():
            rate = rate_of_counts(rates.runs.where(without), **rates.options.resampling(3))
        yield _group(rates, None, without, rate)


def tag_groups(rates: StoreRates) -> tuple[tuple[Group, ...], int]:
    """Return the rate by tag of the reviewers, and how many rarer tags are left out.

    A trace counts under each of its tags.
    """
    loaded = rates.loaded
    place = {trace_id: row for row, trace_id in enumerate(loaded.labelled["trace_id"])}
    tagged: dict[str, set[int]] = {}
    spelled: dict[str, str] = {}
    for trace_id, tags in zip(loaded.labels["trace_id"], loaded.labels["tags"], strict=True):
        for tag in json.loads(tags) if isinstance(tags, str) else ():
            tagged.setdefault(spelled.setdefault(tag.casefold(), tag), set()).add(place[trace_id])
    groups = []
    for tag in sorted(tagged, key=lambda tag: (-len(tagged[tag]), tag))[:MOST_TAGS]:
        rows = np.zeros(len(place), dtype=bool)
        rows[list(tagged[tag])] = True
        rate = rate_of_counts(rates.runs.where(rows), **rates.options.resampling(5))
        groups.append(_group(rates, tag, rows, rate))
    return tuple(groups), len(tagged) - len(groups)


def _group(
    rates: StoreRates, name: str | None, labelled: Rows, rate: AgentSuccessRate | None
) -> Group:
    if rate is None:
        nothing = not_estimable("none of its traces is labelled: label some", method="bootstrap")
        return Group(name=name, n=0, asr=nothing)
    marked = provisional_rate(rate, int(rates.disputed[labelled].sum()))
    return Group(
        name=name,
        n=rate.n,
        asr=marked.asr,
        asr_gross=marked.asr_gross,
        pass_rate=marked.pass_rate,
    )


def sensitivity(rates: StoreRates) -> Iterator[AtOtherWeights]:
    """Yield the rate at other weights: corrected where the headline is, and human-only."""
    loaded = rates.loaded
    own = tuple(loaded.taxonomy.credit[name] for name in OUTCOMES)
    tables = other_tables(loaded.taxonomy)
    reported = f"as reported ({credit_in_words(own)})"
    if rates.calibrated and rates.judge is not None and rates.verdicts is not None:
        population = judged_population(loaded, rates.verdicts)
        yield AtOtherWeights(name=f"corrected, {reported}", credit=own, asr=rates.corrected)
        for name, credit in tables.items():
            yield AtOtherWeights(
                name=f"corrected, {table_in_words(name, credit)}",
                credit=credit,
                asr=rate_at_credit(loaded, population, rates.judge, credit),
            )
    yield AtOtherWeights(name=f"human-only, {reported}", credit=own, asr=rates.human.asr)
    for name, result in rates.human.at_other_credit.items():
        words = table_in_words(name, tables[name])
        yield AtOtherWeights(name=f"human-only, {words}", credit=tables[name], asr=result)


def passes(rates: StoreRates) -> tuple[tuple[Passes, ...], int]:
    """Return pass@k and pass^k of agents that ran some task more than once, and how many more do.

    From the settled labels alone: verdicts of a judge that errs make both badly biased.
    """
    loaded = rates.loaded
    agents = named(loaded.traces, "agent")
    tasks = loaded.traces["task_key"].to_numpy(dtype=str)
    of_label = named(loaded.labelled, "agent")
    found: list[Passes] = []
    left_out = 0
    for agent in sorted({name for name in agents if name is not None}):
        trials = np.unique(tasks[agents == agent], return_counts=True)[1]
        if trials.max() < 2:
            continue
        if len(found) == MOST_AGENTS:
            left_out += 1
            continue
        ks, rows, number = [k for k in KS if k <= trials.max()], of_label == agent, len(found) + 1
        found.append(
            Passes(
                agent=agent,
                n_tasks=trials.size,
                most_trials=int(trials.max()),
                points=tuple(_point(rates, rows, k, trials.size, number) for k in ks),
            )
        )
    return tuple(found), left_out


def _point(rates: StoreRates, of_agent: Rows, k: int, n_tasks: int, number: int) -> PassAtK:
    loaded = rates.loaded
    rows = of_agent & ~rates.disputed
    complete = loaded.human[rows, OUTCOMES.index("complete")] == 1
    trials = count_trials(loaded.labelled["task_key"].to_numpy(dtype=str)[rows], complete)
    options = rates.options
    found = pass_over_tasks(
        trials,
        k,
        rng=np.random.default_rng([options.seed, 7, number]),
        n_resamples=options.n_resamples,
        confidence_level=options.confidence_level,
    )
    why = None
    if loaded.weights is not None:
        why = (
            "the labelled trials of a task were not drawn with equal probabilities; label a "
            "simple random sample"
        )
    elif not found.n_tasks:
        why = "no task has k labelled trials of this agent; label more trials of its tasks"
    at, hat = found.pass_at_k, found.pass_hat_k
    if why is not None:
        at = hat = not_estimable(
            why, method="mean over tasks", confidence_level=options.confidence_level
        )
    unsettled = int((of_agent & rates.disputed).sum())
    return replace(
        found,
        pass_at_k=provisional(at, unsettled),
        pass_hat_k=provisional(hat, unsettled),
        n_too_few=n_tasks - found.n_tasks,
    )
