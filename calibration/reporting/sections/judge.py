"""The judge report as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from calibration.agreement.annotators import BesidePanel
from calibration.analyses.evidence.data import UNKNOWN, ReviewedTrace
from calibration.analyses.judge.calibration import CHOSEN, HumanSide, JudgeCalibration
from calibration.analyses.judge.diagnostics import STEPS, JudgeDiagnostics, Leniency
from calibration.analyses.judge.drift import JudgeDrift
from calibration.analyses.judge.groups import GroupPair, GroupRates
from calibration.analyses.judge.report import DIAGNOSTICS, DRIFT, GROUPS, JudgeReport
from calibration.judge_calibration.bias import NodeQuality, OrdinalAgreement, Retest
from calibration.judge_calibration.calibrate import Calibration
from calibration.judge_calibration.groups import RatesTest
from calibration.judge_calibration.samples import HEADLINE, Notice
from calibration.records import Evidence
from calibration.reporting import to_json
from calibration.reporting.document import (
    SIMULATED,
    confusion,
    figure,
    notes,
    number,
    percent,
    table,
)
from calibration.reporting.to_json import Json
from calibration.statistics.estimate import OK, Estimate
from calibration.statistics.means import MeanAgainstZero
from calibration.text import one_line

DISAGREEMENTS_SHOWN = 20

GROUPS_SHOWN = 12

LONGEST = 300

COEFFICIENTS = {
    "percent_agreement": "percent agreement",
    "krippendorff_alpha": "Krippendorff's alpha",
    "gwet_ac": "Gwet's AC1",
}

NO_VERDICT_GIVEN = "no verdict given"


SAMPLE = {
    "production": "taken as a random sample of production",
    "reference": "reference only: assumes that the judge errs there as in production",
}

WIDER = "wider_than_human_only"

# Most rows that a report shows of a long list.
LINES_SHOWN = 5


SYNTHETIC = {
    "production": "fewer than 50 own labels",
    "reference": "labels of a reference set say nothing of one group alone",
}


ELSEWHERE = (
    "For other tasks, other periods or another version of the judge: not without labels of theirs."
)

# Notices on single classes or cross-checks: no reason to doubt the rate.
ASIDE = ("class_few_labels",)


def diagnostics(result: JudgeDiagnostics) -> Iterator[str]:
    """Yield the error of a judge, overall and by group; each part after an empty line."""
    yield from ceiling(result.ceiling)
    yield from where(result)


def where(result: JudgeDiagnostics) -> Iterator[str]:
    """Yield all but the human ceiling: errors by group and class, and their covariates."""
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


def _not_known(result: JudgeDiagnostics) -> Iterator[str]:
    """Yield, on one line, the results that need more columns, labels or verdicts."""
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


def lenient(result: JudgeDiagnostics) -> Iterator[str]:
    """Yield the leniency of the judge, overall and by group."""
    yield "Is it lenient? Credit of the verdict less the human one (above 0: lenient)"
    shown = f"{number(result.leniency.estimate)}{p_text(result.leniency.p_value)}"
    yield f"  all labelled traces  {shown}"
    for by, rows in result.leniency_by.items():
        yield from leniency(by, rows)


def slopes(found: Mapping[str, MeanAgainstZero], own_family: MeanAgainstZero) -> Iterator[str]:
    """Yield the dependence of leniency on covariates, with the human class held fixed."""
    yield "Does leniency follow the size of a trace? Credit for each doubling, same human class"
    names = {"response": "length of the response", "steps": "number of steps"}
    for name, one in found.items():
        yield f"  {names[name]:<22}  {number(one.estimate)}{p_text(one.p_value)}"
    if own_family.estimate.ok:
        shown = f"{number(own_family.estimate)}{p_text(own_family.p_value)}"
        yield f"  its own model family, less other agents: {shown}"


def asked_again(again: Retest, verdict_names: Sequence[str]) -> Iterator[str]:
    """Yield how often the judge changes its verdict on repetition."""
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
    """Yield the human ceiling, the agreement of the judge with humans, and the gap."""
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
    """Return whether the judge is within human disagreement."""
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
    """Yield the judge's answers at each decision-tree node, and where its errors begin."""
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
    """Yield the judge's leniency in each group; a single group is the whole."""
    if len(rows) < 2:
        return
    shown = [
        [
            one_line(row.group, most=60), f"{row.gap.estimate.n:,}", f"{row.verdict_credit:.3f}",
            f"{row.human_credit:.3f}", figure(row.gap.estimate),
            "-" if row.p_holm is None else p_value_text(row.p_holm),
        ]
        for row in rows[:limit]
    ]  # fmt: skip
    head = [f"by {by}", "traces", "judge", "humans", "difference", "p adjusted"]
    yield from table(head, shown)
    yield from notes((one_line(row.group, most=60), row.gap.estimate) for row in rows[:limit])
    if len(rows) > limit:
        yield f"  and {len(rows) - limit:,} more, all of them in --json"


