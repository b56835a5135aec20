"""The command that writes what a store knows as files for other tools."""

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from calibration.analyses import exports
from calibration.analyses.agreement.analysis import analyse_agreement
from calibration.analyses.evidence.from_store import pooled_id
from calibration.analyses.judge.calibration import calibrated_labels
from calibration.cli.terminal import (
    EXISTING,
    USE_JUDGE,
    Command,
    Group,
    open_to_read,
    open_to_write,
    print_lines,
    print_next,
    with_batch,
    with_store,
)
from calibration.errors import InputError
from calibration.files import check_free, written_whole
from calibration.reporting.csv_exports import estimate_rows, probability_rows
from calibration.reporting.dataset import write_dataset
from calibration.reporting.document import SIMULATED, percent_number
from calibration.store import Store
from calibration.tables.rows import FORMATS, TypedRows, as_csv, write_rows

ABOUT = ".about.json"
PLATFORMS = {name.removesuffix("-ai"): name for name in exports.AS_LINE}


def _file(required: bool = False) -> Callable[[Command], Command]:
    """Add FILE and --force."""

    def made(command: Command) -> Command:
        force = click.option("--force", is_flag=True, help="Replace the file if it is there.")
        return click.argument("file", type=EXISTING, required=required)(force(command))

    return made


with_file, with_new_file = _file(), _file(required=True)


@click.group(cls=Group)
def export() -> None:
    """Write labels, verdicts and results as files: CSV, JSONL or Parquet, by the file's ending."""


@export.command()
@with_file
@with_store
@with_batch
def labels(file: Path | None, force: bool, path: Path, batch_id: str | None) -> None:
    """Write every label, skip and adjudicated class of a batch; `asr labels import` reads them.

    Without a FILE the rows are printed as CSV.

    \b
    asr export labels labels.csv
    asr export labels labels.parquet --batch production-001
    """
    with _store(path, file, force) as store:
        _write(exports.label_table(store, pooled_id(store, batch_id)), file, force)


@export.command()
@with_file
@with_store
@with_batch
def consensus(file: Path | None, force: bool, path: Path, batch_id: str | None) -> None:
    """Write the class of each labelled trace: adjudicated, agreed, of one label, or still open.

    \b
    asr export consensus consensus.csv
    """
    with _store(path, file, force) as store:
        _write(exports.consensus_table(store, pooled_id(store, batch_id)), file, force)


@export.command()
@with_file
@with_store
@with_batch
@click.option("--judge", "judge_id", help=USE_JUDGE)
def verdicts(
    file: Path | None, force: bool, path: Path, batch_id: str | None, judge_id: str | None
) -> None:
    """Write the verdicts of a judge on all traces that a batch was drawn from.

    With the labels of the batch, `asr calibrate` gives the rate that it gives on the store.

    \b
    asr export labels labels.csv
    asr export verdicts verdicts.csv --judge judge-v2
    asr calibrate --human labels.csv --verdicts verdicts.csv --overlap random
    """
    with _store(path, file, force) as store:
        _write(exports.verdict_table(store, pooled_id(store, batch_id), judge_id), file, force)


@export.command()
@with_new_file
@with_store
@with_batch
@click.option("--judge", "judge_id", help=USE_JUDGE)
@click.option(
    "--of-labels", is_flag=True, help="Take the labels of each trace (Dawid-Skene), and no judge."
)
def probabilities(
    file: Path,
    force: bool,
    path: Path,
    batch_id: str | None,
    judge_id: str | None,
    of_labels: bool,
) -> None:
    """Write how probable each class is, of each trace: given its verdict, or given its labels.

    FILE.about.json, beside FILE, says what they come from and the rate to report: the mean of these
    probabilities is not the rate.

    \b
    asr export probabilities probabilities.parquet --judge judge-1
    asr export probabilities posteriors.csv --of-labels
    """
    if of_labels and judge_id is not None:
        raise InputError("--of-labels takes no judge: leave out --judge")
    with _store(path, file, force) as store:
        if of_labels:
            found = exports.posterior_table(store, pooled_id(store, batch_id))
            _write(found, file, force, beside=True)
            print_lines([f"  {found.about['method']}; {found.about['status']}"])
            return
        labels = calibrated_labels(store, batch_id, judge_id=judge_id)
        _write(probability_rows(labels), file, force, beside=True)
    print_lines([f"  the rate is {percent_number(labels.headline)}"])
    print_lines([f"  note: {labels.note}"] if labels.note else [])


@export.command()
@with_file
@with_store
@with_batch
def agreement(file: Path | None, force: bool, path: Path, batch_id: str | None) -> None:
    """Write every estimate of the agreement of reviewers, with its interval, n and method.

    \b
    asr export agreement agreement.csv
    """
    with _store(path, file, force) as store:
        _write(estimate_rows(analyse_agreement(store, batch_id)), file, force)


