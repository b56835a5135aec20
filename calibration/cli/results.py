"""Commands for reports; stores and engines, which load in a second, are imported on use."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibration.analyses.success_rate.report import PREVIOUS, saved_report, verify_report
from calibration.cli.production_options import (
    FILE,
    LIMIT,
    PLACES,
    READ_FILES,
    memory_from,
    one_place,
    options_from,
    places_from,
    taxonomy_from,
    with_memory,
    with_places,
    with_reading,
)
from calibration.cli.reading_options import FileCommand, with_reading_options
from calibration.cli.terminal import (
    RUBRIC,
    USE_JUDGE,
    FiniteRange,
    Output,
    computing,
    print_json,
    print_lines,
    print_result,
    refuse_given,
    with_batch,
    with_confidence,
    with_estimand,
    with_given,
    with_json,
    with_judge,
    with_output,
    with_store,
)
from calibration.errors import CalibrationError, InputError
from calibration.reporting.sections import success_rate
from calibration.tables.reading import ReadingOptions

if TYPE_CHECKING:
    from calibration.judge_calibration.post_stratification import Estimand
    from calibration.judge_calibration.samples import Design
    from calibration.runs.sources import Place
    from calibration.success_rate.comparison import Rule


MARGIN = 5.0
TABLES = "files and tables; name one"
# Options for tables, and those for outcomes that are taken as given, also in a store.
OF_FILES = ("only_known_workflows", *(name for name in READ_FILES if name != LIMIT))
OF_GIVEN = ("ceiling", "ceilings", "credit", "stratify", "force", LIMIT)
OF_LABELS = ("batch_id", "design", "estimand")


@click.command(cls=FileCommand)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@with_output
@with_places
@with_reading
@click.option(
    "--window",
    type=click.Choice(["week"]),
    default="week",
    show_default=True,
    help="Make the series of these windows.",
)
@click.option(
    "--compare-to",
    default=PREVIOUS,
    show_default=True,
    metavar="previous|none|FILE",
    help="Compare with the window before --from, or the last week with the one before it "
    "(previous), with nothing (none), or with the runs of a file.",
)
@click.option("--pooled", is_flag=True, help="Weight weeks by their runs in the rolling mean.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME=SHARE",
    help="Say how far the rate (asr=.70) or a class (complete=.65) is from this goal.",
)
@click.option(
    "--context-window",
    type=click.IntRange(1, 10**9),
    metavar="TOKENS",
    help="Take this as the context window of runs that state none.",
)
@click.option("--work", "folder", type=FILE, help="Write the review queue as CSV to this folder.")
@click.option("--taxonomy", "fork", type=RUBRIC, help="Use a taxonomy of your own.")
@click.option("--workflow", help="Report on one workflow of the store alone.")
@with_estimand
@with_store
@with_batch
@with_judge
@with_given
def report(
    files: tuple[str, ...],
    output: Output,
    servers: dict[str, Any],
    asked: dict[str, Any],
    window: str,
    compare_to: str,
    pooled: bool,
    targets: tuple[str, ...],
    context_window: int | None,
    folder: Path | None,
    fork: Path | None,
    workflow: str | None,
    estimand: "Estimand",
    path: Path,
    batch_id: str | None,
    judge_id: str | None,
    design: "Design",
    as_given: bool,
) -> None:
    """Report the Agent Success Rate of production traces, or of the store.

    With FILEs (CSV, JSONL, Parquet; patterns too), a PostgreSQL table or files that Spark reads no
    store is needed: the outcomes are taken as given. A .json file holds results of SWE-bench, BFCL,
    MLE-bench, Terminal-Bench or Harbor, or rows. A table needs a column with the outcome of each
    run, by our name or another common one: `asr look FILE` shows which columns are read as what,
    and docs/tables.md lists them all.

    Without a FILE it reports on the labels and verdicts of the store: uncorrected,
    human-only and corrected rate, for all traces, a window or a workflow. Before anybody has
    labelled, --judge source:NAME takes the outcomes that came with the runs as given, such as the
    rewards of a benchmark; the report says that no reviewer has checked them.

    \b
    asr report traces.csv
    asr report 'traces/*.parquet' --from 2026-W40 --to 2026-W43 --html report.html
    asr report traces.jsonl --column cost_usd=price --ceiling research=1.50 --json > report.json
    asr report --postgres postgresql://asr@db.example/traces --table public.runs
    asr report --spark 's3a://traces/2026-11/*.parquet' --html report.html
    asr report --judge source:tau2 --json
    asr report --from 2026-W40 --to 2026-W43 --workflow research --work todo
    """
    options = replace(
        options_from(asked, compare_to=compare_to, pooled=pooled, targets=targets),
        batch_id=batch_id,
        judge_id=judge_id,
        as_given=as_given,
        design=design,
        estimand=estimand,
        workflow=workflow,
        context_window=context_window,
    )
    place = one_place(files, servers, asked["reading"].encoding)
    if place is not None:
        from calibration.analyses.success_rate.from_runs import report_on_files, write_work_lists

        refuse_given(["workflow"], "the store; give runs of one workflow")
        refuse_given(["as_given"], "the store: outcomes of a file always are")
        refuse_given(["path", "batch_id", "judge_id", "design"], "the store; name no runs")
        if options.estimand == "these_runs":
            raise InputError(
                "--estimand these-runs is for the store: the outcome of every run in a file is "
                "taken as known, so the rate of these runs has no interval"
            )
        refuse_given(["estimand"], "the store; name no runs")
        with computing("Reading runs"):
            result = report_on_files(
                place, options=options, taxonomy=taxonomy_from(fork), taxonomy_path=fork
            )
        if folder is not None:
            _wrote(write_work_lists(place, folder, options=options, taxonomy=taxonomy_from(fork)))
    else:
        refuse_given((*OF_FILES, "fork", *PLACES), TABLES)
        from calibration.analyses.success_rate.assembly import write_work
        from calibration.analyses.success_rate.from_runs import write_work_lists
        from calibration.analyses.success_rate.from_store import (
            given_runs,
            labelled_csv,
            report_with_work,
        )
        from calibration.cli.terminal import open_to_read

        with open_to_read(path) as store, computing("Computing rates and their intervals"):
            given = given_runs(store, options)
            if given is None:
                refuse_given(OF_GIVEN, TABLES)
                found = report_with_work(store, options)
            else:
                refuse_given(OF_LABELS, "labels; here the outcomes are taken as given")
        if given is None:
            result, written = found.report, partial(labelled_csv, found.loaded)
            if folder is not None:
                _wrote(write_work(folder, found.loaded.taxonomy, written))
        else:
            with computing("Computing rates and their intervals"):
                result = given.report()
            if folder is not None:
                taxonomy = given.place.taxonomy
                options = given.options
                _wrote(write_work_lists(given.place, folder, options=options, taxonomy=taxonomy))
    print_result(result, success_rate.document, output)
    if not result.asr.ok:
        raise CalibrationError("no rate can be given; the status says what would help")


@click.command(cls=FileCommand)
@click.argument("files", nargs=-1, metavar="[A B]...")
@with_output
@with_places
@with_reading
@click.option("--margin", type=FiniteRange(0.01, 50), default=MARGIN, show_default=True,
              help="Set the smallest change that matters, in percentage points.")  # fmt: skip
@click.option(
    "--separate-intervals",
    is_flag=True,
    help="Require that the intervals do not overlap, which is stricter.",
)
@click.option(
    "--paired/--unpaired",
    default=None,
    help="Pair the tasks, or not; without it, tasks that both have are paired.",
)
@click.option(
    "--taxonomy",
    "forks",
    type=RUBRIC,
    multiple=True,
    help="Use this taxonomy for all; given once for each set of runs, each has its own.",
)
@click.option(
    "--taxonomy-b", "other", type=RUBRIC, help="Use another taxonomy for the second side."
)
@click.option("--by", metavar="COLUMN", help="Compare the groups of one input by this column.")
@click.option(
    "--baseline", metavar="NAME", help="Compare the others with this one; without it, the first."
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Name a set of runs, in their order; without it, files give the names.",
)
def compare(
    files: tuple[str, ...],
    output: Output,
    servers: dict[str, Any],
    asked: dict[str, Any],
    margin: float,
    separate_intervals: bool,
    paired: bool | None,
    forks: tuple[Path, ...],
    other: Path | None,
    by: str | None,
    baseline: str | None,
    names: tuple[str, ...],
) -> None:
    """Compare the Agent Success Rates of two sets of runs, B with A, or of 3 to 20.

    A and B are files or patterns, or two --table, or two --spark; no store is needed. Tasks that
    both have are resampled together. Exits with 0 whatever the verdict: `asr gate` passes or fails.

    With three or more, or the groups of one (--by), all are compared with a baseline and with each
    other, with p-values adjusted by Holm, and each has the range of its rank.

    \b
    asr compare before.csv after.csv
    asr compare before.parquet after.parquet --json
    asr compare --postgres service=traces --table before --table after
    asr compare old.csv new.csv other.csv --baseline old --html ranking.html
    asr compare runs.csv --by model
    """
    sides = places_from(files, servers, asked["reading"].encoding)
    if by is not None or baseline is not None or names or len(sides) != 2:
        refuse_given(["margin", "separate_intervals", "other"], "two sets of runs")
        _compare_several(sides, output, asked, paired, forks, by, baseline, names)
        return
    from calibration.analyses.success_rate.comparison import compare_files

    if len(forks) > 2 or (len(forks) > 1 and other is not None):
        raise InputError("--taxonomy: one for both sides, or one for each of them")
    rule: Rule = "separate intervals" if separate_intervals else "difference"
    one = forks[0] if forks else None
    paths = one, other or (forks[-1] if forks else None)
    result = compare_files(
        *sides,
        options=options_from(asked, compare_to=None),
        taxonomies=(taxonomy_from(paths[0]), taxonomy_from(paths[1])),
        taxonomy_paths=paths,
        margin=margin / 100,
        rule=rule,
        paired=paired,
    )
    print_result(result, success_rate.comparison_document, output)
    if not result.found.asr.estimate.ok:
        raise CalibrationError("no difference can be given; the status says what would help")


def _compare_several(
    sides: "Sequence[Place]",
    output: Output,
    asked: dict[str, Any],
    paired: bool | None,
    forks: Sequence[Path],
    by: str | None,
    baseline: str | None,
    names: Sequence[str],
) -> None:
    """Compare 3 to 20 sets of runs, or the groups of one."""
    from calibration.analyses.success_rate.comparison import compare_groups_of, compare_several
    from calibration.reporting.sections import ranking

    options = options_from(asked, compare_to=None)
    if by is None:
        result = compare_several(
            sides,
            names=names,
            baseline=baseline,
            options=options,
            taxonomies=[taxonomy_from(path) for path in forks],
            taxonomy_paths=forks,
            paired=paired,
        )
    else:
        if len(sides) != 1 or names or len(forks) > 1:
            raise InputError(
                "--by compares the groups of one input, which have their own names: name one, "
                "without --name and with one --taxonomy at most (for a store: asr calibrate --by)"
            )
        path = forks[0] if forks else None
        result = compare_groups_of(
            sides[0],
            by,
            baseline=baseline,
            options=options,
            taxonomy=taxonomy_from(path),
            taxonomy_path=path,
            paired=paired,
        )
    print_result(result, ranking.document, output)
    if not any(pair.difference.estimate.ok for pair in result.found.pairs):
        raise CalibrationError("no difference can be given; the status says what would help")


@click.command(cls=FileCommand)
@click.argument("file", type=FILE, required=False)
@click.option(
    "--layer",
    "layers",
    multiple=True,
    metavar="NAME",
    help="Name a layer of the FILE, in order, the user last.  [default: ci_gate, weekly_review, "
    "production_signal, user]",
)
@with_reading_options("--column", "--where", "--encoding")
@with_confidence
@with_store
@with_output
def layers(
    file: Path | None,
    layers: tuple[str, ...],
    reading: ReadingOptions,
    confidence: float,
    path: Path,
    output: Output,
) -> None:
    """Show which layer of evaluation caught which failures, and what only users found.

    FILE (CSV, JSONL, Parquet) has trace_id, failure_type, optionally task_id, and either a column
    layer, with one row a catch, or a column for each layer that is yes or no. Without a FILE the
    failures are those of the store: labels, feedback below 0, failed grades; and signals.

    \b
    asr layers failures.csv
    asr layers failures.csv --layer gate --layer review --layer support --json
    asr layers --store asr.duckdb
    """
    from calibration.analyses.layers import (
        LAYERS,
        OF_FAILURES,
        layers_of_store,
        layers_of_table,
    )
    from calibration.reporting.sections import layers as words
    from calibration.tables.rows import options_of_tables

    (reading,) = options_of_tables(reading, (file, (*OF_FAILURES, *LAYERS, *layers)))
    if file is not None:
        refuse_given(["path"], "the failures of a store; leave out FILE")
        found = layers_of_table(file, layers=layers, options=reading, confidence_level=confidence)
    else:
        from calibration.cli.terminal import open_to_read

        refuse_given(["layers"], "a file; name one")
        with open_to_read(path) as store:
            found = layers_of_store(store, confidence_level=confidence)
    print_result(found, words.document, output)


@click.command()
@click.argument("report")
@click.option("--in", "folder", type=FILE, default=Path(), help="Look for reports in this folder.")
@with_store
@with_memory
@with_json
def verify(report: str, folder: Path, path: Path, memory: str | None, as_data: bool) -> None:
    """Recompute a report, and say whether it comes out the same.

    REPORT is what `asr report --json` printed, or its fingerprint. Exits with 1 if something
    differs: inputs, settings, taxonomy, version or numbers.

    \b
    asr verify report.json
    asr verify 1098f1357550 --in reports
    asr verify report.json --store asr.duckdb
    """
    saved = saved_report(report, folder)
    limit = memory_from(memory, files=not saved.of_store)
    if not saved.of_store:
        refuse_given(["path"], "a report on a store; this one is on files")
    if saved.of_store:
        from calibration.analyses.success_rate.from_store import report_on_store
        from calibration.cli.terminal import open_to_read

        with open_to_read(path) as store:
            now = report_on_store(store, saved.options)
    else:
        from calibration.analyses.success_rate.from_runs import report_on_files
        from calibration.runs.sources import place_of_settings

        now = report_on_files(
            place_of_settings(saved.settings, limit),
            options=saved.options,
            taxonomy=taxonomy_from(saved.taxonomy),
            taxonomy_path=saved.taxonomy,
        )
    found = verify_report(saved, now)
    if as_data:
        from calibration.reporting import to_json

        print_json(
            {
                "report": str(found.path),
                "same": found.same,
                "fingerprint": found.saved,
                "recomputed": found.recomputed,
                "differences": list(found.differences),
                "asr": to_json.data(now.asr),
            }
        )
    else:
        print_lines(
            [
                f"{'the same' if found.same else 'NOT the same'}: {found.path}",
                f"  then {found.saved}",
                f"  now  {found.recomputed}",
                *(f"  {difference}" for difference in found.differences),
            ]
        )
    if not found.same:
        raise CalibrationError("the report does not come out the same")


@click.command()
@with_store
@click.option("--judge", "judge_id", help=USE_JUDGE)
@with_output
def status(path: Path, judge_id: str | None, output: Output) -> None:
    """Print the rate of the store, its trend, and what to do next.

    \b
    asr status
    asr status --judge my-judge-v3 --json
    """
    from calibration.analyses.status import store_status
    from calibration.cli.terminal import open_to_read
    from calibration.reporting.sections import status as words

    with open_to_read(path) as store:
        found = store_status(store, judge_id=judge_id)
    print_result(found, words.document, output)


def _wrote(files: Sequence[Path]) -> None:
    click.echo(f"wrote {', '.join(map(str, files))}", err=True)
