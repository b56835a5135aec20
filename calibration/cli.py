"""The `asr` command; the only module that prints."""

import csv
import errno
import functools
import io
import json
import os
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from calibration.analyses import demo as demonstration
from calibration.analyses import importing
from calibration.analyses.agreement import analyse_agreement
from calibration.analyses.asr import analyse_asr
from calibration.analyses.judge import Design, analyse_judge
from calibration.analyses.labelled_batch import choose_batch
from calibration.analyses.sampling import draw_batch
from calibration.errors import CalibrationError, InputError
from calibration.importers import ImportSettings, load_settings
from calibration.records import Reviewer
from calibration.reporting import as_json, text
from calibration.store import Store
from calibration.taxonomy import Taxonomy, default_taxonomy, load_taxonomy

EXISTING = click.Path(path_type=Path)
PORT = click.IntRange(1, 65535)
NOT_ALLOWED, BAD_INPUT = 1, 2


class Commands(click.Group):
    """Commands whose errors end in one sentence and the right exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; 1: the data do not allow it, 2: bad input."""
        try:
            return super().invoke(ctx)
        except CalibrationError as error:
            _print_error(str(error))
            ctx.exit(BAD_INPUT if isinstance(error, InputError) else NOT_ALLOWED)
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read the output has seen enough
                raise
            what = error.strerror or str(error)
            _print_error(what if error.filename is None else f"{error.filename}: {what}")
            ctx.exit(NOT_ALLOWED if error.filename is None else BAD_INPUT)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="asr-calibration")
def main() -> None:
    """Turn raw agent traces into one Agent Success Rate (ASR) you can defend."""


Command = Callable[..., Any]


def with_store(command: Command) -> Command:
    """Add --store."""
    return click.option(
        "--store",
        "path",
        type=EXISTING,
        envvar="ASR_STORE",
        default=Path("asr.duckdb"),
        show_default="asr.duckdb",
        show_envvar=True,
        help="The store file.",
    )(command)


def with_batch(command: Command) -> Command:
    """Add --batch."""
    return click.option("--batch", "batch_id", help="Batch to use; default: the newest one.")(
        command
    )


def with_json(command: Command) -> Command:
    """Add --json."""
    return click.option("--json", "as_data", is_flag=True, help="Print JSON.")(command)


def with_judge(command: Command) -> Command:
    """Add --judge and --design."""

    @click.option("--judge", "judge_id", help="Judge to use; `source:` pools the files' grades.")
    @click.option(
        "--design",
        type=click.Choice(["production", "reference"]),
        default="production",
        show_default=True,
        help="What the labelled traces are: a random sample of production, or reference only.",
    )
    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return command(*args, **kwargs)

    return wrapped


