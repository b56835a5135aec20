"""The entry script: title, banner, navigation."""

import streamlit as st

from app import session
from app.views import frame

st.set_page_config(
    page_title="ASR calibration", page_icon="⚖️", layout="wide", initial_sidebar_state="collapsed"
)

fresh = not session.store_path().exists()
page = st.navigation(
    [
        st.Page("views/label.py", title="Label", default=not fresh),
        st.Page("views/agreement.py", title="Agreement"),
        st.Page("views/asr.py", title="ASR"),
        st.Page("views/start.py", title="Set up", default=fresh),
    ],
    position="top",
)
frame.tighten()
if not (fresh and page.title == "Set up"):
    frame.banner(session.require_store())
page.run()
