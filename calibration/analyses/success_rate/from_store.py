"""The success-rate report on a store."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import CalibrationData
from calibration.analyses.evidence.from_store import (
    INPUT_COLUMNS,
    Part,
    drawn_frame,
    human_frame,
    load_batch,
    started,
    with_judge,
)
from calibration.analyses.fingerprint import fingerprint, package_version
from calibration.analyses.judge.calibration import rate_at_credit
from calibration.analyses.success_rate.assembly import (
    LoadedRuns,
    assemble,
    provisional,
    rate_group,
)
from calibration.analyses.success_rate.corrected import (
    StoreRates,
    labelled_runs,
    named,
    rates_of_store,
)
from calibration.analyses.success_rate.report import (
    PREVIOUS,
    AtOtherWeights,
    Change,
    JudgedRates,
    LeftOutRows,
    Origin,
    Passes,
    ProductionReport,
    RateGroup,
    ReportOptions,
    WorkItem,
    change_of,
    change_of_weeks,
    credit_in_words,
    other_tables,
    table_in_words,
)
from calibration.analyses.success_rate.review_queue import Work, work_lists, work_of
from calibration.analyses.success_rate.signals import Amounts, tasks_by_week
from calibration.errors import InputError
from calibration.judge_calibration.samples import HEADLINE
from calibration.records import OUTCOMES, REFERENCE_SOURCE
from calibration.runs import ProductionCounts, production_counts
from calibration.runs.results import GateQuery
from calibration.runs.store_runs import from_store
from calibration.statistics.estimate import Estimate, not_estimable
from calibration.store import Store
from calibration.success_rate.comparison import compare_runs
from calibration.success_rate.pass_at_k import PassAtK, count_trials, pass_over_tasks
from calibration.success_rate.rate import rate_of_counts
from calibration.success_rate.runs import RunCounts, count_runs
from calibration.success_rate.trend import calendar

BASIS = "human labels alone"

# Half-widths that differ by more than this are a warning.
APART = 0.20

MOST_TAGS, MOST_AGENTS = 50, 20

KS = (1, 2, 4, 8)

CORRECTED = "corrected for judge error"

HUMAN_ONLY = "human labels only, not calibrated"

SIMULATED = "SIMULATED DATA: labels, verdicts and production runs are drawn at random."

MISSING = {
    **dict.fromkeys(("errors", "timeouts"), "no trace of the store has a status"),
    **dict.fromkeys(("tool_errors", "loops"), "no trace of the store has steps"),
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
    """A report with all of its work lists, of which it has the beginnings itself."""

    report: ProductionReport
    work: Work
    rates: StoreRates

    @property
    def loaded(self) -> CalibrationData:
        """The traces it is about, and their labels."""
        return self.rates.loaded


def report_on_store(store: Store, options: ReportOptions | None = None) -> ProductionReport:
    """Report on the traces that a batch was drawn from, as `report_with_work`."""
    return report_with_work(store, options).report


def report_with_work(store: Store, options: ReportOptions | None = None) -> StoreReport:
    """Report on the traces that a batch was drawn from, with all of the work lists.

    Parameters
    ----------
    store : Store
        Traces of the reference set in it are never counted.
    options : ReportOptions, optional
        Batch, judge, window, comparison, resampling; what only files have is ignored.

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
    rates = rates_of_store(store, options)
    runs, work = loaded_runs(store, rates), work_of(rates.loaded)
    weeks = rates.runs.labels("week").seen
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
    report = replace(
        made,
        n_tasks=int(loaded.traces["task_key"].nunique()),
        sensitivity=(*corrected_at(rates), *made.sensitivity),
        change=_change(store, rates),
        by_tag=by_tag,
        tags_left_out=tags_left_out,
        work_lists=tuple(work_lists(work, calendar(weeks[0], weeks[-1]) if weeks else ())),
        set_aside=tuple(left_out(store, rates, runs.counts)),
        judged=JudgedRates(
            judge_raw=rates.raw,
            human_only=rates.human.asr,
            corrected=rates.corrected,
            corrected_gross=rates.corrected_gross,
            two_source=check,
        ),
        warnings=tuple(warnings(rates, check)),
        notes=(*notes(rates, agents_left_out), *made.notes),
        marks=(SIMULATED,) if loaded.simulated else (),
        basis=BASIS,
        passes=trials,
        details={
            "design": loaded.batch.design,
            "reviewers": len(loaded.reviewers),
            "labelled": len(loaded.labelled),
        },
    )
    return StoreReport(report=report, work=work, rates=rates)


