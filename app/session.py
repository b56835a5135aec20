"""The handle on the store, and who is here."""

import os
import shlex
import threading
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st

from calibration.errors import CalibrationError, StoreLockedError
from calibration.records import Reviewer
from calibration.serving import public_origin
from calibration.store import Keeper, Store, ranks
from calibration.taxonomy import Taxonomy
from reference_dataset.loader import ReferenceSet
from reference_dataset.team import layer, team_reference

DEFAULT_STORE = "asr.duckdb"
REVIEWER_KEY, SIGNED_IN = "reviewer_id", "signed_in_as"
COOKIE = "asr_session"

# Where identities are open and nobody has picked one, the demo is there to be looked at.
NOBODY = Reviewer(reviewer_id="", name="", role="lead")

_opened: dict[Path, tuple[Store, Keeper]] = {}
_opened_lock = threading.Lock()


def store_path() -> Path:
    """Return the file that `ASR_STORE` names; default `asr.duckdb` in the working directory."""
    return Path(os.environ.get("ASR_STORE", DEFAULT_STORE)).resolve()


def open_store(path: Path) -> Store:
    """Return the store of this server; opening it starts what serves other processes.

    Raises
    ------
    CalibrationError
        If there is no store or it cannot be opened, for example because another server has it.
    """
    with _opened_lock:
        if path not in _opened:
            store = Store.open(path)
            keeper = store.keeper()
            keeper.start()
            _opened[path] = store, keeper
        return _opened[path][0]


def publish(store: Store) -> None:
    """Let a process that is started now read the store as it is now."""
    with _opened_lock:
        _, keeper = _opened[store.path]
    keeper.publish()


def cookie() -> str:
    """Return the name of the session's cookie: with HTTPS one that no other host or port sets."""
    public = public_origin()
    return f"__Host-{COOKIE}" if public is not None and public.scheme == "https" else COOKIE


def create_store() -> Store:
    """Make the store that is not there yet, and open it for this server."""
    path = store_path()
    Store.open(path, create=True).close()
    return open_store(path)


def reference_set(store: Store) -> ReferenceSet:
    """Return the reference dataset with the team's own layer, read again when that changes."""
    own = layer(store.path)
    changed = max((p.stat().st_mtime for p in [own, *own.rglob("*")] if p.exists()), default=0.0)
    return _reference_set(str(store.path), store.taxonomy(), changed)


@st.cache_resource(show_spinner=False, max_entries=2)
def _reference_set(path: str, _taxonomy: Taxonomy, changed: float) -> ReferenceSet:
    return team_reference(Path(path), _taxonomy)


def close_stores() -> None:
    """Close every store that this process opened; the server calls it when it stops."""
    with _opened_lock:
        opened = list(_opened.values())
        _opened.clear()
    for store, keeper in opened:
        keeper.stop()
        store.close()


def require_store() -> Store:
    """Return the store with the rights of who is here, or end the page with what to do.

    Asked anew by every run of a page: a session that has ended ends what an open tab shows.
    """
    path = store_path()
    if not path.exists():
        with st.container(key="page"):
            st.header("No traces yet", anchor=False)
            st.text("There is no store yet.")
            st.page_link("views/start.py", label="Set up")
        st.stop()
    try:
        page = urlsplit(st.context.url or "").path.strip("/") or "start"
        return _as_whoever_is_here(open_store(path).by_way_of(f"page {page}"))
    except StoreLockedError as error:
        title, trouble = "The store is in use", str(error)
    except CalibrationError as error:
        title, trouble = "The store cannot be opened", str(error)
    with st.container(key="page"):
        st.header(title)
        st.text(trouble)
        st.text("Reload this page when that is done.")
    st.stop()


