"""Judge: can it be used, for what, how far off is it, and what would make it better."""

from typing import cast

import streamlit as st

from app import frame, session
from app.components import traces
from app.components.tables import JUDGE
from app.views.judge import bias, data, listing, off, steps, trust, use
from app.views.judge.data import Asked, Found
from calibration.errors import CalibrationError
from calibration.judge_calibration.samples import Design
from calibration.store import Store

DESIGNS = {
    "production": "a random sample of production",
    "reference": "reference only, not counted as production",
}


def _no_verdicts() -> None:
    st.subheader("No judge has given a verdict yet", anchor=False)
    st.text("Bring in the verdicts of one (CSV or JSONL: trace_id, outcome, optional reason):")
    st.code(session.command("verdicts FILE --judge NAME"), language=None, wrap_lines=True)
    st.text("Or import traces that carry a grade, which then counts as a judge of its own:")
    st.code(session.command("import FILES"), language=None, wrap_lines=True)
    st.text("Both work while this app runs. Then reload this page.")


def _nothing_yet(error: CalibrationError) -> None:
    st.subheader("Nothing to compare the judge with yet", anchor=False)
    message = str(error)
    st.text(f"{message[0].upper()}{message[1:]}.")
    with st.container(horizontal=True):
        st.page_link("views/label.py", label="Go to the Label page")
        st.page_link("views/overview.py", label="Go to the Overview, to draw a batch")


def _page() -> None:
    store = session.require_store()
    batch_id = frame.results_batch(store, "Judge", together=True)
    if batch_id is None:
        return
    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        judge_id = frame.choose_judge(store, JUDGE.key("judge"))
        if judge_id is not None and JUDGE.key("judge") not in st.session_state:
            st.text(f"Judge: {judge_id}")
    if judge_id is None:
        _no_verdicts()
        return
    design = cast(
        Design,
        right.selectbox(
            "The labelled traces are", list(DESIGNS), format_func=DESIGNS.__getitem__,
            key=JUDGE.key("design"),
        ),
    )  # fmt: skip
    asked = Asked(
        path=str(store.path),
        batch_id=batch_id,
        judge_id=judge_id,
        design=design,
        state=(*store.result_state(), store.taxonomy().fingerprint),
    )
    try:
        found = data.analysed(asked, store)
    except CalibrationError as error:
        _nothing_yet(error)
        return
    trust.show(found, session.reviewer_names(store))
    _explore(store, found)
    st.caption(
        f"Judge {frame.plain(judge_id)}, batch {batch_id}, "
        f"{found.result.calibration.n_labels:,} labels, {design} design, seed {found.result.seed}, "
        f"fingerprint {found.result.fingerprint[:16]}. The same on the command line: asr calibrate"
    )


@st.fragment
def _explore(store: Store, found: Found) -> None:
    """Draw all that can be clicked: a fragment, so that a click works nothing out again."""
    names = session.reviewer_names(store)
    groups = use.chosen(store, found)
    rates = None if groups is None else use.table(found, groups)
    errors = off.tables(found)
    leniency = bias.leniency_tables(found)
    tables = [*([] if rates is None else [rates]), *errors, *leniency]
    JUDGE.settle(tables, {}, found.result.fingerprint)
    traces.chip(JUDGE)
    use.show(found, groups, rates)
    off.show(found, *errors)
    bias.show(store, found, leniency)
    listing.show(store, found, names)
    steps.show(store, found)
    steps.export(store, found)


with st.container(key="page"):
    _page()
