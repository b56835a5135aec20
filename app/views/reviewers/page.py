"""Reviewers: how well each one does on silent gold and own repeats, and beside the others."""

import pandas as pd
import streamlit as st

from app import frame, session
from app.components.charts import checks_chart, figure
from app.desk.plain import trace_as_text
from app.views.reviewers import table
from calibration.analyses.agreement.analysis import agreement_with_others
from calibration.analyses.reviewers.drift import (
    Checks,
    PoolOfReviewer,
    ReviewerChecks,
    held_certificates,
    pools,
    reviewer_checks,
)
from calibration.records import Reviewer
from calibration.statistics.estimate import Estimate
from calibration.store import Store
from calibration.store.queue import FULL_POOL, REPEAT_AFTER

CHOSEN, MISSED = "reviewers_chosen", "reviewers_missed"
KINDS = {"gold": "gold", "repeat": "own repeat"}


@st.cache_resource(show_spinner=False, max_entries=4)
def _beside(path: str, state: tuple[int, ...], _store: Store) -> dict[str, Estimate]:
    """Return agreement with the others; it changes with the labels only."""
    return agreement_with_others(_store)


@st.cache_resource(show_spinner=False, max_entries=4, ttl=60)
def _pools(
    path: str, state: tuple[int, ...], _store: Store, batch_id: str
) -> tuple[PoolOfReviewer, ...]:
    """Return what could be put in; what was shown to somebody may be a minute late."""
    return pools(_store, batch_id)


def _page() -> None:
    store = session.require_store()
    st.header("Reviewers", anchor=False)
    if not session.is_lead(store):
        st.text("How reviewers do is for leads.")
        st.page_link("views/label.py", label="Go to the Label page")
        return
    found = reviewer_checks(store, certificates=held_certificates(store))
    if not found:
        st.text("Nobody has labelled a production batch yet.")
    else:
        _all(store, found)
    _waiting(store)


def _all(store: Store, found: tuple[ReviewerChecks, ...]) -> None:
    _suggestions(found)
    beside = _beside(str(store.path), store.label_state(), store)
    table.show(store, found, beside)
    st.caption(
        "About one trace in twenty that a reviewer is given is silent gold (another one's trace "
        "with an adjudicated class), and one in twenty repeats an own label of at least "
        f"{REPEAT_AFTER.days} days ago. They look like every other trace. Their labels count here "
        "only: never for the agent success rate, for agreement or for calibration."
    )
    checked = [of for of in found if of.gold.drift.n or of.repeats.drift.n]
    if checked:
        _one(store, checked)
    else:
        st.subheader("No checks yet", anchor=False)


def _suggestions(found: tuple[ReviewerChecks, ...]) -> None:
    for of in found:
        if of.recertify:
            with st.container(border=True, key=f"reviewers_again_{of.reviewer_id}"):
                st.text(f"Examine {of.name} again.")
                for why in of.recertify:
                    st.text(f"{why}.")
                st.caption(
                    "Read the missed checks below together first: a fall may also come from harder "
                    "traces, or from gold that is wrong. Whoever is certified may be examined "
                    "again once a lead allows it: under Others on the Certificate page. A new "
                    "certificate begins the checks anew."
                )
                st.page_link("views/certificate/page.py", label="Go to the Certificate page")


@st.fragment
def _one(store: Store, found: list[ReviewerChecks]) -> None:
    """Draw the chosen reviewer over time, and the checks they missed."""
    st.subheader("Over time", anchor="over-time")
    by_id = {of.reviewer_id: of for of in found}
    chosen = st.selectbox(
        "Reviewer", list(by_id), format_func=lambda who: by_id[who].name, key=CHOSEN
    )
    of = by_id[chosen]
    if of.checked_from is not None:
        st.text(f"Since the certificate of {of.checked_from:%d %b %Y}.")
    st.text(
        "The median active time of the last 20 labels is not known: there are too few."
        if of.pace_s is None
        else f"Median active time of the last 20 labels: {of.pace_s:.0f} s."
    )
    left, right = st.columns(2, gap="medium")
    for place, title, checks in (
        (left, "Silent gold: given the adjudicated class", of.gold),
        (right, "Own repeats: given the class of the first time", of.repeats),
    ):
        with place:
            checks_chart(checks, title=title)
            for line in _words(checks):
                st.text(line)
    st.caption(
        "Points: ten checks each, with 95 % intervals. The sum grows with every miss and shrinks "
        "with every hit; above the limit the reviewer is marked. A steady one is marked by either "
        "kind within 100 checks with a chance of at most 5 %."
    )
    _missed(store, of)


