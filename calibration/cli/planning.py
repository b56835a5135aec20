"""The command that says what a batch would give, before it is drawn."""

from pathlib import Path

import click

from calibration.analyses.planning import plan_batch
from calibration.cli.stores import open_to_read
from calibration.cli.terminal import print_json, print_lines, with_batch, with_json, with_store
from calibration.reporting import planning


@click.command()
@click.option("--n", type=int, required=True, help="Number of traces.")
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
@with_store
@with_batch
@with_json
def plan(
    n: int,
    labels_wanted: int,
    overlap: float,
    judge_id: str | None,
    seconds_per_label: float | None,
    path: Path,
    batch_id: str | None,
    as_data: bool,
) -> None:
    """Say how narrow the rate would be after N labelled traces, and how long they take.

    The spread of scores is measured on the labels of --batch; default: the newest batch with 50
    labelled traces, else the one with most.

    \b
    asr plan --n 200 --labels-wanted 2 --overlap 0.25
    """
    with open_to_read(path) as store:
        found = plan_batch(
            store,
            n=n,
            labels_wanted=labels_wanted,
            overlap=overlap,
            judge_id=judge_id,
            batch_id=batch_id,
            seconds_per_label=seconds_per_label,
        )
    if as_data:
        print_json(planning.plan_data(found))
    else:
        print_lines(planning.plan_lines(found))


COMMANDS = (plan,)
