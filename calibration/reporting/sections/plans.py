"""A plan as text and as JSON."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from calibration.agreement.sample_size import ItemsNeeded
from calibration.analyses.agreement.sample_size import PlannedAgreement
from calibration.analyses.reviewers.progress import Results
from calibration.analyses.sampling.escalation import Audit
from calibration.analyses.sampling.planning import Plan
from calibration.reporting.document import SIMULATED, number, table
from calibration.store import Batch


def half_width(value: float) -> str:
    """Return a half-width in its usual notation."""
    return "±" + f"{value:.3f}".removeprefix("0")


def hours(value: float | None) -> str:
    """Return hours, or minutes below one hour.

    Examples
    --------
    >>> hours(0.4), hours(12.34), hours(None)
    ('24 min', '12.3 h', 'not known')
    """
    if value is None:
        return "not known"
    return f"{60 * value:.0f} min" if value < 1.5 else f"{value:,.1f} h"


def enough(results: Results) -> str:
    """Return the present precision and the gain from further labels."""
    now = results.headline.half_width
    if now is None:
        return results.headline.status.replace("_", " ", 1)
    steps = [f"{step.more:,} more give {half_width(step.half_width)}" for step in results.further]
    return f"now {half_width(now)}; " + (
        ", ".join(steps) if steps else "every trace is labelled, more would need new traces"
    )


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield a plan for a terminal."""
    if plan.simulated:
        yield SIMULATED
    overlap = f", {plan.labels_wanted} labels on {100 * plan.overlap:g} % of them"
    yield (
        f"{plan.n:,} of {plan.population:,} traces{overlap if plan.labels_wanted > 1 else ''}: "
        f"{plan.n_labels:,} labels"
    )
    level = f"{100 * plan.confidence_level:g} %"
    yield f"  human-only rate   {half_width(plan.human_only)} expected ({level})"
    if plan.corrected is not None:
        yield f"  corrected rate    {half_width(plan.corrected)} expected, judge {plan.judge_id}"
    time = "" if plan.seconds_per_label is None else f" at {plan.seconds_per_label:.0f} s a label"
    money = "" if plan.cost is None else f", {plan.cost:,.0f} at {plan.hourly_rate:g} an hour"
    yield f"  reviewer time     {hours(plan.hours)}{time}{money}"
    yield from _needed_lines(plan)
    yield from _worth_lines(plan)
    for note in plan.notes:
        yield f"  - {note}"


def _needed_lines(plan: Plan) -> Iterator[str]:
    if plan.needed is None:
        return
    yield (
        f"  for {half_width(plan.needed.half_width)}          "
        f"{_count(plan.needed.without_judge)} without a judge"
        + ("" if plan.judge_id is None else f", {_count(plan.needed.with_judge)} with it")
    )


def _count(n: int | None) -> str:
    return "no number of traces" if n is None else f"{n:,} traces"


def _worth_lines(plan: Plan) -> Iterator[str]:
    worth = plan.worth
    if worth is None:
        return
    if worth.multiplier.value is None or worth.saved is None:
        yield f"  the judge         {worth.multiplier.status.replace('_', ' ', 1)}"
        return
    yield (
        f"  the judge         a label with it is worth {number(worth.multiplier, 2)} without; "
        f"R squared {worth.r_squared:.2f}"
    )
    time = "" if worth.saved_hours is None else f", {hours(worth.saved_hours)}"
    money = "" if worth.saved_cost is None else f", {worth.saved_cost:,.0f} in money"
    if worth.saved < 0:
        yield "                    it saves nothing: human labels alone are as good"
        return
    yield (
        f"                    {plan.n:,} traces give what {worth.equivalent:,.0f} would: it saves "
        f"{worth.saved:,.0f} traces, {worth.saved_labels:,.0f} labels{time}{money}"
    )


