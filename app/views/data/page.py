"""Data: bring files in, find traces, and make batches of what was found."""

import streamlit as st

from app import frame, session
from app.views.data import imports, listing
from calibration.store import TraceFilter


def _page() -> None:
    store = session.require_store()
    empty = store.count_traces(TraceFilter()) == 0
    st.header("Data", anchor=False)
    # Whether it is open at first: it stays open when the first import fills the list.
    first = st.session_state.setdefault("data_first", empty)
    with st.expander("Import files", expanded=first, key="data_import"):
        if imports.show(store):
            st.text("The traces are below. Next, draw a batch of them to label.")
            st.page_link("views/start.py", label="Draw a batch", query_params={"step": "batch"})
    if empty:
        frame.nothing_yet(store)
    else:
        listing.show(store)


with st.container(key="data"):
    _page()
