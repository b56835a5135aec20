"""One success-rate report from loaded runs, from files or a store."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from calibration.analyses.success_rate.report import (
    PREVIOUS,
    SHOWN_RUNS,
    AtOtherCeilings,
    AtOtherWeights,
    Change,
    CostPanel,
    GoalLine,
    Latency,
    Origin,
    OutcomeShare,
    RateGroup,
    ReportOptions,
    Signal,
    SuccessRateReport,
    VerdictMix,
    VerdictWeek,
    WorkItem,
    WorkList,
    credit_in_words,
    other_tables,
    table_in_words,
)
from calibration.records import AT, HARNESS, LOOP, VERSION, harness_of
from calibration.runs.results import VERDICT, LengthSums, ProductionCounts, SignalSums
from calibration.statistics.estimate import (
    OK,
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    not_estimable,
    provisional,
)
from calibration.statistics.intervals import chance_at_least
from calibration.statistics.means import (
    clustered_mean,
    clustered_share,
    limits_of_bins,
    quantile_of_bins,
)
from calibration.success_rate.comparison import compare_runs
from calibration.success_rate.rate import (
    ASR,
    AgentSuccessRate,
    cost_per_success,
    rate_of_counts,
    rates_by,
    shares_at_least,
)
from calibration.success_rate.runs import RunCounts, labels_of
from calibration.success_rate.trend import WeeklySeries, mix_shifts, weekly_series
from calibration.success_rate.trials import success_by_length
from calibration.tables.rows import as_csv
from calibration.taxonomy import CreditTable, Taxonomy
from calibration.text import calendar, counted

# Numbers of trials taken together in a report, as far as tasks have so many, and agents shown.
KS = (1, 2, 3, 4, 5, 8)
MOST_AGENTS = 20

# The name of each rate, and the columns that record it.
RATES: Mapping[str, tuple[str, str]] = {
    "errors": ("runs that ended in an error", "status"),
    "timeouts": ("runs that timed out", "status"),
    "tool_errors": ("tool calls that failed", "tool_calls and tool_errors"),
    "loops": (f"runs with the same call {LOOP} times or more", "loops"),
    "loops_in_a_row": (f"runs with the same call {LOOP} times in a row", "loops_in_a_row"),
    "escalated": ("runs escalated to a person", "escalated"),
    "feedback_given": ("runs with user feedback", "feedback"),
    "feedback": ("user feedback, mean from -1 to 1", "feedback"),
    "feedback_negative": ("feedback below 0", "feedback"),
}

NOT_RECORDED = "not recorded"

ADD = {
    **{key: f"add a column {columns}" for key, (_, columns) in RATES.items()},
    "latency": "add a column latency_s",
    "cost": "add a column cost_usd",
    "verdict": "add a column verdict",
}

RATE = "Agent Success Rate"
LEVELS = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
COST_LEVELS = (0.5, 0.9, 0.99)
MEANS = ("feedback",)


class Amounts:
    """Percentiles of latency or cost, over the runs that state it.

    A percentile is the smallest value with that share of the runs at or below it. `bins` are as
    `Spread.sums`. `tasks` counts the tasks with runs in each week, in all under None: the runs of a
    task may be identical, so only tasks count as independent. None where no task repeats.
    """

    def __init__(self, bins: pd.DataFrame, tasks: Mapping[str | None, int] | None) -> None:
        self._tasks = tasks
        self._all = _counts(_merged(bins, ["bin"]))
        self._week, self._workflow = (
            {
                str(name): _counts(part)
                for name, part in _merged(bins, [by, "bin"]).groupby(by, observed=True)
            }
            for by in ("week", "workflow")
        )

    @property
    def weeks(self) -> tuple[str, ...]:
        """The ISO weeks with such runs."""
        return tuple(self._week)

    def percentile(
        self, q: float, week: str | None = None, *, confidence_level: float = 0.95
    ) -> Estimate | None:
        """Return a percentile with exact order-statistic limits; None without values."""
        bins = self._all if week is None else self._week[week]
        n = int(bins[:, 0].sum())
        if not n:
            return None
        effective = n if self._tasks is None else min(n, self._tasks.get(week, n))
        limits = limits_of_bins(bins, q, effective, confidence_level=confidence_level)
        over = f"{effective:,} {'runs' if self._tasks is None else 'tasks'}"
        return Estimate(
            value=quantile_of_bins(bins, q),
            interval=limits,
            n=n,
            method=f"percentile, limits of its rank over {over}",
            confidence_level=confidence_level,
            status=OK if limits else f"provisional: no interval, {over} are too few",
        )

    def point(self, q: float, workflow: str | None = None) -> float | None:
        """Return a percentile, overall or of a workflow, without limits."""
        bins = self._all if workflow is None else self._workflow.get(workflow)
        return None if bins is None or not bins.size else quantile_of_bins(bins, q)


def amounts(counts: ProductionCounts) -> tuple[Amounts, Amounts]:
    """Return latency and cost of the runs of a table."""
    tasks = tasks_by_week(counts)
    return Amounts(counts.latency.sums, tasks), Amounts(counts.cost.sums, tasks)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation:
    """Operational data of all runs; `missing` names the column that would record each signal."""

    sums: SignalSums | None
    latency: Amounts
    cost: Amounts
    missing: Mapping[str, str] = field(default_factory=lambda: ADD)
    confidence_level: float = 0.95

    def recorded(self, key: str) -> SignalSums | None:
        """Return the sums if they include a signal."""
        return None if self.sums is None or key not in self.sums.recorded else self.sums

    def none(self, key: str, method: str) -> Estimate:
        """Return the reason why a signal has no value."""
        why = f"{NOT_RECORDED}: {self.missing[key]}"
        return not_estimable(why, method=method, confidence_level=self.confidence_level)


def signals(runs: Operation) -> tuple[Signal, ...]:
    """Return every signal."""
    return (
        *_rates(runs),
        *_percentiles(runs, "latency", "s", runs.latency),
        *_percentiles(runs, "cost", "usd", runs.cost),
    )


def _rates(runs: Operation) -> Iterator[Signal]:
    for key, (name, _) in RATES.items():
        unit, sums = "score" if key in MEANS else "share", runs.recorded(key)
        if sums is None:
            yield Signal(key=key, name=name, unit=unit, over_all=runs.none(key, "share"))
            continue
        level, weeks = runs.confidence_level, sums.table.groupby("week", observed=True, sort=True)
        yield Signal(
            key=key,
            name=name,
            unit=unit,
            over_all=_rate(sums.table, sums, key, level),
            by_week=tuple((str(week), _rate(rows, sums, key, level)) for week, rows in weeks),
        )


def _rate(rows: pd.DataFrame, sums: SignalSums, key: str, confidence_level: float) -> Estimate:
    columns = [key, f"of_{key}", f"n_{key}"]
    by_unit = rows.groupby(["stratum", "unit"], sort=True)[columns].sum()
    estimate = clustered_mean if key in MEANS else clustered_share
    return estimate(
        by_unit[key].to_numpy(dtype=np.float64),
        by_unit[f"of_{key}"].to_numpy(dtype=np.float64),
        n=int(by_unit[f"n_{key}"].sum()),
        stratum=by_unit.index.get_level_values("stratum").to_numpy(dtype=np.int64),
        each=sums.each,
        noun="tasks" if sums.by_task else "runs",
        confidence_level=confidence_level,
    )


def verdict_mix(runs: Operation) -> VerdictMix:
    """Return the verdict shares of each week and their distance to the weeks before."""
    sums = runs.sums
    keys = [] if sums is None else [VERDICT + name for name in sums.verdicts]
    if sums is None or not keys:
        return VerdictMix(status=f"{NOT_RECORDED}: {runs.missing['verdict']}")
    table = sums.table[sums.table["week"].notna()]
    table = table[table[f"of_{keys[0]}"] > 0]
    if table.empty:
        return VerdictMix(status=f"{NOT_RECORDED}: no run with a verdict says when it was started")
    weeks = sorted(table["week"].astype(str).unique())
    found = mix_shifts(
        table[keys].to_numpy(dtype=np.float64),
        table["unit"].to_numpy(dtype=np.int64),
        table["week"].astype(str).map({week: k for k, week in enumerate(weeks)}).to_numpy(np.int64),
        noun="tasks" if sums.by_task else "runs",
    )
    made = []
    for week, shift in zip(weeks, found, strict=True):
        rows = table[table["week"].astype(str) == week]
        shares = tuple(
            (name, _rate(rows, sums, key, runs.confidence_level))
            for name, key in zip(sums.verdicts, keys, strict=True)
        )
        n = int(rows[f"n_{keys[0]}"].sum())
        made.append(VerdictWeek(week=week, n=n, shares=shares, shift=shift))
    return VerdictMix(status=OK, weeks=tuple(made))


def bad_values(sums: SignalSums | None) -> tuple[str, ...]:
    """Return warnings about values that cannot be read."""
    bad = {} if sums is None else sums.bad
    return tuple(
        f"{n:,} {'value counts' if n == 1 else 'values count'} as missing: {why}."
        for why, n in bad.items()
    )


def latency_of(amounts: Amounts) -> Latency | None:
    """Return the percentiles of latency; None where no run says how long it took."""
    known = amounts.percentile(LEVELS["p50"])
    if known is None:
        return None
    return Latency(n=known.n, **{level: amounts.point(q) for level, q in LEVELS.items()})


def tasks_by_week(counts: ProductionCounts) -> Mapping[str | None, int] | None:
    """Return the number of tasks with runs in each week and in all; None where no task repeats."""
    if counts.tasks is None:
        return None
    # A week has fewer random groups than tasks: conservative.
    weekly = counts.tasks_by.get("week", counts.tasks)
    by_week = weekly.groupby("week", observed=True)["task"].nunique()
    n = counts.n_tasks if counts.tasks_grouped else int(counts.tasks["task"].nunique())
    return {None: n or 0} | {str(week): int(tasks) for week, tasks in by_week.items()}


def _merged(bins: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    grouped = bins.groupby(keys, observed=True)
    return grouped.agg(n=("n", "sum"), low=("low", "min"), high=("high", "max"))


def _counts(bins: pd.DataFrame) -> FloatArray:
    return bins[["n", "low", "high"]].to_numpy(dtype=np.float64)


def _percentiles(runs: Operation, what: str, unit: str, amounts: Amounts) -> Iterator[Signal]:
    level = runs.confidence_level
    for name, q in LEVELS.items():
        over_all = amounts.percentile(q, confidence_level=level)
        by_week = (
            (week, amounts.percentile(q, week, confidence_level=level)) for week in amounts.weeks
        )
        yield Signal(
            key=f"{what}_{name}",
            name=f"{what}, {name.upper()}",
            unit=unit,
            over_all=over_all or runs.none(what, "percentile"),
            by_week=tuple((week, found) for week, found in by_week if found),
        )


LITERAL = "as printed, without a floor for each run: a diagnostic, no interval"
ABOVE = "share of the runs with a cost and a ceiling"
UNLABELLED = "none of its traces is labelled: label some"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Earlier:
    """Runs to compare with, and their description; `later` is set if not all runs are compared."""

    runs: RunCounts
    words: str
    later: RunCounts | None = None
    paired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedRuns:
    """Runs with everything that a report is assembled from.

    `counts` : all runs. `runs` : the runs with an outcome, in a store the labelled ones.
    `runs_by`, `costed` : runs counted by ``week``, ``workflow``, ``model`` or ``agent_version``,
    and the runs of each row with a known cost (``""``: of `runs`).
    `open` : rows of `runs` whose class may still change, as reviewers differ without a consensus.
    `of_ceiling` : costs as multiples of the ceiling; None: they follow from the costs of workflows
    with one unit per run.
    `lengths` : successes of the runs with an outcome, by bins of their length.
    `sampled` : whether `runs` is a sample of all runs.
    `why_no_earlier` : why a window is not compared with the one before it.
    """

    counts: ProductionCounts
    runs: RunCounts
    runs_by: Mapping[str, RunCounts] = field(default_factory=dict)
    rate: AgentSuccessRate
    operation: Operation
    taxonomy: Taxonomy
    options: ReportOptions
    costed: Mapping[str, IntArray]
    n_tasks: int | None
    open: BoolArray | None = None
    of_ceiling: Amounts | None = None
    sampled: bool = False
    earlier: Earlier | None = None
    why_no_earlier: str = ""
    lengths: tuple[LengthSums, ...] = ()

    def by(self, name: str) -> RunCounts:
        """Return the runs with an outcome, counted by week, workflow or model."""
        return self.runs_by.get(name, self.runs)

    def n_open(self, rows: BoolArray) -> int:
        """Return how many runs in some rows may still change class."""
        return 0 if self.open is None else int((self.open & rows).sum())


def assemble(
    loaded: LoadedRuns,
    *,
    kind: str,
    target: str,
    origin: Origin,
    corrected: tuple[Estimate, Estimate, tuple[Estimate, ...]] | None = None,
) -> SuccessRateReport:
    """Return the report on loaded runs; the loader adds the parts that only it knows.

    `corrected` is the rate with and without cost and the class shares, corrected for judge error;
    None: the rate is that of the runs.
    """
    rate, counts = loaded.rate, loaded.counts
    # Each part has its own generator, so the order of parts does not matter.
    with ThreadPoolExecutor() as pool:
        by_week = pool.submit(weekly, loaded)
        by_workflow = pool.submit(lambda: tuple(workflow_groups(loaded)))
        by_model = pool.submit(lambda: tuple(named_groups(loaded, "model", 3)))
        by_version = pool.submit(lambda: tuple(named_groups(loaded, VERSION, 9)))
        by_harness = pool.submit(lambda: tuple(named_groups(with_harness(loaded), HARNESS, 10)))
    weeks = sorted(counts.cells["week"].dropna().astype(str).unique())
    asr, gross, shares = corrected or (rate.asr, rate.asr_gross, rate.class_shares)
    return SuccessRateReport(
        calibrated=corrected is not None,
        kind=kind,
        target=target,
        n=counts.n_kept,
        n_tasks=loaded.n_tasks,
        first=weeks[0] if weeks else None,
        last=weeks[-1] if weeks else None,
        asr=asr,
        asr_gross=gross,
        asr_literal=Estimate(
            value=rate.asr_literal,
            interval=None,
            n=rate.asr.n,
            method=LITERAL,
            confidence_level=rate.asr.confidence_level,
        ),
        asr_without_abandoned=rate.asr_without_abandoned,
        pass_rate=shares[loaded.taxonomy.place(loaded.taxonomy.success)],
        identity=_identity(loaded),
        mean_effective_penalty=rate.mean_effective_penalty,
        asr_range=rate.asr_range,
        classes=tuple(_classes(loaded, shares)),
        own_credit=loaded.taxonomy.credit_table.differing(
            loaded.taxonomy.names, sorted(counts.cells["workflow"].dropna().astype(str).unique())
        ),
        cost=cost_panel(loaded, rate),
        change=_change(loaded),
        why_no_change=loaded.why_no_earlier,
        weekly=by_week.result(),
        by_workflow=by_workflow.result(),
        by_model=by_model.result(),
        by_version=by_version.result(),
        by_harness=by_harness.result(),
        goals=tuple(goal_lines(loaded, asr, shares)),
        by_length=tuple(
            success_by_length(
                sums.key,
                sums.table,
                each=sums.each,
                noun="tasks" if sums.by_task else "runs",
                confidence_level=loaded.options.confidence_level,
            )
            for sums in loaded.lengths
        ),
        sensitivity=tuple(sensitivity(loaded)),
        at_ceilings=(),
        signals=signals(loaded.operation),
        verdict_mix=verdict_mix(loaded.operation),
        latency=latency_of(loaded.operation.latency),
        origin=origin,
        notes=bad_values(counts.signals),
    )


def _classes(loaded: LoadedRuns, shares: Sequence[Estimate]) -> Iterator[OutcomeShare]:
    taxonomy = loaded.taxonomy
    titles = {c.name: c.title for c in taxonomy.classes}
    for name, share in zip(taxonomy.names, shares, strict=True):
        yield OutcomeShare(
            outcome=name,
            title=titles[name],
            credit=taxonomy.credit[name],
            share=share,
            target=loaded.options.targets.get(name),
        )


def goal_lines(loaded: LoadedRuns, asr: Estimate, shares: Sequence[Estimate]) -> Iterator[GoalLine]:
    """Yield each target with the gap to it, and the chance of being at or above it."""
    options, taxonomy = loaded.options, loaded.taxonomy
    titles = {ASR: RATE} | {c.name: c.title for c in taxonomy.classes}
    # Resamples of a sample of labels are not behind the interval of its rate.
    resampled: Mapping[str, float | None] = {}
    if options.targets and not loaded.sampled:
        resampled = shares_at_least(loaded.runs, options.targets, **options.resampling(0))
    for name, target in options.targets.items():
        estimate = asr if name == ASR else shares[taxonomy.place(name)]
        chance, method = resampled.get(name), f"share of {options.n_resamples:,} resamples"
        if chance is None:
            chance = chance_at_least(estimate, target)
            method = "reference distribution of the interval, " + ("t" if estimate.df else "normal")
        status = OK
        if chance is None:
            why = "the interval has no width on the side of the target"
            why = why if estimate.interval else "there is no interval: add runs or labels"
            status = f"not_estimable: {why}"
        value = estimate.value
        yield GoalLine(
            name=name,
            title=titles[name],
            target=target,
            estimate=estimate,
            gap=None if value is None else value - target,
            reached=None if value is None else value >= target,
            chance=chance,
            method=method,
            status=status,
        )


def _change(loaded: LoadedRuns) -> Change | None:
    """Compare with the earlier runs, else the last week with the one before it."""
    options, earlier = loaded.options, loaded.earlier
    if earlier is not None:
        before, after, paired = earlier.runs, earlier.later or loaded.runs, earlier.paired
        names = earlier.words, options.window_words
    elif options.compare_to == PREVIOUS and options.since is None:
        runs = loaded.by("week")
        labels = runs.labels("week")
        if len(labels.seen) < 2:
            return None
        names = labels.seen[-2], labels.seen[-1]
        if calendar(*names) != names:
            return None
        before, after = (runs.where(labels.of(name)) for name in names)
        paired = runs.task is not None
    else:
        return None
    found = compare_runs(before, after, paired=paired, **options.resampling(4))
    return Change(
        later=names[1],
        earlier=names[0],
        before=found.before.asr,
        after=found.after.asr,
        asr=found.asr,
        classes=found.class_changes,
        n_pairs=found.n_pairs,
    )


def _identity(loaded: LoadedRuns) -> str:
    """Return the terms of the rate; from a single label no rate is estimated."""
    words = loaded.rate.identity if loaded.rate.asr.ok else "no rate"
    return f"Human-only: {words}" if loaded.sampled else words


def weekly(loaded: LoadedRuns) -> WeeklySeries:
    """Return the weekly series of the runs with an outcome."""
    return weekly_rates(loaded.by("week"), loaded.options, loaded.open)


def weekly_rates(runs: RunCounts, options: ReportOptions, open: BoolArray | None) -> WeeklySeries:
    """Return the weekly series of runs that were counted by week; `open` as in `LoadedRuns`."""
    found = weekly_series(runs, pooled=options.pooled, **options.resampling(1))
    if open is None:
        return found
    names = runs.labels("week")
    open_in = Counter(names.names[code] for code in names.codes[open] if code >= 0)
    weeks = tuple(
        replace(week, rate=while_open(week.rate, open_in[week.week])) for week in found.weeks
    )
    return replace(found, weeks=weeks)


def workflow_groups(loaded: LoadedRuns) -> Iterator[RateGroup]:
    """Yield rate and cost of every workflow, also of one whose runs have no outcome."""
    known = {w.name: w for w in loaded.taxonomy.workflows}
    for made, rate in _groups(loaded, "workflow", 2):
        workflow = known.get(made.name or "")
        yield replace(
            made,
            cost=cost_panel(loaded, rate, made.name),
            ceiling_usd=None if workflow is None else workflow.ceiling_usd,
            unit=None if workflow is None else workflow.unit,
        )


def named_groups(loaded: LoadedRuns, by: str, part: int) -> Iterator[RateGroup]:
    """Yield the rate of every model, version or harness; nothing where no run names one."""
    cells = loaded.counts.cells
    names = cells[by].dropna().unique() if by in cells else ()
    # A harness alone is no version.
    if any(by != VERSION or not name.endswith(AT) for name in names):
        for made, _ in _groups(loaded, by, part):
            yield made


def with_harness(loaded: LoadedRuns) -> LoadedRuns:
    """Return runs that are counted by harness too, where agent versions name one."""
    cells, runs = loaded.counts.cells, loaded.by(VERSION)
    if VERSION not in cells or not cells[VERSION].dropna().astype(str).str.contains(AT).any():
        return loaded
    labels = runs.labels(VERSION)
    of = np.array([harness_of(name) for name in labels.names] + [None], dtype=object)
    named = replace(runs, by={**runs.by, HARNESS: labels_of(of[labels.codes].tolist())})
    every = cells[VERSION].astype(object).map(harness_of, na_action="ignore")
    return replace(
        loaded,
        counts=replace(loaded.counts, cells=cells.assign(**{HARNESS: every})),
        runs_by={**loaded.runs_by, HARNESS: named},
    )


def _groups(
    loaded: LoadedRuns, by: str, part: int
) -> Iterator[tuple[RateGroup, AgentSuccessRate | None]]:
    runs, options = loaded.by(by), loaded.options
    found, labels = rates_by(runs, by, **options.resampling(part)), runs.labels(by)
    every = loaded.counts.cells[by]
    for name in sorted(every.dropna().astype(str).unique()):
        rate = found.get(name)
        n_open = 0 if rate is None else loaded.n_open(labels.of(name))
        yield rate_group(name, rate, n_open), rate
    if every.isna().any():
        rows, rate = labels.codes < 0, None
        if rows.any():
            rate = rate_of_counts(runs.where(rows), **options.resampling(part))
        yield rate_group(None, rate, loaded.n_open(rows)), rate


def rate_group(name: str | None, rate: AgentSuccessRate | None, n_open: int = 0) -> RateGroup:
    """Return the rate of some runs, marked provisional if disagreements are open."""
    if rate is None:
        return RateGroup(name=name, n=0, asr=not_estimable(UNLABELLED, method="bootstrap"))
    return RateGroup(
        name=name,
        n=rate.n,
        asr=while_open(rate.asr, n_open),
        asr_gross=while_open(rate.asr_gross, n_open),
        pass_rate=while_open(rate.pass_rate, n_open),
    )


def while_open(estimate: Estimate, n_open: int) -> Estimate:
    """Mark an estimate as provisional if disagreements are open."""
    return provisional(estimate, counted(n_open, "open disagreement")) if n_open else estimate


def cost_panel(
    loaded: LoadedRuns, rate: AgentSuccessRate | None, workflow: str | None = None
) -> CostPanel:
    """Return the costs of all runs, or of a workflow; `rate` is that of the same runs."""
    counts = loaded.counts
    # The first row is the total, without a name, which pandas cannot find by label.
    table = counts.cost.table
    row: Any = table.iloc[0] if workflow is None else table.loc[workflow]
    no_ceiling = counts.notes.no_ceiling
    p50, p90, p99 = (loaded.operation.cost.point(q, workflow) for q in COST_LEVELS)
    return CostPanel(
        n=int(row["n"]),
        n_known=int(row["n_known"]),
        n_without_ceiling=(
            sum(no_ceiling.values()) if workflow is None else no_ceiling.get(workflow, 0)
        ),
        mean=None if np.isnan(row["mean"]) else float(row["mean"]),
        p50=p50,
        p90=p90,
        p99=p99,
        share_above_ceiling=_above(loaded, rate, row),
        per_success=_per_success(loaded, workflow),
        of_ceiling=_of_ceiling(loaded, workflow, (p50, p90, p99)),
    )


def _above(loaded: LoadedRuns, rate: AgentSuccessRate | None, row: Any) -> Estimate | None:
    """Return the share above the ceiling, counted over all runs where `rate` is of a sample."""
    if rate is not None and not loaded.sampled:
        return rate.share_over_ceiling
    n = int(row["n_held"])
    value = float(row["share_over_ceiling"])
    return None if not n else Estimate(value=value, interval=None, n=n, method=ABOVE)


def _per_success(loaded: LoadedRuns, workflow: str | None) -> Estimate:
    """Return the cost per complete run, or the reason why it is not known."""
    by = "" if workflow is None else "workflow"
    runs, costed = loaded.by(by), loaded.costed.get(by, loaded.costed[""])
    if workflow is not None:
        labels = runs.labels(by)
        if workflow not in labels.seen:
            return not_estimable(UNLABELLED, method="total cost")
        rows = labels.of(workflow)
        runs, costed = runs.where(rows), costed[rows]
    level = loaded.options.confidence_level
    return cost_per_success(runs, costed=costed, confidence_level=level)


def _of_ceiling(
    loaded: LoadedRuns, workflow: str | None, costs: Sequence[float | None]
) -> tuple[float, float, float] | None:
    if loaded.of_ceiling is not None:
        times = tuple(loaded.of_ceiling.point(q, workflow) for q in COST_LEVELS)
    else:
        ceilings = {w.name: w.ceiling_usd for w in loaded.taxonomy.workflows}
        ceiling = None if workflow is None else ceilings.get(workflow)
        # A run of several units may cost several times the ceiling of one.
        if not ceiling or loaded.counts.notes.no_units != loaded.counts.n_kept:
            return None
        times = tuple(None if cost is None else cost / ceiling for cost in costs)
    p50, p90, p99 = times
    return None if p50 is None or p90 is None or p99 is None else (p50, p90, p99)


def sensitivity(loaded: LoadedRuns) -> Iterator[AtOtherWeights]:
    """Yield the rate under other credit tables."""
    rate, kind = loaded.rate, "human-only, " if loaded.sampled else ""
    yield from at_weights(
        kind, loaded.taxonomy, rate.asr, lambda name, _: rate.at_other_credit[name]
    )


def at_weights(
    kind: str,
    taxonomy: Taxonomy,
    own: Estimate,
    at: Callable[[str, CreditTable], Estimate],
) -> Iterator[AtOtherWeights]:
    """Yield a rate as reported, and `at` each other credit table."""
    table = taxonomy.credit_table
    listed = [credit_in_words(table.credit)]
    listed += [f"{name} {credit_in_words(own)}" for name, own in table.by_workflow.items()]
    words = f"{kind}as reported ({'; '.join(listed)})"
    yield AtOtherWeights(name=words, credit=table.credit, asr=own)
    for name, other in other_tables(taxonomy).items():
        words = f"{kind}{table_in_words(name, other)}"
        yield AtOtherWeights(name=words, credit=other.credit, asr=at(name, other))


def at_ceilings(
    rates: Mapping[float, Mapping[str | None, Estimate]],
) -> tuple[AtOtherCeilings, ...]:
    """Return rates by factor of the ceilings and by workflow, None for all together."""
    return tuple(
        AtOtherCeilings(factor=factor, workflow=workflow, asr=asr)
        for factor, found in sorted(rates.items())
        for workflow, asr in found.items()
    )


def work_list(
    outcome: str,
    n: int,
    by_week: Iterable[tuple[str, int]],
    first: Iterable[WorkItem],
    *,
    goes_to: str,
) -> WorkList:
    """Return the review queue of a class."""
    return WorkList(
        outcome=outcome,
        goes_to=goes_to,
        n=n,
        by_week=tuple(by_week),
        first=tuple(first)[:SHOWN_RUNS],
    )


def work_items(listed: pd.DataFrame) -> Iterator[WorkItem]:
    """Yield listed runs as items to review."""
    for row in _rows(listed):
        yield WorkItem(
            trace_id=row["trace_id"],
            workflow=row["workflow"],
            week=row["week"],
            model=row["model"],
            cost_usd=None if row["cost_usd"] is None else float(row["cost_usd"]),
            reasons=row.get("reasons", ()),
            evidence=row.get("evidence", ()),
        )


def work_csv(listed: pd.DataFrame, columns: Sequence[str]) -> str:
    """Return listed runs as CSV; a text that a spreadsheet would run as a formula is quoted."""
    times = pd.to_datetime(listed["started_at"], utc=True).dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    return as_csv(columns, _rows(listed.assign(started_at=times)[list(columns)]))


def write_work(folder: Path, taxonomy: Taxonomy, csv_of: Callable[[str], str]) -> list[Path]:
    """Write the review queue of each class as CSV, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for outcome in taxonomy.follow_up:
        file = folder / f"{outcome}.csv"
        file.write_text(csv_of(outcome), encoding="utf-8", newline="")
        written.append(file)
    return written


def _rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield rows with None for missing values."""
    clean = frame.astype(object).where(frame.notna(), None)
    for row in clean.to_dict("records"):
        yield {str(name): value for name, value in row.items()}