def batch_lines(batch: Batch, items: pd.DataFrame) -> Iterator[str]:
    """Yield the design of a batch, for a terminal."""
    design, drawn = batch.design, items["inclusion_probability"]
    chance = (
        f"each drawn with probability {drawn.iloc[0]:.4f}"
        if drawn.max() - drawn.min() < 1e-12
        else f"drawn with probabilities from {drawn.min():.4f} to {drawn.max():.4f}"
    )
    wanted = items["labels_wanted"].tolist()
    yield (
        f"{batch.batch_id}: {batch.n_items} of {design['population']} traces, {chance}, "
        f"{_wanted(wanted)}"
    )
    if "strata" not in design:
        return
    yield f"  {design['kind']}, judge {design['judge']}"
    yield from table(
        ["stratum", "traces", "drawn", "probability", "sd of the score"],
        [
            [
                " x ".join(
                    filter(None, (stratum.get(part) for part in ("name", "verdict", "workflow")))
                ),
                f"{stratum['population']:,}",
                f"{stratum['n']:,}",
                f"{stratum['inclusion_probability']:.4f}",
                "" if stratum.get("sd") is None else f"{stratum['sd']:.3f}",
            ]
            for stratum in design["strata"]
        ],
    )


def _wanted(labels: list[int]) -> str:
    most = max(labels)
    shared = labels.count(most)
    if shared == len(labels):
        return f"{most} labels wanted"
    return f"{most} labels wanted on {shared} of them and one on the others"


def audit_lines(found: Audit) -> Iterator[str]:
    """Yield the result of an escalation, for a terminal."""
    if found.simulated:
        yield SIMULATED
    yield (
        f"{found.batch_id}: {found.n_escalated:,} traces escalated, {found.n_accepted:,} accepted "
        f"as judge {found.judge_id} has them"
    )
    yield f"  accepted verdicts that are wrong   {number(found.error)}"
    reached = found.error.half_width
    if reached is not None and reached > found.asked:
        yield f"    {half_width(found.asked)} was asked for, {half_width(reached)} is reached"
    yield f"  rate over all traces, weighted     {number(found.headline)}"
    yield "  What the accepted verdicts say is not the rate: judges err where they agree, too."


def batch_data(batch: Batch, items: pd.DataFrame) -> dict[str, Any]:
    """Return a batch and its design as plain data."""
    drawn = items["inclusion_probability"].tolist()
    strata = items["stratum"]
    return {
        "batch_id": batch.batch_id,
        "n": batch.n_items,
        "population": batch.design["population"],
        "inclusion_probability": drawn[0] if max(drawn) - min(drawn) < 1e-12 else None,
        "inclusion_probabilities": drawn,
        "strata": None if strata.isna().any() else strata.astype(int).tolist(),
        "labels_wanted": batch.labels_wanted,
        "labels": int(items["labels_wanted"].sum()),
        "design": batch.design,
        "trace_ids": items["trace_id"].tolist(),
        "labels_wanted_of_each": [int(count) for count in items["labels_wanted"]],
    }


NAMES = {"krippendorff_alpha": "alpha", "gwet_ac": "AC1"}


def agreement_plan_lines(planned: PlannedAgreement) -> Iterator[str]:
    """Yield a plan for an agreement study, for a terminal."""
    plan = planned.plan
    if planned.basis.simulated:
        yield SIMULATED
    yield (
        f"{NAMES[plan.coefficient]} to {half_width(plan.target)} ({100 * plan.confidence_level:g} "
        f"%), {plan.n_raters} reviewers a trace, alpha {plan.alpha:g} expected"
    )
    if plan.missing:
        yield f"  {100 * plan.missing:g} % of the labels are expected to be missing"
    classes = planned.basis.classes or [f"class {k + 1}" for k in range(len(plan.class_shares))]
    yield "  class shares: " + ", ".join(
        f"{name} {100 * share:.1f} %"
        for name, share in zip(classes, plan.class_shares, strict=True)
    )
    yield f"  every second sample is that narrow with   {_traces(planned, plan.typical)}"
    yield f"  nine samples in ten are with              {_traces(planned, plan.assured)}"
    for note in planned.notes:
        yield f"  - {note}"


def _traces(planned: PlannedAgreement, part: ItemsNeeded) -> str:
    if part.n is None:
        return part.status.replace("_", " ", 1)
    return f"{part.n:,} traces, {planned.labels(part):,} labels"
