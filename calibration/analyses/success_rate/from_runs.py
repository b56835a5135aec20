"""The success-rate report on tables of runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.fingerprint import (
    DIGITS,
    frames_digest,
    package_version,
    rounded_sums,
    settings_digest,
)
from calibration.analyses.reference_traces import marks, reference_names, refuse_reference
from calibration.analyses.success_rate.assembly import (
    ADD,
    KS,
    MOST_AGENTS,
    Amounts,
    Earlier,
    LoadedRuns,
    Operation,
    assemble,
    at_ceilings,
    rate_group,
    tasks_by_week,
    work_csv,
    work_items,
    work_list,
    write_work,
)
from calibration.analyses.success_rate.evaluation import EvaluationFacts, evaluation_checks
from calibration.analyses.success_rate.report import (
    CEILING_FACTORS,
    COUNTED_BY,
    COUNTING,
    PLACES,
    PREVIOUS,
    SHOWN_RUNS,
    AtOtherCeilings,
    LeftOutRows,
    Origin,
    Passes,
    RateGroup,
    ReportOptions,
    SourceFile,
    SuccessRateReport,
    WorkList,
    origin_of,
    other_tables,
    repetition,
    source_file,
)
from calibration.errors import CalibrationError, InputError, NoRunsError
from calibration.records import VERSION, Workflow
from calibration.runs.columns import OF_GATES, open_runs
from calibration.runs.counts import (
    CountOptions,
    count_named,
    laid_out,
    list_runs,
    production_counts,
)
from calibration.runs.recognition import RunOptions, columns_of, outcomes_of, reading_of_runs
from calibration.runs.results import (
    NO_WORKFLOW,
    Example,
    GateQuery,
    Notes,
    ProductionCounts,
    SetAsideRows,
)
from calibration.runs.sources import Place, kept_open, place_of
from calibration.statistics.estimate import BoolArray, Estimate, IntArray
from calibration.success_rate.pass_at_k import Trials, pass_over_tasks
from calibration.success_rate.rate import rate_of_counts, rates_by, score_of, units_a_group
from calibration.success_rate.runs import RunCounts, counts_of_frame, with_further_runs
from calibration.tables.reading import REASONS, MissingOutcome, Reading
from calibration.tables.scales import OutcomeWords
from calibration.taxonomy import CreditTable, Taxonomy, default_taxonomy
from calibration.text import arms_left_out, counted

# Figures that are withheld where too much is left out.
FIGURES = ("asr", "asr_gross", "asr_literal", "asr_without_abandoned", "pass_rate")
BOUNDS_PART = 30
PASS_PART, CEILING_PART, UNKNOWN, MANY = 7, 11, "unknown", np.iinfo(np.int64).max
MANY_TASKS = "Repeated trials are not shown for so many tasks: `asr trials` takes them."
Window = tuple[datetime | None, datetime | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductionRead:
    """Production files as counts.

    `runs` are by task where tasks repeat; where these are random groups of tasks, `runs_by` has the
    counts by ``week``, ``workflow``, ``model`` and ``agent_version``. `taxonomy` has the ceilings
    in use. `reading` says what was read and left out, `missing_outcome` what the rate is whatever
    the runs left out were. `n_reference` counts traces of the reference set, included under
    `force`.
    """

    runs: RunCounts
    runs_by: Mapping[str, RunCounts]
    counts: ProductionCounts
    taxonomy: Taxonomy
    outcomes: OutcomeWords
    reading: Reading
    missing_outcome: MissingOutcome | None
    sources: tuple[SourceFile, ...]
    columns: tuple[str, ...]
    tables: Mapping[str, CreditTable]
    n_reference: int

    def by(self, name: str) -> RunCounts:
        """Return the runs counted by week, workflow or model."""
        return self.runs_by.get(name, self.runs)

    def costed(self, by: str) -> IntArray:
        """Return how many runs have a known cost in each row of `by`."""
        counts = self.counts
        frame = counts.cells if counts.tasks is None else counts.tasks_by.get(by, counts.tasks)
        return frame["n_costed"].to_numpy(np.int64)

    @property
    def inputs(self) -> str:
        """SHA-256 over all counts, rounded since threads add them in varying order."""
        counts = self.counts
        frames = {
            "cells": counts.cells,
            "cost": counts.cost.table.reset_index(),
            "latency": counts.latency.table.reset_index(),
        }
        if counts.tasks is not None:
            frames["tasks"] = counts.tasks
        frames |= {f"tasks by {name}": frame for name, frame in counts.tasks_by.items()}
        if counts.signals is not None:
            # By week alone: the engine decides which units form a group.
            sums = counts.signals.table.drop(columns=["unit", "stratum"])
            by_week = sums.groupby("week", observed=True, dropna=False, sort=True).sum()
            frames["signals"] = by_week.reset_index()
        return frames_digest({name: rounded_sums(frame) for name, frame in frames.items()})


def read_production(
    paths: Place | Sequence[str],
    *,
    taxonomy: Taxonomy | None,
    options: ReportOptions,
    window: Window | None = None,
    outcomes: OutcomeWords | None = None,
    acceptable_costs: bool = False,
    **asked: Unpack[CountOptions],
) -> ProductionRead:
    """Read production files, or another place; `window` overrides that of the options.

    Without a `taxonomy` the rubric is that of the package, or of two classes where all outcomes
    are pass or fail. `outcomes` are those of all tables of the command, decided together.
    `acceptable_costs` asks for the costs of acceptable runs; `asked` is as in `production_counts`,
    with `listed` for the classes to review.

    Raises
    ------
    InputError
        If a file cannot be read, or has traces of the reference set without `force`.
    LeftOutError
        If more runs are left out than the limit allows.
    CalibrationError
        If no run is left, or a cost is missing under `strict_cost`.
    """
    run_options = run_options_of(options, taxonomy, window, asked.get("gates"))
    place = place_of(paths)
    with place.open() as source:
        table = open_runs(source, run_options)
        outcomes = with_credit(outcomes or outcomes_of([table.outcomes], run_options), options)
        known = outcomes.taxonomy
        tables, reference = other_tables(known), reference_names()
        if "listed" in asked:
            asked["listed"] = known.follow_up
        if acceptable_costs:
            asked["unit_costs"] = known.acceptable
        counts = production_counts(
            table,
            outcomes,
            **asked
            | CountOptions(
                further=tables,
                watch=[trace_id for _, trace_id in reference],
                n_listed=SHOWN_RUNS,
                context_window=options.context_window,
            ),
        )
        n_reference = count_named(table, reference) if counts.watched else 0
        name, columns = source.name, columns_of(source)
    refuse_reference(name, n_reference, force=options.force)
    reading = reading_of_runs(counts)
    refuse(counts, reading, options)
    runs = runs_of(counts, known, stratify=options.stratify)
    reading, missing_outcome = bounded(reading, counts, runs, options)
    reading.check_limit(*FIGURES, missing_outcome=missing_outcome)
    return ProductionRead(
        runs=runs,
        runs_by={
            name: runs_of(counts, known, stratify=options.stratify, by=name)
            for name in counts.tasks_by
        },
        counts=counts,
        taxonomy=known,
        outcomes=outcomes,
        reading=reading,
        missing_outcome=missing_outcome,
        sources=tuple(_source(name, place.files) for name in place.names),
        columns=columns,
        tables=tables,
        n_reference=n_reference,
    )


def run_options_of(
    options: ReportOptions,
    taxonomy: Taxonomy | None,
    window: Window | None = None,
    gates: GateQuery | None = None,
) -> RunOptions:
    """Return how the rows of files are read."""
    since, until = options.window if window is None else window
    return RunOptions(
        taxonomy=with_ceilings(taxonomy or default_taxonomy(), options),
        reading=options.reading,
        is_named=taxonomy is not None,
        known_workflows_only=not options.any_workflow,
        timezone=options.timezone,
        since=since,
        until=until,
        further=() if gates is None else OF_GATES,
    )


def outcomes_of_places(
    places: Sequence[Place], taxonomy: Taxonomy | None, options: ReportOptions
) -> OutcomeWords:
    """Return what the outcomes of all tables of a command are taken as, decided together."""
    run_options, values = run_options_of(options, taxonomy, (None, None)), []
    for place in places:
        with place.open() as source:
            values.append(open_runs(source, run_options).outcomes)
    return outcomes_of(values, run_options)


def refuse(counts: ProductionCounts, reading: Reading, options: ReportOptions) -> None:
    """Refuse counts without any run, or with a missing cost under `strict_cost`."""
    if not counts.n_kept:
        windowed = options.since is not None or options.until is not None
        why = "none is in the window" if windowed else "the file holds no rows"
        why = reading.left_out_line or reading.folded_line or why
        raise NoRunsError(f"{reading.place}: no run is left ({why})")
    missing = counts.notes.no_cost
    if options.strict_cost and missing:
        raise CalibrationError(
            f"{reading.place}: {missing:,} of {counts.n_kept:,} runs have no cost (--strict-cost)"
        )


def bounded(
    reading: Reading, counts: ProductionCounts, runs: RunCounts, options: ReportOptions
) -> tuple[Reading, MissingOutcome | None]:
    """Return the reading with what the rate is if all runs left out failed, or all passed."""
    if counts.bounds is None:
        return reading, None
    rates = []
    for number, cells in enumerate(counts.bounds):
        gone = counts_of_frame(cells.assign(stratum=0), taxonomy=runs.taxonomy)
        resampling = options.resampling(BOUNDS_PART + number)
        rates.append(score_of(with_further_runs(runs, gone), **resampling))
    low, high = (rate.value or 0.0 for rate in rates)
    first, second = (rate.interval for rate in rates)
    missing = MissingOutcome(
        share=reading.left_out_share,
        low=low,
        high=high,
        limits=None if first is None or second is None else (first[0], second[1]),
    )
    return replace(reading, bounds=(low, high)), missing


def runs_of(
    counts: ProductionCounts, taxonomy: Taxonomy, *, stratify: bool, by: str | None = None
) -> RunCounts:
    """Return the counts as `RunCounts`; `by` selects counts of task groups by that key."""
    frame = counts.cells if counts.tasks is None else counts.tasks
    if by is not None and by in counts.tasks_by:
        frame = counts.tasks_by[by]
    strata: NDArray[np.int64] = np.asarray(frame["stratum"].cat.codes, dtype=np.int64)
    if stratify:
        if counts.tasks_grouped:
            raise InputError(
                f"{counts.n_tasks:,} tasks are resampled in random groups, which mix workflows: "
                "leave --stratify out, or the column of tasks (--column task_id=)"
            )
        workflows = frame["workflow"].cat
        strata = strata * len(workflows.categories) + workflows.codes.to_numpy()
    try:
        return counts_of_frame(
            frame.assign(stratum=strata),
            taxonomy=taxonomy,
            grouped_tasks=counts.n_tasks if counts.tasks_grouped and by is None else None,
        )
    except ValueError as error:
        raise InputError(f"the runs cannot be resampled: {error}") from error


def with_ceilings(taxonomy: Taxonomy, options: ReportOptions) -> Taxonomy:
    """Return a taxonomy with the ceilings of the options, and so its own fingerprint."""
    listed = {w.name: w for w in taxonomy.workflows}
    for name, usd in options.ceilings.items():
        listed[name] = replace(listed.get(name, Workflow(name=name)), ceiling_usd=usd)
    return replace(taxonomy, workflows=tuple(listed.values()))


def with_credit(outcomes: OutcomeWords, options: ReportOptions) -> OutcomeWords:
    """Return outcomes whose classes are worth what the options say."""
    taxonomy = outcomes.taxonomy
    for name in options.credit:
        if name not in taxonomy.names:
            raise InputError(f"--credit: {name!r:.80} is not one of {', '.join(taxonomy.names)}")
    classes = tuple(
        replace(one, credit=options.credit.get(one.name, one.credit)) for one in taxonomy.classes
    )
    return replace(outcomes, taxonomy=replace(taxonomy, classes=classes))


def left_out(rows: SetAsideRows) -> LeftOutRows:
    """Return rows that were set aside, with the first examples in words."""
    return LeftOutRows(
        reason=REASONS[rows.reason], n=rows.n, examples=tuple(map(_in_words, rows.examples))
    )


def _in_words(example: Example) -> str:
    place = "" if example.file is None else Path(example.file).name
    if example.row is not None:
        place += f" row {example.row}"
    parts = [place.strip(), example.trace_id or "", "" if example.value is None else example.value]
    return ": ".join(part for part in parts if part)


def reading_notes(notes: Notes, n: int, n_perturbed: int = 0) -> tuple[str, ...]:
    """Return notes on the rows: perturbed arms, missing values, columns under other names."""
    lines = [
        (notes.naive_times, f"times without a zone were read as {notes.timezone}"),
        (notes.no_time, "runs have no time and are in no week"),
        (notes.no_cost, "runs have no cost and carry no penalty"),
        (notes.no_units if notes.no_units < n else 0, "runs have no units; they count as one"),
        (notes.no_latency if notes.no_latency < n else 0, "runs have no latency"),
        (notes.bad_latency, "latencies are not numbers from 0 up and count as missing"),
        (
            notes.bad_lengths,
            "runs have steps, tokens or a context window that are no whole number from 0 up, "
            "which count as missing",
        ),
        (notes.no_task, "runs have no task and are a task of their own each"),
        (notes.bad_cost, "costs cannot be read and count as unknown"),
        (notes.bad_time, "times cannot be read; these runs are in no week"),
    ]
    found = [f"{arms_left_out(n_perturbed)}."] if n_perturbed else []
    found += [f"{count:,} {what}." for count, what in lines if count]
    return tuple(found)


def _source(path: str, files: Sequence[str]) -> SourceFile:
    file = Path(path)
    return source_file(file) if path in files and file.is_file() else SourceFile(name=path)


GIVEN = "outcomes taken as given, not calibrated"
NO_JUDGE = "none: the outcomes of the file are taken as given"

COLUMNS = (
    "trace_id", "workflow", "week", "started_at", "model", "task_id", "cost_usd", "latency_s",
)  # fmt: skip

MOST_NAMED = 4
OURS = {"at": "started_at", "task": "task_id", "cost": "cost_usd", "latency": "latency_s"}


def kind_of(place: Place) -> str:
    """Return what the outcomes of a place are, in words that a figure names its source by."""
    if not place.given_by:
        return GIVEN
    return f"outcomes of {place.given_by}, taken as given: {place.checked}"


# Groups by tag, and how many rarer tags are left out.
Tags = tuple[tuple[RateGroup, ...], int]


def tag_groups(place: Place, read: ProductionRead, options: ReportOptions) -> Tags:
    """Return the rate by tag, if runs have tags; a run counts under each of its tags."""
    if "tags" not in read.counts.notes.columns:
        return (), 0
    conflicts = any(rows.reason == "conflicting_duplicate" for rows in read.counts.set_aside)
    with place.open() as source:
        tagged = laid_out(open_runs(source, read.counts.recognised.options), conflicts=conflicts)
        if tagged is None:
            return (), 0
        counts = production_counts(tagged.table, read.outcomes)
    if not counts.n_kept:
        return (), tagged.left_out
    runs = runs_of(counts, read.taxonomy, stratify=options.stratify, by="model")
    found = rates_by(runs, "model", **options.resampling(5))
    groups = [rate_group(name, rate) for name, rate in found.items()]
    return tuple(sorted(groups, key=lambda g: (-g.n, g.name or ""))), tagged.left_out


def work_lists(read: ProductionRead) -> Iterator[WorkList]:
    """Yield the number of runs to review in each class, and the first of them."""
    if not read.taxonomy.follow_up:
        return
    if read.counts.listed is None:
        raise ValueError("the runs were read without those to review")
    listed = read.counts.listed.rename(columns=OURS)
    cells = read.counts.cells
    for outcome, goes_to in read.taxonomy.follow_up.items():
        own = cells[cells["outcome"] == read.taxonomy.place(outcome)]
        by_week = own.groupby("week", observed=True)["n"].sum().sort_index()
        yield work_list(
            outcome,
            int(own["n"].sum()),
            ((str(week), int(n)) for week, n in by_week.items()),
            work_items(listed[listed["outcome"] == outcome]),
            goes_to=goes_to,
        )


def passes(
    read: ProductionRead, options: ReportOptions, source: str
) -> tuple[tuple[Passes, ...], str]:
    """Return pass@k and pass^k of agents with repeated tasks, and a note on what is left out.

    Trials of several models or versions are never pooled. A run without a task is a task of its
    own.
    """
    runs = read.runs
    if read.counts.tasks_grouped:
        return (), MANY_TASKS
    if runs.task is None or not runs.repeats:
        return (), ""
    found: list[Passes] = []
    more = 0
    for number, (name, rows) in enumerate(_agents(runs)):
        own = runs.where(rows)
        if own.repeats and len(found) < MOST_AGENTS:
            found.append(_passes_of(name, own, options, number, source))
        else:
            more += own.repeats
    note = f"Left out: {counted(more, 'further agent')} with repeated trials." if more else ""
    return tuple(found), note


def _agents(runs: RunCounts) -> Iterator[tuple[str, BoolArray]]:
    """Yield each model and version that occurs, with its rows; those without either come last."""
    labels = [runs.by[name] for name in ("model", VERSION) if name in runs.by]
    codes = np.stack([one.codes for one in labels], axis=1)
    seen, agent = np.unique(np.where(codes < 0, MANY, codes), axis=0, return_inverse=True)
    for number, places in enumerate(seen.tolist()):
        known = [one.names[k] for one, k in zip(labels, places, strict=True) if k < MANY]
        yield " ".join(known) or UNKNOWN, agent.ravel() == number


def _passes_of(
    model: str, runs: RunCounts, options: ReportOptions, number: int, source: str
) -> Passes:
    """Return pass@k and pass^k of one model; a task weighs as its runs do on average."""
    tasks, place = np.unique(np.asarray(runs.task), return_inverse=True)
    n, c, weights = (
        np.bincount(place, weights=of)
        for of in (runs.runs, runs.runs * runs.success, runs.runs * runs.weight)
    )
    trials = Trials(tasks=tasks, n=n.astype(np.int64), c=np.rint(c).astype(np.int64))
    most = int(trials.n.max())
    return Passes(
        agent=model,
        source=source,
        n_tasks=tasks.size,
        most_trials=most,
        points=tuple(
            pass_over_tasks(
                trials,
                k,
                weights=weights / n,
                rng=np.random.default_rng([options.seed, PASS_PART, number]),
                n_resamples=options.n_resamples,
                confidence_level=options.confidence_level,
            )
            for k in KS
            if k <= most
        ),
    )


def report_on_files(
    paths: Place | Sequence[str],
    *,
    options: ReportOptions | None = None,
    taxonomy: Taxonomy | None = None,
    taxonomy_path: Path | None = None,
    missing: Mapping[str, str] = ADD,
) -> SuccessRateReport:
    """Report the Agent Success Rate of the runs in production files, or another place.

    Not calibrated: the outcomes are taken as given; the place says by whom they were given, where
    it knows. `taxonomy` None is that of the package; `taxonomy_path` is its file, for `asr verify`.
    `missing` says what would record each signal. Errors as `read_production`.
    """
    options = options or ReportOptions()
    with kept_open(place_of(paths)) as place:
        read = read_production(
            place,
            taxonomy=taxonomy,
            options=options,
            outcomes=_with_other_file(place, taxonomy, options),
            listed=(),
            lengths=True,
            ceiling_factors=CEILING_FACTORS,
        )
        options.check_targets(read.taxonomy)
        earlier = _earlier(place, taxonomy, options, read.outcomes)
        by_tag, tags_left_out = tag_groups(place, read, options)
    settings = options.settings(place.settings(), taxonomy_path)
    by = f"outcomes of {place.given_by}, as given" if place.given_by else "outcomes as given"
    counts, (trials, left_out_models) = read.counts, passes(read, options, by)
    earlier_inputs = None if earlier is None else earlier.inputs
    made = assemble(
        loaded_runs(read, options, earlier, missing=missing),
        kind=kind_of(place),
        target=_target(read, place),
        origin=_origin(read, earlier_inputs, options, settings, by_tag, place),
    )
    return replace(
        made,
        given_by=place.given_by,
        at_ceilings=_at_ceilings(read, made, options),
        by_tag=by_tag,
        tags_left_out=tags_left_out,
        tag_meanings=read.taxonomy.meanings(group.name or "" for group in by_tag),
        work_lists=tuple(work_lists(read)),
        set_aside=tuple(map(left_out, counts.set_aside)),
        warnings=tuple(_warnings(read)),
        notes=(
            *reading_notes(counts.notes, counts.n_kept, counts.n_perturbed),
            *([left_out_models] if left_out_models else []),
            *made.notes,
        ),
        passes=trials,
        marks=marks(read.n_reference, earlier.n_reference if earlier else 0),
        evaluation=evaluation_checks(_evaluation(read, made.origin, place)),
        reading=replace(read.reading, notes=(*read.reading.notes, *ceiling_notes(read.counts))),
        missing_outcome=read.missing_outcome,
        details={
            COUNTING: COUNTED_BY,
            "inputs": read.inputs,
            "earlier_inputs": earlier_inputs,
            "percentile_error": max(counts.cost.error, counts.latency.error),
            "tasks_grouped": counts.tasks_grouped,
        },
    )


def ceiling_notes(counts: ProductionCounts) -> tuple[str, ...]:
    """Say which workflows have no ceiling, and so no cost penalty, where costs are known."""
    without = {name: n for name, n in counts.notes.no_ceiling.items() if name != NO_WORKFLOW}
    n_costed = counts.n_kept - counts.notes.no_cost
    if not without or not n_costed:
        return ()
    names = ", ".join(list(without)[:MOST_NAMED])
    more = len(without) - MOST_NAMED
    names += f" and {more} more" if more > 0 else ""
    runs = counted(sum(without.values()), "run")
    option = f"--ceiling {next(iter(without))}=USD"
    return (f"No ceiling for {names} ({runs}): no cost penalty; {option} sets one.",)


def _with_other_file(
    place: Place, taxonomy: Taxonomy | None, options: ReportOptions
) -> OutcomeWords | None:
    """Return the outcomes of the runs and of the file they are compared with; None without one."""
    if options.compare_to in (None, PREVIOUS):
        return None
    return outcomes_of_places([place, place_of([str(options.compare_to)])], taxonomy, options)


def loaded_runs(
    read: ProductionRead,
    options: ReportOptions,
    earlier: ProductionRead | None = None,
    *,
    missing: Mapping[str, str] = ADD,
) -> LoadedRuns:
    """Return runs read from files as input of a report."""
    tasks = tasks_by_week(read.counts)
    before = None
    if earlier is not None:
        # Task numbers of two files are unrelated, so tasks cannot be matched.
        words = "the window before" if options.compare_to == PREVIOUS else str(options.compare_to)
        before = Earlier(runs=earlier.runs, words=words)
    return LoadedRuns(
        counts=read.counts,
        runs=read.runs,
        runs_by=read.runs_by,
        rate=rate_of_counts(read.runs, **options.resampling(0)),
        operation=Operation(
            sums=read.counts.signals,
            latency=Amounts(read.counts.latency.sums, tasks),
            cost=Amounts(read.counts.cost.sums, tasks),
            missing=missing,
            confidence_level=options.confidence_level,
        ),
        taxonomy=read.taxonomy,
        options=options,
        costed={by: read.costed(by) for by in ("", *read.runs_by)},
        n_tasks=read.counts.n_tasks,
        earlier=before,
        why_no_earlier="" if before else options.none_before("run"),
        lengths=read.counts.lengths,
    )


def _evaluation(read: ProductionRead, origin: Origin, place: Place) -> EvaluationFacts:
    notes = read.counts.notes
    graders: tuple[str, ...] | None = None
    if "verdict" in notes.columns:
        graders = ("the outcomes of the file", "a judge")
    if place.given_by:
        graders = (f"outcomes of {place.given_by}",)
    return EvaluationFacts(
        n_runs=read.counts.n_kept,
        n_tasks=read.counts.n_tasks,
        levels=notes.levels,
        edge=notes.edge,
        graders=graders,
        n_reference=read.n_reference,
        repeats="" if "frame" in place.settings() else repetition(origin),
    )


def _at_ceilings(
    read: ProductionRead, made: SuccessRateReport, options: ReportOptions
) -> tuple[AtOtherCeilings, ...]:
    """Return the rate at other ceilings; nothing where no ceiling binds a known cost."""
    if read.counts.cells["cost_known"].sum() == 0:
        return ()
    rates: dict[float, dict[str | None, Estimate]] = {
        1.0: {None: made.asr} | {group.name: group.asr for group in made.by_workflow if group.name}
    }
    for number, factor in enumerate(CEILING_FACTORS):
        counts = read.counts.at_ceiling(factor)
        whole, by_workflow = (
            runs_of(counts, read.taxonomy, stratify=options.stratify, by=by)
            for by in (None, "workflow")
        )
        labels = by_workflow.labels("workflow")
        parts = {name: by_workflow.where(labels.of(name)) for name in labels.seen}
        most = units_a_group(len(parts))
        resampling = options.resampling(CEILING_PART + number)
        rates[factor] = {None: score_of(whole, **resampling)} | {
            name: score_of(part, most_units=most, **resampling) for name, part in parts.items()
        }
    return at_ceilings(rates)


def _target(read: ProductionRead, place: Place) -> str:
    sample = "weighted" if "weight" in read.counts.notes.columns else "unweighted"
    runs = f"The mean score of runs like the {read.counts.n_kept:,}"
    if place.given_by:
        return (
            f"{runs} of the store that have such an outcome: the interval holds sampling error and "
            "not the errors of those who gave the outcomes."
        )
    return (
        f"{runs} of these files, {sample}: the outcomes are taken as given, so that the interval "
        "holds sampling error and not the errors of those who gave them."
    )


def _warnings(read: ProductionRead) -> Iterator[str]:
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
    tags: Sequence[RateGroup],
    place: Place,
) -> Origin:
    columns = read.counts.notes.columns
    sampling = "weights of the file (inverse inclusion probabilities)"
    if "weight" not in columns:
        of = "store with such an outcome" if place.given_by else "files"
        sampling = f"every run of the {of} counts the same"
    if "stratum" in columns:
        sampling += ", resampled within its strata"
    if options.stratify:
        sampling += ", resampled within workflows"
    parts = {
        "inputs": read.inputs,
        "earlier": earlier_inputs,
        "tags": [[g.name, g.n, round(g.asr.value or 0.0, DIGITS)] for g in tags],
        "taxonomy": read.taxonomy.fingerprint,
        "settings": {k: v for k, v in settings.items() if k not in PLACES},
        "version": package_version(),
    }
    return origin_of(
        options,
        read.taxonomy,
        sources=read.sources,
        settings=settings,
        sampling=sampling,
        judge=kind_of(place) if place.given_by else NO_JUDGE,
        fingerprint=settings_digest(parts),
    )


def _earlier(
    place: Place, taxonomy: Taxonomy | None, options: ReportOptions, outcomes: OutcomeWords
) -> ProductionRead | None:
    """Read the runs to compare with: another file, or the preceding window of equal length."""
    if options.compare_to is None:
        return None
    if options.compare_to != PREVIOUS:
        return read_production(
            [options.compare_to],
            taxonomy=taxonomy,
            options=options,
            window=(None, None),
            outcomes=outcomes,
        )
    before = options.window_before
    if before is None:
        return None
    try:
        return read_production(
            place, taxonomy=taxonomy, options=options, window=before, outcomes=outcomes
        )
    except NoRunsError:
        return None


def write_work_lists(
    paths: Place | Sequence[str],
    folder: Path,
    *,
    options: ReportOptions,
    taxonomy: Taxonomy | None = None,
) -> list[Path]:
    """Write one CSV file for each class to review, oldest run first, and return the files."""
    run_options = run_options_of(options, taxonomy)
    with place_of(paths).open() as source:
        table = open_runs(source, run_options)
        outcomes = with_credit(outcomes_of([table.outcomes], run_options), options)
        known = outcomes.taxonomy
        listed = list_runs(table, outcomes, classes=tuple(known.follow_up)).rename(columns=OURS)
    return write_work(
        folder, known, lambda outcome: work_csv(listed[listed["outcome"] == outcome], COLUMNS)
    )
