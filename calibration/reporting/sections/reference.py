"""The reference dataset as a document, and a trace of it as text."""

from collections.abc import Iterator

from calibration.records import Trace
from calibration.reporting.document import (
    Document,
    Facts,
    Lines,
    Section,
    Words,
    figure,
    notes,
    percent,
    percent_cell,
    table_of,
)
from calibration.taxonomy import default_taxonomy
from reference_dataset.records import CanonicalLabel
from reference_dataset.repeat_pass import RepeatPass
from reference_dataset.statistics import DatasetReport


def stats(found: DatasetReport) -> Document:
    """Return the composition of a dataset, and the agreement of its second pass."""
    counts, again = found.counts, found.second_pass
    rows = [
        (family, *map(str, of.values()), str(sum(of.values())))
        for family, of in counts.classes.items()
    ]
    names = next(iter(counts.classes.values()))
    head = ("family", *(found.titles[name] for name in names), "all")
    totals = [sum(of[name] for of in counts.classes.values()) for name in names]
    rows.append(("all", *map(str, totals), str(sum(totals))))
    mix = ", ".join(f"{name} {n}" for name, n in sorted(counts.difficulty.items()))
    share = percent(counts.over_ceiling / counts.n_traces)
    facts = [
        ("steps", "p10 {:.0f}  p50 {:.0f}  p90 {:.0f}".format(*counts.steps)),
        ("words", "p10 {:.0f}  p50 {:.0f}  p90 {:.0f}".format(*counts.words)),
        ("over budget", f"{counts.over_ceiling} ({share})"),
        ("difficulty", mix),
        ("forms", ", ".join(f"{name} {n}" for name, n in counts.forms.items())),
    ]
    if again is None:
        facts.append(("second pass", "none"))
    made = (
        table_of("", head, rows),
        Facts(items=tuple(facts)),
    )
    return Document(
        title=f"{counts.n_traces} traces, {counts.long_traces} of them with 12 or more steps",
        sections=(Section(title="", blocks=made), *([] if again is None else _second_pass(again))),
        brief=made,
    )


def _second_pass(again: RepeatPass) -> Iterator[Section]:
    rows = [("all classes", again.overall)]
    rows += [(_title(name), of) for name, of in again.classes.items()]
    rows += [(f"at {node}", of) for node, of in again.nodes.items()]
    agreement = table_of(
        "",
        ("", "traces", "agreement", "alpha", "AC1"),
        [
            (
                name,
                str(of.alpha.n),
                percent_cell(of.percent_agreement),
                figure(of.alpha),
                figure(of.ac1),
            )
            for name, of in rows
        ],
        notes=notes(
            (name, found) for name, of in rows for found in (of.percent_agreement, of.alpha, of.ac1)
        ),
    )
    bound = "An upper bound on what strangers will reach; 95 % intervals."
    yield Section(
        title=f"Repeat pass of the authors: {again.n_traces} traces, blind, before adjudication",
        blocks=(Words(text=bound), agreement),
    )
    names = list(map(_title, again.classes))
    counts = zip(names, again.table, strict=True)
    crossed = table_of("", ("", *names), [(name, *map(str, row)) for name, row in counts])
    yield Section(
        title="Labels of that time (rows) and second reading (columns)", blocks=(crossed,)
    )
    decided = ", ".join(f"{name} {n}" for name, n in again.settled.items()) or "none"
    lines = []
    if again.repaired_agreed:
        lines.append(f"  {again.repaired_agreed} more traces repaired although the classes agreed")
    for found in again.disagreements:
        lines.append(
            f"  {found.trace_id}: {_title(found.before)}, read as {_title(found.second)}; "
            f"{found.decision}"
        )
        lines += [f"    {found.why}"] if found.why else []
    yield Section(
        title=f"{len(again.disagreements)} disagreements: {decided}",
        blocks=(Lines(items=tuple(lines)),),
    )


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
    yield f"CANONICAL LABEL {_title(label.outcome)} ({label.difficulty})"
    if label.overridden is not None:
        yield f"  overridden: {label.overridden}"
    yield "  " + ", ".join(f"{node}: {answer}" for node, answer in label.answers.items())
    yield f"  {label.rationale}"
    for item in label.evidence:
        yield f"  {item.step_id}: {item.quote!r}: {item.shows}"
    if label.nearest_wrong:
        yield f"  not {_title(label.nearest_wrong)}: {label.why_not or '(no reason given)'}"


def _title(outcome: str) -> str:
    """Return what a class is called; a set of one's own may have classes of its own."""
    return default_taxonomy().titles.get(outcome, outcome)
