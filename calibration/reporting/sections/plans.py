"""Plans and drawn batches as documents."""

from collections.abc import Iterator, Sequence

from calibration.agreement.sample_size import ItemsNeeded
from calibration.analyses.agreement.sample_size import PlannedAgreement
from calibration.analyses.reviewers.progress import Results, StoppingRule
from calibration.analyses.sampling.draw import DrawnBatch
from calibration.analyses.sampling.escalation import Audit
from calibration.analyses.sampling.planning import Plan
from calibration.reporting.document import (
    ESTIMANDS,
    SIMULATED,
    Document,
    Facts,
    Listing,
    Name,
    Section,
    Table,
    Words,
    batches_read,
    percent_number,
    table_of,
)
from calibration.reporting.sections.judge import saved_labelling
from calibration.text import arms_left_out, hours, points


def half_width(value: float) -> str:
    """Return a half-width in its usual notation."""
    return "±" + f"{value:.3f}".removeprefix("0")


def enough(results: Results) -> str:
    """Return the present precision and the gain from further labels."""
    now = results.headline.half_width
    if now is None:
        return results.headline.status.replace("_", " ", 1)
    steps = [f"{step.more:,} more give {points(step.half_width)}" for step in results.further]
    return f"now {points(now)}; " + (
        ", ".join(steps) if steps else "every trace is labelled, more would need new traces"
    )


def stopping(rule: StoppingRule) -> Document:
    """Return whether labelling may stop."""
    return Document(
        title=f"{rule.batch_id}: {rule.n:,} labelled traces",
        sections=(Section(title="", blocks=(Words(text=stop_words(rule)),)),),
        then="report" if rule.may_stop else "status",
    )


def stop_words(rule: StoppingRule) -> str:
    r"""Say in a sentence whether labelling may stop, and how many labels more are expected.

    Examples
    --------
    >>> rule = StoppingRule(
    ...     batch_id="b", goal=0.05, now=0.061, n=120, more=80, confidence_level=0.95, status="ok"
    ... )
    >>> print(stop_words(rule).replace(",", ",\n").replace(";", ";\n"))
    Keep labelling: the goal is ±5.0 points,
     and the interval that allows for repeated looks is ±6.1 points;
     about 80 more labelled traces are expected to be needed.
    """
    if rule.now is None:
        return f"No stopping rule: {rule.status.removeprefix('not_estimable: ')}."
    now = (
        f"the goal is {points(rule.goal)}, and the interval that allows for repeated looks is "
        f"{points(rule.now)}"
    )
    if rule.may_stop:
        return f"Labelling may stop: {now}."
    needed = (
        "all traces together are not expected to suffice"
        if rule.more is None
        else f"about {rule.more:,} more labelled traces are expected to be needed"
    )
    return f"Keep labelling: {now}; {needed}."


def plan(found: Plan) -> Document:
    """Return a plan of how many traces to label."""
    overlap = f", {found.labels_wanted} labels on {100 * found.overlap:g} % of them"
    level = f"{100 * found.confidence_level:g} %"
    facts = [("human-only rate", f"{points(found.human_only)} expected ({level})")]
    if found.corrected is not None:
        rate = f"{points(found.corrected)} expected, judge {found.judge_id}"
        facts.append(("corrected rate", rate))
    each = found.seconds_per_label
    time = "" if each is None else f" at {each:.0f} s a label"
    money = "" if found.cost is None else f", {found.cost:,.0f} at {found.hourly_rate:g} an hour"
    facts.append(("reviewer time", f"{hours(found.hours)}{time}{money}"))
    if found.needed is not None:
        judged = "" if found.judge_id is None else f", {_count(found.needed.with_judge)} with it"
        needed = f"{_count(found.needed.without_judge)} without a judge{judged}"
        facts.append((f"for {points(found.needed.half_width)}", needed))
    facts += zip(("the judge", "what it saves"), _worth(found), strict=False)
    return Document(
        title=f"{found.n:,} of {found.population:,} traces"
        f"{overlap if found.labels_wanted > 1 else ''}: {found.n_labels:,} labels",
        source=batches_read(found.basis),
        about=(ESTIMANDS[found.estimand].format(n=found.population),),
        banners=(SIMULATED,) if found.simulated else (),
        sections=(
            Section(
                title="",
                blocks=(
                    Facts(items=tuple(facts)),
                    *([with_reviewers(found)] if found.with_reviewers else []),
                    Listing(items=found.notes),
                ),
            ),
        ),
        brief=(Facts(items=tuple(facts)),),
        then=f"sample --n {found.n}"
        + f" --labels-wanted {found.labels_wanted}" * (found.labels_wanted != 2)
        + f" --overlap {found.overlap:g}" * (found.overlap != 1),
    )


def with_reviewers(found: Plan) -> Table:
    """Return what labelling a share of the traces twice is expected to give."""
    return table_of(
        "Corrected rate with the errors of reviewers",
        ("labelled twice", "labels", "to adjudicate", "half-width"),
        [
            (
                f"{one.twice:,} ({100 * one.overlap:.0f} %)",
                f"{one.n_labels:,}",
                f"about {one.adjudicated:,.0f}",
                points(one.half_width),
            )
            for one in found.with_reviewers
        ],
    )


