"""Commands that import traces, verdicts and labels, and export labels."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from calibration.analyses import imports, trace_files
from calibration.analyses.evidence.from_store import (
    choose_batch,
    pooled_id,
)
from calibration.analyses.judge.calibration import calibrated_labels
from calibration.cli.terminal import (
    EXISTING,
    RUBRIC,
    USE_JUDGE,
    Group,
    computing,
    open_to_read,
    open_to_write,
    print_json,
    print_lines,
    print_next,
    progress,
    taxonomy_in_force,
    with_batch,
    with_json,
    with_store,
)
from calibration.errors import CalibrationError, InputError
from calibration.records import CONSTRAINTS, SetAside
from calibration.reporting import to_json
from calibration.reporting.csv_exports import FORMATS as TABLES
from calibration.reporting.csv_exports import write_labels
from calibration.reporting.document import SIMULATED, percent_number
from calibration.store import Store, make_way
from calibration.tables.rows import Row, as_csv
from calibration.taxonomy import Taxonomy, load_taxonomy
from calibration.trace_formats import FORMATS, ImportSettings, load_settings

with_csv = click.option(
    "--output", type=EXISTING, help="Write to this file; without it, the rows are printed."
)

# Rows shown of those skipped for one reason.
EXAMPLES = 3


@click.command(name="import")
@click.argument("paths", nargs=-1, required=True, type=EXISTING)
@with_store
@click.option("--workflow", help="Give every run in these files this workflow.")
@click.option("--ceiling", type=float, help="Set the cost ceiling of a run in USD per unit.")
@click.option("--unit", help="Name the unit of the ceiling, such as ticket, document or task.")
@click.option(
    "--timezone",
    help="Read times without a zone in this one, such as Europe/Berlin; without it, in UTC.",
)
@click.option(
    "--mapping", type=EXISTING, help="Read all of this for each workflow from a TOML file."
)
@click.option(
    "--taxonomy", type=RUBRIC, help="Give a new store this taxonomy: a TOML file, or two_class."
)
@click.option("--take-changed", is_flag=True, help="Replace stored runs whose content has changed.")
@click.option(
    "--human-scores",
    metavar="BATCH",
    help="Store the scores of people in the files as labels of this batch, marked as not blind.",
)
@click.option(
    "--formats",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda *given: _print_formats(*given),
    help="List the formats that are read, and how each is recognised.",
)
@click.option("--yes", is_flag=True, help="Import without asking.")
@with_json
def import_(
    paths: tuple[Path, ...],
    path: Path,
    workflow: str | None,
    ceiling: float | None,
    unit: str | None,
    timezone: str | None,
    mapping: Path | None,
    taxonomy: Path | None,
    take_changed: bool,
    human_scores: str | None,
    yes: bool,
    as_data: bool,
) -> None:
    """Import trace files, folders of them and patterns; each is recognised by its content.

    Files compressed by gzip or Zstandard are read as they are. --formats lists what is read.

    \b
    asr import results/*.json --workflow airline --ceiling 0.30 --unit conversation
    asr import traces.jsonl --mapping workflows.toml --yes
    asr import logs/ --yes
    """
    make_way(path)
    settings = _settings(mapping, workflow, ceiling, unit, timezone)
    rules = None if taxonomy is None else load_taxonomy(taxonomy)
    settings = replace(settings, taxonomy=taxonomy_in_force(path, rules))
    with progress() as told:
        read = trace_files.read_files(paths, settings, told=told)
    if not as_data:
        print_lines(trace_files.preview_lines(read))
        asks = not yes and sys.stdin.isatty() and sys.stdout.isatty()
        if (
            asks
            and read.preview.n_traces
            and not click.confirm(f"Import into {path}?", default=True)
        ):
            raise click.Abort
    with _open_for_import(path, rules) as store:
        if human_scores is not None:
            human_scores = choose_batch(store, human_scores).batch_id
        with computing(f"Storing {read.preview.n_traces:,} runs"):
            report = trace_files.store_files(
                store, read, settings, take_changed=take_changed, human_batch=human_scores
            )
    if as_data:
        print_json(to_json.data(report))
    else:
        print_lines(import_lines(report))
        print_next("status")
    if not read.preview.n_traces:
        raise CalibrationError("no trace could be read from these files")


def _print_formats(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        print_lines(f"{importer.title}: {importer.expects}" for importer in FORMATS)
        context.exit()


def _open_for_import(path: Path, rules: Taxonomy | None) -> Store:
    """Open or create a store; its taxonomy is set only on creation."""
    if rules is None or not path.exists():
        return open_to_write(path, create=True, taxonomy=rules)
    store = open_to_write(path)
    in_force = store.taxonomy()
    if in_force.fingerprint != rules.fingerprint:
        store.close()
        raise InputError(
            f"{path}: taxonomy {in_force.version!r} is in force there; "
            "`asr taxonomy use FILE` puts another one in force"
        )
    return store


def _settings(
    mapping: Path | None,
    workflow: str | None,
    ceiling: float | None,
    unit: str | None,
    timezone: str | None,
) -> ImportSettings:
    if unit is not None and not unit.strip():
        raise InputError("unit must be a name, got a blank one")
    base = ImportSettings() if mapping is None else load_settings(mapping)
    return ImportSettings(
        workflow=base.workflow if workflow is None else workflow,
        ceiling_usd=base.ceiling_usd if ceiling is None else ceiling,
        unit=base.unit if unit is None else unit,
        timezone=base.timezone if timezone is None else timezone,
        workflows=base.workflows,
    )


@click.group(cls=Group)
def verdicts() -> None:
    """Import and export the verdicts of a judge."""


@verdicts.command(name="import")
@click.argument("file", type=EXISTING)
@click.option("--judge", "judge_id", required=True, help="Name the judge, with its version.")
@with_store
@with_json
def import_verdicts(file: Path, judge_id: str, path: Path, as_data: bool) -> None:
    """Import the verdicts of a judge from CSV or JSONL.

    Fields: trace_id, outcome; optional reason, evidence_step and evidence_quote (JSONL: evidence, a
    list of step_id and quote), sample (1 and up when it was asked again), grade (1 to 5). A row
    with a grade and no outcome has the class that the grade proposes: 5 is success, 4 partly
    correct, less a failed check that a person must confirm.

    \b
    asr verdicts import judge.csv --judge gpt-x-prompt-3
    """
    with open_to_write(path) as store:
        done = imports.import_verdicts(store, file, judge_id=judge_id)
    if as_data:
        print_json(
            {
                "stored": len(done.imported),
                "already_there": len(done.already_there),
                "changed": list(done.changed),
                "unknown_traces": list(done.unknown),
            }
        )
    else:
        click.echo(
            f"{len(done.imported)} stored, {len(done.already_there)} already there, "
            f"{len(done.changed)} differ from stored ones (kept), "
            f"{len(done.unknown)} for traces not in the store"
        )
        print_next(f"calibrate --judge {shlex.quote(judge_id)}")


@verdicts.command(name="export")
@with_store
@with_batch
@click.option("--judge", "judge_id", help=USE_JUDGE)
@with_csv
def export_verdicts(
    path: Path, batch_id: str | None, judge_id: str | None, output: Path | None
) -> None:
    """Write the verdicts of a judge on all traces that a batch was drawn from.

    With the labels of the batch, `asr calibrate` gives the rate that it gives on the store.

    \b
    asr labels export --output labels.csv
    asr verdicts export --judge judge-v2 --output verdicts.csv
    asr calibrate --human labels.csv --verdicts verdicts.csv --overlap random
    """
    with open_to_read(path) as store:
        rows = imports.stored_verdict_rows(store, pooled_id(store, batch_id), judge_id)
        simulated = store.is_simulated()
    _write_csv(path, output, imports.VERDICT_COLUMNS, rows, simulated=simulated)


@click.group(cls=Group)
def labels() -> None:
    """Import and export labels as CSV."""


@labels.command(name="export")
@with_store
@with_batch
@with_csv
def export_labels(path: Path, batch_id: str | None, output: Path | None) -> None:
    """Write the labels, skips and adjudicated classes of a batch as CSV.

    \b
    asr labels export --output labels.csv
    """
    with open_to_read(path) as store:
        rows = imports.stored_label_rows(store, pooled_id(store, batch_id))
        simulated = store.is_simulated()
    _write_csv(path, output, imports.LABEL_COLUMNS, rows, simulated=simulated)


def _write_csv(
    path: Path, output: Path | None, columns: Sequence[str], rows: Sequence[Row], *, simulated: bool
) -> None:
    """Write rows of a store to a file, or to standard output."""
    if output is not None and output.exists() and output.samefile(path):
        raise InputError(f"{output}: is the store itself; choose another file for --output")
    text = as_csv(columns, rows)
    if output is None:
        click.echo(text, nl=False)
        return
    output.write_text(text, encoding="utf-8", newline="")
    print_lines([SIMULATED] if simulated else [])
    print_lines([f"{len(rows):,} rows in {output}"])


@labels.command(name="violations")
@click.argument("state", type=click.Choice(["on", "off"]), required=False)
@with_store
@with_json
def violations(state: str | None, path: Path, as_data: bool) -> None:
    """Ask reviewers for safety violations beside the class, or no more; off by default.

    Without a state the command says whether they are asked. It concerns the labels of production
    batches from then on.

    \b
    asr labels violations on
    """
    if state is None:
        with open_to_read(path) as store:
            on = store.marks_violations()
    else:
        with open_to_write(path) as store:
            store.set_violation_marking(state == "on")
        on = state == "on"
    if as_data:
        print_json({"violations": on, "constraints": list(CONSTRAINTS)})
    elif on:
        print_lines(["reviewers are asked for violations of", *(f"  {c}" for c in CONSTRAINTS)])
    else:
        print_lines(["reviewers are not asked for safety violations"])


@labels.command(name="calibrated")
@with_store
@with_batch
@click.option("--judge", "judge_id", help=USE_JUDGE)
@click.option(
    "--out",
    type=EXISTING,
    required=True,
    help="Write to this file, which ends in .csv, .parquet or .jsonl.",
)
def calibrated(path: Path, batch_id: str | None, judge_id: str | None, out: Path) -> None:
    """Write how probable each class is for each verdict on production.

    FILE.about.json, beside FILE, holds the calibration it comes from and the rate to report: the
    mean of these labels is not the rate.

    \b
    asr labels calibrated --judge judge-1 --out labels.parquet
    """
    if path.exists() and out.exists() and out.samefile(path):
        raise InputError(f"{out}: is the store itself; choose another file for --out")
    if out.suffix.lower() not in TABLES:
        raise InputError(f"{out}: must end in {', '.join(TABLES)}")
    with open_to_read(path) as store:
        found = calibrated_labels(store, batch_id, judge_id=judge_id)
    beside = write_labels(found, out)
    print_lines([SIMULATED] if found.simulated else [])
    print_lines([f"{len(found.frame):,} calibrated labels in {out}, what they are in {beside}"])
    print_lines([f"  the rate is {percent_number(found.headline)}"])
    print_lines([f"  note: {found.note}"] if found.note else [])


@labels.command(name="import")
@click.argument("file", type=EXISTING)
@with_store
@with_batch
@with_json
def import_labels(file: Path, path: Path, batch_id: str | None, as_data: bool) -> None:
    """Import labels that were made elsewhere: trace_id, reviewer, outcome, rationale and more.

    \b
    asr labels import labels.csv --batch production-001
    """
    with open_to_write(path) as store:
        batch = choose_batch(store, batch_id)
        done = imports.import_labels(store, file, batch_id=batch.batch_id)
    if as_data:
        print_json(
            {
                "batch_id": batch.batch_id,
                "stored": len(done.imported),
                "already_there": len(done.already_there),
                "changed": [
                    {"trace_id": trace_id, "reviewer": by} for trace_id, by in done.changed
                ],
                "not_in_batch": list(done.unknown),
                "set_aside": len(done.set_aside),
            }
        )
        return
    click.echo(
        f"{len(done.imported)} stored in {batch.batch_id}, "
        f"{len(done.already_there)} already there, "
        f"{len(done.changed)} differ from stored ones (kept), "
        f"{len(done.unknown)} traces are not in the batch"
    )
    for reason, n in Counter(row.reason for row in done.set_aside).items():
        click.echo(f"  skipped: {n}: {reason}")
    print_next(f"agreement --batch {shlex.quote(batch.batch_id)}")


def import_lines(report: trace_files.ImportReport) -> Iterator[str]:
    """Yield the results of an import."""
    yield (
        f"{report.imported} imported, {report.already_there} already there, {report.changed} "
        f"changed, {len(report.set_aside)} rows skipped, {report.verdicts} grades kept"
    )
    if report.restored:
        yield f"{report.restored} had lost their text, which is written again"
    if report.completed:
        yield f"{report.completed} were there and now have fields that were not read before"
    if report.possible_duplicates:
        yield f"{report.possible_duplicates} have the content of another trace, kept and marked"
    if report.labels:
        yield f"labels made of the scores of people: {report.labels}, marked as not blind"
    elif report.human_scores:
        yield (
            f"scores of people left out: {report.human_scores}; `asr import FILES "
            "--human-scores BATCH` makes labels of them"
        )
    by_reason: dict[str, list[SetAside]] = {}
    for row in report.set_aside:
        by_reason.setdefault(row.reason.partition(", got ")[0], []).append(row)
    for reason, rows in by_reason.items():
        for row in rows[:EXAMPLES]:
            place = row.file if row.line is None else f"{row.file}, line {row.line}"
            yield f"  skipped: {place}: {row.reason}"
        if len(rows) > EXAMPLES:
            yield f"  skipped: {len(rows) - EXAMPLES:,} more: {reason} (all: --json)"
