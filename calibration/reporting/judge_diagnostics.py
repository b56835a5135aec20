"""The diagnostics of a judge as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from calibration.agreement.outsider import BesidePanel
from calibration.analyses.both_sides import UNKNOWN
from calibration.analyses.diagnosing import STEPS, Diagnostics, Leniency
from calibration.analyses.judge_disagreements import Disagreement
from calibration.correction.means import MeanAgainstZero
from calibration.correction.nodes import NodeQuality
from calibration.correction.ordinal import OrdinalAgreement
from calibration.correction.retest import Retest
from calibration.estimates import Estimate
from calibration.reporting.text import figure, notes, number, percent, table

SHOWN = 20
GROUPS_SHOWN = 12
LONGEST = 300
COEFFICIENTS = {
    "percent_agreement": "percent agreement",
    "krippendorff_alpha": "Krippendorff's alpha",
    "gwet_ac": "Gwet's AC1",
}
NO_VERDICT_GIVEN = "no verdict given"


def diagnostics(result: Diagnostics) -> Iterator[str]:
    """Yield how far off a judge is, and where; each part after an empty line."""
    yield from ceiling(result.ceiling)
    yield from where(result)


def where(result: Diagnostics) -> Iterator[str]:
    """Yield everything but the ceiling: where the judge is off, for whom, and what it follows."""
    if result.grades is not None:
        yield ""
        yield f"How close do its grades come? {', '.join(result.grade_names):.200}"
        if result.grade_names == STEPS:
            yield "  a human class counts as 5 (complete), 4 (partial_plus), else as 3 or less"
        yield from ordinal(result.grades)
    if result.nodes:
        yield ""
        yield from questions(result.nodes, result.errors)
    if result.disagreements:
        yield ""
        yield from disagreements(result.disagreements)
    yield ""
    yield from lenient(result)
    if result.slopes:
        yield ""
        yield from slopes(result.slopes, result.own_family)
    if result.retest.changed.ok:
        yield ""
        yield from asked_again(result.retest, result.verdict_names)
    yield from _not_known(result)


def _not_known(result: Diagnostics) -> Iterator[str]:
    """Yield, on one line, what could be known with more columns, labels or verdicts."""
    missing = list(result.missing)
    if not result.retest.changed.ok and not missing:
        missing.append(f"whether it says the same twice ({_why(result.retest.changed)})")
    if result.slopes and not result.own_family.estimate.ok:
        missing.append(f"whether it favours its own ({_why(result.own_family.estimate)})")
    if missing or result.notes:
        yield ""
    if missing:
        yield f"Not known here: {'; '.join(missing)}"
    for note in result.notes:
        yield f"Note: {note}"


def _why(found: Estimate) -> str:
    return found.status.removeprefix("not_estimable: ")


def lenient(result: Diagnostics) -> Iterator[str]:
    """Yield how lenient the judge is, over all and by group."""
    yield "Is it lenient? Credit of the verdict less the human one (above 0: lenient)"
    shown = f"{number(result.leniency.estimate)}{p_text(result.leniency.p_value)}"
    yield f"  all labelled traces  {shown}"
    for by, rows in result.leniency_by.items():
        yield from leniency(by, rows)


def slopes(found: Mapping[str, MeanAgainstZero], own_family: MeanAgainstZero) -> Iterator[str]:
    """Yield what the leniency follows, with the human class held fixed."""
    yield "Does leniency follow the size of a trace? Credit for each doubling, same human class"
    names = {"response": "length of the response", "steps": "number of steps"}
    for name, one in found.items():
        yield f"  {names[name]:<22}  {number(one.estimate)}{p_text(one.p_value)}"
    if own_family.estimate.ok:
        shown = f"{number(own_family.estimate)}{p_text(own_family.p_value)}"
        yield f"  its own model family, less other agents: {shown}"


def asked_again(again: Retest, verdict_names: Sequence[str]) -> Iterator[str]:
    """Yield how often the judge changes its mind."""
    yield f"Does it say the same twice? {again.changed.n:,} traces, asked {again.most_asked} times"
    yield f"  traces whose verdict changes              {number(again.changed)}"
    yield f"  chance that two verdicts on one differ    {number(again.differ)}"
    rows = [
        [name, figure(share)]
        for name, share in zip(verdict_names, again.per_verdict, strict=False)
        if share.ok
    ]
    if len(rows) > 1:
        yield from table(["first verdict", "changes"], rows)


def ceiling(found: Mapping[str, BesidePanel]) -> Iterator[str]:
    """Yield agreement among the humans, of the judge with them, and what lies between."""
    yield "What do the humans reach themselves?"
    if not found:
        yield "  not known: no trace was labelled by two"
        return
    share = found["percent_agreement"].panel
    if not share.ok:
        yield f"  not known: {_why(share)}"
        return
    yield f"  {share.n:,} traces with two or more labels; the judge is held against the same ones"
    rows = [
        [COEFFICIENTS[name], figure(b.panel), figure(b.outsider), figure(b.difference)]
        for name, b in found.items()
    ]
    head = ["agreement", "human with human", "judge with human", "difference"]
    yield from table(head, rows)
    yield from notes(
        (f"{COEFFICIENTS[name]} ({of})", e)
        for name, b in found.items()
        for of, e in (("humans", b.panel), ("judge", b.outsider), ("difference", b.difference))
    )
    yield "  " + beside_humans(found["krippendorff_alpha"])


def beside_humans(alpha: BesidePanel) -> str:
    """Say whether the judge is within human disagreement."""
    limits = alpha.difference.interval
    if alpha.within is None or limits is None:
        return "whether the judge is as good as one more human cannot be said: label more by two"
    if not alpha.within:
        return (
            "the judge agrees less with the humans than they with each other: its alpha is lower "
            f"by {-limits[1]:.3f} to {-limits[0]:.3f}"
        )
    return (
        "the judge is not shown to be worse than one more human; its alpha may still be "
        f"lower by {max(0.0, -limits[0]):.3f}"
    )


def questions(
    nodes: Mapping[str, NodeQuality], errors: Mapping[str | None, float]
) -> Iterator[str]:
    """Yield the judge's answers at each question, and where its errors begin."""
    yield "At which question does it part from the humans? Who says yes, where both come to it"
    total = sum(errors.values())
    rows = []
    for name, q in nodes.items():
        (yes, missed), (added, no) = q.table
        counts = [f"{count:.4g}" for count in (yes, missed, added, no)]
        share = percent(errors.get(name, 0.0) / total if total else None)
        rows.append([name, *counts, figure(q.yes_recall, 2), figure(q.no_recall, 2), share])
    head = ["question", "both", "only human", "only judge", "none"]
    head += ["yes found", "no found", "errors begin here"]
    yield from table(head, rows)
    if None in errors:
        yield f"  {errors[None]:.4g} of {total:.4g} errors: {NO_VERDICT_GIVEN}"


