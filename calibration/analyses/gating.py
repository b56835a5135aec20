"""Gates on files of runs: measure what they ask for, compare with a baseline, decide."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd

from calibration.analyses.fingerprint import frames_digest, package_version, settings_digest
from calibration.analyses.gate_analysis import GateAnalysis
from calibration.analyses.gate_baseline import baseline_data, read_baseline
from calibration.analyses.gate_changes import MOST_CATEGORIES, Against, against
from calibration.analyses.gate_comparable import Comparable
from calibration.analyses.gate_labels import CHOSEN, Labelled, hold_against_labels
from calibration.analyses.gate_rates import comparable_of, cost, events, latency, pass_rate
from calibration.analyses.production_reading import (
    DIGITS,
    ProductionRead,
    hint,
    left_out,
    read_production,
    said,
)
from calibration.analyses.reference_traces import marks
from calibration.analyses.report_options import ReportOptions
from calibration.analyses.verdict_files import LabelFile, read_human_labels
from calibration.correction.calibrate import Design
from calibration.errors import CalibrationError, InputError
from calibration.estimates import Estimate
from calibration.gates.evaluate import evaluate
from calibration.gates.gate_file import read_gate_file
from calibration.gates.measurements import Measurements
from calibration.gates.settings import GateFile
from calibration.metrics.asr import rate_of_counts
from calibration.metrics.pass_at_k import advice
from calibration.production.gate_results import GateQuery, GateTables
from calibration.production.places import Place, place_of
from calibration.taxonomy import Taxonomy, default_taxonomy

GIVEN = "outcomes as given, not calibrated"
HARMLESS = "identical_duplicate"
PASS_PART = 20


def gate_files(
    paths: Place | Sequence[str],
    gates: Path,
    *,
    options: ReportOptions | None = None,
    baseline: Path | None = None,
    labels: Path | None = None,
    design: Design = "production",
    taxonomy: Taxonomy | None = None,
    model: str | None = None,
) -> GateAnalysis:
    """Read production files as `asr report` does, a gate file and what goes with them, and decide.

    Parameters
    ----------
    paths : Place or sequence of str
        CSV, JSONL or Parquet files, or patterns of them; or another place.
    gates : Path
        The gate file.
    options : ReportOptions, optional
        How files are read and resampled; the gate file has its own confidence level, and its
        ceilings go before those of the taxonomy and behind those of the options.
    baseline : Path, optional
        What `--write-baseline` wrote.
    labels : Path, optional
        Human labels of some of the runs.
    design : str, default "production"
        Whether the labelled runs were drawn at random or chosen (``"reference"``).
    taxonomy : Taxonomy, optional
        That of the package when None.
    model : str, optional
        Look at the runs of this model only.

    Raises
    ------
    InputError
        If a file or an option is not what it must be, too many rows are set aside, or no run is
        left.
    """
    settings = read_gate_file(gates)
    options = options or ReportOptions()
    options = replace(
        options,
        confidence_level=settings.confidence_level,
        ceilings={**settings.ceilings, **options.ceilings},
    )
    before = None if baseline is None else read_baseline(baseline)
    labelled = None if labels is None else read_human_labels(labels)
    read = _read(
        paths,
        taxonomy or default_taxonomy(),
        options,
        GateQuery(model=model, trace_ids=() if labelled is None else tuple(labelled.rows)),
    )
    _refuse_set_aside(read, settings)
    return _Gating(read, settings, options).analysis(before, labelled, design)


def _read(
    paths: Place | Sequence[str], taxonomy: Taxonomy, options: ReportOptions, query: GateQuery
) -> ProductionRead:
    """Read the files; whatever leaves nothing to gate is bad input here."""
    try:
        return read_production(
            paths, taxonomy=taxonomy, options=options, named_tasks=True, gates=query
        )
    except InputError:
        raise
    except CalibrationError as error:
        if query.model is None:
            raise InputError(str(error)) from error
    # Without the model its name may be found among those that are there.
    every = read_production(paths, taxonomy=taxonomy, options=options)
    known = every.runs.by["model"].seen
    shown = ", ".join(known[:10]) or "none named"
    raise InputError(
        f"{place_of(paths).names[0]}: no run that counts is of the model {query.model!r:.80}; "
        f"there are {shown:.200}"
    )


def _refuse_set_aside(read: ProductionRead, settings: GateFile) -> None:
    """Refuse a file of which too much does not count: what is left may be the better part."""
    gone = [rows for rows in read.counts.set_aside if rows.reason != HARMLESS]
    n, n_read = sum(rows.n for rows in gone), read.counts.n_read
    if n > settings.max_set_aside * n_read:
        why = "; ".join(f"{rows.n:,}: {rows.why}" for rows in gone)
        examples = left_out(gone[0]).examples[:1]
        first = f"; the first: {examples[0]:.160}" if examples else ""
        raise InputError(
            f"{read.sources[0].name}: {n:,} of {n_read:,} rows were set aside ({why:.400}{first}); "
            f"max_set_aside in the gate file allows {100 * settings.max_set_aside:g} %{hint(gone)}"
        )


class _Gating:
    """The parts of the analysis, each from what the engine counted."""

    def __init__(self, read: ProductionRead, settings: GateFile, options: ReportOptions) -> None:
        tables = read.counts.for_gates
        if tables is None:
            raise TypeError("the files must be read with what gates need")
        self.read, self.settings, self.options = read, settings, options
        self.tables: GateTables = tables
        self.comparable = comparable_of(
            read,
            tables,
            partial_plus_passes=settings.partial_plus_passes,
            stratify=options.stratify,
        )
        self.rate = rate_of_counts(self.comparable.runs, **options.resampling(0))

    def analysis(
        self, before: Comparable | None, labels: LabelFile | None, design: Design
    ) -> GateAnalysis:
        read, options = self.read, self.options
        held = None
        if labels is not None:
            held = hold_against_labels(
                self.tables.outcomes,
                labels,
                design=design,
                confidence_level=options.confidence_level,
            )
        report = evaluate(self._measured(before, held), self.settings)
        aside = tuple(map(left_out, read.counts.set_aside))
        return GateAnalysis(
            report=report,
            settings=self.settings,
            asr=self.rate.asr,
            rates=self.rate,
            calibrated=False,
            kind=GIVEN,
            n_runs=read.counts.n_kept,
            n_tasks=self.tables.n_tasks,
            notes=tuple(self._notes(before)),
            marks=marks(read.n_reference),
            set_aside=aside + (() if held is None else held.set_aside),
            baseline=before,
            comparable=replace(
                self.comparable, failed=tuple(gate.name for gate in report.blocking)
            ),
            taxonomy_version=read.taxonomy.version,
            taxonomy_fingerprint=read.taxonomy.fingerprint,
            seed=options.seed,
            fingerprint=self._fingerprint(before, labels, design),
        )

    def _measured(self, before: Comparable | None, held: Labelled | None) -> Measurements:
        level = self.options.confidence_level
        rates, why_not = self._pass_rates()
        rates["asr"] = self.rate.asr
        seconds = latency(self.tables.latency, confidence_level=level)
        if seconds is not None:
            rates["latency_p95"] = seconds
        if held is not None and held.review is None:
            why_not["human_review"] = CHOSEN
        drop = [gate for gate in self.settings.gates if gate.metric == "regression"]
        versus = Against()
        if before is not None:
            most = drop[0].numbers["max_drop_pp"] / 100 if drop else 0.0
            versus = against(self.comparable, before, options=self.options, max_drop=most)
        return Measurements(
            rates=rates,
            events=events(self.tables),
            review=None if held is None else held.review,
            judge=None if held is None else held.judge,
            changes=versus.changes,
            by_category=versus.by_category,
            cost=cost(
                self.tables,
                self.read.taxonomy,
                self.rate.share_over_ceiling,
                confidence_level=level,
            ),
            why_not=why_not,
        )

    def _pass_rates(self) -> tuple[dict[str, Estimate], dict[str, str]]:
        rates: dict[str, Estimate] = {}
        why_not: dict[str, str] = {}
        for gate in self.settings.gates:
            if gate.metric not in ("pass_at", "pass_hat"):
                continue
            found = pass_rate(
                self.tables,
                gate,
                partial_plus_passes=self.settings.partial_plus_passes,
                # One stream for all: a gate more does not move the others.
                rng=np.random.default_rng([self.options.seed, PASS_PART]),
                n_resamples=self.options.n_resamples,
                confidence_level=self.options.confidence_level,
            )
            if isinstance(found, str):
                why_not[gate.name] = found
            else:
                rates[gate.name] = found
        return rates, why_not

    def _notes(self, before: Comparable | None) -> Iterator[str]:
        counts, rate = self.read.counts, self.rate
        notes = counts.notes
        if self.options.window == (None, None):
            # Without a window nothing here asks for the time of a run.
            notes = replace(notes, no_time=0, naive_times=0)
        yield from said(notes, counts.n_kept)
        if rate.n_missing_cost:
            low, high = rate.asr_range
            yield (
                f"ASR lies between {low:.3f} and {high:.3f}, depending on what the "
                f"{rate.n_missing_cost:,} runs without a cost or a ceiling cost."
            )
        if self.tables.repeat and advice(self.tables.n_tasks):
            yield advice(self.tables.n_tasks)
        if before is None:
            return
        tasks = self.comparable.tasks
        if not isinstance(tasks, str) and np.unique(tasks.categories).size > MOST_CATEGORIES:
            yield (
                f"more than {MOST_CATEGORIES} categories: they are not held against the baseline "
                "one by one; give a coarser column 'category'"
            )
        failed = sorted(set(before.failed) - {"regression", "non_inferior"})
        if failed:
            yield f"the baseline did not pass its own gates ({', '.join(failed):.300})"

    def _fingerprint(
        self, before: Comparable | None, labels: LabelFile | None, design: Design
    ) -> str:
        tables = self.tables
        frames = {"tasks": tables.tasks.fillna({"task": ""}).round(DIGITS)}
        if tables.latency is not None:
            frames["latency"] = tables.latency.table.round(DIGITS)
        rows = [] if labels is None else [asdict(r) for rows in labels.rows.values() for r in rows]
        return settings_digest(
            {
                "kind": "gates",
                "inputs": self.read.inputs,
                "tables": frames_digest(frames),
                "events": {name: asdict(found) for name, found in tables.events.items()},
                "taxonomy": self.read.taxonomy.fingerprint,
                "gates": [asdict(gate) for gate in self.settings.gates],
                "partial_plus_passes": self.settings.partial_plus_passes,
                "settings": self.options.settings({}, None),
                "baseline": None if before is None else settings_digest(baseline_data(before)),
                "labels": frames_digest({"labels": pd.DataFrame(rows).astype(str)}),
                "design": design,
                "version": package_version(),
            }
        )
