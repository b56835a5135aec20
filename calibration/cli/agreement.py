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
    RatingsAgreement,
    agreement_on,
    read_ratings,
    weights_of,
)
from calibration.cli.terminal import (
    open_to_read,
    print_result,
    with_batch,
    with_output,
    with_store,
)
from calibration.errors import CalibrationError, InputError
from calibration.reporting.sections import agreement as text

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
@with_output
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
    as_markdown: bool,
    page: Path | None,
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
    slices = by or text.BY
    if file is None:
        if layout or classes:
            raise InputError("--format and --classes are for a FILE of ratings")
        found = _in_store(path, batch_id, options, weights, cluster)
        print_result(found, partial(text.agreement, by=slices), as_data, as_markdown, page)
        alpha = found.study.alpha
    else:
        if batch_id is not None:
            raise InputError("--batch is for the store, not for a FILE of ratings")
        rated = _in_file(file, layout, classes, options, weights, cluster, WEEK in by)
        print_result(rated, partial(text.ratings, by=slices), as_data, as_markdown, page)
        alpha = rated.study.alpha
    if not alpha.ok:
        raise CalibrationError("alpha cannot be estimated; the status says what would help")


def _in_file(
    file: Path,
    layout: str | None,
    classes: str | None,
    options: Options,
    weights: str,
    cluster: str | None,
    by_week: bool,
) -> RatingsAgreement:
    week = WEEK if by_week else None
    columns = [name for name in (cluster, week) if name is not None]
    given = None if classes is None else classes.split(",")
    read = read_ratings(file, layout=layout, classes=given, item_columns=columns)
    return agreement_on(read, weights=weights, options=options, cluster=cluster, group=week)


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
