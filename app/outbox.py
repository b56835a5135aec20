"""What the desk of a page has sent: taken in, and what became of it."""

import streamlit as st

from app import session
from app.components import trace_view
from app.labelling import Apply, Receipts, apply_events


def receipts(page: str, reviewer_id: str, batch_id: str) -> Receipts:
    """Return what became of the events that this session sent from a page."""
    kept: Receipts = st.session_state.setdefault(
        f"{page}_receipts:{reviewer_id}:{batch_id}", Receipts()
    )
    return kept


def receive(page: str, apply: Apply | None = None) -> None:
    """Take in what a desk sent; a callback. `apply` writes one event, as in `apply_events`."""
    # All session state first, the store last: Streamlit may abandon this run at any access
    # to session state, and the browser then sends the same events again.
    sent = trace_view.received()
    reviewer, batch, events = sent.get("reviewer"), sent.get("batch"), sent.get("events")
    if not (isinstance(reviewer, str) and isinstance(batch, str) and isinstance(events, list)):
        return
    kept = receipts(page, reviewer, batch)
    held, number = sent.get("held"), sent.get("number")
    kept.held = {t for t in held if isinstance(t, str)} if isinstance(held, list) else set()
    kept.number = number if isinstance(number, int) else 0
    kept.listing = sent.get("listing") is True
    apply_events(session.require_store(), reviewer, batch, events, kept, apply)
