"""People: who there is, what they may, and how they sign in."""

from collections import Counter
from datetime import datetime

import pandas as pd
import streamlit as st

from app import frame, session
from app.components import people as adding
from app.components.people import MAY
from calibration.records import ROLES, Reviewer
from calibration.reporting.csv_exports import AUDIT, audit_rows
from calibration.store import Access, Store
from calibration.tables.rows import as_csv

FEW, NEWEST = 15, 200

HOW = {
    "open": (
        "Identities are open: whoever opens the app picks who they are, and the server lets in "
        "only this machine. Fit for a demo."
    ),
    "passphrase": (
        "People sign in with a name and a passphrase. After "
        "five wrong ones a name is locked for a while, longer every time; a session ends after "
        "12 hours without use."
    ),
    "oidc": (
        "People sign in with their identity provider. A session ends after 12 hours without use. "
        "Where a claim of the provider decides on roles, it does so at every sign-in."
    ),
}


def _link(access: Access) -> str:
    if access.link is None:
        return "none"
    return access.link if access.has_used_link else f"{access.link} (not used yet)"


def _list(people: list[Access], by_provider: bool) -> None:
    if not people:
        st.text("Nobody yet. Add yourself first, as an admin.")
        return
    listed = pd.DataFrame(
        {
            "name": [a.person.name for a in people],
            "role": [a.person.role for a in people],
            **(
                {"at the identity provider": [_link(a) for a in people]}
                if by_provider
                else {"passphrase": ["set" if a.has_passphrase else "none" for a in people]}
            ),
            "last signed in (UTC)": [_when(a.last_sign_in) for a in people],
        }
    )
    alt = "People of this store, with role and how they sign in"
    if len(people) <= FEW:
        st.table(listed, hide_index=True, alt=alt)
        return
    # Of many one looks for somebody: this one can be searched and sorted, and does not push
    # everything else off the page.
    roles = Counter(a.person.role for a in people)
    counted = ", ".join(f"{roles[role]} {role}{'s' * (roles[role] != 1)}" for role in ROLES)
    st.text(f"{len(people)} people: {counted}.")
    st.dataframe(
        listed, hide_index=True, alt=alt,
        column_config={"name": st.column_config.TextColumn("name", width="large")},
    )  # fmt: skip


def _when(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%d %b %Y %H:%M}"


def _one(store: Store, people: list[Access]) -> None:
    st.subheader("Change a person", anchor=False)
    by_id = {a.person.reviewer_id: a for a in people}
    names = session.reviewer_names(store)
    who = st.selectbox("Who", list(by_id), key="people_who", format_func=names.__getitem__)
    chosen = by_id[who]
    passphrase, role = st.columns(2, gap="large")
    with passphrase:
        (_provider if store.identities() == "oidc" else _passphrase)(store, chosen)
    with role:
        _role(store, chosen)


def _passphrase(store: Store, chosen: Access) -> None:
    person = chosen.person
    # Every button names whom it is about: a fast click must not meet somebody else.
    who, name = person.reviewer_id, frame.plain(frame.short(person.name))
    st.markdown("#### Passphrase")
    st.button(
        f"Generate passphrase for {name}", key=f"people_generate_{who}", on_click=_generate,
        args=(store, person),
    )  # fmt: skip
    with st.form(f"people_typed_{who}", border=False, clear_on_submit=True):
        st.text_input(
            "Or type one, 12 characters or more", type="password",
            key=f"people_typed_passphrase_{who}", max_chars=200, autocomplete="new-password",
        )  # fmt: skip
        st.form_submit_button(
            f"Set it for {name}", key=f"people_set_{who}", on_click=_set,
            args=(store, person.reviewer_id, person.name),
        )  # fmt: skip
    if chosen.has_passphrase:
        st.button(
            f"Disable sign-in of {name}", key=f"people_take_{who}", on_click=_take,
            args=(store, person.reviewer_id, person.name),
            help="What they labelled stays. A new passphrase brings them back.",
        )  # fmt: skip
        if who == session.reviewer_id(store) and session.signs_in(store):
            st.caption("This is you: you are signed out at once, and cannot come back alone.")


def _provider(store: Store, chosen: Access) -> None:
    person = chosen.person
    who, name = person.reviewer_id, frame.plain(frame.short(person.name))
    st.markdown("#### Identity provider")
    with st.form(f"people_link_{who}", border=False, clear_on_submit=True):
        st.text_input(
            "Email address there, as the provider has verified it", key=f"people_email_{who}",
            max_chars=254, autocomplete="off",
        )  # fmt: skip
        st.form_submit_button(
            f"Link {name}", key=f"people_link_now_{who}", on_click=_link_now,
            args=(store, who, person.name),
        )  # fmt: skip
    if chosen.link is not None:
        st.button(
            f"Disable sign-in of {name}", key=f"people_unlink_{who}", on_click=_unlink,
            args=(store, who, person.name),
            help="What they labelled stays. A new link brings them back.",
        )  # fmt: skip


