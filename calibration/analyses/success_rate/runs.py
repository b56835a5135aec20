"""Production files read for a report: counts, runs, what was read, and what must be refused."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.analyses.fingerprint import frames_digest
from calibration.analyses.reference_traces import reference_names, refuse_reference
from calibration.analyses.success_rate.report import (
    GOES_TO,
    SHOWN_RUNS,
    LeftOutRows,
    ReportOptions,
    SourceFile,
    other_tables,
)
from calibration.errors import CalibrationError, InputError
from calibration.records import OUTCOMES, Workflow
from calibration.runs import CreditTable, ProductionCounts, production_counts
from calibration.runs.columns import OF_GATES
from calibration.runs.listing import Reading, columns_of, count_named
from calibration.runs.results import Example, GateQuery, Notes, SetAsideRows
from calibration.runs.sources import Place, place_of
from calibration.statistics.estimate import IntArray
from calibration.success_rate.runs import RunCounts, counts_of_frame
from calibration.taxonomy import Taxonomy

# Beyond this the size of a file stands for it, and the counts made from it.
MOST_HASHED = 16_000_000

DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductionRead:
    """Production files as counts.

    Parameters
    ----------
    runs, runs_by : RunCounts, mapping of str to RunCounts
        By task where tasks repeat. Where random groups of tasks stand for them, those by ``week``,
        ``workflow`` and ``model`` are counted apart.
    counts : ProductionCounts
        Beside them: cost, latency, what was set aside.
    taxonomy : Taxonomy
        With the ceilings that were used.
    reading : Reading
        How rows were read, to look for single ones.
    sources : tuple of SourceFile
        The files.
    columns : tuple of str
        Columns of the files.
    tables : mapping of str to tuple
        Further tables of credit by name.
    n_reference : int
        Traces of the reference set among them, by force.
    """

    runs: RunCounts
    runs_by: Mapping[str, RunCounts]
    counts: ProductionCounts
    taxonomy: Taxonomy
    reading: Reading
    sources: tuple[SourceFile, ...]
    columns: tuple[str, ...]
    tables: Mapping[str, tuple[float, ...]]
    n_reference: int

    def by(self, name: str) -> RunCounts:
        """Return the runs counted by week, workflow or model."""
        return self.runs_by.get(name, self.runs)

    def costed(self, by: str) -> IntArray:
        """Return how many runs have a known cost in each row of what `by` returns."""
        counts = self.counts
        frame = counts.cells if counts.tasks is None else counts.tasks_by.get(by, counts.tasks)
        return frame["n_costed"].to_numpy(np.int64)

    @property
    def inputs(self) -> str:
        """SHA-256 over all counts: whatever engine or order of rows they came from.

        Sums are rounded first: threads add in another order each time.
        """
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
            # By week alone: which units fall into one group is the engine's affair.
            sums = counts.signals.table.drop(columns=["unit", "stratum"])
            by_week = sums.groupby("week", observed=True, dropna=False, sort=True).sum()
            frames["signals"] = by_week.reset_index()
        return frames_digest({name: frame.round(DIGITS) for name, frame in frames.items()})


def read_production(
    paths: Place | Sequence[str],
    *,
    taxonomy: Taxonomy,
    options: ReportOptions,
    window: tuple[datetime | None, datetime | None] | None = None,
    named_tasks: bool = False,
    gates: GateQuery | None = None,
) -> ProductionRead:
    """Read production files, or another place; `window` instead of that of the options.

    With `named_tasks` the tasks of two files can be matched; with `gates` the counts hold what
    gates need.

    Raises
    ------
    InputError
        If a file cannot be read, or traces of the reference set are in it and not forced.
    CalibrationError
        If no run is left, or a cost is missing under `strict_cost`.
    """
    known = with_ceilings(taxonomy, options.ceilings)
    since, until = options.window if window is None else window
    reading = Reading(
        taxonomy=known,
        columns=dict(options.columns),
        known_workflows_only=not options.any_workflow,
        timezone=options.timezone,
        since=since,
        until=until,
        further=() if gates is None else OF_GATES,
    )
    tables = other_tables(known)
    place = place_of(paths)
    with place.open() as source:
        columns = columns_of(source)
        reference = reference_names()
        counts = production_counts(
            source,
            taxonomy=known,
            columns=options.columns,
            further={name: CreditTable(credit=credit) for name, credit in tables.items()},
            known_workflows_only=not options.any_workflow,
            timezone=options.timezone,
            since=since,
            until=until,
            named_tasks=named_tasks,
            gates=gates,
            watch=[trace_id for _, trace_id in reference],
            listed=dict.fromkeys(GOES_TO, SHOWN_RUNS),
        )
        n_reference = count_named(source, reading, reference) if counts.watched else 0
        name = source.name
    refuse_reference(name, n_reference, force=options.force)
    refuse(counts, name, options)
    return ProductionRead(
        runs=runs_of(counts, known, stratify=options.stratify),
        runs_by={
            name: runs_of(counts, known, stratify=options.stratify, by=name)
            for name in counts.tasks_by
        },
        counts=counts,
        taxonomy=known,
        reading=reading,
        sources=tuple(_source(name, place.files) for name in place.names),
        columns=columns,
        tables=tables,
        n_reference=n_reference,
    )


def refuse(counts: ProductionCounts, name: str, options: ReportOptions) -> None:
    """Refuse counts that no report can be made from.

    Raises
    ------
    CalibrationError
        If no run is left, or a cost is missing under `strict_cost`.
    """
    if not counts.n_kept:
        why = "; ".join(f"{rows.n:,}: {rows.why}" for rows in counts.set_aside)
        windowed = options.since is not None or options.until is not None
        why = why or ("none lies in the window" if windowed else "the file holds no rows")
        raise CalibrationError(f"{name}: no run is left ({why}){hint(counts.set_aside)}")
    missing = counts.notes.no_cost
    if options.strict_cost and missing:
        raise CalibrationError(
            f"{name}: {missing:,} of {counts.n_kept:,} runs have no cost (--strict-cost)"
        )


def hint(set_aside: Sequence[SetAsideRows]) -> str:
    """Return what brings back rows that were set aside, where an option does."""
    if any(rows.reason == "unknown_workflow" for rows in set_aside):
        return "; --any-workflow keeps them, --ceiling NAME=USD makes a workflow known"
    return ""


def runs_of(
    counts: ProductionCounts, taxonomy: Taxonomy, *, stratify: bool, by: str | None = None
) -> RunCounts:
    """Return the counts as what the statistics take; `by` where groups of tasks are counted so."""
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
            credit=[taxonomy.credit[name] for name in OUTCOMES],
            rounded=not counts.exact,
            grouped_tasks=counts.n_tasks if counts.tasks_grouped and by is None else None,
        )
    except ValueError as error:
        raise InputError(f"the runs cannot be resampled: {error}") from error


def with_ceilings(taxonomy: Taxonomy, ceilings: Mapping[str, float]) -> Taxonomy:
    """Return a taxonomy with other ceilings; its fingerprint changes with them."""
    if not ceilings:
        return taxonomy
    listed = {w.name: w for w in taxonomy.workflows}
    for name, usd in ceilings.items():
        known = listed.get(name, Workflow(name=name))
        listed[name] = replace(known, ceiling_usd=usd)
    return replace(taxonomy, workflows=tuple(listed.values()))


def left_out(rows: SetAsideRows) -> LeftOutRows:
    """Return rows that were set aside with the first of them in words."""
    return LeftOutRows(reason=rows.why, n=rows.n, examples=tuple(map(_in_words, rows.examples)))


def _in_words(example: Example) -> str:
    place = "" if example.file is None else Path(example.file).name
    if example.row is not None:
        place += f" row {example.row}"
    parts = [place.strip(), example.trace_id or "", "" if example.value is None else example.value]
    return ": ".join(part for part in parts if part)


def said(notes: Notes, n: int) -> tuple[str, ...]:
    """Return what was kept but has to be said."""
    lines = [
        (notes.naive_times, f"times without a zone were read as {notes.timezone}"),
        (notes.no_time, "runs have no time and are in no week"),
        (notes.no_cost, "runs have no cost and carry no penalty"),
        (notes.no_units if notes.no_units < n else 0, "runs have no units; they count as one"),
        (notes.no_latency if notes.no_latency < n else 0, "runs have no latency"),
        (notes.bad_latency, "latencies are no number from 0 up and count as missing"),
        (notes.no_task, "runs have no task and are a task of their own each"),
    ]
    found = [f"{count:,} {what}." for count, what in lines if count]
    for workflow, count in notes.no_ceiling.items():
        found.append(f"{count:,} runs of {workflow} have no ceiling and carry no penalty.")
    for ours, theirs in notes.columns.items():
        if ours != theirs:
            found.append(f"{ours} was read from the column {theirs}.")
    return tuple(found)


def _source(path: str, files: Sequence[str]) -> SourceFile:
    file = Path(path)
    if path not in files or not file.is_file():
        return SourceFile(name=path)
    size = file.stat().st_size
    if size > MOST_HASHED:
        return SourceFile(name=path, size=size)
    with file.open("rb") as stream:
        return SourceFile(
            name=path, size=size, sha256=hashlib.file_digest(stream, "sha256").hexdigest()
        )
