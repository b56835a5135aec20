"""Label traces: who you are, what comes, which batch, then the desk and what comes after it."""

import streamlit as st

from app import frame, session
from app.desk import component, plain
from app.desk.data import desk_data
from app.views.certificate import data
from calibration.errors import CalibrationError, UncertifiedReviewerError
from calibration.records import Reviewer
from calibration.reviewers.certification import AttemptRule
from calibration.store import Batch, Store
from calibration.text import sentence

PAGE = "label"
BATCH = "label_batch"
WELCOMED = "label_welcomed"
NEW_NAME = "label_new_name"
REFUSAL = "label_name_refused"
TO_HOME = "label_to_home"


def _choose_person(store: Store) -> None:
    with st.container(key="page"):
        st.header("Who is labelling?")
        st.text("Your labels are stored under this name. You will not see what others answered.")
        people = [r for r in store.reviewers() if not r.simulated]
        if people:
            st.text("Continue as")
            with st.container(horizontal=True):
                for person in people:
                    st.button(
                        frame.plain(person.name),
                        key=f"person_{person.reviewer_id}",
                        on_click=_pick,
                        args=(person,),
                    )
        with st.form("new_person", border=False):
            st.text_input("New name" if people else "Your name", key=NEW_NAME, max_chars=80)
            st.form_submit_button(
                "Start labelling", key="person_new", on_click=_add_person, args=(store,)
            )
        if refusal := st.session_state.pop(REFUSAL, ""):
            st.text(sentence(refusal))


def _pick(person: Reviewer) -> None:
    session.choose_reviewer(person.reviewer_id)
    # Who opened no page by name starts on the first one of their role; a callback cannot go there.
    st.session_state[TO_HOME] = person.role in ("lead", "admin") and not frame.asked_page()


def _add_person(store: Store) -> None:
    try:
        person = session.add_person(store, st.session_state[NEW_NAME])
    except CalibrationError as error:
        st.session_state[REFUSAL] = str(error)
    else:
        session.choose_reviewer(person.reviewer_id)


def _open_to_all(batches: list[Batch], purpose: str) -> list[Batch]:
    return [b for b in batches if b.purpose == purpose and b.reviewer_id is None]


def _is_new(store: Store, reviewer: Reviewer, batches: list[Batch]) -> bool:
    """Return whether to welcome somebody: there is practice, and they have labelled nothing."""
    if WELCOMED in st.session_state or not _open_to_all(batches, "practice"):
        return False
    return not any(store.last_label(reviewer.reviewer_id, b.batch_id) for b in batches)


def _welcome(store: Store, reviewer: Reviewer, batches: list[Batch]) -> None:
    taxonomy = store.taxonomy()
    (practice, *_), work = _open_to_all(batches, "practice"), _open_to_all(batches, "production")
    st.header(f"Welcome, {frame.plain(reviewer.name)}", anchor=False)
    st.text(
        "You read what an AI agent did in one run, answer a few yes-or-no questions about it, and "
        f"so give the run one of {len(taxonomy.classes)} classes."
    )
    steps = [
        f"Practice: {practice.n_items} traces with a known answer. After each label you see the "
        "right class, the reasons, and the evidence in the trace.",
        "Examination: traces without feedback. "
        f"{data.pass_rule(store, session.reference_set(store))} "
        f"You have {AttemptRule().attempts} attempts.",
        "Production: real runs. Nobody sees your labels while you work, and you see nobody else's.",
    ]
    for number, text in enumerate(steps, 1):
        st.text(f"{number}. {text}")
    st.text(
        "Everything works by keyboard: Y and N answer, U undoes the last answer, H opens the "
        "handbook, ? lists all keys. Each label is saved at once, so you can stop at any time."
    )
    with st.container(horizontal=True):
        st.button(
            "Start practising", key="welcome_practise", type="primary", shortcut="Enter",
            on_click=_begin, args=(practice.batch_id,),
        )  # fmt: skip
        if work:
            st.button(
                "Skip practice", key="welcome_work", on_click=_begin, args=(work[0].batch_id,)
            )
    with st.expander(f"Read the {len(taxonomy.nodes)} questions first"):
        for node in taxonomy.nodes:
            st.text(f"{node.question}\n{node.rule}" if node.rule else node.question)
    with st.expander(f"The {len(taxonomy.classes)} classes"):
        for each in taxonomy.classes:
            st.text(f"{each.title}: {each.meaning}")


