"""From a table of traces to the page of one, and along the list that it was opened from."""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
import streamlit as st

from app import frame

PAGE = "views/trace.py"
COLUMN = "trace"
TRACE, LIST = "id", "list"

# A list is kept for as long as the server runs, so that a reload or a shared address has it too.
MOST_LISTS, MOST_IDS = 500, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceList:
    """Traces in the order in which a page listed them.

    Parameters
    ----------
    page : str
        Address of the page.
    title : str
    query : mapping
        Parameters of that address.
    trace_ids : tuple of str
    """

    page: str
    title: str
    query: Mapping[str, str | list[str]]
    trace_ids: tuple[str, ...]


_kept: OrderedDict[str, TraceList] = OrderedDict()
_kept_lock = threading.Lock()


def keep(listed: TraceList) -> str:
    """Keep a list in place of those unused for longest; return the name to find it by."""
    text = json.dumps(asdict(listed), sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    with _kept_lock:
        _kept[name] = listed
        _kept.move_to_end(name)
        while len(_kept) > MOST_LISTS:
            _kept.popitem(last=False)
    return name


def kept(name: str) -> TraceList | None:
    """Return a list by its name, if the server still has it."""
    with _kept_lock:
        if name in _kept:
            _kept.move_to_end(name)
        return _kept.get(name)


def table(
    cells: pd.DataFrame,
    *,
    key: str,
    page: str,
    title: str,
    config: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Draw a table with a trace a row; a click on its id, in the column `trace`, opens its page.

    Returns what `st.dataframe` does.

    Parameters
    ----------
    cells : DataFrame
    key : str
    page : str
        Address of the page that lists them.
    title : str
        What is listed, also for screen readers.
    config : mapping, optional
        Of the other columns.
    **options
        Of `st.dataframe`.
    """
    click = f"{key}_open"
    opens = st.column_config.ButtonColumn(
        COLUMN, type="tertiary", alignment="left", pinned=True, key=click, help="Open this trace"
    )
    drawn = st.dataframe(
        cells, key=key, hide_index=True, alt=title, column_config={COLUMN: opens, **(config or {})},
        **options,
    )  # fmt: skip
    clicked = st.session_state.get(click)
    if clicked is None or not 0 <= clicked["row"] < len(cells):
        return drawn
    row, ids = clicked["row"], [str(trace_id) for trace_id in cells[COLUMN]]
    first = max(0, min(row - MOST_IDS // 2, len(ids) - MOST_IDS))
    query = {name: st.query_params.get_all(name) for name in st.query_params}
    listed = TraceList(
        page=page, title=title, query=query, trace_ids=tuple(ids[first : first + MOST_IDS])
    )
    open_trace(ids[row], keep(listed))
    return drawn


def open_trace(trace_id: str, listed: str | None = None) -> None:
    """Go to the page of a trace; this ends the run."""
    st.switch_page(PAGE, query_params=address(trace_id, listed))


def address(trace_id: str, listed: str | None = None) -> dict[str, str]:
    """Return the parameters of the page of a trace, with who is here."""
    who = st.query_params.get("reviewer")
    found = {TRACE: trace_id, LIST: listed, "reviewer": who}
    return {name: value for name, value in found.items() if value}


def put_back() -> None:
    """Restore the address of a page that somebody goes back to from a trace.

    Opening a trace leaves two entries in the history of a browser: the first has the path of the
    page with the table and already the parameters of the trace.
    """
    name = st.query_params.get(LIST)
    if name is None:
        return
    listed = kept(name)
    if listed is not None:
        st.switch_page(frame.SCRIPTS[listed.page], query_params=dict(listed.query))
    for name in (TRACE, LIST):
        st.query_params.pop(name, None)
