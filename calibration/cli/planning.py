"""Commands that plan and draw a batch, escalate uncertain verdicts, and audit the rest."""

from pathlib import Path

import click

from calibration.analyses.agreement.sample_size import (
    COEFFICIENTS,
    ClassShares,
    Planned,
    plan_agreement,
    shares_of_batch,
)
from calibration.analyses.evidence.from_store import pooled_id
from calibration.analyses.reviewers.progress import batch_results
from calibration.analyses.sampling.draw import (
    SamplingDesign,
    draw_audit,
    draw_batch,
    drawn_batch,
)
from calibration.analyses.sampling.escalation import SIGNALS, Signal, audit, escalate
from calibration.analyses.sampling.planning import plan_batch
from calibration.analyses.sampling.stratified import ALLOCATIONS, Allocation, draw_allocated
from calibration.cli.terminal import (
    open_to_read,
    open_to_write,
    print_result,
    with_batch,
    with_estimand,
    with_output,
    with_store,
)
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.post_stratification import Estimand
from calibration.reporting.sections import plans
from calibration.store import Store
from calibration.store.people import LEAD, ranks


@click.command()
@click.option("--n", type=int, help="Number of traces; default: what --half-width needs.")
@click.option("--half-width", type=float, help="Of the interval wanted, as .03.")
@click.option("--until", type=float, help="Half-width: may labelling of --batch stop now?")
@click.option("--labels-wanted", type=int, default=2, show_default=True, help="Per trace.")
@click.option(
    "--overlap",
    type=float,
    default=1.0,
    show_default=True,
    help="Share of the traces that get them; the others get one label.",
)
@click.option("--judge", "judge_id", help="Judge to use; `source:` pools the files' grades.")
@click.option("--seconds-per-label", type=float, help="Active time; default: the median so far.")
@click.option("--hourly-rate", type=float, help="What an hour of a reviewer costs.")
@with_estimand
@with_store
@with_batch
@with_output
def plan(
    n: int | None,
    half_width: float | None,
    until: float | None,
    labels_wanted: int,
    overlap: float,
    judge_id: str | None,
    seconds_per_label: float | None,
    hourly_rate: float | None,
    estimand: Estimand,
    path: Path,
    batch_id: str | None,
    as_data: bool,
    as_markdown: bool,
    page: Path | None,
) -> None:
    """Say how narrow the rate would be after N labelled traces, and what they take.

    Or the other way round: how many traces a half-width needs, with the judge and without. What
    the judge is worth is said in labels, hours and money that it saves.

    The spread of scores is measured on the labels of --batch; default: the newest batch with 50
    labelled traces, else the one with most.

    \b
    asr plan --n 200 --labels-wanted 2 --overlap 0.25
    asr plan --half-width .03 --judge judge-1 --seconds-per-label 90 --hourly-rate 60

    With --until WIDTH it says whether labelling may stop now, however often one has looked before,
    and how many labelled traces more are expected to be needed.

    \b
    asr plan --until .05
    """
    if until is not None:
        if estimand == "these_runs":
            raise InputError("--until is for the rate of runs like these; leave --estimand out")
        if (n, half_width, seconds_per_label, hourly_rate) != (None,) * 4:
            raise InputError("--until is about labels made: give it with --batch or --judge only")
        with open_to_read(path) as store:
            rated = pooled_id(store, batch_id)
            rule = batch_results(store, rated, judge_id=judge_id, goal=until).stopping
        print_result(rule, plans.stopping, as_data, as_markdown, page)
        return
    with open_to_read(path) as store:
        found = plan_batch(
            store,
            n=n,
            half_width=half_width,
            labels_wanted=labels_wanted,
            overlap=overlap,
            judge_id=judge_id,
            batch_id=batch_id,
            seconds_per_label=seconds_per_label,
            hourly_rate=hourly_rate,
            estimand=estimand,
        )
    print_result(found, plans.plan, as_data, as_markdown, page)


@click.command("plan-agreement")
@click.option("--half-width", type=float, required=True, help="Of the interval wanted, as .1.")
@click.option("--alpha", type=float, required=True, help="Alpha that is expected.")
@click.option("--raters", type=int, default=2, show_default=True, help="Reviewers of each trace.")
@click.option(
    "--class-shares",
    help="Share of every class, parted by commas; default: those of the labels of --batch.",
)
@click.option(
    "--missing", type=float, default=0.0, show_default=True, help="Share of labels not made."
)
@click.option(
    "--coefficient",
    type=click.Choice(list(COEFFICIENTS)),
    default="krippendorff_alpha",
    show_default=True,
    help="Whose interval.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the simulation.")
