"""The fallback without the component: text, code and buttons only."""

import uuid
from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from app.desk import events
from app.desk.data import bounded_text
from calibration.errors import CalibrationError
from calibration.records import (
    SEVERITIES,
    SYSTEM_ROLES,
    Evidence,
    LabelDraft,
    TraceForReview,
    Violation,
)
from calibration.store import Queue, Store
from calibration.taxonomy import Node, Taxonomy

MESSAGE = "plain_message"
SKIP_REASON = "plain_skip_reason"
RATIONALE = "plain_rationale"
QUOTE = "plain_quote"
SEVERITY, STEP = "plain_severity", "plain_step"
NOT_BROKEN, NOWHERE = "not broken", "no step"


@st.fragment
def plain_view(store: Store, reviewer_id: str, batch_id: str) -> None:
    """Show the current trace and the current question with native elements."""
    queue = store.queue(reviewer_id, batch_id, limit=1)
    left, right = st.columns([3, 2], gap="medium")
    with right:
        st.text(f"{queue.done} of {queue.total} labelled, {queue.skipped} skipped")
        if message := st.session_state.pop(MESSAGE, ""):
            st.text(message)
        if queue.items:
            _panel(store, reviewer_id, batch_id, queue)
        else:
            _nothing_left(queue)
            _undo_button(store, _empty(reviewer_id, batch_id))
    with left:
        if queue.items:
            trace_as_text(queue.items[0])


def _empty(reviewer_id: str, batch_id: str, trace_id: str = "") -> LabelDraft:
    return LabelDraft(trace_id=trace_id, reviewer_id=reviewer_id, batch_id=batch_id)


def _nothing_left(queue: Queue) -> None:
    if queue.state == "finished":
        st.subheader("All done")
        st.text("You have labelled every trace of this batch that is yours to label.")
        if queue.purpose == "exam":
            st.page_link(
                "views/certificate/page.py", label="See your result on the Certificate page"
            )
    else:
        st.subheader("Nothing for you right now")
        st.text("Other reviewers have claimed the rest of this batch. Reload this page later.")


def trace_as_text(trace: TraceForReview) -> None:
    """Show what a reviewer may see of a trace, with native elements."""
    st.subheader("Task: instructions to the simulated user" if trace.simulated_user else "Task")
    _long(trace.prompt)
    for attachment in trace.inputs:
        with st.container(border=True):
            st.text(attachment.name)
            _long(attachment.text)
    for goal in trace.sub_goals:
        st.text(f"- {goal.text}{'' if goal.matters else ' (minor)'}")
    st.subheader("Transcript")
    for number, step in enumerate(trace.steps, 1):
        with st.container(border=True):
            mark = " (error)" if step.error else ""
            role = "system prompt" if step.role in SYSTEM_ROLES else step.role
            st.text(f"{number}. {role} {step.tool or ''}{mark} [{step.step_id}]")
            _long(step.content)
            for part in (step.arguments, step.result):
                if part:
                    st.code(bounded_text(part), language=None, wrap_lines=True)
    st.subheader("Final response")
    _long(trace.response or "The run ended without a response.")
    if trace.status:
        st.text(f"status: {trace.status}")


def _long(text: str | None) -> None:
    if text:
        st.text(bounded_text(text))


def _panel(store: Store, reviewer_id: str, batch_id: str, queue: Queue) -> None:
    trace, taxonomy = queue.items[0], store.taxonomy()
    draft = queue.drafts.get(trace.trace_id, _empty(reviewer_id, batch_id, trace.trace_id))
    answers = events.on_path(taxonomy, draft.answers)
    if answers and _decided(taxonomy, taxonomy.node(list(answers)[-1]), list(answers.values())[-1]):
        answers.popitem()  # a label that was reopened: its last question is asked again
    draft = replace(draft, answers=answers)
    node = events.next_question(taxonomy, answers)
    for asked, given in answers.items():
        st.text(f"{taxonomy.node(asked).question} {given.capitalize()}")
    st.subheader(node.question)
    st.text(node.rule)
    if node.evidence_on:
        st.text_input(
            f"Quote (needed for {node.evidence_on.capitalize()}): the exact words",
            key=f"{QUOTE}_{trace.trace_id}",
        )
    with st.container(horizontal=True):
        for answer in ("yes", "no"):
            st.button(
                answer.capitalize(),
                key=f"answer_{answer}",
                shortcut=answer[0].upper(),
                on_click=_answer,
                # The token belongs to this button as drawn: a second press stores nothing new.
                args=(store, queue, replace(draft, client_token=_token()), node, answer),
            )
    st.text_input(
        "Rationale (optional)",
        value=draft.rationale or "",
        key=f"{RATIONALE}_{trace.trace_id}",
        max_chars=1000,
    )
    _violation_fields(queue)
    _undo_button(store, draft)
    if queue.purpose != "exam":
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox("Reason to skip", events.SKIP_REASONS, key=SKIP_REASON)
            st.button(
                "Skip",
                key="skip",
                on_click=_skip,
                args=(store, reviewer_id, batch_id, trace.trace_id, _token()),
            )
    for outcome in taxonomy.classes:
        st.text(f"{outcome.title}: {outcome.meaning}")


