"""Parts that every report has, whatever its rate came from."""

from collections.abc import Mapping

from calibration.analyses.asr_report import OutcomeShare
from calibration.estimates import Estimate
from calibration.metrics.asr import AgentSuccessRate
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
