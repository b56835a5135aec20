"""The command that reports the rate."""

from pathlib import Path

import click

from calibration.analyses.asr import analyse_asr
from calibration.cli.stores import open_to_read
from calibration.cli.terminal import (
    print_json,
    print_lines,
    with_batch,
    with_json,
    with_judge,
    with_store,
)
from calibration.correction.calibrate import Design
from calibration.errors import CalibrationError
from calibration.reporting import as_json, text


@click.command()
@with_store
@with_batch
@with_judge
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@with_json
def report(
    path: Path,
    batch_id: str | None,
    judge_id: str | None,
    design: Design,
    seed: int,
    as_data: bool,
) -> None:
    """Report the Agent Success Rate: judge-raw, human-only and corrected.

    \b
    asr report
    asr report --judge source: --json
    """
    with open_to_read(path) as store:
        result = analyse_asr(store, batch_id, judge_id=judge_id, design=design, seed=seed)
    if as_data:
        print_json(as_json.asr(result))
    else:
        print_lines(text.asr(result))
    if not result.headline.ok:
        raise CalibrationError("no rate can be given; the status says what would help")


COMMANDS = (report,)
