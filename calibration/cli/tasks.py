"""The commands for tasks: what their runs say of them, and failed runs as new tasks."""

from pathlib import Path

import click

from calibration.analyses.reliability.tasks import (
    as_lines,
    audit_store,
    audit_trials,
    failed_tasks,
)
from calibration.cli.terminal import (
    EXISTING,
    Group,
    Output,
    open_to_read,
    print_lines,
    print_result,
    refuse_given,
    with_columns,
    with_confidence,
    with_output,
    with_store,
)
from calibration.errors import InputError
from calibration.reporting.sections import trials as text
from calibration.tables.rows import under_our_names
from calibration.tables.trials import OF_AUDITS, OF_TASKS, SUCCESS
from calibration.text import counted

TASKS = "Describe the tasks: a file with task_id and difficulty, category, tier (core, edge), "
TASKS += "expected_state or reference."


@click.group(cls=Group)
def tasks() -> None:
    """Audit the tasks that an agent is tested with, or make tasks of runs that failed."""


@tasks.command()
@click.argument("file", required=False, type=EXISTING)
@click.option("--tasks", "table", type=EXISTING, help=TASKS)
@click.option(
    "--success",
    default=SUCCESS,
    show_default=True,
    help="Read from this column of FILE whether a trial passed.",
)
@click.option(
    "--judge",
    "judge_id",
    help="Take the verdicts of this judge as grades; without it, those that came with the runs.",
)
@with_columns
@with_confidence
@with_store
@with_output
def audit(
    file: Path | None,
    table: Path | None,
    success: str,
    judge_id: str | None,
    columns: dict[str, str | None],
    confidence: float,
    path: Path,
    output: Output,
) -> None:
    """Find tasks that nobody or everybody solves, that are graded wrongly, or need no work.

    FILE is a file of trials as of `asr trials`, with any of the columns reviewed (what people say:
    yes or no), tool_calls (how many) and response. Without FILE the production runs of the store
    are read: their grades, labels, calls and responses. Runs of all agents are taken together.

    \b
    asr tasks audit runs.csv --tasks tasks.csv
    asr tasks audit --store asr.duckdb --json
    """
    runs, about = under_our_names(columns, (file, (*OF_AUDITS, success)), (table, OF_TASKS))
    if runs is not None:
        refuse_given(["judge_id", "path"], "the runs of a store; leave out FILE")
        found = audit_trials(runs, success=success, tasks=about, confidence_level=confidence)
    else:
        refuse_given(["success"], "a FILE of trials; name one")
        with open_to_read(path) as store:
            found = audit_store(
                store, judge_id=judge_id, tasks=about, confidence_level=confidence
            )  # fmt: skip
    print_result(found, text.task_audit, output)


@tasks.command()
@click.option(
    "--from-class", "outcome", required=True, help="Take runs that people gave this class."
)
@click.option(
    "--out", required=True, type=EXISTING, help="Write the tasks to this new file, JSON Lines."
)
@click.option("--tasks", "table", type=EXISTING, help=TASKS)
@with_columns
@with_store
def export(
    outcome: str, out: Path, table: Path | None, columns: dict[str, str | None], path: Path
) -> None:
    """Write the tasks of failed runs as a file of tasks, to run them again.

    One line a task: what the agent was given, what is known of the right answer, and the runs that
    failed. Traces of the reference set are never written.

    \b
    asr tasks export --from-class partial_minus --out tasks.jsonl
    """
    (about,) = under_our_names(columns, (table, OF_TASKS))
    with open_to_read(path) as store:
        found = failed_tasks(store, outcome, tasks=about)
    try:
        with out.open("x", encoding="utf-8", errors="surrogatepass") as file:
            file.write(as_lines(found))
    except FileExistsError as error:
        raise InputError(f"{out}: exists already; name a new file") from error
    lines = [f"wrote {counted(len(found.tasks), 'task')} to {out}"]
    lines += [f"left out: {counted(n, 'run')}: {why}" for why, n in found.left_out.items()]
    print_lines(lines)
