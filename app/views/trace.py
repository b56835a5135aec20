"""Trace: one run as reviewers see it, with all labels, verdicts and decisions on it."""

import json
from collections.abc import Mapping

import pandas as pd
import streamlit as st

from app import frame, session
from app.components import proofs, trace_links, traces
from app.desk.data import bounded_text
from app.desk.plain import trace_as_text
from calibration.analyses.evidence.data import quotes_in
from calibration.analyses.evidence.from_store import labelled_trace
from calibration.records import NO_VERDICT, REFERENCE_SOURCE, TraceForReview, in_words
from calibration.reporting.document import usd
from calibration.store import Store, TraceFacts
from calibration.taxonomy import Taxonomy
from calibration.text import TOGETHER, one_line

MOST_NAME = 4_096
MOST_LISTED = 50
MOST_REASON = 300

EVENTS = {
    "import": "imported",
    "label": "labelled",
    "undo": "label undone",
    "skip": "skipped",
    "flag": "flagged",
    "unflag": "flag removed",
    "consensus": "adjudicated",
    "withdrawal": "adjudication withdrawn",
    "verdict": "verdict",
    "shown labels": "saw the labels",
    "shown verdicts": "saw the verdicts",
    "shown canonical": "saw the canonical label",
}


def _asked(store: Store) -> str | None:
    """Return the trace that the address names, or say what is wrong with it."""
    asked = st.query_params.get(trace_links.TRACE, "")[:MOST_NAME]
    of_source = st.query_params.get("source_id", "")[:MOST_NAME]
    if not asked and not of_source:
        st.text("The address names no trace. Open one from a table, for example on the Data page.")
        return None
    if asked and store.for_review([asked]):
        return asked
    found = store.ids_by_source([asked or of_source]).get(asked or of_source, [])
    if len(found) == 1:
        return found[0]
    if found:
        st.text(f"{len(found):,} traces have the source id {asked or of_source}. Choose one:")
        for trace_id in found[:MOST_LISTED]:
            st.page_link(
                trace_links.PAGE, label=frame.plain(trace_id),
                query_params=trace_links.address(trace_id),
            )  # fmt: skip
        return None
    st.text(f"There is no trace {bounded_text(asked or of_source)} in this store.")
    return None


def _page() -> None:
    store = session.require_store()
    trace_id = _asked(store)
    if trace_id is None:
        st.page_link("views/data/page.py", label="Go to the Data page")
        return
    facts = store.trace_facts(trace_id)
    if facts is None or facts.source == REFERENCE_SOURCE:
        st.text(
            "This trace belongs to the reference set, which practice and examinations use. "
            "Print it with:"
        )
        st.code(f"asr reference show {trace_id}", language=None, wrap_lines=True)
        return
    (trace,) = store.for_review([trace_id])
    _head(trace_id)
    hidden = _hidden(store, trace_id)
    st.text(_brief(trace) if hidden else _summary(trace, facts))
    left, right = st.columns([3, 2], gap="medium")
    with right, st.container(key="trace_record"):
        if hidden:
            _ask(store, trace_id)
        else:
            _record(store, facts)
    with left:
        trace_as_text(trace)


# Along the list


def _head(trace_id: str) -> None:
    """Draw the way back, the name, and the neighbours in the list."""
    name = st.query_params.get(trace_links.LIST, "")[:MOST_NAME]
    listed = trace_links.kept(name)
    ids = () if listed is None else listed.trace_ids
    place = ids.index(trace_id) if trace_id in ids else None
    with st.container(horizontal=True, vertical_alignment="center", key="trace_head"):
        page = "data" if listed is None else listed.page
        who = {k: v for k, v in trace_links.address("").items() if k == "reviewer"}
        st.page_link(
            frame.SCRIPTS[page], label=f"Back to {frame.title(page)}", icon=":material/arrow_back:",
            query_params=who if listed is None else dict(listed.query),
        )  # fmt: skip
        st.header(frame.plain(one_line(trace_id, most=80)), anchor=False)
        if place is None:
            return
        st.text(f"{place + 1:,} of {len(ids):,}")
        _step("Previous trace", "P", ids[place - 1] if place else None, name)
        _step("Next trace", "N", ids[place + 1] if place + 1 < len(ids) else None, name)


def _step(label: str, key: str, trace_id: str | None, listed: str) -> None:
    pressed = st.button(label, key=f"trace_{key}", shortcut=key, disabled=trace_id is None)
    if pressed and trace_id is not None:
        trace_links.open_trace(trace_id, listed)


# Blindness