def disagreements(
    found: Sequence[ReviewedTrace], limit: int = DISAGREEMENTS_SHOWN
) -> Iterator[str]:
    """Yield the disagreements that move the rate most, with verdict and labels."""
    yield (
        f"Where do they differ? {len(found):,} traces"
        + (f", the {limit} that move the rate most" if len(found) > limit else "")
    )
    for item in found[:limit]:
        moved = f", moves the rate by {item.moves:.4f}" if item.moves else ""
        where = "" if item.question is None else f", part at {item.question}"
        whose = ", ".join(
            one_line(name, most=60) for name in (item.workflow, item.agent) if name != UNKNOWN
        )
        yield f"  {one_line(item.trace_id, most=60)}{f' ({whose})' if whose else ''}{where}{moved}"
        yield f"    judge: {one_line(item.verdict or '', most=60)}{_because(item.reason)}"
        yield from _quotes(item.evidence)
        for said in item.labels:
            who = f"{one_line(said.reviewer, most=60)}: {one_line(said.outcome or '', most=60)}"
            yield f"    {who}{_because(said.rationale)}"
            yield from _quotes(said.evidence)
        if item.adjudicated:
            yield f"    settled: {', '.join(one_line(name, most=60) for name in item.human)}"
    if len(found) > limit:
        yield f"  and {len(found) - limit:,} more, all of them in --json"


def ordinal(found: OrdinalAgreement) -> Iterator[str]:
    """Yield the ordinal agreement of the judge's grades with the human ones."""
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
    """Return a p-value as a suffix of an estimate, empty without one."""
    return "" if p_value is None else f", p {p_value_text(p_value)}"


def p_value_text(p_value: float) -> str:
    """Return a p-value with two digits."""
    return f"{p_value:.2g}" if p_value >= 0.0001 else "< 0.0001"


def _because(text: str | None) -> str:
    return "" if text is None else f": {one_line(text, most=LONGEST)}"


def _quotes(evidence: Iterable[Evidence]) -> Iterator[str]:
    for item in evidence:
        yield f'      {item.step_id}: "{one_line(item.quote, most=LONGEST)}"'


def result(found: JudgeCalibration) -> Iterator[str]:
    """Yield a calibration without diagnostics."""
    for part in (heading, use, crossed, quality, rates, mending):
        yield from part(found)
        yield ""
    yield f"seed {found.seed}; fingerprint {found.fingerprint[:16]}"


def heading(result: JudgeCalibration) -> Iterator[str]:
    """Yield the sources of labels and verdicts, and the basis of the human side."""
    of = result.provenance
    if of.source == "store":
        if of.simulated:
            yield SIMULATED
        yield f"Judge {of.judge_id} against the labels of {of.batch_id}"
    elif of.source == "files":
        whose = f" of {of.judge_id}" if of.judge_id else ""
        yield f"The verdicts{whose} of {of.verdicts} against the labels of {of.labels}"
    else:
        yield f"The tables of {of.verdicts}"
    calibration = result.calibration
    yield (
        f"  {calibration.n_labels:,} labelled traces ({drawn(result)}), "
        f"{calibration.n_production:,} judged"
    )
    if result.human is not None:
        yield from human_side(result.human)
    for note in result.notes:
        yield f"  {note}"
    yield from _set_aside(result)