def _begin(batch_id: str) -> None:
    st.session_state[WELCOMED] = True
    st.session_state[BATCH] = batch_id


def _afterwards(store: Store, reviewer: Reviewer, batch: Batch, batches: list[Batch]) -> None:
    """Offer what comes after the last trace of a batch."""
    if batch.purpose == "exam":
        st.page_link("views/certificate/page.py", label="See your result on the Certificate page")
        return
    if batch.purpose == "practice":
        st.page_link(
            "views/certificate/page.py", label="Practise more, or take the examination: Certificate"
        )
    others = [
        b
        for b in _open_to_all(batches, "production")
        if b.batch_id != batch.batch_id and store.has_open_items(reviewer.reviewer_id, b.batch_id)
    ]
    for other in others[:3]:
        if st.button(
            f"Continue with {frame.plain(other.title)} ({other.n_items:,} traces)",
            key=f"afterwards_{other.batch_id}", on_click=_begin, args=(other.batch_id,),
        ):  # fmt: skip
            st.rerun()  # the whole page: the desk alone would stay on its batch
    if not others and batch.purpose == "production":
        st.caption("No other batch has traces for you. Reload this page to look again.")


def _current_batch(batches: list[Batch]) -> Batch:
    wanted = st.session_state.get(BATCH) or st.query_params.get("batch")
    return next((b for b in batches if b.batch_id == wanted), batches[0])


def _sidebar(batch: Batch, batches: list[Batch]) -> None:
    with st.sidebar:
        if len(batches) > 1:
            names = [b.batch_id for b in batches]
            st.session_state.setdefault(BATCH, batch.batch_id)
            titles = {b.batch_id: b.title for b in batches}
            st.selectbox("Batch", names, key=BATCH, format_func=titles.__getitem__)
        else:
            st.caption("Batch")
            st.text(batch.title)
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
        shown = desk_data(store, reviewer, batch.batch_id, receipts)
    except UncertifiedReviewerError as error:
        _certificate_first(error)
        return
    if shown["state"] == "finished":
        with st.container(horizontal=True):
            _afterwards(store, reviewer, batch, _batches(store, reviewer))
    component.trace_view(shown, on_outbox_change=_receive)


def _certificate_first(error: UncertifiedReviewerError) -> None:
    with st.container(key="page"):
        st.header("This batch asks for a certificate", anchor=False)
        st.text(sentence(str(error)))
        st.page_link("views/certificate/page.py", label="Go to the Certificate page")


def _batches(store: Store, reviewer: Reviewer | None) -> list[Batch]:
    """Return the batches that somebody can label."""
    return [
        b
        for b in store.batches()
        if b.purpose != "adjudication"
        and (b.reviewer_id is None if reviewer is None else b.is_for(reviewer.reviewer_id))
    ]


def _page() -> None:
    store = session.require_store()
    if st.session_state.pop(TO_HOME, False):
        st.switch_page("views/home.py")
    reviewer = session.chosen_reviewer(store)
    batches = _batches(store, reviewer)
    if not batches:
        with st.container(key="page"):
            st.header("No batch to label", anchor=False)
            if session.is_lead(store):
                frame.nothing_yet(store)
            else:
                st.text("A lead draws the traces to label.")
                st.button("Look again", key="label_again")
        return
    if reviewer is None:
        _choose_person(store)
        return
    if _is_new(store, reviewer, batches):
        with st.container(key="page"):
            _welcome(store, reviewer, batches)
        return
    _sidebar(_current_batch(batches), batches)
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