def _hidden(store: Store, trace_id: str) -> bool:
    """Whether the person may still decide this trace blind, and somebody else has decided."""
    me = session.reviewer_id(store)
    if me is None or not store.still_blind(me, [trace_id]):
        return False
    others = store.trace_events(trace_id)
    return bool((~others["event"].isin(["import"]) & (others["who"] != me)).any())


def _ask(store: Store, trace_id: str) -> None:
    with st.container(border=True):
        st.subheader("Labels and verdicts are hidden", anchor=False)
        st.text(
            "You can still label or adjudicate this trace blind. After you have seen what others "
            "decided, your label of it no longer counts as blind."
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "Show labels and verdicts", key="trace_show", on_click=_see, args=(store, trace_id)
            )
            st.page_link("views/label.py", label="Go to the Label page")
            st.page_link(frame.SCRIPTS["adjudicate"], label="Go to the Adjudicate page")
        frame.said()


def _see(store: Store, trace_id: str) -> None:
    def shown() -> str:
        session.log_exposure(store, [trace_id], "labels")
        session.log_exposure(store, [trace_id], "verdicts")
        return ""

    frame.attempt(shown)


# What is known


def _brief(trace: TraceForReview) -> str:
    """Return what reviewers may know beside the text."""
    parts = [trace.workflow, trace.status, _seconds(trace.latency_s)]
    return " · ".join(one_line(part, most=80) for part in parts if part)


def _summary(trace: TraceForReview, facts: TraceFacts) -> str:
    tools = f"{facts.tool_calls:,} tool call{'s' * (facts.tool_calls != 1)}"
    parts = [
        facts.workflow,
        f"task {facts.task_id}",
        f"trial {facts.trial}" if facts.trial else None,
        facts.status,
        None if facts.cost_usd is None else f"{usd(facts.cost_usd)}",
        _seconds(facts.latency_s),
        f"{facts.n_steps:,} steps" if facts.n_steps else None,
        f"{tools}, {facts.tool_errors:,} failed" if facts.tool_errors else tools,
    ]
    return " · ".join(one_line(part, most=80) for part in parts if part)


def _seconds(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:,.1f} s"


def _record(store: Store, facts: TraceFacts) -> None:
    """Draw all that is known, after writing down that it is shown."""
    names = session.reviewer_names(store)
    events = store.trace_events(facts.trace_id)
    verdicts = store.trace_verdicts(facts.trace_id)
    if events["event"].isin(["label", "skip", "consensus"]).any():
        session.log_exposure(store, [facts.trace_id], "labels")
    if not verdicts.empty:
        session.log_exposure(store, [facts.trace_id], "verdicts")
    _decision(store, facts.trace_id, names)
    _labels(store, facts, names)
    _verdicts(store, verdicts)
    with st.expander("Facts", key="trace_facts"):
        st.text("\n".join(f"{name}: {value}" for name, value in _facts(facts).items()))
        if facts.success_criteria:
            st.caption("Success criteria, hidden from reviewers")
            st.text(bounded_text(facts.success_criteria))
        if facts.metadata:
            st.caption("Further fields of the file, hidden from reviewers")
            text = json.dumps(facts.metadata, indent=2, ensure_ascii=False, default=str)
            st.code(bounded_text(text), language=None, wrap_lines=True)
    with st.expander(f"History ({len(events):,})", key="trace_history"):
        _history(store, events, names)


def _titles(store: Store) -> dict[str, str]:
    known = {c.name: c.title for c in store.taxonomy().classes}
    return known | {NO_VERDICT: "No verdict"}


def _decision(store: Store, trace_id: str, names: Mapping[str, str]) -> None:
    """Draw the adjudicated label, if the last event of its adjudication is one."""
    history = store.consensus_history(trace_id)
    version = store.taxonomy().version
    rows = history[history["taxonomy_version"] == version].to_dict("records")
    if not rows or rows[-1]["kind"] != "consensus":
        return
    last, titles = rows[-1], _titles(store)
    st.subheader("Adjudicated label", anchor=False)
    with st.container(border=True):
        who = names.get(last["adjudicator"], last["adjudicator"])
        st.text(f"{titles[last['outcome']]}, decided by {who} on {last['created_at']:%Y-%m-%d}")
        if isinstance(last["blind_outcome"], str):
            blind = "" if last["blind"] else " (after seeing other labels)"
            st.text(f"First decision: {titles[last['blind_outcome']]}{blind}")
        if isinstance(last["cause"], str):
            st.text(f"Cause: {last['cause'].replace('_', ' ')}")
        if isinstance(last["question"], str):
            st.text(f"First difference: {store.taxonomy().node(last['question']).question}")
        if isinstance(last["rationale"], str):
            st.text(f"Rationale: {bounded_text(last['rationale'])}")