@with_store
@with_batch
@with_output
def agreement_plan(
    half_width: float,
    alpha: float,
    raters: int,
    class_shares: str | None,
    missing: float,
    coefficient: Planned,
    seed: int,
    path: Path,
    batch_id: str | None,
    as_data: bool,
    as_markdown: bool,
    page: Path | None,
) -> None:
    """Say how many traces reviewers must label for alpha, or AC1, to be known that closely.

    \b
    asr plan-agreement --half-width .1 --alpha .7 --raters 2 --class-shares .3,.2,.2,.17,.13
    asr plan-agreement --half-width .05 --alpha .8 --json
    """
    found = plan_agreement(
        _class_shares(class_shares, path, batch_id),
        alpha=alpha,
        n_raters=raters,
        half_width=half_width,
        missing=missing,
        coefficient=coefficient,
        seed=seed,
    )
    print_result(found, plans.agreement_plan, as_data, as_markdown, page)
    if found.plan.typical.n is None:
        raise CalibrationError("no number of traces can be given; the status says what would help")


def _class_shares(given: str | None, path: Path, batch_id: str | None) -> ClassShares:
    """Return the given shares, otherwise those of the labels in the store."""
    if given is None:
        if not path.exists():
            raise InputError(f"{path}: no store to take class shares from; give --class-shares")
        with open_to_read(path) as store:
            return shares_of_batch(store, batch_id)
    if batch_id is not None:
        raise InputError("--class-shares and --batch both say what the classes are; give one")
    try:
        return ClassShares(shares=tuple(float(share) for share in given.split(",")))
    except ValueError as error:
        raise InputError(f"--class-shares must be numbers parted by commas ({error})") from error


@click.command()
@click.option("--n", type=int, help="Number of traces.")
@click.option("--seed", type=int, required=True, help="Seed of the draw.")
@click.option(
    "--audit-agreed",
    "agreed",
    type=int,
    metavar="N",
    help="Instead: N agreed traces that a lead labels again, blind.",
)
@click.option("--by", "lead", help="The lead of --audit-agreed; default: the only one.")
@click.option("--workflow", help="Draw from this workflow only.")
@click.option("--labels-wanted", type=int, default=2, show_default=True, help="Per trace.")
@click.option(
    "--overlap",
    type=float,
    default=1.0,
    show_default=True,
    help="Share of the traces that want them, drawn at random; the others want one label.",
)
@click.option("--by-workflow", is_flag=True, help="Give every workflow its share of the draw.")
@click.option(
    "--allocate",
    "allocation",
    type=click.Choice(ALLOCATIONS),
    help="Draw within verdict x workflow: by size, or by size x spread of earlier scores.",
)
@click.option("--judge", "judge_id", help="Judge whose verdicts --allocate uses.")
@click.option("--basis", help="Batch whose labels say how scores vary; default: a recent one.")
@click.option(
    "--certificate",
    type=click.Choice(["any", "private"]),
    help="Serve it to certified reviewers only; private: on a form that is not public.",
)
@with_store
@with_output
def sample(
    n: int | None,
    seed: int,
    agreed: int | None,
    lead: str | None,
    workflow: str | None,
    labels_wanted: int,
    overlap: float,
    by_workflow: bool,
    allocation: Allocation | None,
    judge_id: str | None,
    basis: str | None,
    certificate: str | None,
    path: Path,
    as_data: bool,
    as_markdown: bool,
    page: Path | None,
) -> None:
    """Draw a batch of traces to label at random, and record how it was drawn.

    Every trace has the same chance, or with --allocate one that is recorded and that every
    estimate then weighs by.

    \b
    asr sample --n 40 --seed 1
    asr sample --n 200 --seed 1 --labels-wanted 2 --overlap 0.25 --by-workflow
    asr sample --n 200 --seed 1 --allocate neyman --judge judge-1
    asr sample --n 200 --seed 1 --certificate any
    asr sample --audit-agreed 20 --seed 1 --by Lena
    """
    if (n is None) == (agreed is None):
        raise InputError("--n draws traces, --audit-agreed draws agreed ones; name one of them")
    if lead is not None and agreed is None:
        raise InputError("--by is for --audit-agreed; add it or leave it out")
    if allocation is None and (judge_id is not None or basis is not None):
        raise InputError("--judge and --basis are for --allocate; add it or leave them out")
    if allocation is not None and by_workflow:
        raise InputError("--allocate gives every workflow its share already; leave --by-workflow")
    design = SamplingDesign(
        seed=seed,
        workflow=workflow,
        labels_wanted=labels_wanted,
        overlap=overlap,
        certificate=certificate,
    )
    with open_to_write(path) as store:
        if agreed is not None:
            batch = draw_audit(store, n=agreed, seed=seed, reviewer_id=_lead(store, lead))
        elif n is None:
            raise TypeError("n or agreed must be given")
        elif allocation is None:
            batch = draw_batch(store, design, n=n, by_workflow=by_workflow)
        else:
            batch = draw_allocated(
                store, design, n=n, allocation=allocation, judge_id=judge_id, basis_batch=basis
            )
        drawn = drawn_batch(store, batch)
    print_result(drawn, plans.drawn, as_data, as_markdown, page)
    if not (as_data or as_markdown or page):
        click.echo(f"Label them: asr serve --store {path}")


