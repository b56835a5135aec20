"""Parts that every report has, whatever its rate came from."""

from collections.abc import Mapping

from calibration.analyses.asr_report import Change, OutcomeShare
from calibration.analyses.report_options import ReportOptions
from calibration.estimates import Estimate
from calibration.metrics.asr import AgentSuccessRate
from calibration.metrics.comparison import Comparison, compare_runs
from calibration.metrics.counts import RunCounts
from calibration.metrics.weekly import calendar
from calibration.records import OUTCOMES
from calibration.taxonomy import Taxonomy

GOES_TO = {
    "partial_minus": "prompt and guard-rail review",
    "hallucinated": "model and retrieval",
    "abandoned": "infrastructure",
}
SHOWN_RUNS = 20
LITERAL = "as printed, without a floor for each run: a diagnostic, no interval"


def literal(rate: AgentSuccessRate) -> Estimate:
    """Return the formula as printed."""
    return Estimate(
        value=rate.asr_literal,
        interval=None,
        n=rate.asr.n,
        method=LITERAL,
        confidence_level=rate.asr.confidence_level,
    )


def classes(
    rate: AgentSuccessRate, taxonomy: Taxonomy, targets: Mapping[str, float]
) -> tuple[OutcomeShare, ...]:
    """Return the share of every class with its credit and its target."""
    titles = {c.name: c.title for c in taxonomy.classes}
    return tuple(
        OutcomeShare(
            outcome=name,
            title=titles[name],
            credit=taxonomy.credit[name],
            share=share,
            target=targets.get(name),
        )
        for name, share in zip(OUTCOMES, rate.class_shares, strict=True)
    )


def change_of_weeks(runs: RunCounts, options: ReportOptions) -> Change | None:
    """Compare the last week with the one before it; None where that has no runs."""
    labels = runs.labels("week")
    if len(labels.seen) < 2:
        return None
    before, after = labels.seen[-2:]
    if calendar(before, after) != (before, after):
        return None
    found = compare_runs(
        runs.where(labels.of(before)),
        runs.where(labels.of(after)),
        paired=runs.task is not None,
        **options.resampling(4),
    )
    return change_of(found, later=after, earlier=before)


def change_of(found: Comparison, *, later: str, earlier: str) -> Change:
    """Return a comparison as what the report says of it."""
    return Change(
        later=later,
        earlier=earlier,
        before=found.before.asr,
        after=found.after.asr,
        asr=found.asr,
        classes=found.class_changes,
        n_pairs=found.n_pairs,
    )
