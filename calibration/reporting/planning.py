"""A plan as text and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from calibration.analyses.overview import Results
from calibration.analyses.planning import Plan
from calibration.reporting.text import SIMULATED


def half_width(value: float) -> str:
    """Return a half-width as people write it.

    Examples
    --------
    >>> half_width(0.0412)
    '±.041'
    """
    return "±" + f"{value:.3f}".removeprefix("0")


def hours(value: float | None) -> str:
    """Return hours, or minutes where there are few.

    Examples
    --------
    >>> hours(0.4), hours(12.34), hours(None)
    ('24 min', '12.3 h', 'not known')
    """
    if value is None:
        return "not known"
    return f"{60 * value:.0f} min" if value < 1.5 else f"{value:,.1f} h"


def enough(results: Results) -> str:
    """Say how narrow the interval is and what further labels would make of it."""
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
    yield f"  reviewer time     {hours(plan.hours)}{time}"
    for note in plan.notes:
        yield f"  - {note}"


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data."""
    return asdict(plan) | {"notes": list(plan.notes)}
