"""The command for reviewer agreement, in the store or in a file."""

from dataclasses import replace
from pathlib import Path

import click

from calibration.agreement.inference import INTERVALS
from calibration.agreement.study import Options
from calibration.analyses.agreement.analysis import CLUSTERS, analyse_agreement
from calibration.analyses.agreement.ratings import NAMES, agreement_on, read_ratings, weights_of
from calibration.cli.terminal import (
    open_to_read,
    print_json,
    print_lines,
    with_batch,
    with_json,
    with_store,
)
from calibration.errors import CalibrationError, InputError
from calibration.reporting import to_json
from calibration.reporting.document import text_lines
from calibration.reporting.sections import agreement as text
from calibration.statistics.estimate import Estimate

WEEK = "week"


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
    help=f"{', '.join(NAMES)}, or a CSV file with a matrix; by place in the classes.",
)
@click.option(
    "--by",
    type=click.Choice(text.BY),
    multiple=True,
    help="Show these slices only; may be given more than once. A week of FILE is its column week.",
)
@click.option(
    "--interval",
    type=click.Choice(INTERVALS),
    default="jackknife",
    show_default=True,
    help="Of the coefficients: jackknife with Fisher z, bootstrap (percentile, bca), or Gwet's.",
)
@click.option(
    "--cluster",
    help="The unit, where items of one are alike: task in the store, a column of FILE.",
)
@click.option("--resamples", type=click.IntRange(100, 1_000_000), default=2000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
)
@with_json
def agreement(
    file: Path | None,
    path: Path,
    batch_id: str | None,
    layout: str | None,
    classes: str | None,
    weights: str,
    by: tuple[str, ...],
    interval: str,
    cluster: str | None,
    resamples: int,
    seed: int,
    confidence: float,
    as_data: bool,
) -> None:
    """Measure how far reviewers agree: in the store, or in a FILE of ratings.

    \b
    asr agreement --json
    asr agreement --by node --by class
    asr agreement ratings.csv --classes no,maybe,yes --weights linear
    """
    options = Options(
        interval=interval, n_resamples=resamples, seed=seed, confidence_level=confidence
    )
    if cluster is not None and interval == "gwet":
        raise InputError("--interval gwet is over items; take another one with --cluster")
    if file is None:
        if layout or classes:
            raise InputError("--format and --classes are for a FILE of ratings")
        alpha = _in_store(path, batch_id, options, weights, cluster, by, as_data)
    else:
        if batch_id is not None:
            raise InputError("--batch is for the store, not for a FILE of ratings")
        alpha = _in_file(file, layout, classes, options, weights, cluster, by, as_data)
    if not alpha.ok:
        raise CalibrationError("alpha cannot be estimated; the status says what would help")


def _in_file(
    file: Path,
    layout: str | None,
    classes: str | None,
    options: Options,
    weights: str,
    cluster: str | None,
    by: tuple[str, ...],
    as_data: bool,
) -> Estimate:
    week = WEEK if WEEK in by else None
    columns = [name for name in (cluster, week) if name is not None]
    given = None if classes is None else classes.split(",")
    read = read_ratings(file, layout=layout, classes=given, item_columns=columns)
    result = agreement_on(read, weights=weights, options=options, cluster=cluster, group=week)
    if as_data:
        print_json(to_json.data(result))
    else:
        print_lines(text_lines(text.ratings(result, by or text.BY)))
    return result.study.alpha


def _in_store(
    path: Path,
    batch_id: str | None,
    options: Options,
    weights: str,
    cluster: str | None,
    by: tuple[str, ...],
    as_data: bool,
) -> Estimate:
    if cluster not in (None, *CLUSTERS):
        raise InputError(f"--cluster of the store must be one of {', '.join(CLUSTERS)}")
    with open_to_read(path) as store:
        matrix = weights_of(weights, store.taxonomy().names)
        result = analyse_agreement(
            store,
            batch_id,
            options=replace(options, weights=matrix, ordinal=matrix is None),
            cluster=cluster or "trace",
        )
    if as_data:
        print_json(to_json.data(result))
    else:
        print_lines(text_lines(text.agreement(result, by or text.BY)))
    return result.study.alpha
