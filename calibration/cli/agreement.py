"""The command for reviewer agreement, in the store or in a file."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from calibration.agreement.inference import INTERVALS
from calibration.agreement.study import Options
from calibration.analyses.agreement.analysis import CLUSTERS, AgreementAnalysis, analyse_agreement
from calibration.analyses.agreement.ratings import (
    NAMES,
    agreement_on,
    read_ratings,
    weights_of,
)
from calibration.cli.reading_options import FileCommand, reading_params, with_reading_options
from calibration.cli.terminal import (
    Output,
    computing,
    open_to_read,
    print_result,
    refuse_given,
    with_batch,
    with_confidence,
    with_output,
    with_seed,
    with_store,
)
from calibration.errors import CalibrationError, InputError
from calibration.reporting.sections import agreement as text
from calibration.tables.reading import ReadingOptions

WEEK = "week"
READ = ("--column", "--map", "--where", "--raters", "--dates", "--encoding")
OF_FILE = ("classes", *reading_params(READ))
COMPUTING = "Computing agreement and its intervals"


@click.command(cls=FileCommand)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@with_store
@with_batch
@with_reading_options(*READ)
@click.option("--classes", help="List every class of FILE in order, separated by commas.")
@click.option(
    "--weights",
    default="identity",
    show_default=True,
    help="Weight disagreements by the distance of the classes: "
    f"{', '.join(NAMES)}, or a CSV file with a matrix.",
)
@click.option(
    "--by",
    type=click.Choice((*text.BY, text.PAIR)),
    multiple=True,
    help="Show these sections only; the option may be repeated. With FILE, week is a column of it.",
)
@click.option(
    "--interval",
    type=click.Choice(INTERVALS),
    default="jackknife",
    show_default=True,
    help="Choose the interval of the coefficients: jackknife with Fisher z, bootstrap (percentile "
    "or bca), or Gwet's.",
)
@click.option(
    "--cluster",
    help="Keep items together that depend on each other: those of a task in the store, or those "
    "with the same value in this column of FILE.",
)
@click.option(
    "--resamples",
    type=click.IntRange(100, 1_000_000),
    default=2000,
    show_default=True,
    help="Draw this many bootstrap resamples.",
)
@with_seed
@with_confidence
@with_output
def agreement(
    file: Path | None,
    path: Path,
    batch_id: str | None,
    reading: ReadingOptions,
    classes: str | None,
    weights: str,
    by: tuple[str, ...],
    interval: str,
    cluster: str | None,
    resamples: int,
    seed: int,
    confidence: float,
    output: Output,
) -> None:
    """Measure how far reviewers agree: in the store, or in a FILE of ratings.

    FILE has a row a rating, with the columns item, rater and label, or a row an item with a column
    for each rater; other names are read where they are clear. An empty cell, NA or None is a
    missing rating. Of two ratings of one person on one item the later one counts.

    \b
    asr agreement --json
    asr agreement --by node --by class
    asr agreement ratings.csv --classes no,maybe,yes --weights linear
    asr agreement sheet.csv --raters "Ann,Bo,gpt 4" --column item="Task ID" --map 1=yes,0=no
    asr agreement questions.csv --where criterion=tone
    """
    options = Options(
        interval=interval, n_resamples=resamples, seed=seed, confidence_level=confidence
    )
    if cluster is not None and interval == "gwet":
        raise InputError("--interval gwet is over items; take another one with --cluster")
    slices = by or text.BY
    output = replace(output, full=output.full or bool(by))
    if file is None:
        refuse_given(OF_FILE, "a FILE of ratings; name one")
        with computing(COMPUTING):
            found = _in_store(path, batch_id, options, weights, cluster)
        print_result(found, partial(text.agreement, by=slices), output)
        alpha = found.study.alpha
    else:
        refuse_given(["path", "batch_id"], "the store, not for a FILE of ratings")
        names = dict(reading.columns)
        week = names.pop(WEEK, None) or WEEK if WEEK in by else None
        reading = replace(reading, columns=names)
        with computing(COMPUTING):
            read = read_ratings(
                file,
                reading,
                classes=None if classes is None else classes.split(","),
                item_columns=[name for name in (cluster, week) if name is not None],
            )
            rated = agreement_on(
                read, weights=weights, options=options, cluster=cluster, group=week
            )
        print_result(rated, partial(text.ratings, by=slices), output)
        alpha = rated.study.alpha
    if not alpha.ok:
        raise CalibrationError("alpha cannot be estimated; the status says what would help")


def _in_store(
    path: Path, batch_id: str | None, options: Options, weights: str, cluster: str | None
) -> AgreementAnalysis:
    if cluster not in (None, *CLUSTERS):
        raise InputError(f"--cluster of the store must be one of {', '.join(CLUSTERS)}")
    with open_to_read(path) as store:
        matrix = weights_of(weights, store.taxonomy().names)
        return analyse_agreement(
            store,
            batch_id,
            options=replace(options, weights=matrix, ordinal=matrix is None),
            cluster=cluster or "trace",
        )