def _violation_fields(queue: Queue) -> None:
    """Ask for each safety constraint whether it was broken, how badly and where; or for none."""
    trace, marked = queue.items[0], _marked(queue)
    if not queue.constraints:
        return
    with st.expander(f"Safety violations ({len(marked)})", key="plain_violations"):
        steps = [NOWHERE, *(step.step_id for step in trace.steps), "response"]
        for place, constraint in enumerate(queue.constraints):
            left, right = st.columns(2)
            found = marked.get(constraint)
            severities = (NOT_BROKEN, *SEVERITIES)
            key = f"{place}_{trace.trace_id}"
            left.selectbox(
                constraint,
                severities,
                index=severities.index(found.severity) if found else 0,
                key=f"{SEVERITY}_{key}",
            )
            right.selectbox(
                "Step",
                steps,
                index=steps.index(found.step) if found and found.step in steps else 0,
                key=f"{STEP}_{key}",
            )


def _marked(queue: Queue) -> dict[str, Violation]:
    draft = queue.drafts.get(queue.items[0].trace_id)
    return {v.constraint: v for v in (draft and draft.violations) or ()}


def _violations(queue: Queue) -> tuple[Violation, ...] | None:
    """Return what is marked on the page; None where nobody asks for it."""
    if not queue.constraints:
        return None
    marked = []
    for place, constraint in enumerate(queue.constraints):
        key = f"{place}_{queue.items[0].trace_id}"
        severity = st.session_state.get(f"{SEVERITY}_{key}", NOT_BROKEN)
        step = st.session_state.get(f"{STEP}_{key}", NOWHERE)
        if severity != NOT_BROKEN:
            at = None if step == NOWHERE else step
            marked.append(Violation(constraint=constraint, severity=severity, step=at))
    return tuple(marked)


def _undo_button(store: Store, draft: LabelDraft) -> None:
    st.button(
        "One question back" if draft.answers else "Undo last",
        key="undo",
        shortcut="U",
        on_click=_undo,
        args=(store, replace(draft, client_token=_token())),
    )


def _token() -> str:
    return uuid.uuid4().hex


def _answer(store: Store, queue: Queue, draft: LabelDraft, node: Node, answer: str) -> None:
    trace = queue.items[0]
    quote = st.session_state.get(f"{QUOTE}_{trace.trace_id}", "").strip()
    rationale = st.session_state.get(f"{RATIONALE}_{trace.trace_id}", "").strip()
    given, taxonomy = draft.answers | {node.id: answer}, store.taxonomy()
    needs_quote = node.evidence_on == answer
    found = events.find_quote(trace, quote) if needs_quote else ""
    if needs_quote and not found:
        st.session_state[MESSAGE] = "Type the invented words exactly as they are in a step."
        return
    new = Evidence(step_id=found, quote=quote)
    draft = replace(
        draft, answers=given, rationale=rationale or None, violations=_violations(queue)
    )
    if not _decided(taxonomy, node, answer):
        _write(lambda: store.save_draft(draft), "answer")
        return
    if found and new not in draft.evidence:
        draft = replace(draft, evidence=(*draft.evidence, new))
    _write(lambda: store.record_label(replace(draft, seconds_active=None)), "label")


def _write(write: Callable[[], object], what: str) -> None:
    """Store something, or say why it was not stored."""
    try:
        write()
    except CalibrationError as error:
        st.session_state[MESSAGE] = f"The {what} was not stored: {error}"


def _decided(taxonomy: Taxonomy, node: Node, answer: str) -> bool:
    return node.target(answer) in taxonomy.credit


def _undo(store: Store, draft: LabelDraft) -> None:
    if draft.answers:
        fewer = replace(draft, answers=dict(list(draft.answers.items())[:-1]))
        _write(lambda: store.save_draft(fewer), "answer")
        return
    named = {"reviewer_id": draft.reviewer_id, "batch_id": draft.batch_id}
    _write(lambda: store.record_undo(client_token=draft.client_token, **named), "undo")


def _skip(store: Store, reviewer_id: str, batch_id: str, trace_id: str, token: str) -> None:
    _write(
        lambda: store.record_skip(
            client_token=token,
            trace_id=trace_id,
            reviewer_id=reviewer_id,
            batch_id=batch_id,
            reason=st.session_state[SKIP_REASON],
        ),
        "skip",
    )
