"""A judge report as a document, and the sentences on a judge that the Judge page shares."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from calibration.agreement.annotators import BesidePanel
from calibration.analyses.evidence.data import UNKNOWN, ReviewedTrace
from calibration.analyses.judge.calibration import (
    CHOSEN,
    HumanSide,
    JudgeCalibration,
    audited,
    odd_verdicts,
)
from calibration.analyses.judge.diagnostics import STEPS, JudgeDiagnostics, Leniency
from calibration.analyses.judge.drift import JudgeDrift, LabelDrift
from calibration.analyses.judge.groups import GroupPair, GroupRates
from calibration.analyses.judge.report import DIAGNOSTICS, DRIFT, GROUPS, JudgeReport
from calibration.judge_calibration.bias import NodeQuality, OrdinalAgreement, Retest
from calibration.judge_calibration.calibrate import Calibration
from calibration.judge_calibration.groups import GroupComparison, RatesTest
from calibration.judge_calibration.post_stratification import IfSkipped
from calibration.judge_calibration.reviewer_error import NoiseCeiling, TwoPhase
from calibration.judge_calibration.samples import HEADLINE, Composition, Notice
from calibration.records import Evidence
from calibration.reporting.document import (
    ESTIMANDS,
    SIMULATED,
    Block,
    Document,
    Facts,
    Lines,
    Listing,
    Mark,
    Name,
    Section,
    Table,
    Words,
    coefficient_cell,
    figure,
    notes,
    number,
    percent,
    percent_cell,
    percent_figure,
    percent_number,
    rank_words,
    rate_sentence,
    table_of,
)
from calibration.statistics.estimate import OK, Estimate
from calibration.statistics.means import MeanAgainstZero
from calibration.tables.reading import Reading
from calibration.text import counted, one_line, own_credit, sentence

DISAGREEMENTS_SHOWN = 20
GROUPS_SHOWN = 12
LONGEST = 300

COEFFICIENTS = {
    "percent_agreement": "percent agreement",
    "krippendorff_alpha": "Krippendorff's alpha",
    "gwet_ac": "Gwet's AC1",
}

NO_VERDICT_GIVEN = "no verdict given"
SAME_RATES = "does the judge have the same error rates in all groups?"

SAMPLE = {
    "production": "taken as a random sample of production",
    "reference": "reference only: assumes the same error rates of the judge in production",
}

RUNS = {"process": "runs like these", "these_runs": "these {n:,} runs"}

WIDER = "wider_than_human_only"

# Sources of the width of an interval, and what makes them smaller.
WIDTH = {
    "human_sampling": ("human sampling", "more labels"),
    "judge": ("judge", "a better judge"),
    "production": ("production sampling", "more runs"),
    "reviewers": ("reviewer error", "more traces labelled twice and adjudicated"),
}

SYNTHETIC = {
    "production": "fewer than 50 own labels",
    "reference": "labels of a reference set say nothing of one group alone",
}

BORROWED = (
    "fewer than 50 labels of its own: the judge's error there is drawn toward that of all groups"
)
FLIPS = ("wrong sign", "flips at")

ELSEWHERE = "Other tasks, other periods and other versions of the judge need labels of their own."

COVARIATES = {"response": "length of the response", "steps": "number of steps"}


def document(report: JudgeReport) -> Document:
    """Return the report; a part that could not be computed gives its reason and hides no other."""
    found, diagnosed, missing = report.calibration, report.diagnostics, report.not_computed
    titles = found.titles
    of = found.provenance
    sections = [_use(found, diagnosed), _rates(found), *_outcomes(found)]
    if diagnosed is not None:
        sections.append(_ceiling(diagnosed.ceiling, found))
    sections += [_crossed(found), _quality(found)]
    if diagnosed is not None:
        sections += _errors(diagnosed, titles)
    sections += _part("Errors by group, class and question", DIAGNOSTICS, missing)
    if report.drift is not None:
        sections.append(_drift(report.drift, titles))
    sections += _part("Has the judge moved?", DRIFT, missing)
    if report.groups is not None:
        sections.append(_groups(report.groups))
    sections += _part("Agent success rate by group", GROUPS, missing)
    sections.append(_remedies(found))
    return Document(
        title=_title(found),
        banners=(SIMULATED,) if of.source == "store" and of.simulated else (),
        about=tuple(_about(found)),
        sections=tuple(sections),
        footer=f"seed {found.seed}; fingerprint {found.fingerprint[:16]}",
        reading=answers_read(found.reading),
        # Without a rate the answer is what would help.
        brief=sections[0].blocks
        + (sections[-1].blocks if found.calibration.headline is None else ()),
        then=_then(found),
    )


def answers_read(readings: Sequence[Reading]) -> tuple[str, ...]:
    """Return what stands before the estimates, with all rows that are left out."""
    return tuple(
        f"{one.place}: {line}"
        for one in readings
        for line in (*one.lines, *((one.folded_line,) if one.folded_line else ()))
    )


def _then(found: JudgeCalibration) -> str:
    """Return the command that takes a judge of the store further."""
    of = found.provenance
    if of.source != "store":
        return ""
    if found.calibration.headline is None:
        return "status"
    return f"report --judge {shlex.quote(of.judge_id)} --batch {shlex.quote(of.batch_id)}"


def _titled(names: Iterable[str], titles: Mapping[str, str]) -> list[str]:
    """Return what people call classes and verdicts."""
    return [titles.get(name, name) for name in names]


def _part(title: str, part: str, missing: Mapping[str, str]) -> Iterator[Section]:
    """Yield the reason why a part was not computed, if that is so."""
    if part in missing:
        yield Section(title=title, blocks=(Words(text=f"not computed: {missing[part]}"),))


def _title(found: JudgeCalibration) -> str:
    of = found.provenance
    if of.source == "store":
        return f"Judge {of.judge_id} against the labels of {of.batch_id}"
    if of.source == "files":
        whose = f" of {of.judge_id}" if of.judge_id else ""
        return f"The verdicts{whose} of {of.verdicts} against the labels of {of.labels}"
    return f"The tables of {of.verdicts}"


def _about(found: JudgeCalibration) -> Iterator[str]:
    yield (
        f"{found.calibration.n_labels:,} labelled traces ({drawn(found)}), "
        f"{found.calibration.n_production:,} judged"
    )
    yield from of_what(found)
    if found.human is not None:
        yield from human_side(found.human)
    if found.agreed_error is not None:
        yield audited(found.agreed_error)
    yield from found.notes


def of_what(found: JudgeCalibration) -> Iterator[str]:
    """Yield of which runs the rate is, and whether the labels look like them."""
    if found.design == "production":
        yield ESTIMANDS[found.estimand].format(n=found.calibration.n_production)
    if found.composition is not None:
        yield composed(found.composition)


def composed(found: Composition) -> str:
    """Return what was checked of the labelled traces as a sample of production."""
    if not found.checked:
        some, below = ("a", ", see below") if found.refused else ("no", "")
        return (
            f"{some} group with 5 % of production was left out of the labels{below}; not checked "
            "whether the labels look like production otherwise: their weights differ, and the "
            "strata of the draw are not known"
        )
    if not found.p:
        return "nothing is known of the traces by which labels and production could be compared"
    seen = ", ".join(found.p) + f", within {found.strata} strata of the draw" * (found.strata > 1)
    if found.warned or found.refused:
        return f"labels compared with the rest of production by {seen}: they differ, see below"
    return f"labels compared with the rest of production by {seen}: no difference seen"


def drawn(result: JudgeCalibration) -> str:
    """Return the design of the labelled traces."""
    if any(notice.code == CHOSEN.code for notice in result.calibration.refusals):
        return "chosen, not drawn"
    return SAMPLE[result.design]


def human_side(side: HumanSide) -> Iterator[str]:
    """Yield the basis of the human side of the labelled traces."""
    reviewers = f" by {len(side.reviewers)} reviewers" if len(side.reviewers) > 1 else ""
    yield (
        f"human side: {side.n_labels:,} labels{reviewers}; traces with two or more: "
        f"{side.n_shared:,}, adjudicated: {side.n_adjudicated:,}"
        + (f"; provisional: {counted(side.n_open, 'open disagreement')}" if side.n_open else "")
    )
    if side.n_adjudicated or side.n_shared:
        yield "a trace counts by its adjudicated class, else by the mean over its reviewers"
    if side.skipped_by_verdict:
        by = ", ".join(f"{name} {n}" for name, n in side.skipped_by_verdict.items())
        yield Name(f"{sum(side.skipped_by_verdict.values()):,} skipped, by verdict: {by}")


def _use(found: JudgeCalibration, diagnosed: JudgeDiagnostics | None) -> Section:
    calibration = found.calibration
    alpha = None if diagnosed is None else diagnosed.ceiling.get("krippendorff_alpha")
    odd = odd_verdicts(found)
    lines = [*([] if odd is None else [odd]), in_a_sentence(found), for_the_rate(found)]
    if calibration.headline is None:
        human = calibration.estimates["human_only"].net
        lines += [f"Human labels alone give {percent_number(human)}."] if human.ok else []
    if off := as_it_is(calibration):
        lines.append(sentence(off))
    if calibration.gain is not None and calibration.gain.value is not None:
        lines.append(f"{saved_labelling(calibration.gain)}.")
    lines += [for_single_traces(found, alpha), ELSEWHERE]
    return Section(
        title="Can this judge be used?", blocks=tuple(Words(text=line) for line in lines)
    )


def in_a_sentence(result: JudgeCalibration) -> str:
    """Return the rate in one sentence: of which runs, its limits, and what these carry."""
    calibration = result.calibration
    runs = RUNS[result.estimand].format(n=calibration.n_production)
    head = calibration.headline_estimate
    if head is None:
        return f"No rate of {runs} can be given."
    return rate_sentence(head.net, runs, reviewers=calibration.includes_reviewers)


def for_the_rate(result: JudgeCalibration) -> str:
    """Return whether the corrected rate can be used: yes, yes with a reservation, or no."""
    calibration = result.calibration
    head = calibration.headline_estimate
    if head is None:
        refused = HEADLINE[result.design]
        whys = [n.why for n in calibration.refusals if n.estimator == refused]
        return f"For the rate: no, because {'; '.join(whys) or 'it is refused'}."
    but = [] if head.net.status == OK else [head.net.status.replace("_", " ", 1)]
    mine = calibration.headline_warnings
    if any(w.code == WIDER for w in mine):
        but.append("the judge adds nothing to the human labels: the interval is no shorter with it")
    but += [w.why for w in mine if w.code != WIDER]
    if result.design == "reference":
        but.append("only while its error rates in production are those on these traces")
    use = f"yes, corrected it is {percent_figure(head.net)}"
    return f"For the rate: {use}{', but ' if but else ''}{'; '.join(but)}."


def as_it_is(calibration: Calibration) -> str | None:
    """Return the error of the uncorrected rate; None without a headline."""
    head, raw = calibration.headline_estimate, calibration.estimates["judge_raw"].net.value
    if head is None or head.net.value is None or raw is None:
        return None
    off, interval = raw - head.net.value, head.net.interval
    inside = interval is not None and interval[0] <= raw <= interval[1]
    return (
        f"uncorrected, the judge gives {percent(raw)}, {100 * abs(off):.1f} points too "
        f"{'high' if off > 0 else 'low'}, {'inside' if inside else 'outside'} that interval"
    )


def for_single_traces(result: JudgeCalibration, alpha: BesidePanel | None) -> str:
    """Return whether a verdict on a single trace can replace a human label."""
    accuracy = result.calibration.judge.accuracy
    if accuracy.value is None:
        return f"For single traces: not known, {accuracy.status.replace('_', ' ', 1)}."
    if alpha is None or alpha.within is None:
        return (
            "For single traces: not known, too few traces have two human labels to show how far "
            "reviewers differ from each other."
        )
    return f"For single traces: {'perhaps' if alpha.within else 'no'}, {beside_humans(alpha)}."


def _rates(result: JudgeCalibration) -> Section:
    calibration = result.calibration
    estimates = calibration.estimates
    # The refusals below give the reason for each estimator.
    refused = {notice.estimator for notice in calibration.refusals}
    remarks = list(notes((n, e.net) for n, e in estimates.items() if e.net.ok or n not in refused))
    if calibration.headline is not None:
        remarks.append(f"* headline; {estimates[calibration.headline].net.method}")
    if result.if_skipped is not None and result.many_skipped:
        remarks.append(moved_by_skips(result.skipped, result.if_skipped))
    if calibration.two_phase is not None and calibration.two_phase.correction is not None:
        remarks.append(corrected_by(calibration.two_phase, calibration.two_phase.correction))
    rates = table_of(
        "",
        ("estimator", "net", "before cost penalty"),
        [
            (
                name + " *" * (name == calibration.headline),
                percent_cell(e.net),
                percent_cell(e.gross),
            )
            for name, e in estimates.items()
        ],
        notes=remarks,
    )
    more = (width_table(calibration), reviewer_effects(result.reviewers))
    return Section(
        title="Agent success rate, net of cost and before the cost penalty",
        blocks=(rates, *(table for table in more if table is not None)),
    )


def moved_by_skips(skipped: int, found: IfSkipped) -> str:
    """Return how far the skipped traces could move the rate."""
    limits = (
        ""
        if found.lower_limit is None or found.upper_limit is None
        else f", and its limits to [{100 * found.lower_limit:.1f}, {100 * found.upper_limit:.1f}]"
    )
    return (
        f"{skipped} skipped traces could move the rate to {percent(found.lowest)} or "
        f"{percent(found.highest)}{limits}"
    )


def corrected_by(found: TwoPhase, correction: float) -> str:
    """Return what the traces with two labels change."""
    return (
        f"two_phase: {found.overlap:,} of {found.estimate.n:,} labelled traces have two labels, "
        f"adjudicated where they differ; they move the rate by {100 * correction:+z.1f} points"
    )


def saved_labelling(gain: Estimate) -> str:
    """Return how much labelling the judge saves, from what a label with it is worth without.

    Examples
    --------
    >>> saved_labelling(Estimate(value=2.435, interval=(1.866, 3.177), n=300, method="jackknife"))
    'The judge saves 58.9 % [46.4, 68.5] of labelling'
    """
    if gain.value is None:
        return (
            f"How much labelling the judge saves is not known: {gain.status.replace('_', ' ', 1)}"
        )
    if gain.value <= 1:
        return "The judge saves no labelling: human labels alone are as good"
    status = "" if gain.status == OK else f" ({gain.status})"
    return f"The judge saves {percent_figure(saved_share(gain))} of labelling{status}"


def saved_share(gain: Estimate) -> Estimate:
    """Return the share of labels that the judge saves, with limits of at least 0."""
    if gain.value is None:
        return gain
    limits = gain.interval
    if limits is not None:
        limits = max(0.0, 1 - 1 / limits[0]), max(0.0, 1 - 1 / limits[1])
    return replace(gain, value=1 - 1 / gain.value, se=None, interval=limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class WidthStep:
    """One source of the width of an interval: the half-width before and after it is added."""

    source: str
    start: float
    end: float
    share: float


def width_steps(found: Calibration) -> tuple[WidthStep, ...]:
    """Return how the half-width of the headline builds up, source by source; empty without one.

    Variances add up and half-widths do not: each step is the square root of the sum so far, in the
    order of `Calibration.variance_sources`.
    """
    sources, head = found.variance_sources, found.headline_estimate
    if sources is None or head is None or not head.net.half_width or not head.net.se:
        return ()
    reach, so_far, steps = head.net.half_width / head.net.se, 0.0, []
    for name, part in sources.items():
        start, so_far = reach * so_far**0.5, max(0.0, so_far + part)
        steps.append(
            WidthStep(
                source=name, start=start, end=reach * so_far**0.5, share=part / head.net.se**2
            )
        )
    return tuple(steps)


def width_table(found: Calibration) -> Table | None:
    """Return where the width of the headline's interval comes from; None without an interval."""
    steps = width_steps(found)
    if not steps:
        return None
    overlap = 0 if found.two_phase is None else found.two_phase.overlap
    known_from = {
        "human_sampling": f"{found.n_labels:,} labels alone",
        "judge": f"{found.n_labels:,} labelled verdicts",
        "production": f"{found.n_production:,} runs",
        "reviewers": f"{overlap:,} traces with two labels",
    }
    remarks = [
        f"All together \u00b1 {100 * steps[-1].end:.1f} points. The shares of the variance "
        "add up to 100 %; a share below zero makes the interval narrower."
    ]
    if all(step.source != "reviewers" for step in steps):
        remarks.append("The errors of reviewers are not in the interval.")
    top = max(step.end for step in steps)
    return table_of(
        "Where the width of the interval comes from",
        ("source", "known from", "adds", "half-width so far", "share of the variance",
         "what makes it smaller"),
        [
            (
                WIDTH[step.source][0],
                known_from[step.source],
                f"{100 * (step.end - step.start):+z.1f} points",
                f"\u00b1 {100 * step.end:.1f} points",
                percent(step.share),
                WIDTH[step.source][1],
            )
            for step in steps
        ],
        [
            Mark(value=step.end, low=min(step.start, step.end), high=max(step.start, step.end))
            for step in steps
        ],
        scale=(0.0, top),
        scale_labels=("0", f"\u00b1 {100 * top:.1f} points"),
        notes=remarks,
    )  # fmt: skip