def _link_now(store: Store, reviewer_id: str, name: str) -> None:
    email = st.session_state[f"people_email_{reviewer_id}"]

    def act() -> str:
        store.link(reviewer_id, email=email)
        return f"{name} signs in as {email.strip()} from now on. Sessions that they had have ended."

    frame.attempt(act)


def _unlink(store: Store, reviewer_id: str, name: str) -> None:
    def act() -> str:
        store.unlink(reviewer_id)
        return f"{name} cannot sign in any more. A new link brings them back."

    frame.attempt(act)


def _generate(store: Store, person: Reviewer) -> None:
    def act() -> str:
        adding.give_passphrase(store, person)
        return ""

    frame.attempt(act)


def _set(store: Store, reviewer_id: str, name: str) -> None:
    typed = st.session_state[f"people_typed_passphrase_{reviewer_id}"]

    def act() -> str:
        store.set_passphrase(reviewer_id, typed)
        return f"{name} has a new passphrase. Sessions that they had have ended."

    frame.attempt(act)


def _take(store: Store, reviewer_id: str, name: str) -> None:
    def act() -> str:
        store.take_passphrase(reviewer_id)
        return f"{name} cannot sign in any more. A new passphrase brings them back."

    frame.attempt(act)


def _role(store: Store, chosen: Access) -> None:
    person = chosen.person
    st.markdown("#### Role")
    key = f"people_role_of_{person.reviewer_id}"
    wanted = st.radio("Role", ROLES, index=ROLES.index(person.role), key=key,
                      captions=[MAY[role] for role in ROLES],
                      label_visibility="collapsed")  # fmt: skip
    own = person.reviewer_id == session.reviewer_id(store)
    if own and person.role == "admin" and wanted != "admin":
        st.text(
            "This is your own role: this page closes for you, and another admin has to give it "
            "back."
        )
    name = frame.plain(frame.short(person.name))
    st.button(
        f"Make {name} {'an admin' if wanted == 'admin' else f'a {wanted}'}",
        key=f"people_role_now_{person.reviewer_id}", on_click=_role_now,
        args=(store, person.reviewer_id, wanted), disabled=wanted == person.role,
    )  # fmt: skip


def _role_now(store: Store, reviewer_id: str, role: str) -> None:
    def act() -> str:
        person = store.set_role(reviewer_id, role)
        return f"{person.name} is {person.role} now; open pages follow at once."

    frame.attempt(act)


def _identities(store: Store) -> None:
    st.subheader("Sign-in", anchor=False)
    now = store.identities()
    st.text(HOW[now])
    if now == "open":
        st.button(
            "Ask for a passphrase from now on", key="people_close", on_click=_close, args=(store,)
        )
        st.caption("Give an admin a passphrase first, or the first visitor becomes the admin.")
    if store.sign_in_is_configured():
        st.text("An admin can sign in: the server may also listen beyond this machine.")
        st.code(session.command("serve --host 0.0.0.0"), language=None, wrap_lines=True)


def _close(store: Store) -> None:
    def act() -> str:
        store.set_identities("passphrase")
        return "People sign in from now on."

    frame.attempt(act)


def _page() -> None:
    store = session.require_store()
    st.header("People", anchor=False)
    frame.said()
    adding.handed_over()
    people = store.access()
    _list(people, store.identities() == "oidc")
    st.subheader("Add somebody", anchor=False)
    adding.add(store)
    if people:
        _one(store, people)
    _identities(store)
    _trail(store)


def _trail(store: Store) -> None:
    """Show the newest changes; the file holds all of them."""
    st.subheader("Who changed what", anchor=False)
    newest = store.audit_trail(limit=NEWEST)
    if newest.empty:
        st.text("Nothing was changed yet.")
        return
    names = session.reviewer_names(store)
    shown = pd.DataFrame(
        {
            "when (UTC)": [_when(at) for at in newest["created_at"]],
            "who": [
                names.get(who, who) if isinstance(who, str) else "-" for who in newest["actor"]
            ],
            "from": newest["origin"].fillna("-"),
            "what": newest["what"].str.replace("_", " "),
            "detail": newest["detail"],
        }
    )
    st.dataframe(
        shown, hide_index=True, height=300, alt=f"The newest {len(shown)} changes",
        column_config={"from": st.column_config.TextColumn("from", width="medium")},
    )  # fmt: skip
    st.download_button(
        "Download all (CSV)", lambda: as_csv(AUDIT, audit_rows(store.audit_trail())),
        file_name="audit-log.csv", mime="text/csv", key="people_trail", on_click="ignore",
    )  # fmt: skip


with st.container(key="page"):
    _page()
