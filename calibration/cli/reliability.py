"""The command for the reliability of repeated runs, in a file."""

from pathlib import Path

import click

from calibration.analyses.reliability.runs import (
    measure_reliability,
    read_runs,
    read_task_details,
)
from calibration.cli.terminal import (
    Output,
    print_result,
    with_confidence,
    with_output,
    with_seed,
)
from calibration.errors import CalibrationError
from calibration.reporting.sections.reliability import document


@click.command()
@click.argument("runs", type=click.Path(path_type=Path))
@click.option(
    "--tasks",
    type=click.Path(path_type=Path),
    help="Read difficulty, category and tier (core or edge) of the tasks from this file, by "
    "task_id.",
)
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
@with_seed
@with_confidence
@with_output
def reliability(
    runs: Path,
    tasks: Path | None,
    divergence: bool,
    resamples: int,
    seed: int,
    confidence: float,
    output: Output,
) -> None:
    """Measure how reliable an agent is over repeated RUNS of the same tasks.

    RUNS has the columns task_id, run and success, and optionally confidence, actions, cost_usd,
    latency_s, api_calls, n_errors, call_latency_s, perturbation (none, fault, structure or prompt),
    violations and analysed.

    \b
    asr reliability runs.csv
    asr reliability runs.jsonl --tasks tasks.csv --json
    """
    found = measure_reliability(
        read_runs(runs),
        None if tasks is None else read_task_details(tasks),
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
