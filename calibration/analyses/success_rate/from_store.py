"""The success-rate report on a store: human-only, uncorrected and corrected."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import UNKNOWN, CalibrationData, group_names
from calibration.analyses.evidence.from_store import (
    INPUT_COLUMNS,
    Part,
    choose_judge,
    drawn_frame,
    human_frame,
    known_costs,
    load_batch,
    started,
    with_judge,
)
from calibration.analyses.fingerprint import fingerprint, package_version
from calibration.analyses.judge.calibration import (
    CalibrationOptions,
    JudgeCalibration,
    calibrate_judge,
    rate_at_credit,
)
from calibration.analyses.success_rate.report import (
    GOES_TO,
    PREVIOUS,
    SHOWN_RUNS,
    AtOtherWeights,
    Change,
    CostPanel,
    Group,
    JudgedRates,
    Latency,
    LeftOut,
    Origin,
    Passes,
    ProductionReport,
    ReportOptions,
    Signal,
    VerdictMix,
    WorkItem,
    WorkList,
    change_of,
    change_of_weeks,
    classes,
    credit_in_words,
    literal,
    other_tables,
    table_in_words,
)
from calibration.analyses.success_rate.signals import (
    LEVELS,
    NOT_RECORDED,
    bad_values,
    rates,
    verdict_mix,
)
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.samples import HEADLINE, Design
from calibration.records import OUTCOMES, REFERENCE_SOURCE, Workflow
from calibration.runs.signals import (
    BAD,
    DOWN,
    FAILED,
    NEUTRAL,
    NO,
    TIMED_OUT,
    UP,
    VERDICTS,
    YES,
    SignalSums,
)
from calibration.statistics.estimate import OK, Estimate, not_estimable
from calibration.statistics.quantiles import quantile_by_task
from calibration.store import Store
from calibration.success_rate.comparison import compare_runs
from calibration.success_rate.cost import cost_per_success
from calibration.success_rate.pass_at_k import PassAtK, count_trials, pass_over_tasks
from calibration.success_rate.rate import AgentSuccessRate, rate_of_counts, rates_by
from calibration.success_rate.runs import RunCounts, count_runs
from calibration.success_rate.trend import WeeklySeries, weekly_series
from calibration.tables.rows import Row, as_csv

NO_VERDICTS = "the store holds no verdicts; import a judge's verdicts to correct for its errors"

BY = ("week", "workflow", "model")


BASIS = "human labels alone"

# Half-widths that differ by more than this are a warning.
APART = 0.20


MOST_TAGS, MOST_AGENTS = 50, 20

KS = (1, 2, 4, 8)

ABOVE = "share of the runs with a cost and a ceiling"


COLUMNS = (
    "trace_id", "workflow", "week", "started_at", "model", "task_key", "cost_usd", "latency_s",
    "reasons", "evidence",
)  # fmt: skip


CORRECTED = "corrected for judge error"

HUMAN_ONLY = "human labels only, not calibrated"

SIMULATED = "SIMULATED DATA: labels, verdicts and production runs are drawn at random."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoreRates:
    """The rates of a batch with what they were made from.

    Parameters
    ----------
    runs : RunCounts
        The labelled traces, by week, workflow and model.
    raw : AgentSuccessRate or None
        Every verdict taken as true; None without verdicts.
    human : AgentSuccessRate
        The labelled traces alone.
    judge : JudgeCalibration or None
        The calibration; None without verdicts.
    corrected, corrected_gross : Estimate
        Its headline, or why there is none.
    class_shares : tuple of Estimate
        By the same estimator; of the labelled traces where it has no value.
    """

    loaded: CalibrationData
    options: ReportOptions
    design: Design
    judge_id: str | None
    runs: RunCounts
    raw: AgentSuccessRate | None
    human: AgentSuccessRate
    judge: JudgeCalibration | None
    corrected: Estimate
    corrected_gross: Estimate
    class_shares: tuple[Estimate, ...]

    @property
    def calibrated(self) -> bool:
        """Whether the headline is corrected for the errors of the judge."""
        return self.corrected.ok

    @property
    def headline(self) -> Estimate:
        """The corrected rate where there is one, else that of the labelled traces."""
        return self.corrected if self.corrected.ok else self.human.asr

    @property
    def disputed(self) -> NDArray[np.bool_]:
        """Which labelled traces have reviewers who differ, and nobody has settled."""
        return disputed(self.loaded)


def rates_of_store(
    store: Store,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    workflow: str | None = None,
    options: ReportOptions | None = None,
) -> StoreRates:
    """Estimate the Agent Success Rate of the traces that a batch was drawn from.

    Without any verdict in the store the judge is left out and the headline is the labelled
    sample alone.

    Raises
    ------
    InputError
        If there is no such batch, judge or workflow, or several judges and none was named.
    CalibrationError
        If nothing is labelled in the window, or a cost is missing under `strict_cost`.
    """
    options = options or ReportOptions()
    since, until = options.window
    part = Part(since=since, until=until, workflow=workflow)
    loaded = load_batch(store, batch_id, part=part)
    _refuse(loaded, part, options)
    judge = raw = None
    corrected = gross = not_estimable(NO_VERDICTS, method="calibration")
    shares: tuple[Estimate, ...] = ()
    if judge_id is not None or not store.judge_frame().empty:
        judge_id = choose_judge(store, judge_id)
        loaded = with_judge(store, loaded, judge_id)
        judge = calibrate_judge(
            loaded,
            CalibrationOptions(
                design=design, confidence_level=options.confidence_level, seed=options.seed
            ),
        )
        raw = _raw(loaded, options)
        corrected, gross, shares = _corrected(judge)
    runs = counted(loaded, loaded.labelled, loaded.human, loaded.weights)
    human = provisional_rate(
        rate_of_counts(runs, **options.resampling(0)), int(disputed(loaded).sum())
    )
    return StoreRates(
        loaded=loaded,
        options=options,
        design=design,
        judge_id=judge_id,
        runs=runs,
        raw=raw,
        human=human,
        judge=judge,
        corrected=corrected,
        corrected_gross=gross,
        class_shares=shares or human.class_shares,
    )


def _refuse(loaded: CalibrationData, part: Part, options: ReportOptions) -> None:
    name = loaded.batch.batch_id
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


def _raw(loaded: CalibrationData, options: ReportOptions) -> AgentSuccessRate | None:
    """Score the verdicts as if they were true; traces without one are left out."""
    judged = loaded.verdicts < len(OUTCOMES)
    if not judged.any():
        return None
    codes = loaded.verdicts[judged]
    return rate_of_counts(
        counted(loaded, loaded.traces[judged], codes, None), **options.resampling(6)
    )


def _corrected(judge: JudgeCalibration) -> tuple[Estimate, Estimate, tuple[Estimate, ...]]:
    result = judge.calibration
    headline = result.headline_estimate
    if headline is None or result.headline is None:
        # Why the others are refused as well helps nobody who asks for this one.
        own = [n for n in result.refusals if n.estimator == HEADLINE[judge.design]]
        why = "; ".join(f"{n.why} ({n.mend})" for n in own or result.refusals)
        refused = not_estimable(why or "no estimator applies", method="calibration")
        return refused, refused, ()
    return headline.net, headline.gross, result.class_shares[result.headline]


def counted(
    loaded: CalibrationData,
    frame: pd.DataFrame,
    outcomes: NDArray[np.int64] | NDArray[np.float64],
    weights: NDArray[np.float64] | None,
) -> RunCounts:
    """Count traces by week, workflow and model, with tasks where one was run more than once."""
    clusters = pd.factorize(frame["task_key"])[0]
    return count_runs(
        outcomes,
        costs=known_costs(frame),
        ceilings=frame["ceiling_usd"].fillna(1.0).to_numpy(dtype=np.float64),
        units=frame["units"].to_numpy(dtype=np.float64),
        credit=tuple(loaded.taxonomy.credit[name] for name in OUTCOMES),
        other_credit=other_tables(loaded.taxonomy),
        weights=weights,
        clusters=clusters if len(np.unique(clusters)) < len(clusters) else None,
        by={name: named(frame, name) for name in BY},
    )


def named(frame: pd.DataFrame, by: str) -> NDArray[np.object_]:
    """Return the week, workflow, model or agent of traces; None where they do not say."""
    known = by == "workflow"
    names = [name if known or name != UNKNOWN else None for name in group_names(frame, by).tolist()]
    return np.array(names, dtype=object)


def disputed(loaded: CalibrationData) -> NDArray[np.bool_]:
    """Return which labelled traces have several classes: reviewers differ, nobody has settled."""
    return np.asarray((loaded.human > 0).sum(axis=1) > 1)


def provisional(estimate: Estimate, n_disputed: int) -> Estimate:
    """Mark what open disagreements may still move."""
    if not n_disputed or estimate.status != OK:
        return estimate
    return replace(estimate, status=f"provisional: {n_disputed} open disagreements")


def provisional_rate(rate: AgentSuccessRate, n_disputed: int) -> AgentSuccessRate:
    """Mark every part of a rate that open disagreements may still move."""
    return replace(
        rate,
        asr=provisional(rate.asr, n_disputed),
        asr_gross=provisional(rate.asr_gross, n_disputed),
        asr_without_abandoned=provisional(rate.asr_without_abandoned, n_disputed),
        pass_rate=provisional(rate.pass_rate, n_disputed),
        class_shares=tuple(provisional(share, n_disputed) for share in rate.class_shares),
        at_other_credit={
            name: provisional(other, n_disputed) for name, other in rate.at_other_credit.items()
        },
    )


def left_out(store: Store, rates: StoreRates) -> Iterator[LeftOut]:
    """Yield what the labelled sample or the window leaves out, and why."""
    loaded = rates.loaded
    frame = store.trace_frame()
    for n, reason in (
        (loaded.unlabelled, "traces of the batch that are not labelled yet"),
        (loaded.skipped, "traces that were skipped by everybody who saw them"),
        (loaded.exposed, "labels that were given after seeing what others said of the trace"),
        (loaded.undated, "traces that do not say when they were started: in no window"),
        (loaded.later_traces, "traces that came after the draw"),
        (
            int((frame["source"] == REFERENCE_SOURCE).sum()),
            "traces of the reference set: calibration material that ranks no agent",
        ),
    ):
        if n:
            yield LeftOut(reason=reason, n=n)


def notes(rates: StoreRates, agents_left_out: int) -> Iterator[str]:
    """Yield what helps to know."""
    if rates.loaded.open_disagreements:
        yield f"{rates.loaded.open_disagreements:,} disagreements are open: provisional."
    yield (
        f"Weeks, changes, groups and work lists rest on {BASIS}; cost and latency are those of "
        "all traces."
    )
    if rates.raw is not None:
        yield (
            "Judge-raw takes every verdict as true: its interval holds the sampling of "
            "traces, not the errors of the judge."
        )
    if agents_left_out:
        yield f"{agents_left_out:,} further agents with repeated trials are left out."
    yield from _other_estimators(rates)


def _other_estimators(rates: StoreRates) -> Iterator[str]:
    """Say in a line what is refused that nothing in the report rests on."""
    if rates.judge is None:
        return
    refused = Counter(
        notice.estimator
        for notice in rates.judge.calibration.refusals
        if notice.estimator not in _used(rates)
    )
    if refused:
        listed = ", ".join(f"{name} ({n} reason{'s' * (n != 1)})" for name, n in refused.items())
        yield f"Other estimators were refused, see asr calibrate: {listed}."


def _used(rates: StoreRates) -> tuple[str, ...]:
    return HEADLINE[rates.design], "bootstrap"


def warnings(rates: StoreRates, two_source: Estimate | None) -> Iterator[str]:
    """Yield what a reader must know: of the estimator of the headline and its check alone."""
    if rates.judge is not None:
        calibration = rates.judge.calibration
        for kind, notices in (
            ("Refused", calibration.refusals),
            ("Warning", calibration.warnings),
        ):
            for notice in notices:
                if notice.estimator in _used(rates):
                    yield f"{kind} ({notice.estimator}): {notice.why}; {notice.mend}."
    one = rates.corrected.half_width
    other = None if two_source is None else two_source.half_width
    if one and other and abs(one - other) > APART * max(one, other):
        yield (
            f"Warning: the interval of the corrected rate (± {one:.3f}) and that of the two-source "
            f"bootstrap (± {other:.3f}) differ by more than {100 * APART:.0f} %: neither is to "
            "be relied on without a look at the calibration (asr calibrate)."
        )


def origin(rates: StoreRates, workflow: str | None) -> Origin:
    """Return all that it takes to make the report again."""
    loaded, options = rates.loaded, rates.options
    kind = loaded.batch.design.get("kind", "unknown design")
    settings = {
        "batch": loaded.batch.batch_id,
        "judge": rates.judge_id,
        "design": rates.design,
        "workflow": workflow,
        "from": options.since,
        "to": options.until,
        "timezone": options.timezone,
        "compare_to": options.compare_to,
        "strict_cost": options.strict_cost,
        "pooled": options.pooled,
        "targets": dict(options.targets),
        "seed": options.seed,
        "resamples": options.n_resamples,
        "confidence_level": options.confidence_level,
        "interval": options.interval,
    }
    return Origin(
        sources=(),
        settings=settings,
        sampling=(
            f"{len(loaded.labelled):,} labelled of {len(loaded.traces):,} traces, {kind}, "
            f"batch {loaded.batch.batch_id}"
        ),
        judge=rates.judge_id or "none",
        taxonomy_version=loaded.taxonomy.version,
        taxonomy_fingerprint=loaded.taxonomy.fingerprint,
        seed=options.seed,
        n_resamples=options.n_resamples,
        confidence_level=options.confidence_level,
        package_version=package_version(),
        fingerprint=fingerprint(
            taxonomy=loaded.taxonomy.fingerprint,
            settings={
                "kind": "asr",
                **settings,
                "calibration": rates.judge.fingerprint if rates.judge else "",
            },
            human=human_frame(loaded),
            drawn=drawn_frame(loaded),
            labels=loaded.labels[["trace_id", "reviewer_id", "outcome", "tags"]],
            traces=loaded.traces[
                [*INPUT_COLUMNS, "started_at", "model", "agent_version", "latency_s"]
            ],
        ),
    )


Rows = NDArray[np.bool_]


def cost_panel(rates: StoreRates, of: Rows, labelled: Rows) -> CostPanel:
    """Return what some traces cost, and what a success did among the labelled ones of them."""
    loaded = rates.loaded
    frame = loaded.traces[of]
    costs = frame["cost_usd"].dropna().to_numpy(dtype=np.float64)
    held = frame["cost_usd"].notna() & frame["ceiling_usd"].notna()
    times = (frame["cost_usd"] / (frame["ceiling_usd"] * frame["units"]))[held]
    over = times > 1
    p50, p90, p99 = np.quantile(costs, [0.5, 0.9, 0.99]).tolist() if len(costs) else (None,) * 3
    above = None
    if len(over):
        above = Estimate(value=float(over.mean()), interval=None, n=len(over), method=ABOVE)
    return CostPanel(
        n=len(frame),
        n_known=len(costs),
        n_without_ceiling=int(frame["ceiling_usd"].isna().sum()),
        mean=float(costs.mean()) if len(costs) else None,
        p50=p50,
        p90=p90,
        p99=p99,
        share_above_ceiling=above,
        of_ceiling=_cost_percentiles(times),
        per_success=_per_success(rates, labelled),
    )


def _cost_percentiles(times: pd.Series) -> tuple[float, float, float] | None:
    if times.empty:
        return None
    p50, p90, p99 = np.quantile(times.to_numpy(dtype=np.float64), [0.5, 0.9, 0.99]).tolist()
    return p50, p90, p99


def _per_success(rates: StoreRates, labelled: Rows) -> Estimate:
    """Return what a complete trace costs by the labels, or why that is not known."""
    if not labelled.any():
        return not_estimable("none of its traces is labelled: label some", method="total cost")
    loaded = rates.loaded
    frame = loaded.labelled[labelled]
    task = pd.factorize(frame["task_key"])[0]
    return cost_per_success(
        count_runs(
            loaded.human[labelled],
            costs=frame["cost_usd"].to_numpy(dtype=np.float64),
            # What a run cost is known without a ceiling too, and a penalty enters nowhere.
            ceilings=1.0,
            weights=None if loaded.weights is None else loaded.weights[labelled],
            clusters=task if len(np.unique(task)) < len(task) else None,
        ),
        confidence_level=rates.options.confidence_level,
    )


def whole_panel(rates: StoreRates) -> CostPanel:
    """Return the cost of all traces."""
    loaded = rates.loaded
    return cost_panel(
        rates, np.ones(len(loaded.traces), dtype=bool), np.ones(len(loaded.labelled), dtype=bool)
    )


def latency(loaded: CalibrationData) -> Latency | None:
    """Return the percentiles of latency; None where no trace says how long it took."""
    seconds = loaded.traces["latency_s"].dropna().to_numpy(dtype=np.float64)
    if not seconds.size:
        return None
    p50, p90, p95, p99 = np.quantile(seconds, [0.5, 0.9, 0.95, 0.99]).tolist()
    return Latency(n=seconds.size, p50=p50, p90=p90, p95=p95, p99=p99)


def workflow_groups(rates: StoreRates, known: dict[str, Workflow]) -> Iterator[Group]:
    """Yield the rate and the cost of every workflow, those without a label too."""
    loaded = rates.loaded
    found = rates_by(rates.runs, "workflow", **rates.options.resampling(2))
    for name in sorted(loaded.traces["workflow"].unique()):
        labelled = (loaded.labelled["workflow"] == name).to_numpy()
        of = (loaded.traces["workflow"] == name).to_numpy()
        yield replace(
            _group(rates, name, labelled, found.get(name)),
            cost=cost_panel(rates, of, labelled),
            ceiling_usd=known[name].ceiling_usd,
            unit=known[name].unit,
        )


def model_groups(rates: StoreRates) -> Iterator[Group]:
    """Yield the rate of every model of the traces; nothing where none names one."""
    loaded = rates.loaded
    every = named(loaded.traces, "model")
    models = sorted({name for name in every if name is not None})
    if not models:
        return
    of_label = named(loaded.labelled, "model")
    found = rates_by(rates.runs, "model", **rates.options.resampling(3))
    for name in models:
        yield _group(rates, name, of_label == name, found.get(name))
    without = np.array([name is None for name in of_label], dtype=bool)
    if any(name is None for name in every):
        rate = None
        if without.any():
            rate = rate_of_counts(rates.runs.where(without), **rates.options.resampling(3))
        yield _group(rates, None, without, rate)


def tag_groups(rates: StoreRates) -> tuple[tuple[Group, ...], int]:
    """Return the rate by tag of the reviewers, and how many rarer tags are left out.

    A trace counts under each of its tags.
    """
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
        groups.append(_group(rates, tag, rows, rate))
    return tuple(groups), len(tagged) - len(groups)


def _group(
    rates: StoreRates, name: str | None, labelled: Rows, rate: AgentSuccessRate | None
) -> Group:
    if rate is None:
        nothing = not_estimable("none of its traces is labelled: label some", method="bootstrap")
        return Group(name=name, n=0, asr=nothing)
    marked = provisional_rate(rate, int(rates.disputed[labelled].sum()))
    return Group(
        name=name,
        n=rate.n,
        asr=marked.asr,
        asr_gross=marked.asr_gross,
        pass_rate=marked.pass_rate,
    )


def sensitivity(rates: StoreRates) -> Iterator[AtOtherWeights]:
    """Yield the rate at other weights: corrected where the headline is, and human-only."""
    loaded = rates.loaded
    own = tuple(loaded.taxonomy.credit[name] for name in OUTCOMES)
    tables = other_tables(loaded.taxonomy)
    reported = f"as reported ({credit_in_words(own)})"
    if rates.calibrated and rates.judge is not None:
        yield AtOtherWeights(name=f"corrected, {reported}", credit=own, asr=rates.corrected)
        for name, credit in tables.items():
            yield AtOtherWeights(
                name=f"corrected, {table_in_words(name, credit)}",
                credit=credit,
                asr=rate_at_credit(loaded, rates.judge, credit),
            )
    yield AtOtherWeights(name=f"human-only, {reported}", credit=own, asr=rates.human.asr)
    for name, result in rates.human.at_other_credit.items():
        words = table_in_words(name, tables[name])
        yield AtOtherWeights(name=f"human-only, {words}", credit=tables[name], asr=result)


def passes(rates: StoreRates) -> tuple[tuple[Passes, ...], int]:
    """Return pass@k and pass^k of agents that ran some task more than once, and how many more do.

    From the settled labels alone: verdicts of a judge that errs make both badly biased.
    """
    loaded = rates.loaded
    agents = named(loaded.traces, "agent")
    tasks = loaded.traces["task_key"].to_numpy(dtype=str)
    of_label = named(loaded.labelled, "agent")
    found: list[Passes] = []
    left_out = 0
    for agent in sorted({name for name in agents if name is not None}):
        trials = np.unique(tasks[agents == agent], return_counts=True)[1]
        if trials.max() < 2:
            continue
        if len(found) == MOST_AGENTS:
            left_out += 1
            continue
        ks, rows, number = [k for k in KS if k <= trials.max()], of_label == agent, len(found) + 1
        found.append(
            Passes(
                agent=agent,
                n_tasks=trials.size,
                most_trials=int(trials.max()),
                points=tuple(_point(rates, rows, k, trials.size, number) for k in ks),
            )
        )
    return tuple(found), left_out


def _point(rates: StoreRates, of_agent: Rows, k: int, n_tasks: int, number: int) -> PassAtK:
    loaded = rates.loaded
    rows = of_agent & ~rates.disputed
    complete = loaded.human[rows, OUTCOMES.index("complete")] == 1
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
        pass_at_k=provisional(at, unsettled),
        pass_hat_k=provisional(hat, unsettled),
        n_too_few=n_tasks - found.n_tasks,
    )


MISSING = {
    "errors": f"{NOT_RECORDED}: no trace of the store has a status",
    "timeouts": f"{NOT_RECORDED}: no trace of the store has a status",
    "tool_errors": f"{NOT_RECORDED}: no trace of the store has steps",
    "loops": f"{NOT_RECORDED}: no trace of the store has steps",
    "escalated": f"{NOT_RECORDED}: no trace has a field escalated",
    "feedback_given": f"{NOT_RECORDED}: no trace has a field feedback",
    "feedback": f"{NOT_RECORDED}: no trace has a field feedback",
    "feedback_negative": f"{NOT_RECORDED}: no trace has a field feedback",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSignals:
    """The signals of the traces in a store, and what has to be said of bad values."""

    signals: tuple[Signal, ...]
    verdict_mix: VerdictMix
    notes: tuple[str, ...]


def with_signals(
    report: ProductionReport, store: Store, traces: pd.DataFrame, judge_id: str | None
) -> ProductionReport:
    """Return a report on a store with the signals of its traces."""
    found = signals_of_store(store, traces, judge_id, report.origin.confidence_level)
    return replace(
        report,
        signals=found.signals,
        verdict_mix=found.verdict_mix,
        notes=(*report.notes, *found.notes),
    )


def signals_of_store(
    store: Store, traces: pd.DataFrame, judge_id: str | None, confidence_level: float = 0.95
) -> StoreSignals:
    """Return the signals of some traces of a store.

    Parameters
    ----------
    store : Store
    traces : pandas.DataFrame
        Of `Store.trace_frame`.
    judge_id : str or None
        Whose verdicts; None for none.
    confidence_level : float, default 0.95
    """
    frame = traces.merge(store.operation_frame(), on="trace_id", how="left")
    if judge_id is not None:
        verdicts = store.verdict_frame(judge_id)[["trace_id", "outcome"]]
        frame = frame.merge(verdicts.rename(columns={"outcome": "verdict"}), how="left")
    sums = sums_of(frame)
    mix = verdict_mix(sums, confidence_level)
    if not mix.weeks and judge_id is None:
        mix = VerdictMix(status=f"{NOT_RECORDED}: the store holds no verdicts")
    return StoreSignals(
        signals=(
            *rates(sums, confidence_level, missing=MISSING),
            *_percentiles(frame, confidence_level),
        ),
        verdict_mix=mix,
        notes=bad_values(sums),
    )


def sums_of(frame: pd.DataFrame) -> SignalSums:
    """Return sums by week and task, as production files have them."""
    task, _ = pd.factorize(frame["task_key"], sort=True)
    by_task = len(np.unique(task)) < len(task)
    parts, bad = _parts(frame)
    columns: dict[str, Any] = {
        "week": _weeks(frame["started_at"]),
        "unit": task,
        "stratum": np.zeros(len(frame), dtype=np.int64),
        "n": np.ones(len(frame), dtype=np.int64),
    }
    for key, (of, hits) in parts.items():
        columns[f"n_{key}"] = columns[f"of_{key}"] = of.astype(np.float64)
        columns[key] = hits.where(of > 0, 0.0).astype(np.float64)
    rows = pd.DataFrame(columns)
    table = rows.groupby(["week", "unit", "stratum"], dropna=False, sort=True).sum().reset_index()
    return SignalSums(
        table=table,
        recorded=tuple(key for key, (of, _) in parts.items() if of.any()),
        bad={BAD[name]: n for name, n in bad.items() if n},
        n_units=len(np.unique(task)),
        by_task=by_task,
    )


def _weeks(times: "pd.Series[Any]") -> "pd.Series[Any]":
    iso = pd.to_datetime(times, utc=True).dt.isocalendar()
    names = [
        None if pd.isna(year) else f"{int(year):04d}-W{int(week):02d}"
        for year, week in zip(iso["year"], iso["week"], strict=True)
    ]
    return pd.Series(names, dtype="str")


def _parts(
    frame: pd.DataFrame,
) -> tuple[dict[str, tuple["pd.Series[Any]", "pd.Series[Any]"]], dict[str, int]]:
    """Return what each rate is a share of and its hits, a row a trace; and the bad values."""
    status = frame["status"].astype("str").str.lower()
    late = status.str.contains(TIMED_OUT, regex=True).fillna(False).astype(bool)
    failed = status.str.contains(FAILED, regex=True).fillna(False).astype(bool)
    said = status.notna() & (status != "")
    parts = {
        "errors": (said * 1.0, (failed & ~late) * 1.0),
        "timeouts": (said * 1.0, late * 1.0),
        "tool_errors": (frame["tool_calls"].fillna(0.0), frame["tool_errors"].fillna(0.0)),
        "loops": (frame["loop"].notna() * 1.0, frame["loop"].fillna(0.0)),
    }
    escalated, bad_escalated = _read(frame["escalated"], _happened)
    feedback, bad_feedback = _read(frame["feedback"], _score)
    known = escalated.notna() * 1.0
    parts["escalated"] = known, (escalated > 0) * 1.0
    given = feedback.notna() * 1.0
    if given.any() or bad_feedback:
        parts["feedback_given"] = given * 0.0 + 1.0, given
        parts["feedback"] = given, feedback.fillna(0.0)
        parts["feedback_negative"] = given, (feedback < 0) * 1.0
    if "verdict" in frame:
        judged = frame["verdict"].isin(VERDICTS) * 1.0
        for name in VERDICTS:
            parts[f"verdict_{name}"] = judged, (frame["verdict"] == name) * 1.0
    return parts, {"escalated": bad_escalated, "feedback": bad_feedback}


def _read(values: "pd.Series[Any]", read: Any) -> tuple["pd.Series[Any]", int]:
    """Return values as numbers, missing where nothing or no value is said, and count the latter."""
    texts = values.where(values.notna(), "").astype("str").str.strip().str.lower()
    numbers = texts.map({text: read(text) for text in texts.unique()}).astype("float64")
    return numbers, int(((texts != "") & numbers.isna()).sum())


def _happened(text: str) -> float:
    if text in YES or text in NO:
        return float(text in YES)
    number = _number(text)
    return number if number >= 0 and number == int(number) else np.nan


def _score(text: str) -> float:
    for names, worth in ((UP, 1.0), (DOWN, -1.0), (NEUTRAL, 0.0)):
        if text in names:
            return worth
    number = _number(text)
    return number if -1 <= number <= 1 else np.nan


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def _percentiles(frame: pd.DataFrame, confidence_level: float) -> Iterator[Signal]:
    weeks = _weeks(frame["started_at"])
    task = pd.factorize(frame["task_key"], sort=True)[0]
    for what, unit, column in (("latency", "s", "latency_s"), ("cost", "usd", "cost_usd")):
        values = frame[column].to_numpy(dtype=np.float64)
        known = np.isfinite(values)
        for level, q in LEVELS.items():

            def at(rows: Any, q: float = q, values: Any = values) -> Any:
                several = len(np.unique(task[rows])) < int(rows.sum())
                return quantile_by_task(
                    values[rows],
                    q,
                    task[rows] if several else None,
                    confidence_level=confidence_level,
                )

            name = f"{what}, {level.upper()}"
            if not known.any():
                nothing = not_estimable(
                    f"{NOT_RECORDED}: no trace says its {what}",
                    method="percentile",
                    confidence_level=confidence_level,
                )
                yield Signal(key=f"{what}_{level}", name=name, unit=unit, over_all=nothing)
                continue
            by_week = tuple(
                (week, at(rows))
                for week in sorted(weeks[known].dropna().unique())
                if (rows := known & (weeks == week).to_numpy()).any()
            )
            yield Signal(
                key=f"{what}_{level}", name=name, unit=unit, over_all=at(known), by_week=by_week
            )


Work = Mapping[str, tuple[WorkItem, ...]]

Said = dict[tuple[str, str], tuple[list[str], list[str]]]


def work_of(loaded: CalibrationData) -> dict[str, tuple[WorkItem, ...]]:
    """Return the labelled traces of each class that somebody looks at, oldest first.

    A trace whose reviewers differ is in none until it is settled.
    """
    said = _said(loaded)
    return {
        outcome: tuple(_item(row, said, outcome) for row in rows.to_dict("records"))
        for outcome, rows in _rows(loaded)
    }


def work_lists(work: Work, weeks: Sequence[str]) -> Iterator[WorkList]:
    """Yield the work lists as the report has them; a week without a run of a class counts 0."""
    for outcome, items in work.items():
        of = Counter(item.week for item in items)
        yield WorkList(
            outcome=outcome,
            goes_to=GOES_TO[outcome],
            n=len(items),
            by_week=tuple((week, of[week]) for week in weeks),
            first=items[:SHOWN_RUNS],
        )


def work_csv(loaded: CalibrationData, outcome: str, *, models: bool = True) -> str:
    """Return the work list of a class as CSV; a text that a spreadsheet would run is guarded.

    Without `models` it does not name them.
    """
    rows = dict(_rows(loaded))[outcome]
    said = _said(loaded)
    columns = [name for name in COLUMNS if models or name != "model"]
    return as_csv(columns, (_csv_row(row, said, outcome) for row in rows.to_dict("records")))


def write_work(loaded: CalibrationData, folder: Path) -> list[Path]:
    """Write one CSV file for each class that somebody looks at.

    Returns
    -------
    list of Path
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for outcome in GOES_TO:
        file = folder / f"{outcome}.csv"
        file.write_text(work_csv(loaded, outcome), encoding="utf-8", newline="")
        written.append(file)
    return written


