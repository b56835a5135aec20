"""Gates on a store: the rate of its report, its labels, its judge, and the steps of its traces."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.fingerprint import settings_digest
from calibration.analyses.gate_analysis import GateAnalysis
from calibration.analyses.gate_labels import CHOSEN, judge_measured, reviewed
from calibration.analyses.report_options import ReportOptions
from calibration.analyses.store_rates import StoreRates
from calibration.analyses.store_report import report_with_work
from calibration.correction.calibrate import Design
from calibration.errors import InputError
from calibration.estimates import OK, Estimate
from calibration.gates.evaluate import evaluate
from calibration.gates.gate_file import read_gate_file
from calibration.gates.measurements import CostMeasured, Events, Measurements, WorkflowCost
from calibration.gates.settings import GateFile, Setting
from calibration.metrics.quantiles import quantile_by_task
from calibration.metrics.ratios import ratio_estimates
from calibration.metrics.sums import ratio_of_totals, square_sums
from calibration.production.gating import CORE, P95
from calibration.records import OUTCOMES
from calibration.store import Store

CORRUPTED = "data_corruption"
COMPLETE = OUTCOMES.index("complete")
OVER_PART = 24
NO_BASELINE = (
    "a store is not compared with a baseline; `asr gate FILE --baseline` compares files of runs"
)
NO_TIER = "the store knows no tiers: all tasks are core"
ONLY_ONE = (
    "labels of a sample of runs do not hold k trials of a task, and verdicts are not corrected for "
    "it; gate a file of labelled trials"
)
PARTIAL_TOO = (
    "with partial_plus_passes no corrected share is estimated; gate a file of labelled runs, or "
    "leave it out"
)
NO_STEPS = "no trace of the store has steps"
NO_TAG = "no label of the batch has a tag, so nobody looked"
NO_JUDGE = "the store holds no verdicts to hold against the labels"


def gate_store(
    store: Store,
    gates: Path,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    seed: int = 0,
    n_resamples: int = 1000,
) -> GateAnalysis:
    """Gate the traces that a batch was drawn from, with the rate that the report on it gives.

    What was not recorded is skipped with the reason. Traces of the reference set are never among
    them.

    Raises
    ------
    InputError
        If the gate file is none, or has ceilings, which a store has itself.
    CalibrationError
        If the batch cannot be reported on.
    """
    settings = read_gate_file(gates)
    if settings.ceilings:
        raise InputError(
            f"{gates}: [ceilings] are for files; the store has those of its workflows "
            "(asr report names them)"
        )
    options = ReportOptions(
        compare_to=None,
        seed=seed,
        n_resamples=n_resamples,
        confidence_level=settings.confidence_level,
    )
    made = report_with_work(store, batch_id, judge_id=judge_id, design=design, options=options)
    shown, rates, taxonomy = made.report, made.rates, made.loaded.taxonomy
    measured = _Measured(rates, settings, store.looping_ids())
    report = evaluate(measured.all(), settings)
    return GateAnalysis(
        report=report,
        settings=settings,
        asr=rates.headline,
        rates=rates.human,
        calibrated=rates.calibrated,
        kind=f"{shown.kind}; batch {made.loaded.batch.batch_id}, judge {rates.judge_id or 'none'}",
        n_runs=shown.n,
        n_tasks=measured.n_tasks,
        notes=(*shown.warnings, *shown.notes),
        marks=shown.marks,
        set_aside=shown.set_aside,
        baseline=None,
        comparable=None,
        taxonomy_version=taxonomy.version,
        taxonomy_fingerprint=taxonomy.fingerprint,
        seed=seed,
        fingerprint=settings_digest(
            {
                "kind": "gates of a store",
                "asr": shown.origin.fingerprint,
                "gates": [repr(gate) for gate in settings.gates],
                "partial_plus_passes": settings.partial_plus_passes,
                "measured": repr(measured.all()),
            }
        ),
    )


class _Measured:
    """What the gates ask for, each from the part of the store that holds it."""

    def __init__(self, found: StoreRates, settings: GateFile, looping: frozenset[str]) -> None:
        self.found, self.loaded, self.settings = found, found.loaded, settings
        self.looping, self.level = looping, settings.confidence_level
        traces = found.loaded.traces
        codes, keys = pd.factorize(traces["task_key"])
        self.task, self.n_tasks = codes.astype(np.int64), len(keys)

    def all(self) -> Measurements:
        found, rates = self.found, {"asr": self.found.headline}
        why_not = dict.fromkeys(("non_inferior", "regression"), NO_BASELINE)
        for gate in self.settings.gates:
            if gate.metric in ("pass_at", "pass_hat"):
                made = self._pass_rate(gate)
                if isinstance(made, str):
                    why_not[gate.name] = made
                else:
                    rates[gate.name] = made
        seconds = self._latency()
        if seconds is not None:
            rates["latency_p95"] = seconds
        review = None
        if self.found.design == "production" and self.loaded.is_sample:
            review = self._review()
        else:
            why_not["human_review"] = CHOSEN
        events = dict(self._events())
        for name, why in (("loops", NO_STEPS), (CORRUPTED, NO_TAG)):
            if name not in events:
                why_not[name] = why
        if found.judge is None:
            why_not["judge"] = NO_JUDGE
        return Measurements(
            rates=rates,
            events=events,
            review=review,
            judge=None if found.judge is None else judge_measured(found.judge.calibration.judge),
            cost=self._cost(),
            why_not=why_not,
        )

    def _pass_rate(self, gate: Setting) -> Estimate | str:
        """Return pass@1: the corrected share of complete runs, else that of the labelled ones."""
        if gate.k > 1:
            return ONLY_ONE
        if gate.tier not in ("", CORE):
            return NO_TIER
        if self.settings.partial_plus_passes:
            return PARTIAL_TOO
        made = self.found.class_shares[COMPLETE]
        kind = "corrected" if self.found.calibrated else "of the labelled sample"
        return replace(made, method=f"share of complete runs, {kind}, {made.method}")

    def _latency(self) -> Estimate | None:
        frame = self.loaded.traces
        known = frame["latency_s"].notna().to_numpy()
        if not known.any():
            return None
        values, task = frame["latency_s"].to_numpy(dtype=np.float64)[known], self.task[known]
        shared = np.unique(task).size < task.size
        return quantile_by_task(values, P95, task if shared else None, confidence_level=self.level)

    def _by_task(
        self, values: NDArray[np.generic] | None, task: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the sum over the runs of each task, or how many there are."""
        return np.bincount(task, weights=values, minlength=self.n_tasks).astype(np.float64)

    def _review(self) -> Estimate:
        loaded = self.loaded
        made = reviewed(loaded.human, loaded.weights, confidence_level=self.level)
        if loaded.open_disagreements and made.status == OK:
            status = f"provisional: {loaded.open_disagreements} open disagreements"
            return replace(made, status=status)
        return made

    def _events(self) -> Iterator[tuple[str, Events]]:
        frame = self.loaded.traces
        stepped = (frame["n_steps"] > 0).to_numpy()
        if stepped.any():
            looped = frame["trace_id"].isin(self.looping).to_numpy() & stepped
            yield (
                "loops",
                Events(
                    count=int(looped.sum()),
                    n=int(stepped.sum()),
                    n_tasks=int(np.unique(self.task[stepped]).size),
                ),
            )
        tags = self.loaded.labels["tags"].map(_tags)
        if tags.map(bool).any():
            labelled = self.loaded.labelled
            marked = set(
                self.loaded.labels.loc[tags.map(lambda said: CORRUPTED in said), "trace_id"]
            )
            yield (
                CORRUPTED,
                Events(
                    count=int(labelled["trace_id"].isin(marked).sum()),
                    n=len(labelled),
                    n_tasks=int(labelled["task_key"].nunique()),
                ),
            )

    def _cost(self) -> CostMeasured | None:
        frame = self.loaded.traces
        known = frame["cost_usd"].notna().to_numpy()
        if not known.any():
            return None
        costs = frame["cost_usd"].fillna(0.0).to_numpy(dtype=np.float64)
        units = np.where(known, frame["units"].to_numpy(dtype=np.float64), 0.0)
        ceilings = frame["ceiling_usd"].to_numpy(dtype=np.float64)
        flows = []
        for name in sorted(set(frame["workflow"])):
            rows = (frame["workflow"] == name).to_numpy()
            task = self.task[rows]
            sums = square_sums(self._by_task(costs[rows], task), self._by_task(units[rows], task))
            mean = ratio_of_totals(sums, confidence_level=self.level)
            ceiling = float(ceilings[rows][0])
            flows.append(
                WorkflowCost(
                    name=str(name),
                    ceiling=None if np.isnan(ceiling) else ceiling,
                    mean_per_unit=replace(mean, method=f"USD per unit, {mean.method}"),
                    n=int(rows.sum()),
                    n_known=int(known[rows].sum()),
                )
            )
        held = known & ~np.isnan(ceilings)
        over = held & (costs > np.nan_to_num(ceilings) * units)
        (share,) = ratio_estimates(
            over[:, None].astype(np.float64),
            held[:, None].astype(np.float64),
            clusters=self.task if self.n_tasks < len(frame) else None,
            rng=np.random.default_rng([self.found.options.seed, OVER_PART]),
            n_resamples=self.found.options.n_resamples,
            confidence_level=self.level,
        )
        return CostMeasured(workflows=tuple(flows), share_over=share)


def _tags(text: object) -> frozenset[str]:
    """Return the tags of a label."""
    found = json.loads(text) if isinstance(text, str) else []
    return frozenset(str(tag).casefold() for tag in found or [])