def loaded_runs(store: Store, rates: StoreRates, *, gates: GateQuery | None = None) -> LoadedRuns:
    """Return all traces with their labels as a report takes them, and with what `gates` need."""
    loaded, frame = rates.loaded, rates.loaded.traces
    taxonomy = replace(loaded.taxonomy, workflows=tuple(store.workflows().values()))
    traces = frame.assign(model=named(frame, "model"))
    verdicts = None if rates.judge_id is None else store.verdict_frame(rates.judge_id)
    with from_store(traces, store.operation_frame(), verdicts) as source:
        counts = production_counts(
            source, taxonomy=taxonomy, known_workflows_only=False, gates=gates
        )
    latency, cost, of_ceiling = listed_amounts(frame, tasks_by_week(counts))
    return LoadedRuns(
        counts=counts,
        runs=rates.runs,
        rate=rates.human,
        latency=latency,
        cost=cost,
        of_ceiling=of_ceiling,
        taxonomy=taxonomy,
        options=rates.options,
        open=rates.disputed,
        priced=_priced(rates),
        sampled=True,
        missing=MISSING,
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


def _priced(rates: StoreRates) -> RunCounts:
    """Return the labelled traces with every known cost: one without a ceiling is a cost too."""
    loaded = rates.loaded
    task = pd.factorize(loaded.labelled["task_key"])[0]
    return count_runs(
        loaded.human,
        costs=loaded.labelled["cost_usd"].to_numpy(dtype=np.float64),
        # A penalty enters nowhere.
        ceilings=1.0,
        weights=rates.runs.weight,
        clusters=task if len(np.unique(task)) < len(task) else None,
    )


def kind_of(rates: StoreRates) -> str:
    """Return what the headline is, in words."""
    return CORRECTED if rates.calibrated else HUMAN_ONLY


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
    return (
        f"The mean score of the {len(loaded.traces):,} production traces{where} that the batch "
        f"{loaded.batch.batch_id} was drawn from, {errors}."
    )


def two_source(rates: StoreRates) -> Estimate | None:
    """Return the headline by the bootstrap of both sources, its check; None without a judge."""
    if rates.judge is None:
        return None
    made = rates.judge.calibration.estimates.get("bootstrap")
    return None if made is None else made.net


def _change(store: Store, rates: StoreRates) -> Change | None:
    """Compare with the window of equal length before, else the last week with the one before.

    Of the labelled traces: tasks that both sides have are resampled together.
    """
    options = rates.options
    if options.compare_to is None:
        return None
    since, until = options.window
    if since is None:
        return change_of_weeks(rates.runs, options)
    if until is None:
        raise InputError("--compare-to previous needs --to with --from, to know how long before")
    both = load_batch(
        store,
        rates.loaded.batch.batch_id,
        part=Part(since=since - (until - since), until=until, workflow=options.workflow),
    )
    later = (started(both.labelled) >= since).to_numpy()
    if later.all():
        return None
    if rates.judge is not None:
        both = with_judge(store, both, rates.judge_id)
    _, runs = labelled_runs(both, options.design)
    found = compare_runs(
        runs.where(~later),
        runs.where(later),
        paired=runs.task is not None,
        **options.resampling(4),
    )
    return change_of(found, later=options.window_words, earlier="the window before")


def tag_groups(rates: StoreRates, runs: LoadedRuns) -> tuple[tuple[RateGroup, ...], int]:
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
        groups.append(rate_group(tag, rate, runs.n_open(rows)))
    return tuple(groups), len(tagged) - len(groups)


def corrected_at(rates: StoreRates) -> Iterator[AtOtherWeights]:
    """Yield the corrected rate at other weights; nothing where there is none."""
    if not rates.calibrated or rates.judge is None:
        return
    loaded = rates.loaded
    own = tuple(loaded.taxonomy.credit[name] for name in OUTCOMES)
    words = f"corrected, as reported ({credit_in_words(own)})"
    yield AtOtherWeights(name=words, credit=own, asr=rates.corrected)
    for name, credit in other_tables(loaded.taxonomy).items():
        yield AtOtherWeights(
            name=f"corrected, {table_in_words(name, credit)}",
            credit=credit,
            asr=rate_at_credit(loaded, rates.judge, credit),
        )


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


def _point(
    rates: StoreRates, of_agent: NDArray[np.bool_], k: int, n_tasks: int, number: int
) -> PassAtK:
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


def left_out(store: Store, rates: StoreRates, counts: ProductionCounts) -> Iterator[LeftOutRows]:
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
            yield LeftOutRows(reason=reason, n=n)
    for rows in counts.set_aside:
        yield LeftOutRows(reason=rows.why, n=rows.n)


def notes(rates: StoreRates, agents_left_out: int = 0) -> Iterator[str]:
    """Yield what helps to know."""
    if rates.loaded.open_disagreements:
        yield f"{rates.loaded.open_disagreements:,} disagreements are open: provisional."
    yield (
        f"Weeks, changes, groups and work lists rest on {BASIS}; cost and latency are those of "
        "all traces."
    )
    if rates.raw is not None:
        yield (
            "Judge-raw takes every verdict as true: a diagnostic without an interval, because its "
            "error is bias and not sampling."
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
    return HEADLINE[rates.options.design], "bootstrap"


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


def origin(rates: StoreRates) -> Origin:
    """Return all that it takes to make the report again."""
    loaded, options = rates.loaded, rates.options
    kind = loaded.batch.design.get("kind", "unknown design")
    settings = options.store_settings(loaded.batch.batch_id, rates.judge_id)
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
