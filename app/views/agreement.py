"""Agreement: whether these labels can be trusted, where and who differs, and what to do."""

import streamlit as st

from app import (
    agreement_list,
    agreement_steps,
    agreement_trust,
    agreement_where,
    agreement_who,
    session,
    trace_list,
)
from app.picking import AGREEMENT
from app.views import frame
from calibration.analyses.agreement.analysis import AgreementAnalysis, analyse_agreement
from calibration.analyses.agreement.recommendations import NextStep, next_steps
from calibration.analyses.agreement.traces import in_week
from calibration.errors import CalibrationError
from calibration.store import Store

Found = tuple[AgreementAnalysis, tuple[NextStep, ...]]


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
        result, steps = _analysed(str(store.path), batch_id, state, tuple(names.items()), store)
    except CalibrationError as error:
        st.text(str(error))
        return
    if result.study.overall.n_items:
        agreement_trust.show(result)
        _explore(store, result, steps, names)
    else:
        _nothing_yet(steps)
    st.caption(
        f"Batch {batch_id}, taxonomy {result.taxonomy_version}, fingerprint "
        f"{result.fingerprint[:16]}. The same on the command line: asr agreement"
    )


def _nothing_yet(steps: tuple[NextStep, ...]) -> None:
    st.subheader("Nothing to compare yet", anchor=False)
    for step in steps:
        st.text(step.why)
        st.text(step.what)
    st.page_link("views/label.py", label="Go to the Label page")


@st.fragment
def _explore(
    store: Store, result: AgreementAnalysis, steps: tuple[NextStep, ...], names: dict[str, str]
) -> None:
    """Draw all that can be clicked: a fragment, for the charts above take longest to draw."""
    called = [names.get(who, who) for who in result.reviewers]
    weeks = agreement_trust.weeks_table(result)
    where = agreement_where.tables(result)
    who = (
        agreement_who.beside_others(result, called),
        agreement_who.against_settled(result, called),
        agreement_who.uses(result, called),
        agreement_who.every_pair(result, called),
    )
    pairs = agreement_who.shared_pairs(result)
    pair = pairs[agreement_who.chosen_pair(pairs)] if pairs else None
    two_way = None if pair is None else agreement_who.two_way(result, pair, called)
    tables = [weeks, *where, *who, *([] if two_way is None else [two_way])]
    charts = {agreement_trust.WEEKS: ("period", lambda week: in_week(result, week))}
    AGREEMENT.settle(tables, charts, result.fingerprint)
    trace_list.chip(AGREEMENT)
    agreement_trust.show_weeks(result, weeks)
    agreement_where.show(result, *where)
    agreement_who.show(result, called, who, two_way)
    agreement_list.show(store, result, names)
    agreement_steps.show(store, result, steps)
    agreement_steps.export(store, result)


with st.container(key="page"):
    _page()
