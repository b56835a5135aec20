"""The report on a store: human-only, judge-raw and corrected, as the same object as on files."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.analyses.asr import AsrAnalysis, CostSummary, analyse_asr
from calibration.analyses.asr_report import (
    AtOtherWeights,
    CostPanel,
    Group,
    JudgedRates,
    LeftOut,
    Origin,
    ProductionReport,
    WorkItem,
    WorkList,
)
from calibration.analyses.fingerprint import package_version
from calibration.analyses.judge import known_costs
from calibration.analyses.labelled_batch import LabelledBatch, load_batch
from calibration.analyses.report_parts import GOES_TO, SHOWN_RUNS, classes, literal
from calibration.analyses.store_signals import with_signals
from calibration.analyses.weight_tables import credit_in_words, other_tables, table_in_words
from calibration.correction.calibrate import Design
from calibration.estimates import Estimate
from calibration.metrics.counting import count_runs
from calibration.metrics.weekly import WeeklySeries, weekly_series
from calibration.records import OUTCOMES
from calibration.store import Store

CORRECTED = "corrected for judge error"
HUMAN_ONLY = "human labels only, not calibrated"
SIMULATED = "SIMULATED DATA: labels, verdicts and production runs are drawn at random."
# Half-widths that differ by more than this are a warning.
APART = 0.20


def report_on_store(
    store: Store,
    batch_id: str | None = None,
    *,
    judge_id: str | None = None,
    design: Design = "production",
    seed: int = 0,
    n_resamples: int = 1000,
) -> ProductionReport:
    """Report on the traces that a batch was drawn from; see `analyse_asr`."""
    found = analyse_asr(
        store, batch_id, judge_id=judge_id, design=design, seed=seed, n_resamples=n_resamples
    )
    loaded = load_batch(store, found.batch_id)
    made = report_of_analysis(found, loaded, design=design)
    return with_signals(made, store, loaded.traces, found.judge_id)


def report_of_analysis(
    found: AsrAnalysis, loaded: LabelledBatch, *, design: Design = "production"
) -> ProductionReport:
    """Return an analysis as the report that all renderers share."""
    human, head = found.human_only, found.headline
    two_source = _two_source(found)
    weekly = _weekly(found, loaded)
    shares = classes(human, loaded.taxonomy, {})
    if found.calibrated:
        shares = tuple(
            replace(c, share=share) for c, share in zip(shares, found.class_shares, strict=True)
        )
    return ProductionReport(
        calibrated=found.calibrated,
        kind=CORRECTED if found.calibrated else HUMAN_ONLY,
        target=_target(found, loaded),
        n=found.n_production,
        n_tasks=None,
        first=weekly.weeks[0].week if weekly is not None and weekly.weeks else None,
        last=weekly.weeks[-1].week if weekly is not None and weekly.weeks else None,
        asr=head,
        asr_gross=found.corrected_gross if found.calibrated else human.asr_gross,
        asr_literal=literal(human),
        asr_without_abandoned=human.asr_without_abandoned,
        pass_rate=shares[0].share,
        identity=f"Human-only: {human.identity}",
        mean_effective_penalty=human.mean_effective_penalty,
        asr_range=human.asr_range,
        rounding=human.rounding,
        classes=shares,
        change=None,
        cost=_panel(found.cost),
        weekly=weekly,
        by_workflow=tuple(
            Group(
                name=w.name,
                n=w.n_labelled,
                asr=w.human_only,
                cost=_panel(w.cost),
                ceiling_usd=w.ceiling_usd,
                unit=w.unit,
            )
            for w in found.workflows
        ),
        by_model=(),
        by_tag=(),
        sensitivity=tuple(_sensitivity(found, loaded)),
        work_lists=tuple(_work(loaded)),
        signals=(),
        latency=None,
        set_aside=tuple(_left_out(found)),
        origin=_origin(found, design),
        judged=JudgedRates(
            judge_raw=None if found.raw is None else found.raw.asr,
            human_only=human.asr,
            corrected=found.corrected,
            corrected_gross=found.corrected_gross,
            two_source=two_source,
        ),
        warnings=tuple(_warnings(found, two_source)),
        notes=tuple(_notes(found)),
        marks=(SIMULATED,) if found.simulated else (),
        details={"design": found.design, "reviewers": len(found.reviewers)},
    )


def _target(found: AsrAnalysis, loaded: LabelledBatch) -> str:
    if not loaded.is_sample:
        return (
            f"The mean score of the {found.n_production:,} traces of the batch {found.batch_id}, "
            "which were chosen, not drawn at random: it says nothing about others."
        )
    errors = (
        "corrected for the errors of the judge with the labelled sample"
        if found.calibrated
        else "from the labelled sample alone"
    )
    return (
        f"The mean score of the {found.n_production:,} production traces that the batch "
        f"{found.batch_id} was drawn from, {errors}."
    )


def _two_source(found: AsrAnalysis) -> Estimate | None:
    if found.judge is None:
        return None
    made = found.judge.calibration.estimates.get("bootstrap")
    return None if made is None else made.net


def _weekly(found: AsrAnalysis, loaded: LabelledBatch) -> WeeklySeries | None:
    """Return the weeks of the labelled sample; the verdicts of a week are not corrected."""
    if "started_at" not in loaded.labelled:
        return None
    times = pd.to_datetime(loaded.labelled["started_at"], utc=True)
    if times.isna().all():
        return None
    iso = times.dt.isocalendar()
    weeks = [
        None if pd.isna(year) else f"{int(year):04d}-W{int(week):02d}"
        for year, week in zip(iso["year"], iso["week"], strict=True)
    ]
    frame = loaded.labelled
    clusters = pd.factorize(frame["task_key"])[0]
    counts = count_runs(
        loaded.human,
        costs=known_costs(frame),
        ceilings=frame["ceiling_usd"].fillna(1.0).to_numpy(dtype=np.float64),
        units=frame["units"].to_numpy(dtype=np.float64),
        credit=tuple(found.credit[name] for name in OUTCOMES),
        weights=loaded.weights,
        clusters=clusters if len(np.unique(clusters)) < len(clusters) else None,
        by={"week": np.array(weeks, dtype=object)},
    )
    return weekly_series(
        counts, rng=np.random.default_rng([found.seed, 1]), n_resamples=found.n_resamples
    )


def _panel(cost: CostSummary) -> CostPanel:
    above = None
    if cost.share_over_ceiling is not None:
        above = Estimate(
            value=cost.share_over_ceiling, interval=None, n=cost.n_known, method="share of the runs"
        )
    return CostPanel(
        n=cost.n,
        n_known=cost.n_known,
        n_without_ceiling=cost.n_without_ceiling,
        mean=cost.mean,
        p50=cost.p50,
        p90=cost.p90,
        p99=cost.p99,
        share_above_ceiling=above,
    )


def _sensitivity(found: AsrAnalysis, loaded: LabelledBatch) -> Iterator[AtOtherWeights]:
    human = found.human_only
    own = tuple(found.credit[name] for name in OUTCOMES)
    yield AtOtherWeights(
        name=f"human-only, as reported ({credit_in_words(own)})",
        credit=own,
        asr=human.asr,
    )
    tables = other_tables(loaded.taxonomy)
    for name, result in human.at_other_credit.items():
        words = table_in_words(name, tables[name])
        yield AtOtherWeights(name=f"human-only, {words}", credit=tables[name], asr=result)


def _work(loaded: LabelledBatch) -> Iterator[WorkList]:
    """Yield the labelled traces of each class; those whose reviewers differ are in none."""
    settled = loaded.human.max(axis=1) == 1
    codes: NDArray[np.intp] = loaded.human.argmax(axis=1)
    for outcome, goes_to in GOES_TO.items():
        rows = loaded.labelled[settled & (codes == OUTCOMES.index(outcome))]
        yield WorkList(
            outcome=outcome,
            goes_to=goes_to,
            n=len(rows),
            first=tuple(_item(row) for row in rows.head(SHOWN_RUNS).to_dict("records")),
        )


def _item(row: dict[Any, Any]) -> WorkItem:
    cost = row["cost_usd"]
    return WorkItem(
        trace_id=row["trace_id"],
        workflow=row["workflow"],
        cost_usd=None if pd.isna(cost) else float(cost),
    )


def _left_out(found: AsrAnalysis) -> Iterator[LeftOut]:
    for n, reason in (
        (found.unlabelled, "traces of the batch that are not labelled yet"),
        (found.skipped, "traces that were skipped by everybody who saw them"),
        (found.exposed, "labels that were given after seeing what others said of the trace"),
        (found.later_traces, "traces that came after the draw"),
    ):
        if n:
            yield LeftOut(reason=reason, n=n)


def _notes(found: AsrAnalysis) -> Iterator[str]:
    if found.open_disagreements:
        yield f"{found.open_disagreements:,} disagreements are open: provisional."
    yield (
        "Weeks, workflows, sensitivity and work lists are of the labelled sample alone; "
        "the cost panel is of all traces."
    )
    if found.raw is not None:
        yield (
            "Judge-raw takes every verdict as true: its interval holds the sampling of traces, "
            "not the errors of the judge."
        )


def _warnings(found: AsrAnalysis, two_source: Estimate | None) -> Iterator[str]:
    if found.judge is not None:
        calibration = found.judge.calibration
        for kind, notices in (("Refused", calibration.refusals), ("Warning", calibration.warnings)):
            for notice in notices:
                yield f"{kind} ({notice.estimator}): {notice.why}; {notice.mend}."
    one = found.corrected.half_width
    other = None if two_source is None else two_source.half_width
    if one and other and abs(one - other) > APART * max(one, other):
        yield (
            f"The interval of the corrected rate (± {one:.3f}) and that of the two-source "
            f"bootstrap (± {other:.3f}) differ by more than {100 * APART:.0f} %: neither is to be "
            "relied on without a look at the calibration (asr calibrate)."
        )


def _origin(found: AsrAnalysis, design: Design) -> Origin:
    kind = found.design.get("kind", "unknown design")
    return Origin(
        sources=(),
        settings={
            "batch": found.batch_id,
            "judge": found.judge_id,
            "design": design,
            "seed": found.seed,
            "resamples": found.n_resamples,
        },
        sampling=(
            f"{found.n_labelled:,} labelled of {found.n_production:,} traces, {kind}, "
            f"batch {found.batch_id}"
        ),
        judge=found.judge_id or "none",
        taxonomy_version=found.taxonomy_version,
        taxonomy_fingerprint=found.taxonomy_fingerprint,
        seed=found.seed,
        n_resamples=found.n_resamples,
        confidence_level=found.human_only.asr.confidence_level,
        package_version=package_version(),
        fingerprint=found.fingerprint,
    )
