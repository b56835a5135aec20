"""The command that lists the traces of a store."""

from collections.abc import Iterator
from pathlib import Path

import click

from calibration.analyses.sampling.draw import PAGE, TracePage, list_traces, plain_rows
from calibration.cli.terminal import open_to_read, print_json, print_lines, with_json, with_store
from calibration.errors import InputError
from calibration.reporting.document import table
from calibration.store import SORTED_BY, SavedView, parse_search, search_terms
from calibration.text import names_there


@click.command()
@click.argument("search", nargs=-1)
@click.option("--saved", help="List a view that was saved on the Data page, in place of SEARCH.")
@click.option(
    "--sort",
    type=click.Choice(list(SORTED_BY)),
    help="Sort by this; without it, by time of import.",
)
@click.option("--descending", is_flag=True, help="Sort the other way round.")
@click.option("--page", type=click.IntRange(1), default=1, help=f"Show this page of {PAGE} traces.")
@click.option("--all", "whole", is_flag=True, help="Show all traces at once.")
@with_store
@with_json
def traces(
    path: Path,
    as_data: bool,
    search: tuple[str, ...],
    saved: str | None,
    sort: str | None,
    descending: bool,
    page: int,
    whole: bool,
) -> None:
    """List the traces that a search finds, the same search as on the Data page.

    \b
    asr traces task:tau/retail/7 tool:exchange_items error:yes
    asr traces workflow:airline from:2026-01-01 to:2026-01-31 --json
    asr traces 'model:"two words" "a phrase of the task" class:hallucinated'

    \b
    SEARCH has filters and free words. Words are in the task or begin an id.
      workflow:  status:  model:  class:  tag:     any of them where one is repeated
      task:      the key of a task: all of its trials
      tool:      the agent called it
      error:     yes: a call (of the tool) failed; no: all ended well
      batch:     the trace is in this batch
      judge:     show the verdicts of a judge; verdict: with this one
      from: to:  started on these days or at these times (UTC)
      perturbation:  none, fault, structure or prompt
    """
    with open_to_read(path) as store:
        if saved is None:
            view = SavedView(chosen=parse_search(" ".join(search), store.taxonomy()))
        elif search:
            raise InputError("--saved goes without a search")
        else:
            view = _saved(store.saved_views(), saved)
        chosen = view.chosen
        found = list_traces(
            store, chosen, for_leads=True, sort=sort or view.sort, page=page,
            descending=descending or view.descending,
            page_size=None if whole else PAGE,
        )  # fmt: skip
    if as_data:
        print_json(
            {
                "n": found.n,
                "page": found.page,
                "pages": found.pages,
                "search": " ".join(search_terms(chosen)),
                "filters": chosen.to_dict(),
                "traces": list(plain_rows(found.traces)),
            }
        )
    else:
        print_lines(_page_lines(found))


def _saved(known: dict[str, SavedView], name: str) -> SavedView:
    if name not in known:
        raise InputError(f"no view is saved as {name!r}; {names_there(name, known)}")
    return known[name]


def _page_lines(found: TracePage) -> Iterator[str]:
    """Yield one page of a list of traces."""
    yield f"{found.n} traces, page {found.page} of {found.pages}"
    if not found.n:
        return
    listed = list(plain_rows(found.traces))
    columns = {
        "trace": "trace_id", "workflow": "workflow", "task": "task_key", "trial": "trial",
        "status": "status", "started": "started_at", "class": "class", "tools": "tool_calls",
        "errors": "tool_errors",
    }  # fmt: skip
    if any(row["source_id"] != row["trace_id"] for row in listed):
        columns["id in its source"] = "source_id"
    rows = [[_cell(row[name]) for name in columns.values()] for row in listed]
    yield from table(tuple(columns), rows)


def _cell(value: object) -> str:
    return "-" if value is None else f"{value!s:.60}"