def _words(checks: Checks) -> list[str]:
    drift = checks.drift
    words = [f"Beyond chance (AC1): {checks.gwet_ac}."] if drift.n else []
    if drift.change.value is not None:
        words.append(
            f"Before {figure(drift.before, 2)}, last {drift.recent.n} checks "
            f"{figure(drift.recent, 2)}: change {figure(drift.change, 2)}."
        )
    elif drift.n:
        needs = table.needs(drift.status)
        words.append(f"The test begins after {drift.baseline} checks; it {needs}.")
    if checks.n_skipped:
        words.append(f"{checks.n_skipped} skipped.")
    if checks.n_not_blind:
        words.append(f"{checks.n_not_blind} left out: labels of others were shown meanwhile.")
    return words


def _missed(store: Store, of: ReviewerChecks) -> None:
    st.markdown("#### Missed checks")
    if not of.missed:
        st.text("None.")
        return
    # What others said of these traces is on the page now.
    session.log_exposure(store, [missed.trace_id for missed in of.missed], "labels")
    picked = st.dataframe(
        pd.DataFrame(
            {
                "trace": [m.trace_id for m in of.missed],
                "workflow": [m.workflow for m in of.missed],
                "kind": [KINDS[m.kind] for m in of.missed],
                "check": [m.number for m in of.missed],
                "held against": [m.against for m in of.missed],
                "given": [m.given for m in of.missed],
                "at": [m.at for m in of.missed],
                "flagged": [_flag(m.flag) for m in of.missed],
            }
        ),
        key=f"{MISSED}_{of.reviewer_id}", hide_index=True, on_select="rerun",
        selection_mode="single-row", alt=f"Checks that {of.name} missed",
        column_config={
            "at": st.column_config.DatetimeColumn("at (UTC)", format="YYYY-MM-DD HH:mm")
        },
    )  # fmt: skip
    rows = picked["selection"]["rows"]
    if not rows or rows[0] >= len(of.missed):
        st.text("Choose a row to read its trace.")
        return
    chosen = of.missed[rows[0]]
    with st.container(border=True, key="reviewers_trace"):
        st.text(f"{chosen.trace_id}: {chosen.given}, held against {chosen.against}")
        for trace in store.for_review([chosen.trace_id]):
            trace_as_text(trace)


def _flag(reason: str | None) -> str:
    return "no" if reason is None else reason or "without a reason"


def _waiting(store: Store) -> None:
    """Say what could be put in now, and why it may be little."""
    batches = [b.batch_id for b in store.batches() if b.purpose == "production"]
    if not batches:
        frame.how_to_draw()
        return
    people = {r.reviewer_id: r for r in store.reviewers()}
    found = _pools(str(store.path), store.label_state(), store, batches[0])
    with st.expander(f"What can be put into {batches[0]}", expanded=not any(
        of.gold or of.repeats for of in found
    )):  # fmt: skip
        st.text(
            "Gold: traces of the workflow with an adjudicated class, labelled by two or more, that "
            f"the reviewer has neither labelled nor seen. With fewer than {FULL_POOL} the rate is "
            "lower; settle more disagreements, and take part of the labels from other reviewers. "
            f"Repeats: own labels of {REPEAT_AFTER.days} days and more, each once."
        )
        if not found:
            return
        st.dataframe(
            pd.DataFrame([_pool(of, people[of.reviewer_id]) for of in found]), hide_index=True,
            alt="Traces that can be put in, by reviewer and workflow", placeholder="no label yet",
            column_config={"rate of gold": st.column_config.NumberColumn(format="percent")},
        )  # fmt: skip


def _pool(of: PoolOfReviewer, person: Reviewer) -> dict[str, object]:
    return {
        "reviewer": person.name,
        "workflow": of.workflow,
        "gold": of.gold,
        "rate of gold": of.gold_rate,
        "repeats": of.repeats,
        "repeats begin": None if of.repeats_from is None else of.repeats_from.date(),
    }


with st.container(key="page"):
    _page()
