"""Measure what a gate file requires, on files or a store, and decide."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import Part
from calibration.analyses.fingerprint import (
    frames_digest,
    package_version,
    rounded_sums,
    settings_digest,
)
from calibration.analyses.gates.baseline import (
    MOST_CATEGORIES,
    Against,
    Comparable,
    TaskRates,
    against,
    baseline_data,
    read_baseline,
    tree_fingerprint,
)
from calibration.analyses.reference_traces import marks
from calibration.analyses.success_rate.assembly import (
    LoadedRuns,
    bad_values,
    weekly,
    while_open,
)
from calibration.analyses.success_rate.from_runs import (
    ProductionRead,
    left_out,
    read_production,
    reading_notes,
    runs_of,
)
from calibration.analyses.success_rate.from_runs import kind_of as kind_of_place
from calibration.analyses.success_rate.from_store import (
    SIMULATED,
    GivenRuns,
    StoreRates,
    given_runs,
    kind_of,
    loaded_runs,
    notes,
    origin,
    outcomes_of,
    rates_of_store,
    two_source,
    warnings,
)
from calibration.analyses.success_rate.from_store import left_out as left_out_of_store
from calibration.analyses.success_rate.report import LeftOutRows, Outcomes, ReportOptions
from calibration.errors import CalibrationError, InputError, LeftOutError
from calibration.gates.evaluate import (
    ONE_SIDED,
    CostMeasured,
    GateReport,
    JudgeMeasured,
    Measurements,
    OrderMeasured,
    TrendMeasured,
    WorkflowCost,
    evaluate,
)
from calibration.gates.gate_file import (
    Acceptance,
    GateFile,
    Setting,
    read_gate_file,
    with_accepted,
)
from calibration.judge_calibration.samples import Design, JudgeQuality, confusion, judge_quality
from calibration.records import NO_VERDICT
from calibration.reliability.tools import OrderRule
from calibration.runs.results import CORE, P95, GateQuery, GateTables, Latencies
from calibration.runs.sources import Place, place_of
from calibration.statistics.estimate import Estimate, FloatArray, not_estimable
from calibration.statistics.intervals import Events, wilson_share
from calibration.statistics.means import quantile_estimate, ratio_of_totals
from calibration.store import Store
from calibration.store.traces import perturbed
from calibration.success_rate.pass_at_k import Trials, advice, pass_over_tasks
from calibration.success_rate.rate import AgentSuccessRate, rate_of_counts
from calibration.success_rate.resampling import ratio_estimates
from calibration.success_rate.runs import RunCounts
from calibration.success_rate.trend import WeeklySeries, weekly_series
from calibration.tables import words
from calibration.tables.columns import FURTHER, OF_RUNS
from calibration.tables.labels import (
    OF_LABELS,
    LabelFile,
    LabelRow,
    LabelTable,
    read_labels,
    settled_labels,
)
from calibration.tables.reading import REASONS, Reading, ReadingOptions
from calibration.tables.rows import column_names
from calibration.tables.vocabulary import check_words, read_words
from calibration.taxonomy import Taxonomy
from calibration.text import named_batches

CHOSEN = "the labelled runs were chosen, not drawn at random (--design reference)"
# Roles of a table of labels that a table of runs does not have.
LABELS_ALONE = frozenset(OF_LABELS).difference(OF_RUNS, FURTHER)
NO_RUN = "labels of traces that are not among the runs"
EXAMPLES = 5
# Each limit of such an interval is a one-sided limit.
TWO_SIDED = 2 * ONE_SIDED - 1
MEAN_OVER_TASKS = "mean over tasks"
GIVEN = "outcomes as given, not calibrated"
NO_GATE = ("perturbation", "violations")
PASS_PART = 20
CORRUPTED = "data_corruption"
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
NO_JUDGE = "the store holds no verdicts to compare with the labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnalysis:
    """The gates of one set of runs, and everything a report on them names.

    `asr`, `rates` : the gated rate; the rates it splits into (on a store, of the labelled sample)
    `calibrated` : whether `asr` is corrected for the errors of a judge; `kind` names it in words
    `outcomes`, `given_by` : as in `SuccessRateReport`
    `marks` : notes that come before everything else
    `set_aside` : rows that do not count, by reason
    `baseline`, `comparable` : the run compared with; this run for later comparisons, None on a
        store
    """

    report: GateReport
    settings: GateFile
    asr: Estimate
    rates: AgentSuccessRate
    calibrated: bool
    kind: str
    n_runs: int
    n_tasks: int
    notes: tuple[str, ...]
    marks: tuple[str, ...]
    set_aside: tuple[LeftOutRows, ...]
    outcomes: Outcomes
    baseline: Comparable | None
    comparable: Comparable | None
    taxonomy_version: str
    taxonomy_fingerprint: str
    seed: int
    fingerprint: str
    given_by: str = ""
    reading: Reading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCheck:
    """Labelled runs: share of acceptable runs, quality of the outcomes, and labels left out."""

    review: Estimate | None = None
    judge: JudgeMeasured | None = None
    set_aside: tuple[LeftOutRows, ...] = ()


def compare_with_labels(
    outcomes: Mapping[str, str],
    labels: LabelFile,
    taxonomy: Taxonomy,
    *,
    design: Design,
    confidence_level: float,
) -> LabelCheck:
    """Compare the outcomes of runs, by trace, with human labels.

    The adjudicated class counts, otherwise each reviewer's share. The share of acceptable
    transcripts estimates that of production only for a random sample. Raises InputError if a label
    is no class, or no labelled trace is among the runs.
    """
    verdicts: list[int] = []
    shares: list[list[float]] = []
    weights: list[float | None] = []
    missing: list[str] = []
    for trace_id, rows in labels.rows.items():
        named = [row for row in rows if row.outcome]
        for row in named:
            if row.outcome not in taxonomy.names:
                raise InputError(
                    f"{labels.path}, line {row.line}, field 'outcome': {row.outcome!r:.80} "
                    f"is not one of {', '.join(taxonomy.names)}"
                )
        if trace_id not in outcomes:
            missing += [f"{Path(labels.path).name} line {row.line}: {trace_id}" for row in rows]
        elif named:
            verdicts.append(taxonomy.place(outcomes[trace_id]))
            shares.append(_shares(named, taxonomy))
            weights.append(named[0].weight)
    if not verdicts:
        raise InputError(
            f"{labels.path}: no labelled trace is among the runs; the trace_id must be the same"
        )
    if any(w is None for w in weights) and any(w is not None for w in weights):
        raise InputError(f"{labels.path}: some labels have a weight and some have none")
    human = np.array(shares)
    weight = None if weights[0] is None else np.array(weights, dtype=np.float64)
    table = confusion(
        human, np.array(verdicts, dtype=np.int64), n_verdicts=len(taxonomy.names), weights=weight
    )
    quality = judge_quality(table, confidence_level=confidence_level)
    return LabelCheck(
        review=(
            reviewed(human, weight, taxonomy, confidence_level=confidence_level)
            if design == "production"
            else None
        ),
        judge=judge_measured(quality, taxonomy.names),
        set_aside=tuple(_left_out(labels, missing)),
    )


def _left_out(labels: LabelFile, missing: list[str]) -> Iterator[LeftOutRows]:
    """Yield the rows that do not count: of no run, or set aside when the file was read."""
    if missing:
        yield LeftOutRows(reason=NO_RUN, n=len(missing), examples=tuple(missing[:EXAMPLES]))
    for rows in labels.left_out:
        line = None if rows.first is None else rows.first.line
        examples = () if line is None else (f"{Path(labels.path).name} line {line}",)
        yield LeftOutRows(reason=f"labels {REASONS[rows.code]}", n=rows.rows, examples=examples)


def judge_measured(quality: JudgeQuality, classes: Sequence[str]) -> JudgeMeasured:
    """Return the quality of a judge in the form that gates use."""
    return JudgeMeasured(
        agreement=quality.accuracy,
        kappa=quality.kappa,
        recall={name: one.recall for name, one in zip(classes, quality.per_class, strict=True)},
        n=quality.n,
    )


def _shares(rows: list[LabelRow], taxonomy: Taxonomy) -> list[float]:
    adjudicated = [row.outcome for row in rows if row.adjudicated][:1]
    classes = adjudicated or [row.outcome for row in rows]
    return [classes.count(name) / len(classes) for name in taxonomy.names]


def reviewed(
    human: FloatArray, weights: FloatArray | None, taxonomy: Taxonomy, *, confidence_level: float
) -> Estimate:
    """Return the share of acceptable transcripts; n is the effective number of them (Kish)."""
    weight = np.ones(len(human)) if weights is None else weights
    acceptable = human[:, list(map(taxonomy.place, taxonomy.acceptable))].sum(axis=1)
    share = float(weight @ acceptable / weight.sum())
    effective = float(weight.sum() ** 2 / (weight @ weight))
    return wilson_share(
        share * effective, effective, nothing="no labels", count=len(human),
        confidence_level=confidence_level,
    )  # fmt: skip


def passed_of(tables: GateTables, *, partial_plus_passes: bool) -> NDArray[np.int64]:
    """Return the number of successful trials of each task."""
    tasks = tables.tasks
    successes: NDArray[np.int64] = tasks["successes"].to_numpy(dtype=np.int64)
    return successes + tasks["partial"].to_numpy() if partial_plus_passes else successes


def mixed_words(task: str) -> str:
    """Return a sentence naming the task with trials of several models."""
    return (
        f"trials of task {task!r:.60} are of several models, which are never pooled: choose one "
        "with --model"
    )


def pass_rate(
    tables: GateTables,
    gate: Setting,
    *,
    partial_plus_passes: bool,
    rng: np.random.Generator,
    n_resamples: int,
    confidence_level: float,
) -> Estimate | str:
    """Return pass@k or pass^k of a gate's tier, or the reason for skipping it."""
    if tables.mixed is not None:
        return not_estimable(
            mixed_words(tables.mixed), method=MEAN_OVER_TASKS, confidence_level=confidence_level
        )
    tasks = tables.tasks
    inside = np.ones(len(tasks), dtype=np.bool_)
    if gate.tier and not tables.has_tier and gate.tier != CORE:
        return f"no column 'tier': all tasks are {CORE}"
    if gate.tier and tables.has_tier:
        inside = (tasks["tier"] == gate.tier).to_numpy()
    if not inside.any():
        tiers = ", ".join(sorted(set(tasks["tier"]))[:10])
        return f"no task is of tier {gate.tier!r:.60}; there are {tiers:.200}"
    weights = tasks["weight"].to_numpy(dtype=np.float64)
    n = tasks["n"].to_numpy(dtype=np.int64)
    passed = passed_of(tables, partial_plus_passes=partial_plus_passes)
    found = pass_over_tasks(
        Trials(tasks=np.flatnonzero(inside), n=n[inside], c=passed[inside]),
        gate.k,
        weights=weights[inside],
        like=tasks["like"].to_numpy(dtype=np.int64)[inside],
        rng=rng,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
    )
    return found.pass_at_k if gate.metric == "pass_at" else found.pass_hat_k


