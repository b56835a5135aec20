"""Adding a person in one step: name, role, and a way to sign in; what is handed to them."""

import streamlit as st

from app import frame, session
from calibration.errors import CalibrationError
from calibration.records import ROLES, Reviewer
from calibration.store import Store, generated_passphrase

HANDED = "people_handed"

MAY = {
    "reviewer": "labels traces, and sees no label of others",
    "lead": "sees every result, draws batches, adjudicates",
    "admin": "also adds people, roles and passphrases",
}


def add(store: Store) -> None:
    """Draw the form for a name, a role and, where people sign in, how they do."""
    with st.form("people_add", border=False, clear_on_submit=True):
        name, role, press = st.columns([4, 3, 2], vertical_alignment="bottom")
        name.text_input("Name", key="people_name", max_chars=80)
        role.selectbox("Role", ROLES, key="people_role", format_func=str)
        if store.identities() == "oidc":
            st.text_input(
                "Email address at the identity provider", key="people_email", max_chars=254,
                autocomplete="off",
            )  # fmt: skip
        press.form_submit_button(
            "Add", key="people_add_now", on_click=_add_now, args=(store,), width="stretch"
        )
    st.caption(" ".join(f"{role.capitalize()}: {may}." for role, may in MAY.items()))


def _add_now(store: Store) -> None:
    """Add whom the form names."""
    state = st.session_state
    name, role, email = state["people_name"], state["people_role"], state.get("people_email", "")
    frame.attempt(lambda: _added(store, name, role, email.strip()))


def _added(store: Store, name: str, role: str, email: str) -> str:
    before = {person.reviewer_id for person in store.reviewers()}
    person = session.add_person(store, name, role)
    if person.reviewer_id in before:
        return (
            f"{person.name} is there already, as {person.role}. "
            "For another person of that name, add an initial."
        )
    how = store.identities()
    if how == "passphrase":
        give_passphrase(store, person)
    elif how == "oidc" and email:
        store.link(person.reviewer_id, email=email)
        return f"{person.name} is added, as {person.role}, and signs in as {email}."
    elif how == "oidc":
        return f"{person.name} is added, as {person.role}. A link lets them sign in."
    return f"{person.name} is added, as {person.role}."


def give_passphrase(store: Store, person: Reviewer) -> None:
    """Generate a passphrase for somebody; it is shown until it is noted, and never again."""
    made = generated_passphrase()
    # Session state first, the store last: Streamlit may abandon a callback at session state.
    handed: dict[str, tuple[str, str]] = st.session_state.setdefault(HANDED, {})
    before = handed.get(person.reviewer_id)
    handed[person.reviewer_id] = person.name, made
    try:
        store.set_passphrase(person.reviewer_id, made)
    except CalibrationError:
        handed.pop(person.reviewer_id)
        if before is not None:
            handed[person.reviewer_id] = before
        raise


def handed_over() -> None:
    """Show the passphrases that are not noted yet, each to be copied with name and address."""
    handed = st.session_state.get(HANDED)
    if not handed:
        return
    with st.container(border=True, key="people_handed_over"):
        names = " and ".join(name for name, _ in handed.values())
        st.text(f"The passphrase of {names}, shown only once. Send it safely:")
        for name, passphrase in handed.values():
            lines = (
                f"Open {session.address('label')}", f"Name: {name}", f"Passphrase: {passphrase}",
            )  # fmt: skip
            st.code("\n".join(lines), language=None, wrap_lines=True)
        st.button("Hide passphrase", key="people_noted", on_click=handed.clear)
