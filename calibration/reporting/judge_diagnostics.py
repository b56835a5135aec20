"""The diagnostics of a judge, its drift, and its groups, as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from calibration.agreement.outsider import BesidePanel
from calibration.analyses.judge_diagnostics import JudgeDiagnostics, Leniency
from calibration.analyses.judge_disagreements import Disagreement
from calibration.analyses.judge_groups import GroupPair, JudgeGroups
from calibration.analyses.judge_versions import JudgeDrift
from calibration.correction.group_rates import RatesTest
from calibration.correction.nodes import NodeQuality
from calibration.correction.ordinal import OrdinalAgreement
from calibration.estimates import Estimate
from calibration.reporting.text import SIMULATED, figure, notes, number, percent, table

SHOWN = 20
LONGEST = 300
COEFFICIENTS = {
    "percent_agreement": "percent agreement",
    "krippendorff_alpha": "Krippendorff's alpha",
    "gwet_ac": "Gwet's AC1",
}
NO_VERDICT_GIVEN = "no verdict given"


def diagnostics(result: JudgeDiagnostics) -> Iterator[str]:
    """Yield how far off a judge is, and where."""
    if result.simulated:
        yield SIMULATED
    yield f"Judge {result.judge_id} on the labels of {result.batch_id}: how far off, and where"
    yield ""
    yield from ceiling(result.ceiling)
    yield ""
    yield from questions(result.nodes, result.errors)
    yield ""
    yield "Leniency: credit of the verdict less the human one (above 0: lenient)"
    yield f"  all labelled traces  {number(result.leniency.estimate)}"
    for by, rows in result.leniency_by.items():
        yield from leniency(by, rows)
    yield ""
    yield "Leniency that follows something else, human class held fixed (credit for each doubling)"
    sizes = {"response": "characters of the response", "steps": "number of steps"}
    named = [(sizes[name], found) for name, found in result.slopes.items()]
    named.append(("agents of the judge's own family against others", result.own_family))
    for name, found in named:
        yield f"  {name}: {number(found.estimate)}{_p(found.p_value)}"
    yield ""
    yield "Asked again"
    again = result.retest
    yield f"  traces whose verdict changes (asked up to {again.most_asked} times): " + number(
        again.changed
    )
    yield f"  chance that two verdicts on a trace differ: {number(again.differ)}"
    for name, share in zip(result.verdict_names, again.per_verdict, strict=False):
        if share.ok:
            yield f"    first {name}: {number(share)}"
    yield ""
    yield from disagreements(result.disagreements)
    yield ""
    yield f"fingerprint {result.fingerprint[:16]}"


def ceiling(found: Mapping[str, BesidePanel]) -> Iterator[str]:
    """Yield agreement among the humans, of the judge with them, and what lies between."""
    n = next(iter(found.values())).panel.n
    yield f"Beside the humans, on the same {n:,} traces"
    rows = [
        [COEFFICIENTS[name], figure(b.panel), figure(b.outsider), figure(b.difference)]
        for name, b in found.items()
    ]
    yield from table(["", "humans", "judge", "difference"], rows)
    parts = [e for b in found.values() for e in (b.panel, b.outsider, b.difference)]
    yield from notes(("table", e) for e in parts)
    yield "  " + beside_humans(found["krippendorff_alpha"])


def beside_humans(alpha: BesidePanel) -> str:
    """Say whether the judge is within human disagreement."""
    limits = alpha.difference.interval
    if alpha.within is None or limits is None:
        return "whether the judge is within human disagreement cannot be said"
    if not alpha.within:
        return (
            f"the judge agrees less with the humans than they with each other: alpha lower by "
            f"{-limits[1]:.3f} to {-limits[0]:.3f}"
        )
    return (
        "the judge is not shown to agree less with the humans than they with each other: "
        f"its alpha may be lower by {max(0.0, -limits[0]):.3f} at most"
    )


def questions(
    nodes: Mapping[str, NodeQuality], errors: Mapping[str | None, float]
) -> Iterator[str]:
    """Yield the judge's answers at each question, and where its errors begin."""
    yield "By question, where both come to it"
    total = sum(errors.values())
    rows = [
        [
            name, figure(q.accuracy, 2), figure(q.yes_recall, 2), figure(q.no_recall, 2),
            figure(q.yes_precision, 2), figure(q.no_precision, 2),
            percent(errors.get(name, 0.0) / total if total else None),
        ]
        for name, q in nodes.items()
    ]  # fmt: skip
    head = ["question", "accuracy", "recall yes", "recall no", "precision yes", "precision no"]
    yield from table([*head, "errors begin"], rows)
    if None in errors:
        yield f"  {errors[None]:g} of {total:g} errors: {NO_VERDICT_GIVEN}"


def leniency(by: str, rows: Sequence[Leniency]) -> Iterator[str]:
    """Yield the judge's leniency in each group of one kind."""
    shown = [
        [
            _short(row.group, 60), f"{row.gap.estimate.n}", f"{row.verdict_credit:.3f}",
            f"{row.human_credit:.3f}", figure(row.gap.estimate),
            "-" if row.p_holm is None else f"{row.p_holm:.3g}",
        ]
        for row in rows
    ]  # fmt: skip
    yield from table([by, "n", "judge", "humans", "difference", "p (Holm)"], shown)
    yield from notes((_short(row.group, 60), row.gap.estimate) for row in rows)