def _labels(store: Store, facts: TraceFacts, names: Mapping[str, str]) -> None:
    st.subheader("Labels", anchor=False)
    if not facts.batches:
        st.text("This trace is in no batch, so nobody has labelled it.")
        return
    _, reviewed = labelled_trace(store, TOGETHER.join(facts.batches), facts.trace_id)
    if not reviewed.labels:
        st.text("Nobody has labelled this trace yet.")
    for label in reviewed.labels:
        traces.label_box(label, names, _titles(store))


def _verdicts(store: Store, verdicts: pd.DataFrame) -> None:
    st.subheader("Verdicts", anchor=False)
    if verdicts.empty:
        st.text("No judge has given a verdict on this trace.")
        return
    taxonomy = store.taxonomy()
    for number, rows in enumerate(proofs.rows_of(verdicts).values()):
        if proofs.detail_of(rows[0]):
            with st.container(border=True):
                _verdict(rows[0], taxonomy)
                proofs.show(rows, taxonomy, key=f"trace_proof_{number}")
            continue
        for row in rows:
            with st.container(border=True):
                _verdict(row, taxonomy)
                traces.quotes((part.step_id, part.quote) for part in quotes_in(row["evidence"]))


def _verdict(row: proofs.Row, taxonomy: Taxonomy) -> None:
    again = f", repeat {row['sample']}" if row["sample"] else ""
    grade = "" if row["grade"] is None else f" (grade {row['grade']} of 5)"
    outcome = proofs.title(row, taxonomy)
    st.text(f"{frame.judge_name(row['judge_id'])}{again}: {outcome}{grade}")
    st.text("Reason: " + bounded_text(row["reason"] or "none given"))


def _facts(facts: TraceFacts) -> dict[str, object]:
    found = {
        "Trace id": facts.trace_id,
        "Source": facts.source,
        "Id in its source": facts.source_id,
        "Workflow": facts.workflow,
        "Task id": facts.task_id,
        "Task key": facts.task_key,
        "Trial": facts.trial,
        "Status": facts.status,
        "Model": facts.model,
        "Agent version": facts.agent_version,
        "Agent, as reviewers see it": facts.agent_tag,
        "Started (UTC)": None if facts.started_at is None else f"{facts.started_at:%Y-%m-%d %H:%M}",
        "Duration": _seconds(facts.latency_s),
        "Cost": None if facts.cost_usd is None else usd(facts.cost_usd),
        "Ceiling": None
        if facts.ceiling_usd is None
        else f"{usd(facts.ceiling_usd)} a {facts.unit}",
        "Units": None if facts.units == 1 else f"{facts.units:g}",
        "Tokens": None if facts.total_tokens is None else f"{facts.total_tokens:,}",
        "Context": None if facts.context_tokens is None else f"{facts.context_tokens:,} tokens",
        "Perturbation": facts.perturbation,
        "Confidence of the agent": None if facts.confidence is None else f"{facts.confidence:g}",
        "Expected calls": ", ".join(call.name for call in facts.expected_calls or ()) or None,
        "Violations in the file": in_words(facts.violations or ()) or None,
        "Steps": f"{facts.n_steps:,}",
        "Tool calls": f"{facts.tool_calls:,}, {facts.tool_errors:,} failed",
        "Batches": ", ".join(facts.batches) or None,
        "Same content as": facts.possible_duplicate_of,
        "Imported (UTC)": f"{facts.created_at:%Y-%m-%d %H:%M}",
    }
    return {
        name: one_line(str(value), most=MOST_REASON)
        for name, value in found.items()
        if value is not None
    }


def _history(store: Store, events: pd.DataFrame, names: Mapping[str, str]) -> None:
    titles = _titles(store)
    cells = pd.DataFrame(
        {
            "when": events["created_at"],
            "what": events["event"].map(lambda event: EVENTS.get(event, event)),
            "who": [names.get(w, w) if isinstance(w, str) else "" for w in events["who"]],
            "class": [titles.get(o, o) if isinstance(o, str) else "" for o in events["outcome"]],
            "batch": events["batch_id"].fillna(""),
            "reason": [
                one_line(r, most=MOST_REASON) if isinstance(r, str) else ""
                for r in events["reason"]
            ],
        }
    )
    cells = cells.drop(columns=[c for c in ("class", "batch", "reason") if not cells[c].any()])
    st.dataframe(
        cells, hide_index=True, alt="What happened to this trace, oldest first",
        column_config={
            "when": st.column_config.DatetimeColumn("when (UTC)", format="YYYY-MM-DD HH:mm"),
        },
    )  # fmt: skip


_page()