def reviewer_effects(found: Mapping[str, Estimate]) -> Table | None:
    """Return how much higher each reviewer scores than the settled class; None without overlap."""
    if not found:
        return None
    shown = {Name(who): one for who, one in found.items()}
    return table_of(
        "Reviewers compared with the final label of shared traces",
        ("reviewer", "points of the rate", "shared traces"),
        [(who, points_of(one), f"{one.n:,}") for who, one in shown.items()],
        notes=(
            *notes(shown.items()),
            "Above zero: more lenient than the class that was agreed or adjudicated. With four "
            "reviewers or more, each is pulled toward the mean of all, most with few traces.",
        ),
    )


def points_of(result: Estimate) -> str:
    """Return a difference in points of the rate with its limits."""
    if result.value is None:
        return "not estimable +"
    limits = result.interval and ", ".join(f"{100 * x:+z.1f}" for x in result.interval)
    text = f"{100 * result.value:+z.1f}{f' [{limits}]' if limits else ''}"
    return text if result.status == OK else f"{text} +"


def against_noise(found: NoiseCeiling, accuracy: Estimate) -> str:
    """Return the best agreement with the labels that a judge could show, beside its own."""
    single, best = found.reviewer, found.judge
    if single.value is None or best.value is None:
        return f"How well a judge could agree with the labels: {number(best)}."
    own = "" if accuracy.value is None else f"; this judge: {100 * accuracy.value:.1f} %"
    return (
        f"One reviewer alone gives the final label on {100 * single.value:.1f} % of the "
        f"{single.n:,} traces with two labels. A judge without any error would agree with "
        f"{100 * best.value:.1f} % of all labels{own}."
    )


