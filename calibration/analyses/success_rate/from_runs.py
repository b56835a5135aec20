"""The success-rate report on tables of runs."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from calibration.analyses.fingerprint import package_version, settings_digest
from calibration.analyses.reference_traces import marks
from calibration.analyses.success_rate.report import (
    GOES_TO,
    PLACES,
    PREVIOUS,
    SHOWN_RUNS,
    AtOtherWeights,
    Change,
    CostPanel,
    Group,
    Origin,
    ProductionReport,
    ReportOptions,
    WorkItem,
    WorkList,
    change_of,
    change_of_weeks,
    classes,
    credit_in_words,
    literal,
    table_in_words,
)
from calibration.analyses.success_rate.runs import (
    DIGITS,
    ProductionRead,
    left_out,
    read_production,
    runs_of,
    said,
    with_ceilings,
)
from calibration.analyses.success_rate.signals import bad_values, latency, signals, verdict_mix
from calibration.errors import InputError
from calibration.records import OUTCOMES
from calibration.runs import production_counts
from calibration.runs.listing import Reading, laid_out, list_runs
from calibration.runs.sources import Place, held, place_of
from calibration.statistics.estimate import Estimate
from calibration.statistics.validation import BoolArray
from calibration.success_rate.comparison import compare_runs
from calibration.success_rate.cost import cost_per_success
from calibration.success_rate.rate import AgentSuccessRate, rate_of_counts, rates_by
from calibration.success_rate.runs import RunCounts
from calibration.success_rate.trend import WeeklySeries, weekly_series
from calibration.tables.rows import as_csv
from calibration.taxonomy import Taxonomy, default_taxonomy

GIVEN = "outcomes taken as given, not calibrated"

NO_JUDGE = "none: the outcomes of the file are taken as given"


COLUMNS = (
    "trace_id", "workflow", "week", "started_at", "model", "task_id", "cost_usd", "latency_s",
)  # fmt: skip

OURS = {"at": "started_at", "task": "task_id", "cost": "cost_usd", "latency": "latency_s"}


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
    """Return one row of a `calibration.runs.Spread` of costs, with what was estimated."""
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


def report_on_files(
    paths: Place | Sequence[str],
    *,
    options: ReportOptions | None = None,
    taxonomy: Taxonomy | None = None,
    taxonomy_path: Path | None = None,
) -> ProductionReport:
    """Report the Agent Success Rate of the runs in production files.

    Parameters
    ----------
    paths : sequence of str, or Place
        CSV, JSONL or Parquet files, or patterns of them; or what else holds the runs.
    options : ReportOptions, optional
        Window, comparison, resampling.
    taxonomy : Taxonomy, optional
        Weights, ceilings, workflows; those of the package when None.
    taxonomy_path : Path, optional
        Where the taxonomy was read, for `asr verify`.

    Returns
    -------
    ProductionReport
        Not calibrated: the outcomes are taken as given.

    Raises
    ------
    InputError
        If a file or an option cannot be used.
    CalibrationError
        If no run is left, or a cost is missing under `strict_cost`.
    """
    options = options or ReportOptions()
    taxonomy = taxonomy or default_taxonomy()
    with held(place_of(paths)) as place:
        read = read_production(place, taxonomy=taxonomy, options=options)
        earlier = _earlier(place, taxonomy, options)
        return _Assembled(read, options, earlier).report(
            options.settings(place.settings(), taxonomy_path),
            tag_groups(place, read, options),
            work_lists(place, read),
        )


class _Assembled:
    """The parts of a report, each from the counts it needs."""

    def __init__(
        self, read: ProductionRead, options: ReportOptions, earlier: ProductionRead | None
    ) -> None:
        self.read, self.options, self.earlier = read, options, earlier
        self.inputs = read.inputs
        self.earlier_inputs = None if earlier is None else earlier.inputs

    def report(
        self,
        settings: dict[str, Any],
        tags: TagGroups,
        work_lists: tuple[WorkList, ...],
    ) -> ProductionReport:
        read, counts = self.read, self.read.counts
        # Parts draw from generators of their own: which of them is done first changes nothing.
        with ThreadPoolExecutor() as pool:
            changed = pool.submit(self._change)
            by_week = pool.submit(self._weekly)
            by_workflow = pool.submit(lambda: tuple(workflow_groups(read, self.options)))
            by_model = pool.submit(
                lambda: tuple(groups(read.by("model"), "model", self.options, 3))
            )
            rate = rate_of_counts(read.runs, **self.options.resampling(0))
        change, weekly = changed.result(), by_week.result()
        return ProductionReport(
            calibrated=False,
            kind=GIVEN,
            target=self._target(),
            n=counts.n_kept,
            n_tasks=counts.n_tasks,
            first=weekly.weeks[0].week if weekly.weeks else None,
            last=weekly.weeks[-1].week if weekly.weeks else None,
            asr=rate.asr,
            asr_gross=rate.asr_gross,
            asr_literal=literal(rate),
            asr_without_abandoned=rate.asr_without_abandoned,
            pass_rate=rate.pass_rate,
            identity=rate.identity,
            mean_effective_penalty=rate.mean_effective_penalty,
            asr_range=rate.asr_range,
            rounding=rate.rounding,
            classes=classes(rate, read.taxonomy, self.options.targets),
            change=change,
            cost=cost_panel(
                counts.cost.table.iloc[0],
                rate.share_over_ceiling,
                per_success(read),
                self._unlimited(),
            ),
            weekly=weekly,
            by_workflow=by_workflow.result(),
            by_model=by_model.result(),
            by_tag=tags.groups,
            tags_left_out=tags.left_out,
            sensitivity=tuple(self._sensitivity(rate)),
            work_lists=work_lists,
            signals=signals(counts, self.options.confidence_level),
            verdict_mix=verdict_mix(counts.signals, self.options.confidence_level),
            latency=latency(counts),
            set_aside=tuple(map(left_out, counts.set_aside)),
            origin=self._origin(settings, tags),
            warnings=tuple(self._warnings()),
            notes=(*said(counts.notes, counts.n_kept), *bad_values(counts.signals)),
            marks=marks(read.n_reference, self.earlier.n_reference if self.earlier else 0),
            details={
                "inputs": self.inputs,
                "earlier_inputs": self.earlier_inputs,
                "percentile_error": max(counts.cost.error, counts.latency.error),
                "tasks_grouped": counts.tasks_grouped,
            },
        )

    def _target(self) -> str:
        counts = self.read.counts
        sample = "weighted" if "weight" in counts.notes.columns else "unweighted"
        return (
            f"The mean score of runs like the {counts.n_kept:,} of these files, {sample}: "
            "the outcomes are taken as given, so that the interval holds sampling error and not "
            "the errors of whoever gave them."
        )

    def _weekly(self) -> WeeklySeries:
        return weekly_series(
            self.read.by("week"), pooled=self.options.pooled, **self.options.resampling(1)
        )

    def _change(self) -> Change | None:
        """Compare with the earlier runs, else the last week with the one before it."""
        runs = self.read.by("week")
        if self.earlier is not None:
            # Tasks of two files have numbers of their own here and cannot be matched.
            found = compare_runs(self.earlier.runs, self.read.runs, **self.options.resampling(4))
            return change_of(found, later=self.options.window_words, earlier=self._earlier_words())
        if self.options.compare_to != PREVIOUS:
            return None
        return change_of_weeks(runs, self.options)

    def _earlier_words(self) -> str:
        if self.options.compare_to == PREVIOUS:
            return "the window before"
        return str(self.options.compare_to)

    def _unlimited(self) -> int:
        return sum(self.read.counts.notes.no_ceiling.values())

    def _sensitivity(self, rate: AgentSuccessRate) -> Iterator[AtOtherWeights]:
        own = tuple(self.read.taxonomy.credit[name] for name in OUTCOMES)
        yield AtOtherWeights(name=f"as reported ({credit_in_words(own)})", credit=own, asr=rate.asr)
        for name, credit in self.read.tables.items():
            words = table_in_words(name, credit)
            yield AtOtherWeights(name=words, credit=credit, asr=rate.at_other_credit[name])

    def _warnings(self) -> Iterator[str]:
        set_aside, n = self.read.counts.n_set_aside, self.read.counts.n_read
        if set_aside > 0.01 * n:
            yield f"{set_aside:,} of {n:,} rows were set aside; the reasons stand below."
        if self.read.counts.tasks_grouped:
            yield (
                "Tasks are too many to be resampled one by one: random groups of tasks were, "
                "which gives the same variance."
            )

    def _origin(self, settings: dict[str, Any], tags: TagGroups) -> Origin:
        read, options = self.read, self.options
        version = package_version()
        columns = read.counts.notes.columns
        sampling = "weights of the file (inverse inclusion probabilities)"
        if "weight" not in columns:
            sampling = "every run of the files counts the same"
        if "stratum" in columns:
            sampling += ", resampled within its strata"
        if options.stratify:
            sampling += ", resampled within workflows"
        parts = {
            "inputs": self.inputs,
            "earlier": self.earlier_inputs,
            "tags": [[g.name, g.n, round(g.asr.value or 0.0, DIGITS)] for g in tags.groups],
            "taxonomy": read.taxonomy.fingerprint,
            "settings": {k: v for k, v in settings.items() if k not in PLACES},
            "version": version,
        }
        return Origin(
            sources=read.sources,
            settings=settings,
            sampling=sampling,
            judge=NO_JUDGE,
            taxonomy_version=read.taxonomy.version,
            taxonomy_fingerprint=read.taxonomy.fingerprint,
            seed=options.seed,
            n_resamples=options.n_resamples,
            confidence_level=options.confidence_level,
            package_version=version,
            fingerprint=settings_digest(parts),
        )


def _earlier(place: Place, taxonomy: Taxonomy, options: ReportOptions) -> ProductionRead | None:
    """Read the runs to compare with: another file, or the window of equal length before."""
    if options.compare_to is None:
        return None
    if options.compare_to != PREVIOUS:
        return read_production(
            [options.compare_to], taxonomy=taxonomy, options=options, window=(None, None)
        )
    since, until = options.window
    if since is None:
        return None
    if until is None:
        raise InputError("--compare-to previous needs --to with --from, to know how long before")
    return read_production(
        place, taxonomy=taxonomy, options=options, window=(since - (until - since), since)
    )


def write_work_lists(
    paths: Place | Sequence[str],
    folder: Path,
    *,
    options: ReportOptions,
    taxonomy: Taxonomy | None = None,
) -> list[Path]:
    """Write one CSV file for each class that somebody looks at, oldest run first.

    A text that a spreadsheet would run as a formula gets a quote in front.

    Returns
    -------
    list of Path
        The files.
    """
    since, until = options.window
    reading = Reading(
        taxonomy=with_ceilings(taxonomy or default_taxonomy(), options.ceilings),
        columns=dict(options.columns),
        known_workflows_only=not options.any_workflow,
        timezone=options.timezone,
        since=since,
        until=until,
    )
    with place_of(paths).open() as source:
        listed = list_runs(source, reading, outcomes=tuple(GOES_TO))
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for outcome in GOES_TO:
        file = folder / f"{outcome}.csv"
        own = listed[listed["outcome"] == outcome]
        file.write_text(work_list_csv(own), encoding="utf-8", newline="")
        written.append(file)
    return written


def work_list_csv(listed: pd.DataFrame) -> str:
    """Return listed runs as CSV."""
    times = pd.to_datetime(listed["at"], utc=True).dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    frame = listed.assign(at=times).rename(columns=OURS)[list(COLUMNS)]
    clean = frame.astype(object).where(frame.notna(), None)
    return as_csv(
        COLUMNS, ({str(k): v for k, v in row.items()} for row in clean.to_dict("records"))
    )
