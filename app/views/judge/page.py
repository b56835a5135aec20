"""Judge: whether it can be used, what to do next, and how far off it is."""

from functools import partial
from typing import cast

import streamlit as st

from app import frame, session
from app.components import traces
from app.components.file_import import told, verdict_file
from app.components.sections import folded
from app.components.tables import JUDGE, Table
from app.views.judge import bias, data, listing, off, ours, steps, trust, use
from app.views.judge.data import Asked, Found
from calibration.analyses.judge.groups import GroupRates
from calibration.errors import CalibrationError
from calibration.judge_calibration.samples import Design
from calibration.store import Store
from calibration.text import sentence

DESIGNS = {
    "production": "a random sample of production",
    "reference": "reference only, not counted as production",
}


def _no_verdicts(store: Store) -> None:
    st.subheader("No judge has given a verdict yet", anchor=False)
    ours.section(store, first=True)
    verdict_file(store)
    with st.container(horizontal=True):
        st.text("Grades that came with imported traces count as a judge of their own.")
        st.page_link("views/start.py", label="Import traces", query_params={"step": "traces"})
    frame.command_line("verdicts import FILE --judge NAME")


def _nothing_yet(error: CalibrationError) -> None:
    st.subheader("Nothing to compare the judge with yet", anchor=False)
    message = str(error)
    st.text(sentence(message))
    st.page_link("views/start.py", label="Start labelling", query_params={"step": "label"})


def _page() -> None:
    store = session.require_store()
    told()
    batch_id = frame.results_batch(store, "Judge", together=True)
    if batch_id is None:
        if not store.batches():
            ours.section(store)
        return
    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        judge_id = frame.choose_judge(store)
        if judge_id is not None and frame.JUDGE not in st.session_state:
            st.text(f"Judge: {frame.judge_name(judge_id)}")
    if judge_id is None:
        _no_verdicts(store)
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
        ours.section(store)
        return
    trust.show(found)
    _explore(store, found)


@st.fragment
def _explore(store: Store, found: Found) -> None:
    """Draw all that can be clicked: a fragment, so that a click works nothing out again."""
    names, key = session.reviewer_names(store), JUDGE.key
    # The rates of groups are worked out once somebody looks at them.
    groups = use.chosen(store, found) if st.session_state.get(key("groups")) else None
    rates = None if groups is None else use.table(found, groups)
    classes, two_way, questions = off.tables(found)
    leniency = bias.leniency_tables(found)
    tables = [*([] if rates is None else [rates]), classes, two_way, questions, *leniency]
    JUDGE.settle(tables, {}, found.result.fingerprint)
    traces.chip(JUDGE)
    steps.show(store, found)
    trust.picture(found)
    folded(
        key("estimates"), "Alternative estimates", trust.answer(found),
        partial(trust.details, found, names),
    )  # fmt: skip
    folded(
        key("outcomes"), "Share of each class", use.classes_answer(found),
        partial(use.show_classes, found),
    )  # fmt: skip
    if found.is_sample:
        folded(
            key("groups"), "Rate by group", "workflow, agent, model or week",
            partial(_groups, groups, rates),
        )  # fmt: skip
    folded(key("off"), "How far off is it", off.answer(found),
           partial(off.show, found, classes, two_way))  # fmt: skip
    folded(
        key("errors"), "Where its errors start", off.errors_answer(found),
        partial(off.show_errors, found, questions),
    )  # fmt: skip
    folded(
        key("favours"), "What it favours", bias.answer(found), partial(bias.show, found, leniency)
    )
    if bias.others(found):
        folded(
            key("compare"), "Compared with another judge", ", ".join(
                frame.judge_name(name) for name in bias.others(found)[:3]
            ), partial(bias.show_other, store, found),
        )  # fmt: skip
    folded(
        JUDGE.listing, "Which traces", listing.answer(found),
        partial(listing.show, store, found, names),
    )  # fmt: skip
    steps.forms(store, found)
    ours.section(store)
    folded(
        key("import"),
        "Import verdicts",
        "of this judge or another one",
        partial(verdict_file, store),
    )
    folded(key("export"), "Export", "", partial(steps.export, store, found))


def _groups(groups: GroupRates | None, rates: Table | None) -> None:
    if groups is not None and rates is not None:
        use.show_groups(groups, rates)


with st.container(key="page"):
    _page()