def measurements(
    tables: GateTables,
    taxonomy: Taxonomy,
    *,
    rates: Mapping[str, Estimate],
    share_over: Estimate,
    review: Estimate | None,
    judge: JudgeMeasured | None,
    trend: TrendMeasured | None,
    why_not: Mapping[str, str],
    versus: Against,
    confidence_level: float,
) -> Measurements:
    """Return all measurements for gates, from files or a store."""
    seconds = latency(tables.latency, confidence_level=confidence_level)
    return Measurements(
        rates={**rates, **({} if seconds is None else {"latency_p95": seconds})},
        events=tables.events,
        review=review,
        judge=judge,
        changes=versus.changes,
        by_category=versus.by_category,
        cost=cost(tables, taxonomy, share_over, confidence_level=confidence_level),
        trend=trend,
        why_not=why_not,
    )


def trend_of(series: WeeklySeries) -> TrendMeasured | None:
    """Return the CUSUM of a weekly series; None without weeks."""
    drop = series.drop
    if drop is None:
        return None
    path = Estimate(
        value=drop.value, interval=None, n=drop.n_weeks, method=drop.method, status=drop.status
    )
    why = f"below its baseline of {drop.baseline:.3f} since {drop.since}" if drop.alarm else ""
    return TrendMeasured(path=path, limit=drop.limit, why=why)


