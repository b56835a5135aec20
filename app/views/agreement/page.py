"""Agreement: whether these labels can be trusted, what to do, where and who differs."""

from functools import partial

import streamlit as st

from app import frame, session
from app.components import traces
from app.components.sections import folded
from app.components.tables import AGREEMENT
from app.views.agreement import listing, steps, trust, where, who
from calibration.analyses.agreement.analysis import AgreementAnalysis, analyse_agreement
from calibration.analyses.agreement.recommendations import Recommendation, next_steps
from calibration.analyses.agreement.traces import in_week, parting_at
from calibration.errors import CalibrationError
from calibration.store import Store
from calibration.text import sentence

Found = tuple[AgreementAnalysis, tuple[Recommendation, ...]]


@st.cache_resource(show_spinner="Measuring agreement", max_entries=8)
def _analysed(
    path: str,
    batch_id: str,
    state: tuple[object, ...],
    names: tuple[tuple[str, str], ...],
    _store: Store,
) -> Found:
    """Return the analysis; everything but the store is what it depends on."""
    result = analyse_agreement(_store, batch_id)
    return result, next_steps(result, dict(names), titled=True)


def _page() -> None:
    store = session.require_store()
    batch_id = frame.results_batch(store, "Agreement")
    if batch_id is None:
        return
    names = session.reviewer_names(store)
    state = (*store.label_state(), store.taxonomy().fingerprint)
    try:
        result, advice = _analysed(str(store.path), batch_id, state, tuple(names.items()), store)
    except CalibrationError as error:
        st.text(sentence(str(error)))
        return
    if result.study.n_items:
        trust.show(result)
        _explore(store, result, advice, names)
    else:
        _nothing_yet(advice)


def _nothing_yet(steps: tuple[Recommendation, ...]) -> None:
    st.subheader("Nothing to compare yet", anchor=False)
    for step in steps:
        st.text(step.why)
        st.text(step.what)
    st.page_link("views/start.py", label="Start labelling", query_params={"step": "label"})


@st.fragment
def _explore(
    store: Store,
    result: AgreementAnalysis,
    advice: tuple[Recommendation, ...],
    names: dict[str, str],
) -> None:
    """Draw all that can be clicked: a fragment, so that a click draws no figure again."""
    called = [names.get(who, who) for who in result.reviewers]
    weeks = trust.weeks_table(result)
    questions, classes, confusions = where.tables(result)
    people = (
        who.beside_others(result, called),
        who.against_settled(result, called),
        who.uses(result, called),
        who.every_pair(result, called),
    )
    pairs = who.shared_pairs(result)
    pair = pairs[who.chosen_pair(pairs)] if pairs else None
    two_way = None if pair is None else who.two_way(result, pair, called)
    tables = [weeks, questions, classes, confusions, *people]
    tables += [] if two_way is None else [two_way]
    charts = {
        trust.WEEKS: ("period", lambda week: in_week(result, week)),
        where.TREE: ("question", lambda node: parting_at(result, node)),
    }
    AGREEMENT.settle(tables, charts, result.fingerprint)
    traces.chip(AGREEMENT)
    steps.show(store, result, advice)
    where.picture(result)
    key = AGREEMENT.key
    folded(
        key("where"), "Where reviewers differ", where.answer(result),
        partial(where.show, result, questions),
    )  # fmt: skip
    folded(
        key("confused"), "Which classes they confuse", where.confused_answer(result),
        partial(where.show_classes, result, classes, confusions),
    )  # fmt: skip
    folded(
        key("who"), "Who differs", who.answer(result, called),
        partial(who.show, result, called, people, two_way),
    )  # fmt: skip
    folded(
        key("sure"), "How certain is this", trust.answer(result),
        partial(trust.details, result, weeks),
    )  # fmt: skip
    folded(
        AGREEMENT.listing, "Which traces", listing.answer(result),
        partial(listing.show, store, result, names),
    )  # fmt: skip
    folded(key("export"), "Export", "", partial(steps.export, store, result))


with st.container(key="page"):
    _page()
