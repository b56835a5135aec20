"""The success-rate report on a store."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.agreement.coefficients import KRIPPENDORFF_ALPHA
from calibration.agreement.coefficients import estimate as estimate_agreement
from calibration.agreement.ratings import count_patterns
from calibration.analyses.evidence.data import UNKNOWN, CalibrationData, group_names
from calibration.analyses.evidence.from_store import (
    INPUT_COLUMNS,
    Part,
    all_simulated,
    drawn_frame,
    human_frame,
    judges_behind,
    kept_traces,
    known_costs,
    labelled_traces,
    load_batch,
    source_judge,
    source_judges,
    started,
    trace_penalties,
    with_judge,
    words_of_judge,
)
from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge.calibration import (
    CalibrationOptions,
    JudgeCalibration,
    audited,
    calibrate_judge,
    rate_of_other,
)
from calibration.analyses.judge.groups import COLUMN, GroupRow, group_rows, net_rates
from calibration.analyses.success_rate.assembly import (
    KS,
    MOST_AGENTS,
    Amounts,
    Earlier,
    LoadedRuns,
    Operation,
    assemble,
    at_ceilings,
    at_weights,
    rate_group,
    tasks_by_week,
    while_open,
    work_csv,
    work_items,
    work_list,
)
from calibration.analyses.success_rate.evaluation import EvaluationFacts, evaluation_checks
from calibration.analyses.success_rate.from_runs import report_on_files
from calibration.analyses.success_rate.report import (
    CEILING_FACTORS,
    LATER,
    OF_REFERENCE,
    PERTURBED_ARMS,
    PREVIOUS,
    UNDATED,
    AtOtherCeilings,
    AtOtherWeights,
    JudgedRates,
    LeftOutRows,
    Origin,
    Outcomes,
    Passes,
    RateGroup,
    ReportOptions,
    SuccessRateReport,
    WorkItem,
    WorkList,
    origin_of,
    other_tables,
    repetition,
)
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.groups import POOLED, SYNTHETIC, Kind
from calibration.judge_calibration.samples import (
    HEADLINE,
    HEADLINES,
    Design,
    LabelledSample,
    with_enough_labels,
)
from calibration.judge_calibration.trial_scores import pass_from_verdicts
from calibration.records import HARNESS, NO_VERDICT, REFERENCE_SOURCE, SOURCE_JUDGE, VERSION
from calibration.runs.columns import OF_GATES, open_runs
from calibration.runs.counts import production_counts
from calibration.runs.recognition import RunOptions
from calibration.runs.results import GateQuery, LengthSums, ProductionCounts
from calibration.runs.sources import RunsOfStore, from_store
from calibration.statistics.estimate import Estimate, not_estimable, provisional
from calibration.statistics.means import HUMAN, edges_of_bins, human_only
from calibration.store import Store
from calibration.success_rate.pass_at_k import PassAtK, count_trials, pass_over_tasks
from calibration.success_rate.rate import AgentSuccessRate, rate_of_counts, without_abandoned
from calibration.success_rate.runs import (
    RunCounts,
    absent_places,
    count_runs,
    credit_rows,
    gross_scores,
    scores,
)
from calibration.tables.reading import REASONS
from calibration.taxonomy import Taxonomy
from calibration.text import (
    TOGETHER,
    arms_left_out,
    calendar,
    counted,
    named_batches,
    sentence,
    week_of,
)

NO_VERDICTS = "the store holds no verdicts; import a judge's verdicts to correct for its errors"
BY = ("week", "workflow", "model", VERSION)
LABELS = "labels"
DIRECT: Kind = "direct"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoreRates:
    """The rates of a batch with their data.

    `runs` are the labelled traces, `whole` those of all workflows in the window. `raw` and `judge`
    are None without verdicts. `kind`: one workflow is rated by its own labels or with the help of
    all.
    """

    loaded: CalibrationData
    options: ReportOptions
    judge_id: str | None
    runs: RunCounts
    raw: Estimate | None
    human: AgentSuccessRate
    judge: JudgeCalibration | None
    corrected: Estimate
    corrected_gross: Estimate
    class_shares: tuple[Estimate, ...]
    whole: CalibrationData
    kind: Kind = "direct"

    @property
    def calibrated(self) -> bool:
        """Whether the headline is corrected for judge error."""
        return self.corrected.ok

    @property
    def includes_reviewers(self) -> bool:
        """Whether the interval of the headline carries the errors of reviewers."""
        judge = self.judge
        whole = judge is not None and self.options.workflow is None and self.corrected.ok
        return whole and judge is not None and judge.calibration.includes_reviewers

    @property
    def one_phase(self) -> Estimate:
        """The corrected rate without the errors of reviewers."""
        if self.judge is None or not self.includes_reviewers:
            return self.corrected
        return self.judge.calibration.estimates[HEADLINE[self.options.design]].net

    @property
    def headline(self) -> Estimate:
        """The corrected rate if there is one, else that of the labelled traces."""
        return self.corrected if self.corrected.ok else self.human.asr

    @property
    def disputed(self) -> NDArray[np.bool_]:
        """Labelled traces whose reviewers differ, without a consensus yet."""
        return disputed(self.loaded)


def rates_of_store(
    store: Store,
    options: ReportOptions | None = None,
    *,
    load: Callable[..., CalibrationData] = load_batch,
) -> StoreRates:
    """Estimate the Agent Success Rate of the traces that a batch was drawn from.

    Without any verdict in the store the headline is the human-only rate. `load` : what is called as
    `load_batch`, where batches are kept.

    Raises
    ------
    InputError
        If there is no such batch, judge or workflow, or several judges and none was named.
    CalibrationError
        If nothing is labelled in the window, or a cost is missing under `strict_cost`.
    """
    options = options or ReportOptions()
    since, until = options.window
    part = Part(since=since, until=until, workflow=options.workflow)
    try:
        loaded = load(store, options.batch_id, part=part)
        _refuse(loaded, part, options)
    except CalibrationError as error:
        if type(error) is not CalibrationError:
            raise
        raise CalibrationError(f"{error}{instead_of_labels(store)}") from error
    others = replace(part, workflow=None)
    whole = loaded if part == others else load(store, options.batch_id, part=others)
    judge_id, judge, kind = options.judge_id, None, DIRECT
    corrected = gross = not_estimable(NO_VERDICTS, method="calibration")
    shares: tuple[Estimate, ...] = ()
    if judge_id is not None or not store.judge_frame().empty:
        whole = with_judge(store, whole, judge_id)
        loaded = whole if part == others else with_judge(store, loaded, judge_id)
        judge_id = loaded.provenance.judge_id
        judge = calibrate_judge(loaded, calibration_options(options))
        corrected, gross, shares = _corrected(judge)
        if options.workflow is not None and loaded.is_sample:
            row = rows_by(whole, options, "workflow")[options.workflow]
            n_open = loaded.open_disagreements
            of = counted(n_open, "open disagreement") if n_open else "the rate of one workflow"
            why = f"{of}: reviewer error is not in the interval"
            corrected, gross = (provisional(e, why) for e in (row.net.estimate, row.gross.estimate))
            kind = row.gross.kind
            shares = row.gross.shares if corrected.ok else ()
    runs = labelled_runs(loaded, options.design)
    inside = part.of_workflow(whole.labelled)
    made = human_rates(
        whole, options, whole.sample(options.design), inside, population=len(loaded.traces)
    )
    human = replace(rate_of_counts(runs, **options.resampling(0)), **made)
    return StoreRates(
        loaded=loaded,
        options=options,
        judge_id=judge_id,
        runs=runs,
        raw=_raw(judge),
        human=human,
        judge=judge,
        corrected=corrected,
        corrected_gross=gross,
        class_shares=shares or human.class_shares,
        whole=whole,
        kind=kind,
    )


# The headline of either design, and what stands beside it.
ESTIMATORS_OF_REPORTS = (*HEADLINES, "bootstrap", "human_only", "judge_raw")


def calibration_options(options: ReportOptions) -> CalibrationOptions:
    """Return the calibration options of a report."""
    return CalibrationOptions(
        design=options.design,
        confidence_level=options.confidence_level,
        seed=options.seed,
        estimand=options.estimand,
        estimators=ESTIMATORS_OF_REPORTS,
        diagnostics=False,
    )


def rows_by(whole: CalibrationData, options: ReportOptions, by: str) -> dict[str | None, GroupRow]:
    """Return the corrected rate of each workflow, model, version or harness, by name."""
    part = Part(workflow=options.workflow)
    rows = group_rows(
        whole, calibration_options(options), by=by, within=part.of_workflow(whole.traces)
    )
    return {None if by != "workflow" and row.name == UNKNOWN else row.name: row for row in rows}


def corrected_groups(
    rates: StoreRates, groups: Sequence[RateGroup], by: str
) -> tuple[RateGroup, ...]:
    """Return groups of traces with their corrected rate, else that of their labelled traces."""
    data, options = rates.whole, rates.options
    success = data.taxonomy.place(data.taxonomy.success)
    if not groups:
        return ()
    rows = rows_by(data, options, by) if rates.judge and data.is_sample else {}
    sample, names = data.sample(options.design), named(data.labelled, by)
    part = Part(workflow=options.workflow)
    inside = part.of_workflow(data.labelled)
    found = []
    for group in groups:
        row, of = rows.get(group.name), (names == group.name) & inside
        if row is not None and row.net.estimate.ok:
            group = replace(
                group,
                asr=row.net.estimate,
                asr_gross=row.gross.estimate,
                pass_rate=row.gross.shares[success],
            )
        elif of.any():
            inside_group = (named(data.traces, by) == group.name) & part.of_workflow(data.traces)
            made = human_rates(data, options, sample, of, population=int(inside_group.sum()))
            group = replace(
                group,
                asr=made["asr"],
                asr_gross=made["asr_gross"],
                pass_rate=made["pass_rate"],
            )
        found.append(group)
    return tuple(found)


def labelled_runs(loaded: CalibrationData, design: Design) -> RunCounts:
    """Return the labelled traces, weighted as in `asr calibrate`, and counted."""
    frame = loaded.labelled
    clusters = pd.factorize(frame["task_key"])[0]
    cost = frame["cost_usd"].fillna(0.0).to_numpy(dtype=np.float64)
    runs = count_runs(
        loaded.human,
        costs=known_costs(frame),
        ceilings=frame["ceiling_usd"].fillna(1.0).to_numpy(dtype=np.float64),
        units=frame["units"].to_numpy(dtype=np.float64),
        taxonomy=loaded.taxonomy,
        other_credit=other_tables(loaded.taxonomy),
        weights=loaded.sample(design).weights,
        clusters=clusters if len(np.unique(clusters)) < len(clusters) else None,
        by={name: named(frame, name) for name in BY},
    )
    # A cost without a ceiling has no penalty, but still counts as a cost.
    return replace(runs, cost=cost, cost_squared=cost**2)


def _refuse(loaded: CalibrationData, part: Part, options: ReportOptions) -> None:
    name = loaded.provenance.batch_id
    if loaded.labelled.empty:
        if part == Part():
            raise CalibrationError(f"batch {name!r} has no labels yet; label it on the Label page")
        n = len(loaded.traces)
        raise CalibrationError(
            f"none of the {n:,} traces of batch {name!r} in this window and workflow is labelled; "
            "choose a wider window, or label more traces"
        )
    missing = int(loaded.traces["cost_usd"].isna().sum())
    if options.strict_cost and missing:
        raise CalibrationError(
            f"{missing:,} of {len(loaded.traces):,} traces have no cost (--strict-cost)"
        )


def _raw(judge: JudgeCalibration | None) -> Estimate | None:
    if judge is None:
        return None
    found = judge.calibration.estimates["judge_raw"].net
    return found if found.ok else None


def human_rates(
    loaded: CalibrationData,
    options: ReportOptions,
    sample: LabelledSample,
    rows: NDArray[np.bool_],
    *,
    population: int,
) -> dict[str, Any]:
    """Return the fields of `AgentSuccessRate` that `human_only` estimates from some traces.

    `population` : traces that these were drawn from.
    """
    sample = sample.where(rows)
    human, weights, clusters = sample.human, sample.weights, sample.clusters
    penalties = np.zeros(len(human)) if sample.penalties is None else sample.penalties
    n_open = int(disputed(loaded)[rows].sum())
    these = options.estimand == "these_runs"

    def mean(values: NDArray[np.float64], of: NDArray[np.float64] | None = None) -> Estimate:
        """Estimate a mean, or the ratio to a part `of` each trace."""
        rows = np.ones(len(values), dtype=bool) if of is None else of > 0
        weight = weights
        if of is not None:
            values = np.divide(values, of, out=np.zeros_like(values), where=rows)
            weight = of if weights is None else weights * of
        found = human_only(
            values[rows],
            weights=None if weight is None else weight[rows],
            clusters=None if clusters is None else clusters[rows],
            # A ratio to a part of each trace is one of runs like these.
            population=population if these and of is None else None,
            strata=sample.strata if of is None else None,
            confidence_level=options.confidence_level,
        )
        return while_open(found, n_open)

    taxonomy = loaded.taxonomy
    credit, absent = loaded.credit_of(loaded.labelled, rows), absent_places(taxonomy)
    own = human * np.maximum(0.0, credit - penalties[:, None])
    shares = with_enough_labels(map(mean, human.T), human)
    workflows = loaded.labelled["workflow"][rows].tolist()
    return {
        "asr": mean(own.sum(axis=1)),
        "asr_gross": mean(gross_scores(human, credit)),
        "asr_without_abandoned": without_abandoned(
            taxonomy,
            mean(np.delete(own, absent, axis=1).sum(axis=1), 1.0 - human[:, absent].sum(axis=1)),
        ),
        "pass_rate": shares[taxonomy.place(taxonomy.success)],
        "class_shares": shares,
        "at_other_credit": {
            name: mean(scores(human, penalties, credit=credit_rows(table, workflows)))
            for name, table in other_tables(taxonomy).items()
        },
    }


def _corrected(judge: JudgeCalibration) -> tuple[Estimate, Estimate, tuple[Estimate, ...]]:
    result = judge.calibration
    headline = result.headline_estimate
    if headline is None or result.headline is None:
        # The refusals of other estimators do not help here.
        own = [n for n in result.refusals if n.estimator == HEADLINE[judge.design]]
        why = "; ".join(f"{n.why} ({n.mend})" for n in own or result.refusals)
        refused = not_estimable(why or "no estimator applies", method="calibration")
        return refused, refused, ()
    return headline.net, headline.gross, result.class_shares[result.headline]


def named(frame: pd.DataFrame, by: str) -> NDArray[np.object_]:
    """Return the week, workflow, model, agent, version or harness of traces; None: not stated."""
    known = by == "workflow"
    names = [name if known or name != UNKNOWN else None for name in group_names(frame, by).tolist()]
    return np.array(names, dtype=object)


def disputed(loaded: CalibrationData) -> NDArray[np.bool_]:
    """Return which labelled traces have several classes, without a consensus yet."""
    return np.asarray((loaded.human > 0).sum(axis=1) > 1)


COLUMNS = (
    "trace_id", "workflow", "week", "started_at", "model", "task_key", "cost_usd", "latency_s",
    "reasons", "evidence",
)  # fmt: skip

Work = Mapping[str, tuple[WorkItem, ...]]


def to_review(loaded: CalibrationData) -> dict[str, pd.DataFrame]:
    """Return the traces with a consensus on a class to review, oldest first, with rationales."""
    settled = ~disputed(loaded)
    frame = loaded.labelled[settled].astype({"model": object})
    codes = loaded.human.argmax(axis=1)[settled]
    outcomes = np.array(loaded.classes)[codes]
    written = _rationales(loaded)
    found = [written.get(key, ((), ())) for key in zip(frame["trace_id"], outcomes, strict=True)]
    frame = frame.assign(
        started_at=started(frame),
        week=named(frame, "week"),
        reasons=pd.Series([reasons for reasons, _ in found], index=frame.index, dtype=object),
        evidence=pd.Series([quotes for _, quotes in found], index=frame.index, dtype=object),
    )
    return {
        outcome: frame[outcomes == outcome].sort_values(["started_at", "trace_id"])
        for outcome in loaded.taxonomy.follow_up
    }


def _rationales(
    loaded: CalibrationData,
) -> dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the distinct rationales and quotes of the reviewers, by trace and class."""
    found: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    columns = (loaded.labels[n] for n in ("trace_id", "outcome", "rationale", "evidence"))
    for trace_id, outcome, rationale, evidence in zip(*columns, strict=True):
        reasons, quotes = found.setdefault((trace_id, outcome), ({}, {}))
        if isinstance(rationale, str) and rationale:
            reasons[rationale] = None
        for part in json.loads(evidence) if isinstance(evidence, str) else ():
            quotes[f"{part['step_id']}: {part['quote']}"] = None
    return {key: (tuple(reasons), tuple(quotes)) for key, (reasons, quotes) in found.items()}


