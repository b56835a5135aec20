"""Commands for the reference dataset."""

import shutil
from pathlib import Path

import click

from calibration.analyses.reference_traces import draft_set, write_draft
from calibration.analyses.reviewers.examinations import add_practice
from calibration.cli.terminal import (
    EXISTING,
    RUBRIC,
    Command,
    Group,
    Output,
    open_to_read,
    open_to_write,
    print_json,
    print_lines,
    print_next,
    print_result,
    taxonomy_in_force,
    with_batch,
    with_json,
    with_output,
    with_store,
)
from calibration.errors import CalibrationError, InputError
from calibration.reporting import to_json
from calibration.reporting.sections import reference as shown
from calibration.taxonomy import default_taxonomy, load_taxonomy
from reference_dataset import team
from reference_dataset.loader import ReferenceSet, load_reference, published
from reference_dataset.repeat_pass import repeat_pass
from reference_dataset.statistics import DatasetReport, dataset_stats
from reference_dataset.validator import checksums as find_checksums
from reference_dataset.validator import own_problems
from reference_dataset.validator import validate as find_problems

FILES = (
    "labels.jsonl",
    "second_pass.jsonl",
    "settlements.jsonl",
    "forms.toml",
    "schema.json",
    "HANDBOOK.md",
    "DATASHEET.md",
    "SHA256SUMS",
)


def with_folder(command: Command) -> Command:
    """Add --set."""
    return click.option(
        "--set",
        "folder",
        type=EXISTING,
        help="Use the dataset in this folder; without it, the published one.",
    )(command)


def _dataset(folder: Path | None, store: Path) -> ReferenceSet:
    """Return the dataset in a folder, otherwise the published one with a store's layer, if any."""
    if folder is not None or not team.layer(store).exists():
        return load_reference(folder)
    if not store.exists():
        return team.team_reference(store, default_taxonomy())
    with open_to_read(store) as opened:
        return team.team_reference(store, opened.taxonomy())


@click.group(cls=Group)
def reference() -> None:
    """Practise on the reference dataset, inspect it, and add traces of your own."""


@reference.command()
@with_folder
@click.option(
    "--own",
    is_flag=True,
    help="Check a set of your own: any trace records, each with a label and in a form.",
)
@click.option(
    "--taxonomy",
    "fork",
    type=RUBRIC,
    help="Check labels of --own by this rubric.  [default: that of the store]",
)
@with_store
@with_json
def validate(folder: Path | None, own: bool, fork: Path | None, path: Path, as_data: bool) -> None:
    """Check every rule of the dataset, and name file, line and rule of what is broken.

    \b
    asr reference validate
    asr reference validate --set my-traces --own
    asr reference validate --set my-traces --own --taxonomy three_class
    """
    if own and folder is None:
        raise InputError("--own checks the set of --set FOLDER; name it")
    if fork is not None and not own:
        raise InputError("--taxonomy is for --own: the published set has its own classes")
    if own and folder is not None:
        rules = None if fork is None else load_taxonomy(fork)
        problems = own_problems(folder, taxonomy=taxonomy_in_force(path, rules))
    else:
        problems = find_problems(folder)
    if as_data:
        print_json({"ok": not problems, "problems": to_json.data(problems)})
    else:
        print_lines(map(str, problems))
    if problems:
        raise InputError(f"{len(problems)} problem{'s' * (len(problems) > 1)} found")
    if not as_data:
        print_lines(["every rule holds"])


@reference.command()
@click.argument("trace_id")
@click.option(
    "--label/--no-label",
    default=True,
    show_default=True,
    help="Show the canonical label, or leave it out.",
)
@with_store
@with_folder
def show(trace_id: str, label: bool, path: Path, folder: Path | None) -> None:
    """Print a trace in full, with its canonical label and the reasons.

    A label that the team of the store decided otherwise is shown as such.

    \b
    asr reference show research-001
    """
    dataset = _dataset(folder, path)
    if trace_id not in dataset.traces:
        raise InputError(f"no trace {trace_id!r}; ids run like {next(iter(dataset.traces))!r}")
    canonical = dataset.labels.get(trace_id) if label else None
    print_lines(shown.trace(dataset.traces[trace_id], canonical))


@reference.command()
@with_store
@with_folder
@with_output
def stats(path: Path, folder: Path | None, output: Output) -> None:
    """Count what a set contains, and measure how far its second pass agreed.

    \b
    asr reference stats
    """
    published_rubric = default_taxonomy()
    rubric = published_rubric if folder is not None else taxonomy_in_force(path)
    found = DatasetReport(
        counts=dataset_stats(_dataset(folder, path), rubric),
        # The second pass was compared with the set's own labels, not with a team's changes.
        second_pass=repeat_pass(load_reference(folder), published_rubric)
        if set(rubric.names) == set(published_rubric.names)
        else None,
        titles=rubric.titles,
    )
    print_result(found, shown.stats, output)


