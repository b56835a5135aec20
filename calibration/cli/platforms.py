"""Commands that pull traces from a platform, and push labels and verdicts to it as scores."""

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import click

from calibration.analyses import platform_scores, platform_transfer, trace_files
from calibration.analyses.evidence.from_store import choose_batch
from calibration.analyses.platform_api import PLATFORMS, Told
from calibration.cli.data import (
    import_lines,
    import_settings,
    with_scales,
    with_stored,
    with_workflow,
)
from calibration.cli.terminal import (
    open_to_read,
    open_to_write,
    print_json,
    print_lines,
    print_next,
    progress,
    taxonomy_in_force,
    with_batch,
    with_json,
    with_store,
)
from calibration.errors import CalibrationError
from calibration.reporting import to_json
from calibration.store import make_way
from calibration.text import counted

FIRST = 3  # payloads that a push without --send shows
with_platform = click.argument("platform", type=click.Choice(list(PLATFORMS)))


@contextmanager
def _telling() -> Iterator[Told]:
    """Yield what shows how far a transfer is, on standard error if it is a terminal."""
    shown = sys.stderr.isatty()

    def told(words: str) -> None:
        if shown:
            click.echo(f"\r{words}\x1b[K", err=True, nl=False)

    try:
        yield told
    finally:
        told("")


@click.command()
@with_platform
@click.option(
    "--since",
    help="Pull traces begun since a date, or so long ago: 2026-11-01, 7d, 12h; without it, since "
    "the last pull ended, at first for 7 days.",
)
@click.option("--until", help="Pull traces begun before this; without it, until 10 minutes ago.")
@click.option(
    "--limit",
    type=click.IntRange(1, platform_transfer.MOST_TRACES),
    default=1_000,
    show_default=True,
    help="Pull at most so many traces, newest first.",
)
@click.option(
    "--project",
    help="Pull from this project (LangSmith, Phoenix); without it, from that of the environment, "
    "else from `default`.",
)
@with_store
@with_workflow
@with_scales
@click.option(
    "--again", is_flag=True, help="Also read traces that the store has, such as for new scores."
)
@with_stored
@with_json
def pull(
    platform: str,
    since: str | None,
    until: str | None,
    limit: int,
    project: str | None,
    path: Path,
    workflow: str | None,
    ceiling: float | None,
    unit: str | None,
    mapping: Path | None,
    scales: tuple[str, ...],
    pass_at: tuple[str, ...],
    again: bool,
    take_changed: bool,
    leave_out_unseen: bool,
    human_scores: str | None,
    as_data: bool,
) -> None:
    """Pull traces from Langfuse, LangSmith or Phoenix, and import them.

    Key and address are read from the variables that the platform itself uses, such as
    LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and LANGFUSE_BASE_URL. A pull that was cut off goes on
    when the same command runs again.

    \b
    asr pull langfuse --since 7d
    asr pull langsmith --project shop --since 2026-11-01 --limit 5000
    asr pull phoenix --project shop
    """
    make_way(path)
    kind = PLATFORMS[platform]
    access = kind.access(os.environ)
    project = project or os.environ.get(kind.projects) or None
    settings = import_settings(mapping, workflow, ceiling, unit, None).scored(scales, pass_at)
    settings = replace(
        settings, taxonomy=taxonomy_in_force(path), leave_out_unseen=leave_out_unseen
    )
    again = again or take_changed or human_scores is not None
    options = platform_transfer.PullOptions(
        since=since, until=until, limit=limit, project=project, again=again
    )
    known: dict[str, str] = {}
    store_id = ""
    if path.exists():
        with open_to_read(path) as store:
            known, store_id = store.ids_at_source(platform), store.store_id()
            if human_scores is not None:
                human_scores = choose_batch(store, human_scores).batch_id
    with _telling() as told:
        pulled = platform_transfer.pull(
            kind,
            access,
            path,
            replace(options, store_id=store_id),
            known=frozenset(known.values()),
            told=told,
        )
    report = None
    if pulled.files:
        with progress() as reading:
            read = trace_files.read_files(pulled.files, settings, told=reading)
        with open_to_write(path, create=True) as store:
            report = trace_files.store_files(
                store, read, settings, take_changed=take_changed, human_batch=human_scores
            )
    if path.exists():
        with open_to_read(path) as store:
            store_id = store.store_id()
    platform_transfer.imported(pulled, store_id)
    if as_data:
        about = asdict(pulled) | {"since": pulled.since.isoformat()}
        about |= {"until": pulled.until.isoformat(), "files": len(pulled.files)}
        about.pop("folder")
        print_json(about | {"imported": None if report is None else to_json.data(report)})
        return
    print_lines(_pulled_lines(pulled, kind.title))
    if report is not None:
        print_lines(trace_files.unseen_lines(read.preview))
        print_lines(report.notes)
        print_lines(import_lines(report, again=f"asr pull {platform}"))
        print_next("status")