def _outcomes(result: JudgeCalibration) -> Iterator[Section]:
    shares = result.calibration.class_shares.get(result.calibration.headline or "")
    if shares is None:
        return
    classes = map(Name, _titled(result.classes, result.titles))
    named = list(zip(classes, shares, strict=True))
    credits = (result.credit[name] for name in result.classes)
    cells = [
        (name, percent_cell(share), f"{credit:g}")
        for (name, share), credit in zip(named, credits, strict=True)
    ]
    found = table_of(
        "", ("class", "share", "credit"), cells,
        notes=[*notes(named), *own_credit(result.own_credit)],
    )  # fmt: skip
    yield Section(title="Outcome shares (corrected)", blocks=(found,))


def _ceiling(found: Mapping[str, BesidePanel], judged: JudgeCalibration) -> Section:
    """Return the human ceiling, the agreement of the judge with reviewers, and the difference."""
    title = "How far do the reviewers agree themselves?"
    best = judged.noise_ceiling
    accuracy = judged.calibration.judge.accuracy
    noise = () if best is None else (Words(text=against_noise(best, accuracy)),)
    if not found:
        return Section(title=title, blocks=(Words(text="not known: no trace was labelled by two"),))
    share = found["percent_agreement"].panel
    if not share.ok:
        return Section(title=title, blocks=(Words(text=f"not known: {_why(share)}"), *noise))
    sides = (
        (f"{COEFFICIENTS[name]} ({of})", e)
        for name, b in found.items()
        for of, e in (("humans", b.panel), ("judge", b.outsider), ("difference", b.difference))
    )
    beside = table_of(
        "",
        ("agreement", "reviewer with reviewer", "judge with reviewer", "difference"),
        [
            (
                COEFFICIENTS[name],
                *(coefficient_cell(name, e) for e in (b.panel, b.outsider, b.difference)),
            )
            for name, b in found.items()
        ],
        notes=notes(sides),
    )
    traces = f"{share.n:,} traces with two or more labels; the judge is compared on the same traces"
    verdict = beside_humans(found["krippendorff_alpha"])
    return Section(title=title, blocks=(Words(text=traces), beside, Words(text=verdict), *noise))