def latency(found: Latencies | None, *, confidence_level: float) -> Estimate | None:
    """Return the 95th percentile of the known latencies."""
    if found is None:
        return None
    made = quantile_estimate(
        found.table["latency"].to_numpy(dtype=np.float64),
        P95,
        weights=found.table["weight"].to_numpy(dtype=np.float64),
        n=found.n,
        below=found.below,
        confidence_level=confidence_level,
    )
    if not found.rounded:
        return made
    return replace(made, method=f"{made.method}, rounded up by less than .03 %")


def cost(
    tables: GateTables, taxonomy: Taxonomy, share_over: Estimate, *, confidence_level: float
) -> CostMeasured | None:
    """Return the mean cost per unit of every workflow, and the share of runs above ceilings."""
    if not any(n_known for _, n_known, _ in tables.cost.values()):
        return None
    ceilings = {w.name: w.ceiling_usd for w in taxonomy.workflows}
    flows = []
    for name, (n, n_known, sums) in tables.cost.items():
        mean = ratio_of_totals(sums, confidence_level=confidence_level)
        flows.append(
            WorkflowCost(
                name=name,
                ceiling=ceilings.get(name),
                mean_per_unit=replace(mean, method=f"USD per unit, {mean.method}"),
                n=n,
                n_known=n_known,
            )
        )
    return CostMeasured(workflows=tuple(flows), share_over=share_over)


