"""What every page with a list of traces needs: what it holds, who saw it, and one trace opened."""

from collections.abc import Callable, Iterable, Mapping

import streamlit as st

from app import session
from app.components import trace_links
from app.components.tables import NOTHING, Picks, cell_of
from app.desk.data import bounded_text
from app.desk.plain import trace_as_text
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.evidence.data import ReviewerLabel
from calibration.analyses.evidence.from_store import labelled_trace
from calibration.errors import CalibrationError
from calibration.records import in_words
from calibration.store import Store
from calibration.text import sentence

MOST_IN_SIGHT = 3


def counted(found: TraceSet) -> str:
    """Return how many traces there are, in words."""
    n = len(found.trace_ids)
    return f"{n:,} trace{'s' * (n != 1)}"


def chip(picks: Picks) -> None:
    """Draw what the list is narrowed to, and the way back; it stays in sight on a long page."""
    found = picks.active()
    if found is None:
        return
    with st.container(key=picks.key("chip"), horizontal=True, vertical_alignment="center"):
        st.text(f"{counted(found)} {found.what}")
        if st.session_state.get(picks.listing):
            st.markdown("[See the traces](#traces)", width="content")
        else:
            st.button("Open the list", key=picks.key("open"), on_click=_show, args=(picks,))
        st.button("Show all", key=picks.key("show_all"), on_click=picks.reset)


def _show(picks: Picks) -> None:
    st.session_state[picks.listing] = True


def log(picks: Picks, store: Store, found: TraceSet, *what: str) -> None:
    """Record once that this reviewer is shown the labels of these traces."""
    reviewer = session.chosen_reviewer(store)
    state, logged = st.session_state, picks.key("logged")
    shown = (None if reviewer is None else reviewer.reviewer_id, hash(found.trace_ids))
    if state.get(logged) != shown:
        for kind in what:
            session.log_exposure(store, found.trace_ids, kind)
        state[logged] = shown


def opened(
    picks: Picks,
    store: Store,
    batch_id: str,
    found: TraceSet,
    names: Mapping[str, str],
    also: Callable[[str], None] | None = None,
) -> None:
    """Draw the trace chosen in the list with everybody's labels, and before them what `also` does.

    `also` is called with the id of the trace.
    """
    cell = cell_of(picks.trace)
    if cell is None:
        st.text("Click a trace to read it with all its labels.")
        return
    row = cell[0]
    if row >= len(found.trace_ids):
        return
    trace_id = found.trace_ids[row]
    try:
        trace, shown = labelled_trace(store, batch_id, trace_id)
    except CalibrationError as error:
        st.text(sentence(str(error)))
        return
    with st.container(border=True, key=picks.key("opened")):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{trace_id} ({row + 1} of {len(found.trace_ids):,})")
            st.page_link(
                trace_links.PAGE,
                label="Open the page of this trace",
                query_params=trace_links.address(trace_id),
            )
            st.button(
                "Previous trace", key=picks.key("previous"), disabled=row == 0,
                on_click=_open, args=(picks, row - 1),
            )  # fmt: skip
            st.button(
                "Next trace", key=picks.key("next"), disabled=row + 1 >= len(found.trace_ids),
                on_click=_open, args=(picks, row + 1),
            )  # fmt: skip
        left, right = st.columns([3, 2], gap="medium")
        # Beside a long trace they stay in sight, as long as they fit on a screen.
        boxes = len(shown.labels) + (also is not None)
        with right, st.container(key=picks.key("labels") if boxes <= MOST_IN_SIGHT else None):
            st.markdown("#### Labels")
            if also is not None:
                also(trace_id)
            titles = store.taxonomy().titles
            if shown.consensus is not None:
                st.text(f"Final label: {titles.get(shown.consensus, shown.consensus)}")
            for label in shown.labels:
                label_box(label, names, titles)
        with left:
            trace_as_text(trace)


def _open(picks: Picks, row: int) -> None:
    st.session_state[picks.trace] = {
        "selection": NOTHING["selection"] | {"cells": [(row, "trace")]}
    }


def label_box(label: ReviewerLabel, names: Mapping[str, str], titles: Mapping[str, str]) -> None:
    """Draw a label with answers, rationale and evidence; names of people and classes by id."""
    with st.container(border=True):
        who = names.get(label.reviewer, label.reviewer)
        if label.outcome is None:
            st.text(f"{who}: skipped ({bounded_text(label.reason or 'no reason given')})")
            return
        st.text(f"{who}: {titles.get(label.outcome, label.outcome)}")
        answers = (label.answers or {}).items()
        st.caption(" \u2192 ".join(f"{q.replace('_', ' ')} {given}" for q, given in answers))
        st.text("Rationale: " + bounded_text(label.rationale or "none given"))
        quotes((part.step_id, part.quote) for part in label.evidence)
        if label.confidence is not None:
            st.text(f"Confidence: {label.confidence}")
        if label.tags:
            st.text(f"Tags: {', '.join(label.tags)}")
        if label.violations:
            st.text(f"Safety violations: {bounded_text(in_words(label.violations))}")
        if not label.blind:
            st.text("Given after seeing the labels of others: not counted.")


def quotes(parts: Iterable[tuple[str, str]]) -> None:
    """Draw quoted evidence, step by step."""
    for step_id, quote in parts:
        st.text(f"Evidence in {bounded_text(step_id)}:")
        st.code(bounded_text(quote), language=None, wrap_lines=True)