def beside_humans(alpha: BesidePanel) -> str:
    """Return whether the judge is within human disagreement."""
    limits = alpha.difference.interval
    if alpha.within is None or limits is None:
        return (
            "too few labels to compare the judge with one more reviewer: have more labelled twice"
        )
    if not alpha.within:
        return (
            "the judge agrees less with the reviewers than they do with each other: its alpha is "
            f"lower by {-limits[1]:.2f} to {-limits[0]:.2f}"
        )
    lower = max(0.0, -limits[0])
    may = f"; its alpha may still be lower by {lower:.2f}" if lower >= 0.005 else ""
    return f"the judge is not shown to be worse than one more reviewer{may}"


def _crossed(result: JudgeCalibration) -> Section:
    """Return labelled traces by class and verdict; if reviewers differ, a trace is divided."""
    counts = result.calibration.confusion.table.tolist()
    classes = _titled(result.classes, result.titles)
    blocks: list[Block] = [
        table_of(
            "",
            ("", *map(Name, _titled(result.verdict_names, result.titles))),
            [
                (Name(name), *(f"{count:g}" for count in row))
                for name, row in zip(classes, counts, strict=True)
            ],
        )
    ]
    if result.disagreements:
        differ = f"{len(result.disagreements):,} traces where a reviewer and the judge differ"
        blocks.append(Words(text=differ))
    return Section(
        title="Class by the reviewers (rows) x verdict (columns), labelled traces",
        blocks=tuple(blocks),
    )


