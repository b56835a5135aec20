"""The rates of a batch of a store: human-only, judge-raw and corrected."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.both_sides import UNKNOWN, group_names
from calibration.analyses.judge import JudgeAnalysis, choose_judge, judge_of, refuse_mixture
from calibration.analyses.judged_population import judged_population, known_costs
from calibration.analyses.labelled_batch import LabelledBatch, Part, load_batch
from calibration.analyses.report_options import ReportOptions
from calibration.analyses.weight_tables import other_tables
from calibration.correction.calibrate import HEADLINE, Design
from calibration.errors import CalibrationError
from calibration.estimates import OK, Estimate, not_estimable
from calibration.metrics.asr import AgentSuccessRate, rate_of_counts
from calibration.metrics.counting import count_runs
from calibration.metrics.counts import RunCounts
from calibration.records import OUTCOMES
from calibration.store import Store

NO_VERDICTS = "the store holds no verdicts; import a judge's verdicts to correct for its errors"
BY = ("week", "workflow", "model")


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
    judge : JudgeAnalysis or None
        The calibration; None without verdicts.
    corrected, corrected_gross : Estimate
        Its headline, or why there is none.
    class_shares : tuple of Estimate
        By the same estimator; of the labelled traces where it has no value.
    """

    loaded: LabelledBatch
    options: ReportOptions
    design: Design
    judge_id: str | None
    runs: RunCounts
    raw: AgentSuccessRate | None
    human: AgentSuccessRate
    judge: JudgeAnalysis | None
    verdicts: pd.DataFrame | None
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
    judge = raw = verdicts = None
    corrected = gross = not_estimable(NO_VERDICTS, method="calibration")
    shares: tuple[Estimate, ...] = ()
    if judge_id is not None or not store.judge_frame().empty:
        judge_id = choose_judge(store, judge_id)
        refuse_mixture(store, judge_id, loaded)
        verdicts = store.verdict_frame(judge_id)
        judge = judge_of(
            loaded,
            verdicts,
            judge_id=judge_id,
            design=design,
            confidence_level=options.confidence_level,
            seed=options.seed,
        )
        raw = _raw(loaded, verdicts, options)
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
        verdicts=verdicts,
        corrected=corrected,
        corrected_gross=gross,
        class_shares=shares or human.class_shares,
    )


def _refuse(loaded: LabelledBatch, part: Part, options: ReportOptions) -> None:
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


def _raw(
    loaded: LabelledBatch, verdicts: pd.DataFrame, options: ReportOptions
) -> AgentSuccessRate | None:
    """Score the verdicts as if they were true; traces without one are left out."""
    population = judged_population(loaded, verdicts)
    judged = population.verdicts < len(OUTCOMES)
    if not judged.any():
        return None
    codes = population.verdicts[judged]
    return rate_of_counts(
        counted(loaded, loaded.traces[judged], codes, None), **options.resampling(6)
    )


def _corrected(judge: JudgeAnalysis) -> tuple[Estimate, Estimate, tuple[Estimate, ...]]:
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
    loaded: LabelledBatch,
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


def disputed(loaded: LabelledBatch) -> NDArray[np.bool_]:
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
