"""Traces chosen by filters: the list, its export, and batches made of it."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from calibration.analyses.sampling.draw import SELECTION, draw_batch, draw_ids
from calibration.errors import CalibrationError, InputError
from calibration.store import UNLABELLED, Batch, Store, TraceFilter
from calibration.tables.rows import as_csv

PAGE = 100

HIDDEN_FILTER = (
    "classes, tags, verdicts and models are for leads: whoever labels must not know them; "
    "take these filters away"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePage:
    """One page of the traces that a filter finds; `page` counts from 1."""

    n: int
    page: int
    pages: int
    traces: pd.DataFrame


def list_traces(
    store: Store,
    chosen: TraceFilter,
    *,
    for_leads: bool,
    sort: str = "imported",
    descending: bool = False,
    page: int = 1,
    page_size: int | None = PAGE,
    seen_by: str | None = None,
) -> TracePage:
    """List the traces that a filter finds; a page after the last one is the last one.

    Only for leads the list holds classes, verdicts, models and costs.

    Parameters
    ----------
    page_size : int or None, default 100
        Traces a page; None puts all of them on one.
    seen_by : str, optional
        Reviewer who is shown the list: the exposure log is told of each class and verdict in it.

    Raises
    ------
    InputError
        If the filter uses what only leads may know and the list is for others.
    """
    _allow(chosen, for_leads=for_leads)
    n = store.count_traces(chosen)
    pages = 1 if page_size is None else max(1, -(-n // page_size))
    page = min(max(1, page), pages)
    traces = store.trace_list(
        chosen,
        for_leads=for_leads,
        sort=sort,
        descending=descending,
        limit=page_size,
        offset=0 if page_size is None else (page - 1) * page_size,
    )
    if for_leads and seen_by is not None:
        _record_seen(store, traces, seen_by)
    return TracePage(n=n, page=page, pages=pages, traces=traces)


def _record_seen(store: Store, traces: pd.DataFrame, seen_by: str) -> None:
    labelled = traces["trace_id"][traces["class"] != UNLABELLED]
    store.record_exposure(seen_by, labelled.tolist(), "labels")
    if "verdict" in traces:
        judged = traces["trace_id"][traces["verdict"].notna()]
        store.record_exposure(seen_by, judged.tolist(), "verdicts")


def _allow(chosen: TraceFilter, *, for_leads: bool) -> None:
    if chosen.for_leads and not for_leads:
        raise InputError(HIDDEN_FILTER)


def plain_rows(traces: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the rows of a list as JSON can hold them: what is missing is None."""
    for row in traces.to_dict("records"):
        yield {str(name): _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, datetime):
        return value.isoformat() + "Z"
    return value


def traces_csv(
    store: Store, chosen: TraceFilter, *, for_leads: bool, seen_by: str | None = None
) -> str:
    """Return every trace that a filter finds as CSV that no spreadsheet runs as formulas."""
    listed = list_traces(store, chosen, for_leads=for_leads, page_size=None, seen_by=seen_by)
    return as_csv([str(name) for name in listed.traces.columns], plain_rows(listed.traces))


def batch_of(
    store: Store,
    chosen: TraceFilter,
    *,
    n: int | None = None,
    seed: int = 0,
    labels_wanted: int = 2,
    for_leads: bool = True,
    token: str | None = None,
) -> Batch:
    """Make a batch of the traces that a filter finds, or of `n` of them drawn at random.

    Traces that were chosen for what they are say nothing about the rate of production: the
    design names the filters, no trace has an inclusion probability, and analyses of a rate
    refuse the batch. Without any filter, or with one workflow alone, the batch is the random
    sample that `draw_batch` draws. A repeated `token` returns the batch that is there.

    Raises
    ------
    InputError
        If `n` is not positive, `seed` is negative, or the filter is not allowed.
    CalibrationError
        If the filter finds nothing, or fewer than `n` traces.
    """
    _allow(chosen, for_leads=for_leads)
    if n is not None and n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    workflow = chosen.workflows[0] if len(chosen.workflows) == 1 else None
    found = store.selected_ids(chosen)
    if not found:
        raise CalibrationError("these filters find no trace; take some away")
    n = len(found) if n is None else n
    if n > len(found):
        raise CalibrationError(
            f"{n} traces were asked for and the filters find {len(found)}; ask for fewer"
        )
    if chosen == (TraceFilter() if workflow is None else TraceFilter(workflows=(workflow,))):
        return draw_batch(
            store, n=n, seed=seed, workflow=workflow, labels_wanted=labels_wanted, token=token
        )
    ids = np.array(found, dtype=str)
    return store.add_batch(
        purpose="production",
        trace_ids=draw_ids(ids, n=n, seed=seed),
        inclusion_probability=None,
        labels_wanted=labels_wanted,
        design={
            "kind": SELECTION,
            "filters": chosen.to_dict(),
            "n": n,
            "found": len(found),
            "seed": seed,
            "found_sha256": hashlib.sha256("\n".join(found).encode()).hexdigest(),
        },
        token=token,
    )