def _rows(loaded: CalibrationData) -> Iterator[tuple[str, pd.DataFrame]]:
    frame = loaded.labelled.assign(
        at=started(loaded.labelled), week=named(loaded.labelled, "week")
    ).astype({"model": object})
    frame = frame[~disputed(loaded)]
    codes = loaded.human.argmax(axis=1)[~disputed(loaded)]
    for outcome in GOES_TO:
        own = frame[codes == OUTCOMES.index(outcome)].sort_values(["at", "trace_id"])
        yield outcome, own.astype(object).where(own.notna(), None)


def _said(loaded: CalibrationData) -> Said:
    """Return by trace and class what those who gave it wrote and quoted."""
    found: Said = {}
    columns = (loaded.labels[n] for n in ("trace_id", "outcome", "rationale", "evidence"))
    for trace_id, outcome, rationale, evidence in zip(*columns, strict=True):
        reasons, quotes = found.setdefault((trace_id, outcome), ([], []))
        if isinstance(rationale, str) and rationale:
            reasons.append(rationale)
        for part in json.loads(evidence) if isinstance(evidence, str) else ():
            quotes.append(f"{part['step_id']}: {part['quote']}")
    return found


def _item(row: dict[Any, Any], said: Said, outcome: str) -> WorkItem:
    reasons, quotes = said.get((row["trace_id"], outcome), ([], []))
    cost = row["cost_usd"]
    return WorkItem(
        trace_id=str(row["trace_id"]),
        workflow=str(row["workflow"]),
        week=None if row["week"] is None else str(row["week"]),
        model=None if row["model"] is None else str(row["model"]),
        cost_usd=None if cost is None else float(cost),
        reasons=tuple(dict.fromkeys(reasons)),
        evidence=tuple(dict.fromkeys(quotes)),
    )