def disagreements(found: Sequence[Disagreement], limit: int = SHOWN) -> Iterator[str]:
    """Yield the traces that move the rate most, with what both sides say."""
    yield f"{len(found)} traces where a human and the judge differ, what moves the rate most first"
    for item in found[:limit]:
        moved = "-" if item.moves is None else f"{item.moves:.4f}"
        where = "" if item.question is None else f", parting at {item.question}"
        whose = f"{_short(item.workflow, 60)}, {_short(item.agent, 60)}"
        yield f"  {item.trace_id} ({whose}) moves {moved}{where}"
        for said in item.labels:
            yield f"    {said.reviewer}: {said.outcome}{_because(said.rationale)}"
            yield from _quotes(said.evidence)
        if item.adjudicated:
            yield f"    adjudicated: {', '.join(item.human)}"
        yield f"    judge: {item.verdict}{_because(item.reason)}"
        yield from _quotes(item.evidence)
    if len(found) > limit:
        yield f"  and {len(found) - limit} more"


def drift(result: JudgeDrift) -> Iterator[str]:
    """Yield how two judges differ on the same traces."""
    if result.simulated:
        yield SIMULATED
    yield f"{result.before} and {result.after} on the same {result.n:,} traces"
    yield f"  same verdict  {number(result.same)}"
    yield f"  alpha         {number(result.alpha)}"
    yield f"  mean credit, {result.after} less {result.before}: " + number(
        result.credit_change.estimate
    )
    yield from table(
        ["verdict", result.before, result.after, "p", "p (Holm)"],
        [
            [
                row.name, percent(row.before), percent(row.after),
                *("-" if p is None else f"{p:.3g}" for p in (row.test.p_value, row.p_holm)),
            ]
            for row in result.classes
        ],
    )  # fmt: skip
    humans = result.against_humans
    if humans is None:
        yield "  no labels: whether the error changed is not known; label traces that both judged"
    else:
        yield f"Against the humans, {humans.n} labelled traces"
        yield f"  accuracy of {result.before}: {number(humans.accuracy_before.estimate)}"
        yield f"  accuracy of {result.after}: {number(humans.accuracy_after.estimate)}"
        for name, found in (
            ("accuracy", humans.accuracy_change),
            ("leniency", humans.leniency_change),
            ("distance of the credit", humans.error_change),
        ):
            yield f"  change of {name}: {number(found.estimate)}{_p(found.p_value)}"
    yield f"fingerprint {result.fingerprint[:16]}"


def groups(result: JudgeGroups) -> Iterator[str]:
    """Yield the corrected rate of each group and the differences; `~` marks a synthetic one."""
    if result.simulated:
        yield SIMULATED
    yield f"Agent success rate by {result.by}, judge {result.judge_id}, labels of {result.batch_id}"
    yield from table(
        [result.by, "labels", "judged", "net of cost", "gross", "judge lenient by"],
        [
            [
                _short(row.name, 60) + (" ~" if row.net.kind == "synthetic" else ""),
                f"{row.net.n_labels}", f"{row.net.n_production:,}", figure(row.net.estimate),
                figure(row.gross.estimate), figure(row.leniency.estimate),
            ]
            for row in result.groups
        ],
    )  # fmt: skip
    yield from notes((_short(row.name, 60), row.net.estimate) for row in result.groups)
    if any(row.net.kind == "synthetic" for row in result.groups):
        yield "  ~ synthetic: fewer than 50 own labels; the judge is taken to err as in all groups"
    yield f"  {errs_alike(result.rates)}"
    yield from _pairs(result.pairs)
    yield f"fingerprint {result.fingerprint[:16]}"


def errs_alike(rates: RatesTest) -> str:
    """Say whether the judge errs alike in all groups."""
    if rates.statistic is None:
        return f"does the judge err alike? {rates.status.replace('_', ' ', 1)}"
    return (
        f"does the judge err alike? chi-square {rates.statistic:.1f} on {rates.df} df, "
        f"p {rates.p_value:.3g} ({rates.n_groups} groups, {rates.n} labels; {rates.method})"
    )


def _pairs(pairs: Sequence[GroupPair]) -> Iterator[str]:
    if not pairs:
        return
    yield ""
    yield "Differences, net of cost (each interval is for one pair)"
    rows = [
        [
            _both(pair), *(_of_side(side) for side in pair.net.sides),
            figure(pair.net.difference), percent(pair.net.flip_chance),
            percent(pair.net.flips_at), figure(pair.leniency_difference),
        ]
        for pair in pairs
    ]  # fmt: skip
    head = ["", "first", "second", "difference", "wrong sign", "turns at", "judge more lenient by"]
    yield from table(head, rows)
    yield from notes(("differences", pair.net.difference) for pair in pairs)
    if any(pair.net.kind == "synthetic" for pair in pairs):
        yield "  ~ synthetic, both sides with the error rates of all groups: gates nothing"
        yield "  wrong sign: chance of it if the judge errs alike in both"
        yield "  turns at: share of one group's traces that the judge would have to pass beyond"
        yield "  what it would pass of the other's, for the ranking to turn around"


def _of_side(found: Estimate) -> str:
    return "-" if found.value is None else f"{found.value:.3f}"


def _both(pair: GroupPair) -> str:
    mark = " ~" if pair.net.kind == "synthetic" else ""
    return f"{_short(pair.net.first, 60)} less {_short(pair.net.second, 60)}{mark}"


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


def _p(p_value: float | None) -> str:
    return "" if p_value is None else f", p {p_value:.3g}"


def _because(text: str | None) -> str:
    return "" if text is None else f": {_short(text)}"


def _quotes(evidence: Iterable[Mapping[str, str]]) -> Iterator[str]:
    for item in evidence:
        yield f'      {item["step_id"]}: "{_short(item["quote"])}"'


def _short(text: str, longest: int = LONGEST) -> str:
    """Return hostile text on one printable line, bounded."""
    line = "".join(c if c.isprintable() else " " for c in " ".join(text[: 2 * longest].split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"