def comparable_of(
    read: ProductionRead, tables: GateTables, *, partial_plus_passes: bool, stratify: bool
) -> Comparable:
    """Return the part of a run that later runs are compared with."""
    known = {w.name: w.ceiling_usd for w in read.taxonomy.workflows}
    tasks: TaskRates | str = f"trials of task {tables.mixed!r:.60} are of several models"
    if tables.mixed is None:
        tasks = _task_rates(tables, partial_plus_passes=partial_plus_passes)
    return Comparable(
        taxonomy=read.taxonomy.fingerprint,
        tree=tree_fingerprint(read.taxonomy),
        ceilings={name: known.get(name) for name in tables.cost},
        partial_plus_passes=partial_plus_passes,
        runs=runs_by_task(read, stratify=stratify),
        tasks=tasks,
    )


def runs_by_task(read: ProductionRead, *, stratify: bool) -> RunCounts:
    """Return the runs by workflow and task id: ids collide between workflows."""
    counts = read.counts
    if counts.tasks is None or counts.tasks_grouped:
        return read.runs
    frame = counts.tasks.assign(task=_key(counts.tasks["task"], counts.tasks["workflow"]))
    return runs_of(replace(counts, tasks=frame), read.taxonomy, stratify=stratify)


def _key(tasks: "pd.Series[str]", workflows: "pd.Series[str]") -> "pd.Series[str]":
    return tasks.astype(str) + "\n" + workflows.astype(str)


def _task_rates(tables: GateTables, *, partial_plus_passes: bool) -> TaskRates:
    tasks = tables.tasks
    names = None
    if tables.named:
        names = _key(tasks["task"], tasks["workflow"]).to_numpy(dtype=np.str_)
    category = "category" if tables.has_category else "workflow"
    return TaskRates(
        names=names,
        categories=tasks[category].to_numpy(dtype=np.str_),
        n=tasks["n"].to_numpy(dtype=np.int64),
        passed=passed_of(tables, partial_plus_passes=partial_plus_passes),
        like=tasks["like"].to_numpy(dtype=np.int64),
        weights=tasks["weight"].to_numpy(dtype=np.float64),
    )


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
    accepted: Sequence[Acceptance] = (),
    orders: tuple[OrderMeasured, ...] = (),
) -> GateAnalysis:
    """Read production files as `asr report` does, and decide the gates of a file.

    Parameters
    ----------
    paths : Place or sequence of str
    gates : Path
    options : ReportOptions, optional
        The gate file sets the confidence level; its ceilings override those of the taxonomy, and
        those of the options override both.
    baseline : Path, optional
        File of `--write-baseline`.
    labels : Path, optional
        Human labels of some of the runs, read as those of ``asr calibrate``. A column that the
        options name goes for the labels if only they know its role, or if they have it.
    design : str, default "production"
        Whether the labelled runs are a random sample or were chosen (``"reference"``).
    taxonomy : Taxonomy, optional
    model : str, optional
        Gate the runs of this model only.
    accepted : sequence of Acceptance, optional
        Decisions on should gates that may fail, over those of the gate file.
    orders : tuple of OrderMeasured, optional
        Rules of order in the steps of the runs, which a table does not have.

    Raises
    ------
    InputError
        If a file or option is invalid, too many rows are set aside, or no run is left.
    """
    settings = with_accepted(read_gate_file(gates), accepted)
    if settings.outcomes and not place_of(paths).given_by:
        raise InputError(
            f"{gates}: 'outcomes' is for a store; the outcomes of a table are those of its column"
        )
    options = options or ReportOptions()
    options = replace(
        options,
        confidence_level=settings.confidence_level,
        ceilings={**settings.ceilings, **options.ceilings},
        reading=_with_limit(options.reading, settings),
    )
    table = None if labels is None else read_labels(labels, _of_labels(options.reading, labels))
    of_runs = options if table is None else replace(options, reading=_of_runs(options, table))
    ids = () if table is None else tuple({row.trace_id: None for row in table.rows})
    read = _read(paths, taxonomy, of_runs, GateQuery(model=model, trace_ids=ids))
    labelled = None if table is None else _labels_in(table, read.taxonomy, options.reading)
    before = None if baseline is None else read_baseline(baseline, read.taxonomy)
    place = place_of(paths)
    return _Gating(read, settings, of_runs, place, orders).analysis(before, labelled, design)


def _of_runs(options: ReportOptions, labels: LabelTable) -> ReadingOptions:
    """Return the options without columns that only labels have; words may be those of labels."""
    reading = options.reading
    columns = {role: name for role, name in reading.columns.items() if role not in LABELS_ALONE}
    return replace(reading, columns=columns, elsewhere=frozenset(map(words.clean, labels.counts)))


def _of_labels(reading: ReadingOptions, labels: Path) -> ReadingOptions:
    """Return the options for the labels, with the columns that these have."""
    names = column_names(labels)
    columns = {
        role: name
        for role, name in reading.columns.items()
        if role in LABELS_ALONE or (role in OF_LABELS and name in names)
    }
    return ReadingOptions(
        columns=columns,
        encoding=reading.encoding,
        decimal=reading.decimal,
        dates=reading.dates,
    )


