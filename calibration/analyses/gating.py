"""Gates on a file of runs: measure what they ask for, compare with a baseline, decide."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.gate_baseline import Comparable, read_baseline
from calibration.analyses.gate_changes import MOST_CATEGORIES, Against, against, categories_of
from calibration.analyses.gate_comparable import comparable_of
from calibration.analyses.gate_labels import CHOSEN, Labelled, hold_against_labels
from calibration.analyses.gate_rates import (
    ceilings_of,
    cost,
    events,
    latency,
    pass_rate,
    rate,
    subset,
    trials_of,
)
from calibration.analyses.gate_runs import FloatArray, Runs, read_runs
from calibration.analyses.verdict_files import LabelFile, read_human_labels
from calibration.correction.calibrate import Design
from calibration.errors import InputError
from calibration.estimates import Estimate
from calibration.gates.evaluate import evaluate
from calibration.gates.gate_file import read_gate_file
from calibration.gates.measurements import Measurements
from calibration.gates.results import GateReport
from calibration.gates.settings import GateFile
from calibration.metrics.asr import AgentSuccessRate
from calibration.metrics.pass_at_k import Trials, advice
from calibration.records import SetAside
from calibration.taxonomy import Taxonomy, default_taxonomy, load_taxonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnalysis:
    """The gates of one file of runs, and everything a report on them names."""

    report: GateReport
    settings: GateFile
    asr: AgentSuccessRate
    comparable: Comparable
    baseline: Comparable | None
    n_runs: int
    n_tasks: int
    notes: tuple[str, ...]
    set_aside: tuple[SetAside, ...]
    taxonomy_version: str
    seed: int
    fingerprint: str


def gate_file(
    path: Path,
    gates: Path,
    *,
    baseline: Path | None = None,
    labels: Path | None = None,
    design: Design = "production",
    taxonomy: Path | None = None,
    model: str | None = None,
    seed: int = 0,
) -> GateAnalysis:
    """Read a file of runs, a gate file, and what goes with them, and decide the gates.

    Raises
    ------
    InputError
        If a file is not what it must be.
    """
    settings = read_gate_file(gates)
    runs, set_aside = read_runs(path)
    if model is not None:
        keep = np.array([name == model for name in runs.models])
        if not keep.any():
            shown = ", ".join(sorted(set(runs.models))[:10])
            raise InputError(
                f"{path}: no run is of the model {model!r:.80}; there are {shown:.200}"
            )
        runs = subset(runs, keep)
    return gate_runs(
        runs,
        settings,
        taxonomy=default_taxonomy() if taxonomy is None else load_taxonomy(taxonomy),
        baseline=None if baseline is None else read_baseline(baseline),
        labels=None if labels is None else read_human_labels(labels),
        design=design,
        set_aside=set_aside,
        seed=seed,
    )


def gate_runs(
    runs: Runs,
    settings: GateFile,
    *,
    taxonomy: Taxonomy,
    baseline: Comparable | None = None,
    labels: LabelFile | None = None,
    design: Design = "production",
    set_aside: tuple[SetAside, ...] = (),
    seed: int = 0,
) -> GateAnalysis:
    """Measure what the gates ask for and decide them."""
    rng = np.random.default_rng(seed)
    level = settings.confidence_level
    ceilings = ceilings_of(runs, taxonomy, dict(settings.ceilings))
    asr = rate(runs, taxonomy, ceilings, rng=rng, confidence_level=level)
    trials = trials_of(runs, partial_plus_passes=settings.partial_plus_passes)
    comparable = comparable_of(runs, settings, taxonomy, ceilings, asr.asr, trials, rng)
    held = None
    if labels is not None:
        held = hold_against_labels(runs, labels, design=design, confidence_level=level)
    versus = Against()
    if baseline is not None:
        versus = against(comparable, baseline, confidence_level=level)
    measured = _measure(runs, settings, ceilings, asr, trials, held, versus, rng)
    report = evaluate(measured, settings)
    return GateAnalysis(
        report=report,
        settings=settings,
        asr=asr,
        comparable=replace(comparable, failed=tuple(gate.name for gate in report.blocking)),
        baseline=baseline,
        n_runs=runs.n,
        n_tasks=len(runs.task_names),
        notes=_notes(runs, asr, baseline, len(runs.task_names)),
        set_aside=set_aside + (() if held is None else held.set_aside),
        taxonomy_version=taxonomy.version,
        seed=seed,
        fingerprint=_fingerprint(runs, settings, comparable, baseline, labels, design, seed),
    )


def _measure(
    runs: Runs,
    settings: GateFile,
    ceilings: FloatArray,
    asr: AgentSuccessRate,
    trials: Trials,
    held: Labelled | None,
    versus: Against,
    rng: np.random.Generator,
) -> Measurements:
    level = settings.confidence_level
    rates: dict[str, Estimate] = {"asr": asr.asr}
    why_not: dict[str, str] = {}
    for gate in settings.gates:
        if gate.metric in ("pass_at", "pass_hat"):
            found = pass_rate(runs, trials, gate, rng=rng, confidence_level=level)
            if isinstance(found, str):
                why_not[gate.name] = found
            else:
                rates[gate.name] = found
    seconds = latency(runs, rng=rng, confidence_level=level)
    if seconds is not None:
        rates["latency_p95"] = seconds
    if held is not None and held.review is None:
        why_not["human_review"] = CHOSEN
    found_events = {
        name: counted
        for name, happened in (("loops", runs.loops), ("data_corruption", runs.corrupted))
        if (counted := events(runs, happened)) is not None
    }
    return Measurements(
        rates=rates,
        events=found_events,
        review=None if held is None else held.review,
        judge=None if held is None else held.judge,
        changes=versus.changes,
        by_category=versus.by_category,
        cost=cost(runs, ceilings, asr.share_over_ceiling, rng=rng, confidence_level=level),
        why_not=why_not,
    )


def _notes(
    runs: Runs, asr: AgentSuccessRate, baseline: Comparable | None, n_tasks: int
) -> tuple[str, ...]:
    notes = []
    if asr.n_missing_cost:
        low, high = asr.asr_range
        notes.append(
            f"{asr.n_missing_cost:,} runs have no cost or no ceiling and carry no penalty; ASR "
            f"lies between {low:.3f} and {high:.3f}, depending on what they cost"
        )
    if runs.repeat and advice(n_tasks):
        notes.append(advice(n_tasks))
    if baseline is not None and len(set(categories_of(runs))) > MOST_CATEGORIES:
        notes.append(
            f"more than {MOST_CATEGORIES} categories: they are not held against the baseline one "
            "by one; give a coarser column 'category'"
        )
    others = {"regression", "non_inferior"}
    if baseline is not None and set(baseline.failed) - others:
        failed = ", ".join(sorted(set(baseline.failed) - others))
        notes.append(f"the baseline did not pass its own gates ({failed})")
    return tuple(notes)


def _fingerprint(
    runs: Runs,
    settings: GateFile,
    comparable: Comparable,
    baseline: Comparable | None,
    labels: LabelFile | None,
    design: Design,
    seed: int,
) -> str:
    columns: Mapping[str, object] = {
        name: getattr(runs, name)
        for name in (
            "trace_ids", "workflows", "models", "outcomes", "tasks", "costs", "latencies", "units",
            "weights", "strata", "tiers", "categories", "loops", "corrupted",
        )
        if getattr(runs, name) is not None
    }  # fmt: skip
    names = pd.DataFrame(runs.task_names, columns=["workflow", "task"])
    said = [] if labels is None else [asdict(row) for r in labels.rows.values() for row in r]
    return fingerprint(
        taxonomy=comparable.taxonomy,
        settings={
            "gates": [asdict(gate) for gate in settings.gates],
            "confidence_level": settings.confidence_level,
            "partial_plus_passes": settings.partial_plus_passes,
            "baseline": None if baseline is None else asdict(baseline),
            "labels": said,
            "design": design,
            "seed": seed,
        },
        runs=pd.DataFrame(columns),
        tasks=names,
    )