def _count(n: int | None) -> str:
    return "no number of traces" if n is None else f"{n:,} traces"


def _worth(found: Plan) -> Iterator[str]:
    worth = found.worth
    if worth is None:
        return
    if worth.multiplier.value is None or worth.saved is None:
        yield worth.multiplier.status.replace("_", " ", 1)
        return
    yield (
        f"{saved_labelling(worth.multiplier).removeprefix('The judge ')}; "
        f"R squared {worth.r_squared:.2f}"
    )
    time = "" if worth.saved_hours is None else f", {hours(worth.saved_hours)}"
    money = "" if worth.saved_cost is None else f", {worth.saved_cost:,.0f} in money"
    if worth.saved < 0:
        yield "it saves nothing: human labels alone are as good"
        return
    yield (
        f"{found.n:,} traces give what {worth.equivalent:,.0f} would: it saves "
        f"{worth.saved:,.0f} traces, {worth.saved_labels:,.0f} labels{time}{money}"
    )


def drawn(found: DrawnBatch) -> Document:
    """Return the design of a batch."""
    batch, design, chances = found.batch, found.batch.design, found.probabilities
    chance = (
        f"each drawn with probability {chances[0]:.4f}"
        if found.equal
        else f"drawn with probabilities from {min(chances):.4f} to {max(chances):.4f}"
    )
    strata = table_of(
        "",
        ("stratum", "traces", "drawn", "probability", "sd of the score"),
        [
            (
                Name(" x ".join(filter(None, map(stratum.get, ("name", "verdict", "workflow"))))),
                f"{stratum['population']:,}",
                f"{stratum['n']:,}",
                f"{stratum['inclusion_probability']:.4f}",
                "" if stratum.get("sd") is None else f"{stratum['sd']:.3f}",
            )
            for stratum in design.get("strata", ())
        ],
    )
    how = f"{design['kind']}, judge {design['judge']}" if strata.rows else ""
    n_perturbed = design.get("perturbed_left_out", 0)
    left_out = arms_left_out(n_perturbed) if n_perturbed else ""
    return Document(
        title=f"{batch.batch_id}: {batch.n_items} of {design['population']} traces, {chance}, "
        f"{_wanted(found.labels_wanted)}, seed {design['seed']}",
        about=tuple(filter(None, (how, left_out))),
        sections=(Section(title="", blocks=(strata,)),) if strata.rows else (),
        brief=() if strata.rows else None,
        then="serve",
    )


def _wanted(labels: Sequence[int]) -> str:
    most = max(labels)
    shared = labels.count(most)
    if shared == len(labels):
        return f"{most} labels wanted"
    return f"{most} labels wanted on {shared} of them and one on the others"


def audited(found: Audit) -> Document:
    """Return the result of an escalation."""
    facts = [("accepted verdicts that are wrong", percent_number(found.error))]
    reached = found.error.half_width
    if reached is not None and reached > found.asked:
        short = f"{half_width(found.asked)} was asked for, {half_width(reached)} is reached"
        facts.append(("precision", short))
    facts.append(("rate over all traces, weighted", percent_number(found.headline)))
    warning = (
        "What the accepted verdicts say is not the rate: judges are also wrong where they agree."
    )
    return Document(
        title=f"{found.batch_id}: {found.n_escalated:,} traces escalated, {found.n_accepted:,} "
        f"accepted as judge {found.judge_id} has them",
        banners=(SIMULATED,) if found.simulated else (),
        sections=(Section(title="", blocks=(Facts(items=tuple(facts)), Words(text=warning))),),
        then="status",
    )


NAMES = {"krippendorff_alpha": "alpha", "gwet_ac": "AC1"}


def agreement_plan(planned: PlannedAgreement) -> Document:
    """Return a plan for an agreement study."""
    plan = planned.plan
    classes = planned.basis.classes or [f"class {k + 1}" for k in range(len(plan.class_shares))]
    shares = zip(classes, plan.class_shares, strict=True)
    about = [f"class shares: {', '.join(f'{name} {100 * share:.1f} %' for name, share in shares)}"]
    if plan.missing:
        about.insert(0, f"{100 * plan.missing:g} % of the labels are expected to be missing")
    needed = (
        ("every second sample is that narrow with", _traces(planned, plan.typical)),
        ("nine samples in ten are with", _traces(planned, plan.assured)),
    )
    return Document(
        title=f"{NAMES[plan.coefficient]} to {half_width(plan.target)} "
        f"({100 * plan.confidence_level:g} %), {plan.n_raters} reviewers a trace, "
        f"alpha {plan.alpha:g} expected",
        source=batches_read(planned.basis.batch_id),
        about=tuple(about),
        banners=(SIMULATED,) if planned.basis.simulated else (),
        sections=(Section(title="", blocks=(Facts(items=needed), Listing(items=planned.notes))),),
        brief=(Facts(items=needed),),
        then=""
        if plan.typical.n is None
        else f"sample --n {plan.typical.n}"
        + f" --labels-wanted {plan.n_raters}" * (plan.n_raters != 2),
    )


def _traces(planned: PlannedAgreement, part: ItemsNeeded) -> str:
    if part.n is None:
        return part.status.replace("_", " ", 1)
    return f"{part.n:,} traces, {planned.labels(part):,} labels"
