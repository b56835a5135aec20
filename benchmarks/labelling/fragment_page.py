"""The least that Streamlit can do after a key: one button in a fragment, one text."""

import streamlit as st


@st.fragment
def _panel() -> None:
    pressed = st.session_state.get("pressed", 0)
    if st.button("Next", shortcut="n"):
        pressed += 1
        st.session_state["pressed"] = pressed
    st.text(f"pressed {pressed}")


_panel()
