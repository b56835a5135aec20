"""Recommended steps after an agreement analysis, each with its reason."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from calibration.agreement.annotators import BesideOthers, MarginDifference
from calibration.agreement.ratings import RELY, TENTATIVE
from calibration.analyses.agreement.analysis import AgreementAnalysis
from calibration.analyses.agreement.traces import (
    TraceSet,
    apart_from_others,
    confused,
    open_traces,
    parting_at,
    using_apart,
)
from calibration.statistics.estimate import Estimate

# Disagreement on fewer traces than this is no reason to change a rule.
FEWEST_TRACES = 3

NAMED_TRACES = 3
SIGNIFICANT = 0.05

# Narrowest interval to plan for: a narrower one would take tens of thousands of traces.
NARROWEST = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedInterval:
    """The interval to plan for with `plan_agreement`."""

    half_width: float
    alpha: float
    n_raters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """One thing to do.

    `kind` : about agreement ``label``, ``settle``, ``question``, ``classes``, ``reviewer``,
        ``more_traces``, ``relabel`` or ``use``; about a judge ``settle``, ``refused``, ``warned``,
        ``labels``, ``allocate``, ``escalate``, ``unjudged``, ``again``, ``question``, ``classes``
        or ``use``
    `what`, `why` : the step as a sentence; its reason with the numbers
    `command` : the command line without ``asr``, and `plan` the interval that it plans for
    `n`, `half_width` : traces that an allocation would draw; the target of more labels
    `signals` : signs of doubt for an escalation
    """

    kind: str
    what: str
    why: str
    traces: TraceSet | None = None
    command: str | None = None
    plan: WantedInterval | None = None
    n: int | None = None
    half_width: float | None = None
    signals: tuple[Literal["samples", "probability", "judges"], ...] = ()


def next_steps(
    result: AgreementAnalysis, names: Mapping[str, str] | None = None, *, titled: bool = False
) -> tuple[Recommendation, ...]:
    """Return the recommended steps in order.

    `names` maps reviewer ids to names; `titled` steps call classes by their titles.
    """
    classes = tuple(result.taxonomy.titles[c] if titled else c for c in result.classes)
    called = [(names or {}).get(who, who) for who in result.reviewers]
    if not result.study.n_items:
        return (_first_labels(result, called),)
    steps = [
        *_settle(result),
        *_question(result, titled=titled),
        *_classes(result, classes),
        *_reviewers(result, called, classes),
        *_more(result),
    ]
    return tuple(steps)


def _first_labels(result: AgreementAnalysis, called: list[str]) -> Recommendation:
    n = len(result.trace_ids)
    if not called:
        return Recommendation(
            kind="label",
            what="Have two reviewers label the batch on the Label page.",
            why="Nobody has labelled it yet.",
        )
    if len(called) == 1:
        return Recommendation(
            kind="label",
            what="Have a second reviewer label the same traces on the Label page.",
            why=f"Only {called[0]} has labelled, {_traces(n)}: nothing can be compared.",
        )
    return Recommendation(
        kind="label",
        what="Have a second reviewer label traces that already have a label.",
        why=f"{len(called)} reviewers labelled {_traces(n)}, and none of them has two labels.",
    )


def _settle(result: AgreementAnalysis) -> Iterator[Recommendation]:
    todo = open_traces(result)
    if not todo.trace_ids:
        return
    n, first = len(todo.trace_ids), todo.trace_ids[0]
    top = next(of for of in result.disputed if of.trace_id == first)
    yield Recommendation(
        kind="settle",
        what=f"Adjudicate the {n:,} open disagreements, starting with {first}."
        if n > 1
        else f"Adjudicate the one open disagreement, {first}.",
        why=f"Reviewers differ on {'them' if n > 1 else 'it'} and nobody has adjudicated them. "
        "The class of "
        f"{first} is the most open ({top.entropy:.2f} bits); it costs alpha {top.cost or 0.0:.4f}.",
        traces=todo,
    )


def _question(result: AgreementAnalysis, *, titled: bool) -> Iterator[Recommendation]:
    nodes = [(k, v) for k, v in result.study.nodes.items() if v.share.observed.value is not None]
    if not nodes:
        return
    name, node = max(nodes, key=lambda item: item[1].share.observed.value or 0.0)
    if node.share.n_items < FEWEST_TRACES:
        return
    asked = result.taxonomy.node(name).question
    alpha = "" if node.alpha.value is None else f", where alpha is {_number(node.alpha)}"
    yield Recommendation(
        kind="question",
        what=f"Sharpen the rule and the examples of \u201c{asked}\u201d"
        + ("." if titled else f" ({name})."),
        why=f"{_percent(node.share.observed)} of all disagreement starts there, on "
        f"{_traces(node.share.n_items)}{alpha}: no question has more.",
        traces=parting_at(result, name),
    )


def _classes(result: AgreementAnalysis, classes: Sequence[str]) -> Iterator[Recommendation]:
    if not result.study.confusions:
        return
    worst = result.study.confusions[0]
    if worst.share.n_items < FEWEST_TRACES:
        return
    found = confused(result, worst.first, worst.second)
    shown = ", ".join(found.trace_ids[:NAMED_TRACES])
    yield Recommendation(
        kind="classes",
        what=f"Discuss {classes[worst.first]} and {classes[worst.second]} with all reviewers: "
        f"{shown}.",
        why=f"{_percent(worst.share.observed)} of all disagreement is between these two, on "
        f"{_traces(worst.share.n_items)}: no other two are confused more often.",
        traces=found,
    )


def _reviewers(
    result: AgreementAnalysis, called: list[str], classes: Sequence[str]
) -> Iterator[Recommendation]:
    told = set()
    largest: dict[int, MarginDifference] = {}
    for d in result.study.margins.differences:
        if d.p_holm is not None and d.p_holm < SIGNIFICANT:
            held = largest.get(d.rater)
            if held is None or abs(d.difference.value or 0) > abs(held.difference.value or 0):
                largest[d.rater] = d
    for rater, d in largest.items():
        told.add(rater)
        yield _uses_apart(result, d, called[rater], classes[d.class_code])
    worst = [k for k, of in enumerate(result.profiles) if _better_without(of.beside)]
    if not worst:
        return
    k = max(worst, key=lambda k: result.profiles[k].beside.change.value or 0.0)
    if k not in told:
        yield _agrees_least(result, k, called[k])


def _better_without(beside: BesideOthers) -> bool:
    return (beside.change.value or 0.0) > 0 and (beside.p_holm or 1.0) < SIGNIFICANT


def _uses_apart(
    result: AgreementAnalysis, d: MarginDifference, name: str, outcome: str
) -> Recommendation:
    value, interval = d.difference.value or 0.0, d.difference.interval
    reach = "" if interval is None else f" [{100 * interval[0]:+z.1f}, {100 * interval[1]:+z.1f}]"
    return Recommendation(
        kind="reviewer",
        what=f"Go through traces together with {name}: when is it {outcome}?",
        why=f"{name} gives {outcome} {100 * value:+z.1f} pp{reach} compared with the others on "
        f"the same traces (Holm p = {d.p_holm:.2g}).",
        traces=using_apart(result, d.rater, d.class_code, name),
    )


def _agrees_least(result: AgreementAnalysis, k: int, name: str) -> Recommendation:
    beside = result.profiles[k].beside
    return Recommendation(
        kind="reviewer",
        what=f"Go through the traces on which {name} differs from the others, together.",
        why=f"Without {name} alpha would be {_number(beside.alpha_without)}, a change of "
        f"{_number(beside.change, signed=True)} (Holm p = {beside.p_holm:.2g}). "
        "Different is not wrong: check adjudicated traces.",
        traces=apart_from_others(result, k, name),
    )


def _more(result: AgreementAnalysis) -> Iterator[Recommendation]:
    alpha = result.study.alpha
    if alpha.value is None or alpha.interval is None:
        yield Recommendation(
            kind="more_traces",
            what="Have two reviewers label more traces.",
            why=alpha.status.replace("_", " ", 1).capitalize() + ".",
        )
        return
    low = alpha.interval[0]
    if low >= RELY:
        yield Recommendation(
            kind="use",
            what="Rely on these labels: continue with the agent success rate."
            if result.is_sample
            else "Rely on these labels, for these traces: they were chosen, not drawn at random.",
            why=f"The lower limit of alpha is {low:.3f}, at least .8.",
            command=f"report --batch {result.batch_id}" if result.is_sample else None,
        )
        return
    if alpha.value < TENTATIVE:
        yield Recommendation(
            kind="relabel",
            what="Then have fresh traces labelled by two reviewers, and come back here.",
            why=f"Alpha is {_number(alpha)}, below .667: more traces of the same labelling only "
            "make that surer. Only traces that nobody has discussed show whether sharper rules "
            "help.",
        )
        return
    bound = RELY if alpha.value >= RELY else TENTATIVE
    if low >= bound:
        yield Recommendation(
            kind="relabel",
            what="Use the labels with care; to rely on them, fix the points above first.",
            why=f"Alpha is {_number(alpha)}: its lower limit is above .667, and alpha itself below "
            ".8, so that more traces alone do not lift it.",
        )
        return
    yield _plan(result, alpha.value, alpha.interval, bound)


def _plan(
    result: AgreementAnalysis, value: float, interval: tuple[float, float], bound: float
) -> Recommendation:
    """Recommend the interval whose lower limit reaches a bound if alpha stays the same."""
    low, high = interval
    # The interval is longer below than above the value; the planner takes half its length.
    wanted = (value - bound) * (high - low) / 2 / (value - low)
    printed = f"{bound:.3f}".lstrip("0").rstrip("0")
    study = result.study
    step = Recommendation(
        kind="more_traces",
        what=f"Have more traces labelled by two or more, to bring the lower limit to {printed}.",
        why=f"Alpha is {value:.3f}, above {printed}, and its lower limit {low:.3f} on "
        f"{_traces(study.n_items)}: too few to tell.",
    )
    if wanted < NARROWEST:
        return replace(
            step,
            what="Fix the points above first: more traces alone would have to be very many.",
            why=f"Alpha is {value:.3f}, hardly above {printed}, and its lower limit {low:.3f}.",
        )
    plan = WantedInterval(
        half_width=round(wanted, 3),
        alpha=round(value, 2),
        n_raters=max(2, round(study.n_ratings / study.n_items)),
    )
    return replace(
        step,
        plan=plan,
        command=f"plan agreement --half-width {plan.half_width} --alpha {plan.alpha} "
        f"--raters {plan.n_raters} --batch {result.batch_id}",
    )


def _traces(n: int) -> str:
    return f"{n:,} trace{'s' * (n != 1)}"


def _percent(share: Estimate) -> str:
    text = f"{100 * (share.value or 0.0):.1f} %"
    if share.interval is None:
        return text
    return f"{text} [{100 * share.interval[0]:.1f}, {100 * share.interval[1]:.1f}]"


def _number(of: Estimate, *, signed: bool = False) -> str:
    if of.value is None:
        return "not estimable"
    form = "+.3f" if signed else ".3f"
    if of.interval is None:
        return f"{of.value:{form}}"
    return f"{of.value:{form}} [{of.interval[0]:{form}}, {of.interval[1]:{form}}]"
