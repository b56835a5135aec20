"""What keeps coming back in adjudication, as sentences for the handbook."""

from uuid import uuid4

import streamlit as st

from app.views.adjudicate.done import cause_title
from calibration.analyses.reviewers.adjudication import (
    ACCEPTED,
    AT_LEAST,
    BLANK,
    OPEN,
    Proposal,
    handbook_proposals,
)
from calibration.errors import CalibrationError
from calibration.records import Reviewer
from calibration.store import Store

TIMES = "adjudicate_times"
REFUSED = "adjudicate_proposal_refused"
SHOWN = 12


def show(store: Store, lead: Reviewer) -> None:
    """Draw the open proposals, and what was accepted as text to copy."""
    times = st.number_input(
        "Propose a sentence when a question comes back this often",
        min_value=2, max_value=50, value=AT_LEAST, key=TIMES, width=420,
        help="Adjudications at one question whose cause is an unclear rubric, or that "
        "mix up the same two classes for a cause other than a slip or an unclear trace.",
    )  # fmt: skip
    proposals = handbook_proposals(store, at_least=int(times))
    if refusal := st.session_state.pop(REFUSED, ""):
        st.text(refusal)
    waiting = [of for of in proposals if of.status == OPEN]
    if not waiting:
        st.text("No question comes back often enough to need another sentence in the handbook.")
    for of in waiting:
        _open(store, lead, of)
    _accepted(store, [of for of in proposals if of.status == ACCEPTED])
    declined = [of for of in proposals if of.status not in (OPEN, ACCEPTED)]
    if declined:
        st.subheader("Declined", anchor=False)
        for of in declined:
            asked = store.taxonomy().node(of.question).question
            st.text(f"{asked}\n{of.text}\nWhy not: {of.reason}")
    _tags(store)


def _tags(store: Store) -> None:
    """Draw the catalogue of failure patterns that the desk offers as tags."""
    patterns = store.taxonomy().patterns
    if not patterns:
        return
    st.subheader("Tags for failures that come back", anchor=False)
    st.text(
        "The desk offers these after a reviewer's own tags (T). They change no class. To change "
        "them, edit [tags] in your taxonomy file and run: asr taxonomy use FILE"
    )
    for of in patterns:
        st.text(f"{of.tag}: {of.definition}\nTest: {of.test}\nExample: {of.example}")


def _open(store: Store, lead: Reviewer, of: Proposal) -> None:
    text, reason = f"proposal_{of.proposal_id}", f"proposal_why_{of.proposal_id}"
    with st.container(border=True):
        taxonomy = store.taxonomy()
        titles = {c.name: c.title for c in taxonomy.classes}
        between = " and ".join(titles[name] for name in of.classes)
        st.text(
            f"{taxonomy.node(of.question).question}\n"
            + (f"Between {between}: " if between else "Rubric unclear: ")
            + f"{len(of.trace_ids):,} adjudications"
        )
        causes = ", ".join(f"{cause_title(cause)} {n:,}" for cause, n in of.causes.items())
        more = len(of.trace_ids) - SHOWN
        named = ", ".join(of.trace_ids[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")
        st.text(f"Causes: {causes}. Traces, to be read under Adjudicated: {named}")
        if of.n_new:
            st.text(f"It was {'declined' if of.reason else 'accepted'} before; "
                    f"{of.n_new:,} more have come since.")  # fmt: skip
        st.text_area("Sentence for the handbook", value=of.text, key=text, max_chars=600)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.button(
                "Accept", key=f"accept_{of.proposal_id}",
                on_click=_decide, args=(store, lead.reviewer_id, of, ACCEPTED),
            )  # fmt: skip
            st.text_input(
                "Why not", key=reason, max_chars=300, label_visibility="collapsed",
                placeholder="Why not (required to decline)",
            )  # fmt: skip
            st.button(
                "Decline", key=f"decline_{of.proposal_id}",
                on_click=_decide, args=(store, lead.reviewer_id, of, "declined"),
            )  # fmt: skip


def _decide(store: Store, decided_by: str, of: Proposal, status: str) -> None:
    text = st.session_state[f"proposal_{of.proposal_id}"]
    if status == ACCEPTED and BLANK in text:
        st.session_state[REFUSED] = (
            f"Not saved: replace {BLANK} in "
            "the sentence with the condition that decides. Reviewers read the sentence exactly "
            "as you write it."
        )
        return
    try:
        store.decide_proposal(
            client_token=str(uuid4()),
            proposal_id=of.proposal_id,
            question=of.question,
            text=text,
            trace_ids=of.trace_ids,
            status=status,
            decided_by=decided_by,
            reason=st.session_state[f"proposal_why_{of.proposal_id}"] or None,
        )
    except CalibrationError as error:
        st.session_state[REFUSED] = f"Not stored: {error}."


def _accepted(store: Store, accepted: list[Proposal]) -> None:
    if not accepted:
        return
    st.subheader("For your handbook", anchor=False)
    st.text("Reviewers read these in the handbook of the desk (H). To copy into your own text:")
    taxonomy = store.taxonomy()
    order = [node.id for node in taxonomy.nodes]
    lines = []
    for question in order:
        texts = [of.text for of in accepted if of.question == question]
        if texts:
            lines += [f"{taxonomy.node(question).question}", *(f"- {text}" for text in texts), ""]
    st.code("\n".join(lines).strip(), language=None, wrap_lines=True)
