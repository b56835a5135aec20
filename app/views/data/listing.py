"""The list of traces on the Data page: filters, saved queries, batches and export."""

import json
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any, cast

import streamlit as st

from app import session
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
from calibration.store import SORTED_BY, Store, TraceFilter, label_states

KEY = "data_"
ENDED = {"error": "a call ended in an error", "ok": "every call ended well"}
PICK, SAVE_AS, MESSAGE, MADE = "data_pick", "data_save_as", "data_message", "data_made"
MANY = ("workflows", "statuses", "classes", "tags", "verdicts", "models")

AHEAD = (
    "trace_id", "workflow", "task", "class", "verdict", "status", "tool_calls", "tool_errors",
)  # fmt: skip

COLUMNS = {
    "trace_id": "trace", "task_key": "task key", "n_steps": "steps", "started_at": "started (UTC)",
    "latency_s": "latency s", "tool_calls": "tool calls", "tool_errors": "tool errors",
    "cost_usd": "cost $", "source_id": "id in its source", "class": "class (humans)",
}  # fmt: skip


def show(store: Store) -> None:
    """Show filters, the traces that they find, and what can be done with them."""
    _saved_queries(store)
    _filters(store)
    try:
        chosen = _chosen()
        found = _page_of(store, chosen)
    except CalibrationError as error:
        st.text(str(error))
        return
    if not found.n:
        st.subheader("No trace found", anchor=False)
        st.text("These filters exclude each other or nothing is like that. Take some away.")
        st.button("Clear all filters", key="data_clear_none", on_click=_fill, args=(TraceFilter(),))
        return
    _table(found)
    _use(store, chosen, found.n)


# Filters


def _filters(store: Store) -> None:
    facets, taxonomy = store.trace_facets(), store.taxonomy()
    first, second, third, fourth = st.columns(4)
    first.text_input("Text in the task", key=KEY + "text")
    second.text_input("Task key", key=KEY + "task_key", help="All trials of one task")
    third.multiselect("Workflow", _offer("workflows", facets.workflows), key=KEY + "workflows")
    fourth.multiselect("Status", _offer("statuses", facets.statuses), key=KEY + "statuses")
    first, second, third, fourth = st.columns(4)
    _one(first, "Tool called", "tool", facets.tools)
    _one(second, "How its calls ended", "tool_ended", tuple(ENDED), ENDED)
    third.date_input("Started from (UTC)", value=None, key=KEY + "from")
    fourth.date_input("Started up to (UTC)", value=None, key=KEY + "to")
    first, second, third, fourth = st.columns(4)
    _one(
        first,
        "Batch",
        "batch_id",
        tuple(b.batch_id for b in store.batches() if b.purpose != "adjudication"),
    )
    second.multiselect("Class (humans)", label_states(taxonomy), key=KEY + "classes")
    judges = tuple(store.judge_frame()["judge_id"])
    if sum(name.startswith(SOURCE_JUDGE) for name in judges) > 1:
        judges = (SOURCE_JUDGE, *judges)
    _one(third, "Judge", "judge", judges)
    if st.session_state.get(KEY + "judge"):
        fourth.multiselect("Verdict", (*taxonomy.names, NO_VERDICT), key=KEY + "verdicts")
    else:
        fourth.multiselect("Verdict", (), placeholder="Choose a judge first")
    first, second = st.columns(2)
    first.multiselect(
        "Tag of a label", _offer("tags", facets.tags), key=KEY + "tags",
        placeholder="Any" if facets.tags else "No label carries a tag yet",
    )  # fmt: skip
    if len(facets.models) > 1 or st.session_state.get(KEY + "models"):
        second.multiselect("Model", _offer("models", facets.models), key=KEY + "models")


def _one(
    place: Any, label: str, name: str, options: tuple[str, ...], shown: dict[str, str] | None = None
) -> None:
    # A saved query may name what the store has no more: it stays on offer while it is chosen.
    now = st.session_state.get(KEY + name)
    if now is not None and now not in options:
        options = (now, *options)
    place.selectbox(
        label, options, index=None, key=KEY + name, placeholder="Any",
        format_func=lambda option: (shown or {}).get(option, option),
    )  # fmt: skip


def _offer(name: str, options: tuple[str, ...]) -> tuple[str, ...]:
    chosen = st.session_state.get(KEY + name, [])
    return (*(value for value in chosen if value not in options), *options)


def _chosen() -> TraceFilter:
    """Return the filters as the widgets say."""
    state = st.session_state
    one = {n: state.get(KEY + n) for n in ("tool", "tool_ended", "batch_id", "judge")}
    typed = {n: (state.get(KEY + n) or "").strip() or None for n in ("text", "task_key")}
    many = {n: tuple(state.get(KEY + n, ())) for n in MANY}
    if one["judge"] is None:
        many["verdicts"] = ()
    end = _midnight(state.get(KEY + "to"))
    return TraceFilter(
        **cast(Any, one | typed | many),
        started_from=_midnight(state.get(KEY + "from")),
        started_before=None if end is None else end + timedelta(days=1),
    )


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time())