def _quality(result: JudgeCalibration) -> Section:
    """Return accuracy, kappa and alpha, and recall and precision of each class."""
    quality = result.calibration.judge
    classes = _titled(result.classes, result.titles)
    pairs = list(zip(map(Name, classes), quality.per_class, strict=True))
    marked = [(f"recall of {name}", q.recall) for name, q in pairs]
    marked += [(f"precision of {name}", q.precision) for name, q in pairs]
    remarks = [
        *notes(marked),
        "recall: of the class, the share with its verdict; precision: of the verdict, its class",
    ]
    if any(w.code == "chosen_by_verdict" for w in result.calibration.warnings):
        remarks.append(
            "if these traces were chosen by their verdict, recall is 1 or 0 by construction"
        )
    by_class = table_of(
        "",
        ("class", "recall", "precision", "labels", "verdicts"),
        [
            (
                name,
                percent_cell(q.recall),
                percent_cell(q.precision),
                f"{q.n_human:.4g}",
                f"{q.n_judge:.4g}",
            )
            for name, q in pairs
        ],
        notes=remarks,
    )
    overall = (
        ("accuracy", percent_number(quality.accuracy)),
        ("kappa", number(quality.kappa)),
        ("alpha", number(result.alpha)),
    )
    return Section(title="How far off is it?", blocks=(Facts(items=overall), by_class))


def _shares(found: Mapping[str, Estimate]) -> Facts:
    return Facts(items=tuple((name, percent_number(share)) for name, share in found.items()))


def _tested(found: Mapping[str, MeanAgainstZero]) -> Facts:
    return Facts(
        items=tuple(
            (name, f"{number(one.estimate)}{p_text(one.p_value)}") for name, one in found.items()
        )
    )


def over_time(found: LabelDrift) -> str:
    """Say whether labels of earlier runs still hold, and how many a month keep the half-width."""
    if found.middle is None:
        return f"Whether the labels still hold is not known: {found.status.partition(': ')[2]}."
    parts = f"{found.first} to {found.last}, split at {found.middle}"
    if not found.p_holm:
        words = f"No verdict can be tested for a change over time ({parts})."
    else:
        name, p = min(found.p_holm.items(), key=lambda item: item[1])
        smallest = f"smallest adjusted p {p_value_text(p)}, verdict {name}; {parts}"
        if found.stale_before is None:
            words = f"No change of the classes behind a verdict is shown ({smallest})."
        else:
            words = (
                f"The classes behind a verdict have changed ({smallest}): labels of runs before "
                f"{found.stale_before} are stale."
            )
    if found.unlabelled_since is not None:
        words += f" {found.n_since:,} runs since {found.unlabelled_since} have no label."
    return f"{words} About {found.a_month:,} labels a month keep the half-width."


