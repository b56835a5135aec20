"""The desk as a component: it shows a trace, walks the tree by keyboard, and sends an outbox."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from app import session
from app.desk import module
from app.desk.events import Apply, Receipts, apply_events

KEY = "desk"

_component = st.components.v2.component("asr_trace_view", js=module.LOADER)


def trace_view(data: dict[str, Any], *, on_outbox_change: Callable[[], None]) -> None:
    """Show the current trace and the decision panel.

    Parameters
    ----------
    data : dict
        See `app.desk.data.desk_data`.
    on_outbox_change : callable
        Called when the browser sends its outbox; `received` then returns it.
    """
    _component(key=KEY, data=data, on_outbox_change=on_outbox_change)


def received() -> dict[str, Any]:
    """Return what the browser sent in this run: reviewer, batch and events."""
    state = st.session_state.get(KEY) or {}
    value = state.get("outbox")
    return value if isinstance(value, dict) else {}


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
    sent = received()
    reviewer, batch, events = sent.get("reviewer"), sent.get("batch"), sent.get("events")
    if not (isinstance(reviewer, str) and isinstance(batch, str) and isinstance(events, list)):
        return
    kept = receipts(page, reviewer, batch)
    held, number = sent.get("held"), sent.get("number")
    kept.held = {t for t in held if isinstance(t, str)} if isinstance(held, list) else set()
    kept.number = number if isinstance(number, int) else 0
    kept.listing = sent.get("listing") is True
    guide = sent.get("guide")
    kept.guide = guide if isinstance(guide, str) else ""
    apply_events(session.require_store(), reviewer, batch, events, kept, apply)
