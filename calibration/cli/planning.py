"""Commands that plan and draw a batch, escalate uncertain verdicts, and audit the rest."""

import secrets
from datetime import UTC, datetime
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
from calibration.analyses.reliability.trial_plan import plan_trials
from calibration.analyses.reviewers.progress import batch_results
from calibration.analyses.sampling.draw import (
    SamplingDesign,
    draw_audit,
    draw_batch,
    drawn_batch,
    last_week,
    seed_of_week,
)
from calibration.analyses.sampling.escalation import SIGNALS, Signal, audit, escalate
from calibration.analyses.sampling.planning import plan_batch
from calibration.analyses.sampling.stratified import ALLOCATIONS, Allocation, draw_allocated
from calibration.cli.reading_options import (
    OF_OUTCOMES,
    FileCommand,
    reading_params,
    with_reading_options,
)
from calibration.cli.terminal import (
    EXISTING,
    USE_JUDGE,
    Command,
    Group,
    Output,
    open_to_read,
    open_to_write,
    print_result,
    refuse_given,
    whole_numbers,
    with_batch,
    with_confidence,
    with_estimand,
    with_output,
    with_store,
)
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.post_stratification import Estimand
from calibration.reporting.sections import plans
from calibration.reporting.sections.trials import trial_plan
from calibration.store import Store
from calibration.store.people import LEAD, ranks
from calibration.tables.reading import ReadingOptions
from calibration.tables.rows import options_of_tables
from calibration.tables.trials import OF_TRIALS

FRESH_SEEDS = 10**9
OF_DRAWS = (
    "workflow", "labels_wanted", "overlap", "by_workflow", "allocation", "judge_id", "basis",
    "certificate",
)  # fmt: skip


def with_labels_wanted(command: Command) -> Command:
    """Add --labels-wanted."""
    return click.option(
        "--labels-wanted",
        type=int,
        default=2,
        show_default=True,
        help="Ask for this many labels of each trace.",
    )(command)


@click.group(cls=Group)
def plan() -> None:
    """Plan how many traces to label or trials to run, and see when labelling may stop."""


@plan.command("labels")
@click.option("--n", type=int, help="Label this many traces; without it, as many as needed.")
@click.option("--half-width", type=float, help="Aim at an interval of this half-width, as .03.")
@with_labels_wanted
@click.option(
    "--overlap",
    type=float,
    default=1.0,
    show_default=True,
    help="Ask for that many labels of this share of the traces, and one to the others.",
)
@click.option("--judge", "judge_id", help=USE_JUDGE)
@click.option(
    "--seconds-per-label",
    type=float,
    help="Assume this active time for a label; without it, the median so far.",
)
@click.option("--hourly-rate", type=float, help="Say what an hour of a reviewer costs.")
@with_estimand
@with_store
@with_batch
@with_output
def plan_labels(
    n: int | None,
    half_width: float | None,
    labels_wanted: int,
    overlap: float,
    judge_id: str | None,
    seconds_per_label: float | None,
    hourly_rate: float | None,
    estimand: Estimand,
    path: Path,
    batch_id: str | None,
    output: Output,
) -> None:
    """Say how precise the rate would be after N labelled traces, and what they cost.

    With --half-width it says how many traces that takes, with the judge and without it, and how
    many labels, hours and how much money the judge saves.

    The spread of scores is measured on the labels of --batch.

    \b
    asr plan labels --n 200 --labels-wanted 2 --overlap 0.25
    asr plan labels --half-width .03 --judge judge-1 --seconds-per-label 90 --hourly-rate 60
    """
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
    print_result(found, plans.plan, output)


@plan.command("stop")
@click.option(
    "--half-width",
    type=float,
    required=True,
    help="Stop at an interval of this half-width, as .05.",
)
@click.option("--judge", "judge_id", help=USE_JUDGE)
@with_store
@with_batch
@with_output
def plan_stop(
    half_width: float,
    judge_id: str | None,
    path: Path,
    batch_id: str | None,
    output: Output,
) -> None:
    """Say whether labelling may stop now, however often you have looked before.

    If not, it says how many labelled traces more are expected to be needed.

    \b
    asr plan stop --half-width .05
    """
    with open_to_read(path) as store:
        rated = pooled_id(store, batch_id)
        rule = batch_results(store, rated, judge_id=judge_id, goal=half_width).stopping
    print_result(rule, plans.stopping, output)