def use(result: JudgeCalibration) -> Iterator[str]:
    """Yield the valid uses of the judge."""
    yield "Can this judge be used?"
    yield from _for_the_rate(result)
    yield from for_a_trace(result)


def crossed(result: JudgeCalibration) -> Iterator[str]:
    """Yield labelled traces by human class and verdict."""
    yield "Human class (rows) x verdict (columns), labelled traces"
    table = result.calibration.confusion.table.tolist()
    yield from confusion(result.classes, result.verdict_names, table)
    if result.disagreements:
        yield f"  {len(result.disagreements):,} traces where a human and the judge differ"


def drawn(result: JudgeCalibration) -> str:
    """Return the design of the labelled traces."""
    if any(notice.code == CHOSEN.code for notice in result.calibration.refusals):
        return "chosen, not drawn"
    return SAMPLE[result.design]


def human_side(side: HumanSide) -> Iterator[str]:
    """Yield the basis of the human side of the labelled traces."""
    reviewers = f" by {len(side.reviewers)} reviewers" if len(side.reviewers) > 1 else ""
    yield (
        f"  human side: {side.n_labels:,} labels{reviewers}; traces with two or more: "
        f"{side.n_shared:,}, adjudicated: {side.n_adjudicated:,}"
        + (f"; provisional: {side.n_open:,} disagreements open" if side.n_open else "")
    )
    if side.n_adjudicated or side.n_shared:
        yield "  a trace counts by its adjudicated class, else by the mean over its reviewers"
    if side.skipped_by_verdict:
        by = ", ".join(f"{name} {n}" for name, n in side.skipped_by_verdict.items())
        yield f"  {sum(side.skipped_by_verdict.values()):,} skipped, by verdict: {by}"


def _set_aside(result: JudgeCalibration) -> Iterator[str]:
    rows: dict[tuple[str, str], list[int | None]] = {}
    for row in result.set_aside:
        rows.setdefault((row.file, row.reason), []).append(row.line)
    for (file, reason), lines in rows.items():
        shown = ", ".join(map(str, lines[:LINES_SHOWN])) + (
            ", ..." if len(lines) > LINES_SHOWN else ""
        )
        yield f"  set aside: {len(lines):,} of {file}, line {shown}: {reason}"


def _for_the_rate(result: JudgeCalibration) -> Iterator[str]:
    calibration = result.calibration
    if calibration.headline is None:
        yield f"  for the rate: no, {HEADLINE[result.design]} is refused; why stands below"
        human = calibration.estimates["human_only"].net
        if human.ok:
            yield f"    human labels alone say {number(human)}"
        return
    net = calibration.estimates[calibration.headline].net
    yield f"  for the rate: yes, corrected it is {number(net)}"
    if off := as_it_is(calibration):
        yield f"    {off}"
    if any(w.code == WIDER and w.estimator == calibration.headline for w in calibration.warnings):
        yield "    it adds nothing to the human labels: the interval is no shorter with it"
    elif calibration.gain is not None and calibration.gain.value is not None:
        yield f"    one label with it is worth this many without: {number(calibration.gain, 2)}"
    if result.design == "reference":
        yield "    as long as it errs in production as on the reference; 100 random labels show it"


def as_it_is(calibration: Calibration) -> str | None:
    """Return the error of the uncorrected rate; None without a headline."""
    head, raw = calibration.headline_estimate, calibration.estimates["judge_raw"].net.value
    if head is None or head.net.value is None or raw is None:
        return None
    off, interval = raw - head.net.value, head.net.interval
    inside = interval is not None and interval[0] <= raw <= interval[1]
    return (
        f"taken as it is the judge says {raw:.3f}, {abs(off):.3f} too "
        f"{'high' if off > 0 else 'low'}, {'inside' if inside else 'outside'} that interval"
    )