def _print_json(data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(_encoding())
    except UnicodeEncodeError:  # a file name that is no text, or a terminal without Unicode
        text = json.dumps(data, indent=2, allow_nan=False)
    click.echo(text)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        shown = _visible(line).encode(_encoding(), "backslashreplace")
        click.echo(shown.decode(_encoding()))


def _print_error(message: str) -> None:
    click.echo(f"error: {_visible(message)}", err=True)


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


# Names in a trace file may hold what steers a terminal; what was written stays readable.
_STEERING = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _visible(line: str) -> str:
    return _STEERING.sub(lambda found: ascii(found[0])[1:-1], line)


@main.command(name="import")
@click.argument("paths", nargs=-1, required=True, type=EXISTING)
@with_store
@click.option("--workflow", help="Workflow of every run in these files.")
@click.option("--ceiling", type=float, help="Cost ceiling of a run in USD, per unit.")
@click.option("--unit", help="What the ceiling is per: ticket, document, task ...")
@click.option("--timezone", help="Zone of times without one, e.g. Europe/Berlin; default UTC.")
@click.option("--mapping", type=EXISTING, help="TOML file with all of this per workflow.")
@click.option("--taxonomy", type=EXISTING, help="Taxonomy of a new store (TOML).")
@click.option("--take-changed", is_flag=True, help="Replace stored runs whose content changed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
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
    yes: bool,
    as_data: bool,
) -> None:
    """Bring trace files into the store (tau-bench, tau2-bench, own JSONL or CSV).

    \b
    asr import results/*.json --workflow airline --ceiling 0.30 --unit conversation
    asr import traces.jsonl --mapping workflows.toml --yes
    """
    settings = _settings(mapping, workflow, ceiling, unit, timezone)
    rules = None if taxonomy is None else load_taxonomy(taxonomy)
    read = importing.read_files(paths, settings)
    if not as_data:
        _print_lines(text.preview(read))
        asks = not yes and sys.stdin.isatty() and sys.stdout.isatty()
        if asks and read.parsed and not click.confirm(f"Import into {path}?", default=True):
            raise click.Abort
    with _open_for_import(path, rules) as store:
        report = importing.store_files(store, read, settings, take_changed=take_changed)
    if as_data:
        _print_json(as_json.import_report(report))
    else:
        _print_lines(text.import_report(report))
    if not read.parsed:
        raise CalibrationError("no trace could be read from these files")


def _open_for_import(path: Path, rules: Taxonomy | None) -> Store:
    """Open a store or create one; its taxonomy is set when it is created and not in passing."""
    if rules is None or not path.exists():
        return Store.open(path, create=True, taxonomy=rules)
    store = Store.open(path)
    in_force = store.taxonomy()
    if in_force.fingerprint != rules.fingerprint:
        store.close()
        raise InputError(
            f"{path}: taxonomy {in_force.version!r} is in force there; "
            "`asr taxonomy FILE` puts another one in force"
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


@main.command()
@click.option("--n", type=int, required=True, help="Number of traces.")
@click.option("--seed", type=int, required=True, help="Seed of the draw.")
@click.option("--workflow", help="Draw from this workflow only.")
@click.option("--labels-wanted", type=int, default=2, show_default=True, help="Per trace.")
@with_store
@with_json
def sample(
    n: int, seed: int, workflow: str | None, labels_wanted: int, path: Path, as_data: bool
) -> None:
    """Draw an equal-probability batch of traces to label, and record how it was drawn.

    \b
    asr sample --n 40 --seed 1
    """
    with Store.open(path) as store:
        batch = draw_batch(store, n=n, seed=seed, workflow=workflow, labels_wanted=labels_wanted)
        ids = list(store.batch_items(batch.batch_id)["trace_id"])
    if as_data:
        _print_json(
            {
                "batch_id": batch.batch_id,
                "n": batch.n_items,
                "population": batch.design["population"],
                "inclusion_probability": n / batch.design["population"],
                "labels_wanted": batch.labels_wanted,
                "design": batch.design,
                "trace_ids": ids,
            }
        )
    else:
        click.echo(
            f"{batch.batch_id}: {batch.n_items} of {batch.design['population']} traces, each drawn "
            f"with probability {n / batch.design['population']:.4f}, {labels_wanted} labels wanted"
        )
        click.echo(f"Label them: asr serve --store {path}")


@main.command()
@click.argument("file", type=EXISTING)
@click.option("--judge", "judge_id", required=True, help="Name of the judge, with its version.")
@with_store
@with_json
def verdicts(file: Path, judge_id: str, path: Path, as_data: bool) -> None:
    """Bring in a judge's verdicts (CSV or JSONL: trace_id, outcome, optional reason).

    \b
    asr verdicts judge.csv --judge gpt-x-prompt-3
    """
    with Store.open(path) as store:
        done = importing.import_verdicts(store, file, judge_id=judge_id)
    if as_data:
        _print_json(
            {
                "stored": done.stored,
                "already_there": done.already_there,
                "changed": list(done.changed),
                "unknown_traces": list(done.unknown_traces),
            }
        )
    else:
        click.echo(
            f"{done.stored} stored, {done.already_there} already there, {len(done.changed)} differ "
            f"from stored ones (kept), {len(done.unknown_traces)} for traces not in the store"
        )


@main.group()
def labels() -> None:
    """Take labels in and out as CSV."""


@labels.command(name="export")
@with_store
@with_batch
@click.option("--output", type=EXISTING, help="File to write; default: standard output.")
def export_labels(path: Path, batch_id: str | None, output: Path | None) -> None:
    """Write the current labels of a batch.

    \b
    asr labels export --output labels.csv
    """
    if output is not None and path.exists() and output.exists() and output.samefile(path):
        raise InputError(f"{output}: is the store itself; choose another file for --output")
    with Store.open(path) as store:
        rows = importing.label_rows(store, choose_batch(store, batch_id).batch_id)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=importing.LABEL_COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    if output is None:
        click.echo(text.getvalue(), nl=False)
    else:
        output.write_text(text.getvalue(), encoding="utf-8", newline="")


@labels.command(name="import")
@click.argument("file", type=EXISTING)
@with_store
@with_batch
@with_json
def import_labels(file: Path, path: Path, batch_id: str | None, as_data: bool) -> None:
    """Store labels that were made elsewhere (trace_id, reviewer, outcome, rationale ...).

    \b
    asr labels import labels.csv --batch production-001
    """
    with Store.open(path) as store:
        batch = choose_batch(store, batch_id)
        done = importing.import_labels(store, file, batch_id=batch.batch_id)
    if as_data:
        _print_json(
            {
                "batch_id": batch.batch_id,
                "stored": done.stored,
                "already_there": done.already_there,
                "changed": [
                    {"trace_id": trace_id, "reviewer": by} for trace_id, by in done.changed
                ],
                "not_in_batch": list(done.not_in_batch),
            }
        )
        return
    click.echo(
        f"{done.stored} stored in {batch.batch_id}, {done.already_there} already there, "
        f"{len(done.changed)} differ from stored ones (kept), "
        f"{len(done.not_in_batch)} traces are not in the batch"
    )


@main.command()
@click.argument("name")
@click.option("--lead", is_flag=True, help="Make them a lead.")
@with_store
@with_json
def reviewer(name: str, lead: bool, path: Path, as_data: bool) -> None:
    """Add a reviewer.

    \b
    asr reviewer "Mara Lind"
    """
    with Store.open(path) as store:
        added: Reviewer = store.add_reviewer(name, role="lead" if lead else "reviewer")
    if as_data:
        _print_json({"reviewer_id": added.reviewer_id, "name": added.name, "role": added.role})
    else:
        _print_lines([f"{added.name} ({added.role}) can label as {added.reviewer_id!r}"])


@main.command()
@click.argument("file", required=False, type=EXISTING)
@with_store
@with_json
def taxonomy(file: Path | None, path: Path, as_data: bool) -> None:
    """Show the taxonomy in force, or put a forked one (TOML) in force.

    \b
    asr taxonomy
    asr taxonomy my-taxonomy.toml
    """
    if file is not None:
        with Store.open(path, create=True, taxonomy=load_taxonomy(file)) as store:
            shown = store.taxonomy()
    elif path.exists():
        with Store.open(path) as store:
            shown = store.taxonomy()
    else:
        shown = default_taxonomy()
    if as_data:
        _print_json(shown.to_dict() | {"fingerprint": shown.fingerprint})
    else:
        _print_lines(_taxonomy_lines(shown))


def _taxonomy_lines(shown: Taxonomy) -> Iterable[str]:
    yield f"taxonomy {shown.version} ({shown.fingerprint[:12]})"
    for item in shown.classes:
        yield f"  {item.name:<14} credit {item.credit:g}  {item.meaning}"
    for node in shown.nodes:
        yield f"  {node.id}: {node.question}  yes -> {node.yes}, no -> {node.no}"


@main.command()
@with_store
@with_batch
@with_json
def agreement(path: Path, batch_id: str | None, as_data: bool) -> None:
    """Measure how far reviewers agree.

    \b
    asr agreement --json
    """
    with Store.open(path) as store:
        result = analyse_agreement(store, batch_id)
    if as_data:
        _print_json(as_json.agreement(result))
    else:
        _print_lines(text.agreement(result))
    if not result.overall.alpha.ok:
        raise CalibrationError("alpha cannot be estimated; the status says what would help")


@main.command()
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
    with Store.open(path) as store:
        result = analyse_judge(store, batch_id, judge_id=judge_id, design=design)
    if as_data:
        _print_json(as_json.judge(result))
    else:
        _print_lines(text.judge(result))
    if result.calibration.headline is None:
        raise CalibrationError("no corrected rate can be given; the refusals say what would help")


@main.command()
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
    with Store.open(path) as store:
        result = analyse_asr(store, batch_id, judge_id=judge_id, design=design, seed=seed)
    if as_data:
        _print_json(as_json.asr(result))
    else:
        _print_lines(text.asr(result))
    if not result.headline.ok:
        raise CalibrationError("no rate can be given; the status says what would help")


@main.command()
@with_store
@click.option("--port", type=PORT, default=8501, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
def serve(path: Path, port: int, host: str) -> None:
    """Open the app on a store.

    \b
    asr serve --store asr.duckdb
    """
    _serve(path, port, host)


@main.command()
@click.option("--store", "path", type=EXISTING, help="Where to build it; default: asr-demo.duckdb.")
@click.option("--port", type=PORT, default=8501, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the simulation.")
@click.option("--no-serve", is_flag=True, help="Build, report and exit.")
@with_json
def demo(path: Path | None, port: int, host: str, seed: int, no_serve: bool, as_data: bool) -> None:
    """Build a store of simulated data with known truth, and open the app on it.

    \b
    asr demo
    asr demo --no-serve --json --seed 3
    """
    if not no_serve:
        path = path or Path("asr-demo.duckdb")
        if not path.exists() or _is_empty_demo(path):
            click.echo("Building the demo (simulated data) ...", err=True)
            _demo_report(path, seed, as_data)
        _serve(path, port, host)
        return
    if path is not None:
        _demo_report(path, seed, as_data)
        return
    with tempfile.TemporaryDirectory() as folder:
        _demo_report(Path(folder) / "demo.duckdb", seed, as_data)


def _is_empty_demo(path: Path) -> bool:
    with Store.open(path) as store:
        return demonstration.needs_building(store)


def _demo_report(path: Path, seed: int, as_data: bool) -> None:
    with Store.open(path, create=True) as store:
        result = demonstration.run_demo(store, seed=seed)
    if as_data:
        _print_json(as_json.demo(result))
    else:
        _print_lines(text.asr(result.analysis))
        click.echo(f"true agent success rate of the simulated production: {result.truth:.4f}")


def _serve(path: Path, port: int, host: str) -> None:
    """Become the server process, so that a signal to this one reaches it."""
    Store.open(path).close()  # errors are told here, not in a browser
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, UnicodeError) as error:  # no such host name is one or the other
            why = f"port {port} on {host!r} cannot be used ({error})"
            raise InputError(f"{why}; choose another --port or --host") from error
    os.environ["ASR_STORE"] = str(path.resolve())
    click.echo(f"asr-calibration: http://{host}:{port}  (store {path})", err=True)
    command = [sys.executable, "-m", "streamlit", "run", str(files("app").joinpath("asgi.py"))]
    os.execv(sys.executable, [*command, f"--server.port={port}", f"--server.address={host}"])