def _csv_row(row: dict[Any, Any], said: Said, outcome: str) -> Row:
    item = _item(row, said, outcome)
    at = row["at"]
    return {
        "trace_id": item.trace_id,
        "workflow": item.workflow,
        "week": item.week,
        "started_at": at.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(at, pd.Timestamp) else None,
        "model": item.model,
        "task_key": row["task_key"],
        "cost_usd": item.cost_usd,
        "latency_s": row["latency_s"],
        "reasons": "\n".join(item.reasons) or None,
        "evidence": "\n".join(item.evidence) or None,
    }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoreReport:
    """A report with all of its work lists, of which it has the beginnings itself."""

    report: ProductionReport
    work: Work
    rates: StoreRates

    @property
    def loaded(self) -> CalibrationData:
        """The traces it is about, and their labels."""
        return self.rates.loaded


def report_on_store(
    store: Store,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    workflow: str | None = None,
    options: ReportOptions | None = None,
) -> ProductionReport:
    """Report on the traces that a batch was drawn from; parameters as in `report_with_work`."""
    return report_with_work(
        store, batch_id, judge_id=judge_id, design=design, workflow=workflow, options=options
    ).report


def report_with_work(
    store: Store,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    workflow: str | None = None,
    options: ReportOptions | None = None,
) -> StoreReport:
    """Report on the traces that a batch was drawn from, with all of the work lists.

    Parameters
    ----------
    store : Store
        Traces of the reference set in it are never counted.
    batch_id, judge_id : str or None
        The newest random sample and the only judge when None.
    design : {"production", "reference"}
        What the labelled traces are.
    workflow : str or None
        Report on one workflow alone.
    options : ReportOptions, optional
        Window, comparison, resampling; what only files have is ignored.

    Returns
    -------
    StoreReport
        Corrected for judge error where the calibration allows it.

    Raises
    ------
    InputError
        As `rates_of_store`, or if it is to be compared with a file.
    CalibrationError
        As `rates_of_store`.
    """
    options = options or ReportOptions()
    if options.compare_to not in (None, PREVIOUS):
        raise InputError("--compare-to FILE is for files: a store compares with its own past")
    rates = rates_of_store(
        store, batch_id, judge_id=judge_id, design=design, workflow=workflow, options=options
    )
    made = _Assembled(store, rates, workflow)
    report = with_signals(made.report(), store, rates.loaded.traces, rates.judge_id)
    return StoreReport(report=report, work=made.work, rates=rates)