def for_a_trace(result: JudgeCalibration) -> Iterator[str]:
    """Yield the reliability of a verdict on a single trace."""
    quality = result.calibration.judge
    if quality.accuracy.value is None:
        yield f"  for single traces: not known, {number(quality.accuracy)}"
    else:
        yield (
            f"  for single traces: it names the humans' class of {figure(quality.accuracy)} of the "
            f"labelled traces, {figure(quality.kappa)} beyond chance (kappa)"
        )
    found = [
        (one.recall.value, name, one.recall)
        for name, one in zip(result.classes, quality.per_class, strict=True)
        if one.recall.value is not None
    ]
    if found:
        _, name, recall = min(found, key=lambda one: one[0])
        what = "least of" if len(found) > 1 else "only known of"
        yield f"    {what} {name}: {figure(recall)} of them get that verdict"
    yield "  for other tasks, periods or another version of the judge: not without labels of theirs"


def quality(result: JudgeCalibration) -> Iterator[str]:
    """Yield accuracy, kappa and alpha, and recall and precision of each class."""
    yield "How far off is it?"
    quality = result.calibration.judge
    for name, found in (
        ("accuracy", quality.accuracy), ("kappa", quality.kappa), ("alpha", result.alpha),
    ):  # fmt: skip
        yield f"  {name:<8} {number(found)}"
    pairs = list(zip(result.classes, quality.per_class, strict=True))
    yield from table(
        ["class", "recall", "precision", "labels", "verdicts"],
        [
            [name, figure(q.recall), figure(q.precision), f"{q.n_human:.4g}", f"{q.n_judge:.4g}"]
            for name, q in pairs
        ],
    )
    marked: list[tuple[str, Estimate]] = [(f"recall of {name}", q.recall) for name, q in pairs]
    marked += [(f"precision of {name}", q.precision) for name, q in pairs]
    yield from notes(marked)
    yield "  recall: of the class, the share with its verdict; precision: of the verdict, its class"
    if any(w.code == "chosen_by_verdict" for w in result.calibration.warnings):
        yield "  if these traces were chosen by their verdict, recall is 1 or 0 by construction"


def rates(result: JudgeCalibration) -> Iterator[str]:
    """Yield the rate by every estimator, and the class shares of the headline."""
    yield "Agent success rate, net of cost and gross"
    calibration = result.calibration
    estimates = calibration.estimates
    yield from table(
        ["estimator", "net", "gross"],
        [
            [name + (" *" if name == calibration.headline else ""), figure(e.net), figure(e.gross)]
            for name, e in estimates.items()
        ],
    )
    # The refusals below give the reason for each estimator.
    refused = {notice.estimator for notice in calibration.refusals}
    yield from notes((n, e.net) for n, e in estimates.items() if e.net.ok or n not in refused)
    if calibration.headline is not None:
        yield f"  * headline; {estimates[calibration.headline].net.method}"
    for reviewer, value in result.without_reviewer.items():
        shown = "not estimable" if value is None else f"{value:.3f}"
        yield f"  without {reviewer}: {shown} (reviewer error is shown here, not in the interval)"
    if result.if_skipped is not None:
        low, high = result.if_skipped
        yield f"  {result.skipped} skipped traces could move it to [{low:.3f}, {high:.3f}]"
    shares = calibration.class_shares.get(calibration.headline or "")
    if shares is not None:
        yield ""
        yield "Outcome shares (corrected)"
        named = list(zip(result.classes, shares, strict=True))
        yield from table(
            ["class", "share", "credit"],
            [[name, figure(share), f"{result.credit[name]:g}"] for name, share in named],
        )
        yield from notes(named)


def mending(result: JudgeCalibration) -> Iterator[str]:
    """Yield refusals and warnings, and their remedies."""
    yield "What would make it better?"
    calibration = result.calibration
    yield from notices("refused", calibration.refusals)
    yield from notices("warning", calibration.warnings)
    if result.human is not None and result.human.n_open:
        yield f"  settle the {result.human.n_open:,} open disagreements: until then provisional"
    if calibration.headline is not None and not calibration.warnings:
        yield "  more labels: four times as many halve the interval"


def notices(kind: str, found: Sequence[Notice]) -> Iterator[str]:
    """Yield notices of one kind, merged if they apply to several estimators or classes."""
    estimators: dict[tuple[str, str, str], list[str]] = {}
    for notice in found:
        key = notice.code, notice.why, notice.mend
        estimators.setdefault(key, []).append(notice.estimator)
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for (code, why, mend), names in estimators.items():
        whom = ", ".join(dict.fromkeys(names))
        alike.setdefault((whom, code), []).append((why, mend))
    for (whom, _), said in alike.items():
        why = "; ".join(one for one, _ in said)
        # The remedy for the first of many is the remedy for all.
        same = len({one for _, one in said}) == 1
        yield f"  {kind}: {whom}: {why}; {said[0][1]}{'' if same else ', and so for the others'}"


