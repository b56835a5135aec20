"""The report on a store: human-only, judge-raw and corrected, as the same object as on files."""

from collections import Counter
from dataclasses import dataclass, replace

from calibration.analyses.asr_report import (
    Change,
    JudgedRates,
    ProductionReport,
    WorkItem,
)
from calibration.analyses.labelled_batch import LabelledBatch, Part, load_batch, started
from calibration.analyses.report_options import PREVIOUS, ReportOptions
from calibration.analyses.report_parts import change_of, change_of_weeks, classes, literal
from calibration.analyses.store_origin import BASIS, left_out, notes, origin, warnings
from calibration.analyses.store_parts import (
    latency,
    model_groups,
    passes,
    sensitivity,
    tag_groups,
    whole_panel,
    workflow_groups,
)
from calibration.analyses.store_rates import (
    StoreRates,
    counted,
    named,
    provisional,
    rates_of_store,
)
from calibration.analyses.store_signals import with_signals
from calibration.analyses.store_work import Work, work_lists, work_of
from calibration.correction.calibrate import Design
from calibration.errors import InputError
from calibration.estimates import Estimate
from calibration.metrics.comparison import compare_runs
from calibration.metrics.weekly import WeeklySeries, weekly_series
from calibration.store import Store

CORRECTED = "corrected for judge error"
HUMAN_ONLY = "human labels only, not calibrated"
SIMULATED = "SIMULATED DATA: labels, verdicts and production runs are drawn at random."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoreReport:
    """A report with all of its work lists, of which it has the beginnings itself."""

    report: ProductionReport
    work: Work
    rates: StoreRates

    @property
    def loaded(self) -> LabelledBatch:
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
