"""What every page has around it: margins and the banner for simulated data."""

import streamlit as st

from app import session
from calibration.store import Store

SIMULATED = "Simulated data: people, labels and verdicts here are invented by the demo."

_STYLE = """<style>
[data-testid="stMainBlockContainer"] {
  padding: 3.9rem 1.5rem 1.25rem; max-width: none;
}
.st-key-page { max-width: 62rem; margin: 1.5rem auto 0; }
.st-key-simulated {
  background: var(--asr-banner, rgba(214, 158, 46, .16));
  border-radius: 6px; padding: .3rem .8rem;
}
.st-key-simulated p, .st-key-simulated [data-testid="stText"] { font-size: .85rem; }
</style>"""


def no_batch(title: str) -> None:
    """Say what to do while there is no batch of production traces."""
    st.header(title, anchor=False)
    st.text("Traces are labelled in batches. Draw one, for example 40 traces at random:")
    st.code(session.command("sample --n 40 --seed 1"), language="bash")
    st.text("If there are no traces in the store yet, import them first:")
    st.code(session.command("import FILES"), language="bash")
    st.text("While this app runs it holds the store: stop it, run the command, start it again.")


def tighten() -> None:
    """Give the page the width and height that Streamlit leaves empty."""
    st.html(_STYLE)


def banner(store: Store) -> None:
    """Say so when the store holds simulated data."""
    if store.is_simulated():
        with st.container(key="simulated"):
            st.text(SIMULATED)