def drift(result: JudgeDrift) -> Iterator[str]:
    """Yield the differences between two judges on the same traces."""
    before, after = one_line(result.before, most=60), one_line(result.after, most=60)
    yield f"Has the judge moved? {before} and {after} on the same {result.n:,} traces"
    yield f"  same verdict  {number(result.same)}"
    yield f"  alpha         {number(result.alpha)}"
    yield f"  mean credit, {after} less {before}: {number(result.credit_change.estimate)}"
    yield from table(
        ["verdict", before, after, f"only {before}", f"only {after}", "p", "p adjusted"],
        [
            [
                one_line(row.name, most=60), percent(row.before), percent(row.after),
                f"{row.only_before:,}", f"{row.only_after:,}",
                *("-" if p is None else p_value_text(p) for p in (row.test.p_value, row.p_holm)),
            ]
            for row in result.classes
        ],
    )  # fmt: skip
    yield "  p: McNemar's test that both give the verdict as often"
    humans = result.against_humans
    if humans is None:
        yield "  no labels: whether the error changed is not known; label traces that both judged"
    else:
        yield f"  against the humans, {humans.n:,} labelled traces:"
        yield f"  accuracy of {before}  {number(humans.accuracy_before.estimate)}"
        yield f"  accuracy of {after}  {number(humans.accuracy_after.estimate)}"
        for name, found in (
            ("accuracy", humans.accuracy_change),
            ("leniency", humans.leniency_change),
            ("distance of the credit", humans.error_change),
        ):
            yield f"  change of {name}  {number(found.estimate)}{p_text(found.p_value)}"


def groups(result: GroupRates, limit: int = DISAGREEMENTS_SHOWN) -> Iterator[str]:
    """Yield the corrected rate of each group and the differences; `~` marks a synthetic one."""
    yield f"Agent success rate by {result.by}"
    rows = result.groups[:limit]
    yield from table(
        [result.by, "labels", "judged", "net of cost", "gross", "judge lenient by"],
        [
            [
                one_line(row.name, most=60) + (" ~" if row.net.kind == "synthetic" else ""),
                f"{row.net.n_labels:,}", f"{row.net.n_production:,}", figure(row.net.estimate),
                figure(row.gross.estimate), figure(row.leniency.estimate),
            ]
            for row in rows
        ],
    )  # fmt: skip
    yield from notes((one_line(row.name, most=60), row.net.estimate) for row in rows)
    if len(result.groups) > limit:
        yield f"  and {len(result.groups) - limit:,} more, all of them in --json"
    if any(row.net.kind == "synthetic" for row in rows):
        yield f"  ~ synthetic, taking the judge to err as in all groups: {SYNTHETIC[result.design]}"
    yield "  " + errs_alike(result.rates)
    yield from _pairs(result.pairs)


def errs_alike(rates: RatesTest) -> str:
    """Return whether the judge errs alike in all groups."""
    if rates.statistic is None:
        return f"does the judge err alike? {rates.status.replace('_', ' ', 1)}"
    return (
        f"does the judge err alike? chi-square {rates.statistic:.1f} on {rates.df} df, "
        f"p {p_value_text(rates.p_value or 0.0)} ({rates.n_groups} groups, {rates.n:,} labels; "
        "a large p does not show it)"
    )