def leniency(by: str, rows: Sequence[Leniency], limit: int = GROUPS_SHOWN) -> Iterator[str]:
    """Yield the judge's leniency in each group of one kind; a single group is all of them."""
    if len(rows) < 2:
        return
    shown = [
        [
            one_line(row.group, 60), f"{row.gap.estimate.n:,}", f"{row.verdict_credit:.3f}",
            f"{row.human_credit:.3f}", figure(row.gap.estimate),
            "-" if row.p_holm is None else p_value_text(row.p_holm),
        ]
        for row in rows[:limit]
    ]  # fmt: skip
    head = [f"by {by}", "traces", "judge", "humans", "difference", "p adjusted"]
    yield from table(head, shown)
    yield from notes((one_line(row.group, 60), row.gap.estimate) for row in rows[:limit])
    if len(rows) > limit:
        yield f"  and {len(rows) - limit:,} more, all of them in --json"


def disagreements(found: Sequence[Disagreement], limit: int = SHOWN) -> Iterator[str]:
    """Yield the traces that move the rate most, with what both sides say."""
    yield (
        f"Where do they differ? {len(found):,} traces"
        + (f", the {limit} that move the rate most" if len(found) > limit else "")
    )
    for item in found[:limit]:
        moved = f", moves the rate by {item.moves:.4f}" if item.moves else ""
        where = "" if item.question is None else f", part at {item.question}"
        whose = ", ".join(
            one_line(name, 60) for name in (item.workflow, item.agent) if name != UNKNOWN
        )
        yield f"  {one_line(item.trace_id, 60)}{f' ({whose})' if whose else ''}{where}{moved}"
        yield f"    judge: {one_line(item.verdict, 60)}{_because(item.reason)}"
        yield from _quotes(item.evidence)
        for said in item.labels:
            who = f"{one_line(said.reviewer, 60)}: {one_line(said.outcome, 60)}"
            yield f"    {who}{_because(said.rationale)}"
            yield from _quotes(said.evidence)
        if item.adjudicated:
            yield f"    settled: {', '.join(one_line(name, 60) for name in item.human)}"
    if len(found) > limit:
        yield f"  and {len(found) - limit:,} more, all of them in --json"


def ordinal(found: OrdinalAgreement) -> Iterator[str]:
    """Yield how close the judge's grades come to the human ones."""
    yield f"  same grade       {number(found.exact)}"
    yield f"  within one grade {number(found.within_one)}" + (
        ""
        if found.within_one_by_chance is None
        else f"; {found.within_one_by_chance:.3f} by chance alone"
    )
    yield f"  quadratic kappa  {number(found.kappa)}"
    if found.bias is not None:
        yield f"  judge less human, mean {found.bias:+.3f} grades"


def p_text(p_value: float | None) -> str:
    """Return a p-value as it follows an estimate, nothing where there is none."""
    return "" if p_value is None else f", p {p_value_text(p_value)}"


def p_value_text(p_value: float) -> str:
    """Return a p-value with two digits."""
    return f"{p_value:.2g}" if p_value >= 0.0001 else "< 0.0001"


def _because(text: str | None) -> str:
    return "" if text is None else f": {one_line(text)}"


def _quotes(evidence: Iterable[Mapping[str, str]]) -> Iterator[str]:
    for item in evidence:
        yield f'      {item["step_id"]}: "{one_line(item["quote"])}"'


def one_line(text: str, longest: int = LONGEST) -> str:
    """Return hostile text on one printable line, bounded."""
    line = "".join(c if c.isprintable() else " " for c in " ".join(text[: 2 * longest].split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"
