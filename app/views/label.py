"""Label traces: who you are, which batch, then the desk."""

import streamlit as st

from app import frame, session
from app.desk import component, plain
from app.desk.data import desk_data
from calibration.errors import CalibrationError, UncertifiedReviewerError
from calibration.records import Reviewer
from calibration.store import Batch, Store

PAGE = "label"
BATCH = "label_batch"
NEW_NAME = "label_new_name"
REFUSAL = "label_name_refused"


def _choose_person(store: Store) -> None:
    with st.container(key="page"):
        st.header("Who is labelling?")
        st.text("Your labels are stored under this name. You will not see what others answered.")
        people = [r for r in store.reviewers() if not r.simulated]
        if people:
            st.text("Go on as")
            with st.container(horizontal=True):
                for person in people:
                    st.button(
                        frame.plain(person.name),
                        key=f"person_{person.reviewer_id}",
                        on_click=session.choose_reviewer,
                        args=(person.reviewer_id,),
                    )
        with st.form("new_person", border=False):
            st.text_input("New name" if people else "Your name", key=NEW_NAME, max_chars=80)
            st.form_submit_button(
                "Start labelling", key="person_new", on_click=_add_person, args=(store,)
            )
        if refusal := st.session_state.pop(REFUSAL, ""):
            st.text(refusal)


def _add_person(store: Store) -> None:
    try:
        person = session.add_person(store, st.session_state[NEW_NAME])
    except CalibrationError as error:
        st.session_state[REFUSAL] = str(error)
    else:
        session.choose_reviewer(person.reviewer_id)


def _current_batch(batches: list[Batch]) -> Batch:
    wanted = st.session_state.get(BATCH) or st.query_params.get("batch")
    return next((b for b in batches if b.batch_id == wanted), batches[0])


def _sidebar(store: Store, reviewer: Reviewer, batch: Batch, batches: list[Batch]) -> None:
    with st.sidebar:
        if not session.signs_in(store):
            st.caption("Labelling as")
            st.text(reviewer.name)
            st.button("Someone else", key="switch", on_click=session.choose_reviewer, args=(None,))
        if len(batches) > 1:
            names = [b.batch_id for b in batches]
            st.session_state.setdefault(BATCH, batch.batch_id)
            st.selectbox("Batch", names, key=BATCH)
        else:
            st.caption("Batch")
            st.text(batch.batch_id)
        st.toggle(
            "Plain view",
            key="plain",
            bind="query-params",
            help="Buttons and plain text, if the keyboard desk does not work in your browser.",
        )


def _receive() -> None:
    component.receive(PAGE)


@st.fragment
def _desk(reviewer: Reviewer, batch: Batch) -> None:
    store = session.require_store()  # of this run: a fragment outlives the one that drew it
    receipts = component.receipts(PAGE, reviewer.reviewer_id, batch.batch_id)
    try:
        data = desk_data(store, reviewer, batch.batch_id, receipts)
    except UncertifiedReviewerError as error:
        _certificate_first(error)
        return
    if batch.purpose == "exam" and data["state"] == "finished":
        st.page_link("views/certificate/page.py", label="See your result on the Certificate page")
    component.trace_view(data, on_outbox_change=_receive)


def _certificate_first(error: UncertifiedReviewerError) -> None:
    with st.container(key="page"):
        st.header("This batch asks for a certificate", anchor=False)
        message = str(error)
        st.text(f"{message[0].upper()}{message[1:]}.")
        st.page_link("views/certificate/page.py", label="Go to the Certificate page")


def _page() -> None:
    store = session.require_store()
    reviewer = session.chosen_reviewer(store)
    batches = [
        b
        for b in store.batches()
        if b.purpose != "adjudication"
        and (b.reviewer_id is None or (reviewer and b.reviewer_id == reviewer.reviewer_id))
    ]
    if not batches:
        with st.container(key="page"):
            if session.is_lead(store):
                frame.no_batch("No batch to label")
            else:
                st.header("No batch to label", anchor=False)
                st.text("A lead draws the traces to label. Reload this page when that is done.")
        return
    if reviewer is None:
        _choose_person(store)
        return
    _sidebar(store, reviewer, _current_batch(batches), batches)
    batch = _current_batch(batches)
    if len(batches) > 1:
        st.query_params["batch"] = batch.batch_id
    if not st.session_state.plain:
        _desk(reviewer, batch)
        return
    try:
        # A fragment shows its own errors: whether it may be drawn is asked before.
        store.queue(reviewer.reviewer_id, batch.batch_id, limit=1)
    except UncertifiedReviewerError as error:
        _certificate_first(error)
    else:
        plain.plain_view(store, reviewer.reviewer_id, batch.batch_id)


_page()
