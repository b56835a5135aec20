"""Commands that answer a question about the labels: agreement, calibrate, report."""

from pathlib import Path

import click

from calibration.analyses.agreement import analyse_agreement
from calibration.analyses.asr import analyse_asr
from calibration.analyses.judge import Design, analyse_judge
from calibration.analyses.rating_files import NAMES, agreement_on, read_ratings
from calibration.cli.stores import open_to_read
from calibration.cli.terminal import (
    print_json,
    print_lines,
    with_batch,
    with_json,
    with_judge,
    with_store,
)
from calibration.errors import CalibrationError, InputError
from calibration.reporting import as_json, text


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@with_store
@with_batch
@click.option(
    "--format",
    "layout",
    type=click.Choice(["long", "wide"]),
    help="Of FILE: long (item, rater, label) or wide (first column the item, then one a rater).",
)
@click.option("--classes", help="Of FILE: every class there is, in order, parted by commas.")
@click.option(
    "--weights",
    default="identity",
    show_default=True,
    help=f"Of FILE: {', '.join(NAMES)}, or a CSV file with a matrix.",
)
@with_json
def agreement(
    file: Path | None,
    path: Path,
    batch_id: str | None,
    layout: str | None,
    classes: str | None,
    weights: str,
    as_data: bool,
) -> None:
    """Measure how far reviewers agree: in the store, or in a FILE of ratings.

    \b
    asr agreement --json
    asr agreement ratings.csv --classes no,maybe,yes --weights linear
    """
    if file is None:
        if layout or classes or weights != "identity":
            raise InputError("--format, --classes and --weights are for a FILE of ratings")
        _agreement_in_store(path, batch_id, as_data)
        return
    if batch_id is not None:
        raise InputError("--batch is for the store, not for a FILE of ratings")
    given = None if classes is None else classes.split(",")
    result = agreement_on(read_ratings(file, layout=layout, classes=given), weights=weights)
    if as_data:
        print_json(as_json.ratings(result))
    else:
        print_lines(text.ratings(result))
    if not result.coefficients["krippendorff_alpha"].ok:
        raise CalibrationError("alpha cannot be estimated; the status says what would help")


def _agreement_in_store(path: Path, batch_id: str | None, as_data: bool) -> None:
    with open_to_read(path) as store:
        result = analyse_agreement(store, batch_id)
    if as_data:
        print_json(as_json.agreement(result))
    else:
        print_lines(text.agreement(result))
    if not result.overall.alpha.ok:
        raise CalibrationError("alpha cannot be estimated; the status says what would help")


@click.command()
@with_store
@with_batch
@with_judge
@with_json
def calibrate(
    path: Path, batch_id: str | None, judge_id: str | None, design: Design, as_data: bool
) -> None:
    """Hold a judge against the human labels and correct the rate for its errors.

    \b
    asr calibrate --judge source: --json
    """
    with open_to_read(path) as store:
        result = analyse_judge(store, batch_id, judge_id=judge_id, design=design)
    if as_data:
        print_json(as_json.judge(result))
    else:
        print_lines(text.judge(result))
    if result.calibration.headline is None:
        raise CalibrationError("no corrected rate can be given; the refusals say what would help")


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


COMMANDS = (agreement, calibrate, report)
