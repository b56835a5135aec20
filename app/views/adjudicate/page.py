"""Adjudicate: settle what reviewers differ on, blind first, and keep where it came from."""

import numpy as np
import streamlit as st

from app import frame, session
from app.components.charts import figure
from app.desk import component
from app.desk.adjudicating import adjudication_data, apply_adjudication
from app.views.adjudicate import done, handbook
from calibration.analyses.reviewers.adjudication import (
    AdjudicationWork,
    adjudication_work,
    draw_agreed,
    serve,
)
from calibration.errors import CalibrationError
from calibration.records import Reviewer
from calibration.store import Store
from calibration.text import sentence

PAGE, COUNTED = "adjudicate", "adjudicate_counted"
# Name in the address.
VIEW = "view"
DECIDE, DONE, HANDBOOK = "Decide", "Adjudicated", "Handbook"
AGREED = 10


def _page() -> None:
    store = session.require_store()
    lead = session.chosen_reviewer(store)
    if lead is None or lead.role == "reviewer":
        with st.container(key="page"):
            st.header("Adjudicate", anchor=False)
            _who_settles(lead)
        return
    batches = [b.batch_id for b in store.batches() if b.purpose == "production"]
    if not batches:
        with st.container(key="page"):
            st.header("Adjudicate", anchor=False)
            frame.nothing_yet(store)
        return
    with st.container(horizontal=True, vertical_alignment="center", key="adjudicate_head"):
        view = st.segmented_control(
            "What to do", [DECIDE, DONE, HANDBOOK], default=DECIDE, key=VIEW, required=True,
            label_visibility="collapsed", width="content", bind="query-params",
        )  # fmt: skip
        batch_id = batches[0]
        if len(batches) > 1:
            # Home names the batch that has something to decide.
            asked = st.query_params.get("batch")
            labelled = (
                k for k, b in enumerate(batches)
                if (b == asked if asked in batches else not store.label_frame(b).empty)
            )  # fmt: skip
            batch_id = st.selectbox(
                "Batch", batches, index=next(labelled, 0), key=frame.BATCH,
                label_visibility="collapsed", width=220, bind="query-params",
            )  # fmt: skip
        bar = st.container(width="stretch")
    try:
        work = adjudication_work(store, batch_id, lead.reviewer_id)
    except CalibrationError as error:
        st.text(sentence(str(error)))
        return
    with bar, st.container(horizontal=True, vertical_alignment="center"):
        st.caption(summary(work), width="stretch")
        if work.n_shared:
            _alpha(work)
        if view == DECIDE:
            _more(store, lead, work)
    frame.said()
    if view == DECIDE:
        _decide(store, lead, work)
        return
    with st.container(key="page"):
        if view == DONE:
            done.show(store, lead, work, session.reviewer_names(store))
        else:
            handbook.show(store, lead)


def summary(work: AdjudicationWork) -> str:
    """Return how far the batch is, without a word on any one trace."""
    waits = sum(of.calibrates for of in work.due if of.disputed and not of.reopened)
    parts = [
        f"{work.n_disputed:,} open disagreement{'s' * (work.n_disputed != 1)}"
        + (f", {waits:,} needed for the corrected rate" if waits else "")
    ]
    if work.n_flagged:
        parts.append(f"{work.n_flagged:,} flagged")
    if work.n_reopened:
        parts.append(f"{work.n_reopened:,} reopened (the old decision counts until a new one)")
    parts.append(f"{len(work.settled):,} adjudicated")
    if work.n_shared:
        parts.append(
            f"alpha {figure(work.alpha)}, n = {work.alpha.n:,}"
            if work.alpha.ok
            else "alpha not estimable"
        )
    return " · ".join(parts)


def _who_settles(person: Reviewer | None) -> None:
    if person is None:
        st.text(
            "Only leads adjudicate disagreements, and each decision keeps their name. Choose the "
            "name of a lead on the Label page. To make somebody a lead:"
        )
        st.code(session.command('people add "NAME" --role lead'), language=None)
    else:
        st.text("Only leads adjudicate disagreements, and you are not a lead.")
    st.page_link("views/label.py", label="Go to the Label page")


def _alpha(work: AdjudicationWork) -> None:
    """Tell the whole of alpha."""
    with st.popover("About alpha", type="tertiary"):
        st.text("Krippendorff's alpha of the labels, n in traces with two or more:")
        st.text(str(work.alpha), width="content")
        st.caption("It compares the labels as given: adjudication does not change it.")


def _decide(store: Store, lead: Reviewer, work: AdjudicationWork) -> None:
    batch = serve(store, work, lead.reviewer_id)
    waiting = batch is not None and batch.n_items > 0
    if batch is not None and waiting:
        _desk(store, lead, work.batch_id, batch.batch_id)
        return
    with st.container(key="page"):
        _nothing(work)


def _nothing(work: AdjudicationWork) -> None:
    if not work.n_shared:
        st.subheader("Nobody has labelled a trace twice", anchor=False)
        st.text(
            "There is nothing to compare until two reviewers have labelled the same trace. "
            "Draw a batch with an overlap, or let a second reviewer label."
        )
        st.page_link("views/start.py", label="Start labelling", query_params={"step": "label"})
    elif work.settled:
        st.subheader("Nothing left to adjudicate", anchor=False)
        st.text("This batch has no open disagreement and no open flag.")
    else:
        st.subheader("No disagreement", anchor=False)
        st.text(f"Reviewers agree on all {work.n_shared:,} traces with two or more labels.")


def _more(store: Store, lead: Reviewer, work: AdjudicationWork) -> None:
    """Offer traces on which reviewers agree: settled, they can test a reviewer unseen."""
    if not work.agreed:
        return
    n = min(AGREED, len(work.agreed))
    st.button(
        f"Also {n} agreed", key="adjudicate_agreed", type="tertiary",
        on_click=_add_agreed, args=(store, lead, work),
        help="Traces on which reviewers agree, at random among the others: adjudicated, they can "
        "be served again as silent gold.",
    )  # fmt: skip


def _add_agreed(store: Store, lead: Reviewer, work: AdjudicationWork) -> None:
    def added() -> str:
        drawn = draw_agreed(work, AGREED, rng=np.random.default_rng())
        serve(store, work, lead.reviewer_id, also=drawn)
        return ""

    frame.attempt(added)


def _receive() -> None:
    component.receive(PAGE, apply_adjudication)


def _refresh(store: Store, batch_id: str) -> None:
    """Count anew what is open, once: the desk alone ran while the traces were decided."""
    state = (batch_id, *store.label_state())
    if st.session_state.get(COUNTED) != state:
        st.session_state[COUNTED] = state
        st.rerun()


@st.fragment
def _desk(store: Store, lead: Reviewer, of_batch: str, batch_id: str) -> None:
    receipts = component.receipts(PAGE, lead.reviewer_id, batch_id)
    data = adjudication_data(store, lead, of_batch, batch_id, receipts)
    if data["state"] == "finished" and data["settle"] is None:
        _refresh(store, batch_id)
    component.trace_view(data, on_outbox_change=_receive)


_page()
