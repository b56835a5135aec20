"""The commands for the tools of conversations, and for graders written as code."""

from pathlib import Path

import click

from calibration.analyses.reliability.grading import grade_files, grade_store
from calibration.analyses.reliability.tools import (
    OF_INTERACTIONS,
    ToolOptions,
    analyse_tools,
    routes_of_store,
)
from calibration.cli.production_options import keep_inputs
from calibration.cli.reading_options import (
    OF_TABLES,
    FileCommand,
    reading_params,
    with_reading_options,
)
from calibration.cli.terminal import (
    FiniteRange,
    Output,
    open_to_read,
    print_result,
    refuse_given,
    with_confidence,
    with_output,
    with_seed,
    with_store,
)
from calibration.errors import CalibrationError, InputError
from calibration.reliability.graders import read_graders
from calibration.reliability.tools import EQUAL_WEIGHTS, OrderRule, checked_tool_weights
from calibration.reporting.csv_exports import grades_as_csv
from calibration.reporting.sections import tools as text
from calibration.tables.reading import ReadingOptions
from calibration.tables.rows import options_of_tables
from calibration.tables.trials import OF_TASKS, read_tasks

FILE = click.Path(path_type=Path)
SHARE = FiniteRange(0, 1)
# The runs of a store have routes and no expected calls.
OF_FILE = (
    "answer_threshold", "tool_threshold", "tool_weights", "require_tools", "forbidden", "required",
    "before", "k", "seed", *reading_params(OF_TABLES),
)  # fmt: skip


def _weights(
    _context: click.Context, _option: click.Parameter, given: str | None
) -> dict[str, float]:
    """Read NAME=WEIGHT,...; the four parts, adding up to 1."""
    if given is None:
        return dict(EQUAL_WEIGHTS)
    found: dict[str, float] = {}
    for pair in given.split(","):
        name, _, weight = pair.partition("=")
        try:
            if name.strip() in found:
                raise ValueError("is given twice")
            found[name.strip()] = float(weight)
        except ValueError as error:
            raise InputError(
                f"--tool-weights: {pair!r:.80} is not NAME=NUMBER ({error})"
            ) from error
    try:
        return checked_tool_weights(found)
    except ValueError as error:
        raise InputError(f"--tool-weights: {error}") from error


