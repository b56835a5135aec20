"""The component that shows a trace and walks the tree by keyboard.

Its script is several files for the reader and one module for the browser; nothing is loaded
from anywhere, so it works under the strict content security policy.
"""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import streamlit as st

KEY = "desk"


_SCRIPTS = (
    "desk_watch.js",
    "desk_state.js",
    "desk_text.js",
    "desk_transcript.js",
    "desk_figures.js",
    "desk_reading.js",
    "desk_search.js",
    "desk_panel.js",
    "desk_marks.js",
    "desk_overlays.js",
    "desk_list.js",
    "desk_lesson.js",
    "desk_settle.js",
    "desk_keys.js",
    "trace_view.js",
)


def _read(name: str) -> str:
    return files("app.components").joinpath(name).read_text(encoding="utf-8")


_component = st.components.v2.component(
    "asr_trace_view",
    css=_read("trace_view.css"),
    js="\n".join(_read(name) for name in _SCRIPTS),
)


def trace_view(data: dict[str, Any], *, on_outbox_change: Callable[[], None]) -> None:
    """Show the current trace and the decision panel.

    Parameters
    ----------
    data : dict
        See `app.desk_data.desk_data`.
    on_outbox_change : callable
        Called when the browser sends its outbox; `received` then returns it.
    """
    _component(key=KEY, data=data, on_outbox_change=on_outbox_change)


def received() -> dict[str, Any]:
    """Return what the browser sent in this run: reviewer, batch and events."""
    state = st.session_state.get(KEY) or {}
    value = state.get("outbox")
    return value if isinstance(value, dict) else {}
