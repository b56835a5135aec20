"""The command that passes or fails a run in CI; it imports the engine on use, a second to load."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibration.analyses.gates.run import GateAnalysis
from calibration.cli.production_options import (
    FILE,
    LIMIT,
    PLACES,
    READ_FILES,
    keep_inputs,
    one_place,
    options_from,
    taxonomy_from,
    with_places,
    with_reading,
)
from calibration.cli.reading_options import FileCommand
from calibration.cli.terminal import (
    RUBRIC,
    Output,
    open_to_read,
    print_json,
    print_result,
    refuse_given,
    with_batch,
    with_full,
    with_given,
    with_json,
    with_judge,
    with_store,
)
from calibration.errors import CalibrationError, InputError, LeftOutError
from calibration.gates.gate_file import Acceptance, acceptance
from calibration.judge_calibration.samples import Design
from calibration.reporting import to_json
from calibration.reporting.document import markdown
from calibration.reporting.sections.gates import document, junit

if TYPE_CHECKING:
    from calibration.runs.sources import Place


# Options for tables, and those for outcomes that are taken as given, also in a store.
OF_FILES = (
    "only_known_workflows",
    "fork",
    *PLACES,
    *(name for name in READ_FILES if name != LIMIT),
)
OF_GIVEN = (
    LIMIT,
    "since", "until", "timezone", "ceiling", "ceilings", "credit", "strict_cost", "interval",
    "stratify", "force", "baseline", "labels", "model", "write_baseline",
)  # fmt: skip
FILES = "files; name one"

OF_RATES = ("batch_id", "design")
OF_STORE = ("path", "batch_id", "judge_id", "as_given")


@click.command(cls=FileCommand)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--gates", type=FILE, required=True, help="Read the gates from this TOML file (docs/gates.md)."
)
@click.option(
    "--baseline", type=FILE, help="Compare with what --write-baseline wrote of an earlier run."
)
@click.option(
    "--labels",
    type=FILE,
    help="Read human labels of some runs from this file: trace_id, outcome, and optionally "
    "reviewer, adjudicated, weight.",
)
@click.option("--taxonomy", "fork", type=RUBRIC, help="Use a taxonomy of your own.")
@click.option("--model", help="Test the runs of this model only.")
@click.option(
    "--accept",
    "accept",
    multiple=True,
    metavar="GATE",
    help="Record that a should gate may fail; each needs its own --by, --why and --until.",
)
@click.option("--by", multiple=True, metavar="NAME", help="Name who accepts it.")
@click.option("--why", multiple=True, metavar="TEXT", help="Say why it is accepted.")
@click.option(
    "--until", "last_day", multiple=True, metavar="DAY", help="Set the last day that it counts."
)
@click.option("--junit", "junit_file", type=FILE, help="Write JUnit XML to this file.")
@click.option("--summary", type=FILE, help="Add a Markdown summary to this file.")
@click.option(
    "--write-baseline", type=FILE, help="Write to this file what later runs are compared with."
)
@with_places
@with_reading
@with_full
@with_json
@with_store
@with_batch
@with_judge
@with_given
@click.pass_context
def gate(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    gates: Path,
    servers: dict[str, Any],
    asked: dict[str, Any],
    path: Path,
    junit_file: Path | None,
    summary: Path | None,
    as_data: bool,
    full: bool,
    **others: Any,
) -> None:
    """Pass or fail files of runs, or the store, by thresholds, for CI.

    Exits with 0 when every must gate passed, 1 when one did not or too many runs are left out for a
    gate, 2 when a file is not what it must be. FILEs (CSV, JSONL, Parquet; patterns too), a
    PostgreSQL table or files that Spark reads are read as `asr report` reads them, with tier,
    category, loops, data_corruption and tags besides; no store is needed.

    Without any it gates the store: the rate corrected with its labels and verdicts, the human
    labels, and the steps of its traces. Before anybody has labelled, --judge source:NAME, or
    outcomes = "source:NAME" in the gate file, gates the outcomes that came with the runs.

    \b
    asr gate runs.csv --gates gates.toml
    asr gate 'runs/*.parquet' --gates gates.toml --baseline main.json --junit gates.xml --json
    asr gate runs.jsonl --gates gates.toml --write-baseline main.json
    asr gate --postgres service=traces --table runs --gates gates.toml
    asr gate --store asr.duckdb --gates gates.toml
    asr gate --store asr.duckdb --gates gates.toml --judge source:tau2
    asr gate runs.csv --gates gates.toml --accept judge --by Mara --why Due --until 2026-12-31
    """
    others["accepted"] = accepted_from(
        *(others.pop(n) for n in ("accept", "by", "why", "last_day"))
    )
    read = [*files, gates, others["labels"]]
    keep_inputs([*read, others["baseline"]], [junit_file, summary])
    # A run may replace the baseline that it was compared with.
    keep_inputs(read, [others["write_baseline"]])
    try:
        place = one_place(files, servers, asked["reading"].encoding)
        if place is not None:
            result = _of_runs(place, gates, asked, others)
        else:
            result = _of_store(path, gates, asked, others)
    except (InputError, LeftOutError) as error:
        if as_data and isinstance(error, LeftOutError):
            print_json(to_json.withheld(error))
        raise
    except CalibrationError as error:
        # Exit code 1 is reserved for failed gates, to distinguish them from errors.
        raise InputError(str(error)) from error
    if junit_file is not None:
        _write(junit_file, junit(result, at=datetime.now(UTC)))
    if summary is not None:
        # A job's steps share one summary, so append to it.
        _write(summary, f"{markdown(document(result))}\n", mode="a")
    print_result(result, document, Output(full=full, as_data=as_data))
    ctx.exit(result.report.exit_code)


def _of_runs(
    place: "Place", gates: Path, asked: dict[str, Any], others: dict[str, Any]
) -> GateAnalysis:
    from calibration.analyses.gates.run import gate_files

    refuse_given(OF_STORE, "the store; name no runs")
    design: Design = others["design"]
    result = gate_files(
        place,
        gates,
        options=options_from(asked, compare_to=None),
        baseline=others["baseline"],
        labels=others["labels"],
        design=design,
        taxonomy=taxonomy_from(others["fork"]),
        model=others["model"],
        accepted=others["accepted"],
    )
    return _with_baseline(result, others["write_baseline"])


def _with_baseline(result: GateAnalysis, target: Path | None) -> GateAnalysis:
    """Write what later runs are compared with, if a file is named for it."""
    from calibration.analyses.gates.baseline import PART, baseline_data

    if target is not None and result.comparable is not None:
        saved = to_json.data(result) | {PART: baseline_data(result.comparable)}
        _write(target, to_json.as_text(saved))
    return result


def _of_store(
    path: Path, gates: Path, asked: dict[str, Any], others: dict[str, Any]
) -> GateAnalysis:
    from calibration.analyses.gates.run import gate_given, gate_store, gated_runs

    refuse_given(OF_FILES, FILES)
    options = replace(
        options_from(asked, compare_to=None),
        **{name: others[name] for name in ("batch_id", "judge_id", "as_given", "design")},
    )
    with open_to_read(path) as store:
        given = gated_runs(store, gates, options)
        if given is not None:
            refuse_given(OF_RATES, "labels; here the outcomes are taken as given")
            result = gate_given(
                store,
                given,
                gates,
                baseline=others["baseline"],
                labels=others["labels"],
                model=others["model"],
                accepted=others["accepted"],
            )
            return _with_baseline(result, others["write_baseline"])
        refuse_given(OF_GIVEN, FILES)
        return gate_store(
            store,
            gates,
            others["batch_id"],
            judge_id=others["judge_id"],
            design=others["design"],
            seed=asked["seed"],
            n_resamples=asked["resamples"],
            accepted=others["accepted"],
        )


def accepted_from(
    gates: Sequence[str], by: Sequence[str], why: Sequence[str], until: Sequence[str]
) -> list[Acceptance]:
    """Return the decisions of the command line: the options go together in their order."""
    if not len(gates) == len(by) == len(why) == len(until):
        raise InputError(
            "each --accept needs one --by, one --why and one --until; there are "
            f"{len(gates)}, {len(by)}, {len(why)} and {len(until)}"
        )
    found = []
    for gate, *others in zip(gates, by, why, until, strict=True):
        try:
            found.append(acceptance(gate, *others))
        except InputError as error:
            raise InputError(f"--accept {gate:.80}: {error}") from error
    return found


def _write(path: Path, content: str, mode: str = "w") -> None:
    try:
        with path.open(mode, encoding="utf-8", errors="replace", newline="\n") as handle:
            handle.write(content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
