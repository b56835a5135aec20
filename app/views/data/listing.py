"""The traces on the Data page: one search line, saved views, columns, batches, export."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app import frame, session
from app.components import trace_links
from calibration.analyses.sampling.draw import (
    PAGE,
    SamplingDesign,
    TracePage,
    batch_of,
    list_traces,
    traces_csv,
)
from calibration.errors import CalibrationError
from calibration.records import NO_VERDICT, SOURCE_JUDGE
from calibration.store import (
    SORTED_BY,
    SavedView,
    Store,
    TraceFacets,
    TraceFilter,
    label_states,
    parse_search,
    search_terms,
)
from calibration.text import one_line

KEY = "data_"
# Parameters of the address.
SEARCH, SORT, DESCENDING, AT, COLUMNS = "q", "sort", "desc", "at", "columns"
SAVE_AS, MESSAGE, MADE, SHOWN = "data_save_as", "data_message", "data_made", "data_shown"

MOST_TERMS, MOST_OFFERED, MOST_OPEN = 50, 60, 14
TASK = 60
HIDDEN = "hidden"
EXAMPLE = "Words, ids, or filters: workflow:support class:{name} tool:refund error:yes"

NAMES = {
    "workflow": "workflow", "task": "task", "class": "class", "verdict": "verdict",
    "status": "status", "tool_calls": "tool calls", "tool_errors": "tool errors",
    "started_at": "started (UTC)", "latency_s": "seconds", "cost_usd": "cost $",
    "labels": "labels", "n_steps": "steps", "task_key": "task key", "trial": "trial",
    "model": "model", "source_id": "id in its source",
}  # fmt: skip
AT_FIRST = [NAMES[name] for name in list(NAMES)[:10]]

CONFIG = {
    "started (UTC)": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
    "seconds": st.column_config.NumberColumn(format="%.1f"),
    "cost $": st.column_config.NumberColumn(format="%.4f"),
}


def show(store: Store) -> None:
    """Show the search line, the traces that it finds, and what can be done with them."""
    facets = store.trace_facets()
    columns = _tools(store, facets)
    try:
        chosen = _chosen(store)
        n = store.count_traces(chosen)
    except CalibrationError as error:
        st.text(f"This search cannot be read. {error}.")
        return
    if not n:
        _nothing(facets, chosen)
        return
    found = _page_of(store, chosen, n)
    if found.still_blind:
        _blind(found, chosen)
    if not found.traces.empty:
        _table(store, found, columns)
        _use(store, chosen, n)


# The search line


def _tools(store: Store, facets: TraceFacets) -> list[str]:
    """Draw the search line with saved views and columns; return the columns chosen."""
    line, saved, columns = st.columns([10, 2, 1.4], vertical_alignment="bottom")
    example = EXAMPLE.format(name=store.taxonomy().failed_check)
    line.multiselect(
        "Search", list(_offered(store, facets)), key=SEARCH, accept_new_options=True,
        max_selections=MOST_TERMS, filter_mode="prefix", select_all=False, placeholder=example,
        label_visibility="collapsed", bind="query-params", on_change=_typed, args=(store,),
    )  # fmt: skip
    with saved.popover("Saved views", width="stretch"):
        _saved(store)
    with columns.popover("Columns", width="stretch"):
        chosen: list[str] = st.multiselect(
            "Columns", list(NAMES.values()), default=AT_FIRST, key=COLUMNS, bind="query-params"
        )
    return chosen


def _offered(store: Store, facets: TraceFacets) -> Iterator[str]:
    """Yield terms to choose from, the most useful keys first."""
    taxonomy = store.taxonomy()
    judges = tuple(store.judge_frame()["judge_id"])
    if sum(name.startswith(SOURCE_JUDGE) for name in judges) > 1:
        judges = (SOURCE_JUDGE, *judges)
    batches = tuple(b.batch_id for b in store.batches() if b.purpose != "adjudication")
    for name, values in (
        ("workflows", facets.workflows), ("tool", facets.tools), ("tool_ended", ("error", "ok")),
        ("classes", label_states(taxonomy)), ("statuses", facets.statuses),
        ("batch_id", batches), ("tags", facets.tags), ("judge", judges),
        ("models", facets.models if len(facets.models) > 1 else ()),
    ):  # fmt: skip
        many = name.endswith("s")
        for value in values[:MOST_OFFERED]:
            given: Any = (value,) if many else value
            yield from search_terms(TraceFilter(**{name: given}))
    if judges:
        yield from (f"verdict:{name}" for name in (*taxonomy.names, NO_VERDICT))


def _line() -> str:
    return " ".join(st.session_state.get(SEARCH) or ())


def _chosen(store: Store) -> TraceFilter:
    return parse_search(_line(), store.taxonomy())


def _typed(store: Store) -> None:
    """Make a chip of each term that was typed in one go; other traces start at the first page."""
    state = st.session_state
    _from_the_start()
    try:
        terms = list(search_terms(_chosen(store)))
    except CalibrationError:
        return  # it stays as it was typed, to be put right
    if sorted(terms) != sorted(state[SEARCH]):
        state[SEARCH] = terms


def _fill(chosen: TraceFilter) -> None:
    st.session_state[SEARCH] = list(search_terms(chosen))
    _from_the_start()


def _from_the_start() -> None:
    if st.session_state.get(AT, 1) != 1:
        st.session_state[AT] = 1


def _nothing(facets: TraceFacets, chosen: TraceFilter) -> None:
    st.subheader("No trace found", anchor=False)
    known = {
        "workflow": (chosen.workflows, facets.workflows),
        "status": (chosen.statuses, facets.statuses),
        "model": (chosen.models, facets.models),
        "tool": ((chosen.tool,) if chosen.tool else (), facets.tools),
    }
    for name, (asked, of) in known.items():
        for value in asked:
            if value not in of:
                st.text(f"No trace has the {name} {value}.")
    st.text("Remove a filter, or all of them:")
    st.button("Clear the search", key="data_clear", on_click=_fill, args=(TraceFilter(),))


# Saved views


def _saved(store: Store) -> None:
    saved = store.saved_views()
    for number, (name, view) in enumerate(saved.items()):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                frame.plain(name), key=f"data_pick_{number}", on_click=_pick, args=(view,),
                width="stretch",
                help=frame.plain(" ".join(search_terms(view.chosen))) or "All traces",
            )  # fmt: skip
            st.button(
                "Delete", key=f"data_forget_{number}", on_click=_forget, args=(store, name),
                type="tertiary",
            )  # fmt: skip
    if not saved:
        st.text("No view is saved yet.")
    name = st.text_input("Save this view as", key=SAVE_AS, max_chars=80)
    st.button("Save", key="data_save", on_click=_save, args=(store,), disabled=not name.strip())
    if message := st.session_state.pop(MESSAGE, ""):
        st.text(message)


def _pick(view: SavedView) -> None:
    _fill(view.chosen)
    state = st.session_state
    state[SORT], state[DESCENDING] = view.sort, view.descending
    state[COLUMNS] = [name for name in view.columns if name in NAMES.values()] or AT_FIRST


def _forget(store: Store, name: str) -> None:
    try:
        store.forget_view(name)
    except CalibrationError as error:
        st.session_state[MESSAGE] = f"Not deleted: {error}."


def _save(store: Store) -> None:
    state = st.session_state
    name = state[SAVE_AS]
    try:
        columns = tuple(state[COLUMNS])
        view = SavedView(
            chosen=_chosen(store), sort=state.get(SORT, "imported"),
            descending=state.get(DESCENDING, False),
            columns=() if list(columns) == AT_FIRST else columns,
        )  # fmt: skip
        state[MESSAGE] = f"Saved as {' '.join(name.split())}."
        store.save_view(name, view)
    except CalibrationError as error:
        state[MESSAGE] = f"Not saved: {error}."


# The list


def _page_of(store: Store, chosen: TraceFilter, n: int) -> TracePage:
    """Draw how many there are with the choice of page and order; return the page chosen."""
    of = -(-n // PAGE)
    title, pages, sort, order = st.columns([4, 5, 2, 2], vertical_alignment="bottom")
    page = pages.pagination(of, key=AT, bind="query-params")
    sorted_by = sort.selectbox("Sort by", list(SORTED_BY), key=SORT, bind="query-params")
    descending = order.toggle("Descending", key=DESCENDING, bind="query-params")
    title.subheader(f"{n:,} trace{'s' * (n != 1)}", anchor=False)
    title.caption(f"Page {page:,} of {of:,}. Click a trace to open it.")
    return list_traces(
        store, chosen, for_leads=True, sort=sorted_by, descending=descending, page=page, n=n,
        seen_by=session.reviewer_id(store), show_all=_shown(chosen),
    )  # fmt: skip


def _shown(chosen: TraceFilter) -> bool:
    """Whether the reader has asked for what ends blindness in this list."""
    return bool(st.session_state.get(SHOWN) == chosen)


def _blind(found: TracePage, chosen: TraceFilter) -> None:
    """Ask before the list shows what others decided on traces that are still to be decided."""
    n = found.still_blind
    them = "this trace" if n == 1 else f"{n:,} traces"
    which = "found" if found.traces.empty else "listed"
    with st.container(horizontal=True, vertical_alignment="center", key="data_blind"):
        st.text(
            f"You can still label or adjudicate {them} {which} here blind, so "
            f"{'its class and verdict' if n == 1 else 'their classes and verdicts'} are hidden."
        )
        st.button("Show them", key="data_show", on_click=_show_all, args=(chosen,))


def _show_all(chosen: TraceFilter) -> None:
    st.session_state[SHOWN] = chosen


def _table(store: Store, found: TracePage, columns: list[str]) -> None:
    cells = _cells(store, found.traces)
    kept = [name for name in columns if name in cells]
    trace_links.table(
        cells[[trace_links.COLUMN, *kept]], key="data_traces", page="data",
        height="content" if len(cells) <= MOST_OPEN else 560,
        title="Traces that the search finds", config=CONFIG,
    )  # fmt: skip


def _cells(store: Store, traces: pd.DataFrame) -> pd.DataFrame:
    """Return the rows as they are shown."""
    titles = {c.name: c.title for c in store.taxonomy().classes}
    cells = traces.copy()
    # The browser cuts a text at the edge of its column and leaves no mark.
    cells["task"] = [one_line(task or "", most=TASK) for task in traces["task"]]
    cells["class"] = [HIDDEN if c is None else titles.get(c, c) for c in traces["class"]]
    if "verdict" in traces:
        cells["verdict"] = [titles.get(v, v) for v in traces["verdict"]]
    return cells.rename(columns=NAMES | {"trace_id": trace_links.COLUMN})


# What can be done with it


def _use(store: Store, chosen: TraceFilter, n: int) -> None:
    with st.expander(f"Make a batch of these {n:,} traces, or export them", key="data_use"):
        _batch(store, chosen, n)
        st.download_button(
            f"Export all {n:,} as CSV",
            data=partial(
                traces_csv, store, chosen, for_leads=True, seen_by=session.reviewer_id(store),
                show_all=_shown(chosen),
            ),
            file_name="traces.csv", mime="text/csv", on_click="ignore", key="data_export",
        )  # fmt: skip
        st.caption(
            "Labels, final labels, verdicts, training data for a judge, scores for the platform "
            f"and a dataset to share: `{session.command('export --help')}`."
        )


def _batch(store: Store, chosen: TraceFilter, n: int) -> None:
    state = st.session_state
    state.setdefault(MADE, {"message": ""})
    state[KEY + "n"] = min(state.get(KEY + "n", 40), n)
    size, seed, wanted, press = st.columns([3, 3, 3, 3], vertical_alignment="bottom")
    size.number_input(
        f"Traces, at random out of {n:,}", 1, n, key=KEY + "n", help=f"{n:,} takes all of them"
    )
    seed.number_input("Seed", 0, 2**31 - 1, value=1, key=KEY + "seed")
    wanted.number_input("Labels per trace", 1, 10, value=2, key=KEY + "wanted")
    press.button(
        "Create the batch",
        key="data_batch",
        on_click=_make,
        args=(store, chosen, n),
        width="stretch",
    )
    if chosen == TraceFilter():
        st.caption("No filter is set: this is a random sample of production, suitable for a rate.")
    elif chosen == TraceFilter(workflows=chosen.workflows[:1]):
        st.caption(
            "A random sample of the production traces of this workflow, suitable for its rate."
        )
    else:
        st.caption(
            "Traces chosen by filters say nothing about the rate of production. Their batch is for "
            "labelling and agreement; the ASR page refuses it."
        )
    if message := state[MADE]["message"]:
        st.text(message)


def _make(store: Store, chosen: TraceFilter, found: int) -> None:
    # All session state first, the store last: Streamlit may abandon this at any access.
    state = st.session_state
    made = state[MADE]
    n, seed, wanted = state[KEY + "n"], state[KEY + "seed"], state[KEY + "wanted"]
    # The same request is one batch, however often the button is pressed.
    token = json.dumps(["selection", chosen.to_dict(), found, n, seed, wanted])
    try:
        batch = batch_of(
            store, chosen, SamplingDesign(seed=seed, labels_wanted=wanted, token=token), n=n
        )
    except CalibrationError as error:
        made["message"] = str(error)
    else:
        made["message"] = f"{batch.batch_id}: {batch.n_items:,} traces, ready on the Label page."