def _labels_in(table: LabelTable, taxonomy: Taxonomy, reading: ReadingOptions) -> LabelFile:
    """Return the labels that count in the classes of a rubric; raises if one is no class."""
    written = {words.clean(word) for word in table.counts}
    mapped = {word: into for word, into in reading.mapped.items() if words.clean(word) in written}
    options = ReadingOptions(mapped=mapped)
    if any(words.number_of(word) is not None for word in written):
        options = replace(options, scale=reading.scale, pass_at=reading.pass_at)
    taken_as = read_words(table, taxonomy, options)
    check_words(table, taken_as)
    return settled_labels(table, taken_as.taken_as)


def _read(
    paths: Place | Sequence[str],
    taxonomy: Taxonomy | None,
    options: ReportOptions,
    query: GateQuery,
) -> ProductionRead:
    """Read the files; raise InputError when nothing is left to gate."""
    try:
        return read_production(
            paths, taxonomy=taxonomy, options=options, named_tasks=True, gates=query
        )
    except (InputError, LeftOutError):
        raise
    except CalibrationError as error:
        if query.model is None:
            raise InputError(str(error)) from error
    # Reading all models gives the names for the error message.
    every = read_production(paths, taxonomy=taxonomy, options=options)
    known = every.runs.by["model"].seen
    shown = ", ".join(known[:10]) or "none named"
    raise InputError(
        f"{place_of(paths).names[0]}: no run that counts is of the model {query.model!r:.80}; "
        f"there are {shown:.200}"
    )


def _with_limit(reading: ReadingOptions, settings: GateFile) -> ReadingOptions:
    """Return how the runs are read, with the limit of the gate file where none was given."""
    if reading.max_left_out is not None:
        return reading
    return replace(reading, max_left_out=settings.max_left_out)


