"""Agreement: whether these labels can be trusted, where and who differs, and what to do."""

import streamlit as st

from app import frame, session
from app.components import traces
from app.components.tables import AGREEMENT
from app.views.agreement import listing, steps, trust, where, who
from calibration.analyses.agreement.analysis import AgreementAnalysis, analyse_agreement
from calibration.analyses.agreement.recommendations import Recommendation, next_steps
from calibration.analyses.agreement.traces import in_week
from calibration.errors import CalibrationError
from calibration.store import Store

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
    return result, next_steps(result, dict(names))


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
        st.text(str(error))
        return
    if result.study.n_items:
        trust.show(result)
        _explore(store, result, advice, names)
    else:
        _nothing_yet(advice)
    st.caption(
        f"Batch {batch_id}, taxonomy {result.taxonomy_version}, fingerprint "
        f"{result.fingerprint[:16]}. The same on the command line: asr agreement"
    )


def _nothing_yet(steps: tuple[Recommendation, ...]) -> None:
    st.subheader("Nothing to compare yet", anchor=False)
    for step in steps:
        st.text(step.why)
        st.text(step.what)
    st.page_link("views/label.py", label="Go to the Label page")


@st.fragment
def _explore(
    store: Store,
    result: AgreementAnalysis,
    advice: tuple[Recommendation, ...],
    names: dict[str, str],
) -> None:
    """Draw all that can be clicked: a fragment, for the charts above take longest to draw."""
    called = [names.get(who, who) for who in result.reviewers]
    weeks = trust.weeks_table(result)
    nodes_and_pairs = where.tables(result)
    people = (
        who.beside_others(result, called),
        who.against_settled(result, called),
        who.uses(result, called),
        who.every_pair(result, called),
    )
    pairs = who.shared_pairs(result)
    pair = pairs[who.chosen_pair(pairs)] if pairs else None
    two_way = None if pair is None else who.two_way(result, pair, called)
    tables = [weeks, *nodes_and_pairs, *people, *([] if two_way is None else [two_way])]
    charts = {trust.WEEKS: ("period", lambda week: in_week(result, week))}
    AGREEMENT.settle(tables, charts, result.fingerprint)
    traces.chip(AGREEMENT)
    trust.show_weeks(result, weeks)
    where.show(result, *nodes_and_pairs)
    who.show(result, called, people, two_way)
    listing.show(store, result, names)
    steps.show(store, result, advice)
    steps.export(store, result)


with st.container(key="page"):
    _page()
