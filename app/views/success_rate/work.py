"""The review queue of the ASR page: runs to triage, by outcome, and one of them opened."""

from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from app import session
from app.components import trace_links, traces
from app.components.tables import ASR
from app.views.success_rate.data import Found
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.success_rate.from_store import StoreReport, labelled_csv
from calibration.analyses.success_rate.report import WorkItem
from calibration.reporting.document import usd
from calibration.store import Store
from calibration.text import counted, one_line

# A browser table gets slow beyond; the CSV holds them all.
MOST_ROWS = 1_000

REASON = 200
SPARSE = ("model", "why", "evidence")
CLASS = ASR.key("class")


def given(store: Store, found: Found) -> None:
    """Draw the first runs of each class whose outcomes are taken as given, each to be opened."""
    titles = {one.outcome: one.title for one in found.report.classes}
    lists = {item.outcome: item for item in found.report.work_lists if item.n}
    if not lists:
        st.text("No outcome is of a class that somebody has to look at.")
        return
    outcome = str(
        st.segmented_control(
            "Review queue", list(lists), key=CLASS, default=next(iter(lists)), required=True,
            format_func=lambda name: f"{titles[name]} ({lists[name].n:,})",
        )
    )  # fmt: skip
    queue = lists.get(outcome) or next(iter(lists.values()))
    session.log_exposure(store, [item.trace_id for item in queue.first], "verdicts")
    what = f"{titles[queue.outcome]} by {found.report.given_by}, for {queue.goes_to}"
    more = "" if queue.n <= len(queue.first) else f"; the first {len(queue.first):,} are shown"
    st.text(f"{counted(queue.n, 'trace')} {what}, oldest first{more}:")
    trace_links.table(
        _cells(queue.first), key=ASR.trace, page="asr", title=f"Traces {what}", width="stretch"
    )


def show(store: Store, found: Found, made: StoreReport, names: Mapping[str, str]) -> None:
    """Draw the queue of labelled runs."""
    work = made.work
    follow_up = made.loaded.taxonomy.follow_up
    titles = made.loaded.taxonomy.titles
    listed = [outcome for outcome in follow_up if work[outcome]]
    if not listed:
        st.text("No final label is of a class that somebody has to look at.")
        return
    outcome = str(
        st.segmented_control(
            "Review queue", listed, key=CLASS, default=listed[0], required=True,
            format_func=lambda name: f"{titles[name]} ({len(work[name]):,})",
        )
    )  # fmt: skip
    if outcome not in listed:
        outcome = listed[0]
    items = work[outcome]
    fingerprint = found.report.origin.fingerprint
    ASR.settle([], {}, f"{fingerprint} {outcome}")
    what = f"labelled {titles[outcome]}, for {follow_up[outcome]}"
    chosen = TraceSet(what=what, trace_ids=tuple(item.trace_id for item in items[:MOST_ROWS]))
    traces.log(ASR, store, chosen, "labels")
    more = "" if len(items) <= MOST_ROWS else f"; the first {MOST_ROWS:,} are shown"
    st.text(f"{len(items):,} traces {what}, oldest first{more}:")
    _table(items[:MOST_ROWS], what)
    st.download_button(
        f"Download these {len(items):,} as CSV",
        data=partial(_csv, store, found, made, outcome, session.reviewer_id(store)),
        file_name=f"{outcome}.csv", mime="text/csv", on_click="ignore", key=ASR.key("csv"),
    )  # fmt: skip
    traces.opened(ASR, store, found.asked.batch_id, chosen, names)


def _cells(items: tuple[WorkItem, ...]) -> pd.DataFrame:
    cells = pd.DataFrame(
        {
            "trace": [item.trace_id for item in items],
            "workflow": [item.workflow for item in items],
            "week": [item.week or "-" for item in items],
            "cost": [usd(item.cost_usd) for item in items],
            "model": [item.model or "" for item in items],
            "why": [one_line(" / ".join(item.reasons), most=REASON) for item in items],
            "evidence": [one_line("; ".join(item.evidence), most=REASON) for item in items],
        }
    )
    # A column that says nothing takes the width from those that do.
    return cells.drop(columns=[name for name in SPARSE if not cells[name].any()])


def _table(items: tuple[WorkItem, ...], what: str) -> None:
    st.dataframe(
        _cells(items), key=ASR.trace, hide_index=True, on_select="rerun",
        selection_mode="single-cell",
        alt=f"Traces {what}", width="stretch",
        column_config={
            "trace": st.column_config.TextColumn(pinned=True),
            "why": st.column_config.TextColumn(width="medium"),
            "evidence": st.column_config.TextColumn(width="medium"),
        },
    )  # fmt: skip


def _csv(store: Store, found: Found, made: StoreReport, outcome: str, who: str | None) -> str:
    """Return a part of the queue as CSV, after writing down who takes it."""
    if who is not None:
        ids = [item.trace_id for item in made.work[outcome]]
        store.record_exposure(who, ids, "labels")
    return labelled_csv(made.loaded, outcome, models=found.asked.models)
