"""Commands that import traces, verdicts and labels."""

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import click

from calibration.analyses import imports, trace_files
from calibration.analyses.evidence.from_store import choose_batch
from calibration.cli.reading_options import OF_ANSWERS, FileCommand, with_reading_options
from calibration.cli.terminal import (
    EXISTING,
    RUBRIC,
    Group,
    computing,
    named,
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
from calibration.store import Store, make_way
from calibration.tables.reading import Reading, ReadingOptions
from calibration.tables.vocabulary import Rest
from calibration.taxonomy import Taxonomy, load_taxonomy
from calibration.text import visible
from calibration.trace_formats import FORMATS, ImportSettings, load_settings

# Rows shown of those skipped for one reason.
EXAMPLES = 3


def with_workflow(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command say of which workflow runs are; `import_settings` takes the answers."""
    for option in (
        click.option("--mapping", type=EXISTING,
                     help="Read all of this for each workflow from a TOML file."),
        click.option("--unit",
                     help="Name the unit of the ceiling, such as ticket, document or task."),
        click.option("--ceiling", type=float,
                     help="Set the cost ceiling of a run in USD per unit."),
        click.option("--workflow", help="Give every run this workflow."),
    ):  # fmt: skip
        command = option(command)
    return command


def with_stored(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command say what becomes of changed and unseen runs, and of the scores of people."""
    for option in (
        click.option("--human-scores", metavar="BATCH",
                     help="Store the scores of people as labels of this batch, marked as not "
                     "blind."),
        click.option("--leave-out-unseen", is_flag=True,
                     help="Leave out runs with pictures and other parts that reviewers cannot "
                     "see."),
        click.option("--take-changed", is_flag=True,
                     help="Replace stored runs whose content has changed."),
    ):  # fmt: skip
        command = option(command)
    return command


def with_scales(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command say what numbers of scores mean; `ImportSettings.scored` takes the answers."""
    for option in (
        click.option(
            "--pass-at",
            multiple=True,
            metavar="NAME=N",
            help="Take scores called NAME of N or more as a success, and lower ones as a fail.",
        ),
        click.option(
            "--scale",
            "scales",
            multiple=True,
            metavar="NAME=LOW-HIGH",
            help="Read scores called NAME on this scale: 1-5 makes verdicts of 5 (success), 4 (the "
            "other acceptable class) and less (failed check); another scale needs --pass-at.",
        ),
    ):
        command = option(command)
    return command


@click.command(name="import")
@click.argument("paths", nargs=-1, required=True, type=EXISTING)
@with_store
@with_workflow
@with_scales
@click.option(
    "--timezone",
    help="Read times without a zone in this one, such as Europe/Berlin; without it, in UTC.",
)
@click.option(
    "--taxonomy", type=RUBRIC, help="Give a new store this taxonomy: a TOML file, or two_class."
)
@with_stored
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
    scales: tuple[str, ...],
    pass_at: tuple[str, ...],
    taxonomy: Path | None,
    take_changed: bool,
    leave_out_unseen: bool,
    human_scores: str | None,
    yes: bool,
    as_data: bool,
) -> None:
    """Import trace files, folders of them and patterns; each is recognised by its content.

    Files compressed by gzip or Zstandard are read as they are. --formats lists what is read. Scores
    of 0 and 1 become verdicts; others need --scale or --pass-at.

    \b
    asr import results/*.json --workflow airline --ceiling 0.30 --unit conversation
    asr import langfuse.jsonl --scale correctness=1-5
    asr import traces.jsonl --mapping workflows.toml --yes
    asr import logs/ --yes
    """
    make_way(path)
    settings = import_settings(mapping, workflow, ceiling, unit, timezone).scored(scales, pass_at)
    rules = None if taxonomy is None else load_taxonomy(taxonomy)
    settings = replace(
        settings, taxonomy=taxonomy_in_force(path, rules), leave_out_unseen=leave_out_unseen
    )
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


def import_settings(
    mapping: Path | None,
    workflow: str | None,
    ceiling: float | None,
    unit: str | None,
    timezone: str | None,
) -> ImportSettings:
    """Return the settings of an import: those of the file, and options over them."""
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
    """Import the verdicts of a judge; `asr export verdicts` writes them."""


@verdicts.command(name="import", cls=FileCommand)
@click.argument("file", type=EXISTING)
@click.option("--judge", "judge_id", required=True, help="Name the judge, with its version.")
@with_reading_options(*(name for name in OF_ANSWERS if name != "--raters"))
@click.option(
    "--rest",
    type=click.Choice(["no_verdict"]),
    help="Take every other verdict that is not a class as this.",
)
@with_store
@with_json
def import_verdicts(
    file: Path,
    judge_id: str,
    reading: ReadingOptions,
    rest: Rest | None,
    path: Path,
    as_data: bool,
) -> None:
    """Import the verdicts of a judge from CSV, JSONL or Parquet.

    Fields: trace_id, outcome (a class of the rubric in any spelling, or pass and fail); optional
    reason, evidence_step and evidence_quote (JSONL: evidence, a
    list of step_id and quote), sample (1 and up when it was asked again), grade (1 to 5). A row
    with a grade and no outcome has the class that the grade proposes: 5 is success, 4 partly
    correct, less a failed check that a person must confirm.

    \b
    asr verdicts import judge.csv --judge gpt-x-prompt-3
    asr verdicts import judge.csv --judge strict --column outcome=score --map 1=complete,0=abandoned
    """
    with open_to_write(path) as store:
        imported = imports.import_verdicts(
            store, file, judge_id=judge_id, options=reading, rest=rest
        )
    done = imported.stored
    _print_reading(imported.reading, as_data)
    if as_data:
        print_json(
            {
                "reading": to_json.data(imported.reading),
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


@click.group(cls=Group)
def labels() -> None:
    """Import labels, and say what reviewers mark; `asr export labels` writes them."""


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


def _people_of(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> dict[str, str] | None:
    """Read `3=Ann,4=Bo`."""
    return None if value is None else dict(named(value, "REVIEWER=NAME"))


@labels.command(name="import", cls=FileCommand)
@click.argument("file", type=EXISTING)
@with_reading_options(*OF_ANSWERS)
@click.option(
    "--people",
    callback=_people_of,
    metavar="REVIEWER=NAME,...",
    help="Give reviewers of FILE, such as user numbers, these names.",
)
@click.option(
    "--not-blind",
    is_flag=True,
    help="Mark the labels as not blind: their reviewers may have seen other labels or verdicts.",
)
@click.option(
    "--replace",
    "replacing",
    is_flag=True,
    help="Let labels that differ from stored ones count from now on; the stored ones stay in the "
    "log. Without it, only those do that are later by their own time.",
)
@with_store
@with_batch
@with_json
def import_labels(
    file: Path,
    reading: ReadingOptions,
    people: dict[str, str] | None,
    not_blind: bool,
    replacing: bool,
    path: Path,
    batch_id: str | None,
    as_data: bool,
) -> None:
    """Import labels that were made elsewhere: trace_id, reviewer, outcome, rationale and more.

    FILE is CSV, JSONL or Parquet with a row a label, or with a column for each of --raters; or an
    export of Label Studio or Argilla. A row that is marked as adjudicated is the final class of its
    trace. Labels count as blind, unless a column exposed or an export says that their reviewers
    were shown a suggestion: those rows are skipped. Labels that are marked as not blind are in no
    rate and no agreement.

    \b
    asr labels import labels.csv --batch production-001
    asr labels import sheet.csv --raters Ann,Bo --column trace_id=ID --map yes=complete,no=abandoned
    asr labels import tasks.json --column outcome=verdict --people 3=Ann,4=Bo
    """
    with open_to_write(path) as store:
        batch = choose_batch(store, batch_id, to_label=True)
        imported = imports.import_labels(
            store,
            file,
            batch_id=batch.batch_id,
            options=reading,
            people=people or {},
            exposed=not_blind,
            replacing=replacing,
        )
    done = imported.stored
    _print_reading(imported.reading, as_data)
    if as_data:
        print_json(
            {
                "batch_id": batch.batch_id,
                "reading": to_json.data(imported.reading),
                "stored": len(done.imported),
                "already_there": len(done.already_there),
                "changed": _pairs(done.changed),
                "replaced": _pairs(done.replaced),
                "not_in_batch": list(done.unknown),
                "adjudicated": len(done.settled),
                "adjudicated_otherwise": list(done.settled_before),
            }
        )
        return
    kept = " (kept; --replace takes the newer ones)" if done.changed else " (kept)"
    later = f", {len(done.replaced)} replaced by a later one" if done.replaced else ""
    click.echo(
        f"{len(done.imported)} stored in {batch.batch_id}, "
        f"{len(done.already_there)} already there{later}, "
        f"{len(done.changed)} differ from stored ones{kept}, "
        f"{len(done.unknown)} traces are not in the batch"
    )
    if done.settled or done.settled_before:
        click.echo(
            f"  adjudicated classes: {len(done.settled)} stored, "
            f"{len(done.settled_before)} differ from stored ones (kept)"
        )
    print_next(f"agreement --batch {shlex.quote(batch.batch_id)}")


def _pairs(keys: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"trace_id": trace_id, "reviewer": by} for trace_id, by in keys]


def _print_reading(reading: Reading, as_data: bool) -> None:
    """Say before the result what was read and left out; with JSON on standard error."""
    for line in (*reading.lines, reading.folded_line):
        if line:
            click.echo(visible(line), err=as_data)


def import_lines(
    report: trace_files.ImportReport, *, again: str = "asr import FILES"
) -> Iterator[str]:
    """Yield the results of an import; `again` is the command that reads the same once more."""
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
            f"scores of people left out: {report.human_scores}; `{again} "
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
