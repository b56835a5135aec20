"""The commands for tasks: what their runs say of them, and failed runs as new tasks."""

from pathlib import Path

import click

from calibration.analyses.reliability.tasks import (
    as_lines,
    audit_store,
    audit_trials,
    failed_tasks,
)
from calibration.cli.reading_options import OF_OUTCOMES, FileCommand, with_reading_options
from calibration.cli.terminal import (
    EXISTING,
    Group,
    Output,
    open_to_read,
    print_lines,
    print_result,
    refuse_given,
    with_confidence,
    with_output,
    with_store,
)
from calibration.errors import InputError
from calibration.reporting.sections import trials as text
from calibration.tables.reading import ReadingOptions, columns_only
from calibration.tables.rows import options_of_tables
from calibration.tables.trials import OF_AUDITS, OF_TASKS
from calibration.text import counted

TASKS = "Describe the tasks: a file with task_id and difficulty, category, tier (core, edge), "
TASKS += "expected_state or reference."


@click.group(cls=Group)
def tasks() -> None:
    """Audit the tasks that an agent is tested with, or make tasks of runs that failed."""


@tasks.command(cls=FileCommand)
@click.argument("file", required=False, type=EXISTING)
@click.option("--tasks", "table", type=EXISTING, help=TASKS)
@click.option(
    "--judge",
    "judge_id",
    help="Take the verdicts of this judge as grades; without it, those that came with the runs.",
)
@with_reading_options(*(name for name in OF_OUTCOMES if name != "--max-left-out"))
@with_confidence
@with_store
@with_output
def audit(
    file: Path | None,
    table: Path | None,
    judge_id: str | None,
    reading: ReadingOptions,
    confidence: float,
    path: Path,
    output: Output,
) -> None:
    """Find tasks that nobody or everybody solves, that are graded wrongly, or need no work.

    FILE is a file of trials as of `asr trials`, with any of the columns reviewed (what people say:
    yes or no), tool_calls (how many) and response. Without FILE the production runs of the store
    are read: their grades, labels, calls and responses, of all agents together.

    \b
    asr tasks audit runs.csv --tasks tasks.csv
    asr tasks audit --store asr.duckdb --json
    """
    of_file, of_tasks = options_of_tables(reading, (file, OF_AUDITS), (table, OF_TASKS))
    of_tasks = columns_only(of_tasks)
    if file is not None:
        refuse_given(["judge_id", "path"], "the runs of a store; leave out FILE")
        found = audit_trials(
            file, reading=of_file, tasks=table, of_tasks=of_tasks, confidence_level=confidence
        )
    else:
        refuse_given(["success"], "a FILE of trials; name one")
        with open_to_read(path) as store:
            found = audit_store(
                store,
                judge_id=judge_id,
                tasks=table,
                of_tasks=of_tasks,
                confidence_level=confidence,
            )
    print_result(found, text.task_audit, output)


@tasks.command(cls=FileCommand)
@click.option(
    "--from-class", "outcome", required=True, help="Take runs that people gave this class."
)
@click.option(
    "--out", required=True, type=EXISTING, help="Write the tasks to this new file, JSON Lines."
)
@click.option("--tasks", "table", type=EXISTING, help=TASKS)
@with_reading_options("--column", "--encoding")
@with_store
def export(
    outcome: str, out: Path, table: Path | None, reading: ReadingOptions, path: Path
) -> None:
    """Write the tasks of failed runs as a file of tasks, to run them again.

    One line a task: what the agent was given, what is known of the right answer, and the runs that
    failed. Traces of the reference set are never written.

    \b
    asr tasks export --from-class partial_minus --out tasks.jsonl
    """
    (reading,) = options_of_tables(reading, (table, OF_TASKS))
    with open_to_read(path) as store:
        found = failed_tasks(store, outcome, tasks=table, of_tasks=reading)
    try:
        with out.open("x", encoding="utf-8", errors="surrogatepass") as file:
            file.write(as_lines(found))
    except FileExistsError as error:
        raise InputError(f"{out}: exists already; name a new file") from error
    lines = [f"wrote {counted(len(found.tasks), 'task')} to {out}"]
    lines += [f"left out: {counted(n, 'run')}: {why}" for why, n in found.left_out.items()]
    print_lines(lines)
