"""The traces on which judge and humans differ, with both reasons, and one of them opened."""

from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from app import frame, session
from app.components import proofs, traces
from app.components.tables import JUDGE
from app.desk.data import bounded_text
from app.views.judge.data import Found
from calibration.analyses.agreement.traces import TraceSet
from calibration.analyses.evidence.data import ReviewedTrace
from calibration.analyses.judge.diagnostics import differing
from calibration.reporting import csv_exports
from calibration.store import Store
from calibration.text import one_line

# A browser table gets slow beyond; the CSV holds them all.
MOST_ROWS = 1_000

REASON = 200
REASONS = ("reviewers' reasons", "judge's reasons")


def answer(found: Found) -> str:
    """Return what the list holds."""
    chosen = JUDGE.active() or differing(found.traces)
    return f"{traces.counted(chosen)} {chosen.what}"


def show(store: Store, found: Found, names: Mapping[str, str]) -> None:
    """Draw the list."""
    chosen = JUDGE.active() or differing(found.traces)
    if not chosen.trace_ids:
        st.text(f"No trace {chosen.what}. Click most numbers above to list their traces.")
        return
    st.subheader("Largest effect on the rate first", anchor="traces")
    shown = TraceSet(what=chosen.what, trace_ids=chosen.trace_ids[:MOST_ROWS])
    if shown != chosen:
        st.text(f"The first {MOST_ROWS:,} are shown; the CSV holds all.")
    traces.log(JUDGE, store, shown, "labels", "verdicts")
    known = {of.trace_id: of for of in found.traces.labelled}
    _table(found, shown, known, names)
    st.caption(
        "Effect: the change of the corrected rate if the judge were right and the reviewers wrong."
    )
    st.download_button(
        f"Download these {len(chosen.trace_ids):,} as CSV",
        data=partial(_csv, store, found, chosen, _who(store)),
        file_name="judge-traces.csv", mime="text/csv", on_click="ignore", key=JUDGE.key("csv"),
    )  # fmt: skip
    traces.opened(
        JUDGE, store, found.asked.batch_id, shown, names,
        also=lambda trace_id: _judge(store, found, trace_id, known.get(trace_id)),
    )  # fmt: skip


def _who(store: Store) -> str | None:
    reviewer = session.chosen_reviewer(store)
    return None if reviewer is None else reviewer.reviewer_id


def _csv(store: Store, found: Found, chosen: TraceSet, who: str | None) -> str:
    """Return the traces as CSV, after writing down who takes them."""
    if who is not None:
        for kind in ("labels", "verdicts"):
            store.record_exposure(who, chosen.trace_ids, kind)
    return csv_exports.judge_traces_csv(found.traces, chosen)


def _table(
    found: Found,
    chosen: TraceSet,
    known: Mapping[str, ReviewedTrace],
    names: Mapping[str, str],
) -> None:
    rows = [_row(found, trace_id, known.get(trace_id), names) for trace_id in chosen.trace_ids]
    cells = pd.DataFrame(rows)
    # Reasons take the width of a screen: without any there is no column for them.
    hidden = [name for name in REASONS if not cells[name].fillna("").any()]
    cells = cells.drop(columns=hidden)
    st.dataframe(
        cells, key=JUDGE.trace, hide_index=True, on_select="rerun",
        selection_mode="single-cell", alt=f"Traces {chosen.what}", placeholder="-",
        column_config={
            "trace": st.column_config.TextColumn(pinned=True),
            "effect": st.column_config.NumberColumn("effect, points", format="%.2f"),
            **{name: st.column_config.TextColumn(width="medium") for name in REASONS},
        },
    )  # fmt: skip


def _row(
    found: Found, trace_id: str, of: ReviewedTrace | None, names: Mapping[str, str]
) -> dict[str, object]:
    differs = of if of is not None and of.differs else None
    classes = [] if of is None else [
        f"{names.get(label.reviewer, label.reviewer)}: {label.rationale}"
        for label in of.labels if label.rationale
    ]  # fmt: skip
    return {
        "trace": trace_id,
        "effect": None if differs is None or differs.moves is None else 100 * differs.moves,
        "reviewers": None if of is None else " / ".join(map(found.traces.title, of.human)),
        "judge": None if of is None else found.traces.title(of.verdict or ""),
        "first difference": None
        if differs is None or differs.question is None
        else found.taxonomy.question_name(differs.question),
        "reviewers' reasons": one_line(" / ".join(classes), most=REASON),
        "judge's reasons": None if of is None else one_line(of.reason or "", most=REASON),
        "adjudicated": None if of is None else "yes" if of.adjudicated else "",
        "workflow": None if of is None else of.workflow,
        "agent": None if of is None else of.agent,
    }


def _judge(store: Store, found: Found, trace_id: str, of: ReviewedTrace | None) -> None:
    """Draw the verdict on a trace; of a judge that we run with its proof."""
    name = frame.judge_name(found.asked.judge_id)
    with st.container(border=True):
        if of is None:
            st.text(f"{name}: no verdict")
            return
        rows = proofs.rows_of(store.trace_verdicts(trace_id)).get(found.asked.judge_id, [])
        proven = bool(rows) and bool(proofs.detail_of(rows[0]))
        given = found.traces.title(of.verdict or "")
        st.text(f"{name}: {proofs.title(rows[0], found.taxonomy) if proven else given}")
        st.text("Reason: " + bounded_text(of.reason or "none given"))
        if proven:
            proofs.show(rows, found.taxonomy, key=JUDGE.key("proof"))
            return
        traces.quotes((part.step_id, part.quote) for part in of.evidence)
        if of.changed:
            st.text("Asked again, it gave another verdict.")