class _Assembled:
    """The parts of a report, each from the rates it needs."""

    def __init__(self, store: Store, rates: StoreRates, workflow: str | None) -> None:
        self.store, self.rates, self.workflow = store, rates, workflow
        self.loaded, self.options = rates.loaded, rates.options
        self.work = work_of(rates.loaded)
        self.weekly = self._weekly()
        self.two_source = self._two_source()

    def report(self) -> ProductionReport:
        rates, human = self.rates, self.rates.human
        shares = tuple(
            replace(c, share=share)
            for c, share in zip(
                classes(human, self.loaded.taxonomy, self.options.targets),
                rates.class_shares,
                strict=True,
            )
        )
        weeks = sorted(w for w in set(named(self.loaded.traces, "week")) if w is not None)
        by_tag, tags_left_out = tag_groups(rates)
        trials, agents_left_out = passes(rates)
        return ProductionReport(
            calibrated=rates.calibrated,
            kind=CORRECTED if rates.calibrated else HUMAN_ONLY,
            target=self._target(),
            n=len(self.loaded.traces),
            n_tasks=int(self.loaded.traces["task_key"].nunique()),
            first=weeks[0] if weeks else None,
            last=weeks[-1] if weeks else None,
            asr=rates.headline,
            asr_gross=rates.corrected_gross if rates.calibrated else human.asr_gross,
            asr_literal=literal(human),
            asr_without_abandoned=human.asr_without_abandoned,
            pass_rate=shares[0].share,
            identity=f"Human-only: {human.identity}",
            mean_effective_penalty=human.mean_effective_penalty,
            asr_range=human.asr_range,
            rounding=human.rounding,
            classes=shares,
            change=self._change(),
            cost=whole_panel(rates),
            weekly=self.weekly,
            by_workflow=tuple(workflow_groups(rates, self.store.workflows())),
            by_model=tuple(model_groups(rates)),
            by_tag=by_tag,
            tags_left_out=tags_left_out,
            sensitivity=tuple(sensitivity(rates)),
            work_lists=tuple(work_lists(self.work, [w.week for w in self.weekly.weeks])),
            signals=(),
            latency=latency(self.loaded),
            set_aside=tuple(left_out(self.store, rates)),
            origin=origin(rates, self.workflow),
            judged=JudgedRates(
                judge_raw=None if rates.raw is None else rates.raw.asr,
                human_only=human.asr,
                corrected=rates.corrected,
                corrected_gross=rates.corrected_gross,
                two_source=self.two_source,
            ),
            warnings=tuple(warnings(rates, self.two_source)),
            notes=tuple(notes(rates, agents_left_out)),
            marks=(SIMULATED,) if self.loaded.simulated else (),
            basis=BASIS,
            passes=trials,
            details={
                "design": self.loaded.batch.design,
                "reviewers": len(self.loaded.reviewers),
                "labelled": len(self.loaded.labelled),
            },
        )

    def _target(self) -> str:
        n, batch = f"{len(self.loaded.traces):,}", self.loaded.batch.batch_id
        errors = (
            "corrected for the errors of the judge with the labelled sample"
            if self.rates.calibrated
            else "from the labelled sample alone"
        )
        where = "" if self.workflow is None else f" of workflow {self.workflow}"
        if self.options.since is not None or self.options.until is not None:
            where += f" ({self.options.window_words})"
        return (
            f"The mean score of the {n} production traces{where} that the batch {batch} was drawn "
            f"from, {errors}."
        )

    def _two_source(self) -> Estimate | None:
        if self.rates.judge is None:
            return None
        made = self.rates.judge.calibration.estimates.get("bootstrap")
        return None if made is None else made.net

    def _weekly(self) -> WeeklySeries:
        """Return the weeks of the labelled sample; the verdicts of a week are not corrected."""
        found = weekly_series(
            self.rates.runs, pooled=self.options.pooled, **self.options.resampling(1)
        )
        open_in = Counter(named(self.loaded.labelled, "week")[self.rates.disputed].tolist())
        weeks = tuple(
            replace(week, rate=provisional(week.rate, open_in[week.week])) for week in found.weeks
        )
        return replace(found, weeks=weeks)

    def _change(self) -> Change | None:
        """Compare with the window of equal length before, else the last week with the one before.

        Of the labelled traces: tasks that both sides have are resampled together.
        """
        if self.options.compare_to is None:
            return None
        since, until = self.options.window
        if since is None:
            return change_of_weeks(self.rates.runs, self.options)
        if until is None:
            raise InputError(
                "--compare-to previous needs --to with --from, to know how long before"
            )
        both = load_batch(
            self.store,
            self.loaded.batch.batch_id,
            part=Part(since=since - (until - since), until=until, workflow=self.workflow),
        )
        later = (started(both.labelled) >= since).to_numpy()
        if later.all():
            return None
        runs = counted(both, both.labelled, both.human, both.weights)
        found = compare_runs(
            runs.where(~later),
            runs.where(later),
            paired=runs.task is not None,
            **self.options.resampling(4),
        )
        return change_of(found, later=self.options.window_words, earlier="the window before")