@export.command()
@with_new_file
@with_store
@with_batch
@click.option(
    "--judge",
    "judge_id",
    required=True,
    help="Name the judge that is to be trained: one of the store, whose prompt it is, or a new "
    "one.",
)
def training(file: Path, force: bool, path: Path, batch_id: str | None, judge_id: str) -> None:
    """Write training data for a judge: its prompt, and the answer that people gave.

    Only labels of development tasks are used, three tasks in ten; they do not correct the rate of
    this judge from then on. Nothing of the reference set is written. FILE (.jsonl, .parquet) has
    one conversation a line under `messages`; FILE.about.json says what was left out.

    \b
    asr export training train.jsonl --judge my-judge
    """
    if file.suffix.lower() == ".csv":
        raise InputError(f"{file}: conversations fit no CSV; name a .jsonl or a .parquet file")
    _check_file(path, file, force)
    with open_to_write(path) as store:
        made = exports.training_set(store, pooled_id(store, batch_id), judge_id)
        n = write_rows(made.found, file, replace=force)
        left_out = dict(made.left_out.most_common())
        about = made.found.about | {"conversations": n, "left_out": left_out}
        _write_about(about, file)
    whose = (
        f"the prompt of judge {made.prompt_of}"
        if made.prompt_of
        else f"the prompt of a judge with all defaults: {judge_id} is none that this store runs"
    )
    print_lines([SIMULATED] if "simulated" in made.found.columns else [])
    print_lines([f"{n:,} conversations in {file}, {whose}"])
    print_lines(f"  left out: {n:,}: {why}" for why, n in left_out.items())
    print_lines([
        f"  labels of development tasks of {', '.join(made.batch_ids)} correct the rate of "
        f"{judge_id} no more; all others still do"
    ])  # fmt: skip
    print_next(f"verdicts import FILE --judge {shlex.quote(judge_id)}")


@export.command()
@with_new_file
@with_store
@with_batch
@click.option(
    "--for",
    "platform",
    required=True,
    type=click.Choice(list(PLATFORMS)),
    help="Write scores in the form of this platform, on the traces that came from it.",
)
@click.option(
    "--judge", "judge_id", help="Write the verdicts of this judge, not what people decided."
)
def scores(
    file: Path,
    force: bool,
    path: Path,
    batch_id: str | None,
    platform: str,
    judge_id: str | None,
) -> None:
    """Write the consensus, or the verdicts of a judge, as scores for the platform of the traces.

    FILE (.jsonl) has one request body a line: a score of Langfuse, a feedback of LangSmith, an
    annotation of Phoenix, or a score for a sample of Inspect. Simulated labels are refused.
    `asr push` sends the same to the platform.

    \b
    asr export scores scores.jsonl --for langfuse
    asr export scores verdicts.jsonl --for phoenix --judge my-judge
    """
    if file.suffix.lower() != ".jsonl":
        raise InputError(f"{file}: scores are objects, one a line; name a .jsonl file")
    if judge_id is not None and batch_id is not None:
        raise InputError("--judge writes the verdicts on all traces: leave out --batch")
    with _store(path, file, force) as store:
        found, others = exports.score_lines(store, PLATFORMS[platform], batch_id, judge_id)
        _write(found, file, force)
    if others:
        print_lines([f"  left out: {others:,} traces with a class that are not of {platform}"])


@export.command()
@click.argument("folder", type=EXISTING)
@with_store
@with_batch
@click.option(
    "--judge",
    "judge_id",
    help="Add the verdicts of this judge; without it, those of the judge in use.",
)
def dataset(folder: Path, path: Path, batch_id: str | None, judge_id: str | None) -> None:
    """Write labelled traces, labels and verdicts to a new folder, as a dataset to share.

    Parquet files in the layout of Hugging Face datasets, and a card (README.md): how the labels
    were made, the agreement, the rate, and a licence to fill in. Reviewers are numbered; the texts
    of traces and reasons are in it. Nothing is uploaded.

    \b
    asr export dataset labelled-runs
    """
    with open_to_read(path) as store:
        rows, left_out = write_dataset(
            store, folder, batch_id=pooled_id(store, batch_id), judge_id=judge_id
        )
        print_lines([SIMULATED] if store.is_simulated() else [])
    print_lines(f"{n:,} rows in {folder / name}" for name, n in rows.items())
    if left_out:
        print_lines([f"  left out: {left_out:,} traces of tasks of your own reference set"])
    print_lines([f"  fill in the licence in {folder / 'README.md'} before you share it"])


@contextmanager
def _store(path: Path, file: Path | None, force: bool) -> Iterator[Store]:
    """Open a store to read, once it is clear that the file may be written."""
    if file is not None:
        _check_file(path, file, force)
    with open_to_read(path) as store:
        yield store


def _check_file(path: Path, file: Path, force: bool) -> None:
    if path.exists() and file.exists() and file.samefile(path):
        raise InputError(f"{file}: is the store itself; name another file")
    if file.suffix.lower() not in FORMATS:
        raise InputError(f"{file}: must end in {', '.join(FORMATS)}")
    check_free(file, replace=force)


def _write(found: TypedRows, file: Path | None, force: bool, *, beside: bool = False) -> None:
    """Write rows to a file, by its ending, or print them as CSV."""
    if file is None:
        click.echo(as_csv(list(found.columns), found.plain()), nl=False)
        return
    n = write_rows(found, file, replace=force)
    if beside:
        _write_about(found.about, file)
    print_lines([SIMULATED] if found.about["simulated"] else [])
    print_lines([f"{n:,} rows in {file}{f', what they are in {file}{ABOUT}' if beside else ''}"])


def _write_about(about: dict[str, Any], file: Path) -> None:
    with written_whole(file.with_name(file.name + ABOUT), replace=True) as path:
        words = json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False)
        path.write_text(words + "\n", encoding="utf-8")