def _fill(chosen: TraceFilter) -> None:
    """Set every filter; called before the widgets are drawn."""
    state = st.session_state
    for name in MANY:
        state[KEY + name] = list(getattr(chosen, name))
    for name in ("tool", "tool_ended", "batch_id", "judge"):
        state[KEY + name] = getattr(chosen, name)
    for name in ("text", "task_key"):
        state[KEY + name] = getattr(chosen, name) or ""
    start, end = chosen.started_from, chosen.started_before
    state[KEY + "from"] = None if start is None else start.date()
    state[KEY + "to"] = None if end is None else (end - timedelta(days=1)).date()
    state[KEY + "page"] = 1


# Saved queries


def _saved_queries(store: Store) -> None:
    saved = store.saved_queries()
    pick, name, save, forget, clear = st.columns([4, 4, 2, 2, 2], vertical_alignment="bottom")
    now = st.session_state.get(PICK)
    pick.selectbox(
        "Saved query", list(saved), index=None, key=PICK, on_change=_pick, args=(saved,),
        placeholder="None saved yet" if not saved else "Choose one",
    )  # fmt: skip
    name.text_input("Save these filters as", key=SAVE_AS, max_chars=80)
    save.button("Save", key="data_save", on_click=_save, args=(store,), width="stretch")
    forget.button(
        "Forget", key="data_forget", on_click=_forget, args=(store,), disabled=now is None,
        width="stretch", help="Take the chosen query off the list",
    )  # fmt: skip
    clear.button("Clear", key="data_clear", on_click=_fill, args=(TraceFilter(),), width="stretch")
    if message := st.session_state.pop(MESSAGE, ""):
        st.text(message)


def _pick(saved: dict[str, TraceFilter]) -> None:
    name = st.session_state[PICK]
    if name in saved:
        _fill(saved[name])


def _save(store: Store) -> None:
    name = st.session_state[SAVE_AS]
    try:
        chosen = _chosen()
        st.session_state[MESSAGE] = f"Saved as {' '.join(name.split())}."
        store.save_query(name, chosen)
    except CalibrationError as error:
        st.session_state[MESSAGE] = str(error)


def _forget(store: Store) -> None:
    name = st.session_state[PICK]
    st.session_state[PICK] = None
    if name is not None:
        store.forget_query(name)


# The list


def _page_of(store: Store, chosen: TraceFilter) -> TracePage:
    state = st.session_state
    # Other filters have other pages: what was found is shown from its beginning.
    if state.get("data_last") != chosen:
        state["data_last"] = chosen
        state[KEY + "page"] = 1
    return list_traces(
        store, chosen, for_leads=True, sort=state.get(KEY + "sort", "imported"),
        descending=state.get(KEY + "descending", False), page=state.get(KEY + "page", 1),
        seen_by=_seen_by(store),
    )  # fmt: skip


def _seen_by(store: Store) -> str | None:
    reviewer = session.chosen_reviewer(store)
    return None if reviewer is None else reviewer.reviewer_id


def _table(found: TracePage) -> None:
    title, sort, order, page = st.columns([6, 3, 2, 2], vertical_alignment="bottom")
    first = (found.page - 1) * PAGE + 1
    title.subheader(f"{found.n:,} traces", anchor=False)
    title.caption(f"Shown: {first:,} to {min(first + PAGE - 1, found.n):,}")
    sort.selectbox("Sort by", list(SORTED_BY), key=KEY + "sort")
    order.toggle("Descending", key=KEY + "descending")
    page.number_input(f"Page of {found.pages:,}", 1, found.pages, key=KEY + "page")
    ahead = [name for name in AHEAD if name in found.traces]
    shown = found.traces[ahead + [str(n) for n in found.traces.columns if n not in ahead]]
    st.dataframe(
        shown.rename(columns=COLUMNS), hide_index=True, height=420,
        alt="The traces that the filters find, one a row",
        column_config={"task": st.column_config.TextColumn(width="medium")},
    )  # fmt: skip


# What can be done with it


def _use(store: Store, chosen: TraceFilter, n: int) -> None:
    _batch(store, chosen, n)
    st.download_button(
        f"Export all {n:,} as CSV",
        data=partial(traces_csv, store, chosen, for_leads=True, seen_by=_seen_by(store)),
        file_name="traces.csv", mime="text/csv", on_click="ignore", key="data_export",
    )  # fmt: skip


def _batch(store: Store, chosen: TraceFilter, n: int) -> None:
    st.subheader("Make a batch of these", anchor=False)
    state = st.session_state
    state.setdefault(MADE, {"message": ""})
    state[KEY + "n"] = min(state.get(KEY + "n", 40), n)
    size, seed, wanted, press = st.columns([3, 3, 3, 3], vertical_alignment="bottom")
    size.number_input(
        f"Traces, at random out of {n:,}", 1, n, key=KEY + "n", help=f"{n:,} takes all of them"
    )
    seed.number_input("Seed", 0, 2**31 - 1, value=1, key=KEY + "seed")
    wanted.number_input("Labels wanted a trace", 1, 10, value=2, key=KEY + "wanted")
    press.button(
        "Make the batch", key="data_batch", on_click=_make, args=(store, chosen, n), width="stretch"
    )
    if chosen == TraceFilter():
        st.caption("No filter is set: this is a random sample of production, fit for a rate.")
    elif chosen == TraceFilter(workflows=chosen.workflows[:1]):
        st.caption("A random sample of the production traces of this workflow, fit for its rate.")
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
