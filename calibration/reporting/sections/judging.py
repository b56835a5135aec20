"""Judges that we run as documents: cost and progress of a run, scores, pairs, certificates."""

import time
from collections.abc import Iterator, Mapping, Sequence

from calibration.analyses.judging.exams import CertifiedJudge, Compared, Scores
from calibration.analyses.judging.probing import ProbeReport
from calibration.analyses.judging.runs import DryRun, RunState
from calibration.analyses.judging.suggesting import Suggestions
from calibration.analyses.judging.versions import EXAM_A, EXAM_B, PRACTICE, JudgeEntry
from calibration.judging import probes
from calibration.judging.baseline import NAME as BASELINE
from calibration.judging.budget import CostEstimate
from calibration.judging.journal import RunProgress
from calibration.judging.runner import CAPPED, FAILED, FINISHED, INCOMPLETE, STOPPED
from calibration.judging.selection import (
    CANNOT_TELL,
    CERTIFIED,
    EXPLORATORY,
    FIRST,
    NOT_SHOWN,
    SECOND,
    PairedComparison,
)
from calibration.judging.suggestions import SuggestedRule
from calibration.reporting.document import (
    Document,
    Facts,
    Listing,
    Name,
    Section,
    Words,
    figure,
    number,
    percent_cell,
    percent_figure,
    percent_number,
    table_of,
    usd,
)
from calibration.reporting.sections.judge import points_of
from calibration.statistics.contingency import QualityAgainstKey
from calibration.statistics.estimate import OK, Estimate
from calibration.text import counted, hours

MOST_FLIPS = 20
FORMS = {PRACTICE: "the practice form", EXAM_A: "exam A", EXAM_B: "exam B"}
STATES = {
    "running": "is running", "paused": "is paused", "stopping": "is ending",
    "dead": "has a worker that shows no sign of life", FINISHED: "has finished",
    INCOMPLETE: "is incomplete", STOPPED: "was stopped", CAPPED: "was stopped by its cap",
    FAILED: "has failed",
}  # fmt: skip
ADVICE = {
    "paused": "No request leaves until it is resumed.",
    "dead": "Its process was ended, or its machine. Resume it: no answer is paid for twice.",
    INCOMPLETE: "Some requests had no answer. Resume it to ask them again.",
    STOPPED: "Resume it to go on where it was.",
    FAILED: "Correct what it names, then resume it.",
    CAPPED: "Start another run with a higher cap: it uses the answers of this one again.",
}  # fmt: skip
CAUSES = {
    "split": "the samples name several classes equally often",
    "form": "the answer has not the form asked for",
    "length": "the answer was cut at the token limit",
    "content_filter": "the endpoint would not answer",
    "refusal": "the model would not answer",
    "context_overflow": "the trace does not fit the model",
    "cut_by_server": "the server cut the trace in silence",
    "outage": "the run was closed while this trace was pending",
}  # fmt: skip
FLAGS = {
    "inconsistent": "the class contradicts the sub-goals",
    "subgoals_incomplete": "the sub-goals are not named once each",
    "unsupported_subgoal": "a sub-goal counts as met without a quote from a tool or an input",
    "unsupported_answer": "an answer lacks the quote from the response that it needs",
    "beyond_path": "questions were answered that are not reached",
    "other_model": "another model answered than the one that the judge was made with",
}  # fmt: skip
CERTIFY = "judge certify {judge} --minimum SHARE"
RESUME = "judge resume {run}"
NEXT = {
    INCOMPLETE: RESUME, STOPPED: RESUME, "dead": RESUME, FAILED: RESUME, "paused": RESUME,
    CAPPED: "judge run {judge} --cap-usd AMOUNT", FINISHED: "calibrate --judge {judge}",
}  # fmt: skip


def cost_words(found: CostEstimate) -> str:
    """Return what a run would cost, in one sentence.

    Examples
    --------
    >>> cost_words(CostEstimate(requests=10, answered=0, input=9, cached=0, output=1, usd=0.5,
    ...                         usd_low=0.25, usd_high=1.0))
    '10 requests, about $0.50 (from $0.25 to $1.00).'
    """
    words = counted(found.requests, "request")
    if found.usd is None:
        return f"{words}; without prices there is no estimate in money."
    return f"{words}, about {usd(found.usd)} (from {usd(found.usd_low)} to {usd(found.usd_high)})."