@reference.command()
@click.argument("output", type=EXISTING)
def export(output: Path) -> None:
    """Copy the published dataset to a new folder, to adapt it.

    \b
    asr reference export my-traces
    """
    if output.exists():
        raise CalibrationError(f"{output}: exists already; choose a new folder")
    source = published()
    shutil.copytree(source / "traces", output / "traces")
    for name in FILES:
        shutil.copy(source / name, output / name)
    print_lines([f"copied to {output}; check it with: asr reference validate --set {output}"])


@reference.command()
@with_store
@click.option(
    "--form",
    default="practice",
    show_default=True,
    help="Use this form; the form of a set of your own is NAME/practice.",
)
@click.option("--first", metavar="WORKFLOW", help="Begin with this workflow; the others are mixed.")
@with_json
def practise(path: Path, form: str, first: str | None, as_data: bool) -> None:
    """Add the practice form to a store, for the Label page.

    \b
    asr reference practise
    asr reference practise --form ours/practice
    asr reference practise --first support_triage
    """
    with open_to_write(path, create=True) as store:
        dataset = team.team_reference(path, store.taxonomy())
        batch = add_practice(store, dataset, form=form, first=first)
    if as_data:
        print_json({"batch_id": batch.batch_id, "n": batch.n_items})
    else:
        print_lines([f"{batch.batch_id}: {batch.n_items} traces to practise on"])
        print_next("serve")


@reference.command()
@click.argument("folder", type=EXISTING)
@click.option("--name", required=True, help="Name the set in this store.")
@click.option("--private", is_flag=True, help="Keep its labels secret, for examinations.")
@click.option(
    "--rename",
    metavar="PREFIX",
    help="Put PREFIX- before the id of every trace, in traces, labels, forms and readings.",
)
@with_store
def add(folder: Path, name: str, private: bool, rename: str | None, path: Path) -> None:
    """Add your own set, in the form of the dataset, to a store.

    `asr reference draft` makes one from adjudicated runs, `asr reference export` copies the
    published one, whose ids are taken: --rename gives the copies ids of their own.

    \b
    asr reference add my-traces --name ours --rename ours
    asr reference add exam-traces --name exam2027 --private
    """
    taxonomy = None
    if path.exists():
        with open_to_read(path) as store:
            taxonomy = store.taxonomy()
    done = team.add_set(path, folder, name=name, private=private, taxonomy=taxonomy, rename=rename)
    print_lines([f"{done.n} traces added as {name}{' (private)' if private else ''}"])
    if done.n_published:
        print_lines(
            [
                f"{done.n_published} of them have task and answer of a published trace, whose "
                "label anybody can read: edit them before you examine with them"
            ]
        )


@reference.command()
@click.argument("folder", type=EXISTING)
@with_store
@with_batch
@click.option("--judge", "judge_id", help="Take runs on which this judge errs, too.")
@click.option(
    "--most",
    type=click.IntRange(1, 500),
    default=60,
    show_default=True,
    help="Take at most so many, those of rare classes first.",
)
@with_json
def draft(
    folder: Path, path: Path, batch_id: str | None, judge_id: str | None, most: int, as_data: bool
) -> None:  # fmt: skip
    """Write adjudicated runs on which people or a judge erred to FOLDER, as a set to practise on.

    Only development tasks are taken, three in ten, the same ones each time: the labels of the
    others stay unread for certificates and corrections. Read the set, leave out what should not be
    seen, then add it with `asr reference add`: people practise on it, and judges take their worked
    examples from it. With --judge these labels no longer enter the corrected rate of that judge.

    \b
    asr reference draft our-cases
    asr reference draft our-cases --judge strict --most 20
    """
    if folder.exists():
        raise CalibrationError(f"{folder}: exists already; choose a new folder")
    with (open_to_read if judge_id is None else open_to_write)(path) as store:
        found = draft_set(store, batch_id, judge_id=judge_id, most=most)
    write_draft(found, folder)
    if as_data:
        print_json(to_json.data(found))
        return
    print_lines([f"{len(found.traces)} runs written to {folder}"])
    print_lines(f"left out: {n:,}, {why}" for why, n in found.left_out.items())
    print_next(f"reference add {folder} --name ours")


@reference.command()
@click.argument("trace_id")
@click.argument("outcome")
@click.option("--reason", required=True, help="Say why the published label does not hold for you.")
@with_store
def override(trace_id: str, outcome: str, reason: str, path: Path) -> None:
    """Replace a published label in this store; the replacement is shown as such.

    \b
    asr reference override research-033 partial_minus --reason "Our editors copy that field."
    """
    with open_to_read(path) as store:
        rules = store.taxonomy()
    team.override_label(path, rules, trace_id=trace_id, outcome=outcome, reason=reason)
    print_lines([f"{trace_id} is {outcome} here; the published label stays as it was"])


@reference.command()
@with_folder
def checksums(folder: Path | None) -> None:
    """Print the checksums of a dataset, for its SHA256SUMS.

    \b
    asr reference checksums --set my-traces > my-traces/SHA256SUMS
    """
    print_lines(find_checksums(folder or published()).splitlines())