class _Gating:
    """The parts of the analysis, each from the counts of the engine."""

    def __init__(
        self,
        read: ProductionRead,
        settings: GateFile,
        options: ReportOptions,
        place: Place,
        orders: tuple[OrderMeasured, ...],
    ) -> None:
        tables = read.counts.for_gates
        if tables is None:
            raise TypeError("the files must be read with what gates need")
        self.read, self.settings, self.options = read, settings, options
        self.tables: GateTables = tables
        self.place, self.orders = place, orders
        self.comparable = comparable_of(
            read,
            tables,
            partial_plus_passes=settings.partial_plus_passes,
            stratify=options.stratify,
        )
        self.rate = rate_of_counts(self.comparable.runs, **options.resampling(0))

    def _checked(self, labels: LabelFile | None, design: Design) -> LabelCheck:
        if labels is None:
            return LabelCheck()
        return compare_with_labels(
            self.tables.outcomes,
            labels,
            self.read.taxonomy,
            design=design,
            confidence_level=self.options.confidence_level,
        )

    def _sided(
        self, before: Comparable | None, labels: LabelFile | None, design: Design
    ) -> Measurements:
        """Return the measurements with limits that are one-sided 95 % limits each."""
        options = replace(self.options, confidence_level=TWO_SIDED)
        twin = _Gating(self.read, self.settings, options, self.place, self.orders)
        return twin._measured(before, twin._checked(labels, design))

    def analysis(
        self, before: Comparable | None, labels: LabelFile | None, design: Design
    ) -> GateAnalysis:
        read, options = self.read, self.options
        checked = self._checked(labels, design)
        report = evaluate(
            self._measured(before, checked),
            self.settings,
            sided=self._sided(before, labels, design) if self.settings.by_limits else None,
        )
        aside = tuple(map(left_out, read.counts.set_aside))
        return GateAnalysis(
            report=report,
            settings=self.settings,
            asr=self.rate.asr,
            rates=self.rate,
            calibrated=False,
            kind=kind_of_place(self.place) if self.place.given_by else GIVEN,
            outcomes="taken as given",
            given_by=self.place.given_by,
            reading=read.reading,
            n_runs=read.counts.n_kept,
            n_tasks=self.tables.n_tasks,
            notes=tuple(self._notes(before)),
            marks=marks(read.n_reference),
            set_aside=aside + checked.set_aside,
            baseline=before,
            comparable=replace(
                self.comparable, failed=tuple(gate.name for gate in report.blocking)
            ),
            taxonomy_version=read.taxonomy.version,
            taxonomy_fingerprint=read.taxonomy.fingerprint,
            seed=options.seed,
            fingerprint=self._fingerprint(before, labels, design),
        )

    def _measured(self, before: Comparable | None, checked: LabelCheck) -> Measurements:
        level = self.options.confidence_level
        rates, why_not = self._pass_rates()
        if checked.judge is not None and checked.review is None:
            why_not["human_review"] = CHOSEN
        drop = [gate for gate in self.settings.gates if gate.metric == "regression"]
        versus = Against()
        if before is not None:
            most = drop[0].numbers["max_drop_pp"] / 100 if drop else 0.0
            versus = against(self.comparable, before, options=self.options, max_drop=most)
        share_over = self.rate.share_over_ceiling
        if not share_over.ok:
            why = "no run has both a cost and a ceiling: set ceilings under [ceilings]"
            share_over = not_estimable(why, method="share", confidence_level=level)
        measured = measurements(
            self.tables,
            self.read.taxonomy,
            rates=rates | {"asr": self.rate.asr},
            share_over=share_over,
            review=checked.review,
            judge=checked.judge,
            trend=self._trend(),
            why_not=why_not,
            versus=versus,
            confidence_level=level,
        )
        return replace(measured, orders=self.orders)

    def _trend(self) -> TrendMeasured | None:
        if "trend" not in {gate.metric for gate in self.settings.gates}:
            return None
        runs, options = self.read.by("week"), self.options
        return trend_of(weekly_series(runs, pooled=options.pooled, **options.resampling(1)))

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
                # The same stream for each: a further gate does not change the others.
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
            # Without a window, times of runs are not used.
            notes = replace(notes, no_time=0, naive_times=0)
        yield from reading_notes(notes, counts.n_kept, counts.n_perturbed)
        if rate.n_missing_cost:
            low, high = rate.asr_range
            yield (
                f"ASR is between {low:.3f} and {high:.3f}, depending on what the "
                f"{rate.n_missing_cost:,} runs without a cost or a ceiling cost."
            )
        if self.tables.repeat and advice(self.tables.n_tasks):
            yield advice(self.tables.n_tasks)
        yield from self.settings.notices
        if before is None:
            return
        tasks = self.comparable.tasks
        if not isinstance(tasks, str) and np.unique(tasks.categories).size > MOST_CATEGORIES:
            yield (
                f"more than {MOST_CATEGORIES} categories: they are not compared with the "
                "baseline one by one; give a coarser column 'category'"
            )
        failed = sorted(set(before.failed) - {"regression", "non_inferior"})
        if failed:
            yield f"the baseline did not pass its own gates ({', '.join(failed):.300})"

    def _fingerprint(
        self, before: Comparable | None, labels: LabelFile | None, design: Design
    ) -> str:
        tables = self.tables
        frames = {"tasks": rounded_sums(tables.tasks.fillna({"task": ""}))}
        if tables.latency is not None:
            frames["latency"] = rounded_sums(tables.latency.table)
        given = [] if labels is None else [r for rows in labels.rows.values() for r in rows]
        # As before labels had these: no gate depends on them.
        rows = [
            {name: value for name, value in asdict(row).items() if name not in NO_GATE}
            for row in given
        ]
        return settings_digest(
            {
                "kind": "gates",
                "inputs": self.read.inputs,
                "tables": frames_digest(frames),
                "events": {name: asdict(found) for name, found in tables.events.items()},
                "taxonomy": self.read.taxonomy.fingerprint,
                "gates": [asdict(gate) for gate in self.settings.gates],
                "partial_plus_passes": self.settings.partial_plus_passes,
                "settings": self.options.settings(
                    self.place.settings() if self.place.given_by else {}, None
                ),
                **({"orders": [asdict(of) for of in self.orders]} if self.orders else {}),
                "baseline": None if before is None else settings_digest(baseline_data(before)),
                "labels": frames_digest({"labels": pd.DataFrame(rows).astype(str)}),
                "design": design,
                "version": package_version(),
                **_decisions(self.settings),
            }
        )


def gated_runs(store: Store, gates: Path, options: ReportOptions) -> GivenRuns | None:
    """Return the runs of a store whose outcomes the options or the gate file take as given."""
    outcomes = read_gate_file(gates).outcomes
    if not outcomes:
        return given_runs(store, options)
    if options.judge_id not in (None, outcomes):
        raise InputError(
            f"{gates}: 'outcomes' is {outcomes!r:.80} and --judge {options.judge_id!r:.80}; leave "
            "one out"
        )
    return given_runs(store, replace(options, judge_id=outcomes, as_given=True))


def gate_given(store: Store, given: GivenRuns, gates: Path, **asked: Any) -> GateAnalysis:
    """Gate runs of a store whose outcomes are taken as given, as `gate_files` gates a table.

    `asked` are the further arguments of `gate_files`. Rules of order are looked for in the steps.
    """
    place, (since, until) = given.place, given.options.window
    inside = Part(since=since, until=until).of(place.traces)
    inside &= ~perturbed(place.traces).to_numpy(dtype=bool)
    if asked.get("model") is not None:
        inside &= (place.traces["model"] == asked["model"]).to_numpy(dtype=bool)
    told = place.outcomes.loc[place.outcomes["outcome"] != NO_VERDICT, "trace_id"]
    ids = place.traces.loc[inside & place.traces["trace_id"].isin(told), "trace_id"]
    made = gate_files(
        place,
        gates,
        options=given.options,
        taxonomy=place.taxonomy,
        orders=_orders(store, ids, _rules(gates, read_gate_file(gates))),
        **asked,
    )
    return replace(
        made, marks=(*given.marks, *made.marks), set_aside=given.left_out(made.set_aside)
    )