def cost_facts(found: CostEstimate) -> tuple[tuple[str, str], ...]:
    """Return the parts of an estimate."""
    return (
        ("requests", f"{found.requests:,}"),
        ("answered already", f"{found.answered:,}"),
        ("input tokens", f"{found.input:,}, of these {found.cached:,} cached"),
        ("output tokens", f"{found.output:,}"),
        ("time", "no limits given" if found.minutes is None else hours(found.minutes / 60)),
    )


def cap_wanted(found: CostEstimate) -> float | None:
    """Return a cap in USD that a run is not expected to meet; None without prices.

    Of few requests the first one reserves more than its share.

    Examples
    --------
    >>> cap_wanted(CostEstimate(requests=10, answered=0, input=9, cached=0, output=1, usd_high=1.0))
    1.21
    """
    if found.usd_high is None:
        return None
    return max(0.01, round(1.1 * found.usd_high * (1 + 1 / max(1, found.requests)), 2))


def tokens_wanted(found: CostEstimate) -> int:
    """Return a cap in tokens that a run is not expected to meet."""
    return max(10_000, 2 * found.input + 4 * found.output)


def estimated(found: tuple[JudgeEntry, DryRun]) -> Document:
    """Return the dry run of a judge."""
    entry, run = found
    cost, n = run.cost, len(run.trace_ids) + len(run.anchors)
    cap = cap_wanted(cost)
    return Document(
        title=f"Dry run of judge {entry.name}",
        about=(f"{counted(n, 'trace')}, {counted(entry.version.samples, 'sample')} each. "
               "Nothing was sent.", cost_words(cost)),
        sections=(Section(title="", blocks=(Facts(items=cost_facts(cost)),)),),
        then=f"judge run {entry.name} --cap-usd {'AMOUNT' if cap is None else f'{cap:.2f}'}",
    )  # fmt: skip


def state_words(state: RunState) -> str:
    """Return the state of a run in a sentence."""
    progress = state.progress
    if progress is None:
        return f"Run {state.name} of judge {state.judge} has not started."
    words = f"Run {state.name} of judge {state.judge} {STATES.get(progress.state, progress.state)}"
    return words + (f": {progress.reason}." if progress.reason else ".")


def advice(state: RunState) -> str:
    """Return what to do about a run as it is, in a sentence; empty if there is nothing to do."""
    if state.progress is None:
        return ""
    if state.progress.state != FINISHED:
        return ADVICE.get(state.progress.state, "")
    return {
        EXAM_A: "Compare shows how well it agrees with the labels.",
        EXAM_B: "Certificate says whether it reaches what you demand.",
    }.get(state.chosen.form or "", "Its verdicts can be used for results.")


def anchor_words(state: RunState) -> str:
    """Return how many traces of the anchor set got another verdict; empty if none was asked."""
    if state.anchors is None:
        return ""
    return f"Asked again, {percent_number(state.anchors)} of the anchor set changed."


def cause_words(cause: str) -> str:
    """Return why there is no verdict; a cause of a later release as it is."""
    return CAUSES.get(cause, cause.replace("_", " "))


def flag_words(flag: str) -> str:
    """Return what a flag of a verdict says; one of a later release as it is."""
    return FLAGS.get(flag, flag.replace("_", " "))


def brief(states: Sequence[RunState]) -> str:
    """Return what the newest run does, or has come to, in a few words; empty without any."""
    if not states:
        return ""
    state = next((each for each in reversed(states) if each.is_working), states[-1])
    progress = state.progress
    if progress is None:
        return f"{state.judge} has not started"
    words = f"{state.judge} {STATES.get(progress.state, progress.state)}"
    of = "" if progress.total is None else f" of {progress.total:,}"
    return words + ("" if progress.state == "finished" else f", {progress.verdicts:,}{of} samples")


def state_facts(progress: RunProgress) -> tuple[tuple[str, str], ...]:
    """Return how far a run is."""
    spent = f"{progress.spent_tokens:,} tokens"
    possible = f"{progress.possible_tokens:,} tokens"
    if progress.spent_usd is not None:
        spent, possible = f"{usd(progress.spent_usd)}, {spent}", f"{usd(progress.possible_usd)}"
    of = "" if progress.total is None else f" of {progress.total:,}"
    facts = [
        ("samples judged", f"{progress.verdicts:,}{of}"),
        ("pending", "-" if progress.pending is None else f"{progress.pending:,}"),
        ("in flight", f"{progress.in_flight:,}, at most {progress.concurrency:,}"),
        ("answers", f"{progress.asked:,} new, {progress.reused:,} from the journal"),
        ("in doubt", f"{progress.in_doubt:,}"),
        ("spent", spent),
    ]
    if progress.possible_tokens:
        facts.append(("possibly more", possible))
    if progress.last_answer_at is not None:
        facts.append(
            ("last answer", f"{max(0.0, time.time() - progress.last_answer_at):,.0f} s ago")
        )
    if progress.eta_s is not None:
        facts.append(("time left", hours(progress.eta_s / 3600)))
    return tuple(facts)


