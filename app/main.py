"""The entry script: title, banner, navigation by role."""

from collections.abc import Callable

import streamlit as st

from app import frame, session
from app.components import trace_links
from app.frame import title
from calibration.store import Store

FOR_LEADS = (
    "overview", "agreement", "adjudicate", "reviewers", "judge", "asr", "reliability", "data",
    "start",
)  # fmt: skip
FOR_ADMINS = ("people",)
# Opened from tables, not from the menu.
WITHOUT_ENTRY = ("trace",)


def _closed(name: str, whom: str) -> Callable[[], None]:
    """Return the page that stands at the address of one that is not for who is here."""

    def page() -> None:
        with st.container(key="page"):
            st.header(title(name), anchor=False)
            st.text(f"This page is for {whom}.")
            st.page_link("views/label.py", label="Go to the Label page")

    return page


def _pages(store: Store | None) -> list[st.Page]:
    """Return the pages of who is here; of the others only the sentence whom they are for."""
    fresh = store is None
    lead, admin = (True, False) if store is None else (session.is_lead(store), _admin(store))
    leads = store is not None and lead and session.chosen_reviewer(store) is not None
    # The default page has no address of its own: a page that is asked for by name is not the
    # default.
    asked = frame.asked_page()
    overview_first = (leads or asked == "label") and asked != "overview"
    default = "start" if fresh else "overview" if overview_first else "label"
    label = st.Page("views/label.py", title="Label", default=default == "label")

    def page(name: str, open_to_them: bool, whom: str) -> st.Page:
        is_default = name == default
        if open_to_them:
            return st.Page(
                frame.SCRIPTS[name], title=title(name), url_path=name, default=is_default,
                visibility="hidden" if name in WITHOUT_ENTRY else "visible",
            )  # fmt: skip
        return st.Page(
            _closed(name, whom), title=title(name), url_path=name, default=is_default,
            visibility="hidden",
        )  # fmt: skip

    overview, *others = (page(name, lead, "leads") for name in (*FOR_LEADS, *WITHOUT_ENTRY))
    others += [page(name, admin, "admins") for name in FOR_ADMINS]
    certificate = st.Page("views/certificate/page.py", title="Certificate", url_path="certify")
    if leads:
        return [overview, label, certificate, *others]
    return [label, certificate, overview, *others]


def _admin(store: Store) -> bool:
    return session.chosen_reviewer(store) is not None and session.is_admin(store)


st.set_page_config(
    page_title="ASR calibration", page_icon="⚖️", layout="wide", initial_sidebar_state="collapsed"
)

frame.tighten()

store = session.require_store() if session.store_path().exists() else None
reviewer = None if store is None else session.chosen_reviewer(store)

if store is not None and reviewer is not None and not session.signs_in(store):
    # Every page keeps the choice in the address: a reload must not show what is hidden from them.
    session.choose_reviewer(reviewer.reviewer_id)

page = st.navigation(_pages(store), position="top")

if page.url_path != "trace":
    trace_links.put_back()

if store is not None:
    frame.banner(store)
    frame.who_is_here(store)
elif page.title != title("start"):
    session.require_store()

page.run()