def _errors(result: JudgeDiagnostics, titles: Mapping[str, str]) -> Iterator[Section]:
    """Yield errors by question, group and class, and what they go with."""
    if result.grades is not None:
        yield _grades(result.grades, result.grade_names)
    if result.nodes:
        yield _questions(result.nodes, result.errors)
    if result.disagreements:
        yield _disagreements(result.disagreements, titles)
    yield _lenient(result)
    if result.slopes:
        yield _slopes(result.slopes, result.own_family)
    if result.retest.changed.ok:
        yield _asked_again(result.retest, _titled(result.verdict_names, titles))
    if result.over_time is not None:
        yield Section(
            title="Do the labels still hold?", blocks=(Words(text=over_time(result.over_time)),)
        )
    missing = list(result.missing)
    if not result.retest.changed.ok and not missing:
        missing.append(f"whether it gives the same verdict twice ({_why(result.retest.changed)})")
    if result.slopes and not result.own_family.estimate.ok:
        missing.append(f"whether it favours its own ({_why(result.own_family.estimate)})")
    if missing or result.notes:
        yield Section(title="Not known here", blocks=(Listing(items=(*missing, *result.notes)),))


def _why(found: Estimate) -> str:
    return found.status.removeprefix("not_estimable: ")


def _grades(found: OrdinalAgreement, names: Sequence[str]) -> Section:
    """Return the ordinal agreement of the judge's grades with the human ones."""
    chance = found.within_one_by_chance
    by_chance = "" if chance is None else f"; {chance:.3f} by chance alone"
    items = [
        ("same grade", percent_number(found.exact)),
        ("within one grade", f"{percent_number(found.within_one)}{by_chance}"),
        ("quadratic kappa", number(found.kappa)),
    ]
    if found.bias is not None:
        items.append(("judge minus reviewers, mean", f"{found.bias:+z.3f} grades"))
    blocks: list[Block] = [Facts(items=tuple(items))]
    if tuple(names) == tuple(STEPS):
        counts = "success counts as 5, another acceptable class as 4, any other as 3 or less"
        blocks.insert(0, Words(text=counts))
    title = f"How close do its grades come? {', '.join(names):.200}"
    return Section(title=title, blocks=tuple(blocks))


def _questions(nodes: Mapping[str, NodeQuality], errors: Mapping[str | None, float]) -> Section:
    """Return the judge's answers at each decision-tree node, and where its errors begin."""
    total = sum(errors.values())
    cells = []
    for name, q in nodes.items():
        (yes, missed), (added, no) = q.table
        counts = (f"{count:.4g}" for count in (yes, missed, added, no))
        share = percent(errors.get(name, 0.0) / total if total else None)
        cells.append(
            (Name(name), *counts, percent_cell(q.yes_recall), percent_cell(q.no_recall), share)
        )
    head = (
        "question", "both", "only reviewers", "only judge", "none", "yes found", "no found",
        "errors start here",
    )  # fmt: skip
    none = errors.get(None)
    remarks = [] if none is None else [f"{none:.4g} of {total:.4g} errors: {NO_VERDICT_GIVEN}"]
    return Section(
        title="At which question do its errors start? Who says yes, where both answer it",
        blocks=(table_of("", head, cells, notes=remarks),),
    )


def _disagreements(found: Sequence[ReviewedTrace], titles: Mapping[str, str]) -> Section:
    """Return the disagreements that move the rate most, with verdict and labels."""
    lines = [line for item in found[:DISAGREEMENTS_SHOWN] for line in _disagreement(item, titles)]
    if len(found) > DISAGREEMENTS_SHOWN:
        lines.append(f"  and {len(found) - DISAGREEMENTS_SHOWN:,} more, all of them in --json")
    most = f", the {DISAGREEMENTS_SHOWN} that move the rate most"
    more = most if len(found) > DISAGREEMENTS_SHOWN else ""
    return Section(
        title=f"Where do they differ? {len(found):,} traces{more}",
        blocks=(Lines(items=tuple(lines)),),
    )


def _disagreement(item: ReviewedTrace, titles: Mapping[str, str]) -> Iterator[str]:
    moved = f", moves the rate by {item.moves:.4f}" if item.moves else ""
    where = "" if item.question is None else f", first difference at {item.question}"
    whose = ", ".join(
        one_line(name, most=60) for name in (item.workflow, item.agent) if name != UNKNOWN
    )
    verdict = item.verdict or ""
    yield f"  {one_line(item.trace_id, most=60)}{f' ({whose})' if whose else ''}{where}{moved}"
    yield f"    judge: {one_line(titles.get(verdict, verdict), most=60)}{_because(item.reason)}"
    yield from _quotes(item.evidence)
    for label in item.labels:
        given = titles.get(label.outcome or "", label.outcome or "")
        who = f"{one_line(label.reviewer, most=60)}: {one_line(given, most=60)}"
        yield f"    {who}{_because(label.rationale)}"
        yield from _quotes(label.evidence)
    if item.adjudicated:
        final = [one_line(name, most=60) for name in _titled(item.human, titles)]
        yield f"    final label: {', '.join(final)}"


def _because(text: str | None) -> str:
    return "" if text is None else f": {one_line(text, most=LONGEST)}"


def _quotes(evidence: Iterable[Evidence]) -> Iterator[str]:
    for item in evidence:
        yield f'      {item.step_id}: "{one_line(item.quote, most=LONGEST)}"'


