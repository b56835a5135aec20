"""The command that calibrates a judge against the humans: in the store, in files, or in tables."""

from dataclasses import replace
from pathlib import Path

import click

from calibration.analyses.evidence.data import BY
from calibration.analyses.evidence.from_files import Ceilings, Unjudged, load_tables, read_tables
from calibration.analyses.judge.calibration import CalibrationOptions
from calibration.analyses.judge.report import report_on, report_on_store
from calibration.cli.reading_options import (
    OF_ANSWERS,
    FileCommand,
    reading_params,
    with_reading_options,
)
from calibration.cli.terminal import (
    DESIGN,
    USE_JUDGE,
    FiniteRange,
    Output,
    computing,
    credit_of,
    named,
    open_to_read,
    print_result,
    refuse_given,
    with_batch,
    with_confidence,
    with_estimand,
    with_output,
    with_seed,
    with_store,
)
from calibration.errors import CalibrationError, InputError
from calibration.judge_calibration.post_stratification import Estimand
from calibration.judge_calibration.samples import Design
from calibration.reporting.sections import judge
from calibration.tables.labels import read_ceilings
from calibration.tables.reading import ReadingOptions
from calibration.tables.vocabulary import Rest, Vocabulary, of_one_table, of_two_tables

FILE = click.Path(path_type=Path)
COMPUTING = "Computing rates and their intervals"
OF_FILES = (
    "classes", "credit", "rest", "merge", "ceilings", "ceiling", *reading_params(OF_ANSWERS),
    "workflow", "unjudged", "overlap",
)  # fmt: skip


