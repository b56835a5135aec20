"""The rates of a store: human-only, uncorrected, and corrected for the errors of a judge."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.evidence.data import UNKNOWN, CalibrationData, group_names
from calibration.analyses.evidence.from_store import (
    Part,
    known_costs,
    load_batch,
    with_judge,
)
from calibration.analyses.judge.calibration import (
    CalibrationOptions,
    JudgeCalibration,
    calibrate_judge,
)
from calibration.analyses.success_rate.assembly import provisional
from calibration.analyses.success_rate.report import ReportOptions, other_tables
from calibration.errors import CalibrationError
from calibration.judge_calibration.samples import (
    CLASS_LABELS_MIN,
    HEADLINE,
    Design,
    LabelledSample,
    with_enough_labels,
)
from calibration.records import OUTCOMES
from calibration.statistics.estimate import Estimate, not_estimable
from calibration.statistics.means import human_only
from calibration.store import Store
from calibration.success_rate.rate import AgentSuccessRate, rate_of_counts
from calibration.success_rate.runs import ABANDONED, RunCounts, count_runs

NO_VERDICTS = "the store holds no verdicts; import a judge's verdicts to correct for its errors"

BY = ("week", "workflow", "model")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoreRates:
    """The rates of a batch with what they were made from.

    Parameters
    ----------
    runs : RunCounts
        The labelled traces, by week, workflow and model.
    raw : Estimate or None
        Every verdict taken as true, never with an interval; None without verdicts.
    human : AgentSuccessRate
        The labelled traces alone, by `human_only`.
    judge : JudgeCalibration or None
        The calibration; None without verdicts.
    corrected, corrected_gross : Estimate
        Its headline, or why there is none.
    class_shares : tuple of Estimate
        By the same estimator; of the labelled traces where it has no value.
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


def rates_of_store(store: Store, options: ReportOptions | None = None) -> StoreRates:
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
    part = Part(since=since, until=until, workflow=options.workflow)
    loaded = load_batch(store, options.batch_id, part=part)
    _refuse(loaded, part, options)
    judge_id, judge = options.judge_id, None
    corrected = gross = not_estimable(NO_VERDICTS, method="calibration")
    shares: tuple[Estimate, ...] = ()
    if judge_id is not None or not store.judge_frame().empty:
        loaded = with_judge(store, loaded, judge_id)
        judge_id = loaded.provenance.judge_id
        judge = calibrate_judge(
            loaded,
            CalibrationOptions(
                design=options.design,
                confidence_level=options.confidence_level,
                seed=options.seed,
            ),
        )
        corrected, gross, shares = _corrected(judge)
    sample, runs = labelled_runs(loaded, options.design)
    human = _human_only(sample, rate_of_counts(runs, **options.resampling(0)), loaded, options)
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
    )


def labelled_runs(loaded: CalibrationData, design: Design) -> tuple[LabelledSample, RunCounts]:
    """Return the labelled traces as `asr calibrate` weighs them, and counted.

    By week, workflow and model, with tasks where one was run more than once.
    """
    sample = loaded.sample(design)
    frame = loaded.labelled
    clusters = pd.factorize(frame["task_key"])[0]
    runs = count_runs(
        loaded.human,
        costs=known_costs(frame),
        ceilings=frame["ceiling_usd"].fillna(1.0).to_numpy(dtype=np.float64),
        units=frame["units"].to_numpy(dtype=np.float64),
        credit=tuple(loaded.taxonomy.credit[name] for name in OUTCOMES),
        other_credit=other_tables(loaded.taxonomy),
        weights=sample.weights,
        clusters=clusters if len(np.unique(clusters)) < len(clusters) else None,
        by={name: named(frame, name) for name in BY},
    )
    return sample, runs


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


def _raw(judge: JudgeCalibration | None) -> Estimate | None:
    if judge is None:
        return None
    found = judge.calibration.estimates["judge_raw"].net
    return found if found.ok else None


def _human_only(
    sample: LabelledSample,
    counted: AgentSuccessRate,
    loaded: CalibrationData,
    options: ReportOptions,
) -> AgentSuccessRate:
    """Return the rate of the labelled traces, each part by `human_only` as `asr calibrate` has it.

    What only the counts know, such as the range that missing costs leave, stays as counted.
    """
    human, weights, clusters = sample.human, sample.weights, sample.clusters
    penalties = np.zeros(len(human)) if sample.penalties is None else sample.penalties
    n_open = int(disputed(loaded).sum())

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
            confidence_level=options.confidence_level,
        )
        return provisional(found, n_open)

    def scores(credit: NDArray[np.float64]) -> NDArray[np.float64]:
        return human * np.maximum(0.0, credit - penalties[:, None])

    credit = np.array([loaded.taxonomy.credit[name] for name in OUTCOMES])
    own, present = scores(credit), 1.0 - human[:, ABANDONED]
    shares = tuple(
        with_enough_labels(mean(column), float(column.sum()), CLASS_LABELS_MIN)
        for column in human.T
    )
    return replace(
        counted,
        asr=mean(own.sum(axis=1)),
        asr_gross=mean(human @ credit),
        asr_without_abandoned=mean(np.delete(own, ABANDONED, axis=1).sum(axis=1), present),
        pass_rate=shares[0],
        class_shares=shares,
        at_other_credit={
            name: mean(scores(np.array(table)).sum(axis=1))
            for name, table in other_tables(loaded.taxonomy).items()
        },
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


def named(frame: pd.DataFrame, by: str) -> NDArray[np.object_]:
    """Return the week, workflow, model or agent of traces; None where they do not say."""
    known = by == "workflow"
    names = [name if known or name != UNKNOWN else None for name in group_names(frame, by).tolist()]
    return np.array(names, dtype=object)


def disputed(loaded: CalibrationData) -> NDArray[np.bool_]:
    """Return which labelled traces have several classes: reviewers differ, nobody has settled."""
    return np.asarray((loaded.human > 0).sum(axis=1) > 1)
