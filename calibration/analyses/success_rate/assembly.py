"""One success-rate report from loaded runs, whatever holds them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibration.analyses.success_rate.report import (
    AtOtherWeights,
    CostPanel,
    Origin,
    ProductionReport,
    RateGroup,
    ReportOptions,
    classes,
    credit_in_words,
    literal,
    other_tables,
    table_in_words,
)
from calibration.analyses.success_rate.signals import (
    ADD,
    Amounts,
    bad_values,
    latency_of,
    signals,
    verdict_mix,
)
from calibration.records import OUTCOMES
from calibration.runs import ProductionCounts
from calibration.statistics.estimate import OK, BoolArray, Estimate, IntArray, not_estimable
from calibration.success_rate.cost import cost_per_success
from calibration.success_rate.rate import AgentSuccessRate, rate_of_counts, rates_by
from calibration.success_rate.runs import RunCounts
from calibration.success_rate.trend import WeeklySeries, weekly_series
from calibration.taxonomy import Taxonomy

ABOVE = "share of the runs with a cost and a ceiling"

UNLABELLED = "none of its traces is labelled: label some"

LEVELS = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedRuns:
    """Runs with everything that a report is assembled from; a loader fills it.

    Parameters
    ----------
    counts : ProductionCounts
        All runs: how they operated and what they cost.
    runs, runs_by : RunCounts, mapping of str to RunCounts
        The runs with an outcome, and those counted apart by ``week``, ``workflow`` or ``model``:
        all of a file, the labelled ones of a store.
    rate : AgentSuccessRate
        Of `runs`.
    latency, cost : Amounts
        Of all runs.
    taxonomy : Taxonomy
        Credits, and the workflows with their ceilings.
    open : bool array, shape (n_rows,), optional
        Rows of `runs` whose class may still change: reviewers differ, and nobody has settled.
    costed : mapping of str to int array
        Runs of each row with a known cost, by what the rows are counted by; ``""``: of `runs`.
    priced : RunCounts, optional
        `runs` with every known cost, where `runs` keeps only those with a ceiling.
    of_ceiling : Amounts, optional
        Costs as multiples of the ceiling of their run. Without it they follow from the costs of a
        workflow where each run is one unit.
    sampled : bool
        Whether `runs` is a sample of all runs, as labelled traces are.
    missing : mapping of str to str
        What a signal that is not recorded would need.
    """

    counts: ProductionCounts
    runs: RunCounts
    runs_by: Mapping[str, RunCounts] = field(default_factory=dict)
    rate: AgentSuccessRate
    latency: Amounts
    cost: Amounts
    taxonomy: Taxonomy
    options: ReportOptions
    open: BoolArray | None = None
    costed: Mapping[str, IntArray] = field(default_factory=dict)
    priced: RunCounts | None = None
    of_ceiling: Amounts | None = None
    sampled: bool = False
    missing: Mapping[str, str] = field(default_factory=lambda: ADD)

    def by(self, name: str) -> RunCounts:
        """Return the runs with an outcome, counted by week, workflow or model."""
        return self.runs_by.get(name, self.runs)

    def n_open(self, rows: BoolArray) -> int:
        """Return how many of some rows may still change."""
        return 0 if self.open is None else int((self.open & rows).sum())


def assemble(
    loaded: LoadedRuns,
    *,
    kind: str,
    target: str,
    origin: Origin,
    corrected: tuple[Estimate, Estimate, tuple[Estimate, ...]] | None = None,
) -> ProductionReport:
    """Return the report on loaded runs; what a loader alone knows it fills in afterwards.

    `corrected` is the rate with and without cost and the class shares, corrected for the errors of
    a judge; None: the rate is that of the runs.
    """
    rate, counts, options = loaded.rate, loaded.counts, loaded.options
    level = options.confidence_level
    # Parts draw from generators of their own: which of them is done first changes nothing.
    with ThreadPoolExecutor() as pool:
        by_week = pool.submit(weekly, loaded)
        by_workflow = pool.submit(lambda: tuple(workflow_groups(loaded)))
        by_model = pool.submit(lambda: tuple(model_groups(loaded)))
    weeks = sorted(counts.cells["week"].dropna().astype(str).unique())
    asr, gross, shares = corrected or (rate.asr, rate.asr_gross, rate.class_shares)
    return ProductionReport(
        calibrated=corrected is not None,
        kind=kind,
        target=target,
        n=counts.n_kept,
        n_tasks=counts.n_tasks,
        first=weeks[0] if weeks else None,
        last=weeks[-1] if weeks else None,
        asr=asr,
        asr_gross=gross,
        asr_literal=literal(rate),
        asr_without_abandoned=rate.asr_without_abandoned,
        pass_rate=shares[0],
        identity=_identity(loaded),
        mean_effective_penalty=rate.mean_effective_penalty,
        asr_range=rate.asr_range,
        rounding=rate.rounding,
        classes=classes(shares, loaded.taxonomy, options.targets),
        cost=cost_panel(loaded, rate),
        weekly=by_week.result(),
        by_workflow=by_workflow.result(),
        by_model=by_model.result(),
        sensitivity=tuple(sensitivity(loaded)),
        signals=signals(
            counts.signals,
            loaded.latency,
            loaded.cost,
            missing=loaded.missing,
            confidence_level=level,
        ),
        verdict_mix=verdict_mix(counts.signals, missing=loaded.missing, confidence_level=level),
        latency=latency_of(loaded.latency),
        origin=origin,
        notes=bad_values(counts.signals),
    )


def _identity(loaded: LoadedRuns) -> str:
    """Return what the rate is made of; of a single label no rate is estimated."""
    words = loaded.rate.identity if loaded.rate.asr.ok else "no rate"
    return f"Human-only: {words}" if loaded.sampled else words


def weekly(loaded: LoadedRuns) -> WeeklySeries:
    """Return the weeks of the runs with an outcome."""
    runs = loaded.by("week")
    found = weekly_series(runs, pooled=loaded.options.pooled, **loaded.options.resampling(1))
    if loaded.open is None:
        return found
    names = runs.labels("week")
    open_in = Counter(names.names[code] for code in names.codes[loaded.open] if code >= 0)
    weeks = tuple(
        replace(week, rate=provisional(week.rate, open_in[week.week])) for week in found.weeks
    )
    return replace(found, weeks=weeks)


def workflow_groups(loaded: LoadedRuns) -> Iterator[RateGroup]:
    """Yield the rate and the cost of every workflow, also of one whose runs have no outcome."""
    known = {w.name: w for w in loaded.taxonomy.workflows}
    for made, rate in _groups(loaded, "workflow", 2):
        workflow = known.get(made.name or "")
        yield replace(
            made,
            cost=cost_panel(loaded, rate, made.name),
            ceiling_usd=None if workflow is None else workflow.ceiling_usd,
            unit=None if workflow is None else workflow.unit,
        )


def model_groups(loaded: LoadedRuns) -> Iterator[RateGroup]:
    """Yield the rate of every model; nothing where no run names one."""
    if loaded.counts.cells["model"].notna().any():
        for made, _ in _groups(loaded, "model", 3):
            yield made


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
    """Return the rate of some runs, provisional by their open disagreements."""
    if rate is None:
        return RateGroup(name=name, n=0, asr=not_estimable(UNLABELLED, method="bootstrap"))
    return RateGroup(
        name=name,
        n=rate.n,
        asr=provisional(rate.asr, n_open),
        asr_gross=provisional(rate.asr_gross, n_open),
        pass_rate=provisional(rate.pass_rate, n_open),
    )


def provisional(estimate: Estimate, n_open: int) -> Estimate:
    """Mark an estimate that open disagreements may still move."""
    if not n_open or estimate.status != OK:
        return estimate
    return replace(estimate, status=f"provisional: {n_open} open disagreements")


def cost_panel(
    loaded: LoadedRuns, rate: AgentSuccessRate | None, workflow: str | None = None
) -> CostPanel:
    """Return what all runs cost, or those of a workflow; `rate` is theirs."""
    counts = loaded.counts
    # The first row is of all, under no name, which pandas does not find by label.
    table = counts.cost.table
    row: Any = table.iloc[0] if workflow is None else table.loc[workflow]
    no_ceiling = counts.notes.no_ceiling
    p50, p90, p99 = (loaded.cost.point(q, workflow) for q in LEVELS)
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
    """Return the share above the ceiling: counted over all runs where `rate` is of a sample."""
    if rate is not None and not loaded.sampled:
        return rate.share_over_ceiling
    n = int(row["n_held"])
    value = float(row["share_over_ceiling"])
    return None if not n else Estimate(value=value, interval=None, n=n, method=ABOVE)


def _per_success(loaded: LoadedRuns, workflow: str | None) -> Estimate:
    """Return what a completed run costs, or why that is not known."""
    by = "" if workflow is None else "workflow"
    runs, costed = loaded.by(by), loaded.costed.get(by, loaded.costed.get(""))
    rows = None
    if workflow is not None:
        labels = runs.labels(by)
        rows = labels.codes == (
            labels.names.index(workflow) if workflow in labels.names else len(labels.names)
        )
        if not rows.any():
            return not_estimable(UNLABELLED, method="total cost")
    if loaded.priced is not None:
        runs, costed = loaded.priced, None
    if rows is not None:
        runs, costed = runs.where(rows), None if costed is None else costed[rows]
    level = loaded.options.confidence_level
    return cost_per_success(runs, costed=costed, confidence_level=level)


def _of_ceiling(
    loaded: LoadedRuns, workflow: str | None, costs: Sequence[float | None]
) -> tuple[float, float, float] | None:
    if loaded.of_ceiling is not None:
        times = tuple(loaded.of_ceiling.point(q, workflow) for q in LEVELS)
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
    """Yield the rate at other weights."""
    prefix = "human-only, " if loaded.sampled else ""
    own = tuple(loaded.taxonomy.credit[name] for name in OUTCOMES)
    yield AtOtherWeights(
        name=f"{prefix}as reported ({credit_in_words(own)})", credit=own, asr=loaded.rate.asr
    )
    for name, credit in other_tables(loaded.taxonomy).items():
        yield AtOtherWeights(
            name=f"{prefix}{table_in_words(name, credit)}",
            credit=credit,
            asr=loaded.rate.at_other_credit[name],
        )