def _merge(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> dict[str, list[str]] | None:
    """Read `a+b=wrong,c+d=other`."""
    if value is None:
        return None
    merged: dict[str, list[str]] = {}
    for names, new in named(value, "CLASS+CLASS=NAME"):
        if new in merged:
            raise click.BadParameter(f"names {new!r:.80} twice")
        merged[new] = [name.strip() for name in names.split("+")]
    return merged


@click.command(cls=FileCommand)
@with_store
@with_batch
@click.option(
    "--judge",
    "judge_id",
    help=f"{USE_JUDGE} With files, the column judge names it.",
)
@click.option(
    "--human",
    type=FILE,
    help="Read the labels from this file: trace_id, outcome (empty for a skipped trace), and "
    "optionally reviewer, adjudicated, weight, cluster, rationale, exposed, perturbation, "
    "updated_at.",
)
@click.option(
    "--verdicts",
    type=FILE,
    help="Read the verdicts from this file: trace_id, outcome, workflow, cost_usd, and optionally "
    "task_id, stratum, units, ceiling_usd, started_at, judge, agent, model, steps, response_chars, "
    "reason, grade, sample.",
)
@click.option(
    "--table",
    type=FILE,
    help="Read labels and verdicts from this one file, a row a trace: the columns human, verdict "
    "and trace_id, under other names with --column, and any column of --human and --verdicts. "
    "Without trace_id each row is a trace.",
)
@with_reading_options(*OF_ANSWERS)
@click.option(
    "--counts",
    type=FILE,
    help="Read counted tables from this JSON file, which names the design itself.",
)
@click.option(
    "--design",
    type=click.Choice(["production", "reference"]),
    show_default="production",
    help=DESIGN,
)
@click.option("--classes", help="List every class of the files in order, separated by commas.")
@click.option(
    "--credit",
    callback=credit_of,
    metavar="CLASS=NUMBER,...",
    help="Say what each class of the files is worth; classes of the taxonomy have its credit.",
)
@click.option(
    "--rest",
    type=click.Choice(["no_verdict"]),
    help="Take every other verdict of the files that is not a class as this.",
)
@click.option(
    "--merge",
    callback=_merge,
    metavar="CLASS+CLASS=NAME,...",
    help="Merge classes of the labels and verdicts in the files into one.",
)
@click.option(
    "--ceilings", type=FILE, help="Read cost ceilings from this file: workflow, ceiling_usd."
)
@click.option(
    "--ceiling",
    type=FiniteRange(0, 1_000_000, min_open=True),
    help="Set the cost ceiling of the files in USD per unit, for every workflow or for the one "
    "that --workflow names; without it, the taxonomy has the ceilings.",
)
@click.option("--workflow", help="Name the workflow that --ceiling is for.")
@click.option(
    "--pseudo-count",
    type=FiniteRange(0, 1000),
    default=0.5,
    show_default=True,
    help="Spread this count over each row of the error rates before they are inverted.",
)
@with_confidence
@with_seed
@with_estimand
@click.option(
    "--unjudged",
    type=click.Choice(["no_verdict", "outside"]),
    help="Say what a labelled trace without a verdict is: not answered by the judge, or outside of "
    "production.",
)
@click.option(
    "--overlap",
    type=click.Choice(["random"]),
    help="State that the traces with two labels are a random part of the labelled ones.",
)
@click.option(
    "--by", type=click.Choice(BY), help="Add the rate of each group, and their differences."
)
@click.option(
    "--against",
    help="Add the change since this earlier judge; with files, it may be a verdict file.",
)
@click.option(
    "--judge-family",
    metavar="WORD",
    help="Name a word that the models of the judge's own family have in their name.",
)
@click.option("--brief", is_flag=True, help="Leave out the diagnostics, which take longest.")
@with_output
def calibrate(
    path: Path,
    batch_id: str | None,
    judge_id: str | None,
    human: Path | None,
    verdicts: Path | None,
    table: Path | None,
    reading: ReadingOptions,
    counts: Path | None,
    design: Design | None,
    classes: str | None,
    credit: dict[str, float] | None,
    rest: Rest | None,
    merge: dict[str, list[str]] | None,
    ceilings: Path | None,
    ceiling: float | None,
    workflow: str | None,
    pseudo_count: float,
    confidence: float,
    seed: int,
    estimand: Estimand,
    unjudged: Unjudged | None,
    overlap: str | None,
    by: str | None,
    against: str | None,
    judge_family: str | None,
    brief: bool,
    output: Output,
) -> None:
    """Compare a judge with the human labels, and correct the rate for its errors.

    The labels and verdicts are those of the store, of two files, of one table that holds both, or
    counted in tables. With two files --column goes for those that have the column; human and
    verdict name the classes of one of them. Where all labels and verdicts say pass or fail, the
    classes are success and failure; --classes takes words in exactly their spelling.

    \b
    asr calibrate --judge judge-v2 --against judge-v1 --by agent
    asr calibrate --human labels.csv --verdicts verdicts.csv --design reference --ceiling 0.05
    asr calibrate --human labels.csv --verdicts verdicts.csv --map pass=complete,fail=abandoned
    asr calibrate --table judged.csv --column verdict="gpt 4" --map 1=pass,0=fail
    asr calibrate --counts tables.json --json
    asr calibrate --judge judge-v2 --html judge.html
    """
    options = CalibrationOptions(
        design=design or "production", pseudo_count=pseudo_count, confidence_level=confidence,
        seed=seed, estimand=estimand, diagnostics=not brief,
        by=by, against=against, judge_family=judge_family,
    )  # fmt: skip
    if options.estimand == "these_runs" and (by is not None or options.design == "reference"):
        raise InputError(
            "--estimand these-runs is the rate of one random sample of these runs; leave out "
            f"{'--by' if by is not None else '--design reference'}"
        )
    if counts is not None:
        refuse_given(("path", "batch_id"), "the store, not for --counts")
        refuse_given(
            (*OF_FILES, "judge_id", "human", "verdicts", "table", "design"),
            "labels and verdicts, not for --counts, which says it itself",
        )
        refuse_given(
            ("by", "against", "judge_family"), "traces, not for --counts, which knows none"
        )
        data, counted_design = read_tables(counts)
        with computing(COMPUTING):
            report = report_on(data, replace(options, design=counted_design))
    elif human is not None or verdicts is not None or table is not None:
        refuse_given(("path", "batch_id"), "the store, not for files")
        if table is not None:
            refuse_given(("human", "verdicts"), "two files, not for --table, which holds both")
            tables = of_one_table(table, reading, judge_id=judge_id, against=against)
        elif human is not None and verdicts is not None:
            tables = of_two_tables(human, verdicts, reading, judge_id=judge_id, against=against)
        else:
            raise InputError("--human and --verdicts are needed together; --table holds both")
        data = load_tables(
            tables.labels,
            tables.verdicts,
            design=options.design,
            classes=None if classes is None else classes.split(","),
            credit=credit,
            ceilings=_ceilings(ceilings, ceiling, workflow),
            unjudged=unjudged,
            overlap_random=overlap == "random",
            vocabulary=Vocabulary(mapped=reading.mapped, rest=rest, merged=merge or {}),
            reading=reading,
            further=() if tables.against is None else (tables.against,),
        )
        with computing(COMPUTING):
            report = report_on(data, options, tables.against)
    else:
        refuse_given(OF_FILES, "--human and --verdicts or --table, not for the store")
        with open_to_read(path) as store, computing(COMPUTING):
            report = report_on_store(store, batch_id, judge_id, options)
    print_result(report, judge.document, output)
    if report.calibration.calibration.headline is None:
        raise CalibrationError("no corrected rate can be given; the refusals say what would help")


def _ceilings(file: Path | None, ceiling: float | None, workflow: str | None) -> Ceilings:
    """Return the ceilings; the command line overrides the file."""
    by_workflow = {} if file is None else read_ceilings(file)
    if workflow is None:
        return Ceilings(by_workflow=by_workflow, otherwise=ceiling)
    if ceiling is None:
        raise InputError("--workflow is the workflow that --ceiling is for")
    return Ceilings(by_workflow={**by_workflow, workflow: ceiling})
