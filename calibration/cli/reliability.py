"""The command for the reliability of repeated runs, of a file or a store."""

from pathlib import Path

import click

from calibration.analyses.reliability.from_store import read_stored_runs
from calibration.analyses.reliability.runs import (
    OF_RUNS,
    RepeatedRuns,
    measure_reliability,
    read_runs,
)
from calibration.cli.reading_options import OF_OUTCOMES, FileCommand, with_reading_options
from calibration.cli.terminal import (
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
from calibration.reporting.sections.reliability import document
from calibration.tables.reading import ReadingOptions, columns_only
from calibration.tables.rows import options_of_tables
from calibration.tables.trials import OF_TASKS, read_task_groups


@click.command(cls=FileCommand)
@click.argument("runs", required=False, type=click.Path(path_type=Path))
@click.option(
    "--tasks",
    type=click.Path(path_type=Path),
    help="Read difficulty, category and tier (core or edge) of the tasks from this file, by "
    "task_id.",
)
@click.option("--model", help="Take the labelled runs of this model; agents are never pooled.")
@click.option("--agent-version", help="Take the labelled runs of this agent version.")
@click.option(
    "--divergence",
    is_flag=True,
    help="Compare the shares of actions by the Jensen-Shannon divergence, without the square root.",
)
@click.option(
    "--resamples",
    type=click.IntRange(100, 100_000),
    default=1000,
    show_default=True,
    help="Draw this many bootstrap resamples of tasks.",
)
@with_reading_options(*OF_OUTCOMES)
@with_seed
@with_confidence
@with_store
@with_output
def reliability(
    runs: Path | None,
    tasks: Path | None,
    model: str | None,
    agent_version: str | None,
    divergence: bool,
    resamples: int,
    reading: ReadingOptions,
    seed: int,
    confidence: float,
    path: Path,
    output: Output,
) -> None:
    """Measure how reliable an agent is over repeated RUNS of the same tasks.

    RUNS has a row a run: its task and whether it passed, and optionally trial, confidence, actions,
    cost_usd, latency_s, api_calls, n_errors, call_latency_s, perturbation (none, fault, structure
    or prompt), violations and analysed.

    Without RUNS, the labelled runs of the store are measured: a run succeeds if its adjudicated
    class is complete, or all of its blind labels say so. Runs with a verdict only are left out.

    \b
    asr reliability runs.csv
    asr reliability runs.jsonl --tasks tasks.csv --json
    asr reliability --store asr.duckdb --model maker/model-x
    """
    of_runs, of_tasks = options_of_tables(reading, (runs, OF_RUNS), (tasks, OF_TASKS))
    found = measure_reliability(
        _runs(runs, of_runs, path, model, agent_version),
        None if tasks is None else read_task_groups(tasks, columns_only(of_tasks)),
        divergence=divergence,
        n_resamples=resamples,
        confidence_level=confidence,
        seed=seed,
    )
    print_result(found, document, output)
    scores = (found.consistency.score, found.predictability.score, found.robustness.score)
    if not any(score.ok for score in (*scores, found.safety.score)):
        raise CalibrationError(
            "no score can be computed; repeat tasks, or record confidence, perturbation or "
            "violations"
        )


def _runs(
    runs: Path | None,
    reading: ReadingOptions,
    path: Path,
    model: str | None,
    agent_version: str | None,
) -> RepeatedRuns:
    """Read a file, or the labelled runs of the store."""
    if runs is not None:
        refuse_given(
            ["model", "agent_version"],
            "the runs of a store; --where COLUMN=VALUE chooses those of a file",
        )
        refuse_given(["path"], "the runs of a store; leave out RUNS")
        return read_runs(runs, reading)
    if not path.exists():
        raise InputError(
            f"no RUNS, and there is no store {path}: name a file of runs, or a store with --store"
        )
    with open_to_read(path) as store:
        return read_stored_runs(store, model=model, agent_version=agent_version)
