"""Reviewers: who needs attention, by quality checks and by agreement with the others."""

from functools import partial

import pandas as pd
import streamlit as st

from app import frame, session
from app.components.charts import checks_chart, interval_chart, points
from app.components.sections import as_table, folded, verdict
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
from calibration.reporting.document import percent, percent_figure
from calibration.statistics.estimate import Estimate
from calibration.store import Store
from calibration.store.queue import FULL_POOL, REPEAT_AFTER
from calibration.text import counted

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
    """Return the checks that can be added; what was shown to somebody may be a minute late."""
    return pools(_store, batch_id)


def _page() -> None:
    store = session.require_store()
    st.header("Reviewers", anchor=False)
    if not session.is_lead(store):
        st.text("This page is for leads.")
        st.page_link("views/label.py", label="Go to the Label page")
        return
    found = reviewer_checks(store, certificates=held_certificates(store))
    if not found:
        frame.nothing_yet(store)
    else:
        _all(store, found)
    _waiting(store)


def _all(store: Store, found: tuple[ReviewerChecks, ...]) -> None:
    beside = _beside(str(store.path), store.label_state(), store)
    verdict("reviewers_verdict", *_verdict(found))
    _figures(found, beside)
    _next(found)
    agreement = [
        (of.name, beside[of.reviewer_id]) for of in found
        if of.reviewer_id in beside and beside[of.reviewer_id].ok
    ]  # fmt: skip
    if agreement:
        st.caption("Agreement with the others, on shared traces")
        interval_chart(agreement, title="same class as the others", figures=True, percents=True)
        as_table(
            pd.DataFrame(
                {
                    "reviewer": [name for name, _ in agreement],
                    "agrees with others": [percent_figure(e) for _, e in agreement],
                    "shared traces": [e.n for _, e in agreement],
                }
            ),
            alt="Agreement with the others",
        )
    checked = [of for of in found if of.gold.drift.n or of.repeats.drift.n]
    _sections(store, found, beside, checked)


@st.fragment
def _sections(
    store: Store,
    found: tuple[ReviewerChecks, ...],
    beside: dict[str, Estimate],
    checked: list[ReviewerChecks],
) -> None:
    """Draw the sections: a fragment, so that opening one draws nothing else again."""
    folded(
        "reviewers_all", "Every reviewer", f"{len(found)} with labels",
        partial(_every, store, found, beside),
    )  # fmt: skip
    if checked:
        drifting = [of.name for of in checked if _marked(of)]
        folded(
            "reviewers_time", "Over time",
            f"{', '.join(drifting)} marked" if drifting else "nobody is marked",
            partial(_one, store, checked),
        )  # fmt: skip
    else:
        st.text("No quality checks yet.")


def _marked(of: ReviewerChecks) -> bool:
    return any(checks.drift.marked_at is not None for checks in (of.gold, of.repeats))


def _verdict(found: tuple[ReviewerChecks, ...]) -> list[str]:
    """Return who needs attention, first of all."""
    again = [of.name for of in found if of.recertify]
    if again:
        one = len(again) == 1
        return [f"{', '.join(again)} {'needs' if one else 'need'} another examination."]
    if any(of.gold.drift.n or of.repeats.drift.n for of in found):
        return ["No reviewer is marked: quality is steady as far as the checks show."]
    return ["No quality checks yet: only the agreement with the others is known."]


def _figures(found: tuple[ReviewerChecks, ...], beside: dict[str, Estimate]) -> None:
    known = [
        e.value for of in found
        if (e := beside.get(of.reviewer_id)) is not None and e.value is not None
    ]  # fmt: skip
    hits = [sum(of.gold.drift.n_hits for of in found), sum(of.gold.drift.n for of in found)]
    own = [sum(of.repeats.drift.n_hits for of in found), sum(of.repeats.drift.n for of in found)]
    least = min(known, default=None)
    cells = [
        ("Reviewers", f"{len(found)}", counted(sum(of.n_labels for of in found), "label")),
        ("Least agreement with others", percent(least),
         f"the lowest of {len(known)} reviewers"),
        ("Right on silent gold", percent(hits[0] / hits[1]) if hits[1] else "-",
         counted(hits[1], "check")),
        ("Same on own repeats", percent(own[0] / own[1]) if own[1] else "-",
         counted(own[1], "check")),
    ]  # fmt: skip
    for column, (label, value, about) in zip(st.columns(4), cells, strict=True):
        column.metric(label, value, about, delta_color="off", delta_arrow="off", border=True)