def status(states: Sequence[RunState]) -> Document:
    """Return the newest run of these in full, and the others in a table."""
    last = states[-1]
    blocks: list[Facts | Listing] = []
    if last.progress is not None:
        blocks.append(Facts(items=state_facts(last.progress)))
    sections = [Section(title="", blocks=tuple(blocks))] if blocks else []
    sections += [Section(title=title, blocks=(Listing(items=tuple(items)),))
                 for title, items in causes(last.progress) if items]  # fmt: skip
    if words := anchor_words(last):
        sections.append(Section(title="The model", blocks=(Words(text=words),)))
    if len(states) > 1:
        cells = [_state_row(state) for state in reversed(states[:-1])]
        head = ("run", "judge", "traces", "state", "spent")
        sections.append(Section(title="Earlier runs", blocks=(table_of("", head, cells),)))
    then = "" if last.progress is None else NEXT.get(last.progress.state, "")
    if last.chosen.form is not None and then == NEXT[FINISHED]:
        then = "judge compare" if last.chosen.form != EXAM_B else CERTIFY
    return Document(
        title="Runs of judges",
        about=(state_words(last),),
        sections=tuple(sections),
        then=then.format(run=last.name, judge=last.judge),
    )


def causes(progress: RunProgress | None) -> Iterator[tuple[str, list[str]]]:
    """Yield why samples have no verdict and attempts no answer, with how many."""
    if progress is not None:
        yield "Samples without a verdict", _counts(progress.no_verdict)
        yield "Attempts without an answer", _counts(progress.causes)


def _counts(causes: dict[str, int]) -> list[str]:
    ordered = sorted(causes.items(), key=lambda item: (-item[1], item[0]))
    return [Name(f"{cause}: {n:,}") for cause, n in ordered]


def _state_row(state: RunState) -> tuple[str, ...]:
    progress = state.progress
    return (
        Name(state.name), Name(state.judge), f"{state.n_traces:,}",
        "not started" if progress is None else progress.state,
        "-" if progress is None or progress.spent_usd is None else usd(progress.spent_usd),
    )  # fmt: skip


def listed(entries: Sequence[tuple[JudgeEntry, int]], in_use: str | None) -> Document:
    """Return the judges of a store, with the number of verdicts of each."""
    cells = [
        (Name(entry.name), Name(entry.version.model), entry.version.plan,
         f"{entry.version.samples}", f"{len(entry.version.few_shots)}", f"{n:,}",
         "in use" if entry.name == in_use else "")
        for entry, n in entries
    ]  # fmt: skip
    head = ("judge", "model", "plan", "samples", "examples", "verdicts", "")
    return Document(
        title="Judges that we run",
        about=() if cells else ("None yet.",),
        sections=(Section(title="", blocks=(table_of("", head, cells),)),) if cells else (),
        then="" if cells else "judge new NAME --model MODEL --url ADDRESS",
    )


def made(entry: JudgeEntry) -> Document:
    """Return a new judge with what the probe found."""
    return Document(
        title=f"Judge {entry.name}",
        about=(f"Version {entry.version.judge_id}: {entry.version.model}, "
               f"{counted(entry.version.samples, 'sample')} of each trace.",),
        sections=(Section(title="The endpoint", blocks=(Facts(items=capability_facts(entry)),)),
                  Section(title="The probe", blocks=(Listing(items=tuple(
                      Name(finding) for finding in entry.findings)),))),
        then=f"judge estimate {entry.name}",
    )  # fmt: skip


def capability_facts(entry: JudgeEntry) -> tuple[tuple[str, str], ...]:
    """Return what an endpoint can do."""
    able = entry.capabilities
    return (
        ("address", Name(entry.address)),
        ("answers in the form", able.structured),
        ("temperature", "accepted" if able.temperature else "refused"),
        ("seed", "accepted" if able.seed else "refused"),
        ("counts its tokens", "yes" if able.usage else "no: only a cap in tokens is exact"),
        ("calls itself", Name(able.model_returned or "nothing")),
        ("context", "not named" if able.context is None else f"{able.context:,} tokens"),
    )


# ---- what labels say


