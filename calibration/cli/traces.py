"""The command that lists the traces of a store."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import click

from calibration.analyses.sampling.draw import PAGE, TracePage, list_traces, plain_rows
from calibration.cli.terminal import open_to_read, print_json, print_lines, with_json, with_store
from calibration.errors import InputError
from calibration.reporting.document import table
from calibration.store import SORTED_BY, TraceFilter

DAY = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])


@click.command()
@click.option("--workflow", "workflows", multiple=True, help="Of this workflow; may be repeated.")
@click.option("--task", "task_key", help="Trials of the task with this key.")
@click.option("--text", "words", help="With this text in the task, in any case.")
@click.option("--tool", help="That called this tool.")
@click.option("--tool-error", is_flag=True, help="With a call (of the tool) that failed.")
@click.option("--tool-ok", is_flag=True, help="With calls (of the tool) that all ended well.")
@click.option("--status", "statuses", multiple=True, help="That ended like this.")
@click.option("--model", "models", multiple=True, help="Of this model.")
@click.option("--class", "classes", multiple=True, help="Of this class, as humans said.")
@click.option("--tag", "tags", multiple=True, help="With a label that carries this tag.")
@click.option("--judge", help="Show the verdicts of this judge.")
@click.option("--verdict", "verdicts", multiple=True, help="With this verdict of the judge.")
@click.option("--from", "start", type=DAY, help="Started then or later (UTC).")
@click.option("--to", "end", type=DAY, help="Started before then; a day alone is included (UTC).")
@click.option("--batch", "batch_id", help="That are in this batch.")
@click.option("--query", help="That a query saved on the Data page finds; alone.")
@click.option("--sort", type=click.Choice(list(SORTED_BY)), default="imported", show_default=True)
@click.option("--descending", is_flag=True, help="Sort the other way round.")
@click.option("--page", type=click.IntRange(1), default=1, help=f"Which {PAGE} traces to show.")
@click.option("--all", "whole", is_flag=True, help="Show all of them at once.")
@with_store
@with_json
def traces(
    path: Path,
    as_data: bool,
    query: str | None,
    words: str | None,
    tool_error: bool,
    tool_ok: bool,
    start: datetime | None,
    end: datetime | None,
    sort: str,
    descending: bool,
    page: int,
    whole: bool,
    workflows: tuple[str, ...],
    statuses: tuple[str, ...],
    models: tuple[str, ...],
    classes: tuple[str, ...],
    tags: tuple[str, ...],
    verdicts: tuple[str, ...],
    task_key: str | None,
    tool: str | None,
    judge: str | None,
    batch_id: str | None,
) -> None:
    """List traces: of a task, that called a tool, with a status, class or verdict.

    \b
    asr traces --task tau/retail/7 --tool exchange_items --tool-error
    asr traces --workflow airline --from 2026-01-01 --to 2026-01-31 --json
    """
    if tool_error and tool_ok:
        raise InputError("--tool-error and --tool-ok exclude each other")
    ended: Literal["ok", "error"] | None = "error" if tool_error else "ok" if tool_ok else None
    chosen = TraceFilter(
        workflows=workflows,
        statuses=statuses,
        task_key=task_key,
        text=words,
        tool=tool,
        tool_ended=ended,
        started_from=start,
        started_before=_end(end),
        batch_id=batch_id,
        classes=classes,
        tags=tags,
        judge=judge,
        verdicts=verdicts,
        models=models,
    )
    with open_to_read(path) as store:
        if query is not None:
            chosen = _saved(store.saved_queries(), query, chosen)
        found = list_traces(
            store, chosen, for_leads=True, sort=sort, descending=descending, page=page,
            page_size=None if whole else PAGE,
        )  # fmt: skip
    if as_data:
        print_json(
            {
                "n": found.n,
                "page": found.page,
                "pages": found.pages,
                "filters": chosen.to_dict(),
                "traces": list(plain_rows(found.traces)),
            }
        )
    else:
        print_lines(_page_lines(found))


def _end(end: datetime | None) -> datetime | None:
    """Return the end of a window; a day without a time is included."""
    if end is None or (end.hour, end.minute, end.second) != (0, 0, 0):
        return end
    return end + timedelta(days=1)


def _saved(known: dict[str, TraceFilter], name: str, chosen: TraceFilter) -> TraceFilter:
    if chosen != TraceFilter():
        raise InputError("--query goes without other filters")
    if name not in known:
        raise InputError(f"no query {name!r}; there are {list(known)}")
    return known[name]


def _page_lines(found: TracePage) -> Iterator[str]:
    """Yield one page of a list of traces."""
    yield f"{found.n} traces, page {found.page} of {found.pages}"
    if not found.n:
        return
    head = ("trace", "workflow", "task", "trial", "status", "started", "class", "tools", "errors")
    names = (
        "trace_id", "workflow", "task_key", "trial", "status", "started_at", "class",
        "tool_calls", "tool_errors",
    )  # fmt: skip
    rows = []
    for row in plain_rows(found.traces):
        rows.append(
            [
                "-"
                if row[name] is None
                else f"{row[name]:.60}"
                if isinstance(row[name], str)
                else str(row[name])
                for name in names
            ]
        )
    yield from table(head, rows)
