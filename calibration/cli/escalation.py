"""Commands that send doubtful verdicts to people, and say what the audit of the rest found."""

from pathlib import Path

import click

from calibration.analyses.sampling.draw import SamplingDesign
from calibration.analyses.sampling.escalation import SIGNALS, Signal, audit, escalate
from calibration.cli.stores import open_to_read, open_to_write
from calibration.cli.terminal import print_json, print_lines, with_json, with_store
from calibration.reporting import to_json
from calibration.reporting.sections import plans


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
@with_json
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
        items = store.batch_items(batch.batch_id)
    if as_data:
        print_json(plans.batch_data(batch, items))
    else:
        print_lines(plans.batch_lines(batch, items))
        click.echo(f"Label them: asr serve --store {path}; then asr audit --batch {batch.batch_id}")


@click.command("audit")
@click.option("--batch", "batch_id", required=True, help="Batch made by `asr escalate`.")
@with_store
@with_json
def audit_command(batch_id: str, path: Path, as_data: bool) -> None:
    """Say how often accepted verdicts are wrong, and what the rate over all traces is.

    \b
    asr audit --batch production-002
    """
    with open_to_read(path) as store:
        found = audit(store, batch_id)
    if as_data:
        print_json(to_json.data(found))
    else:
        print_lines(plans.audit_lines(found))


COMMANDS = (escalation, audit_command)