def _orders(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> tuple[OrderRule, ...]:
    """Read rules of order, FIRST,LATER."""
    found = []
    for pair in given:
        first, _, later = (word.strip() for word in pair.partition(","))
        try:
            found.append(OrderRule(first=first, later=later))
        except ValueError as error:
            raise InputError(f"--before: {pair!r:.80} is not FIRST,LATER ({error})") from error
    return tuple(dict.fromkeys(found))


def _names(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Read names of tools, separated by commas."""
    return tuple(name for part in given for word in part.split(",") if (name := word.strip()))


@click.command(cls=FileCommand)
@click.argument("file", required=False, type=FILE)
@click.option(
    "--answer-threshold",
    type=SHARE,
    default=0.7,
    show_default=True,
    help="An answer is correct from this answer_score on.",
)
@click.option(
    "--tool-threshold",
    type=SHARE,
    default=1.0,
    show_default=True,
    help="The tools of an interaction are correct from this score on.",
)
@click.option(
    "--tool-weights",
    callback=_weights,
    help="Weight the four parts, adding up to 1. "
    "[default: selection=.25,parameters=.25,sequence=.25,utilisation=.25]",
)
@click.option(
    "--require-tools",
    is_flag=True,
    help="An interaction is correct only if its tools are, where expected calls are given.",
)
@click.option(
    "--forbidden",
    multiple=True,
    callback=_names,
    help="Report calls of these tools, by exact name, separated by commas.",
)
@click.option(
    "--required",
    multiple=True,
    callback=_names,
    help="Report conversations that do not call these tools, by exact name.",
)
@click.option(
    "--before",
    multiple=True,
    metavar="FIRST,LATER",
    callback=_orders,
    help="Report conversations that call LATER without a call of FIRST before it; a * at the end "
    "of a name means any ending.",
)
@click.option(
    "--k",
    type=click.IntRange(1, 1_000),
    default=3,
    show_default=True,
    help="The k of interaction_pass_at_k.",
)
@with_reading_options(*OF_TABLES)
@with_seed
@with_confidence
@with_store
@with_output
def tools(
    file: Path | None,
    answer_threshold: float,
    tool_threshold: float,
    tool_weights: dict[str, float],
    require_tools: bool,
    forbidden: tuple[str, ...],
    required: tuple[str, ...],
    before: tuple[OrderRule, ...],
    k: int,
    reading: ReadingOptions,
    seed: int,
    confidence: float,
    path: Path,
    output: Output,
) -> None:
    """Measure whole conversations, and the tools that an agent called in them.

    FILE (CSV, JSONL, Parquet) has one row per interaction: conversation_id, interaction,
    answer_score (0 to 1) or answer_correct, and optionally calls, expected_calls (JSON lists of
    objects with name, arguments and step), final_answer_uses_tools, sequence_matters; of several
    agents expected_route, routed_to and agent.

    A conversation is correct only if all of its interactions are. Without FILE: where the runs of
    the store were routed, and how the agents that took their steps did.

    \b
    asr tools interactions.jsonl
    asr tools interactions.csv --require-tools --tool-threshold 0.75 --json
    asr tools interactions.csv --forbidden delete_user,cancel_order --required verify_identity
    asr tools interactions.csv --before find_order,cancel_order --before "confirm,write:*"
    """
    (reading,) = options_of_tables(reading, (file, OF_INTERACTIONS))
    if file is None:
        refuse_given(OF_FILE, "a FILE of interactions; name one")
        with open_to_read(path) as store:
            stored = routes_of_store(store, confidence_level=confidence)
        return print_result(stored, text.routes, output)
    refuse_given(["path"], "the runs of a store; leave out FILE")
    found = analyse_tools(
        file,
        ToolOptions(
            answer_threshold=answer_threshold,
            tool_threshold=tool_threshold,
            tool_weights=tool_weights,
            require_tools=require_tools,
            forbidden=forbidden,
            required=required,
            before=before,
            k=k,
            seed=seed,
            confidence_level=confidence,
        ),
        reading=reading,
    )
    print_result(found, text.document, output)
    if not found.conversation_correctness.estimate.ok:
        raise CalibrationError("no conversation can be judged: each has a row that was skipped")
    return None


@click.command(cls=FileCommand)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=FILE)
@click.option(
    "--graders",
    type=FILE,
    help="Read the graders from this TOML file (docs/methods/tools.md).",
)
@click.option(
    "--tasks",
    type=FILE,
    help="Read expected_state and reference, and rules of order (before), of each task from this "
    "file, by task_id.",
)
@click.option("--csv", "table", type=FILE, help="Write what is proposed on each run to this file.")
@with_reading_options("--column", "--encoding")
@with_confidence
@with_store
@with_output
def grade(
    files: tuple[Path, ...],
    graders: Path | None,
    tasks: Path | None,
    table: Path | None,
    reading: ReadingOptions,
    confidence: float,
    path: Path,
    output: Output,
) -> None:
    """Grade runs by rules written as code: texts, tools, order of calls, state.

    FILEs are traces of any format that `asr import` reads; without any, the production runs of the
    store are graded and compared with their consensus labels. Graders propose pass or fail; nothing
    is written to the store.

    \b
    asr grade runs.jsonl --graders graders.toml
    asr grade runs.jsonl --tasks tasks.jsonl
    asr grade --store asr.duckdb --graders graders.toml --csv proposed.csv --json
    """
    keep_inputs([*files, graders, tasks], [table])
    read = () if graders is None else read_graders(graders)
    (reading,) = options_of_tables(reading, (tasks, OF_TASKS))
    known = None if tasks is None else read_tasks(tasks, reading)
    if files:
        refuse_given(["path"], "the runs of a store; leave out FILES")
        found = grade_files(files, read, tasks=known, confidence_level=confidence)
    else:
        with open_to_read(path) as store:
            found = grade_store(store, read, tasks=known, confidence_level=confidence)
    if table is not None:
        table.write_text(grades_as_csv(found.grades), encoding="utf-8", newline="")
    print_result(found, text.grading, output)