def _lead(store: Store, name: str | None) -> str:
    """Return the id of the named lead, else of the only one."""
    leads = [one for one in store.reviewers() if ranks(one, LEAD)]
    known = ", ".join(one.name for one in leads) or "none"
    found = [one for one in leads if name is None or name in (one.name, one.reviewer_id)]
    if len(found) != 1:
        raise InputError(f"name a lead with --by, who labels the traces again; there are: {known}")
    return found[0].reviewer_id


@click.command("escalate")
@click.option("--by", "signal", type=click.Choice(SIGNALS), required=True, help="Sign of doubt.")
@click.option("--seed", type=int, required=True, help="Seed of the audit.")
@click.option("--judge", "judge_id", help="Judge whose verdicts are accepted or not.")
@click.option("--threshold", type=float, help="Doubt above which a trace is escalated.")
@click.option("--most", type=int, help="Escalate no more than as many, the most doubtful.")
@click.option(
    "--audit-half-width",
    type=float,
    default=0.05,
    show_default=True,
    help="To which the error rate of the accepted part shall be known.",
)
@click.option("--basis", help="Batch of earlier labels; default: a recent one.")
@click.option("--workflow", help="Traces of this workflow only.")
@click.option("--labels-wanted", type=int, default=1, show_default=True, help="Per trace.")
@with_store
@with_output
def escalation(
    signal: Signal,
    seed: int,
    judge_id: str | None,
    threshold: float | None,
    most: int | None,
    audit_half_width: float,
    basis: str | None,
    workflow: str | None,
    labels_wanted: int,
    path: Path,
    as_data: bool,
    as_markdown: bool,
    page: Path | None,
) -> None:
    """Make a batch of the doubtful traces and of a random part of the accepted ones.

    Doubt is: samples of the judge that disagree, a low calibrated probability, or several judges
    that leave the class open. Without the audit nobody would know what was accepted wrongly.

    \b
    asr escalate --by samples --judge judge-1 --seed 1
    asr escalate --by probability --judge judge-1 --most 100 --audit-half-width .08 --seed 1
    """
    with open_to_write(path) as store:
        batch = escalate(
            store,
            SamplingDesign(seed=seed, workflow=workflow, labels_wanted=labels_wanted),
            signal=signal,
            judge_id=judge_id,
            threshold=threshold,
            most=most,
            audit_half_width=audit_half_width,
            basis_batch=basis,
        )
        drawn = drawn_batch(store, batch)
    print_result(drawn, plans.drawn, as_data, as_markdown, page)
    if not (as_data or as_markdown or page):
        click.echo(f"Label them: asr serve --store {path}; then asr audit --batch {batch.batch_id}")


@click.command("audit")
@click.option("--batch", "batch_id", required=True, help="Batch made by `asr escalate`.")
@with_store
@with_output
def audit_command(
    batch_id: str, path: Path, as_data: bool, as_markdown: bool, page: Path | None
) -> None:
    """Say how often accepted verdicts are wrong, and what the rate over all traces is.

    \b
    asr audit --batch production-002
    """
    with open_to_read(path) as store:
        found = audit(store, batch_id)
    print_result(found, plans.audited, as_data, as_markdown, page)
