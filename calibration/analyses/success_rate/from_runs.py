"""The success-rate report on tables of runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from calibration.analyses.fingerprint import package_version, settings_digest
from calibration.analyses.reference_traces import marks
from calibration.analyses.success_rate.assembly import (
    LoadedRuns,
    assemble,
    rate_group,
)
from calibration.analyses.success_rate.report import (
    GOES_TO,
    PLACES,
    PREVIOUS,
    SHOWN_RUNS,
    Change,
    Origin,
    ProductionReport,
    RateGroup,
    ReportOptions,
    WorkItem,
    WorkList,
    change_of,
    change_of_weeks,
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
from calibration.analyses.success_rate.signals import amounts
from calibration.errors import InputError
from calibration.records import OUTCOMES
from calibration.runs import production_counts
from calibration.runs.listing import Reading, laid_out, list_runs
from calibration.runs.sources import Place, held, place_of
from calibration.success_rate.comparison import compare_runs
from calibration.success_rate.rate import rate_of_counts, rates_by
from calibration.tables.rows import as_csv
from calibration.taxonomy import Taxonomy, default_taxonomy

GIVEN = "outcomes taken as given, not calibrated"

NO_JUDGE = "none: the outcomes of the file are taken as given"


COLUMNS = (
    "trace_id", "workflow", "week", "started_at", "model", "task_id", "cost_usd", "latency_s",
)  # fmt: skip

OURS = {"at": "started_at", "task": "task_id", "cost": "cost_usd", "latency": "latency_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TagGroups:
    """The rate by tag, and how many rarer tags are left out."""

    groups: tuple[RateGroup, ...] = ()
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
    found = rates_by(runs, "model", **options.resampling(5))
    groups = [rate_group(name, rate) for name, rate in found.items()]
    return TagGroups(
        groups=tuple(sorted(groups, key=lambda g: (-g.n, g.name or ""))), left_out=tagged.left_out
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
        tags, lists = tag_groups(place, read, options), work_lists(place, read)
    settings = options.settings(place.settings(), taxonomy_path)
    counts = read.counts
    earlier_inputs = None if earlier is None else earlier.inputs
    made = assemble(
        loaded_runs(read, options),
        kind=GIVEN,
        target=_target(read),
        origin=_origin(read, earlier_inputs, options, settings, tags),
    )
    return replace(
        made,
        change=_change(read, earlier, options),
        by_tag=tags.groups,
        tags_left_out=tags.left_out,
        work_lists=lists,
        set_aside=tuple(map(left_out, counts.set_aside)),
        warnings=tuple(_warnings(read)),
        notes=(*said(counts.notes, counts.n_kept), *made.notes),
        marks=marks(read.n_reference, earlier.n_reference if earlier else 0),
        details={
            "inputs": read.inputs,
            "earlier_inputs": earlier_inputs,
            "percentile_error": max(counts.cost.error, counts.latency.error),
            "tasks_grouped": counts.tasks_grouped,
        },
    )


def loaded_runs(read: ProductionRead, options: ReportOptions) -> LoadedRuns:
    """Return runs that were read from files as a report takes them."""
    latency, cost = amounts(read.counts)
    return LoadedRuns(
        counts=read.counts,
        runs=read.runs,
        runs_by=read.runs_by,
        rate=rate_of_counts(read.runs, **options.resampling(0)),
        latency=latency,
        cost=cost,
        taxonomy=read.taxonomy,
        options=options,
        costed={by: read.costed(by) for by in ("", *read.runs_by)},
    )


def _target(read: ProductionRead) -> str:
    sample = "weighted" if "weight" in read.counts.notes.columns else "unweighted"
    return (
        f"The mean score of runs like the {read.counts.n_kept:,} of these files, {sample}: "
        "the outcomes are taken as given, so that the interval holds sampling error and not "
        "the errors of whoever gave them."
    )


def _change(
    read: ProductionRead, earlier: ProductionRead | None, options: ReportOptions
) -> Change | None:
    """Compare with the earlier runs, else the last week with the one before it."""
    if earlier is not None:
        # Tasks of two files have numbers of their own here and cannot be matched.
        found = compare_runs(earlier.runs, read.runs, **options.resampling(4))
        words = "the window before" if options.compare_to == PREVIOUS else str(options.compare_to)
        return change_of(found, later=options.window_words, earlier=words)
    if options.compare_to != PREVIOUS:
        return None
    return change_of_weeks(read.by("week"), options)


def _warnings(read: ProductionRead) -> Iterator[str]:
    set_aside, n = read.counts.n_set_aside, read.counts.n_read
    if set_aside > 0.01 * n:
        yield f"{set_aside:,} of {n:,} rows were set aside; the reasons stand below."
    if read.counts.tasks_grouped:
        yield (
            "Tasks are too many to be resampled one by one: random groups of tasks were, "
            "which gives the same variance."
        )


def _origin(
    read: ProductionRead,
    earlier_inputs: str | None,
    options: ReportOptions,
    settings: dict[str, Any],
    tags: TagGroups,
) -> Origin:
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
        "inputs": read.inputs,
        "earlier": earlier_inputs,
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
