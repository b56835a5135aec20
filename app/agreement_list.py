"""On which traces? The list, in the order to adjudicate, and one trace with what was said of it."""

from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from app import session
from app.components.plain_view import trace_as_text
from app.desk_data import bounded_text
from app.picking import NOTHING, TRACE, active, cell_of, reset
from calibration.analyses.agreement import AgreementAnalysis
from calibration.analyses.agreement_traces import TraceSet, disputed_traces, rated_traces
from calibration.analyses.trace_labels import GivenLabel, labelled_trace
from calibration.errors import CalibrationError
from calibration.reporting import agreement_csv
from calibration.store import Store

MOST_IN_SIGHT = 3
MOST_WITHOUT_SCROLLING = 5
LOGGED = "agreement_logged"


def chip() -> None:
    """Draw what the list is narrowed to, and the way back; it stays in sight on a long page."""
    found = active()
    if found is None:
        return
    with st.container(key="agreement_chip", horizontal=True, vertical_alignment="center"):
        st.text(f"{_count(found)} {found.what}")
        st.markdown("[See them](#traces)", width="content")
        st.button("Show all", key="agreement_show_all", on_click=reset)


def show(store: Store, result: AgreementAnalysis, names: Mapping[str, str]) -> None:
    """Draw the section."""
    st.subheader("On which traces?", anchor="traces")
    found = active() or disputed_traces(result)
    if not found.trace_ids:
        st.text(f"No trace {found.what}. A click on any number above lists those behind it.")
        return
    st.text(f"{_count(found)} {found.what}, the most open class first:")
    _log(store, found)
    _table(result, found, names)
    st.caption(
        "Entropy: how open the class is given everybody's labels (Dawid-Skene), 0 bits is certain, "
        "1 is two classes at even odds. Cost: alpha without the trace less alpha with it."
    )
    st.download_button(
        f"Download these {len(found.trace_ids):,} as CSV",
        data=partial(agreement_csv.traces, result, found),
        file_name="agreement-traces.csv", mime="text/csv", on_click="ignore",
        key="agreement_traces_csv",
    )  # fmt: skip
    cell = cell_of(TRACE)
    if cell is None:
        st.text("Click a trace to read it with everybody's labels beside it.")
    elif cell[0] < len(found.trace_ids):
        _opened(store, result, found, cell[0], names)


def _count(found: TraceSet) -> str:
    n = len(found.trace_ids)
    return f"{n:,} trace{'s' * (n != 1)}"


def _log(store: Store, found: TraceSet) -> None:
    """Write down once that this person is shown the labels of these traces."""
    reviewer = session.chosen_reviewer(store)
    state = st.session_state
    shown = (None if reviewer is None else reviewer.reviewer_id, hash(found.trace_ids))
    if state.get(LOGGED) != shown:
        session.log_exposure(store, found.trace_ids, "labels")
        state[LOGGED] = shown


def _table(result: AgreementAnalysis, found: TraceSet, names: Mapping[str, str]) -> None:
    rated = rated_traces(result, found)
    columns: dict[str, list[object]] = {
        "trace": [of.trace_id for of in rated],
        "parts at": [of.question or "-" for of in rated],
        "entropy": [of.entropy for of in rated],
        "cost": [of.cost for of in rated],
        "adjudicated": [of.settled or "-" for of in rated],
    }
    # A reviewer may be called like a column; a place cannot.
    for place, who in enumerate(result.reviewers):
        columns[f"r{place}"] = [of.labels.get(who, "") for of in rated]
    st.dataframe(
        pd.DataFrame(columns), key=TRACE, hide_index=True, on_select="rerun",
        selection_mode="single-cell", alt=f"Traces {found.what}", placeholder="-",
        column_config={
            "trace": st.column_config.TextColumn(
                pinned=len(result.reviewers) > MOST_WITHOUT_SCROLLING
            ),
            "entropy": st.column_config.NumberColumn("entropy, bits", format="%.2f"),
            "cost": st.column_config.NumberColumn("costs alpha", format="%.4f"),
            **{f"r{place}": names[who] for place, who in enumerate(result.reviewers)},
        },
    )  # fmt: skip


def _open(row: int) -> None:
    st.session_state[TRACE] = {"selection": NOTHING["selection"] | {"cells": [(row, "trace")]}}


def _opened(
    store: Store,
    result: AgreementAnalysis,
    found: TraceSet,
    row: int,
    names: Mapping[str, str],
) -> None:
    trace_id = found.trace_ids[row]
    try:
        opened = labelled_trace(store, result.batch_id, trace_id)
    except CalibrationError as error:
        st.text(str(error))
        return
    with st.container(border=True, key="agreement_opened"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{trace_id} ({row + 1} of {len(found.trace_ids):,})")
            st.button(
                "Previous trace", key="agreement_previous", disabled=row == 0,
                on_click=_open, args=(row - 1,),
            )  # fmt: skip
            st.button(
                "Next trace", key="agreement_next", disabled=row + 1 >= len(found.trace_ids),
                on_click=_open, args=(row + 1,),
            )  # fmt: skip
        left, right = st.columns([3, 2], gap="medium")
        # Beside a long trace they stay in sight, as long as they fit on a screen.
        key = "agreement_labels" if len(opened.labels) <= MOST_IN_SIGHT else None
        with right, st.container(key=key):
            st.markdown("#### What was said of it")
            if opened.settled is not None:
                st.text(f"Adjudicated: {opened.settled}")
            for label in opened.labels:
                _label(label, names)
        with left:
            trace_as_text(opened.trace)


def _label(label: GivenLabel, names: Mapping[str, str]) -> None:
    with st.container(border=True):
        who = names.get(label.reviewer_id, label.reviewer_id)
        if label.outcome is None:
            st.text(f"{who}: skipped ({bounded_text(label.reason or 'no reason given')})")
            return
        st.text(f"{who}: {label.outcome}")
        st.caption(" \u2192 ".join(f"{asked} {given}" for asked, given in label.answers.items()))
        st.text("Rationale: " + bounded_text(label.rationale or "none given"))
        for part in label.evidence:
            st.text(f"Evidence in {part.step_id}:")
            st.code(bounded_text(part.quote), language=None, wrap_lines=True)
        if label.confidence is not None:
            st.text(f"Confidence: {label.confidence}")
        if label.tags:
            st.text(f"Tags: {', '.join(label.tags)}")
        if not label.blind:
            st.text("Given after seeing what others said: not counted.")
