"""The command that passes or fails a run in CI."""

from datetime import UTC, datetime
from pathlib import Path

import click

from calibration.analyses.gating import gate_file
from calibration.cli.terminal import print_json, print_lines, with_json
from calibration.correction.calibrate import Design
from calibration.errors import InputError
from calibration.reporting.gates import gates as text
from calibration.reporting.gates import gates_data
from calibration.reporting.gates_junit import junit
from calibration.reporting.gates_markdown import markdown
from calibration.reporting.json_values import as_text

FILE = click.Path(path_type=Path)


@click.command()
@click.argument("file", type=FILE)
@click.option("--gates", type=FILE, required=True, help="TOML file of gates: docs/gates.md.")
@click.option("--baseline", type=FILE, help="Saved result of the run to compare with.")
@click.option(
    "--labels",
    type=FILE,
    help="File of human labels of some runs: trace_id, outcome, optional reviewer, adjudicated, "
    "weight.",
)
@click.option(
    "--design",
    type=click.Choice(["production", "reference"]),
    default="production",
    show_default=True,
    help="What the labelled runs are: drawn at random, or chosen.",
)
@click.option("--taxonomy", type=FILE, help="A forked taxonomy; default: the one of the package.")
@click.option("--model", help="Look at the runs of this model only.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--junit", "junit_file", type=FILE, help="Write JUnit XML to this file.")
@click.option("--summary", type=FILE, help="Add a Markdown summary to this file.")
@click.option("--write-baseline", type=FILE, help="Write the result to compare later runs with.")
@with_json
@click.pass_context
def gate(
    ctx: click.Context,
    file: Path,
    gates: Path,
    baseline: Path | None,
    labels: Path | None,
    design: Design,
    taxonomy: Path | None,
    model: str | None,
    seed: int,
    junit_file: Path | None,
    summary: Path | None,
    write_baseline: Path | None,
    as_data: bool,
) -> None:
    """Hold a file of runs against thresholds; no store is needed.

    Exits with 0 when every must gate passed, 1 when one did not, 2 when a file is not what it must
    be. FILE has trace_id, outcome, and optionally workflow, cost_usd, units, task_id, trial,
    weight, stratum, latency_s, model, tier, category, loops, data_corruption, tags.

    \b
    asr gate runs.csv --gates gates.toml
    asr gate runs.parquet --gates gates.toml --baseline main.json --junit gates.xml --json
    asr gate runs.jsonl --gates gates.toml --write-baseline main.json
    """
    result = gate_file(
        file,
        gates,
        baseline=baseline,
        labels=labels,
        design=design,
        taxonomy=taxonomy,
        model=model,
        seed=seed,
    )
    if junit_file is not None:
        _write(junit_file, junit(result, at=datetime.now(UTC)))
    if summary is not None:
        # A job's steps share one summary: what is there stays.
        _write(summary, "".join(f"{line}\n" for line in markdown(result)), mode="a")
    if write_baseline is not None:
        _write(write_baseline, as_text(gates_data(result, with_tasks=True)))
    if as_data:
        print_json(gates_data(result))
    else:
        print_lines(text(result))
    ctx.exit(result.report.exit_code)


def _write(path: Path, content: str, mode: str = "w") -> None:
    try:
        with path.open(mode, encoding="utf-8", errors="replace", newline="\n") as handle:
            handle.write(content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
