"""What has been adjudicated: by whom, from what to what, why, and the way back."""

from collections.abc import Mapping
from uuid import uuid4

import pandas as pd
import streamlit as st

from app import session
from app.components import trace_links
from app.desk.data import bounded_text
from app.desk.plain import trace_as_text
from calibration.analyses.evidence.from_store import Settled
from calibration.analyses.reviewers.adjudication import AdjudicationWork
from calibration.errors import CalibrationError
from calibration.records import CAUSES, Reviewer
from calibration.store import Store

LIST = "adjudicate_done"
REASON = "adjudicate_withdraw_reason"
REFUSED = "adjudicate_withdraw_refused"


def cause_title(cause: str | None) -> str:
    """Return a cause in words.

    Examples
    --------
    >>> cause_title("rubric_unclear"), cause_title(None)
    ('rubric unclear', '-')
    """
    return "-" if cause is None else cause.replace("_", " ")


def show(store: Store, lead: Reviewer, work: AdjudicationWork, names: Mapping[str, str]) -> None:
    """Draw the list of what is settled, the counts, and one trace with its history."""
    if not work.settled:
        st.text("Nothing has been adjudicated in this batch yet.")
        return
    session.log_exposure(store, [of.trace_id for of in work.settled], "labels")
    _counts(work)
    st.subheader("Adjudicated traces, newest first", anchor=False)
    chosen = _table(work, names)
    if chosen is None:
        st.text("Select a row to read the decision, or to withdraw it.")
        return
    _opened(store, lead, chosen, names)


def _counts(work: AdjudicationWork) -> None:
    own = [of for of in work.settled if not of.elsewhere]
    changed = sum(of.changed for of in own)
    blind = sum(of.blind for of in own)
    counts = [f"{len(work.settled):,} adjudicated"]
    if own:
        counts.append(f"{blind:,} of {len(own):,} decided blind")
        counts.append(f"{changed:,} changed after the answers were shown")
    if work.n_reopened:
        counts.append(f"{work.n_reopened:,} reopened: labels have changed, the old decision counts")
    st.text(". ".join(counts) + ".")
    counted = work.by_cause()
    if counted.empty:
        return
    st.subheader("Why reviewers differed, by the question at which they first differ", anchor=False)
    wide = counted.pivot_table(index="question", columns="cause", values="n", fill_value=0)
    wide = wide.reindex(columns=[c for c in CAUSES if c in wide.columns]).astype(int)
    wide = wide.rename(columns=cause_title)
    wide["all"] = wide.sum(axis=1)
    st.dataframe(wide.reset_index(), hide_index=True, alt="Causes by question", width="content")


def _table(work: AdjudicationWork, names: Mapping[str, str]) -> Settled | None:
    cells = pd.DataFrame(
        {
            "trace": [of.trace_id for of in work.settled],
            "consensus": [of.outcome for of in work.settled],
            "state": ["reopened" if of.reopened else "stands" for of in work.settled],
            "labels": [_labels(of, names) for of in work.settled],
            "decided blind": [_blind(of) for of in work.settled],
            "first difference": [of.question or "-" for of in work.settled],
            "cause": [cause_title(of.cause) for of in work.settled],
            "by": [names.get(of.adjudicator, of.adjudicator) for of in work.settled],
            "when": [of.at for of in work.settled],
        }
    )
    picked = trace_links.table(
        cells, key=LIST, page="adjudicate", title="Adjudicated traces",
        config={"when": st.column_config.DatetimeColumn("when (UTC)", format="YYYY-MM-DD HH:mm")},
        on_select="rerun", selection_mode="single-row",
    )  # fmt: skip
    rows = picked["selection"]["rows"]
    return work.settled[rows[0]] if rows and rows[0] < len(work.settled) else None


def _labels(of: Settled, names: Mapping[str, str]) -> str:
    labels = [f"{names.get(who, who)}: {outcome}" for who, outcome in of.labels]
    return ", ".join(labels) or "not known"


def _blind(of: Settled) -> str:
    if of.elsewhere:
        return "not known"
    return f"{of.blind_outcome}{'' if of.blind else ' (not blind)'}"


def _opened(store: Store, lead: Reviewer, of: Settled, names: Mapping[str, str]) -> None:
    with st.container(border=True, key="adjudicate_opened"):
        left, right = st.columns([3, 2], gap="medium")
        with right:
            st.markdown("#### Decision")
            st.text(f"Final label: {of.outcome}")
            st.text(f"Labels at the decision: {_labels(of, names)}")
            st.text("Rationale: " + bounded_text(of.rationale or "none given"))
            if of.own:
                st.text("The adjudicator had labelled this trace in the batch.")
            _history(store, of, names)
            st.text_input(
                "Why withdraw the final label?", key=REASON, max_chars=300, placeholder="Optional"
            )
            st.button(
                "Withdraw the final label", key="adjudicate_withdraw",
                on_click=_withdraw, args=(store, lead.reviewer_id, of.trace_id),
            )  # fmt: skip
            if refusal := st.session_state.pop(REFUSED, ""):
                st.text(refusal)
        with left:
            trace_as_text(store.for_review([of.trace_id])[0])


def _history(store: Store, of: Settled, names: Mapping[str, str]) -> None:
    events = store.consensus_history(of.trace_id).to_dict("records")
    if len(events) < 2:
        return
    st.markdown("#### History")
    for event in events:
        who = names.get(event["adjudicator"], event["adjudicator"])
        what = event["outcome"] if event["kind"] == "consensus" else "withdrawn"
        st.text(f"{event['created_at']:%Y-%m-%d %H:%M} UTC, {who}: {what}")


def _withdraw(store: Store, adjudicator: str, trace_id: str) -> None:
    reason = st.session_state.get(REASON) or None
    try:
        store.withdraw_consensus(
            client_token=str(uuid4()), trace_id=trace_id, adjudicator=adjudicator, reason=reason
        )
    except CalibrationError as error:
        st.session_state[REFUSED] = str(error)
    else:
        st.session_state[REASON] = ""
