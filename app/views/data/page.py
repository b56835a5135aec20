"""Data: bring files in, find traces, and make batches of what was found."""

import streamlit as st

from app import session
from app.views.data import imports, listing
from calibration.store import TraceFilter

LIST, IMPORT = "Traces", "Import files"


def _page() -> None:
    store = session.require_store()
    st.header("Data", anchor=False)
    empty = store.count_traces(TraceFilter()) == 0
    # Chosen once: the tab stays where it is when the first import fills the list.
    first = st.session_state.setdefault("data_first", IMPORT if empty else LIST)
    listed, brought = st.tabs([LIST, IMPORT], default=first)
    with brought:
        imports.show(store)
    with listed:
        if empty:
            st.text("There are no traces yet. Bring some in under Import files.")
        else:
            listing.show(store)


with st.container(key="data"):
    _page()
