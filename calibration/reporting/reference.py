"""The reference dataset as terminal text and JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from calibration.records import OUTCOMES, Trace
from calibration.reporting.text import percent, table
from reference_dataset.records import CanonicalLabel, Problem
from reference_dataset.statistics import DatasetStats


def problems_json(problems: list[Problem]) -> dict[str, Any]:
    """Return what a validation found."""
    return {"ok": not problems, "problems": [asdict(problem) for problem in problems]}


def stats_json(stats: DatasetStats) -> dict[str, Any]:
    """Return the counts of a dataset."""
    return asdict(stats)


def stats(counts: DatasetStats) -> Iterator[str]:
    """Yield what a dataset is made of."""
    yield f"{counts.n_traces} traces, {counts.long_traces} of them with 12 or more steps"
    rows = [
        [family, *[str(of[name]) for name in OUTCOMES], str(sum(of.values()))]
        for family, of in counts.classes.items()
    ]
    totals = [sum(of[name] for of in counts.classes.values()) for name in OUTCOMES]
    yield from table(
        ["family", *OUTCOMES, "all"], [*rows, ["all", *map(str, totals), str(sum(totals))]]
    )
    yield "steps       p10 {:.0f}  p50 {:.0f}  p90 {:.0f}".format(*counts.steps)
    yield "words       p10 {:.0f}  p50 {:.0f}  p90 {:.0f}".format(*counts.words)
    yield f"over budget {counts.over_ceiling} ({percent(counts.over_ceiling / counts.n_traces)})"
    mix = ", ".join(f"{name} {n}" for name, n in sorted(counts.difficulty.items()))
    yield f"difficulty  {mix}"
    yield "forms       " + ", ".join(f"{name} {n}" for name, n in counts.forms.items())


def trace(shown: Trace, label: CanonicalLabel | None) -> Iterator[str]:
    """Yield a trace in full and, when asked for, its canonical label."""
    yield f"{shown.trace_id}  {shown.workflow}  {len(shown.steps)} steps  {shown.status}"
    yield from ("", "TASK", *shown.prompt.splitlines())
    for item in shown.inputs:
        yield from ("", f"INPUT {item.name}", *item.text.splitlines())
    yield from ("", "SUB-GOALS")
    for goal in shown.sub_goals:
        yield f"  {goal.id}. {goal.text}{'' if goal.matters else ' (minor)'}"
    for step in shown.steps:
        yield from ("", f"{step.step_id} {step.role} {step.tool or ''}".rstrip())
        for text in (step.content, step.arguments, step.result):
            yield from (text or "").splitlines()
    yield from ("", "RESPONSE", *(shown.response or "(none)").splitlines())
    if label is not None:
        yield from ("", *_label(label))


def _label(label: CanonicalLabel) -> Iterator[str]:
    yield f"CANONICAL LABEL {label.outcome} ({label.difficulty})"
    if label.overridden is not None:
        yield f"  overridden: {label.overridden}"
    yield "  " + ", ".join(f"{node}: {answer}" for node, answer in label.answers.items())
    yield f"  {label.rationale}"
    for item in label.evidence:
        yield f"  {item.step_id}: {item.quote!r}: {item.shows}"
    yield f"  not {label.nearest_wrong}: {label.why_not}"