def _pulled_lines(pulled: platform_transfer.Pulled, title: str) -> Iterator[str]:
    window = f"begun from {pulled.since:%Y-%m-%d %H:%M} to {pulled.until:%Y-%m-%d %H:%M} UTC"
    if not pulled.traces:
        yield f"no new traces of {title} {window}"
    else:
        yield f"{counted(pulled.traces, 'trace')} of {title} {window}"
    if pulled.resumed:
        yield "this pull had been cut off before; the same command again pulls what began since"
    if pulled.gone:
        yield f"{counted(pulled.gone, 'trace')} had no content any more"
    if pulled.more:
        yield "there are more in this window: run the same command again, or set --limit"


@click.command()
@with_platform
@with_store
@with_batch
@click.option("--judge", "judge_id", help="Push the verdicts of this judge.")
@click.option("--send", is_flag=True, help="Send; without it, only what would be sent is shown.")
@with_json
def push(
    platform: str,
    path: Path,
    batch_id: str | None,
    judge_id: str | None,
    send: bool,
    as_data: bool,
) -> None:
    """Push labels and verdicts to the traces that they are of, as scores.

    The consensus labels of --batch, the verdicts of --judge, or both; with --judge alone no labels.
    Nothing is sent without --send. A score has the class, its credit, and the batch or the judge:
    no name of a reviewer and no text. The same push again changes nothing; a class that has changed
    replaces the one before.

    \b
    asr push langfuse --batch production-001
    asr push langfuse --batch production-001 --judge judge-2 --send
    """
    kind = PLATFORMS[platform]
    with open_to_read(path) as store:
        scores: list[platform_scores.PlatformScore] = []
        if batch_id is not None or judge_id is None:
            batch_id = choose_batch(store, batch_id).batch_id
            scores += platform_scores.consensus_scores(store, platform, batch_id)
        if judge_id is not None:
            scores += platform_scores.judge_scores(store, platform, judge_id)
    if not scores:
        raise CalibrationError(
            f"{_named(batch_id, judge_id)}: no consensus label or verdict is on a trace of "
            f"{kind.title}; only traces that came from there can be scored"
        )
    if not send:
        payloads = [platform_scores.AS_SCORE[platform](score) for score in scores]
        if as_data:
            print_json({"platform": platform, "scores": len(scores), "sent": False,
                        "batch_id": batch_id, "first": payloads[:FIRST]})  # fmt: skip
            return
        print_lines([
            f"{_named(batch_id, judge_id)}: {counted(len(scores), 'score')} would be sent to "
            f"{kind.title}, the first:"
        ])  # fmt: skip
        for payload in payloads[:FIRST]:
            print_lines([json.dumps(payload, ensure_ascii=False)])
        options = [("--batch", batch_id), ("--judge", judge_id)]
        words = [f"{name} {shlex.quote(value)}" for name, value in options if value is not None]
        print_next(" ".join([f"push {platform}", *words, "--send"]))
        return
    access = kind.access(os.environ)
    with _telling() as told:
        done = platform_transfer.push(kind, access, path, scores, told=told)
    if as_data:
        print_json(asdict(done) | {"scores": len(scores), "batch_id": batch_id})
        return
    sent = f"{done.sent:,} sent to {kind.title}, {done.sent_before:,} sent before"
    print_lines([f"{_named(batch_id, judge_id)}: {sent}"])
    if done.gone:
        print_lines([f"{counted(done.gone, 'trace')} no longer there"])


def _named(batch_id: str | None, judge_id: str | None) -> str:
    """Return whose classes are pushed, in words."""
    named = (("batch", batch_id), ("judge", judge_id))
    return " and ".join(f"{what} {name}" for what, name in named if name is not None)