def _as_whoever_is_here(store: Store) -> Store:
    if not signs_in(store):
        wanted = st.session_state.get(REVIEWER_KEY) or st.query_params.get("reviewer")
        picked = next((r for r in store.reviewers() if r.reviewer_id == wanted), NOBODY)
        return store.acting_as(picked)
    bound = store.of_session(_token())
    if bound is None or bound.actor is None:
        _ask_to_sign_in(store)
        st.stop()
    if st.session_state.get(SIGNED_IN, bound.actor.reviewer_id) != bound.actor.reviewer_id:
        # A tab that reconnects as somebody else brings what it held with it.
        st.session_state.clear()
    st.session_state[SIGNED_IN] = bound.actor.reviewer_id
    return bound


def _token() -> str:
    return st.context.cookies.get(cookie(), "")


def _ask_to_sign_in(store: Store) -> None:
    first = store.wants_first_admin()
    with st.container(key="page"):
        st.header("Create the first admin" if first else "You are signed out", anchor=False)
        st.text(
            "This store asks people to sign in, and nobody can yet."
            if first
            else "All labels up to now are stored."
        )
        # Streamlit's own links open a tab of their own.
        st.html('<a href="/sign-in" target="_self">Continue to sign-in</a>')


def command(words: str) -> str:
    """Return a command line on this store, as a person would type it."""
    return f"asr {words} --store {shlex.quote(str(store_path()))}"


def address(page: str) -> str:
    """Return the address of a page as other people open it."""
    here = urlsplit(st.context.url or "")
    own = f"{here.scheme}://{here.netloc}" if here.netloc else ""
    return f"{public_origin() or own}/{page}"


def chosen_reviewer(store: Store) -> Reviewer | None:
    """Return who is here; None while identities are open and nobody has picked one."""
    actor = store.actor
    return actor if actor is not None and actor.reviewer_id else None


def reviewer_id(store: Store) -> str | None:
    """Return the id of who is here, None while nobody is chosen."""
    reviewer = chosen_reviewer(store)
    return None if reviewer is None else reviewer.reviewer_id


def signs_in(store: Store) -> bool:
    """Return whether people of this store sign in; otherwise they pick who they are."""
    return store.identities() != "open"


def choose_reviewer(reviewer_id: str | None) -> None:
    """Remember who was picked, in this session and in the address, which outlives a reload."""
    st.session_state[REVIEWER_KEY] = reviewer_id
    if reviewer_id is None:
        st.query_params.pop("reviewer", None)
    elif st.query_params.get("reviewer") != reviewer_id:
        # Setting it sends the address anew: nothing is sent that is there already.
        st.query_params["reviewer"] = reviewer_id


def add_person(store: Store, name: str, role: str = "reviewer") -> Reviewer:
    """Add a person: anybody may where identities are open, else an admin.

    Raises
    ------
    InputError
        If that is no name.
    NotAllowedError
        If people sign in and this is no admin.
    """
    # Whoever may pick to be the admin need not pick to be one first.
    adding = store if signs_in(store) else open_store(store.path)
    return adding.add_reviewer(name, role=role)


def sign_out(store: Store) -> None:
    """End the session of this browser; its other tabs are shown nothing more either."""
    if token := _token():
        store.end_session(token)


def reviewer_names(store: Store) -> dict[str, str]:
    """Return what reviewers are called; those of one name with their id."""
    people = store.reviewers()
    called = [r.name for r in people]
    return {
        r.reviewer_id: r.name if called.count(r.name) == 1 else f"{r.name} ({r.reviewer_id})"
        for r in people
    }


def is_lead(store: Store) -> bool:
    """Return whether this session may see what labelling reviewers must not know."""
    return store.actor is None or ranks(store.actor, "lead")


def is_admin(store: Store) -> bool:
    """Return whether this session may decide who may do what."""
    return store.actor is None or ranks(store.actor, "admin")


def log_exposure(store: Store, trace_ids: Sequence[str], what: str) -> None:
    """Write down what this session's person is about to be shown; nobody chosen, nobody exposed."""
    reviewer = chosen_reviewer(store)
    if reviewer is not None:
        store.record_exposure(reviewer.reviewer_id, trace_ids, what)