def gate_store(
    store: Store,
    gates: Path,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    as_given: bool = False,
    design: Design = "production",
    seed: int = 0,
    n_resamples: int = 1000,
    accepted: Sequence[Acceptance] = (),
) -> GateAnalysis:
    """Gate the traces that a batch was drawn from, with the rate of the batch's report.

    Outcomes that came with the runs are gated as `gate_given` where `given_runs` takes them, or
    where the gate file names them. Measurements that were not recorded are skipped with the reason.
    Reference traces are excluded. Raises InputError if the gate file is invalid, or has ceilings,
    which a store has itself; CalibrationError if the batch cannot be reported on.
    """
    settings = with_accepted(read_gate_file(gates), accepted)
    options = ReportOptions(
        batch_id=batch_id,
        judge_id=judge_id,
        as_given=as_given,
        design=design,
        compare_to=None,
        seed=seed,
        n_resamples=n_resamples,
        confidence_level=settings.confidence_level,
    )
    given = gated_runs(store, gates, options)
    if given is not None:
        return gate_given(store, given, gates, accepted=accepted)
    if settings.ceilings:
        raise InputError(
            f"{gates}: [ceilings] are for files; the store has those of its workflows "
            "(asr report names them)"
        )
    rules = _rules(gates, settings)
    rates = rates_of_store(store, options)
    runs = loaded_runs(store, rates, gates=GateQuery())
    counts, loaded, taxonomy = runs.counts, rates.loaded, rates.loaded.taxonomy
    tables = counts.for_gates
    if tables is None:
        raise TypeError("the store must be read with what gates need")
    # Only reviewers who gave tags looked for corruption.
    events = {name: found for name, found in tables.events.items() if name != CORRUPTED}
    tables = replace(tables, events=events | _corrupted(loaded))
    measured = replace(
        _of_store(rates, runs, tables, settings),
        orders=_orders(store, loaded.traces["trace_id"], rules),
    )
    return GateAnalysis(
        report=evaluate(measured, settings, sided=_sided(store, rates, runs, tables, settings)),
        settings=settings,
        asr=rates.headline,
        rates=rates.human,
        calibrated=rates.calibrated,
        kind=(
            f"{kind_of(rates)}; {named_batches(loaded.provenance.batch_id)}, judge "
            f"{rates.judge_id or 'none'}"
        ),
        n_runs=counts.n_kept,
        n_tasks=tables.n_tasks,
        notes=(
            *warnings(rates, two_source(rates)),
            *notes(rates),
            *bad_values(counts.signals),
            *settings.notices,
        ),
        marks=(SIMULATED,) if loaded.simulated else (),
        set_aside=tuple(left_out_of_store(store, rates, counts)),
        outcomes=outcomes_of(rates),
        baseline=None,
        comparable=None,
        taxonomy_version=taxonomy.version,
        taxonomy_fingerprint=taxonomy.fingerprint,
        seed=seed,
        fingerprint=settings_digest(
            {
                "kind": "gates of a store",
                "asr": origin(rates).fingerprint,
                "gates": [repr(gate) for gate in settings.gates],
                "partial_plus_passes": settings.partial_plus_passes,
                "events": {name: asdict(found) for name, found in tables.events.items()},
                **({"orders": [asdict(of) for of in measured.orders]} if rules else {}),
                **_decisions(settings),
            }
        ),
    )


def _decisions(settings: GateFile) -> dict[str, list[str]]:
    """Return the accepted gates for a fingerprint, which is as before without any."""
    return {"accepted": [repr(one) for one in settings.accepted]} if settings.accepted else {}