def without_models(made: StoreReport) -> StoreReport:
    """Return a report that names no model and no agent: reviewers who label must not know them."""

    def hidden(items: tuple[WorkItem, ...]) -> tuple[WorkItem, ...]:
        return tuple(replace(item, model=None) for item in items)

    report = replace(
        made.report,
        by_model=(),
        passes=(),
        work_lists=tuple(replace(one, first=hidden(one.first)) for one in made.report.work_lists),
    )
    return replace(
        made, report=report, work={outcome: hidden(of) for outcome, of in made.work.items()}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportChoices:
    """What the traces that a batch was drawn from can be narrowed to.

    Parameters
    ----------
    first, last : date or None
        Days on which the first and the last trace was started, in UTC; None where none says.
    workflows : tuple of str
        Of the traces.
    undated : int
        Traces that do not say when they were started.
    """

    first: date | None
    last: date | None
    workflows: tuple[str, ...]
    undated: int

    def last_weeks(self, n: int) -> tuple[str, str] | None:
        """Return the first and the last of the last `n` ISO weeks; None where nothing is dated.

        Examples
        --------
        >>> day = date(2026, 11, 4)
        >>> ReportChoices(first=day, last=day, workflows=(), undated=0).last_weeks(4)
        ('2026-W42', '2026-W45')
        """
        if self.last is None:
            return None
        return _week(self.last - timedelta(weeks=n - 1)), _week(self.last)


def _week(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"{year:04d}-W{week:02d}"


def report_choices(store: Store, batch_id: str) -> ReportChoices:
    """Return what the traces of a batch can be narrowed to.

    Raises
    ------
    CalibrationError
        If the batch is no random sample.
    """
    traces = load_batch(store, batch_id).traces
    times = started(traces).dropna()
    return ReportChoices(
        first=None if times.empty else times.min().date(),
        last=None if times.empty else times.max().date(),
        workflows=tuple(sorted(traces["workflow"].unique())),
        undated=len(traces) - len(times),
    )
