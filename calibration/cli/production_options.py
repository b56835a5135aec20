"""Options for production traces and their places; engines, slow to load, are imported on use."""

import functools
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from calibration.analyses.success_rate.report import PREVIOUS, ReportOptions
from calibration.cli.reading_options import OF_OUTCOMES, reading_params, with_reading_options
from calibration.cli.terminal import Command, credit_of, pairs, refuse_given, with_seed
from calibration.errors import InputError
from calibration.taxonomy import Taxonomy, load_taxonomy

if TYPE_CHECKING:
    from calibration.runs.sources import Place


FILE = click.Path(path_type=Path)
NONE = "none"

# The parameters of `with_places`.
PLACES = ("postgres", "tables", "spark", "memory")
# The parameters of `with_reading`.
READING = (
    "since",
    "until",
    "timezone",
    "reading",
    "ceiling",
    "ceilings",
    "credit",
    "only_known_workflows",
    "strict_cost",
    "seed",
    "resamples",
    "interval",
    "stratify",
    "force",
)

READ_FILES = reading_params(OF_OUTCOMES)
# Also for outcomes of a store that are taken as given.
(LIMIT,) = reading_params(["--max-left-out"])

# The minimum for DuckDB to start.
LEAST_MB = 64

_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\s?([MGT])B", re.IGNORECASE)
_MB = {"M": 1, "G": 1000, "T": 1_000_000}


def with_reading(command: Command) -> Command:
    """Add the options for reading and resampling files; the command receives them as `asked`."""

    @click.option("--from", "since", metavar="DAY", help="Start at this day, ISO week or time.")
    @click.option("--to", "until", metavar="DAY", help="End with this day, ISO week or time.")
    @click.option(
        "--timezone",
        default="UTC",
        show_default=True,
        help="Read times without a zone in this one.",
    )
    @with_reading_options(*OF_OUTCOMES)
    @click.option(
        "--ceiling",
        "ceiling",
        multiple=True,
        metavar="WORKFLOW=USD",
        help="Set the cost ceiling of a workflow per unit.",
    )
    @click.option(
        "--ceilings", type=FILE, help="Read cost ceilings from this file: workflow, ceiling_usd."
    )
    @click.option(
        "--credit",
        callback=credit_of,
        metavar="CLASS=NUMBER,...",
        help="Say what classes are worth, in place of the taxonomy's credit.",
    )
    @click.option(
        "--only-known-workflows",
        is_flag=True,
        help="Leave out the runs of workflows that the taxonomy does not list.",
    )
    @click.option("--strict-cost", is_flag=True, help="Refuse runs without a cost.")
    @with_seed
    @click.option(
        "--resamples",
        type=click.IntRange(100, 100_000),
        default=1000,
        show_default=True,
        help="Draw this many bootstrap resamples.",
    )
    @click.option(
        "--interval",
        type=click.Choice(["percentile", "bca"]),
        default="percentile",
        show_default=True,
        help="Choose the bootstrap interval.",
    )
    @click.option("--stratify", type=click.Choice(["workflow"]), help="Resample within workflows.")
    @click.option(
        "--force", is_flag=True, help="Accept traces of the reference set, and mark the report."
    )
    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        asked = {name: kwargs.pop(name) for name in READING}
        return command(*args, asked=asked, **kwargs)

    return wrapped


def with_places(command: Command) -> Command:
    """Add the options for servers (the command receives `servers`) and for the memory of files."""

    @with_memory
    @click.option(
        "--postgres",
        metavar="DSN",
        envvar="ASR_POSTGRES",
        show_envvar=True,
        help="Connect to PostgreSQL: postgresql://USER@HOST/DB or 'service=NAME'. The password "
        "comes from PGPASSWORD, ~/.pgpass or the service file.",
    )
    @click.option(
        "--table",
        "tables",
        multiple=True,
        metavar="NAME",
        help="Read this table or view of it, as SCHEMA.NAME.",
    )
    @click.option(
        "--spark",
        "spark",
        multiple=True,
        metavar="PATH",
        help="Let Spark read these files, or a pattern.",
    )
    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        servers = {name: kwargs.pop(name) for name in PLACES}
        return command(*args, servers=servers, **kwargs)

    return wrapped


def with_memory(command: Command) -> Command:
    """Add the option for the memory of files; `memory_from` reads it."""
    return click.option(
        "--memory",
        metavar="SIZE",
        envvar="ASR_MEMORY",
        show_envvar=True,
        help="Hold at most this much of the files in memory, such as 4GB; the rest goes to disk, "
        "which takes longer.  [default: 500 MB and 50 times the size of the files, at most half of "
        "the memory]",
    )(command)