def _of_store(
    found: StoreRates, runs: LoadedRuns, tables: GateTables, settings: GateFile
) -> Measurements:
    """Return the measurements for gates, each from the part of the store that holds it."""
    rates, loaded, taxonomy = {"asr": found.headline}, found.loaded, runs.taxonomy
    why_not = dict.fromkeys(("non_inferior", "regression"), NO_BASELINE)
    for gate in settings.gates:
        if gate.metric in ("pass_at", "pass_hat"):
            made = _pass_rate_of_store(found, gate, settings)
            if isinstance(made, str):
                why_not[gate.name] = made
            else:
                rates[gate.name] = made
    review = None
    if found.options.design == "production" and loaded.is_sample:
        review = while_open(
            reviewed(
                loaded.human, loaded.weights, taxonomy, confidence_level=settings.confidence_level
            ),
            loaded.open_disagreements,
        )
    else:
        why_not["human_review"] = CHOSEN
    for name, why in (("loops", NO_STEPS), (CORRUPTED, NO_TAG)):
        if name not in tables.events:
            why_not[name] = why
    if found.judge is None:
        why_not["judge"] = NO_JUDGE
    return measurements(
        tables,
        taxonomy,
        rates=rates,
        share_over=_share_over(found),
        review=review,
        judge=None
        if found.judge is None
        else judge_measured(found.judge.calibration.judge, taxonomy.names),
        trend=trend_of(weekly(runs)),
        why_not=why_not,
        versus=Against(),
        confidence_level=settings.confidence_level,
    )


def _sided(
    store: Store, found: StoreRates, runs: LoadedRuns, tables: GateTables, settings: GateFile
) -> Measurements | None:
    """Return the measurements with one-sided limits; None where no gate needs them."""
    if not settings.by_limits:
        return None
    twin = rates_of_store(store, replace(found.options, confidence_level=TWO_SIDED))
    return _of_store(twin, runs, tables, replace(settings, confidence_level=TWO_SIDED))


def _pass_rate_of_store(found: StoreRates, gate: Setting, settings: GateFile) -> Estimate | str:
    """Return pass@1: the corrected share of complete runs, otherwise that of the labelled runs."""
    if gate.k > 1:
        return ONLY_ONE
    if gate.tier not in ("", CORE):
        return NO_TIER
    if settings.partial_plus_passes:
        return PARTIAL_TOO
    taxonomy = found.loaded.taxonomy
    made = found.class_shares[taxonomy.place(taxonomy.success)]
    kind = "corrected" if found.calibrated else "of the labelled sample"
    return replace(made, method=f"share of complete runs, {kind}, {made.method}")


def _corrupted(loaded: CalibrationData) -> dict[str, Events]:
    """Return the labelled traces tagged as corrupted; none if no label has a tag."""
    tags = loaded.labels["tags"].map(_tags)
    if not tags.map(bool).any():
        return {}
    marked = set(loaded.labels.loc[tags.map(lambda of_label: CORRUPTED in of_label), "trace_id"])
    return {
        CORRUPTED: Events(
            count=int(loaded.labelled["trace_id"].isin(marked).sum()),
            n=len(loaded.labelled),
            n_tasks=int(loaded.labelled["task_key"].nunique()),
        )
    }


def _rules(gates: Path, settings: GateFile) -> tuple[OrderRule, ...]:
    try:
        return tuple(OrderRule(first=first, later=later) for first, later in settings.before)
    except ValueError as error:
        raise InputError(f"{gates}: 'before': {error}") from error


def _orders(
    store: Store, trace_ids: "pd.Series[str]", rules: Sequence[OrderRule]
) -> tuple[OrderMeasured, ...]:
    """Return how many of the gated runs break each rule of order; runs without steps tell none."""
    if not rules:
        return ()
    frame = store.repeated_frame()
    frame = frame[frame["trace_id"].isin(trace_ids)]
    runs = [
        (str(trace_id), str(task), actions)
        for trace_id, task, actions in zip(
            frame["trace_id"], frame["task_key"], frame["actions"], strict=True
        )
        if isinstance(actions, list)
    ]
    found = []
    for rule in rules:
        told = [(name, task, rule.broken_at(actions)) for name, task, actions in runs]
        applies = [(name, task, places) for name, task, places in told if places is not None]
        broken = [name for name, _, places in applies if places]
        events = Events(
            count=len(broken), n=len(applies), n_tasks=len({task for _, task, _ in applies})
        )
        found.append(OrderMeasured(rule=rule.name, events=events, first=tuple(broken[:EXAMPLES])))
    return tuple(found)


def _share_over(found: StoreRates) -> Estimate:
    """Return the share above the ceiling among all traces with a cost and a ceiling."""
    traces = found.loaded.traces
    times = traces["cost_usd"] / (traces["ceiling_usd"] * traces["units"])
    task = pd.factorize(traces["task_key"])[0].astype(np.int64)
    (share,) = ratio_estimates(
        np.asarray(times > 1, dtype=np.float64)[:, None],
        np.asarray(times.notna(), dtype=np.float64)[:, None],
        clusters=task if np.unique(task).size < task.size else None,
        rng=np.random.default_rng([found.options.seed, OVER_PART]),
        n_resamples=found.options.n_resamples,
        confidence_level=found.options.confidence_level,
    )
    return share


def _tags(text: object) -> frozenset[str]:
    """Return the tags of a label."""
    found = json.loads(text) if isinstance(text, str) else []
    return frozenset(str(tag).casefold() for tag in found or [])