def _lenient(result: JudgeDiagnostics) -> Section:
    """Return the leniency of the judge, overall and by group; a single group is the whole."""
    blocks: list[Block] = [_tested({"all labelled traces": result.leniency})]
    for by, rows in result.leniency_by.items():
        if len(rows) > 1:
            blocks.append(_lenient_by(by, rows))
    return Section(
        title="Is it lenient? Credit of the verdict minus credit of the label (above 0: lenient)",
        blocks=tuple(blocks),
    )


def _lenient_by(by: str, rows: Sequence[Leniency]) -> Block:
    few = rows[:GROUPS_SHOWN]
    remarks = list(notes((Name(row.group), row.gap.estimate) for row in few))
    if len(rows) > len(few):
        remarks.append(f"and {len(rows) - len(few):,} more, all of them in --json")
    return table_of(
        "",
        (f"by {by}", "traces", "judge", "humans", "difference", "p adjusted"),
        [
            (
                Name(row.group), f"{row.gap.estimate.n:,}", f"{row.verdict_credit:.3f}",
                f"{row.human_credit:.3f}", figure(row.gap.estimate),
                "-" if row.p_holm is None else p_value_text(row.p_holm),
            )
            for row in few
        ],
        notes=remarks,
    )  # fmt: skip


def _slopes(found: Mapping[str, MeanAgainstZero], own_family: MeanAgainstZero) -> Section:
    """Return the dependence of leniency on covariates, with the human class held fixed."""
    tested = {COVARIATES[name]: one for name, one in found.items()}
    if own_family.estimate.ok:
        tested["its own model family, minus other agents"] = own_family
    return Section(
        title="Does leniency follow the size of a trace? Credit for each doubling, same class",
        blocks=(_tested(tested),),
    )


def _asked_again(again: Retest, verdict_names: Sequence[str]) -> Section:
    """Return how often the judge changes its verdict on repetition."""
    blocks: list[Block] = [
        _shares(
            {
                "traces whose verdict changes": again.changed,
                "chance that two verdicts on one differ": again.differ,
            }
        )
    ]
    cells = [
        (Name(name), percent_cell(share))
        for name, share in zip(verdict_names, again.per_verdict, strict=False)
        if share.ok
    ]
    if len(cells) > 1:
        blocks.append(table_of("", ("first verdict", "changes"), cells))
    return Section(
        title=f"Does it give the same verdict twice? {again.changed.n:,} traces, "
        f"asked {again.most_asked} times",
        blocks=tuple(blocks),
    )


def p_text(p_value: float | None) -> str:
    """Return a p-value as a suffix of an estimate, empty without one."""
    return "" if p_value is None else f", p {p_value_text(p_value)}"


def p_value_text(p_value: float) -> str:
    """Return a p-value with two digits."""
    return f"{p_value:.2g}" if p_value >= 0.0001 else "< 0.0001"


def _remedies(result: JudgeCalibration) -> Section:
    """Return refusals and warnings, and their remedies."""
    calibration = result.calibration
    lines = [
        *notices("refused", calibration.refusals),
        *notices("warning", calibration.warnings),
    ]
    if result.human is not None and result.human.n_open:
        n_open = counted(result.human.n_open, "open disagreement")
        lines.append(f"adjudicate the {n_open}: until then provisional")
    aside = all(notice.code == "ppi_few_labels" for notice in calibration.warnings)
    if calibration.headline is not None and aside:
        lines.append("more labels: four times as many halve the interval")
    return Section(title="What would make it better?", blocks=(Listing(items=tuple(lines)),))


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
    for (whom, _), reasons in alike.items():
        why = "; ".join(one for one, _ in reasons)
        # The remedy for the first of many is the remedy for all.
        same = len({one for _, one in reasons}) == 1
        yield f"{kind}: {whom}: {why}; {reasons[0][1]}{'' if same else ', and so for the others'}"


def _drift(result: JudgeDrift, titles: Mapping[str, str]) -> Section:
    """Return the differences between two judges on the same traces."""
    before, after = one_line(result.before, most=60), one_line(result.after, most=60)
    overall = (
        ("same verdict", percent_number(result.same)),
        ("alpha", number(result.alpha)),
        (f"mean credit, {after} minus {before}", number(result.credit_change.estimate)),
    )
    verdicts = table_of(
        "",
        ("verdict", before, after, f"only {before}", f"only {after}", "p", "p adjusted"),
        [
            (
                Name(titles.get(row.name, row.name)), percent(row.before), percent(row.after),
                f"{row.only_before:,}", f"{row.only_after:,}",
                *("-" if p is None else p_value_text(p) for p in (row.test.p_value, row.p_holm)),
            )
            for row in result.classes
        ],
        notes=["p: McNemar's test that both give the verdict as often"],
    )  # fmt: skip
    blocks: list[Block] = [Facts(items=overall), verdicts]
    humans = result.against_humans
    if humans is None:
        blocks.append(
            Words(
                text="no labels: whether the error changed is not known; "
                "label traces that both judged"
            )
        )
    else:
        blocks.append(Words(text=f"compared with the reviewers, {humans.n:,} labelled traces:"))
        blocks.append(
            _shares(
                {
                    f"accuracy of {before}": humans.accuracy_before.estimate,
                    f"accuracy of {after}": humans.accuracy_after.estimate,
                }
            )
        )
        blocks.append(
            _tested(
                {
                    "change of accuracy": humans.accuracy_change,
                    "change of leniency": humans.leniency_change,
                    "change of distance of the credit": humans.error_change,
                }
            )
        )
    return Section(
        title=f"Has the judge moved? {before} and {after} on the same {result.n:,} traces",
        blocks=tuple(blocks),
    )


