"""Batches that tell more about a judge, drawn from the page: an allocation, an escalation."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from app import frame, session
from app.components.tables import JUDGE
from app.views.judge.data import Found
from calibration.analyses.agreement.recommendations import Recommendation
from calibration.analyses.sampling.draw import SamplingDesign, drawn_batch
from calibration.analyses.sampling.escalation import WORDS, escalate
from calibration.analyses.sampling.stratified import ALLOCATIONS, draw_allocated
from calibration.errors import CalibrationError
from calibration.judge_calibration.label_planning import FEWEST_LABELS
from calibration.reporting.document import text_lines
from calibration.reporting.sections.plans import drawn
from calibration.store import Batch, Store

ALLOCATED, ESCALATED = "allocated", "escalated"

HOW = {
    "proportional": "by the size of each stratum",
    "neyman": "by size and by how much scores vary",
}


def allocation(store: Store, found: Found, step: Recommendation) -> None:
    """Offer to draw the allocation."""
    measured = found.result.calibration.n_labels >= FEWEST_LABELS
    kinds = [kind for kind in reversed(ALLOCATIONS) if measured or kind != "neyman"]
    with st.form(JUDGE.key("allocation"), border=False):
        n, wanted, seed, how = st.columns([1, 1, 1, 2], vertical_alignment="bottom")
        n.number_input(
            "Traces", min_value=1, value=step.n or 100, step=10, key=_key(ALLOCATED, "n")
        )
        wanted.number_input(
            "Labels per trace", min_value=1, max_value=20, value=2, key=_key(ALLOCATED, "labels")
        )
        seed.number_input("Seed of the draw", min_value=0, value=1, key=_key(ALLOCATED, "seed"))
        how.selectbox("Drawn", kinds, format_func=HOW.__getitem__, key=_key(ALLOCATED, "how"))
        st.form_submit_button(
            "Draw this batch", key=_key(ALLOCATED, "submit"),
            on_click=_make, args=(store, found, ALLOCATED, partial(_allocated, store, found)),
        )  # fmt: skip
    _outcome_of(ALLOCATED)


def escalation(store: Store, found: Found, step: Recommendation) -> None:
    """Offer to make the escalation."""
    with st.form(JUDGE.key("escalation"), border=False):
        by, most, audit, seed = st.columns([2, 1, 1, 1], vertical_alignment="bottom")
        by.selectbox(
            "Uncertain by", step.signals, format_func=WORDS.__getitem__, key=_key(ESCALATED, "by")
        )
        most.number_input(
            "At most", min_value=1, value=100, step=10, key=_key(ESCALATED, "most"),
            help="The most uncertain traces go to people, at most this many",
        )  # fmt: skip
        audit.number_input(
            "Audit to \u00b1", min_value=0.01, max_value=0.3, value=0.05, step=0.01,
            key=_key(ESCALATED, "audit"),
            help="Target half-width for the error rate of the accepted verdicts",
        )  # fmt: skip
        seed.number_input("Seed of the audit", min_value=0, value=1, key=_key(ESCALATED, "seed"))
        st.form_submit_button(
            "Draw this batch", key=_key(ESCALATED, "submit"),
            on_click=_make, args=(store, found, ESCALATED, partial(_escalated, store, found)),
        )  # fmt: skip
    _outcome_of(ESCALATED)


def _key(kind: str, name: str) -> str:
    return JUDGE.key(f"{kind}_{name}")


def _allocated(store: Store, found: Found) -> Batch:
    state = st.session_state
    how = state[_key(ALLOCATED, "how")]
    return draw_allocated(
        store,
        SamplingDesign(
            seed=int(state[_key(ALLOCATED, "seed")]),
            labels_wanted=int(state[_key(ALLOCATED, "labels")]),
            once=True,
        ),
        n=int(state[_key(ALLOCATED, "n")]),
        allocation=how,
        judge_id=found.asked.judge_id,
        basis_batch=found.asked.batch_id if how == "neyman" else None,
    )


def _escalated(store: Store, found: Found) -> Batch:
    state = st.session_state
    return escalate(
        store,
        SamplingDesign(seed=int(state[_key(ESCALATED, "seed")]), once=True, labels_wanted=1),
        signal=state[_key(ESCALATED, "by")],
        most=int(state[_key(ESCALATED, "most")]),
        audit_half_width=float(state[_key(ESCALATED, "audit")]),
        judge_id=found.asked.judge_id,
        basis_batch=found.asked.batch_id,
    )


def _make(store: Store, found: Found, kind: str, make: Callable[[], Batch]) -> None:
    # Asked for twice, the batch is stored once; if this run is abandoned only the answer is lost.
    state = st.session_state
    try:
        batch = make()
    except CalibrationError as error:
        state[_key(kind, "message")] = (str(error), "", "")
        return
    # The new batch has no labels yet: the page stays with the one it is about.
    state[frame.BATCH] = found.asked.batch_id
    lines = text_lines(drawn(drawn_batch(store, batch)))
    after = f"audit --batch {batch.batch_id}" if kind == ESCALATED else ""
    message = f"{batch.batch_id} is drawn; reviewers find it on the Label page."
    state[_key(kind, "message")] = (message, "\n".join(lines), after)


def _outcome_of(kind: str) -> None:
    """Say what became of the last batch that was asked for."""
    message, lines, after = st.session_state.get(_key(kind, "message"), ("", "", ""))
    if not message:
        return
    with st.container(key=_key(kind, "done")):
        st.text(message)
        if lines:
            st.code(lines, language=None)
        if after:
            st.text("Once it is labelled, this shows how often accepted verdicts are wrong:")
            st.code(session.command(after), language=None, wrap_lines=True)