def _next(found: tuple[ReviewerChecks, ...]) -> None:
    """Draw what to do: whom to examine again, with the reason one click below."""
    again = [of for of in found if of.recertify]
    if not again:
        return
    st.subheader("Do next", anchor="steps")
    for place, of in enumerate(again, 1):
        with (
            st.container(key=f"reviewers_again_{of.reviewer_id}"),
            st.container(horizontal=True, vertical_alignment="center"),
        ):
            st.text(f"{place}. Examine {of.name} again.", width="content")
            st.page_link("views/certificate/page.py", label="Go to the Certificate page")
            with st.popover(f"Why {place}?", type="tertiary"):
                for why in of.recertify:
                    st.text(f"{why}.")
                st.caption(
                    "Read the missed checks together first: harder traces or wrong gold also cause "
                    "a fall. A certified reviewer may be examined again once a lead allows it: "
                    "under Others on the Certificate page. A new certificate restarts the checks."
                )


def _every(store: Store, found: tuple[ReviewerChecks, ...], beside: dict[str, Estimate]) -> None:
    table.show(store, found, beside)
    st.caption(
        "About one trace in twenty that a reviewer is given is silent gold (a trace of others with "
        "an adjudicated class), and one in twenty repeats an own label of at least "
        f"{REPEAT_AFTER.days} days ago. They look like every other trace. Their labels count here "
        "only: never for the agent success rate, for agreement or for calibration."
    )


def _one(store: Store, found: list[ReviewerChecks]) -> None:
    """Draw the chosen reviewer over time, and the checks they missed."""
    by_id = {of.reviewer_id: of for of in found}
    chosen = st.selectbox(
        "Reviewer", list(by_id), format_func=lambda who: by_id[who].name, key=CHOSEN
    )
    of = by_id[chosen]
    if of.checked_from is not None:
        st.text(f"Since the certificate of {of.checked_from:%d %b %Y}.")
    st.text(
        "Too few labels for the median active time of the last 20."
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
        "with every hit; above the limit the reviewer is marked. A steady reviewer is marked by "
        "either kind within 100 checks with a chance of at most 5 %."
    )
    _missed(store, of)


def _words(checks: Checks) -> list[str]:
    drift = checks.drift
    words = [f"Beyond chance (AC1): {checks.gwet_ac}."] if drift.n else []
    if drift.change.value is not None:
        words.append(
            f"Before {percent_figure(drift.before)}, last {drift.recent.n} checks "
            f"{percent_figure(drift.recent)}: change {points(drift.change)} points."
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
    titles = store.taxonomy().titles
    # The labels of others on these traces are on the page now.
    session.log_exposure(store, [missed.trace_id for missed in of.missed], "labels")
    picked = st.dataframe(
        pd.DataFrame(
            {
                "trace": [m.trace_id for m in of.missed],
                "workflow": [m.workflow for m in of.missed],
                "kind": [KINDS[m.kind] for m in of.missed],
                "check": [m.number for m in of.missed],
                "right class": [titles.get(m.against, m.against) for m in of.missed],
                "given": [titles.get(m.given, m.given) for m in of.missed],
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
        given, right = (titles.get(c, c) for c in (chosen.given, chosen.against))
        st.text(f"{chosen.trace_id}: given {given}, right is {right}")
        for trace in store.for_review([chosen.trace_id]):
            trace_as_text(trace)


def _flag(reason: str | None) -> str:
    return "no" if reason is None else reason or "without a reason"


def _waiting(store: Store) -> None:
    """Draw what quality checks can be added now, and why they may be few."""
    batches = [b.batch_id for b in store.batches() if b.purpose == "production"]
    if not batches:
        return
    folded(
        "reviewers_pool", "Quality checks available", f"for {batches[0]}",
        partial(_pool_of, store, batches[0]),
    )  # fmt: skip


def _pool_of(store: Store, batch_id: str) -> None:
    people = {r.reviewer_id: r for r in store.reviewers()}
    found = _pools(str(store.path), store.label_state(), store, batch_id)
    st.text(
        "Gold: traces of the workflow with an adjudicated class and two or more labels, which the "
        f"reviewer has neither labelled nor seen. With fewer than {FULL_POOL} fewer checks are "
        "given: adjudicate more disagreements, and give part of the traces to other reviewers. "
        f"Repeats: own labels of {REPEAT_AFTER.days} days and more, each once."
    )
    if not found:
        return
    st.dataframe(
        pd.DataFrame([_pool(of, people[of.reviewer_id]) for of in found]), hide_index=True,
        alt="Quality checks available, by reviewer and workflow", placeholder="no label yet",
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