def memory_from(asked: str | None, *, files: bool) -> str:
    """Return the memory limit of DuckDB; raise InputError if it is invalid or no files are read."""
    from calibration.runs.sources import DEFAULT_MEMORY

    if not files:
        refuse_given(["memory"], "files; name one")
    if asked is None:
        return DEFAULT_MEMORY
    size = _SIZE.fullmatch(asked.strip())
    if size is None or float(size[1]) * _MB[size[2].upper()] < LEAST_MB:
        raise InputError(
            f"--memory: must be a size of {LEAST_MB}MB or more such as 512MB or 4GB, got "
            f"{asked!r:.80}"
        )
    return "".join(size.groups()) + "B"


def places_from(
    files: Sequence[str], servers: dict[str, Any], encoding: str | None = None
) -> "list[Place]":
    """Return the inputs, each file, table or pattern a place of its own."""
    dsn, tables, spark = servers["postgres"], servers["tables"], servers["spark"]
    source = click.get_current_context().get_parameter_source("postgres")
    if dsn and not tables and source is ParameterSource.COMMANDLINE:
        raise InputError("--postgres needs --table NAME, or SCHEMA.NAME")
    if tables and not dsn:
        raise InputError("--table needs --postgres DSN, or ASR_POSTGRES in the environment")
    if sum(map(bool, (files, tables, spark))) > 1:
        raise InputError("name files, or --table, or --spark: one kind at a time")
    memory = memory_from(servers["memory"], files=bool(files))
    if not (files or tables or spark):
        return []
    from calibration.runs.engines import holds_password
    from calibration.runs.sources import Files, PostgresTable, SparkFiles

    if files:
        return [Files((file,), memory, encoding) for file in files]
    if spark:
        return [SparkFiles((path,)) for path in spark]
    if holds_password(dsn) and source is ParameterSource.COMMANDLINE:
        click.echo(
            "note: the password on the command line is kept in the shell's history; PGPASSWORD or "
            "~/.pgpass keep it out",
            err=True,
        )
    return [PostgresTable(dsn, table) for table in tables]


def one_place(
    files: Sequence[str], servers: dict[str, Any], encoding: str | None = None
) -> "Place | None":
    """Return all inputs as one place; None without any."""
    places = places_from(files, servers, encoding)
    if len(servers["tables"]) > 1:
        raise InputError("--table names one table; a view can put several into one")
    if len(places) < 2:
        return places[0] if places else None
    from calibration.runs.sources import Files, SparkFiles

    if files:
        return Files(tuple(files), memory_from(servers["memory"], files=True), encoding)
    return SparkFiles(tuple(servers["spark"]))


def options_from(
    asked: dict[str, Any],
    *,
    compare_to: str | None = PREVIOUS,
    pooled: bool = False,
    targets: Sequence[str] = (),
) -> ReportOptions:
    """Return the options of a report, with ceilings and targets checked."""
    ceilings = {}
    if asked["ceilings"] is not None:
        from calibration.tables.labels import read_ceilings

        ceilings = read_ceilings(asked["ceilings"])
    ceilings |= _amounts(asked["ceiling"], "--ceiling", highest=1e6)
    return ReportOptions(
        since=asked["since"],
        until=asked["until"],
        timezone=asked["timezone"],
        reading=asked["reading"],
        compare_to=None if compare_to == NONE else compare_to,
        ceilings=ceilings,
        credit=asked["credit"] or {},
        any_workflow=not asked["only_known_workflows"],
        strict_cost=asked["strict_cost"],
        stratify=asked["stratify"] is not None,
        pooled=pooled,
        targets=_amounts(targets, "--target", highest=1.0),
        force=asked["force"],
        seed=asked["seed"],
        n_resamples=asked["resamples"],
        interval=asked["interval"],
    )


def keep_inputs(read: Sequence[str | Path | None], written: Sequence[Path | None]) -> None:
    """Refuse to overwrite an input file."""
    for target in written:
        for source in read:
            if target is None or source is None or not target.exists():
                continue
            if os.path.exists(source) and os.path.samefile(source, target):
                raise InputError(f"{target}: is one of the files that are read")


def taxonomy_from(path: Path | None) -> Taxonomy | None:
    """Return a forked taxonomy, or None for the default."""
    return None if path is None else load_taxonomy(path)


def _amounts(given: Sequence[str], option: str, *, highest: float) -> dict[str, float]:
    found = {}
    for name, value in pairs(given, option):
        try:
            amount = float(value)
        except ValueError:
            amount = math.nan
        if not 0 < amount <= highest:
            raise InputError(
                f"{option}: {name:.80} must be above 0 and at most {highest:g}, got {value!r:.80}"
            )
        found[name] = amount
    return found
