"""Sections of a page, folded behind a heading that holds their answer.

A closed section works nothing out. Whether one is open is kept by its key for the session.
"""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from app.frame import plain


def folded(
    key: str, title: str, answer: str, draw: Callable[[], object], *, small: bool = False
) -> None:
    """Draw a section that is closed until somebody opens it.

    Parameters
    ----------
    key : str
        Its state in the session: True while it is open.
    title, answer : str
        The heading; names in it are text.
    draw : callable
        Draws what is in it; not called while the section is closed.
    small : bool, default False
        Without a frame, inside of another section.
    """
    state, drawn = st.session_state, f"{key}_section"
    name = plain(title) if small else f"**{plain(title)}**"
    heading = name + (f": {plain(answer)}" if answer else "")
    # Another heading is another widget to Streamlit: what is open must not depend on the answer.
    state[drawn] = bool(state.get(key))
    box = st.expander(
        heading, key=drawn, on_change=_toggled, args=(key, drawn),
        type="compact" if small else "default",
    )  # fmt: skip
    if box.open:
        with box:
            draw()


def _toggled(key: str, drawn: str) -> None:
    st.session_state[key] = st.session_state[drawn]


def as_table(cells: pd.DataFrame, *, alt: str) -> None:
    """Offer the numbers of the chart above as a table, one key away."""
    with st.popover("Show as a table", type="tertiary"):
        st.dataframe(cells, hide_index=True, alt=alt)


def verdict(key: str, *sentences: str) -> None:
    """Draw the verdict of a page: the first sentence large, the others below it."""
    with st.container(key=key, gap="xsmall"):
        for sentence in sentences:
            st.text(sentence)
