"""The entry script: title, banner, navigation."""

import streamlit as st

from app import session
from app.views import frame

st.set_page_config(
    page_title="ASR calibration", page_icon="⚖️", layout="wide", initial_sidebar_state="collapsed"
)

page = st.navigation(
    [
        st.Page("views/label.py", title="Label", default=True),
        st.Page("views/agreement.py", title="Agreement"),
        st.Page("views/asr.py", title="ASR"),
    ],
    position="top",
)
frame.tighten()
frame.banner(session.require_store())
page.run()