@plan.command("agreement")
@click.option(
    "--half-width", type=float, required=True, help="Aim at an interval of this half-width, as .1."
)
@click.option("--alpha", type=float, required=True, help="Expect this alpha.")
@click.option(
    "--raters",
    type=int,
    default=2,
    show_default=True,
    help="Plan for this many reviewers of each trace.",
)
@click.option(
    "--class-shares",
    help="Expect these shares of the classes, separated by commas; without them, those of the "
    "labels of --batch.",
)
@click.option(
    "--missing",
    type=float,
    default=0.0,
    show_default=True,
    help="Expect this share of the labels not to be made.",
)
@click.option(
    "--coefficient",
    type=click.Choice(list(COEFFICIENTS)),
    default="krippendorff_alpha",
    show_default=True,
    help="Plan for the interval of this coefficient.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Set the seed of the simulation."
)
@with_store
@with_batch
@with_output
def plan_agreement_study(
    half_width: float,
    alpha: float,
    raters: int,
    class_shares: str | None,
    missing: float,
    coefficient: Planned,
    seed: int,
    path: Path,
    batch_id: str | None,
    output: Output,
) -> None:
    """Say how many traces reviewers must share to know alpha, or AC1, that precisely.

    \b
    asr plan agreement --half-width .1 --alpha .7 --raters 2 --class-shares .3,.2,.2,.17,.13
    asr plan agreement --half-width .05 --alpha .8 --json
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
    print_result(found, plans.agreement_plan, output)
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
    refuse_given(["path"], "class shares of a store; leave out --class-shares")
    try:
        return ClassShares(shares=tuple(float(share) for share in given.split(",")))
    except ValueError as error:
        raise InputError(f"--class-shares must be numbers separated by commas ({error})") from error


@plan.command("trials", cls=FileCommand)
@click.argument("file", type=EXISTING, required=False)
@click.option(
    "--half-width", type=float, required=True, help="Aim at an interval of this half-width, as .05."
)
@click.option("--tasks", "n_tasks", type=int, help="Say how many tasks there are.")
@click.option(
    "--trials",
    "n_trials",
    default="1,2,3,5,10,20",
    show_default=True,
    help="Compare these numbers of trials of each task, separated by commas.",
)
@click.option("--p", type=float, help="Expect this chance of a pass; without it, .5 or FILE's.")
@click.option("-k", "--k", type=int, default=1, show_default=True, help="Plan for pass^K.")
@click.option("--model", help="Take the trials of this model in FILE.")
@click.option("--agent-version", help="Take the trials of this agent version in FILE.")
@with_reading_options(*OF_OUTCOMES)
@with_confidence
@with_output
def plan_trials_command(
    file: Path | None,
    half_width: float,
    n_tasks: int | None,
    n_trials: str,
    p: float | None,
    k: int,
    model: str | None,
    agent_version: str | None,
    reading: ReadingOptions,
    confidence: float,
    output: Output,
) -> None:
    """Say how many tasks, and trials of each, tell pass@1 or pass^K that precisely.

    FILE holds earlier trials, as for `asr trials`; how much its tasks differ is taken from it.
    Without it the plan is for two cases: every task passes always or never, and all tasks alike.

    \b
    asr plan trials --half-width .05
    asr plan trials runs.csv --half-width .05 -k 3
    asr plan trials --half-width .1 --tasks 40 --p .8
    """
    if file is None:
        refuse_given(
            ["model", "agent_version", *reading_params(OF_OUTCOMES)], "a FILE of trials; name one"
        )
    (reading,) = options_of_tables(reading, (file, OF_TRIALS))
    found = plan_trials(
        file,
        half_width=half_width,
        n_trials=whole_numbers("--trials", n_trials),
        n_tasks=n_tasks,
        p=p,
        k=k,
        model=model,
        agent_version=agent_version,
        reading=reading,
        confidence_level=confidence,
    )
    print_result(found, trial_plan, output)
    if not any(one.enough for case in found.cases for one in case.combinations):
        raise CalibrationError("none of these numbers of trials is enough; add tasks or trials")


@click.command()
@click.option("--n", type=int, help="Draw this many traces.")
@click.option(
    "--weekly", type=int, metavar="N", help="Draw N of the traces of a week, once for each week."
)
@click.option("--week", help="Name the week of --weekly, as 2026-W47.  [default: the last one]")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    help="Set the seed of the draw, to repeat it elsewhere.  [default: a fresh one, which is "
    "printed; for --weekly the week itself]",
)
@click.option(
    "--audit-agreed",
    "agreed",
    type=int,
    metavar="N",
    help="Draw N agreed traces instead, which a lead labels again, blind.",
)
@click.option("--by", "lead", help="Name the lead of --audit-agreed, where there are several.")
@click.option("--workflow", help="Draw from this workflow only.")
@with_labels_wanted
@click.option(
    "--overlap",
    type=float,
    default=1.0,
    show_default=True,
    help="Ask for that many labels of this share of the traces, drawn at random, and one to the "
    "others.",
)
@click.option("--by-workflow", is_flag=True, help="Give every workflow its share of the draw.")
@click.option(
    "--allocate",
    "allocation",
    type=click.Choice(ALLOCATIONS),
    help="Draw within verdict x workflow, by size or by size x spread of earlier scores.",
)
@click.option("--judge", "judge_id", help="Use the verdicts of this judge for --allocate.")
@click.option(
    "--basis",
    help="Take the spread of scores from the labels of this batch; without it, of those of the "
    "rate.",
)
@click.option(
    "--certificate",
    type=click.Choice(["any", "private"]),
    help="Serve it to certified reviewers only: certified on any form, or on a private form.",
)
@with_store
@with_output
def sample(
    n: int | None,
    weekly: int | None,
    week: str | None,
    seed: int | None,
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
    output: Output,
) -> None:
    """Draw a random batch of traces to label, and record how it was drawn.

    Every trace has the same chance, or with --allocate one that is recorded and that every
    estimate then weighs by. A seed draws from the same traces once: the same draw again would be
    no second sample.

    \b
    asr sample --n 40
    asr sample --n 40 --seed 1
    asr sample --n 200 --labels-wanted 2 --overlap 0.25 --by-workflow
    asr sample --n 200 --allocate neyman --judge judge-1
    asr sample --n 200 --certificate any
    asr sample --audit-agreed 20 --by Lena
    asr sample --weekly 25
    """
    if sum(given is not None for given in (n, weekly, agreed)) != 1:
        raise InputError(
            "--n draws traces, --weekly draws traces of a week, --audit-agreed draws agreed ones; "
            "name one of them"
        )
    if weekly is None:
        refuse_given(["week"], "--weekly; add it or leave it out")
    if weekly is not None:
        week = week or last_week(datetime.now(UTC))
        n, seed = weekly, seed_of_week(week) if seed is None else seed
    if seed is None:
        seed = secrets.randbelow(FRESH_SEEDS)
    if agreed is None:
        refuse_given(["lead"], "--audit-agreed; add it or leave it out")
    else:
        refuse_given(OF_DRAWS, "draws from all traces, not for --audit-agreed")
    if allocation is None:
        refuse_given(["judge_id", "basis"], "--allocate; add it or leave it out")
    if allocation is not None and by_workflow:
        raise InputError("--allocate gives every workflow its share already; leave --by-workflow")
    design = SamplingDesign(
        seed=seed,
        workflow=workflow,
        week=week,
        labels_wanted=labels_wanted,
        overlap=overlap,
        certificate=certificate,
        token=None if weekly is None else f"week {week} {workflow or ''}".rstrip(),
        repeats=weekly is not None,
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
    print_result(drawn, plans.drawn, output)


def _lead(store: Store, name: str | None) -> str:
    """Return the id of the named lead, else of the only one."""
    leads = [one for one in store.reviewers() if ranks(one, LEAD)]
    known = ", ".join(one.name for one in leads) or "none"
    found = [one for one in leads if name is None or name in (one.name, one.reviewer_id)]
    if len(found) != 1:
        raise InputError(f"name a lead with --by, who labels the traces again; there are: {known}")
    return found[0].reviewer_id


@click.command("escalate")
@click.option(
    "--by", "signal", type=click.Choice(SIGNALS), required=True, help="Measure doubt by this."
)
@click.option("--seed", type=int, required=True, help="Set the seed of the audit.")
@click.option("--judge", "judge_id", help="Accept or escalate the verdicts of this judge.")
@click.option("--threshold", type=float, help="Escalate traces with more doubt than this.")
@click.option("--most", type=int, help="Escalate at most this many, the most doubtful.")
@click.option(
    "--audit-half-width",
    type=float,
    default=0.05,
    show_default=True,
    help="Aim at this half-width for the error rate of the accepted verdicts.",
)
@click.option(
    "--basis", help="Take earlier labels from this batch; without it, from those of the rate."
)
@click.option("--workflow", help="Take traces of this workflow only.")
@click.option(
    "--labels-wanted",
    type=int,
    default=1,
    show_default=True,
    help="Ask for this many labels of each trace.",
)
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
    output: Output,
) -> None:
    """Make a batch of the doubtful verdicts and a random audit of the accepted ones.

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
    print_result(drawn, plans.drawn, output)


@click.command("audit")
@click.option(
    "--batch", "batch_id", required=True, help="Use this batch, which `asr escalate` has made."
)
@with_store
@with_output
def audit_command(batch_id: str, path: Path, output: Output) -> None:
    """Say how often accepted verdicts are wrong, and give the rate over all traces.

    \b
    asr audit --batch production-002
    """
    with open_to_read(path) as store:
        found = audit(store, batch_id)
    print_result(found, plans.audited, output)
