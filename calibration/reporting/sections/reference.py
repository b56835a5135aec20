"""The reference dataset as terminal text and JSON."""

from collections.abc import Iterator

from calibration.records import Trace
from calibration.reporting.document import figure, notes, percent, table
from reference_dataset.records import CanonicalLabel
from reference_dataset.repeat_pass import RepeatPass
from reference_dataset.statistics import DatasetStats


def stats(counts: DatasetStats) -> Iterator[str]:
    """Yield the composition of a dataset."""
    yield f"{counts.n_traces} traces, {counts.long_traces} of them with 12 or more steps"
    rows = [
        [family, *map(str, of.values()), str(sum(of.values()))]
        for family, of in counts.classes.items()
    ]
    names = next(iter(counts.classes.values()))
    totals = [sum(of[name] for of in counts.classes.values()) for name in names]
    yield from table(
        ["family", *names, "all"], [*rows, ["all", *map(str, totals), str(sum(totals))]]
    )
    yield "steps       p10 {:.0f}  p50 {:.0f}  p90 {:.0f}".format(*counts.steps)
    yield "words       p10 {:.0f}  p50 {:.0f}  p90 {:.0f}".format(*counts.words)
    yield f"over budget {counts.over_ceiling} ({percent(counts.over_ceiling / counts.n_traces)})"
    mix = ", ".join(f"{name} {n}" for name, n in sorted(counts.difficulty.items()))
    yield f"difficulty  {mix}"
    yield "forms       " + ", ".join(f"{name} {n}" for name, n in counts.forms.items())


def second_pass(again: RepeatPass | None) -> Iterator[str]:
    """Yield the agreement of the second pass, and the adjudication of its disagreements."""
    if again is None:
        yield "second pass none"
        return
    yield ""
    yield f"REPEAT PASS OF THE AUTHORS  {again.n_traces} traces, blind, before settlement"
    yield "An upper bound on what strangers will reach; 95 % intervals."
    rows = [("all classes", again.overall), *again.classes.items()]
    rows += [(f"at {node}", of) for node, of in again.nodes.items()]
    yield from table(
        ["", "traces", "agreement", "alpha", "AC1"],
        [
            [name, str(of.alpha.n), figure(of.percent_agreement), figure(of.alpha), figure(of.ac1)]
            for name, of in rows
        ],
    )
    yield from notes(
        (name, found) for name, of in rows for found in (of.percent_agreement, of.alpha, of.ac1)
    )
    yield from ("", "labels of that time (rows) and second reading (columns)")
    counts = zip(again.classes, again.table, strict=True)
    yield from table(["", *again.classes], [[name, *map(str, row)] for name, row in counts])
    decided = ", ".join(f"{name} {n}" for name, n in again.settled.items()) or "none"
    yield ""
    yield f"{len(again.disagreements)} disagreements: {decided}"
    if again.repaired_agreed:
        yield f"{again.repaired_agreed} more traces repaired although the classes agreed"
    for found in again.disagreements:
        yield f"  {found.trace_id}: {found.before}, read as {found.second}; {found.decision}"
        if found.why:
            yield f"    {found.why}"


def trace(shown: Trace, label: CanonicalLabel | None) -> Iterator[str]:
    """Yield a trace in full and, if requested, its canonical label."""
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
