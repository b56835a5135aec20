"""Data: bring files in, find traces, and make batches of what was found."""

import streamlit as st

from app import data_import, data_list, session
from calibration.store import TraceFilter

LIST, IMPORT = "Traces", "Import files"


def _page() -> None:
    store = session.require_store()
    st.header("Data", anchor=False)
    if session.labels_anything(store):
        st.text("You still have traces to label.")
        st.text("What others and the judge say stays hidden from you until you have finished.")
        return
    if not session.is_lead(store):
        data_list.show(store, lead=False)
        st.caption("Importing, batches, classes, verdicts, models and costs are for leads.")
        return
    empty = store.count_traces(TraceFilter()) == 0
    # Chosen once: the tab stays where it is when the first import fills the list.
    first = st.session_state.setdefault("data_first", IMPORT if empty else LIST)
    listed, brought = st.tabs([LIST, IMPORT], default=first)
    with brought:
        data_import.show(store)
    with listed:
        if empty:
            st.text("There are no traces yet. Bring some in under Import files.")
        else:
            data_list.show(store, lead=True)


with st.container(key="data"):
    _page()