def scored(found: Scores) -> Document:
    """Return the judges of a store on exam A."""
    best = found.best
    name = found.tried[best.version]
    words = f"{name} agrees best with exam A: {percent_figure(best.corrected)}"
    if best.n_versions > 1:
        words += (f", corrected for choosing among {best.n_versions:,} "
                  f"({percent_figure(best.as_read)} as read)")  # fmt: skip
    head = ("judge", "agreement", "kappa")
    cells = [
        (Name(score.judge), percent_cell(score.quality.accuracy), figure(score.quality.kappa))
        for score in (*found.scores, found.majority)
    ]
    cells[-1] = (Name(f"always {found.majority.judge}"), *cells[-1][1:])
    return Document(
        title="Judges on exam A",
        about=(f"{words}.", f"{found.n:,} labelled traces that all of them judged."),
        sections=(
            Section(title="", blocks=(table_of("", head, cells),)),
            *(_per_class(score.judge, found.classes, score.quality) for score in found.scores),
        ),
        then=f"judge certify {name} --minimum SHARE",
    )


def _per_class(judge: str, names: Sequence[str], quality: QualityAgainstKey) -> Section:
    cells = [(name, percent_cell(of.recall))
             for name, of in zip(names, quality.per_class, strict=True)]  # fmt: skip
    return Section(
        title=f"Share of each class that {judge} recognises",
        blocks=(table_of("", ("class", "recall"), cells),),
    )


def pair_words(found: PairedComparison, first: str, second: str) -> str:
    """Return which of two judges agrees better, in a sentence."""
    if found.better in (FIRST, SECOND):
        better, other = (first, second) if found.better == FIRST else (second, first)
        return f"{better} agrees better with the humans than {other}."
    if found.better == CANNOT_TELL:
        apart = found.first_only + found.second_only
        return (
            f"Cannot tell: on {counted(apart, 'trace')} one of them alone agrees with the humans, "
            f"at least {found.needed} are needed."
        )
    return f"No difference between {first} and {second} is shown."


def _points(difference: Estimate) -> str:
    """Return a difference in points with its limits and its status, or why there is none."""
    if difference.value is None or difference.status == OK:
        return percent_number(difference) if difference.value is None else points_of(difference)
    return f"{points_of(difference).removesuffix(' +')}  ({difference.status})"


# Beside a comparison on the labels of a batch.
SPENT = (
    "Labels that chose a version read too high for it: the labels of these tasks no longer enter "
    "the corrected rate of either judge."
)


def compared(found: Compared) -> Document:
    """Return two judges side by side."""
    pair = found.paired
    p = "-" if pair.test.p_value is None else f"{pair.test.p_value:.4f}"
    facts = (
        (f"{found.first} minus {found.second}, points", _points(pair.difference)),
        (f"only {found.first} agrees", f"{pair.first_only:,}"),
        (f"only {found.second} agrees", f"{pair.second_only:,}"),
        ("exact McNemar test", f"p = {p}"),
    )
    classes = [(name, f"{n:,}", f"{one:,}", f"{other:,}")
               for name, n, one, other in found.by_class]  # fmt: skip
    flips = [
        (Name(flip.trace_id), flip.human, flip.first, flip.second, Name(flip.question or "-"))
        for flip in found.flips[:MOST_FLIPS]
    ]
    note = () if len(found.flips) <= MOST_FLIPS else (
        f"{len(found.flips):,} in all; --json has them with both reasons",
    )  # fmt: skip
    n = counted(found.n, "labelled trace")
    of_form = found.source in FORMS
    source = FORMS[found.source] if of_form else f"the development tasks of {Name(found.source)}"
    about = [pair_words(pair, found.first, found.second),
             f"{n} of {source} that both judged."]  # fmt: skip
    if not of_form:
        about.append(SPENT)
    if found.left_out:
        about.append(f"{found.left_out:,} left out: reviewers differ on them.")
    return Document(
        title=f"{found.first} and {found.second}",
        about=tuple(about),
        sections=(
            Section(title="", blocks=(Facts(items=facts),)),
            Section(title="By class of the humans", blocks=(
                table_of("", ("class", "traces", found.first, found.second), classes),)),
            Section(title="First question that they answer differently", blocks=(
                Listing(items=tuple(f"{name}: {n:,}" for name, n in found.by_question)),)),
            Section(title="Traces on which they differ", blocks=(
                table_of("", ("trace", "humans", found.first, found.second, "question"), flips,
                         notes=note),)),
        ),
    )  # fmt: skip


def looks_words(n: int) -> str:
    """Return how often a line of versions was looked at exam B with, and what the next look is."""
    if not n:
        return "No look yet. The first one certifies."
    return f"{counted(n, 'look')} so far. The next one is exploratory: it gives no certificate."