def _groups(result: GroupRates) -> Section:
    """Return the corrected rate of each group and the differences; `~` marks a borrowed error."""
    rows = result.groups[:DISAGREEMENTS_SHOWN]
    remarks = list(notes((Name(row.name), row.net.estimate) for row in rows))
    if len(result.groups) > len(rows):
        remarks.append(f"and {len(result.groups) - len(rows):,} more, all of them in --json")
    if any(row.net.kind == "pooled" for row in rows):
        remarks.append(f"~ {BORROWED}")
    apart = [row.name for row in rows if row.net.own]
    if apart:
        named = ", ".join(apart[:10])
        verb = "differs" if len(apart) == 1 else "differ"
        remarks.append(Name(f"own labels, not pooled: {verb} from the others: {named:.300}"))
    if any(row.net.kind == "synthetic" for row in rows):
        remarks.append(
            f"~ synthetic, with the judge's error rates of all groups: {SYNTHETIC[result.design]}"
        )
    remarks.append(errs_alike(result.rates))
    rates = table_of(
        "",
        (result.by, "labels", "judged", "net of cost", "before cost penalty", "judge lenient by"),
        [
            (
                Name(row.name + " ~" * (row.net.kind != "direct" and not row.net.own)),
                f"{row.net.n_labels:,}",
                f"{row.net.n_production:,}", percent_cell(row.net.estimate),
                percent_cell(row.gross.estimate),
                figure(row.leniency.estimate),
            )
            for row in rows
        ],
        notes=remarks,
    )  # fmt: skip
    return Section(
        title=f"Agent success rate by {result.by}",
        blocks=(rates, *_pairs(result.pairs), *_group_ranks(result)),
    )


def _group_ranks(result: GroupRates) -> Iterator[Block]:
    """Say which ranks the true rates of the compared groups may have."""
    ranks = result.ranks
    if not ranks or all(pair.net.p_holm is None for pair in result.pairs):
        return
    if set(ranks.values()) == {(1, len(ranks))}:
        yield Words(text="No order of the true rates is shown by these differences.")
        return
    ordered = sorted(ranks.items(), key=lambda item: item[1])
    listed = ", ".join(f"{one_line(name, most=60)} {rank_words(rank)}" for name, rank in ordered)
    yield Words(text=f"Ranks that the true rates may have, all at once: {listed}.")


def adjusted_p(compared: GroupComparison) -> str:
    """Return the adjusted p-value of a difference."""
    return "-" if compared.p_holm is None else p_value_text(compared.p_holm)


def errs_alike(rates: RatesTest) -> str:
    """Return whether the judge errs alike in all groups."""
    if rates.statistic is None:
        return f"{SAME_RATES} {rates.status.replace('_', ' ', 1)}"
    return (
        f"{SAME_RATES} chi-square {rates.statistic:.1f} on {rates.df} df, "
        f"p {p_value_text(rates.p_value or 0.0)} ({rates.n_groups} groups, {rates.n:,} labels; a "
        "large p does not prove it)"
    )


def _pairs(pairs: Sequence[GroupPair]) -> Iterator[Block]:
    known = [pair for pair in pairs if pair.net.difference.ok]
    if pairs and not known:
        yield Words(text="no two of them can be compared: a side has no rate")
    if not known:
        return
    remarks = list(notes((_both(pair), pair.net.difference) for pair in known))
    if len(known) < len(pairs):
        remarks.append(f"{len(pairs) - len(known)} more pairs have a side without a rate")
    synthetic = any(pair.net.kind == "synthetic" for pair in known)
    if any(pair.net.kind == "pooled" for pair in known):
        remarks.append("first and second here are rates by their own labels alone")
    if synthetic:
        remarks += [
            "~ synthetic, both sides with the error rates of all groups: gates nothing",
            "wrong sign: its probability if the judge has the same error rates in both",
            "flips at: the order changes if the judge wrongly passes this much more of one "
            "group's traces than of the other's",
        ]
    yield table_of(
        "Differences, net of cost (each interval is for one pair; p adjusted for all, Holm)",
        (
            "", "first", "second", "difference", "adjusted p", *(FLIPS if synthetic else ()),
            "judge more lenient by",
        ),
        [
            (
                _both(pair), *(_of_side(side) for side in pair.net.sides),
                percent_cell(pair.net.difference), adjusted_p(pair.net),
                *((percent(pair.net.flip_chance), percent(pair.net.flips_at)) if synthetic else ()),
                figure(pair.leniency_difference),
            )
            for pair in known
        ],
        notes=remarks,
    )  # fmt: skip


def _of_side(found: Estimate) -> str:
    return "-" if found.value is None else f"{found.value:.3f}"


def _both(pair: GroupPair) -> Name:
    mark = " ~" if pair.net.kind == "synthetic" else ""
    sides = (one_line(side, most=60) for side in (pair.net.first, pair.net.second))
    return Name(" minus ".join(sides) + mark)
