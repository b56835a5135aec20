"""The Agent Success Rate of production: judge-raw, human-only and corrected, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.fingerprint import fingerprint
from calibration.analyses.judge import (
    INPUT_COLUMNS,
    JudgeAnalysis,
    JudgedPopulation,
    choose_judge,
    drawn_frame,
    human_frame,
    judge_of,
    judged_population,
    known_costs,
    refuse_mixture,
)
from calibration.analyses.labelled_batch import LabelledBatch, load_batch
from calibration.analyses.weight_tables import other_tables
from calibration.correction.calibrate import Design
from calibration.errors import CalibrationError, InputError
from calibration.estimates import OK, Estimate, not_estimable
from calibration.metrics.asr import AgentSuccessRate, agent_success_rate
from calibration.records import OUTCOMES
from calibration.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSummary:
    """What the runs cost, in USD per run, over the runs whose cost is known."""

    n: int
    n_known: int
    n_without_ceiling: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    share_over_ceiling: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSummary:
    """One workflow: its ceiling, its runs, what they cost, and its human-labelled rate."""

    name: str
    ceiling_usd: float | None
    unit: str
    cost: CostSummary
    n_labelled: int
    human_only: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class AsrAnalysis:
    """Everything the report and the ASR page show about one batch and one judge.

    `raw` takes the verdicts of the judge as they are, over production; `human_only` uses the
    labelled sample alone; `corrected` is the headline of the judge calibration. Any of them
    may be missing, with the reason in its status.
    """

    batch_id: str
    design: dict[str, object]
    judge_id: str | None
    reviewers: tuple[str, ...]
    n_production: int
    n_labelled: int
    unlabelled: int
    skipped: int
    open_disagreements: int
    exposed: int
    later_traces: int
    raw: AgentSuccessRate | None
    human_only: AgentSuccessRate
    judge: JudgeAnalysis | None
    corrected: Estimate
    corrected_gross: Estimate
    class_shares: tuple[Estimate, ...]
    cost: CostSummary
    workflows: tuple[WorkflowSummary, ...]
    credit: Mapping[str, float]
    taxonomy_version: str
    taxonomy_fingerprint: str
    seed: int
    n_resamples: int
    simulated: bool
    fingerprint: str

    @property
    def calibrated(self) -> bool:
        """Whether the headline is corrected for the errors of the judge."""
        return self.corrected.ok

    @property
    def headline(self) -> Estimate:
        """The corrected rate where there is one, else the rate of the labelled sample."""
        return self.corrected if self.corrected.ok else self.human_only.asr


def analyse_asr(
    store: Store,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    seed: int = 0,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
) -> AsrAnalysis:
    """Estimate the Agent Success Rate of the traces that a batch was drawn from.

    Without any verdict in the store the judge is left out and the headline is the labelled
    sample alone.
    """
    loaded = load_batch(store, batch_id)
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    if loaded.labelled.empty:
        raise CalibrationError(
            f"batch {loaded.batch.batch_id!r} has no labels yet; label it on the Label page"
        )
    judge = raw = None
    corrected = gross = not_estimable(
        "the store holds no verdicts; import a judge's verdicts to correct for its errors",
        method="calibration",
    )
    shares: tuple[Estimate, ...] = ()
    if judge_id is not None or not store.judge_frame().empty:
        judge_id = choose_judge(store, judge_id)
        refuse_mixture(store, judge_id, loaded)
        verdicts = store.verdict_frame(judge_id)
        judge = judge_of(
            loaded, verdicts, judge_id=judge_id, design=design, confidence_level=confidence_level,
            seed=seed,
        )  # fmt: skip
        raw = _raw(loaded, judged_population(loaded, verdicts), seed, n_resamples, confidence_level)
        corrected, gross, shares = _corrected(judge)
    human = _human_only(loaded, seed, n_resamples, confidence_level)
    return AsrAnalysis(
        batch_id=loaded.batch.batch_id,
        design=loaded.batch.design,
        judge_id=judge_id,
        reviewers=tuple(loaded.reviewers),
        n_production=len(loaded.traces),
        n_labelled=len(loaded.labelled),
        unlabelled=loaded.unlabelled,
        skipped=len(loaded.skipped_ids),
        open_disagreements=loaded.open_disagreements,
        exposed=loaded.exposed,
        later_traces=loaded.later_traces,
        raw=raw,
        human_only=human,
        judge=judge,
        corrected=corrected,
        corrected_gross=gross,
        class_shares=shares or human.class_shares,
        cost=cost_summary(loaded.traces),
        workflows=_workflows(store, loaded, seed, n_resamples, confidence_level),
        credit=loaded.taxonomy.credit,
        taxonomy_version=loaded.taxonomy.version,
        taxonomy_fingerprint=loaded.taxonomy.fingerprint,
        seed=seed,
        n_resamples=n_resamples,
        simulated=loaded.simulated,
        fingerprint=fingerprint(
            taxonomy=loaded.taxonomy.fingerprint,
            settings={
                "kind": "asr",
                "seed": seed,
                "n_resamples": n_resamples,
                "judge": judge_id,
                "confidence_level": confidence_level,
            },
            human=human_frame(loaded),
            drawn=drawn_frame(loaded),
            traces=loaded.traces[INPUT_COLUMNS],
            judge=pd.DataFrame({"fingerprint": [judge.fingerprint if judge else ""]}),
        ),
    )


def _corrected(judge: JudgeAnalysis) -> tuple[Estimate, Estimate, tuple[Estimate, ...]]:
    result = judge.calibration
    headline = result.headline_estimate
    if headline is None or result.headline is None:
        why = "; ".join(f"{notice.why} ({notice.mend})" for notice in result.refusals)
        refused = not_estimable(why or "no estimator applies", method="calibration")
        return refused, refused, ()
    return headline.net, headline.gross, result.class_shares[result.headline]


def _raw(
    loaded: LabelledBatch,
    population: JudgedPopulation,
    seed: int,
    n_resamples: int,
    confidence_level: float,
) -> AgentSuccessRate | None:
    """Score the verdicts as if they were true; traces without one are left out."""
    judged = population.verdicts < len(OUTCOMES)
    if not judged.any():
        return None
    return _rate(
        loaded,
        loaded.traces[judged],
        population.verdicts[judged],
        seed,
        n_resamples,
        confidence_level,
    )


def _human_only(
    loaded: LabelledBatch, seed: int, n_resamples: int, confidence_level: float
) -> AgentSuccessRate:
    return _rate(
        loaded,
        loaded.labelled,
        loaded.human,
        seed,
        n_resamples,
        confidence_level,
        weights=loaded.weights,
    )


def _rate(
    loaded: LabelledBatch,
    frame: pd.DataFrame,
    outcomes: NDArray[np.int64] | NDArray[np.float64],
    seed: int,
    n_resamples: int,
    confidence_level: float,
    *,
    weights: NDArray[np.float64] | None = None,
) -> AgentSuccessRate:
    clusters = pd.factorize(frame["task_key"])[0]
    rate = agent_success_rate(
        outcomes,
        costs=known_costs(frame),
        ceilings=frame["ceiling_usd"].fillna(1.0).to_numpy(dtype=np.float64),
        units=frame["units"].to_numpy(dtype=np.float64),
        credit=tuple(loaded.taxonomy.credit[name] for name in OUTCOMES),
        other_credit=other_tables(loaded.taxonomy),
        weights=weights,
        clusters=clusters if len(np.unique(clusters)) < len(clusters) else None,
        rng=np.random.default_rng(seed),
        n_resamples=n_resamples,
        confidence_level=confidence_level,
    )
    # A trace with several classes is one whose reviewers differ and that nobody has settled.
    disputed = int(((outcomes > 0).sum(axis=1) > 1).sum()) if outcomes.ndim == 2 else 0
    return _provisional(rate, disputed) if disputed else rate


def _provisional(rate: AgentSuccessRate, disputed: int) -> AgentSuccessRate:
    """Mark what open disagreements may still move."""

    def marked(estimate: Estimate) -> Estimate:
        if estimate.status != OK:
            return estimate
        return replace(estimate, status=f"provisional: {disputed} open disagreements")

    return replace(
        rate,
        asr=marked(rate.asr),
        asr_gross=marked(rate.asr_gross),
        asr_without_abandoned=marked(rate.asr_without_abandoned),
        pass_rate=marked(rate.pass_rate),
        class_shares=tuple(map(marked, rate.class_shares)),
    )


def cost_summary(frame: pd.DataFrame) -> CostSummary:
    """Summarise what runs cost; None where no cost, or no ceiling to hold it to, is known."""
    costs = frame["cost_usd"].dropna().to_numpy(dtype=np.float64)
    held = frame["cost_usd"].notna() & frame["ceiling_usd"].notna()
    over = (frame["cost_usd"] > frame["ceiling_usd"] * frame["units"])[held]
    p50, p90, p99 = np.quantile(costs, [0.5, 0.9, 0.99]).tolist() if len(costs) else (None,) * 3
    return CostSummary(
        n=len(frame),
        n_known=len(costs),
        n_without_ceiling=int(frame["ceiling_usd"].isna().sum()),
        mean=float(costs.mean()) if len(costs) else None,
        p50=p50,
        p90=p90,
        p99=p99,
        share_over_ceiling=float(over.mean()) if len(over) else None,
    )


def _workflows(
    store: Store, loaded: LabelledBatch, seed: int, n_resamples: int, confidence_level: float
) -> tuple[WorkflowSummary, ...]:
    known = store.workflows()
    summaries = []
    for name, frame in loaded.traces.groupby("workflow"):
        inside = (loaded.labelled["workflow"] == name).to_numpy()
        if inside.any():
            rate = _rate(
                loaded,
                loaded.labelled[inside],
                loaded.human[inside],
                seed,
                n_resamples,
                confidence_level,
                weights=None if loaded.weights is None else loaded.weights[inside],
            ).asr
        else:
            rate = not_estimable("no labelled trace of this workflow", method="bootstrap")
        workflow = known[str(name)]
        summaries.append(
            WorkflowSummary(
                name=str(name),
                ceiling_usd=workflow.ceiling_usd,
                unit=workflow.unit,
                cost=cost_summary(frame),
                n_labelled=int(inside.sum()),
                human_only=rate,
            )
        )
    return tuple(summaries)