def _pairs(pairs: Sequence[GroupPair]) -> Iterator[str]:
    known = [pair for pair in pairs if pair.net.difference.ok]
    if pairs and not known:
        yield "  no two of them can be compared: a side has no rate"
    if not known:
        return
    yield "  Differences, net of cost (each interval is for one pair)"
    rows = [
        [
            _both(pair), *(_of_side(side) for side in pair.net.sides),
            figure(pair.net.difference), percent(pair.net.flip_chance),
            percent(pair.net.flips_at), figure(pair.leniency_difference),
        ]
        for pair in known
    ]  # fmt: skip
    head = ["", "first", "second", "difference", "wrong sign", "turns at", "judge more lenient by"]
    yield from table(head, rows)
    yield from notes((_both(pair), pair.net.difference) for pair in known)
    if len(known) < len(pairs):
        yield f"  {len(pairs) - len(known)} more pairs have a side without a rate"
    if any(pair.net.kind == "synthetic" for pair in known):
        yield "  ~ synthetic, both sides with the error rates of all groups: gates nothing"
        yield "  wrong sign: chance of it if the judge errs alike in both"
        yield "  turns at: share of one group's traces that the judge would have to pass beyond"
        yield "  what it would pass of the other's, for the ranking to turn around"


def _of_side(found: Estimate) -> str:
    return "-" if found.value is None else f"{found.value:.3f}"


def _both(pair: GroupPair) -> str:
    mark = " ~" if pair.net.kind == "synthetic" else ""
    return f"{one_line(pair.net.first, most=60)} less {one_line(pair.net.second, most=60)}{mark}"


Part = TypeVar("Part")


def text(report: JudgeReport) -> Iterator[str]:
    """Yield the report; a failed part gives its reason and hides no other."""
    found, not_computed = report.calibration, report.not_computed
    yield from heading(found)
    if report.diagnostics is not None:
        yield ""
        yield from ceiling(report.diagnostics.ceiling)
    yield ""
    yield from use(found)
    yield ""
    yield from crossed(found)
    yield ""
    yield from quality(found)
    if report.diagnostics is not None:
        yield from where(report.diagnostics)
    elif DIAGNOSTICS in not_computed:
        yield ""
        yield f"Diagnostics: not computed, {not_computed[DIAGNOSTICS]}"
    if report.drift is not None:
        yield ""
        yield from drift(report.drift)
    elif DRIFT in not_computed:
        yield ""
        yield f"Has the judge moved? Not known: {not_computed[DRIFT]}"
    yield ""
    yield from rates(found)
    if report.groups is not None:
        yield ""
        yield from groups(report.groups)
    elif GROUPS in not_computed:
        yield ""
        yield f"Agent success rate by group: not estimable, {not_computed[GROUPS]}"
    yield ""
    yield from mending(found)
    yield ""
    yield f"seed {found.seed}; fingerprint {found.fingerprint[:16]}"


def as_json(report: JudgeReport) -> Json:
    """Return the calibration with the other parts beside its keys; null unless requested."""
    found: Json = to_json.data(report)
    return found


def for_the_rate(result: JudgeCalibration) -> str:
    """Return whether the corrected rate can be used: yes, yes with a reservation, or no."""
    calibration = result.calibration
    head = calibration.headline_estimate
    if head is None:
        refused = HEADLINE[result.design]
        whys = [n.why for n in calibration.refusals if n.estimator == refused]
        return f"For the rate: no, because {'; '.join(whys) or 'it is refused'}."
    but = [] if head.net.status == OK else [head.net.status.replace("_", " ", 1)]
    mine = [w for w in calibration.warnings if w.estimator == calibration.headline]
    if any(w.code == WIDER for w in mine):
        but.append("it adds nothing to the human labels: the interval is no shorter with it")
    but += [w.why for w in mine if w.code not in (*ASIDE, WIDER)]
    if result.design == "reference":
        but.append("only as long as it errs in production as on these traces")
    said = f"yes, corrected it is {figure(head.net).removesuffix(' +')}"
    return f"For the rate: {said}{', but ' if but else ''}{'; '.join(but)}."


def for_single_traces(result: JudgeCalibration, alpha: BesidePanel) -> str:
    """Return whether a verdict on a single trace can replace a human label."""
    accuracy = result.calibration.judge.accuracy
    if accuracy.value is None:
        return f"For single traces: not known, {accuracy.status.replace('_', ' ', 1)}."
    if alpha.within is None:
        return (
            "For single traces: not known, too few traces have two human labels to tell how far "
            "humans differ among themselves."
        )
    said = beside_humans(alpha)
    return f"For single traces: {'perhaps' if alpha.within else 'no'}, {said}."
