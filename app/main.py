"""The entry script: title, banner, navigation."""

from urllib.parse import urlsplit

import streamlit as st

from app import session
from app.views import frame

st.set_page_config(
    page_title="ASR calibration", page_icon="⚖️", layout="wide", initial_sidebar_state="collapsed"
)

frame.tighten()
fresh = not session.store_path().exists()
store = None if fresh else session.require_store()
reviewer = None if store is None else session.chosen_reviewer(store)
if reviewer is not None:
    # Every page keeps the choice in the address: a reload must not show what is hidden from them.
    session.choose_reviewer(reviewer.reviewer_id)
leads = reviewer is not None and reviewer.role == "lead"
# The default page has no address of its own: a page that is asked for by name is not the default.
asked = urlsplit(st.context.url or "").path.strip("/")
overview_first = (leads or asked == "label") and asked != "overview"
label = st.Page("views/label.py", title="Label", default=not fresh and not overview_first)
overview = st.Page("views/overview.py", title="Overview", default=not fresh and overview_first)
set_up = st.Page("views/start.py", title="Set up", default=fresh)
page = st.navigation(
    [
        *([overview, label] if leads else [label, overview]),
        st.Page("views/certify.py", title="Certificate"),
        st.Page("views/agreement.py", title="Agreement"),
        st.Page("views/judge.py", title="Judge"),
        st.Page("views/asr.py", title="ASR"),
        st.Page("views/data.py", title="Data"),
        set_up,
    ],
    position="top",
)
if store is not None:
    frame.banner(store)
elif page != set_up:
    session.require_store()
page.run()