PROBES = {
    probes.BLANK: "no steps and no response", probes.SWAPPED: "the response of another task",
    probes.INJECTED: "orders to the judge in the trace",
    probes.CLAIMED: "thoughts that claim success",
    probes.PERMUTED: "sub-goals in another order", probes.PADDED: "the response twice",
    probes.RETEST: "asked again", probes.REFERENCE: "the reference reason shown (practice traces)",
    probes.WITHHELD: "thoughts withheld",
    probes.EXAMPLES: "examples in another order", probes.HALF: "half of the room",
}  # fmt: skip


def _rule(of: SuggestedRule) -> tuple[str, ...]:
    """Return a suggested rule as a row."""
    flag = "-" if of.copied is None else f"copied: {of.copied}"
    return Name(of.question), Name(of.rule), Name(of.why), Name(flag)


def suggested(found: Suggestions) -> Document:
    """Return rules that a model suggests for a judge."""
    cells = [_rule(of) for of in found.rules]
    spent = f"{found.spent_tokens:,} tokens"
    if found.spent_usd is not None:
        spent = f"{usd(found.spent_usd)}, {spent}"
    about = [
        f"{found.judge} differs from the reference on {found.n_differences:,} of "
        f"{counted(found.n_judged, 'practice trace')}; {found.n_shown:,} were in the request. "
        f"{spent}."
    ]
    if found.ended is not None:
        about.append(f"No answer: {found.ended}.")
    elif any(of.copied for of in found.rules):
        about.append(
            "A rule that copies words of a practice trace answers that trace; no judge is told it."
        )
    return Document(
        title=f"Rules suggested for judge {found.judge}",
        about=tuple(about),
        sections=(
            Section(title="", blocks=(
                table_of("", ("question", "rule", "why", "flag"), cells),)),
        ),
    )  # fmt: skip


def probed(found: ProbeReport) -> Document:
    """Return what probes found of a judge."""
    cells = [
        (PROBES[of.probe], of.event, percent_cell(of.rate), f"{of.rate.n:,}", f"{of.n_traces:,}",
         f"{of.n_better:,} / {of.n_worse:,}", Name(_left_out(of.left_out)))
        for of in found.rates
    ]  # fmt: skip
    head = ("change", "event", "share", "n", "traces", "better / worse", "left out")
    spent = f"{found.spent_tokens:,} tokens"
    if found.spent_usd is not None:
        spent = f"{usd(found.spent_usd)}, {spent}"
    about = [f"{counted(found.n_traces, 'trace')}; {spent}. No verdict entered the store."]
    if found.ended is not None:
        about.append(f"Not finished: {found.ended}. The same command again asks only the rest.")
    return Document(
        title=f"Robustness of judge {found.judge}",
        about=tuple(about),
        sections=(Section(title="", blocks=(table_of("", head, cells),)),),
    )


def _left_out(reasons: Mapping[str, int]) -> str:
    return "; ".join(f"{n:,}: {why}" for why, n in reasons.items()) or "-"


def certified(found: CertifiedJudge) -> Document:
    """Return a look at locked labels."""
    of, look = found.found, found.found.look
    words = {
        CERTIFIED: f"Judge {found.judge} is certified: {of.why}.",
        NOT_SHOWN: f"Not certified: {of.why}.",
        EXPLORATORY: f"No certificate: {of.why}.",
    }.get(of.status, f"No certificate: {of.why}.")
    quality = of.quality
    facts = [
        (
            "look",
            f"{look.number} of this line of versions, level {100 * look.confidence_level:g} %",
        ),
        ("agreement", percent_number(quality.accuracy)),
        ("kappa", number(quality.kappa)),
        ("beside the majority class", pair_words(of.majority, found.judge, "the majority class")),
        ("beside the baseline", pair_words(of.baseline, found.judge, BASELINE)),
    ]
    if found.missing:
        facts.append(("without a verdict", f"{found.missing:,}, counted as wrong"))
    earlier = [f"look {at.number}: {at.judge_id}, {at.created_at:%Y-%m-%d %H:%M} UTC, by "
               f"{at.created_by or 'the command line'}" for at in found.earlier]  # fmt: skip
    return Document(
        title=f"Judge {found.judge} on exam B",
        about=(words,),
        sections=(
            Section(title="", blocks=(Facts(items=tuple(facts)),)),
            _per_class(found.judge, found.classes, quality),
            *((Section(title="Earlier looks", blocks=(Listing(items=tuple(earlier)),)),)
              if earlier else ()),
        ),
        then=f"judge promote {found.judge}" if of.status == CERTIFIED else "",
    )  # fmt: skip