def labelled_csv(loaded: CalibrationData, outcome: str, *, models: bool = True) -> str:
    """Return the traces of a class to review as CSV, with or without their models."""
    listed = to_review(loaded)[outcome]
    for name in ("reasons", "evidence"):
        listed[name] = listed[name].map("\n".join).replace("", None)
    return work_csv(listed, [name for name in COLUMNS if models or name != "model"])


BASIS = "human labels alone"

# Half-widths that differ by more than this are a warning.
APART = 0.20

MOST_TAGS, MOST_REASONS = 50, 3
CORRECTED = "corrected for judge error"
HUMAN_ONLY = "human labels only, not calibrated"
SIMULATED = "SIMULATED DATA: labels, verdicts and production runs are drawn at random."

MISSING = {
    **dict.fromkeys(("errors", "timeouts"), "no trace of the store has a status"),
    **dict.fromkeys(("tool_errors", "loops", "loops_in_a_row"), "no trace of the store has steps"),
    "escalated": "no trace has a field escalated",
    **dict.fromkeys(
        ("feedback_given", "feedback", "feedback_negative"), "no trace has a field feedback"
    ),
    "latency": "no trace says its latency",
    "cost": "no trace says its cost",
    "verdict": "the store holds no verdicts",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoreReport:
    """A report, which has the first runs to review, and all runs to review."""

    report: SuccessRateReport
    work: Work
    rates: StoreRates

    @property
    def loaded(self) -> CalibrationData:
        """The traces of the report, and their labels."""
        return self.rates.loaded


def report_on_store(store: Store, options: ReportOptions | None = None) -> SuccessRateReport:
    """Report on a store, as `report_on_given` where outcomes are given, else `report_with_work`."""
    options = options or ReportOptions()
    given = given_runs(store, options)
    return report_with_work(store, options).report if given is None else given.report()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GivenRuns:
    """Runs of a store with the outcomes that came with them, such as the rewards of a benchmark.

    `elsewhere` counts the traces of other sources, which the judge never looks at, `reference`
    those of the reference set. `unsaid` are the reasons for `no_verdict`. `simulated`: all of it.
    """

    place: RunsOfStore
    options: ReportOptions
    elsewhere: int
    reference: int
    unsaid: tuple[str, ...]
    simulated: bool

    @property
    def marks(self) -> tuple[str, ...]:
        """What comes before everything else."""
        return (SIMULATED,) if self.simulated else ()

    def left_out(self, rows: Sequence[LeftOutRows]) -> tuple[LeftOutRows, ...]:
        """Return rows that are in no number, with those that were never read."""
        found = [
            replace(row, examples=self.unsaid) if row.reason == REASONS[NO_VERDICT] else row
            for row in rows
        ]
        for n, reason in (
            (self.elsewhere, f"traces of other sources than {self.place.given_by}"),
            (self.reference, OF_REFERENCE),
        ):
            if n:
                found.append(LeftOutRows(reason=reason, n=n))
        return tuple(found)

    def report(self) -> SuccessRateReport:
        """Report on the runs as on those of a table: the outcomes are taken as given.

        Errors as `report_on_files`.
        """
        made = report_on_files(
            self.place,
            options=self.options,
            taxonomy=self.place.taxonomy,
            missing={**MISSING, "verdict": "the verdicts are the outcomes"},
        )
        return replace(
            made, marks=(*self.marks, *made.marks), set_aside=self.left_out(made.set_aside)
        )


def given_runs(store: Store, options: ReportOptions) -> GivenRuns | None:
    """Return runs with the outcomes of a judge ``source:...``; None where labels are asked for.

    Outcomes are taken as given with `as_given`, or where such a judge is named, no batch is, and
    nobody has labelled a trace of production yet.

    Raises
    ------
    InputError
        If the judge gave no verdicts or is no source, the options ask for labels, or there is no
        such workflow.
    MixedDataError
        If simulated and real traces or outcomes would enter one number.
    """
    judge_id = options.judge_id
    if not options.as_given and (
        judge_id is None
        or not judge_id.startswith(SOURCE_JUDGE)
        or options.batch_id is not None
        or labelled_traces(store)
    ):
        return None
    judge_id = source_judge(store, judge_id)
    _refuse_labels(options)
    traces = store.production_traces(arms=True)
    said = store.verdict_samples(judge_id)
    said = said[(said["sample"] == 0) & said["trace_id"].isin(traces["trace_id"])]
    own = traces["source"].isin(traces.loc[traces["trace_id"].isin(said["trace_id"]), "source"])
    simulated = all_simulated(traces[own], judges_behind(store, judge_id))
    kept = kept_traces(traces[own], Part(workflow=options.workflow))
    n_labels = labelled_traces(store)
    checked = "no reviewer has checked them"
    if n_labels:
        checked = f"not corrected with the labels of {counted(n_labels, 'trace')}"
    every = store.trace_frame()
    told = replace(options, judge_id=judge_id, as_given=True)
    reasons = said.loc[said["outcome"] == NO_VERDICT, "reason"].dropna()
    return GivenRuns(
        place=RunsOfStore(
            traces=kept,
            operation=store.operation_frame(),
            outcomes=said[["trace_id", "outcome"]],
            taxonomy=replace(store.taxonomy(), workflows=tuple(store.workflows().values())),
            given_by=words_of_judge(store, judge_id),
            checked=checked,
            told=told.given_settings(),
        ),
        options=told,
        elsewhere=int((~own).sum()),
        reference=int((every["source"] == REFERENCE_SOURCE).sum()),
        unsaid=tuple(map(str, reasons.value_counts().index[:MOST_REASONS])),
        simulated=simulated,
    )


def _refuse_labels(options: ReportOptions) -> None:
    """Refuse options that are about labels, which are not used."""
    why = "outcomes are taken as given, and no label is used"
    if options.batch_id is not None:
        raise InputError(f"--batch is for labels: {why}; leave it out")
    if options.design != "production":
        raise InputError(f"--design reference is for labels: {why}; leave it out")
    if options.estimand == "these_runs":
        raise InputError(
            "--estimand these-runs is for labels: the outcome of every run is taken as known, so "
            "the rate of these runs has no interval"
        )
    if options.compare_to not in (None, PREVIOUS):
        raise InputError("--compare-to FILE is for files: a store compares with its own past")


def instead_of_labels(store: Store) -> str:
    """Return how a report on the outcomes that came with the runs is asked for; empty without."""
    judges = [] if labelled_traces(store) else source_judges(store)
    if not judges:
        return ""
    return (
        "; for the outcomes that came with the runs, which no reviewer has checked, name their "
        f"source: --judge {judges[0]}"
    )


def report_with_work(
    store: Store,
    options: ReportOptions | None = None,
    *,
    load: Callable[..., CalibrationData] = load_batch,
) -> StoreReport:
    """Report on the traces that a batch was drawn from, with all runs to review.

    Corrected for judge error where the calibration allows it. Traces of the reference set are never
    counted. `load` and errors as of `rates_of_store`; a comparison with a file is refused.
    """
    options = options or ReportOptions()
    if options.compare_to not in (None, PREVIOUS):
        raise InputError("--compare-to FILE is for files: a store compares with its own past")
    options.check_targets(store.taxonomy())
    rates = rates_of_store(store, options, load=load)
    runs, weeks = loaded_runs(store, rates), rates.runs.labels("week").seen
    work = {name: tuple(work_items(rows)) for name, rows in to_review(rates.loaded).items()}
    all_weeks = calendar(weeks[0], weeks[-1]) if weeks else ()
    by_tag, tags_left_out = tag_groups(rates, runs)
    trials, agents_left_out = passes(rates)
    check, loaded = two_source(rates), rates.loaded
    corrected = (rates.corrected, rates.corrected_gross, rates.class_shares)
    made = assemble(
        runs,
        kind=kind_of(rates),
        target=_target(rates),
        origin=origin(rates),
        corrected=corrected if rates.calibrated else None,
    )
    by_workflow = corrected_groups(rates, made.by_workflow, "workflow")
    by_model = corrected_groups(rates, made.by_model, "model")
    by_version = corrected_groups(rates, made.by_version, VERSION)
    by_harness = corrected_groups(rates, made.by_harness, HARNESS)
    report = replace(
        made,
        sensitivity=(*corrected_at(rates), *made.sensitivity),
        at_ceilings=_at_ceilings(rates, made.asr, by_workflow),
        by_workflow=by_workflow,
        by_model=by_model,
        by_version=by_version,
        by_harness=by_harness,
        by_tag=by_tag,
        tags_left_out=tags_left_out,
        tag_meanings=loaded.taxonomy.meanings(group.name or "" for group in by_tag),
        work_lists=tuple(_work_lists(loaded.taxonomy, work, all_weeks)),
        set_aside=tuple(left_out(store, rates, runs.counts)),
        judged=JudgedRates(
            judge_raw=rates.raw,
            human_only=rates.human.asr,
            corrected=rates.corrected,
            corrected_gross=rates.corrected_gross,
            two_source=check,
            one_phase=rates.one_phase if rates.includes_reviewers else None,
        ),
        estimand=options.estimand,
        warnings=tuple(warnings(rates, check)),
        notes=(
            *notes(rates, agents_left_out),
            *group_notes(rates, by_workflow, "workflow"),
            *group_notes(rates, by_model, "model"),
            *group_notes(rates, by_version, "agent version"),
            *group_notes(rates, by_harness, "harness"),
            *made.notes,
        ),
        marks=(SIMULATED,) if loaded.simulated else (),
        basis=BASIS,
        outcomes=outcomes_of(rates),
        passes=trials,
        evaluation=evaluation_checks(_evaluation(rates, made.origin)),
        details={
            "design": loaded.batch.design,
            "reviewers": len(loaded.reviewers),
            "labelled": len(loaded.labelled),
        },
    )
    return StoreReport(report=report, work=work, rates=rates)


def _evaluation(rates: StoreRates, origin: Origin) -> EvaluationFacts:
    loaded, judges = rates.loaded, rates.judge_id is not None
    people = f"labels of {counted(len(loaded.reviewers), 'reviewer')}"
    return EvaluationFacts(
        n_runs=len(loaded.traces),
        n_tasks=int(loaded.traces["task_key"].nunique()),
        graders=(people, *(["verdicts of a judge"] if judges else [])),
        agreement=estimate_agreement(
            KRIPPENDORFF_ALPHA,
            count_patterns(loaded.codes(), n_classes=len(loaded.classes)),
            confidence_level=rates.options.confidence_level,
        ),
        repeats=repetition(origin),
    )


def _work_lists(taxonomy: Taxonomy, work: Work, weeks: Sequence[str]) -> Iterator[WorkList]:
    """Yield the runs to review; a week without a run of a class counts 0."""
    for outcome, items in work.items():
        of = Counter(item.week for item in items)
        yield work_list(
            outcome,
            len(items),
            ((week, of[week]) for week in weeks),
            items,
            goes_to=taxonomy.follow_up[outcome],
        )


def loaded_runs(store: Store, rates: StoreRates, *, gates: GateQuery | None = None) -> LoadedRuns:
    """Return all traces and labels as input of a report, and the counts that `gates` need."""
    loaded, frame = rates.loaded, rates.loaded.traces
    taxonomy = replace(loaded.taxonomy, workflows=tuple(store.workflows().values()))
    traces = frame.assign(model=named(frame, "model"))
    verdicts = None if rates.judge_id is None else store.verdict_frame(rates.judge_id)
    with from_store(traces, store.operation_frame(), verdicts, taxonomy=taxonomy) as source:
        options = RunOptions(
            taxonomy=taxonomy, is_named=True, further=() if gates is None else OF_GATES
        )
        counts = production_counts(open_runs(source, options), gates=gates)
    latency, cost, of_ceiling = listed_amounts(frame, tasks_by_week(counts))
    earlier = _earlier(store, rates) if rates.options.compare_to else None
    return LoadedRuns(
        counts=counts,
        runs=rates.runs,
        rate=rates.human,
        operation=Operation(
            sums=counts.signals,
            latency=latency,
            cost=cost,
            missing=MISSING,
            confidence_level=rates.options.confidence_level,
        ),
        of_ceiling=of_ceiling,
        taxonomy=taxonomy,
        options=rates.options,
        open=rates.disputed,
        costed={"": rates.loaded.labelled["cost_usd"].notna().to_numpy().astype(np.int64)},
        n_tasks=int(frame["task_key"].nunique()),
        earlier=earlier,
        why_no_earlier="" if earlier else rates.options.none_before("labelled run"),
        sampled=True,
        lengths=tuple(labelled_lengths(rates)),
    )


def labelled_lengths(rates: StoreRates) -> Iterator[LengthSums]:
    """Yield the successes of the labelled traces by steps, tokens and share of the context."""
    loaded, frame, window = rates.loaded, rates.loaded.labelled, rates.options.context_window
    weights = loaded.sample(rates.options.design).weights
    weight = np.ones(len(frame)) if weights is None else weights
    hits = weight * loaded.human[:, loaded.taxonomy.place(loaded.taxonomy.success)]
    tasks = pd.factorize(frame["task_key"])[0]
    shares = frame["context_tokens"] / (np.nan if window is None else window)
    for key, values in (
        ("n_steps", frame["n_steps"].where(frame["n_steps"] > 0)),
        ("total_tokens", frame["total_tokens"]),
        ("context_share", shares),
    ):
        rows = values.notna().to_numpy()
        known = values[rows].to_numpy(np.float64)
        edges = edges_of_bins(np.column_stack([np.ones(known.size), known, known]))
        table = pd.DataFrame({"place": np.searchsorted(edges, known), "unit": tasks[rows], "n": 1})
        table = table.assign(of=weight[rows], hits=hits[rows], total=known, low=known, high=known)
        found = table.groupby(["place", "unit"], as_index=False).agg(
            {**dict.fromkeys(("n", "of", "hits", "total"), "sum"), "low": "min", "high": "max"}
        )
        if len(found):
            n_units = np.unique(tasks[rows]).size
            yield LengthSums(
                key=key,
                table=found.assign(stratum=0),
                n_units=n_units,
                by_task=n_units < rows.sum(),
            )


def listed_amounts(
    traces: pd.DataFrame, tasks: Mapping[str | None, int] | None
) -> tuple[Amounts, Amounts, Amounts]:
    """Return latency, cost, and cost as a multiple of the ceiling: each value is a bin."""
    cost = traces["cost_usd"]
    times = cost / (traces["ceiling_usd"] * traces["units"])
    by = {"week": named(traces, "week"), "workflow": traces["workflow"].to_numpy()}
    latency, paid, above = (
        Amounts(
            pd.DataFrame({**by, "bin": value, "n": 1, "low": value, "high": value}).dropna(
                subset="bin"
            ),
            tasks,
        )
        for value in (traces["latency_s"], cost, times)
    )
    return latency, paid, above


def kind_of(rates: StoreRates) -> str:
    """Return the kind of the headline, in words."""
    return CORRECTED if rates.calibrated else HUMAN_ONLY


def outcomes_of(rates: StoreRates) -> Outcomes:
    """Return where the outcomes behind the headline come from."""
    return "corrected for judge error" if rates.calibrated else "human labels"


def _target(rates: StoreRates) -> str:
    loaded, options = rates.loaded, rates.options
    errors = (
        "corrected for the errors of the judge with the labelled sample"
        if rates.calibrated
        else "from the labelled sample alone"
    )
    where = "" if options.workflow is None else f" of workflow {options.workflow}"
    if options.since is not None or options.until is not None:
        where += f" ({options.window_words})"
    runs = "the" if options.estimand == "these_runs" else "runs like the"
    name = loaded.provenance.batch_id
    return (
        f"The mean score of {runs} {len(loaded.traces):,} production traces{where} that "
        f"the {named_batches(name)} {'were' if TOGETHER in name else 'was'} drawn from, {errors}."
    )


def two_source(rates: StoreRates) -> Estimate | None:
    """Return the check of the headline by bootstrapping both sources; None without a judge."""
    if rates.judge is None or rates.kind != "direct":
        return None
    made = rates.judge.calibration.estimates.get("bootstrap")
    return None if made is None else made.net


def _earlier(store: Store, rates: StoreRates) -> Earlier | None:
    """Return the labelled traces of the preceding window of equal length; None without any."""
    options = rates.options
    before = options.window_before
    if before is None:
        return None
    start = before[1]
    part = Part(since=before[0], until=options.window[1], workflow=options.workflow)
    both = load_batch(store, rates.loaded.provenance.batch_id, part=part)
    later = (started(both.labelled) >= start).to_numpy()
    if later.all():
        return None
    if rates.judge is not None:
        both = with_judge(store, both, rates.judge_id)
    runs = labelled_runs(both, options.design)
    return Earlier(
        runs=runs.where(~later),
        words="the window before",
        later=runs.where(later),
        paired=runs.task is not None,
    )


def tag_groups(rates: StoreRates, runs: LoadedRuns) -> tuple[tuple[RateGroup, ...], int]:
    """Return the rate by reviewer tag, and how many rarer tags are left out."""
    loaded = rates.loaded
    place = {trace_id: row for row, trace_id in enumerate(loaded.labelled["trace_id"])}
    tagged: dict[str, set[int]] = {}
    spelled: dict[str, str] = {}
    for trace_id, tags in zip(loaded.labels["trace_id"], loaded.labels["tags"], strict=True):
        for tag in json.loads(tags) if isinstance(tags, str) else ():
            tagged.setdefault(spelled.setdefault(tag.casefold(), tag), set()).add(place[trace_id])
    groups = []
    for tag in sorted(tagged, key=lambda tag: (-len(tagged[tag]), tag))[:MOST_TAGS]:
        rows = np.zeros(len(place), dtype=bool)
        rows[list(tagged[tag])] = True
        rate = rate_of_counts(rates.runs.where(rows), **rates.options.resampling(5))
        groups.append(rate_group(tag, rate, runs.n_open(rows)))
    return tuple(groups), len(tagged) - len(groups)


def rate_of(rates: StoreRates, change: Callable[[CalibrationData], CalibrationData]) -> Estimate:
    """Return the corrected rate after a change of the data, as of credit or ceilings."""
    workflow = rates.options.workflow
    if workflow is not None:
        whole, options = change(rates.whole), calibration_options(rates.options)
        within = Part(workflow=workflow).of_workflow(whole.traces)
        return net_rates(whole, options, by="workflow", within=within)[workflow]
    if rates.judge is None:
        raise CalibrationError(NO_VERDICTS)
    return rate_of_other(change(rates.loaded), rates.judge)


def corrected_at(rates: StoreRates) -> Iterator[AtOtherWeights]:
    """Yield the corrected rate under other credit tables; nothing without one."""
    if rates.calibrated and rates.judge is not None:
        yield from at_weights(
            "corrected, ",
            rates.loaded.taxonomy,
            rates.corrected,
            lambda _, table: rate_of(rates, lambda data: data.at_credit(table)),
        )


def _at_ceilings(
    rates: StoreRates, asr: Estimate, by_workflow: Sequence[RateGroup]
) -> tuple[AtOtherCeilings, ...]:
    """Return the headline and the rates of workflows at other ceilings.

    Nothing where no cost has a ceiling.
    """
    if not np.isfinite(known_costs(rates.loaded.traces)).any():
        return ()
    found = {1.0: {None: asr} | {group.name: group.asr for group in by_workflow if group.name}}
    for factor in CEILING_FACTORS:
        moved = replace(
            rates, loaded=_scaled(rates.loaded, factor), whole=_scaled(rates.whole, factor)
        )
        whole = rate_of(moved, lambda data: data) if rates.calibrated else _human_rate(moved)
        groups = corrected_groups(moved, by_workflow, "workflow")
        found[factor] = {None: whole} | {group.name: group.asr for group in groups if group.name}
    return at_ceilings(found)


def _scaled(data: CalibrationData, factor: float) -> CalibrationData:
    return replace(data, penalties=trace_penalties(data.traces, factor=factor))


def _human_rate(rates: StoreRates) -> Estimate:
    """Return the rate of the labelled traces alone."""
    whole, options = rates.whole, rates.options
    inside = Part(workflow=options.workflow).of_workflow(whole.labelled)
    made = human_rates(
        whole, options, whole.sample(options.design), inside, population=len(rates.loaded.traces)
    )
    found: Estimate = made["asr"]
    return found


def passes(rates: StoreRates) -> tuple[tuple[Passes, ...], int]:
    """Return pass@k and pass^k of agents with repeated tasks, and the number of agents left out.

    From consensus labels, and beside them from verdicts that are corrected: never from both.
    """
    loaded = rates.loaded
    agents = named(loaded.traces, "agent")
    tasks = loaded.traces["task_key"].to_numpy(dtype=str)
    of_label = named(loaded.labelled, "agent")
    found: list[Passes] = []
    shown = left_out = 0
    for agent in sorted({name for name in agents if name is not None}):
        trials = np.unique(tasks[agents == agent], return_counts=True)[1]
        if trials.max() < 2:
            continue
        if shown == MOST_AGENTS:
            left_out += 1
            continue
        ks, rows, shown = [k for k in KS if k <= trials.max()], of_label == agent, shown + 1
        points = {LABELS: tuple(_point(rates, rows, k, trials.size, shown) for k in ks)}
        if rates.judge is not None:
            source = f"verdicts of {rates.judge_id}, corrected"
            points[source] = _from_verdicts(rates, agents == agent, ks, shown)
        found += [
            Passes(
                agent=agent,
                source=source,
                n_tasks=trials.size,
                most_trials=int(trials.max()),
                points=of_source,
            )
            for source, of_source in points.items()
        ]
    return tuple(found), left_out


def _from_verdicts(
    rates: StoreRates, of_agent: NDArray[np.bool_], ks: Sequence[int], number: int
) -> tuple[PassAtK, ...]:
    """Return the figures of an agent from the verdicts on all its trials, labelled or not.

    Where the labels support no corrected rate, they support no corrected trial either.
    """
    loaded, options, taxonomy = rates.loaded, rates.options, rates.loaded.taxonomy
    rows = of_agent & loaded.production(options.design)
    found = pass_from_verdicts(
        loaded.sample(options.design),
        loaded.verdicts[rows],
        loaded.tasks[rows],
        ks,
        success=np.arange(len(loaded.classes)) == taxonomy.place(taxonomy.success),
        n_verdicts=len(loaded.verdict_names),
        rng=np.random.default_rng([options.seed, 8, number]),
        n_resamples=options.n_resamples,
        confidence_level=options.confidence_level,
    )

    def checked(estimate: Estimate) -> Estimate:
        if rates.calibrated:
            return while_open(estimate, loaded.open_disagreements)
        return replace(rates.corrected, method=estimate.method, n=estimate.n)

    return tuple(
        PassAtK(
            k=of.k,
            pass_at_k=checked(of.pass_at_k),
            pass_hat_k=checked(of.pass_hat_k),
            n_tasks=of.n_tasks,
            n_too_few=of.n_too_few,
            advice="",
        )
        for of in found
    )


def _point(
    rates: StoreRates, of_agent: NDArray[np.bool_], k: int, n_tasks: int, number: int
) -> PassAtK:
    loaded, taxonomy = rates.loaded, rates.loaded.taxonomy
    rows = of_agent & ~rates.disputed
    complete = loaded.human[rows, taxonomy.place(taxonomy.success)] == 1
    trials = count_trials(loaded.labelled["task_key"].to_numpy(dtype=str)[rows], complete)
    options = rates.options
    found = pass_over_tasks(
        trials,
        k,
        rng=np.random.default_rng([options.seed, 7, number]),
        n_resamples=options.n_resamples,
        confidence_level=options.confidence_level,
    )
    why = None
    if loaded.weights is not None:
        why = (
            "the labelled trials of a task were not drawn with equal probabilities; label a "
            "simple random sample"
        )
    elif not found.n_tasks:
        why = "no task has k labelled trials of this agent; label more trials of its tasks"
    at, hat = found.pass_at_k, found.pass_hat_k
    if why is not None:
        at = hat = not_estimable(
            why, method="mean over tasks", confidence_level=options.confidence_level
        )
    unsettled = int((of_agent & rates.disputed).sum())
    return replace(
        found,
        pass_at_k=while_open(at, unsettled),
        pass_hat_k=while_open(hat, unsettled),
        n_too_few=n_tasks - found.n_tasks,
    )


def without_labels(loaded: CalibrationData) -> Iterator[LeftOutRows]:
    """Yield the traces of a sample without a label that counts, with the reason."""
    for n, reason in (
        (loaded.unlabelled, "not labelled yet"),
        (loaded.skipped, "skipped by everybody who saw them"),
        (loaded.exposed, "labelled after seeing the labels of others"),
    ):
        if n:
            yield LeftOutRows(reason=reason, n=n)


def left_out(store: Store, rates: StoreRates, counts: ProductionCounts) -> Iterator[LeftOutRows]:
    """Yield the traces outside the labelled sample or the window, with the reason."""
    loaded = rates.loaded
    frame = store.trace_frame()
    yield from without_labels(loaded)
    for n, reason in (
        (loaded.undated, UNDATED),
        (loaded.perturbed, PERTURBED_ARMS),
        (loaded.later_traces, LATER),
        (int((frame["source"] == REFERENCE_SOURCE).sum()), OF_REFERENCE),
    ):
        if n:
            yield LeftOutRows(reason=reason, n=n)
    for rows in counts.set_aside:
        yield LeftOutRows(reason=REASONS[rows.reason], n=rows.n)


def notes(rates: StoreRates, agents_left_out: int = 0) -> Iterator[str]:
    """Yield the basis of the numbers, and what is left out."""
    if rates.loaded.open_disagreements:
        yield f"Provisional: {counted(rates.loaded.open_disagreements, 'open disagreement')}."
    if rates.judge is not None and rates.judge.agreed_error is not None:
        found = audited(rates.judge.agreed_error)
        yield sentence(found)
    groups = "tags" if rates.calibrated else "groups"
    yield (
        f"Weeks, changes, {groups} and review queues are based on {BASIS}; cost and latency are "
        "those of "
        "all traces."
    )
    if rates.raw is not None:
        yield (
            "The uncorrected rate takes every verdict as true: a diagnostic without an interval, "
            "because its "
            "error is bias and not sampling."
        )
    if agents_left_out:
        yield f"Left out: {counted(agents_left_out, 'further agent')} with repeated trials."
    yield from _other_estimators(rates)


def group_notes(rates: StoreRates, groups: Sequence[RateGroup], by: str) -> Iterator[str]:
    """Yield the groups that are not rated by their own labels with the judge."""
    known = [group for group in groups if rates.calibrated and group.asr.ok]
    more = f" (asr calibrate --by {by})" if by in COLUMN else ""
    for why, kept in (
        ("fewer than 50 labels of their own, so the judge's error is drawn toward all", POOLED),
        (
            "fewer than 50 labels of their own: with the judge's error rates of all groups",
            SYNTHETIC,
        ),
        ("human labels alone, for no corrected rate is estimable", HUMAN),
    ):
        names = [g.name or f"(no {by})" for g in known if g.asr.method.startswith(kept)]
        if names:
            yield f"By {by}, {', '.join(names):.200}: {why}{more}."


def _other_estimators(rates: StoreRates) -> Iterator[str]:
    """Name the refused estimators that the report does not use."""
    if rates.judge is None:
        return
    refused = Counter(
        notice.estimator
        for notice in rates.judge.calibration.refusals
        if notice.estimator not in (*_used(rates), "two_phase")
    )
    if refused:
        listed = ", ".join(f"{name} ({n} reason{'s' * (n != 1)})" for name, n in refused.items())
        yield f"Other estimators were refused, see asr calibrate: {listed}."


def _used(rates: StoreRates) -> tuple[str, ...]:
    return HEADLINE[rates.options.design], "bootstrap"


def warnings(rates: StoreRates, two_source: Estimate | None) -> Iterator[str]:
    """Yield the refusals and warnings of the headline estimator, its check, perturbed arms."""
    if rates.loaded.perturbed:
        yield f"{arms_left_out(rates.loaded.perturbed)}."
    if rates.kind != "direct" and not rates.corrected.ok:
        yield f"Refused ({rates.options.workflow}): {rates.corrected.status}."
    elif rates.judge is not None and rates.kind == "direct":
        calibration = rates.judge.calibration
        for kind, notices in (
            ("Refused", calibration.refusals),
            ("Warning", calibration.warnings),
        ):
            for notice in notices:
                if notice.estimator in _used(rates):
                    yield f"{kind} ({notice.estimator}): {notice.why}; {notice.mend}."
    # The bootstrap leaves out the errors of reviewers.
    one = rates.one_phase.half_width
    other = None if two_source is None else two_source.half_width
    if one and other and abs(one - other) > APART * max(one, other):
        yield (
            f"Warning: the interval of the corrected rate (± {one:.3f}) and that of the two-source "
            f"bootstrap (± {other:.3f}) differ by more than {100 * APART:.0f} %: neither is to "
            "be relied on without a look at the calibration (asr calibrate)."
        )


def origin(rates: StoreRates) -> Origin:
    """Return everything needed to make the report again."""
    loaded, options = rates.loaded, rates.options
    kind = loaded.batch.design.get("kind", "unknown design")
    if TOGETHER in loaded.provenance.batch_id:
        kind = "random samples taken together"
    settings = options.store_settings(loaded.provenance.batch_id, rates.judge_id)
    return origin_of(
        options,
        loaded.taxonomy,
        settings=settings,
        sampling=(
            f"{len(loaded.labelled):,} labelled of {len(loaded.traces):,} traces, {kind}, "
            f"{named_batches(loaded.provenance.batch_id)}"
        ),
        judge=rates.judge_id or "none",
        fingerprint=fingerprint(
            taxonomy=loaded.taxonomy.fingerprint,
            settings={
                "kind": "asr",
                **settings,
                "calibration": _fingerprint(rates),
            },
            human=human_frame(loaded),
            drawn=drawn_frame(loaded),
            labels=loaded.labels[["trace_id", "reviewer_id", "outcome", "tags"]],
            traces=loaded.traces[
                [*INPUT_COLUMNS, "started_at", "model", "agent_version", "latency_s"]
            ],
        ),
    )


def _fingerprint(rates: StoreRates) -> str:
    """Return the fingerprint of the calibration; that of one workflow covers all of them."""
    if rates.judge is None or rates.whole is rates.loaded:
        return "" if rates.judge is None else rates.judge.fingerprint
    return rates.whole.fingerprint("judge", calibration_options(rates.options).estimation)


def without_models(made: StoreReport) -> StoreReport:
    """Return the report without models and agents, which labelling reviewers must not know."""

    def hidden(items: tuple[WorkItem, ...]) -> tuple[WorkItem, ...]:
        return tuple(replace(item, model=None) for item in items)

    report = replace(
        made.report,
        by_model=(),
        by_version=(),
        by_harness=(),
        passes=(),
        work_lists=tuple(replace(one, first=hidden(one.first)) for one in made.report.work_lists),
    )
    return replace(
        made, report=report, work={outcome: hidden(of) for outcome, of in made.work.items()}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportChoices:
    """The days (UTC) and workflows that a report can be narrowed to."""

    first: date | None
    last: date | None
    workflows: tuple[str, ...]

    def last_weeks(self, n: int) -> tuple[str, str] | None:
        """Return the first and the last of the last `n` ISO weeks; None without dates."""
        if self.last is None:
            return None
        return week_of(self.last - timedelta(weeks=n - 1)), week_of(self.last)


def report_choices(traces: pd.DataFrame) -> ReportChoices:
    """Return the choices that narrow a report on some traces."""
    times = started(traces).dropna()
    return ReportChoices(
        first=None if times.empty else times.min().date(),
        last=None if times.empty else times.max().date(),
        workflows=tuple(sorted(traces["workflow"].unique())),
    )
