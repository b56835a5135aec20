"""The report by workflow, model and tag, and the runs that somebody should look at."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from calibration.analyses.asr_report import CostPanel, Group, WorkItem, WorkList
from calibration.analyses.production_reading import (
    ProductionRead,
    runs_of,
)
from calibration.analyses.report_options import ReportOptions
from calibration.analyses.report_parts import GOES_TO, SHOWN_RUNS
from calibration.estimates import Estimate
from calibration.metrics.arrays import BoolArray
from calibration.metrics.asr import AgentSuccessRate, rate_of_counts
from calibration.metrics.breakdowns import rates_by
from calibration.metrics.cost import cost_per_success
from calibration.metrics.counts import RunCounts
from calibration.production import production_counts
from calibration.production.listing import list_runs
from calibration.production.places import Place
from calibration.production.tags import laid_out
from calibration.records import OUTCOMES


def workflow_groups(read: ProductionRead, options: ReportOptions) -> Iterator[Group]:
    """Yield the rate and the cost of every workflow."""
    known = {w.name: w for w in read.taxonomy.workflows}
    table, runs = read.counts.cost.table, read.by("workflow")
    labels = runs.labels("workflow")
    for name, rate in rates_by(runs, "workflow", **options.resampling(2)).items():
        workflow = known.get(name)
        ceiling = None if workflow is None else workflow.ceiling_usd
        panel = cost_panel(
            table.loc[name],
            rate.share_over_ceiling,
            per_success(read, labels.of(name)),
            0 if ceiling else rate.n,
        )
        # A run of several units may cost several times the ceiling of one.
        of_one = read.counts.notes.no_units == read.counts.n_kept
        p50, p90, p99 = panel.p50, panel.p90, panel.p99
        if of_one and ceiling and p50 is not None and p90 is not None and p99 is not None:
            panel = replace(panel, of_ceiling=(p50 / ceiling, p90 / ceiling, p99 / ceiling))
        yield replace(
            _group(name, rate),
            cost=panel,
            ceiling_usd=ceiling,
            unit=None if workflow is None else workflow.unit,
        )


def per_success(read: ProductionRead, rows: BoolArray | None = None) -> Estimate:
    """Return what a completed run costs, of some rows by workflow."""
    by = "" if rows is None else "workflow"
    runs, costed = read.by(by), read.costed(by)
    if rows is not None:
        runs, costed = runs.where(rows), costed[rows]
    return cost_per_success(runs, costed=costed)


def cost_panel(
    row: Any, above: Estimate, per_success: Estimate, n_without_ceiling: int
) -> CostPanel:
    """Return one row of a `calibration.production.Spread` of costs, with what was estimated."""
    return CostPanel(
        n=int(row["n"]),
        n_known=int(row["n_known"]),
        n_without_ceiling=n_without_ceiling,
        mean=_known(row["mean"]),
        p50=_known(row["p50"]),
        p90=_known(row["p90"]),
        p99=_known(row["p99"]),
        share_above_ceiling=above,
        per_success=per_success,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def groups(runs: RunCounts, by: str, options: ReportOptions, part: int) -> Iterator[Group]:
    """Yield the rate of every model or tag; none where no run names one."""
    if by not in runs.by or not runs.by[by].seen:
        return
    for name, rate in rates_by(runs, by, **options.resampling(part)).items():
        yield _group(name, rate)
    without = runs.by[by].codes < 0
    if without.any():
        yield _group(None, rate_of_counts(runs.where(without), **options.resampling(part)))


def _group(name: str | None, rate: AgentSuccessRate) -> Group:
    return Group(
        name=name,
        n=rate.n,
        asr=rate.asr,
        asr_gross=rate.asr_gross,
        pass_rate=rate.pass_rate,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TagGroups:
    """The rate by tag, and how many rarer tags are left out."""

    groups: tuple[Group, ...] = ()
    left_out: int = 0


def tag_groups(place: Place, read: ProductionRead, options: ReportOptions) -> TagGroups:
    """Return the rate by tag where the runs have tags; a run counts under each of its tags."""
    if "tags" not in read.counts.notes.columns:
        return TagGroups()
    conflicts = any(rows.reason == "conflicting_duplicate" for rows in read.counts.set_aside)
    with place.open() as source:
        tagged = laid_out(source, options.columns, conflicts=conflicts)
        if tagged is None:
            return TagGroups()
        counts = production_counts(
            tagged.source,
            taxonomy=read.taxonomy,
            columns=tagged.columns,
            known_workflows_only=not options.any_workflow,
            timezone=options.timezone,
            since=read.reading.since,
            until=read.reading.until,
        )
    if not counts.n_kept:
        return TagGroups(left_out=tagged.left_out)
    runs = runs_of(counts, read.taxonomy, stratify=options.stratify, by="model")
    found = groups(runs, "model", options, 5)
    return TagGroups(
        groups=tuple(sorted(found, key=lambda g: (-g.n, g.name or ""))), left_out=tagged.left_out
    )


def work_lists(place: Place, read: ProductionRead) -> tuple[WorkList, ...]:
    """Return how many runs wait in each class that somebody looks at, and the first of them."""
    with place.open() as source:
        listed = list_runs(
            source,
            read.reading,
            outcomes=tuple(GOES_TO),
            first=SHOWN_RUNS,
            until=read.counts.listed_until,
        )
    cells = read.counts.cells
    found = []
    for outcome, goes_to in GOES_TO.items():
        own = cells[cells["outcome"] == OUTCOMES.index(outcome)]
        by_week = own.groupby("week", observed=True)["n"].sum().sort_index()
        found.append(
            WorkList(
                outcome=outcome,
                goes_to=goes_to,
                n=int(own["n"].sum()),
                by_week=tuple((str(week), int(n)) for week, n in by_week.items()),
                first=tuple(work_items(listed[listed["outcome"] == outcome])),
            )
        )
    return tuple(found)


def work_items(rows: pd.DataFrame) -> Iterator[WorkItem]:
    """Yield listed runs as items of a work list."""
    clean = rows.astype(object).where(rows.notna(), None)
    for row in clean.to_dict("records"):
        yield WorkItem(
            trace_id=row["trace_id"],
            workflow=row["workflow"],
            week=row["week"],
            model=row["model"],
            cost_usd=None if row["cost"] is None else float(row["cost"]),
        )
