"""The command for repeated trials of tasks."""

from pathlib import Path

import click

from calibration.analyses.reliability.trials import TrialOptions, analyse_trials
from calibration.cli.reading_options import OF_OUTCOMES, FileCommand, with_reading_options
from calibration.cli.terminal import (
    EXISTING,
    Output,
    print_result,
    whole_numbers,
    with_confidence,
    with_output,
    with_seed,
)
from calibration.errors import CalibrationError
from calibration.reporting.sections import trials as text
from calibration.tables.reading import ReadingOptions, columns_only
from calibration.tables.rows import options_of_tables
from calibration.tables.trials import OF_TASKS, OF_TRIALS


@click.command(cls=FileCommand)
@click.argument("file", type=EXISTING)
@click.option(
    "--tasks",
    type=EXISTING,
    help="Describe the tasks: a file with task_id and difficulty, category or tier (core, edge).",
)
@click.option("--model", help="Take the trials of this model; models are never pooled.")
@click.option("--agent-version", help="Take the trials of this agent version.")
@click.option(
    "-k",
    "ks",
    default="1,2,3,5",
    show_default=True,
    help="Take this many trials together; several numbers are separated by commas.",
)
@click.option(
    "--g-threshold",
    type=float,
    default=0.5,
    show_default=True,
    help="Ask of G-Pass@k that this share of k trials pass.",
)
@click.option(
    "--retries",
    type=int,
    default=2,
    show_default=True,
    help="Try a failed task again, at most this often.",
)
@click.option("--steps", type=int, help="Say how many steps a task has, all of them needed.")
@click.option(
    "--baseline", type=EXISTING, help="Compare with this earlier file of trials, task by task."
)
@click.option(
    "--resamples",
    type=click.IntRange(100, 1_000_000),
    default=1000,
    show_default=True,
    help="Draw this many resamples of the tasks.",
)
@with_reading_options(*OF_OUTCOMES)
@with_seed
@with_confidence
@with_output
def trials(
    file: Path,
    tasks: Path | None,
    model: str | None,
    agent_version: str | None,
    ks: str,
    g_threshold: float,
    retries: int,
    steps: int | None,
    baseline: Path | None,
    resamples: int,
    reading: ReadingOptions,
    seed: int,
    confidence: float,
    output: Output,
) -> None:
    """Estimate pass@k and pass^k from repeated trials of tasks.

    FILE is CSV, JSONL or Parquet with a row a trial: its task and whether it passed, optionally
    trial, model, agent_version, cost_usd and tags; or results of a benchmark (.json).

    \b
    asr trials runs.csv --tasks tasks.csv
    asr trials runs.csv -k 1,2,4,8 --model maker/model-x --json
    asr trials runs.csv --baseline last-week.csv --tasks tasks.csv
    asr trials runs.csv --column task_id="Ticket" --where condition=with
    """
    of_file, of_tasks, of_baseline = options_of_tables(
        reading, (file, OF_TRIALS), (tasks, OF_TASKS), (baseline, OF_TRIALS)
    )
    found = analyse_trials(
        file,
        TrialOptions(
            ks=whole_numbers("-k", ks),
            model=model,
            agent_version=agent_version,
            g_threshold=g_threshold,
            retries=retries,
            steps=steps,
            seed=seed,
            n_resamples=resamples,
            confidence_level=confidence,
        ),
        reading=of_file,
        tasks=tasks,
        of_tasks=columns_only(of_tasks),
        baseline=baseline,
        of_baseline=of_baseline,
    )
    print_result(found, text.trials, output)
    if not any(one.estimate.ok for one in found.pass_at_k.values()):
        raise CalibrationError("no task has trials enough for any k; run each task more often")
