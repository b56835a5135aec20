"""The commands of the taxonomy: show it, use your own, and find out what its numbers could be."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from calibration.analyses.success_rate.suggestions import (
    ceilings_from_files,
    ceilings_from_store,
    fit_credit_of,
)
from calibration.cli.production_options import (
    PLACES,
    READ_FILES,
    READING,
    keep_inputs,
    one_place,
    options_from,
    taxonomy_from,
    with_places,
    with_reading,
)
from calibration.cli.reading_options import FileCommand, with_reading_options
from calibration.cli.terminal import (
    EXISTING,
    RUBRIC,
    FiniteRange,
    Group,
    Output,
    open_to_read,
    open_to_write,
    print_json,
    print_lines,
    print_result,
    refuse_given,
    taxonomy_in_force,
    with_batch,
    with_confidence,
    with_json,
    with_output,
    with_seed,
    with_store,
)
from calibration.errors import CalibrationError
from calibration.reporting.sections import taxonomy as sections
from calibration.tables.reading import ReadingOptions
from calibration.taxonomy import Taxonomy, load_taxonomy
from calibration.text import own_credit


@click.group(cls=Group)
def taxonomy() -> None:
    """Show the classes, credits and questions in force, or use your own."""


@taxonomy.command()
@with_store
@with_json
def show(path: Path, as_data: bool) -> None:
    """Show the taxonomy in force: that of the store, or the published one.

    \b
    asr taxonomy show
    """
    _print_taxonomy(taxonomy_in_force(path), as_data)


@taxonomy.command()
@click.argument("file", type=RUBRIC)
@with_store
@with_json
def use(file: Path, path: Path, as_data: bool) -> None:
    """Put a taxonomy of your own (TOML) in force; a store that is not there yet is made.

    It has 2 to 9 classes and a tree of yes/no questions. Ready ones, by name: two_class (success or
    failure) and three_class (good, partial, bad).

    \b
    asr taxonomy use my-taxonomy.toml
    asr taxonomy use two_class
    """
    with open_to_write(path, create=True, taxonomy=load_taxonomy(file)) as store:
        in_force = store.taxonomy()
    _print_taxonomy(in_force, as_data)


@taxonomy.command()
@click.argument("files", nargs=-1)
@with_store
@with_batch
@click.option(
    "--percentile",
    type=FiniteRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Set the ceiling so that this share of acceptable runs is within it.",
)
@click.option("--out", type=EXISTING, help="Write the ceilings to this file, for a taxonomy.")
@click.option("--taxonomy", "fork", type=RUBRIC, help="Use a taxonomy of your own for files.")
@with_confidence
@with_reading
@with_places
@with_output
def suggest(
    files: tuple[str, ...],
    path: Path,
    batch_id: str | None,
    percentile: float,
    out: Path | None,
    fork: Path | None,
    confidence: float,
    asked: dict[str, Any],
    servers: dict[str, Any],
    output: Output,
) -> None:
    """Suggest cost ceilings from what acceptable runs of FILES, or of the store, cost.

    FILES are as for asr report. Without any, the labelled traces of the store are taken that all
    their reviewers accept. For each workflow: the present ceiling, the acceptable runs with a known
    cost, a percentile of their cost per unit with its interval, and the share of them above the
    present ceiling.

    \b
    asr taxonomy suggest runs.csv
    asr taxonomy suggest --store asr.duckdb --percentile 0.95 --out ceilings.toml
    """
    place = one_place(files, servers, asked["reading"].encoding)
    keep_inputs([*files, path, fork], [out])
    if place is None:
        refuse_given(["fork"], "files: the store has its own taxonomy")
        refuse_given((*READING, *READ_FILES, *PLACES), "files; name one")
        with open_to_read(path) as store:
            found = ceilings_from_store(
                store, batch_id, percentile=percentile, confidence_level=confidence
            )
    else:
        refuse_given(["batch_id", "path"], "a store; leave FILES out")
        options = replace(options_from(asked), confidence_level=confidence)
        found = ceilings_from_files(
            place, percentile=percentile, options=options, taxonomy=taxonomy_from(fork)
        )
    print_result(found, sections.ceilings, output)
    if out is not None:
        out.write_text(sections.fragment(found), encoding="utf-8")


@taxonomy.command(name="fit-credit", cls=FileCommand)
@click.argument("file", type=EXISTING)
@click.option("--taxonomy", "fork", type=RUBRIC, help="Use a taxonomy of your own.")
@click.option(
    "--resamples",
    type=click.IntRange(100, 100_000),
    default=1000,
    show_default=True,
    help="Draw this many bootstrap resamples of tasks.",
)
@with_reading_options("--column", "--map", "--where", "--decimal", "--encoding")
@with_seed
@with_confidence
@with_output
def fit_credit(
    file: Path,
    fork: Path | None,
    resamples: int,
    reading: ReadingOptions,
    seed: int,
    confidence: float,
    output: Output,
) -> None:
    """Fit the partial credit to how useful runs were.

    FILE has one run a row: class, and usefulness (0 to 100) or feedback (up or down, 1 or 0);
    optionally task_id. The fitted credit is shown beside .3, .4 and .5, with the rate at each.

    \b
    asr taxonomy fit-credit satisfaction.csv
    """
    found = fit_credit_of(
        file,
        options=reading,
        taxonomy=taxonomy_from(fork),
        seed=seed,
        n_resamples=resamples,
        confidence_level=confidence,
    )
    print_result(found, sections.fitted_credit, output)
    if found.found.credit.value is None:
        raise CalibrationError(found.found.credit.status.removeprefix("not_estimable: "))


def _print_taxonomy(shown: Taxonomy, as_data: bool) -> None:
    if as_data:
        print_json(shown.to_dict() | {"fingerprint": shown.fingerprint})
    else:
        print_lines(_taxonomy_lines(shown))


def _taxonomy_lines(shown: Taxonomy) -> Iterator[str]:
    """Yield classes, questions and the catalogue of tags of a taxonomy."""
    yield f"taxonomy {shown.version} ({shown.fingerprint[:12]})"
    for item in shown.classes:
        yield f"  {item.name:<14} credit {item.credit:g}  {item.meaning}"
    for node in shown.nodes:
        yield f"  {node.id}: {node.question}  yes -> {node.yes}, no -> {node.no}"
    own = shown.credit_table.differing(shown.names, shown.own_credit)
    yield from (f"  {line}" for line in own_credit(own))
    for pattern in shown.patterns:
        yield f"  tag {pattern.tag}: {pattern.definition}  Test: {pattern.test}"
